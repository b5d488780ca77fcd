"""What a model is worth beside simpler ones, and what the points it is judged on are worth.

Two models on the same points are compared by the differences of their squared errors, point by
point: what makes a point hard for both is in neither difference. The *error* of a comparison is
half of the interval that holds the true difference in nine of ten cases. It is found from the
scatter of the differences (Student's t). A few points do not show how they scatter; their errors
are taken for normal, and the test of Pitman and Morgan is used. Both take points for independent.
What differs by less than its error is called neither better nor worse.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, t
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twinedge.data.wording import plural
from twinedge.learn.network import FloatArray
from twinedge.learn.small_trees import ROOM, fit_small_trees
from twinedge.scoring import check_targets, r2

LEVEL = 0.9  # of all intervals here
# Points are few where the true RMSE may as well be so many times what they give. To choose among
# models takes fewer of them than to say how good one is.
_VAGUE, _VAGUE_CHOICE = 1.5, 2.0
_ROUNDING = 1e-6  # of an RMSE; a network of floats has no finer differences
_RIDGES = np.logspace(-6, 4, 11)  # on scaled features: from none to nearly the mean

Points = tuple[FloatArray, FloatArray]


class Rival(NamedTuple):
    """Another model on the same points; all in units of the target.

    Parameters
    ----------
    rmse : float
        Its error.
    behind : float
        By how much that is larger than the error of the model it is compared with.
    error : float
        How far chance alone may have moved that difference; infinite for a single point.
    """

    rmse: float
    behind: float
    error: float

    @property
    def better(self) -> bool:
        """Whether it is better by more than the error of the comparison."""
        return self.behind < -self.error

    @property
    def worse(self) -> bool:
        """Whether it is worse by more than the error of the comparison."""
        return self.behind > self.error


def compare(ours: FloatArray, theirs: FloatArray) -> Rival:
    """Compare the errors of a rival with ours on the same points, both ``(n,)``."""
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
            # The two are uncorrelated where both models are as good.
            correlation = quantile / np.sqrt(n - 1 + quantile**2)
            chance = correlation * np.sqrt(np.mean(less**2) * np.mean(more**2))
        else:
            chance = quantile * np.std(less * more, ddof=1) / np.sqrt(n)
        # From mean squares to their roots, which differ by so many times less.
        chance = max(chance / both, _ROUNDING * both)
    return Rival(float(size * rival), float(size * (rival - rmse)), float(size * chance))


def linear_model() -> Any:
    """Return an unfitted linear model: least squares with a ridge chosen by leave-one-out.

    The ridge lets it have columns that follow from others, and more columns than rows.
    """
    return make_pipeline(StandardScaler(), RidgeCV(_RIDGES))


class Standing(NamedTuple):
    """What a twin came to on test points.

    Parameters
    ----------
    rows : int
        Test points.
    rmse : float
        Error of the twin, in units of the target.
    r2 : float or None
        Part of the target's variance that it explains; None where the target does not vary.
    mean, linear : Rival
        The mean of the training targets, and a linear model of the training points.
    trees : Rival or None
        Trees in the bytes of the pack; None where none fit, or no points could choose them.
    room : int
        Those bytes.
    """

    rows: int
    rmse: float
    r2: float | None
    mean: Rival
    linear: Rival
    trees: Rival | None
    room: int

    def scores(self) -> dict[str, Any]:
        """Return what a run keeps of it, as JSON takes it."""
        return {
            "rmse_test": self.rmse,
            "r2_test": self.r2,
            "rmse_mean": self.mean.rmse,
            "beats_mean": self.mean.worse,
            "rmse_linear": self.linear.rmse,
            "beats_linear": self.linear.worse,
            "rmse_trees": self.trees and self.trees.rmse,
            "beats_trees": self.trees and self.trees.worse,
            "verdict": self.verdict,
        }

    @property
    def verdict(self) -> str | None:
        """What a person should know before using the twin, in a sentence; None if it is ahead."""
        if not self.mean.worse:
            against = f"(RMSE {self.rmse:.4g} against {self.mean.rmse:.4g})"
            if self.mean.better:
                return (
                    f"The twin is worse than predicting the mean of the training rows {against}: "
                    "what it learnt from them does not hold for other rows."
                )
            if self._few:
                return f"{self._few} the twin from the mean of the training rows {against}."
            return (
                f"The twin is no better than predicting the mean of the training rows {against}: "
                "these columns seem to tell nothing of the target."
            )
        if not self.linear.worse:
            against = f"(RMSE {self.linear.rmse:.4g} against {self.rmse:.4g} of the twin)"
            if self.linear.better:
                return f"A linear model does better {against}: use that, or train with more effort."
            if self._few:
                return f"{self._few} the twin from a linear model {against}."
            return (
                f"A linear model does as well {against}, within the error of the comparison: it is "
                "smaller, and easier to explain."
            )
        if self.trees and self.trees.better:
            return (
                f"Trees in the same {self.room:,} bytes do better (RMSE {self.trees.rmse:.4g} "
                f"against {self.rmse:.4g} of the twin): emlearn runs such trees on a "
                "microcontroller, without intervals and without learning on the device."
            )
        return None

    @property
    def _few(self) -> str:
        """The beginning of a sentence where the test points are few, and nothing otherwise."""
        return f"{plural(self.rows, 'test row')} cannot tell" if _is_vague(self.rows) else ""


def standing(
    train: Points,
    test: Points,
    predicted: FloatArray,
    validation: Points | None = None,
    room: int = ROOM,
) -> Standing:
    """Judge a twin on test points beside the mean, a linear model and trees of its size.

    Parameters
    ----------
    train, test : (X, y)
        Points it was trained on, and points it never saw: at least one.
    predicted : array of shape (n,)
        What it predicts for the latter.
    validation : (X, y), optional
        Points that its settings were chosen on. They choose the trees, too: without there are none.
    room : int
        Bytes of its pack.
    """
    X, y = test[0], check_targets(test[1], len(predicted))
    error = predicted - y
    mean = compare(error, train[1].mean() - y)
    linear = compare(error, linear_model().fit(*train).predict(X) - y)
    trees = None
    if validation is not None and len(validation[1]):
        small = fit_small_trees(train, validation, room, few=True)
        trees = small and compare(error, small.predict(X) - y)
    rmse = float(np.sqrt(np.mean(np.square(error))))
    return Standing(len(y), rmse, r2(y, error), mean, linear, trees, room)


def rmse_range(rows: int) -> tuple[float, float]:
    """Between which multiples of an RMSE over so many points the true one lies.

    In nine of ten cases, where errors are normal and independent.

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
    """Say what so few test and validation rows are worth, or nothing where they are enough."""
    said = []
    if _is_vague(test):
        low, high = rmse_range(test)
        said.append(
            f"{plural(test, 'test row')} cannot tell much: the true RMSE may be {low:.2g} to "
            f"{high:.2g} times the one shown ({100 * LEVEL:g} % interval)"
        )
    if _is_vague(validation, _VAGUE_CHOICE):
        rows = plural(validation, "validation row")
        said.append(f"settings were chosen on {rows}, largely by chance")
    return f"Warning: {'; '.join(said)}" if said else None
