"""A watch over a device in Python: the counts, flags and adapted intervals of ``twin_watch.h``.

All of it is in integers, so the same predictions and true values lead to the same 72 bytes here and
on a microcontroller. The comments of ``firmware_ref/src/twin_watch.c`` say why it is as it is;
docs/watch.md says what it promises.
"""

import zlib
from collections import OrderedDict
from dataclasses import replace
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.pack.writer import intervals_bytes
from twinedge.runtime import reference
from twinedge.runtime.device import Device, Prediction
from twinedge.runtime.pack_device import PackDevice
from twinedge.runtime.sample_streams import MOST_STREAMS

FLAGS = ("outside", "scale", "above", "below", "worse")  # from the lowest bit
BYTES = 72

_OUTSIDE, _SCALE, _ABOVE, _BELOW, _WORSE = range(5)
_ONE = 1024
_LARGEST_RATIO = _FORGET = 65535
_RATE, _STEP = 40, 1000
_ALL = _RATE * 1000
_IN_DEBT = 1 << 20
_ENOUGH = 32 * _ONE
_USUAL_BIAS, _USUAL_SCALE, _MOST_SCALE = _ONE // 4, _ONE + _ONE // 2, 3 * _ONE
_WIDEST = 2**32 - 1  # quantile of an interval that covers everything
_FARTHEST = 2**31 - 1  # half of an interval, at most
_MAGIC = 0x575754 | 1 << 24
_STATE = Struct("<IIIii12I")  # without the checksum


class Given(NamedTuple):
    """A prediction that was made, in the integers of the pack: what a true value is compared with.

    ``scale`` is in sixteenths; ``low`` and ``high`` are the ends of the interval at the time.
    """

    mean: int
    scale: int
    low: int
    high: int


class Watched(NamedTuple):
    """Predictions of ``n`` queries with adapted intervals.

    ``flags`` are those raised after each of them, and ``given`` what ``Watch.add_target`` takes.
    """

    prediction: Prediction
    flags: list[list[str]]
    given: list[Given]


class Watch:
    """Watches a device: do queries look like those of training, and do intervals hold?

    Parameters
    ----------
    device : PackDevice
        A device with intervals for one target.
    coverage : float, optional
        What intervals should cover, one of the device's; by default its usual one.

    Attributes
    ----------
    flags : list of str
        Those of ``FLAGS`` that were raised and not cleared.
    coverage, outside, scale : float
        Share of the true values that intervals covered; share of queries with a feature outside
        its range; mean scale, relative to that in calibration. 0 as long as there is no data.

    Raises
    ------
    InputError
        If the device has no such intervals, or several targets.
    """

    def __init__(self, device: PackDevice, coverage: float | None = None) -> None:
        if not isinstance(device, PackDevice) or device.pack.intervals is None:
            raise InputError(f"{device.info['file']} has no intervals: there is nothing to watch")
        if device.targets > 1:
            raise InputError(f"{device.info['file']} has several targets: a watch is for one")
        wanted = device.usual_coverage if coverage is None else coverage
        self._device, self._pack = device, device.pack
        self._intervals = device.pack.intervals
        self._table = [
            (level, quantile)
            for level, quantile in self._intervals.quantiles.items()
            if 0 < level < 1000
        ]
        self._level = device.check_coverage(wanted)
        self._mark = zlib.crc32(intervals_bytes(device.pack.intervals)) ^ 0xFFFFFFFF
        self._alpha, self._owed = _ALL - _RATE * self._level, 0
        self._stretch, self._flags = _ONE, 0
        self._sums = [0] * 5
        self._predictions = self._outside = self._scales = self._targets = self._covered = 0
        self.quantile = self._intervals.quantiles[self._level]

    @property
    def flags(self) -> list[str]:
        """Flags that were raised and not cleared."""
        return [name for number, name in enumerate(FLAGS) if self._flags >> number & 1]

    @property
    def coverage(self) -> float:
        """Share of the true values that their intervals covered."""
        return self._covered / self._targets if self._targets else 0.0

    @property
    def outside(self) -> float:
        """Share of the queries with a feature outside its range."""
        return self._outside / self._predictions if self._predictions else 0.0

    @property
    def scale(self) -> float:
        """Mean scale of the predictions, relative to that in calibration."""
        return self._scales / self._predictions / _ONE if self._predictions else 0.0

    def clear(self) -> None:
        """Clear all flags that were raised; each test then starts over."""
        for number in range(len(FLAGS)):
            if self._flags >> number & 1:
                self._sums[number] = 0
        self._flags = 0

    # -- Predictions and true values ------------------------------------------------------------

    def predict(
        self, x: Array, device: Device | None = None, neighbors: int | None = None
    ) -> Watched:
        """Predict queries ``(n, f)``, with the adapted interval, and count them.

        Another ``device`` has the same pack, and has learnt other points.
        """
        device = device or self._device
        assert isinstance(device, PackDevice)
        found = device.predict_all(x, None, neighbors)
        mean, scale, outside = device.in_integers(x, neighbors)
        adapted = replace(self._intervals, quantiles={self._level: self.quantile})
        bounds = reference.bounded(replace(self._pack, intervals=adapted), mean, scale, self._level)
        flags = []
        for one, is_outside in zip(scale.tolist(), outside.tolist(), strict=True):
            self.add_prediction(one, is_outside)
            flags.append(self.flags)
        columns = (mean, scale, bounds.raw_low, bounds.raw_high)
        given = [Given(*one) for one in zip(*(each.tolist() for each in columns), strict=True)]
        return Watched(found._replace(low=bounds.low, high=bounds.high), flags, given)

    def add_target(self, given: Given, y: float) -> None:
        """Add the true value of a prediction, in any order, late, for all or for some.

        The next prediction has the adapted interval.
        """
        if not np.isfinite(y):
            return
        target = int(reference.estimates_of(self._pack, np.array([y], np.float32))[0])
        if target == reference.NO_ESTIMATE:  # too far off, to either side
            mean = reference.targets_of(self._pack, np.array([given.mean], np.int32))[0]
            target = 2**31 - 1 if y > mean else 1 - 2**31
        self.add_target_raw(given, target)

    def add_prediction(self, scale: int, outside: bool) -> None:
        """Count a prediction in the integers of the pack."""
        ratio = _ratio(scale, self._intervals.typical)
        self._predictions += 1
        self._outside += outside
        self._scales += ratio
        if self._predictions > _FORGET:
            self._predictions >>= 1
            self._outside >>= 1
            self._scales >>= 1
        usual = self._usual(self._intervals.outside >> 6, 8)
        self._test(_OUTSIDE, _ONE if outside else 0, usual)
        self._test(_SCALE, min(ratio, _MOST_SCALE), _USUAL_SCALE + self._rows(8))

    def add_target_raw(self, given: Given, target: int) -> None:
        """Count a true value in the integers of the pack."""
        above = target > given.mean
        level, quantile = self._error_level
        off = abs(target - given.mean)
        half = min(quantile * given.scale >> 20, _FARTHEST)
        now = off > min(self.quantile * given.scale >> 20, _FARTHEST)
        missed = target < given.low or target > given.high
        error = _ratio(off, half)
        self._steer(error, missed, now)
        self._adapt()
        self._targets += 1
        self._covered += not missed
        if self._targets > _FORGET:
            self._targets >>= 1
            self._covered >>= 1
        score = min(error, _ONE) if above else -min(error, _ONE)
        self._test(_ABOVE, _ONE + score, _ONE + _USUAL_BIAS)
        self._test(_BELOW, _ONE - score, _ONE + _USUAL_BIAS)
        self._test(_WORSE, _ONE if error > _ONE else 0, self._usual(1000 - level, 6))

    def _steer(self, error: int, missed: bool, now: bool) -> None:
        aim = 1000 - self._level
        owed = _clip(_toward_zero(self._owed, 256), -aim, aim)
        self._alpha = _clip(self._alpha + aim - owed - now * _STEP, -_STEP, _ALL + _STEP)
        self._owed = _clip(self._owed + (missed - now) * _STEP - owed, -_IN_DEBT, _IN_DEBT)
        if error > self._stretch:
            self._stretch += self._stretch // 16
        elif self._stretch > _ONE // 4:
            self._stretch -= self._stretch // 128

    def _adapt(self) -> None:
        quantile = self._quantile_of(self._alpha)
        if self._stretch > _ONE:
            quantile = quantile * self._stretch >> 10
        self.quantile = min(quantile, _WIDEST)

    def _quantile_of(self, alpha: int) -> int:
        """Return the quantile at which intervals leave out ``alpha``."""
        if alpha <= 0:
            return _WIDEST
        if alpha >= _ALL:
            return 0
        level = quantile = 0
        wanted = _ALL - alpha
        for each, value in self._table:
            above = _RATE * each
            if above <= level or value < quantile:
                continue
            if wanted <= above:
                return quantile + (value - quantile) * (wanted - level) // (above - level)
            level, quantile = above, value
        while True:
            above = level + (_ALL - level + 1) // 2
            more = min(quantile // 4 + 1, _WIDEST - quantile)
            if wanted <= above:
                return quantile + more * (wanted - level) // (above - level)
            level, quantile = above, quantile + more

    def _test(self, number: int, score: int, usual: int) -> None:
        total = max(self._sums[number] + score - usual, 0)
        if total >= _ENOUGH:
            total = _ENOUGH
            self._flags |= 1 << number
        self._sums[number] = total

    def _rows(self, rows: int) -> int:
        return rows * _ONE // (self._intervals.rows or 1) + 1

    def _usual(self, share: int, rows: int) -> int:
        return share + min((_ONE - share) // 2, share) + self._rows(rows)

    @property
    def _error_level(self) -> tuple[int, int]:
        """The level whose interval errors are compared with, and its quantile."""
        levels = list(self._intervals.quantiles.items())
        found = levels[0]
        for one in levels[1:]:
            if one[0] > 900:
                break
            found = one
        return found

    # -- Across restarts ------------------------------------------------------------------------

    def save(self) -> bytes:
        """Return the watch as bytes, those of ``twin_watch_save``."""
        counts = self._predictions, self._outside, self._scales, self._targets, self._covered
        about = self._mark, self._level, self._alpha, self._owed, self._stretch, self._flags
        data = _STATE.pack(_MAGIC, *about, *self._sums, *counts)
        return data + (zlib.crc32(data) ^ 0xFFFFFFFF).to_bytes(4, "little")

    def restore(self, data: bytes) -> None:
        """Continue from saved bytes, also those of a microcontroller.

        Raises
        ------
        InputError
            If they are damaged, or belong to another pack; nothing has changed then.
        """
        if len(data) != BYTES or data[:3] != b"TWW":
            raise InputError("it is no state of a watch")
        if data[3] != 1:
            raise InputError(f"it is a state of a watch of version {data[3]}, not 1")
        if zlib.crc32(data[:-4]) ^ 0xFFFFFFFF != int.from_bytes(data[-4:], "little"):
            raise InputError("it is a damaged state of a watch")
        _, mark, level, alpha, owed, stretch, flags, *numbers = _STATE.unpack(data[:-4])
        if mark != self._mark or level != self._level:
            raise InputError("it is a state of a watch of another pack, or of another coverage")
        self._alpha, self._owed, self._stretch, self._flags = alpha, owed, stretch, flags
        self._sums = numbers[:5]
        self._predictions, self._outside, self._scales = numbers[5:8]
        self._targets, self._covered = numbers[8:]
        self._adapt()


class Watches:
    """A watch for each of many groups of queries that one pack answers.

    Parameters
    ----------
    device : PackDevice
        The device, as for ``Watch``.
    coverage : float, optional
        What intervals should cover.
    most : int
        Of how many groups there is a watch; the one that was silent for longest goes.
    """

    def __init__(
        self, device: Device, coverage: float | None = None, most: int = MOST_STREAMS
    ) -> None:
        if not isinstance(device, PackDevice):
            raise InputError(f"{device.info['file']} cannot be watched: only a .twin can")
        self._device, self._coverage, self._most = device, coverage, most
        self._watches: OrderedDict[str, Watch] = OrderedDict()
        Watch(device, coverage)  # refused now rather than later

    def of(self, group: str) -> Watch:
        """Return the watch of a group; a new one begins."""
        if group not in self._watches:
            self._watches[group] = Watch(self._device, self._coverage)
            if len(self._watches) > self._most:
                self._watches.popitem(last=False)
        self._watches.move_to_end(group)
        return self._watches[group]

    @property
    def state(self) -> dict[str, str]:
        """All watches, in a form that JSON can hold."""
        return {name: one.save().hex() for name, one in self._watches.items()}

    def restore(self, state: Any) -> None:
        """Continue from what ``state`` was.

        Raises
        ------
        InputError
            If it is damaged, or belongs to another pack; nothing has changed then.
        """
        watches: OrderedDict[str, Watch] = OrderedDict()
        try:
            for name, saved in list(state.items())[-self._most :]:
                watches[name] = Watch(self._device, self._coverage)
                watches[name].restore(bytes.fromhex(saved))
        except InputError:
            raise
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError("it is damaged") from error
        self._watches = watches


def _ratio(a: int, b: int) -> int:
    """1024 a / b, as the runtime rounds it, at most ``_LARGEST_RATIO``; 0 / 0 is 0."""
    if not a:
        return 0
    if a >> 6 >= b:
        return _LARGEST_RATIO
    while a >> 22:
        a >>= 1
        b >>= 1
    return min((a << 10) // b, _LARGEST_RATIO)


def _clip(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)


def _toward_zero(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)
