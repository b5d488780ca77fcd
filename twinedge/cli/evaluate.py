"""``twinedge evaluate``: how good a run is on a table with known targets."""

import math

from twinedge.cli.options import Json, Quiet, RunFolder, Table, examples
from twinedge.cli.output import note_filled, print_json, print_record

EXAMPLES = examples("evaluate runs/latest measured.csv", "evaluate runs/latest measured.csv --json")


def evaluate(run: RunFolder, table: Table, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare predictions with the targets in a table.

    Errors and spread are in units of the target; r2 is the part of its variance explained.
    """
    import numpy as np

    from twinedge.data import read_features
    from twinedge.learn.run import load_run

    trained = load_run(run)
    points = read_features(
        table,
        trained.feature_names,
        target=trained.target_name,
        impute_values=trained.fill_values,
    )
    assert points.y is not None
    note_filled(table, points.imputed, quiet=quiet)
    mean, spread = trained.model.predict(points.X, return_std=True)
    error = mean - points.y
    mse, variance = float(np.mean(np.square(error))), float(points.y.var())
    result = {
        "run": str(run),
        "target": trained.target_name,
        "rows": len(error),
        "rmse": math.sqrt(mse),
        "mae": float(np.abs(error).mean()),
        "largest_error": float(np.abs(error).max()),
        "r2": 1 - mse / variance if variance > 0 else None,
        "mean_spread": float(spread.mean()),
    }
    if as_json:
        print_json(result)
    else:
        print_record(result)
