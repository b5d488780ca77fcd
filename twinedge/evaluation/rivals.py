"""The models that a twin is compared with, and how each is fitted.

``twinedge train`` has the mean, a linear model and trees of a pack's size beside it; ``twinedge
check`` has models of any size as well.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from twinedge.evaluation.small_trees import ROOM, Points, Weights, fit_small_trees
from twinedge.training.network import FloatArray
from twinedge.training.teachers import teachers_of

Predict = Callable[[FloatArray], FloatArray]

# The slow ones come first, so that threads end together.
RIVALS = ("boosting", "trees", "forest", "nearest", "linear", "mean")
_TEACHERS = {"boosting": "boosting", "forest": "trees"}
_RIDGES = np.logspace(-6, 4, 11)  # for scaled features: from none to nearly the mean


def fit_rival(
    name: str,
    train: Points,
    validation: Points | None,
    weights: Weights = (None, None),
    *,
    room: int = ROOM,
    seed: int = 0,
) -> Predict | None:
    """Fit one of the ``RIVALS``.

    Parameters
    ----------
    name : str
        Boosted trees or a forest of any size ("boosting", "forest"), either in the bytes of a pack
        ("trees"), nearest neighbors ("nearest"), a linear model ("linear") or the mean of the
        targets ("mean").
    train : (X, y)
        Points to learn from.
    validation : (X, y), optional
        Points that choose the trees of a pack's size.
    weights : tuple of array or None
        How much training and validation points count; None if all do alike.
    room : int
        Bytes of the pack.
    seed : int
        Seed of the trees.

    Returns
    -------
    function or None
        From points ``(n, f)`` to predictions ``(n,)``; None for trees that do not fit into the
        bytes, or that no points can choose.
    """
    if name == "trees":
        if validation is None or not len(validation[1]):
            return None
        trees = fit_small_trees(train, validation, room, few=True, seed=seed, weights=weights)
        return None if trees is None else trees.predict
    model: Any
    if name in _TEACHERS:
        found = teachers_of([_TEACHERS[name]], len(train[1]), seed)
        assert found is not None  # a teacher was named
        model = found[0][0].fit(*train, weights[0])
    elif name == "nearest":
        model = make_pipeline(StandardScaler(), KNeighborsRegressor(5, weights="distance"))
        model.fit(*train)
    elif name == "linear":
        model = fit_linear(*train, weights[0])
    else:
        model = DummyRegressor().fit(*train, sample_weight=weights[0])
    predict: Predict = model.predict
    return predict


def fit_linear(X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> Any:
    """Fit a linear model to points ``(n, f)``, which may have weights ``(n,)``.

    Least squares with a ridge chosen by leave-one-out, which allows columns that depend on each
    other, and more columns than rows.
    """
    steps = ("standardscaler", "ridgecv")
    model = make_pipeline(StandardScaler(), RidgeCV(_RIDGES))
    return model.fit(X, y, **{f"{step}__sample_weight": weights for step in steps})


def rival_predictions(
    train: Points,
    X: FloatArray,
    validation: Points | None = None,
    room: int = ROOM,
    weights: Weights = (None, None),
) -> dict[str, FloatArray]:
    """Predict points ``(n, f)`` with the mean, a linear model and trees of a pack's size.

    Other parameters as in ``fit_rival``. Without trees that fit, there are no predictions of
    ``"trees"``.
    """
    names = ("mean", "linear", "trees")
    fitted = {name: fit_rival(name, train, validation, weights, room=room) for name in names}
    return {name: predict(X) for name, predict in fitted.items() if predict is not None}
