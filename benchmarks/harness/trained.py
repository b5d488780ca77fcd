"""The trained models that several benchmarks measure, kept in folders, and how they are packed."""

import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.rows import ANCHORS, DEFAULT, MEMBERS, Rows, rows_of
from twinedge import TwinRegressor, export
from twinedge.anchors import choose
from twinedge.anchors.rows import per_twin
from twinedge.estimators.difficulty import learn_difficulty
from twinedge.fitting import TrainSettings, fit_dataset
from twinedge.pack import Pack
from twinedge.run_folder import Run, load_run
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge.training import VERSION
from twinedge_export.quantise import quantise

RUNS = Path("runs/trained")
EXPORT = Path("out/benchmark")  # of the RCL circuit: 6 features, 32 anchors


def shape_name(twins: int, hidden: tuple[int, ...]) -> str:
    """Name a shape, as in 4x56-56."""
    return f"{twins}x{'-'.join(map(str, hidden))}"


SHAPE = shape_name(MEMBERS, DEFAULT[MEMBERS])


def shape_named(name: str) -> tuple[int, tuple[int, ...]]:
    """Return the number of twins of a shape, and the widths of their hidden layers."""
    twins, widths = name.split("x")
    return int(twins), tuple(map(int, widths.split("-")))


def trained(folder: Path, name: str, split: int, shape: str = SHAPE, effort: str = "normal") -> Run:
    """Load the run of one of the paper's sets, or train it."""
    return fit_or_load(folder, rows_of(name, split, Path()), *shape_named(shape), effort)


def fit_or_load(
    folder: Path, rows: Rows, twins: int, hidden: tuple[int, ...], effort: str = "normal"
) -> Run:
    """Load the run of a shape on one split from a folder of runs, or train it.

    There it is in VERSION/EFFORT/SHAPE/NAME/SPLIT, by the version of the training.
    """
    version = folder / f"training-{VERSION}" / effort
    place = version / shape_name(twins, hidden) / rows.name / str(rows.split)
    if not place.exists():
        widths = "auto" if hidden == DEFAULT.get(twins) else hidden  # these may give way to a map
        model = TwinRegressor(twins=twins, hidden=widths, effort=effort, random_state=0)
        model.fit(*rows.train, validation=rows.validation, encoding=rows.encoding)
        scores = {"rmse_val": model.validation_rmse_, "rmse_test": model.rmse(*rows.test)}
        where = {"dataset": rows.name, "split": rows.split, "training": VERSION}
        names = rows.encoding.inputs, rows.target_name
        place.parent.mkdir(parents=True, exist_ok=True)
        run = Run(model, *names, rows.validation, rows.test, source=where, scores=scores)
        run.save(place)
    return load_run(place)


def packed(run: Run, anchors: int = ANCHORS) -> tuple[Pack, list[Any]]:
    """Choose anchors, round and calibrate, like an export.

    Returns the pack with intervals, and the rows of the anchors of each twin.
    """
    model, twins = run.model, len(run.model.weights_)
    options: dict[str, Any] = {
        "model": model,
        "validation": run.validation,
        "twins": twins,
        "seed": 0,
    }
    rows = choose(model.anchor_X_, model.anchor_y_, anchors, "auto", **options).rows
    lists = list(per_twin(rows, twins))
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
