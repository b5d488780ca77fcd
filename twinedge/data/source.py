"""A table prepared for training: encoded, filled in and split, with remarks for the user."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinedge.data.columns import unit_of
from twinedge.data.csvfile import FRAME
from twinedge.data.features import SideColumn, read_features
from twinedge.data.fetch import load
from twinedge.data.order import of_order
from twinedge.data.reading import read_table
from twinedge.data.splitting import (
    Split,
    cross_splits,
    split_groups,
    split_in_two,
    split_rows,
    split_times,
    splits,
)
from twinedge.data.streams import guarded
from twinedge.data.suspects import suspects
from twinedge.data.table import (
    Prepared,
    Table,
    count_duplicates,
    missing_texts,
    name_files,
)
from twinedge.encoding.calendars import Calendar
from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import is_frame
from twinedge.encoding.times import Notation, format_time
from twinedge.errors import Advice, InputError, Parameter, ParameterError, wrong_value
from twinedge.wording import plural, quoted, shown


class Source(NamedTuple):
    """A table with its split.

    Parameters
    ----------
    name : str
        Name of the file or data set; of several files, the first ones.
    X, y : arrays of shape (n, f) and (n,)
        Features and targets of all rows.
    encoding : Encoding
        Columns that the features are made of.
    target_name : str
        Column of the target; of several, all of them.
    rows : Split
        Rows to train, validate and test on.
    split : int
        Which random split that is.
    fill_values : array of shape (f,), optional
        Replacements for missing features.
    remarks : tuple of str
        What the user should know about the table.
    groups : array of str, optional
        Which rows belong together.
    grouped : array of bool, shape (n,), optional
        Whether the file of a row names its group; if not, the row is a group of its own. None if
        that holds for all rows.
    weights : array of shape (n,), optional
        How much each row counts, above 0.
    weight_name : str, optional
        Column of the weights.
    missing : tuple of str
        Texts that stand for a missing value, besides the usual ones.
    times : array of shape (n,), optional
        When each row was measured, in seconds since 1970. The rows are then split in that order.
    time_name : str, optional
        Column of the times.
    notation : Notation, optional
        How that column writes its times.
    group_name : str, optional
        Column of the groups.
    folds : tuple of function
        For cross-validation: each returns the same table, split for one fold.
    test_name : str, optional
        Name of the file of the test rows, if they have one of their own.
    numbers : array of shape (n,) or (n, 2), optional
        Number of each row in the file; with several files, that of the file, from 0, and that of
        the row in it. Rows of a test file of their own have none.
    tables : dict of str to int, optional
        Several files that the rows are from, and how many are from each.
    targets : tuple of str
        Columns of several targets. Then y is (n, m), NaN where one was not measured.
    streams : array of str, optional
        Which stream each row is a sample of, if inputs are derived from several.
    options : dict, optional
        How the table was read and split, in JSON types, for the record: what differs from the
        defaults.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    encoding: Encoding
    target_name: str
    rows: Split
    split: int
    fill_values: NDArray[np.float64] | None = None
    remarks: tuple[str, ...] = ()
    groups: NDArray[np.str_] | None = None
    grouped: NDArray[np.bool_] | None = None
    weights: NDArray[np.float64] | None = None
    weight_name: str | None = None
    missing: tuple[str, ...] = ()
    times: NDArray[np.float64] | None = None
    time_name: str | None = None
    notation: Notation | None = None
    group_name: str | None = None
    folds: tuple[Callable[[], "Source"], ...] = ()
    test_name: str | None = None
    numbers: NDArray[np.int64] | None = None
    options: dict[str, Any] | None = None
    tables: dict[str, int] | None = None
    targets: tuple[str, ...] = ()
    streams: NDArray[np.str_] | None = None

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of all targets."""
        return self.targets or (self.target_name,)

    def of_target(self, target: int) -> "Source":
        """Return the rows that measured one of the targets, with that one."""
        if not self.targets:
            return self
        known = np.isfinite(self.y[:, target])
        place = np.cumsum(known) - 1
        beside: dict[str, Any] = {
            name: None if values is None else values[known]
            for name in ("groups", "grouped", "weights", "times", "streams")
            for values in [getattr(self, name)]
        }
        return self._replace(
            X=self.X[known],
            y=self.y[known, target],
            rows=Split(*(place[rows[known[rows]]] for rows in self.rows)),
            target_name=self.targets[target],
            targets=(),
            folds=(),
            numbers=None,
            **beside,
        )

    def row_numbers(self) -> dict[str, NDArray[np.int64]]:
        """Return the numbers in the file of the rows to train, validate and test on, if known."""
        if self.numbers is None:
            return {}
        parts = {part: rows[rows < len(self.numbers)] for part, rows in self.rows._asdict().items()}
        return {part: self.numbers[rows] for part, rows in parts.items()}

    def part(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Features and targets of the given rows."""
        return self.X[rows], self.y[rows]

    def time_ranges(self) -> dict[str, list[str]]:
        """First and last time of the rows to train, validate and test on, as ISO 8601."""
        if self.times is None or self.notation is None:
            return {}
        return {
            name: [format_time(float(end), self.notation) for end in (found.min(), found.max())]
            for name, rows in zip(("train", "validation", "test"), self.rows, strict=True)
            if len(found := self.times[rows])
        }


def from_catalogue(name: str, split: int = 0) -> Source:
    """Load one of the paper's data sets with one of its 25 splits."""
    rows = splits(name, split)
    known = load(name)
    encoding = Encoding.plain(known.feature_names)
    return Source(known.name, known.X, known.y, encoding, known.target_name, rows, split)


def from_table(
    path: Any,
    *,
    split: int = 0,
    folds: int | None = None,
    test: Any = None,
    **reading: Any,
) -> Source:
    """Read a table, split it at random, group by group or in order of time, and prepare it.

    Parameters
    ----------
    path : path or data frame, or a list of these
        A table, as ``read_table`` takes it.
    split : int
        Which random split: 70 % training, 10 % validation, 20 % test.
    folds : int, optional
        How many folds to cross-validate with. Then no rows are left to test the model itself.
    test : path or data frame, optional
        Test rows in a table of their own; the others are then for training and validation.
    **reading
        Options of ``read_table``, including ``target``.
    """
    _check_testing(folds, test)
    table = read_table(path, **reading)
    where = f"{table.where}: "
    assert table.y is not None
    assert table.target_name is not None
    assert table.rows is not None
    if table.times is not None and split:
        raise ParameterError(
            *(Parameter("split", split), " and ", Parameter("time", reading["time"])),
            ": in order of time there is one split; leave one of them out",
        )
    try:
        rows, *crossed = _splits(table, split, folds, test is not None)
    except InputError as error:
        raise InputError(f"{where}{error}") from error
    rows, crossed, kept_out = _guarded(table, rows, crossed)
    prepared = table.prepare(rows.train)
    remarks = [*_describe_kinds(prepared), *kept_out]
    if table.missing:
        remarks.append(f"filled in {plural(table.missing, 'missing value')}")
    if table.duplicates:
        repeats = plural(table.duplicates, "row") + " identical to an earlier one"
        remarks.append(f"{repeats}; the test error may look better than it is")
    if table.groups is not None:
        named = np.ones(len(table.y), bool) if table.grouped is None else table.grouped
        train, val, tested = (len(set(table.groups[part[named[part]]])) for part in rows)
        parts = [f"{train} to train", f"{val} to validate"]
        if tested:
            parts.append(f"{tested} to test")
        remarks.append(f"{plural(train + val + tested, 'group')} of rows: {', '.join(parts)}")
        alone = int(np.count_nonzero(np.unique(table.groups[named], return_counts=True)[1] == 1))
        if alone:
            remarks.append(
                f"{plural(alone, 'group')} of a single row: they say nothing about what rows of "
                "one group have in common"
            )
    if table.times is not None:
        remarks += _describe_times(table, rows)
    grouped = table.groups is not None
    unseen = {*table.calendars, *table.derived}
    looked_at = [one for one in table.columns if one.name not in unseen]
    first, *others = table.y.reshape(len(table.y), -1).T
    found = suspects(looked_at, first, table.targets[0], _row_names(table), grouped=grouped)
    for name, y in zip(table.targets[1:], others, strict=True):
        more = suspects(looked_at, y, name, _row_names(table), grouped=grouped)
        found += [one for one in more if one not in found]
    if table.times is None and not grouped and table.file_of is None:
        known = ~np.isnan(first)
        in_order = of_order(prepared.X[known], first[known], table.dated)
        found += [] if in_order is None else [in_order]
    wrong = [Advice(where, *one.parts) for one in found]
    source = Source(
        name_files([Path(path.name) for path in table.paths]),
        prepared.X,
        table.y,
        prepared.encoding,
        table.target_name,
        rows,
        split,
        prepared.fill_values,
        (*table.remarks, *(where + words for words in remarks), *wrong),
        table.groups,
        table.grouped,
        table.weights,
        reading.get("weight"),
        missing_texts(reading.get("missing", ())),
        times=table.times,
        time_name=reading.get("time"),
        notation=table.notation,
        group_name=None if table.derived else reading.get("group"),
        streams=table.streams,
        numbers=(
            table.rows if table.file_of is None else np.column_stack([table.file_of, table.rows])
        ),
        options=_options({**reading, "folds": folds, "test": test}),
        tables=_rows_of_each(table),
        targets=table.targets if len(table.targets) > 1 else (),
    )
    if crossed:
        folds_of = tuple(partial(_fold, source, table, rows) for rows in crossed)
        return source._replace(folds=folds_of)
    return source if test is None else _with_test(source, test, reading)


def _splits(table: Table, split: int, folds: int | None, has_test: bool) -> list[Split]:
    """Split the rows for the model that is kept, and then for each fold.

    Rows without a group beside those of named ones are split by themselves: some of the named
    groups are then in every part, however many other rows there are.
    """

    def of(n: int, groups: Any, times: Any) -> list[Split]:
        if folds is not None or has_test:
            crossed = [] if folds is None else cross_splits(n, folds, split, groups, times)
            return [split_in_two(n, split, groups, times), *crossed]
        if times is not None:
            return [split_times(times)]
        return [split_rows(n, split) if groups is None else split_groups(groups, split)]

    assert table.y is not None
    if table.groups is not None and table.grouped is not None:
        named, alone = np.flatnonzero(table.grouped), np.flatnonzero(~table.grouped)
        with suppress(InputError):  # too few of either: they are split together
            each = of(len(named), table.groups[named], None), of(len(alone), None, None)
            return [
                Split(
                    *(
                        np.sort(np.concatenate([named[k], alone[i]]))
                        for k, i in zip(one, other, strict=True)
                    )
                )
                for one, other in zip(*each, strict=True)
            ]
    return of(len(table.y), table.groups, table.times)


def _guarded(
    table: Table, rows: Split, crossed: list[Split]
) -> tuple[Split, list[Split], list[str]]:
    """Leave out rows whose window reaches into another part; return splits and a remark."""
    if table.since is None:
        return rows, crossed, []
    assert table.times is not None
    kept, count = guarded(rows, table.times, table.since)
    folds = [guarded(one, table.times, table.since)[0] for one in crossed]
    for split, whole in zip([kept, *folds], [rows, *crossed], strict=True):
        for part, before, purpose in zip(
            split, whole, ("train on", "validate", "test"), strict=True
        ):
            if len(before) and len(part) < 2:
                raise InputError(
                    f"{table.where}: the longest window reaches over all rows to {purpose}; use "
                    "shorter windows, or a longer table"
                )
    words = f"{plural(count, 'row')} left out whose window reaches back over a split by time"
    return kept, folds, [words] if count else []


def _row_names(table: Table) -> NDArray[Any]:
    """Return the number of each row in its file; of several files, also which of them."""
    assert table.rows is not None
    if table.file_of is None:
        return table.rows
    names = [shown(path) for path in table.paths]
    pairs = zip(table.rows.tolist(), table.file_of.tolist(), strict=True)
    return np.array([f"{number} of {names[k]}" for number, k in pairs])


def _rows_of_each(table: Table) -> dict[str, int] | None:
    """Count the rows of each of several files, by their names."""
    if table.file_of is None:
        return None
    names = [path.name for path in table.paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in table.paths]
    return dict(zip(names, np.bincount(table.file_of).tolist(), strict=True))


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Return what differs from the defaults, in JSON types, apart from the target."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name == "target":
            continue
        if name == "test" and value is not None:
            found[name] = (FRAME if is_frame(value) else Path(value)).name
        elif name == "missing":
            found |= {name: list(missing_texts(value))} if missing_texts(value) else {}
        elif value is not None and value is not False and value != ():
            if not isinstance(value, str) and isinstance(value, Sequence):
                found |= {name: [str(one) for one in value]} if len(value) else {}
            else:
                found[name] = int(value) if isinstance(value, np.integer) else value
    return found


def _check_testing(folds: Any, test: Any) -> None:
    if folds is None:
        return
    if test is not None:
        raise ParameterError(
            *(Parameter("folds", folds), " and ", Parameter("test", str(test))),
            ": rows are tested in folds or in a table of their own, not both; choose one",
        )
    if not isinstance(folds, int | np.integer) or isinstance(folds, bool) or folds < 2:
        raise wrong_value("folds", folds, "is not a whole number of at least 2")


def _fold(source: Source, table: Table, rows: Split) -> Source:
    """Prepare a table anew for the training rows of a fold."""
    prepared = table.prepare(rows.train)
    return source._replace(
        X=prepared.X,
        encoding=prepared.encoding,
        rows=rows,
        fill_values=prepared.fill_values,
        remarks=(),
    )


def _with_test(source: Source, test: Any, reading: dict[str, Any]) -> Source:
    """Append test rows that have a table of their own."""
    fill = source.fill_values
    derived = source.encoding.derived
    grouped_by = derived[0].clock.group if derived else source.group_name
    named = (source.time_name, grouped_by, source.weight_name)
    time, group, weight = (None if name is None else SideColumn(name) for name in named)
    if time is not None:
        time.notation = source.notation
    remarks: list[str] = []
    X, y = read_features(
        test,
        source.encoding,
        target=source.targets or source.target_name,
        target_name=source.target_name,
        fillable=None if fill is None else np.isfinite(fill),
        skip_bad_rows=bool(reading.get("skip_bad_rows")),
        missing=source.missing,
        time=time,
        group=group,
        weight=weight,
        say=remarks.append,
    )
    assert y is not None
    path = FRAME if is_frame(test) else Path(test)
    where = shown(path)
    counts = np.ones(len(y), bool) if weight is None else weight.values > 0
    X, y = X[counts], y[counts]
    absent = np.isnan(X)
    if fill is not None:
        X = np.where(absent, fill, X)
    if absent.any():
        remarks.append(f"{where}: filled in {plural(int(absent.sum()), 'missing value')}")
    both = (
        count_duplicates(
            *np.concatenate([np.column_stack([source.X, source.y]), np.column_stack([X, y])]).T
        )
        - count_duplicates(*source.X.T, source.y)
        - count_duplicates(*X.T, y)
    )
    if both > 0:
        remarks.append(
            f"{where}: {plural(both, 'row')} also in {source.name}; the test error may look "
            "better than it is"
        )
    more: dict[str, Any] = {}
    if group is not None and source.groups is not None:
        groups = group.values[counts]
        shared = sorted(set(source.groups) & set(groups))
        if shared:
            remarks.append(
                f"{where}: {plural(len(shared), 'group')} also in {source.name}, such as "
                f"{quoted(shared[0])}: the test error is not that of unseen groups alone"
            )
        more["groups"] = np.concatenate([source.groups, groups])
        if source.grouped is not None:
            more["grouped"] = np.concatenate([source.grouped, np.ones(len(groups), bool)])
    if group is not None and source.streams is not None:
        more["streams"] = np.concatenate([source.streams, group.values[counts]])
    if weight is not None and source.weights is not None:
        more["weights"] = np.concatenate([source.weights, weight.values[counts]])
    if time is not None and source.times is not None:
        more["times"] = np.concatenate([source.times, time.values[counts]])
    count = len(source.y)
    return source._replace(
        X=np.concatenate([source.X, X]),
        y=np.concatenate([source.y, y]),
        rows=source.rows._replace(test=np.arange(count, count + len(y))),
        remarks=(*source.remarks, *remarks),
        test_name=path.name,
        **more,
    )


def _describe_kinds(prepared: Prepared) -> list[str]:
    """Describe the columns that are no numbers: calendars, and categories with their levels."""
    encoding, remarks = prepared.encoding, []
    unknown = encoding.by_column(encoding.unknown(prepared.X)).sum(axis=0)
    for name, one, count in zip(encoding.names, encoding.kinds, unknown, strict=True):
        if isinstance(one, Derived | None):
            continue
        if isinstance(one, Calendar):
            what = "hour, weekday and season of its times, in UTC"
            remarks.append(f"column {quoted(name)} is a calendar: {what}")
            continue
        words = f"column {quoted(name)} is a category of {plural(len(one.levels), 'level')}"
        if one.others:
            words += f" and one more for {plural(len(one.others), 'rare level')}"
        if count:
            words += f"; {plural(int(count), 'row')} to validate or test with an unknown level"
        if (unit := unit_of(one.levels)) is not None:
            words += f"; these are numbers with {quoted(unit)}: without it they would be quantities"
        remarks.append(words)
    return remarks


def _describe_times(table: Table, rows: Split) -> list[str]:
    """Describe where time divides the rows, and what is odd about their times."""
    assert table.times is not None
    assert table.notation is not None
    notation, remarks = table.notation, []
    parts = [
        f"{len(part)} to {verb} until {end.removesuffix('T00:00:00Z')}"
        for part, verb in zip(rows, ("train", "validate", "test"), strict=True)
        if len(part)
        for end in [format_time(float(table.times[part].max()), notation)]
    ]
    remarks.append(f"rows in order of time: {', '.join(parts)}")
    if table.streams is not None:  # which have the same times, one after the other
        return remarks
    steps = np.diff(table.times)
    if (steps < 0).any():
        how = "the newest first" if (steps <= 0).all() else "in another order"
        remarks.append(f"the file has its rows {how}: they are sorted by time")
    alike = len(steps) + 1 - len(np.unique(table.times))
    if alike:
        same = f"{plural(alike, 'row')} of the same time as an earlier one"
        remarks.append(f"{same}; rows of one time stay on one side of each split")
    return remarks
