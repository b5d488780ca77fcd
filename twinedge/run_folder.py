"""The run folder: a trained model with everything needed to predict, evaluate and export it.

    run.json      what was trained, on what, with which scores; checksums of all files
    points.npz    the networks, with their second output, map and scaling; training, validation and
                  test points, their groups, weights and numbers in the file; values for missing
                  cells; errors at training points whose groups were left out

A run is written to a temporary folder and moved into place as a whole.
"""

import json
from copy import copy
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.atomic_files import RUN, check_folder, digest, write_folder
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.estimators.targets import measured, number_of
from twinedge.estimators.twin import TwinRegressor
from twinedge.notebook import describe_intervals, facts_table
from twinedge.provenance import DIGEST, TrainingRows
from twinedge.run_record import FILE, FORMAT, VERSION, read_record
from twinedge.scoring.calibration import Calibration, CalibrationRows
from twinedge.scoring.target_curve import TargetCurve
from twinedge.scoring.weights import of_rows
from twinedge.training.input_map import InputMap
from twinedge.training.network import Architecture, FloatArray, Scaling
from twinedge.version import __version__
from twinedge.wording import plural

_POINTS = "points.npz"
_CHOSEN = ("activation", "learning_rate", "weight_decay", "steps", "trials", "interrupted")
_NEWER = ("input_map", "target_curve")  # runs of 0.1 have none
_NOT_KEPT = ("n_jobs",)  # a property of the machine, not of the model
_PARTS = ("train", "val", "test")
_SCALING = ("x_mean", "x_scale", "y_mean", "y_scale", "limit")
# Arrays that a model may have, by their names in the file.
_OPTIONAL = {
    "fill_values": "fill_values_",
    "difficulty": "difficulty_",
    "groups_train": "groups_",
    "groups_val": "validation_groups_",
    "weights_train": "sample_weights_",
}
_LEFT_OUT = ("signals", "errors", "outside", "typical")


@dataclass(frozen=True, repr=False)
class Run:
    """A trained model and where it comes from.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; its anchors are the training points.
    feature_names : tuple of str
        Names of the features: columns of numbers, and levels of categories. They name the columns
        of a model that was fitted on an array.
    target_name : str
        Column of the target; of several, all of them (``model.target_names_`` has each).
    validation, test : (X, y)
        Points the model was chosen on, and points it never saw; either may be empty. Validation
        points equal to the training points are dropped.
    source : dict
        Data set or file, and split.
    scores : dict
        Of several targets, a list of those of each as ``targets``, and ``seconds``. Those of one:
        ``rmse_val`` (``rmse_train`` if nothing was held out), ``rmse_test``, ``seconds`` and the
        like.
    test_weights : array of shape (n,), optional
        How much each test point counts. Weights of the others are kept by the model.
    rows : dict of str to array
        Numbers in the file of the ``train``, ``val`` and ``test`` points, if they are known. With
        several files, of shape (n, 2): which of ``source["tables"]``, from 0, and the row in it.
    """

    model: TwinRegressor
    feature_names: tuple[str, ...]
    target_name: str
    validation: tuple[FloatArray, FloatArray]
    test: tuple[FloatArray, FloatArray]
    source: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    test_weights: FloatArray | None = None
    rows: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Name the columns, and drop validation points that are the training points.

        Their error would mislead.
        """
        if self.model.encoding_.is_numbered:
            named = copy(self.model)
            named.remember_columns(Encoding.plain(self.feature_names))
            object.__setattr__(self, "model", named)
        pairs = zip(self.validation, self._trained, strict=True)
        if all(np.array_equal(one, other, equal_nan=True) for one, other in pairs):
            object.__setattr__(self, "validation", (self.validation[0][:0], self.validation[1][:0]))

    @property
    def evaluation_points(self) -> tuple[FloatArray, FloatArray]:
        """Points to evaluate files on: the validation points, or the training points if none."""
        return self.validation if len(self.validation[1]) else self._trained

    @property
    def evaluation_weights(self) -> FloatArray | None:
        """Weights of these points; None if all count alike."""
        model = self.model
        return model.validation_weights_ if len(self.validation[1]) else model.sample_weights_

    @property
    def _trained(self) -> tuple[FloatArray, FloatArray]:
        return self.model.anchor_X_, self.model.anchor_y_

    @property
    def encoding(self) -> Encoding:
        """Columns that the features are made of."""
        return self.model.encoding_

    @property
    def fill_values(self) -> FloatArray | None:
        """Replacements for missing features, ``(f,)``; None if they are refused."""
        return self.model.fill_values_

    def of_target(self, target: int | str) -> "Run":
        """Return the run of one of several targets, with the rows that measured it."""
        number = number_of(self.model, target)
        if self.model.targets_ == 1:
            return self
        parts = {"train": self._trained, "val": self.validation, "test": self.test}
        known = {part: measured(y, number) for part, (_, y) in parts.items()}
        held, tested = (
            (X[rows], y[rows, number])
            for rows, (X, y) in ((known[part], parts[part]) for part in ("val", "test"))
        )
        every = self.scores.get("targets")
        return Run(
            self.model.of_target(number),
            self.feature_names,
            self.model.target_names_[number],
            held,
            tested,
            self.source,
            {} if every is None else every[number],
            of_rows(self.test_weights, known["test"]),
            {part: numbers[known[part]] for part, numbers in self.rows.items()},
        )

    def __repr__(self) -> str:
        columns = plural(len(self.encoding.names), "column")
        return f"<run: {columns} to {self.target_name}, {len(self.model.anchor_y_)} training rows>"

    def _repr_html_(self) -> str:
        """Show shape, errors and size in a notebook."""
        scores = self.scores
        facts = {
            **self.model.facts(),
            "test error": scores.get("rmse_test"),
            "R² on the test rows": scores.get("r2_test"),
            "error of the mean": scores.get("rmse_mean"),
            "error of a linear model": scores.get("rmse_linear"),
            "intervals": describe_intervals(
                getattr(self.model.of_target(0).calibration_, "quantiles", ()),
                scores.get("coverage_test"),
            ),
        }
        return facts_table(f"Run: {self.source.get('dataset', 'model')}", facts)

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the run; it replaces an existing one that is unchanged.

        With ``overwrite``, changed files are replaced, too; other files stay in the folder.
        """
        check_writable(folder, overwrite=overwrite)
        write_folder(folder, RUN, self._write, overwrite=overwrite)

    def _write(self, folder: Path) -> dict[str, Any]:
        model = self.model
        points: dict[str, Any] = {
            "X_train": model.anchor_X_,
            "y_train": model.anchor_y_,
            "X_val": self.validation[0],
            "y_val": self.validation[1],
            "X_test": self.test[0],
            "y_test": self.test[1],
            "weights": model.weights_,
            **{name: getattr(model.scaling_, name) for name in _SCALING},
            **{name: getattr(model, attribute) for name, attribute in _OPTIONAL.items()},
            **_stored_map(model.map_),
            "weights_val": self.evaluation_weights if len(self.validation[1]) else None,
            "weights_test": self.test_weights,
            **_stored_left_out(model),
            **{f"rows_{part}": numbers for part, numbers in self.rows.items()},
        }
        known = {name: array for name, array in points.items() if array is not None}
        np.savez_compressed(folder / _POINTS, **known)
        record = {
            "format": FORMAT,
            "version": VERSION,
            "twinedge": __version__,
            "feature_names": self.feature_names,
            "columns": self.encoding.described,
            "target_name": self.target_name,
            **({"target_names": model.target_names_} if model.targets_ > 1 else {}),
            "source": self.source,
            DIGEST: TrainingRows.of(*self._trained, self.fill_values).record(),
            "scores": self.scores,
            "parameters": {
                **{k: v for k, v in model.get_params().items() if k not in _NOT_KEPT},
                "twins": len(model.weights_),
                "teachers": _named(model.teachers),
                "hidden": model.architecture_.hidden,
                "random_state": _seed(model.random_state),
            },
            "chosen": {name: getattr(model, f"{name}_") for name in (*_CHOSEN, *_NEWER)},
            "curve_choice": model.curve_choice_,
            "map": model.map_ and _described_map(model.map_),
            "teaching": model.teaching_,
            **({"sharing": model.sharing_} if model.targets_ > 1 else {}),
            "calibration": _stored_calibrations(model.calibration_),
            "trust": model.trust_,
        }
        plain: dict[str, Any] = json.loads(json.dumps(record, default=_plain))
        return plain


def load_run(folder: Path) -> Run:
    """Read a run folder; raises InputError if it is damaged or was not written by twinedge."""
    record = read_record(folder)
    if not isinstance(record.get("sha256"), dict):
        raise InputError(f"{folder / FILE} is damaged (no checksums); train the run again")
    path = folder / _POINTS
    if not path.is_file():
        raise InputError(f"{folder} is not complete: {_POINTS} is missing; train it again")
    if digest(path) != record["sha256"].get(_POINTS):
        raise InputError(f"{path} is damaged (its checksum differs); train the run again")
    try:
        with np.load(path, allow_pickle=False) as file:
            points = {name: file[name] for name in file.files}
        return _restored_run(record, points)
    except Exception as error:  # the readers of zip and npy raise a dozen kinds
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{folder} is not a run of twinedge {__version__} ({reason})") from error


def _restored_run(record: dict[str, Any], points: dict[str, FloatArray]) -> Run:
    """Make a run of its record and arrays."""
    scores = record["scores"]
    hidden = tuple(record["parameters"]["hidden"])
    older = {"input_map": "none"}
    model = TwinRegressor(**{**older, **record["parameters"], "hidden": hidden})
    for name in _CHOSEN:
        setattr(model, f"{name}_", record["chosen"][name])
    model.input_map_, curve = (record["chosen"].get(name, "none") for name in _NEWER)
    model.curve_choice_ = record.get("curve_choice")
    model.teaching_ = record["teaching"]
    model.map_ = _restored_map(record.get("map"), points)
    inputs = points["X_train"].shape[1] if model.map_ is None else model.map_.outputs
    names = record.get("target_names", [record["target_name"]])
    model.target_names_ = tuple(map(str, names))
    targets = model.targets_
    model.architecture_ = Architecture(2 * inputs, hidden, model.activation_, targets=targets)
    model.weights_ = np.asarray(points["weights"], np.float32)
    if model.weights_.ndim != 2 or model.weights_.shape[1] != model.architecture_.size:
        shape = model.weights_.shape
        raise ValueError(f"weights of shape {shape} for networks of {model.architecture_.size}")
    of_targets: list[Any] = [points["y_mean"], points["y_scale"]]
    if any(one.shape != (() if targets == 1 else (targets,)) for one in of_targets):
        raise ValueError(f"a scaling that is not for {targets} targets")
    y_mean, y_scale = of_targets if targets > 1 else map(float, of_targets)
    model.scaling_ = Scaling(
        *(points["x_mean"], points["x_scale"], y_mean, y_scale, float(points["limit"])),
        None if curve == "none" else TargetCurve(curve),
    )
    model.remember_columns(Encoding.of(record["columns"], record["feature_names"]))
    model.anchor_X_, model.anchor_y_ = points["X_train"], points["y_train"]
    for name, attribute in _OPTIONAL.items():
        setattr(model, attribute, points.get(name))
    held = len(points["y_val"]) > 0
    part = "val" if held else "train"
    model.validation_ = points[f"X_{part}"], points[f"y_{part}"]
    model.validation_weights_ = points.get(f"weights_{part}")
    if targets == 1:
        model.validation_rmse_ = scores.get(f"rmse_{part}")
        model.calibration_, model.trust_ = _calibration(record["calibration"]), record["trust"]
        model.left_out_ = _left_out(model, points, "left_out")
    else:
        _restore_targets(model, record, points)
    return Run(
        model,
        tuple(record["feature_names"]),
        record["target_name"],
        (points["X_val"], points["y_val"]),
        (points["X_test"], points["y_test"]),
        record["source"],
        scores,
        points.get("weights_test"),
        {part: points[f"rows_{part}"] for part in _PARTS if f"rows_{part}" in points},
    )


def checkpoint_of(folder: Path) -> Path:
    """Return the folder beside a run that keeps its training until it is finished."""
    return folder.with_name(f"{folder.name}.checkpoint")


def check_writable(folder: Path, *, overwrite: bool = False) -> None:
    """Refuse a folder that a run cannot be written to, before hours are spent on it."""
    check_folder(folder, RUN, overwrite=overwrite)


def _described_map(learnt: InputMap) -> dict[str, Any]:
    """Return what a record says of a map: its outputs, and how many knots each feature has."""
    return {"outputs": learnt.outputs, "knots": [len(knots) for knots in learnt.knots]}


def _stored_map(learnt: InputMap | None) -> dict[str, FloatArray]:
    if learnt is None:
        return {}
    return {"map_knots": np.concatenate(learnt.knots), "map_table": learnt.table}


def _restored_map(
    described: dict[str, Any] | None, points: dict[str, FloatArray]
) -> InputMap | None:
    if described is None:
        return None
    counts, table = described["knots"], points["map_table"]
    if len(counts) != points["X_train"].shape[1] or table.shape != (
        sum(counts),
        described["outputs"],
    ):
        raise ValueError("a map that does not fit the features")
    knots = np.split(points["map_knots"], np.cumsum(counts)[:-1])
    return InputMap(tuple(knots), table)


def _stored_calibration(calibration: Calibration) -> dict[str, Any]:
    quantiles = [list(one) for one in calibration.quantiles.items()]
    return {**vars(calibration), "weights": calibration.weights.tolist(), "quantiles": quantiles}


def _stored_calibrations(calibration: Any) -> Any:
    """Return the calibration as JSON, or a list of those of several targets."""
    if isinstance(calibration, tuple):
        return [one and _stored_calibration(one) for one in calibration]
    return calibration and _stored_calibration(calibration)


def _stored_left_out(model: TwinRegressor) -> dict[str, Any]:
    """Return errors at training points whose groups were left out, by the names of the arrays."""
    left_out = {"left_out": model.left_out_}
    if model.targets_ > 1:
        each = model.left_out_ or ()
        left_out = {f"left_out{target}": one for target, one in enumerate(each)}
    return {
        f"{prefix}_{name}": getattr(one, name, None)
        for prefix, one in left_out.items()
        for name in _LEFT_OUT
    }


def _left_out(
    model: TwinRegressor, points: dict[str, FloatArray], prefix: str
) -> CalibrationRows | None:
    """Restore these errors for a model of one target."""
    if f"{prefix}_errors" not in points:
        return None
    found: dict[str, Any] = {name: points.get(f"{prefix}_{name}") for name in _LEFT_OUT}
    return CalibrationRows(**found, sample_weight=model.sample_weights_, groups=model.groups_)


def _restore_targets(
    model: TwinRegressor, record: dict[str, Any], points: dict[str, FloatArray]
) -> None:
    """Restore what a model of several targets learnt of each."""
    model.sharing_ = record["sharing"]
    calibrations = record["calibration"]
    model.calibration_ = calibrations and tuple(map(_calibration, calibrations))
    model.trust_ = tuple(record["trust"])
    model.difficulty_ = None if model.difficulty_ is None else tuple(model.difficulty_)
    model.validation_rmse_ = np.full(model.targets_, np.nan)
    alone = model.of_each_target()
    left_out = tuple(_left_out(one, points, f"left_out{k}") for k, one in enumerate(alone))
    model.left_out_ = left_out if any(one is not None for one in left_out) else None
    scores = record["scores"].get("targets", ())
    model.validation_rmse_ = np.array([one["rmse_val"] for one in scores] or [np.nan] * len(alone))


def _calibration(stored: dict[str, Any] | None) -> Calibration | None:
    if stored is None:
        return None
    arrays = {"weights": np.array(stored["weights"]), "quantiles": dict(stored["quantiles"])}
    return Calibration(**{**stored, **arrays})


def _seed(random_state: Any) -> int | None:
    """Return a seed as it is; a generator is not kept, since its state has advanced."""
    return int(random_state) if isinstance(random_state, Integral) else None


def _named(teachers: Any) -> Any:
    """Return teachers for the record: a user's own estimator by the name of its class."""
    if teachers is None or isinstance(teachers, str):
        return teachers
    return [one if isinstance(one, str) else type(one).__name__ for one in teachers]


def _plain(value: Any) -> Any:
    """Convert numpy scalars and arrays for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored in a run")
