"""Memory and time: what a twin takes, what an ordinary ensemble would, and which boards fit it."""

from typing import Any

from twinedge.budget.boards import Board, all_boards, board_named
from twinedge.budget.fits import Verdict, board_verdict, summarise
from twinedge.budget.measurements import Runtime, read_firmware, write_firmware
from twinedge.budget.model import (
    Model,
    ann_bytes,
    ann_params,
    pack_sections,
    twin_bytes,
    twin_params,
)
from twinedge.deprecation import warn_deprecated

__all__ = [
    "Board",
    "Model",
    "Runtime",
    "Verdict",
    "all_boards",
    "ann_bytes",
    "ann_params",
    "board_named",
    "board_verdict",
    "judge",
    "pack_sections",
    "read_firmware",
    "summarise",
    "twin_bytes",
    "twin_params",
    "write_firmware",
]


def __getattr__(name: str) -> Any:
    if name != "judge":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_deprecated("twinedge.budget.judge", "board_verdict")
    return board_verdict
