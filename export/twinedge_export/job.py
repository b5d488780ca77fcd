"""What is to be exported, and how far each file is from its float model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.anchors.pool import AllAnchors, Evidence
from twinedge.anchors.rows import gather
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.progress import Progress
from twinedge.runtime.device import Device
from twinedge.scoring.scores import check_targets
from twinedge_export.folding import Inputs

Points = tuple[Array, Array]
Predict = Callable[[Array], tuple[Any, Any]]  # mean and spread (n,) of points (n, f)

_TINY = 1e-9  # of the target's deviation: a smaller error counts as none, and is no yardstick
# Fraction by which rounding may change the spread, in tolerances: 5 % by default. Where the error
# is well within tolerance, packs are off by up to 1.4 %, ONNX files by 3.2 %, TFLite files with
# float edges by 4.3 %; with int8 edges it was 12.6 %, and such a spread is not to be trusted.
SPREAD_TOLERANCES = 2.5
_TELLING = 0.1  # of the error: a smaller spread says nothing, and is no yardstick


class Score(NamedTuple):
    """Errors of a file, in units of the target.

    ``rmse`` is measured on the judge's points: validation points, or training points if nothing was
    held out. ``cost`` is the fraction by which it exceeds that of the float model with the same
    anchors, or would without luck: rounding that moves predictions independently of the error adds
    to it like independent noise. ``ratio_to_float`` compares with the float model with all anchors.
    ``spread_cost`` is the root mean square by which the spread differs from that of the unrounded
    networks with the same anchors, as a fraction of it.
    """

    rmse: float
    rmse_test: float | None
    ratio_to_float: float
    cost: float
    spread_cost: float
    largest_deviation: float

    @property
    def tolerance(self) -> float:
        """The least tolerance that lets the file through."""
        return max(self.cost, self.spread_cost / SPREAD_TOLERANCES)


@dataclass(frozen=True)
class Judge:
    """The float model as a yardstick.

    Parameters
    ----------
    name : {"validation", "training"}
        What the points are; "training" if nothing was held out.
    points, test : (X, y)
        Points to judge on, and points that training never saw; ``test`` may be empty.
    everyone, everyone_test : AllAnchors
        Errors of the float model with all anchors, even if it predicts with neighbors; None without
        test points.
    same_rmse : float
        Its error with the exported anchors.
    same : array of shape (v,)
        Its predictions with them.
    least : float
        A smaller error counts as this.
    weights, test_weights : array of shape (v,), (t,), or None
        How much each of the points counts in an error; None if all do alike.
    """

    name: str
    points: Points
    test: Points
    everyone: AllAnchors
    everyone_test: AllAnchors | None
    same_rmse: float
    same: Array
    least: float
    weights: Array | None = None
    test_weights: Array | None = None

    @classmethod
    def of(
        cls,
        model: TwinRegressor,
        rows: Array,
        neighbors: int,
        validation: Points | None,
        test: Points | None,
        weights: Array | None = None,
        test_weights: Array | None = None,
    ) -> "Judge":
        """Measure the float model with all anchors and with ``rows``.

        ``neighbors`` is how many nearest anchors of each twin predict, 0 for all. Without
        validation points the training points judge; ``weights`` are those of the points that do.
        """
        trained = model.anchor_X_, model.anchor_y_
        name, points = "training", trained
        if validation is not None and len(validation[0]):
            name, points = "validation", validation
        test = (trained[0][:0], trained[1][:0]) if test is None else test
        for X, y in (points, test):
            check_targets(y, len(X))
        # A wild value sends a float network along a straight line to anywhere, and a file clips it.
        inputs = Inputs.scaled(model)
        points, test = ((inputs.clipped(X), y) for X, y in (points, test))
        least = _TINY * float(model.scaling_.y_scale)
        nearest = neighbors or None

        def measured(points: Points, each: Array | None) -> tuple[Array, float, AllAnchors]:
            X, y = points
            same = model.predict(X, anchors=rows, neighbors=nearest)
            everyone = Evidence(model, X, y, weights=each).all_anchors(nearest)
            return same, scoring.rmse(same, y, each), everyone

        same, rmse, everyone = measured(points, weights)
        tested = measured(test, test_weights)[2] if len(test[1]) else None
        errors = everyone, tested, rmse, same, least
        return cls(name, points, test, *errors, weights, test_weights)

    def score(self, predict: Predict, unrounded: Array) -> Score:
        """Score a file.

        Parameters
        ----------
        predict : function
            From points ``(n, f)`` to the mean and the spread ``(n,)`` that the file predicts.
        unrounded : array of shape (v,)
            Spread of its networks before rounding, with the same anchors.
        """
        predicted, spread = (np.asarray(one, np.float64) for one in predict(self.points[0]))
        for one in (predicted, spread):
            if one.shape != self.same.shape or not np.isfinite(one).all():
                raise InputError("an exported file does not predict finite numbers")
        rmse = scoring.rmse(predicted, self.points[1], self.weights)
        yardstick = max(self.same_rmse, self.least)
        moved = scoring.rmse(predicted, self.same) / yardstick
        usual = max(scoring.rmse(unrounded), _TELLING * yardstick)
        test, y_test = self.test
        return Score(
            rmse,
            scoring.rmse(predict(test)[0], y_test, self.test_weights) if len(y_test) else None,
            rmse / max(self.everyone.rmse, self.least),
            max(rmse / yardstick, math.hypot(1, moved)) - 1,
            scoring.rmse(spread, unrounded) / usual,
            float(np.abs(predicted - self.same).max()),
        )


def mean_and_spread(device: Device) -> Predict:
    """Wrap a loaded file as a judge calls it."""

    def predict(x: Array) -> tuple[Any, Any]:
        said = device.predict_all(x)
        return said.mean, said.spread

    return predict


# What each file is for, by kind.
PURPOSES = {
    "twin": "Python, on a Raspberry Pi with numpy alone; twinedge firmware",
    "tflite": "TFLite or LiteRT: a point in, the prediction out; anchors inside",
    "tflite_twin": "the bare network in TFLite: one pair at a time, anchors from model.twin",
    "onnx": "ONNX Runtime: a point in, the prediction out; anchors inside",
    "onnx_float": "the same unrounded, to compare with",
    "onnx_twin": "the bare network in ONNX: one pair at a time, anchors from model.twin",
    "onnx_float_twin": "the same unrounded, to compare with",
    "c": "microcontrollers: a project for CMake, Arduino and PlatformIO",
}


class File(NamedTuple):
    """One file of an export, or the folder of the C project.

    ``kind`` is its key in ``--json``, ``made`` how its numbers are stored. ``bytes`` is its size on
    disk; ``flash_bytes``, for the C project, that of its runtime, its pack and a minimal program
    around them on a Cortex-M4.
    """

    kind: str
    path: Path
    bytes: int
    made: str
    score: Score
    flash_bytes: int | None = None

    @property
    def purpose(self) -> str:
        """What it is for, in a line."""
        return PURPOSES[self.kind]


class RoundingError(ParameterError):
    """Rounding costs more than the tolerance; ``cost`` is the least tolerance that would do."""

    def __init__(self, *parts: str | Parameter, cost: float) -> None:
        super().__init__(*parts)
        self.cost = cost


class Level(NamedTuple):
    """One way to make a file; ``made`` says which in a few words.

    ``model`` returns what was rounded, once it is made: a fine-tuned network is a different one
    with a spread of its own.
    """

    made: str
    make: Callable[[], bytes]
    model: Callable[[], TwinRegressor]


@dataclass(frozen=True)
class Job:
    """An export in progress.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; the model to round.
    rows : tuple of array
        Training rows that are the anchors of each twin.
    neighbors : int
        How many nearest anchors of each twin predict, 0 for all.
    judge : Judge
        The float model as a yardstick.
    tolerance : float
        Fraction by which rounding may raise the error on the judge's points; the spread may be off
        by 2.5 times that.
    folder : path
        Where the files go.
    metadata : dict
        Names and scores that travel with the files.
    progress : Progress
        Receives which file is being made.
    fill_values : array of shape (f,), optional
        Values for missing features.
    intervals : bool
        Whether files are to have intervals.
    pack : Pack, optional
        Content of the ``.twin`` file, once written.
    """

    model: TwinRegressor
    rows: tuple[Array, ...]
    neighbors: int
    judge: Judge
    tolerance: float
    folder: Path
    metadata: dict[str, Any]
    progress: Progress
    fill_values: Array | None = None
    intervals: bool = True
    pack: Pack | None = None
    _spreads: dict[bytes, Array] = field(default_factory=dict)

    def climb(
        self, kind: str, name: str, levels: Sequence[Level], load: Callable[[Path], Predict]
    ) -> File:
        """Write the first level within the tolerance, judged after loading it back.

        Parameters
        ----------
        kind, name : str
            Of the file.
        levels : sequence of Level
            From the smallest file to the most exact.
        load : function
            From a path to a function that returns mean and spread, by the runtime that will read
            the file.

        Raises
        ------
        RoundingError
            If every level costs more; it names the file and the costs.
        """
        path = self.folder / name
        scores = {}
        for level in levels:
            self.progress.stage(name)
            path.write_bytes(level.make())
            score = self.judge.score(load(path), self._spread(level.model()))
            if score.tolerance <= self.tolerance:
                return File(kind, path, path.stat().st_size, level.made, score)
            scores[level.made] = score
        path.unlink()
        told = ", ".join(_told(made, score, self.tolerance) for made, score in scores.items())
        raise RoundingError(
            f"{name}: rounding raises the {self.judge.name} error by {told}, more than ",
            Parameter("tolerance", self.tolerance),
            " allows",
            cost=min(score.tolerance for score in scores.values()),
        )

    def _spread(self, model: TwinRegressor) -> Array:
        """Spread of a float model on the judge's points, with the exported anchors."""
        key = model.weights_.tobytes()
        if key not in self._spreads:
            nearest = self.neighbors or None
            X = self.judge.points[0]
            self._spreads[key] = model.spread(X, anchors=gather(self.rows), neighbors=nearest)
        return self._spreads[key]


def _told(made: str, score: Score, tolerance: float) -> str:
    """Say what a level costs; the spread only if that is too much."""
    said = f"{100 * score.cost:.1f} %"
    if score.spread_cost > SPREAD_TOLERANCES * tolerance:
        said += f" and is {100 * score.spread_cost:.1f} % off in the spread"
    return f"{said} ({made})"
