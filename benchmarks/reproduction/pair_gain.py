"""The paper's check of whether a twin suits the data: does it gain from more pairs?

A twin learns from pairs, so its error should fall as each point is paired with more others. If it
does not, the paper finds that nearest neighbors and ordinary networks do as well as the twin: the
target is too noisy, or too coarse, for differences to be informative. ``twinedge check`` compares
the models themselves instead; this test is here because the paper has it.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from twinedge import scoring
from twinedge.estimators import AnnRegressor, EnsembleRegressor
from twinedge.estimators.twin import TwinRegressor
from twinedge.evaluation.comparison import compare
from twinedge.evaluation.rivals import fit_rival
from twinedge.evaluation.verdict import Rival
from twinedge.training.network import FloatArray

FOLDS = 3
STEPS = {"quick": 2_000, "normal": 8_000, "thorough": 30_000}
MULTIPLIERS = (1, 4)
# One setting for all data, between the best for noisy targets and for exact ones.
_SETTING = {"learning_rate": 0.01, "weight_decay": 0.1}
_HIDDEN, _MEMBERS = (128, 128), 2
_ANCHORS = 256  # as good as all, but faster
_RIVALS = ("networks", "forest", "trees", "nearest", "linear", "mean")
_HELD = 8  # one point in this many chooses among trees, the same share as for a twin
# Signs against a twin: the error of nearest neighbors is below _NEAR times its own, or all pairs
# lower the error by less than _RISE against one partner per point.
_NEAR = 1.15
_RISE = 0.07


@dataclass(frozen=True)
class PairGain:
    """Errors of twins with fewer pairs and of other models, on held-out points.

    Parameters
    ----------
    twin : float
        Root mean square error of a twin trained on all pairs, in units of the target.
    multipliers : dict of int to Rival
        Twins trained on this many partners of each point, compared with that one.
    rivals : dict of str to Rival
        Two ordinary networks ("networks"), a random forest of any size ("forest"), boosted trees or
        a forest in the bytes of a pack ("trees"), k nearest neighbors ("nearest"), a linear model
        ("linear") and the mean of the targets ("mean").
    """

    twin: float
    multipliers: dict[int, Rival]
    rivals: dict[str, Rival]

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


def pair_gain(X: FloatArray, y: FloatArray, effort: str = "quick", seed: int = 0) -> PairGain:
    """Cross-validate a twin, twins trained on fewer pairs, and the alternatives.

    Parameters
    ----------
    X, y : array of shape (n, features), (n,)
        Points to train on.
    effort : {"quick", "normal", "thorough"}
        How long each network is trained.
    seed : int
        Seed of folds and networks.
    """
    steps = STEPS[effort]
    # Folds of equal size, so that the compiled training serves them all.
    size = len(y) // FOLDS
    order = np.random.default_rng(seed).permutation(len(y))[: FOLDS * size]
    folds = order.reshape(FOLDS, size)

    def errors(task: tuple[str, int]) -> dict[str, FloatArray]:
        kind, fold = task
        held = folds[fold]
        rest = np.concatenate([folds[k] for k in range(FOLDS) if k != fold])
        found = _predict(kind, (X[rest], y[rest]), X[held], steps, seed + fold)
        return {name: predicted - y[held] for name, predicted in found.items()}

    tasks = [(kind, fold) for kind in ("twin", *_RIVALS) for fold in range(FOLDS)]
    every: dict[str, list[FloatArray]] = {}
    with ThreadPoolExecutor() as pool:
        for found in pool.map(errors, tasks):
            for name, error in found.items():
                every.setdefault(name, []).append(error)
    joined = {name: np.concatenate(found) for name, found in every.items()}
    twin = joined.pop("twin")
    others = {name: compare(twin, error) for name, error in joined.items()}
    return PairGain(
        scoring.rmse(twin),
        {m: others[f"pairs {m}"] for m in MULTIPLIERS},
        {name: others[name] for name in _RIVALS},
    )


def _predict(
    kind: str, train: tuple[FloatArray, FloatArray], X: FloatArray, steps: int, seed: int
) -> dict[str, FloatArray]:
    """Predictions of one kind of model; for a twin, also with fewer pairs."""
    options: dict[str, Any] = {"steps": steps, "random_state": seed, **_SETTING}
    if kind == "twin":
        model = TwinRegressor(hidden=_HIDDEN, intervals=False, **options).fit(*train)
        anchors = min(_ANCHORS, len(model.anchor_y_))
        found = {"twin": model.predict(X, anchors=anchors)}
        for m in MULTIPLIERS:
            fewer = model.resolved().set_params(pairs=m)
            fewer.fit(model.anchor_X_, model.anchor_y_, validation=model.validation_)
            found[f"pairs {m}"] = fewer.predict(X, anchors=anchors)
        return found
    if kind == "networks":
        ordinary = AnnRegressor(hidden=_HIDDEN, **options)
        networks = EnsembleRegressor(ordinary, _MEMBERS, random_state=seed)
        return {kind: networks.fit(*train).predict(X)}
    if kind == "forest":
        return {kind: RandomForestRegressor(200, random_state=seed).fit(*train).predict(X)}
    validation = None
    if kind == "trees":
        order = np.random.default_rng(seed).permutation(len(train[1]))
        held, rest = np.split(order, [max(1, len(order) // _HELD)])
        validation = train[0][held], train[1][held]
        train = train[0][rest], train[1][rest]
    predict = fit_rival(kind, train, validation, seed=seed)
    assert predict is not None  # the default room is enough for a tree
    return {kind: predict(X)}
