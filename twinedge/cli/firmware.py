"""``twinedge firmware``: build packs for boards, and run them on emulators."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import (
    note,
    print_help,
    print_json,
    print_record,
    print_table,
)
from twinedge.cli.values import Whole
from twinedge.errors import InputError
from twinedge.progress import Lines, Progress

if TYPE_CHECKING:
    from twinedge.pack import Pack
    from twinedge_export.boards import Builder, Target

_board = options.board("As in 'firmware boards' or 'budget boards'.", required=True)
_keep_all = options.flag("--keep-all", text="Keep parts of the runtime that only other packs need.")


@options.group(
    "firmware", "firmware boards", "firmware run --board mps2-an386 out/model.twin DATA.csv"
)
@click.pass_context
def firmware(context: click.Context) -> None:
    """Build a pack for a board, and run it on an emulator."""
    print_help(context)


@options.command("boards", "firmware boards", "firmware boards --json")
@options.as_json
def list_boards(as_json: bool) -> None:
    """List the boards, and what is missing to use them here.

    A board also plays those in 'budget boards' that have its instructions.
    """
    from twinedge_export.boards import all_ports
    from twinedge_export.boards.board import plays

    boards = all_ports().values()
    if as_json:
        rows = [
            {
                "board": one.name,
                "core": one.core,
                "title": one.title,
                "missing": one.missing,
                "plays": plays(one),
            }
            for one in boards
        ]
        print_json({"boards": rows})
        return
    print_table(
        ("board", "core", "title", "apt-get install", "plays"),
        [
            (
                one.name,
                one.core,
                one.title,
                " ".join(one.missing) or "-",
                ", ".join(plays(one)) or "-",
            )
            for one in boards
        ],
    )


@options.command("build", "firmware build --board mps2-an386 out/model.twin")
@options.written_pack
@_board
@options.file_option("--output", "-o", default=Path("image.elf"), text="Image to write.")
@_keep_all
@options.as_json
def build(file: Path, board: str, output: Path, keep_all: bool, as_json: bool) -> None:
    """Write an image of a pack for a board.

    It holds the runtime, the pack without ids and metadata, and the pack's first anchor as a query.
    Sizes are those of the runtime in bytes, as the linker reports them. If another board plays this
    one, the image is for the other; load the C project of an export onto the real board.
    """
    from twinedge.atomic_files import check_file, write_file
    from twinedge.pack import write_pack
    from twinedge.runtime.pack_device import read_pack_file
    from twinedge_export.boards.run import anchor_queries

    check_file(output)
    pack, _ = read_pack_file(file)
    with _builder(board, pack, keep_all) as (target, builder):
        image = builder.image(write_pack(pack, metadata=False), anchor_queries(pack, 1))
        if target.owned:
            target.check(flash=builder.flash_bytes(image))
        write_file(output, image.path.read_bytes())
    sizes = {f"{kind}_bytes": size for kind, size in image.sizes._asdict().items()}
    result = {"board": board, **_played(target), "image": str(output), **sizes}
    result["pack_bytes"] = image.pack_bytes
    if target.emulated:
        load = "" if target.port.hosted else f"; to load onto {board}, export a C project"
        note(f"Built for {target.emulated}{load}")
    (print_json if as_json else print_record)(result)


@options.command(
    "run",
    "firmware run --board mps2-an386 out/model.twin DATA.csv",
    "firmware run --board pico out/model.twin",
)
@options.written_pack
@_board
@options.argument("table", "[DATA.csv]", "Table with the queries.")
@options.value("--rows", "N", Whole(1), text="Use only the first N rows of the table.")
@_keep_all
@options.as_json
def run(
    file: Path, board: str, table: Path | None, rows: int | None, keep_all: bool, as_json: bool
) -> None:
    """Run a pack on an emulated board, and compare bit for bit.

    The pack is built for the board; the reference is the evaluator in Python. Columns are found by
    the names in the pack; without names, by position; without a table, the pack's first anchors are
    the queries (1). Exit code 1 if an answer differs. A board without an emulator is played by one
    whose core has its instructions, with a remark.
    """
    from twinedge.pack import write_pack
    from twinedge.runtime.pack_device import read_pack_file
    from twinedge_export.boards import run_pack
    from twinedge_export.boards.run import anchor_queries, read_queries

    pack, _ = read_pack_file(file)
    queries = read_queries(table, pack, rows) if table else anchor_queries(pack, rows or 1)
    with _builder(board, pack, keep_all) as (target, builder):
        found = run_pack(builder, write_pack(pack, metadata=False), queries)
        if target.owned:
            target.check(flash=builder.flash_bytes(found.image), ram=found.ram_bytes)
    if target.emulated:
        note(f"Emulated on {target.emulated}")
    result = {"board": board, **_played(target), **found.record()} | {"board": board}
    (print_json if as_json else print_record)(result)
    if len(found.mismatches):
        raise click.exceptions.Exit(1)


@options.command("esphome", "firmware esphome out/model.twin -o power")
@options.written_pack
@options.folder_option(
    "--output",
    "-o",
    default=Path("esphome"),
    text="Folder to write, beside the configuration of a device.",
)
@options.overwrite
@options.as_json
def esphome(file: Path, output: Path, overwrite: bool, as_json: bool) -> None:
    """Write a pack as a package for ESPHome.

    The folder holds the component with the C runtime, the pack, and model.yaml: a package that a
    configuration includes. It gives sensors for the prediction and its interval, a binary sensor
    for unusual conditions, and a number to type true values into, from which the device learns. Ids
    of the sensors that it reads are substitutions.
    """
    from twinedge.cli.export import note_earlier
    from twinedge_export.esphome import PACKAGE, esphome_package

    result = esphome_package(file, output, overwrite=overwrite)
    note_earlier(output, result.placed)
    if as_json:
        print_json(result.record())
        return
    print_table(
        ("column", "substitution", "by default", "reads a", "values"),
        [(one.column, one.substitution, one.id, one.kind, one.values) for one in result.sources],
    )
    name = output.resolve().name
    note(f"In a configuration beside it, under packages: {name}: !include {name}/{PACKAGE}")


@options.command("measure", "firmware measure --board uno", "firmware measure -o sizes.json --json")
@options.board("Only this one; may be repeated.", multiple=True)
@options.file_option("--output", "-o", text="File to write, instead of the one shipped.")
@options.quiet
@options.as_json
def measure(board: tuple[str, ...], output: Path | None, quiet: bool, as_json: bool) -> None:
    """Measure what the runtime takes on every board.

    Builds and runs reference packs, and writes the file that 'twinedge budget' reads. Boards that
    are not measured now stay as they were; the file is written after each board, which takes some
    minutes. The tables in docs/ports.md follow the file that ships.
    """
    from twinedge.budget.measurements import SHIPPED, read_entries, read_firmware, write_firmware
    from twinedge_export.boards import all_ports, port_named
    from twinedge_export.boards.measure import STAGES, checkout, measure_board, write_tables
    from twinedge_export.boards.sizes import sizes

    boards = [port_named(name) for name in dict.fromkeys(board or all_ports())]
    root = checkout()
    page = None
    if output is None:
        if root is None or not SHIPPED.is_relative_to(root):
            raise InputError(
                f"{SHIPPED} is part of an installation: name the file to write with -o"
            )
        page = root / "docs" / "ports.md"
    for one in boards:
        one.check_tools()
    file = output or SHIPPED
    rows = read_entries(file) if file.exists() else {}
    write_firmware(rows, file)  # fail now, not after the work
    total = len(boards) * STAGES
    steps, progress = iter(range(1, total + 1)), Progress() if quiet else Lines()
    for one in boards:
        rows[one.core] = measure_board(one, say=lambda what: progress.at(what, next(steps), total))
        write_firmware(rows, file)
    firmware = read_firmware(file)
    found = sizes(firmware)
    if page is not None:
        write_tables(firmware, page)
    if as_json:
        print_json({"file": str(file), "page": page and str(page), "boards": found})
    else:
        _print_sizes(found)


@options.command("sizes", "firmware sizes --json")
@options.as_json
def show_sizes(as_json: bool) -> None:
    """Show what the runtime takes on each board that was measured.

    For 8 features, 128-128, relu, int8 and 32 anchors, with intervals and without: bytes of code,
    of all RAM and of the stack in it, instructions of one query.
    """
    from twinedge.budget import read_firmware
    from twinedge_export.boards.sizes import sizes

    found = sizes(read_firmware())
    if as_json:
        print_json({"boards": found})
    else:
        _print_sizes(found)


def _print_sizes(found: list[dict[str, object]]) -> None:
    from twinedge_export.boards.sizes import HEADER, as_words

    print_table(HEADER, list(map(as_words, found)))


@contextmanager
def _builder(board: str, pack: "Pack", keep_all: bool) -> "Iterator[tuple[Target, Builder]]":
    from twinedge_export.boards import Builder, target_named
    from twinedge_export.boards.build import TooLargeError, all_flags_for, flags_for

    target, flags = target_named(board), (all_flags_for if keep_all else flags_for)(pack)
    with TemporaryDirectory(prefix="twinedge-") as folder:
        try:
            yield target, Builder(target.port, Path(folder), flags)
        except TooLargeError as error:
            raise target.too_large(error) from error
        except OSError as error:  # a full disk does not name the file
            raise InputError(f"cannot build in {folder}: {error.strerror or error}") from error


def _played(target: "Target") -> dict[str, Any]:
    return {"port": target.port.name, "emulated": target.emulated}


for _command in (list_boards, build, run, esphome, measure, show_sizes):
    firmware.add_command(_command)
