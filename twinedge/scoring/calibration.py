"""How large an error to expect of a prediction, and intervals that cover what they claim.

Three signals say how far off a prediction may be: the *spread* of the anchors' estimates, their
*asymmetry*, and the *difficulty* that the second output of a network has learnt. One model of the
variance weighs them,

    scale^2 = constant^2 + (w1 spread)^2 + (w2 asymmetry)^2 + (w3 difficulty)^2,

fitted to the errors of rows that the networks were not trained on, by the likelihood of a Student
distribution, which large errors do not sway. Conformal prediction then says how many scales an
interval must reach to cover a given share of such errors. A row's error is divided by the scale of
a model that was fitted without it, so that the result is not optimistic when rows are few. Rows may
have weights: then the likelihood is weighted, and an interval covers its share of the weight. Rows
in groups are worth less than as many on their own, and the quantile is taken further out.

Only numpy is needed, so that a Raspberry Pi can calibrate its own models.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError
from twinedge.scoring.weights import (
    check_weights,
    effective_rows,
    joined_weights,
    of_rows,
    relative,
)

Array = npt.NDArray[Any]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
LEAST_ROWS = 10
USUAL_TRUST = 0.4  # in points measured on site, if no groups are known
_USUAL = 0.6827  # within one scale, as within one standard deviation of a normal distribution
_KNOWN = 13 / 16  # share of a group's common variance to count on: trust may be misplaced
_NO_WEIGHT, _DESCENT = 7.0, 3.0  # scales from what points agree on; and those below full weight
_MOST_SURPRISE = 2.0  # scales of a point's error that widen intervals: on average 1 when squared
_FREEDOM = 4  # degrees of freedom of the Student distribution
_ROUNDS = 300  # of a fit
_FOLDS = 10
_NOTHING = 1e-3  # signals that explain a smaller share of the variance are dropped
# Errors are a little too small on rows that settings were chosen on: their quantile lies this share
# of the way to the next larger score.
_FLATTERY = 0.5


@dataclass(frozen=True)
class Calibration:
    """Turns signals into a scale and intervals.

    Parameters
    ----------
    weights : array of shape (3,)
        Weights of spread, asymmetry and difficulty.
    constant : float
        Part of the scale that no signal explains, in units of the target.
    quantiles : dict of float to float
        For each coverage, ascending, how many scales an interval reaches to either side.
    rows : int
        Number of calibration rows; of rows with weights, how many they are worth.
    typical : float
        Mean scale of these rows, in units of the target.
    outside : float
        Share of these rows with a feature outside its training range.
    """

    weights: Array
    constant: float
    quantiles: dict[float, float]
    rows: int
    typical: float
    outside: float

    def scale(self, signals: Array) -> Array:
        """Scale ``(n,)`` from signals ``(3, n)``, all in units of the target.

        About two errors in three are smaller.
        """
        parts = np.square(self.weights[:, None] * signals).sum(axis=0)
        found: Array = np.sqrt(self.constant**2 + parts)
        return found

    def reach(self, coverage: float) -> float:
        """How many scales an interval of this coverage reaches to either side.

        Raises
        ------
        InputError
            If there is no interval of this coverage.
        """
        for level, found in self.quantiles.items():
            if abs(level - coverage) < 1e-6:
                return found
        there = ", ".join(f"{level:g}" for level in self.quantiles)
        beyond = coverage > max(self.quantiles)
        more = f": {self.rows} calibration rows allow no more" if beyond else ""
        raise InputError(f"there are no intervals of coverage {coverage:g}, only of {there}{more}")


class CalibrationRows(NamedTuple):
    """Rows that networks were not trained on, as ``calibrate`` takes them.

    ``typical`` ``(3,)`` says how large the same networks' signals are on validation rows, as root
    mean squares. One network has another spread than several together, and the prediction of a
    pack another than that of all anchors: on the same rows, their signals can be compared.
    """

    signals: Array
    errors: Array
    outside: Array | None = None
    sample_weight: Array | None = None
    groups: Array | None = None
    typical: Array | None = None

    def like(self, signals: Array) -> "CalibrationRows":
        """Return these rows with signals as large as those of a model, ``(3, v)`` for it."""
        if self.typical is None:
            return self
        typical = np.sqrt(np.mean(np.square(signals), axis=1))
        ratio = np.where(self.typical > 0, typical / np.maximum(self.typical, 1e-300), 1.0)
        return self._replace(signals=self.signals * ratio[:, None], typical=typical)

    def calibrated(self, chosen: bool = False) -> "Calibration":
        """Calibrate on these rows; ``chosen`` as for ``calibrate``."""
        return calibrate(
            self.signals,
            self.errors,
            outside=self.outside,
            sample_weight=self.sample_weight,
            groups=self.groups,
            chosen=chosen,
        )

    def joined(self, others: "CalibrationRows | None") -> "CalibrationRows":
        """Return these validation rows and others, whose groups are different ones."""
        if others is None:
            return self
        both = (self, others.like(self.signals))
        counts = [len(one.errors) for one in both]
        first, second = (
            np.arange(count) if one.groups is None else _numbered(one.groups)
            for one, count in zip(both, counts, strict=True)
        )
        return CalibrationRows(
            np.concatenate([one.signals for one in both], axis=1),
            np.concatenate([one.errors for one in both]),
            np.concatenate(
                [
                    np.zeros(count, bool) if one.outside is None else one.outside
                    for one, count in zip(both, counts, strict=True)
                ]
            ),
            joined_weights(*((one.sample_weight, len(one.errors)) for one in both)),
            np.concatenate([first, second + first.max(initial=-1) + 1]),
        )


def calibrate(
    signals: Array,
    errors: Array,
    *,
    outside: Array | None = None,
    sample_weight: npt.ArrayLike | None = None,
    groups: Array | None = None,
    chosen: bool = False,
    levels: Sequence[float] = LEVELS,
) -> Calibration:
    """Calibrate on rows that the networks were not trained on.

    Parameters
    ----------
    signals : array of shape (3, n)
        Spread, asymmetry and difficulty of each prediction.
    errors : array of shape (n,)
        True value minus prediction.
    outside : array of shape (n,), optional
        Whether a feature of the row lies outside its training range.
    sample_weight : array of shape (n,), optional
        How much each row counts; by default all alike. Rows of weight 0 are left out.
    groups : array of shape (n,), optional
        Which rows belong together. Intervals then cover their share in groups that are not among
        them: the more that scores of a group have in common, the fewer rows they are worth, and
        the further out their quantile is taken.
    chosen : bool
        Whether training settings were chosen on these rows.
    levels : sequence of float
        Coverages of the intervals; those that need more rows are left out.

    Raises
    ------
    InputError
        If there is nothing to learn from these rows.
    """
    errors = np.abs(np.asarray(errors, np.float64))
    signals = np.asarray(signals, np.float64)
    outside = np.zeros(len(errors)) if outside is None else np.asarray(outside)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(errors))
        kept = weights > 0
        # Contiguous, as without weights: sums in another order would end in other bits.
        signals = np.ascontiguousarray(signals[:, kept])
        errors, outside, groups = errors[kept], outside[kept], of_rows(groups, kept)
        weights = relative(weights[kept])
    if groups is not None and not _numbered(groups).any():
        groups = None  # there is no other group to learn from
    rows = len(errors)
    if rows < LEAST_ROWS:
        few = f"{rows} rows are" if rows != 1 else "1 row is"
        raise InputError(f"{few} too few to calibrate on: {LEAST_ROWS} are needed")
    worth = effective_rows(weights, rows)
    if worth < LEAST_ROWS:
        raise InputError(
            f"{rows} rows of such unequal weights are worth {worth:.1f} to calibrate on: "
            f"{LEAST_ROWS} are needed"
        )
    if not (np.isfinite(errors).all() and np.isfinite(signals).all()):
        raise InputError("a row to calibrate on has an error that is not finite")
    if np.ptp(errors) <= 1e-9 * errors.max():
        raise InputError("all rows to calibrate on have the same error: there is nothing to learn")
    if not signals.any():
        raise InputError("spread, asymmetry and difficulty are zero for all rows to calibrate on")
    scores = np.empty(rows)
    order = np.random.default_rng(0).permutation(rows)
    for fold in np.array_split(order, min(_FOLDS, rows)):
        others = np.setdiff1d(order, fold)
        model = _fitted(signals[:, others], errors[others], of_rows(weights, others))
        scores[fold] = errors[fold] / _scale(model, signals[:, fold])
    further = _FLATTERY if chosen else 0
    if groups is not None:
        worth = worth_of_groups(scores, groups, weights)
    usual = quantile(scores, _USUAL, further, weights, worth)
    assert usual is not None  # LEAST_ROWS is enough for it
    constant, *of_signals = usual * np.sqrt(_fitted(signals, errors, weights))
    found = {level: quantile(scores / usual, level, further, weights, worth) for level in levels}
    done = Calibration(
        np.array(of_signals),
        float(constant),
        {level: one for level, one in found.items() if one is not None},
        int(worth),
        0.0,
        float(np.average(outside, weights=weights)),
    )
    return replace(done, typical=float(np.average(done.scale(signals), weights=weights)))


def _numbered(groups: Array) -> Array:
    return np.unique(groups, return_inverse=True)[1]


def worth_of_groups(scores: Array, groups: Array, weights: Array | None = None) -> float:
    """How many rows on their own are worth as much as rows in groups, to find a quantile.

    Rows that have everything in common are worth one for each group, rows that have nothing in
    common what they are worth without groups. What scores ``(n,)`` have in common is measured by
    their ranks.

    Examples
    --------
    >>> groups = np.repeat([0, 1, 2], 4)
    >>> round(worth_of_groups(groups.astype(float), groups), 6)
    3.0
    """
    ranks = np.unique(scores, return_inverse=True)[1].astype(np.float64)
    shared = in_common(ranks - np.average(ranks, weights=weights), groups, weights) or 0.0
    shared = min(max(shared, 0.0), 1.0)
    each = np.ones(len(scores)) if weights is None else weights
    of_groups = np.bincount(_numbered(groups), each)
    squares = shared * np.square(of_groups).sum() + (1 - shared) * np.square(each).sum()
    return float(np.square(each.sum()) / squares)


def quantile(
    scores: Array,
    coverage: float,
    further: float = 0.0,
    weights: Array | None = None,
    worth: float | None = None,
) -> float | None:
    """Split-conformal quantile of scores: a new score is at most this in ``coverage`` of cases.

    Parameters
    ----------
    scores : array of shape (n,)
        Errors divided by their scales.
    coverage : float
        Between 0 and 1.
    further : float
        Which share of the way to the next larger score to go.
    weights : array of shape (n,), optional
        Weights of the scores, above 0. The new score is expected to weigh as much as one of these
        drawn in proportion to its weight, which makes n rows count as their effective number.
    worth : float, optional
        How many independent scores these are worth; by default that effective number. The fewer,
        the further out the quantile, though not beyond the last.

    Returns
    -------
    float or None
        None if there are too few scores for the coverage.
    """
    rows = effective_rows(weights, len(scores))
    order = np.argsort(scores, kind="stable")
    each = np.ones(len(scores)) if weights is None else weights[order] * (rows / weights.sum())
    ranks = np.cumsum(each)
    least = (rows + 1) * coverage - 1e-9
    if least > rows:
        return None
    if worth is not None:
        # By how much a quantile of so many scores falls short on average, in ranks of a median.
        least = min(least + (coverage - 0.5) * (rows / worth - 1), rows - 1e-9)
    # The last rank may be a rounding error below the number of rows.
    places = np.searchsorted(ranks, [least, least + 1]).clip(max=len(ranks) - 1)
    here, beyond = scores[order][places]
    return float((beyond - here) * further + here)


def adapted(
    trust: float, errors: Array, scores: Array, mean: Array, scale: Array
) -> tuple[Array, Array]:
    """Shift predictions by what was wrong at points measured on site, as a device does.

    Parameters
    ----------
    trust : float
        In such points: the share of the error that points of one group, say one machine, have in
        common.
    errors, scores : array of shape (k,)
        Measured targets of the points minus their predictions, and the same divided by their
        scales.
    mean, scale : array of shape (n,)
        Predictions, and how large their errors are expected to be.

    Returns
    -------
    mean, scale : array of shape (n,)
        The predictions with the points, and their scales.
    """
    weight = point_weights(scores)
    count = weight.sum()
    if not count:
        return mean, scale
    least, rest = max(count, 1.0), 1 - trust
    share = count * trust / (count * trust + rest)
    # No more scales than the points were off by.
    most = abs((weight * scores).sum()) / least * scale
    shift = (weight * errors).sum() / least
    moved = mean + share * np.clip(shift, -most, most)
    # The points explain part of the variance, but widen the scale if their own errors surprise.
    score = np.clip(scores, -_MOST_SURPRISE, _MOST_SURPRISE)
    shared = (weight * score).sum() ** 2 / least
    alone = max((weight * np.square(score)).sum() - shared, 0)
    surprise = alone / rest + shared / (count * trust + rest)
    wider = (_FREEDOM + surprise) / (_FREEDOM + count)
    return moved, scale * np.sqrt((1 - _KNOWN * trust * share) * wider)


def point_weights(scores: Array) -> Array:
    """Weights of points with these scores ``(k,)``, from 0 for an absurd one to 1.

    A point is compared with what most points agree on, and the model has a vote: no error.
    """
    needed = (len(scores) + 1) // 2 + 1
    agreed = 0.0
    if needed <= len(scores):
        ascending = np.sort(scores)
        agreed = max(ascending[-needed], 0) + min(ascending[needed - 1], 0)
    weight: Array = np.clip((_NO_WEIGHT - np.abs(scores - agreed)) / _DESCENT, 0, 1)
    return weight


def in_common(errors: Array, groups: Array, weights: Array | None = None) -> float | None:
    """Share of the errors ``(n,)`` common to a group; None if no group has two rows.

    The mean product of two errors of the same group, divided by their mean square; with weights
    ``(n,)``, a product counts as much as those of its two rows multiplied.
    """
    each = np.ones(len(errors)) if weights is None else weights
    together = all_squares = 0.0
    for group in np.unique(groups):
        mine, theirs = errors[groups == group], each[groups == group]
        if len(mine) > 1:
            total, counted = float(theirs.sum()), theirs * mine
            squares = float((counted * mine).sum())
            products = float(counted.sum()) ** 2 - float(np.square(counted).sum())
            together += products / (total - float(np.square(theirs).sum()) / total)
            all_squares += squares
    return together / all_squares if all_squares else None


def interval_score(low: Array, high: Array, y: Array, coverage: float) -> float:
    """Mean width of intervals, plus 2 / (1 - coverage) times how far they miss ``y``."""
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return float(np.mean(high - low + 2 / (1 - coverage) * missed))


def _fitted(signals: Array, errors: Array, weights: Array | None = None) -> Array:
    """Coefficients ``(4,)`` of the variance: of the constant, then of the signals' squares.

    Each round increases the likelihood and keeps coefficients positive: it replaces the logarithm
    by its tangent, and the quotients by an upper bound.
    """
    squares = np.square(errors)
    unit = np.median(signals, axis=1, keepdims=True)
    unit = np.where(unit > 0, unit, signals.mean(axis=1, keepdims=True))
    unit = np.where(unit > 0, unit, 1.0)
    terms = np.vstack([np.ones(len(errors)), np.square(signals / unit)])
    counted = terms if weights is None else terms * weights
    least = 1e-12 * squares.max()
    found = np.full(len(terms), max(float(np.median(squares)), least) / len(terms))
    for _ in range(_ROUNDS):
        variance = found @ terms + least
        robust = (_FREEDOM + 1) / (_FREEDOM + squares / variance) * squares
        below = np.maximum(counted @ (1 / variance), 1e-300)
        found = found * np.sqrt(counted @ (robust / np.square(variance)) / below)
    parts = found * counted.mean(axis=1)
    found[parts < _NOTHING * parts.sum()] = 0
    found[0] += least
    found[1:] /= np.square(unit[:, 0])
    return found


def _scale(coefficients: Array, signals: Array) -> Array:
    found: Array = np.sqrt(coefficients[0] + coefficients[1:] @ np.square(signals))
    return found
