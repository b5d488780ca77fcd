"""The TFLite and ONNX files of an export: which there are, and how each is checked."""

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.learn.difficulty import learn_difficulty
from twinedge.learn.twin import TwinRegressor
from twinedge.runtime.loading import load
from twinedge_export import onnx_file, tflite
from twinedge_export.job import File, Job, Level
from twinedge_export.judge import Predict

FLOAT = "float32"
_SEED = 0  # of the trees that a network which was fine-tuned for its pack has learnt from


def tflite_files(job: Job, *, float_io: bool) -> list[File]:
    """Write the ensemble and the bare twin; ``float_io`` has them take and give floats."""
    levels = tflite.FLOAT_IO if float_io else tflite.LEVELS
    return [
        _file(job, f"tflite{kind}", f"model{kind}.tflite", tflite.tflite_model, shape, levels)
        for kind, shape in _shapes(job)
    ]


def onnx_files(job: Job, original: TwinRegressor) -> list[File]:
    """Write the ensemble and the bare twin, both rounded and, of the ``original``, as floats."""
    files, original = [], _with_second_output(job, original)
    for kind, shape in _shapes(job):
        make = onnx_file.onnx_model
        files.append(_file(job, f"onnx{kind}", f"model{kind}.onnx", make, shape, onnx_file.LEVELS))
        name = f"model_float{kind}.onnx"
        files.append(_file(job, f"onnx_float{kind}", name, make, shape, [FLOAT], original))
    return files


def _with_second_output(job: Job, original: TwinRegressor) -> TwinRegressor:
    """Give a model the second output that its pack has, which is of the anchors that travel."""
    if job.pack is None or job.pack.intervals is None:
        return original
    if np.array_equal(original.weights_, job.model.weights_):
        return job.model
    original = copy(original)
    original.difficulty_ = learn_difficulty(original, _SEED, job.rows)
    return original


def _shapes(job: Job) -> list[tuple[str, str]]:
    """List ending of the name and shape of each file; no graph can choose neighbours."""
    ensemble = [] if job.neighbors else [("", "ensemble")]
    return [*ensemble, ("_twin", "twin")]


def _file(
    job: Job,
    kind: str,
    name: str,
    make: Callable[..., bytes],
    shape: str,
    names: Sequence[str],
    model: TwinRegressor | None = None,
) -> File:
    settings: dict[str, Any] = {"shape": shape, "metadata": job.metadata, "pack": job.pack}

    def level(made: str) -> Level:
        return Level(made, lambda: make(model or job.model, job.rows, level=made, **settings))

    # Floats are no rounding: where every integer costs too much, a person should know.
    rounded = [made for made in names if made != FLOAT]
    return job.climb(kind, name, [level(made) for made in rounded or names], _load)


def _load(path: Path) -> Predict:
    predict: Predict = load(path).predict
    return predict
