"""``twinedge evaluate``: how good a run is on a table with known targets."""

import numpy as np

from twinedge.cli.options import Json, Quiet, RunFolder, Table
from twinedge.cli.output import note, print_json, print_record


def evaluate(run: RunFolder, table: Table, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare predictions with the targets in a table.

    Example: twinedge evaluate runs/latest measured.csv
    """
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
    if points.imputed:
        note(f"{table}: {points.imputed} missing values filled in", quiet=quiet)
    mean, spread = trained.model.predict(points.X, return_std=True)
    error = mean - points.y
    variance = float(np.mean(np.square(points.y - points.y.mean())))
    mse = float(np.mean(np.square(error)))
    result = {
        "rows": len(error),
        "rmse": mse**0.5,
        "mae": float(np.mean(np.abs(error))),
        "largest_error": float(np.abs(error).max()),
        "r2": 1 - mse / variance if variance > 0 else None,
        "mean_spread": float(spread.mean()),
    }
    if as_json:
        print_json(result)
        return
    print_record(result)
