"""From samples to queries: the windows of any number of streams, and a file that keeps them.

A sample has the columns that were measured, a time, and the name of its stream. What is derived
from it and those before has the bits of a table in training, and of ``twin_window.h``. Samples
without a time count as measured now; in a table whose times were plain numbers there is no clock
to ask, and they follow each other without a gap.
"""

import hashlib
import json
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import is_record
from twinedge.encoding.times import NUMBERS, TICKS, Notation, read_times, times_of
from twinedge.encoding.windows import Window
from twinedge.errors import InputError
from twinedge.runtime.device import Device, Prediction
from twinedge.wording import plural, quoted

if TYPE_CHECKING:
    from twinedge.runtime.watch import Watches

MOST_STREAMS = 10_000
_KIND, _VERSION = "twinedge samples", 1
_LARGEST = 1 << 28  # bytes of a state


class Derivation(NamedTuple):
    """A query that follows from the samples of a stream.

    Parameters
    ----------
    query : list of float
        All inputs of the model; NaN for those that are missing or not known.
    lacks : int
        How many more samples it takes until the window is full; 0 for an answer.
    """

    query: list[float]
    lacks: int


class SampleStreams:
    """Windows over the last samples of streams.

    Parameters
    ----------
    encoding : Encoding
        Columns of the model.
    most : int
        Of how many streams samples are kept; the one that was silent for longest goes.

    Attributes
    ----------
    longest : int
        How many samples a full window has.
    """

    def __init__(self, encoding: Encoding, most: int = MOST_STREAMS) -> None:
        self._derived, self._most = encoding.derived, most
        self.longest = encoding.longest
        measured = encoding.measured
        places = dict(zip(measured.names, measured.parts, strict=True))
        self._sources = {one.column: places[one.column].start for one in encoding.derived}
        self._windows: OrderedDict[str, Window] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    def push(
        self, measured: Sequence[float], seconds: float | None = None, stream: str = ""
    ) -> Derivation:
        """Add a sample, with its measured inputs, to a stream.

        ``seconds`` is its time, as ``read_time`` returns it; without, it follows the one before.
        """
        if not self._derived:
            return Derivation(list(measured), 0)
        window = self._windows.get(stream)
        if window is None:
            window = self._windows[stream] = Window(self._derived)
            if len(self._windows) > self._most:
                self._windows.popitem(last=False)
        self._windows.move_to_end(stream)
        sample = {name: measured[place] for name, place in self._sources.items()}
        found = window.push(sample, None if seconds is None else self._ticks(seconds))
        return Derivation([*measured, *found], window.lacks)

    def lacks(self, stream: str = "") -> int:
        """How many more samples a stream needs for a full window."""
        if not self._derived:
            return 0
        window = self._windows.get(stream)
        return self.longest if window is None else window.lacks

    def ends_at(self, seconds: float | None, stream: str = "") -> bool:
        """Whether the last sample of a stream was measured then."""
        window = self._windows.get(stream)
        return window is not None and seconds is not None and window.when == self._ticks(seconds)

    def _ticks(self, seconds: float) -> int:
        return math.floor(seconds * self._derived[0].clock.ticks + 0.5)

    def forget(self, stream: str = "") -> None:
        """Forget the samples of a stream."""
        self._windows.pop(stream, None)

    @property
    def state(self) -> dict[str, Any]:
        """All that there is to remember, in a form that JSON can hold."""
        return {
            "file": _KIND,
            "version": _VERSION,
            "inputs": self._inputs(),
            "streams": {name: one.state for name, one in self._windows.items()},
        }

    def restore(self, state: Any) -> None:
        """Continue from what ``state`` was.

        Raises
        ------
        InputError
            If it is no such state, or that of a model with other derived inputs; nothing has
            changed then.
        """
        if not isinstance(state, dict) or state.get("file") != _KIND:
            raise InputError("it is no state of streams")
        if state.get("version") != _VERSION:
            raise InputError(f"it has version {str(state.get('version'))[:20]}, not {_VERSION}")
        if state.get("inputs") != self._inputs():
            raise InputError("it belongs to a model with other derived inputs")
        windows: OrderedDict[str, Window] = OrderedDict()
        try:
            for name, one in list(state["streams"].items())[-self._most :]:
                windows[name] = Window(self._derived)
                windows[name].restore(one)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError("it is damaged") from error
        self._windows = windows

    def _inputs(self) -> str:
        """Digest of what is derived: states of models that derive the same are the same."""
        text = json.dumps([one.described for one in self._derived], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_state(path: Path, streams: SampleStreams, watches: "Watches | None" = None) -> None:
    """Write the state of streams, and of watches, to a file, whole or not at all."""
    from twinedge.atomic_files import write_file

    state = streams.state if watches is None else {**streams.state, "watches": watches.state}
    write_file(path, json.dumps(state, separators=(",", ":")) + "\n")


def read_state(path: Path, streams: SampleStreams, watches: "Watches | None" = None) -> None:
    """Restore streams, and watches, from a file; one that does not exist is an empty state.

    Raises
    ------
    InputError
        If it cannot be read, is damaged, or belongs to another model.
    """
    try:
        is_small = path.stat().st_size <= _LARGEST
        state = json.loads(path.read_bytes()) if is_small else None
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: it is no state of streams, or damaged") from error
    try:
        if watches is not None and isinstance(state, dict):
            watches.restore(state.get("watches", {}))
        streams.restore(state)
    except InputError as error:
        raise InputError(
            f"{path}: {error}; name another file, or remove it to begin anew"
        ) from error


class KeptState:
    """A file that keeps streams between two runs: it is read at first, and written now and then.

    Parameters
    ----------
    path : path
        The file; it is made when it is first written.
    streams : SampleStreams
        What is kept.
    watches : Watches, optional
        What is kept as well.
    every : float
        Seconds between two writings, at least.

    Raises
    ------
    InputError
        If the file cannot be read or written, is damaged, or belongs to another model.
    """

    def __init__(
        self,
        path: Path,
        streams: SampleStreams,
        watches: "Watches | None" = None,
        every: float = 60.0,
    ) -> None:
        from twinedge.atomic_files import check_file

        check_file(path)
        read_state(path, streams, watches)
        self._path, self._streams, self._watches, self._every = path, streams, watches, every
        self._due = time.monotonic() + every

    def tick(self) -> None:
        """Write the file if it is time to."""
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """Write the file."""
        write_state(self._path, self._streams, self._watches)
        self._due = time.monotonic() + self._every


def read_time(value: Any, notation: Notation, name: str) -> float:
    """Read the time of a sample, in seconds since 1970, or as the number it is.

    Raises
    ------
    InputError
        If it is none.
    """

    def refuse(_: int, wrong: str, right: str) -> None:
        raise InputError(f"{name}: {wrong}{right}")

    if isinstance(value, bool) or value is None:
        raise InputError(f"{name}: {quoted(str(value))} is no time")
    if isinstance(value, int | float | np.integer | np.floating) and notation.unit is not None:
        try:
            found = float(value) / TICKS.get(notation.unit, 1.0)
        except OverflowError:
            found = math.nan
        if not abs(found) < _MOST_SECONDS:
            raise InputError(f"{name}: {quoted(str(value)[:40])} is no time")
        return found
    if isinstance(value, np.datetime64 | date):
        found = float(times_of(np.array([value], "datetime64[us]")).seconds[0])
    else:
        found = float(read_times([str(value)], notation, refuse).seconds[0])
    if not abs(found) < _MOST_SECONDS:
        raise InputError(f"{name}: {quoted(str(value)[:40])} is no time")
    return found


_MOST_SECONDS = 2.0**53 / 1000  # a tick is a millisecond or more


def time_now(notation: Notation) -> float | None:
    """Return the time of a sample that does not say its own; None if there is no clock for it."""
    return None if notation.unit == NUMBERS else time.time()


class Stream:
    """The samples of one sensor, and predictions from them.

    Parameters
    ----------
    device : Device
        The model.

    Examples
    --------
    ``stream = device.stream()``, and then for each sample ``stream.push({"temp": 21.5, "t": now})``
    returns a ``Prediction``, or None while ``stream.ready`` is False.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._streams = SampleStreams(device.encoding, most=1)
        self._measured = device.encoding.measured

    def __repr__(self) -> str:
        state = "ready" if self.ready else f"{plural(self.lacks, 'sample')} to go"
        return f"<stream of {self._device.info['file']}: {state}>"

    @property
    def ready(self) -> bool:
        """Whether the window is full."""
        return self.lacks == 0

    @property
    def lacks(self) -> int:
        """How many more samples the window needs."""
        return self._streams.lacks()

    def push(self, sample: Any, time: Any = None, **options: Any) -> Prediction | None:
        """Add a sample and predict.

        Parameters
        ----------
        sample : mapping, row of a data frame, or sequence
            The columns that were measured, by name or in the order of training; NaN is a missing
            one. With names, the time may be among them.
        time : number, text or datetime, optional
            When it was measured, as the training table writes it; by default now.
        **options
            ``coverage`` and ``neighbors``, as for ``Device.predict_all``.

        Returns
        -------
        Prediction or None
            Without the axis of queries; None if it needs more samples, see ``lacks``.

        Raises
        ------
        InputError
            If the sample or its time cannot be read; it has no effect then.
        """
        named = is_record(sample)
        if not named:
            sample = np.asarray(sample)
            if sample.ndim != 1:
                raise InputError(f"a sample is one row of columns, not of shape {sample.shape}")
        x = self._measured.encode(sample if named else sample[None])[0]
        absent = np.isnan(x) & ~self._device.fillable[: len(x)]
        if absent.any():
            name = self._measured.inputs[int(absent.argmax())]
            raise InputError(f"{name} is missing, and the model has no value to fill in")
        query, lacks = self._streams.push(x.tolist(), self._seconds(sample, time, named))
        unknown = np.isnan(query) & ~self._device.fillable
        if lacks or unknown.any():
            return None
        found = self._device.predict_all(np.array([query]), **options)
        return Prediction._make(None if one is None else one[0] for one in found)

    def _seconds(self, sample: Any, when: Any, named: bool) -> float | None:
        if not self._device.encoding.derived:
            return None
        clock = self._device.encoding.derived[0].clock
        if when is None and named and clock.time in sample:
            when = sample[clock.time]
        if when is None:
            return time_now(clock.notation)
        return read_time(when, clock.notation, clock.time)

    def reset(self) -> None:
        """Forget all samples."""
        self._streams.forget()

    @property
    def state(self) -> dict[str, Any]:
        """The samples that count, in a form that JSON can hold."""
        return self._streams.state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` was.

        Raises
        ------
        InputError
            If it is damaged, or of a model with other derived inputs; nothing has changed then.
        """
        self._streams.restore(state)

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all."""
        write_state(Path(path), self._streams)

    def load(self, path: str | Path) -> None:
        """Restore the state from a file; one that does not exist is an empty state."""
        read_state(Path(path), self._streams)
