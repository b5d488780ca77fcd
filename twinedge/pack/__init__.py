"""The .twin file: its layout, reader and writer. ``firmware_ref/FORMAT.md`` is normative."""

from twinedge.pack.contents import (
    Difficulty,
    Domain,
    InputMap,
    Intervals,
    Layer,
    Pack,
    TargetCurve,
    Twin,
)
from twinedge.pack.layout import PackError, Reason
from twinedge.pack.reader import read_header, read_pack
from twinedge.pack.writer import write_pack

__all__ = [
    "Difficulty",
    "Domain",
    "InputMap",
    "Intervals",
    "Layer",
    "Pack",
    "PackError",
    "Reason",
    "TargetCurve",
    "Twin",
    "read_header",
    "read_pack",
    "write_pack",
]
