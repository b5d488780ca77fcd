"""``twinedge store``: what devices learnt, shown, collected and forgotten."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import (
    check_output,
    format_value,
    note,
    note_beyond,
    note_faults,
    print_by_target,
    print_csv,
    print_help,
    print_json,
    print_record,
    print_result,
    print_table,
    print_text,
)
from twinedge.cli.values import ModelPath, Whole, WordOr
from twinedge.deprecation import deprecated_name
from twinedge.errors import InputError
from twinedge.progress import progress_bar

if TYPE_CHECKING:
    from twinedge.runtime.store_summary import StoreSummary

_FILES = "Store of a device, or a dump of a microcontroller's two blocks."
_PACK = "Pack of the model: for names of columns, and for errors."
_SHOWN = 20  # points of a table, unless more are requested

store_argument = options.argument("file", "FILE", _FILES)
store_arguments = options.argument("files", "FILE...", _FILES, nargs=-1)
several_targets = options.value(
    "--targets",
    "N",
    Whole(1),
    default="1",
    text="How many targets a point has, if no pack says it.",
)
model_pack = options.option("--pack", metavar="MODEL.twin", type=ModelPath("pack"), text=_PACK)


@options.group(
    "store",
    "store show site.store --pack out/model.twin",
    "store export dumps/*.bin --pack out/model.twin -o points.csv",
    "store forget site.store --keep 100",
)
@click.pass_context
def store(context: click.Context) -> None:
    """Show, collect and forget points that devices learnt.

    A store is a file on a Raspberry Pi, or the two blocks of a microcontroller's flash, read out
    one after the other. Damaged ones give what is sound.
    """
    print_help(context)


@options.command(
    "show",
    "store show site.store",
    "store show site.store --pack out/model.twin",
    "store show pump7.bin --pack out/model.twin --points all",
)
@store_argument
@model_pack
@options.value(
    "--points",
    "N|all",
    WordOr(Whole(0), "all"),
    default=str(_SHOWN),
    text="How many of the latest points to list.",
)
@several_targets
@options.as_json
@options.quiet
def show(
    file: Path, pack: Path | None, points: Any, targets: int, as_json: bool, quiet: bool
) -> None:
    """Show the points in a store, and their errors.

    Without a pack, columns are x0, x1, ... With one, the error of each point (measured minus
    predicted) is shown as shipped, and as adapted: predicted from all the other points. A point
    that is suspect is so far from what the others and the pack allow that it counts for nothing,
    in predictions and in the errors above the table. Coverage is that of the usual interval.

    The generation counts how often one of the two blocks was erased and written: their wear.
    """
    from twinedge.runtime.loading import load_pack_device
    from twinedge.runtime.store_summary import read_store

    device = None if pack is None else load_pack_device(pack)
    found = read_store(file, targets) if device is None else device.summarise(file)
    listed = found.listed(None if device is None else device.encoding)
    if as_json:
        print_json({**found.facts, "list": listed})
        return
    note_faults(found, quiet=quiet)
    note_beyond(dict(zip(found.names, found.errors, strict=False)), quiet=quiet)
    facts = {key: value for key, value in found.facts.items() if key not in ("device", "targets")}
    print_record(facts)
    if len(found.errors) > 1:
        print_text("")
        print_by_target(found.facts["targets"])
    count = len(listed) if points == "all" else min(points, len(listed))
    if not count:
        return
    others = len(listed) - count
    print_text("", *([f"The latest {count} points; --points all lists all."] if others else []))
    names = ["number", "time", *listed[0]["features"]]
    for name in found.names:
        of = f"{name} " if len(found.names) > 1 else ""
        errors = [f"{of}error shipped", f"{of}adapted", f"{of}suspect"] if found.errors else []
        names += [name, *errors]
    rows = []
    for one in listed[others:]:
        number, time, features, *measured = one.values()
        if len(found.names) > 1:  # each is by name
            measured = [own[name] for name in found.names for own in measured]
        rows.append([*map(format_value, (number, time, *features.values(), *measured))])
    print_table(names, rows)


@options.command(
    "export",
    "store export dumps/*.bin --pack out/model.twin -o points.csv",
    "train base.csv points.csv --target strength --group device",
)
@store_arguments
@options.file_option("--output", "-o", required=True, text="Table to write.")
@model_pack
@options.flag("--times", text="Add a column of times, as the numbers that the device gave.")
@options.flag("--suspect", text="Also write points that are suspect.")
@options.flag("--doubted", hidden=True, text="As --suspect.")
@several_targets
@options.as_json
@options.quiet
def export(
    files: tuple[Path, ...],
    output: Path,
    pack: Path | None,
    times: bool,
    suspect: bool,
    doubted: bool,
    targets: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the points of stores as a table to train on.

    They are in the units that they were measured in. With a pack, the columns have their names, and
    categories their levels; without one, features are x0, x1, ... and the target is y. Each row has
    the name of its device: that of its file, without the suffix. The same point in two dumps of one
    device is written once, so name dumps of one device alike, in different folders. Points that
    are suspect, because they are far from what the others and the pack allow, are left out.
    """
    from twinedge.runtime.loading import load_pack_device
    from twinedge.runtime.store_collection import as_table, shared_points
    from twinedge.runtime.store_summary import read_store

    check_output(output, *files)
    if doubted:
        note(deprecated_name("--doubted", "--suspect"), quiet=quiet)
        suspect = True
    device = None if pack is None else load_pack_device(pack)

    def read(path: Path) -> "StoreSummary":
        return read_store(path, targets) if device is None else device.read_store(path)

    found = _read(files, read, quiet)
    twice = shared_points(found)
    if twice is not None:
        first, second = (one.path for one in twice)
        note(
            f"{first} and {second} hold the same points: if they are dumps of one device, give "
            "them the same name, in different folders",
            quiet=quiet,
        )
    encoding = None if device is None else device.encoding
    table = as_table(found, encoding, found[0].names if found else (), times=times, suspect=suspect)
    print_csv(table.header, table.rows, output)
    print_result(
        {
            "output": str(output),
            "points": len(table.rows),
            "suspect": table.suspect,
            "devices": len({one.device for one in found if len(one.points)}),
            "columns": table.header,
        },
        as_json,
    )


@options.command(
    "forget",
    "store forget site.store --all",
    "store forget site.store --keep 100",
    "store forget site.store --before 2026-06-01",
    "store forget site.store --number 7 --number 12",
)
@store_argument
@options.flag("--all", "every", text="Forget all points.")
@options.value("--keep", "N", Whole(0), text="Forget all but the latest N.")
@options.option(
    "--before",
    metavar="TIME",
    text="Forget points with an earlier time: a date, or a number such as those the device gave.",
)
@options.value("--first", "A", Whole(0), text="With --last: forget the points numbered A to B.")
@options.value("--last", "B", Whole(0), text="See --first.")
@options.value(
    "--number",
    "N",
    Whole(0),
    multiple=True,
    text="Forget the point with this number; may be repeated.",
)
@options.as_json
def forget(
    file: Path,
    every: bool,
    keep: int | None,
    before: str | None,
    first: int | None,
    last: int | None,
    number: tuple[int, ...],
    as_json: bool,
) -> None:
    """Forget points of a store.

    The others keep their numbers, which 'store show' lists. Damaged entries are cleared away.
    Points without a time are not forgotten by --before.
    """
    import numpy as np

    from twinedge.runtime.journal_file import Journal
    from twinedge.runtime.store import Points, check_forgotten, forgotten

    ends = first is not None or last is not None
    if sum((every, keep is not None, before is not None, ends, bool(number))) != 1:
        raise InputError(
            "say which points: one of --all, --keep, --before, --first with --last, or --number"
        )
    if ends and (first is None or last is None):
        raise InputError("--first and --last belong together: the numbers of both ends")
    time = None if before is None else _time(before)
    check_forgotten(first, last, keep, time)
    if not file.exists():
        raise InputError(f"{file} does not exist")
    with Journal(file) as journal:
        journal.lock()
        held = Points.of(journal.content)
        if number:
            gone = np.isin(held.numbers, number)
            if absent := sorted(set(number) - set(held.numbers.tolist())):
                raise InputError(f"{file} has no point {absent[0]}: see 'twinedge store show'")
        else:
            gone = forgotten(held, first, last, keep, time)
        if gone.any() or journal.content.damaged:
            journal.keep(~gone)
    left = int((~gone).sum())
    print_result({"file": str(file), "forgotten": int(gone.sum()), "points": left}, as_json)


@options.command("merge", "store merge north.store south.store -o plant.store")
@store_arguments
@options.file_option("--output", "-o", required=True, text="Store to write; a new file.")
@several_targets
@options.as_json
@options.quiet
def merge(files: tuple[Path, ...], output: Path, targets: int, as_json: bool, quiet: bool) -> None:
    """Join the points of stores in a new one.

    The stores belong to models with the same columns and target. The same point in two of them
    counts once. Points get new numbers: in order of time if all have one, else in that of the
    files. A single damaged store gives a sound one.
    """
    from twinedge.atomic_files import check_file
    from twinedge.runtime.adaptation import MOST_POINTS
    from twinedge.runtime.store_collection import merge as merge_stores
    from twinedge.runtime.store_summary import read_store

    check_file(output)
    points = merge_stores(_read(files, lambda path: read_store(path, targets), quiet), output)
    if len(points) > MOST_POINTS:
        note(f"a device uses the latest {MOST_POINTS} points", quiet=quiet)
    print_result({"output": str(output), "stores": len(files), "points": len(points)}, as_json)


for _command in (show, export, forget, merge):
    store.add_command(_command)


def _read(
    files: tuple[Path, ...], read: "Callable[[Path], StoreSummary]", quiet: bool
) -> "list[StoreSummary]":
    """Read stores, and say what of them cannot be read."""
    found = []
    with progress_bar(not quiet) as progress:
        for number, path in enumerate(files):
            progress.at("Reading stores", number, len(files))
            found.append(read(path))
    for one in found:
        note_faults(one, quiet=quiet)
    return found


def _time(text: str) -> int:
    """Read a date, or a number as devices give them."""
    from twinedge.encoding.times import NUMBERS, read_times

    if text.strip().isdecimal():
        return int(text)
    try:
        found = read_times([text])
    except InputError:
        found = None
    if found is None or found.notation.unit == NUMBERS or not found.seconds[0] >= 0:
        raise InputError(
            f"--before {text}: not a time; write a date such as 2026-06-01, or a whole number such "
            "as those that the device gave"
        )
    return int(found.seconds[0])
