"""Does a twin suit these data? The check the paper recommends, and what its failures share.

A twin learns from pairs, so its error should fall as each point is paired with more others. Where
it does not, the paper finds that nearest neighbours and ordinary networks do as well as the twin:
the target is too noisy, or too coarse, for differences to tell anything. Everything is judged on
points held out of the rows given (cross-validation), so these should be those one trains on.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twinedge.errors import InputError
from twinedge.learn.ann import AnnRegressor
from twinedge.learn.backend import CORES
from twinedge.learn.ensemble import EnsembleRegressor
from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import one_of, seed_of
from twinedge.learn.twin import TwinRegressor

FEWEST_ROWS = 30
FOLDS = 3
STEPS = {"quick": 2_000, "normal": 8_000, "thorough": 30_000}
MULTIPLIERS = (1, 4)
# One setting for all data: between what suits noisy targets and what suits exact ones.
_SETTING = {"learning_rate": 0.01, "weight_decay": 0.1}
_MEMBERS = 2
_ANCHORS = 256  # as good as all, and sooner
_RIVALS = ("nearest", "networks", "forest")
# Signs against a twin: neighbours come this near to its error, a forest is below it, all pairs gain
# no more than this over one partner a point. `twinedge reproduce check` shows where the paper's
# sets lie; those that twins do not suit have all three.
_NEAR = 1.15
_BEATEN = 1.0
_RISE = 0.07


@dataclass(frozen=True)
class Suitability:
    """What was found; errors are root mean squares in units of the target, on held-out points.

    Parameters
    ----------
    twin : float
        Error of a twin trained on all pairs.
    multipliers : dict of int to float
        Errors of twins trained on so many partners of each point.
    rivals : dict of str to float
        Errors of k nearest neighbours ("nearest"), an ensemble of ordinary networks ("networks")
        and a random forest ("forest").
    rows : int
        Points judged.
    """

    twin: float
    multipliers: dict[int, float]
    rivals: dict[str, float]
    rows: int

    @property
    def rises_with_pairs(self) -> bool:
        """Whether a twin of all pairs is clearly better than one of the fewest."""
        return self.twin < (1 - _RISE) * self.multipliers[min(self.multipliers)]

    @property
    def reasons(self) -> list[str]:
        """What speaks against a twin, in sentences without a full stop."""
        found = []
        if not self.rises_with_pairs:
            found.append("accuracy hardly rises with the number of pairs")
        if self.rivals["nearest"] < _NEAR * self.twin:
            found.append("nearest neighbours, which learn nothing, come close to the twin")
        if self.rivals["forest"] < _BEATEN * self.twin:
            found.append("a random forest does better than the twin")
        return found

    @property
    def suits(self) -> bool:
        """Whether at most one thing speaks against a twin: each by itself may be chance."""
        return len(self.reasons) <= 1

    @property
    def better(self) -> str | None:
        """The rival with the smallest error, if that is below the twin's."""
        name = min(self.rivals, key=lambda one: self.rivals[one])
        return name if self.rivals[name] < self.twin else None


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
    rmse = {name: float(np.sqrt(np.mean(np.square(found)))) for name, found in errors.items()}
    return Suitability(
        rmse["twin"],
        {m: rmse[f"pairs {m}"] for m in MULTIPLIERS},
        {name: rmse[name] for name in _RIVALS},
        FOLDS * size,
    )


def _predict(
    kind: str, train: tuple[FloatArray, FloatArray], X: FloatArray, steps: int, seed: int
) -> dict[str, FloatArray]:
    """Predictions of one kind of model; for a twin, of those with fewer pairs, too."""
    options: dict[str, Any] = {"steps": steps, "random_state": seed, **_SETTING}
    if kind == "twin":
        model = TwinRegressor(intervals=False, **options).fit(*train)
        anchors = min(_ANCHORS, len(model.anchor_y_))
        found = {"twin": model.predict(X, anchors=anchors)}
        for m in MULTIPLIERS:
            fewer = model.settled().set_params(pairs=m)
            fewer.fit(model.anchor_X_, model.anchor_y_, model.validation_)
            found[f"pairs {m}"] = fewer.predict(X, anchors=anchors)
        return found
    if kind == "networks":
        networks = EnsembleRegressor(AnnRegressor(**options), _MEMBERS, random_state=seed)
        return {kind: networks.fit(*train).predict(X)}
    if kind == "nearest":
        rival = make_pipeline(StandardScaler(), KNeighborsRegressor(5, weights="distance"))
    else:
        rival = RandomForestRegressor(200, random_state=seed)
    return {kind: rival.fit(*train).predict(X)}
