"""``twinedge firmware``: packs on boards, built and run on emulators."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinedge.cli import firmware_measure
from twinedge.cli.options import Json, examples, value
from twinedge.cli.output import note, print_json, print_record, print_table, print_text
from twinedge.cli.words import whole
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.pack import Pack
    from twinedge_export.boards import Target, Workshop

app = typer.Typer()

BoardName = Annotated[
    str,
    typer.Option(
        "--board", "-b", metavar="NAME", help="As in 'firmware boards' or 'budget boards'."
    ),
]
PackFile = Annotated[Path, typer.Argument(metavar="FILE.twin", help="Pack written by export.")]
KeepAll = Annotated[
    bool,
    typer.Option(
        "--keep-all", help="Keep of the runtime what this pack does not need; others may follow it."
    ),
]


@app.callback(
    invoke_without_command=True,
    epilog=examples("firmware boards", "firmware run --board mps2-an386 out/model.twin DATA.csv"),
)
def firmware(context: typer.Context) -> None:
    """Build a pack for a board, and run it on an emulator."""
    if context.invoked_subcommand is None:
        print_text(context.get_help())


@app.command("boards", epilog=examples("firmware boards", "firmware boards --json"))
def list_boards(as_json: Json = False) -> None:
    """List the boards, and what is missing to build for them and run them here.

    A board plays those that 'budget boards' lists with its instructions, too.
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


@app.command("build", epilog=examples("firmware build --board mps2-an386 out/model.twin"))
def build(
    file: PackFile,
    board: BoardName,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Image to write.")
    ] = Path("image.elf"),
    keep_all: KeepAll = False,
    as_json: Json = False,
) -> None:
    """Write an image for a board: runtime, pack, and the pack's first anchor as a query.

    Ids and metadata stay out. Sizes are those of the runtime in bytes, as the linker gives them.
    For a board that another plays the image is for the other; the C project of an export is what
    to load onto it.
    """
    from twinedge.pack import write_pack
    from twinedge.placing import check_file, place_file
    from twinedge_export.boards.trial import own_points

    check_file(output)
    pack = _pack(file)
    with _workshop(board, pack, keep_all) as (target, workshop):
        image = workshop.image(write_pack(pack, metadata=False), own_points(pack, 1))
        if target.owned:
            target.check(flash=workshop.flash_bytes(image))
        place_file(output, image.path.read_bytes())
    sizes = {f"{kind}_bytes": size for kind, size in image.sizes._asdict().items()}
    result = {"board": board, **_played(target), "image": str(output), **sizes}
    result["pack_bytes"] = image.pack_bytes
    if target.emulated:
        load = "" if target.port.hosted else f"; to load onto {board}, export a C project"
        note(f"Built for {target.emulated}{load}")
    (print_json if as_json else print_record)(result)


@app.command(
    "run",
    epilog=examples(
        "firmware run --board mps2-an386 out/model.twin DATA.csv",
        "firmware run --board pico out/model.twin",
    ),
)
def run(
    file: PackFile,
    board: BoardName,
    table: Annotated[
        Path | None, typer.Argument(metavar="DATA.csv", help="Table with the queries.")
    ] = None,
    rows: Annotated[
        Any, value("Take so many rows of the table, the first ones.", "N", whole(1))
    ] = None,
    keep_all: KeepAll = False,
    as_json: Json = False,
) -> None:
    """Build a pack for a board, run it on an emulator, and compare bit for bit.

    The reference is the evaluator in Python. Columns are found by the names in the pack; without
    names, by position; without a table, the pack's first anchors are the queries (1). Exit code 1
    where an answer differs. A board without an emulator is played by one whose core has its
    instructions, which is told.
    """
    from twinedge.pack import write_pack
    from twinedge_export.boards import try_pack
    from twinedge_export.boards.trial import own_points, read_queries

    pack = _pack(file)
    queries = read_queries(table, pack, rows) if table else own_points(pack, rows or 1)
    with _workshop(board, pack, keep_all) as (target, workshop):
        trial = try_pack(workshop, write_pack(pack, metadata=False), queries)
        if target.owned:
            target.check(flash=workshop.flash_bytes(trial.image), ram=trial.ram_bytes)
    if target.emulated:
        note(f"Emulated on {target.emulated}")
    result = {"board": board, **_played(target), **trial.record()} | {"board": board}
    (print_json if as_json else print_record)(result)
    if len(trial.mismatches):
        raise typer.Exit(1)


app.command("measure", epilog=firmware_measure.EXAMPLES)(firmware_measure.measure)
app.command("sizes", epilog=examples("firmware sizes --json"))(firmware_measure.show_sizes)


def _pack(file: Path) -> "Pack":
    from twinedge.errors import place
    from twinedge.pack import read_pack

    try:
        return read_pack(file.read_bytes())
    except OSError as error:
        why = error.strerror
        raise InputError(f"{place(file)} cannot be read: {why}; name a .twin file") from error
    except InputError as error:
        raise InputError(f"{place(file)}: {error}") from error


@contextmanager
def _workshop(board: str, pack: "Pack", keep_all: bool) -> "Iterator[tuple[Target, Workshop]]":
    from twinedge_export.boards import Workshop, target_named
    from twinedge_export.boards.build import EVERYTHING, TooLargeError, left_out

    target, flags = target_named(board), EVERYTHING if keep_all else left_out(pack)
    with TemporaryDirectory(prefix="twinedge-") as folder:
        try:
            yield target, Workshop(target.port, Path(folder), flags)
        except TooLargeError as error:
            raise target.too_large(error) from error
        except OSError as error:  # a full disk does not say of which file
            raise InputError(f"cannot build in {folder}: {error.strerror or error}") from error


def _played(target: "Target") -> dict[str, Any]:
    return {"port": target.port.name, "emulated": target.emulated}
