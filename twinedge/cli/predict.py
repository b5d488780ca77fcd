"""``twinedge predict``: answers for a table."""

import csv
import sys
from typing import Annotated, Any

import typer

from twinedge.cli.options import Json, Quiet, RunFolder, Table
from twinedge.cli.output import note, print_json
from twinedge.errors import InputError


def predict(
    run: RunFolder,
    table: Table,
    anchors: Annotated[str, typer.Option(help="all, or how many training points to use.")] = "all",
    neighbors: Annotated[
        int | None, typer.Option(help="Use only so many anchors nearest to each point.", min=1)
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict each row of a table: prediction and spread, as CSV on standard output.

    Examples
    --------
        twinedge predict runs/latest new.csv > predictions.csv

        twinedge predict runs/latest new.csv --anchors 32 --json
    """
    from twinedge.data import read_features
    from twinedge.learn.run import load_run

    trained = load_run(run)
    points = read_features(table, trained.feature_names, impute_values=trained.fill_values)
    if points.imputed:
        note(f"{table}: {points.imputed} missing values filled in", quiet=quiet)
    mean, spread = trained.model.predict(
        points.X, return_std=True, anchors=_anchors(anchors), neighbors=neighbors
    )
    if as_json:
        print_json({trained.target_name: mean.tolist(), "spread": spread.tolist()})
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([trained.target_name, "spread"])
    writer.writerows(zip(map(_shortest, mean), map(_shortest, spread), strict=True))


def _anchors(word: str) -> Any:
    if word == "all":
        return word
    try:
        return int(word)
    except ValueError as error:
        raise InputError(f"--anchors {word!r} is neither 'all' nor a number") from error


def _shortest(value: float) -> str:
    return f"{value:.7g}"  # the networks compute in single precision: more digits say nothing
