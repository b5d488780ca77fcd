"""``twinedge firmware``: packs on boards, built and run on emulators."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinedge.cli import firmware_measure
from twinedge.cli.options import Json, examples, value
from twinedge.cli.output import print_json, print_record, print_table, print_text
from twinedge.cli.words import whole
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge_export.boards import Workshop

app = typer.Typer()

BoardName = Annotated[
    str, typer.Option("--board", "-b", metavar="NAME", help="As in 'firmware boards'.")
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
    """List the boards, and what is missing to build for them and run them here."""
    from twinedge_export.boards import all_boards

    boards = all_boards().values()
    if as_json:
        rows = [
            {"board": one.name, "core": one.core, "title": one.title, "missing": one.missing}
            for one in boards
        ]
        print_json({"boards": rows})
        return
    print_table(
        ("board", "core", "title", "apt-get install"),
        [(one.name, one.core, one.title, " ".join(one.missing) or "-") for one in boards],
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

    Sizes are those of the runtime in bytes, as the linker gives them.
    """
    from twinedge.pack import read_pack
    from twinedge_export.boards.queries import own_points

    content = _content(file)
    with _workshop(board, content, keep_all) as workshop:
        image = workshop.image(content, own_points(read_pack(content), 1))
        beside = output.with_name(f".{output.name}.partial")
        shutil.copyfile(image.path, beside)
        beside.replace(output)
    sizes = {f"{kind}_bytes": size for kind, size in image.sizes._asdict().items()}
    result = {"board": board, "image": str(output), **sizes, "pack_bytes": image.pack_bytes}
    (print_json if as_json else print_record)(result)


@app.command(
    "run",
    epilog=examples(
        "firmware run --board mps2-an386 out/model.twin DATA.csv",
        "firmware run --board uno out/model.twin DATA.csv --rows 3 --json",
    ),
)
def run(
    file: PackFile,
    table: Annotated[Path, typer.Argument(metavar="DATA.csv", help="Table with the queries.")],
    board: BoardName,
    rows: Annotated[
        Any, value("Take so many rows of the table, the first ones.", "N", whole(1))
    ] = None,
    keep_all: KeepAll = False,
    as_json: Json = False,
) -> None:
    """Build a pack for a board, run it on an emulator, and compare bit for bit.

    The reference is the evaluator in Python. Columns are found by the names in the pack; without
    names, by position. Exit code 1 where an answer differs.
    """
    from twinedge.pack import read_pack
    from twinedge_export.boards import try_pack
    from twinedge_export.boards.queries import read_queries

    content = _content(file)
    queries = read_queries(table, read_pack(content), rows)
    with _workshop(board, content, keep_all) as workshop:
        trial = try_pack(workshop, content, queries)
    (print_json if as_json else print_record)(trial.record())
    if len(trial.mismatches):
        raise typer.Exit(1)


app.command("measure", epilog=firmware_measure.EXAMPLES)(firmware_measure.measure)
app.command("sizes", epilog=examples("firmware sizes --json"))(firmware_measure.show_sizes)


def _content(file: Path) -> bytes:
    from twinedge.data.wording import place
    from twinedge.pack import read_pack

    try:
        content = file.read_bytes()
    except OSError as error:
        why = error.strerror
        raise InputError(f"{place(file)} cannot be read: {why}; name a .twin file") from error
    try:
        read_pack(content)
    except InputError as error:
        raise InputError(f"{place(file)}: {error}") from error
    return content


@contextmanager
def _workshop(board: str, content: bytes, keep_all: bool) -> "Iterator[Workshop]":
    from twinedge.pack import read_pack
    from twinedge_export.boards import Workshop, board_named
    from twinedge_export.boards.build import left_out

    flags = () if keep_all else left_out(read_pack(content))
    with TemporaryDirectory(prefix="twinedge-") as folder:
        yield Workshop(board_named(board), Path(folder), flags)
