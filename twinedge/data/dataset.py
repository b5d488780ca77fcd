"""A regression data set: features, one target, and what they are called."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Dataset:
    """One of the paper's data sets.

    Parameters
    ----------
    name : str
        Key in the catalogue, such as ``"bh"``.
    X : ndarray of float64, shape (n, f)
        Features, in the units of the source.
    y : ndarray of float64, shape (n,)
        Target, in the units of the source.
    feature_names : tuple of str
        Names of the columns of `X`.
    target_name : str
    title : str
        Full name of the set.
    source : str
        Where these rows came from: a path, an address, or how they were generated.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    title: str
    source: str = ""

    @property
    def rows(self) -> int:
        """Number of rows, n."""
        return len(self.y)

    @property
    def features(self) -> int:
        """Number of features, f."""
        return int(self.X.shape[1])
