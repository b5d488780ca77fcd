"""What is to be exported: a model, the anchors that travel with it, and how it will be judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from twinedge.errors import InputError
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge_export.judge import Judge, Predict, Score

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


class RoundingError(InputError):
    """Rounding costs more than the tolerance; ``cost`` is the least part that it adds."""

    def __init__(self, words: str, cost: float) -> None:
        super().__init__(words)
        self.cost = cost


class Level(NamedTuple):
    """One way to make a file; ``made`` says which in a few words."""

    made: str
    make: Callable[[], bytes]


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
        By which part rounding may raise the error on the points of the judge.
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
            From a path to a function that predicts, by the runtime that will read the file.

        Raises
        ------
        RoundingError
            Where every level costs more; it names the file and what it cost.
        """
        path = self.folder / name
        costs = {}
        for level in levels:
            self.say(f"{name}: {level.made}")
            path.write_bytes(level.make())
            score = self.judge.score(load(path))
            if score.cost <= self.tolerance:
                return File(kind, path, path.stat().st_size, level.made, score)
            costs[level.made] = score.cost
        path.unlink()
        told = ", ".join(f"{100 * cost:.1f} % ({made})" for made, cost in costs.items())
        raise RoundingError(
            f"{name}: rounding raises the {self.judge.name} error by {told}, more than "
            f"--tolerance {self.tolerance:g} allows",
            min(costs.values()),
        )
