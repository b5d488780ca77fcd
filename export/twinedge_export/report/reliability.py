"""What predictions are worth: against simple models, by coverage, and by size of the target.

A spread s claims that mean -+ z s covers the target with the probability of a normal distribution.
The estimates of a twin share one network, so their spread misses the error they have in common; one
factor, found on validation points, makes up for that. It is used for packs that have no intervals.

For a run, the mean and the linear model are fitted to its training rows. A pack has no such rows:
there both are fitted to the rows that the pack is scored on, by cross-validation.
"""

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.evaluation.verdict import Rival
from twinedge.pack.contents import Array
from twinedge.scoring.scores import rank_correlation

if TYPE_CHECKING:
    from twinedge.run_folder import Run

Points = tuple[Array, Array]  # features (n, f) and targets (n,)
LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_ONE_SIGMA = 2 * NormalDist().cdf(1) - 1
_PARTS, _FEWEST = 5, 10  # parts by size of the target, and points in each


@dataclass(frozen=True)
class Predictions:
    """Predictions of points with known targets, all ``(n,)`` in units of the target.

    ``name`` says which points they are: "test", "validation", or the name of a table. If the pack
    has intervals, ``scale`` is the expected size of errors, and ``ends`` ``(n, 2)`` the intervals
    of each coverage.
    """

    name: str
    y: Array
    mean: Array
    spread: Array
    scale: Array | None = None
    ends: dict[float, Array] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The points in words: "test rows", "rows of site.csv"."""
        own = self.name in ("test", "validation")
        return f"{self.name} rows" if own else f"rows of {self.name}"

    @property
    def error(self) -> Array:
        """Prediction less target."""
        return self.mean - self.y

    @property
    def rmse(self) -> float:
        """Root mean square error."""
        return scoring.rmse(self.error)

    @property
    def r2(self) -> float | None:
        """Fraction of the target's variance explained; None if it does not vary."""
        return scoring.r2(self.y, self.error)


class SpreadCoverage(NamedTuple):
    """Fractions of points that an interval covers: claimed, actual, and with the factor."""

    claimed: float
    covered: float
    scaled: float | None


@dataclass(frozen=True)
class Reliability:
    """What the spread is worth.

    Parameters
    ----------
    coverage : tuple of SpreadCoverage
        By the level claimed, ascending.
    points : int
        How many points were counted.
    factor : float or None
        Factor for the spread with which as many validation points lie within one spread of the
        prediction as it claims; None without a spread.
    correlation : float
        Spearman's rank correlation of spread and absolute error: 1 ranks them perfectly.
    """

    coverage: tuple[SpreadCoverage, ...]
    points: int
    factor: float | None
    correlation: float

    def at(self, level: float) -> SpreadCoverage:
        """Return the coverage of one level."""
        return next(one for one in self.coverage if one.claimed == level)


def reliability(predictions: Predictions, validation: Predictions | None) -> Reliability | None:
    """Count what the spread covers; None if no prediction has a spread.

    Without validation points there is no factor.
    """
    if not predictions.spread.any():
        return None
    factor = None if validation is None else spread_factor(validation)
    error = np.abs(predictions.error)

    def covered(level: float, by: float) -> float:
        z = NormalDist().inv_cdf((1 + level) / 2)
        return float(np.mean(error <= by * z * predictions.spread))

    coverage = tuple(
        SpreadCoverage(level, covered(level, 1), None if factor is None else covered(level, factor))
        for level in LEVELS
    )
    correlation = rank_correlation(predictions.spread, predictions.error)
    return Reliability(coverage, len(error), factor, correlation)


def spread_factor(validation: Predictions) -> float | None:
    """Find the factor on these points; None if most of them have no spread."""
    ratio = np.full(len(validation.y), np.inf)
    np.divide(np.abs(validation.error), validation.spread, out=ratio, where=validation.spread > 0)
    factor = float(np.quantile(ratio, _ONE_SIGMA, method="higher"))
    return factor if np.isfinite(factor) and factor > 0 else None


class SizeBand(NamedTuple):
    """Points whose targets lie between ``least`` and ``most``: errors and coverage.

    ``covered`` and ``mean_width`` are None without intervals.
    """

    least: float
    most: float
    rows: int
    rmse: float
    mean_error: float
    covered: float | None
    mean_width: float | None


def by_size(predictions: Predictions, level: float | None) -> tuple[SizeBand, ...]:
    """Split the points by the size of their targets into parts of equal counts.

    At most five, of at least ten points; a single one for fewer than twenty points.
    """
    order = np.argsort(predictions.y, kind="stable")
    found = []
    for part in np.array_split(order, max(1, min(_PARTS, len(order) // _FEWEST))):
        y, error = predictions.y[part], predictions.error[part]
        covered = width = None
        if level is not None:
            low, high = predictions.ends[level][part].T
            covered, width = float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))
        ends = float(y.min()), float(y.max())
        errors = scoring.rmse(error), float(error.mean())
        found.append(SizeBand(*ends, len(part), *errors, covered, width))
    return tuple(found)


_Z = 1.645  # 90 % confidence
_RIDGE = 1e-6  # of the variance of a column: allows linearly dependent columns


class Baseline(NamedTuple):
    """A simple model, "mean" or "linear", beside the twin."""

    kind: str
    rival: Rival

    @property
    def name(self) -> str:
        """What it is called."""
        return {"mean": "the mean", "linear": "a linear model"}[self.kind]

    @property
    def rmse(self) -> float:
        """Its error, in units of the target."""
        return self.rival.rmse


def fit_baselines(run: "Run", points: Points, error: Array) -> tuple[Baseline, ...]:
    """Fit both to the training rows of a run; ``error`` ``(n,)`` is that of the pack."""
    from twinedge.evaluation.comparison import compare
    from twinedge.evaluation.rivals import fit_linear

    (X, y), weights = points, run.model.sample_weights_
    train_X, train_y = run.model.anchor_X_, run.model.anchor_y_
    mean = np.full(len(y), float(np.average(train_y, weights=weights)))
    linear = fit_linear(train_X, train_y, weights).predict(X)
    return (
        Baseline("mean", compare(error, mean - y)),
        Baseline("linear", compare(error, linear - y)),
    )


def cross_validate_baselines(points: Points, error: Array) -> tuple[Baseline, ...]:
    """Fit both to the rows themselves, each row predicted by the others; empty for very few."""
    X, y = points
    n = len(y)
    if n < 3:
        return ()
    errors = {"mean": (y.sum() - y) / (n - 1) - y}
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    scale = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1))[:, scale > 0]
    if n > X.shape[1] + 2:
        Z = np.column_stack([np.ones(n), X])
        inverse = np.linalg.inv(Z.T @ Z + _RIDGE * n * np.eye(Z.shape[1]))
        hat = Z @ inverse @ Z.T
        errors["linear"] = (hat @ y - y) / np.maximum(1 - np.diag(hat), 1e-9)
    return tuple(Baseline(kind, compare_errors(error, one)) for kind, one in errors.items())


def compare_errors(error: Array, other: Array) -> Rival:
    """Compare errors ``(n,)`` by their squares, point by point, where there is no scipy."""
    behind = np.square(other) - np.square(error)
    chance = _Z * float(behind.std(ddof=1)) / np.sqrt(len(behind))
    rmse, rival = scoring.rmse(error), scoring.rmse(other)
    return Rival(rival, rival - rmse, chance / max(rmse + rival, 1e-300))
