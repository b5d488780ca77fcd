"""Files of an export: what each is for, and its first level of rounding within the tolerance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.anchors.rows import merge_twins
from twinedge.errors import Parameter, ParameterError
from twinedge.estimators.targets import anchors_of
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack import read_pack
from twinedge.pack.contents import Array, Pack
from twinedge.progress import Progress
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.loading import load
from twinedge.runtime.pack_calibration import calibration_of
from twinedge_export.deviations import Evaluator, Score
from twinedge_export.settings import ExportSettings
from twinedge_export.target_deviations import TargetsEvaluator

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


# Makes the content of a file, and returns it with the model that was rounded: a fine-tuned network
# is a different one, with a spread of its own.
Make = Callable[[], tuple[bytes, TwinRegressor]]


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
    evaluator : Evaluator
        The float model to compare with.
    settings : ExportSettings
        How to export it.
    folder : path
        Where the files go.
    metadata : dict
        Names and scores that travel with the files.
    progress : Progress
        Receives which file is being made.
    fill_values : array of shape (f,), optional
        Values for missing features.
    intervals : bool
        Whether files are to have intervals: if requested, and if the model can.
    parent : Pack, optional
        What the model replaces.
    pack : Pack, optional
        Content of the ``.twin`` file, once written.
    """

    model: TwinRegressor
    rows: tuple[Array, ...]
    neighbors: int
    evaluator: Evaluator | TargetsEvaluator
    settings: ExportSettings
    folder: Path
    metadata: dict[str, Any]
    progress: Progress
    fill_values: Array | None = None
    intervals: bool = True
    parent: Pack | None = None
    pack: Pack | None = None
    _spreads: dict[bytes, Array] = field(default_factory=dict)

    def write(
        self, kind: str, name: str, levels: dict[str, Make], *, calibrated: bool = False
    ) -> tuple[File, TwinRegressor]:
        """Write the first level within the tolerance, scored after loading it back.

        Parameters
        ----------
        kind, name : str
            Of the file.
        levels : dict of str to function
            From the smallest file to the most exact, by how numbers are stored.
        calibrated : bool
            Whether they are packs, whose intervals are calibrated on their own predictions. Then
            these hold, however far rounding has moved spread and scale: if that is all that is
            beyond the tolerance, the level that is closest is written.

        Returns
        -------
        file : File
        model : TwinRegressor
            The one that was rounded.

        Raises
        ------
        RoundingError
            If every level costs more; it names the file and the costs.
        """
        path, tolerance = self.folder / name, self.settings.tolerance
        scores: dict[str, Score] = {}
        honest = []
        for made, make in levels.items():
            self.progress.stage(name)
            content, model = make()
            path.write_bytes(content)
            scale = self._scale(model, read_pack(content)) if calibrated else None
            score = self.evaluator.score(load(path), self._spread(model), scale)
            file = File(kind, path, len(content), made, score)
            if score.tolerance <= tolerance:
                return file, model
            scores[made] = score
            if score.cost <= tolerance and scale is not None:
                honest.append((file, model, content))
        path.unlink()
        if honest:
            file, model, content = min(honest, key=lambda one: one[0].score.tolerance)
            path.write_bytes(content)
            return file, model
        costs = ", ".join(
            f"{one.describe_cost(tolerance)} ({made})" for made, one in scores.items()
        )
        raise RoundingError(
            f"{name}: rounding raises the {self.evaluator.name} error by {costs}, more than ",
            Parameter("tolerance", tolerance),
            " allows",
            cost=min(score.tolerance for score in scores.values()),
        )

    def _spread(self, model: TwinRegressor) -> Array:
        """Spread of a float model on the points scored on, with the exported anchors."""
        key = model.weights_.tobytes()
        if key not in self._spreads:
            nearest = self.neighbors or None
            X = self.evaluator.points[0]
            self._spreads[key] = model.spread(X, anchors=merge_twins(self.rows), neighbors=nearest)
        return self._spreads[key]

    def _scale(self, model: TwinRegressor, pack: Pack) -> Array | None:
        """Scale of a float model on the points scored on, by the calibration of its pack."""
        X, rows, nearest = self.evaluator.points[0], merge_twins(self.rows), self.neighbors or None
        found = []
        for target, (single, one) in enumerate(
            zip(pack.singles, model.of_each_target(), strict=True)
        ):
            calibration = calibration_of(single, units_of_estimates(single)[1])
            if calibration is None:
                return None
            mine = rows if model.targets_ == 1 else anchors_of(model, target, rows)
            mean, signals = one.signals(X, anchors=mine, neighbors=nearest)
            found.append(one.scaling_.deviation(mean, calibration.scale(signals)))
        return found[0] if len(found) == 1 else np.stack(found, axis=1)
