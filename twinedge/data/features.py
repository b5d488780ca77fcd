"""A table for a trained model: its features by name, and targets, times, groups and weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinedge.data.columns import (
    check_weight_column,
    column_holding,
    match_features,
)
from twinedge.data.csvfile import FRAME, open_table
from twinedge.data.streams import derived_columns, unready
from twinedge.data.table import Missing, missing_texts
from twinedge.encoding.calendars import Calendar
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import is_frame
from twinedge.encoding.times import Notation
from twinedge.errors import InputError
from twinedge.wording import closest, listed, plural, quoted, shown


@dataclass
class SideColumn:
    """A column that is no feature, read beside those of a model: of times, groups or weights.

    Parameters
    ----------
    name : str
        Its name.
    notation : Notation, optional
        How it writes times; the file decides if that is not known.

    Attributes
    ----------
    values : ndarray, shape (n,)
        What was read: times in seconds, as in `encoding.times.Times`; groups as texts; weights, of
        which some may be 0.
    """

    name: str
    notation: Notation | None = None
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0))


def read_features(
    path: str | Path,
    features: Sequence[str] | Encoding,
    *,
    target: str | Sequence[str] | None = None,
    target_name: str | None = None,
    fillable: NDArray[np.bool_] | None = None,
    skip_bad_rows: bool | None = None,
    missing: Missing = (),
    time: SideColumn | None = None,
    group: SideColumn | None = None,
    weight: SideColumn | None = None,
    ready: SideColumn | None = None,
    keep: Mapping[str, list[str]] | None = None,
    say: Callable[[str], None] = lambda remark: None,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Read a table for a trained model.

    Columns are found by name, in any order; extra columns are ignored. A file without a header is
    read by position if it has as many columns as the model has features (plus the target last, if
    wanted), or is laid out like the headerless file the model was trained on.

    Parameters
    ----------
    path
        A file as for `read_table`.
    features
        Names of the model's features, in its order; or its encoding.
    target
        Name of the target column, if it is wanted too; or names of several, whose cells may be
        empty.
    target_name
        Name of the model's target, which tells whether the model was trained on a file without a
        header; by default that is unknown.
    fillable : ndarray of bool, shape (f,), optional
        Inputs that the model can fill in if they are missing; by default none.
    skip_bad_rows : bool, optional
        Leave out rows that cannot be used. Otherwise they are refused; if it is False, the message
        recommends it.
    missing
        Numbers and texts that stand for a missing value, as for `read_table`.
    time : SideColumn, optional
        A column that says when each row was measured, to be read as well.
    group : SideColumn, optional
        A column that says which rows belong together, to be read as well.
    weight : SideColumn, optional
        A column that says how much each row counts, to be read as well.
    ready : SideColumn, optional
        Filled with whether each row is the end of a full window, for a model with derived inputs;
        rows that are not have inputs that are NaN. By default these are left out, and counted.
    keep : dict of str to list of str, optional
        Other columns, whose cells are put into these lists as they are.
    say : function
        Called with each remark on how the file was read.

    Returns
    -------
    X : ndarray of float64, shape (n, f)
        Inputs in the model's order; NaN where a fillable cell is missing.
    y : ndarray of float64, shape (n,), or None
        Targets, if they were requested; shape (n, m) for several, NaN where a cell is empty.

    Raises
    ------
    InputError
        If columns are missing or a cell is not a number; the message names row and column.
    """
    source = path
    path = FRAME if is_frame(source) else Path(source)
    whole = features if isinstance(features, Encoding) else Encoding.plain(features)
    encoding = whole.measured
    if whole.derived:
        time, group = _of_windows(whole, time, group, path)
    with open_table(source, encoding.names, skip_bad_rows, missing_texts(missing)) as file:
        targets = () if target is None else (target,) if isinstance(target, str) else target
        where, goals = match_features(
            file.names, file.has_header, encoding.names, targets, path, target_name
        )
        wanted = [*where, *goals]
        named = [k for k, one in zip(where, encoding.categories, strict=True) if one is not None]
        may_miss = [
            k
            for k, part in zip(where, encoding.parts, strict=True)
            if fillable is not None and fillable[part].all()
        ]
        may_miss += goals if len(goals) > 1 else []
        times: dict[int, Notation | None] = {
            k: kind.notation
            for k, kind in zip(where, encoding.kinds, strict=True)
            if isinstance(kind, Calendar)
        }
        as_target: dict[int | None, str] = dict.fromkeys(goals, "the target")
        used_for = dict.fromkeys(where, "a feature") | as_target
        label = clock = None
        if group is not None:
            label = column_holding("groups", file.names, group.name, as_target, path)
        if time is not None:
            others = {k: use for k, use in used_for.items() if k not in times}
            clock = column_holding("times", file.names, time.name, others, path)
            times = {clock: time.notation, **times}  # a calendar knows its own notation
            wanted = [*wanted, clock]
        if weight is not None:
            wanted = [*wanted, column_holding("weights", file.names, weight.name, used_for, path)]
        kept = {name: _kept_column(name, file.names, path) for name in keep or ()}
        columns = file.columns(
            wanted,
            texts=named,
            may_miss=may_miss,
            times=times,
            label=label,
            keep=set(kept.values()),
        )
        for name, cells in (keep or {}).items():
            cells += file.kept[kept[name]]
        for remark in file.remarks:
            say(f"{shown(path)}: {remark}")
        if weight is not None:
            weight.values = columns.pop().values
            check_weight_column(weight.values, weight.name, path)
        if time is not None and clock is not None:
            time.notation, time.values = file.notations[clock], columns.pop().values
        if group is not None:
            group.values = np.array(file.labels)
    y = [columns.pop().values for _ in goals][::-1]
    targets_of = np.stack(y, axis=1) if len(y) > 1 else y[0] if y else None
    if not whole.derived:
        if ready is not None:
            ready.values = np.ones(len(file.row_numbers), bool)
        return encoding.apply(columns), targets_of
    assert time is not None
    derived, full = derived_columns(
        whole, columns, time.values, None if group is None else group.values
    )
    X = whole.apply([*columns, *derived])
    unknown = np.isnan(X[:, len(encoding.inputs) :]) & ~_may_be_filled(whole, fillable)
    full &= ~unknown.any(axis=1)
    if ready is not None:
        ready.values = full
        return X, targets_of
    if not full.any():
        raise InputError(
            f"{shown(path)}: no row is the end of a full window of "
            f"{plural(whole.longest, 'sample')}"
        )
    say(f"{shown(path)}: {unready(full, whole.longest)} left out")  # the first one at least
    for one in (time, group, weight):
        if one is not None:
            one.values = one.values[full]
    for cells in (keep or {}).values():
        cells[:] = [cell for cell, is_full in zip(cells, full, strict=True) if is_full]
    return X[full], None if targets_of is None else targets_of[full]


def _kept_column(name: str, names: Sequence[str], path: Path) -> int:
    if name not in names:
        raise InputError(
            f"{shown(path)}: no column {quoted(name)} to keep{closest(name, names)}; the columns "
            f"are {listed(names)}"
        )
    return names.index(name)


def _of_windows(
    encoding: Encoding, time: SideColumn | None, group: SideColumn | None, path: Path
) -> tuple[SideColumn, SideColumn | None]:
    """Return the columns of times and groups that windows need, which others may want as well."""
    clock = encoding.derived[0].clock
    for wanted, has, what in ((time, clock.time, "time"), (group, clock.group, "group")):
        if wanted is not None and wanted.name != has:
            raise InputError(
                f"{shown(path)}: the model derives its inputs from samples by the "
                + (f"{what} column {quoted(has)}" if has else f"{what} of no column")
                + f", not {quoted(wanted.name)}"
            )
    time = SideColumn(clock.time) if time is None else time
    time.notation = clock.notation
    if group is None and clock.group is not None:
        group = SideColumn(clock.group)
    return time, group


def _may_be_filled(encoding: Encoding, fillable: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which derived inputs the model can fill in."""
    first = len(encoding.measured.inputs)
    if fillable is None:
        return np.zeros(len(encoding.inputs) - first, bool)
    return fillable[first:]
