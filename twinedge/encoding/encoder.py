"""From the cells of a table to the inputs of a network.

A column of numbers is one input. A column of names is a category, with an input for each level, and
a column of times a calendar, with sine and cosine of day, week and year. Inputs that are derived
from the last samples of a stream are columns of their own, behind those that were measured.

The encoding travels with the model: in a run, in a pack, and in the files beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.encoding.calendars import Calendar, waves
from twinedge.encoding.categories import Category
from twinedge.encoding.cells import looks_missing, numbered
from twinedge.encoding.derived import Derived
from twinedge.encoding.tables import (
    Column,
    all_numbers,
    alone,
    are_records,
    check_unique,
    column_of,
    has_names,
    is_frame,
    is_record,
    numbers_of,
    rows_of,
)
from twinedge.encoding.times import Notation
from twinedge.errors import InputError
from twinedge.wording import closest, listed, plural, quoted

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Kind = Category | Calendar | Derived | None  # of a column; None for numbers as measured

_MOST_SECONDS = 2.0**53  # since 1970; beyond, a double skips some


class Encoding:
    """How the columns of a table become the inputs of a network.

    Parameters
    ----------
    columns : sequence of (str, Category or Calendar or Derived or None)
        Names of the columns in order, and what those are that are not numbers as measured. Derived
        ones come last.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    kinds : tuple of (Category or Calendar or Derived or None)
        What each column is, None for numbers as measured.
    derived : tuple of Derived
        Columns that are derived from samples.
    categories : tuple of (Category or None)
        Category of each column, None for others.
    parts : tuple of slice
        Inputs of each column.
    inputs : tuple of str
        Names of the inputs: ``carat``, ``cut=Ideal``, ``when:day sin``, ...
    is_plain : bool
        Whether every column holds numbers as measured.
    is_numbered : bool
        Whether the names are made up, for the columns of an array.

    Examples
    --------
    >>> encoding = Encoding([("carat", None), ("cut", Category(("Fair", "Ideal")))])
    >>> encoding.inputs
    ('carat', 'cut=Fair', 'cut=Ideal')
    >>> encoding.cell(1, "Ideal"), encoding.cell(1, "Superb")
    ([0.0, 1.0], [0.0, 0.0])
    """

    def __init__(self, columns: Sequence[tuple[str, Kind]]) -> None:
        self.names = tuple(name for name, _ in columns)
        self.kinds = tuple(kind for _, kind in columns)
        self.categories = tuple(one if isinstance(one, Category) else None for one in self.kinds)
        self.derived = tuple(one for one in self.kinds if isinstance(one, Derived))
        widths = [1 if one is None else one.width for one in self.kinds]
        ends = np.cumsum([0, *widths]).tolist()
        self.parts = tuple(map(slice, ends[:-1], ends[1:]))
        self.inputs = tuple(
            name
            if isinstance(one, Derived | None)
            else f"{name}{':' if isinstance(one, Calendar) else '='}{label}"
            for name, one in columns
            for label in (("",) if one is None else one.labels)
        )
        self.is_plain = all(one is None for one in self.kinds)
        self.is_numbered = self.names == numbered(len(self.names))
        self._cells: list[dict[str, list[float]]] = [{} for _ in columns]

    @classmethod
    def plain(cls, names: Sequence[str]) -> "Encoding":
        """Make the encoding of a table with only columns of numbers."""
        return cls([(name, None) for name in names])

    @classmethod
    def numbered(cls, count: int) -> "Encoding":
        """Make the encoding of an array; its columns have no names and are called x0, x1, ..."""
        return cls.plain(numbered(count))

    @classmethod
    def learn(
        cls,
        columns: Sequence[Column],
        rows: npt.NDArray[np.integer[Any]] | None = None,
        calendars: Mapping[str, Notation] | None = None,
        derived: Mapping[str, Derived] | None = None,
    ) -> "Encoding":
        """Find out what columns are.

        Parameters
        ----------
        columns : sequence of Column
            The columns; those with texts are categories.
        rows : array of int, optional
            Training rows, which decide what levels there are; by default all.
        calendars : mapping of str to Notation, optional
            Columns of times, in seconds since 1970, and how they were written.
        derived : mapping of str to Derived, optional
            Columns that were derived from others.
        """
        calendars, derived = calendars or {}, derived or {}

        def kind(name: str, values: Floats, texts: tuple[str, ...] | None) -> Kind:
            if name in derived:
                return derived[name]
            values = values if rows is None else values[rows]
            if name in calendars:
                return Calendar.learn(name, values, calendars[name])
            return None if texts is None else Category.learn(name, values, texts)

        return cls([(one.name, kind(*one)) for one in columns])

    @classmethod
    def of(cls, described: Any, inputs: Sequence[str]) -> "Encoding":
        """Read what ``described`` wrote; plain if it is damaged or has other inputs."""
        try:
            found = cls([(str(one["name"]), _kind_of(one)) for one in described])
        except (TypeError, KeyError, AttributeError):
            return cls.plain(inputs)
        whole = all(one is None or one.width for one in found.kinds)
        return found if whole and found.inputs == tuple(inputs) else cls.plain(inputs)

    @property
    def described(self) -> list[dict[str, Any]]:
        """The columns in a form that JSON can hold."""
        return [
            {"name": name}
            if one is None
            else {"name": name, "calendar": one.described}
            if isinstance(one, Calendar)
            else {"name": name, "derived": one.described}
            if isinstance(one, Derived)
            else {"name": name, "levels": list(one.levels), "others": list(one.others)}
            for name, one in zip(self.names, self.kinds, strict=True)
        ]

    @property
    def measured(self) -> "Encoding":
        """The columns of a sample, without what is derived from them."""
        if not self.derived:
            return self
        columns = zip(self.names, self.kinds, strict=True)
        return Encoding([(name, one) for name, one in columns if not isinstance(one, Derived)])

    @property
    def derivation(self) -> str:
        """What is derived, as a person writes it."""
        columns = zip(self.names, self.kinds, strict=True)
        return ", ".join(name for name, one in columns if isinstance(one, Derived))

    @property
    def longest(self) -> int:
        """How many consecutive samples a full window has; 1 if nothing is derived."""
        return max((one.window for one in self.derived), default=1)

    @property
    def indicators(self) -> Flags:
        """Which inputs ``(f,)`` belong to categories and calendars: their size says enough."""
        widths = [0 if isinstance(one, Derived | None) else one.width for one in self.kinds]
        return np.repeat([bool(width) for width in widths], [width or 1 for width in widths])

    def ranges(self, X: Floats) -> Floats:
        """Least and largest value of inputs in training rows ``(n, f)``: ``(2, f)``.

        A calendar returns to where it began, so that no time is outside of it: -1 and 1.
        """
        found = np.stack([X.min(axis=0), X.max(axis=0)])
        for part, kind in zip(self.parts, self.kinds, strict=True):
            if isinstance(kind, Calendar):
                found[:, part] = [[-1.0], [1.0]]
        return found

    def apply(self, columns: Sequence[Column]) -> Floats:
        """Encode columns, in the order of ``names``, as inputs ``(n, f)``; NaN where missing.

        Values of a calendar are seconds since 1970, and none may be missing.
        """
        found = np.empty((len(columns[0].values), len(self.inputs)))
        for part, kind, column in zip(self.parts, self.kinds, columns, strict=True):
            name, values, texts = column
            if isinstance(kind, Derived | None):
                found[:, part.start] = values if texts is None else numbers_of(column)
                continue
            if isinstance(kind, Calendar):
                found[:, part] = _waves(name, values)
                continue
            if texts is None:  # numbers that stand for levels
                distinct, codes = np.unique(values, return_inverse=True)
                texts, missing = tuple(map(str, distinct.tolist())), np.isnan(values)
            else:
                missing = np.isnan(values)
                codes = np.where(missing, 0, values).astype(np.intp)
            table = kind.one_hot(texts) if texts else np.zeros((1, kind.width))
            found[:, part] = np.where(missing[:, None], np.nan, table[codes])
        return found

    def cell(self, column: int, text: str) -> list[float]:
        """Encode one cell of a category or calendar; NaN if it is missing.

        Raises
        ------
        InputError
            If a cell of a calendar holds no time.
        """
        known = self._cells[column]
        if text not in known:
            kind = self.kinds[column]
            assert not isinstance(kind, Derived | None)
            if looks_missing(text):
                return [np.nan] * kind.width
            if isinstance(kind, Calendar):
                seconds = kind.time_of(text, self.names[column])
                of_time: list[float] = _waves(self.names[column], np.array([seconds]))[0].tolist()
                return of_time
            found: list[float] = kind.one_hot([text])[0].tolist()
            if not any(found):
                return found  # not kept: there is no end of unknown texts
            known[text] = found
        return known[text]

    def encode(self, X: Any) -> Floats:
        """Encode a table as inputs ``(n, f)``, NaN where a cell is missing.

        Parameters
        ----------
        X : data frame, mapping, list of mappings, or array of shape (n, columns) or (n, f)
            Where columns have names, these decide: their order does not matter, and columns that
            the model does not need are ignored. A mapping (or a row of a frame) is one row.
            Without names, columns are taken by position; an array with a column for each input is
            encoded already.

        Raises
        ------
        InputError
            If a column is missing or the number of columns is wrong, or a cell is not what the
            model needs.
        """
        frame = is_frame(X)
        if frame or is_record(X):
            labels = list(X.columns if frame else X.keys())
            wanted = self.names if self._found_by_name(labels) else labels
            cells = [X[name] if frame else alone(X[name]) for name in wanted]
            return self.apply(self._columns(cells))
        if are_records(X):
            return np.concatenate([self.encode(one) for one in X])
        rows = X if isinstance(X, np.ndarray) else rows_of(X)
        if rows.ndim != 2:
            raise InputError(f"queries must be rows of {len(self.names)} columns, not {rows.shape}")
        if self._encoded(rows):
            return rows.astype(np.float64)
        self._check_width(rows.shape[1])
        return self.apply(self._columns(list(rows.T)))

    def _columns(self, cells: Sequence[Any]) -> list[Column]:
        return [
            Column(name, kind.read(column, name))
            if isinstance(kind, Calendar)
            else column_of(column, name, named=not isinstance(kind, Derived | None))
            for column, name, kind in zip(cells, self.names, self.kinds, strict=True)
        ]

    def _found_by_name(self, labels: Sequence[Any]) -> bool:
        """Whether columns with these labels are found by name; otherwise they go by position."""
        if not has_names(labels):
            self._check_width(len(labels))
            return False
        absent = [name for name in self.names if name not in labels]
        if not absent:
            check_unique([name for name in labels if name in self.names])
            return True
        # The names of an array's columns were made up, so nobody can have meant them.
        if self.is_numbered and len(absent) == len(self.names):
            self._check_width(len(labels))
            return False
        if isinstance(self.kinds[self.names.index(absent[0])], Derived):
            raise InputError(
                f"the model needs {quoted(absent[0])}, which is derived from consecutive samples: "
                "push them to a stream of the device, or predict a file"
            )
        raise InputError(
            f"the table has no column {quoted(absent[0])}, which the model needs"
            f"{closest(absent[0], labels)}; its columns are {listed(labels)}"
        )

    def _check_width(self, width: int) -> None:
        if width != len(self.names):
            raise InputError(
                f"the table has {plural(width, 'column')}, but the model needs "
                f"{len(self.names)}: {listed(self.names)}"
            )

    def _encoded(self, cells: npt.NDArray[Any]) -> bool:
        """Whether an array holds inputs, not columns: a category has at least two inputs."""
        if cells.shape[1] != len(self.inputs):
            return False
        return cells.dtype.kind in "biuf" or (not self.is_plain and all_numbers(cells))

    def decode(self, X: npt.NDArray[Any]) -> list[list[str]]:
        """Write inputs ``(n, f)`` as the cells of each column, empty where one is missing.

        Numbers have the fewest digits that give the same float32. A rare level, which shares its
        input with others, is ``(others)``, and one that no training row had ``(unknown)``. The
        year of a calendar is not among its inputs: it is one near those of training.

        Examples
        --------
        >>> encoding = Encoding([("carat", None), ("cut", Category(("Fair", "Ideal")))])
        >>> encoding.decode(np.array([[0.1, 0, 1], [np.nan, 0, 0]]))
        [['0.1', ''], ['Ideal', '(unknown)']]
        """
        found = []
        for part, kind in zip(self.parts, self.kinds, strict=True):
            inputs = X[:, part].astype(np.float32)
            missing = [bool(np.isnan(row).any()) for row in inputs]
            if isinstance(kind, Derived | None):
                cells = [str(one) for one in inputs[:, 0]]
            elif isinstance(kind, Calendar):
                rows = zip(inputs, missing, strict=True)
                cells = ["" if lacks else kind.format(kind.seconds(row)) for row, lacks in rows]
            else:
                cells = kind.texts(inputs)
            found.append(["" if lacks else one for one, lacks in zip(cells, missing, strict=True)])
        return found

    def unknown(self, X: Floats) -> Flags:
        """Which inputs ``(n, f)`` belong to a level that no training row had."""
        found = np.zeros(X.shape, bool)
        for part, category in zip(self.parts, self.categories, strict=True):
            if category is not None:
                found[:, part] = (X[:, part] == 0).all(axis=1, keepdims=True)
        return found

    def by_column(self, flags: Flags) -> Flags:
        """Turn flags of inputs ``(n, f)`` into flags of columns."""
        if self.is_plain:
            return flags
        return np.stack([flags[:, part].any(axis=1) for part in self.parts], axis=1)

    def fill(self, X: Floats) -> Floats:
        """Find what replaces a missing cell, ``(f,)``: the median, or the most frequent level.

        Nothing replaces a time: it is NaN.

        Parameters
        ----------
        X : array of shape (n, f)
            Inputs of training rows, NaN where missing.
        """
        values = np.empty(X.shape[1])
        for name, part, kind in zip(self.names, self.parts, self.kinds, strict=True):
            present = X[~np.isnan(X[:, part.start]), part]
            if not len(present):
                raise InputError(f"column {name!r} has no value in any training row")
            if isinstance(kind, Derived | None):
                values[part] = _median(np.sort(present[:, 0]))
            elif isinstance(kind, Calendar):
                values[part] = np.nan
            else:
                counts = present.sum(axis=0)
                values[part] = np.arange(kind.width) == counts.argmax()
        return values


def _kind_of(described: Any) -> Kind:
    """Read what ``Encoding.described`` wrote of a column; any error if it is damaged."""
    if "calendar" in described:
        return Calendar.of(described["calendar"])
    if "derived" in described:
        return Derived.of(described["derived"])
    if "levels" not in described:
        return None
    levels, others = (tuple(map(str, described[key])) for key in ("levels", "others"))
    return Category(levels, others)


def _waves(name: str, seconds: Floats) -> Floats:
    """Encode the times of a column; fractions of a second do not count."""
    missing = np.flatnonzero(~np.isfinite(seconds))
    if len(missing):
        raise InputError(
            f"column {quoted(name)} has no time in row {int(missing[0])} (from 0), and nothing can "
            "replace it: fill it in or leave the row out"
        )
    whole = np.floor(seconds)
    if np.abs(whole).max(initial=0.0) >= _MOST_SECONDS:
        raise InputError(f"column {quoted(name)} holds {seconds[0]:g}, beyond all times")
    return waves(whole.astype(np.int64))


def _median(present: Floats) -> float:
    # np.median adds before it halves, and so overflows on values near the largest double.
    low, high = float(present[(len(present) - 1) // 2]), float(present[len(present) // 2])
    return low if low == high else low / 2 + high / 2
