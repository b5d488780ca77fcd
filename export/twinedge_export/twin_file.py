"""The .twin file: rounded, fine-tuned if that costs too much, calibrated, and identified."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from twinedge.errors import InputError, Parameter
from twinedge.estimators.difficulty import learn_difficulty
from twinedge.estimators.targets import anchors_of
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import Array, Pack, schema_of
from twinedge.pack.targets import joined
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.pack_calibration import calibrate_pack, with_common_levels
from twinedge.runtime.self_test import identified
from twinedge_export.files import File, Job, Make, RoundingError
from twinedge_export.fine_tune import fine_tune
from twinedge_export.quantise import quantise

NAME = "model.twin"


def twin_file(job: Job) -> tuple[File, Job]:
    """Write the pack; return it, and the job with the model that was accepted."""
    weights, qat, seed = job.settings.weights, job.settings.qat, job.settings.seed

    def packed(model: TwinRegressor) -> tuple[bytes, TwinRegressor]:
        if job.intervals:  # exported anchors are a subset, and layers may have changed
            model = with_difficulty(model, seed, job.rows)
        pack = quantise(
            model,
            job.rows,
            weights=weights,
            neighbors=job.neighbors,
            metadata=job.metadata,
            fill_values=job.fill_values,
            intervals=job.intervals,
        )
        pack = _calibrated(pack, job)
        if pack.intervals is not None:
            inputs = [one["name"] for one in job.metadata["features"]]
            names = model.target_names_ if model.targets_ > 1 else job.metadata["target"]
            pack = replace(pack, schema=schema_of(inputs, names))
        pack = identified(pack, parent=job.parent, counter=job.settings.counter)
        return write_pack(pack), model

    def fine_tuned() -> TwinRegressor:
        return fine_tune(
            job.model,
            *job.evaluator.points,
            sample_weight=job.evaluator.weights,
            weights=weights,
            refused=qat is None,  # as it comes after the pack of the model itself
            seed=seed,
            progress=job.progress,
        )

    levels: dict[str, Make] = {}
    if not qat:
        levels[weights] = lambda: packed(job.model)
    if qat is not False:
        levels[f"{weights}, fine-tuned"] = lambda: packed(fine_tuned())
    try:
        file, model = job.write("twin", NAME, levels, calibrated=True)
    except RoundingError as error:
        if weights == "int16":
            raise
        wider = Parameter("weights", "int16")
        raise RoundingError(*error.parts, "; ", wider, " costs less", cost=error.cost) from error
    return file, replace(job, model=model, pack=read_pack(file.path.read_bytes()))


def with_difficulty(model: TwinRegressor, seed: int, rows: Sequence[Array]) -> TwinRegressor:
    """Return a copy of a model whose second outputs were learnt for these anchors of each twin."""
    done = []
    for target, one in enumerate(model.of_each_target()):
        mine = rows
        if model.targets_ > 1:
            mine = [anchors_of(model, target, share) for share in rows]
        done.append(learn_difficulty(one, seed, mine))
    model = copy(model)
    model.difficulty_ = done[0] if model.targets_ == 1 else tuple(done)
    return model


def _calibrated(pack: Pack, job: Job) -> Pack:
    """Calibrate on points that were held out; without intervals if they do not suffice."""
    if pack.intervals is None:
        return pack
    each = zip(pack.singles, job.evaluator.singles, job.model.of_each_target(), strict=True)
    try:
        done = [
            calibrate_pack(
                single,
                *evaluator.points,
                sample_weight=evaluator.weights,
                groups=model.validation_groups_,
                beside=model.left_out_,
                unit=units_of_estimates(single)[1],
                chosen=model.left_out_ is None,
            )
            for single, evaluator, model in each
        ]
        return joined(with_common_levels(done) if pack.others else done)
    except InputError:
        return joined([_without_intervals(one) for one in pack.singles])


def _without_intervals(pack: Pack) -> Pack:
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in pack.twins)
    return replace(pack, twins=twins, intervals=None)
