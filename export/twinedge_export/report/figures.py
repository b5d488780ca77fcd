"""The figures of a report."""

from typing import TYPE_CHECKING, Any

import numpy as np

from twinedge.pack.contents import Array
from twinedge.pack.describe import uses
from twinedge_export.report.document import (
    ANN,
    GRID,
    INK,
    MUTED,
    OTHER,
    PAPER,
    TWIN,
    Drawing,
    amount,
    beside_point,
    ensemble,
    forest,
    number,
    percent,
    plain,
)
from twinedge_export.report.findings import Findings
from twinedge_export.report.reliability import SizeBand

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 300  # predictions drawn: more would overlap and bloat the page
_MOST_CURVES = 6
_MOST_BARS = 12
_MARKERS = "sD^v"


def predictions(found: Findings) -> Drawing:
    """Draw predicted against true targets, with intervals or the spread as bars."""
    judged, usual = found.judged, found.usual
    every = max(1, -(-len(judged.y) // _MOST_DOTS))
    low, high = judged.mean - judged.spread, judged.mean + judged.spread
    beside = "± spread"
    if usual is not None:
        low, high = judged.ends[usual.claimed].T
        beside = f"and interval of {percent(usual.claimed)}"
    y, mean, low, high = (one[::every] for one in (judged.y, judged.mean, low, high))
    missed = (y < low) | (y > high)

    def draw(axes: "Axes") -> None:
        ends = [float(min(y.min(), mean.min())), float(max(y.max(), mean.max()))]
        room = 0.04 * (ends[1] - ends[0] or 1)
        axes.plot(ends, ends, color=MUTED, linewidth=1)
        for part, colour, mark, label in (
            (~missed, TWIN, "o", f"prediction {beside}"),
            (missed, ANN, "D", "true value outside"),
        ):
            if part.any():
                axes.plot(
                    *_upright(y[part], low[part], high[part]),
                    color=colour,
                    linewidth=0.7,
                    alpha=0.45,
                )
                axes.plot(y[part], mean[part], mark, color=colour, markersize=3, label=label)
        axes.set_xlim(ends[0] - room, ends[1] + room)
        name = plain(found.target)
        axes.set_xlabel(f"true {name}")
        axes.set_ylabel(f"predicted {name}")
        axes.legend(loc="upper left", fontsize=8, handletextpad=0.2)

    part = "" if every == 1 else f", one of every {every}"
    return Drawing(
        "predictions",
        "Predicted against true",
        f"{len(y)} points{part} along the diagonal of equal values, from {y.min():.4g} to "
        f"{y.max():.4g}; the root mean square distance from it is {judged.rmse:.4g}.",
        draw,
    )


def beside(found: Findings) -> Drawing:
    """Draw the errors of the twin, simpler models and ordinary networks as bars."""
    bars = [(one.name, one.rmse, MUTED) for one in found.baselines]
    if found.rivals:
        best = min(found.rivals, key=lambda one: one.rmse)
        bars.append((ensemble(best.members, best.hidden), best.rmse, ANN))
    if found.trees:
        trees = found.trees
        bars.append((forest(trees.family, trees.trees, trees.leaves), trees.rmse, OTHER))
    bars.append(("this pack", found.judged.rmse, TWIN))
    bars.sort(key=lambda one: one[1])

    def draw(axes: "Axes") -> None:
        names, values, colours = zip(*bars, strict=True)
        drawn = axes.barh(names, values, color=colours, height=0.6)
        axes.bar_label(drawn, [f"{value:.4g}" for value in values], padding=4, fontsize=9)
        axes.set_xlim(0, 1.15 * max(values) or 1)
        axes.invert_yaxis()
        _bare(axes, "y")
        axes.set_xlabel(f"error (RMSE) of {plain(found.target)}")

    listed = ", ".join(f"{name} {value:.4g}" for name, value, _ in bars)
    return Drawing(
        "beside", "Error beside other models", f"Smallest error first: {listed}.", draw, height=2.6
    )


def coverage(found: Findings) -> Drawing | None:
    """Draw covered against claimed rates of the pack's intervals, or of its spread."""
    lines: dict[str, list[tuple[float, float]]] = {}
    scores, usual, worth = found.intervals, found.usual, found.reliability
    if scores is not None and usual is not None:
        points = scores.rows
        lines["intervals of the pack"] = [(one.claimed, one.covered) for one in scores.intervals]
        said = f"cover {percent(usual.covered)} of the {found.judged.where}"
        claims = percent(usual.claimed)
    elif worth is not None:
        points, most = worth.points, worth.at(0.9)
        lines["spread as it is"] = [(one.claimed, one.covered) for one in worth.coverage]
        said = f"cover {percent(most.covered)} of the {found.judged.where} as they are"
        claims = percent(most.claimed)
        if worth.factor is not None and most.scaled is not None:
            name = f"spread times {worth.factor:.3g}"
            lines[name] = [(one.claimed, one.scaled or 0.0) for one in worth.coverage]
            said += f", multiplied by {worth.factor:.3g} {percent(most.scaled)}"
    else:
        return None

    def draw(axes: "Axes") -> None:
        ideal = np.linspace(0, 1, 41)
        luck = 1.96 * np.sqrt(ideal * (1 - ideal) / points)
        axes.fill_between(ideal, ideal - luck, ideal + luck, color=GRID, linewidth=0)
        axes.plot(ideal, ideal, color=MUTED, linewidth=1)
        beside_point(axes, "as claimed, or chance", (0.3, 0.3), (8, -8), va="top")
        for (label, line), colour, mark in zip(lines.items(), (TWIN, OTHER), "os", strict=False):
            axes.plot(*zip(*line, strict=True), f"-{mark}", color=colour, label=label)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.set_xlabel("claimed")
        axes.set_ylabel("true values inside")
        axes.legend(loc="upper left", fontsize=8)

    return Drawing(
        "coverage",
        "What intervals hold against what they claim",
        f"Intervals that claim {claims} {said}. On the diagonal they cover what they claim.",
        draw,
    )


def sizes(found: Findings, parts: tuple[SizeBand, ...]) -> Drawing:
    """Draw how many true values the intervals hold, by size of the value."""
    usual = found.usual
    assert usual is not None
    claimed = usual.claimed

    def draw(axes: "Axes") -> None:
        places = range(len(parts))
        held = [one.covered or 0.0 for one in parts]
        luck = [1.96 * np.sqrt(claimed * (1 - claimed) / one.rows) for one in parts]
        axes.bar(
            places, [2 * one for one in luck], 0.9, [claimed - one for one in luck], color=GRID
        )
        axes.axhline(claimed, color=MUTED, linewidth=1)
        axes.plot(places, held, "o", color=TWIN, markersize=7)
        for place, value in zip(places, held, strict=True):
            words = f"{100 * value:.0f} %"
            at = (place, value)
            beside_point(axes, words, at, (0, 7), ha="center")
        axes.set_xticks(list(places), [f"{one.least:.3g}\nto {one.most:.3g}" for one in parts])
        axes.tick_params(axis="x", length=0, labelsize=9)
        least = min([*held, *(claimed - one for one in luck)])
        axes.set_ylim(max(0.0, least - 0.06), 1.06)
        axes.set_yticks([one for one in axes.get_yticks() if 0 <= one <= 1])
        axes.set_ylim(max(0.0, least - 0.06), 1.06)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.grid(False, axis="x")
        axes.set_xlabel(f"true {plain(found.target)}")
        axes.set_ylabel("true values inside")

    told = "; ".join(
        f"{one.least:.3g} to {one.most:.3g}: {percent(one.covered or 0)}" for one in parts
    )
    return Drawing(
        "sizes",
        f"Intervals of {percent(claimed)} by size of the target",
        f"True values inside the interval, by their size. {told}. The grey bars are what chance "
        f"leaves of {percent(claimed)}.",
        draw,
    )


def importance(found: Findings) -> Drawing:
    """Draw how much the error grows without each column."""
    shown = found.drivers[:_MOST_BARS]

    def draw(axes: "Axes") -> None:
        names = [plain(one.column) for one in shown]
        values = [max(one.worth, 0.0) for one in shown]
        places = np.arange(len(shown))
        axes.barh(places, values, color=TWIN, height=0.6)
        axes.set_yticks(places, names)
        axes.errorbar(
            values, places, xerr=[one.error for one in shown], fmt="none", ecolor=INK, elinewidth=1
        )
        for place, one, value in zip(places, shown, values, strict=True):
            at = (value + one.error, float(place))
            beside_point(axes, f"{value:.3g}", at, (4, 0), va="center")
        axes.invert_yaxis()
        longest = max(one.error + value for one, value in zip(shown, values, strict=True))
        axes.set_xlim(0, 1.18 * longest or 1)
        _bare(axes, "y")
        axes.set_xlabel("error grows by, when shuffled")

    told = ", ".join(f"{one.column} {one.worth:.3g}" for one in shown)
    more = len(found.drivers) - len(shown)
    rest = f" {number(more, 'column')} more matter less." if more else ""
    return Drawing(
        "importance",
        "What each column is worth",
        f"How much the error grows when a column is shuffled: {told}.{rest}",
        draw,
        height=max(2.2, 0.7 + 0.3 * len(shown)),
    )


def curves(found: Findings) -> Drawing:
    """Draw the prediction and its interval along the columns that matter most."""
    shown = found.drivers[:_MOST_CURVES]
    across = min(2, len(shown))
    down = -(-len(shown) // across)
    # Spans all targets and predictions; intervals that reach further are clipped.
    values = [point.mean for one in shown for point in one.curve]
    reach = min(*values, float(found.judged.y.min())), max(*values, float(found.judged.y.max()))

    def draw(*panels: "Axes") -> None:
        room = 0.05 * (reach[1] - reach[0] or 1)
        for axes, one in zip(panels, shown, strict=False):
            mean, low, high = (np.array(part) for part in list(zip(*one.curve, strict=True))[1:])
            at = [point.value for point in one.curve]
            if isinstance(at[0], str):
                places = np.arange(len(at))
                axes.vlines(places, low, high, color=TWIN, linewidth=4, alpha=0.25)
                axes.plot(places, mean, "o", color=TWIN, markersize=5)
                axes.set_xticks(places, [plain(str(value))[:12] for value in at])
                axes.set_xlim(-0.5, len(at) - 0.5)
                axes.grid(False, axis="x")
                if len(at) > 3:
                    axes.tick_params(axis="x", labelrotation=45)
            else:
                axes.fill_between(at, low, high, color=TWIN, alpha=0.2, linewidth=0)
                axes.plot(at, mean, color=TWIN)
                axes.locator_params(axis="x", nbins=4)
            axes.set_ylim(reach[0] - room, reach[1] + room)
            axes.locator_params(axis="y", nbins=4)
            title = f"{one.column}, {one.unit}" if one.unit else one.column
            axes.set_title(plain(title), fontsize=10, loc="left")
        for axes in panels[len(shown) :]:
            axes.set_visible(False)

    told = "; ".join(
        f"{one.column}: {one.curve[0].mean:.4g} to {one.curve[-1].mean:.4g}" for one in shown
    )
    return Drawing(
        "curves",
        f"{found.target} as one column changes".replace("\n", " "),
        f"Predictions from a typical row, from the least to the largest value of a column. {told}.",
        draw,
        (down, across),
        0.5 + 1.55 * down,
    )


def anchors(found: Findings) -> Drawing:
    """Draw the validation error against the number of anchors."""
    curve = found.anchors
    assert curve is not None
    lines = {
        method: [(one.k, one.rmse_val) for one in curve.points if one.method == method]
        for method in curve.methods
    }

    def draw(axes: "Axes") -> None:
        bound = (1 + curve.tolerance) * curve.rmse_all
        axes.axhspan(curve.rmse_all, bound, color=GRID, linewidth=0)
        axes.axhline(curve.rmse_all, color=INK, linewidth=1)
        first = min(curve.counts)
        words = f"all {curve.training_points} training points"
        beside_point(axes, words, (first, curve.rmse_all), (0, -4), ha="left", va="top")
        for method, colour, mark in zip(lines, (TWIN, OTHER), "os", strict=False):
            axes.plot(*zip(*lines[method], strict=True), f"-{mark}", color=colour, label=method)
        axes.set_xscale("log", base=2)
        ticks(axes, curve.counts)
        errors = [error for line in lines.values() for _, error in line]
        least, most = min(*errors, curve.rmse_all), max(*errors, bound)
        room = most - least or 1
        axes.set_ylim(least - 0.2 * room, most + 0.08 * room)
        axes.set_xlabel("anchors")
        axes.set_ylabel(f"validation RMSE of {plain(found.target)}")
        axes.legend(loc="upper right", title="chosen by", fontsize=9, title_fontsize=9)

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
    twins = "one twin" if found.model.twins == 1 else f"{found.model.twins} twins"

    def draw(axes: "Axes") -> None:
        points = [(one.bytes, one.rmse) for one in found.sizes]
        axes.plot(*zip(*points, strict=True), "-o", color=TWIN, label=f"{twins}, by anchors")
        mine = next(one for one in found.sizes if one.anchors == found.model.anchors)
        ring: dict[str, Any] = {"markeredgecolor": TWIN, "markeredgewidth": 2, "markersize": 9}
        axes.plot(mine.bytes, mine.rmse, "o", color=PAPER, label="this pack", **ring)
        for one in found.sizes:
            at = (one.bytes, one.rmse)
            beside_point(axes, f"{one.anchors}", at, (0, -6), ha="center", va="top")
        for rival, mark in zip(found.rivals, _MARKERS, strict=False):
            label = ensemble(rival.members, rival.hidden)
            axes.plot(rival.bytes, rival.rmse, mark, color=ANN, markersize=7, label=label)
        trees = [found.trees] if found.trees else []
        for forested in trees:
            label = forest(forested.family, forested.trees, forested.leaves)
            axes.plot(forested.bytes, forested.rmse, "X", color=OTHER, markersize=7, label=label)
        errors = [one.rmse for group in (found.sizes, found.rivals, trees) for one in group]
        room = max(max(errors) - min(errors), 0.1 * max(errors)) or 1
        axes.set_ylim(min(errors) - 0.25 * room, max(errors) + 0.15 * room)
        axes.margins(x=0.08)
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel("bytes on the device")
        axes.set_ylabel(f"RMSE of {plain(found.target)}")
        # Above the axes, where no point is.
        axes.legend(fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0.2)

    first, last = found.sizes[0], found.sizes[-1]
    beside = "; ".join(
        f"{ensemble(one.members, one.hidden)}, {one.bytes:,} bytes: {one.rmse:.4g}"
        for one in found.rivals
    )
    return Drawing(
        "accuracy",
        "Error against bytes",
        f"Packs with {first.anchors} to {last.anchors} anchors take {first.bytes:,} to "
        f"{last.bytes:,} bytes and have an error of {first.rmse:.4g} to {last.rmse:.4g}. "
        + (f"Ordinary networks: {beside}." if beside else "Ordinary networks were not trained.")
        + (f" Trees: {found.trees.bytes:,} bytes: {found.trees.rmse:.4g}." if found.trees else ""),
        draw,
    )


def ticks(axes: "Axes", numbers: list[int] | tuple[int, ...]) -> None:
    """Label powers of two only; if there are many, every second one."""
    powers = [one for one in numbers if not one & (one - 1)] or list(numbers)
    shown = powers[::2] if len(powers) > 8 else powers
    axes.set_xticks(shown, [str(one) for one in shown])
    axes.minorticks_off()


def _upright(at: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Lines from low to high as one broken line, in a tenth of the bytes of many."""
    gap = np.full(len(at), np.nan)
    return np.column_stack([at, at, gap]).ravel(), np.column_stack([low, high, gap]).ravel()


def _bare(axes: "Axes", axis: str) -> None:
    """Remove grid and ticks that bars do not need."""
    axes.grid(False, axis=axis)  # type: ignore[arg-type]
    axes.tick_params(axis=axis, length=0)  # type: ignore[arg-type]
    axes.locator_params(axis="x", nbins=5)


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
