"""Compare models on the same points: whether one is better than another, and how surely.

Two models are compared by the differences of their squared errors, point by point, so that points
that are hard for both cancel. The *error* of a comparison is half the width of the 90 % interval of
the true difference. It is found from the scatter of the differences (Student's t). If points are
too few to show the scatter, their errors are assumed to be normal, and the test of Pitman and
Morgan is used. Both assume independent points, or independent groups of points. A model that
differs by less than this error is called neither better nor worse.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, t

from twinedge import scoring
from twinedge.data.splitting import number_groups, time_blocks
from twinedge.evaluation.small_trees import ROOM
from twinedge.evaluation.verdict import Rival, Verdict, verdict
from twinedge.scoring.scores import check_targets, r2
from twinedge.training.network import FloatArray
from twinedge.wording import plural

LEVEL = 0.9  # of all intervals here
BLOCKS = 20  # of time: errors of rows in one block may have something in common
# Points are too few if the true RMSE may be this many times the measured one. Choosing among models
# takes fewer of them than saying how good one is.
_VAGUE, _VAGUE_CHOICE = 1.5, 2.0
_ROUNDING = 1e-6  # of an RMSE; smaller differences are rounding of float32


def compare(ours: FloatArray, theirs: FloatArray, groups: Any = None) -> Rival:
    """Compare the errors of a rival with ours on the same points, both ``(n,)``.

    Points of one group, numbered ``(n,)`` from 0, may have errors in common: then chance is
    estimated from the scatter of whole groups.
    """
    n, least = len(ours), float(np.finfo(np.float64).tiny)
    size = max(float(np.abs([ours, theirs]).max()), least)
    ours, theirs = ours / size, theirs / size  # so that no square is out of range
    rmse, rival = np.sqrt(np.mean(np.square([ours, theirs]), axis=1))
    both = max(rmse + rival, least)
    chance = np.inf
    if n > 1:
        quantile = t.ppf((1 + LEVEL) / 2, n - 1)
        less, more = theirs - ours, theirs + ours  # their product is the difference of squares
        if _is_vague(n):
            # The two are uncorrelated if both models are equally good.
            correlation = quantile / np.sqrt(n - 1 + quantile**2)
            chance = correlation * np.sqrt(np.mean(less**2) * np.mean(more**2))
        else:
            chance = quantile * np.std(less * more, ddof=1) / np.sqrt(n)
        if groups is not None and (count := int(groups.max()) + 1) > 1:
            of_groups = np.bincount(groups, less * more - np.mean(less * more))
            scatter = np.sqrt(np.sum(np.square(of_groups)) * count / (count - 1)) / n
            chance = max(chance, t.ppf((1 + LEVEL) / 2, count - 1) * scatter)
        # Convert from a difference of mean squares to one of their roots.
        chance = max(chance / both, _ROUNDING * both)
    return Rival(float(size * rival), float(size * (rival - rmse)), float(size * chance))


class Standing(NamedTuple):
    """How a twin did on test points.

    Parameters
    ----------
    rows : int
        Number of test points.
    rmse : float
        Error of the twin, in units of the target.
    r2 : float or None
        Share of the target's variance that it explains; None if the target does not vary.
    rivals : dict of str to Rival
        The mean of the training targets ("mean"), a linear model of the training points ("linear"),
        trees in the bytes of the pack ("trees"), if any fit and there are points to choose them on,
        and the last known value ("naive"), for points in the order of time.
    room : int
        Bytes of the pack.
    """

    rows: int
    rmse: float
    r2: float | None
    rivals: dict[str, Rival]
    room: int

    def scores(self) -> dict[str, Any]:
        """Return the scores that a run keeps, in JSON types.

        The verdict is None if the twin is clearly the best.
        """
        found: dict[str, Any] = {"rmse_test": self.rmse, "r2_test": self.r2}
        for name in ("naive", "mean", "linear", "trees"):
            rival = self.rivals.get(name)
            if rival is not None or name != "naive":
                found[f"rmse_{name}"] = rival and rival.rmse
                found[f"beats_{name}"] = rival and rival.worse
        ahead = self.verdict.outcome == "best"
        return {**found, "verdict": None if ahead else self.verdict.sentence}

    @property
    def verdict(self) -> Verdict:
        """Whether the twin is the best of these models."""
        return verdict(self.rmse, self.rivals, self.rows, self.room, "test row")


def standing_beside(
    others: dict[str, FloatArray],
    y: FloatArray,
    predicted: FloatArray,
    room: int = ROOM,
    weights: FloatArray | None = None,
    groups: Any = None,
) -> Standing:
    """Compare predictions ``(n,)`` of targets with those of rivals, by their names.

    ``groups`` ``(n,)`` as for ``compare``.
    """
    y = check_targets(y, len(predicted))
    root = 1.0 if weights is None else np.sqrt(weights / weights.mean())
    error = predicted - y
    rivals = {
        name: compare(error * root, (other - y) * root, groups) for name, other in others.items()
    }
    rmse, explained = scoring.rmse(error, weights=weights), r2(y, error, weights)
    return Standing(len(y), rmse, explained, rivals, room)


def error_groups(groups: Any, times: Any) -> Any:
    """Return which rows ``(n,)`` may have errors in common, as numbers; None if none do.

    Those are rows of one group, or of one block of time.
    """
    if groups is not None:
        return number_groups(groups)
    return None if times is None else time_blocks(times, BLOCKS)


def rmse_range(rows: int) -> tuple[float, float]:
    """Range of the true RMSE, in multiples of one measured on ``rows`` points.

    A 90 % interval, if errors are normal and independent.

    Examples
    --------
    >>> [round(factor, 2) for factor in rmse_range(2)]
    [0.58, 4.42]
    >>> [round(factor, 2) for factor in rmse_range(200)]
    [0.92, 1.09]
    """
    low, high = np.sqrt(rows / chi2.ppf([(1 + LEVEL) / 2, (1 - LEVEL) / 2], rows))
    return float(low), float(high)


def _is_vague(rows: int, factor: float = _VAGUE) -> bool:
    return rmse_range(rows)[1] > factor


def few_rows(test: int, validation: int) -> str | None:
    """Warn if there are few test or validation rows; None if they are enough."""
    warnings = []
    if _is_vague(test):
        low, high = rmse_range(test)
        warnings.append(
            f"{plural(test, 'test row')} cannot tell much: the true RMSE may be {low:.2g} to "
            f"{high:.2g} times the one shown ({100 * LEVEL:g} % interval)"
        )
    if _is_vague(validation, _VAGUE_CHOICE):
        rows = plural(validation, "validation row")
        warnings.append(f"settings were chosen on {rows}, largely by chance")
    return f"Warning: {'; '.join(warnings)}" if warnings else None
