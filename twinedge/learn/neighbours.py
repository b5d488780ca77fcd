"""Nearest neighbours in scaled features, and the pairs a twin is trained on."""

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from twinedge.learn.network import FloatArray


def nearest(points: FloatArray, queries: FloatArray, count: int) -> npt.NDArray[np.intp]:
    """Rows ``(n, count)`` of the points nearest to each query, nearest first."""
    search = NearestNeighbors(n_neighbors=min(count, len(points))).fit(points)
    found: npt.NDArray[np.intp] = search.kneighbors(queries, return_distance=False)
    return found


def nearest_others(points: FloatArray, count: int) -> npt.NDArray[np.int32]:
    """Rows ``(n, count)`` of the points nearest to each point, itself left out."""
    search = NearestNeighbors(n_neighbors=min(count, len(points) - 1)).fit(points)
    # Asked about its own points, the search leaves each one out, duplicates of it not.
    found: npt.NDArray[np.int32] = search.kneighbors(return_distance=False).astype(np.int32)
    return found


def random_others(rows: int, count: int, seed: int) -> npt.NDArray[np.int32]:
    """Pick ``count`` distinct other rows for each row: the paper's training-set multiplier."""
    rng = np.random.default_rng([seed, 2])
    count = min(count, rows - 1)
    partners = np.empty((rows, count), np.int32)
    for row in range(rows):
        others = rng.choice(rows - 1, count, replace=False)
        partners[row] = others + (others >= row)
    return partners
