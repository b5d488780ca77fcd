"""Anchors that a person names: checking row numbers, and reading them from a file."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.anchors.pool import Rows
from twinedge.data.wording import place, quoted
from twinedge.errors import InputError

_DIGITS = 15  # no table has more rows; a longer number would not fit an integer of the array


def check_rows(rows: Any, count: int, twins: int = 1) -> Rows:
    """Check row numbers of training points.

    Parameters
    ----------
    rows : array of int
        Row numbers, from 0.
    count : int
        Training points there are.
    twins : int
        Networks to share them.

    Returns
    -------
    array of shape (k,)
        The same numbers in the same order.
    """
    try:
        array = np.asarray(rows)
    except (ValueError, OverflowError):  # lists of different lengths
        array = np.empty((0, 0))
    if array.ndim == 1 and not array.size:
        raise InputError("anchors: the list of rows is empty")
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError("anchors must be a list of whole row numbers")
    outside = array[(array < 0) | (array >= count)]
    if outside.size:
        raise InputError(
            f"anchors: row {outside[0]} is not there; the training points are rows 0 to {count - 1}"
        )
    numbers, times = np.unique(array, return_counts=True)
    if (times > 1).any():
        raise InputError(f"anchors: row {numbers[times > 1][0]} is listed more than once")
    if len(array) % twins:
        raise InputError(f"anchors: {len(array)} rows cannot be dealt out evenly to {twins} twins")
    return array.astype(np.intp)


def rows_from_file(path: str | PathLike[str]) -> Rows:
    """Read row numbers, one on a line or several with commas between them.

    Parameters
    ----------
    path : path
        A text file; what follows a ``#`` is a comment, and empty lines are passed over.

    Returns
    -------
    array of shape (k,)
        In the order of the file; ``check_rows`` says whether there are such rows.
    """
    line_of: dict[int, int] = {}
    for number, field in _fields(Path(path)):
        where = f"{place(path)}: line {number}"
        if not (field.isascii() and field.isdigit() and len(field) <= _DIGITS):
            raise InputError(f"{where}: {quoted(field)} is not a row number (0, 1, 2, ...)")
        row = int(field)
        if row in line_of:
            raise InputError(f"{where}: row {row} is already on line {line_of[row]}")
        line_of[row] = number
    if not line_of:
        raise InputError(f"{place(path)}: no row numbers in it; give one on each line")
    return np.array(list(line_of), np.intp)


def _fields(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each field of a file."""
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.partition("#")[0].strip()
                for field in text.removesuffix(",").split(",") if text else ():
                    yield number, field.strip()
    except UnicodeDecodeError:
        raise InputError(
            f"{place(path)}: not text after line {number}; give a file of row numbers"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise InputError(f"{place(path)}: cannot be read: {reason}") from None
