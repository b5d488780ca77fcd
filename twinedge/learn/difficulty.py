"""The second output of a twin: how large an error is to be expected of a point.

Trees are asked, for they learn it from few rows: how far they are off on rows that they were not
fitted to is what other trees then learn to foresee. A device has no room for them, but for their
answer: it is taught to the twins, at the training points and between them, as a linear readout of
their last hidden layer. The networks themselves stay as they are, and so do their predictions.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from twinedge.calibration import USUAL_TRUST, in_common
from twinedge.learn.estimator import Groups
from twinedge.learn.network import FloatArray
from twinedge.learn.pairwise import last_hidden

if TYPE_CHECKING:
    from twinedge.learn.twin import TwinRegressor

_LEAST_ROWS = 20
_MOST_ROWS = 4000  # what more rows would add is not worth the time
_ANCHORS = 64  # that stand for all
_FOLDS = 10  # of groups
_LEAST_TRUST = 0.05  # and the least doubt
_MADE_UP = 2048  # points between rows
_FARTHEST = 0.5  # part of the way from one row to another
_RIDGE = 0.01  # of the variance of the hidden layer
_EACH_SIDE = 0.5  # of the weight of all examples is that of the rows


def learn_difficulty(
    model: "TwinRegressor", seed: int, anchors: Sequence[FloatArray] | None = None
) -> FloatArray:
    """Teach a fitted model's twins how large errors are to be expected.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    seed : int
        Of the trees, and of the points that are made up.
    anchors : sequence of array of int, optional
        Rows of ``anchor_X_`` that each twin will predict with; by default some of all.

    Returns
    -------
    array of shape (twins, width + 1), float32
        Weights of the last hidden layer and a bias, for the order (anchor, point) of a pair, in
        scaled units of the target. All zero where there are too few points to learn from.
    """
    hidden = model.architecture_.hidden[-1]
    twins = len(model.weights_)
    readout = np.zeros((twins, hidden + 1), np.float32)
    rng = np.random.default_rng([seed, 4])
    rows = rng.permutation(len(model.anchor_y_))[:_MOST_ROWS]
    x = model.scaling_.features(model.anchor_X_[rows])
    y = model.scaling_.target(model.anchor_y_[rows]).astype(np.float64)
    if len(rows) < _LEAST_ROWS or not np.ptp(y):
        return readout
    first, second = rng.integers(0, len(rows), (2, _MADE_UP))
    share = _FARTHEST * rng.random((_MADE_UP, 1), np.float32)
    points = np.concatenate([x, x[first] + share * (x[second] - x[first])])
    groups = None if model.groups_ is None else model.groups_[rows]
    wanted = _difficulty(x, y, points, int(rng.integers(2**31)), groups)
    if anchors is None:
        anchors = [rows[:_ANCHORS]] * twins
    seen = [
        last_hidden(
            model.architecture_,
            model.weights_[twin : twin + 1],
            points,
            model.scaling_.features(model.anchor_X_[mine])[None],
        )[0]
        * (len(mine) / sum(map(len, anchors)))
        for twin, mine in enumerate(anchors)
    ]
    features = np.concatenate(seen, axis=1).astype(np.float64)
    importance = np.repeat(
        [_EACH_SIDE / len(rows), (1 - _EACH_SIDE) / _MADE_UP], [len(rows), _MADE_UP]
    )
    weights, bias = _ridge(features, wanted, importance)
    readout[:, :-1], readout[:, -1] = weights.reshape(twins, hidden), bias
    return readout


def trust_between(model: "TwinRegressor", seed: int) -> float:
    """How far points of a group that was never seen may be believed, from the groups of training.

    It is the part of their errors that rows of one group have in common, where neither was learnt
    from: asked of trees, for there are too few groups to hold out of a training for this.
    """
    found = None
    if model.groups_ is not None and len(np.unique(model.groups_)) > 1:
        y = model.scaling_.target(model.anchor_y_).astype(np.float64)
        off = _left_out(model.scaling_.features(model.anchor_X_), y, seed, model.groups_)
        found = in_common(off, model.groups_)
    return USUAL_TRUST if found is None else min(max(found, _LEAST_TRUST), 1 - _LEAST_TRUST)


def _difficulty(
    x: FloatArray, y: FloatArray, points: FloatArray, seed: int, groups: Groups | None
) -> FloatArray:
    """How far trees are off at points, as other trees foresee it."""
    off = np.abs(_left_out(x, y, seed, groups))
    foreseen = ExtraTreesRegressor(
        200, max_features=0.6, min_samples_leaf=min(8, len(y) // 4), random_state=seed
    )
    found: FloatArray = foreseen.fit(x, off).predict(points)
    return found


def _left_out(x: FloatArray, y: FloatArray, seed: int, groups: Groups | None) -> FloatArray:
    """By how much trees are off at rows that they were not fitted to, nor to any of the group."""
    if groups is not None and (folds := min(_FOLDS, len(np.unique(groups)))) > 1:
        forest = ExtraTreesRegressor(100, max_features=0.6, random_state=seed)
        said: FloatArray = cross_val_predict(forest, x, y, groups=groups, cv=GroupKFold(folds))
        return y - said
    forest = ExtraTreesRegressor(
        100, max_features=0.6, bootstrap=True, oob_score=True, random_state=seed
    )
    with warnings.catch_warnings():  # of a row that no tree left out; 100 trees leave out all
        warnings.simplefilter("ignore", UserWarning)
        forest.fit(x, y)
    found: FloatArray = y - forest.oob_prediction_
    return found


def _ridge(
    features: FloatArray, wanted: FloatArray, importance: FloatArray
) -> tuple[FloatArray, float]:
    """Weights and bias that bring features ``(n, w)`` to what is wanted ``(n,)``."""
    mean, middle = importance @ features, float(importance @ wanted)
    centred = features - mean
    variance = importance @ np.square(centred)
    # A neuron that hardly ever speaks is not to be given a loud voice.
    unit = np.sqrt(variance + 0.01 * variance.mean() + 1e-30)
    scaled = centred / unit
    square = (scaled * importance[:, None]).T @ scaled + _RIDGE * np.eye(len(mean))
    weights = np.linalg.solve(square, (scaled * importance[:, None]).T @ (wanted - middle)) / unit
    return weights, middle - float(mean @ weights)
