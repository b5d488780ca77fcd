"""Nearest neighbours in scaled features, and the pairs a twin is trained on."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import one_of, positive_integer


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


def partners_of(
    x: FloatArray, pairs: Any, neighbors: Any, seed: int
) -> npt.NDArray[np.int32] | None:
    """Rows each point is paired with in training, ``(n, m)``; None for every row.

    Parameters
    ----------
    x : array of shape (n, f)
        Scaled training points.
    pairs : "all", "neighbors" or int
        Any two points; a point and its nearest; or a point and so many others at random.
    neighbors : int
        How many are nearest.
    seed : int
        Draws the others.
    """
    neighbors = positive_integer("neighbors", neighbors)
    if not isinstance(pairs, str):
        return random_others(len(x), positive_integer("pairs", pairs), seed)
    if one_of("pairs", pairs, ("all", "neighbors")) == "all":
        return None
    return nearest_others(x, neighbors)
