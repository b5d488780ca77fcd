"""Read tables: the user's own files, the paper's nine data sets, and its 25 splits."""

from twinedge.data.catalogue import Dataset, names
from twinedge.data.features import read_features
from twinedge.data.fetch import load
from twinedge.data.reading import read_table
from twinedge.data.splitting import Split, split_groups, split_rows, splits
from twinedge.data.table import Table

__all__ = [
    "Dataset",
    "Split",
    "Table",
    "load",
    "names",
    "read_features",
    "read_table",
    "split_groups",
    "split_rows",
    "splits",
]
