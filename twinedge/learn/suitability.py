"""Does a twin suit these data? The check the paper recommends, and what its failures share.

A twin learns from pairs, so its error should fall as each point is paired with more others. Where
it does not, the paper finds that nearest neighbours and ordinary networks do as well as the twin:
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
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twinedge.errors import InputError
from twinedge.learn.ann import AnnRegressor
from twinedge.learn.backend import CORES
from twinedge.learn.baselines import Rival, compare, linear_model
from twinedge.learn.ensemble import EnsembleRegressor
from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import one_of, seed_of
from twinedge.learn.small_trees import ROOM, fit_small_trees
from twinedge.learn.twin import TwinRegressor
from twinedge.scoring import check_targets

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
# Signs against a twin beside rivals that are as good: neighbours come this near to its error, all
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
        boosted trees or a forest in ``ROOM`` bytes ("trees"), k nearest neighbours ("nearest"), a
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
            found.append("nearest neighbours, which learn nothing, come close to the twin")
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
    random_state: Any = 0,
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
    random_state : int, RandomState or None
        Seed of folds and networks.
    progress : function
        Called with how many of how many trainings are done.
    """
    steps = STEPS[one_of("effort", effort, tuple(STEPS))]
    y = check_targets(y, len(X))
    if len(y) < FEWEST_ROWS:
        raise InputError(f"{len(y)} rows are too few to judge by: {FEWEST_ROWS} at least")
    seed = seed_of(random_state)
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
    with ThreadPoolExecutor(CORES) as pool:
        for found in pool.map(judge, tasks):
            for name, error in found.items():
                errors.setdefault(name, []).append(error)
            done += 1
            progress(done, total)
    every = {name: np.concatenate(found) for name, found in errors.items()}
    twin = every.pop("twin")
    others = {name: compare(twin, error) for name, error in every.items()}
    return Suitability(
        float(np.sqrt(np.mean(np.square(twin)))),
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
