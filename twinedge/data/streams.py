"""Inputs derived from the last samples of a stream, for the rows of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinedge.data.splitting import Split
from twinedge.data.table import Table
from twinedge.encoding.derived import (
    Derived,
    Gap,
    Term,
    check_columns_of,
    parse_terms,
)
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import Column
from twinedge.encoding.windows import (
    Rows,
    clock_of,
    derive,
    quantisation,
    resolve,
    rows_of_streams,
)
from twinedge.errors import Advice, InputError
from twinedge.wording import plural

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def terms_of(written: str | Sequence[str]) -> list[Term]:
    """Read what to derive; several texts are one after the other."""
    return parse_terms(written if isinstance(written, str) else ", ".join(written))


def with_derived(
    table: Table,
    used: Flags,
    terms: Sequence[Term],
    time: str,
    group: str | None,
    gap: Gap | None,
) -> tuple[Table, Flags]:
    """Add derived inputs to a table to train on.

    Parameters
    ----------
    table : Table
        All samples, with their times.
    used : array of bool, shape (n,)
        Which rows are to be learnt from; the others are samples all the same.
    terms : sequence of Term
        What to derive.
    time, group : str
        Columns of the times and of the streams.
    gap : Gap, optional
        The longest step between two samples of a window.

    Returns
    -------
    table : Table
        The same rows, with more columns. The groups have become streams.
    full : array of bool, shape (n,)
        Which rows are the end of a full window; of others, some derived input is not known.

    Raises
    ------
    InputError
        If they cannot be derived from this table.
    """
    assert table.times is not None
    assert table.notation is not None
    numbers = [
        one.name for one in table.columns if one.texts is None and one.name not in table.calendars
    ]
    others = {one.name: "a category" for one in table.columns if one.texts is not None}
    others |= dict.fromkeys(table.calendars, "a calendar")
    others |= dict.fromkeys(table.dropped, "left out")
    others |= dict.fromkeys(table.targets, "the target") | {time: "the time"}
    others |= {} if group is None else {group: "the group"}
    try:
        check_columns_of(terms, numbers, others)
        clock = clock_of(time, table.notation, group, table.times, table.groups, gap)
        counts = resolve(terms, clock, table.times, table.groups)
        values = {one.name: one.values for one in table.columns}
        steps = {one.column: quantisation(one.column, values[one.column]) for one in terms}
        derived = {
            str(one): Derived(one.statistic, one.column, count, *steps[one.column], clock)
            for one, count in zip(terms, counts, strict=True)
        }
        _check_different(derived)
        taken = [name for name in derived if name in values or name in others]
        if taken:
            raise InputError(f"derive {taken[0]}: the table has a column of that name already")
        rows = rows_of_streams(clock, table.times, table.groups)
        found, start = derive(list(derived.values()), values, rows)
        full = start >= 0
        _check_known(list(derived), found, full & used, rows, table, clock.gap / clock.ticks)
    except InputError as error:
        raise InputError(f"{table.where}: {error}") from error
    longest = max(one.window for one in derived.values())
    added = [Column(name, one) for name, one in zip(derived, found, strict=True)]
    return replace(
        table,
        columns=(*table.columns, *added),
        derived=derived,
        since=np.where(full, table.times[start], np.nan),
        streams=table.groups,
        groups=None,
        grouped=None,
        remarks=(*table.remarks, *_remarks(table, rows, full, longest, clock.gap / clock.ticks)),
    ), full


def _check_different(derived: Mapping[str, Derived]) -> None:
    """Refuse two ways to write the same input, such as one with a span of time."""
    first: dict[Derived, str] = {}
    for name, one in derived.items():
        if (before := first.setdefault(one, name)) != name:
            raise InputError(f"derive {name}: it is the same as {before}; leave one of them out")


def _check_known(
    names: Sequence[str],
    values: Sequence[Floats],
    used: Flags,
    rows: Rows,
    table: Table,
    gap: float,
) -> None:
    """Refuse inputs that are not known in any row, or the same in all that are used."""
    if not used.any():
        edges = np.append(np.flatnonzero(rows.begins), len(used))
        longest = int(np.diff(edges).max())
        raise InputError(
            "derive: no row to learn from is the end of a full window; at most "
            f"{plural(longest, 'row')} follow each other without a gap of more than "
            f"{_seconds(gap, table)}"
        )
    for name, one in zip(names, values, strict=True):
        known = one[used & ~np.isnan(one)]
        if not len(known):
            raise InputError(f"derive {name}: it is not known in any row; its samples are missing")
        if known.min() == known.max():
            raise InputError(
                f"derive {name}: it is {known[0]:g} in every row; leave out what never changes"
            )


def _remarks(table: Table, rows: Rows, full: Flags, longest: int, gap: float) -> list[Advice]:
    """Say which rows are left out, and where streams were cut."""
    assert table.times is not None
    where = f"{table.where}: "
    streams = 1 if table.groups is None else len(np.unique(table.groups))
    gaps = int(rows.begins.sum()) - streams
    words = f"{plural(int((~full).sum()), 'row')} without a full window of " + plural(
        longest, "sample"
    )
    beginnings = "a stream" if streams > 1 else "the stream"
    words += f" left out: at the beginning of {beginnings}"
    if gaps:
        words += f", and after {plural(gaps, 'gap')} of more than {_seconds(gap, table)}"
    found = [Advice(where + words)]
    if table.groups is None and len(np.unique(table.times)) < 0.9 * len(full):
        found.append(
            Advice(
                f"{where}many rows have the same time: if they are of different sensors, name the "
                "column that says which with group, so that no window mixes them"
            )
        )
    return found


def _seconds(gap: float, table: Table) -> str:
    assert table.notation is not None
    return f"{gap:g}" if table.notation.unit == "numbers" else f"{gap:g} s"


def guarded(split: Split, times: Floats, since: Floats) -> tuple[Split, int]:
    """Leave out rows whose window reaches into another part of a split by time.

    Parameters
    ----------
    split : Split
        Parts, each of whole times.
    times : array of shape (n,)
        When each row was measured.
    since : array of shape (n,)
        When the window that ends there begins.

    Returns
    -------
    Split
        Without these rows.
    int
        How many there are.

    Examples
    --------
    >>> split = Split(np.array([0, 1, 2, 3]), np.array([4, 5, 6]), np.array([7, 8, 9]))
    >>> times = np.arange(10.0)
    >>> [part.tolist() for part in guarded(split, times, times - 2)[0]]
    [[0, 1, 2, 3], [6], [9]]
    """
    part = np.full(len(times), -1)
    for number, rows in enumerate(split):
        part[rows] = number
    known, which = np.unique(times, return_inverse=True)
    of_time = np.full(len(known), -1)
    of_time[which] = part
    block = np.cumsum(np.append(0, of_time[1:] != of_time[:-1]))
    inside = block[np.searchsorted(known, since)] == block[which]
    kept = Split(*(rows[inside[rows]] for rows in split))
    return kept, int((~inside).sum())


def derived_columns(
    encoding: Encoding, columns: Sequence[Column], times: Floats, groups: Any
) -> tuple[list[Column], Flags]:
    """Derive the inputs of a trained model from the samples of another table.

    Parameters
    ----------
    encoding : Encoding
        That of the model.
    columns : sequence of Column
        Those that were measured.
    times, groups : array of shape (n,)
        Those of the rows; groups may be None.

    Returns
    -------
    list of Column
        What is derived, in the order of the encoding.
    array of bool, shape (n,)
        Which rows are the end of a full window.
    """
    values: Mapping[str, Floats] = {one.name: one.values for one in columns}
    rows = rows_of_streams(encoding.derived[0].clock, times, groups)
    found, start = derive(encoding.derived, values, rows)
    names = [
        name
        for name, kind in zip(encoding.names, encoding.kinds, strict=True)
        if isinstance(kind, Derived)
    ]
    return [Column(*one) for one in zip(names, found, strict=True)], start >= 0


def unready(full: Flags, longest: int) -> str:
    """Say how many rows have no full window.

    Examples
    --------
    >>> unready(np.array([False, False, True]), 3)
    '2 rows without a full window of 3 samples'
    """
    rows = plural(int((~full).sum()), "row")
    return f"{rows} without a full window of {plural(longest, 'sample')}"
