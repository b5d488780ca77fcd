"""``twinedge firmware measure`` and ``sizes``: what the runtime takes on each board."""

from pathlib import Path
from typing import Annotated

import typer

from twinedge.cli.options import Json, Quiet, examples
from twinedge.cli.output import note, print_json, print_table

EXAMPLES = examples("firmware measure --board uno", "firmware measure -o sizes.json --json")


def measure(
    board: Annotated[
        list[str] | None,
        typer.Option("--board", "-b", metavar="NAME", help="Only this one; may be repeated."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write, if not the one shipped."
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Build and run reference packs on every board, and write what they take.

    'twinedge budget' judges boards by that file. What is not measured now stays as it was; the
    file is written after each board. It takes some minutes for each. The table in docs/ports.md
    follows the file that ships.
    """
    from twinedge.budget.boards import SHIPPED, read_firmware, read_rows, write_firmware
    from twinedge_export.boards import all_ports, port_named
    from twinedge_export.boards.measure import KINDS, host_stacks, measure_board, sizes, write_sheet

    boards = [port_named(name) for name in dict.fromkeys(board or all_ports())]
    for one in boards:
        one.check_tools()
    file = output or SHIPPED
    rows = read_rows(file) if file.exists() else {}
    write_firmware(rows, file)  # refused now, not after the work
    steps = iter(range(1, len(boards) * len(KINDS) + 1))
    for one in boards:
        rows[one.core] = measure_board(
            one,
            say=lambda what: note(f"{next(steps)}/{len(boards) * len(KINDS)} {what}", quiet=quiet),
        )
        write_firmware(rows, file)
    found = sizes(read_firmware(file))
    page = write_sheet(found, host_stacks()) if output is None else None
    if as_json:
        print_json({"file": str(file), "page": page and str(page), "boards": found})
    else:
        _print(found)


def show_sizes(as_json: Json = False) -> None:
    """Show what the runtime takes on each board, as 'firmware measure' found it.

    For 8 features, 128-128, relu, int8 and 32 anchors, with intervals and without: bytes of code,
    of all RAM and of the stack in it, instructions of one query.
    """
    from twinedge.budget import read_firmware
    from twinedge_export.boards.measure import sizes

    found = sizes(read_firmware())
    if as_json:
        print_json({"boards": found})
    else:
        _print(found)


def _print(found: list[dict[str, object]]) -> None:
    from twinedge_export.boards.measure import HEADER, as_words

    print_table(HEADER, list(map(as_words, found)))
