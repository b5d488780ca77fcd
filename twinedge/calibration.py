"""How large an error is to be expected of a prediction, and intervals that keep what they claim.

Three signals tell of a prediction how far it may be off: the *spread* of the anchors' estimates,
their *asymmetry*, and the *difficulty* that the second output of a network has learnt. One model of
the variance weighs them,

    scale^2 = constant^2 + (w1 spread)^2 + (w2 asymmetry)^2 + (w3 difficulty)^2,

fitted to the errors of rows that the networks were not trained on, by the likelihood of a Student
distribution, which large errors do not sway. Conformal prediction then says how many scales an
interval has to reach for a given part of such errors. A row's error is divided by the scale of a
model that was fitted without it, so that few rows do not flatter themselves.

Only numpy is needed, so that a Raspberry Pi can calibrate its own models.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError

Array = npt.NDArray[Any]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
LEAST_ROWS = 10
USUAL_TRUST = 0.4  # in points measured on site, where nothing is known of groups
_USUAL = 0.6827  # within one scale, as within one standard deviation of a normal distribution
_KNOWN = 0.75  # of the variance that points of one group have in common: trust may be misplaced
_FREEDOM = 4  # degrees of freedom of the Student distribution
_ROUNDS = 300  # of a fit
_FOLDS = 10
_NOTHING = 1e-3  # part of the variance up to which a signal has nothing to say
# Rows that settings were chosen on flatter a model a little: their quantile is taken half a rank
# further out.
_FLATTERY = 0.5


@dataclass(frozen=True)
class Calibration:
    """What makes a scale and intervals of signals.

    Parameters
    ----------
    weights : array of shape (3,)
        Of spread, asymmetry and difficulty.
    constant : float
        Part of the scale that no signal explains, in units of the target.
    quantiles : dict of float to float
        For each coverage, ascending, how many scales an interval reaches to either side.
    rows : int
        Rows this was calibrated on.
    typical : float
        Mean scale of these rows, in units of the target.
    outside : float
        Share of these rows with a feature outside of its training range.
    """

    weights: Array
    constant: float
    quantiles: dict[float, float]
    rows: int
    typical: float
    outside: float

    def scale(self, signals: Array) -> Array:
        """Scale ``(n,)`` of signals ``(3, n)``, all in units of the target.

        About two of three errors are smaller.
        """
        parts = np.square(self.weights[:, None] * signals).sum(axis=0)
        found: Array = np.sqrt(self.constant**2 + parts)
        return found

    def reach(self, coverage: float) -> float:
        """How many scales an interval of this coverage reaches to either side.

        Raises
        ------
        InputError
            Where there is none of this coverage.
        """
        for level, found in self.quantiles.items():
            if abs(level - coverage) < 1e-6:
                return found
        there = ", ".join(f"{level:g}" for level in self.quantiles)
        beyond = coverage > max(self.quantiles)
        more = f": {self.rows} calibration rows allow no more" if beyond else ""
        raise InputError(f"there are no intervals of coverage {coverage:g}, only of {there}{more}")


def calibrate(
    signals: Array,
    errors: Array,
    *,
    outside: Array | None = None,
    chosen: bool = False,
    levels: Sequence[float] = LEVELS,
) -> Calibration:
    """Calibrate on rows that the networks were not trained on.

    Parameters
    ----------
    signals : array of shape (3, n)
        Spread, asymmetry and difficulty of each prediction.
    errors : array of shape (n,)
        True value less prediction.
    outside : array of shape (n,), optional
        Whether a feature of the row lies outside of its training range.
    chosen : bool
        Whether settings of the training were chosen on these rows.
    levels : sequence of float
        Coverages of the intervals; one that so few rows cannot support is left out.

    Raises
    ------
    InputError
        Where there is nothing to learn from these rows.
    """
    errors = np.abs(np.asarray(errors, np.float64))
    signals = np.asarray(signals, np.float64)
    rows = len(errors)
    if rows < LEAST_ROWS:
        raise InputError(f"{rows} rows are too few to calibrate on: {LEAST_ROWS} are the least")
    if not (np.isfinite(errors).all() and np.isfinite(signals).all()):
        raise InputError("a row to calibrate on has an error that is not finite")
    if np.ptp(errors) <= 1e-9 * errors.max():
        raise InputError("all rows to calibrate on have the same error: they tell nothing apart")
    if not signals.any():
        raise InputError("spread, asymmetry and difficulty are zero for all rows to calibrate on")
    scores = np.empty(rows)
    order = np.random.default_rng(0).permutation(rows)
    for fold in np.array_split(order, min(_FOLDS, rows)):
        others = np.setdiff1d(order, fold)
        model = _fitted(signals[:, others], errors[others])
        scores[fold] = errors[fold] / _scale(model, signals[:, fold])
    further = _FLATTERY if chosen else 0
    usual = quantile(scores, _USUAL, further)
    assert usual is not None  # the least number of rows has such a quantile
    constant, *weights = usual * np.sqrt(_fitted(signals, errors))
    found = {level: quantile(scores / usual, level, further) for level in levels}
    done = Calibration(
        np.array(weights),
        float(constant),
        {level: one for level, one in found.items() if one is not None},
        rows,
        0.0,
        0.0 if outside is None else float(np.mean(outside)),
    )
    return replace(done, typical=float(done.scale(signals).mean()))


def quantile(scores: Array, coverage: float, further: float = 0.0) -> float | None:
    """Split-conformal quantile of scores ``(n,)``: a new one is not above it in this part of cases.

    Parameters
    ----------
    scores : array of shape (n,)
        Errors divided by their scales.
    coverage : float
        Between 0 and 1.
    further : float
        By how many ranks to go further out; in between, scores are interpolated.

    Returns
    -------
    float or None
        None where so few scores cannot support the coverage.
    """
    rank = ceil((len(scores) + 1) * coverage - 1e-9)
    if rank > len(scores):
        return None
    place = min(rank + further, len(scores)) - 1
    return float(np.interp(place, np.arange(len(scores)), np.sort(scores)))


def adapted(
    trust: float, scores: Array, scales: Array, mean: Array, scale: Array, own: Array
) -> tuple[Array, Array]:
    """Blend predictions with what points measured on site say, as a device does.

    Parameters
    ----------
    trust : float
        In such points: the part of errors that those of one group, say of one machine, have in
        common.
    scores, scales : array of shape (k,)
        Their errors, each over its scale; and these scales.
    mean, scale : array of shape (n,)
        Predictions, and how large errors are to be expected of them.
    own : array of shape (n,)
        Predictions with the points as the only anchors.

    Returns
    -------
    mean, scale : array of shape (n,)
        The same with the points.
    """
    count, rest = len(scores), 1 - trust
    near = np.minimum(1, scale / scales.mean())
    weight = count * trust / (count * trust + rest) * near
    # What is left of the variance, by what the points tell; and how far they were off themselves.
    left = 1 - _KNOWN * trust * weight * (2 - near)
    alone, shared = np.square(scores - scores.mean()).sum(), count * scores.mean() ** 2
    surprise = alone / rest + shared / (count * trust + rest)
    wider = (_FREEDOM + surprise) / (_FREEDOM + count)
    return mean + weight * (own - mean), scale * np.sqrt(left * wider)


def in_common(errors: Array, groups: Array) -> float | None:
    """Part of errors ``(n,)`` that those of one group have in common; None without such groups.

    Of two errors of the same group, their mean product over their mean square.
    """
    together = all_squares = 0.0
    for group in np.unique(groups):
        mine = errors[groups == group]
        if len(mine) > 1:
            squares = float(np.square(mine).sum())
            together += (float(mine.sum()) ** 2 - squares) / (len(mine) - 1)
            all_squares += squares
    return together / all_squares if all_squares else None


def interval_score(low: Array, high: Array, y: Array, coverage: float) -> float:
    """Mean width of intervals, plus what they miss ``y`` by times 2 / (1 - coverage)."""
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return float(np.mean(high - low + 2 / (1 - coverage) * missed))


def _fitted(signals: Array, errors: Array) -> Array:
    """Coefficients ``(4,)`` of the variance: of the constant, then of the signals' squares.

    Each round makes the likelihood larger and keeps coefficients positive: it replaces the
    logarithm by its tangent, and the quotients by what bounds them from above.
    """
    squares = np.square(errors)
    unit = np.median(signals, axis=1, keepdims=True)
    unit = np.where(unit > 0, unit, signals.mean(axis=1, keepdims=True))
    unit = np.where(unit > 0, unit, 1.0)
    terms = np.vstack([np.ones(len(errors)), np.square(signals / unit)])
    least = 1e-12 * squares.max()
    found = np.full(len(terms), max(float(np.median(squares)), least) / len(terms))
    for _ in range(_ROUNDS):
        variance = found @ terms + least
        robust = (_FREEDOM + 1) / (_FREEDOM + squares / variance) * squares
        below = np.maximum(terms @ (1 / variance), 1e-300)
        found = found * np.sqrt(terms @ (robust / np.square(variance)) / below)
    parts = found * terms.mean(axis=1)
    found[parts < _NOTHING * parts.sum()] = 0
    found[0] += least
    found[1:] /= np.square(unit[:, 0])
    return found


def _scale(coefficients: Array, signals: Array) -> Array:
    found: Array = np.sqrt(coefficients[0] + coefficients[1:] @ np.square(signals))
    return found
