"""How certain a twin is of a prediction, how well that ranks its errors, and weighting by it.

A twin has three measures of uncertainty without further training: the *spread* of the anchors'
estimates, the *loop violation* F(x, a) + F(a, b) + F(b, x), and the *asymmetry* F(x, a) + F(a, x).
For true differences the last two are zero. All anchors are used here, whatever the model's setting.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge import scoring
from twinedge.deprecation import warn_deprecated
from twinedge.errors import InputError
from twinedge.estimators.anchored import AnchoredRegressor
from twinedge.training.network import FloatArray
from twinedge.training.parameters import nonnegative_number, one_of

MEASURES = ("spread", "loop_violation", "asymmetry")

_LOOPS = 32  # anchors b that close loops x, a, b
_LEAST = 0.01  # least uncertainty of an anchor, relative to the mean over the anchors


def uncertainty(model: AnchoredRegressor, X: npt.ArrayLike, by: str = "spread") -> FloatArray:
    """Return one of the ``MEASURES`` for each point, ``(n,)`` in units of the target."""
    return _measure(model, by)(X)


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
        In units of the target, on its curve if it has one; in the order of
        ``model.estimates(X, anchors="all")``.
    """
    _measure(model, by)
    if model.pairs == "neighbors":
        raise InputError("a model trained on neighbors has different anchors for each point")
    if by == "asymmetry":
        plain = model.estimates(X, anchors="all", symmetric=False, curved=True)
        sums: FloatArray = 2 * (plain - model.estimates(X, anchors="all", curved=True))
        return np.abs(sums)
    anchors = model.anchor_X_
    if by == "spread":
        _, std = model._mean_and_spread(anchors, "all", None, symmetric=True)
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
    estimates = model.estimates(X, anchors="all", curved=True)
    return model.scaling_.uncurved(np.average(estimates, axis=1, weights=weights))


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


def evaluate_uncertainty(
    model: AnchoredRegressor, X: npt.ArrayLike, y: FloatArray
) -> dict[str, Any]:
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
            "correlation": scoring.rank_correlation(unsure, error),
            "area": sparsification_area(unsure, error),
            "weighted_rmse": scoring.rmse(weighted_prediction(model, X, by) - np.asarray(y)),
        }
    return found


def _measure(model: AnchoredRegressor, by: str) -> Callable[[npt.ArrayLike], FloatArray]:
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


def __getattr__(name: str) -> Any:
    if name != "judge":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_deprecated("twinedge.estimators.uncertainty.judge", "evaluate_uncertainty")
    return evaluate_uncertainty
