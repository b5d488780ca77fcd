"""From a trained model to a folder of files that devices run, each checked on the way."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from twinedge import defaults
from twinedge.anchors import METHODS, check_rows, choose, recommend, rows_from_file
from twinedge.anchors.choice import at_most_all, pool_of, too_many
from twinedge.anchors.rows import deal_out
from twinedge.atomic_files import EXPORT, Placed, check_folder, place_folder
from twinedge.budget import Model, ann_bytes
from twinedge.errors import (
    InputError,
    MissingPackageError,
    Parameter,
    ParameterError,
    wrong_value,
)
from twinedge.estimators.twin import TwinRegressor
from twinedge.estimators.uncertainty import learn_difficulty
from twinedge.extras import lacking
from twinedge.pack.contents import Array
from twinedge.progress import Progress, progress_bar
from twinedge.provenance import DIGEST, TrainingRows
from twinedge.run_folder import Run, load_run
from twinedge.runtime.loading import load
from twinedge.version import __version__
from twinedge_export.c_project import c_project
from twinedge_export.job import File, Job, Judge, Level, Predict, mean_and_spread
from twinedge_export.pipelines import fold_pipeline
from twinedge_export.quantise import NAME, twin_file

FLOAT = "float32"
_SEED = 0  # for the trees that teach a network fine-tuned for its pack


def tflite_files(job: Job, *, float_io: bool) -> list[File]:
    """Write the ensemble and the bare twin; ``float_io`` makes inputs and outputs floats."""
    from twinedge_export import tflite_file

    levels = tflite_file.FLOAT_IO if float_io else tflite_file.LEVELS
    return [
        _file(job, f"tflite{kind}", f"model{kind}.tflite", tflite_file.tflite_model, shape, levels)
        for kind, shape in _shapes(job)
    ]


def onnx_files(job: Job, original: TwinRegressor) -> list[File]:
    """Write the ensemble and the bare twin, rounded, and the ``original`` as floats."""
    from twinedge_export import onnx_file

    files, original = [], _with_second_output(job, original)
    for kind, shape in _shapes(job):
        make = onnx_file.onnx_model
        files.append(_file(job, f"onnx{kind}", f"model{kind}.onnx", make, shape, onnx_file.LEVELS))
        name = f"model_float{kind}.onnx"
        files.append(_file(job, f"onnx_float{kind}", name, make, shape, [FLOAT], original))
    return files


def _with_second_output(job: Job, original: TwinRegressor) -> TwinRegressor:
    """Give a model the second output of its pack, fitted for the exported anchors."""
    if job.pack is None or job.pack.intervals is None:
        return original
    if np.array_equal(original.weights_, job.model.weights_):
        return job.model
    original = copy(original)
    original.difficulty_ = learn_difficulty(original, _SEED, job.rows)
    return original


def _shapes(job: Job) -> list[tuple[str, str]]:
    """List name suffix and shape of each file; a graph cannot choose neighbors."""
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
    rounded = model or job.model
    metadata = {key: value for key, value in job.metadata.items() if key != DIGEST}
    settings: dict[str, Any] = {"shape": shape, "metadata": metadata, "pack": job.pack}

    def level(made: str) -> Level:
        return Level(made, lambda: make(rounded, job.rows, level=made, **settings), lambda: rounded)

    # Never fall back to floats silently: if every integer level costs too much, say so.
    coarse = [made for made in names if made != FLOAT]
    return job.climb(kind, name, [level(made) for made in coarse or names], _load)


def _load(path: Path) -> Predict:
    return mean_and_spread(load(path))


# What each format needs besides numpy and scikit-learn.
_NEEDS = {
    "twin": (),
    "tflite": ("tensorflow", "flatbuffers"),
    "onnx": ("onnx", "onnxruntime"),
    "c": (),
}
FORMATS = tuple(_NEEDS)
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
_KEYS = {"validation": "rmse_val", "training": "rmse_train"}  # by the points judged on


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
    judge : Judge
        Scores of the float model.
    ann_ensemble_bytes : int
        What as many ordinary networks as there are anchors would take, stored like a pack.
    asked : int or str
        Number of anchors requested.
    remarks : tuple of str
        What else to tell: that the model is no better than the mean of its training rows, that
        fewer anchors exist than were requested, or that no number tried is as good as all.
    placed : Placed
        What happened to files of an earlier export that were not simply replaced.
    """

    folder: Path
    files: tuple[File, ...]
    rows: Array
    select: str
    method: str
    judge: Judge
    ann_ensemble_bytes: int
    asked: int | str = "rows"
    remarks: tuple[str, ...] = ()
    placed: Placed = field(default_factory=Placed)

    def record(self) -> dict[str, Any]:
        """Everything a program may want to know, as JSON takes it."""
        judge = self.judge
        rmse = _KEYS[judge.name]
        tested = judge.everyone_test
        return {
            "anchors": len(self.rows),
            "anchors_asked": self.asked,
            "remarks": list(self.remarks),
            "select": self.select,
            "method": self.method,
            "judged_on": judge.name,
            f"float_{rmse}": judge.everyone.rmse,
            f"float_{rmse}_anchors": judge.everyone.sample,
            f"float_{rmse}_same_anchors": judge.same_rmse,
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
    model: TwinRegressor | Pipeline | Run | str | Path,
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
    overwrite: bool = False,
    seed: int = 0,
    verbose: bool = False,
) -> Export:
    """Write the files of a model, replacing an earlier export.

    Only files that an export wrote and nobody has changed since are replaced. Files of an earlier
    export in ``formats`` that this one does not write stay, and are reported as stale.

    Parameters
    ----------
    model : TwinRegressor, Pipeline, Run or path
        A fitted model, a run, or the folder of one. A scikit-learn pipeline that ends in a twin is
        exported with its steps, if they scale, fill in or encode single columns. Of a search such
        as GridSearchCV, the best estimator is taken.
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
        fraction.
    intervals : bool
        Write intervals, feature ranges and fill values, if the model has them; files are a little
        smaller without.
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
    wanted = _formats(formats)
    run = _as_run(model)
    if not tolerance >= 0:
        raise wrong_value("tolerance", tolerance, "is not a number of at least 0")
    folder = Path(folder)
    check_folder(folder, EXPORT, overwrite=overwrite)
    with progress_bar(verbose) as progress:
        progress.plan(_stages(run, wanted, anchors))
        twin = run.model
        twins = len(twin.weights_)
        renamed = isinstance(anchors, str) and anchors == "auto"  # its name in earlier versions
        anchors = "fewest" if renamed else anchors
        rows, method, remarks = _rows(run, anchors, select, seed, progress)
        if renamed:
            remarks = (*remarks, "for the number of anchors, 'auto' is called 'fewest' now")
        if run.scores.get("beats_mean") is False:
            remarks = (run.scores["verdict"], *remarks)
        if not len(run.validation[1]):
            remarks = (*remarks, "nothing was held out: errors are those of the training points")
        asked: int | str = "rows"
        if np.isscalar(anchors) and not Path(select).is_file():
            asked = str(anchors) if isinstance(anchors, str) else int(anchors)
        nearest = _neighbors(twin, neighbors, len(rows) // twins)
        weighed = run.judging_weights, run.test_weights
        progress.stage(_MEASURING)
        judge = Judge.of(twin, rows, nearest, run.validation, run.test, *weighed)
        done: list[Export] = []

        def write(beside: Path) -> dict[str, Any]:
            job = Job(
                twin,
                tuple(deal_out(rows, twins)),
                nearest,
                judge,
                tolerance,
                beside,
                _metadata(run, method),
                progress,
                run.fill_values,
                # Intervals need points to calibrate on that the training did not see.
                intervals and twin.calibration_ is not None and judge.name == "validation",
            )
            first, job = twin_file(job, weights=weights, qat=qat, seed=seed)
            files = [first]
            more: tuple[str, ...] = ()
            if job.intervals and (job.pack is None or job.pack.intervals is None):
                more = ("no intervals: the validation points are too few or too alike for them",)
            if "tflite" in wanted:
                files += tflite_files(job, float_io=float_io)
            if "onnx" in wanted:
                files += onnx_files(job, original=twin)
            if "c" in wanted:
                progress.stage(_C)
                files.append(c_project(job, first, single_file=single_file))
            ordinary = Model.of(
                twin.anchor_X_.shape[1],
                twin.architecture_.hidden,
                len(rows),
                twins=twins,
                activation=twin.activation_,
                weights=weights,
            )
            instead = ann_bytes(ordinary)
            made = tuple(files), rows, select, method, judge, instead, asked, (*remarks, *more)
            done.append(Export(folder, *made))
            return done[0].record()

        placed = place_folder(folder, EXPORT, write, overwrite=overwrite)
        files = tuple(file._replace(path=folder / file.path.name) for file in done[0].files)
        return replace(done[0], files=files, placed=placed)


def _as_run(model: Any) -> Run:
    if isinstance(model, Run):
        return model
    model = getattr(model, "best_estimator_", model)  # of a search
    if isinstance(model, Pipeline):
        model = fold_pipeline(model)
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
        "TwinRegressor, or a Pipeline that ends in one"
    )


def _stages(run: Run, formats: Sequence[str], anchors: Any) -> dict[str, float]:
    """Return the expected seconds of each stage of an export."""
    many = min(1.0, len(run.model.anchor_y_) / 2000)
    fewest = {_SEARCHING: 30 * many} if isinstance(anchors, str) else {}
    stages = {**fewest, _CHOOSING: 4 * many, _MEASURING: 2 * many}
    for name, seconds in _SECONDS.items():
        stages |= seconds if name in ("twin", *formats) else {}
    return stages


def _formats(formats: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or isinstance(formats, str):
        name = formats if isinstance(formats, str) else unknown[0]
        raise InputError(f"{name!r} is not a list of formats: take some of {', '.join(FORMATS)}")
    errors = {name: lacking(*_NEEDS[name]) for name in formats}
    able = tuple(name for name, error in errors.items() if error is None)
    for error in errors.values():
        if error is not None:
            instead = (", or write the others: ", Parameter("formats", able)) if able else ()
            raise MissingPackageError(*error.parts, *instead)
    return able


def _rows(
    run: Run, anchors: Any, select: str, seed: int, progress: Progress
) -> tuple[Array, str, tuple[str, ...]]:
    """Choose the anchors; returns their rows ``(k,)``, the method, and remarks."""
    model = run.model
    X, y, twins = model.anchor_X_, model.anchor_y_, len(model.weights_)
    pool = pool_of(X, y, model, twins, seed)
    remarks: tuple[str, ...] = ()
    if Path(select).is_file():
        return check_rows(rows_from_file(select), len(y), twins), select, ()
    if isinstance(anchors, str):
        if anchors == "all":
            rows = pool.eligible(twins, seed)
            if len(rows) < len(y):
                remarks = (f"{len(rows)} of {len(y)} training points stand for all, by weight",)
            # Twins share the anchors evenly, so a few may be left over.
            return rows[: len(rows) - len(rows) % twins], "all", remarks
        if anchors != "fewest":
            raise wrong_value("anchors", anchors, "is not a number, 'fewest', 'all' or rows")
        progress.stage(_SEARCHING)
        best = recommend(model, run.judging, select, seed=seed, verbose=True)
        if not best.within:
            remarks = (f"no number of anchors is within 1 % of all; the most, {best.k}, are taken",)
        anchors, select = best.k, best.method
    elif not np.isscalar(anchors):
        return check_rows(anchors, len(y), twins), "rows", ()
    elif (taken := at_most_all(anchors, pool.worth, twins)) != anchors:
        weighted = model.sample_weights_ is not None
        remarks = (too_many(anchors, pool.worth, twins, weighted=weighted),)
        anchors = taken
    progress.stage(_CHOOSING)
    choice = choose(
        X, y, anchors, select, model=model, validation=run.judging, twins=twins, seed=seed
    )
    if METHODS[choice.method].looks:
        held = len(run.validation[1]) > 0
        remarks += (
            f"{choice.method} looked at the {'validation' if held else 'training'} points, so "
            "errors there flatter its anchors" + held * "; 'twinedge anchors' judges it on others",
        )
    return choice.rows, choice.method, remarks


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
        "target": run.target_name,
        "trained_on": run.source,
        "scores": {
            key: run.scores[key]
            for key in (*_KEYS.values(), "rmse_test", "coverage_test")
            if key in run.scores
        },
        "select": method,
        DIGEST: TrainingRows.of(run.model.anchor_X_, run.model.anchor_y_, run.fill_values).record(),
    }
