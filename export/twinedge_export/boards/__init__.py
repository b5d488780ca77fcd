"""Build a pack into an image for a board, run it on an emulator, and check the answers."""

from twinedge_export.boards.board import Port, Target, all_ports, port_named, target_named
from twinedge_export.boards.build import Image, Workshop
from twinedge_export.boards.trial import Trial, try_pack

__all__ = [
    "Image",
    "Port",
    "Target",
    "Trial",
    "Workshop",
    "all_ports",
    "port_named",
    "target_named",
    "try_pack",
]
