"""The ``.twin`` file of an export: plain rounding, and fine-tuning where that costs too much."""

from dataclasses import replace
from pathlib import Path

from twinedge.errors import InputError
from twinedge.learn.twin import TwinRegressor
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import Array
from twinedge.runtime.reference import evaluate
from twinedge_export.finetune import fine_tune
from twinedge_export.job import File, Job, Level
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
        models[made] = model
        return write_pack(
            quantise(
                model,
                job.rows,
                weights=weights,
                neighbors=job.neighbors,
                metadata=job.metadata,
            )
        )

    levels = []
    if not qat:
        levels.append(Level(weights, lambda: pack_of(weights, job.model)))
    if qat is not False:
        made = f"{weights}, fine-tuned"
        points = job.judge.validation
        levels.append(
            Level(
                made,
                lambda: pack_of(made, fine_tune(job.model, *points, weights=weights, seed=seed)),
            )
        )
    try:
        file = job.climb("twin", NAME, levels, load)
    except InputError as error:
        if weights == "int16" or "--tolerance" not in str(error):
            raise
        raise InputError(f"{error}; --weights int16 costs less") from error
    return file, replace(job, model=models[file.made])


def load(path: Path) -> Predict:
    """Predict with a pack, read back from its file."""
    pack = read_pack(path.read_bytes())

    def predict(x: Array) -> Array:
        return evaluate(pack, x).mean

    return predict
