"""Read the columns of a table file, streamed so that memory holds the numbers and little else.

Text files come in many dialects. Parquet and Excel files are read by pandas, if it is installed,
and then by the same rules.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from twinedge.cells import CellKind, CellReader, complaint, looks_missing, looks_numeric
from twinedge.encoding import Column
from twinedge.errors import (
    Advice,
    InputError,
    Parameter,
    ParameterError,
    dropping,
    place,
    plural,
    quoted,
)

# Without a limit, a file with no line breaks would be read into memory as one line.
LONGEST_LINE = 2**24
_SAVE_AS = "save it as CSV in UTF-8"
_GZIP = b"\x1f\x8b"


def open_text(path: Path) -> TextIO:
    """Open a file as UTF-8 text, with or without a byte order mark; line endings are kept.

    A file compressed by gzip is decompressed.
    """
    try:
        return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")
    except IsADirectoryError:
        raise InputError(f"{place(path)}: is a folder; give the path of a CSV file") from None
    except FileNotFoundError:
        raise InputError(f"{place(path)}: no such file; give the path of a CSV file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise InputError(f"{place(path)}: cannot be read: {reason}") from None


def lines(stream: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of `stream`; bytes that are not text raise an `InputError`.

    Parameters
    ----------
    stream
        As `open_text` returns it.
    path
        Where the stream comes from, for messages.
    """
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(LONGEST_LINE + 1)
        except UnicodeDecodeError:
            row = _undecodable_row(path)
            raise InputError(f"{place(path)}:{row} not UTF-8 text; {_SAVE_AS}") from None
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InputError(
                f"{place(path)}: is not a complete gzip file; compress it again"
            ) from None
        except OSError as error:
            raise InputError(f"{place(path)}: cannot be read: {error.strerror}") from None
        if not line:
            return
        if "\0" in line:
            raise InputError(
                f"{place(path)}: row {number}: not a text file (it holds zero bytes); {_SAVE_AS}"
            )
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{place(path)}: row {number}: longer than {LONGEST_LINE} characters; "
                f"a CSV has one line per row"
            )
        yield line


def _open_bytes(path: Path) -> BinaryIO:
    stream = path.open("rb")
    if stream.peek(2)[:2] != _GZIP or not path.is_file():
        return stream
    stream.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def _undecodable_row(path: Path) -> str:
    # The text layer decodes blocks of several kilobytes, so it cannot say which line was at fault:
    # look again, in bytes. A pipe cannot be read twice; its message has no row.
    if not path.is_file():
        return ""
    with _open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.decode("utf-8", errors="ignore").encode() != line:
                return f" row {number}:"
    return ""


Row = tuple[int, list[str]]  # line number as an editor shows it, cells

_DELIMITERS = (",", ";", "\t", "|")
_WHITESPACE = " "
_CELLS_TO_JUDGE = 10_000


class RowError(Exception):
    """A line that cannot be cut into cells.

    Parameters
    ----------
    number
        Line number, from 1.
    reason
        What the csv module says about it.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number
        self.reason = reason


def rows_of(text: Iterable[str], delimiter: str) -> Iterator[Row]:
    """Cut lines into numbered rows of cells; blank lines are counted and left out.

    Parameters
    ----------
    text
        Lines with their line endings.
    delimiter
        One character; a blank stands for any number of blanks and tabs.
    """
    if delimiter == _WHITESPACE:
        for number, line in enumerate(text, start=1):
            cells = line.split()
            if cells:
                yield number, cells
        return
    # strict: an unclosed quote is an error, and does not swallow the rest of the file.
    reader = csv.reader(text, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise RowError(reader.line_num, str(error)) from None


def find_delimiter(head: Sequence[str]) -> str:
    r"""Find what separates the columns, from the first lines of a file.

    The winner cuts the most rows into the same number of cells; ties go to the one that yields more
    numbers. So ``1,5;2,5`` is two numbers with decimal commas, not three odd cells.

    Examples
    --------
    >>> find_delimiter(["1,5;2,5\n", "3,5;4,5\n"])
    ';'
    """
    best, best_score = ",", (0.0, 0.0)
    for delimiter in _DELIMITERS:
        score = _score(head, delimiter)
        if score > best_score:
            best, best_score = delimiter, score
    # Names may contain blanks, so blanks separate columns only if nothing else does, or if they
    # alone yield numbers throughout: "1,5 2,5".
    even, numeric = _score(head, _WHITESPACE)
    alone = best_score == (0.0, 0.0) or best_score[1] < numeric == 1.0
    return _WHITESPACE if even == 1.0 and alone else best


def _score(head: Sequence[str], delimiter: str) -> tuple[float, float]:
    rows: list[list[str]] = []
    try:
        for _, row in rows_of(head, delimiter):
            rows.append(row)
    except RowError:
        pass  # the head may end inside a quoted cell; the rows before it are good evidence
    if not rows or len(rows[0]) < 2:
        return 0.0, 0.0
    even = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    cells = list(islice(chain.from_iterable(rows), _CELLS_TO_JUDGE))
    return even, sum(map(looks_numeric, cells)) / len(cells)


def names_columns(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Tell whether the first row of a file is a header.

    It is if none of its cells is a number, or if one of its words is above a number. A row of
    numbers is data; so is a row whose words are all above other words. (Names may be numbers:
    spectra have columns called 400, 410, ... beside one called "target".)

    Examples
    --------
    >>> names_columns(["400", "410", "target"], ["0.1", "0.2", "7"])
    True
    >>> names_columns(["5.1", "3.5", "setosa"], ["4.9", "3.0", "setosa"])
    False
    """
    words = [k for k, cell in enumerate(first) if not (looks_numeric(cell) or looks_missing(cell))]
    if not words:
        return False
    if second is None or not any(map(looks_numeric, first)):
        return True
    return any(k < len(second) and looks_numeric(second[k]) for k in words)


# Only one block of cells, about 10 MB, is held as text at a time.
_CELLS_PER_BLOCK = 2**17
_HEAD_CHARACTERS = 2**16
_ROWS_TO_JUDGE = 1000  # to tell a column of numbers from one of names
_SEPARATOR = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel's first line
_INDEX = ("", "Unnamed: 0")  # what pandas calls its row numbers
_FRAMES = {".parquet": "read_parquet", ".xlsx": "read_excel", ".xls": "read_excel"}


class CsvFile:
    """An open CSV file; made by `open_csv`.

    Parameters
    ----------
    path
        For messages.
    rows
        All rows, including the header if there is one.
    cells
        Reader for the cells.
    known
        See `open_csv`.

    Attributes
    ----------
    names : tuple of str
        Column names from the header, or ``x0``, ``x1``, ... if there is none.
    has_header : bool
    index : int or None
        Position of the column of row numbers that pandas writes.
    units : bool
        Whether the row below the header held units, and was left out.
    labels : list of str
        Cells of the ``label`` column.
    """

    def __init__(
        self, path: Path, rows: Iterator[Row], cells: CellReader, known: Collection[str]
    ) -> None:
        self.path = path
        self.labels: list[str] = []
        self._cells = cells
        first = next(rows, None)
        if first is None:
            raise InputError(f"{place(path)}: is empty; a header and rows of numbers were expected")
        second, third = next(rows, None), next(rows, None)
        stripped = [cell.strip() for cell in first[1]]
        self.has_header = bool(known and set(known) <= set(stripped)) or names_columns(
            stripped, second[1] if second else None
        )
        self.index: int | None = None
        self.units = False
        if self.has_header:
            self.names = tuple(stripped)
            if len(stripped) > 1 and stripped[0] in _INDEX and stripped[0] not in known:
                self.index = 0
            self.units = bool(second and third and _has_units(second[1], third[1]))
            ahead = [None if self.units else second, third]
        else:
            self.names = tuple(f"x{k}" for k in range(len(stripped)))
            ahead = [first, second, third]
        self._rows = chain([row for row in ahead if row is not None], rows)

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
        """
        advice = dict.fromkeys(could_impute, Advice(", or use ", Parameter("impute", "median")))
        if target is not None:
            advice[target] = Advice(
                ", or leave such rows out with ", Parameter("drop_missing_target", True)
            )
        named: set[int] | None = None
        numbers: list[int] = []
        codes: dict[int, dict[str, int]] = {}
        found: dict[int, list[NDArray[np.float64]]] = {k: [] for k in wanted}
        allowed, texts, may_be_texts = map(frozenset, (may_miss, texts, may_be_texts))
        for block in self._blocks():
            if named is None:
                named = {k for k in wanted if k in texts}
                named |= {k for k in wanted if k in may_be_texts and self._holds_names(block, k)}
                numbers = [k for k in wanted if k not in named]
                codes = {k: {} for k in wanted if k in named}
            if label is not None:
                self._label(block, label)
            if numbers:
                values = self._numbers(block, numbers)
                if values is None:
                    values = self._read_closely(block, numbers, allowed, advice, could_drop)
                for k, column in zip(numbers, values.T, strict=True):
                    found[k].append(column)
            for k, known in codes.items():
                found[k].append(self._names(block, k, known, k in allowed, advice))
        if named is None:
            raise InputError(f"{place(self.path)}: has a header and no rows; add rows of numbers")
        return [
            Column(
                self.names[k],
                np.concatenate(found[k]),
                tuple(codes[k]) if k in codes else None,
            )
            for k in wanted
        ]

    def _numbers(self, block: Sequence[Row], columns: Sequence[int]) -> NDArray[np.float64] | None:
        """Read columns of a block at once, ``(rows, columns)``; None if a cell is not a number."""
        rows = [row for _, row in block]
        if len(columns) == len(self.names) and list(columns) == list(range(len(self.names))):
            cells = list(chain.from_iterable(rows))
        elif len(columns) == 1:
            cells = list(map(itemgetter(*columns), rows))
        else:
            cells = list(chain.from_iterable(map(itemgetter(*columns), rows)))
        values = self._cells.read_all(cells)
        return None if values is None else values.reshape(len(rows), len(columns))

    def _holds_names(self, block: Sequence[Row], column: int) -> bool:
        """Whether most cells that are not missing are words, not numbers of any spelling."""
        reader = self._cells.afresh()
        kinds = [reader.read(row[column])[0] for _, row in block[:_ROWS_TO_JUDGE]]
        words = kinds.count(CellKind.TEXT)
        return 2 * words > len(kinds) - kinds.count(CellKind.MISSING)

    def _names(
        self,
        block: Sequence[Row],
        column: int,
        known: dict[str, int],
        may_miss: bool,
        advice: Mapping[int, Advice],
    ) -> NDArray[np.float64]:
        """Index of the text each cell holds; NaN if it is missing."""
        values = np.empty(len(block))
        for i, (number, row) in enumerate(block):
            text = self._cells.name(row[column])
            if text in known:
                values[i] = known[text]
            elif not looks_missing(text):
                values[i] = known[text] = len(known)
            elif may_miss:
                values[i] = np.nan
            else:
                raise self._missing(number, column, advice)
        return values

    def _missing(self, number: int, column: int, advice: Mapping[int, Advice]) -> InputError:
        more = advice[column].parts if column in advice else ()
        return ParameterError(
            f"{place(self.path)}: row {number}, column {quoted(self.names[column])}: missing "
            "value; fill it in or remove the row",
            *more,
        )

    def _label(self, block: Sequence[Row], column: int) -> None:
        for number, row in block:
            label = row[column].strip()
            if looks_missing(label):
                raise InputError(
                    f"{place(self.path)}: row {number}, column {quoted(self.names[column])}: "
                    f"missing; every row needs its group"
                )
            self.labels.append(label)

    def _blocks(self) -> Iterator[list[Row]]:
        width = len(self.names)
        most = max(1, _CELLS_PER_BLOCK // width)
        block: list[Row] = []
        for number, row in self._rows:
            if len(row) != width:
                raise InputError(
                    f"{place(self.path)}: row {number}: has {plural(len(row), 'cell')}, "
                    f"the first row has {width}; every row needs the same number"
                )
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
    ) -> NDArray[np.float64]:
        values = np.empty((len(block), len(columns)))
        for i, (number, row) in enumerate(block):
            for j, column in enumerate(columns):
                kind, values[i, j] = self._cells.read(row[column])
                if kind is CellKind.NUMBER or (kind is CellKind.MISSING and column in allowed):
                    continue
                if kind is CellKind.MISSING:
                    raise self._missing(number, column, advice)
                words = complaint(kind, quoted(row[column].strip()))
                where = f"{place(self.path)}: row {number}, column {quoted(self.names[column])}"
                if kind is not CellKind.TEXT:
                    raise InputError(f"{where}: {words}")
                raise ParameterError(
                    f"{where}: {words}; correct it", *self._otherwise(column, could_drop)
                )
        return values

    def _otherwise(self, column: int, could_drop: Collection[int]) -> tuple[str | Parameter, ...]:
        """Suggest what else to do about a column with a word among its numbers."""
        if column not in could_drop:
            return ()
        name = self.names[column]
        return (
            ", leave the column out with ",
            dropping([name]),
            ", or treat its values as names with ",
            Parameter("categorical", [name]),
        )


@contextmanager
def open_table(path: Path, known: Collection[str] = ()) -> Iterator[CsvFile]:
    """Open a table and read its header.

    Parameters
    ----------
    path
        A text file in UTF-8, which may be compressed by gzip; columns separated by comma,
        semicolon, tab, bar or blanks. Or a Parquet or Excel file.
    known
        Column names the caller looks for: a first row that holds them all is a header even if all
        of them are numbers.
    """
    if path.suffix.lower() in _FRAMES:
        yield CsvFile(path, _rows_of_frame(path), CellReader(comma_allowed=False), known)
        return
    with open_text(path) as stream:
        text = lines(stream, path)
        head: list[str] = []
        size = 0
        for line in text:
            head.append(line)
            size += len(line)
            if size >= _HEAD_CHARACTERS:
                break
        delimiter = None
        if head and (said := _SEPARATOR.fullmatch(head[0])):
            delimiter, head[0] = said[1], "\n"  # a blank line is counted, but left out
        delimiter = delimiter or find_delimiter(head)
        try:
            rows = rows_of(chain(head, text), delimiter)
            yield CsvFile(path, rows, CellReader(comma_allowed=delimiter != ","), known)
        except RowError as error:
            raise InputError(
                f"{place(path)}: row {error.number}: {error.reason}; is a quote left open?"
            ) from None


def _has_units(second: Sequence[str], third: Sequence[str]) -> bool:
    """Whether a row has no numbers, and a word where the next row has a number."""
    words = any(
        looks_numeric(below) and not (looks_numeric(cell) or looks_missing(cell))
        for cell, below in zip(second, third, strict=False)
    )
    return words and not any(map(looks_numeric, second))


def _rows_of_frame(path: Path) -> Iterator[Row]:
    """Rows of a Parquet or Excel file as text, starting with the column names."""
    reader = _FRAMES[path.suffix.lower()]
    if not path.is_file():
        raise InputError(f"{place(path)}: no such file; give the path of a table")
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]

        if reader == "read_parquet":
            frame = pandas.read_parquet(path)
            yield 1, [str(name) for name in frame.columns]
        else:
            frame = pandas.read_excel(path, header=None, dtype=object)
    except ImportError as error:
        raise InputError(
            f"{place(path)}: reading {path.suffix} files needs pandas and its reader for them "
            "(pip install 'twinedge[tables]'); or save it as CSV"
        ) from error
    except Exception as error:  # the readers of both formats raise a dozen kinds
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"{place(path)}: cannot be read as {path.suffix[1:]}: {reason}") from error
    missing = frame.isna().to_numpy()
    columns = [frame.iloc[:, k].tolist() for k in range(frame.shape[1])]
    for number, (row, gone) in enumerate(zip(zip(*columns, strict=True), missing, strict=True)):
        cells = ["" if none else str(one) for one, none in zip(row, gone, strict=True)]
        if any(cells):
            yield number + 1 + (reader == "read_parquet"), cells
