"""Pairs with a difference of their own, beside those that two targets make."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError
from twinedge.learn.network import FloatArray
from twinedge.learn.scaling import Scaling


@dataclass(frozen=True)
class ExtraPairs:
    """Pairs to train on of which the difference is known, or proposed, but no target.

    Parameters
    ----------
    points : array of shape (p, f)
        The points the pairs are made of, in their own units.
    rows : array of int of shape (m, 2)
        First and second point of each pair, as rows of ``points``.
    differences : array of shape (m,)
        y(first) - y(second), in units of the target.
    """

    points: FloatArray
    rows: npt.NDArray[np.int64]
    differences: FloatArray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def first(self) -> FloatArray:
        """First points ``(m, f)``."""
        return self.points[self.rows[:, 0]]

    @property
    def second(self) -> FloatArray:
        """Second points ``(m, f)``."""
        return self.points[self.rows[:, 1]]

    def scaled(self, scaling: Scaling) -> "ExtraPairs":
        """Return the same in the units networks are trained in."""
        differences = (self.differences / scaling.y_scale).astype(np.float32)
        return ExtraPairs(scaling.features(self.points), self.rows, differences)

    def checked(self, features: int) -> "ExtraPairs":
        """Return the same with plain arrays; what does not fit together is refused."""
        points = np.asarray(self.points, np.float64)
        rows, differences = np.asarray(self.rows), np.asarray(self.differences, np.float64)
        if points.ndim != 2 or points.shape[1] != features:
            raise InputError(f"extra: points have shape {points.shape}; (p, {features}) is needed")
        if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
            raise InputError("extra: rows must be whole numbers of shape (m, 2)")
        if differences.shape != (len(rows),):
            raise InputError(f"extra: {len(rows)} pairs have {differences.size} differences")
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(points):
            raise InputError(f"extra: rows must be 0 to {len(points) - 1}")
        if not (np.isfinite(points).all() and np.isfinite(differences).all()):
            raise InputError("extra: points and differences must be finite numbers")
        return ExtraPairs(points, rows.astype(np.int64), differences)
