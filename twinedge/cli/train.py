"""``twinedge train``: fit a twin to a table."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from twinedge.cli.options import Json, Quiet, Seed
from twinedge.cli.output import note, print_json, print_record
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.data import Split
    from twinedge.learn.network import FloatArray


class _Source(NamedTuple):
    """A table with its split, from a file or from the catalogue."""

    name: str
    X: "FloatArray"
    y: "FloatArray"
    feature_names: tuple[str, ...]
    target_name: str
    rows: "Split"
    fill_values: "FloatArray | None" = None


def train(
    table: Annotated[
        Path | None, typer.Argument(metavar="[DATA.csv]", help="Table with one row per point.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Column to predict, by name or position (0 is the first, -1 the last)."),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")] = None,
    impute: Annotated[
        str | None, typer.Option(help="'median' fills missing features; refused otherwise.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="One of the paper's sets instead of a file, e.g. cs.")
    ] = None,
    split: Annotated[
        int, typer.Option(help="Which random split: 70 % training, 10 % validation, 20 % test.")
    ] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="Run folder to write.")] = Path(
        "runs/latest"
    ),
    twins: Annotated[int, typer.Option(help="Networks in the model.")] = 1,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers.")] = "128,128",
    activation: Annotated[str, typer.Option(help="auto, relu or silu.")] = "auto",
    pairs: Annotated[
        str, typer.Option(help="all, neighbors, or so many random partners for each point.")
    ] = "all",
    neighbors: Annotated[int, typer.Option(help="How many, with --pairs neighbors.")] = 32,
    learning_rate: Annotated[str, typer.Option(help="auto or a number.")] = "auto",
    weight_decay: Annotated[str, typer.Option(help="auto or a number.")] = "auto",
    effort: Annotated[str, typer.Option(help="quick, normal or thorough.")] = "normal",
    steps: Annotated[str, typer.Option(help="Steps of the last training, or auto.")] = "auto",
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was stopped.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a twin to a table and write a run folder.

    Ctrl-C stops early and keeps the best weights; the same command with --resume goes on.

    Examples
    --------
        twinedge train data.csv --target strength

        twinedge train data.csv --target -1 --drop id --impute median -o runs/sensor

        twinedge train --dataset cs --split 0 --effort quick
    """
    source = _read(table, target, drop or [], impute, dataset, split, quiet)
    from twinedge.learn.run import Run, check_writable
    from twinedge.learn.twin import TwinRegressor

    check_writable(output)
    model = TwinRegressor(
        twins=twins,
        hidden=tuple(_whole("hidden", width) for width in hidden.split(",")),
        activation=activation,
        pairs=pairs if pairs in ("all", "neighbors") else _whole("pairs", pairs),
        neighbors=neighbors,
        learning_rate=_number("learning-rate", learning_rate),
        weight_decay=_number("weight-decay", weight_decay),
        effort=effort,
        steps=steps if steps == "auto" else _whole("steps", steps),
        random_state=seed,
        verbose=not quiet,
    )
    validation, test = (
        (source.X[rows], source.y[rows]) for rows in (source.rows.val, source.rows.test)
    )
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    start = time.perf_counter()
    model.fit(
        source.X[source.rows.train],
        source.y[source.rows.train],
        validation,
        checkpoint=checkpoint,
        resume=resume,
    )
    scores = {
        "rmse_val": model.validation_rmse_,
        "rmse_test": model.rmse(*test),
        "seconds": round(time.perf_counter() - start, 2),
    }
    where = {"dataset": source.name, "split": split, "rows": len(source.y)}
    Run(
        model,
        source.feature_names,
        source.target_name,
        validation,
        test,
        where,
        scores,
        source.fill_values,
    ).save(output)
    if not model.interrupted_:
        from twinedge.learn.checkpoint import discard

        discard(checkpoint)
    _report(
        {
            **where,
            "features": len(source.feature_names),
            "twins": len(model.weights_),
            "activation": model.activation_,
            "learning_rate": model.learning_rate_,
            "weight_decay": model.weight_decay_,
            **scores,
            "steps": model.steps_,
            "interrupted": model.interrupted_,
            "run": str(output),
        },
        as_json,
    )
    if model.interrupted_:
        note(f"Stopped early; the best weights are in {output}. --resume goes on.", quiet=quiet)
        raise typer.Exit(130)


def _read(
    path: Path | None,
    target: str | None,
    drop: list[str],
    impute: str | None,
    dataset: str | None,
    split: int,
    quiet: bool,
) -> _Source:
    from twinedge import data

    if (path is None) == (dataset is None):
        raise InputError("name either a DATA.csv or a --dataset")
    if dataset is not None:
        if target is not None or drop or impute is not None:
            raise InputError(
                "--target, --drop and --impute are for a DATA.csv, not for a --dataset"
            )
        known = data.load(dataset)
        rows = data.splits(dataset, split)
        return _Source(known.name, known.X, known.y, known.feature_names, known.target_name, rows)
    assert path is not None
    if target is None:
        raise InputError("--target is missing: the column to predict, by name or position")
    table = data.read_table(path, target=target, drop=drop, impute=impute)
    assert table.y is not None
    assert table.target_name is not None
    try:
        rows = data.split_rows(len(table.y), split)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if table.duplicates:
        note(f"{path}: {table.duplicates} rows repeat an earlier row", quiet=quiet)
    return _Source(
        path.name, table.X, table.y, table.feature_names, table.target_name, rows, table.fill_values
    )


def _whole(name: str, word: str) -> int:
    try:
        return int(word)
    except ValueError as error:
        raise InputError(f"--{name} {word!r} is not a whole number") from error


def _number(name: str, word: str) -> float | str:
    if word == "auto":
        return word
    try:
        return float(word)
    except ValueError as error:
        raise InputError(f"--{name} {word!r} is neither 'auto' nor a number") from error


def _report(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    print_record(result)
