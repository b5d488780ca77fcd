"""Answer queries line by line, from a sensor on a serial port, a pipe or a log.

Each query is answered by one line, in the same order and the same form: CSV, or JSON. A line that
cannot be read is answered with an error and has no other effect; a header is answered with one, and
a comment not at all. Lines that arrive together are evaluated together, by as many threads as the
device has, but no line ever waits for a later one.

A line that ends in ``=VALUE`` carries its true value. It is answered like any other, and then
learnt from. For several targets it ends in as many such cells; an empty one, ``=``, was not
measured.

An answer has the fields of ``Device.fields``: those that every file has come first, so that their
positions never change. For several targets it has those of the first target, then those of the
second, and last what is about the features.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, groupby
from math import isfinite
from typing import Any, TypeAlias

import numpy as np

from twinedge.encoding.cells import WINDOWS_1252
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device
from twinedge.runtime.stream_reader import Query, QueryError, QueryReader, is_json

_Value: TypeAlias = float | list[str]  # a number, or names of features
_Columns: TypeAlias = list[list[float] | list[list[str]]]  # by field, then by line

_FLAGS = ("outside", "missing")  # fields that name features
_ERRORS = ("error: ", '{"error": ')
_LINE_END = re.compile(rb"\r+\n?|\n\r")
_CHUNK = 1 << 16
LONGEST = 1 << 20  # bytes of a line; a longer one cannot be a query


class Replies:
    """Turns lines into answers.

    Parameters
    ----------
    device : Device
        The model that predicts.
    neighbors : int, optional
        How many nearest anchors to use; by default as many as the file says.
    coverage : float, optional
        Coverage of the intervals; by default ``device.usual_coverage``.

    Examples
    --------
    ``Replies(device).to(["1.5,2.5"])`` is ``["0.25,0.01,"]``: prediction, spread, and the
    names of features outside the training range, separated by ``|``. With intervals, scale, low and
    high follow; if features may be missing, the names of those that were.

    Raises
    ------
    InputError
        If the file has no intervals of that coverage; while answering, if a header lacks a column
        of the model.
    """

    def __init__(
        self, device: Device, neighbors: int | None = None, coverage: float | None = None
    ) -> None:
        if coverage is not None:
            device.check_coverage(coverage)
        self._device, self._neighbors, self._coverage = device, neighbors, coverage
        self._encoding = device.encoding
        self._reader = QueryReader(device.encoding, device.fillable, device.target_names)
        fields = ["prediction", *device.fields[1:]]
        self._keys = [(one, "") for one in fields]  # field, and which of several targets
        header = [device.target_name, *fields[1:]]
        if device.targets > 1:
            own = [one for one in fields if one not in _FLAGS]
            self._keys = [(one, name) for name in device.target_names for one in own]
            self._keys += [(one, "") for one in fields if one in _FLAGS]
            header = [
                "_".join(part for part in (name, field) if part and part != "prediction")
                for field, name in self._keys
            ]
        self._header = ",".join(map(_quoted, header))

    def to(self, lines: Iterable[str]) -> list[str]:
        """Answer lines, given without line breaks."""
        answers = []
        # What is learnt from one line counts from the next line on.
        for has_target, some in groupby(lines, lambda line: "=" in line):
            if has_target:
                answers += [answer for line in some for answer in self._learn(_clean(line))]
            else:
                answers += self._answer(list(some))
        return answers

    def records(self, x: Array, device: Device | None = None) -> list[dict[str, Any]]:
        """Answer queries ``(n, f)``, each with what its line of JSON would hold.

        Another ``device`` has the same model, and has learnt other points.
        """
        return [self._record(values) for values in zip(*self._predict(x, device), strict=True)]

    def _learn(self, line: str) -> list[str]:
        """Answer a line, and learn from it if it carries its true value."""
        query, targets = self._reader.split_targets(line)
        answers = self._answer([query])
        if targets is None or not answers or answers[-1].startswith(_ERRORS):
            return answers
        read = self._reader.read(query)[-1]
        if read is None:
            return answers  # a header
        try:
            self._device.learn([read], targets if self._device.targets == 1 else [targets])
        except InputError as error:
            answers[-1] = _error(str(error), is_json(query))
        return answers

    def _answer(self, lines: Sequence[str]) -> list[str]:
        # One by one until the columns are known; a query that decides them is read once more.
        answers: list[str] = []
        first = 0
        while first < len(lines) and not self._reader.columns_known:
            read = self._read(lines[first])
            answers += [one for one, _ in read if isinstance(one, str)]
            first += all(isinstance(one, str) for one, _ in read)
        rest = lines[first:]
        x = self._reader.table(rest)
        if x is not None:
            return answers + list(map(_in_csv, zip(*self._predict(x), strict=True)))
        read = [one for line in rest for one in self._read(line)]
        queries = [one for one, _ in read if not isinstance(one, str)]
        x = np.array(queries).reshape(-1, len(self._encoding.inputs))
        found = zip(*self._predict(x), strict=True)
        for one, as_json in read:
            if isinstance(one, str):
                answers.append(one)
            else:
                answers.append(self._in_json(next(found)) if as_json else _in_csv(next(found)))
        return answers

    def _read(self, line: str) -> list[tuple[Query | str, bool]]:
        """Read a line: queries, or answers that need none; and whether it is JSON."""
        line = _clean(line)
        as_json = is_json(line)
        try:
            read = self._reader.read(line)
        except QueryError as error:
            return [(_error(str(error), as_json), as_json)]
        return [(self._header if one is None else one, as_json) for one in read]

    def _predict(self, x: Array, device: Device | None = None) -> _Columns:
        """Predict queries: numbers or feature names, by field."""
        if not len(x):
            return [[] for _ in self._keys]
        found = (device or self._device).predict_all(x, self._coverage, self._neighbors)
        columns: dict[str, Any] = {
            name: self._named(one) if one.dtype == bool else one.T.tolist()
            for name, one in zip(found._fields, found, strict=True)
            if one is not None
        }
        columns["prediction"] = columns.pop("mean")
        number = {name: place for place, name in enumerate(self._device.target_names)}
        return [
            columns[field][number[name]] if name else columns[field] for field, name in self._keys
        ]

    def _named(self, flags: Array) -> list[list[str]]:
        """Names of the flagged columns, for each query."""
        names: list[list[str]] = [[]] * len(flags)
        if flags.any():
            flags = self._encoding.by_column(flags)
            for row in np.flatnonzero(flags.any(axis=1)):
                names[row] = list(compress(self._encoding.names, flags[row]))
        return names

    def _in_json(self, values: Iterable[_Value]) -> str:
        return json.dumps(self._record(values))

    def _record(self, values: Iterable[_Value]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (field, name), value in zip(self._keys, map(_short, values), strict=True):
            if name:
                found.setdefault(field, {})[name] = value
            else:
                found[field] = value
        return found


def serve(
    device: Device,
    source: int,
    write: Callable[[str], None],
    neighbors: int | None = None,
    coverage: float | None = None,
) -> None:
    """Answer lines from a file descriptor until it ends, each as soon as it arrives.

    Parameters
    ----------
    device : Device
        The model that predicts.
    source : int
        File descriptor to read from.
    write : function
        Takes whole lines and passes them on at once.
    neighbors : int, optional
        How many nearest anchors to use; by default as many as the file says.
    coverage : float, optional
        Coverage of the intervals; by default ``device.usual_coverage``.

    Raises
    ------
    InputError
        If the file has no intervals of that coverage; nothing has been read then. If a header lacks
        a column of the model; what came before it has been answered.
    """
    replies = Replies(device, neighbors, coverage)

    def answer(block: bytes) -> None:
        write("".join(f"{one}\n" for one in replies.to(_decoded(block).split("\n"))))

    rest = last = b""
    too_long = False
    while chunk := os.read(source, _CHUNK):
        chunk, last = _with_line_feeds(chunk, last), chunk[-1:]
        block, end, rest = (rest + chunk).rpartition(b"\n")
        if too_long and end:  # the end of a line that was given up
            block, too_long = b"\xff" + b"".join(block.partition(b"\n")[1:]), False
        if len(rest) > LONGEST:
            rest, too_long = b"", True
        if end:
            answer(block)
    if rest or too_long:
        answer(b"\xff" if too_long else rest)


def _with_line_feeds(chunk: bytes, last: bytes) -> bytes:
    """End all lines with a line feed, whether they end in CR, CRLF, LF or, by mistake, LFCR.

    ``last`` is the byte before the chunk. A line that ends in CR is complete: a line feed at the
    beginning of the next chunk belongs to it.
    """
    if last == b"\r":
        chunk = chunk.lstrip(b"\r").removeprefix(b"\n")
    elif last == b"\n":
        chunk = chunk.removeprefix(b"\r")
    return _LINE_END.sub(b"\n", chunk) if b"\r" in chunk else chunk


def _decoded(block: bytes) -> str:
    """Decode UTF-8; bytes that are not are Windows-1252."""
    text = block.decode("utf-8", "surrogateescape")
    return text if text.isascii() else text.translate(WINDOWS_1252)


def _in_csv(values: Iterable[_Value]) -> str:
    return ",".join(
        _quoted("|".join(one)) if isinstance(one, list) else f"{one:.7g}" for one in values
    )


def _error(message: str, as_json: bool) -> str:
    return json.dumps({"error": message}) if as_json else f"error: {message}"


def _clean(line: str) -> str:
    """Strip what an editor or a terminal leaves at either end."""
    return line.removeprefix("\ufeff").rstrip("\r")


def _quoted(word: str) -> str:
    return '"{}"'.format(word.replace('"', '""')) if set(word) & set(',"\n\r') else word


def _short(value: _Value) -> _Value | None:
    """Round a number to single precision; None for infinity, which JSON lacks."""
    if isinstance(value, list):
        return value
    return float(f"{value:.7g}") if isfinite(value) else None
