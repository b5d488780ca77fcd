"""A device that answers line by line: a sensor on a serial port, a pipe, a log.

Each line in is one line out, in the same order, in the form it came in: CSV or a JSON object or
array. A line that cannot be read is answered with an error and forgotten; the next one is answered
as if nothing had been. Lines that arrive together are evaluated together, on all cores where the C
runtime does it, but none ever waits for another.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
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
        read: list[tuple[list[float] | None, bool, str]] = []
        for line in lines:
            if self._first:
                self._first = False
                if self._is_header(line):
                    yield f"{_quoted(self._device.target_name)},spread,outside"
                    continue
            as_json = line.lstrip()[:1] in ("{", "[")
            try:
                read.append((self._json(line) if as_json else self._csv(line), as_json, ""))
            except _FaultError as fault:
                read.append((None, as_json, str(fault)))
        yield from self._answered(read)

    def _answered(self, read: list[tuple[list[float] | None, bool, str]]) -> Iterator[str]:
        results = self._results([values for values, _, _ in read if values is not None])
        for values, as_json, fault in read:
            if values is None:
                yield json.dumps({"error": fault}) if as_json else f"error: {fault}"
                continue
            mean, spread, names = next(results)
            if as_json:
                answer = {"prediction": _short(mean), "spread": _short(spread), "outside": names}
                yield json.dumps(answer)
            else:
                far = _quoted("|".join(names)) if names else ""
                yield f"{mean:.7g},{spread:.7g},{far}"

    def _results(self, good: list[list[float]]) -> Iterator[tuple[float, float, list[str]]]:
        """Prediction, spread and names of features outside, query by query."""
        if not good:
            return iter(())
        x = np.array(good, np.float64)
        mean, spread = self._predict(x)
        names = [list(compress(self._names, far)) for far in self._device.outside(x).tolist()]
        return zip(mean.tolist(), spread.tolist(), names, strict=True)

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
    rest = b""
    too_long = False
    while chunk := os.read(source, _CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        if too_long and whole:  # the end of a line that was given up
            whole[0], too_long = b"\xff", False
        if len(rest) > LONGEST:
            rest, too_long = b"", True
        if whole:
            write("".join(f"{one}\n" for one in answers.to([_text(line) for line in whole])))
    if rest or too_long:
        write("".join(f"{one}\n" for one in answers.to([_text(b"\xff" if too_long else rest)])))


def _predictor(device: Device, neighbors: int | None) -> Callable[[Array], Array]:
    """Return what gives mean and spread of queries, ``(2, n)``."""

    def predict(x: Array) -> Array:
        return np.stack(device.predict(x, return_std=True, neighbors=neighbors))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if not isinstance(device, NativeDevice) or not cores or cores < 2:
        return predict  # others take all cores themselves, or must not be asked twice at a time
    pool = ThreadPoolExecutor(cores)

    def predict_in_parts(x: Array) -> Array:
        if len(x) < _PART * 2:
            return predict(x)
        parts = np.array_split(x, min(cores, len(x) // _PART))
        return np.concatenate(list(pool.map(predict, parts)), axis=1)

    return predict_in_parts


def _text(line: bytes) -> str:
    """Decode a line; what is no text will not be a number either."""
    return line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r")


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
