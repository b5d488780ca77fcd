"""``twinedge budget``: memory against an ensemble of networks, and which boards fit it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from twinedge.cli import options
from twinedge.cli.budget_fit import fit
from twinedge.cli.output import (
    format_value,
    note,
    print_help,
    print_json,
    print_table,
    print_text,
)
from twinedge.cli.values import Several, Whole, exported
from twinedge.defaults import ANCHORS, WEIGHTS
from twinedge.deprecation import deprecated_name
from twinedge.errors import InputError
from twinedge.wording import closest, format_range, plural

if TYPE_CHECKING:
    from twinedge.budget import Model

_BITS = {"8": "int8", "16": "int16", "float16": "float16", "32": "float32"}


class _ShowFirst(options.Group):
    """A group in which ``show`` is the default command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the commands, and what ``show`` takes."""
        with show.make_context("show", [], parent=ctx, resilient_parsing=True) as inner:
            found = show.shell_complete(inner, incomplete)
        if not incomplete.startswith("-"):
            found = [CompletionItem(incomplete, type="file")]
        commands = super().shell_complete(ctx, incomplete)
        known = {one.value for one in found}
        return [*found, *(one for one in commands if one.value not in known)]


@options.group(
    "budget",
    "budget out/model.twin --board uno",
    "budget --features 8",
    "budget boards",
    "budget fit --board uno --dataset cs",
    cls=_ShowFirst,
)
@click.pass_context
def budget(context: click.Context) -> None:
    """Count memory against an ensemble of networks; find boards.

    The word show may be left out; 'twinedge budget show --help' lists its options.
    """
    print_help(context)


@options.command(
    "show",
    "budget --features 8",
    "budget --features 8 --hidden 128,128 --members 32 --weights int8",
    "budget out/model.twin --board uno --board pico",
    "budget runs/latest --members 16 --flash 32256",
    "budget boards",
    "budget fit --board uno --dataset cs",
)
@options.argument("model", "[RUN|FILE.twin]", "A run folder, a pack, or its export folder.")
@options.value("--features", "N", Whole(1), text="Features, instead of a run or pack.")
@options.value(
    "--hidden",
    "N,N",
    Several(Whole(1), "128,128", distinct=False),
    text="Widths of the hidden layers; by default as train chooses them.",
)
@options.value(
    "--members",
    "N",
    Whole(1),
    text=f"Members of the ensemble: networks, or anchors ({ANCHORS}).",
)
@options.value(
    "--twins",
    "N",
    Whole(1),
    text="Twins that share the anchors; by default as many as train makes.",
)
@options.choice("--weights", *_BITS.values(), text=f"Weights ({WEIGHTS}).")
@options.choice("--bits", *_BITS, hidden=True, text="Weights by their bits, as --weights.")
@options.choice("--activation", "relu", "silu", text="Activation of the hidden layers (relu).")
@options.flag(
    "--intervals/--no-intervals",
    default=None,
    text="Whether the pack has intervals, as it has by default in export.",
)
@options.value(
    "--input-map",
    "BINS",
    Whole(1, 255),
    text="Put a curve of so many straight pieces for each feature in front of the twins.",
)
@options.choice(
    "--target-curve", "log", "log1p", "sqrt", text="Count a model of the curved target."
)
@options.value("--targets", "N", Whole(1, 8), text="Targets that share the twins (1).")
@options.board("Show this board only; may be repeated.", multiple=True)
@options.value(
    "--flash", "BYTES", Whole(1), text="Find the largest models that take this many bytes."
)
@options.firmware_sizes
@options.as_json
def show(
    model: Path | None,
    board: tuple[str, ...],
    flash: int | None,
    firmware: Path | None,
    as_json: bool,
    **numbers: Any,
) -> None:
    """Count a twin and the ensemble it replaces; show which boards fit.

    A model that is described by numbers has the shape that train would make, unless you say
    otherwise. Sizes are in bytes. The word show may be left out. Instructions are those of one
    query, usually and at most. Times are estimates: usual instructions times a range of cycles per
    instruction. If a query may take more than a second, the verdict says how long.
    """
    from twinedge.budget import all_boards, board_named, read_firmware, summarise

    model = model and exported(model)
    boards = list(map(board_named, board)) if board else list(all_boards().values())
    if bits := numbers.pop("bits"):
        numbers["weights"] = numbers["weights"] or _BITS[bits]
    found, file_bytes = _model(model, numbers)
    if bits:
        note(deprecated_name(f"--bits {bits}", f"--weights {_BITS[bits]}"))
    result = summarise(found, boards, read_firmware(firmware), flash=flash, file_bytes=file_bytes)
    if as_json:
        print_json({"model": model and str(model), **result})
    else:
        _print(result)


def _model(path: Path | None, numbers: dict[str, Any]) -> "tuple[Model, int | None]":
    """Return the model of a run, a pack or the options, and the size of the file if it is one."""
    from twinedge.budget import Model
    from twinedge.budget.limits import with_map
    from twinedge.budget.model import TARGET_BINS
    from twinedge.budget.read_model import from_pack, from_run

    anchors, weights = numbers["members"] or ANCHORS, numbers["weights"] or WEIGHTS
    intervals = numbers["intervals"] is not False
    if path is None:
        if numbers["features"] is None:
            raise InputError("nothing to count: name a RUN, a FILE.twin, or --features N")
        found = Model.of(
            numbers["features"],
            numbers["hidden"],
            anchors,
            twins=numbers["twins"],
            activation=numbers["activation"] or "relu",
            weights=weights,
            intervals=intervals,
            target_bins=TARGET_BINS if numbers["target_curve"] else 0,
            targets=numbers["targets"] or 1,
        )
        bins = numbers["input_map"]
        return with_map(found, bins, narrow=not numbers["hidden"]) if bins else found, None
    free = ("members", "weights", "intervals") if path.is_dir() else ()
    fixed = [name for name, one in numbers.items() if one is not None and name not in free]
    if fixed:
        option = fixed[0].replace("_", "-")
        raise InputError(f"{path} already states --{option}: leave the option out")
    if not path.exists():
        near = closest(str(path), budget.commands)
        raise InputError(f"{path} does not exist: name a run folder or a .twin file{near}")
    if not path.is_dir():
        return from_pack(path)
    return from_run(path, anchors, weights, intervals), None


def _print(result: dict[str, Any]) -> None:
    from twinedge.budget.fits import describe_core, describe_verdict

    print_text(
        f"{plural(result['features'], 'feature')}, {'-'.join(map(str, result['hidden']))} "
        f"{result['activation']}, {result['weights']}, "
        f"{'with' if result['intervals'] else 'without'} intervals, "
        f"{plural(result['multiply_adds'], 'multiply-add')} in a query",
        *_curves(result),
        "",
    )
    twins = f"{plural(result['twins'], 'twin')} with {plural(result['anchors'], 'anchor')}"
    names = {"ann": plural(result["members"], "ordinary network"), "twin": twins}
    stored = result["bytes"]
    print_table(
        ("", "parameters", *stored),
        [
            [
                name,
                str(result[f"{key}_params"]),
                *(format_value(one[key]) for one in stored.values()),
            ]
            for key, name in names.items()
        ],
    )
    print_text("", *_remarks(result), "")
    sizes = ("flash_bytes", "free_flash_bytes", "ram_bytes", "free_ram_bytes")
    about = ("verdict", "why", "anchors", "milliseconds_estimated")
    print_table(
        (
            *("board", "core", "flash", "of", "RAM", "of"),
            *("instructions", "at most", "ms, estimated", "verdict"),
        ),
        [
            [
                one["board"],
                describe_core(one["core"], one["measured_on"]),
                *(format_value(one[size]) for size in sizes),
                # One number if it was measured, otherwise a range.
                "-".join(map(str, dict.fromkeys(one["instructions_estimated"] or ()))),
                format_value(one["instructions_worst"]) if one["instructions_estimated"] else "",
                format_range(one["milliseconds_estimated"]),
                describe_verdict(*(one[key] for key in about)),
            ]
            for one in result["boards"]
        ],
    )


def _curves(result: dict[str, Any]) -> list[str]:
    """Describe an input map and a target curve, if there are any."""
    lines, outputs, curves = [], result["map_outputs"], result["map_curves"]
    if outputs:
        knots = plural(result["map_rows"], "knot")
        lines.append(
            f"An input map: curves of {plural(curves, 'feature')} with {knots} in all; "
            f"twins take {plural(outputs, 'number')} of a point"
        )
    if result["target_bins"]:
        about = "about " if result["file_bytes"] is None else ""  # a pack has as many as it needs
        pieces = about + plural(result["target_bins"], "straight piece")
        lines.append(f"A target curve of {pieces} brings predictions back to the target's units")
    if "targets" in result:
        lines.append(f"{result['targets']} targets from the same networks")
    if "window_bytes" in result:
        window = plural(result["window_bytes"], "byte")
        lines.append(f"Inputs are derived from the last samples, which take {window} of RAM")
    return lines


def _remarks(result: dict[str, Any]) -> list[str]:
    """Put in words what the tables do not show."""
    from twinedge.budget.fits import describe_smaller, describe_unmeasured

    sections, lines = result["sections"], [describe_smaller(result["smaller_from"])]
    if result["ratio"]:
        lines.append(f"The ensemble takes {result['ratio']:.1f} times the bytes of the twins.")
    own, several = result.get("own_pack_bytes"), result.get("targets", 1)
    if own and result["twin_bytes"]:
        ratio = result["twin_bytes"] / own
        lines.append(
            f"A pack of one target takes {own:,} bytes: all {several} take {ratio:.2f} times as "
            f"many in one pack, and {several} times as many in packs of their own."
        )
    if sections:
        parts = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in sections.items())
        lines.append(f"The pack: {parts}.")
    more = (result["file_bytes"] or 0) - (result["twin_bytes"] or 0)
    if more > 0:
        lines.append(
            f"The file has {more} more bytes of ids and metadata, which boards do not need."
        )
    if "in_flash" in result:
        room, *most = (format_value(number) for number in result["in_flash"].values())
        lines.append(
            "At most, all else equal, {} bytes hold: ordinary networks {}, anchors {}, features "
            "{}.".format(room, *most)
        )
    lines += describe_unmeasured(result)
    if not result["cores_measured"]:
        lines.append(
            "The runtime has not been measured on any core: it is not known which boards fit."
        )
    return lines


@options.command("boards", "budget boards", "budget boards --json")
@options.as_json
def list_boards(as_json: bool) -> None:
    """List the boards, and where their figures come from.

    Flash and RAM are what a program can use, in bytes.
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
                format_value(one["free_flash_bytes"]),
                format_value(one["free_ram_bytes"]),
                f"measured on {on}" if (on := one["measured_on"]) else "not measured",
                one["source"],
            ]
            for one in boards
        ],
    )


budget.add_command(fit)
budget.add_command(show)
budget.add_command(list_boards)
