"""The ``.twin`` file of an export: plain rounding, and fine-tuning where that costs too much."""

from copy import copy
from dataclasses import replace
from pathlib import Path

from twinedge.errors import InputError
from twinedge.learn.difficulty import learn_difficulty
from twinedge.learn.twin import TwinRegressor
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import Pack
from twinedge.runtime.calibrating import calibrate_pack
from twinedge.runtime.loading import load as open_file
from twinedge_export.finetune import fine_tune
from twinedge_export.job import File, Job, Level, RoundingError
from twinedge_export.judge import Predict
from twinedge_export.quantise import quantise

NAME = "model.twin"


def twin_file(job: Job, *, weights: str, qat: bool | None, seed: int) -> tuple[File, Job]:
    """Write the pack; returns it and the job with the model whose rounding was good enough.

    Parameters
    ----------
    job : Job
        What to export.
    weights : {"int8", "int16"}
        Type of the kernels.
    qat : bool or None
        Whether to fine-tune; None where plain rounding costs more than the tolerance.
    seed : int
        Of the fine-tuning.
    """
    models = {}

    def pack_of(made: str, model: TwinRegressor) -> bytes:
        if job.intervals:  # those that travel are not all anchors, and its layers may be others
            model = copy(model)
            model.difficulty_ = learn_difficulty(model, seed, job.rows)
        models[made] = model
        pack = quantise(
            model,
            job.rows,
            weights=weights,
            neighbors=job.neighbors,
            metadata=job.metadata,
            fill_values=job.fill_values,
            intervals=job.intervals,
        )
        return write_pack(_calibrated(pack, job))

    levels = []
    if not qat:
        levels.append(Level(weights, lambda: pack_of(weights, job.model)))
    if qat is not False:
        made = f"{weights}, fine-tuned"
        points = job.judge.points
        levels.append(
            Level(
                made,
                lambda: pack_of(made, fine_tune(job.model, *points, weights=weights, seed=seed)),
            )
        )
    try:
        file = job.climb("twin", NAME, levels, load)
    except RoundingError as error:
        if weights == "int16":
            raise
        raise RoundingError(f"{error}; --weights int16 costs less", error.cost) from error
    pack = read_pack(file.path.read_bytes())
    return file, replace(job, model=models[file.made], pack=pack)


def _calibrated(pack: Pack, job: Job) -> Pack:
    """Calibrate on the validation points; a pack that they cannot do that for goes without."""
    if pack.intervals is None:
        return pack
    try:
        return calibrate_pack(pack, *job.judge.points, chosen=True)
    except InputError as error:
        job.say(f"no intervals: {error}")
        twins = tuple(replace(twin, bias=0, difficulty=None) for twin in pack.twins)
        return replace(pack, twins=twins, intervals=None)


def load(path: Path) -> Predict:
    """Predict with a pack, read back from its file: in C, or with numpy, which gives the same."""
    predict: Predict = open_file(path).predict
    return predict
