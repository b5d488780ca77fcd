"""Reads dates and times: ISO 8601, the usual local forms, and numbers since 1970.

How a column writes its times is decided over all its cells: whether 03/04/2024 is in March or in
April, and whether a number counts seconds or milliseconds. A later file of the same kind is read in
the same notation, even if its few rows would not decide that.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinedge.encoding.cells import looks_missing
from twinedge.errors import InputError
from twinedge.wording import plural, quoted

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TICKS = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
NUMBERS = "numbers"  # the unit of those that are too small to be times since 1970
_SMALLEST = {"nanoseconds": 1e17, "microseconds": 1e14, "milliseconds": 1e11, "seconds": 1e8}
_DAY = 86400
_ENDS = (np.array(["0001-01-01", "9999-12-31"], "datetime64[s]").astype(np.int64)).tolist()
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ZONES = {"z", "utc", "gmt"}
_RIGHT = "write it like 2024-01-31 09:30"

_NAME = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_TEXT = re.compile(
    rf"""
    (?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\ +)?
    (?:(?P<Y1>\d{{4}})(?P<mark1>[-/.])(?P<m1>\d\d?)(?:(?P=mark1)(?P<d1>\d\d?))?
    |(?P<Y2>\d{{4}})(?P<m2>\d\d)(?P<d2>\d\d)
    |(?P<one>\d\d?)(?P<mark>[-/.])(?P<two>\d\d?)(?P=mark)(?P<Y3>\d{{4}}|\d\d)
    |(?P<d4>\d\d?)(?:st|nd|rd|th)?[-\ .,]+(?P<m4>{_NAME})[-\ .,]+(?P<Y4>\d{{4}}|\d\d)
    |(?P<m5>{_NAME})[-\ .]+(?P<d5>\d\d?)(?:st|nd|rd|th)?(?:,\ *|[-\ ]+)(?P<Y5>\d{{4}})
    )
    (?:(?:t|,?\ +)
       (?:(?P<H1>\d\d?):(?P<M1>\d\d)(?::(?P<S1>\d\d(?:[.,]\d+)?))?
       |(?P<H2>\d\d)(?:(?P<M2>\d\d)(?P<S2>\d\d(?:[.,]\d+)?)?)?)
       (?:\ ?(?P<half>[ap])\.?m\.?)?
       (?:\ ?(?P<zone>[+-]\d\d(?::?\d\d)?|[a-z]{{1,5}}))?
    )?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?: ?[AaPp][Mm])?", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?", re.ASCII)
# Dates that look like numbers: 2024.01 and 20240131, the latter also with 0930 or 093059.
_DIGITS = re.compile(r"\d{8}(?:\d{4}(?:\d\d)?)?|\d{4}\.\d\d", re.ASCII)


class Notation(NamedTuple):
    """How a column writes its times.

    Parameters
    ----------
    day_first : bool, optional
        Whether 03/04/2024 is in April; None if no time of the column is written like that.
    unit : str, optional
        What a number counts since 1970: "seconds" or another key of `TICKS`; or "numbers" for
        small ones, such as hours since a start, that only say which row comes first. None if the
        times are not numbers.
    """

    day_first: bool | None = None
    unit: str | None = None


class Times(NamedTuple):
    """Times that were read.

    Parameters
    ----------
    seconds : array of shape (n,)
        Seconds since 1970, UTC; NaN where a cell is missing. If `notation` says "numbers", these as
        they are.
    remark : str, optional
        What had to be assumed.
    notation : Notation
        How they were written.
    """

    seconds: Floats
    remark: str | None = None
    notation: Notation = Notation()


class _Fields(NamedTuple):
    """Parts of times, ``(n,)`` each: ``one`` and ``two`` are day and month in the order written."""

    year: Integers
    one: Integers
    two: Integers
    hour: Integers
    minute: Integers
    second: Floats
    half: Integers  # 0 none, 1 am, 2 pm
    offset: Integers  # seconds east of Greenwich
    dotted: NDArray[np.bool_]  # 31.01.2024: nobody writes the month first that way


def read_times(
    texts: Sequence[str],
    notation: Notation | None = None,
    refuse: Callable[[int, str, str], None] | None = None,
) -> Times:
    """Read dates and times. A time without a zone counts as UTC.

    Parameters
    ----------
    texts
        Cells of one column, ``(n,)``: ISO 8601 such as 2024-01-31T09:30:00.5+01:00 or
        20240131T0930; local forms such as 31.01.2024 09:30, 1/31/2024 9:30 AM or 31-Jan-2024; or
        numbers of seconds, milliseconds, microseconds or nanoseconds since 1970, by their size.
    notation
        How they are written, if that is known; by default the cells decide.
    refuse
        Called with the index of a cell that cannot be read, what is wrong with it, and what would
        be right; its time is then NaN. By default an error is raised.

    Returns
    -------
    Times

    Raises
    ------
    InputError
        If a cell holds no time.

    Examples
    --------
    >>> read_times(["1970-01-01 00:01", "", "1970-01-02T00:00:00+01:00"]).seconds.tolist()
    [60.0, nan, 82800.0]
    >>> read_times(["31/01/2024", "05/02/2024"]).notation.day_first
    True
    """
    refuse = refuse or _raise
    cells = [text.strip() for text in texts]
    present = [
        i for i, text in enumerate(cells) if not looks_missing(text) and text.lower() != "nat"
    ]
    seconds = np.full(len(cells), np.nan)
    if not present:
        return Times(seconds, None, notation or Notation())
    written = [cells[i] for i in present]
    numbers = sum(_NUMBER.fullmatch(text) is not None for text in written)
    are_numbers = 2 * numbers > len(written)

    def refuse_one(index: int, wrong: str, right: str) -> None:
        refuse(present[index], wrong, right)

    if are_numbers and not _are_digits(written, notation):
        seconds[present], notation = _read_numbers(written, notation, refuse_one)
        return Times(seconds, None, notation)
    seconds[present], remark, day_first = _read_texts(written, notation, refuse_one)
    return Times(seconds, remark, Notation(day_first=day_first))


def times_of(values: ArrayLike) -> Times:
    """Take times of any kind: numbers, texts, ``datetime64``, or objects such as dates.

    Examples
    --------
    >>> times_of(np.array(["2024-01-31", "2024-02-01"], "datetime64[D]")).seconds.tolist()
    [1706659200.0, 1706745600.0]
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError("times must be one for each row") from error
    if array.ndim != 1:
        raise InputError(f"times has shape {array.shape}; one for each row is needed")
    if array.dtype.kind == "M":
        ticks = array.astype("datetime64[us]")
        return Times(np.where(np.isnat(ticks), np.nan, ticks.astype(np.int64) / 1e6))
    if array.dtype.kind == "m":
        array = np.where(np.isnat(array), np.nan, array / np.timedelta64(1, "s"))
        return Times(array, None, Notation(unit=NUMBERS))
    if array.dtype.kind in "iuf":
        unit = _unit(array.astype(np.float64))
        return Times(array / TICKS.get(unit, 1.0), None, Notation(unit=unit))
    return read_times(["" if one is None else str(one) for one in array.tolist()])


def format_time(seconds: float, notation: Notation) -> str:
    """Write a time as ISO 8601 in UTC, or as the number it was.

    Examples
    --------
    >>> format_time(1706693400.0, Notation()), format_time(12.5, Notation(unit="numbers"))
    ('2024-01-31T09:30:00Z', '12.5')
    """
    if notation.unit == NUMBERS:
        return f"{seconds:.15g}"
    ticks = np.datetime64(round(seconds * 1e6), "us")
    whole = ticks.astype("datetime64[s]")
    return f"{whole if whole == ticks else ticks}Z"


def looks_like_time(text: str) -> bool:
    """Tell whether a text looks like a date or a time of day; numbers do not.

    Examples
    --------
    >>> [looks_like_time(text) for text in ("31.01.2024", "9:30 PM", "20240131", "Jan")]
    [True, True, False, False]
    """
    if _NUMBER.fullmatch(text):
        return False
    return _TEXT.fullmatch(text) is not None or _CLOCK.fullmatch(text) is not None


def _raise(index: int, wrong: str, right: str) -> None:
    raise InputError(f"time {index}: {wrong}{right}")


def _are_digits(texts: Sequence[str], notation: Notation | None) -> bool:
    """Tell whether all of these numbers are dates such as 20240131."""
    if notation is not None and notation.unit is not None:
        return False
    if not all(map(_DIGITS.fullmatch, texts)):
        return False
    return not any(_invalid(_fields([_match(text) for text in texts]), day_first=True))


def _match(text: str) -> "re.Match[str] | None":
    if _DIGITS.fullmatch(text) and len(text) > 8:
        text = f"{text[:8]}T{text[8:]}"
    return _TEXT.fullmatch(text)


def _read_numbers(
    texts: Sequence[str], notation: Notation | None, refuse: Callable[[int, str, str], None]
) -> tuple[Floats, Notation]:
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if _NUMBER.fullmatch(text):
            values[i] = float(text.replace(",", "."))
        else:
            refuse(i, f"{quoted(text)} is not a number, as other times are", "; correct it")
    unit = _unit(values) if notation is None or notation.unit is None else notation.unit
    seconds = values / TICKS.get(unit, 1.0)
    low, high = (-np.inf, np.inf) if unit == NUMBERS else _ENDS
    beyond = ~np.isnan(values) & ~((low <= seconds) & (seconds <= high))
    for i in np.flatnonzero(beyond).tolist():
        wrong = f"{quoted(texts[i])} is far beyond the other times, in {unit} since 1970"
        refuse(i, wrong, "; correct it")
        seconds[i] = np.nan
    return seconds, Notation(unit=unit)


def _unit(values: Floats) -> str:
    """Tell what most of these numbers count, by their size; "numbers" below 1973 in seconds."""
    known = np.abs(values[np.isfinite(values)])
    size = float(np.median(known)) if len(known) else 0.0
    return next((unit for unit, least in _SMALLEST.items() if size >= least), NUMBERS)


def _read_texts(
    texts: Sequence[str],
    notation: Notation | None,
    refuse: Callable[[int, str, str], None],
) -> tuple[Floats, str | None, bool | None]:
    matches = [_match(text) for text in texts]
    for i, match in enumerate(matches):
        if match is None:
            clock = _CLOCK.fullmatch(texts[i])
            wrong = "is a time of day without a date" if clock else "cannot be read as a time"
            refuse(i, f"{quoted(texts[i])} {wrong}", f"; {_RIGHT}")
        elif (zone := match["zone"]) and zone[0] not in "+-" and zone.lower() not in _ZONES:
            wrong = f"{quoted(texts[i])} has a zone that is not known"
            refuse(i, wrong, "; write its offset from UTC, like +01:00")
            matches[i] = None
    where = [i for i, match in enumerate(matches) if match is not None]
    found = [match for match in matches if match is not None]
    fields = _fields(found)
    day_first, remark = _day_first(fields, [texts[i] for i in where], notation)
    bad = _invalid(fields, day_first is not False)
    for k in np.flatnonzero(bad):
        wrong = f"{quoted(texts[where[k]])} does not exist"
        if fields.one[k] > 0 and max(fields.one[k], fields.two[k]) > 12 and not fields.dotted[k]:
            order = "day first" if day_first else "month first"
            wrong += f" as a time with its {order}, as others are"
        refuse(where[k], wrong, "; correct it")
    seconds = np.full(len(texts), np.nan)
    seconds[where] = np.where(bad, np.nan, _seconds(fields, day_first is not False))
    zones = sum(match["zone"] is not None for match in found)
    timed = sum(bool(match["H1"] or match["H2"]) for match in found)
    if 0 < zones < timed:
        without = plural(timed - zones, "time")
        remark = f"{remark}; " if remark else ""
        remark += f"{without} of {timed} without a zone: read as UTC"
    return seconds, remark, day_first


def _fields(matches: "Sequence[re.Match[str] | None]") -> _Fields:
    """Take times apart; month and day have their order, except those to be decided."""
    nothing = (1, *[0] * 8)  # not a time at all: no such day
    rows = [nothing if match is None else _parts(match) for match in matches]
    table = np.array(rows, np.float64).reshape(len(rows), len(nothing))
    year, one, two, hour, minute, _, half, offset, dotted = table.astype(np.int64).T
    return _Fields(year, one, two, hour, minute, table[:, 5], half, offset, dotted > 0)


def _parts(match: "re.Match[str]") -> tuple[float, ...]:
    one = match.groupdict()
    written = one["Y1"] or one["Y2"] or one["Y3"] or one["Y4"] or one["Y5"]
    year = int(written)
    if len(written) == 2:
        year += 1900 if year >= 69 else 2000
    if one["mark"] is not None:
        first, second = int(one["one"]), int(one["two"])
    else:  # as if the day came first, in numbers that leave nothing to decide
        name = one["m4"] or one["m5"]
        month = _MONTHS.index(name[:3].lower()) + 1 if name else int(one["m1"] or one["m2"])
        first, second = int(one["d1"] or one["d2"] or one["d4"] or one["d5"] or 1), month
    hour, minute = int(one["H1"] or one["H2"] or 0), int(one["M1"] or one["M2"] or 0)
    seconds = float((one["S1"] or one["S2"] or "0").replace(",", "."))
    half = " ap".index((one["half"] or " ").lower())
    dotted = one["mark"] not in ("/", "-")
    return year, first, second, hour, minute, seconds, half, _offset(one["zone"]), dotted


def _offset(zone: str | None) -> int:
    """Seconds east of Greenwich."""
    if zone is None or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    size = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
    return -size if zone[0] == "-" else size


def _day_first(
    fields: _Fields, texts: Sequence[str], notation: Notation | None
) -> tuple[bool | None, str | None]:
    """Decide whether the day comes before the month; None if there is nothing to decide."""
    open_order = ~fields.dotted
    if not open_order.any():
        return None, None
    if notation is not None and notation.day_first is not None:
        return notation.day_first, None
    first, second = (int((part[open_order] > 12).sum()) for part in (fields.one, fields.two))
    if first or second:
        return first >= second, None
    example = quoted(texts[int(np.flatnonzero(open_order)[0])])
    ways = [_seconds(fields, day_first) for day_first in (True, False)]
    rising = [bool(np.all(np.diff(way) >= 0)) for way in ways]
    if rising[0] != rising[1]:
        order = "day" if rising[0] else "month"
        return rising[0], f"times such as {example} are read {order} first: then they rise"
    if fields.half[open_order].any():
        return False, f"times such as {example} are read month first, as is usual with AM and PM"
    if np.array_equal(ways[0], ways[1]):
        return True, None
    return True, f"times such as {example} could have day or month first: read day first"


def _months(fields: _Fields, day_first: bool) -> tuple[Integers, Integers]:
    """Day and month of each."""
    swap = ~fields.dotted & (not day_first)
    return np.where(swap, fields.two, fields.one), np.where(swap, fields.one, fields.two)


def _invalid(fields: _Fields, day_first: bool) -> NDArray[np.bool_]:
    """Tell which times do not exist."""
    day, month = _months(fields, day_first)
    inside = np.clip(month, 1, 12)
    start = ((fields.year - 1970) * 12 + inside - 1).astype("datetime64[M]")
    days = ((start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")).astype(np.int64)
    midnight = (fields.hour == 24) & (fields.minute == 0) & (fields.second == 0)
    by_half = (fields.half == 0) | ((fields.hour >= 1) & (fields.hour <= 12))
    good = (
        (fields.year >= 1)
        & (month == inside)
        & (day >= 1)
        & (day <= days)
        & ((fields.hour < 24) | midnight)
        & by_half
        & (fields.minute < 60)
        & (fields.second < 61)  # 60 is a leap second
        & (np.abs(fields.offset) < _DAY)
    )
    return np.asarray(~good)


def _seconds(fields: _Fields, day_first: bool) -> Floats:
    """Seconds since 1970 of times that exist; of others, something."""
    day, month = _months(fields, day_first)
    start = ((fields.year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = start.astype("datetime64[D]").astype(np.int64) + day - 1
    hour = np.where(fields.half > 0, fields.hour % 12 + 12 * (fields.half == 2), fields.hour)
    whole = days * _DAY + hour * 3600 + fields.minute * 60 - fields.offset
    return np.asarray(whole + fields.second)


def as_row_times(values: Any, rows: int) -> Times:
    """Take the times of a table's rows; each row needs one."""
    times = times_of(values)
    if len(times.seconds) != rows:
        raise InputError(f"times has {len(times.seconds)} entries; the table has {rows} rows")
    if not np.isfinite(times.seconds).all():
        missing = int(np.flatnonzero(~np.isfinite(times.seconds))[0])
        raise InputError(f"times: row {missing} has none; every row needs its time")
    return times
