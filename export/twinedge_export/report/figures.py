"""The figures of a report."""

from typing import TYPE_CHECKING

import numpy as np

from twinedge.pack.bytemap import uses
from twinedge_export.report.drawing import ANN, GRID, INK, MUTED, OTHER, PAPER, TWIN, Drawing, plain
from twinedge_export.report.findings import Findings
from twinedge_export.report.words import amount, ensemble, forest, number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 300  # of predictions: more would hide each other and fill the page
_MARKERS = "sD^v"


def memory(found: Findings, what: str) -> Drawing:
    """Draw parameters or bytes against ensemble size: the paper's figure for this model."""
    members = [one.members for one in found.memory]
    ann = [getattr(one, f"ann_{what}") for one in found.memory]
    twin = [getattr(one, f"twin_{what}") for one in found.memory]
    here = found.model.anchors
    noun = "parameters" if what == "params" else f"bytes with {found.model.weights} weights"

    def draw(axes: "Axes") -> None:
        axes.plot(members, ann, "-s", color=ANN, label="ordinary networks")
        axes.plot(members, twin, "-o", color=TWIN, label=_twins(found))
        axes.axvline(here, color=MUTED, linewidth=1, linestyle=":")
        axes.annotate(
            number(here, "anchor"), (here, max(ann)), (3, 0), textcoords="offset points", va="top"
        )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_ylim(10 ** np.floor(np.log10(min(ann + twin))), 2 * max(ann + twin))
        _ticks(axes, members)
        axes.yaxis.set_major_formatter(lambda value, _: amount(value))
        axes.set_xlabel("ensemble size")
        axes.set_ylabel(f"{noun} stored")
        axes.legend(loc="upper left")

    start = found.budget["smaller_from"][what]
    crossing = f"The twin is smaller from {start} members on." if start else ""
    return Drawing(
        f"memory-{'parameters' if what == 'params' else 'bytes'}",
        f"{noun.capitalize()} against ensemble size",
        "Both axes are logarithmic. The line of ordinary networks rises in proportion to the "
        f"ensemble, from {ann[0]:,} to {ann[-1]:,}; that of the twin stays nearly level, from "
        f"{twin[0]:,} to {twin[-1]:,}. {crossing}".rstrip(),
        draw,
    )


def anchors(found: Findings) -> Drawing:
    """Draw the validation error against the number of anchors."""
    curve = found.anchors
    lines = {
        method: [(one.k, one.rmse_val) for one in curve.points if one.method == method]
        for method in curve.methods
    }

    def draw(axes: "Axes") -> None:
        bound = (1 + curve.tolerance) * curve.rmse_all
        axes.axhspan(curve.rmse_all, bound, color=GRID, linewidth=0)
        axes.axhline(curve.rmse_all, color=INK, linewidth=1, label=f"all {curve.training_points}")
        for method, colour, mark in zip(lines, (TWIN, OTHER), "os", strict=False):
            axes.plot(*zip(*lines[method], strict=True), f"-{mark}", color=colour, label=method)
        axes.set_xscale("log", base=2)
        _ticks(axes, curve.counts)
        axes.set_xlabel("anchors")
        axes.set_ylabel(f"validation RMSE of {plain(found.run.target_name)}")
        axes.legend(loc="upper right")

    first, last = lines[curve.methods[0]][0], lines[curve.methods[0]][-1]
    return Drawing(
        "anchors",
        "Error against number of anchors",
        f"Validation error of anchors chosen by {curve.methods[0]}: {first[1]:.4g} with "
        f"{number(first[0], 'anchor')}, {last[1]:.4g} with {last[0]}. All "
        f"{curve.training_points} training points have {curve.rmse_all:.4g}. Random anchors are "
        "drawn beside them.",
        draw,
    )


def accuracy(found: Findings) -> Drawing:
    """Draw error against bytes: packs with more and fewer anchors, ordinary ensembles as points."""
    where = found.judged.name

    def draw(axes: "Axes") -> None:
        points = [(one.bytes, one.rmse) for one in found.sizes]
        axes.plot(*zip(*points, strict=True), "-o", color=TWIN, label=f"{_twins(found)}: packs")
        mine = next(one for one in found.sizes if one.anchors == found.model.anchors)
        axes.plot(
            mine.bytes,
            mine.rmse,
            "o",
            color=PAPER,
            markeredgecolor=TWIN,
            markeredgewidth=2,
            markersize=9,
            label=f"this pack, {number(mine.anchors, 'anchor')}",
        )
        trees = [found.trees] if found.trees else []
        highest = max(one.rmse for group in (found.sizes, found.rivals, trees) for one in group)
        for rival, mark in zip(found.rivals, _MARKERS, strict=False):
            label = ensemble(rival.members, rival.hidden)
            axes.plot(rival.bytes, rival.rmse, mark, color=ANN, markersize=7, label=label)
        for one in trees:
            label = forest(one.family, one.trees, one.leaves)
            axes.plot(one.bytes, one.rmse, "X", color=OTHER, markersize=7, label=label)
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=6)
        axes.set_ylim(0, 1.1 * highest or 1)
        axes.set_xlabel("bytes on the device")
        axes.set_ylabel(f"{where} RMSE of {plain(found.run.target_name)}")
        axes.legend(fontsize=8)

    first, last = found.sizes[0], found.sizes[-1]
    beside = "; ".join(
        f"{ensemble(one.members, one.hidden)}, {one.bytes:,} bytes: {one.rmse:.4g}"
        for one in found.rivals
    )
    return Drawing(
        "accuracy",
        "Error against bytes",
        f"Packs with {first.anchors} to {last.anchors} anchors take {first.bytes:,} to "
        f"{last.bytes:,} bytes and have a {where} error of {first.rmse:.4g} to {last.rmse:.4g}. "
        + (f"Ordinary networks: {beside}." if beside else "Ordinary networks were not trained.")
        + (f" Trees: {found.trees.bytes:,} bytes: {found.trees.rmse:.4g}." if found.trees else ""),
        draw,
    )


def predictions(found: Findings) -> Drawing:
    """Draw predicted against true targets, intervals or the spread as bars."""
    judged, usual = found.judged, found.usual
    every = max(1, -(-len(judged.y) // _MOST_DOTS))
    bars, beside = np.stack([judged.spread, judged.spread]), "± spread"
    if usual is not None:
        low, high = judged.ends[usual.claimed].T
        bars = np.maximum([judged.mean - low, high - judged.mean], 0)
        beside = f"and interval of {percent(usual.claimed)}"
    y, mean, bars = judged.y[::every], judged.mean[::every], bars[:, ::every]

    def draw(axes: "Axes") -> None:
        ends = [float(min(y.min(), mean.min())), float(max(y.max(), mean.max()))]
        axes.plot(ends, ends, color=MUTED, linewidth=1, label="predicted = true")
        axes.errorbar(
            y,
            mean,
            yerr=bars,
            fmt="o",
            markersize=3,
            color=TWIN,
            ecolor=TWIN,
            elinewidth=0.8,
            alpha=0.7,
            label=f"prediction {beside}",
        )
        name = plain(found.run.target_name)
        axes.set_xlabel(f"true {name}")
        axes.set_ylabel(f"predicted {name}")
        axes.legend(loc="upper left")

    r2 = "" if judged.r2 is None else f" They explain {percent(judged.r2)} of its variance."
    barred = f"a mean spread of {float(judged.spread.mean()):.4g}"
    if usual is not None:
        barred = f"intervals of {percent(usual.claimed)} that are {usual.mean_width:.4g} wide"
    return Drawing(
        "predictions",
        f"Predicted against true, with {'spread' if usual is None else 'intervals'}",
        f"{len(y)} {judged.name} points lie along the diagonal with an error of {judged.rmse:.4g} "
        f"and {barred}.{r2}",
        draw,
    )


def coverage(found: Findings) -> Drawing | None:
    """Draw what intervals cover against what they claim; None without intervals or spread."""
    scores, usual, worth = found.intervals, found.usual, found.reliability
    lines: dict[str, list[tuple[float, float]]] = {}
    if scores is not None and usual is not None:
        points = scores.rows
        lines["intervals of the pack"] = [(one.claimed, one.covered) for one in scores.intervals]
        said = f"cover {percent(usual.covered)} of the {found.judged.name} points"
        claims = percent(usual.claimed)
    elif worth is not None:
        points, most = worth.points, worth.at(0.9)
        lines["spread as it is"] = [(one.claimed, one.covered) for one in worth.coverage]
        said = f"cover {percent(most.covered)} of the {found.judged.name} points as they are"
        claims = percent(most.claimed)
        if worth.factor is not None and most.scaled is not None:
            name = f"spread times {worth.factor:.3g}"
            lines[name] = [(one.claimed, one.scaled or 0.0) for one in worth.coverage]
            said += f", multiplied by {worth.factor:.3g} {percent(most.scaled)}"
    else:
        return None

    def draw(axes: "Axes") -> None:
        ideal = np.linspace(0, 1, 101)
        luck = 1.96 * np.sqrt(ideal * (1 - ideal) / points)
        axes.fill_between(ideal, ideal - luck, ideal + luck, color=GRID, linewidth=0)
        axes.plot(ideal, ideal, color=MUTED, linewidth=1, label="covers what it claims")
        for (label, line), colour, mark in zip(lines.items(), (TWIN, OTHER), "os", strict=False):
            axes.plot(*zip(*line, strict=True), f"-{mark}", color=colour, label=label)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.set_xlabel("covered, as claimed")
        axes.set_ylabel("covered")
        axes.legend(loc="upper left", fontsize=8)

    return Drawing(
        "coverage",
        "What intervals cover against what they claim",
        f"Intervals that claim {claims} {said}. On the diagonal they cover what they claim.",
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
        axes.set_xlim(0, 1.18 * max(values))
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=5)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("bytes")

    listed = ", ".join(f"{name} {value:,}" for name, value in reversed(parts))
    return Drawing("pack", "What the bytes of the pack are for", f"Bytes: {listed}.", draw)


def _twins(found: Findings) -> str:
    twins = found.model.twins
    return "one twin" if twins == 1 else f"{twins} twins"


def _ticks(axes: "Axes", numbers: list[int] | tuple[int, ...]) -> None:
    """Name powers of two only, and of many every second."""
    powers = [one for one in numbers if not one & (one - 1)] or list(numbers)
    shown = powers[::2] if len(powers) > 8 else powers
    axes.set_xticks(shown, [str(one) for one in shown])
    axes.minorticks_off()
