"""From a time to inputs of a network: where it lies in the day, the week and the year.

A *calendar* column has six inputs: sine and cosine of three phases, so that 23:59 is next to 0:00
and December next to January. Everything up to the last step is arithmetic of integers, which C
repeats to the bit with any compiler; docs/data.md specifies it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.encoding.times import NUMBERS, TICKS, Notation, format_time, read_times, times_of
from twinedge.errors import InputError
from twinedge.wording import quoted

Floats = npt.NDArray[np.float64]

# Cycles in seconds, and the time of 1970 at which they began: the week on a Monday. The year is the
# mean one of the Gregorian calendar, so that a date keeps its phase to within two days for ever.
CYCLES = {"day": (86_400, 0), "week": (604_800, -259_200), "year": (31_556_952, 0)}
WAVES = ("sin", "cos")
# A quarter of a cycle is 2^24 steps, which a float32 tells apart.
QUARTER_BITS = 24
# sin(pi/2 t) = t (c0 - z (c1 - z (c2 - z (c3 - z c4)))) with z = t^2, off by at most 4e-9; in
# units of 2^-30.
SINE = (1_686_629_674, 693_597_876, 85_564_854, 5_016_767, 161_942)
_SINE_BITS = 30

_QUARTER = 1 << QUARTER_BITS
_LABELS = tuple(f"{cycle} {wave}" for cycle in CYCLES for wave in WAVES)
_YEARS = 400  # in which dates and weekdays repeat
_ENDS = -62_135_596_800, 253_402_300_799  # the years 1 and 9999


class Calendar(NamedTuple):
    """A column of times.

    Parameters
    ----------
    notation : Notation
        How the training rows write their times.
    first, last : int
        Earliest and latest time in training, in seconds since 1970, UTC.
    """

    notation: Notation = Notation()
    first: int = 0
    last: int = 0

    @property
    def width(self) -> int:
        """Number of inputs it takes."""
        return len(_LABELS)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each input stands for."""
        return _LABELS

    @property
    def middle(self) -> int:
        """A time amid those of training, at a full hour."""
        return (self.first + self.last) // 2 // 3600 * 3600

    @property
    def described(self) -> dict[str, Any]:
        """What it is, in a form that JSON can hold."""
        return {**self.notation._asdict(), "first": self.first, "last": self.last}

    @classmethod
    def of(cls, described: Any) -> "Calendar":
        """Read what ``described`` wrote; a TypeError or KeyError if it is damaged."""
        day_first, unit = described["day_first"], described["unit"]
        first, last = described["first"], described["last"]
        if not (day_first in (None, True, False) and unit in (None, *TICKS)):
            raise KeyError
        if not all(isinstance(one, int) and _ENDS[0] <= one <= _ENDS[1] for one in (first, last)):
            raise TypeError
        return cls(Notation(day_first, unit), first, last)

    @classmethod
    def learn(cls, name: str, seconds: Floats, notation: Notation) -> "Calendar":
        """Remember how training rows write their times, and which they have.

        Parameters
        ----------
        name : str
            Name of the column.
        seconds : array of shape (n,)
            Times of training rows, in seconds since 1970.
        notation : Notation
            How they are written.
        """
        if notation.unit == NUMBERS:
            raise InputError(
                f"column {quoted(name)} holds numbers such as {seconds[0]:g}, which are no times: "
                "a calendar needs dates, or seconds since 1970"
            )
        return cls(notation, int(np.floor(seconds.min())), int(np.floor(seconds.max())))

    def read(self, cells: Any, name: str) -> Floats:
        """Read cells of any kind as times.

        Parameters
        ----------
        cells : array of shape (n,), of any library
            Dates of any kind, or numbers: seconds since 1970, or whatever unit the training rows
            counted in.
        name : str
            Name of the column.

        Returns
        -------
        array of shape (n,)
            Seconds since 1970; NaN where a cell is missing.

        Raises
        ------
        InputError
            If a cell holds no time.
        """
        values = np.asarray(cells)
        if values.dtype.kind in "iuf":
            return values / TICKS[self.notation.unit or "seconds"]
        if values.dtype.kind == "M":
            return times_of(values).seconds
        found = np.full(len(values), np.nan)
        known: dict[str, float] = {}
        for row, cell in enumerate(values.astype(object).tolist()):
            if isinstance(cell, int | float | np.number) and not isinstance(cell, bool):
                found[row] = float(cell) / TICKS[self.notation.unit or "seconds"]
                continue
            text = "" if cell is None else str(cell)
            if text not in known:
                known[text] = self.time_of(text, f"column {quoted(name)}")
            found[row] = known[text]
        return found

    def time_of(self, text: str, where: str) -> float:
        """Read one cell: seconds since 1970, NaN if it is missing.

        Raises
        ------
        InputError
            If it holds no time; the message starts with ``where``.
        """

        def refuse(_: int, wrong: str, right: str) -> None:
            raise InputError(f"{where}: {wrong}{right}")

        read = read_times([text], self.notation, refuse)
        if read.notation.unit == NUMBERS:
            refuse(0, f"{quoted(text)} is no time", "; write a date, or seconds since 1970")
        return float(read.seconds[0])

    def format(self, seconds: int) -> str:
        """Write a time as ISO 8601, which every table may hold, whatever its notation."""
        return format_time(float(seconds), Notation())

    def seconds(self, inputs: Floats) -> int:
        """Find a time with these inputs ``(6,)``, exactly or, if there is none, nearly.

        Dates and weekdays repeat every 400 years, so that it is one of many; it is the one next to
        the times of training.
        """
        pairs = np.reshape(np.asarray(inputs, np.float64), (len(CYCLES), 2))
        phases = np.arctan2(pairs[:, 0], pairs[:, 1]) / (2 * np.pi) % 1
        day, _, year = (np.array([length for length, _ in CYCLES.values()]) * phases).tolist()
        length = CYCLES["year"][0]
        starts = (self.middle // length + np.arange(-_YEARS // 2, _YEARS // 2)) * length
        days = np.rint((starts + year - day) / 86_400).astype(np.int64)
        # The day before and the day after, since the year is known less well than the hour.
        times = (days[:, None] + np.arange(-1, 2)).ravel() * 86_400 + round(day)
        off = np.abs(waves(times) - pairs.ravel()).max(axis=1)
        best = times[off == off.min()]
        return int(best[np.abs(best - self.middle).argmin()])


def waves(seconds: npt.ArrayLike) -> Floats:
    """Sine and cosine of day, week and year ``(n, 6)``: float32 numbers, in [-1, 1].

    Parameters
    ----------
    seconds : array of shape (n,), int64
        Seconds since 1970, UTC.

    Examples
    --------
    >>> waves([0, 6 * 3600])[:, 0].tolist()  # at midnight, and at 6 o'clock in the morning
    [0.0, 1.0]
    """
    times = np.asarray(seconds, np.int64)
    found = np.empty((len(times), len(_LABELS)))
    for k, (length, start) in enumerate(CYCLES.values()):
        # The start is less than a cycle away, so that no sum leaves the integers.
        since = (times % length - start) % length
        steps = ((since << (QUARTER_BITS + 2)) + length // 2) // length
        quarter, t = (steps >> QUARTER_BITS) & 3, (steps & (_QUARTER - 1)).astype(np.uint64)
        rising, falling = _sine(t), _sine(np.uint64(_QUARTER) - t)
        for wave in (0, 1):
            turn = (quarter + wave) & 3
            size = np.where(turn & 1, falling, rising)
            found[:, 2 * k + wave] = np.where(turn & 2, -size, size)
    return found


def _sine(t: npt.NDArray[np.uint64]) -> Floats:
    """Sine of t / 2^24 right angles, to a multiple of 2^-24."""
    one = np.uint64(_SINE_BITS)
    z = (t * t + np.uint64(1 << 17)) >> np.uint64(18)
    first, *rest = SINE[::-1]
    sum_ = np.full(t.shape, first, np.uint64)
    for term in rest:
        sum_ = np.uint64(term) - ((sum_ * z) >> one)
    whole = (t * sum_ + np.uint64(1 << (_SINE_BITS - 1))) >> one
    return whole.astype(np.float64) / _QUARTER
