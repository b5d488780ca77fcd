"""Bringing features and target to mean 0 and standard deviation 1, and back."""

from dataclasses import dataclass

import numpy as np

from twinedge.learn.network import FloatArray

_FARTHEST = 1e9  # standard deviations; squares and sums of these still fit into float32


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of the features ``(f,)`` and of the target, taken from the training rows."""

    x_mean: FloatArray
    x_scale: FloatArray
    y_mean: float
    y_scale: float

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> "Scaling":
        """Z-score of these rows; a constant column is only shifted."""
        x_mean, x_scale = x.mean(axis=0), x.std(axis=0)
        # The spread of a constant column is rounding noise of its mean, not quite zero.
        constant = x_scale <= 1e-12 * np.abs(x_mean)
        y_scale = float(y.std())
        return cls(x_mean, np.where(constant, 1.0, x_scale), float(y.mean()), y_scale or 1.0)

    def features(self, x: FloatArray) -> FloatArray:
        """Scaled features, in float32 as the networks take them."""
        scaled = (x - self.x_mean) / self.x_scale
        # Far outside the training data an answer means nothing, but it should be a number.
        return np.clip(scaled, -_FARTHEST, _FARTHEST).astype(np.float32)

    def target(self, y: FloatArray) -> FloatArray:
        """Scaled target, in float32."""
        scaled: FloatArray = ((y - self.y_mean) / self.y_scale).astype(np.float32)
        return scaled
