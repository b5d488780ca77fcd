"""How the error falls with the number of anchors, and how many are enough."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.anchors.auto import scorable
from twinedge.anchors.choice import check_count, pool_of
from twinedge.anchors.evidence import Evidence, Model, Validation
from twinedge.anchors.greedy import FEWEST_TO_SCORE, MOST_CANDIDATES, Candidates, within_memory
from twinedge.anchors.matching import Differences
from twinedge.anchors.methods import method_named
from twinedge.anchors.pool import FloatArray
from twinedge.errors import InputError

# More than this is no saving: 32 are within 1 % of all on the paper's sets, and k-means with
# thousands of clusters takes longer than the training.
_MOST_BY_DEFAULT = 1024


class Point(NamedTuple):
    """Validation error of ``k`` anchors chosen by one method, in units of the target."""

    method: str
    k: int
    rmse_val: float


def curve(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    model: Model,
    validation: Validation,
    *,
    counts: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    twins: int = 1,
    seed: int = 0,
) -> list[Point]:
    """Measure the validation error against the number of anchors.

    Parameters
    ----------
    X, y : array of shape (n, f), (n,)
        ``anchor_X_`` and ``anchor_y_`` of the model.
    model : fitted TwinRegressor
        Its errors are reported.
    validation : (X, y)
        Points that it was not trained on.
    counts : sequence of int, optional
        Numbers of anchors, multiples of ``twins``; by default ``twins`` times 1, 2, 4, 8, ... up to
        ``n``, at most 1024.
    methods : sequence of str, optional
        Names in ``METHODS``; by default what "auto" compares.
    twins : int
        Networks of the model.
    seed : int
        The same seed gives the same points; a method chooses the rows that ``select`` gives.

    Returns
    -------
    list of Point
        By method, then by ``k``. Greedy choices are scored on points they were not made on.
    """
    pool = pool_of(X, y, model, twins, seed)
    evidence = Evidence.of(model, validation)
    if counts is None:
        counts = _doubling(twins, min(len(pool), max(_MOST_BY_DEFAULT, twins)))
    for k in counts:
        check_count(k, len(pool), twins)
    numbers = sorted({int(k) for k in counts})
    names = list(dict.fromkeys(scorable(evidence) if methods is None else methods))
    found = {name: method_named(name) for name in names}
    if not numbers or not names:
        raise InputError("a curve of anchors needs one number and one method at least")
    if "greedy" in names and len(evidence) < FEWEST_TO_SCORE:
        raise InputError(f"greedy is scored on {FEWEST_TO_SCORE} validation points or more")

    errors: dict[tuple[str, int], FloatArray] = {}
    # Of a larger pool greedy sees so many candidates; what it makes of more is not worth the hours.
    few = [k for k in numbers if k <= MOST_CANDIDATES]
    if "greedy" in names and few:
        evidence = within_memory(evidence, len(pool), few[-1], seed)
        candidates = Candidates.of(pool, few[-1], seed, evidence)
        held_out = candidates.held_out_errors(few, seed)
        errors |= {("greedy", k): squares for k, squares in zip(few, held_out, strict=True)}
    blind = {
        (name, k): method.choose(pool, k, seed, None)
        for name, method in found.items()
        if not method.asks
        for k in numbers
    }
    if "match" in names:
        differences = Differences.of(pool, numbers[-1], seed, evidence)
        blind |= {("match", k): differences.choose(k) for k in numbers}
    if blind:
        squared = evidence.squared_errors(list(blind.values()))
        errors |= dict(zip(blind, squared, strict=True))
    return [
        Point(name, k, float(np.sqrt(errors[name, k].mean())))
        for name in names
        for k in numbers
        if (name, k) in errors
    ]


def smallest_within(
    points: Iterable[Point], rmse_all: float, tolerance: float = 0.01
) -> Point | None:
    """Return the fewest anchors from which on the error is that of all anchors or hardly more.

    A number that does well by luck, with larger ones of the same method above the line, does not
    count.

    Parameters
    ----------
    points : iterable of Point
        As ``curve`` gives them.
    rmse_all : float
        Validation error with all anchors: ``rmse(model, validation)``.
    tolerance : float
        How much more is allowed, as a part of it.

    Returns
    -------
    Point or None
        Of those with the fewest anchors the one with the least error; None where none is so good.
    """
    good: dict[str, Point] = {}
    lost = set()
    for point in sorted(points, key=lambda point: -point.k):
        if point.rmse_val > (1 + tolerance) * rmse_all:
            lost.add(point.method)
        elif point.method not in lost:
            good[point.method] = point
    return min(good.values(), key=lambda point: (point.k, point.rmse_val), default=None)


def rmse(model: Model, validation: Validation, anchors: Any = "all") -> float:
    """Root mean square error of a model with these anchors, in units of the target."""
    evidence = Evidence.of(model, validation)
    residual = evidence.model.predict(evidence.X, anchors=anchors) - evidence.y
    return float(np.sqrt(np.mean(np.square(residual))))


def _doubling(twins: int, most: int) -> list[int]:
    counts = []
    k = twins
    while k <= most:
        counts.append(k)
        k *= 2
    return counts
