"""The .twin file: its layout, reader and writer. ``firmware_ref/FORMAT.md`` is normative."""

from twinedge.pack.contents import (
    Difficulty,
    Domain,
    InputMap,
    Intervals,
    Layer,
    Output,
    Pack,
    Target,
    TargetCurve,
    Twin,
)
from twinedge.pack.layout import PackError, Reason
from twinedge.pack.reader import read_header, read_pack
from twinedge.pack.targets import joined
from twinedge.pack.writer import write_pack

__all__ = [
    "Difficulty",
    "Domain",
    "InputMap",
    "Intervals",
    "Layer",
    "Output",
    "Pack",
    "PackError",
    "Reason",
    "Target",
    "TargetCurve",
    "Twin",
    "joined",
    "read_header",
    "read_pack",
    "write_pack",
]
