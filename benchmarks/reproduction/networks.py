"""Cells with neural networks: ensembles of them, twins, their neighbors and multipliers.

The paper's figure of ensembles has four curves: one twin with several anchors, several ordinary
networks, several twins with all anchors, and several twins with one anchor each.

The rows are the paper's: 70 % to train, 10 % to choose settings and stop, 20 % to test.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.reproduction.cells import Cell
from benchmarks.reproduction.measures import ANCHORS, NEIGHBORS, sizes
from benchmarks.reproduction.pair_gain import pair_gain
from benchmarks.reproduction.published import HIDDEN, published_network, published_twin
from benchmarks.reproduction.rows import Points, split_points
from twinedge import data
from twinedge.errors import InputError
from twinedge.estimators import AnnRegressor, EnsembleRegressor, TwinRegressor
from twinedge.estimators.anchored import AnchoredRegressor
from twinedge.estimators.uncertainty import evaluate_uncertainty
from twinedge.scoring.scores import rmse
from twinedge.training.network import FloatArray
from twinedge.training.parameters import positive_integer, seed_of

_BLOCK = 1 << 24  # estimates held at a time: 128 MB


def ensemble_curves(
    twins: AnchoredRegressor | EnsembleRegressor,
    networks: EnsembleRegressor | None,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sizes: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    seed: int = 0,
) -> dict[str, FloatArray]:
    """Error of each kind of ensemble, for several sizes.

    Parameters
    ----------
    twins : TwinRegressor or EnsembleRegressor of these
        Fitted; ``TwinRegressor(twins=32)``, or an ensemble of 32 members.
    networks : EnsembleRegressor of AnnRegressor or None
        Fitted ordinary networks to compare with.
    X : array of shape (n, features)
        Points none of them was trained on.
    y : array of shape (n,)
        Their targets.
    sizes : sequence of int
        Numbers of members.
    seed : int
        Seed of the anchors, which differ for each point, as in the paper.

    Returns
    -------
    dict of array of shape (len(sizes),)
        Root mean square errors, NaN if there are fewer members. For each size n, ``anchors``: the
        first twin with n random anchors; ``twins``: n twins, each with all anchors;
        ``single_anchor``: n twins, each with one random anchor; ``networks``: n ordinary networks.
    """
    X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
    sizes = [positive_integer("sizes", size) for size in sizes]
    if not sizes or not len(X):
        raise InputError("sizes and points must not be empty")
    rng = np.random.default_rng(seed_of(seed))
    squares: dict[str, list[FloatArray]] = {"anchors": [], "twins": [], "single_anchor": []}
    start = 0
    for block in _estimates(twins, X):
        count, members, anchors = block.shape
        targets = y[start : start + count, None]
        start += count
        order = rng.permuted(np.broadcast_to(np.arange(anchors), (count, anchors)), axis=1)
        # Each twin gets a different one of the point's anchors, which are in random order.
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
        raise InputError("twins trained on neighbors have different anchors for each point")
    size = sum(one.estimates(X[:1], anchors="all").size for one in members)
    rows = max(1, _BLOCK // size)
    for start in range(0, len(X), rows):
        part = X[start : start + rows]
        found = [one.estimates(part, anchors="all") for one in members]
        shape = len(part), -1, len(members[0].anchor_y_)
        yield np.concatenate([one.reshape(shape) for one in found], axis=1)


def _means(estimates: FloatArray, sizes: list[int]) -> FloatArray:
    """Means ``(n, len(sizes))`` of the first estimates ``(n, members)`` of each point, by size."""
    means = np.full((len(estimates), len(sizes)), np.nan)
    for i, size in enumerate(sizes):
        if size <= estimates.shape[1]:
            means[:, i] = estimates[:, :size].mean(axis=1)
    return means


def networks(cell: Cell) -> dict[str, Any]:
    """Train an ensemble of ordinary networks."""
    train, validation, test = split_points(cell)
    members = _trained_networks(cell, train, validation, cell.setup.members)
    each = np.stack([member.predict(test[0]) for member in members])
    numbers = sizes(len(members))
    return {
        "sizes": numbers,
        "networks": [rmse(each[:size].mean(axis=0), test[1]) for size in numbers],
        **_chosen(members[0]),
    }


def twins(cell: Cell) -> dict[str, Any]:
    """Train an ensemble of twins, and evaluate it in every way that needs no more training."""
    train, validation, test = split_points(cell)
    model = _trained_twins(cell, train, validation, cell.setup.members)
    first = model.members_[0]
    numbers = sorted({*sizes(cell.setup.members), *ANCHORS})
    curves = ensemble_curves(model, None, *test, sizes=numbers)
    near = [rmse(first.predict(test[0], neighbors=k), test[1]) for k in NEIGHBORS]
    return {
        "sizes": numbers,
        **{
            name: [float(one) if np.isfinite(one) else None for one in curve]
            for name, curve in curves.items()
        },
        "all_anchors": rmse(first.predict(test[0]), test[1]),
        "ensemble": float(curves["twins"][numbers.index(cell.setup.members)]),
        "neighbours": NEIGHBORS,
        "nearest_anchors": near,
        **_chosen(first),
    }


def unsure_twin(cell: Cell) -> dict[str, Any]:
    """Train a twin, and score its measures of uncertainty."""
    train, validation, test = split_points(cell)
    (first,) = _trained_twins(cell, train, validation, 1).members_
    return {**evaluate_uncertainty(first, *test), **_chosen(first)}


def neighbour_twin(cell: Cell) -> dict[str, Any]:
    """Train and evaluate a twin only on pairs of neighbors."""
    return _one_twin(cell, pairs="neighbors", neighbors=cell.number)


def multiplied_twin(cell: Cell) -> dict[str, Any]:
    """Train a twin on ``cell.number`` partners of each point; all points are anchors, as usual.

    In the published code a list of partners has at least two entries.
    """
    assert cell.number is not None
    return _one_twin(cell, pairs=max(2 if cell.setup.protocol == "published" else 1, cell.number))


def timed_network(cell: Cell) -> dict[str, Any]:
    """Time an ordinary network."""
    return _timed(cell, lambda train, held: _trained_networks(cell, train, held, 1)[0])


def timed_twin(cell: Cell) -> dict[str, Any]:
    """Time a twin; if the cell has a number, one trained on that many neighbors."""
    near: dict[str, Any] = {}
    if cell.number is not None:
        near = {"pairs": "neighbors", "neighbors": cell.number}
    return _timed(
        cell, lambda train, held: _trained_twins(cell, train, held, 1, **near).members_[0]
    )


def _timed(cell: Cell, train_on: Callable[[Points, Points], Any]) -> dict[str, Any]:
    """Seconds to train, and to predict all test points."""
    train, validation, test = split_points(cell)
    start = time.perf_counter()
    model = train_on(train, validation)
    trained = time.perf_counter()
    error = rmse(model.predict(test[0]), test[1])
    predicted = time.perf_counter()
    return {"rmse": error, "training": trained - start, "predicting": predicted - trained}


def _one_twin(cell: Cell, **pairs: Any) -> dict[str, Any]:
    train, validation, test = split_points(cell)
    model = _trained_twins(cell, train, validation, 1, **pairs)
    return {"rmse": rmse(model.predict(test[0]), test[1]), **_chosen(model.members_[0])}


def _trained_networks(
    cell: Cell, train: Points, validation: Points, members: int
) -> list[AnnRegressor]:
    if cell.setup.trainer == "published":
        return [published_network(train, validation, seed) for seed in _seeds(cell)[:members]]
    base = AnnRegressor(hidden=HIDDEN, effort=cell.setup.effort, steps=cell.setup.steps)
    found: list[AnnRegressor] = _ensemble(base, cell, train, validation, members).members_
    return found


def _trained_twins(
    cell: Cell, train: Points, validation: Points, members: int, **pairs: Any
) -> EnsembleRegressor:
    if cell.setup.trainer == "published":
        model = EnsembleRegressor(TwinRegressor(intervals=False), members)
        seeds = _seeds(cell)[:members]
        model.members_ = [published_twin(train, validation, seed, **pairs) for seed in seeds]
        return model
    base = TwinRegressor(
        hidden=HIDDEN,
        effort=cell.setup.effort,
        steps=cell.setup.steps,
        intervals=False,
        **pairs,
    )
    return _ensemble(base, cell, train, validation, members)


def _ensemble(
    base: Any, cell: Cell, train: Points, validation: Points, members: int
) -> EnsembleRegressor:
    model = EnsembleRegressor(base, members, random_state=cell.split)
    return model.fit(*train, validation=validation)


def _seeds(cell: Cell) -> list[int]:
    return [1000 * cell.split + member for member in range(cell.setup.members)]


def _chosen(model: Any) -> dict[str, Any]:
    """Return the settings chosen on validation data; the published recipe has none."""
    names = ("activation", "learning_rate", "weight_decay", "steps")
    found = {name: getattr(model, f"{name}_", None) for name in names}
    return {"chosen": {name: value for name, value in found.items() if value is not None}}


def check(cell: Cell) -> dict[str, Any]:
    """Check whether a twin suits the data, by what it gains from more pairs."""
    table, split = data.load(cell.dataset), data.splits(cell.dataset, cell.split)
    rows = np.concatenate([split.train, split.val])
    found = pair_gain(table.X[rows], table.y[rows], effort=cell.setup.effort)
    few = found.multipliers[min(found.multipliers)].rmse
    return {
        "warns": float(not found.suits),
        **{name: rival.rmse / found.twin for name, rival in found.rivals.items()},
        "pairs": found.twin / few,
        "twin": found.twin,
        "reasons": found.reasons,
    }
