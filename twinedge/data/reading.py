"""Read a table to train on: a file or data frame, or several with the same columns."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
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
    hold_times,
    name_columns,
    target_positions,
    without_dropped,
)
from twinedge.data.csvfile import FRAME, CsvFile, open_table
from twinedge.data.streams import terms_of, with_derived
from twinedge.data.table import Missing, Table, missing_texts
from twinedge.encoding.derived import parse_gap
from twinedge.encoding.tables import Column, is_categorical, is_frame
from twinedge.encoding.times import NUMBERS, Notation
from twinedge.errors import Advice, InputError, Parameter, ParameterError, dropping
from twinedge.wording import closest, listed, plural, quoted, shown


class _Wanted(NamedTuple):
    """Which columns of a file are for what: options of ``read_table``."""

    target: str | int | Sequence[str | int] | None
    drop: Sequence[str]
    group: str | None
    weight: str | None
    categorical: Sequence[str]
    time: str | None
    calendar: Sequence[str]
    impute: bool
    drop_missing_target: bool


class _Part(NamedTuple):
    """What was read of one file: all rows, and which of them are to be learnt from."""

    table: Table
    used: NDArray[np.bool_]


def read_table(
    path: Any,
    *,
    target: str | int | Sequence[str | int] | None,
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
    derive: str | Sequence[str] = (),
    gap: str | float | None = None,
) -> Table:
    """Read a table to train on.

    Parameters
    ----------
    path
        CSV file: UTF-8, UTF-16 or Windows-1252, also compressed by gzip; columns separated by
        comma, semicolon, tab, bar or blanks; with a header or without (then the columns are called
        x0, x1, ...); decimal commas if commas do not separate columns; comments start with ``#``.
        Or a Parquet or Excel file, read by pandas. Or a data frame. Or a list of these, with the
        same columns in any order: their rows are joined, in the order of the list. What ``drop``,
        ``group`` and ``weight`` name may be missing in some. Rows of a table without the column of
        the groups are groups of their own, and without that of the weights they count 1.
    target
        Name of the target column, or its position: 0 is the leftmost, -1 the rightmost. A string
        that is no column's name and holds an integer is a position, in the first of several tables.
        Several are a list, or ``"a,b"``; their cells may be missing where nobody measured them, but
        not all in one row. None: there is no target, and constant columns are allowed.
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
        Leave out rows without a target, and count them; otherwise they are refused.
    skip_bad_rows
        Leave out rows that cannot be used, and count them: with cells too many or too few, words
        among numbers, infinite values, or missing ones that are not filled in. Otherwise they are
        refused, and so is a file with more bad rows than good ones.
    missing
        Numbers and texts that stand for a missing value in every column, besides an empty cell,
        ``NA`` and the like. Numbers are compared as numbers: -9999 is also -9999.0.
    time
        Name of a column that says when each row was measured; it is not a feature. It holds dates
        and times as `twinedge.encoding.times.read_times` takes them. Not with ``group``,
        unless there is ``derive``.
    calendar
        Names of columns of such times to learn from: hour of the day, day of the week, and season.
        The column of ``time`` may be one of them. None of their cells may be missing.
    derive
        Inputs to derive from the last samples, as ``parse_terms`` reads them: ``"temp@6,
        mean(temp, 12)"``. Rows are samples in the order of ``time``; with ``group``, each group is
        a stream of its own. Rows without a full window are left out, and counted.
    gap
        The longest step between two samples of a window, as ``"90 s"``, or a number of usual steps;
        by default one and a half in an evenly sampled table, otherwise ten.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If the file cannot be used as requested; the message names row and column.
    """
    sources = path if isinstance(path, list | tuple) else [path]
    paths = _paths(sources)
    for frame in filter(is_frame, sources):
        of_frame = [str(name) for name in frame.columns if is_categorical(frame[name])]
        goals = target if isinstance(target, list | tuple) else [target]
        others = *goals, group, weight, time, *calendar
        categorical = [*categorical, *(name for name in of_frame if name not in others)]
    if impute not in (None, "median"):
        raise InputError(f"impute: unknown method {quoted(str(impute))}; use 'median' or leave out")
    terms = terms_of(derive) if derive else []
    if terms and time is None:
        raise ParameterError(
            Parameter("derive"),
            " needs the order of the samples: name the column of times with ",
            Parameter("time"),
        )
    if gap is not None and not terms:
        raise ParameterError(
            Parameter("gap", gap), " is for derived inputs: name these with ", Parameter("derive")
        )
    longest_step = None if gap is None else parse_gap(gap)
    if group is not None and time is not None and not terms:
        raise ParameterError(
            *(Parameter("group", group), " and ", Parameter("time", time)),
            ": rows are held out group by group or in order of time, not both; choose one",
        )
    # A table without a target is not for training; commands that read one lack these options.
    skip = skip_bad_rows if target is not None else None
    wanted = _Wanted(
        *(target, drop, group, weight, categorical, time, calendar),
        *(impute is not None, drop_missing_target),
    )
    with ExitStack() as stack:  # all are open at once: a pipe cannot be read again
        files = [
            stack.enter_context(
                open_table(one, skip_bad_rows=skip, missing=missing_texts(missing), path=named)
            )
            for one, named in zip(sources, paths, strict=True)
        ]
        for file in files:
            check_names(file.names, file.path, file.index)
        if len(files) > 1:
            wanted = _check_same_columns(files, wanted)
        tables: list[Table] = []
        masks: list[NDArray[np.bool_]] = []
        for file in files:
            mine = _present(wanted, file, files)
            table, used = _read(file, mine, tables[0] if tables else None)
            if mine.group != group or mine.weight != weight:
                table = _completed(table, wanted, mine)
            tables.append(table)
            masks.append(used)
    table = tables[0] if len(tables) == 1 else _joined(tables)
    used = np.concatenate(masks)
    if terms and time is not None and used.any():
        table, full = with_derived(table, used, terms, time, group, longest_step)
        used &= full
    if not used.all():
        table = table.only(used)
    if table.y is not None:
        if not len(table.y):
            raise InputError(f"{table.where}: no row has a target")
        named = {name for word in categorical for name in (word, *word.split(","))}
        check_columns(table.columns, table.y, table.targets, table.where, named)
    return table


def _paths(sources: Sequence[Any]) -> tuple[Path, ...]:
    """Name each table for messages; refuse a file that is there twice."""
    if not sources:
        raise InputError("no table to read: name at least one")
    found: list[Path] = []
    for number, source in enumerate(sources, 1):
        if is_frame(source):
            found.append(FRAME if len(sources) == 1 else Path(f"{FRAME} {number}"))
            continue
        path = Path(source)
        if any(path.exists() and one.exists() and path.samefile(one) for one in found):
            raise InputError(f"{shown(path)}: is named twice; each of its rows would count double")
        found.append(path)
    return tuple(found)


def _check_same_columns(files: Sequence[CsvFile], wanted: _Wanted) -> _Wanted:
    """Refuse tables of different columns, but for those that may be missing in some.

    Returns the options with the target and what is dropped by name.
    """
    first, *others = files
    known = {name for file in files for name in file.names}
    dropped = [
        name for word in wanted.drop for name in ([word] if word in known else word.split(","))
    ]
    targets = []
    if wanted.target is not None:
        positions = target_positions(first.names, wanted.target, first.path)
        targets = [first.names[k] for k in positions]
    free = {*dropped, wanted.group, wanted.weight, wanted.time}.difference(targets)

    def columns(file: CsvFile) -> list[str]:
        return [name for k, name in enumerate(file.names) if name not in free and k != file.index]

    for file in others:
        mine, expected = columns(file), columns(first)
        lacks = [name for name in expected if name not in mine]
        more = [name for name in mine if name not in expected]
        if lacks and first.has_header and not file.has_header:
            raise InputError(
                f"{shown(file.path)}: has no header; to join it with {shown(first.path)}, name its "
                f"columns in the first row: {listed(expected)}"
            )
        if lacks or more:
            words = [f"has no column {listed(lacks)}{closest(lacks[0], more)}"] if lacks else []
            words += [f"has a column {listed(more)} that is not there"] if more else []
            unequal = [name for name in (*lacks, *more) if name not in targets]
            raise ParameterError(
                f"{shown(file.path)}: has other columns than {shown(first.path)}: it "
                f"{', and '.join(words)}; tables to train on have the same columns",
                *((": leave out what is not in all with ", dropping(unequal)) if unequal else ()),
            )
    return wanted._replace(target=targets or None, drop=dropped)


def _present(wanted: _Wanted, file: CsvFile, files: Sequence[CsvFile]) -> _Wanted:
    """Return what to read from a file, without columns that only others of several have."""
    known = {name for one in files if one is not file for name in one.names}

    def is_here(name: str | None) -> bool:
        return name in file.names or name not in known  # in none: refused where it is looked for

    return wanted._replace(
        drop=[name for name in wanted.drop if is_here(name)],
        group=wanted.group if is_here(wanted.group) else None,
        weight=wanted.weight if is_here(wanted.weight) else None,
    )


def _read(file: CsvFile, wanted: _Wanted, first: Table | None) -> _Part:
    """Read one file; the first of several decides about names, and how times are written."""
    names, path = file.names, file.path
    goals = [] if wanted.target is None else target_positions(names, wanted.target, path)
    kept = without_dropped(names, wanted.drop, goals, path)
    named = name_columns(names, wanted.categorical, goals, path)
    label = scales = clock = None
    used_for: dict[int | None, str] = dict.fromkeys(goals, "the target")
    if wanted.group is not None:
        label = column_holding("groups", names, wanted.group, used_for, path)
        used_for[label] = "the group"
    used_for |= dict.fromkeys(named, "a category")
    if wanted.weight is not None:
        scales = column_holding("weights", names, wanted.weight, used_for, path)
        used_for[scales] = "the weight"
    if wanted.time is not None:
        clock = column_holding("times", names, wanted.time, used_for, path)
    unread = sorted(set(range(len(names))).difference(kept))
    used_for |= dict.fromkeys(unread, "left out")
    dates = calendar_columns(names, wanted.calendar, used_for, path)
    index = file.index if file.index not in (*goals, label, scales, clock, *dates) else None
    unread += [] if index is None else [index]
    kept = [k for k in kept if k not in (label, index, scales, clock) or k in dates]
    features = [k for k in kept if k not in goals]
    beside = [k for k in (scales, clock) if k is not None]
    if not features:
        raise InputError(
            f"{shown(path)}: no feature is left in {plural(len(names), 'column')}; "
            f"at least one besides the target is needed"
        )
    notations: dict[int, Notation | None] = dict.fromkeys(dates)
    notations |= {} if clock is None else {clock: None}
    may_be_named = features if goals else []
    if first is not None:
        may_be_named = []
        named |= {names.index(one.name) for one in first.columns if one.texts is not None}
        notations |= {k: first.calendars[names[k]] for k in dates}
        notations |= {} if clock is None else {clock: first.notation}
    to_train = features if goals else []
    may_miss = [k for k in features if k not in dates] if wanted.impute else []
    one_target = goals[0] if len(goals) == 1 else None
    without_target = goals if wanted.drop_missing_target or len(goals) > 1 else []
    columns = file.columns(
        [*kept, *beside],
        texts=named,
        may_be_texts=may_be_named,
        may_miss=[*may_miss, *without_target],
        could_impute=[k for k in to_train if k not in dates],
        could_drop=to_train,
        label=label,
        target=None if wanted.drop_missing_target else one_target,
        times=notations,
        glance=unread,
    )
    remarks: list[str] = []
    if index is not None:
        remarks.append("the first column, without a name, numbers the rows: left out")
    remarks += file.remarks
    y = weights = None
    times = None if clock is None else columns.pop().values
    if scales is not None:
        weights = columns.pop().values
        check_weight_column(weights, names[scales], path)
    present = np.ones(len(file.row_numbers), bool)
    if goals:
        each = {k: columns.pop(kept.index(k)).values for k in sorted(goals, reverse=True)}
        y = each[goals[0]] if len(goals) == 1 else np.stack([each[k] for k in goals], axis=1)
        present = np.asarray(np.isfinite(y.reshape(len(y), -1)).any(axis=1))
        if not present.all() and not wanted.drop_missing_target:
            number = file.row_numbers[np.argmin(present)]
            raise ParameterError(
                f"{shown(path)}: row {number} has none of the targets "
                f"{listed([names[k] for k in goals])}; leave such rows out with ",
                Parameter("drop_missing_target", True),
            )
        if not present.all():
            remarks.append(f"{plural(int((~present).sum()), 'row')} without a target left out")
        if weights is not None and not weights[present].all():
            without = plural(int((weights[present] == 0).sum()), "row")
            remarks.append(f"{without} of weight 0 left out")
            present &= weights > 0
    used = set(kept)
    table = Table(
        tuple(columns),
        y,
        ", ".join(names[k] for k in goals) or None,
        (path,),
        dropped=tuple(name for k, name in enumerate(names) if k not in used),
        impute=wanted.impute,
        groups=None if label is None else np.array(file.labels),
        weights=weights,
        remarks=tuple(Advice(f"{shown(path)}: {words}") for words in remarks),
        rows=file.row_numbers,
        times=times,
        notation=None if clock is None else file.notations[clock],
        dated=tuple(names[k] for k in unread if k != clock and hold_times(file.glanced[k])),
        calendars={names[k]: file.notations[k] for k in dates},
        targets=tuple(names[k] for k in goals),
    )
    return _Part(table, present)


def _completed(table: Table, wanted: _Wanted, mine: _Wanted) -> Table:
    """Make up groups and weights of a table that lacks a column which others have."""
    (path,), rows = table.paths, table.rows
    assert rows is not None
    remarks = list(table.remarks)
    if mine.group != wanted.group:
        table = replace(
            table,
            groups=np.array([f"{shown(path)}, row {number}" for number in rows.tolist()], np.str_),
            grouped=np.zeros(len(rows), bool),
        )
        what = f"no column {quoted(str(wanted.group))} for the groups"
        remarks.append(Advice(f"{shown(path)}: {what}: each of its rows is a group of its own"))
    if mine.weight != wanted.weight:
        table = replace(table, weights=np.ones(len(rows)))
        what = f"no column {quoted(str(wanted.weight))} for the weights"
        remarks.append(Advice(f"{shown(path)}: {what}: each of its rows counts 1"))
    return replace(table, remarks=tuple(remarks))


def _joined(tables: Sequence[Table]) -> Table:
    """Put tables with the same columns one below the other."""
    first = tables[0]
    counts = [len(table.columns[0].values) for table in tables]
    columns = [{one.name: one for one in table.columns} for table in tables]
    masks = [
        np.ones(count, bool) if table.grouped is None else table.grouped
        for table, count in zip(tables, counts, strict=True)
    ]
    calendars = {
        name: _common([table.calendars[name] for table in tables], tables)
        for name in first.calendars
    }
    notation = None
    if first.notation is not None:
        notation = _common([table.notation or Notation() for table in tables], tables)
    return replace(
        first,
        columns=tuple(_stacked([mine[one.name] for mine in columns]) for one in first.columns),
        y=_end_to_end([table.y for table in tables]),
        paths=tuple(path for table in tables for path in table.paths),
        dropped=tuple(dict.fromkeys(name for table in tables for name in table.dropped)),
        groups=_end_to_end([table.groups for table in tables]),
        grouped=None if all(mask.all() for mask in masks) else np.concatenate(masks),
        weights=_end_to_end([table.weights for table in tables]),
        remarks=tuple(remark for table in tables for remark in table.remarks),
        rows=_end_to_end([table.rows for table in tables]),
        file_of=np.repeat(np.arange(len(tables)), counts),
        times=_end_to_end([table.times for table in tables]),
        notation=notation,
        dated=tuple(dict.fromkeys(name for table in tables for name in table.dated)),
        calendars=calendars,
    )


def _end_to_end(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Join arrays, all of which are there or none."""
    return (
        np.concatenate([one for one in parts if one is not None]) if parts[0] is not None else None
    )


def _stacked(parts: Sequence[Column]) -> Column:
    """Join the cells of a column; a text has one index in all of them."""
    first = parts[0]
    if first.texts is None:
        return first._replace(values=np.concatenate([one.values for one in parts]))
    codes: dict[str, int] = {}
    values = []
    for one in parts:
        new = [codes.setdefault(text, len(codes)) for text in one.texts or ()]
        absent = np.isnan(one.values)
        old = np.where(absent, len(new), one.values).astype(np.intp)
        values.append(np.array([*new, np.nan])[old])
    return Column(first.name, np.concatenate(values), tuple(codes))


def _common(notations: Sequence[Notation], tables: Sequence[Table]) -> Notation:
    """Return how times are written, as far as tables tell; refuse dates beside plain numbers."""
    plain = [one.unit == NUMBERS for one in notations]
    if any(plain) and not all(plain):
        numbers, dates = tables[plain.index(True)], tables[plain.index(False)]
        raise InputError(
            f"{numbers.where}: its times are plain numbers, and those of {dates.where} are dates; "
            "write them in one way"
        )
    return next((one for one in notations if one != Notation()), notations[0])
