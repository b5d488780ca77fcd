"""Choosing anchors from the training points alone: one function for each way.

Each takes scaled points ``x`` of shape (n, f), scaled targets ``y`` of shape (n,), how many to
choose, and a generator; it returns so many distinct rows.
"""

from collections.abc import Callable

import numpy as np

from twinedge.anchors.clusters import central_points
from twinedge.anchors.pool import FloatArray, Pool, Rows, squared_distances

Pick = Callable[[FloatArray, FloatArray, int, np.random.Generator], Rows]

_WEIGHT_OF_TARGET = 2.0  # in clusters of (x, y): best on noisy sets


def deal_out(pick: Pick, pool: Pool, k: int, seed: int) -> Rows:
    """Let each twin in turn choose its share among the rows that are left.

    A twin only ever sees its own anchors, so each share has to cover the data by itself; a good set
    of ``k`` dealt out afterwards need not fall into good sets of ``k / twins``.

    Returns
    -------
    array of shape (k,)
        Twin ``t`` owns ``rows[t::twins]``.
    """
    rng = np.random.default_rng(seed)
    left = np.arange(len(pool))
    shares = []
    for _ in range(pool.twins):
        picked = pick(pool.x[left], pool.y[left], k // pool.twins, rng)
        shares.append(left[picked])
        left = np.delete(left, picked)
    return np.stack(shares, axis=1).ravel()


def random(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Any points."""
    return rng.permutation(len(y))[:k]


def medoids(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Points in the middle of clusters of ``x``."""
    return central_points(x, k, rng)


def xy(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Points in the middle of clusters of ``(x, 2 y)``.

    An anchor's noise goes into every prediction; one from the middle of a cluster in the target,
    too, has little of it.
    """
    return central_points(np.column_stack([x, _WEIGHT_OF_TARGET * y]), k, rng)


def stratified(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """One point from the middle of each of ``k`` equally full ranges of the target."""
    # Equal targets come in random order: in the order of the table they could all be alike.
    order = np.lexsort((rng.random(len(y)), y))
    return np.array([part[len(part) // 2] for part in np.array_split(order, k)], np.intp)


def farthest(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Points as far apart as can be: from the middle outwards, each farthest from those before."""
    rows = np.empty(k, np.intp)
    distance = -squared_distances(x, x.mean(axis=0))
    for place in range(k):
        rows[place] = row = int(np.argmax(distance))
        apart = squared_distances(x, x[row])
        distance = apart if place == 0 else np.minimum(distance, apart)
        distance[rows[: place + 1]] = -1.0  # below a copy of a chosen point, which is at 0
    return rows
