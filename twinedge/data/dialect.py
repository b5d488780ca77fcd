"""How a CSV file is written: what separates its columns, and whether its first row names them."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from twinedge.cells import looks_missing, looks_numeric

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
        Lines with their line ends.
    delimiter
        One character; a blank stands for any number of blanks and tabs.
    """
    if delimiter == _WHITESPACE:
        for number, line in enumerate(text, start=1):
            cells = line.split()
            if cells:
                yield number, cells
        return
    # strict: a quote that is never closed is an error instead of the rest of the file in one cell.
    reader = csv.reader(text, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise RowError(reader.line_num, str(error)) from None


def find_delimiter(head: Sequence[str]) -> str:
    r"""Find what separates the columns, from the first lines of a file.

    The winner cuts the most rows into the same number of cells; between equals, the one that gives
    more numbers. So ``1,5;2,5`` is two numbers with decimal commas, not three odd cells.

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
    # Blanks may well stand inside a name, so they separate only where nothing else does, or where
    # they alone give numbers throughout: "1,5 2,5".
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

    It is when none of its cells is a number, or when one of its words stands above a number. A row
    of numbers is data; so is a row with words in columns that hold words below as well. (Names may
    be numbers: spectra have columns called 400, 410, ... beside one called "target".)

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
