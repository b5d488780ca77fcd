"""Cut the lines of a text file into rows, tell a header from data, and good rows from bad ones."""

import csv
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from twinedge.encoding.cells import (
    BLANKS,
    comment_cells,
    looks_like_comment,
    looks_missing,
    looks_numeric,
)
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.wording import plural, quoted, shown

Row = tuple[int, list[str]]  # line number as an editor shows it, cells

_DELIMITERS = (",", ";", "\t", "|")
_CELLS_TO_SCORE = 10_000
_ROWS_TO_NAME = 5  # of those left out


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


class BadRows:
    """Rows that cannot be used: the first is refused, or all are left out and counted.

    Parameters
    ----------
    path
        For messages.
    skip
        Whether to leave them out. None refuses them, too, where the caller has no such option.
    """

    def __init__(self, path: Path, skip: bool | None) -> None:
        self._path, self._skip = path, skip
        self._count = 0
        self._first: list[tuple[int, str]] = []  # the first few, and what is wrong with them

    def add(self, number: int, column: str | None, wrong: str, *advice: str | Parameter) -> None:
        """Refuse a row, or leave it out: say what is wrong with it, and what would be right."""
        where = f"row {number}" if column is None else f"row {number}, column {quoted(column)}"
        if self._skip:
            self._count += 1
            insort(self._first, (number, f"{where}: {wrong.partition(';')[0]}"))
            del self._first[_ROWS_TO_NAME:]
            return
        if self._skip is False:
            advice = (*advice, ", or leave such rows out with ", Parameter("skip_bad_rows", True))
        raise ParameterError(f"{shown(self._path)}: {where}: {wrong}", *advice)

    def check(self, good: int) -> None:
        """Refuse a file with more bad rows than good ones."""
        if self._count > good:
            raise InputError(
                f"{shown(self._path)}: {self._count} of {plural(self._count + good, 'row')} cannot "
                f"be read, more than half; the first is {self._first[0][1]}"
            )

    @property
    def remark(self) -> str | None:
        """Say how many were left out, and which; None if there were none."""
        if not self._count:
            return None
        more = self._count - len(self._first)
        which = ", ".join(str(number) for number, _ in self._first)
        which += f" and {more} more" if more else ""
        return (
            f"{plural(self._count, 'row')} that cannot be read left out ({which}); the first is "
            f"{self._first[0][1]}"
        )


class Rows:
    """An iterator over the rows of a text; blank lines and comments are left out.

    Parameters
    ----------
    text
        Lines with their line endings.
    delimiter
        One character; a blank stands for any number of blanks and tabs.
    on_error
        Called with a line that cannot be cut into cells; it may raise the error. If it does not,
        reading goes on below that line. By default it is raised.

    Attributes
    ----------
    comments : int
        Number of comments so far.
    heading : list of str
        Cells of the last comment above the first row.
    """

    def __init__(
        self,
        text: Iterable[str],
        delimiter: str,
        on_error: Callable[[RowError], None] | None = None,
    ) -> None:
        self.comments = 0
        self.heading: list[str] = []
        self._text, self._delimiter, self._on_error = iter(text), delimiter, on_error
        self._number = 0  # of the last line read
        self._again: deque[str] = deque()  # lines to be read once more
        self._record: list[str] = []  # lines of the current row
        self._rows = self._blanks() if delimiter == BLANKS else self._cells()
        self._begun = False

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        self._begun = True
        return row

    def _lines(self) -> Iterator[str]:
        """Yield lines, a blank one in place of a comment."""
        while True:
            line = self._again.popleft() if self._again else next(self._text, None)
            if line is None:
                return
            self._number += 1
            # Inside a quoted cell, a line that starts with # is part of the cell.
            if not self._record and looks_like_comment(line):
                self.comments += 1
                if not self._begun:
                    self.heading = comment_cells(line, self._delimiter)
                line = "\n"
            self._record.append(line)
            yield line

    def _blanks(self) -> Iterator[Row]:
        for line in self._lines():
            self._record.clear()
            cells = line.split()
            if cells:
                yield self._number, cells

    def _cells(self) -> Iterator[Row]:
        while True:
            # strict: a quote left open is an error, and does not swallow the rest of the file.
            reader = csv.reader(
                self._lines(), delimiter=self._delimiter, strict=True, skipinitialspace=True
            )
            try:
                for row in reader:
                    self._record.clear()
                    if len(row) > 1 or (row and row[0].strip()):
                        yield self._number, row
                return
            except csv.Error as error:
                # A quote left open took in what follows, but only its own line is bad.
                lines, self._record = self._record, []
                self._number -= len(lines) - 1
                found = RowError(self._number, str(error))
                if self._on_error is None:
                    raise found from None
                self._on_error(found)
                self._again.extendleft(reversed(lines[1:]))


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
    even, numeric = _score(head, BLANKS)
    alone = best_score == (0.0, 0.0) or best_score[1] < numeric == 1.0
    return BLANKS if even == 1.0 and alone else best


def _score(head: Sequence[str], delimiter: str) -> tuple[float, float]:
    rows: list[list[str]] = []
    try:
        for _, row in Rows(head, delimiter):
            rows.append(row)
    except RowError:
        pass  # the head may end inside a quoted cell; the rows before it are good evidence
    if not rows or len(rows[0]) < 2:
        return 0.0, 0.0
    even = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    cells = list(islice(chain.from_iterable(rows), _CELLS_TO_SCORE))
    return even, sum(map(looks_numeric, cells)) / len(cells)


def names_columns(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Tell whether the first row of a file is a header.

    It is if none of its cells is a number, or if one of its words is above a number. A row of
    numbers is data; so is a row whose words are all above other words. (Names may be numbers:
    spectra have columns called 400, 410, ... beside one called "target".) A row of percentages
    above numbers of another kind names quantiles.

    Examples
    --------
    >>> names_columns(["400", "410", "target"], ["0.1", "0.2", "7"])
    True
    >>> names_columns(["5.1", "3.5", "setosa"], ["4.9", "3.0", "setosa"])
    False
    """
    words = [k for k, cell in enumerate(first) if not (looks_numeric(cell) or looks_missing(cell))]
    if not words:
        percent = [cell.strip().endswith("%") for cell in first]
        return all(percent) and second is not None and "%" not in "".join(second)
    if second is None or not any(map(looks_numeric, first)):
        return True
    return any(k < len(second) and looks_numeric(second[k]) for k in words)


def has_units(second: Sequence[str], third: Sequence[str]) -> bool:
    """Tell whether a row has no numbers, and a word where the next row has a number."""
    words = any(
        looks_numeric(below) and not (looks_numeric(cell) or looks_missing(cell))
        for cell, below in zip(second, third, strict=False)
    )
    return words and not any(map(looks_numeric, second))
