"""Build a pack into an image for a board, run it on an emulator, and check the answers."""

from twinedge_export.boards.board import Port, Target, all_ports, port_named, target_named
from twinedge_export.boards.build import Builder, Image
from twinedge_export.boards.run import BoardRun, run_pack

__all__ = [
    "BoardRun",
    "Builder",
    "Image",
    "Port",
    "Target",
    "all_ports",
    "port_named",
    "run_pack",
    "target_named",
]
