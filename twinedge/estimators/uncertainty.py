"""How certain a twin is of a prediction, how well that ranks its errors, and weighting by it.

The *difficulty* of a point is learnt from trees, which need few rows for it: other trees learn to
predict how far they are off on rows that they were not fitted to. A device has no room for trees,
so their answer is taught to the twins, at the training points and between them, as a linear readout
of their last hidden layer. The networks and their predictions stay the same.

A twin has three more measures of uncertainty without further training: the *spread* of the anchors'
estimates, the *loop violation* F(x, a) + F(a, b) + F(b, x), and the *asymmetry* F(x, a) + F(a, x).
For true differences the last two are zero. All anchors are used here, whatever the model's setting.
"""

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from twinedge import scoring
from twinedge.errors import InputError
from twinedge.estimators.anchored import AnchoredRegressor
from twinedge.estimators.networks import Groups
from twinedge.progress import Progress
from twinedge.scoring.calibration import USUAL_TRUST, CalibrationRows, in_common
from twinedge.scoring.weights import draw, in_proportion, of_rows
from twinedge.training.network import Architecture, FloatArray, Scaling
from twinedge.training.pairs import last_hidden
from twinedge.training.parameters import nonnegative_number, one_of
from twinedge.training.selection import LeftOut

_LEAST_ROWS = 20
_MOST_ROWS = 4000  # more rows are not worth the time
_ANCHORS = 64  # enough to represent all
_FOLDS = 10  # of groups
_LEAST_TRUST = 0.05  # trust is at least this, and at most 1 minus this
_MADE_UP = 2048  # points between rows
_FARTHEST = 0.5  # most of the way from one row to another
_RIDGE = 0.01  # of the variance of the hidden layer
_EACH_SIDE = 0.5  # share of the rows in the weight of all examples


def predict_left_out(
    model: Any, folds: Sequence[LeftOut], X: FloatArray, seed: int, progress: Progress
) -> CalibrationRows:
    """Predict each training row of a fitted model with networks that did not see its group.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    folds : sequence of (rows, weights)
        Parts of all training rows, and the networks ``(c, size)`` that were trained without them.
        Only the rows that they saw are their anchors, and teach them how large an error to expect.
    X : array of shape (v, inputs)
        Validation points, which neither they nor the model saw; there may be none. They tell how
        signals of these networks compare with those of the model.
    seed : int
        As for ``learn_difficulty``.
    progress : Progress
        Receives how many folds are done.
    """
    count, off = len(model.anchor_y_), _tree_errors(model, seed)
    signals, errors, outside = np.empty((3, count)), np.empty(count), np.empty(count, bool)
    elsewhere = np.zeros((3, len(X)))
    for done, (held, networks) in enumerate(folds, 1):
        seen = np.setdiff1d(np.arange(count), held)
        part = copy(model)
        part.anchors, part.weights_ = "auto", networks
        part.anchor_X_, part.anchor_y_ = model.anchor_X_[seen], model.anchor_y_[seen]
        part.sample_weights_ = of_rows(model.sample_weights_, seen)
        part.groups_ = of_rows(model.groups_, seen)
        part.difficulty_ = learn_difficulty(part, seed, errors=off[seen])
        mean, signals[:, held] = part.signals(model.anchor_X_[held])
        errors[held] = model.anchor_y_[held] - mean
        if len(X):
            elsewhere += part.signals(X)[1] / len(folds)
        outside[held] = part.outside(model.anchor_X_[held]).any(axis=1)
        progress.at(f"part {done}", done, len(folds))
    found = CalibrationRows(signals, errors, outside, model.sample_weights_, model.groups_)
    if not len(X):
        return found
    typical = np.sqrt(np.mean(np.square(elsewhere), axis=1))
    return found._replace(typical=typical).like(model.signals(X)[1])


class _Fitted(Protocol):
    """What is needed of a fitted TwinRegressor, which uses this module."""

    architecture_: Architecture
    weights_: FloatArray
    scaling_: Scaling
    anchor_X_: FloatArray
    anchor_y_: FloatArray
    sample_weights_: FloatArray | None
    groups_: Groups | None


def learn_difficulty(
    model: _Fitted,
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
    groups, tree_seed = of_rows(model.groups_, rows), int(rng.integers(2**31))
    off = of_rows(errors, rows)
    if off is None:
        off = _left_out(x, y, tree_seed, groups, weights)
    wanted = _difficulty(x, off, points, tree_seed, weights)
    if anchors is None:
        anchors = [in_proportion(rows, model.sample_weights_, _ANCHORS)] * twins
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
    if weights is not None:
        importance[: len(rows)] *= weights / weights.mean()
    kernel, bias = _ridge(features, wanted, importance)
    readout[:, :-1], readout[:, -1] = kernel.reshape(twins, hidden), bias
    return readout


def trust_between(model: _Fitted, seed: int) -> float:
    """How far to trust points of an unseen group, learnt from the groups of training.

    It is the share of the error that rows of one group have in common if none of them was learnt
    from. It is measured with trees, since there are too few groups to hold some out of training.
    """
    found = None
    if model.groups_ is not None and len(np.unique(model.groups_)) > 1:
        found = in_common(_tree_errors(model, seed), model.groups_, model.sample_weights_)
    return USUAL_TRUST if found is None else min(max(found, _LEAST_TRUST), 1 - _LEAST_TRUST)


def _tree_errors(model: _Fitted, seed: int) -> FloatArray:
    """Scaled errors ``(n,)`` of trees at the training points of a model."""
    y = model.scaling_.target(model.anchor_y_).astype(np.float64)
    x = model.scaling_.features(model.anchor_X_)
    return _left_out(x, y, seed, model.groups_, model.sample_weights_)


def _difficulty(
    x: FloatArray,
    off: FloatArray,
    points: FloatArray,
    seed: int,
    weights: FloatArray | None,
) -> FloatArray:
    """How far trees that were ``off`` by so much at ``x`` are off at points, by other trees."""
    foreseen = ExtraTreesRegressor(
        200, max_features=0.6, min_samples_leaf=min(8, len(off) // 4), random_state=seed
    )
    found: FloatArray = foreseen.fit(x, np.abs(off), sample_weight=weights).predict(points)
    return found


def _left_out(
    x: FloatArray,
    y: FloatArray,
    seed: int,
    groups: Groups | None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Errors of trees on rows that they were not fitted to, nor to others of the same group."""
    if groups is not None and (folds := min(_FOLDS, len(np.unique(groups)))) > 1:
        forest = ExtraTreesRegressor(100, max_features=0.6, random_state=seed)
        said: FloatArray = cross_val_predict(
            forest, x, y, groups=groups, cv=GroupKFold(folds), params={"sample_weight": weights}
        )
        return y - said
    forest = ExtraTreesRegressor(
        100, max_features=0.6, bootstrap=True, oob_score=True, random_state=seed
    )
    with warnings.catch_warnings():  # about rows that no tree left out; 100 trees leave out all
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


MEASURES = ("spread", "loop_violation", "asymmetry")

_LOOPS = 32  # anchors b that close loops x, a, b
_LEAST = 0.01  # least uncertainty of an anchor, relative to the mean over the anchors


def uncertainty(model: AnchoredRegressor, X: npt.ArrayLike, by: str = "spread") -> FloatArray:
    """Return one of the ``MEASURES`` for each point, ``(n,)`` in units of the target."""
    return _of_points(model, by)(X)


def anchor_uncertainty(
    model: AnchoredRegressor, X: npt.ArrayLike, by: str = "asymmetry"
) -> FloatArray:
    """How uncertain each anchor's estimate of each point is.

    Parameters
    ----------
    model : AnchoredRegressor
        Fitted, and not on neighbors.
    X : array of shape (n, features)
        Points.
    by : {"spread", "loop_violation", "asymmetry"}
        "asymmetry" is that of the pair, absolute; "loop_violation" the root mean square over loops
        that begin with the pair; "spread" that of the estimates for the anchor itself, the same for
        every point.

    Returns
    -------
    array of shape (n, members)
        In units of the target; in the order of ``model.estimates(X, anchors="all")``.
    """
    _of_points(model, by)
    if model.pairs == "neighbors":
        raise InputError("a model trained on neighbors has different anchors for each point")
    if by == "asymmetry":
        plain = model.estimates(X, anchors="all", symmetric=False)
        sums: FloatArray = 2 * (plain - model.estimates(X, anchors="all"))
        return np.abs(sums)
    anchors = model.anchor_X_
    if by == "spread":
        std = model.spread(anchors, anchors="all")
        leave = model.crossed(X, anchors[:1])
        return np.broadcast_to(np.tile(std, len(leave)), (leave.shape[1], len(leave) * len(std)))
    b = anchors[np.random.default_rng(0).permutation(len(anchors))[:_LOOPS]]
    leave, across, back = (
        one.astype(np.float64)
        for one in (model.crossed(X, anchors), model.crossed(anchors, b), model.crossed(b, X))
    )
    back = back.transpose(0, 2, 1)
    # The mean over b of (leave_xa + across_ab + back_xb)^2 without an array of x by a by b.
    square = (
        np.square(leave)
        + 2 * leave * (across.mean(axis=2)[:, None] + back.mean(axis=2)[:, :, None])
        + np.square(across).mean(axis=2)[:, None]
        + np.square(back).mean(axis=2)[:, :, None]
        + 2 * back @ across.transpose(0, 2, 1) / len(b)
    )
    twins, points, count = square.shape
    rms: FloatArray = np.sqrt(np.maximum(square, 0))
    return rms.transpose(1, 0, 2).reshape(points, twins * count)


def weighted_prediction(
    model: AnchoredRegressor, X: npt.ArrayLike, by: str = "asymmetry", *, power: float = 2.0
) -> FloatArray:
    """Mean of the anchors' estimates, with more weight on the more certain ones.

    The paper found no consistent gain in this. A power of 2 weighs by the inverse of the variance;
    0 is the plain mean.

    Parameters
    ----------
    model : AnchoredRegressor
        Fitted, and not on neighbors.
    X : array of shape (n, features)
        Points to predict.
    by : {"spread", "loop_violation", "asymmetry"}
        As in ``anchor_uncertainty``.
    power : float
        The weight is uncertainty^-power.

    Returns
    -------
    array of shape (n,)
        In units of the target.
    """
    power = nonnegative_number("power", power)
    unsure = anchor_uncertainty(model, X, by)
    mean = unsure.mean(axis=1, keepdims=True)
    share = np.divide(unsure, mean, out=np.ones_like(unsure), where=mean > 0)
    share = np.maximum(share, _LEAST)
    weights = (share / share.min(axis=1, keepdims=True)) ** -power
    each = getattr(model, "sample_weights_", None)
    if each is not None:  # as in the mean of all anchors
        weights *= np.tile(each, weights.shape[1] // len(each))
    averages: FloatArray = np.average(model.estimates(X, anchors="all"), axis=1, weights=weights)
    return averages


def rank_correlation(uncertainty: FloatArray, error: FloatArray) -> float:
    """Spearman's correlation of uncertainty and absolute error; 1 is a perfect ranking.

    0 if one of the two never varies.
    """
    return scoring.rank_correlation(*_checked(uncertainty, error))


def sparsification(uncertainty: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Error of the remaining points when the most uncertain ones are set aside.

    Parameters
    ----------
    uncertainty, error : array of shape (n,)
        Uncertainty and error of each prediction.

    Returns
    -------
    removed : array of shape (n,)
        Share of the points set aside: 0, 1/n, ..., (n - 1)/n.
    rmse : array of shape (n,)
        Root mean square error of the others; points of equal uncertainty share their mean square.
    """
    unsure, wrong = _checked(uncertainty, error)
    _, group, size = np.unique(unsure, return_inverse=True, return_counts=True)
    square = (np.bincount(group, np.square(wrong)) / size)[group]
    kept = np.arange(1, len(unsure) + 1)
    rmse = np.sqrt(np.cumsum(square[np.argsort(unsure)]) / kept)
    return 1 - kept[::-1] / len(unsure), rmse[::-1]


def sparsification_area(uncertainty: FloatArray, error: FloatArray) -> float:
    """Area under the sparsification curve, relative to the error of all points.

    It is 1 for an uncertainty that ranks nothing; the least is that of the absolute error.
    """
    _, rmse = sparsification(uncertainty, error)
    return float(np.mean(rmse / rmse[0])) if rmse[0] > 0 else 1.0


def judge(model: AnchoredRegressor, X: npt.ArrayLike, y: FloatArray) -> dict[str, Any]:
    """Score each measure of uncertainty on points with known targets.

    Parameters
    ----------
    model : AnchoredRegressor
        Fitted, and not on neighbors.
    X : array of shape (n, features)
        Points it was not trained on.
    y : array of shape (n,)
        Their targets.

    Returns
    -------
    dict
        ``rmse`` of the plain mean; ``least_area``, the area under the sparsification curve of the
        error itself; and for each of the ``MEASURES`` its rank ``correlation`` with the absolute
        error, its ``area`` and the ``weighted_rmse`` of anchors weighted by it.
    """
    predicted = model.predict(X, anchors="all")
    error = predicted - scoring.check_targets(y, len(predicted))

    found: dict[str, Any] = {
        "rmse": scoring.rmse(error),
        "least_area": sparsification_area(np.abs(error), error),
    }
    for by in MEASURES:
        unsure = uncertainty(model, X, by)
        found[by] = {
            "correlation": rank_correlation(unsure, error),
            "area": sparsification_area(unsure, error),
            "weighted_rmse": scoring.rmse(weighted_prediction(model, X, by) - np.asarray(y)),
        }
    return found


def _of_points(model: AnchoredRegressor, by: str) -> Callable[[npt.ArrayLike], FloatArray]:
    if not isinstance(model, AnchoredRegressor):
        raise InputError(f"{type(model).__name__} is not a TwinRegressor or a TwinnedRegressor")
    measures: dict[str, Callable[[npt.ArrayLike], FloatArray]] = {
        "spread": lambda X: model.spread(X, anchors="all"),
        "loop_violation": model.loop_violation,
        "asymmetry": lambda X: model.asymmetry(X, anchors="all"),
    }
    return measures[one_of("by", by, MEASURES)]


def _checked(uncertainty: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    unsure, wrong = np.asarray(uncertainty, np.float64), np.asarray(error, np.float64)
    if unsure.ndim != 1 or unsure.shape != wrong.shape or not len(unsure):
        raise InputError(
            f"{unsure.shape} uncertainties and {wrong.shape} errors: each point needs one of each"
        )
    if not (np.isfinite(unsure).all() and np.isfinite(wrong).all()):
        raise InputError("uncertainty and error must be finite numbers")
    return unsure, wrong
