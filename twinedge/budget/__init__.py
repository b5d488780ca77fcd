"""Memory and time: what a twin takes, what an ordinary ensemble would, and which boards fit it."""

from twinedge.budget.boards import (
    Board,
    Runtime,
    all_boards,
    board_named,
    read_firmware,
    write_firmware,
)
from twinedge.budget.fits import Verdict, judge, summarise
from twinedge.budget.model import (
    Model,
    ann_bytes,
    ann_params,
    pack_sections,
    twin_bytes,
    twin_params,
)

__all__ = [
    "Board",
    "Model",
    "Runtime",
    "Verdict",
    "all_boards",
    "ann_bytes",
    "ann_params",
    "board_named",
    "judge",
    "pack_sections",
    "read_firmware",
    "summarise",
    "twin_bytes",
    "twin_params",
    "write_firmware",
]
