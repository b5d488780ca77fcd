"""Score predictions and their intervals on points with known targets. Needs only numpy."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError
from twinedge.scoring.calibration import interval_score
from twinedge.wording import plural

Array = npt.NDArray[Any]

# The lowest rank correlation at which each phrase applies.
_RANKS = ((0.5, "ranks errors well"), (0.3, "ranks errors"), (0.1, "ranks errors weakly"))
_RANKED = 10  # rows; of fewer, a correlation says nothing


def rmse(predicted: npt.ArrayLike, y: npt.ArrayLike = 0.0, weights: Array | None = None) -> float:
    """Root mean square error of predictions against targets, both ``(n,)``, or of errors alone.

    With ``weights`` ``(n,)``, the mean is weighted.
    """
    error = np.asarray(predicted) - np.asarray(y)
    return float(np.sqrt(np.average(np.square(error, dtype=np.float64), weights=weights)))


class Coverage(NamedTuple):
    """How intervals of one level did: share of targets ``covered``, and width in their units."""

    claimed: float
    covered: float
    mean_width: float
    interval_score: float


class Scores(NamedTuple):
    """Errors in units of the target; ``baseline_rmse`` is from always predicting their mean.

    ``r2`` is None if the targets do not vary. ``rank_correlation`` is between the scale and the
    size of the error; it and ``mean_scale`` are None without a scale.
    """

    rows: int
    rmse: float
    mae: float
    largest_error: float
    r2: float | None
    baseline_rmse: float
    mean_spread: float
    mean_scale: float | None
    rank_correlation: float | None
    intervals: tuple[Coverage, ...]


def score(
    y: Array,
    mean: Array,
    spread: Array,
    scale: Array | None = None,
    ends: dict[float, Array] | None = None,
) -> Scores:
    """Compare predictions with targets.

    Parameters
    ----------
    y, mean, spread : array of shape (n,)
        Targets, predictions, and standard deviations of the estimates.
    scale : array of shape (n,), optional
        How large errors were expected to be.
    ends : dict of float to array of shape (n, 2), optional
        Intervals for each coverage.
    """
    y = check_targets(y, len(mean))
    error = np.asarray(mean, np.float64) - y
    mse, variance = float(np.mean(np.square(error))), float(np.var(y))
    return Scores(
        rows=len(y),
        rmse=float(np.sqrt(mse)),
        mae=float(np.abs(error).mean()),
        largest_error=float(np.abs(error).max()),
        r2=r2(y, error),
        baseline_rmse=float(np.sqrt(variance)),
        mean_spread=float(np.mean(spread)),
        mean_scale=None if scale is None else float(np.mean(scale)),
        rank_correlation=None if scale is None else rank_correlation(scale, error),
        intervals=tuple(_coverage(y, *one) for one in (ends or {}).items()),
    )


def score_groups(
    groups: Array,
    error: Array,
    covered: Array | None = None,
    weights: Array | None = None,
) -> list[dict[str, Any]]:
    """Score predictions group by group.

    Parameters
    ----------
    groups : array of shape (n,)
        Which rows belong together: names or numbers.
    error : array of shape (n,)
        Prediction minus target.
    covered : array of shape (n,), optional
        Whether the interval of a row covers its target.
    weights : array of shape (n,), optional
        How much each row counts.

    Returns
    -------
    list of dict
        In JSON types, by name: ``name``, ``rows``, ``rmse`` and ``mean_error`` in units of the
        target, and ``coverage``, None without intervals.

    Examples
    --------
    >>> score_groups(np.array(["b", "a", "b"]), np.array([1.0, 2.0, 3.0]))[0]
    {'name': 'a', 'rows': 1, 'rmse': 2.0, 'mean_error': 2.0, 'coverage': None}
    """
    names, number = np.unique(groups, return_inverse=True)
    found = []
    for k, name in enumerate(names.tolist()):
        mine = number == k
        each = None if weights is None else weights[mine]
        found.append(
            {
                "name": name,
                "rows": int(mine.sum()),
                "rmse": rmse(error[mine], weights=each),
                "mean_error": float(np.average(error[mine], weights=each)),
                "coverage": None
                if covered is None
                else float(np.average(covered[mine], weights=each)),
            }
        )
    return found


def check_targets(y: Any, count: int, targets: int = 1) -> Array:
    """Check measured targets of ``count`` points; returns them as an array, which may hold NaN.

    Shape ``(n, 1)`` is refused: minus predictions ``(n,)`` it would broadcast to a matrix. Several
    ``targets`` have shape ``(n, m)``.

    Raises
    ------
    InputError
        If there is not one number for each point.
    """
    try:
        y = np.asarray(y)
    except ValueError as error:
        raise InputError("targets must be one number for each point") from error
    shape = (count,) if targets == 1 else (count, targets)
    if y.shape != shape:
        raise InputError(
            f"targets must have shape {shape}, one for each point, not shape {y.shape}"
        )
    if y.dtype.kind not in "biuf":
        raise InputError(f"targets must be numbers, not {y.dtype}")
    checked: Array = y
    return checked


def r2(y: Array, error: Array, weights: Array | None = None) -> float | None:
    """Share of the targets' variance that predictions with these errors explain, all ``(n,)``.

    None if the targets do not vary.
    """
    if np.ptp(y) == 0:  # np.var may leave a rounding error
        return None
    if weights is None:
        return 1 - float(np.mean(np.square(error))) / float(np.var(y))
    off = y - np.average(y, weights=weights)
    squares = np.average(np.square([error, off]), axis=1, weights=weights)
    return 1 - float(squares[0] / squares[1])


def describe_scores(scores: Scores) -> str:
    """Say in one sentence what the intervals are worth."""
    if not scores.intervals or scores.rank_correlation is None:
        return "There are no intervals: the spread only says how far the anchors disagree."
    usual = min(scores.intervals, key=lambda one: abs(one.claimed - 0.9))
    rank = scores.rank_correlation
    ranks = next((words for least, words in _RANKS if rank >= least), "does not rank errors")
    ranking = (
        f"the scale {ranks} ({rank:.2f})"
        if scores.rows >= _RANKED
        else f"{plural(scores.rows, 'row')} cannot show whether the scale ranks errors"
    )
    covered, claimed = 100 * usual.covered, 100 * usual.claimed
    return f"Intervals cover {covered:.0f} % where {claimed:g} % is claimed; {ranking}."


def rank_correlation(uncertainty: Array, error: Array) -> float:
    """Spearman's correlation of uncertainty and absolute error; 1 is a perfect ranking.

    0 if one of the two never varies.
    """
    ranks = np.stack([_ranks(np.asarray(uncertainty)), _ranks(np.abs(error))])
    if not (ranks.std(axis=1) > 0).all():
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: Array) -> Array:
    """Ranks ``(n,)``; equal values share the mean of theirs."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    behind = np.cumsum(size)
    return np.asarray((behind - (size - 1) / 2)[group])


def _coverage(y: Array, claimed: float, ends: Array) -> Coverage:
    low, high = np.asarray(ends, np.float64).T
    covered = float(np.mean((low <= y) & (y <= high)))
    width = float(np.mean(high - low))
    return Coverage(claimed, covered, width, interval_score(low, high, y, claimed))
