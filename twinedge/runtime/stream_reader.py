"""Read the lines of a stream: headers, queries in CSV or JSON, comments and true values.

CSV is read by the rules for files: the first line decides what separates the columns and, unless
that is a comma, decimal commas are allowed. A header decides which column is which. A line that
cannot be read has no effect, but a header that lacks a column of the model ends the stream: what
follows it could only be misread.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from math import inf, isfinite, nan
from typing import Any, TypeAlias

import numpy as np

from twinedge.encoding.calendars import Calendar
from twinedge.encoding.cells import (
    BLANKS,
    CellKind,
    CellReader,
    comment_cells,
    complaint,
    cut,
    heads_columns,
    looks_like_comment,
    looks_missing,
    looks_numeric,
)
from twinedge.encoding.encoder import Encoding, Kind
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.wording import closest, listed, missing_columns, quoted

Query: TypeAlias = list[float]  # inputs of the model; NaN is a missing value

_DELIMITERS = (",", ";", "\t", "|", BLANKS)
_SEPARATOR = "sep="  # Excel's first line


class QueryError(ValueError):
    """Why a line cannot be answered."""


class QueryReader:
    """Reads the lines of one stream.

    Parameters
    ----------
    encoding : Encoding
        Columns of the model.
    fillable : array of bool, shape (f,)
        Inputs that may be missing.
    targets : sequence of str
        Names of the targets.
    beside : sequence of str
        Other columns or keys of a line to keep, such as its time. They may be missing.
    needed : sequence of str
        Those of them that may not.

    Attributes
    ----------
    beside : dict
        Those of the last query that was read, by name: texts, or what JSON holds.
    columns_known : bool
        Whether a header or a first query has decided what separates the columns.
    """

    def __init__(
        self,
        encoding: Encoding,
        fillable: Array,
        targets: Sequence[str] = ("y",),
        beside: Sequence[str] = (),
        needed: Sequence[str] = (),
    ) -> None:
        self._encoding, self._targets = encoding, targets
        self._names = encoding.names
        self._fillable = [bool(fillable[part].all()) for part in encoding.parts]
        self._delimiter = ","
        self._cells = CellReader(comma_allowed=False)
        self._order: Sequence[int] | None = None  # position of each column in the header
        self._width = len(self._names)
        self._wanted, self._needed = tuple(dict.fromkeys(beside)), tuple(needed)
        self._places: dict[str, int] = {}  # of what is kept beside queries, in the header
        self.beside: dict[str, Any] = {}
        self._comment: str | None = None  # the last one, before the columns are known
        self._candidates: Sequence[str] = _DELIMITERS  # a first line "sep=" leaves one
        self.columns_known = False

    def read(self, line: str) -> list[Query | None]:
        """Read a line: what is to be answered, None for a header; nothing for a comment.

        Raises
        ------
        QueryError
            If it cannot be read.
        InputError
            If it is a header that lacks a column of the model.
        """
        if is_json(line):
            query = self._json(line)
            self.columns_known = True
            return [query]
        if looks_like_comment(line):
            self._comment = line
            return []
        if not self.columns_known:
            return self._read_first(line)
        try:
            return [self._csv(line)]
        except QueryError:
            # A sensor that starts again, or the next file of several, has a header again.
            if not self._is_header(cells := cut(line, self._delimiter)):
                raise
            self._set_header(self._delimiter, cells)
            return [None]

    def table(self, lines: Sequence[str]) -> Array | None:
        """Read lines of numbers at once, ``(n, f)``; None if one of them needs a closer look."""
        delimiter = self._delimiter
        if (
            not self.columns_known
            or delimiter == BLANKS
            or self._wanted
            or not self._encoding.is_plain
            or not lines
        ):
            return None
        between = self._width - 1
        if not all(line.count(delimiter) == between for line in lines):
            return None
        cells = delimiter.join(lines).split(delimiter)
        read = self._cells.read_all(cells, range(len(self._names)))
        if read is None:
            return None
        x: Array = read.reshape(-1, self._width)
        return x if self._order is None else x.take(self._order, axis=1)

    def split_targets(self, line: str) -> tuple[str, list[float] | None]:
        """Split a line into the query and its true values, None if it has none.

        A true value that is no number is NaN. Of several, NaN is one that was not measured, and one
        that is no number is infinite.
        """
        if line.lstrip()[:1] == "{":
            return _split_json_targets(line, self._targets)
        if looks_like_comment(line):
            return line, None
        for delimiter in (self._delimiter,) if self.columns_known else self._candidates:
            query, found = line, list[float]()
            while len(found) < len(self._targets):
                before, between, last = query.rpartition(delimiter)
                # After an open quote it is part of a name.
                if not between or last.lstrip()[:1] != "=" or before.count('"') % 2:
                    break
                query = before
                found.insert(0, self._target(last.strip()[1:], delimiter))
            if found:
                return query, found
        return line, None

    def _target(self, cell: str, delimiter: str) -> float:
        kind, value = CellReader(comma_allowed=delimiter != ",").read(cell, 0)
        if kind is CellKind.NUMBER:
            return value
        return nan if len(self._targets) == 1 or looks_missing(cell) else inf

    def _read_first(self, line: str) -> list[Query | None]:
        """Find out from a first line what separates the columns, and in which order they are."""
        if line.lower().startswith(_SEPARATOR):
            self._set(line[len(_SEPARATOR) :][:1] or ",")
            self._candidates = (self._delimiter,)
            return []
        cuts = {one: cut(line, one) for one in self._candidates}
        for delimiter, cells in cuts.items():
            if self._is_header(cells):
                self._set_header(delimiter, cells)
                return [None]
        for delimiter, cells in cuts.items():
            names = comment_cells(self._comment or "", delimiter)
            if heads_columns(names, cells) and any(map(looks_numeric, cells)):
                self._set_header(delimiter, names)
                return [None, self._csv(line)]
        # A delimiter may be part of a name: prefer one that leaves only known names.
        fits: dict[bool, str] = {}
        for delimiter, cells in cuts.items():
            with suppress(QueryError):
                x = np.array([self._inputs(cells, CellReader(comma_allowed=delimiter != ","))])
                fits.setdefault(bool(self._encoding.unknown(x).any()), delimiter)
        # An unreadable line, as when a port is opened in the middle of one, decides nothing.
        in_json = line.rstrip().endswith("}")
        if False not in fits and not in_json:
            for delimiter, cells in cuts.items():
                if self._names_columns(delimiter, cells, fits=bool(fits)):
                    self._set_header(delimiter, cells)
                    return [None]
        self.columns_known, self._comment = bool(fits), None
        self._set(fits.get(False, fits.get(True, self._delimiter)))
        return [self._csv(line)]

    def _is_header(self, cells: Sequence[str]) -> bool:
        """Whether cells hold all columns of the model."""
        return set(self._names) <= set(cells)

    def _names_columns(self, delimiter: str, cells: Sequence[str], *, fits: bool) -> bool:
        """Whether cells are a header, though it lacks columns of the model.

        It has one of their names, in any case. Or else, unless it ``fits`` as a query, all cells
        are words, as many as the model has columns, and at least two. Words between blanks may be
        any message, so half of them must be the names.
        """
        words = [cell for cell in cells if cell.isprintable() and any(map(str.isalpha, cell))]
        words = [cell for cell in words if not (looks_numeric(cell) or looks_missing(cell))]
        known = {name.casefold() for name in self._names}
        found = sum(word.casefold() in known for word in words)
        if delimiter == BLANKS:
            return 2 * found >= max(len(self._names), len(words))
        return found > 0 or (not fits and len(set(words)) == len(cells) >= max(2, len(self._names)))

    def _set_header(self, delimiter: str, cells: Sequence[str]) -> None:
        """Let a header decide which column is which."""
        if self._is_header(cells):
            repeated = [name for name in self._names if cells.count(name) > 1]
            if repeated:
                raise InputError(
                    f"the header has {listed(repeated)} more than once; give each column its own "
                    "name"
                )
            for name in self._needed:
                if name not in cells:
                    raise InputError(
                        f"the header has no {quoted(name)}{closest(name, cells)}; it has "
                        f"{listed(cells)}"
                    )
            self._order = [cells.index(name) for name in self._names]
            self._places = {name: cells.index(name) for name in self._wanted if name in cells}
        # The names of an array's columns were made up, so nobody can have meant them.
        elif not (
            self._encoding.is_numbered
            and len(cells) == len(self._names)
            and not set(cells) & set(self._names)
        ):
            raise InputError(
                f"the header has {missing_columns(cells, self._names)}; it has {listed(cells)}"
            )
        self._set(delimiter)
        self._width = len(cells)
        self.columns_known = True

    def _set(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._cells = CellReader(comma_allowed=delimiter != ",")

    def _csv(self, line: str) -> Query:
        reader = self._cells.copy()  # a faulty line decides nothing
        cells = cut(line, self._delimiter)
        query = self._inputs(cells, reader)
        self._cells = reader
        self.beside = {name: cells[place].strip() for name, place in self._places.items()}
        return query

    def _inputs(self, cells: Sequence[str], reader: CellReader) -> Query:
        """Read one line of cells."""
        if len(cells) != self._width:
            raise QueryError(f"{len(cells)} values, expected {self._width}")
        if self._needed and self._order is None:
            raise QueryError(f"{self._needed[0]} is missing: a header has to name it")
        chosen = cells if self._order is None else [cells[i] for i in self._order]
        values: Query = []
        anything = any(chosen)
        for k, (name, word, fillable) in enumerate(
            zip(self._names, chosen, self._fillable, strict=True)
        ):
            column = self._encoding.kinds[k]
            kind, value = CellKind.TEXT, nan
            if column is None or looks_missing(word):
                kind, value = reader.read(word, k)
            if kind is CellKind.MISSING and not (fillable and anything):
                raise QueryError(f"{name}: {word[:40]!r} is {_fault(column)}")
            if column is not None:
                values += self._cell(k, reader.name(word))
            elif kind in (CellKind.NUMBER, CellKind.MISSING):
                values.append(value)
            else:
                raise QueryError(f"{name}: {complaint(kind, repr(word[:40]))}")
        return values

    def _json(self, line: str) -> Query:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise QueryError("not JSON") from None
        return self.from_json(value)

    def from_json(self, value: Any) -> Query:
        """Read a query from what JSON holds: an object, or an array.

        Raises
        ------
        QueryError
            If it cannot be read.
        """
        if isinstance(value, dict):
            missing = [name for name in self._names if name not in value]
            if missing:
                others = [key for key in value if key not in self._names]
                raise QueryError(f"{missing[0]} is missing{closest(missing[0], others)}")
            self.beside = {name: value[name] for name in self._wanted if name in value}
            value = [value[name] for name in self._names]
        else:
            self.beside = {}
        absent_ones = [name for name in self._needed if name not in self.beside]
        if absent_ones:
            raise QueryError(f"{absent_ones[0]} is missing")
        if len(value) != len(self._names):
            raise QueryError(f"{len(value)} values, expected {len(self._names)}")
        values: Query = []
        for k, (name, one, fillable) in enumerate(
            zip(self._names, value, self._fillable, strict=True)
        ):
            column = self._encoding.kinds[k]
            absent = one is None or one != one
            if column is not None and isinstance(one, str | int | float):
                absent = looks_missing(str(one))
            if absent and fillable:
                values += [nan] * (1 if column is None else column.width)
                continue
            if absent and one is not None:
                raise QueryError(f"{name}: {str(one)!r} is {_fault(column)}")
            if column is not None and isinstance(one, str | int | float):
                values += self._cell(k, str(one))
                continue
            values.append(_number(name, one, column))
        return values

    def _cell(self, column: int, text: str) -> list[float]:
        """Encode a name or a time."""
        try:
            return self._encoding.cell(column, text)
        except InputError as error:
            raise QueryError(str(error)) from None


def is_json(line: str) -> bool:
    """Whether a line is meant to be JSON."""
    return line.lstrip()[:1] in ("{", "[")


def _number(name: str, value: Any, column: Kind) -> float:
    """Check a number from JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QueryError(f"{name}: {json.dumps(value)[:40]} is {_fault(column)}")
    try:
        number = float(value)
    except OverflowError:
        raise QueryError(f"{name}: the number is too large") from None
    if not isfinite(number):
        raise QueryError(f"{name}: {json.dumps(value)[:40]} is not a finite number")
    return number


def _fault(column: Kind) -> str:
    if isinstance(column, Calendar):
        return "no time"
    return "not a number" if column is None else "no name"


def _split_json_targets(line: str, targets: Sequence[str]) -> tuple[str, list[float] | None]:
    """Split a JSON object into the query and its true values, None if it has none.

    Several are a list, or by name.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line, None  # it will be answered with an error
    if not isinstance(value, dict) or "=" not in value:
        return line, None
    given = value.pop("=")
    if len(targets) > 1 and isinstance(given, dict) and set(given) <= set(targets):
        given = [given.get(name) for name in targets]
    several = len(targets) > 1 and isinstance(given, list)
    try:
        query = json.dumps(value)
    except RecursionError:
        return line, None
    return query, [_json_target(one, several) for one in (given if several else [given])]


def _json_target(value: Any, several: bool) -> float:
    if several and value is None:
        return nan
    known = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if known else inf if several else nan
    except OverflowError:
        return inf if several else nan
