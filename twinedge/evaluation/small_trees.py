"""Trees that take no more bytes than a pack: the strongest rival of a twin on a small device.

The bytes are those of emlearn's tables, which run scikit-learn's trees on a microcontroller: 8 per
decision, 4 per leaf, 4 per tree and a head. Leaves of the same value are stored once. emlearn reads
forests; boosted trees fit the same tables, with leaves multiplied by the learning rate. Thresholds
stay floats here, while emlearn's tables round features to 16 bits; this favours the trees a little.

The number of leaves, the learning rate of boosting and the number of its trees kept are chosen on
validation points. The benchmark of rivals, ``twinedge check`` and the verdict of ``twinedge train``
all use this one definition.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from twinedge import scoring
from twinedge.training.network import FloatArray

DECISION_BYTES, LEAF_BYTES, ROOT_BYTES, HEAD_BYTES = 8, 4, 4, 28
KINDS = ("boosting", "forest")
ROOM = 20_480  # default in bytes: about a default pack
# Training points above which boosting uses histograms and a first look skips the forest; those
# above which boosting in a first look uses histograms; and its most leaves per point.
_MANY, _MANY_AT_FIRST, _ENOUGH = 2_000, 500, 8

Points = tuple[FloatArray, FloatArray]
Weights = tuple[FloatArray | None, FloatArray | None]  # of training and validation points


class TreeSetting(NamedTuple):
    """One way to grow trees.

    Parameters
    ----------
    family : {"boosting", "extra", "random"}
        Boosted trees, extremely randomised trees or a random forest.
    leaves : int
        Most leaves of a tree.
    features : float
        Share of the features that each decision is chosen from.
    rate : float
        Learning rate; only for boosting.
    rows : float
        Share of the points that each tree sees; only for boosting.
    """

    family: str
    leaves: int
    features: float = 1.0
    rate: float = 0.1
    rows: float = 0.5


# Larger trees must learn faster, since fewer of them fit into the same bytes.
_RATES = {4: (0.05, 0.1, 0.2), 8: (0.05, 0.1, 0.2), 16: (0.1, 0.2), 32: (0.1, 0.2), 64: (0.2,)}
_SHAPES = {
    "boosting": [
        TreeSetting("boosting", leaves, 1.0, rate)
        for leaves, rates in _RATES.items()
        for rate in rates
    ],
    "forest": [
        *(TreeSetting("extra", leaves) for leaves in (32, 64, 128, 256, 512)),
        *(TreeSetting("random", leaves) for leaves in (32, 64, 128, 256, 512)),
        *(TreeSetting("random", leaves, 0.6) for leaves in (64, 128, 256)),
    ],
}
# For a first look: the settings that win most often.
_FEW = {
    "boosting": [TreeSetting("boosting", 8, 1.0, 0.2), TreeSetting("boosting", 16, 1.0, 0.1)],
    "forest": [TreeSetting("random", 128, 1.0)],
}


class SmallTrees(NamedTuple):
    """Fitted trees that take few enough bytes.

    Parameters
    ----------
    setting : TreeSetting
        How they were grown.
    trees : int
        Number of trees.
    bytes : int
        Their size in emlearn's tables.
    rmse_val : float
        Error on the validation points, in units of the target.
    predict : function
        From points ``(n, features)`` to predictions ``(n,)``, of several targets ``(n, m)``.
    model : scikit-learn estimator
        What was grown; only its first ``trees`` trees count.
    """

    setting: TreeSetting
    trees: int
    bytes: int
    rmse_val: float
    predict: Callable[[FloatArray], FloatArray]
    model: Any


def forest_bytes(trees: int, leaves: int, distinct: int | None = None, *, targets: int = 1) -> int:
    """Bytes of binary trees.

    Parameters
    ----------
    trees : int
        Number of trees.
    leaves : int
        Leaves of all trees together; a tree has one decision less than leaves.
    distinct : int, optional
        Different values among the leaves; by default all differ.
    targets : int
        Numbers in a leaf.

    Examples
    --------
    >>> forest_bytes(10, 1280)
    15348
    """
    decisions = leaves - trees
    stored = leaves if distinct is None else distinct
    held = trees * ROOT_BYTES + decisions * DECISION_BYTES + stored * targets * LEAF_BYTES
    return HEAD_BYTES + held


def fit_small_trees(
    train: Points,
    validation: Points,
    room: int = ROOM,
    *,
    kinds: Iterable[str] = KINDS,
    few: bool = False,
    seed: int = 0,
    weights: Weights = (None, None),
) -> SmallTrees | None:
    """Grow trees in several ways and keep those with the least validation error.

    Parameters
    ----------
    train, validation : (X, y)
        Points to learn from, and points to choose by. A forest also learns several targets
        ``(n, m)`` at once, whose errors count alike: scale them before.
    room : int
        Most bytes.
    kinds : subset of {"boosting", "forest"}
        Boosted trees; extra trees or a random forest.
    few : bool
        Take a first look: two or three usual settings instead of all, about a second for a
        thousand points.
    seed : int
        Seed of the trees.
    weights : (array of shape (n,) or None, array of shape (v,) or None)
        How much training and validation points count; None if all do alike.

    Returns
    -------
    SmallTrees or None
        None if not even one tree fits.
    """
    task = _Task(train, validation, weights, room, seed, few)

    def grow(setting: TreeSetting) -> SmallTrees | None:
        return (_boost if setting.family == "boosting" else _plant)(setting, task)

    best: SmallTrees | None = None
    for kind in kinds:
        settings = (_FEW if few else _SHAPES)[kind]
        if few and kind == "forest" and len(train[1]) > _MANY:
            continue
        found = [grow(one) for one in settings]
        if kind == "boosting" and not few and any(found):
            first = min((one for one in found if one), key=lambda one: one.rmse_val).setting
            others = [(1.0, 0.5)]
            if len(train[1]) <= _MANY:  # histograms always use all points
                others += [(1.0, 1.0), (0.5, 0.5)]
            found += [grow(first._replace(rows=rows, features=part)) for rows, part in others]
        for one in found:
            if one and (best is None or one.rmse_val < best.rmse_val):
                best = one
    return best


class _Task(NamedTuple):
    """What all settings are tried on, as ``fit_small_trees`` takes it."""

    train: Points
    validation: Points
    weights: Weights
    room: int
    seed: int
    few: bool


def _boost(setting: TreeSetting, task: _Task) -> SmallTrees | None:
    train, (X, y), weights, room, seed, few = task
    points, leaves = len(train[1]), setting.leaves
    most = (room - HEAD_BYTES) // (forest_bytes(1, leaves) - HEAD_BYTES)
    if most < 1:
        return None
    if few:
        most = min(most, max(1, _ENOUGH * points // leaves))
    model: Any
    common = {"learning_rate": setting.rate, "max_leaf_nodes": leaves}
    if points > (_MANY_AT_FIRST if few else _MANY):
        # With this many points, nearly every tree has all its leaves, and no two leaves are equal.
        model = HistGradientBoostingRegressor(
            max_iter=most,
            max_features=setting.features,
            min_samples_leaf=5,
            early_stopping=False,
            random_state=seed,
            **common,
        ).fit(*train, sample_weight=weights[0])
        sizes = [forest_bytes(n, n * leaves) for n in range(1, most + 1)]
    else:
        model = GradientBoostingRegressor(
            n_estimators=most,
            max_depth=None,
            subsample=setting.rows,
            max_features=setting.features,
            random_state=seed,
            **common,
        ).fit(*train, sample_weight=weights[0])
        sizes = _sizes(tree for (tree,) in model.estimators_)
    errors = [scoring.rmse(stage, y, weights[1]) for stage in model.staged_predict(X)]
    best = int(np.argmin(errors))

    def predict(X: FloatArray) -> FloatArray:
        stage: FloatArray = next(islice(model.staged_predict(X), best, None))
        return stage

    return SmallTrees(setting, best + 1, sizes[best], errors[best], predict, model)


def _plant(setting: TreeSetting, task: _Task) -> SmallTrees | None:
    train, validation, weights, room, seed, _ = task
    # As many as would fit if all leaves were equal; trees that do not fit are then cut off.
    most = (room - HEAD_BYTES) // (ROOT_BYTES + (setting.leaves - 1) * DECISION_BYTES)
    if most < 1:
        return None
    kind = ExtraTreesRegressor if setting.family == "extra" else RandomForestRegressor
    model = kind(
        most, max_leaf_nodes=setting.leaves, max_features=setting.features, random_state=seed
    ).fit(*train, sample_weight=weights[0])
    sizes = [size for size in _sizes(model.estimators_) if size <= room]
    if not sizes:
        return None
    kept = model.estimators_[: len(sizes)]

    def predict(X: FloatArray) -> FloatArray:
        mean: FloatArray = np.mean([tree.predict(X) for tree in kept], axis=0)
        return mean

    error = scoring.rmse(predict(validation[0]), validation[1], weights[1])
    return SmallTrees(setting, len(kept), sizes[-1], error, predict, model)


def _sizes(trees: Iterable[Any]) -> list[int]:
    """Bytes of the first tree, of the first two, and so on."""
    values: set[tuple[float, ...]] = set()
    leaves, sizes = 0, []
    for count, tree in enumerate(trees, 1):
        table = tree.tree_
        ends = table.children_left < 0
        leaves += int(ends.sum())
        found = table.value[ends, :, 0]
        values.update(map(tuple, found.tolist()))
        sizes.append(forest_bytes(count, leaves, len(values), targets=found.shape[1]))
    return sizes
