"""One door to the nine data sets, wherever their rows are."""

from pathlib import Path

import numpy as np

from twinedge.data.catalogue import Entry, entry_of
from twinedge.data.dataset import Dataset
from twinedge.data.fetch import fetch
from twinedge.data.folders import cache_folder, find_file, write_to_cache
from twinedge.data.synthetic import GENERATORS, VARIANTS, paper_test_function
from twinedge.data.table import read_table
from twinedge.data.verify import verify
from twinedge.data.wording import place, quoted
from twinedge.errors import InputError


def load(name: str, variant: str = "published") -> Dataset:
    """Load one of the paper's data sets.

    Looks for ``<name>.csv`` in the folder named by the environment variable TWINEDGE_DATA, then in
    the cache; else downloads it (to the cache) or, for the generated sets, makes it. Whatever is
    found is checked against what the paper used. ``tf`` is always made.

    Parameters
    ----------
    name
        Key of the set: bc, bh, cs, ee, rcl, tf, wn, wsb or yh.
    variant
        "published": the data of the paper's numbers. "paper", for rcl and wsb only: made after the
        paper's text, which differs from its files.

    Returns
    -------
    Dataset
        Rows in the order that `splits` refers to.

    Raises
    ------
    InputError
        When there is no such set or variant, a file is not the set it is named after, or the set
        is not on this machine and cannot be downloaded.

    Examples
    --------
    >>> load("tf").X.shape
    (1000, 2)
    """
    entry = entry_of(name)
    if variant not in VARIANTS:
        raise InputError(f"no variant {quoted(variant)}; use {' or '.join(map(repr, VARIANTS))}")
    generate = GENERATORS.get(entry.name)
    if variant == "paper":
        if generate is None:
            raise InputError(
                f"{entry.name} has no variant 'paper'; only {' and '.join(GENERATORS)} differ "
                f"between the paper's text and its files"
            )
        return generate(variant)
    if entry.name == "tf":
        return paper_test_function()
    path = find_file(entry)
    if path is not None:
        return _from_file(entry, path)
    if generate is not None:
        return generate(variant)
    values, source = fetch(entry)
    kept = write_to_cache(entry, values)
    return Dataset(
        name=entry.name,
        X=np.ascontiguousarray(values[:, :-1]),
        y=values[:, -1].copy(),
        feature_names=entry.feature_names,
        target_name=entry.target_name,
        title=entry.title,
        source=source if kept is None else str(kept),
    )


def _from_file(entry: Entry, path: Path) -> Dataset:
    try:
        table = read_table(path, target=-1)
        assert table.y is not None
        verify(entry, np.column_stack([table.X, table.y]), place(path))
        if (*table.feature_names, table.target_name) != (*entry.feature_names, entry.target_name):
            raise InputError(f"{place(path)}: the header is not {entry.header}")
    except InputError as error:
        if path.parent == cache_folder():
            raise InputError(f"{error}; delete it to download it again") from None
        raise
    return Dataset(
        name=entry.name,
        X=table.X,
        y=table.y,
        feature_names=entry.feature_names,
        target_name=entry.target_name,
        title=entry.title,
        source=str(path),
    )
