"""How far an exported file of several targets is from its float model.

Each target has a yardstick of its own, and scores on the points that measured it. A file is as far
off as the worst of its targets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twinedge.anchors.pool import AllAnchors
from twinedge.estimators.targets import anchors_of, measured
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.runtime.device import Device, Prediction
from twinedge.scoring.weights import of_rows
from twinedge_export.deviations import Evaluator, Points, Score


@dataclass(frozen=True)
class TargetsEvaluator:
    """The float model as a yardstick for several targets; errors are tuples, one for each.

    Parameters
    ----------
    singles : tuple of Evaluator
        Those of each target.
    points, test : (X, Y)
        All points to score on, and test points; NaN where a target was not measured.
    weights : array of shape (v,), or None
        How much each of the points counts.
    """

    singles: tuple[Evaluator, ...]
    points: Points
    test: Points
    weights: Array | None = None

    @classmethod
    def of(
        cls,
        model: TwinRegressor,
        rows: Array,
        neighbors: int,
        validation: Points,
        test: Points,
        weights: Array | None = None,
        test_weights: Array | None = None,
    ) -> "TargetsEvaluator":
        """Measure the float model with all anchors and with ``rows``, as ``Evaluator.of``.

        Without validation points of each target, files are scored on the training points.
        """
        held = bool(np.isfinite(validation[1]).any(axis=0).all())
        points = validation if held else (model.anchor_X_, model.anchor_y_)
        weights = weights if held else model.sample_weights_
        singles = []
        for target, one in enumerate(model.of_each_target()):
            mine, tested = (measured(y, target) for _, y in (points, test))
            singles.append(
                Evaluator.of(
                    one,
                    anchors_of(model, target, rows),
                    neighbors,
                    (points[0][mine], points[1][mine, target]) if held else None,
                    (test[0][tested], test[1][tested, target]),
                    of_rows(weights, mine),
                    of_rows(test_weights, tested),
                )
            )
        return cls(tuple(singles), points, test, weights)

    @property
    def name(self) -> str:
        """What the points are."""
        return self.singles[0].name

    @property
    def all_anchors(self) -> AllAnchors:
        """Errors of the float model with all anchors."""
        first = self.singles[0].all_anchors
        return first._replace(rmse=self._each(lambda one: one.all_anchors.rmse))

    @property
    def all_anchors_test(self) -> AllAnchors | None:
        """The same on the test points; None if a target has none."""
        each = [one.all_anchors_test for one in self.singles]
        found = [one for one in each if one is not None]
        if len(found) < len(each):
            return None
        rmse: Any = tuple(one.rmse for one in found)
        return found[0]._replace(rmse=rmse)

    @property
    def exported_rmse(self) -> Any:
        """Its errors with the exported anchors."""
        return self._each(lambda one: one.exported_rmse)

    def score(self, device: Device, unrounded: Array, scale: Array | None = None) -> Score:
        """Score a loaded file; spread and scale of its networks as floats are ``(v, m)``."""
        found = device.predict_all(self.points[0])
        tested = device.predict(self.test[0]) if len(self.test[1]) else None
        scores = []
        for target, one in enumerate(self.singles):
            rows, held = (measured(y, target) for _, y in (self.points, self.test))
            own = Prediction(found.mean[rows, target], found.spread[rows, target], found.outside)
            if found.scale is not None:
                own = own._replace(scale=found.scale[rows, target])
            test = None if tested is None or not len(one.test[1]) else tested[held, target]
            exact = None if scale is None else scale[rows, target]
            scores.append(one.score_predictions(own, test, unrounded[rows, target], exact))
        return _worst(scores)

    def _each(self, ask: Callable[[Evaluator], Any]) -> Any:
        return tuple(map(ask, self.singles))


def _worst(scores: Sequence[Score]) -> Score:
    """Return errors of all targets, and the largest costs."""
    together: dict[str, Any] = {
        name: tuple(getattr(one, name) for one in scores)
        for name in ("rmse", "rmse_test", "largest_deviation")
    }
    for name in ("ratio_to_float", "cost", "spread_cost", "scale_cost"):
        known = [value for one in scores for value in [getattr(one, name)] if value is not None]
        together[name] = float(np.max(known)) if known else None
    return Score(**together)
