"""Validation errors of a model of several targets: scaled, and means over the targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.anchors.pool import AllAnchors, Evidence, FittedModel, known_of
from twinedge.anchors.rows import FloatArray, Rows
from twinedge.errors import InputError
from twinedge.scoring.weights import mean_over_targets


class TargetsEvidence(Evidence):
    """Validation errors of a model with any anchors, each of which has all targets.

    Errors are in standard deviations of the targets. Each target is evaluated at the points that
    measured it, by the model of that target.

    Parameters
    ----------
    model : FittedModel
        Fitted; no target of its training points is missing.
    X, y : array of shape (v, f), (v, m)
        Validation points and their targets, NaN where one was not measured.
    groups, weights, across
        As for ``Evidence``.
    """

    def __init__(
        self,
        model: Any,
        X: FloatArray,
        y: FloatArray,
        groups: FloatArray | None = None,
        weights: FloatArray | None = None,
        across: bool = False,
    ) -> None:
        self.model, self.X, self.y, self.groups, self.across = model, X, y, groups, across
        self.weights = None if weights is None else weights / weights.mean()
        self.twins = len(model.weights_)
        self.neighbors = model.pairs == "neighbors"
        self._known = np.isfinite(y)
        self._each = [
            Evidence(one, X[rows], y[rows, target])
            for target, one in enumerate(model.of_each_target())
            for rows in [self._known[:, target]]
        ]

    @classmethod
    def of(cls, model: FittedModel, validation: Any) -> "TargetsEvidence":
        """Check validation data from a caller; None means no points."""
        if validation is None:
            return cls(model, model.anchor_X_[:0], model.anchor_y_[:0])
        X, y = (np.asarray(one, np.float64) for one in validation)
        if y.shape != (len(X), model.anchor_y_.shape[1]):
            raise InputError(
                f"validation has {len(X)} points and targets of shape {y.shape}; "
                f"({len(X)}, {model.anchor_y_.shape[1]}) is needed"
            )
        across = getattr(model, "left_out_", None) is not None
        return cls(model, X, y, known_of(model, X, "groups"), known_of(model, X, "weights"), across)

    def rmse(self, anchors: Any, neighbors: int | None = None) -> float:
        """Root mean square error with these anchors, over the targets."""
        return self._over_targets([one.rmse(anchors, neighbors) for one in self._each])

    def all_anchors(self, neighbors: int | None = None) -> AllAnchors:
        """Measure the model with all anchors, of which ``neighbors`` nearest predict."""
        found = [one.all_anchors(neighbors) for one in self._each]
        return found[0]._replace(rmse=self._over_targets([one.rmse for one in found]))

    def squared_errors(self, subsets: Sequence[Rows]) -> FloatArray:
        """Squared errors ``(len(subsets), v)``: their mean is that over the targets."""
        squares = np.zeros((len(subsets), *self.y.shape))
        for target, one in enumerate(self._each):
            found = one.squared_errors(subsets) / one.scale**2
            squares[:, self._known[:, target], target] = found
        return self._weighted(mean_over_targets(squares, self._known, self.weights))

    def residuals(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Each twin's estimate from these anchors minus the target, target after target."""
        found = [one.residuals(rows) for one in self._each]
        return np.concatenate(found, axis=2) / np.float32(np.sqrt(self.targets))

    def _over_targets(self, errors: Sequence[float]) -> float:
        scaled = [error / one.scale for error, one in zip(errors, self._each, strict=True)]
        return float(np.sqrt(np.nanmean(np.square(scaled))))
