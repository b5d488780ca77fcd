"""``twinedge predict``: answers for a table, or line by line."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinedge.cli.options import Json, Quiet, choice, examples, value
from twinedge.cli.output import note_filled, print_csv, print_json, stream_out
from twinedge.cli.words import whole
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.data import Table

EXAMPLES = examples(
    "predict runs/latest new.csv > predictions.csv",
    "predict runs/latest new.csv --anchors 32 --json",
    "predict out/model.twin new.csv",
    "predict out/model.twin - < /dev/ttyUSB0",
)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="FILE", help="Run folder, or a .twin, .tflite or .onnx file.")
    ],
    table: Annotated[
        str,
        typer.Argument(
            metavar="DATA.csv", help="Table with the model's columns; - answers lines as they come."
        ),
    ],
    anchors: Annotated[
        Any,
        value("Anchors of a run to estimate from: all, or N at random.", "all|N", whole(1, "all")),
    ] = "all",
    neighbors: Annotated[
        Any, value("Use only so many anchors nearest to each point.", "N", whole(1))
    ] = None,
    backend: Annotated[
        str,
        choice("What reads an exported file.", "auto", "native", "numpy", "tflite", "onnx"),
    ] = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict each row of a table.

    Prints CSV with the prediction, under the name of the target, and its spread: the standard
    deviation of the estimates of all anchors, in units of the target. Columns of the table are
    found by name; further ones are ignored. Exported files also name the features that lie outside
    the training range, where a prediction means little.

    With - for a table, each line of standard input (CSV, or JSON) is answered at once by a line
    with prediction, spread and the features outside, or by an error.
    """
    if model.is_dir() or not model.suffix:
        if table == "-" or backend != "auto":
            raise InputError(f"{model}: lines and backends are for exported files, not a run")
        _with_run(model, Path(table), anchors, neighbors, as_json, quiet)
        return
    if anchors != "all":
        raise InputError(f"{model}: --anchors is for runs; a file has those it was exported with")
    from twinedge.runtime.loading import load

    device = load(model, backend)
    if table == "-":
        from twinedge.runtime.lines import serve

        serve(device, sys.stdin.fileno(), stream_out, neighbors)
        return
    points = _read(Path(table), device.feature_names, None, quiet)
    mean, spread = device.predict(points.X, return_std=True, neighbors=neighbors)
    outside = [
        [name for name, far in zip(device.feature_names, row, strict=True) if far]
        for row in device.outside(points.X)
    ]
    result = {"file": str(model), "target": device.target_name}
    _print(result, mean, spread, as_json, outside)


def _with_run(
    folder: Path, table: Path, anchors: Any, neighbors: int | None, as_json: bool, quiet: bool
) -> None:
    from twinedge.learn.run import load_run

    trained = load_run(folder)
    points = _read(table, trained.feature_names, trained.fill_values, quiet)
    mean, spread = trained.model.predict(
        points.X, return_std=True, anchors=anchors, neighbors=neighbors
    )
    _print({"run": str(folder), "target": trained.target_name}, mean, spread, as_json)


def _read(table: Path, names: tuple[str, ...], fill_values: Any, quiet: bool) -> "Table":
    from twinedge.data import read_features

    points = read_features(table, names, impute_values=fill_values)
    note_filled(table, points.imputed, quiet=quiet)
    return points


def _print(
    result: dict[str, Any],
    mean: Any,
    spread: Any,
    as_json: bool,
    outside: list[list[str]] | None = None,
) -> None:
    more: dict[str, Any] = {} if outside is None else {"outside": outside}
    if as_json:
        result |= {"rows": len(mean), "prediction": mean.tolist(), "spread": spread.tolist()}
        print_json({**result, **more})
        return
    # The networks compute in single precision: more digits say nothing.
    words = [[f"{one:.7g}" for one in row] for row in zip(mean, spread, strict=True)]
    if outside is not None:
        words = [[*row, "|".join(names)] for row, names in zip(words, outside, strict=True)]
    print_csv([result["target"], "spread", *more], words)
