"""Measuring every way to choose anchors, one after the other, for a person to compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from twinedge.anchors.auto import scorable
from twinedge.anchors.counts import Point, curve, rmse, smallest_within
from twinedge.anchors.evidence import Evidence, Model, Validation
from twinedge.anchors.greedy import within_memory
from twinedge.errors import InputError

Progress = Callable[[str, int, int], None]


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
    """

    points: tuple[Point, ...]
    rmse_all: float
    training_points: int
    validation_points: int
    tolerance: float

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(point.method for point in self.points))

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of anchors, ascending."""
        return tuple(sorted({point.k for point in self.points}))

    def smallest(self, method: str | None = None) -> Point | None:
        """Return the fewest anchors that are as good as all; None where none are.

        Of all methods, random points do not count where there are others: how few of them are
        enough is luck.
        """
        if method is not None:
            theirs = [point for point in self.points if point.method == method]
        else:
            theirs = [point for point in self.points if point.method != "random"]
        return smallest_within(theirs or self.points, self.rmse_all, self.tolerance)


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
        Numbers of anchors, as in ``curve``.
    methods : sequence of str, optional
        Names in ``METHODS``; by default what "auto" compares, and random ones beside them.
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
    names = tuple(dict.fromkeys(methods or (*scorable(evidence), "random")))
    if "greedy" in names:
        # What has no room for greedy is left out for the others, too: they are to be compared.
        evidence = within_memory(evidence, len(y), 1, seed)
    points: list[Point] = []
    for done, name in enumerate(names):
        progress(name, done, len(names))
        points += curve(
            X,
            y,
            model,
            (evidence.X, evidence.y),
            counts=counts,
            methods=[name],
            twins=evidence.twins,
            seed=seed,
        )
    everything = rmse(model, (evidence.X, evidence.y))
    return Measurement(tuple(points), everything, len(y), len(evidence), tolerance)
