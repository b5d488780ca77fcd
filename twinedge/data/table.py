"""The user's own table: columns of numbers and names, with one column as the target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import Column
from twinedge.encoding.times import Notation
from twinedge.errors import Advice, InputError, Parameter, ParameterError
from twinedge.wording import joined, quoted, shown

Missing = str | float | Sequence[str | float]  # stands for a missing value in a file

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads the bits of a product
_HALF = np.uint64(32)
_MOST_NAMED = 3  # files in a message


def count_duplicates(*columns: NDArray[np.float64]) -> int:
    """Count the rows that equal an earlier row in every value.

    Parameters
    ----------
    *columns
        Arrays of shape (n,) or (n, k), side by side: together they are the table.

    Returns
    -------
    int
        n minus the number of distinct rows.

    Examples
    --------
    >>> count_duplicates(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))
    1
    """
    parts = [part.reshape(len(part), -1) for part in columns]
    n = len(parts[0])
    # A hash per row finds the few rows worth comparing; sorting whole rows of a long table would
    # need a second copy of it. Rows with a unique hash have no duplicate, so the count is exact.
    code = np.zeros(n, dtype=np.uint64)
    for part in parts:
        for k in range(part.shape[1]):
            code = (code ^ (part[:, k] + 0.0).view(np.uint64)) * _ODD  # + 0.0: -0.0 equals 0.0
            code ^= code >> _HALF
    _, inverse, counts = np.unique(code, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(counts[inverse] > 1)
    if not suspects.size:
        return 0
    rows = np.column_stack([part[suspects] for part in parts]) + 0.0
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    return int(suspects.size - np.unique(keys.ravel()).size)


class Prepared(NamedTuple):
    """A table in the form that a network takes.

    ``X`` is ``(n, f)``, one column for each input of ``encoding``; ``fill_values`` ``(f,)`` replace
    missing cells, None if these are refused.
    """

    X: NDArray[np.float64]
    encoding: Encoding
    fill_values: NDArray[np.float64] | None


@dataclass(frozen=True)
class Table:
    """A table read from a file, or from several, one below the other.

    Parameters
    ----------
    columns : tuple of Column
        Features: numbers in the units of the file, and names; NaN where a cell is missing.
    y : ndarray of float64, shape (n,), or None
        Target, in the units of the file; None if no target was requested. Of several, shape (n, m),
        NaN where one was not measured.
    target_name : str or None
        Name of the target; of several, all of them.
    paths : tuple of Path
        The files, in the order of their rows.
    dropped : tuple of str
        Columns of the files that are neither feature nor target.
    impute : bool
        Whether missing cells are filled in.
    groups : ndarray of str, shape (n,), or None
        Which rows belong together; None if no such column was requested.
    grouped : ndarray of bool, shape (n,), or None
        Whether the file of a row has that column; where not, a row is a group of its own. None if
        all files have it.
    weights : ndarray of float64, shape (n,), or None
        How much each row counts, above 0; None if no such column was requested.
    remarks : tuple of Advice
        What the user should know about how the file was read.
    rows : ndarray of int64, shape (n,), or None
        Number of each row in its file; None if it was not read from one.
    file_of : ndarray of int64, shape (n,), or None
        Which of several files each row is from, as an index into ``paths``; None if there is one.
    times : ndarray of float64, shape (n,), or None
        When each row was measured, in seconds since 1970; None if no such column was requested.
    notation : Notation, optional
        How that column writes its times.
    dated : tuple of str
        Columns among those ``dropped`` that hold dates or times.
    calendars : mapping of str to Notation
        Features that are times, in seconds since 1970, and how the file writes them.
    targets : tuple of str
        Names of the targets, one by one.
    derived : mapping of str to Derived
        Features, the last ones, that are derived from the last samples of others.
    since : ndarray of float64, shape (n,), or None
        When the longest window that ends at each row begins, as a time; None if there is none.
    streams : ndarray of str, shape (n,), or None
        Which stream each row is a sample of, if there are several.
    """

    columns: tuple[Column, ...]
    y: NDArray[np.float64] | None
    target_name: str | None
    paths: tuple[Path, ...]
    dropped: tuple[str, ...]
    impute: bool = False
    groups: NDArray[np.str_] | None = None
    grouped: NDArray[np.bool_] | None = None
    weights: NDArray[np.float64] | None = None
    remarks: tuple[Advice, ...] = ()
    rows: NDArray[np.int64] | None = None
    file_of: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    notation: Notation | None = None
    dated: tuple[str, ...] = ()
    calendars: Mapping[str, Notation] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    derived: Mapping[str, Derived] = field(default_factory=dict)
    since: NDArray[np.float64] | None = None
    streams: NDArray[np.str_] | None = None

    @property
    def where(self) -> str:
        """The files, for messages; of many, the first."""
        return name_files(self.paths)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(one.name for one in self.columns)

    @property
    def X(self) -> NDArray[np.float64]:  # noqa: N802 - the matrix
        """Features ``(n, f)`` of a table of numbers, NaN where missing."""
        for one in self.columns:
            if one.texts is not None:
                raise InputError(
                    f"{self.where}: column {quoted(one.name)} holds names: encode them with "
                    f"Table.prepare"
                )
        return np.column_stack([one.values for one in self.columns])

    @property
    def missing(self) -> int:
        """Number of missing feature cells."""
        return sum(int(np.isnan(one.values).sum()) for one in self.columns)

    @property
    def duplicates(self) -> int:
        """Number of rows that repeat an earlier row in every feature and the target."""
        values = [one.values for one in self.columns]
        return count_duplicates(*values) if self.y is None else count_duplicates(*values, self.y)

    def only(self, kept: NDArray[Any]) -> "Table":
        """Return the rows of a mask ``(n,)``, or of such numbers in that order."""
        beside: dict[str, Any] = {
            name: None if values is None else values[kept]
            for name in (
                *("y", "groups", "grouped", "weights", "rows", "file_of", "times", "since"),
                "streams",
            )
            for values in [getattr(self, name)]
        }
        columns = tuple(one._replace(values=one.values[kept]) for one in self.columns)
        return replace(self, columns=columns, **beside)

    def prepare(self, rows: NDArray[np.integer] | None = None) -> Prepared:
        """Encode names and fill in what is missing, based on the training rows.

        Parameters
        ----------
        rows : array of int, optional
            Training rows, which decide levels, medians and most frequent levels. By default all.
        """
        try:
            encoding = Encoding.learn(self.columns, rows, self.calendars, self.derived)
            X = encoding.apply(self.columns)
            if not self.impute:
                return Prepared(X, encoding, None)
            fill_values = encoding.fill(X if rows is None else X[rows])
        except InputError as error:
            raise ParameterError(
                f"{self.where}: {error}; leave it out with ", Parameter("drop")
            ) from error
        return Prepared(np.where(np.isnan(X), fill_values, X), encoding, fill_values)


def name_files(paths: Sequence[Path]) -> str:
    """Name files in a message; of many, the first.

    Examples
    --------
    >>> name_files([Path("base.csv"), Path("points.csv")])
    'base.csv and points.csv'
    >>> name_files([Path(f"{k}.csv") for k in range(9)])
    '0.csv and 8 more tables'
    """
    if len(paths) > _MOST_NAMED:
        return f"{shown(paths[0])} and {len(paths) - 1} more tables"
    return joined(map(shown, paths))


def missing_texts(missing: Missing) -> tuple[str, ...]:
    """List the values that stand for a missing one as texts; there may be only one, by itself.

    Examples
    --------
    >>> missing_texts(-9999), missing_texts(["unknown", 1e20])
    (('-9999',), ('unknown', '1e+20'))
    """
    if isinstance(missing, str) or not isinstance(missing, Iterable):
        return (str(missing),)
    return tuple(map(str, missing))
