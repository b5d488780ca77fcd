"""``twinedge predict``: answers for a table."""

from typing import Annotated, Any

from twinedge.cli.options import Json, Quiet, RunFolder, Table, examples, value
from twinedge.cli.output import note_filled, print_csv, print_json
from twinedge.cli.words import whole

EXAMPLES = examples(
    "predict runs/latest new.csv > predictions.csv",
    "predict runs/latest new.csv --anchors 32 --json",
)


def predict(
    run: RunFolder,
    table: Table,
    anchors: Annotated[
        Any,
        value("Training points to estimate from: all, or N at random.", "all|N", whole(1, "all")),
    ] = "all",
    neighbors: Annotated[
        Any, value("Use only so many anchors nearest to each point.", "N", whole(1))
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict each row of a table.

    Prints CSV with the prediction, under the name of the target, and its spread: the standard
    deviation of the estimates of all anchors, in units of the target. Columns of the table are
    found by name; further ones are ignored.
    """
    from twinedge.data import read_features
    from twinedge.learn.run import load_run

    trained = load_run(run)
    points = read_features(table, trained.feature_names, impute_values=trained.fill_values)
    note_filled(table, points.imputed, quiet=quiet)
    mean, spread = trained.model.predict(
        points.X, return_std=True, anchors=anchors, neighbors=neighbors
    )
    if as_json:
        print_json(
            {
                "run": str(run),
                "target": trained.target_name,
                "rows": len(mean),
                "prediction": mean.tolist(),
                "spread": spread.tolist(),
            }
        )
        return
    # The networks compute in single precision: more digits say nothing.
    words = ([f"{one:.7g}" for one in row] for row in zip(mean, spread, strict=True))
    print_csv([trained.target_name, "spread"], words)
