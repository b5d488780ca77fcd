"""Building a pack into an image for a board, running it on an emulator, and judging the answers."""

from twinedge_export.boards.board import Board, Target, all_boards, board_named, target_named
from twinedge_export.boards.build import Image, Workshop
from twinedge_export.boards.trial import Trial, try_pack

__all__ = [
    "Board",
    "Image",
    "Target",
    "Trial",
    "Workshop",
    "all_boards",
    "board_named",
    "target_named",
    "try_pack",
]
