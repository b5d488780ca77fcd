"""The user's own table: a file of numbers and names, with one column as the target."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinedge.data.columns import (
    calendar_columns,
    check_columns,
    check_names,
    check_weight_column,
    column_holding,
    group_position,
    hold_times,
    name_columns,
    target_position,
    without_dropped,
)
from twinedge.data.csvfile import FRAME, open_table
from twinedge.encoding import Encoding
from twinedge.errors import (
    Advice,
    InputError,
    Parameter,
    ParameterError,
    place,
    plural,
    quoted,
)
from twinedge.tables import Column, is_categorical, is_frame
from twinedge.times import Notation

Missing = str | float | Sequence[str | float]  # stands for a missing value in a file

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads the bits of a product
_HALF = np.uint64(32)


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
    """A table read from a file.

    Parameters
    ----------
    columns : tuple of Column
        Features: numbers in the units of the file, and names; NaN where a cell is missing.
    y : ndarray of float64, shape (n,), or None
        Target, in the units of the file; None if no target was asked for.
    target_name : str or None
    path : Path
    dropped : tuple of str
        Columns of the file that are neither feature nor target.
    impute : bool
        Whether missing cells are filled in.
    groups : ndarray of str, shape (n,), or None
        Which rows belong together; None if no such column was asked for.
    weights : ndarray of float64, shape (n,), or None
        How much each row counts, above 0; None if no such column was asked for.
    remarks : tuple of Advice
        What the user should know about how the file was read.
    rows : ndarray of int64, shape (n,), or None
        Number of each row in the file; None if it was not read from one.
    times : ndarray of float64, shape (n,), or None
        When each row was measured, in seconds since 1970; None if no such column was asked for.
    notation : Notation, optional
        How that column writes its times.
    dated : tuple of str
        Columns among those ``dropped`` that hold dates or times.
    calendars : mapping of str to Notation
        Features that are times, in seconds since 1970, and how the file writes them.
    """

    columns: tuple[Column, ...]
    y: NDArray[np.float64] | None
    target_name: str | None
    path: Path
    dropped: tuple[str, ...]
    impute: bool = False
    groups: NDArray[np.str_] | None = None
    weights: NDArray[np.float64] | None = None
    remarks: tuple[Advice, ...] = ()
    rows: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    notation: Notation | None = None
    dated: tuple[str, ...] = ()
    calendars: Mapping[str, Notation] = field(default_factory=dict)

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
                    f"{place(self.path)}: column {quoted(one.name)} holds names: encode them with "
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

    def prepare(self, rows: NDArray[np.integer] | None = None) -> Prepared:
        """Encode names and fill in what is missing, based on the training rows.

        Parameters
        ----------
        rows : array of int, optional
            Training rows, which decide levels, medians and most frequent levels. By default all.
        """
        try:
            encoding = Encoding.learn(self.columns, rows, self.calendars)
            X = encoding.apply(self.columns)
            if not self.impute:
                return Prepared(X, encoding, None)
            fill_values = encoding.fill(X if rows is None else X[rows])
        except InputError as error:
            raise ParameterError(
                f"{place(self.path)}: {error}; leave it out with ", Parameter("drop")
            ) from error
        return Prepared(np.where(np.isnan(X), fill_values, X), encoding, fill_values)


def read_table(
    path: Any,
    *,
    target: str | int | None,
    drop: Sequence[str] = (),
    impute: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    categorical: Sequence[str] = (),
    drop_missing_target: bool = False,
    skip_bad_rows: bool = False,
    missing: Missing = (),
    time: str | None = None,
    calendar: Sequence[str] = (),
) -> Table:
    """Read a table to train on.

    Parameters
    ----------
    path
        CSV file: UTF-8, UTF-16 or Windows-1252, also compressed by gzip; columns separated by
        comma, semicolon, tab, bar or blanks; with a header or without (then the columns are called
        x0, x1, ...); decimal commas if commas do not separate columns; comments start with ``#``.
        Or a Parquet or Excel file, read by pandas. Or a data frame.
    target
        Name of the target column, or its position: 0 is the leftmost, -1 the rightmost. A string
        that is no column's name and holds an integer is a position. None: there is no target, and
        constant columns are allowed.
    drop
        Names of columns to leave out; ``"a,b"`` means two.
    impute
        None refuses missing features. "median" allows them: `Table.prepare` fills in the median of
        the training rows or, for names, the most frequent one.
    group
        Name of a column that says which rows belong together; it is not a feature, and may be text.
    weight
        Name of a column that says how much each row counts; it is not a feature. Rows of weight 0
        are left out.
    categorical
        Names of columns whose values are names, though they may look like numbers. A column of
        texts is always categorical.
    drop_missing_target
        Leave out rows without a target, and say how many; otherwise they are refused.
    skip_bad_rows
        Leave out rows that cannot be used, and say how many: with cells too many or too few, words
        among numbers, infinite values, or missing ones that are not filled in. Otherwise they are
        refused, and so is a file with more bad rows than good ones.
    missing
        Numbers and texts that stand for a missing value in every column, besides an empty cell,
        ``NA`` and the like. Numbers are compared as numbers: -9999 is also -9999.0.
    time
        Name of a column that says when each row was measured; it is not a feature. It holds dates
        and times as `twinedge.times.read_times` takes them. Not with ``group``.
    calendar
        Names of columns of such times to learn from: hour of the day, day of the week, and season.
        The column of ``time`` may be one of them. None of their cells may be missing.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If the file cannot be used as asked; the message names row and column.
    """
    source = path
    path = FRAME if is_frame(source) else Path(source)
    if path is FRAME:
        of_frame = [str(name) for name in source.columns if is_categorical(source[name])]
        others = target, group, weight, time, *calendar
        categorical = [*categorical, *(name for name in of_frame if name not in others)]
    if impute not in (None, "median"):
        raise InputError(f"impute: unknown method {quoted(str(impute))}; use 'median' or leave out")
    if group is not None and time is not None:
        raise ParameterError(
            *(Parameter("group", group), " and ", Parameter("time", time)),
            ": rows are held out group by group or in order of time, not both; choose one",
        )
    # A table without a target is not for training; commands that read one lack these options.
    skip = skip_bad_rows if target is not None else None
    with open_table(source, skip_bad_rows=skip, missing=missing_texts(missing)) as file:
        names = file.names
        check_names(names, path, file.index)
        goal = None if target is None else target_position(names, target, path)
        kept = without_dropped(names, drop, goal, path)
        label = None if group is None else group_position(names, group, goal, path)
        named = name_columns(names, categorical, goal, path)
        scales = clock = None
        taken: dict[int | None, str] = {goal: "the target", label: "the group"}
        taken |= dict.fromkeys(named, "a category")
        if weight is not None:
            scales = column_holding("weights", names, weight, taken, path)
            taken[scales] = "the weight"
        if time is not None:
            clock = column_holding("times", names, time, taken, path)
        unread = sorted(set(range(len(names))).difference(kept))
        taken |= dict.fromkeys(unread, "left out")
        dates = calendar_columns(names, calendar, taken, path)
        index = file.index if file.index not in (goal, label, scales, clock, *dates) else None
        unread += [] if index is None else [index]
        kept = [k for k in kept if k not in (label, index, scales, clock) or k in dates]
        features = [k for k in kept if k != goal]
        beside = [k for k in (scales, clock) if k is not None]
        if not features:
            raise InputError(
                f"{place(path)}: no feature is left in {plural(len(names), 'column')}; "
                f"at least one besides the target is needed"
            )
        to_train = features if goal is not None else []
        may_miss = [k for k in features if k not in dates] if impute else []
        columns = file.columns(
            [*kept, *beside],
            texts=named,
            may_be_texts=to_train,
            may_miss=[*may_miss, *([goal] if drop_missing_target and goal is not None else [])],
            could_impute=[k for k in to_train if k not in dates],
            could_drop=to_train,
            label=label,
            target=None if drop_missing_target else goal,
            times=dict.fromkeys([*dates, *([] if clock is None else [clock])]),
            glance=unread,
        )
        remarks: list[tuple[str | Parameter, ...]] = []
        if index is not None:
            remarks.append(("the first column, without a name, numbers the rows: left out",))
        remarks += [(remark,) for remark in file.remarks]
        labels = np.array(file.labels) if label is not None else None
        rows = file.row_numbers
        notation = None if clock is None else file.notations[clock]
        calendars = {names[k]: file.notations[k] for k in dates}
        dated = tuple(names[k] for k in unread if k != clock and hold_times(file.glanced[k]))
    y = weights = None
    times = None if clock is None else columns.pop().values
    if scales is not None:
        weights = columns.pop().values
        check_weight_column(weights, names[scales], path)
    if goal is not None:
        y = columns.pop(kept.index(goal)).values
        present = ~np.isnan(y)
        if not present.all():
            without = plural(int((~present).sum()), "row")
            remarks.append((f"{without} without a target left out",))
        if weights is not None and not weights[present].all():
            without = plural(int((weights[present] == 0).sum()), "row")
            remarks.append((f"{without} of weight 0 left out",))
            present &= weights > 0
        if not present.all():
            y, rows = y[present], rows[present]
            labels = None if labels is None else labels[present]
            weights = None if weights is None else weights[present]
            times = None if times is None else times[present]
            columns = [one._replace(values=one.values[present]) for one in columns]
        if not len(y):
            raise InputError(f"{place(path)}: no row has a target")
        check_columns(columns, y, names[goal], path, [names[k] for k in named])
    used = set(kept)
    return Table(
        tuple(columns),
        y,
        None if goal is None else names[goal],
        path,
        dropped=tuple(name for k, name in enumerate(names) if k not in used),
        impute=impute is not None,
        groups=labels,
        weights=weights,
        remarks=tuple(Advice(f"{place(path)}: ", *parts) for parts in remarks),
        rows=rows,
        times=times,
        notation=notation,
        dated=dated,
        calendars=calendars,
    )


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
