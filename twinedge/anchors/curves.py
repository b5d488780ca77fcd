"""How the error falls with the number of anchors, and how many are enough."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.anchors.choice import (
    compared,
    evidence_of,
    held_out,
    pool_of,
    preferred,
    scorable,
)
from twinedge.anchors.methods import (
    FEWEST_TO_SCORE,
    MOST_CANDIDATES,
    Candidates,
    Differences,
    method_named,
    within_memory,
)
from twinedge.anchors.pool import Evidence, FittedModel, Pool, Validation
from twinedge.anchors.rows import FloatArray, check_count, limit_count, shareable
from twinedge.defaults import WITHIN
from twinedge.errors import InputError
from twinedge.progress import Progress, progress_bar

AUTO = "auto"

# More would save nothing: 32 are within 1 % of all on the paper's sets, and k-means with thousands
# of clusters takes longer than the training.
_MOST_BY_DEFAULT = 1024
# Up to this many points, all of them are measured as well: half may not do nearly as well.
_FEW = 64


class Point(NamedTuple):
    """Validation error of ``k`` anchors chosen by one method, in units of the target.

    That of several targets is their mean error, in standard deviations.
    """

    method: str
    k: int
    rmse_val: float


class Curves(NamedTuple):
    """Points by method and number of anchors, and the method that "auto" chose for each number."""

    points: list[Point]
    winners: dict[int, str]


def curve(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    model: FittedModel,
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
        The model to measure.
    validation : (X, y)
        Points that it was not trained on.
    counts : sequence of int, optional
        Numbers of anchors, multiples of ``twins``; by default ``twins`` times 1, 2, 4, 8, ... up to
        ``n``, at most 1024, plus all if the points are few.
    methods : sequence of str, optional
        Names in ``METHODS``, or "auto"; by default those that the validation data can compare.
    twins : int
        Number of networks in the model.
    seed : int
        The same seed gives the same points; a method chooses the same rows as in ``select``.

    Returns
    -------
    list of Point
        By method, then by ``k``. Choices that look at validation points ("greedy" and "auto") are
        scored on points they were not made on.
    """
    pool = pool_of(X, y, model, twins, seed)
    return curves(pool, evidence_of(model, validation), counts, methods, seed).points


def curves(
    pool: Pool,
    evidence: Evidence,
    counts: Sequence[int] | None,
    methods: Sequence[str] | None,
    seed: int,
    progress: Progress | None = None,
) -> Curves:
    """Measure as ``curve`` does, one method after another."""
    if counts is None:
        counts = _doubling(pool.twins, pool.worth)
    for k in counts:
        check_count(k, len(pool), pool.twins)
    numbers = sorted({int(k) for k in counts})
    names = list(dict.fromkeys(scorable(evidence) if methods is None else methods))
    if not numbers or not names:
        raise InputError("a curve of anchors needs at least one number and one method")
    candidates = compared(evidence) if AUTO in names else ()
    alone = list(dict.fromkeys([*candidates, *(name for name in names if name != AUTO)]))
    for name in alone:
        method_named(name, AUTO)
    if "greedy" in names and len(evidence) < FEWEST_TO_SCORE:
        raise InputError(f"greedy is scored on {FEWEST_TO_SCORE} validation points or more")
    errors: dict[str, dict[int, FloatArray]] = {}
    for done, name in enumerate(alone):
        if progress is not None:
            progress.at(name, done, len(alone))
        errors[name] = _squared_errors(pool, evidence, name, numbers, seed)
    winners = {}
    if candidates:
        folds = evidence.folds(seed)
        errors[AUTO] = {}
        for k in numbers:
            theirs = {name: errors[name][k] for name in candidates}
            winners[k] = preferred(theirs)
            errors[AUTO][k] = held_out(theirs, folds)
    points = [
        Point(name, k, float(np.sqrt(squares.mean())))
        for name in names
        for k, squares in errors[name].items()
    ]
    return Curves(points, winners)


def _squared_errors(
    pool: Pool, evidence: Evidence, name: str, numbers: list[int], seed: int
) -> dict[int, FloatArray]:
    """Squared errors ``(v,)`` of one method by number of anchors."""
    if name == "greedy":
        # Greedy looks at no more candidates than this; choosing more would take hours for little.
        few = [k for k in numbers if k <= MOST_CANDIDATES]
        if not few:
            return {}
        evidence = within_memory(evidence, len(pool), few[-1], seed)
        candidates = Candidates.of(pool, few[-1], seed, evidence)
        squares = candidates.held_out_errors(few, evidence.folds(seed))
        return dict(zip(few, squares, strict=True))
    if name == "match":
        differences = Differences.of(pool, numbers[-1], seed, evidence)
        rows = [differences.choose(k) for k in numbers]
    else:
        method = method_named(name)
        rows = [method.choose(pool, k, seed, None) for k in numbers]
    return dict(zip(numbers, evidence.squared_errors(rows), strict=True))


def smallest_within(
    points: Iterable[Point], rmse_all: float, tolerance: float = WITHIN
) -> Point | None:
    """Return the fewest anchors from which on the error stays close to that of all anchors.

    A number that does well by luck, while larger ones of the same method miss the tolerance, does
    not count.

    Parameters
    ----------
    points : iterable of Point
        As returned by ``curve``.
    rmse_all : float
        Validation error with all anchors: ``rmse(model, validation)``.
    tolerance : float
        How much more error is allowed, as a fraction of ``rmse_all``.

    Returns
    -------
    Point or None
        Of those with the fewest anchors, the one with the least error; None if none is close.
    """
    good: dict[str, Point] = {}
    lost = set()
    for point in sorted(points, key=lambda point: -point.k):
        if point.rmse_val > (1 + tolerance) * rmse_all:
            lost.add(point.method)
        elif point.method not in lost:
            good[point.method] = point
    return min(good.values(), key=lambda point: (point.k, point.rmse_val), default=None)


def rmse(model: FittedModel, validation: Validation, anchors: Any = "all") -> float:
    """Root mean square error of a model with these anchors, in units of the target."""
    return evidence_of(model, validation).rmse(anchors)


def _doubling(twins: int, points: int) -> list[int]:
    counts = []
    k = twins
    while k <= min(points, max(_MOST_BY_DEFAULT, twins)):
        counts.append(k)
        k *= 2
    if twins <= points <= _FEW:
        counts.append(shareable(points, twins))
    return counts


# Recommended only if nothing else was measured: how few random points are enough is luck, and
# greedy ones make a device overconfident.
_BESIDE = ("greedy", "random")


class Recommendation(NamedTuple):
    """How many anchors to use, and how to choose them.

    ``rmse_val`` is in units of the target, on points not used to choose. ``within`` says whether it
    is as good as that of all anchors; if no number of anchors is, the largest is recommended.
    """

    k: int
    method: str
    rmse_val: float
    within: bool


@dataclass(frozen=True)
class Measurement:
    """Validation error against the number of anchors.

    Parameters
    ----------
    points : tuple of Point
        By method, then by number of anchors.
    rmse_all : float
        Error of all anchors at the same validation points, in units of the target.
    training_points, validation_points : int
        How many anchors there could be (with weights, how many points of equal weight there are),
        and how many points the errors were measured on.
    tolerance : float
        How much more error counts as equally good, as a fraction of ``rmse_all``.
    winners : dict of int to str
        The method that "auto" chooses for each number of anchors, if it was measured.
    beyond : tuple of int
        Requested numbers that exceed the training points: all points were measured instead.
    """

    points: tuple[Point, ...]
    rmse_all: float
    training_points: int
    validation_points: int
    tolerance: float
    winners: dict[int, str] = field(default_factory=dict)
    beyond: tuple[int, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(point.method for point in self.points))

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of anchors, ascending."""
        return tuple(sorted({point.k for point in self.points}))

    def smallest(self, method: str) -> Point | None:
        """Return the fewest anchors of one method that are as good as all; None if none are."""
        theirs = [point for point in self.points if point.method == method]
        return smallest_within(theirs, self.rmse_all, self.tolerance)

    def recommended(self) -> Recommendation:
        """Return the fewest anchors that are as good as all, chosen as ``select`` does by default.

        If "auto" was not measured, the fewest of any method that was; greedy and random count only
        if there are no others.
        """
        theirs = [point for point in self.points if point.method == AUTO]
        theirs = theirs or [point for point in self.points if point.method not in _BESIDE]
        theirs = theirs or list(self.points)
        best = smallest_within(theirs, self.rmse_all, self.tolerance)
        # A smaller number that is within the tolerance while larger ones are not would be luck.
        found = best or min(theirs, key=lambda point: (-point.k, point.rmse_val))
        method = self.winners[found.k] if found.method == AUTO else found.method
        return Recommendation(found.k, method, found.rmse_val, best is not None)


def measure(
    model: FittedModel,
    validation: Validation,
    *,
    counts: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    tolerance: float = WITHIN,
    verbose: bool = False,
) -> Measurement:
    """Measure the validation error of a model with fewer and fewer anchors.

    Parameters
    ----------
    model : fitted TwinRegressor
        Anchors are chosen from its training points.
    validation : (X, y)
        Points that it was not trained on.
    counts : sequence of int, optional
        Numbers of anchors, as in ``curve``; a number above the training points means all of them.
    methods : sequence of str, optional
        Names in ``METHODS``, or "auto"; by default "auto", what it compares, greedy and random.
    seed : int
        The same seed gives the same measurement.
    tolerance : float
        How much more error counts as equally good, as a fraction of that of all anchors.
    verbose : bool
        Show progress on standard error.
    """
    if np.ndim(model.anchor_y_) == 2:
        model = model.with_all_targets()[0]
    X, y = model.anchor_X_, model.anchor_y_
    if not np.size(validation[1]):
        raise InputError("there are no validation points to measure on: train with some")
    evidence = evidence_of(model, validation)
    pool = pool_of(X, y, model, evidence.twins, seed)
    # Every method is measured on the points that greedy has memory for: they must be comparable,
    # and the recommendation must not depend on which of them are measured.
    evidence = within_memory(evidence, len(pool), 1, seed)
    names = methods or (AUTO, *scorable(evidence), "random")
    beyond: list[int] = []
    if counts is not None:
        requested, counts = counts, [limit_count(k, pool.worth, evidence.twins) for k in counts]
        beyond = [k for k, used in zip(requested, counts, strict=True) if k != used]
    with progress_bar(verbose) as progress:
        found = curves(pool, evidence, counts, names, seed, progress)
    everything = evidence.all_anchors().rmse
    sizes = pool.worth, len(evidence)
    return Measurement(
        tuple(found.points), everything, *sizes, tolerance, found.winners, tuple(beyond)
    )


def recommend(
    model: FittedModel,
    validation: Validation,
    method: str = AUTO,
    *,
    seed: int = 0,
    verbose: bool = False,
) -> Recommendation:
    """Recommend how many anchors to use, and how to choose them.

    ``twinedge anchors``, ``export`` and ``report`` follow this.

    Parameters
    ----------
    model : fitted TwinRegressor
        Anchors are chosen from its training points.
    validation : (X, y)
        Points that it was not trained on.
    method : str
        A name in ``METHODS``, to consider only that method; or "auto".
    seed : int
        The same seed gives the same answer.
    verbose : bool
        Show progress on standard error.
    """
    found = measure(model, validation, methods=[method], seed=seed, verbose=verbose)
    return found.recommended()
