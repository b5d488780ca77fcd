"""What the lines of a table hold: cells or a comment; numbers, missing values or text.

Files and streams are both read by these rules.
"""

import csv
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from copy import copy
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLANKS = " "  # as a delimiter, it stands for any number of blanks and tabs
# Python's float() also takes "1_000", "infinity" and the digits of every script; in a table, those
# are more likely damage than intent.
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?", re.ASCII)
# 1,234.5 or 1.234.567 or 1'234: digits in threes that cannot be read as one decimal mark.
_THOUSANDS = re.compile(
    "|".join(
        [
            r"[+-]?\d{1,3}(?:,\d{3})+\.\d*",
            r"[+-]?\d{1,3}(?:\.\d{3})+,\d*",
            r"[+-]?\d{1,3}(?:[,.]\d{3}){2,}",
            r"[+-]?\d{1,3}(?:['\u2019 \u00a0\u202f]\d{3})+(?:[.,]\d*)?",
        ]
    ),
    re.ASCII,
)
_GROUPED = re.compile(r"[+-]?\d{1,3},\d{3}", re.ASCII)  # where a comma is no decimal mark
# Excel writes its errors as #N/A or #DIV/0!: a row that starts with one has lost a value.
_COMMENT = re.compile(
    r"\s*#(?!(?:N/A|DIV/0!|NAME\?|NULL!|NUM!|REF!|VALUE!)(?:[\s,;|]|$))", re.IGNORECASE
)
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "+nan", "-nan", "null", "none", "?"})
# A byte that is not UTF-8 is decoded to a lone surrogate: what it is in Windows-1252, which is
# Latin-1 with a few letters more. Five bytes are nothing there.
WINDOWS_1252 = {
    0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)
}
_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))


def numbered(count: int) -> tuple[str, ...]:
    """Name columns that have no names, by their position: x0, x1, ..."""
    return tuple(f"x{k}" for k in range(count))


class CellKind(Enum):
    """What a cell holds."""

    NUMBER = auto()
    MISSING = auto()
    INFINITE = auto()
    MIXED_DECIMALS = auto()
    MIXED_PERCENT = auto()
    THOUSANDS = auto()
    TEXT = auto()


class CellReader:
    """Reads the cells of one file.

    Parameters
    ----------
    comma_allowed
        Whether ``3,14`` may be a number, as in a file whose columns are not separated by commas.
        The first fraction decides for the whole file: a file that writes both ``3,14`` and ``3.14``
        is ambiguous (which of the two marks thousands?) and is refused.
    missing
        Texts that stand for a missing value in this file, besides the usual ones. One that is a
        number stands for it however it is written: -9999 is also -9999.0.

    Attributes
    ----------
    decimal : str or None
        The decimal mark of the first fraction read.
    percent : dict of int to bool
        Whether the numbers of a column have percent signs: its first number decides. In a column
        of both kinds, nobody knows whether ``0.5`` means half a percent or 50 %.
    """

    def __init__(self, *, comma_allowed: bool, missing: Collection[str] = ()) -> None:
        self._comma_allowed = comma_allowed
        self._missing = frozenset(text.strip() for text in missing)
        values = (CellReader(comma_allowed=True).read(text)[1] for text in self._missing)
        self._missing_numbers = frozenset(value for value in values if not np.isnan(value))
        self.decimal: str | None = None if comma_allowed else "."
        self.percent: dict[int, bool] = {}

    def afresh(self) -> "CellReader":
        """Return a reader with the same rules that has not read anything yet."""
        other = self.copy()
        other.decimal, other.percent = None if self._comma_allowed else ".", {}
        return other

    def copy(self) -> "CellReader":
        """Return a reader that knows the same, for a row that may turn out to be bad."""
        other = copy(self)
        other.percent = dict(self.percent)
        return other

    def read(self, cell: str, column: int | None = None) -> tuple[CellKind, float]:
        """Read one cell; the value is NaN unless the kind is ``NUMBER``.

        In a column of numbers, given by its position, ``53.1%`` is 53.1; elsewhere it is text.
        """
        text = cell.strip()
        if text in self._missing:
            return CellKind.MISSING, np.nan
        kind, value = self._read(text)
        signed = column is not None and kind is CellKind.TEXT and text.endswith("%")
        if signed:
            kind, value = self._read(text[:-1].rstrip())
            if kind is CellKind.MISSING:
                kind = CellKind.TEXT
        if value in self._missing_numbers:
            return CellKind.MISSING, np.nan
        if column is None:
            return kind, value
        if kind is CellKind.NUMBER and self.percent.setdefault(column, signed) != signed:
            return CellKind.MIXED_PERCENT, np.nan
        return kind, value

    def _read(self, text: str) -> tuple[CellKind, float]:
        if _NUMBER.fullmatch(text):
            if "." in text:
                if self.decimal == ",":
                    return CellKind.MIXED_DECIMALS, np.nan
                self.decimal = "."
            value = float(text)
            return (CellKind.NUMBER, value) if np.isfinite(value) else (CellKind.INFINITE, np.nan)
        word = text.lower()
        if word in MISSING:
            return CellKind.MISSING, np.nan
        if word in _INFINITE:
            return CellKind.INFINITE, np.nan
        if self._comma_allowed and _COMMA_NUMBER.fullmatch(text):
            if self.decimal is None:
                self.decimal = ","
            if self.decimal == ",":
                value = float(text.replace(",", "."))
                return (
                    (CellKind.NUMBER, value) if np.isfinite(value) else (CellKind.INFINITE, np.nan)
                )
            return CellKind.MIXED_DECIMALS, np.nan
        grouped = not self._comma_allowed and _GROUPED.fullmatch(text)
        if grouped or _THOUSANDS.fullmatch(text):
            return CellKind.THOUSANDS, np.nan
        return CellKind.TEXT, np.nan

    def is_missing(self, cell: str) -> bool:
        """Tell whether a cell stands for a missing value."""
        if looks_missing(cell):
            return True
        return bool(self._missing) and self.afresh().read(cell)[0] is CellKind.MISSING

    def name(self, cell: str) -> str:
        """Read a cell as a name; a decimal comma in a number becomes a point."""
        text = cell.strip()
        comma = self._comma_allowed and self.decimal != "." and _COMMA_NUMBER.fullmatch(text)
        return text.replace(",", ".") if comma else text

    def read_all(
        self, cells: Sequence[str], columns: Sequence[int] = ()
    ) -> NDArray[np.float64] | None:
        """Read many cells of these columns at once; None if one needs a closer look with `read`."""
        if any(map(self.percent.get, columns)):
            return None
        joined = "\n".join(cells)
        if "_" in joined or not joined.isascii():
            return None
        if self.decimal == ",":
            if "." in joined:
                return None
            cells = joined.replace(",", ".").split("\n")
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            return None
        if not np.isfinite(values).all():
            return None
        if self._missing_numbers and np.isin(values, list(self._missing_numbers)).any():
            return None
        if self.decimal is None and "." in joined:
            self.decimal = "."
        for column in columns:
            self.percent.setdefault(column, False)
        return values


def looks_numeric(cell: str) -> bool:
    """Tell whether a cell would be read as a number, with either decimal mark, or percent."""
    text = cell.strip().removesuffix("%").rstrip()
    return bool(_NUMBER.fullmatch(text) or _COMMA_NUMBER.fullmatch(text))


def complaint(kind: CellKind, cell: str) -> str:
    """Say what is wrong with a cell that holds no number, and what would be right."""
    return {
        CellKind.INFINITE: f"{cell} is not a finite number; correct it",
        CellKind.MIXED_DECIMALS: f"{cell} has a different decimal mark from earlier cells; write "
        "all numbers with a point, or all with a comma",
        CellKind.MIXED_PERCENT: f"{cell} is ambiguous: some numbers of this column have a percent "
        "sign and some have none; write all with one, or all without",
        CellKind.THOUSANDS: f"{cell} has thousands separators; write numbers without them",
        CellKind.MISSING: "missing value",
    }.get(kind, f"{cell} is not a number")


def cut(line: str, delimiter: str) -> list[str]:
    """Cut one line into cells, which may be quoted, without the blanks around them."""
    if delimiter == BLANKS:
        return line.split() or [""]
    if '"' in line:
        reader = csv.reader([line], delimiter=delimiter, skipinitialspace=True)
        with suppress(csv.Error):  # a cell over the size limit
            return [cell.strip() for cell in next(reader, [""])]
    return [cell.strip() for cell in line.split(delimiter)]


def comment_cells(line: str, delimiter: str) -> list[str]:
    """Cut a comment into cells, in case it is a header."""
    return cut(line.strip().lstrip("# \t"), delimiter)


def heads_columns(comment: Sequence[str], first: Sequence[str]) -> bool:
    """Tell whether a comment directly above the first row is its header.

    numpy.savetxt writes headers that way. It has as many cells as the row, at least two, all
    different, none empty and none a number.
    """
    words = {cell for cell in comment if cell and not looks_numeric(cell)}
    return 1 < len(first) == len(comment) == len(words)


def looks_like_comment(line: str) -> bool:
    """Tell whether a line is a comment: it starts with ``#``, and not with an error of Excel's."""
    return "#" in line and _COMMENT.match(line) is not None


def looks_missing(cell: str) -> bool:
    """Tell whether a cell is one of the spellings of a missing value."""
    return cell.strip().lower() in MISSING


def is_missing(cell: Any) -> bool:
    """Tell whether a cell of a data frame is missing; NaN and its kin do not equal themselves."""
    try:
        return cell is None or bool(cell != cell) or looks_missing(str(cell))
    except TypeError:  # pandas.NA does not even say that
        return True
