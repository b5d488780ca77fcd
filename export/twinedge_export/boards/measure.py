"""What the runtime takes on a board, by linker and emulator: an entry of ``firmware.json``."""

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twinedge.budget import Model
from twinedge.budget.firmware import Kind, Scratch
from twinedge.errors import InputError
from twinedge.pack import write_pack
from twinedge_export.boards.board import Board
from twinedge_export.boards.build import TooLargeError, Workshop, left_out
from twinedge_export.boards.queries import own_points
from twinedge_export.boards.references import KINDS, random_pack, references
from twinedge_export.boards.trial import Trial, try_pack

_QUERIES = 2
_QUERY_HEAD = 4  # bytes in front of the queries in an image


def measure_board(
    board: Board, kinds: Iterable[Kind] = KINDS, say: Callable[[str], None] = lambda what: None
) -> dict[str, Any]:
    """Build and run the reference packs of each kind of build.

    Parameters
    ----------
    board : Board
        Its emulator runs them.
    kinds : iterable of (str, str, bool, bool)
        Activation, weights, whether neighbours predict, and whether there are intervals.
    say : function
        Called with the name of each build before it is made.

    Returns
    -------
    dict
        The entry of the board's core in ``firmware.json``.

    Raises
    ------
    InputError
        Where a tool is missing, or a board gives other bits than the reference.
    """
    board.check_tools()
    builds = []
    for kind in kinds:
        activation, weights, near, intervals = kind
        more = " and ".join(["neighbours"] * near + ["intervals"] * intervals)
        say(f"{board.name}, {activation} {weights}" + (f" with {more}" if more else ""))
        with TemporaryDirectory(prefix="twinedge-") as folder:
            builds.append(_build(board, kind, Path(folder)))
    return {
        "port": board.name,
        "compiler": _version(board.compiler),
        "flags": " ".join(board.flags),
        "builds": builds,
    }


def _build(board: Board, kind: Kind, folder: Path) -> dict[str, Any]:
    models = references(kind)
    workshop = Workshop(board, folder, left_out(random_pack(models[0])))
    tried, programs = {}, []
    for model in models:
        try:
            tried[model] = _try(workshop, model)
        except TooLargeError:
            continue  # what a board cannot hold need not be known
        programs.append(_program(workshop, tried[model]))
    if not tried:
        raise InputError(f"{board.name}: no reference fits")
    first = next(iter(tried.values()))
    sizes = {f"{name}_bytes": size for name, size in first.image.sizes._asdict().items()}
    return {
        **dict(zip(("activation", "weights", "neighbors", "intervals"), kind, strict=True)),
        **sizes,
        # Padding depends on the pack: the most that was seen.
        "program_bytes": max(programs),
        "context_bytes": first.answers.context,
        "stack_bytes": max(one.stack_bytes for one in tried.values()),
        "scratch": vars(_scratch(board, tried)),
        "references": [_reference(*one) for one in tried.items()],
    }


def _try(workshop: Workshop, model: Model) -> Trial:
    pack = random_pack(model)
    trial = try_pack(workshop, write_pack(pack, metadata=False), own_points(pack, _QUERIES))
    if len(trial.mismatches):
        raise InputError(f"{workshop.board.name}: other bits than the reference for {model}")
    return trial


def _program(workshop: Workshop, trial: Trial) -> int:
    """Flash of an image beside runtime, pack and queries; on Linux that is the system's."""
    if workshop.board.hosted:
        return 0
    image, queries = trial.image, _QUERY_HEAD + 4 * trial.features * _QUERIES
    return workshop.flash_bytes(image) - image.sizes.flash - image.pack_bytes - queries


def _scratch(board: Board, tried: dict[Model, Trial]) -> Scratch:
    """Take what the kernel says; the rest of the rule is what was measured beyond it.

    That is room for features, lines, and on hosts some memory to work in.
    """
    (kernel,) = {one.answers.kernel for one in tried.values()}
    said = (kernel.align, kernel.unit, kernel.partial_bytes, kernel.block_bytes)
    for hosted, lines, room in product(sorted({False, board.hosted}), range(2), range(256)):
        rule = Scratch(*said, room_bytes=room, lines=lines, work_bytes=0)
        beyond = {one.answers.scratch - rule.bytes(model) for model, one in tried.items()}
        if len(beyond) == 1 and (beyond == {0} or hosted):
            return replace(rule, work_bytes=beyond.pop())
    raise InputError(f"{board.name}: {kernel} does not explain the scratch that was measured")


def _reference(model: Model, trial: Trial) -> dict[str, Any]:
    return {
        "features": model.features,
        "hidden": list(model.hidden),
        "counts": list(model.counts),
        "neighbors": model.neighbors,
        "scratch_bytes": trial.answers.scratch,
        "instructions": trial.instructions_per_query,
    }


def _version(compiler: str) -> str:
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0]
