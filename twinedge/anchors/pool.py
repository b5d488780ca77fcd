"""The training points that anchors are chosen from, with all features on one scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError

FloatArray = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Pool:
    """Training points as the methods see them.

    Parameters
    ----------
    x : array of shape (n, f)
        Features, z-scored: in raw units the feature with the largest numbers would decide alone.
    y : array of shape (n,)
        Target, z-scored.
    twins : int
        Networks that share the anchors.
    """

    x: FloatArray
    y: FloatArray
    twins: int

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def of(cls, X: npt.ArrayLike, y: npt.ArrayLike, twins: int) -> "Pool":
        """Check points ``(n, f)`` and targets ``(n,)`` in their own units, and scale them."""
        x, target = table("X", X, 2), table("y", y, 1)
        if len(x) != len(target):
            raise InputError(f"X has {len(x)} points and y has {len(target)} targets")
        return cls(standardised(x), standardised(target[:, None])[:, 0], twins)


def table(name: str, values: npt.ArrayLike, dimensions: int) -> FloatArray:
    """Return finite numbers of so many dimensions, one row at least."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a table of numbers") from None
    if array.ndim != dimensions or not array.size:
        shape = "(n, features)" if dimensions == 2 else "(n,)"
        raise InputError(f"{name} has shape {array.shape}; it must be {shape} and not empty")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InputError(f"{name}: row {row} holds a value that is not a finite number")
    return array


def standardised(columns: FloatArray) -> FloatArray:
    """Bring each column of ``(n, f)`` to mean 0 and deviation 1; a constant one becomes 0."""
    mean = columns.mean(axis=0)
    spread = columns.std(axis=0)
    # The spread of a constant column is rounding noise of its mean, not quite zero.
    constant = spread <= 1e-12 * np.abs(mean)
    scaled: FloatArray = (columns - mean) / np.where(constant, 1.0, spread)
    scaled[:, constant] = 0.0
    return scaled


def squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    """Squared distances ``(n,)`` of scaled points ``(n, d)`` from one other or one each.

    Rounded, so that distances that are equal on paper compare as equal and the first row wins. Both
    points of a cluster of two are equally far from its middle, and points on a grid from each
    other: without this, the last bit of a sum would choose between them.
    """
    distances: FloatArray = np.square(points - others).sum(axis=1).round(9)
    return distances
