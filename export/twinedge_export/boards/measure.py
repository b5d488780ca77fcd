"""What the runtime costs on a board, by linker and emulator: an entry of ``firmware.json``."""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twinedge.atomic_files import write_file
from twinedge.budget import Model, Runtime
from twinedge.budget.measurements import PARTS, Kind, Scratch
from twinedge.errors import InputError
from twinedge.pack import write_pack
from twinedge_export.amalgamation import firmware_folder
from twinedge_export.boards import curve_parts, stacks, worst
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import Builder, TooLargeError, flags_for
from twinedge_export.boards.reference_packs import KINDS, random_pack, references
from twinedge_export.boards.run import BoardRun, anchor_queries, run_pack
from twinedge_export.boards.sizes import with_tables

STAGES = len(KINDS) + len(PARTS) * len(curve_parts.KINDS)  # that measuring a board says it is at
_QUERIES = 2
_QUERY_HEAD = 4  # bytes before the queries in an image


def measure_board(
    board: Port, kinds: Iterable[Kind] = KINDS, say: Callable[[str], None] = lambda what: None
) -> dict[str, Any]:
    """Build and run the reference packs of each kind of build.

    Parameters
    ----------
    board : Port
        Its emulator runs them.
    kinds : iterable of (str, str, bool, bool)
        Activation, weights, whether neighbors predict, and whether there are intervals.
    say : function
        Called with the name of each build before it is made.

    Returns
    -------
    dict
        The entry of the board's core in ``firmware.json``.

    Raises
    ------
    InputError
        If a tool is missing, or a board's bits differ from the reference.
    """
    board.check_tools()
    builds: list[dict[str, Any]] = []
    hostile: dict[tuple[str, str], worst.Extremes] = {}  # by activation and weights
    for kind in kinds:
        activation, weights, near, intervals = kind
        more = " and ".join(["neighbors"] * near + ["intervals"] * intervals)
        say(f"{board.name}, {activation} {weights}" + (f" with {more}" if more else ""))
        with TemporaryDirectory(prefix="twinedge-") as folder:
            builds.append(measure_build(board, kind, Path(folder), hostile))
    with TemporaryDirectory(prefix="twinedge-") as folder:
        packs = list(map(random_pack, stacks.MODELS))
        calls = stacks.measure_stacks(board, Path(folder), packs)
    command = [board.compiler, "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True)
    return {
        "port": board.name,
        "compiler": version.stdout.splitlines()[0],
        "flags": " ".join(board.flags),
        "stacks": calls,
        "builds": builds,
        "parts": curve_parts.measure_parts(board, say),
    }


def measure_build(
    board: Port, kind: Kind, folder: Path, hostile: dict[tuple[str, str], worst.Extremes]
) -> dict[str, Any]:
    """Build and run the reference packs of one kind; ``hostile`` is kept from kind to kind."""
    models = references(kind)
    builder = Builder(board, folder, flags_for(random_pack(models[0])))
    runs, programs = {}, []
    for model in models:
        try:
            runs[model] = _run(builder, model)
        except TooLargeError:
            continue  # no need to know what a board cannot hold
        programs.append(_program(builder, runs[model]))
    if not runs:
        raise InputError(f"{board.name}: no reference fits")
    first = next(iter(runs.values()))
    sections = {f"{name}_bytes": size for name, size in first.image.sizes._asdict().items()}
    scratch = dict(vars(_scratch(board, runs)))
    del scratch["place_bytes"]  # that of the part
    return {
        **dict(zip(("activation", "weights", "neighbors", "intervals"), kind, strict=True)),
        **sections,
        # Padding depends on the pack; take the most seen.
        "program_bytes": max(programs),
        "context_bytes": first.answers.context,
        "stack_bytes": max(one.stack_bytes for one in runs.values()),
        "scratch": scratch,
        "references": [_reference(*one) for one in runs.items()],
        "worst": None if board.hosted else _worst(builder, kind, runs, hostile),
    }


def _worst(
    builder: Builder,
    kind: Kind,
    runs: dict[Model, BoardRun],
    hostile: dict[tuple[str, str], worst.Extremes],
) -> dict[str, Any]:
    """Find the rates of the worst case; not of host kernels, as machines choose among several."""
    like = next(iter(runs))
    pairs = runs[like].answers.kernel.pairs
    known = [(one, float(measured.answers.instructions.max())) for one, measured in runs.items()]
    before = hostile.get(kind[:2])
    found, hostile[kind[:2]] = worst.find_worst(
        builder.with_program(worst.PROGRAM), like, pairs, known, before
    )
    return {"pairs": found.pairs, "rates": found.rates}


def _run(builder: Builder, model: Model) -> BoardRun:
    pack = random_pack(model)
    measured = run_pack(builder, write_pack(pack, metadata=False), anchor_queries(pack, _QUERIES))
    if len(measured.mismatches):
        raise InputError(f"{builder.board.name}: bits differ from the reference for {model}")
    return measured


def _program(builder: Builder, measured: BoardRun) -> int:
    """Flash of an image besides runtime, pack and queries; none on Linux."""
    if builder.board.hosted:
        return 0
    image, queries = measured.image, _QUERY_HEAD + 4 * measured.features * _QUERIES
    return builder.flash_bytes(image) - image.sizes.flash - image.pack_bytes - queries


def _scratch(board: Port, runs: dict[Model, BoardRun]) -> Scratch:
    """Take the numbers that the kernel states, and the measured remainder as the rest.

    The remainder is room for features, lines, and on hosts some working memory.
    """
    (kernel,) = {one.answers.kernel for one in runs.values()}
    stated = (kernel.align, kernel.unit, kernel.partial_bytes, kernel.block_bytes)
    for hosted, lines, room in product(sorted({False, board.hosted}), range(2), range(256)):
        rule = Scratch(*stated, room_bytes=room, lines=lines, work_bytes=0)
        beyond = {one.answers.scratch - rule.bytes(model) for model, one in runs.items()}
        if len(beyond) == 1 and (beyond == {0} or hosted):
            return replace(rule, work_bytes=beyond.pop())
    raise InputError(f"{board.name}: {kernel} does not explain the scratch that was measured")


def _reference(model: Model, measured: BoardRun) -> dict[str, Any]:
    return {
        "features": model.features,
        "hidden": list(model.hidden),
        "counts": list(model.counts),
        "neighbors": model.neighbors,
        "scratch_bytes": measured.answers.scratch,
        "instructions": measured.instructions_per_query,
    }


def checkout() -> Path | None:
    """Root of the repository, if this runs from a clone."""
    root = firmware_folder().parent
    return root if (root / "pyproject.toml").is_file() else None


def write_tables(firmware: dict[str, Runtime], page: Path) -> None:
    """Put all tables between their marks in ``docs/ports.md`` of a clone.

    Raises
    ------
    InputError
        If the page has no marks, or a compiler for a host is missing.
    """
    write_file(page, with_tables(page.read_text("utf-8"), firmware, stacks.host_stacks()))
