"""Bringing features and target to mean 0 and standard deviation 1, and back.

Long tables have wild values: a decimal point that slipped, a zero for what nobody measured. A few
of them would rule mean and deviation, and a network goes on in a straight line to wherever they
are. So one row of two thousand at either end has no say in the scaling, and features go no further
than the others reach, and a quarter. Short tables, where every row counts, are scaled as they are.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinedge.learn.network import FloatArray

FARTHEST = 1e9  # standard deviations; squares and sums of these still fit into float32
_MANY_ROWS = 4096
_ROWS_TO_A_WILD_ONE = 2000
_HEADROOM, _LEAST_REACH = 1.25, 2.0
_INDICATOR = 0.5  # what an input of a category is divided by: a rare level is no wild value


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of the features ``(f,)`` and of the target, taken from the training rows.

    Scaled features go no further than ``limit``.
    """

    x_mean: FloatArray
    x_scale: FloatArray
    y_mean: float
    y_scale: float
    limit: float = FARTHEST

    @classmethod
    def of(
        cls, x: FloatArray, y: FloatArray, indicators: npt.NDArray[np.bool_] | None = None
    ) -> "Scaling":
        """Z-score of these rows; a constant column is only shifted.

        ``indicators`` ``(f,)`` tells which features are inputs of categories.
        """
        wild = len(x) // _ROWS_TO_A_WILD_ONE if len(x) > _MANY_ROWS else 0
        numbers = np.ones(x.shape[1], bool) if indicators is None else ~indicators
        ends = None
        if wild and numbers.any():
            ends = np.sort(x[:, numbers], axis=0)[[wild, -1 - wild]]
            x = x.copy()
            x[:, numbers] = x[:, numbers].clip(*ends)
        x_mean, x_scale = x.mean(axis=0), x.std(axis=0)
        x_scale[~numbers] = _INDICATOR
        # The spread of a constant column is rounding noise of its mean, not quite zero.
        constant = x_scale <= 1e-12 * np.abs(x_mean)
        x_scale = np.where(constant, 1.0, x_scale)
        limit = FARTHEST
        if ends is not None:
            reach = np.abs((ends - x_mean[numbers]) / x_scale[numbers]).max()
            limit = max(_LEAST_REACH, _HEADROOM * float(reach))
        y_scale = float(y.std())
        return cls(x_mean, x_scale, float(y.mean()), y_scale or 1.0, limit)

    def features(self, x: FloatArray) -> FloatArray:
        """Scaled features, in float32 as the networks take them."""
        scaled = (x - self.x_mean) / self.x_scale
        # Far outside the training data an answer means nothing, but it should be a number.
        return np.clip(scaled, -self.limit, self.limit).astype(np.float32)

    def reached(self, x: FloatArray) -> FloatArray:
        """Return features no further out than the networks see them, in their own units."""
        reach = self.limit * self.x_scale
        return np.asarray(np.clip(x, self.x_mean - reach, self.x_mean + reach))

    def target(self, y: FloatArray) -> FloatArray:
        """Scaled target, in float32."""
        scaled: FloatArray = ((y - self.y_mean) / self.y_scale).astype(np.float32)
        return scaled
