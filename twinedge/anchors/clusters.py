"""Points that stand for the rest: one from the middle of each cluster."""

import warnings
from functools import lru_cache

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from twinedge.anchors.pool import FloatArray, Rows, squared_distances

# Distances per pass above which k-means takes seconds. So many clusters are small ones: where they
# start and whether the last of them settles hardly changes which points they stand for.
_LARGE = 2_000_000


def central_points(points: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Rows of ``k`` points, each the one nearest to the centre of a k-means cluster.

    Parameters
    ----------
    points : array of shape (n, d)
        On one scale; some may be equal.
    k : int
        At most ``n``.
    rng : Generator
        Where k-means starts.

    Returns
    -------
    array of shape (k,)
        Distinct rows, also where there are fewer than ``k`` distinct points.
    """
    # Equal points cannot be told apart by distance, so k-means sees each once, with a weight.
    first, group, copies = _distinct(points)
    if k >= len(first):
        return _copy_by_copy(group, copies, k, rng)
    labels, distance = _clusters(points[first], copies, k, rng)
    nearest_first = np.lexsort((distance, labels))
    _, starts = np.unique(labels[nearest_first], return_index=True)
    chosen = nearest_first[starts]
    if len(chosen) < k:
        # Points closer together than rounding can leave a cluster empty: take those that are
        # farthest from the point that stands for them instead.
        others = np.setdiff1d(np.arange(len(first)), chosen)
        order = np.argsort(-distance[others], kind="stable")
        chosen = np.concatenate([chosen, others[order[: k - len(chosen)]]])
    return first[chosen]


def _distinct(points: FloatArray) -> tuple[Rows, Rows, Rows]:
    """First row of each distinct point, which of them each row is, and how often each occurs.

    In the order of the rows, not sorted by value: the choice must not depend on which feature
    happens to be the first column, or on its sign.
    """
    _, first, group, copies = np.unique(
        points, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group.reshape(-1)], copies[order]  # numpy 2.0: group is (n, 1)


def _copy_by_copy(group: Rows, copies: Rows, k: int, rng: np.random.Generator) -> Rows:
    """Rows of every distinct point once, then of every one that has a copy once more, ..."""
    order = np.lexsort((rng.random(len(group)), group))
    starts = np.cumsum(copies) - copies
    copy = np.empty(len(group), np.intp)
    copy[order] = np.arange(len(group)) - np.repeat(starts, copies)
    return np.lexsort((rng.random(len(group)), copy))[:k]


def _clusters(
    points: FloatArray, weights: Rows, k: int, rng: np.random.Generator
) -> tuple[Rows, FloatArray]:
    """Cluster of each point ``(n,)``, and its squared distance from the centre ``(n,)``."""
    large = k * len(points) > _LARGE
    search = KMeans(
        k,
        init="random" if large else "k-means++",
        n_init=1 if large else 4,
        max_iter=20 if large else 100,
        random_state=int(rng.integers(2**31)),
    )
    # Threads add up the centres in the order they finish, and the last bit of a sum can decide
    # which of two points is nearer: the same seed would give other anchors on other machines.
    with _threads().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: Rows = search.fit(points, sample_weight=weights).labels_.astype(np.intp)
    return labels, squared_distances(points, search.cluster_centers_[labels])


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, so once
