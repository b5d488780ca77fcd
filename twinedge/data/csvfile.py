"""A table file as columns, streamed so that memory holds the numbers and little else.

Text files come in many dialects; Parquet and Excel files are read by pandas, where it is installed,
and then by the same rules.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinedge.cells import CellReader, Kind, complaint, looks_missing, looks_numeric
from twinedge.data.dialect import Row, RowError, find_delimiter, names_columns, rows_of
from twinedge.data.textlines import lines, open_text
from twinedge.data.wording import drop_options, place, plural, quoted, shell_word
from twinedge.encoding import Column
from twinedge.errors import InputError

# Cells are held as text only for one block at a time, about 10 MB.
_CELLS_PER_BLOCK = 2**17
_HEAD_CHARACTERS = 2**16
_ROWS_TO_JUDGE = 1000  # by which a column is one of numbers, or of names
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
        All rows, the header (if there is one) among them.
    cells
        Reads the cells.
    known
        See `open_csv`.

    Attributes
    ----------
    names : tuple of str
        Column names from the header, or ``x0``, ``x1``, ... where there is none.
    has_header : bool
    index : int or None
        Position of a column that pandas wrote its row numbers to.
    units : bool
        Whether the row below the header had units, and was left out.
    labels : list of str
        Cells of the column that was asked for as text.
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
            Those whose cells are names if most of the first of them are no numbers.
        may_miss
            Those where a missing value is NaN rather than an error.
        could_impute
            Those where the error about a missing value may suggest ``--impute median``.
        could_drop
            Those where the error about a cell that is no number may suggest ``--drop``.
        label
            Position of a column whose cells are kept as text, in ``labels``; none may be missing.
        target
            Position of the target, if the error about a missing one may suggest
            ``--drop-missing-target``.
        """
        advice = dict.fromkeys(could_impute, "use --impute median")
        if target is not None:
            advice[target] = "leave such rows out with --drop-missing-target"
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
        """Read columns of a block at once, ``(rows, columns)``; None where that needs a look."""
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
        """Whether most cells that are there are no numbers, however these are written."""
        reader = self._cells.afresh()
        kinds = [reader.read(row[column])[0] for _, row in block[:_ROWS_TO_JUDGE]]
        words = kinds.count(Kind.TEXT)
        return 2 * words > len(kinds) - kinds.count(Kind.MISSING)

    def _names(
        self,
        block: Sequence[Row],
        column: int,
        known: dict[str, int],
        may_miss: bool,
        advice: Mapping[int, str],
    ) -> NDArray[np.float64]:
        """Which text each cell holds; NaN where it holds none."""
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

    def _missing(self, number: int, column: int, advice: Mapping[int, str]) -> InputError:
        more = f", or {advice[column]}" if column in advice else ""
        return InputError(
            f"{place(self.path)}: row {number}, column {quoted(self.names[column])}: missing "
            f"value; fill it in or remove the row{more}"
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
                    f"the first row has {width}; every row needs as many"
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
        advice: Mapping[int, str],
        could_drop: Collection[int],
    ) -> NDArray[np.float64]:
        values = np.empty((len(block), len(columns)))
        for i, (number, row) in enumerate(block):
            for j, column in enumerate(columns):
                kind, values[i, j] = self._cells.read(row[column])
                if kind is Kind.NUMBER or (kind is Kind.MISSING and column in allowed):
                    continue
                if kind is Kind.MISSING:
                    raise self._missing(number, column, advice)
                words = complaint(kind, quoted(row[column].strip()))
                if kind is Kind.TEXT:
                    words += f"; correct it{self._otherwise(column, could_drop)}"
                name = quoted(self.names[column])
                raise InputError(f"{place(self.path)}: row {number}, column {name}: {words}")
        return values

    def _otherwise(self, column: int, could_drop: Collection[int]) -> str:
        """Say what else can be done about a column with a word among its numbers."""
        if column not in could_drop:
            return ""
        name = self.names[column]
        return (
            f", leave the column out with {drop_options([name])}, or take its values for names "
            f"with --categorical {shell_word(name)}"
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
        Column names the caller looks for: a first row that holds them all is a header even when
        all of them are numbers.
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
            delimiter, head[0] = said[1], "\n"  # a blank line is counted, and left out
        delimiter = delimiter or find_delimiter(head)
        try:
            rows = rows_of(chain(head, text), delimiter)
            yield CsvFile(path, rows, CellReader(comma_allowed=delimiter != ","), known)
        except RowError as error:
            raise InputError(
                f"{place(path)}: row {error.number}: {error.reason}; is a quote left open?"
            ) from None


def _has_units(second: Sequence[str], third: Sequence[str]) -> bool:
    """Whether a row has words where the next has numbers, and no number itself."""
    words = any(
        looks_numeric(below) and not (looks_numeric(cell) or looks_missing(cell))
        for cell, below in zip(second, third, strict=False)
    )
    return words and not any(map(looks_numeric, second))


def _rows_of_frame(path: Path) -> Iterator[Row]:
    """Rows of a Parquet or Excel file as text, names first."""
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
            f"{place(path)}: reading {path.suffix} files needs pandas and what it reads them with "
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
