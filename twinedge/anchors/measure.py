"""Measuring every way to choose anchors, and recommending how many and which way."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from twinedge.anchors.auto import scorable
from twinedge.anchors.choice import at_most_all, pool_of
from twinedge.anchors.counts import AUTO, Point, Progress, curves, rmse, smallest_within
from twinedge.anchors.evidence import Evidence, Model, Validation
from twinedge.anchors.greedy import within_memory
from twinedge.errors import InputError

# Not recommended where there is something else: how few random points are enough is luck, and
# greedy ones leave a device too sure.
_BESIDE = ("greedy", "random")


class Recommendation(NamedTuple):
    """How many anchors to take, and which way to choose them.

    ``rmse_val`` is in units of the target, on points that had no say in the choice. ``within`` says
    whether it is as good as that of all anchors; where none of the numbers is, the largest of them
    is recommended.
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
        How many anchors there could be, and how many points the errors are of.
    tolerance : float
        Which part of ``rmse_all`` more is as good as it.
    winners : dict of int to str
        Which method "auto" comes to for each number of anchors, where it was measured.
    beyond : tuple of int
        Numbers that were asked for and are more than the training points: all of those were
        measured instead.
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
        """Return the fewest anchors of one method that are as good as all; None where none are."""
        theirs = [point for point in self.points if point.method == method]
        return smallest_within(theirs, self.rmse_all, self.tolerance)

    def recommended(self) -> Recommendation:
        """Return the fewest anchors that are as good as all, chosen as ``select`` would by itself.

        Where "auto" was not measured, the fewest of any method that was, greedy and random ones
        only where there are no others.
        """
        theirs = [point for point in self.points if point.method == AUTO]
        theirs = theirs or [point for point in self.points if point.method not in _BESIDE]
        theirs = theirs or list(self.points)
        best = smallest_within(theirs, self.rmse_all, self.tolerance)
        # A smaller number with a lower error, and larger ones above the line, would be luck.
        found = best or min(theirs, key=lambda point: (-point.k, point.rmse_val))
        method = self.winners[found.k] if found.method == AUTO else found.method
        return Recommendation(found.k, method, found.rmse_val, best is not None)


def measure(
    model: Model,
    validation: Validation,
    *,
    counts: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    tolerance: float = 0.01,
    progress: Progress = lambda method, done, total: None,
) -> Measurement:
    """Measure the validation error of a model with fewer and fewer anchors.

    Parameters
    ----------
    model : fitted TwinRegressor
        Its training points are what anchors are chosen from.
    validation : (X, y)
        Points that it was not trained on.
    counts : sequence of int, optional
        Numbers of anchors, as in ``curve``; more than the training points are all of those.
    methods : sequence of str, optional
        Names in ``METHODS``, or "auto"; by default "auto", what it compares, greedy and random.
    seed : int
        The same seed gives the same measurement.
    tolerance : float
        How much more than the error of all anchors is as good, as a part of it.
    progress : function
        Called with the name of a method before it is measured, how many are done, and how many
        there are.
    """
    X, y = model.anchor_X_, model.anchor_y_
    if not np.size(validation[1]):
        raise InputError("there are no validation points to measure on: train with some")
    evidence = Evidence.of(model, validation)
    pool = pool_of(X, y, model, evidence.twins, seed)
    # What greedy has no room for is always left out, of all methods: they are to be compared, and
    # what is recommended must not depend on which of them are measured.
    evidence = within_memory(evidence, len(pool), 1, seed)
    names = methods or (AUTO, *scorable(evidence), "random")
    beyond: list[int] = []
    if counts is not None:
        asked, counts = counts, [at_most_all(k, len(pool), evidence.twins) for k in counts]
        beyond = [k for k, taken in zip(asked, counts, strict=True) if k != taken]
    found = curves(pool, evidence, counts, names, seed, progress)
    everything = rmse(model, (evidence.X, evidence.y))
    sizes = len(pool), len(evidence)
    return Measurement(
        tuple(found.points), everything, *sizes, tolerance, found.winners, tuple(beyond)
    )


def recommend(
    model: Model, validation: Validation, method: str = AUTO, *, seed: int = 0
) -> Recommendation:
    """Recommend how many anchors to take, and which way to choose them.

    This is what ``twinedge anchors``, ``export`` and ``report`` go by.

    Parameters
    ----------
    model : fitted TwinRegressor
        Its training points are what anchors are chosen from.
    validation : (X, y)
        Points that it was not trained on.
    method : str
        A name in ``METHODS`` to have its anchors only.
    seed : int
        The same seed gives the same answer.
    """
    return measure(model, validation, methods=[method], seed=seed).recommended()
