"""From a name to inputs of a network: one for each level of a *category*.

An input is 1 where the cell holds its level and 0 elsewhere. Rare levels share one input. A level
that no training row had is all zeros, which no training row ever is, so that it can be recognised
and flagged.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.encoding.cells import CellKind, CellReader
from twinedge.errors import InputError

Floats = npt.NDArray[np.float64]

_MOST_LEVELS = 32  # with an input of their own
_FEWEST_ROWS = 5  # for a level to have one; fewer in a short table
_OTHERS = "(others)"
_UNKNOWN = "(unknown)"
_WHOLE = 2**53  # from here on, different texts of digits may be the same double


class Category(NamedTuple):
    """Levels with an input of their own, and rare ones that share the last."""

    levels: tuple[str, ...]
    others: tuple[str, ...] = ()

    @classmethod
    def learn(cls, name: str, values: Floats, texts: Sequence[str]) -> "Category":
        """Find the levels that training rows have.

        Parameters
        ----------
        name : str
            Name of the column.
        values : array of shape (n,)
            Index into ``texts`` of each row; NaN where its cell is missing.
        texts : sequence of str
            Texts that the cells hold.
        """
        present = values[~np.isnan(values)].astype(np.intp)
        counts: dict[str, int] = {}
        for text, count in zip(
            texts, np.bincount(present, minlength=len(texts)).tolist(), strict=True
        ):
            if count:
                level = level_of(text)
                counts[level] = counts.get(level, 0) + count
        least = min(_FEWEST_ROWS, max(2, len(values) // 20))
        frequent = sorted(
            (level for level in counts if counts[level] >= least),
            key=lambda one: (-counts[one], one),
        )
        own = tuple(sorted(frequent[:_MOST_LEVELS], key=_in_order))
        others = tuple(sorted(set(counts) - set(own), key=_in_order))
        if len(own) + bool(others) < 2:
            raise InputError(
                f"column {name!r} does not have two levels that are frequent enough in the "
                "training rows to tell apart"
            )
        return cls(own, others)

    @property
    def width(self) -> int:
        """Number of inputs it takes."""
        return len(self.levels) + bool(self.others)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each input stands for."""
        return (*self.levels, *((_OTHERS,) if self.others else ()))

    def one_hot(self, texts: Sequence[str]) -> Floats:
        """Encode texts as ``(n, width)``, all zeros for a text that is no level."""
        where = {level: k for k, level in enumerate(self.levels)}
        where |= dict.fromkeys(self.others, len(self.levels))
        found = np.zeros((len(texts), self.width))
        for row, text in enumerate(texts):
            if (k := where.get(level_of(text))) is not None:
                found[row, k] = 1
        return found

    def texts(self, inputs: npt.NDArray[Any]) -> list[str]:
        """Name the levels of inputs ``(n, width)``."""
        last = self.others if len(self.others) == 1 else self.labels[len(self.levels) :]
        labels = (*self.levels, *last, _UNKNOWN)
        positions = np.where((inputs > 0).any(axis=1), inputs.argmax(axis=1), self.width)
        return [labels[one] for one in positions.tolist()]


def level_of(text: str) -> str:
    """Write a level in its canonical form, since a number may be written in several ways."""
    text = text.strip()
    kind, value = CellReader(comma_allowed=False).read(text)
    if kind is not CellKind.NUMBER or abs(value) >= _WHOLE:
        return text
    return str(int(value)) if value.is_integer() else repr(value)


def _in_order(level: str) -> tuple[bool, float, str]:
    """Sort key: numbers by size, then words."""
    kind, value = CellReader(comma_allowed=False).read(level)
    number = kind is CellKind.NUMBER
    return not number, value if number else 0.0, level
