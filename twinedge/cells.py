"""What a cell of a table holds: a number, a missing value, or text.

Files and streams are both read by these rules.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

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
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "+nan", "-nan", "null", "none", "?"})
_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))


class CellKind(Enum):
    """What a cell holds."""

    NUMBER = auto()
    MISSING = auto()
    INFINITE = auto()
    MIXED_DECIMALS = auto()
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

    Attributes
    ----------
    decimal : str or None
        The decimal mark of the first fraction read.
    """

    def __init__(self, *, comma_allowed: bool) -> None:
        self._comma_allowed = comma_allowed
        self.decimal: str | None = None if comma_allowed else "."

    def afresh(self) -> "CellReader":
        """Return a reader with the same rules that has not read a fraction yet."""
        return CellReader(comma_allowed=self._comma_allowed)

    def read(self, cell: str) -> tuple[CellKind, float]:
        """Read one cell; the value is NaN unless the kind is ``NUMBER``."""
        text = cell.strip()
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

    def name(self, cell: str) -> str:
        """Read a cell as a name; a decimal comma in a number becomes a point."""
        text = cell.strip()
        comma = self._comma_allowed and self.decimal != "." and _COMMA_NUMBER.fullmatch(text)
        return text.replace(",", ".") if comma else text

    def read_all(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        """Read many cells at once; None when one of them needs a closer look with `read`."""
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
        if self.decimal is None and "." in joined:
            self.decimal = "."
        return values


def looks_numeric(cell: str) -> bool:
    """Tell whether a cell would be read as a number, with either decimal mark."""
    text = cell.strip()
    return bool(_NUMBER.fullmatch(text) or _COMMA_NUMBER.fullmatch(text))


def complaint(kind: CellKind, cell: str) -> str:
    """Say what is wrong with a cell that holds no number, and what would be right."""
    return {
        CellKind.INFINITE: f"{cell} is not a finite number; correct it",
        CellKind.MIXED_DECIMALS: f"{cell} has a different decimal mark from earlier cells; write "
        "all numbers with a point, or all with a comma",
        CellKind.THOUSANDS: f"{cell} has thousands separators; write numbers without them",
        CellKind.MISSING: "missing value",
    }.get(kind, f"{cell} is not a number")


def looks_missing(cell: str) -> bool:
    """Tell whether a cell is one of the spellings of a missing value."""
    return cell.strip().lower() in MISSING
