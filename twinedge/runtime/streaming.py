"""Answer queries line by line, from a sensor on a serial port, a pipe or a log.

Each query is answered by one line, in the same order and the same form: CSV, or JSON. A line that
cannot be read is answered with an error and has no other effect; a header is answered with one, and
a comment not at all. Lines that arrive together are evaluated together, by as many threads as the
device has, but no line ever waits for a later one.

A line that ends in ``=VALUE`` carries its true value. It is answered like any other, and then
learnt from. For several targets it ends in as many such cells; an empty one, ``=``, was not
measured.

Of a model with inputs derived from the last samples, each line is a sample. Until its window is
full, the cells of its answer are empty; in JSON, ``lacks`` says how many more samples it takes.

An answer has the fields of ``Device.fields``: those that every file has come first, so that their
positions never change. For several targets it has those of the first target, then those of the
second, and last what is about the features.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, groupby
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from twinedge.encoding.cells import WINDOWS_1252
from twinedge.encoding.times import NUMBERS
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device
from twinedge.runtime.sample_streams import SampleStreams, read_time, time_now
from twinedge.runtime.store import LARGEST_TIME
from twinedge.runtime.store_folder import StoreFolder
from twinedge.runtime.stream_reader import Query, QueryError, QueryReader, is_json
from twinedge.runtime.watch import Given, Watches

_Value: TypeAlias = float | list[str]  # a number, or names of features
_Columns: TypeAlias = list[list[float] | list[list[str]]]  # by field, then by line

_FLAGS = ("outside", "missing")  # fields that name features
_LINE_END = re.compile(rb"\r+\n?|\n\r")
_CHUNK = 1 << 16
LONGEST = 1 << 20  # bytes of a line; a longer one cannot be a query


class Streaming(NamedTuple):
    """How lines are answered, besides the model.

    Parameters
    ----------
    neighbors : int, optional
        How many nearest anchors to use; by default as many as the file says.
    coverage : float, optional
        Coverage of the intervals; by default ``device.usual_coverage``.
    keep : sequence of str
        Columns or keys of a line that its answer repeats, before all others.
    as_json : bool
        Answer lines of CSV in JSON, too; headers are then not answered.
    group : str, optional
        Column or key that says which sensor a line is from; each has windows, and a store, of its
        own. By default that of the training, if inputs are derived.
    streams : SampleStreams, optional
        Windows to continue; by default there are none yet.
    stores : StoreFolder, optional
        A store for each group, instead of that of the device.
    watches : Watches, optional
        A watch for each group: intervals are adapted, and answers have its flags.
    """

    neighbors: int | None = None
    coverage: float | None = None
    keep: Sequence[str] = ()
    as_json: bool = False
    group: str | None = None
    streams: SampleStreams | None = None
    stores: StoreFolder | None = None
    watches: Watches | None = None


class _Item(NamedTuple):
    """A line that was read: an answer that is known already, or a query."""

    text: str | None = None
    query: Query | None = None
    as_json: bool = False
    kept: Mapping[str, Any] = MappingProxyType({})
    group: str = ""
    seconds: float | None = None
    lacks: int = 0


class Replies:
    """Turns lines into answers.

    Parameters
    ----------
    device : Device
        The model that predicts.
    neighbors, coverage, ... : optional
        Fields of ``Streaming``.

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
        self,
        device: Device,
        neighbors: int | None = None,
        coverage: float | None = None,
        **more: Any,
    ) -> None:
        how = Streaming(neighbors, coverage, **more)
        if coverage is not None:
            device.check_coverage(coverage)
        self._device, self._neighbors, self._coverage = device, neighbors, coverage
        self._encoding = device.encoding
        self._clock = device.encoding.derived[0].clock if device.encoding.derived else None
        self._group = how.group or (self._clock.group if self._clock else None)
        self._keep, self._as_json, self._stores = tuple(how.keep), how.as_json, how.stores
        self._streams = SampleStreams(device.encoding) if how.streams is None else how.streams
        measured = device.encoding.measured
        needed = [*self._keep, *([self._group] if self._group else [])]
        self._reader = QueryReader(
            measured,
            device.fillable[: len(measured.inputs)],
            device.target_names,
            [*needed, *([self._clock.time] if self._clock else [])],
            needed,
        )
        self._watches = how.watches
        self._given: Given | None = None  # of the last query, for its true value
        watched = [] if how.watches is None else ["flags"]
        fields = ["prediction", *device.fields[1:], *watched]
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
        self._header = ",".join(map(_quoted, [*self._keep, *header]))

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
        line, targets = self._reader.split_targets(line)
        items = self._read(line)
        answers = self._answers(items)
        last = items[-1] if items else _Item("")
        if targets is None or last.query is None or last.lacks:
            return answers  # without a full window there is no query to learn
        try:
            if self._watches is not None and self._given is not None:
                self._watches.of(last.group).add_target(self._given, targets[0])
            self._teach(last, targets)
        except InputError as error:
            answers[-1] = _error(str(error), last.as_json)
        return answers

    def _teach(self, item: _Item, targets: list[float]) -> None:
        if self._stores is not None:
            when = time.time() if item.seconds is None else item.seconds
            whole = min(max(int(when), 0), LARGEST_TIME)
            self._stores.learn(item.group, np.array(item.query), targets, whole)
        else:
            self._device.learn([item.query], targets if self._device.targets == 1 else [targets])

    def _answer(self, lines: Sequence[str]) -> list[str]:
        # One by one until the columns are known; a query that decides them is read once more.
        answers: list[str] = []
        first = 0
        plain = not (self._as_json or self._encoding.derived or self._watches)
        while plain and first < len(lines) and not self._reader.columns_known:
            read = self._read(lines[first])
            answers += [one.text for one in read if one.text is not None]
            first += all(one.query is None for one in read)
        rest = lines[first:]
        x = self._reader.table(rest) if plain else None
        if x is not None:
            return answers + list(map(_in_csv, zip(*self._predict(x), strict=True)))
        return answers + self._answers([one for line in rest for one in self._read(line)])

    def _read(self, line: str) -> list[_Item]:
        """Read a line: queries, or answers that need none."""
        line = _clean(line)
        as_json = is_json(line) or self._as_json
        found = []
        try:
            for query in self._reader.read(line):
                if query is not None:
                    found.append(self._item(query, as_json))
                elif not self._as_json:
                    found.append(_Item(self._header))
        except QueryError as error:
            found.append(_Item(_error(str(error), as_json)))
        return found

    def _item(self, query: Query, as_json: bool) -> _Item:
        """Add what is derived to a query, and what its line says beside it."""
        beside = self._reader.beside
        kept = {name: beside[name] for name in self._keep}
        group, seconds, lacks = "", None, 0
        if self._group is not None:
            group = _name_of(beside[self._group], self._group)
        if self._clock is not None:
            try:
                seconds = (
                    read_time(beside[self._clock.time], self._clock.notation, self._clock.time)
                    if self._clock.time in beside
                    else time_now(self._clock.notation)
                )
            except InputError as error:
                raise QueryError(str(error)) from None
            query, lacks = self._streams.push(query, seconds, group)
            unknown = np.isnan(query) & ~self._device.fillable
            if not lacks and unknown.any():
                name = self._encoding.inputs[int(unknown.argmax())]
                raise QueryError(f"{name} is not known: a sample of its window is missing")
            if self._clock.notation.unit == NUMBERS:
                seconds = None  # no time since 1970
        return _Item(None, query, as_json, kept, group, seconds, lacks)

    def _answers(self, items: Sequence[_Item]) -> list[str]:
        """Answer what was read: those of one device at once."""
        answers = ["" if one.text is None else one.text for one in items]
        batches: dict[Any, tuple[Device, list[int]]] = {}
        for place, item in enumerate(items):
            if item.query is None:
                continue
            if item.lacks:
                answers[place] = self._lacking(item)
                continue
            device = self._device
            if self._stores is not None:
                device = self._stores.device(item.group) or device
            key = id(device) if self._watches is None else item.group
            batches.setdefault(key, (device, []))[1].append(place)
        for device, places in batches.values():
            x = np.array([items[place].query for place in places])
            group = items[places[0]].group
            columns = self._predict(x, device, group)
            for place, values in zip(places, zip(*columns, strict=True), strict=True):
                answers[place] = self._written(items[place], values)
        return answers

    def _written(self, item: _Item, values: Iterable[_Value]) -> str:
        if item.as_json:
            return json.dumps({**_in_json(item.kept), **self._record(values)})
        return ",".join([*map(_cell, item.kept.values()), _in_csv(values)])

    def _lacking(self, item: _Item) -> str:
        """Answer a sample that does not fill its window."""
        if item.as_json:
            return json.dumps({**_in_json(item.kept), "lacks": item.lacks})
        return ",".join([*map(_cell, item.kept.values()), *[""] * len(self._keys)])

    def _predict(self, x: Array, device: Device | None = None, group: str = "") -> _Columns:
        """Predict queries: numbers or feature names, by field."""
        flags: dict[str, Any] = {}
        if self._watches is None:
            found = (device or self._device).predict_all(x, self._coverage, self._neighbors)
        else:
            watched = self._watches.of(group).predict(x, device, self._neighbors)
            found, self._given = watched.prediction, watched.given[-1]
            flags = {"flags": watched.flags}
        columns: dict[str, Any] = flags | {
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
    **more: Any,
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
    neighbors, coverage, ... : optional
        Fields of ``Streaming``.

    Raises
    ------
    InputError
        If the file has no intervals of that coverage; nothing has been read then. If a header lacks
        a column of the model; what came before it has been answered.
    """
    replies = Replies(device, neighbors, coverage, **more)

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


def _name_of(value: Any, column: str) -> str:
    """Name the group of a line."""
    if isinstance(value, dict | list | bool) or value is None or value == "":
        raise QueryError(f"{column}: {json.dumps(value)[:40]} names no group")
    return str(value)


def _in_json(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return cells as values of JSON: numbers as such."""
    return {name: _number(one) if isinstance(one, str) else one for name, one in kept.items()}


def _number(text: str) -> float | str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if type(found) in (int, float) and isfinite(found) else text


def _cell(value: Any) -> str:
    """Write a value that is repeated as a cell."""
    return _quoted(value if isinstance(value, str) else json.dumps(value))


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
