"""From the text of a cell to a number: what counts as one, and what counts as missing."""

import re
from collections.abc import Sequence
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

# Python's float() also takes "1_000", "infinity" and the digits of every script; a table that
# holds those is more likely damaged than meant.
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?", re.ASCII)
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "+nan", "-nan", "null", "none", "?"})
_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))


class Kind(Enum):
    """What a cell holds."""

    NUMBER = auto()
    MISSING = auto()
    INFINITE = auto()
    MIXED_DECIMALS = auto()
    TEXT = auto()


class CellReader:
    """Reads the cells of one file.

    Parameters
    ----------
    comma_allowed
        Whether ``3,14`` may be a number, which it may in a file whose columns are separated by
        something else. The first fraction met decides for the whole file: a file that writes both
        ``3,14`` and ``3.14`` is ambiguous (which of the two marks thousands?) and is refused.
    """

    def __init__(self, *, comma_allowed: bool) -> None:
        self._comma_allowed = comma_allowed
        self._decimal = None if comma_allowed else "."

    def read(self, cell: str) -> tuple[Kind, float]:
        """Read one cell; the value is NaN unless the kind is ``NUMBER``."""
        text = cell.strip()
        if _NUMBER.fullmatch(text):
            if "." in text:
                if self._decimal == ",":
                    return Kind.MIXED_DECIMALS, np.nan
                self._decimal = "."
            value = float(text)
            return (Kind.NUMBER, value) if np.isfinite(value) else (Kind.INFINITE, np.nan)
        word = text.lower()
        if word in _MISSING:
            return Kind.MISSING, np.nan
        if word in _INFINITE:
            return Kind.INFINITE, np.nan
        if self._comma_allowed and _COMMA_NUMBER.fullmatch(text):
            if self._decimal is None:
                self._decimal = ","
            if self._decimal == ",":
                value = float(text.replace(",", "."))
                return (Kind.NUMBER, value) if np.isfinite(value) else (Kind.INFINITE, np.nan)
            return Kind.MIXED_DECIMALS, np.nan
        return Kind.TEXT, np.nan

    def read_all(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        """Read many cells at once; None when one of them needs a closer look with `read`."""
        joined = "\n".join(cells)
        if "_" in joined or not joined.isascii():
            return None
        if self._decimal == ",":
            if "." in joined:
                return None
            cells = joined.replace(",", ".").split("\n")
        try:
            values = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            return None
        if not np.isfinite(values).all():
            return None
        if self._decimal is None and np.any(values != np.floor(values)):
            self._decimal = "."
        return values


def looks_numeric(cell: str) -> bool:
    """Tell whether a cell would be read as a number, with either decimal mark."""
    text = cell.strip()
    return bool(_NUMBER.fullmatch(text) or _COMMA_NUMBER.fullmatch(text))


def looks_missing(cell: str) -> bool:
    """Tell whether a cell is one of the spellings of a missing value."""
    return cell.strip().lower() in _MISSING
