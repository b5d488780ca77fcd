"""``twinedge budget fit``: the most accurate model that fits a board."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import (
    format_value,
    note,
    print_json,
    print_record,
    print_table,
    print_text,
)
from twinedge.cli.values import Whole
from twinedge.defaults import ANCHORS, OUTPUT
from twinedge.progress import progress_bar
from twinedge.wording import format_range

if TYPE_CHECKING:
    from twinedge_export.fit_board import Attempt, Search

_SECONDS = {"quick": 20.0, "normal": 100.0, "thorough": 300.0}  # of a training, about


@options.command(
    "fit",
    "budget fit --board uno --dataset cs",
    "budget fit data.csv --target strength --board pico -o model",
    "budget fit log.csv --target power --time timestamp --board pico",
)
@options.board("Name from 'budget boards'.", required=True)
@options.reading
@options.group_column
@options.time_column
@options.dataset
@options.split("Which random split.")
@options.value("--anchors", "N", Whole(1), default=ANCHORS, text="Most anchors to try.")
@options.value(
    "--tries", "N", Whole(1), default=6, text="Widths to try, from the widest that fits."
)
@options.input_map(
    "none", "Learn curves of so many straight pieces in front of the twins; auto tries both."
)
@options.target_curve
@options.effort("normal", "How long to train the winner.")
@options.steps("Steps of each training; auto goes by effort.")
@options.folder_option("--output", "-o", default=Path(OUTPUT), text="Folder of the pack.")
@options.folder_option(
    "--run", metavar="RUN", text="Run folder of the winner; by default runs/BOARD."
)
@options.tolerance
@options.overwrite
@options.pack_intervals
@options.firmware_sizes
@options.seed
@options.as_json
@options.quiet
def fit(
    board: str,
    tables: tuple[Path, ...],
    dataset: str | None,
    split: int,
    anchors: int,
    tries: int,
    input_map: int | str,
    target_curve: str,
    effort: str,
    steps: Any,
    output: Path,
    run: Path | None,
    tolerance: float,
    overwrite: bool,
    intervals: bool,
    firmware: Path | None,
    seed: int,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Find, train and write the most accurate model that fits a board.

    Twins, width, anchors and bits are chosen on the validation rows, with brief trainings; the
    winner is then trained in full. RMSE is in units of the target, sizes in bytes. If rounding the
    winner costs more than the tolerance, it is written all the same, with a remark. With --group
    or --time, rows are held out as by train.
    """
    from twinedge.atomic_files import EXPORT, RUN, check_folder
    from twinedge.budget import board_named, board_verdict, read_firmware
    from twinedge.budget.read_model import from_pack
    from twinedge.cli.export import note_earlier
    from twinedge.cli.reading import read_source
    from twinedge.encoding.windows import memory_of
    from twinedge.fitting import TrainSettings, fit_source
    from twinedge.scoring.weights import of_rows
    from twinedge_export.fit_board import (
        check_measured,
        fitting,
        map_kinds,
        search,
        write_winner,
    )
    from twinedge_export.settings import ExportSettings

    place, measured = board_named(board), read_firmware(firmware)
    check_measured(place, measured)
    source = read_source(tables, reading, dataset, split, quiet=quiet)
    train, validation = source.part(source.rows.train), source.part(source.rows.val)
    most = min(anchors, len(train[1]))
    samples = memory_of(source.encoding.derived)
    free = replace(place, reserved_ram=place.reserved_ram + samples)
    # Fail now, not after training.
    bins = map_kinds(input_map, train[0], free, measured)[0]
    curved = target_curve != "none"
    fitting(train[0].shape[1], most, free, measured, intervals=intervals, bins=bins, curved=curved)
    run = run or Path("runs") / board
    check_folder(output, EXPORT, overwrite=overwrite)
    check_folder(run, RUN, overwrite=overwrite)
    with progress_bar(not quiet) as progress:
        progress.plan({"winner": _SECONDS[effort], "Exporting": 10.0})
        with progress.part("search"):
            found = search(
                train,
                validation,
                free,
                measured,
                anchors=anchors,
                tries=tries,
                intervals=intervals,
                input_map=input_map,
                target_curve=target_curve,
                seed=seed,
                encoding=source.encoding,
                groups=of_rows(source.groups, source.rows.train),
                times=of_rows(source.times, source.rows.train),
                say=lambda message: note(message, quiet=quiet),
                steps=steps,
                verbose=True,
            )
        best = found.best.model
        note(f"Training the winner: {_shape(found.best)}", quiet=quiet)
        with progress.part("winner"):
            settings = TrainSettings(
                twins=best.twins,
                hidden=best.hidden,
                input_map=found.best.input_map,
                target_curve=target_curve,
                effort=effort,
                steps=steps,
                intervals=intervals,
                random_state=seed,
                verbose=not quiet,
                run=run,
                overwrite=overwrite,
                report=lambda message: note(message, quiet=quiet),
            )
            trained = fit_source(source, settings)
        if trained.model.interrupted_:
            note(f"Stopped early; the best weights are in {run}.", quiet=quiet)
            raise click.exceptions.Exit(130)
        progress.stage("Exporting")
        as_pack = ExportSettings(tolerance=tolerance, overwrite=overwrite, seed=seed)
        written, needed = write_winner(run, output, best, as_pack)
    note_earlier(written.folder, written.placed, quiet=quiet)
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
    verdict = board_verdict(packed, place, measured)
    result = {
        "board": board,
        "twins": best.twins,
        "hidden": list(best.hidden),
        "anchors": best.anchors,
        "weights": best.weights,
        "activation": trained.model.activation_,
        "intervals": packed.intervals,
        "input_map": found.best.input_map,
        "target_curve": trained.model.target_curve_,
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
        print_json({**result, "tried": len(found.attempts), "frontier": frontier})
        return
    note(f"To try it out: twinedge firmware run --board {board} {path}", quiet=quiet)
    _print_frontier(found)
    print_text("")
    print_record(
        result
        | {
            "hidden": _widths(best.hidden),
            "milliseconds_estimated": format_range(verdict.milliseconds) or None,
        }
    )


def _record(one: "Attempt") -> dict[str, Any]:
    return {
        "twins": one.model.twins,
        "hidden": list(one.model.hidden),
        "anchors": one.model.anchors,
        "weights": one.model.weights,
        "activation": one.model.activation,
        "input_map": one.input_map,
        "flash_bytes": one.flash_bytes,
        "ram_bytes": one.ram_bytes,
        "rmse_val": one.rmse_val,
    }


def _shape(one: "Attempt") -> str:
    model = one.model
    shape = f"twins {model.twins}, {_widths(model.hidden)}{', with a map' * (one.bins > 0)}"
    return f"{shape}, anchors {model.anchors}, {model.weights}"


def _print_frontier(found: "Search") -> None:
    print_text(
        f"Tried {len(found.attempts)} models briefly. No smaller one is as good as any of these; "
        "the chosen one (*)",
        "may be up to 1 % worse than the best, for more anchors or smaller weights.",
        "",
    )
    frontier = found.frontier()
    rows = [_record(one) | {"hidden": _widths(one.model.hidden)} for one in frontier]
    if not any(one.bins for one in frontier):
        rows = [{key: one for key, one in row.items() if key != "input_map"} for row in rows]
    titles = {"input_map": "map", "flash_bytes": "flash", "ram_bytes": "RAM", "rmse_val": "RMSE"}
    print_table(
        ("", *(titles.get(key, key) for key in rows[0])),
        [
            ["*" if one is found.best else "", *map(format_value, row.values())]
            for one, row in zip(frontier, rows, strict=True)
        ],
    )


def _widths(hidden: tuple[int, ...]) -> str:
    """Write the widths of layers as 128-128."""
    return "-".join(map(str, hidden))
