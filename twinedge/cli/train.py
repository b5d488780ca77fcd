"""``twinedge train``: fit a twin to a table."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from twinedge.cli.fitting import fit_run
from twinedge.cli.options import (
    Categorical,
    DataFile,
    DataSet,
    Drop,
    DropMissingTarget,
    Impute,
    Json,
    Overwrite,
    Quiet,
    Seed,
    Target,
    choice,
    examples,
    value,
)
from twinedge.cli.output import note, print_json, print_record, print_text
from twinedge.cli.source import Reading, read_source
from twinedge.cli.words import number, some_of, whole, widths_or_auto

EXAMPLES = examples(
    "train data.csv --target strength",
    "train data.csv --target -1 --drop id --impute median -o runs/sensor",
    "train data.csv --target strength --group batch",
    "train --dataset cs --split 0 --effort quick",
)


def train(
    table: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    impute: Impute = None,
    categorical: Categorical = None,
    drop_missing_target: DropMissingTarget = False,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Rows with the same value here belong together: a batch, a machine. No feature.",
        ),
    ] = None,
    dataset: DataSet = None,
    split: Annotated[
        int,
        value("Which random split: 70 % training, 10 % validation, 20 % test.", "N", whole(0)),
    ] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="RUN", help="Run folder to write.")
    ] = Path("runs/latest"),
    overwrite: Overwrite = False,
    twins: Annotated[
        Any,
        value("Networks in the model; auto is 4, or 1 with --hidden.", "auto|N", whole(1, "auto")),
    ] = "auto",
    hidden: Annotated[
        Any,
        value(
            "Widths of the hidden layers; auto is 56,56, and 128,128 with --twins 1.",
            "auto|N,N",
            widths_or_auto,
        ),
    ] = "auto",
    activation: Annotated[
        str, choice("Activation of the hidden layers.", "auto", "relu", "silu")
    ] = "auto",
    pairs: Annotated[
        Any,
        value(
            "Partners each point is trained with: all others, its neighbors, or N at random.",
            "all|neighbors|N",
            whole(1, "all", "neighbors"),
        ),
    ] = "all",
    neighbors: Annotated[int, value("How many, with --pairs neighbors.", "N", whole(1))] = 32,
    learning_rate: Annotated[Any, value("Step size.", "auto|NUMBER", number("auto"))] = "auto",
    weight_decay: Annotated[Any, value("Decay of AdamW.", "auto|NUMBER", number("auto"))] = "auto",
    effort: Annotated[
        str, choice("How long to search and train.", "quick", "normal", "thorough")
    ] = "normal",
    steps: Annotated[
        Any, value("Steps of the last training; auto goes by --effort.", "auto|N", whole(1, "auto"))
    ] = "auto",
    teachers: Annotated[
        Any,
        value(
            "Who teaches the networks: networks, trees, boosting, gp; or nobody. auto asks all, "
            "unless quick or with --steps.",
            "auto|none|NAME,NAME",
            some_of("networks", "trees", "boosting", "gp", alone=("auto", "none")),
        ),
    ] = "auto",
    intervals: Annotated[
        bool, typer.Option(help="Learn how large errors are to be expected.")
    ] = True,
    seed: Seed = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was stopped.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a twin to a table and write a run folder.

    Settings left at auto are chosen on the validation rows; errors are in units of the target.
    Ctrl-C stops early and keeps the best weights; the same command with --resume goes on.
    A run that is there is replaced if nobody has changed its files; anything else in the folder
    is named and nothing is done, unless you say --overwrite.

    Rows that belong together, with --group, are held out together: scores and intervals are then
    those of groups that the model never saw, and it learns how far to trust points that a device
    measures itself.
    """
    reading = Reading(target, drop, impute, categorical, drop_missing_target, group)
    source = read_source(table, reading, dataset, split, quiet=quiet)
    from twinedge.learn.twin import TwinRegressor

    model = TwinRegressor(
        twins=twins,
        hidden=hidden,
        activation=activation,
        pairs=pairs,
        neighbors=neighbors,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        effort=effort,
        steps=steps,
        teachers=teachers,
        intervals=intervals,
        random_state=seed,
        verbose=sys.stderr.isatty() and not quiet,
    )
    result = fit_run(
        model, source, output, split=split, resume=resume, overwrite=overwrite, quiet=quiet
    )
    if as_json:
        print_json(result)
    else:
        verdict = result.pop("verdict")
        print_record(result)
        if verdict:
            print_text("", verdict)
    if model.interrupted_:
        note(f"Stopped early; the best weights are in {output}. --resume goes on.", quiet=quiet)
        raise typer.Exit(130)
