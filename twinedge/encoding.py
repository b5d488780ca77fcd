"""From the cells of a table to the inputs of a network: numbers as they are, names one-hot.

A column of names is a *category*: each level has an input of its own, which is 1 where the cell
holds that level and 0 elsewhere. Rare levels share one input. A level that no training row had is
all zeros, which no training row ever is, so that it can be recognised and flagged.

The encoding travels with the model: in a run, in a pack, and in the files beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.cells import CellKind, CellReader, complaint, is_missing, looks_missing, numbered
from twinedge.errors import InputError, closest, listed, plural, quoted

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_MOST_LEVELS = 32  # with an input of their own
_FEWEST_ROWS = 5  # for a level to have one; fewer in a short table
_OTHERS = "(others)"
_WHOLE = 2**53  # from here on, different texts of digits may be the same double


class Category(NamedTuple):
    """Levels with an input of their own, and rare ones that share the last."""

    levels: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Number of inputs it takes."""
        return len(self.levels) + bool(self.others)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each input stands for."""
        return (*self.levels, *((_OTHERS,) if self.others else ()))

    def one_hot(self, texts: Sequence[str]) -> Floats:
        """Encode texts as ``(n, width)``, all zeros for a text that is no level."""
        where = {level: k for k, level in enumerate(self.levels)}
        where |= dict.fromkeys(self.others, len(self.levels))
        found = np.zeros((len(texts), self.width))
        for row, text in enumerate(texts):
            if (k := where.get(level_of(text))) is not None:
                found[row, k] = 1
        return found


class Column(NamedTuple):
    """A column as it was read.

    ``values`` ``(n,)`` are its numbers or, in a column of names, indices into ``texts``. NaN is a
    missing cell.
    """

    name: str
    values: Floats
    texts: tuple[str, ...] | None = None


class Encoding:
    """How the columns of a table become the inputs of a network.

    Parameters
    ----------
    columns : sequence of (str, Category or None)
        Names of the columns in order, and the levels of those that are categories.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    categories : tuple of (Category or None)
        Category of each column, None for numbers.
    parts : tuple of slice
        Inputs of each column.
    inputs : tuple of str
        Names of the inputs: ``carat``, ``cut=Ideal``, ...
    is_plain : bool
        Whether every column holds numbers.
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

    def __init__(self, columns: Sequence[tuple[str, Category | None]]) -> None:
        self.names = tuple(name for name, _ in columns)
        self.categories = tuple(category for _, category in columns)
        widths = [1 if one is None else one.width for one in self.categories]
        ends = np.cumsum([0, *widths]).tolist()
        self.parts = tuple(map(slice, ends[:-1], ends[1:]))
        self.inputs = tuple(
            name if one is None else f"{name}={label}"
            for name, one in columns
            for label in (("",) if one is None else one.labels)
        )
        self.is_plain = not any(self.categories)
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
        cls, columns: Sequence[Column], rows: npt.NDArray[np.integer[Any]] | None = None
    ) -> "Encoding":
        """Find the levels of columns that these training rows have (by default all rows)."""
        return cls([(one.name, _category(one, rows)) for one in columns])

    @classmethod
    def of(cls, described: Any, inputs: Sequence[str]) -> "Encoding":
        """Read what ``described`` wrote; plain if it is damaged or has other inputs."""
        try:
            found = cls(
                [
                    (
                        str(one["name"]),
                        Category(tuple(map(str, one["levels"])), tuple(map(str, one["others"])))
                        if "levels" in one
                        else None,
                    )
                    for one in described
                ]
            )
        except (TypeError, KeyError, AttributeError):
            return cls.plain(inputs)
        whole = all(one is None or one.width for one in found.categories)
        return found if whole and found.inputs == tuple(inputs) else cls.plain(inputs)

    @property
    def described(self) -> list[dict[str, Any]]:
        """The columns in a form that JSON can hold."""
        return [
            {"name": name}
            if one is None
            else {"name": name, "levels": list(one.levels), "others": list(one.others)}
            for name, one in zip(self.names, self.categories, strict=True)
        ]

    @property
    def indicators(self) -> Flags:
        """Which inputs ``(f,)`` belong to categories."""
        widths = [0 if one is None else one.width for one in self.categories]
        return np.repeat([bool(width) for width in widths], [width or 1 for width in widths])

    def apply(self, columns: Sequence[Column]) -> Floats:
        """Encode columns, in the order of ``names``, as inputs ``(n, f)``; NaN where missing."""
        found = np.empty((len(columns[0].values), len(self.inputs)))
        for part, category, column in zip(self.parts, self.categories, columns, strict=True):
            _, values, texts = column
            if category is None:
                found[:, part.start] = values if texts is None else _numbers(column)
                continue
            if texts is None:  # numbers that stand for levels
                distinct, codes = np.unique(values, return_inverse=True)
                texts, missing = tuple(map(str, distinct.tolist())), np.isnan(values)
            else:
                missing = np.isnan(values)
                codes = np.where(missing, 0, values).astype(np.intp)
            table = category.one_hot(texts) if texts else np.zeros((1, category.width))
            found[:, part] = np.where(missing[:, None], np.nan, table[codes])
        return found

    def cell(self, column: int, text: str) -> list[float]:
        """Encode one cell of a category; NaN if it is missing."""
        known = self._cells[column]
        if text not in known:
            category = self.categories[column]
            assert category is not None
            if looks_missing(text):
                return [np.nan] * category.width
            found: list[float] = category.one_hot([text])[0].tolist()
            if not any(found):
                return found  # not kept: there is no end of unknown texts
            known[text] = found
        return known[text]

    def encode(self, X: Any) -> Floats:
        """Encode a table as inputs ``(n, f)``, NaN where a cell is missing.

        Parameters
        ----------
        X : data frame, mapping, or array of shape (n, columns) or (n, f)
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
        if is_frame(X):
            labels = list(X.columns)
            wanted = self.names if self._in(labels) else labels
            return self.apply(self._columns([X[name] for name in wanted]))
        if is_record(X):
            labels = list(X.keys())
            wanted = self.names if self._in(labels) else labels
            return self.apply(self._columns([_alone(X[name]) for name in wanted]))
        cells = X if isinstance(X, np.ndarray) else _cells(X)
        if cells.ndim != 2:
            raise InputError(
                f"queries must be rows of {len(self.names)} columns, not {cells.shape}"
            )
        if self._encoded(cells):
            return cells.astype(np.float64)
        self._check_width(cells.shape[1])
        return self.apply(self._columns(list(cells.T)))

    def _columns(self, cells: Sequence[Any]) -> list[Column]:
        return [
            column_of(column, name, named=category is not None)
            for column, name, category in zip(cells, self.names, self.categories, strict=True)
        ]

    def _in(self, labels: Sequence[Any]) -> bool:
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
        return cells.dtype.kind in "biuf" or (not self.is_plain and _all_numbers(cells))

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

        Parameters
        ----------
        X : array of shape (n, f)
            Inputs of training rows, NaN where missing.
        """
        values = np.empty(X.shape[1])
        for name, part, category in zip(self.names, self.parts, self.categories, strict=True):
            present = X[~np.isnan(X[:, part.start]), part]
            if not len(present):
                raise InputError(f"column {name!r} has no value in any training row")
            if category is None:
                values[part] = _median(np.sort(present[:, 0]))
            else:
                counts = present.sum(axis=0)
                values[part] = np.arange(category.width) == counts.argmax()
        return values


def level_of(text: str) -> str:
    """Write a level in its canonical form, since a number may be written in several ways."""
    text = text.strip()
    kind, value = CellReader(comma_allowed=False).read(text)
    if kind is not CellKind.NUMBER or abs(value) >= _WHOLE:
        return text
    return str(int(value)) if value.is_integer() else repr(value)


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame, of any library."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "__getitem__")


def is_record(X: Any) -> bool:
    """Whether ``X`` is one row with names: a mapping, or a row of a data frame."""
    return isinstance(X, Mapping) or (hasattr(X, "keys") and hasattr(X, "index"))


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
            f"column {quoted(name)} holds dates or times; make them a number, say hours since the "
            "first, or leave the column out"
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
    return Column(name, _numbers(column))


def _hold_numbers(texts: Iterable[str]) -> bool:
    reader = CellReader(comma_allowed=False)
    return all(reader.read(text, 0)[0] is CellKind.NUMBER for text in texts)


def _alone(cell: Any) -> npt.NDArray[Any]:
    """Make a column of one cell."""
    column = np.empty(1, object)
    column[0] = cell
    return column


def _cells(X: Any) -> npt.NDArray[Any]:
    """Make an array of rows: of numbers if all are, otherwise of objects."""
    try:
        found = np.asarray(X)
        if found.dtype.kind in "biuf":
            return found
        return np.asarray(X, object)
    except ValueError as error:  # rows of different lengths
        raise InputError("the rows of a query must all have the same length") from error


def _numbers(column: Column) -> Floats:
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


def _category(column: Column, rows: npt.NDArray[np.integer[Any]] | None) -> Category | None:
    if column.texts is None:
        return None
    values = column.values if rows is None else column.values[rows]
    present = values[~np.isnan(values)].astype(np.intp)
    counts: dict[str, int] = {}
    for text, count in zip(
        column.texts, np.bincount(present, minlength=len(column.texts)).tolist(), strict=True
    ):
        if count:
            level = level_of(text)
            counts[level] = counts.get(level, 0) + count
    least = min(_FEWEST_ROWS, max(2, len(values) // 20))
    frequent = sorted(
        (level for level in counts if counts[level] >= least), key=lambda one: (-counts[one], one)
    )
    own = tuple(sorted(frequent[:_MOST_LEVELS], key=_in_order))
    others = tuple(sorted(set(counts) - set(own), key=_in_order))
    if len(own) + bool(others) < 2:
        raise InputError(
            f"column {column.name!r} does not have two levels that are frequent enough in the "
            "training rows to tell apart"
        )
    return Category(own, others)


def _in_order(level: str) -> tuple[bool, float, str]:
    """Sort key: numbers by size, then words."""
    kind, value = CellReader(comma_allowed=False).read(level)
    number = kind is CellKind.NUMBER
    return not number, value if number else 0.0, level


def _median(present: Floats) -> float:
    # np.median adds before it halves, and so overflows on values near the largest double.
    low, high = float(present[(len(present) - 1) // 2]), float(present[len(present) // 2])
    return low if low == high else low / 2 + high / 2


def _all_numbers(cells: npt.NDArray[Any]) -> bool:
    try:
        cells.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
