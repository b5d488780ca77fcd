"""The table with which devices compute silu."""

from functools import lru_cache

import numpy as np

from twinedge.pack.contents import Array
from twinedge.pack.layout import CURVE_FINE, CURVE_LENGTH

_POINTS = 100_000  # at which the line is fitted


@lru_cache(maxsize=1)
def silu_curve() -> Array:
    """Table of a / (1 + exp(a)) in units of 2^-15, int16 ``(193,)``, as FORMAT.md says.

    The entries are the knots of the broken line nearest to the function in the least-squares
    sense: knots on the function itself would put the line on one side of it.
    """
    knots = np.concatenate(
        [np.arange(CURVE_FINE) / 32, 4 + np.arange(CURVE_LENGTH - CURVE_FINE) / 8]
    )
    a = np.linspace(0, knots[-1], _POINTS)
    right = np.clip(np.searchsorted(knots, a, side="right"), 1, CURVE_LENGTH - 1)
    share = (a - knots[right - 1]) / (knots[right] - knots[right - 1])
    # Normal equations of a broken line: each point touches its two knots alone.
    normal, moment = np.zeros((CURVE_LENGTH, CURVE_LENGTH)), np.zeros(CURVE_LENGTH)
    value = a / (1 + np.exp(a))
    for one, weight in ((right - 1, 1 - share), (right, share)):
        np.add.at(moment, one, weight * value)
        for other, other_weight in ((right - 1, 1 - share), (right, share)):
            np.add.at(normal, (one, other), weight * other_weight)
    fitted = np.linalg.solve(normal, moment)
    curve: Array = np.rint(32768 * fitted).clip(0, 16383).astype(np.int16)
    curve.flags.writeable = False
    return curve
