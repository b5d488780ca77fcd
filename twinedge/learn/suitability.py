"""Does a twin suit these data? What simpler models make of them, and the paper's check.

Two models on the same points are compared by the differences of their squared errors, point by
point: what makes a point hard for both is in neither difference. The *error* of a comparison is
half of the interval that holds the true difference in nine of ten cases. It is found from the
scatter of the differences (Student's t). A few points do not show how they scatter; their errors
are taken for normal, and the test of Pitman and Morgan is used. Both take points for independent.
What differs by less than its error is called neither better nor worse.

A twin learns from pairs, so its error should fall as each point is paired with more others. Where
it does not, the paper finds that nearest neighbors and ordinary networks do as well as the twin:
the target is too noisy, or too coarse, for differences to tell anything. Where a linear model does
as well, there is little for a twin to learn, and where the mean does, nothing at all. Trees that
take no more bytes than a twin are what one would put on a small device instead. Everything is
judged on points held out of the rows given (cross-validation), so these should be those one trains
on; what differs from the twin by less than the error of the comparison is called neither better nor
worse.
"""

from collections.abc import Callable
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
    rmse = scoring.rmse(error)
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


FEWEST_ROWS = 30
FOLDS = 3
STEPS = {"quick": 2_000, "normal": 8_000, "thorough": 30_000}
MULTIPLIERS = (1, 4)
# One setting for all data: between what suits noisy targets and what suits exact ones.
_SETTING = {"learning_rate": 0.01, "weight_decay": 0.1}
_HIDDEN, _MEMBERS = (128, 128), 2
_ANCHORS = 256  # as good as all, and sooner
_RIVALS = ("networks", "forest", "trees", "nearest", "linear", "mean")
_HELD = 8  # one point in so many chooses among trees, as many as choose for a twin
# Signs against a twin beside rivals that are as good: neighbors come this near to its error, all
# pairs gain no more than this over one partner a point. `twinedge reproduce check` shows where the
# paper's sets lie.
_NEAR = 1.15
_RISE = 0.07


@dataclass(frozen=True)
class Suitability:
    """What was found; errors are root mean squares in units of the target, on held-out points.

    Parameters
    ----------
    twin : float
        Error of a twin trained on all pairs.
    multipliers : dict of int to Rival
        Twins trained on so many partners of each point, compared with that one.
    rivals : dict of str to Rival
        An ensemble of ordinary networks ("networks"), a random forest of any size ("forest"),
        boosted trees or a forest in ``ROOM`` bytes ("trees"), k nearest neighbors ("nearest"), a
        linear model ("linear") and the mean of the targets ("mean").
    rows : int
        Points judged.
    """

    twin: float
    multipliers: dict[int, Rival]
    rivals: dict[str, Rival]
    rows: int

    @property
    def rises_with_pairs(self) -> bool:
        """Whether a twin of all pairs is clearly better than one of the fewest."""
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
        """Whether at most one thing speaks against a twin: each by itself may be chance.

        To be no better than the mean, or worse than a linear model, is enough.
        """
        ahead = self.rivals["mean"].worse and not self.rivals["linear"].better
        return ahead and len(self.reasons) <= 1

    @property
    def better(self) -> list[str]:
        """Rivals that are better than the twin by more than the error of that, best first."""
        found = [name for name, rival in self.rivals.items() if rival.better]
        return sorted(found, key=lambda name: self.rivals[name].rmse)

    @property
    def advice(self) -> str | None:
        """What to put on a small device instead, in a sentence; None where that is no better."""
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
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Suitability:
    """Cross-validate a twin, twins of fewer pairs, and what one would use instead.

    Parameters
    ----------
    X : array of shape (n, features)
        Points; not those one wants to test on.
    y : array of shape (n,)
        Their targets.
    effort : {"quick", "normal", "thorough"}
        How long each network is trained.
    seed : int
        Seed of folds and networks.
    n_jobs : int or None
        Trainings at a time, as in scikit-learn; by default one on each core.
    progress : function
        Called with how many of how many trainings are done.
    """
    steps = STEPS[one_of("effort", effort, tuple(STEPS))]
    y = check_targets(y, len(X))
    if len(y) < FEWEST_ROWS:
        raise InputError(f"{len(y)} rows are too few to judge by: {FEWEST_ROWS} at least")
    seed = seed_of(seed)
    # Folds of one size: the compiled training serves them all.
    size = len(y) // FOLDS
    order = np.random.default_rng(seed).permutation(len(y))[: FOLDS * size]
    folds = order.reshape(FOLDS, size)
    kinds = ("twin", *_RIVALS)
    total, done = len(kinds) * FOLDS, 0

    def judge(task: tuple[str, int]) -> dict[str, FloatArray]:
        kind, fold = task
        held = folds[fold]
        rest = np.concatenate([folds[k] for k in range(FOLDS) if k != fold])
        found = _predict(kind, (X[rest], y[rest]), X[held], steps, seed + fold)
        return {name: predicted - y[held] for name, predicted in found.items()}

    errors: dict[str, list[FloatArray]] = {}
    # The long ones first.
    tasks = [(kind, fold) for kind in kinds for fold in range(FOLDS)]
    with ThreadPoolExecutor(jobs_of(n_jobs)) as pool:
        for found in pool.map(judge, tasks):
            for name, error in found.items():
                errors.setdefault(name, []).append(error)
            done += 1
            progress(done, total)
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
    kind: str, train: tuple[FloatArray, FloatArray], X: FloatArray, steps: int, seed: int
) -> dict[str, FloatArray]:
    """Predictions of one kind of model; for a twin, of those with fewer pairs, too."""
    options: dict[str, Any] = {"steps": steps, "random_state": seed, **_SETTING}
    if kind == "twin":
        model = TwinRegressor(hidden=_HIDDEN, intervals=False, **options).fit(*train)
        anchors = min(_ANCHORS, len(model.anchor_y_))
        found = {"twin": model.predict(X, anchors=anchors)}
        for m in MULTIPLIERS:
            fewer = model.settled().set_params(pairs=m)
            fewer.fit(model.anchor_X_, model.anchor_y_, model.validation_)
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
        assert trees is not None  # so many bytes hold a tree
        return {kind: trees.predict(X)}
    if kind == "nearest":
        rival = make_pipeline(StandardScaler(), KNeighborsRegressor(5, weights="distance"))
    elif kind == "forest":
        rival = RandomForestRegressor(200, random_state=seed)
    else:
        rival = linear_model() if kind == "linear" else DummyRegressor()
    return {kind: rival.fit(*train).predict(X)}
