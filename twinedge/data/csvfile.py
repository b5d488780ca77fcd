"""Read the columns of a table file, streamed so that memory holds the numbers and little else.

Text files come in many dialects. Parquet and Excel files are read by pandas, if it is installed,
and then by the same rules, as data frames are.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinedge.data.dialect import (
    BadRows,
    Row,
    RowError,
    Rows,
    find_delimiter,
    has_units,
    names_columns,
)
from twinedge.data.frames import SUFFIXES, read_binary, rows_of_frame
from twinedge.data.textfile import TextLines, open_text
from twinedge.encoding.cells import (
    CellKind,
    CellReader,
    complaint,
    heads_columns,
    numbered,
)
from twinedge.encoding.tables import Column, is_frame
from twinedge.encoding.times import Notation, read_times
from twinedge.errors import Advice, InputError, Parameter, dropping
from twinedge.wording import listed, plural, quoted, shown

# Only one block of cells, about 10 MB, is held as text at a time.
_CELLS_PER_BLOCK = 2**17
_HEAD_CHARACTERS = 2**16
_ROWS_TO_CLASSIFY = 1000  # to tell a column of numbers from one of names
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel's first line
FRAME = Path("data frame")  # in messages about one
_INDEX = ("", "Unnamed: 0")  # what pandas calls its row numbers


class CsvFile:
    """An open table; made by `open_table`.

    Parameters
    ----------
    path
        For messages.
    rows
        All rows, including the header if there is one.
    cells
        Reader for the cells.
    known
        See `open_table`.
    bad
        What to do with rows that cannot be used.
    text
        Where the rows of a text file come from.

    Attributes
    ----------
    names : tuple of str
        Column names from the header, or ``x0``, ``x1``, ... if there is none.
    has_header : bool
    index : int or None
        Position of the column of row numbers that pandas writes.
    labels : list of str
        Cells of the ``label`` column.
    kept : dict of int to list of str
        Cells of columns to ``keep``, by position.
    row_numbers : ndarray of int64
        Where the rows that were read are in the file.
    notations : dict of int to Notation
        How columns of times write them, by position.
    glanced : dict of int to list of str
        First cells of columns that were not read, by position.
    """

    def __init__(
        self,
        path: Path,
        rows: Iterator[Row],
        cells: CellReader,
        known: Collection[str],
        bad: BadRows,
        text: TextLines | None = None,
    ) -> None:
        self.path = path
        self.labels: list[str] = []
        self.kept: dict[int, list[str]] = {}
        self.row_numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self.notations: dict[int, Notation] = {}
        self.glanced: dict[int, list[str]] = {}
        self._of_times: list[str] = []
        self._cells, self._bad, self._text = cells, bad, text
        self._cut = rows if isinstance(rows, Rows) else None
        first = next(rows, None)
        if first is None:
            only = " but for comments" if self._cut and self._cut.comments else ""
            raise InputError(
                f"{shown(path)}: is empty{only}; a header and rows of numbers were expected"
            )
        second, third = next(rows, None), next(rows, None)
        stripped = [cell.strip() for cell in first[1]]
        self.has_header = bool(known and set(known) <= set(stripped)) or names_columns(
            stripped, second[1] if second else None
        )
        self.index: int | None = None
        self._units = False
        comment = [] if self.has_header or self._cut is None else self._cut.heading
        self._commented = heads_columns(comment, stripped)
        if self.has_header:
            self.names = tuple(stripped)
            if len(stripped) > 1 and stripped[0] in _INDEX and stripped[0] not in known:
                self.index = 0
            self._units = bool(second and third and has_units(second[1], third[1]))
            ahead = [None if self._units else second, third]
        else:
            self.names = tuple(comment) if self._commented else numbered(len(stripped))
            self.has_header = self._commented
            ahead = [first, second, third]
        self._rows = chain([row for row in ahead if row is not None], rows)

    @property
    def remarks(self) -> list[str]:
        """What the user should know about how the file was read, once it was."""
        found = []
        if self._text is not None and self._text.encoding == "Windows-1252":
            found.append("not UTF-8: read as Windows-1252 (Latin-1)")
        if self._units:
            found.append("the row below the header holds units, not numbers: left out")
        if self._commented:
            found.append("the comment above the first row is its header")
        comments = 0 if self._cut is None else self._cut.comments - self._commented
        if comments:
            found.append(f"{plural(comments, 'comment')}, starting with #, left out")
        percent = [self.names[k] for k, has in sorted(self._cells.percent.items()) if has]
        if percent:
            found.append(f"column {listed(percent)} holds percentages: 53.1% is read as 53.1")
        found += self._of_times
        if self._bad.remark:
            found.append(self._bad.remark)
        return found

    def columns(
        self,
        wanted: Sequence[int],
        *,
        texts: Collection[int] = (),
        may_be_texts: Collection[int] = (),
        may_miss: Collection[int] = (),
        could_impute: Collection[int] = (),
        could_drop: Collection[int] = (),
        label: int | None = None,
        target: int | None = None,
        times: Mapping[int, Notation | None] | None = None,
        glance: Collection[int] = (),
        keep: Collection[int] = (),
    ) -> list[Column]:
        """Read the given columns to the end of the file.

        Parameters
        ----------
        wanted
            Positions of the columns, in the order wanted; at least one.
        texts
            Those whose cells are names, whatever they look like.
        may_be_texts
            Those whose cells are names if most of the first ones are not numbers.
        may_miss
            Those where a missing value is NaN rather than an error.
        could_impute
            Those where the error about a missing value may suggest imputing it.
        could_drop
            Those where the error about a cell that is not a number may suggest dropping the column.
        label
            Position of a column whose cells are kept as text, in ``labels``; none may be missing.
        target
            Position of the target, if the error about a missing one may suggest leaving out such
            rows.
        times
            Those whose cells are times, each with its notation, or None if the cells decide. Their
            values are seconds since 1970, as those of ``twinedge.encoding.times.Times`` are.
        glance
            Other columns whose first cells are kept in ``glanced``.
        keep
            Columns whose cells are kept as they are, in ``kept``.
        """
        advice = dict.fromkeys(could_impute, Advice(", or use ", Parameter("impute", "median")))
        if target is not None:
            advice[target] = Advice(
                ", or leave such rows out with ", Parameter("drop_missing_target", True)
            )
        self.kept = {k: [] for k in keep}
        named: set[int] | None = None
        numbers: list[int] = []
        found: dict[int, list[NDArray[np.float64]]] = {k: [] for k in wanted}
        times = times or {}
        allowed, may_be_texts = map(frozenset, (may_miss, may_be_texts))
        texts = {*texts, *times}
        codes: dict[int, dict[str, int]] = {k: {} for k in wanted if k in texts}
        row_numbers: list[NDArray[np.int64]] = []
        for block in self._blocks():
            if named is None:
                named = {k for k in wanted if k in texts}
                named |= {k for k in wanted if k in may_be_texts and self._holds_names(block, k)}
                numbers = [k for k in wanted if k not in named]
                codes = {k: {} for k in wanted if k in named}
                self.glanced = {
                    k: [row[k].strip() for _, row in block[:_ROWS_TO_CLASSIFY]] for k in glance
                }
            block = self._complete(block, [k for k in codes if k not in allowed], label, advice)
            if numbers and block:
                values = self._numbers(block, numbers)
                if values is None:
                    values, block = self._read_closely(block, numbers, allowed, advice, could_drop)
                for k, column in zip(numbers, values.T, strict=True):
                    found[k].append(column)
            for k, known in codes.items():
                found[k].append(self._names(block, k, known))
            if label is not None:
                self.labels += [row[label].strip() for _, row in block]
            for k, cells in self.kept.items():
                cells += [row[k].strip() for _, row in block]
            row_numbers.append(np.array([number for number, _ in block], np.int64))
        self.row_numbers = np.concatenate([np.empty(0, np.int64), *row_numbers])
        columns = {
            k: Column(
                self.names[k],
                np.concatenate([np.empty(0), *found[k]]),
                tuple(codes[k]) if k in codes else None,
            )
            for k in wanted
        }
        for k, notation in times.items():
            columns[k], bad = self._times(columns[k], k, notation, missing=k in allowed)
            columns = self._without(bad, columns)
        good = len(self.row_numbers)
        self._bad.check(good)
        if not good:
            raise InputError(f"{shown(self.path)}: has a header and no rows; add rows of numbers")
        return [columns[k] for k in wanted]

    def _times(
        self, column: Column, where: int, notation: Notation | None, *, missing: bool
    ) -> tuple[Column, NDArray[np.bool_]]:
        """Read texts as times; also tell which rows ``(n,)`` are bad, as ``missing`` ones may be.

        The notation is a matter of the whole column, so that this cannot be done block by block.
        """
        assert column.texts is not None
        wrong: dict[int, tuple[str, str]] = {}
        read = read_times(column.texts, notation, lambda i, *why: wrong.update({i: why}))
        self.notations[where] = read.notation
        if read.remark:
            self._of_times.append(f"column {quoted(column.name)}: {read.remark}")
        none = len(column.texts)  # the index of a missing cell
        code = np.where(np.isnan(column.values), none, column.values).astype(np.intp)
        seconds = np.append(read.seconds, np.nan)[code]
        bad = np.isin(code, list(wrong)) | (np.isnan(seconds) & (not missing))
        for i in np.flatnonzero(bad).tolist():
            number = int(self.row_numbers[i])
            if code[i] in wrong:
                self._bad.add(number, column.name, *wrong[code[i]])
            else:
                self._add_missing(number, where, {})
        return Column(column.name, seconds), bad

    def _without(self, gone: NDArray[np.bool_], columns: Mapping[int, Column]) -> dict[int, Column]:
        """Leave out rows of all columns."""
        self.row_numbers = self.row_numbers[~gone]
        self.labels = [one for one, out in zip(self.labels, gone, strict=False) if not out]
        self.kept = {
            k: [one for one, out in zip(cells, gone, strict=True) if not out]
            for k, cells in self.kept.items()
        }
        return {k: one._replace(values=one.values[~gone]) for k, one in columns.items()}

    def _numbers(self, block: Sequence[Row], columns: Sequence[int]) -> NDArray[np.float64] | None:
        """Read columns of a block at once, ``(rows, columns)``; None if a cell is not a number."""
        rows = [row for _, row in block]
        if len(columns) == len(self.names) and list(columns) == list(range(len(self.names))):
            cells = list(chain.from_iterable(rows))
        elif len(columns) == 1:
            cells = list(map(itemgetter(*columns), rows))
        else:
            cells = list(chain.from_iterable(map(itemgetter(*columns), rows)))
        values = self._cells.read_all(cells, columns)
        return None if values is None else values.reshape(len(rows), len(columns))

    def _holds_names(self, block: Sequence[Row], column: int) -> bool:
        """Whether most cells that are not missing are words, not numbers of any spelling."""
        reader = self._cells.afresh()
        kinds = [reader.read(row[column], column)[0] for _, row in block[:_ROWS_TO_CLASSIFY]]
        words = kinds.count(CellKind.TEXT)
        return 2 * words > len(kinds) - kinds.count(CellKind.MISSING)

    def _names(
        self, block: Sequence[Row], column: int, known: dict[str, int]
    ) -> NDArray[np.float64]:
        """Index of the text each cell holds; NaN if it is missing."""
        values = np.empty(len(block))
        for i, (_, row) in enumerate(block):
            text = self._cells.name(row[column])
            if text not in known and self._cells.is_missing(text):
                values[i] = np.nan
            else:
                values[i] = known.setdefault(text, len(known))
        return values

    def _complete(
        self,
        block: list[Row],
        columns: Sequence[int],
        label: int | None,
        advice: Mapping[int, Advice],
    ) -> list[Row]:
        """Rows that have a name in each of these columns, and a label."""
        if not columns and label is None:
            return block
        found = []
        for number, row in block:
            gone = next((k for k in columns if self._cells.is_missing(row[k])), None)
            if label is not None and self._cells.is_missing(row[label]):
                self._bad.add(number, self.names[label], "missing", "; every row needs its group")
            elif gone is not None:
                self._add_missing(number, gone, advice)
            else:
                found.append((number, row))
        return found

    def _add_missing(self, number: int, column: int, advice: Mapping[int, Advice]) -> None:
        more = advice[column].parts if column in advice else ()
        right = "; fill it in or remove the row"
        self._bad.add(number, self.names[column], "missing value", right, *more)

    def _blocks(self) -> Iterator[list[Row]]:
        width = len(self.names)
        most = max(1, _CELLS_PER_BLOCK // width)
        block: list[Row] = []
        for number, row in self._rows:
            if len(row) != width:
                wrong = f"has {plural(len(row), 'cell')}, the first row has {width}"
                self._bad.add(number, None, wrong, "; every row needs the same number")
                continue
            block.append((number, row))
            if len(block) == most:
                yield block
                block = []
        if block:
            yield block

    def _read_closely(
        self,
        block: Sequence[Row],
        columns: Sequence[int],
        allowed: Collection[int],
        advice: Mapping[int, Advice],
        could_drop: Collection[int],
    ) -> tuple[NDArray[np.float64], list[Row]]:
        """Read columns cell by cell, ``(rows, columns)``; also return the rows that are good."""
        values = np.empty((len(block), len(columns)))
        good: list[Row] = []
        for number, row in block:
            reader = self._cells.copy()  # a bad row decides nothing
            for j, column in enumerate(columns):
                kind, values[len(good), j] = reader.read(row[column], column)
                if kind is CellKind.MISSING and column not in allowed:
                    self._add_missing(number, column, advice)
                    break
                if kind not in (CellKind.NUMBER, CellKind.MISSING):
                    words = complaint(kind, quoted(row[column].strip()))
                    more = self._otherwise(column, could_drop) if kind is CellKind.TEXT else ()
                    self._bad.add(number, self.names[column], words, *more)
                    break
            else:
                self._cells = reader
                good.append((number, row))
        return values[: len(good)], good

    def _otherwise(self, column: int, could_drop: Collection[int]) -> tuple[str | Parameter, ...]:
        """Suggest what to do about a column with a word among its numbers."""
        if column not in could_drop:
            return ("; correct it",)
        name = self.names[column]
        return (
            "; correct it, leave the column out with ",
            dropping([name]),
            ", or treat its values as names with ",
            Parameter("categorical", [name]),
        )


@contextmanager
def open_table(
    table: Any,
    known: Collection[str] = (),
    skip_bad_rows: bool | None = None,
    missing: Collection[str] = (),
    path: Path | None = None,
) -> Iterator[CsvFile]:
    """Open a table and read its header.

    Parameters
    ----------
    table
        Path of a text file, which may be compressed by gzip; columns separated by comma, semicolon,
        tab, bar or blanks. Or of a Parquet or Excel file. Or a data frame.
    known
        Column names the caller looks for: a first row that holds them all is a header even if all
        of them are numbers.
    skip_bad_rows
        Whether to leave out rows that cannot be used. Otherwise they are refused, and if it is
        False, the message says that they could be left out.
    missing
        Texts that stand for a missing value, besides the usual ones.
    path
        What to call a data frame in messages.
    """
    in_memory = is_frame(table)
    path = path or FRAME if in_memory else Path(table)
    bad = BadRows(path, skip_bad_rows)
    suffix = path.suffix.lower()
    if in_memory or suffix in SUFFIXES:
        rows = rows_of_frame(table, 0) if in_memory else read_binary(path, suffix, shown(path))
        cells = CellReader(comma_allowed=False, missing=missing)
        yield CsvFile(path, rows, cells, known, bad)
        return
    with open_text(path) as text:
        head: list[str] = []
        size = 0
        for line in text:
            head.append(line)
            size += len(line)
            if size >= _HEAD_CHARACTERS:
                break
        delimiter = None
        if head and (named := _SEPARATOR.fullmatch(head[0])):
            delimiter, head[0] = named[1], "\n"  # a blank line is counted, but left out
        delimiter = delimiter or find_delimiter(head)

        def refuse(error: RowError) -> None:
            bad.add(error.number, None, error.reason, "; is a quote left open?")

        rows = Rows(chain(head, text), delimiter, refuse)
        cells = CellReader(comma_allowed=delimiter != ",", missing=missing)
        yield CsvFile(path, rows, cells, known, bad, text)
