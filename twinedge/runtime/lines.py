"""Answer queries line by line, from a sensor on a serial port, a pipe or a log.

Each line in is one line out, in the same order and the same form: CSV, or a JSON object or array.
CSV is read by the rules for files: the first line decides what separates the columns and, unless
that is a comma, decimal commas are allowed. A line that cannot be read is answered with an error
and has no other effect. Lines that arrive together are evaluated together, by the C runtime on all
cores, but no line ever waits for a later one.

A line that ends in ``=VALUE`` carries its true value. It is answered like any other, and then
learnt from.

An answer has the fields of ``Device.fields``: those that every file has come first, so that their
positions never change.
"""

import csv
import json
import os
import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, compress, groupby
from math import isfinite, nan
from typing import TypeAlias

import numpy as np

from twinedge.cells import CellKind, CellReader, complaint, looks_missing
from twinedge.encoding import Category
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device
from twinedge.runtime.native import NativeDevice

_Value: TypeAlias = float | list[str]  # a number, or names of features
_Columns: TypeAlias = list[list[float] | list[list[str]]]  # by field, then by line

_DELIMITERS = (",", ";", "\t", "|", None)  # None: any number of blanks
_SEPARATOR = "sep="  # Excel's first line
_ERRORS = ("error: ", '{"error": ')
_CHUNK = 1 << 16
_PART = 32  # queries that are worth a thread
LONGEST = 1 << 20  # bytes of a line; a longer one cannot be a query


class _FaultError(ValueError):
    """Why a line cannot be answered."""


class Replies:
    """Turns lines into answers; remembers a CSV header, which may be the first line.

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
    ``list(Replies(device).to(["1.5,2.5"]))`` is ``["0.25,0.01,"]``: prediction, spread, and the
    names of features outside the training range, separated by ``|``. With intervals, scale, low and
    high follow; if features may be missing, the names of those that were.

    Raises
    ------
    InputError
        If the file has no intervals of that coverage.
    """

    def __init__(
        self, device: Device, neighbors: int | None = None, coverage: float | None = None
    ) -> None:
        if coverage is not None:
            device.check_coverage(coverage)
        self._device = device
        self._predict = _predictor(device, neighbors, coverage)
        self._outstanding: set[Callable[[], list[Array]]] = set()
        self._encoding = encoding = device.encoding
        self._names = encoding.names
        self._fillable = [bool(device.fillable[part].all()) for part in encoding.parts]
        self._delimiter: str | None = ","
        self._cells = CellReader(comma_allowed=False)
        others = device.fields[1:]
        self._header = ",".join([_quoted(device.target_name), *others])
        self._keys = ["prediction", *others]
        self._order: Sequence[int] | None = None  # position of each feature in the header
        self._columns = len(self._names)
        self._first = True
        self._said = False  # whether a first line "sep=" named the delimiter

    def to(self, lines: Sequence[str]) -> Iterator[str]:
        """Answer lines, given without line breaks."""
        return self.begin(lines)()

    def begin(self, lines: Sequence[str]) -> Callable[[], Iterator[str]]:
        """Start to evaluate lines; the returned function waits for the results and answers."""
        if not any("=" in line for line in lines):
            return self._begin(lines)
        # What one line teaches counts from the next line on.
        answers: list[str] = []
        for may_teach, some in groupby(lines, lambda line: "=" in line):
            if may_teach:
                answers += [answer for line in some for answer in self._learning(_clean(line))]
            else:
                answers += self._begin(list(some))()
        return lambda: iter(answers)

    def _learning(self, line: str) -> list[str]:
        """Answer a line, and learn from it if it carries its true value."""
        query, target = self._parted(line)
        answers = list(self._begin([query])())
        if target is None or (answers and answers[-1].startswith(_ERRORS)):
            return answers
        as_json = query.lstrip()[:1] in ("{", "[")
        values = self._json(query) if as_json else self._csv(query)
        for running in self._outstanding:
            running()
        try:
            self._device.learn([values], [target])
        except InputError as error:
            answers[-1] = _fault(str(error), as_json)
        return answers

    def _begin(self, lines: Sequence[str]) -> Callable[[], Iterator[str]]:
        before: list[Callable[[], Iterator[str]]] = []
        # An unreadable line, as when a port is opened in the middle of one, decides nothing.
        while self._first and lines:
            line = _clean(lines[0])
            if line.lower().startswith(_SEPARATOR):
                self._set(line[len(_SEPARATOR) :][:1] or ",")
                self._said = True
            elif self._begins(line):
                before.append(lambda: iter([self._header]))
            elif self._first:
                before.append(self._one_by_one([line]))
            else:
                break
            lines = lines[1:]
        x = self._table(lines)
        if x is None:
            before.append(self._one_by_one(lines))
        else:
            results = self._results(x)
            before.append(lambda: map(_in_csv, zip(*results(), strict=True)))
        return lambda: chain.from_iterable(one() for one in before)

    def _table(self, lines: Sequence[str]) -> Array | None:
        """Read lines all at once; None if one of them needs a closer look."""
        delimiter = self._delimiter
        if delimiter is None or not self._encoding.is_plain or not lines:
            return None
        between = self._columns - 1
        if not all(line.count(delimiter) == between for line in lines):
            return None
        read = self._cells.read_all(delimiter.join(lines).split(delimiter))
        if read is None:
            return None
        x: Array = read.reshape(-1, self._columns)
        return x if self._order is None else x.take(self._order, axis=1)

    def _one_by_one(self, lines: Sequence[str]) -> Callable[[], Iterator[str]]:
        read: list[tuple[list[float] | None, bool, str]] = []
        for line in map(_clean, lines):
            as_json = line.lstrip()[:1] in ("{", "[")
            try:
                read.append((self._json(line) if as_json else self._csv(line), as_json, ""))
            except _FaultError as fault:
                read.append((None, as_json, str(fault)))
        good = [values for values, _, _ in read if values is not None]
        results = self._results(np.array(good).reshape(-1, len(self._encoding.inputs)))

        def answer() -> Iterator[str]:
            found = zip(*results(), strict=True)
            for values, as_json, words in read:
                if values is None:
                    yield _fault(words, as_json)
                else:
                    yield self._in_json(next(found)) if as_json else _in_csv(next(found))

        return answer

    def _results(self, x: Array) -> Callable[[], _Columns]:
        """Start to evaluate; the returned function gives numbers or feature names by field."""
        if not len(x):
            return lambda: [[] for _ in self._keys]
        predicted = self._predict(x)
        self._outstanding.add(predicted)

        def finish() -> _Columns:
            found = predicted()
            self._outstanding.discard(predicted)
            return [self._named(one) if one.ndim == 2 else one.tolist() for one in found]

        return finish

    def _named(self, flags: Array) -> list[list[str]]:
        """Names of the flagged columns, for each query."""
        names: list[list[str]] = [[]] * len(flags)
        if flags.any():
            flags = self._encoding.by_column(flags)
            for row in np.flatnonzero(flags.any(axis=1)):
                names[row] = list(compress(self._names, flags[row]))
        return names

    def _in_json(self, values: Iterable[_Value]) -> str:
        return json.dumps(dict(zip(self._keys, map(_short, values), strict=True)))

    def _begins(self, line: str) -> bool:
        """Find out from a first line what separates columns; True if it is a header."""
        if line.lstrip()[:1] in ("{", "["):
            self._first = False
            return False
        cuts = {one: _cut(line, one) for one in ([self._delimiter] if self._said else _DELIMITERS)}
        for delimiter, cells in cuts.items():
            if len(set(cells)) == len(cells) and set(self._names) <= set(cells):
                self._set(delimiter)
                self._order = [cells.index(name) for name in self._names]
                self._columns = len(cells)
                self._first = False
                return True
        # A delimiter may be part of a name: prefer one that leaves only known names.
        fits: dict[bool, str | None] = {}
        for delimiter, cells in cuts.items():
            self._set(delimiter)
            with suppress(_FaultError):
                x = np.array([self._inputs(cells)])
                fits.setdefault(bool(self._encoding.unknown(x).any()), delimiter)
        self._first = not fits
        self._set(fits.get(False, fits.get(True, self._delimiter if self._said else ",")))
        return False

    def _set(self, delimiter: str | None) -> None:
        self._delimiter = delimiter
        self._cells = CellReader(comma_allowed=delimiter != ",")

    def _csv(self, line: str) -> list[float]:
        before = self._cells.decimal
        try:
            return self._inputs(_cut(line, self._delimiter))
        except _FaultError:
            self._cells.decimal = before  # a faulty line decides nothing
            raise

    def _inputs(self, cells: Sequence[str]) -> list[float]:
        """Read one line of cells."""
        if len(cells) != self._columns:
            raise _FaultError(f"{len(cells)} values, expected {self._columns}")
        chosen = cells if self._order is None else [cells[i] for i in self._order]
        values: list[float] = []
        anything = any(chosen)
        for k, (name, word, fillable) in enumerate(
            zip(self._names, chosen, self._fillable, strict=True)
        ):
            category = self._encoding.categories[k]
            kind, value = CellKind.TEXT, nan
            if category is None or looks_missing(word):
                kind, value = self._cells.read(word)
            if kind is CellKind.MISSING and not (fillable and anything):
                raise _FaultError(f"{name}: {word[:40]!r} is {_none(category)}")
            if category is not None:
                values += self._encoding.cell(k, self._cells.name(word))
            elif kind in (CellKind.NUMBER, CellKind.MISSING):
                values.append(value)
            else:
                raise _FaultError(f"{name}: {complaint(kind, repr(word[:40]))}")
        return values

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
        values: list[float] = []
        for k, (name, one, fillable) in enumerate(
            zip(self._names, value, self._fillable, strict=True)
        ):
            category = self._encoding.categories[k]
            absent = one is None or one != one
            if category is not None and isinstance(one, str | int | float):
                absent = looks_missing(str(one))
            if absent and fillable:
                values += [nan] * (1 if category is None else category.width)
                continue
            if absent and one is not None:
                raise _FaultError(f"{name}: {str(one)!r} is {_none(category)}")
            if category is not None and isinstance(one, str | int | float):
                values += self._encoding.cell(k, str(one))
                continue
            if isinstance(one, bool) or not isinstance(one, int | float):
                raise _FaultError(f"{name}: {json.dumps(one)[:40]} is {_none(category)}")
            try:
                values.append(float(one))
            except OverflowError:
                raise _FaultError(f"{name}: the number is too large") from None
            if not isfinite(values[-1]):
                raise _FaultError(f"{name}: {json.dumps(one)[:40]} is not a finite number")
        return values

    def _parted(self, line: str) -> tuple[str, float | None]:
        """Take a line apart: the query, and its true value if it has one."""
        if line.lstrip()[:1] == "{":
            return _json_parted(line)
        for delimiter in _DELIMITERS if self._first else (self._delimiter,):
            query, between, last = line.rpartition(delimiter or " ")
            # After an open quote it is part of a name.
            if between and last.lstrip().startswith("=") and query.count('"') % 2 == 0:
                reader = CellReader(comma_allowed=delimiter != ",")
                kind, value = reader.read(last.lstrip()[1:])
                return query, value if kind is CellKind.NUMBER else nan
        return line, None


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
        If the file has no intervals of that coverage; nothing has been read then.
    """
    answers = Replies(device, neighbors, coverage)
    begun: deque[Callable[[], Iterator[str]]] = deque()

    def begin(block: bytes) -> None:
        # Bytes that are not text are not a number either.
        begun.append(answers.begin(block.decode("utf-8", "replace").split("\n")))

    def finish(left: int) -> None:
        while len(begun) > left:
            write("".join(f"{one}\n" for one in begun.popleft()()))

    rest = b""
    too_long = False
    while chunk := os.read(source, _CHUNK):
        block, end, rest = (rest + chunk).rpartition(b"\n")
        if too_long and end:  # the end of a line that was given up
            block, too_long = b"\xff" + b"".join(block.partition(b"\n")[1:]), False
        if len(rest) > LONGEST:
            rest, too_long = b"", True
        if end:
            begin(block)
        # If more has already arrived, it is read while these lines are evaluated.
        finish(1 if end and _is_ready(source) else 0)
    if rest or too_long:
        begin(b"\xff" if too_long else rest)
    finish(0)


def _is_ready(source: int) -> bool:
    """Whether data, or the end of the file, can be read without waiting."""
    return os.name == "posix" and bool(select.select([source], [], [], 0)[0])


def _predictor(
    device: Device, neighbors: int | None, coverage: float | None
) -> Callable[[Array], Callable[[], list[Array]]]:
    """Return a function that starts to evaluate queries, and returns one that waits for results."""

    def predict(x: Array) -> list[Array]:
        return [one for one in device.predict_all(x, coverage, neighbors) if one is not None]

    def at_once(x: Array) -> Callable[[], list[Array]]:
        predicted = predict(x)
        return lambda: predicted

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if not isinstance(device, NativeDevice) or not cores or cores < 2:
        return at_once  # other backends use all cores themselves, or must not run concurrently
    pool = ThreadPoolExecutor(cores)

    def in_parts(x: Array) -> Callable[[], list[Array]]:
        if len(x) < _PART * 2:
            return at_once(x)
        parts = np.array_split(x, min(cores, len(x) // _PART))
        futures = [pool.submit(predict, part) for part in parts]
        return lambda: [
            np.concatenate(field)
            for field in zip(*(future.result() for future in futures), strict=True)
        ]

    return in_parts


def _in_csv(values: Iterable[_Value]) -> str:
    return ",".join(
        _quoted("|".join(one)) if isinstance(one, list) else f"{one:.7g}" for one in values
    )


def _none(category: Category | None) -> str:
    return "not a number" if category is None else "no name"


def _fault(words: str, as_json: bool) -> str:
    return json.dumps({"error": words}) if as_json else f"error: {words}"


def _json_parted(line: str) -> tuple[str, float | None]:
    """Take a JSON object apart: the query, and its true value if it has one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line, None  # it will be answered with an error
    if not isinstance(value, dict) or "=" not in value:
        return line, None
    target = value.pop("=")
    known = isinstance(target, int | float) and not isinstance(target, bool)
    try:
        query = json.dumps(value)
    except RecursionError:
        return line, None
    try:
        return query, float(target) if known else nan
    except OverflowError:
        return query, nan


def _cut(line: str, delimiter: str | None) -> list[str]:
    """Cut a line into cells, which may be quoted."""
    if delimiter is not None and '"' in line:
        reader = csv.reader([line], delimiter=delimiter, skipinitialspace=True)
        with suppress(csv.Error):  # a cell over the size limit
            return [cell.strip() for cell in next(reader, [""])]
    return [cell.strip() for cell in line.split(delimiter)] or [""]


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
