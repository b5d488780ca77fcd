"""Curves of the target: what a model learns in place of it. Needs only numpy.

The errors of many quantities grow with their size: prices, counts, flows, lifetimes. A model that
learns the logarithm or the root of such a target has errors of one size everywhere. Its predictions
are then brought back to the target's own units. All of these curves ascend, so that the middle
value of what may happen stays the middle value, and an interval that covers nine cases in ten still
does; a mean becomes a median.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.errors import Parameter, ParameterError

Array = npt.NDArray[Any]


class _Kind(NamedTuple):
    """One way to bend a target."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    least: float  # of the targets that it takes
    above: bool  # whether they must be above that
    instead: str  # what takes a target that this one refuses


_LARGEST = float(np.log(np.finfo(np.float64).max))  # what the exponential function can take


def _exp(c: Array) -> Array:
    return np.exp(np.minimum(c, _LARGEST))


def _expm1(c: Array) -> Array:
    return np.expm1(np.minimum(c, _LARGEST))


def _square(c: Array) -> Array:
    # No target has a root below zero, but the estimate of a small one may be there.
    return np.square(np.maximum(c, 0.0))


_KINDS = {
    "log": _Kind(np.log, _exp, 0.0, True, "log1p"),
    "log1p": _Kind(np.log1p, _expm1, -1.0, True, "none"),
    "sqrt": _Kind(np.sqrt, _square, 0.0, False, "none"),
}
CURVES = tuple(_KINDS)


@dataclass(frozen=True)
class TargetCurve:
    """A function of the target that is learnt in its place.

    Parameters
    ----------
    kind : {"log", "log1p", "sqrt"}
        The natural logarithm, of targets above 0; that of 1 + y, of targets above -1; the square
        root, of targets of at least 0.

    Examples
    --------
    >>> curve = TargetCurve("log")
    >>> curve.forward([1.0, 10.0, 100.0]).round(3)
    array([0.   , 2.303, 4.605])
    >>> curve.inverse(curve.forward([1.0, 10.0, 100.0])).round(3)
    array([  1.,  10., 100.])
    """

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"{self.kind!r} is not one of {', '.join(CURVES)}")

    def takes(self, y: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of these targets have a place on the curve."""
        y, kind = np.asarray(y), _KINDS[self.kind]
        found = (y > kind.least if kind.above else y >= kind.least) & np.isfinite(y)
        return np.asarray(found)

    def check(self, y: npt.ArrayLike, where: Callable[[int], str] | None = None) -> None:
        """Refuse targets ``(n,)`` that the curve cannot take; ``where`` tells users of a row."""
        wrong = np.flatnonzero(~self.takes(y))
        if not len(wrong):
            return
        value, kind = np.asarray(y).flat[wrong[0]], _KINDS[self.kind]
        bound = f"{'above' if kind.above else 'of at least'} {kind.least:g}"
        mixed = value == 0 and bool(np.all(np.asarray(y) >= 0))
        instead = kind.instead if mixed else "none"
        row = int(wrong[0])
        raise ParameterError(
            f"{where(row) if where else f'row {row}'}: the target is {value:g}, but ",
            Parameter("target_curve", self.kind),
            f" takes targets {bound}; use ",
            Parameter("target_curve", instead),
        )

    def forward(self, y: npt.ArrayLike) -> Array:
        """Return targets on the curve, in float64; refuse those that it cannot take."""
        self.check(y)
        return np.asarray(_KINDS[self.kind].forward(np.asarray(y, np.float64)))

    def inverse(self, c: npt.ArrayLike) -> Array:
        """Return targets in their own units, in float64, for any places on the curve."""
        return np.asarray(_KINDS[self.kind].inverse(np.asarray(c, np.float64)))

    def deviation(self, c: npt.ArrayLike, d: npt.ArrayLike) -> Array:
        """Return deviations ``d`` on the curve around ``c`` in the target's own units.

        They are half of the distance between the two ends, which are not equally far.
        """
        c, d = np.asarray(c, np.float64), np.asarray(d, np.float64)
        return np.asarray((self.inverse(c + d) - self.inverse(c - d)) / 2)
