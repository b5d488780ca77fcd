"""The trained models and the export that several benchmarks measure, kept in folders."""

import sys
from pathlib import Path
from typing import Any

from twinedge import TwinRegressor, export
from twinedge.anchors import choose
from twinedge.estimators.difficulty import learn_difficulty
from twinedge.fitting import TrainSettings, fit_dataset
from twinedge.pack import Pack
from twinedge.run_folder import Run, load_run
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge_export.quantise import quantise

# Raised whenever training changes, which makes earlier cells and runs void.
TRAINING = "5"
EXPORT = Path("out/benchmark")  # of the RCL circuit: 6 features, 32 anchors


def load_or_train(folder: Path, name: str) -> Run:
    """Load the default model of a set's first split from a folder of runs, or train it."""
    path = folder / name
    if not path.exists():
        print(f"training {name} ...", file=sys.stderr, flush=True)
        fit_dataset(name, TrainSettings(run=path, random_state=0))
    return load_run(path)


def fit_or_load(
    folder: Path, rows: Any, twins: int, hidden: tuple[int, ...], effort: str = "normal"
) -> Run:
    """Load the run of a shape on one split from FOLDER/SHAPE/NAME/SPLIT, or train it.

    ``rows`` has the ``train``, ``validation`` and ``test`` points of a table, its ``name``,
    ``split``, ``encoding`` and ``target_name``.
    """
    shape = f"{twins}x{'-'.join(map(str, hidden))}"
    place = folder / shape / rows.name / str(rows.split)
    if not place.exists():
        model = TwinRegressor(twins=twins, hidden=hidden, effort=effort, random_state=0)
        model.fit(*rows.train, validation=rows.validation, encoding=rows.encoding)
        scores = {"rmse_val": model.validation_rmse_, "rmse_test": model.rmse(*rows.test)}
        where = {"dataset": rows.name, "split": rows.split, "training": TRAINING}
        names = rows.encoding.inputs, rows.target_name
        place.parent.mkdir(parents=True, exist_ok=True)
        run = Run(model, *names, rows.validation, rows.test, source=where, scores=scores)
        run.save(place)
    run = load_run(place)
    version = run.source.get("training")
    if version != TRAINING:
        raise SystemExit(f"{place} is of version {version} of the training, not {TRAINING}")
    if run.model.effort != effort:
        raise SystemExit(f"{place} was trained with effort {run.model.effort}, not {effort}")
    return run


def packed(run: Run, anchors: int) -> tuple[Pack, list[Any]]:
    """Choose anchors, round and calibrate, like an export.

    Returns the pack with intervals, and the rows of the anchors of each twin.
    """
    model, twins = run.model, len(run.model.weights_)
    options = {"model": model, "validation": run.validation, "twins": twins, "seed": 0}
    rows = choose(model.anchor_X_, model.anchor_y_, anchors, "auto", **options).rows
    lists = [rows[twin::twins] for twin in range(twins)]
    model.difficulty_ = learn_difficulty(model, 0, lists)
    pack = quantise(model, lists, intervals=True)
    return calibrate_pack(pack, *run.validation, chosen=True), lists


def load_or_export(folder: Path) -> Path:
    """Return the folder of an export; if it does not exist, train for a minute and export."""
    if not folder.exists():
        run = Path("runs") / folder.name
        print("training and exporting, minutes ...", file=sys.stderr, flush=True)
        fit_dataset("rcl", TrainSettings(run=run, effort="quick", random_state=0))
        export(run, folder, formats=("twin", "tflite", "onnx"))
    return folder
