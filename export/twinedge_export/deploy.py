"""From a trained model to a folder of files that devices run, each checked on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from twinedge import defaults
from twinedge.anchors import METHODS, check_rows, choose, recommend, rows_from_file
from twinedge.anchors.choice import pool_of
from twinedge.anchors.rows import describe_limit, limit_count, per_twin, shareable
from twinedge.atomic_files import EXPORT, EarlierFiles, check_folder, write_folder
from twinedge.budget import Model, ann_bytes
from twinedge.errors import (
    InputError,
    MissingPackageError,
    Parameter,
    ParameterError,
)
from twinedge.estimators.twin import TwinRegressor
from twinedge.extras import lacking
from twinedge.pack.contents import Array
from twinedge.progress import Progress, progress_bar
from twinedge.provenance import DIGEST, TrainingRows
from twinedge.run_folder import Run, load_run
from twinedge.runtime.loading import pack_in
from twinedge.runtime.pack_device import read_pack_file
from twinedge.version import __version__
from twinedge_export.c_project import c_project
from twinedge_export.deviations import Evaluator
from twinedge_export.files import File, Job
from twinedge_export.pipelines import fold_estimator
from twinedge_export.settings import FORMATS, ExportSettings
from twinedge_export.target_deviations import TargetsEvaluator
from twinedge_export.twin_file import NAME, twin_file, with_difficulty

# What each format needs besides numpy and scikit-learn.
_NEEDS = {
    "twin": (),
    "tflite": ("tensorflow", "flatbuffers"),
    "onnx": ("onnx", "onnxruntime"),
    "c": (),
}
# What takes time, and about how many seconds for thousands of rows.
_SEARCHING, _CHOOSING = "Looking for the fewest anchors", "Choosing the anchors"
_MEASURING, _C = "Measuring the float model", "Writing the C project"
_SECONDS = {
    "twin": {NAME: 4.0},
    "tflite": {"model.tflite": 6.0, "model_twin.tflite": 4.0},
    "onnx": dict.fromkeys(
        ("model.onnx", "model_float.onnx", "model_twin.onnx", "model_float_twin.onnx"), 1.0
    ),
    "c": {_C: 0.5},
}
_SEED = 0  # for the trees that teach a network fine-tuned for its pack
_KEYS = {"validation": "rmse_val", "training": "rmse_train"}  # by the points scored on

Exportable: TypeAlias = TwinRegressor | Pipeline | TransformedTargetRegressor | Run | str | Path


@dataclass(frozen=True)
class Export:
    """What was written.

    Parameters
    ----------
    folder : path
        Where it was written.
    files : tuple of File
        Each with its size and its scores.
    rows : array of shape (k,)
        Training rows that are now anchors; twin ``t`` of ``twins`` owns ``rows[t::twins]``.
    select, method : str
        How to choose anchors, as requested, and the method used.
    evaluator : Evaluator
        Scores of the float model.
    ann_ensemble_bytes : int
        What as many ordinary networks as there are anchors would take, stored like a pack.
    requested : int or str
        Number of anchors requested.
    remarks : tuple of str
        What else to tell: that the model is no better than the mean of its training rows, that
        fewer anchors exist than were requested, or that no number tried is as good as all.
    placed : EarlierFiles
        What happened to files of an earlier export that were not simply replaced.
    """

    folder: Path
    files: tuple[File, ...]
    rows: Array
    select: str
    method: str
    evaluator: Evaluator | TargetsEvaluator
    ann_ensemble_bytes: int
    requested: int | str = "rows"
    remarks: tuple[str, ...] = ()
    placed: EarlierFiles = field(default_factory=EarlierFiles)

    def record(self) -> dict[str, Any]:
        """Everything a program may want to know, as JSON takes it."""
        evaluator = self.evaluator
        rmse = _KEYS[evaluator.name]
        tested = evaluator.all_anchors_test
        return {
            "anchors": len(self.rows),
            "anchors_asked": self.requested,
            "remarks": list(self.remarks),
            "select": self.select,
            "method": self.method,
            "judged_on": evaluator.name,
            f"float_{rmse}": evaluator.all_anchors.rmse,
            f"float_{rmse}_anchors": evaluator.all_anchors.sample,
            f"float_{rmse}_same_anchors": evaluator.exported_rmse,
            "float_rmse_test": tested and tested.rmse,
            "float_rmse_test_anchors": tested and tested.sample,
            "files": {
                file.kind: {
                    "path": str(self.folder / file.path.name),
                    "purpose": file.purpose,
                    "bytes": file.bytes,
                    **({"flash_bytes": file.flash_bytes} if file.kind == "c" else {}),
                    "made": file.made,
                    **{
                        rmse if key == "rmse" else key: one
                        for key, one in file.score._asdict().items()
                    },
                }
                for file in self.files
            },
            "ann_ensemble_bytes": self.ann_ensemble_bytes,
            **self.placed._asdict(),
        }


def export(
    model: Exportable,
    folder: str | Path = defaults.OUTPUT,
    *,
    anchors: int | str | Sequence[int] = defaults.ANCHORS,
    select: str = "auto",
    formats: Sequence[str] = FORMATS,
    weights: str = defaults.WEIGHTS,
    qat: bool | None = None,
    float_io: bool = False,
    single_file: bool = False,
    neighbors: int | None = None,
    tolerance: float = defaults.TOLERANCE,
    intervals: bool = True,
    parent: str | Path | None = None,
    counter: int | None = None,
    overwrite: bool = False,
    seed: int = 0,
    verbose: bool = False,
) -> Export:
    """Write the files of a model, replacing an earlier export.

    Only files that an export wrote and nobody has changed since are replaced. Files of an earlier
    export in ``formats`` that this one does not write stay, and are reported as stale.

    Parameters
    ----------
    model : TwinRegressor, Pipeline, TransformedTargetRegressor, Run or path
        A fitted model, a run, or the folder of one. A scikit-learn pipeline that ends in a twin is
        exported with its steps, if they scale, fill in or encode single columns; so is a
        TransformedTargetRegressor of numpy's log, log1p or sqrt. Of a search such as GridSearchCV,
        the best estimator is taken.
    folder : path
        Output folder.
    anchors : int, "fewest", "all" or sequence of int
        How many training points travel with all twins together (all, if there are fewer); "fewest"
        for as few as come within 1 % of all, as found by ``twinedge.anchors.recommend``; or rows of
        ``anchor_X_``.
    select : str
        How to choose them: a name in ``twinedge.anchors.METHODS``, "auto", or a file of row
        numbers, which overrides ``anchors``.
    formats : sequence of {"twin", "tflite", "onnx", "c"}
        What to write; always includes the ``.twin``, which holds the anchors of the others.
    weights : {"int8", "int16"}
        Kernels of the pack.
    qat : bool, optional
        Whether to fine-tune the networks to the rounding of their weights. By default only if
        rounding costs more than the tolerance.
    float_io : bool
        Write TFLite files with float inputs and outputs.
    single_file : bool
        Write the C runtime as one ``twin.c`` and one ``twin.h``.
    neighbors : int, optional
        How many nearest anchors of each twin predict, 0 for all; by default as in training.
    tolerance : float
        Fraction by which a file's validation error may exceed that of the float model with the same
        anchors (training error, if nothing was held out). Its spread may be off by 2.5 times this
        fraction; of a pack with intervals, the scale or the spread, and if no rounding gets there a
        remark says so, as its intervals are calibrated after the rounding.
    intervals : bool
        Write intervals, feature ranges and fill values, if the model has them; files are a little
        smaller without.
    parent : path, optional
        A pack that this model replaces: its id goes into the new one, so that it is known where it
        came from.
    counter : int, optional
        Of releases: devices may refuse packs with a lower counter than they had. By default that of
        the parent, or 0.
    overwrite : bool
        Also replace files in the folder that were changed since they were written, or that are in
        the way of new ones. All others stay.
    seed : int
        For the choice of anchors and the fine-tuning.
    verbose : bool
        Show progress on standard error.

    Raises
    ------
    InputError
        If a file would cost more than the tolerance, or files in the way were changed since or are
        not of an export; the folder is left as it was.

    Examples
    --------
    >>> import twinedge
    >>> done = twinedge.export(model, "out", anchors=32)  # doctest: +SKIP
    >>> done.files[0].path.name, done.files[0].bytes  # doctest: +SKIP
    ('model.twin', 20656)
    """
    settings = ExportSettings(
        anchors=anchors,
        select=select,
        formats=formats,
        weights=weights,
        qat=qat,
        float_io=float_io,
        single_file=single_file,
        neighbors=neighbors,
        tolerance=tolerance,
        intervals=intervals,
        parent=parent,
        counter=counter,
        overwrite=overwrite,
        seed=seed,
        verbose=verbose,
    )
    return write_export(model, folder, settings)


def write_export(model: Exportable, folder: str | Path, settings: ExportSettings) -> Export:
    """Write the files of a model as ``export`` does, by settings made before."""
    _check_installed(settings.formats)
    run, folder = _as_run(model), Path(folder)
    check_folder(folder, EXPORT, overwrite=settings.overwrite)
    parent = None if settings.parent is None else read_pack_file(pack_in(Path(settings.parent)))[0]
    with progress_bar(settings.verbose) as progress:
        progress.plan(_stages(run, settings))
        twin = run.model
        twins = len(twin.weights_)
        rows, method, remarks = _choose_anchors(run, settings, progress)
        for one in run.scores.get("targets", [run.scores]):
            if one.get("beats_mean") is False:
                words = one["verdict"]
                words = f"{one['target']}: {words}" if "target" in one else words
                remarks = (words, *remarks)
        if not len(run.validation[1]):
            remarks = (*remarks, "nothing was held out: errors are those of the training points")
        nearest = _neighbors(twin, settings.neighbors, len(rows) // twins)
        progress.stage(_MEASURING)
        of = Evaluator.of if twin.targets_ == 1 else TargetsEvaluator.of
        evaluator = of(
            twin, rows, nearest, run.validation, run.test, run.evaluation_weights, run.test_weights
        )
        done: list[Export] = []

        def write(beside: Path) -> dict[str, Any]:
            job = Job(
                twin,
                tuple(per_twin(rows, twins)),
                nearest,
                evaluator,
                settings,
                beside,
                _metadata(run, method),
                progress,
                run.fill_values,
                # Intervals need points to calibrate on that the training did not see.
                settings.intervals
                and all(one.calibration_ is not None for one in twin.of_each_target())
                and evaluator.name == "validation",
                parent=parent,
            )
            files, more = _files(job)
            ordinary = Model.of(
                twin.anchor_X_.shape[1],
                twin.architecture_.hidden,
                len(rows),
                twins=twins,
                activation=twin.activation_,
                weights=settings.weights,
            )
            done.append(
                Export(
                    folder,
                    files,
                    rows,
                    settings.select,
                    method,
                    evaluator,
                    ann_bytes(ordinary),
                    settings.requested_anchors,
                    (*remarks, *more),
                )
            )
            return done[0].record()

        placed = write_folder(folder, EXPORT, write, overwrite=settings.overwrite)
        files = tuple(file._replace(path=folder / file.path.name) for file in done[0].files)
        return replace(done[0], files=files, placed=placed)


def _files(job: Job) -> tuple[tuple[File, ...], tuple[str, ...]]:
    """Write all files; also return remarks."""
    original, formats = job.model, job.settings.formats
    pack, job = twin_file(job)
    remarks: tuple[str, ...] = ()
    if job.intervals and (job.pack is None or job.pack.intervals is None):
        remarks = ("no intervals: the validation points are too few or too alike for them",)
    if off := pack.score.describe_uncertainty(job.settings.tolerance):
        remarks += (f"rounding leaves {pack.path.name} {off}; intervals are calibrated on that",)
    files = [pack]
    # A graph cannot choose neighbors.
    shapes = {"_twin": "twin"} if job.neighbors else {"": "ensemble", "_twin": "twin"}
    if "tflite" in formats:
        from twinedge_export import tflite_file

        levels = tflite_file.FLOAT_IO if job.settings.float_io else tflite_file.LEVELS
        for kind, shape in shapes.items():
            name, make = f"model{kind}.tflite", tflite_file.tflite_model
            # Never fall back to floats silently: if every integer level costs too much, say so.
            files.append(_convert(job, f"tflite{kind}", name, make, shape, levels[:-1]))
    if "onnx" in formats:
        from twinedge_export.onnx_file import LEVELS, onnx_model

        floats = replace(job, model=_with_second_output(job, original))
        for kind, shape in shapes.items():
            name = f"model{kind}.onnx"
            files.append(_convert(job, f"onnx{kind}", name, onnx_model, shape, LEVELS[:-1]))
            kind, name = f"onnx_float{kind}", f"model_float{kind}.onnx"
            files.append(_convert(floats, kind, name, onnx_model, shape, LEVELS[-1:]))
    if "c" in formats:
        job.progress.stage(_C)
        files.append(c_project(job, pack))
    return tuple(files), remarks


def _convert(
    job: Job, kind: str, name: str, make: Callable[..., bytes], shape: str, levels: Sequence[str]
) -> File:
    """Write the model of a job in another format, at the first of these levels that will do."""
    metadata = {key: value for key, value in job.metadata.items() if key != DIGEST}

    def content(level: str) -> tuple[bytes, TwinRegressor]:
        about: dict[str, Any] = {"shape": shape, "metadata": metadata, "pack": job.pack}
        return make(job.model, job.rows, level=level, **about), job.model

    return job.write(kind, name, {level: partial(content, level) for level in levels})[0]


def _with_second_output(job: Job, original: TwinRegressor) -> TwinRegressor:
    """Give a model the second output of its pack, fitted for the exported anchors."""
    if job.pack is None or job.pack.intervals is None:
        return original
    if np.array_equal(original.weights_, job.model.weights_):
        return job.model
    return with_difficulty(original, _SEED, job.rows)


def _as_run(model: Any) -> Run:
    if isinstance(model, Run):
        return model
    model = fold_estimator(getattr(model, "best_estimator_", model))  # of a search
    if isinstance(model, TwinRegressor):
        if not hasattr(model, "weights_"):
            raise InputError("the model is not fitted")
        nothing = model.validation_[0][:0], model.validation_[1][:0]
        names = model.encoding_.inputs
        return Run(model, names, model.target_name_, model.validation_, nothing)
    if isinstance(model, str | Path):
        return load_run(Path(model))
    raise InputError(
        f"a {type(model).__name__} cannot be exported: take a fitted "
        "TwinRegressor, or a Pipeline or TransformedTargetRegressor that ends in one"
    )


def _stages(run: Run, settings: ExportSettings) -> dict[str, float]:
    """Return the expected seconds of each stage of an export."""
    many = min(1.0, len(run.model.anchor_y_) / 2000)
    fewest = {_SEARCHING: 30 * many} if isinstance(settings.anchors, str) else {}
    stages = {**fewest, _CHOOSING: 4 * many, _MEASURING: 2 * many}
    for name, seconds in _SECONDS.items():
        stages |= seconds if name in ("twin", *settings.formats) else {}
    return stages


def _check_installed(formats: Sequence[str]) -> None:
    """Refuse formats whose packages are missing, and name those that can be written."""
    errors = {name: lacking(*_NEEDS[name]) for name in formats}
    able = tuple(name for name, error in errors.items() if error is None)
    for error in errors.values():
        if error is not None:
            instead = (", or write the others: ", Parameter("formats", able)) if able else ()
            raise MissingPackageError(*error.parts, *instead)


def _choose_anchors(
    run: Run, settings: ExportSettings, progress: Progress
) -> tuple[Array, str, tuple[str, ...]]:
    """Choose the anchors; returns their rows ``(k,)``, the method, and remarks."""
    if run.model.targets_ > 1:
        model, complete = run.model.with_all_targets()
        if len(complete) < len(run.model.anchor_y_):
            if settings.requested_anchors == "rows":  # which are those of all training points
                return _named_rows(run.model, settings)
            rows, method, more = _choose_anchors(replace(run, model=model), settings, progress)
            return complete[rows], method, more
    model, select, seed = run.model, settings.select, settings.seed
    anchors: Any = settings.anchors
    X, y, twins = model.anchor_X_, model.anchor_y_, len(model.weights_)
    pool = pool_of(X, y, model, twins, seed)
    remarks: tuple[str, ...] = ()
    if settings.requested_anchors == "rows":
        return _named_rows(model, settings)
    if isinstance(anchors, str):
        if anchors == "all":
            rows = pool.eligible(twins, seed)
            if len(rows) < len(y):
                remarks = (f"{len(rows)} of {len(y)} training points stand for all, by weight",)
            # Twins share the anchors evenly, so a few may be left over.
            return rows[: shareable(len(rows), twins)], "all", remarks
        progress.stage(_SEARCHING)
        best = recommend(model, run.evaluation_points, select, seed=seed, verbose=True)
        if not best.within:
            remarks = (f"no number of anchors is within 1 % of all; the most, {best.k}, are taken",)
        if anchors == "auto":
            remarks += ("for the number of anchors, 'auto' is called 'fewest' now",)
        anchors, select = best.k, best.method
    elif (taken := limit_count(anchors, pool.worth, twins)) != anchors:
        weighted = model.sample_weights_ is not None
        remarks = (describe_limit(anchors, pool.worth, twins, weighted=weighted),)
        anchors = taken
    progress.stage(_CHOOSING)
    choice = choose(
        X, y, anchors, select, model=model, validation=run.evaluation_points, twins=twins, seed=seed
    )
    if METHODS[choice.method].needs_validation:
        held = len(run.validation[1]) > 0
        remarks += (
            f"{choice.method} looked at the {'validation' if held else 'training'} points, so "
            "errors there flatter its anchors" + held * "; 'twinedge anchors' scores it on others",
        )
    return choice.rows, choice.method, remarks


def _named_rows(
    model: TwinRegressor, settings: ExportSettings
) -> tuple[Array, str, tuple[str, ...]]:
    """Check anchors that were named row by row."""
    count, twins = len(model.anchor_y_), len(model.weights_)
    if settings.by_file:
        return check_rows(rows_from_file(settings.select), count, twins), settings.select, ()
    return check_rows(settings.anchors, count, twins), "rows", ()


def _neighbors(model: TwinRegressor, neighbors: int | None, anchors: int) -> int:
    """How many nearest anchors of each twin predict, 0 for all ``anchors`` it has."""
    near = bool(model.pairs == "neighbors")
    if neighbors is None:
        neighbors = int(model.neighbors) if near else 0
    if near and (not neighbors or neighbors >= anchors):
        raise ParameterError(
            f"the model was trained on near pairs only, and all {anchors} anchors of a twin would "
            "predict, far ones too: export more ",
            Parameter("anchors"),
            ", or predict with fewer ",
            Parameter("neighbors"),
        )
    return neighbors


def _targets(run: Run) -> dict[str, Any]:
    """Name of the target and its scores, or a list of those of each."""
    keys = (*_KEYS.values(), "rmse_test", "coverage_test")

    def of_one(name: str, scores: dict[str, Any]) -> dict[str, Any]:
        return {"target": name, "scores": {key: scores[key] for key in keys if key in scores}}

    if run.model.targets_ == 1:
        return of_one(run.target_name, run.scores)
    names = run.model.target_names_
    scores = run.scores.get("targets") or [{}] * len(names)
    return {"targets": [of_one(*one) for one in zip(names, scores, strict=True)]}


def _metadata(run: Run, method: str) -> dict[str, Any]:
    """Names, ranges and scores that travel with the files."""
    ranges = run.encoding.ranges(run.model.anchor_X_)
    return {
        "made_by": f"twinedge {__version__}",
        "features": [
            {"name": name, "min": float(low), "max": float(high)}
            for name, low, high in zip(run.feature_names, *ranges, strict=True)
        ],
        **({} if run.encoding.is_plain else {"columns": run.encoding.described}),
        **_targets(run),
        "trained_on": run.source,
        "select": method,
        DIGEST: TrainingRows.of(run.model.anchor_X_, run.model.anchor_y_, run.fill_values).record(),
    }
