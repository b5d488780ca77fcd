"""How much stack the calls of the API take on a board: high-water marks on its emulator."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from twinedge.budget import Model, Runtime
from twinedge.budget.boards import CALLS
from twinedge.pack import Pack, write_pack
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import TooLargeError, Workshop, left_out
from twinedge_export.boards.lessons import WITH_STORE
from twinedge_export.boards.trial import listen, own_points, patience

PROGRAM = "stacks"
HEADER = ("board", *CALLS)
_WORDS = {"stacks": len(CALLS), "done": 0}  # what stacks.c prints, and how many numbers
_ALIGNED = 16  # bytes, of a pack in an image
# The stack depends on which functions run, not on how large a model is.
_SHAPE = Model.of(3, (6, 5), 4, intervals=True)
MODELS = (
    _SHAPE,
    replace(_SHAPE, activation="silu", neighbors=2),
    replace(_SHAPE, activation="silu", neighbors=2, weights="int16"),
)


def measure_stacks(board: Port, folder: Path, packs: list[Pack]) -> dict[str, int]:
    """Measure the stack of each group of calls, the most with any of the packs.

    Parameters
    ----------
    board : Port
    folder : Path
        Empty, for files of the build.
    packs : list of Pack
        Small ones with intervals. If an image with everything that the runtime has does not fit,
        each gets an image without what it does not need, and those that still do not fit are left
        out.

    Returns
    -------
    dict of str to int
        Bytes by name in ``CALLS``, without those of the caller itself.

    Raises
    ------
    InputError
        If a tool is missing, or no image fits.
    """
    try:
        return _marks(Workshop(board, folder / "all", WITH_STORE, program=PROGRAM), packs)
    except TooLargeError as error:
        each = [_alone(board, folder / str(at), one) for at, one in enumerate(packs)]
        found = [one for one in each if one is not None]
        if not found:
            raise error
        return {name: max(one[name] for one in found) for name in CALLS}


def _alone(board: Port, folder: Path, pack: Pack) -> dict[str, int] | None:
    flags = tuple(dict.fromkeys((*WITH_STORE, *left_out(pack))))
    try:
        return _marks(Workshop(board, folder, flags, program=PROGRAM), [pack])
    except TooLargeError:
        return None


def _marks(workshop: Workshop, packs: list[Pack]) -> dict[str, int]:
    contents = [write_pack(one, metadata=False) for one in packs]
    padded = b"".join(one + bytes(-len(one) % _ALIGNED) for one in contents)
    queries = np.concatenate([own_points(one, 1)[0] for one in packs])
    image = workshop.image(padded, queries)
    said = listen(workshop.board, image, _WORDS, patience(0))
    most = np.array(said["stacks"]).max(axis=0)
    return dict(zip(CALLS, most.tolist(), strict=True))


def stack_rows(firmware: dict[str, Runtime]) -> list[dict[str, str | int]]:
    """List the stack of each group of calls in bytes, for each port where it was measured."""
    ports = sorted(firmware.values(), key=lambda one: one.port)
    return [{"board": one.port, **one.stacks} for one in ports if one.stacks]
