"""The figures of a report: what a model costs."""

from typing import TYPE_CHECKING

import numpy as np

from twinedge.pack.bytemap import uses
from twinedge_export.report.drawing import ANN, MUTED, TWIN, Drawing, beside_point
from twinedge_export.report.figures import ticks
from twinedge_export.report.findings import Findings
from twinedge_export.report.words import amount, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def memory(found: Findings) -> Drawing:
    """Draw bytes against ensemble size: the paper's figure for this model."""
    members = [one.members for one in found.memory]
    ann, twin = [one.ann_bytes for one in found.memory], [one.twin_bytes for one in found.memory]
    here, twins = found.model.anchors, found.model.twins

    def draw(axes: "Axes") -> None:
        axes.plot(members, ann, "-s", color=ANN)
        axes.plot(members, twin, "-o", color=TWIN)
        axes.axvline(here, color=MUTED, linewidth=1, linestyle=":")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        low, high = min(ann + twin), max(ann + twin)
        axes.set_ylim(10 ** np.floor(np.log10(low)), 2.5 * high)
        middle = 2 * len(members) // 3
        at = (members[middle], ann[middle])
        beside_point(axes, "ordinary networks", at, (-6, 4), ha="right", color=ANN)
        at = (members[-1], twin[-1])
        name = "one twin" if twins == 1 else f"{twins} twins"
        beside_point(axes, name, at, (0, -12), ha="right", va="top", color=TWIN)
        at_end = (here, float(axes.get_ylim()[0]))
        beside_point(axes, f" {number(here, 'anchor')}", at_end, (2, 6))
        ticks(axes, members)
        axes.yaxis.set_major_formatter(lambda value, _: amount(value))
        axes.set_xlabel("ensemble size")
        axes.set_ylabel(f"bytes with {found.model.weights} weights")

    start = found.budget["smaller_from"]["bytes"]
    crossing = f"The twin is smaller from {start} members on." if start else ""
    return Drawing(
        "memory-bytes",
        "Bytes against ensemble size",
        "Both axes are logarithmic. The line of ordinary networks rises in proportion to the "
        f"ensemble, from {ann[0]:,} to {ann[-1]:,}; that of the twin stays nearly level, from "
        f"{twin[0]:,} to {twin[-1]:,}. {crossing}".rstrip(),
        draw,
    )


def pack(found: Findings) -> Drawing:
    """Draw what the bytes of the pack are for."""
    parts = sorted(uses(found.pack.pieces).items(), key=lambda part: part[1])
    parts = [part for part in parts if part[1]]

    def draw(axes: "Axes") -> None:
        names, values = zip(*parts, strict=True)
        bars = axes.barh(names, values, color=TWIN, height=0.7)
        axes.bar_label(bars, [f"{value:,}" for value in values], padding=3, fontsize=9)
        axes.set_xlim(0, 1.2 * max(values))
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=5)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("bytes")

    listed = ", ".join(f"{name} {value:,}" for name, value in reversed(parts))
    return Drawing(
        "pack",
        "What the bytes of the pack are for",
        f"Bytes: {listed}.",
        draw,
        height=max(2.4, 0.6 + 0.21 * len(parts)),
    )
