"""How large an error a twin should expect, and how far it should trust points measured on site.

The *difficulty* of a point is learnt from trees, which need few rows for it: other trees learn to
predict how far they are off on rows that they were not fitted to. A device has no room for trees,
so the twins learn their prediction, at the training points and between them, as a linear readout
of their last hidden layer. The networks and their predictions stay the same.
"""

import warnings
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from twinedge.estimators.networks import Groups
from twinedge.progress import Progress
from twinedge.scoring.calibration import USUAL_TRUST, CalibrationRows, in_common
from twinedge.scoring.weights import draw, in_proportion, of_rows
from twinedge.training.network import FloatArray
from twinedge.training.pairs import last_hidden
from twinedge.training.selection import LeftOut

if TYPE_CHECKING:
    from twinedge.estimators.twin import TwinRegressor

_LEAST_ROWS = 20
_MOST_ROWS = 4000  # more rows are not worth the time
_ANCHORS = 64  # enough to represent all
_FOLDS = 10  # of groups
_HELD_OUT_TREES = 100  # for errors at the rows, enough to leave each of these out
_TREES = 200  # to smooth these errors
_LEAST_TRUST = 0.05  # trust is at least this, and at most 1 minus this
_MADE_UP = 2048  # points between rows
_FARTHEST = 0.5  # most of the way from one row to another
_RIDGE = 0.01  # of the variance of the hidden layer
_EACH_SIDE = 0.5  # share of the rows in the weight of all examples


def predict_left_out(
    model: "TwinRegressor", folds: Sequence[LeftOut], X: FloatArray, seed: int, progress: Progress
) -> CalibrationRows:
    """Predict each training row of a fitted model with networks that did not see its group.

    Signals and errors are on the target's curve.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    folds : sequence of (rows, weights)
        Parts of all training rows, and the networks ``(c, size)`` that were trained without them.
        Only the rows that they saw are their anchors, and teach them how large an error to expect.
    X : array of shape (v, inputs)
        Validation points, which neither they nor the model saw; there may be none. They show how
        signals of these networks compare with those of the model.
    seed : int
        As for ``learn_difficulty``.
    progress : Progress
        Receives how many folds are done.
    """
    count, tree_errors = len(model.anchor_y_), _tree_errors(model, seed)
    signals, errors, outside = np.empty((3, count)), np.empty(count), np.empty(count, bool)
    elsewhere = np.zeros((3, len(X)))
    for done, (held, networks, learnt) in enumerate(folds, 1):
        seen = np.setdiff1d(np.arange(count), held)
        part = copy(model)
        part.anchors, part.weights_, part.map_ = "auto", networks, learnt
        part.anchor_X_, part.anchor_y_ = model.anchor_X_[seen], model.anchor_y_[seen]
        part.sample_weights_ = of_rows(model.sample_weights_, seen)
        part.groups_ = of_rows(model.groups_, seen)
        part.difficulty_ = learn_difficulty(part, seed, errors=tree_errors[seen])
        mean, signals[:, held] = part.signals(model.anchor_X_[held])
        errors[held] = model.scaling_.curved(model.anchor_y_[held]) - mean
        if len(X):
            elsewhere += part.signals(X)[1] / len(folds)
        outside[held] = part.outside(model.anchor_X_[held]).any(axis=1)
        progress.at(f"part {done}", done, len(folds))
    found = CalibrationRows(signals, errors, outside, model.sample_weights_, model.groups_)
    if not len(X):
        return found
    typical = np.sqrt(np.mean(np.square(elsewhere), axis=1))
    return found._replace(typical=typical).like(model.signals(X)[1])


def learn_difficulty(
    model: "TwinRegressor",
    seed: int,
    anchors: Sequence[FloatArray] | None = None,
    errors: FloatArray | None = None,
) -> FloatArray:
    """Teach a fitted model's twins how large an error to expect.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    seed : int
        Seed of the trees and of the made-up points.
    anchors : sequence of array of int, optional
        Rows of ``anchor_X_`` that each twin will predict with; by default a sample of all.
    errors : array of shape (n,), optional
        Scaled errors of trees at the training points, if they are known already.

    Returns
    -------
    array of shape (twins, width + 1), float32
        Weights of the last hidden layer and a bias, for the order (anchor, point) of a pair, in
        scaled units of the target. All zero if there are too few points to learn from.
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
    weights = of_rows(model.sample_weights_, rows)
    first, second = draw(rng, len(rows), weights, (2, _MADE_UP))
    share = _FARTHEST * rng.random((_MADE_UP, 1), np.float32)
    points = np.concatenate([x, x[first] + share * (x[second] - x[first])])
    tree_seed = int(rng.integers(2**31))
    off = of_rows(errors, rows)
    if off is None:
        off = _held_out_errors(x, y, tree_seed, of_rows(model.groups_, rows), weights)
    trees = ExtraTreesRegressor(
        _TREES, max_features=0.6, min_samples_leaf=min(8, len(off) // 4), random_state=tree_seed
    )
    wanted = trees.fit(x, np.abs(off), sample_weight=weights).predict(points)
    if anchors is None:
        anchors = [in_proportion(rows, model.sample_weights_, _ANCHORS)] * twins
    seen = [
        last_hidden(
            model.architecture_,
            model.weights_[twin : twin + 1],
            model.inputs_of(points),
            model.inputs_of(model.scaling_.features(model.anchor_X_[mine]))[None],
        )[0]
        * (len(mine) / sum(map(len, anchors)))
        for twin, mine in enumerate(anchors)
    ]
    features = np.concatenate(seen, axis=1).astype(np.float64)
    importance = np.repeat(
        [_EACH_SIDE / len(rows), (1 - _EACH_SIDE) / _MADE_UP], [len(rows), _MADE_UP]
    )
    if weights is not None:
        importance[: len(rows)] *= weights / weights.mean()
    kernel, bias = _ridge(features, wanted, importance)
    readout[:, :-1], readout[:, -1] = kernel.reshape(twins, hidden), bias
    return readout


def trust_between(model: "TwinRegressor", seed: int) -> float:
    """How far to trust points of an unseen group, learnt from the groups of training.

    It is the share of the error that rows of one group have in common if none of them was learnt
    from. It is measured with trees, since there are too few groups to hold some out of training.
    """
    found = None
    if model.groups_ is not None and len(np.unique(model.groups_)) > 1:
        found = in_common(_tree_errors(model, seed), model.groups_, model.sample_weights_)
    return USUAL_TRUST if found is None else min(max(found, _LEAST_TRUST), 1 - _LEAST_TRUST)


def _tree_errors(model: "TwinRegressor", seed: int) -> FloatArray:
    """Scaled errors ``(n,)`` of trees at the training points of a model."""
    y = model.scaling_.target(model.anchor_y_).astype(np.float64)
    x = model.scaling_.features(model.anchor_X_)
    return _held_out_errors(x, y, seed, model.groups_, model.sample_weights_)


def _held_out_errors(
    x: FloatArray,
    y: FloatArray,
    seed: int,
    groups: Groups | None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Errors of trees on rows that they were not fitted to, nor to others of the same group."""
    if groups is not None and (folds := min(_FOLDS, len(np.unique(groups)))) > 1:
        forest = ExtraTreesRegressor(_HELD_OUT_TREES, max_features=0.6, random_state=seed)
        predicted: FloatArray = cross_val_predict(
            forest, x, y, groups=groups, cv=GroupKFold(folds), params={"sample_weight": weights}
        )
        return y - predicted
    forest = ExtraTreesRegressor(
        _HELD_OUT_TREES, max_features=0.6, bootstrap=True, oob_score=True, random_state=seed
    )
    with warnings.catch_warnings():  # about rows that no tree left out
        warnings.simplefilter("ignore", UserWarning)
        forest.fit(x, y, sample_weight=weights)
    found: FloatArray = y - forest.oob_prediction_
    return found


def _ridge(
    features: FloatArray, wanted: FloatArray, importance: FloatArray
) -> tuple[FloatArray, float]:
    """Weights and bias that map features ``(n, w)`` to ``wanted`` ``(n,)``."""
    mean, middle = importance @ features, float(importance @ wanted)
    centred = features - mean
    variance = importance @ np.square(centred)
    # Keep neurons that are hardly ever active from getting large weights.
    unit = np.sqrt(variance + 0.01 * variance.mean() + 1e-30)
    scaled = centred / unit
    square = (scaled * importance[:, None]).T @ scaled + _RIDGE * np.eye(len(mean))
    weights = np.linalg.solve(square, (scaled * importance[:, None]).T @ (wanted - middle)) / unit
    return weights, middle - float(mean @ weights)
