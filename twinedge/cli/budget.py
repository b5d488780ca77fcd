"""``twinedge budget``: memory against an ensemble of networks, and which boards hold it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from twinedge.cli.budget_fit import EXAMPLES as FIT_EXAMPLES
from twinedge.cli.budget_fit import fit
from twinedge.cli.options import Json, choice, examples, value
from twinedge.cli.output import print_json, print_table, print_text
from twinedge.cli.words import whole, widths
from twinedge.errors import InputError

if TYPE_CHECKING:
    from twinedge.budget import Model

_TOLD = ("verdict", "why", "anchors", "milliseconds_estimated")
_WEIGHTS = {"8": "int8", "16": "int16", "float16": "float16", "32": "float32"}


class _ShowFirst(TyperGroup):
    """A group in which ``show`` may be left out: whatever names no command is meant for it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["show", *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


app = typer.Typer(
    cls=_ShowFirst, help="Count memory against an ensemble of networks; judge boards."
)
app.command("fit", epilog=FIT_EXAMPLES)(fit)


@app.command(
    "show",
    epilog=examples(
        "budget --features 8 --hidden 128,128 --members 32 --bits 8",
        "budget out/model.twin --board uno --board pico",
        "budget runs/latest --members 16 --flash 32256",
        "budget boards",
        "budget fit --board uno --dataset cs",
    ),
)
def show(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN|FILE.twin", help="A run folder, or a pack.", show_default=False
        ),
    ] = None,
    features: Annotated[Any, value("Features, instead of a run or pack.", "N", whole(1))] = None,
    hidden: Annotated[Any, value("Widths of the hidden layers (128,128).", "N,N", widths)] = None,
    members: Annotated[
        Any, value("Members of the ensemble: networks, or anchors (32).", "N", whole(1))
    ] = None,
    twins: Annotated[Any, value("Twins that share the anchors (1).", "N", whole(1))] = None,
    bits: Annotated[
        str | None, choice("Weights: int8, int16 or float32 by number (8).", *_WEIGHTS)
    ] = None,
    activation: Annotated[
        str | None, choice("Activation of the hidden layers (relu).", "relu", "silu")
    ] = None,
    intervals: Annotated[
        bool | None,
        typer.Option(
            "--intervals/--no-intervals",
            show_default=False,
            help="Whether the pack has intervals, as export writes them by default.",
        ),
    ] = None,
    board: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Judge this board only; may be repeated."),
    ] = None,
    flash: Annotated[
        Any, value("Find the largest models that take so many bytes.", "BYTES", whole(1))
    ] = None,
    firmware: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measured sizes of the runtime, if not those shipped."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Count what a twin takes, what an ensemble would take, and judge boards.

    Sizes are in bytes. The word show may be left out. Times are estimates: measured instructions
    times a range of cycles per instruction. Where a query may take more than a second, the verdict
    says how long.
    """
    from twinedge.budget import all_boards, board_named, read_firmware, summarise

    numbers = {
        "--features": features,
        "--hidden": hidden,
        "--twins": twins,
        "--activation": activation,
        "--members": members,
        "--bits": bits,
        "--intervals": intervals,
    }
    boards = list(map(board_named, board)) if board else list(all_boards().values())
    found, file_bytes = _model(model, numbers)
    result = summarise(found, boards, read_firmware(firmware), flash=flash, file_bytes=file_bytes)
    if as_json:
        print_json({"model": model and str(model), **result})
    else:
        _print(result)


def _model(path: Path | None, numbers: dict[str, Any]) -> "tuple[Model, int | None]":
    """Take the model from where it is described; with the bytes of the file if it is one."""
    from twinedge.budget import Model
    from twinedge.budget.model import from_pack, from_run

    given = [option for option, number in numbers.items() if number is not None]
    anchors, weights = numbers["--members"] or 32, _WEIGHTS[numbers["--bits"] or "8"]
    intervals = numbers["--intervals"] is not False
    if path is None:
        if numbers["--features"] is None:
            raise InputError("nothing to count: name a RUN, a FILE.twin, or --features N")
        return Model.of(
            numbers["--features"],
            numbers["--hidden"] or (128, 128),
            anchors,
            twins=numbers["--twins"] or 1,
            activation=numbers["--activation"] or "relu",
            weights=weights,
            intervals=intervals,
        ), None
    free = ("--members", "--bits", "--intervals") if path.is_dir() else ()
    fixed = [option for option in given if option not in free]
    if fixed:
        raise InputError(f"{path} says what {fixed[0]} is: leave the option out")
    if not path.exists():
        raise InputError(f"{path} does not exist: name a run folder or a .twin file")
    if not path.is_dir():
        return from_pack(path)
    return from_run(path, anchors, weights, intervals), None


def _print(result: dict[str, Any]) -> None:
    from twinedge.budget.boards import in_words
    from twinedge.budget.fits import told

    members, twins = result["members"], result["twins"]
    shape = "-".join(map(str, result["hidden"]))
    print_text(
        f"{_count(result['features'], 'feature')}, {shape} {result['activation']}, "
        f"{result['weights']}, {'with' if result['intervals'] else 'without'} intervals, "
        f"{_count(result['multiply_adds'], 'multiply-add')} in a query",
        "",
    )
    stored = result["bytes"]
    rows = [
        [f"{_count(members, 'ordinary network')}", result["ann_params"], "ann"],
        [
            f"{_count(twins, 'twin')} with {_count(result['anchors'], 'anchor')}",
            result["twin_params"],
            "twin",
        ],
    ]
    print_table(
        ("", "parameters", *stored),
        [
            [name, str(count), *(_size(one[key]) for one in stored.values())]
            for name, count, key in rows
        ],
    )
    print_text("", *_remarks(result), "")
    print_table(
        ("board", "core", "flash", "of", "RAM", "of", "ms, estimated", "verdict"),
        [
            [
                one["board"],
                _core(one["core"], one["measured_on"]),
                _size(one["flash_bytes"]),
                _size(one["free_flash_bytes"]),
                _size(one["ram_bytes"]),
                _size(one["free_ram_bytes"]),
                in_words(one["milliseconds_estimated"]),
                told(*(one[key] for key in _TOLD)),
            ]
            for one in result["boards"]
        ],
    )


def _remarks(result: dict[str, Any]) -> list[str]:
    """Say in words what the tables do not."""
    start, sections = result["smaller_from"], result["sections"]
    lines = [f"Twins have fewer parameters from {_count(start['params'], 'member')} on"]
    lines[0] += f", fewer bytes from {start['bytes']} on." if start["bytes"] else "."
    if result["ratio"]:
        lines.append(f"The ensemble takes {result['ratio']:.1f} times the bytes of the twins.")
    if sections:
        parts = ", ".join(f"{name} {size}" for name, size in sections.items())
        lines.append(f"The pack: {parts}.")
    more = (result["file_bytes"] or 0) - (result["twin_bytes"] or 0)
    if more > 0:
        lines.append(f"The file has {more} bytes more, ids and metadata: boards do without them.")
    if "in_flash" in result:
        room, *most = (_size(number) for number in result["in_flash"].values())
        lines.append(
            "At most, all else equal, {} bytes hold: ordinary networks {}, anchors {}, features "
            "{}.".format(room, *most)
        )
    if not result["cores_measured"]:
        lines.append("The runtime has not been measured on any core: boards wait for that.")
    return lines


def _core(core: str, measured_on: str | None) -> str:
    return core if measured_on in (core, None) else f"{core} as {measured_on}"


def _size(number: int | None) -> str:
    return "-" if number is None else str(number)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


@app.command("boards", epilog=examples("budget boards", "budget boards --json"))
def list_boards(as_json: Json = False) -> None:
    """List the boards that are judged, and where their figures come from.

    Flash and RAM in bytes are what a program gets.
    """
    from twinedge.budget import all_boards, read_firmware

    measured = read_firmware()
    boards: list[dict[str, Any]] = [
        {
            "board": one.name,
            "title": one.title,
            "chip": one.chip,
            "core": one.core.name,
            "clock_hz": one.clock,
            "flash_bytes": one.flash,
            "ram_bytes": one.ram,
            "free_flash_bytes": one.free_flash,
            "free_ram_bytes": one.free_ram,
            "note": one.note,
            "source": one.source,
            "cycles_per_instruction": list(one.core.cycles_per_instruction),
            "measured_on": one.core.same_as if one.core.same_as in measured else None,
        }
        for one in all_boards().values()
    ]
    if as_json:
        print_json({"boards": boards})
        return
    print_table(
        ("board", "title", "core", "MHz", "flash", "RAM", "runtime", "source"),
        [
            [
                one["board"],
                one["title"],
                one["core"],
                f"{one['clock_hz'] / 1e6:g}",
                _size(one["free_flash_bytes"]),
                _size(one["free_ram_bytes"]),
                f"measured on {on}" if (on := one["measured_on"]) else "not measured",
                one["source"],
            ]
            for one in boards
        ],
    )
