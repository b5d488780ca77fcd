"""What is to be exported, and how far each file is from the float model it was made of."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge import scoring
from twinedge.dealing import gather
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.device import Device
from twinedge.scoring import check_targets

Points = tuple[Array, Array]
Predict = Callable[[Array], tuple[Any, Any]]  # mean and spread (n,) of points (n, f)

_TINY = 1e-9  # of the target's deviation: a smaller error is none, and no yardstick
# Multiply-adds that the float model may take with all anchors, some twenty seconds of a core: for
# 50,000 anchors of a network of 128-128, 145 points. So many points it is given in any case.
_MOST_WORK = 1 << 38
_FEWEST_POINTS = 100
# By which part rounding may change the spread, in tolerances: 5 % by default. Where the error is
# well within them, packs are off by up to 1.4 %, ONNX files by 3.2 %, TFLite files with float edges
# by 4.3 %; with int8 edges it was 12.6 %, and such a spread is not to be trusted.
SPREAD_TOLERANCES = 2.5
_TELLING = 0.1  # of the error: a spread below that says nothing, and is no yardstick


class Score(NamedTuple):
    """Errors of a file, in units of the target.

    ``rmse`` is that on the points of the judge: validation points, or training points where nothing
    was held out. ``cost`` is by which part it exceeds that of the float model with the same
    anchors, or will where it is not as lucky as here: rounding that moves the predictions without
    regard to the error adds to it as independent noise does. ``ratio_to_float`` compares with the
    float model with all anchors. ``spread_cost`` is the root mean square by which the spread is off
    that of the networks unrounded with the same anchors, as a part of it.
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


class Everyone(NamedTuple):
    """Error of the float model with all anchors, whatever it predicts with otherwise.

    Thousands of anchors take too long for thousands of points: then the error is that of the
    anchors that travel, on all ``points``, times the ratio of the two on ``compared`` of them.
    """

    rmse: float
    compared: int
    points: int


@dataclass(frozen=True)
class Judge:
    """The float model as a yardstick.

    Parameters
    ----------
    name : {"validation", "training"}
        What the points are; the latter where nothing was held out.
    points, test : (X, y)
        Points to judge on, and points the model never saw; ``test`` may be empty.
    anchors : int
        Training points: all of them.
    everyone, everyone_test : Everyone
        Errors of the float model with all anchors; the latter None without test points.
    same_rmse : float
        Its error with the anchors that travel.
    same : array of shape (v,)
        Its predictions with them.
    least : float
        A smaller error counts as this.
    """

    name: str
    points: Points
    test: Points
    anchors: int
    everyone: Everyone
    everyone_test: Everyone | None
    same_rmse: float
    same: Array
    least: float

    @classmethod
    def of(
        cls,
        model: TwinRegressor,
        rows: Array,
        neighbors: int,
        validation: Points | None,
        test: Points | None,
    ) -> "Judge":
        """Measure the float model with all anchors and with ``rows``.

        ``neighbors`` is how many nearest anchors of each twin predict, 0 for all. Without
        validation points the training points judge.
        """
        trained = model.anchor_X_, model.anchor_y_
        name, points = "training", trained
        if validation is not None and len(validation[0]):
            name, points = "validation", validation
        test = (trained[0][:0], trained[1][:0]) if test is None else test
        for X, y in (points, test):
            check_targets(y, len(X))
        least = _TINY * float(model.scaling_.y_scale)
        nearest = neighbors or None

        def measured(points: Points) -> tuple[Array, float, Everyone]:
            X, y = points
            same = model.predict(X, anchors=rows, neighbors=nearest)
            some = slice(None) if nearest else _affordable(model, len(y))
            everyone = scoring.rmse(
                model.predict(X[some], anchors="all", neighbors=nearest), y[some]
            )
            rmse, compared = scoring.rmse(same, y), len(y[some])
            if compared < len(y):
                everyone *= max(rmse, least) / max(scoring.rmse(same[some], y[some]), least)
            return same, rmse, Everyone(everyone, compared, len(y))

        same, rmse, everyone = measured(points)
        tested = measured(test)[2] if len(test[1]) else None
        return cls(name, points, test, len(trained[1]), everyone, tested, rmse, same, least)

    @property
    def with_all_anchors(self) -> str:
        """How the error with all anchors was found, in words that follow it."""
        _, compared, points = self.everyone
        if compared == points:
            return "with all anchors"
        return f"with all {self.anchors:,} anchors, by {compared:,} of {points:,} points"

    def score(self, predict: Predict, unrounded: Array) -> Score:
        """Score a file.

        Parameters
        ----------
        predict : function
            From points ``(n, f)`` to the mean and the spread ``(n,)`` that the file gives.
        unrounded : array of shape (v,)
            Spread of its networks before they were rounded, with the same anchors.
        """
        predicted, spread = (np.asarray(one, np.float64) for one in predict(self.points[0]))
        for one in (predicted, spread):
            if one.shape != self.same.shape or not np.isfinite(one).all():
                raise InputError("an exported file predicts what is not a number")
        rmse = scoring.rmse(predicted, self.points[1])
        yardstick = max(self.same_rmse, self.least)
        moved = scoring.rmse(predicted, self.same) / yardstick
        usual = max(scoring.rmse(unrounded), _TELLING * yardstick)
        return Score(
            rmse,
            scoring.rmse(predict(self.test[0])[0], self.test[1]) if len(self.test[1]) else None,
            rmse / max(self.everyone.rmse, self.least),
            max(rmse / yardstick, math.hypot(1, moved)) - 1,
            scoring.rmse(spread, unrounded) / usual,
            float(np.abs(predicted - self.same).max()),
        )


def _affordable(model: TwinRegressor, points: int) -> Array | slice:
    """Choose points, evenly among so many, that all anchors can be asked about in seconds."""
    each = 2 * len(model.anchor_y_) * model.weights_.size  # both orders of a pair
    most = max(_FEWEST_POINTS, _MOST_WORK // each)
    if points <= most:
        return slice(None)
    return np.linspace(0, points - 1, most).astype(np.intp)


def mean_and_spread(device: Device) -> Predict:
    """Return what a judge asks of a loaded file."""

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

    ``kind`` is the key it has in ``--json``, ``made`` how its numbers are stored. ``bytes`` are
    those on disk; ``flash_bytes``, of the C project, those of its runtime, its pack and the least
    program around them on a Cortex-M4.
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
    """Rounding costs more than the tolerance; ``cost`` is the least part that it adds."""

    def __init__(self, *parts: str | Parameter, cost: float) -> None:
        super().__init__(*parts)
        self.cost = cost


class Level(NamedTuple):
    """One way to make a file; ``made`` says which in a few words.

    ``model`` gives what was rounded, once it is made: a network that was fine-tuned is another one
    and has a spread of its own.
    """

    made: str
    make: Callable[[], bytes]
    model: Callable[[], TwinRegressor]


@dataclass(frozen=True)
class Job:
    """An export on its way.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; what is rounded.
    rows : tuple of array
        Training rows that are the anchors of each twin.
    neighbors : int
        How many nearest anchors of each twin predict, 0 for all.
    judge : Judge
        The float model as a yardstick.
    tolerance : float
        By which part rounding may raise the error on the points of the judge; the spread may be
        off by 2.5 times that.
    folder : path
        Where the files go.
    metadata : dict
        Names and scores that travel with the files.
    say : function
        Tells a person what is being done.
    fill_values : array of shape (f,), optional
        What stands for missing features.
    intervals : bool
        Whether files are to have intervals.
    pack : Pack, optional
        What the ``.twin`` file holds, once it is written.
    """

    model: TwinRegressor
    rows: tuple[Array, ...]
    neighbors: int
    judge: Judge
    tolerance: float
    folder: Path
    metadata: dict[str, Any]
    say: Callable[[str], None]
    fill_values: Array | None = None
    intervals: bool = True
    pack: Pack | None = None
    _spreads: dict[bytes, Array] = field(default_factory=dict)

    def climb(
        self, kind: str, name: str, levels: Sequence[Level], load: Callable[[Path], Predict]
    ) -> File:
        """Write the first level that costs no more than the tolerance, judged as it is loaded back.

        Parameters
        ----------
        kind, name : str
            Of the file.
        levels : sequence of Level
            From the smallest file to the most exact.
        load : function
            From a path to a function that gives mean and spread, by the runtime that will read the
            file.

        Raises
        ------
        RoundingError
            Where every level costs more; it names the file and what it cost.
        """
        path = self.folder / name
        scores = {}
        for level in levels:
            self.say(f"{name}: {level.made}")
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
        """Spread of a float model on the judge's points, with the anchors that travel."""
        key = model.weights_.tobytes()
        if key not in self._spreads:
            nearest = self.neighbors or None
            X = self.judge.points[0]
            self._spreads[key] = model.spread(X, anchors=gather(self.rows), neighbors=nearest)
        return self._spreads[key]


def _told(made: str, score: Score, tolerance: float) -> str:
    """Say what a level costs, of the spread only where that is too much."""
    said = f"{100 * score.cost:.1f} %"
    if score.spread_cost > SPREAD_TOLERANCES * tolerance:
        said += f" and is {100 * score.spread_cost:.1f} % off in the spread"
    return f"{said} ({made})"
