"""Rows of data frames, and of the Parquet and Excel files that pandas reads, as text."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from twinedge.data.dialect import Row
from twinedge.encoding.cells import is_missing
from twinedge.encoding.tables import check_unique
from twinedge.errors import InputError, MissingPackageError

SUFFIXES = (".parquet", ".xlsx", ".xls")


def read_binary(source: Path | BinaryIO, suffix: str, name: str) -> Iterator[Row]:
    """Yield the rows of a Parquet or Excel file as text, starting with the column names.

    Parameters
    ----------
    source
        The file.
    suffix
        Which kind it is: one of ``SUFFIXES``.
    name
        What to call it in messages.
    """
    if isinstance(source, Path) and not source.is_file():
        raise InputError(f"{name}: no such file; give the path of a table")
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]

        if suffix == ".parquet":
            rows = rows_of_frame(pandas.read_parquet(source), 1)
        else:
            sheet = pandas.read_excel(source, header=None, dtype=object)
            rows = islice(rows_of_frame(sheet, 0), 1, None)  # its header is a row like others
    except ImportError as error:
        raise MissingPackageError(
            f"{name}: reading {suffix} files needs pandas and its reader for them "
            "(pip install 'twinedge[tables]'); or save it as CSV"
        ) from error
    except Exception as error:  # the readers of both formats raise a dozen kinds
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"{name}: cannot be read as {suffix[1:]}: {reason}") from error
    yield from rows


def rows_of_frame(frame: Any, header: int) -> Iterator[Row]:
    """Yield the rows of a data frame as text, from the names, which are row number ``header``."""
    names = [str(name) for name in frame.columns]
    yield header, names
    check_unique(names)
    columns = [list(frame[name]) for name in frame.columns]
    for number, row in enumerate(zip(*columns, strict=True), header + 1):
        cells = ["" if is_missing(one) else str(one) for one in row]
        if any(cells):
            yield number, cells
