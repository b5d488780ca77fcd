"""Memory: what a twin takes, what an ordinary ensemble would take, and which boards hold it."""

from twinedge.budget.boards import Board, all_boards, board_named
from twinedge.budget.counts import ann_params, twin_params
from twinedge.budget.firmware import Runtime, read_firmware, write_firmware
from twinedge.budget.model import Model
from twinedge.budget.storage import ann_bytes, pack_sections, twin_bytes
from twinedge.budget.summary import summarise
from twinedge.budget.verdict import Verdict, judge

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
