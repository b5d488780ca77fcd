"""Error against size for the ensembles that twins can make: the four curves of the paper's figure.

One twin with several anchors, several ordinary networks, several twins with all anchors, and
several twins with one anchor each.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError
from twinedge.learn.anchored import AnchoredRegressor
from twinedge.learn.ensemble import EnsembleRegressor
from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import positive_integer, seed_of

_BLOCK = 1 << 24  # estimates alive at a time: 128 MB


def ensemble_curves(
    twins: AnchoredRegressor | EnsembleRegressor,
    networks: EnsembleRegressor | None,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sizes: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    random_state: Any = 0,
) -> dict[str, FloatArray]:
    """Error of each kind of ensemble, for several sizes of it.

    Parameters
    ----------
    twins : TwinRegressor or EnsembleRegressor of such
        Fitted; ``TwinRegressor(twins=32)``, or an ensemble of 32 members.
    networks : EnsembleRegressor of AnnRegressor or None
        Fitted ordinary networks to compare with.
    X : array of shape (n, features)
        Points none of them was trained on.
    y : array of shape (n,)
        Their targets.
    sizes : sequence of int
        Numbers of members.
    random_state : int, RandomState or None
        Draws anchors: others for each point, as the paper does it.

    Returns
    -------
    dict of array of shape (len(sizes),)
        Root mean square errors, NaN where there are not so many members. ``anchors``: the first
        twin with so many random anchors; ``twins``: so many twins, each with all anchors;
        ``single_anchor``: so many twins, each with one random anchor; ``networks``: so many
        ordinary networks.
    """
    X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
    sizes = [positive_integer("sizes", size) for size in sizes]
    if not sizes or not len(X):
        raise InputError("sizes and points must not be empty")
    rng = np.random.default_rng(seed_of(random_state))
    squares: dict[str, list[FloatArray]] = {"anchors": [], "twins": [], "single_anchor": []}
    start = 0
    for block in _estimates(twins, X):
        count, members, anchors = block.shape
        targets = y[start : start + count, None]
        start += count
        order = rng.permuted(np.broadcast_to(np.arange(anchors), (count, anchors)), axis=1)
        # Every twin with another of the point's anchors, which are in random order.
        each = np.arange(min(members, anchors))
        single = block[np.arange(count)[:, None], each, order[:, : len(each)]]
        for name, members_of in (
            ("anchors", np.take_along_axis(block[:, 0], order, axis=1)),
            ("twins", block.mean(axis=2)),
            ("single_anchor", single),
        ):
            squares[name].append(np.square(_means(members_of, sizes) - targets))
    if networks is not None:
        each = np.stack([member.predict(X) for member in networks.members_], axis=1)
        squares["networks"] = [np.square(_means(each, sizes) - y[:, None])]
    return {name: np.sqrt(np.concatenate(s).mean(axis=0)) for name, s in squares.items()}


def _estimates(twins: Any, X: FloatArray) -> Iterator[FloatArray]:
    """Blocks ``(rows, twins, anchors)`` of estimates."""
    members = twins.members_ if isinstance(twins, EnsembleRegressor) else [twins]
    if any(one.pairs == "neighbors" for one in members):
        raise InputError("twins trained on neighbors have other anchors for each point")
    size = sum(one.estimates(X[:1], anchors="all").size for one in members)
    rows = max(1, _BLOCK // size)
    for start in range(0, len(X), rows):
        part = X[start : start + rows]
        found = [one.estimates(part, anchors="all") for one in members]
        shape = len(part), -1, len(members[0].anchor_y_)
        yield np.concatenate([one.reshape(shape) for one in found], axis=1)


def _means(estimates: FloatArray, sizes: list[int]) -> FloatArray:
    """Mean of the first so many estimates ``(n, members)`` of each point, ``(n, len(sizes))``."""
    means = np.full((len(estimates), len(sizes)), np.nan)
    for i, size in enumerate(sizes):
        if size <= estimates.shape[1]:
            means[:, i] = estimates[:, :size].mean(axis=1)
    return means
