"""How far an exported file is from its float model."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.anchors.pool import AllAnchors, Evidence
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device, Prediction
from twinedge.scoring.scores import check_targets
from twinedge.scoring.target_curve import TargetCurve
from twinedge.scoring.weights import of_rows
from twinedge_export.fold_anchors import Inputs

Points = tuple[Array, Array]

_TINY = 1e-9  # of the target's deviation: a smaller error counts as none, and is no yardstick
# Fraction by which rounding may change the spread, in tolerances: 5 % by default. Where the error
# is well within tolerance, packs are off by up to 1.4 %, ONNX files by 3.2 %, TFLite files with
# float edges by 4.3 %; with int8 edges it was 12.6 %, and such a spread is not to be trusted.
_SPREAD_TOLERANCES = 2.5
_TELLING = 0.1  # of the error: a smaller spread says nothing, and is no yardstick


class Score(NamedTuple):
    """Errors of a file, in units of the target.

    ``rmse`` is measured on the validation points, or on the training points if nothing was held
    out. ``cost`` is the fraction by which it exceeds that of the float model with the same anchors.
    A file may be closer to the targets by chance; ``cost`` is at least what its deviations would
    add as noise that is independent of the error. With a target curve, it is the larger one of
    that of the target and that on the curve, where small targets count, too. ``ratio_to_float``
    compares with the float model with all anchors.
    ``spread_cost`` is the root mean square by which the spread differs from that of the unrounded
    networks with the same anchors, as a fraction of it. ``scale_cost`` is the same of the scale,
    for a file whose intervals are calibrated on its own predictions, and None for others: there,
    the scale takes the place of the spread if it is closer. Calibration weighs the spread by what
    it says of errors, and intervals cover what they claim however far rounding has moved it.
    """

    rmse: float
    rmse_test: float | None
    ratio_to_float: float
    cost: float
    spread_cost: float
    largest_deviation: float
    scale_cost: float | None = None

    @property
    def tolerance(self) -> float:
        """The least tolerance that lets the file through."""
        return max(self.cost, self._uncertainty_cost[0] / _SPREAD_TOLERANCES)

    @property
    def _uncertainty_cost(self) -> tuple[float, str]:
        """How far off the file is in what it says of its errors, and in what."""
        costs = (self.spread_cost, "spread"), (self.scale_cost, "scale")
        return min((cost, what) for cost, what in costs if cost is not None)

    def describe_uncertainty(self, tolerance: float) -> str:
        """Describe how far off spread or scale is, if that is too much; otherwise nothing."""
        cost, what = self._uncertainty_cost
        return f"{100 * cost:.1f} % off in the {what}" * (cost > _SPREAD_TOLERANCES * tolerance)

    def describe_cost(self, tolerance: float) -> str:
        """Describe what rounding costs; spread or scale only if that is too much."""
        off = self.describe_uncertainty(tolerance)
        return f"{100 * self.cost:.1f} %" + (off and f" and is {off}")


@dataclass(frozen=True)
class Evaluator:
    """The float model as a yardstick.

    Parameters
    ----------
    name : {"validation", "training"}
        What the points are; "training" if nothing was held out.
    points, test : (X, y)
        Points to score on, and points that training never saw; ``test`` may be empty.
    all_anchors, all_anchors_test : AllAnchors
        Errors of the float model with all anchors, even if it predicts with neighbors; None without
        test points.
    exported_rmse : float
        Its error with the exported anchors.
    predictions : array of shape (v,)
        Its predictions with them.
    least : float
        A smaller error counts as this.
    weights, test_weights : array of shape (v,), (t,), or None
        How much each of the points counts in an error; None if all do alike.
    curve : TargetCurve, optional
        The target's.
    """

    name: str
    points: Points
    test: Points
    all_anchors: AllAnchors
    all_anchors_test: AllAnchors | None
    exported_rmse: float
    predictions: Array
    least: float
    weights: Array | None = None
    test_weights: Array | None = None
    curve: TargetCurve | None = None

    @classmethod
    def of(
        cls,
        model: TwinRegressor,
        rows: Array,
        neighbors: int,
        validation: Points | None,
        test: Points | None,
        weights: Array | None = None,
        test_weights: Array | None = None,
    ) -> "Evaluator":
        """Measure the float model with all anchors and with ``rows``.

        ``neighbors`` is how many nearest anchors of each twin predict, 0 for all. Without
        validation points, files are scored on the training points; ``weights`` are those of the
        points scored on.
        """
        trained = model.anchor_X_, model.anchor_y_
        name, points = "training", trained
        if validation is not None and len(validation[0]):
            name, points = "validation", validation
        test = (trained[0][:0], trained[1][:0]) if test is None else test
        for X, y in (points, test):
            check_targets(y, len(X))
        # A wild value sends a float network along a straight line to anywhere, and a file clips it.
        inputs = Inputs.scaled(model)
        points, test = ((inputs.clipped(X), y) for X, y in (points, test))
        scaling = model.scaling_
        middle, unit = np.array([scaling.y_mean]), np.array([scaling.y_scale])
        least = _TINY * float(scaling.deviation(middle, unit)[0])
        nearest = neighbors or None

        def all_anchors(points: Points, weights: Array | None) -> AllAnchors:
            return Evidence(model, *points, weights=weights).all_anchors(nearest)

        predictions = model.predict(points[0], anchors=rows, neighbors=nearest)
        return cls(
            name,
            points,
            test,
            all_anchors(points, weights),
            all_anchors(test, test_weights) if len(test[1]) else None,
            scoring.rmse(predictions, points[1], weights),
            predictions,
            least,
            weights,
            test_weights,
            scaling.curve,
        )

    def score(self, device: Device, unrounded: Array, scale: Array | None = None) -> Score:
        """Score a loaded file.

        ``unrounded`` ``(v,)`` is the spread of its networks as floats, and ``scale`` ``(v,)`` what
        the calibration of the file makes of their signals, if it is calibrated on its own.
        """
        test = device.predict(self.test[0]) if len(self.test[1]) else None
        return self.score_predictions(device.predict_all(self.points[0]), test, unrounded, scale)

    @property
    def singles(self) -> tuple["Evaluator", ...]:
        """The yardstick of each target."""
        return (self,)

    def score_predictions(
        self, found: Prediction, tested: Array | None, unrounded: Array, scale: Array | None
    ) -> Score:
        """Score predictions for the points, and those for the test points ``(t,)``."""
        predicted, spread = (np.asarray(one, np.float64) for one in (found.mean, found.spread))
        for one in (predicted, spread):
            if one.shape != self.predictions.shape or not np.isfinite(one).all():
                raise InputError("an exported file does not predict finite numbers")
        rmse = scoring.rmse(predicted, self.points[1], self.weights)
        yardstick = max(self.exported_rmse, self.least)
        usual = max(scoring.rmse(unrounded), _TELLING * yardstick)
        return Score(
            rmse,
            None if tested is None else scoring.rmse(tested, self.test[1], self.test_weights),
            rmse / max(self.all_anchors.rmse, self.least),
            max(
                _cost(predicted, self.predictions, self.points[1], self.weights, self.least),
                self._cost_on_curve(predicted),
            ),
            scoring.rmse(spread, unrounded) / usual,
            float(np.abs(predicted - self.predictions).max()),
            None
            if scale is None or found.scale is None
            else scoring.rmse(found.scale, scale) / scoring.rmse(scale),
        )

    def _cost_on_curve(self, predicted: Array) -> float:
        """Return the cost of predictions ``(v,)`` on the target's curve."""
        if self.curve is None:
            return 0.0
        both = predicted, self.predictions
        # An integer may be out of reach of the curve: it counts as the least prediction.
        least = float(self.predictions.min())
        found, exact = (self.curve.forward(np.maximum(one, least)) for one in both)
        known = self.curve.takes(self.points[1])
        y = self.curve.forward(self.points[1][known])
        weights = of_rows(self.weights, known)
        return _cost(found[known], exact[known], y, weights, _TINY * float(np.std(y)))


def _cost(predicted: Array, exact: Array, y: Array, weights: Array | None, least: float) -> float:
    """Return the fraction by which predictions have a larger error than exact ones."""
    yardstick = max(scoring.rmse(exact, y, weights), least)
    moved = scoring.rmse(predicted, exact) / yardstick
    return max(scoring.rmse(predicted, y, weights) / yardstick, math.hypot(1, moved)) - 1
