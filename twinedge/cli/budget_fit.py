"""``twinedge budget fit``: the most accurate model that fits a board."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from twinedge.cli.output import note, print_json, print_record, print_table, print_text
from twinedge.cli.words import number, whole

if TYPE_CHECKING:
    from twinedge_export.fit_board import Attempt, Search

EXAMPLES = examples(
    "budget fit --board uno --dataset cs",
    "budget fit data.csv --target strength --board pico -o model",
)


def fit(
    board: Annotated[str, typer.Option(metavar="NAME", help="As 'budget boards' lists it.")],
    table: DataFile = None,
    target: Target = None,
    drop: Drop = None,
    impute: Impute = None,
    categorical: Categorical = None,
    drop_missing_target: DropMissingTarget = False,
    dataset: DataSet = None,
    split: Annotated[int, value("Which random split.", "N", whole(0))] = 0,
    anchors: Annotated[int, value("Most anchors to try.", "N", whole(1))] = 32,
    tries: Annotated[int, value("Widths to try, from the widest that fits.", "N", whole(1))] = 6,
    effort: Annotated[
        str, choice("How long to train the winner.", "quick", "normal", "thorough")
    ] = "normal",
    steps: Annotated[
        Any, value("Steps of each training; auto goes by effort.", "auto|N", whole(1, "auto"))
    ] = "auto",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the pack.")
    ] = Path("out"),
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run folder of the winner; by default runs/BOARD."),
    ] = None,
    tolerance: Annotated[
        Any, value("By which part rounding may raise the validation error.", "NUMBER", number())
    ] = 0.02,
    overwrite: Overwrite = False,
    intervals: Annotated[
        bool, typer.Option(help="A pack with intervals, ranges of the features and fill values.")
    ] = True,
    firmware: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measured sizes of the runtime, if not those shipped."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for the most accurate model that fits a board, train it and write its pack.

    Twins, width, anchors and bits are chosen on the validation rows, with brief trainings; the
    winner is then trained in full. RMSE is in units of the target, sizes in bytes. Where rounding
    the winner costs more than the tolerance, it is written all the same, and that is told.
    """
    from twinedge.budget import board_named, judge, read_firmware
    from twinedge.budget.boards import in_words
    from twinedge.budget.model import from_pack
    from twinedge.cli.export import note_earlier
    from twinedge.cli.fitting import fit_run
    from twinedge.cli.source import Reading, read_source
    from twinedge.learn.twin import TwinRegressor
    from twinedge.placing import EXPORT, RUN, check_folder
    from twinedge_export.fit_board import check_measured, fitting, search, write_winner

    place, measured = board_named(board), read_firmware(firmware)
    check_measured(place, measured)
    reading = Reading(target, drop, impute, categorical, drop_missing_target)
    source = read_source(table, reading, dataset, split, quiet=quiet)
    train, validation = source.part(source.rows.train), source.part(source.rows.val)
    most = min(anchors, len(train[1]))
    # Refused now, not after training.
    fitting(train[0].shape[1], most, place, measured, intervals=intervals)
    run = run or Path("runs") / board
    check_folder(output, EXPORT, overwrite=overwrite)
    check_folder(run, RUN, overwrite=overwrite)
    verbose = sys.stderr.isatty() and not quiet
    found = search(
        train,
        validation,
        place,
        measured,
        anchors=anchors,
        tries=tries,
        intervals=intervals,
        seed=seed,
        encoding=source.encoding,
        say=lambda message: note(message, quiet=quiet),
        steps=steps,
        verbose=verbose,
    )
    best = found.best.model
    note(f"Training the winner: {_shape(found.best)}", quiet=quiet)
    model = TwinRegressor(
        twins=best.twins,
        hidden=best.hidden,
        effort=effort,
        steps=steps,
        intervals=intervals,
        random_state=seed,
        verbose=verbose,
    )
    trained = fit_run(model, source, run, split=split, overwrite=overwrite, quiet=quiet)
    if model.interrupted_:
        note(f"Stopped early; the best weights are in {run}.", quiet=quiet)
        raise typer.Exit(130)
    written, needed = write_winner(
        run, output, best, seed, tolerance=tolerance, overwrite=overwrite
    )
    note_earlier(written, quiet=quiet)
    cost = written.files[0].score.cost
    if needed > tolerance:
        note(
            f"Rounding raises the validation error by {100 * cost:.1f} %, more than --tolerance "
            f"{tolerance:g} allows; the pack is written all the same",
            quiet=quiet,
        )
    file = written.files[0]
    path = output / file.path.name
    packed = from_pack(path)[0]
    verdict = judge(packed, place, measured)
    result = {
        "board": board,
        "twins": best.twins,
        "hidden": list(best.hidden),
        "anchors": best.anchors,
        "weights": best.weights,
        "activation": trained["activation"],
        "intervals": packed.intervals,
        "rmse_val": file.score.rmse,
        "rmse_test": file.score.rmse_test,
        "tolerance": tolerance,
        "tolerance_needed": max(cost, 0.0),
        "within_tolerance": needed <= tolerance,
        "verdict": verdict.words,
        "flash_bytes": verdict.flash_bytes,
        "ram_bytes": verdict.ram_bytes,
        "milliseconds_estimated": verdict.milliseconds and list(verdict.milliseconds),
        "file": str(path),
        "run": str(run),
    }
    if as_json:
        frontier = [{**_record(one), "chosen": one is found.best} for one in found.frontier()]
        print_json({**result, "tried": len(found.trials), "frontier": frontier})
        return
    note(f"To try it out: twinedge firmware run --board {board} {path}", quiet=quiet)
    _print_frontier(found)
    print_text("")
    print_record(
        result
        | {
            "hidden": "-".join(map(str, best.hidden)),
            "milliseconds_estimated": in_words(verdict.milliseconds) or None,
        }
    )


def _record(one: "Attempt") -> dict[str, Any]:
    return {
        "twins": one.model.twins,
        "hidden": list(one.model.hidden),
        "anchors": one.model.anchors,
        "weights": one.model.weights,
        "activation": one.model.activation,
        "flash_bytes": one.flash_bytes,
        "ram_bytes": one.ram_bytes,
        "rmse_val": one.rmse_val,
    }


def _shape(one: "Attempt") -> str:
    model = one.model
    hidden = "-".join(map(str, model.hidden))
    return f"twins {model.twins}, {hidden}, anchors {model.anchors}, {model.weights}"


def _print_frontier(found: "Search") -> None:
    chosen = found.best
    print_text(
        f"Tried {len(found.trials)} models briefly. None smaller is as good as one of these; the "
        "chosen one (*) may be",
        "up to 1 % worse than the best, for more anchors or smaller weights.",
        "",
    )
    columns = ("twins", "hidden", "anchors", "weights", "activation", "flash", "RAM", "RMSE")
    print_table(
        ("", *columns),
        [
            ["*" if trial is chosen else "", *map(_text, _record(trial).values())]
            for trial in found.frontier()
        ],
    )


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "-".join(map(str, value))
    return f"{value:.5g}" if isinstance(value, float) else str(value)
