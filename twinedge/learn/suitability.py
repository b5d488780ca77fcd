"""Judge whether a twin suits the data: compare it with simpler models, and run the paper's check.

Two models on the same points are compared by the differences of their squared errors, point by
point, so that points that are hard for both cancel. The *error* of a comparison is half the width
of the 90 % interval of the true difference. It is found from the scatter of the differences
(Student's t). If points are too few to show the scatter, their errors are assumed to be normal, and
the test of Pitman and Morgan is used. Both assume independent points. A model that differs by less
than this error is called neither better nor worse.

A twin learns from pairs, so its error should fall as each point is paired with more others. If it
does not, the paper finds that nearest neighbors and ordinary networks do as well as the twin: the
target is too noisy, or too coarse, for differences to be informative. If a linear model does as
well, there is little for a twin to learn; if the mean does, nothing at all. Trees that take no more
bytes than a twin are the alternative on a small device. Everything is judged on points held out of
the given rows (cross-validation), so these should be the rows to train on.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, t
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twinedge import scoring
from twinedge.errors import InputError, plural
from twinedge.learn.estimator import AnnRegressor, EnsembleRegressor
from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import jobs_of, one_of, seed_of
from twinedge.learn.small_trees import ROOM, fit_small_trees
from twinedge.learn.twin import TwinRegressor
from twinedge.progress import Progress, progress_bar
from twinedge.scoring import check_targets, r2

LEVEL = 0.9  # of all intervals here
# Points are too few if the true RMSE may be this many times the measured one. Choosing among models
# takes fewer of them than saying how good one is.
_VAGUE, _VAGUE_CHOICE = 1.5, 2.0
_ROUNDING = 1e-6  # of an RMSE; smaller differences are rounding of float32
_RIDGES = np.logspace(-6, 4, 11)  # for scaled features: from none to nearly the mean

Points = tuple[FloatArray, FloatArray]


class Rival(NamedTuple):
    """Another model on the same points; all in units of the target.

    Parameters
    ----------
    rmse : float
        Its error.
    behind : float
        How much larger that is than the error of the model it is compared with.
    error : float
        How far chance alone may move that difference; infinite for a single point.
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
            # The two are uncorrelated if both models are equally good.
            correlation = quantile / np.sqrt(n - 1 + quantile**2)
            chance = correlation * np.sqrt(np.mean(less**2) * np.mean(more**2))
        else:
            chance = quantile * np.std(less * more, ddof=1) / np.sqrt(n)
        # Convert from a difference of mean squares to one of their roots.
        chance = max(chance / both, _ROUNDING * both)
    return Rival(float(size * rival), float(size * (rival - rmse)), float(size * chance))


def linear_model() -> Any:
    """Return an unfitted linear model: least squares with a ridge chosen by leave-one-out.

    The ridge allows columns that depend on each other, and more columns than rows.
    """
    return make_pipeline(StandardScaler(), RidgeCV(_RIDGES))


def fit_linear(X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> Any:
    """Fit such a model to points ``(n, f)``, which may have weights ``(n,)``."""
    steps = ("standardscaler", "ridgecv")
    return linear_model().fit(X, y, **{f"{step}__sample_weight": weights for step in steps})


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
    mean, linear : Rival
        The mean of the training targets, and a linear model of the training points.
    trees : Rival or None
        Trees in the bytes of the pack; None if none fit, or there are no points to choose them on.
    room : int
        Bytes of the pack.
    """

    rows: int
    rmse: float
    r2: float | None
    mean: Rival
    linear: Rival
    trees: Rival | None
    room: int

    def scores(self) -> dict[str, Any]:
        """Return the scores that a run keeps, in JSON types."""
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
        """What the user should know before using the twin, in a sentence; None if it is ahead."""
        if not self.mean.worse:
            against = f"(RMSE {self.rmse:.4g} against {self.mean.rmse:.4g})"
            if self.mean.better:
                return (
                    f"The twin is worse than predicting the mean of the training rows {against}: "
                    "what it learnt does not carry over to new rows."
                )
            if self._few:
                return f"{self._few} the twin from the mean of the training rows {against}."
            return (
                f"The twin is no better than predicting the mean of the training rows {against}: "
                "these columns seem to say nothing about the target."
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
        """The beginning of a sentence if the test points are few, otherwise empty."""
        return f"{plural(self.rows, 'test row')} cannot tell" if _is_vague(self.rows) else ""


def standing(
    train: Points,
    test: Points,
    predicted: FloatArray,
    validation: Points | None = None,
    room: int = ROOM,
    weights: tuple[FloatArray | None, ...] = (None, None, None),
) -> Standing:
    """Compare a twin on test points with the mean, a linear model and trees of its size.

    Parameters
    ----------
    train, test : (X, y)
        Points it was trained on, and points it never saw: at least one.
    predicted : array of shape (n,)
        Its predictions for the latter.
    validation : (X, y), optional
        Points that its settings were chosen on. They choose the trees, too; without them, there are
        no trees.
    room : int
        Bytes of its pack.
    weights : tuple of array or None
        How much training, validation and test points count; None if all do alike.
    """
    X, y = test[0], check_targets(test[1], len(predicted))
    of_train, of_validation, of_test = weights
    root = 1.0 if of_test is None else np.sqrt(of_test / of_test.mean())

    def beside(other: FloatArray) -> Rival:
        return compare((predicted - y) * root, (other - y) * root)

    mean = beside(np.average(train[1], weights=of_train))
    linear = beside(fit_linear(*train, of_train).predict(X))
    trees = None
    if validation is not None and len(validation[1]):
        small = fit_small_trees(
            train, validation, room, few=True, weights=(of_train, of_validation)
        )
        trees = small and beside(small.predict(X))
    error = predicted - y
    rmse, explained = scoring.rmse(error, weights=of_test), r2(y, error, of_test)
    return Standing(len(y), rmse, explained, mean, linear, trees, room)


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


FEWEST_ROWS = 30
FOLDS = 3
STEPS = {"quick": 2_000, "normal": 8_000, "thorough": 30_000}
MULTIPLIERS = (1, 4)
# One setting for all data, between the best for noisy targets and for exact ones.
_SETTING = {"learning_rate": 0.01, "weight_decay": 0.1}
_HIDDEN, _MEMBERS = (128, 128), 2
_ANCHORS = 256  # as good as all, but faster
# The models, and about how many seconds one fold of a quick check takes.
_SECONDS = {
    "twin": 20.0,
    "networks": 12.0,
    "forest": 2.0,
    "trees": 10.0,
    "nearest": 0.1,
    "linear": 0.1,
    "mean": 0.1,
}
_RIVALS = tuple(_SECONDS)[1:]
_HELD = 8  # one point in this many chooses among trees, the same share as for a twin
# Further signs against a twin: the error of nearest neighbors is below _NEAR times its own, or all
# pairs lower the error by less than _RISE against one partner per point. `twinedge reproduce check`
# shows where the paper's sets are.
_NEAR = 1.15
_RISE = 0.07


@dataclass(frozen=True)
class Suitability:
    """The findings; errors are root mean squares in units of the target, on held-out points.

    Parameters
    ----------
    twin : float
        Error of a twin trained on all pairs.
    multipliers : dict of int to Rival
        Twins trained on this many partners of each point, compared with that one.
    rivals : dict of str to Rival
        An ensemble of ordinary networks ("networks"), a random forest of any size ("forest"),
        boosted trees or a forest in ``ROOM`` bytes ("trees"), k nearest neighbors ("nearest"), a
        linear model ("linear") and the mean of the targets ("mean").
    rows : int
        Number of points judged.
    """

    twin: float
    multipliers: dict[int, Rival]
    rivals: dict[str, Rival]
    rows: int

    @property
    def rises_with_pairs(self) -> bool:
        """Whether a twin trained on all pairs is clearly better than one on the fewest."""
        few = self.multipliers[min(self.multipliers)]
        return few.worse and self.twin < (1 - _RISE) * few.rmse

    @property
    def reasons(self) -> list[str]:
        """What speaks against a twin, in sentences without a full stop."""
        found, rivals = [], self.rivals
        if not self.rises_with_pairs:
            found.append("accuracy hardly rises with the number of pairs")
        if rivals["nearest"].rmse < _NEAR * self.twin:
            found.append("nearest neighbors, which learn nothing, come close to the twin")
        if rivals["forest"].better:
            found.append("a random forest does better than the twin")
        if not rivals["linear"].worse:
            how = "better than" if rivals["linear"].better else "as well as"
            found.append(f"a linear model does {how} the twin")
        if not rivals["mean"].worse:
            found.append("the twin is no better than predicting the mean")
        return found

    @property
    def suits(self) -> bool:
        """Whether at most one thing speaks against a twin, since each by itself may be chance.

        Being no better than the mean, or worse than a linear model, is enough against it.
        """
        ahead = self.rivals["mean"].worse and not self.rivals["linear"].better
        return ahead and len(self.reasons) <= 1

    @property
    def better(self) -> list[str]:
        """Rivals that are better than the twin by more than chance explains, best first."""
        found = [name for name, rival in self.rivals.items() if rival.better]
        return sorted(found, key=lambda name: self.rivals[name].rmse)

    @property
    def advice(self) -> str | None:
        """What to put on a small device instead, in a sentence; None if that is no better."""
        trees = self.rivals["trees"]
        if not trees.better:
            return None
        return (
            f"Trees that fit {ROOM:,} bytes do better than the twin (RMSE {trees.rmse:.4g} against "
            f"{self.twin:.4g}): emlearn runs such trees on a microcontroller, with fewer "
            "instructions, but without intervals and without learning on the device."
        )


def suitability(
    X: FloatArray,
    y: FloatArray,
    *,
    effort: str = "quick",
    seed: int = 0,
    n_jobs: int | None = -1,
    verbose: bool = False,
) -> Suitability:
    """Cross-validate a twin, twins trained on fewer pairs, and the alternatives.

    Parameters
    ----------
    X : array of shape (n, features)
        Points to train on, without those kept for testing.
    y : array of shape (n,)
        Their targets.
    effort : {"quick", "normal", "thorough"}
        How long each network is trained.
    seed : int
        Seed of folds and networks.
    n_jobs : int or None
        Trainings at a time, as in scikit-learn; by default one per core.
    verbose : bool
        Show progress on standard error.
    """
    steps = STEPS[one_of("effort", effort, tuple(STEPS))]
    y = check_targets(y, len(X))
    if len(y) < FEWEST_ROWS:
        raise InputError(f"{len(y)} rows are too few to judge: at least {FEWEST_ROWS} are needed")
    seed = seed_of(seed)
    # Folds of equal size, so that the compiled training serves them all.
    size = len(y) // FOLDS
    order = np.random.default_rng(seed).permutation(len(y))[: FOLDS * size]
    folds = order.reshape(FOLDS, size)
    # The slow ones first.
    tasks = {
        f"{kind}, fold {fold + 1} of {FOLDS}": (kind, fold)
        for kind in _SECONDS
        for fold in range(FOLDS)
    }

    def judge(title: str) -> dict[str, FloatArray]:
        kind, fold = tasks[title]
        held = folds[fold]
        rest = np.concatenate([folds[k] for k in range(FOLDS) if k != fold])
        with progress.part(title, opaque=True) as inner:
            train = X[rest], y[rest]
            found = _predict(kind, train, X[held], steps, seed + fold, inner)
        return {name: predicted - y[held] for name, predicted in found.items()}

    errors: dict[str, list[FloatArray]] = {}
    with progress_bar(verbose) as progress, ThreadPoolExecutor(jobs_of(n_jobs)) as pool:
        progress.plan({title: _SECONDS[kind] for title, (kind, _) in tasks.items()})
        for found in pool.map(judge, tasks):
            for name, error in found.items():
                errors.setdefault(name, []).append(error)
    every = {name: np.concatenate(found) for name, found in errors.items()}
    twin = every.pop("twin")
    others = {name: compare(twin, error) for name, error in every.items()}
    return Suitability(
        scoring.rmse(twin),
        {m: others[f"pairs {m}"] for m in MULTIPLIERS},
        {name: others[name] for name in _RIVALS},
        len(twin),
    )


def _predict(
    kind: str,
    train: tuple[FloatArray, FloatArray],
    X: FloatArray,
    steps: int,
    seed: int,
    progress: Progress,
) -> dict[str, FloatArray]:
    """Predictions of one kind of model; for a twin, also with fewer pairs."""
    options: dict[str, Any] = {"steps": steps, "random_state": seed, **_SETTING}
    if kind == "twin":
        progress.plan(dict.fromkeys(("all pairs", *map(str, MULTIPLIERS)), 1.0))
        model = TwinRegressor(hidden=_HIDDEN, intervals=False, verbose=True, **options)
        with progress.part("all pairs"):
            model.fit(*train)
        anchors = min(_ANCHORS, len(model.anchor_y_))
        found = {"twin": model.predict(X, anchors=anchors)}
        for m in MULTIPLIERS:
            fewer = model.settled().set_params(pairs=m)
            with progress.part(str(m)):
                fewer.fit(model.anchor_X_, model.anchor_y_, validation=model.validation_)
            found[f"pairs {m}"] = fewer.predict(X, anchors=anchors)
        return found
    if kind == "networks":
        ordinary = AnnRegressor(hidden=_HIDDEN, **options)
        networks = EnsembleRegressor(ordinary, _MEMBERS, random_state=seed)
        return {kind: networks.fit(*train).predict(X)}
    if kind == "trees":
        order = np.random.default_rng(seed).permutation(len(train[1]))
        X_train, y_train = train[0][order], train[1][order]
        cut = max(1, len(order) // _HELD)
        held, rest = (X_train[:cut], y_train[:cut]), (X_train[cut:], y_train[cut:])
        trees = fit_small_trees(rest, held, few=True, seed=seed)
        assert trees is not None  # ROOM is enough for a tree
        return {kind: trees.predict(X)}
    if kind == "nearest":
        rival = make_pipeline(StandardScaler(), KNeighborsRegressor(5, weights="distance"))
    elif kind == "forest":
        rival = RandomForestRegressor(200, random_state=seed)
    else:
        rival = linear_model() if kind == "linear" else DummyRegressor()
    return {kind: rival.fit(*train).predict(X)}
