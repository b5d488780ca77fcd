"""Tables in memory: data frames of any library, arrays, single rows, and the columns in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.encoding.cells import CellKind, CellReader, complaint, is_missing, numbered
from twinedge.errors import InputError
from twinedge.wording import quoted

Floats = npt.NDArray[np.float64]


class Column(NamedTuple):
    """A column as it was read.

    ``values`` ``(n,)`` are its numbers or, in a column of names, indices into ``texts``. NaN is a
    missing cell.
    """

    name: str
    values: Floats
    texts: tuple[str, ...] | None = None


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame, of any library."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "__getitem__")


def is_record(X: Any) -> bool:
    """Whether ``X`` is one row with names: a mapping, or a row of a data frame."""
    return isinstance(X, Mapping) or (hasattr(X, "keys") and hasattr(X, "index"))


def are_records(X: Any) -> bool:
    """Whether ``X`` is a list of rows with names."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(map(is_record, X))


def has_names(labels: Sequence[Any]) -> bool:
    """Whether the columns of a table have names; pandas numbers columns that have none."""
    kinds = {isinstance(one, str) for one in labels}
    if len(kinds) > 1:
        raise InputError("the columns of a table must all have names, or none: some are numbers")
    return kinds == {True}


def check_unique(labels: Sequence[str]) -> None:
    """Refuse columns of the same name."""
    for name in labels:
        if (count := list(labels).count(name)) > 1:
            raise InputError(f"{count} columns are called {quoted(name)}; give each its own name")


def frame_columns(X: Any) -> list[Column]:
    """Take a data frame apart; a column that is not all numbers is one of names."""
    labels = list(X.columns)
    names = labels if has_names(labels) else numbered(len(labels))
    check_unique(names)
    return [column_of(X[label], name) for label, name in zip(labels, names, strict=True)]


def is_categorical(column: Any) -> bool:
    """Whether a column of a data frame is categorical, in any library."""
    kind = str(getattr(column, "dtype", "")).lower()
    return kind.startswith(("category", "categorical", "enum"))


def column_of(cells: Any, name: str, *, named: bool | None = None) -> Column:
    """Make a column from cells of any kind.

    Parameters
    ----------
    cells : array of shape (n,), of any library
        The cells.
    name : str
        Name of the column.
    named : bool, optional
        Whether they are names. By default they are if the column is categorical, or if some cells
        are texts that do not hold a number.
    """
    values = np.asarray(cells)
    if values.dtype.kind in "mM":
        raise InputError(
            f"column {quoted(name)} holds dates or times; learn from hour, weekday and season with "
            "fit_csv(calendar=...), make them a number, say hours since the first, or leave the "
            "column out"
        )
    categorical = is_categorical(cells) if named is None else named
    if values.dtype.kind in "biuf" and not categorical:
        return Column(name, values.astype(np.float64))
    every = values.astype(object).tolist()
    missing = list(map(is_missing, every))
    if not categorical and all(
        gone or isinstance(one, bool | int | float | np.number)
        for one, gone in zip(every, missing, strict=True)
    ):
        found = [np.nan if gone else one for one, gone in zip(every, missing, strict=True)]
        return Column(name, np.array(found, np.float64))
    codes: dict[str, int] = {}
    held = [
        np.nan if gone else codes.setdefault(str(one), len(codes))
        for one, gone in zip(every, missing, strict=True)
    ]
    column = Column(name, np.array(held, np.float64), tuple(codes))
    if categorical or (named is None and not _hold_numbers(codes)):
        return column
    return Column(name, numbers_of(column))


def _hold_numbers(texts: Iterable[str]) -> bool:
    reader = CellReader(comma_allowed=False)
    return all(reader.read(text, 0)[0] is CellKind.NUMBER for text in texts)


def alone(cell: Any) -> npt.NDArray[Any]:
    """Make a column of one cell."""
    column = np.empty(1, object)
    column[0] = cell
    return column


def rows_of(X: Any) -> npt.NDArray[Any]:
    """Make an array of rows: of numbers if all are, otherwise of objects."""
    try:
        found = np.asarray(X)
        if found.dtype.kind in "biuf":
            return found
        return np.asarray(X, object)
    except ValueError as error:  # rows of different lengths
        raise InputError("the rows of a query must all have the same length") from error


def numbers_of(column: Column) -> Floats:
    """Read the texts of a column as numbers."""
    reader, read = CellReader(comma_allowed=False), []
    for text in column.texts or ():
        kind, value = reader.read(text, 0)
        if kind is not CellKind.NUMBER:
            raise InputError(f"column {quoted(column.name)}: {complaint(kind, quoted(text))}")
        read.append(value)
    missing = np.isnan(column.values)
    codes = np.where(missing, 0, column.values).astype(np.intp)
    return np.where(missing, np.nan, np.array([*read, np.nan])[codes])


def all_numbers(cells: npt.NDArray[Any]) -> bool:
    """Whether all cells of an array are numbers, or texts that hold one."""
    try:
        cells.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
