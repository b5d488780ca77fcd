"""Computes derived inputs: of whole tables in numpy, and sample by sample, with the same bits.

A sample is rounded to an integer of 23 bits, and everything up to the last step is exact arithmetic
of integers: sums can be updated with each sample for ever, and are still those of the window.
FORMAT.md, section 19, specifies it, and ``twin_window.c`` repeats it.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_float
from math import isqrt, nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.encoding.derived import (
    MOST_BITS,
    UNITS,
    Clock,
    Derived,
    Gap,
    Term,
    check_samples,
    format_terms,
    parse_terms,
)
from twinedge.encoding.times import NUMBERS, Notation
from twinedge.errors import InputError
from twinedge.wording import quoted

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LARGEST = 2**22 - 1  # of a quantised sample
MISSING = -(2**31)
_HALF_RANGE = 2.0**21  # of the values seen at first: others may reach twice as far
_MEAN_BITS, _SLOPE_BITS, _ROOT_BITS = 10, 18, 10
_DIGITS = 24  # of a float32
_WHOLE = 2**_DIGITS  # integers up to here are float32 numbers
_RATES = (1000.0, 1.0, 0.001)  # ticks of a second, from the finest
_EVEN = 0.9  # share of steps that are the usual one, to within _OFF, in an even table
_OFF = 0.1
_EVEN_GAP, _GAP = 1.5, 10.0  # usual steps


# -- What is known once ------------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows of a table as streams.

    Parameters
    ----------
    order : array of int, shape (n,)
        Rows in order: stream after stream, each by time.
    begins : array of bool, shape (n,)
        In that order, whether a row follows nothing: the first of its stream, or after a gap.
    """

    order: Integers
    begins: npt.NDArray[np.bool_]


def clock_of(
    time: str,
    notation: Notation,
    group: str | None,
    times: Floats,
    groups: Any | None,
    wanted: Gap | None = None,
) -> Clock:
    """Find out how often rows were sampled, and how long a step is a gap.

    A gap is a step that is longer than ``wanted``. By default, in an evenly sampled table it is one
    of more than one and a half periods; in others, of more than ten times the usual step.
    """
    order = _order(times, groups)
    steps = np.diff(times[order])
    if groups is not None:
        steps = steps[groups[order][1:] == groups[order][:-1]]
    steps = steps[steps > 0]
    if not len(steps):
        raise InputError(
            f"column {quoted(time)} has no two different times"
            f"{'' if groups is None else ' in a group'}: there is no order to derive inputs from"
        )
    period = float(np.median(steps))
    if wanted is None:
        gap = period * (_EVEN_GAP if _is_even(steps, period) else _GAP)
    elif not wanted.unit:
        gap = period * wanted.length
    elif notation.unit == NUMBERS:
        raise InputError(
            f"gap {quoted(str(wanted))}: column {quoted(time)} has no unit of time; give a number "
            "of usual steps instead"
        )
    else:
        gap = wanted.length * UNITS[wanted.unit]
    for rate in _RATES:
        ticks = int(np.floor(gap * rate + 0.5))
        if ticks < 2**31:
            break
    if not 0 < ticks < 2**31:
        raise InputError(
            f"column {quoted(time)}: a gap of {gap:g}, where the usual step is {period:g}, is out "
            "of range"
        )
    return Clock(time, notation, group, rate, ticks, period)


def _is_even(steps: Floats, period: float) -> bool:
    return bool(np.mean(np.abs(steps - period) <= _OFF * period) >= _EVEN)


def _order(times: Floats, groups: Any | None) -> Integers:
    keys = (times,) if groups is None else (times, groups)
    return np.lexsort(keys).astype(np.int64)


def rows_of_streams(clock: Clock, times: Floats, groups: Any | None) -> Rows:
    """Sort rows into streams, and find the gaps in them."""
    order = _order(times, groups)
    begins = np.zeros(len(order), bool)
    begins[:1] = True
    ticks = ticks_of(times[order], clock)
    begins[1:] = np.diff(ticks) % 2**32 > clock.gap
    if groups is not None:
        begins[1:] |= groups[order][1:] != groups[order][:-1]
    return Rows(order, begins)


def ticks_of(times: Floats, clock: Clock) -> Integers:
    """Round times in seconds to ticks."""
    return np.floor(times * clock.ticks + 0.5).astype(np.int64)


def resolve(terms: Sequence[Term], clock: Clock, times: Floats, groups: Any | None) -> list[int]:
    """Turn spans of time into numbers of samples."""
    text, found = format_terms(terms), []
    for one in parse_terms(text):
        samples = int(one.length)
        if one.unit:
            _check_even(one, clock, times, groups)
            samples = int(np.floor(one.length * UNITS[one.unit] / clock.period + 0.5))
            check_samples(text, one, samples)
        found.append(samples)
    return found


def _check_even(term: Term, clock: Clock, times: Floats, groups: Any | None) -> None:
    right = "give a number of samples instead"
    if clock.notation.unit == NUMBERS:
        raise InputError(f"derive {term}: column {quoted(clock.time)} has no unit of time; {right}")
    rows = rows_of_streams(clock, times, groups)
    steps = np.diff(times[rows.order])[~rows.begins[1:]]
    if not _is_even(steps, clock.period):
        raise InputError(
            f"derive {term}: rows are not evenly sampled: their steps are {steps.min():g} to "
            f"{steps.max():g} seconds, often other than {clock.period:g}; {right}"
        )


def quantisation(name: str, values: Floats) -> tuple[float, int]:
    """Choose centre and binary places of a column from its values ``(n,)``."""
    present = values[np.isfinite(values)].astype(np.float32).astype(np.float64)
    if not len(present):
        raise InputError(f"column {quoted(name)} has no value to derive an input from")
    low, high = float(present.min()), float(present.max())
    centre = float(np.float32(low / 2 + high / 2))
    reach = max(high - centre, centre - low)
    if reach == 0:
        return centre, 0
    bits = int(np.floor(np.log2(_HALF_RANGE / reach)))
    if abs(bits) > MOST_BITS:
        size = "little" if bits > 0 else "much"
        raise InputError(
            f"column {quoted(name)} varies too {size} to derive an input from, by {reach:g}; "
            "change its unit"
        )
    return centre, bits


# -- A table -----------------------------------------------------------------------------------


def derive(
    derived: Sequence[Derived], columns: Mapping[str, Floats], rows: Rows
) -> tuple[list[Floats], Integers]:
    """Derive inputs from whole columns.

    Parameters
    ----------
    derived : sequence of Derived
        What to derive.
    columns : mapping of str to array of shape (n,)
        Samples; NaN is a missing one.
    rows : Rows
        How they follow each other.

    Returns
    -------
    values : list of array of shape (n,)
        For each row of the columns, float32 numbers; NaN where a sample of the window is missing,
        or there are too few.
    start : array of int, shape (n,)
        First row of the longest window that ends at each row; -1 where there is none.
    """
    n = len(rows.order)
    at = np.arange(n)
    first = np.maximum.accumulate(np.where(rows.begins, at, 0)) if n else at
    found = []
    for one in derived:
        q = quantise(columns[one.column][rows.order], one.centre, one.bits)
        known = at - np.maximum.accumulate(np.where(q == MISSING, at, first - 1))
        values = np.full(n, np.nan)
        values[rows.order] = _over_table(one, q, known, at - first + 1)
        found.append(values)
    longest = max((one.window for one in derived), default=1)
    start = np.full(n, -1)
    full = at - first + 1 >= longest
    start[rows.order[full]] = rows.order[at[full] - longest + 1]
    return found, start


def quantise(values: npt.ArrayLike, centre: float, bits: int) -> Integers:
    """Round samples to integers."""
    x = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        t = (x.astype(np.float32) - np.float32(centre)).astype(np.float64) * 2.0**bits
    gone = np.isnan(t)
    twice: Integers = np.trunc(2 * np.clip(np.where(gone, 0, t), -LARGEST, LARGEST)).astype(
        np.int64
    )
    return np.asarray(np.where(gone, MISSING, (twice + 1 - (twice < 0)) >> 1), np.int64)


def _over_table(one: Derived, q: Integers, known: Integers, count: Integers) -> Floats:
    """Values of one input, in the order of the streams; ``known`` in a row, of ``count``."""
    n = one.samples
    if one.statistic == "lag":
        before = _earlier(q, n)
        return _placed(one, before, 0, (count > n) & (before != MISSING))
    full = known >= one.window
    q = np.where(q == MISSING, 0, q)
    if one.statistic == "delta":
        return _placed(one, q - _earlier(q, n), 0, full)
    if one.statistic in ("min", "max"):
        return _placed(one, _extreme(q, n, one.statistic == "min"), 0, full)
    total = _window_sum(q, n)
    if one.statistic == "mean":
        return _placed(one, _ratio(total << _MEAN_BITS, n), _MEAN_BITS, full)
    if one.statistic == "slope":
        at = np.arange(len(q))
        # Sums wrap around, but those of one window fit.
        weighted = _window_sum(at * q, n) - (at - n + 1) * total
        slope = 6 * (2 * weighted - (n - 1) * total)
        slope = np.where(full, slope, 0)
        return _placed(one, _ratio(slope << _SLOPE_BITS, n * (n * n - 1)), _SLOPE_BITS, full)
    squares = _window_sum(q * q, n)
    values = np.full(len(q), np.nan)
    unit = 2.0 ** -(one.bits + _ROOT_BITS)
    for row in np.flatnonzero(full).tolist():
        root, halvings = _root(n * int(squares[row]) - int(total[row]) ** 2)
        values[row] = _shortened((root << _ROOT_BITS) // n) * unit * 2.0**-halvings
    return values


def _earlier(q: Integers, n: int) -> Integers:
    """Values of ``n`` samples ago; missing at the beginning."""
    return np.concatenate([np.full(n, MISSING), q])[: len(q)]


def _window_sum(values: Integers, n: int) -> Integers:
    """Sum over the last ``n`` values, modulo 2^64; over fewer at the beginning."""
    sums = np.cumsum(values, dtype=np.int64)
    sums[n:] -= sums[:-n].copy() if len(sums) > n else sums[:0]
    return sums


def _extreme(q: Integers, n: int, least: bool) -> Integers:
    """Least or largest of the last ``n``, by blocks: the end of one and the start of the next."""
    of = np.minimum if least else np.maximum
    blocks = np.concatenate([q, np.zeros(-len(q) % n, np.int64)]).reshape(-1, n)
    ahead = of.accumulate(blocks, axis=1).ravel()
    behind = of.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    found: Integers = ahead[: len(q)].copy()
    found[n - 1 :] = of(ahead[n - 1 : len(q)], behind[: max(len(q) - n + 1, 0)])
    return found


def _ratio(values: Integers, divisor: int) -> Integers:
    """Divide, to the nearest integer, halves away from zero."""
    return np.asarray(np.sign(values) * ((np.abs(values) + divisor // 2) // divisor), np.int64)


def _root(square: int) -> tuple[int, int]:
    """Root of a number below 2^64 with 32 digits, and how often it is to be halved."""
    halvings = (64 - square.bit_length()) // 2 if square else 0
    return isqrt(square << (2 * halvings)), halvings


def _shortened(value: int) -> int:
    """Keep the 24 most significant binary digits."""
    surplus = max(abs(value).bit_length() - _DIGITS, 0)
    return (abs(value) >> surplus << surplus) * (1 if value >= 0 else -1)


def _placed(one: Derived, values: Integers, more: int, valid: npt.NDArray[np.bool_]) -> Floats:
    """Turn integers of ``2**-(bits + more)`` into float32 numbers."""
    size = np.abs(values)
    surplus = np.maximum(np.frexp(size.astype(np.float64))[1] - _DIGITS, 0)
    # A float64 may have rounded up to the next power of two.
    surplus = np.where((size >> surplus) >> (_DIGITS - 1) == 0, np.maximum(surplus - 1, 0), surplus)
    short = np.sign(values) * (size >> surplus << surplus)
    found = (short * 2.0 ** -(one.bits + more)).astype(np.float32)
    if one.statistic in _PLACES:
        with np.errstate(over="ignore"):
            found = found + np.float32(one.centre)
    return np.where(valid, found.astype(np.float64), np.nan)


_PLACES = ("lag", "min", "max", "mean")  # the others are differences: the centre cancels


# -- In C --------------------------------------------------------------------------------------


class WindowSource(NamedTuple):
    """A column that inputs are derived from, as ``twin_source`` of ``twin_window.h`` has it."""

    column: str
    inputs: tuple[Derived, ...]
    centre: float
    bits: int
    length: int


def sources_of(derived: Sequence[Derived]) -> list[WindowSource]:
    """Collect derived inputs by the column that they are derived from."""
    columns: dict[str, list[Derived]] = {}
    for one in derived:
        columns.setdefault(one.column, []).append(one)
    return [
        WindowSource(
            name, tuple(some), some[0].centre, some[0].bits, max(one.samples for one in some)
        )
        for name, some in columns.items()
    ]


def window_bytes(derived: Sequence[Derived]) -> int:
    """Return the bytes of memory of a stream in C, as ``twin_window_size`` does.

    Examples
    --------
    >>> window_bytes([Derived("mean", "temp", 12, 20.0, 16, Clock("t", Notation(), None, 1, 9, 6))])
    72
    """
    size = 0
    for source in sources_of(derived):
        kinds = [one.statistic for one in source.inputs]
        ends = sum(one.samples + 2 for one in source.inputs if one.statistic in ("min", "max"))
        ring = 4 * source.length + 4 + 2 * ends
        size += 16 * sum(one in ("mean", "std", "slope") for one in kinds) + -(-ring // 8) * 8
    return size


_STATE = 16  # bytes of a twin_window where pointers have 32 bits


def memory_of(derived: Sequence[Derived]) -> int:
    """Return all RAM that a stream takes on a device; 0 if nothing is derived."""
    return _STATE + window_bytes(derived) if derived else 0


# -- A stream ----------------------------------------------------------------------------------


class Window:
    """The last samples of one stream, and what is derived from them.

    Parameters
    ----------
    derived : sequence of Derived
        What to derive.

    Attributes
    ----------
    when : int or None
        Time of the last sample, in ticks.
    longest : int
        How many samples it holds when it is full.

    Examples
    --------
    >>> clock = Clock("t", Notation(), None, 1.0, 90, 60.0)
    >>> window = Window([Derived("mean", "temp", 3, 20.0, 16, clock)])
    >>> [window.push({"temp": temp}, when) for temp, when in [(20, 0), (21, 60), (25, 120)]]
    [[nan], [nan], [22.0]]
    >>> window.push({"temp": 20}, 900), window.lacks  # after a gap
    ([nan], 2)
    """

    def __init__(self, derived: Sequence[Derived]) -> None:
        self._derived = tuple(derived)
        self.longest = max((one.window for one in derived), default=1)
        self._gap = derived[0].clock.gap if derived else 2**32
        self._lengths: dict[str, int] = {}
        for one in derived:
            self._lengths[one.column] = max(self._lengths.get(one.column, 0), one.window)
        self.when: int | None = None
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._count = 0
        self._columns: dict[str, _Column] = {}
        for one in self._derived:
            self._columns.setdefault(one.column, _Column(one, self._lengths[one.column]))
        self._steps = [
            (self._columns[one.column], _STEPS.get(one.statistic, _of_sums)(one))
            for one in self._derived
        ]

    @property
    def lacks(self) -> int:
        """How many more samples it needs before its inputs are known."""
        return self.longest - self._count

    def push(self, sample: Mapping[str, float], when: int | None = None) -> list[float]:
        """Add a sample.

        Parameters
        ----------
        sample : mapping of str to float
            Value of each column that something is derived from; NaN if it is missing.
        when : int, optional
            Time in ticks. After a step that is longer than the gap, or back in time, the window
            begins anew. Without a time, the sample follows the one before.

        Returns
        -------
        list of float
            The derived inputs; NaN for those that are not known.
        """
        if when is not None:
            if self.when is not None and (when - self.when) % 2**32 > self._gap:
                self.reset()
            self.when = when
        for name, column in self._columns.items():
            column.take(column.rounded(sample[name]))
        return self._add()

    def _add(self) -> list[float]:
        """Derive all inputs, and keep the samples that the columns have taken."""
        found = [step(column.q, column.ring, column.known) for column, step in self._steps]
        for column in self._columns.values():
            column.ring.append(column.q)
        if self._count < self.longest:
            self._count += 1
        return found

    @property
    def state(self) -> dict[str, Any]:
        """The last samples, in a form that JSON can hold: all that there is to remember."""
        return {
            "when": self.when,
            "count": self._count,
            "samples": {name: list(one.ring) for name, one in self._columns.items()},
        }

    def restore(self, state: Any) -> None:
        """Continue from what ``state`` was; a KeyError or TypeError if it is of other windows."""
        count, when = state["count"], state["when"]
        samples = {name: state["samples"][name] for name in self._columns}
        if type(count) is not int or not (when is None or type(when) is int):
            raise TypeError
        lengths = {name: min(count, self._lengths[name]) for name in self._columns}
        if not 0 <= count <= self.longest or any(
            len(one) != lengths[name] for name, one in samples.items()
        ):
            raise KeyError
        if not all(
            type(q) is int and (abs(q) <= LARGEST or q == MISSING)
            for one in samples.values()
            for q in one
        ):
            raise TypeError
        self.reset()
        for back in range(min(count, max(self._lengths.values(), default=0)), 0, -1):
            # A column that needs fewer samples has none so long ago: what it had does not matter.
            for name, one in samples.items():
                self._columns[name].take(one[-back] if back <= len(one) else MISSING)
            self._add()
        self._count, self.when = count, when


class _Column:
    """The last samples of a column; how many known ones there were in a row, and the newest."""

    def __init__(self, of: Derived, length: int) -> None:
        self._centre, self._gain = of.centre, 2.0**of.bits
        self.ring: deque[int] = deque(maxlen=length)
        self.known, self.q = 0, MISSING

    def rounded(self, value: float) -> int:
        """Round one sample, as ``quantise`` does."""
        t = c_float(c_float(value).value - self._centre).value * self._gain
        if t != t:
            return MISSING
        twice = int(2 * max(-LARGEST, min(t, LARGEST)))
        return (twice + 1 - (twice < 0)) >> 1

    def take(self, q: int) -> None:
        """Take the newest sample, which is not yet in the ring of those before it."""
        self.q = q
        self.known = 0 if q == MISSING else self.known + 1


# A derived input, sample by sample: from the newest sample, those before it, and how many known
# ones there were in a row. What it computes with is a float32 where C has one; a sum of two of them
# in float64 is rounded as their sum in float32 is.
_Step = Callable[[int, "deque[int]", int], float]


def _placing(one: Derived, more: int) -> Callable[[int], float]:
    """Return what turns an integer of ``2**-(bits + more)`` into a float32 number."""
    unit = 2.0 ** -(one.bits + more)
    centre = one.centre if one.statistic in _PLACES else 0.0

    def placed(value: int) -> float:
        if not -_WHOLE <= value <= _WHOLE:
            value = _shortened(value)
        return c_float(value * unit + centre).value

    return placed


def _lag(one: Derived) -> _Step:
    n, placed = one.samples, _placing(one, 0)

    def step(q: int, ring: "deque[int]", known: int) -> float:
        return nan if len(ring) < n or ring[-n] == MISSING else placed(ring[-n])

    return step


def _delta(one: Derived) -> _Step:
    n, placed = one.samples, _placing(one, 0)

    def step(q: int, ring: "deque[int]", known: int) -> float:
        return nan if known <= n else placed(q - ring[-n])

    return step


def _extreme_step(one: Derived) -> _Step:
    n, placed = one.samples, _placing(one, 0)
    sign = 1 if one.statistic == "min" else -1
    best: deque[tuple[int, int]] = deque()  # candidates, and when each was added
    now = 0

    def step(q: int, ring: "deque[int]", known: int) -> float:
        nonlocal now
        now += 1
        if q == MISSING:
            best.clear()
            return nan
        q *= sign
        while best and q <= best[-1][0]:
            best.pop()
        best.append((q, now))
        if best[0][1] <= now - n:
            best.popleft()
        return nan if known < n else placed(sign * best[0][0])

    return step


def _of_sums(one: Derived) -> _Step:
    n, statistic = one.samples, one.statistic
    slope, deviation = statistic == "slope", statistic == "std"
    more = {"mean": _MEAN_BITS, "slope": _SLOPE_BITS, "std": _ROOT_BITS}[statistic]
    placed = _placing(one, more)
    total = second = 0

    def step(q: int, ring: "deque[int]", known: int) -> float:
        nonlocal total, second
        new = 0 if q == MISSING else q
        old = ring[-n] if len(ring) >= n else 0
        old = 0 if old == MISSING else old
        if slope:  # all before move one place back, where the oldest is at 0
            second += (n - 1) * new - (total - old)
        elif deviation:
            second += new * new - old * old
        total += new - old
        if known < n:
            return nan
        if slope:
            steps = 6 * (2 * second - (n - 1) * total) << _SLOPE_BITS
            return placed(_whole_ratio(steps, n * (n * n - 1)))
        if deviation:
            root, halvings = _root(n * second - total * total)
            return float(
                _shortened((root << _ROOT_BITS) // n) * 2.0 ** -(one.bits + more + halvings)
            )
        return placed(_whole_ratio(total << _MEAN_BITS, n))

    return step


_STEPS = {"lag": _lag, "delta": _delta, "min": _extreme_step, "max": _extreme_step}


def _whole_ratio(value: int, divisor: int) -> int:
    return (abs(value) + divisor // 2) // divisor * (1 if value >= 0 else -1)
