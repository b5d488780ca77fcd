"""A device that answers line by line: a sensor on a serial port, a pipe, a log.

Each line in is one line out, in the same order, in the form it came in: CSV or a JSON object or
array. A line that cannot be read is answered with an error and forgotten; the next one is answered
as if nothing had been. Lines that arrive together are evaluated together, on all cores where the C
runtime does it, but none ever waits for another.
"""

import json
import os
import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, compress
from math import isfinite, isnan

import numpy as np

from twinedge.pack.contents import Array
from twinedge.runtime.device import Device
from twinedge.runtime.native import NativeDevice

_CHUNK = 1 << 16
_PART = 32  # queries that are worth a thread
LONGEST = 1 << 20  # bytes of a line; a longer one is no query but something gone wrong


class _FaultError(ValueError):
    """Why a line cannot be answered."""


class Answers:
    """Turns lines into answers; remembers a CSV header, which may be the first line.

    Parameters
    ----------
    device : Device
        What predicts.
    neighbors : int, optional
        How many nearest anchors, if not as many as the file says.

    Examples
    --------
    ``list(Answers(device).to(["1.5,2.5"]))`` is ``["0.25,0.01,"]``: prediction, spread, and the
    names of features outside the training range, with ``|`` between them.
    """

    def __init__(self, device: Device, neighbors: int | None = None) -> None:
        self._device = device
        self._predict = _predictor(device, neighbors)
        self._names = device.feature_names
        self._order: Sequence[int] | None = None  # where a header has each feature
        self._columns = len(self._names)
        self._first = True

    def to(self, lines: Sequence[str]) -> Iterator[str]:
        """Answer lines, none of which holds a line break."""
        return self.begin(lines)()

    def begin(self, lines: Sequence[str]) -> Callable[[], Iterator[str]]:
        """Read lines and have them evaluated; what is returned waits for that and answers."""
        head = []
        if self._first and lines:
            self._first = False
            if self._is_header(_clean(lines[0])):
                head = [f"{_quoted(self._device.target_name)},spread,outside"]
                lines = lines[1:]
        x = self._table(lines)
        if x is None:
            return self._one_by_one(head, lines)
        results = self._results(x)
        return lambda: chain(head, map(_in_csv, *results()))

    def _table(self, lines: Sequence[str]) -> Array | None:
        """Read lines all at once; None where one of them has to be looked at by itself."""
        commas = self._columns - 1
        if not all(line.count(",") == commas for line in lines):
            return None
        try:
            x = np.array(list(map(float, ",".join(lines).split(",")))).reshape(-1, self._columns)
        except ValueError:
            return None
        if self._order is not None:
            x = x.take(self._order, axis=1)
        return None if np.isnan(x).any() else x

    def _one_by_one(self, head: list[str], lines: Sequence[str]) -> Callable[[], Iterator[str]]:
        read: list[tuple[list[float] | None, bool, str]] = []
        for line in map(_clean, lines):
            as_json = line.lstrip()[:1] in ("{", "[")
            try:
                read.append((self._json(line) if as_json else self._csv(line), as_json, ""))
            except _FaultError as fault:
                read.append((None, as_json, str(fault)))
        good = [values for values, _, _ in read if values is not None]
        results = self._results(np.array(good).reshape(-1, len(self._names)))

        def answer() -> Iterator[str]:
            yield from head
            found = zip(*results(), strict=True)
            for values, as_json, words in read:
                if values is None:
                    yield json.dumps({"error": words}) if as_json else f"error: {words}"
                else:
                    yield (_in_json if as_json else _in_csv)(*next(found))

        return answer

    def _results(self, x: Array) -> Callable[[], tuple[list[float], list[float], list[list[str]]]]:
        """Begin to evaluate; later: predictions, spreads, and names of features outside."""
        if not len(x):
            return lambda: ([], [], [])
        predicted = self._predict(x)
        outside = self._device.outside(x)
        names: list[list[str]] = [[]] * len(x)
        for row in np.flatnonzero(outside.any(axis=1)):
            names[row] = list(compress(self._names, outside[row]))

        def results() -> tuple[list[float], list[float], list[list[str]]]:
            mean, spread = predicted()
            return mean.tolist(), spread.tolist(), names

        return results

    def _is_header(self, line: str) -> bool:
        """Whether the line names the features; further columns are ignored."""
        columns = [_unquoted(field) for field in line.split(",")]
        if len(set(columns)) < len(columns) or not set(self._names) <= set(columns):
            return False
        self._order = [columns.index(name) for name in self._names]
        self._columns = len(columns)
        return True

    def _csv(self, line: str) -> list[float]:
        fields = line.split(",")
        if len(fields) != self._columns:
            raise _FaultError(f"{len(fields)} values, expected {self._columns}")
        chosen = fields if self._order is None else [fields[i] for i in self._order]
        try:
            return self._checked(list(map(float, chosen)))
        except ValueError as error:
            if isinstance(error, _FaultError):
                raise
            place = next(i for i, field in enumerate(chosen) if not _is_float(field))
            word = chosen[place].strip()[:40]
            raise _FaultError(f"{self._names[place]}: {word!r} is not a number") from None

    def _json(self, line: str) -> list[float]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise _FaultError("not JSON") from None
        if isinstance(value, dict):
            missing = [name for name in self._names if name not in value]
            if missing:
                raise _FaultError(f"{missing[0]} is missing")
            value = [value[name] for name in self._names]
        if len(value) != len(self._names):
            raise _FaultError(f"{len(value)} values, expected {len(self._names)}")
        for name, one in zip(self._names, value, strict=True):
            if isinstance(one, bool) or not isinstance(one, int | float):
                raise _FaultError(f"{name}: {json.dumps(one)[:40]} is not a number")
        try:
            return self._checked([float(one) for one in value])
        except OverflowError:
            raise _FaultError("a number beyond all bounds") from None

    def _checked(self, values: list[float]) -> list[float]:
        if isnan(sum(values)):  # one of them is, or two are infinities that cancel
            for name, one in zip(self._names, values, strict=True):
                if isnan(one):
                    raise _FaultError(f"{name}: 'nan' is not a number")
        return values


def serve(
    device: Device, source: int, write: Callable[[str], None], neighbors: int | None = None
) -> None:
    """Answer lines from a file descriptor until it ends, each as soon as it is there.

    Parameters
    ----------
    device : Device
        What predicts.
    source : int
        File descriptor to read from.
    write : function
        Takes whole lines and passes them on at once.
    neighbors : int, optional
        How many nearest anchors, if not as many as the file says.
    """
    answers = Answers(device, neighbors)
    begun: deque[Callable[[], Iterator[str]]] = deque()

    def begin(block: bytes) -> None:
        # What is no text will not be a number either.
        begun.append(answers.begin(block.decode("utf-8", "replace").split("\n")))

    def finish(left: int) -> None:
        while len(begun) > left:
            write("".join(f"{one}\n" for one in begun.popleft()()))

    rest = b""
    too_long = False
    while chunk := os.read(source, _CHUNK):
        block, end, rest = (rest + chunk).rpartition(b"\n")
        if too_long and end:  # of a line that was given up
            block, too_long = b"\xff" + b"".join(block.partition(b"\n")[1:]), False
        if len(rest) > LONGEST:
            rest, too_long = b"", True
        if end:
            begin(block)
        # Where more is there already, it is read while these lines are evaluated.
        finish(1 if end and _is_ready(source) else 0)
    if rest or too_long:
        begin(b"\xff" if too_long else rest)
    finish(0)


def _is_ready(source: int) -> bool:
    """Whether there is something to read, or an end, without waiting for it."""
    return os.name == "posix" and bool(select.select([source], [], [], 0)[0])


def _predictor(device: Device, neighbors: int | None) -> Callable[[Array], Callable[[], Array]]:
    """Return what begins to evaluate queries, and later gives mean and spread, ``(2, n)``."""

    def predict(x: Array) -> Array:
        return np.stack(device.predict(x, return_std=True, neighbors=neighbors))

    def at_once(x: Array) -> Callable[[], Array]:
        predicted = predict(x)
        return lambda: predicted

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if not isinstance(device, NativeDevice) or not cores or cores < 2:
        return at_once  # others take all cores themselves, or must not be asked twice at a time
    pool = ThreadPoolExecutor(cores)

    def in_parts(x: Array) -> Callable[[], Array]:
        if len(x) < _PART * 2:
            return at_once(x)
        parts = np.array_split(x, min(cores, len(x) // _PART))
        futures = [pool.submit(predict, part) for part in parts]
        return lambda: np.concatenate([future.result() for future in futures], axis=1)

    return in_parts


def _in_csv(mean: float, spread: float, outside: list[str]) -> str:
    far = _quoted("|".join(outside)) if outside else ""
    return f"{mean:.7g},{spread:.7g},{far}"


def _in_json(mean: float, spread: float, outside: list[str]) -> str:
    return json.dumps({"prediction": _short(mean), "spread": _short(spread), "outside": outside})


def _clean(line: str) -> str:
    """Take off what an editor or a terminal leaves at either end."""
    return line.removeprefix("\ufeff").rstrip("\r")


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _unquoted(field: str) -> str:
    field = field.strip()
    return field[1:-1].replace('""', '"') if field[:1] == field[-1:] == '"' != field else field


def _quoted(word: str) -> str:
    return '"{}"'.format(word.replace('"', '""')) if set(word) & set(',"\n\r') else word


def _short(number: float) -> float | None:
    """Round to what single precision can say; JSON knows no infinity."""
    return float(f"{number:.7g}") if isfinite(number) else None
