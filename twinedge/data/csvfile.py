"""A CSV file as columns of numbers, streamed so that memory holds the numbers and little else."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinedge.data.cells import CellReader, Kind, looks_missing
from twinedge.data.dialect import Row, RowError, find_delimiter, names_columns, rows_of
from twinedge.data.textlines import lines, open_text
from twinedge.data.wording import drop_options, place, plural, quoted
from twinedge.errors import InputError

# Cells are held as text only for one block at a time, about 10 MB.
_CELLS_PER_BLOCK = 2**17
_HEAD_CHARACTERS = 2**16


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
        second = next(rows, None)
        stripped = [cell.strip() for cell in first[1]]
        self.has_header = bool(known and set(known) <= set(stripped)) or names_columns(
            stripped, second[1] if second else None
        )
        if self.has_header:
            self.names = tuple(stripped)
            ahead = [second]
        else:
            self.names = tuple(f"x{k}" for k in range(len(stripped)))
            ahead = [first, second]
        self._rows = chain([row for row in ahead if row is not None], rows)

    def numbers(
        self,
        columns: Sequence[int],
        *,
        may_miss: Collection[int] = (),
        could_impute: Collection[int] = (),
        could_drop: bool = False,
        label: int | None = None,
    ) -> NDArray[np.float64]:
        """Read the given columns to the end of the file.

        Parameters
        ----------
        columns
            Positions of the columns wanted, in the order wanted; at least one.
        may_miss
            Those where a missing value is NaN rather than an error.
        could_impute
            Those where the error about a missing value may suggest ``--impute median``.
        could_drop
            Whether the error about a cell that is no number may suggest ``--drop``.
        label
            Position of a column whose cells are kept as text, in ``labels``; none may be missing.

        Returns
        -------
        ndarray of float64, shape (rows, len(columns))
        """
        pick = itemgetter(*columns)
        whole = list(columns) == list(range(len(self.names)))
        blocks = []
        for block in self._blocks():
            rows = [row for _, row in block]
            if label is not None:
                self._label(block, label)
            if whole:
                wanted = list(chain.from_iterable(rows))
            elif len(columns) == 1:
                wanted = list(map(pick, rows))
            else:
                wanted = list(chain.from_iterable(map(pick, rows)))
            values = self._cells.read_all(wanted)
            if values is None:
                values = self._read_closely(block, columns, may_miss, could_impute, could_drop)
            blocks.append(values.reshape(len(rows), len(columns)))
        if not blocks:
            raise InputError(f"{place(self.path)}: has a header and no rows; add rows of numbers")
        return np.concatenate(blocks) if len(blocks) > 1 else blocks[0]

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
        may_miss: Collection[int],
        could_impute: Collection[int],
        could_drop: bool,
    ) -> NDArray[np.float64]:
        values = np.empty((len(block), len(columns)))
        allowed = frozenset(may_miss)
        for i, (number, row) in enumerate(block):
            for j, column in enumerate(columns):
                kind, values[i, j] = self._cells.read(row[column])
                if kind is Kind.NUMBER or (kind is Kind.MISSING and column in allowed):
                    continue
                name, cell = quoted(self.names[column]), quoted(row[column].strip())
                where = f"{place(self.path)}: row {number}, column {name}"
                if kind is Kind.MISSING:
                    impute = ", or use --impute median" if column in could_impute else ""
                    raise InputError(
                        f"{where}: missing value; fill it in or remove the row{impute}"
                    )
                if kind is Kind.INFINITE:
                    raise InputError(f"{where}: {cell} is not a finite number; correct it")
                if kind is Kind.MIXED_DECIMALS:
                    raise InputError(
                        f"{where}: {cell} has another decimal mark than earlier cells; "
                        f"write all numbers with a point, or all with a comma"
                    )
                drop = drop_options(self._words(row, columns))
                other = f", or leave the column out with {drop}" if could_drop else ""
                raise InputError(f"{where}: {cell} is not a number; correct it{other}")
        return values

    def _words(self, row: Sequence[str], columns: Sequence[int]) -> list[str]:
        # All columns of words at once, or a person meets them one command at a time.
        return [self.names[c] for c in columns if self._cells.read(row[c])[0] is Kind.TEXT]


@contextmanager
def open_csv(path: Path, known: Collection[str] = ()) -> Iterator[CsvFile]:
    """Open a CSV file and read its header.

    Parameters
    ----------
    path
        A text file in UTF-8; columns separated by comma, semicolon, tab, bar or blanks.
    known
        Column names the caller looks for: a first row that holds them all is a header even when
        all of them are numbers.
    """
    with open_text(path) as stream:
        text = lines(stream, path)
        head: list[str] = []
        size = 0
        for line in text:
            head.append(line)
            size += len(line)
            if size >= _HEAD_CHARACTERS:
                break
        delimiter = find_delimiter(head)
        try:
            rows = rows_of(chain(head, text), delimiter)
            yield CsvFile(path, rows, CellReader(comma_allowed=delimiter != ","), known)
        except RowError as error:
            raise InputError(
                f"{place(path)}: row {error.number}: {error.reason}; is a quote left open?"
            ) from None
