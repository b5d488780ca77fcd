"""The figures of a report."""

from collections.abc import Sequence
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
    number,
    percent,
    plain,
)
from twinedge_export.report.findings import Findings, NetworkRival, Trees
from twinedge_export.report.reliability import SizeBand

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 300  # predictions drawn: more would overlap and bloat the page
_MOST_CURVES = 6
_MOST_BARS = 12
_MARKERS = "sD^v"
CHANCE = 1.96  # standard deviations: 95 of 100 counts


def predictions(found: Findings) -> Drawing:
    """Draw predicted against true targets, with intervals or the spread as bars."""
    known, usual = found.accuracy.predictions, found.usual
    every = max(1, -(-len(known.y) // _MOST_DOTS))
    low, high = known.mean - known.spread, known.mean + known.spread
    beside = "± spread"
    if usual is not None:
        low, high = known.ends[usual.claimed].T
        beside = f"and interval of {percent(usual.claimed)}"
    y, mean, low, high = (one[::every] for one in (known.y, known.mean, low, high))
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
                lines = _upright(y[part], low[part], high[part])
                axes.plot(*lines, color=colour, linewidth=0.7, alpha=0.45)
                axes.plot(y[part], mean[part], mark, color=colour, markersize=3, label=label)
        axes.set_xlim(ends[0] - room, ends[1] + room)
        name = plain(found.target)
        axes.set(xlabel=f"true {name}", ylabel=f"predicted {name}")
        axes.legend(loc="upper left", fontsize=8, handletextpad=0.2)

    part = "" if every == 1 else f", one of every {every}"
    return Drawing(
        "predictions",
        "Predicted against true",
        f"{len(y)} points{part} along the diagonal of equal values, from {y.min():.4g} to "
        f"{y.max():.4g}; the root mean square distance from it is {known.rmse:.4g}.",
        draw,
    )


def _upright(at: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Lines from low to high as one broken line, in a tenth of the bytes of many."""
    gap = np.full(len(at), np.nan)
    return np.column_stack([at, at, gap]).ravel(), np.column_stack([low, high, gap]).ravel()


def beside(found: Findings) -> Drawing:
    """Draw the errors of the twin, simpler models and ordinary networks as bars."""
    rows = [(one.name, one.rmse, MUTED) for one in found.accuracy.baselines]
    rows += [
        (one.name, one.rmse, ANN if isinstance(one, NetworkRival) else OTHER)
        for one in found.comparison.best
    ]
    rows.append(("this pack", found.accuracy.predictions.rmse, TWIN))
    return error_bars("beside", "Error beside other models", rows, found.target, height=2.6)


def error_bars(
    name: str, title: str, rows: list[tuple[str, float, str]], target: str, height: float
) -> Drawing:
    """Draw the errors of models as bars, the smallest first; rows are name, error and colour."""
    rows = sorted(rows, key=lambda one: one[1])

    def draw(axes: "Axes") -> None:
        names, values, colours = zip(*rows, strict=True)
        drawn = axes.barh([plain(one) for one in names], values, color=colours, height=0.6)
        axes.bar_label(drawn, [f"{value:.4g}" for value in values], padding=4, fontsize=9)
        axes.set_xlim(0, 1.15 * max(values) or 1)
        axes.invert_yaxis()
        _bare(axes)
        axes.set_xlabel(f"error (RMSE) of {plain(target)}")

    listed = ", ".join(f"{name} {value:.4g}" for name, value, _ in rows)
    return Drawing(name, title, f"Smallest error first: {listed}.", draw, height=height)


def coverage(found: Findings) -> Drawing | None:
    """Draw covered against claimed rates of the pack's intervals, or of its spread."""
    lines: dict[str, list[tuple[float, float]]] = {}
    scores, usual, spread = found.intervals, found.usual, found.reliability
    where = found.accuracy.predictions.where
    if scores is not None and usual is not None:
        points, claims = scores.rows, usual.claimed
        lines["intervals of the pack"] = [(one.claimed, one.covered) for one in scores.intervals]
        words = f"cover {percent(usual.covered)} of the {where}"
    elif spread is not None:
        points, most = spread.points, spread.at(0.9)
        claims = most.claimed
        lines["spread as it is"] = [(one.claimed, one.covered) for one in spread.coverage]
        words = f"cover {percent(most.covered)} of the {where} as they are"
        if spread.factor is not None and most.scaled is not None:
            name = f"spread times {spread.factor:.3g}"
            lines[name] = [(one.claimed, one.scaled or 0.0) for one in spread.coverage]
            words += f", multiplied by {spread.factor:.3g} {percent(most.scaled)}"
    else:
        return None

    def draw(axes: "Axes") -> None:
        ideal = np.linspace(0, 1, 41)
        luck = CHANCE * np.sqrt(ideal * (1 - ideal) / points)
        axes.fill_between(ideal, ideal - luck, ideal + luck, color=GRID, linewidth=0)
        axes.plot(ideal, ideal, color=MUTED, linewidth=1)
        beside_point(axes, "as claimed, or chance", (0.3, 0.3), (8, -8), va="top")
        for (label, line), colour, mark in zip(lines.items(), (TWIN, OTHER), "os", strict=False):
            axes.plot(*zip(*line, strict=True), f"-{mark}", color=colour, label=label)
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        axes.set(xlabel="claimed", ylabel="true values inside")
        axes.legend(loc="upper left", fontsize=8)

    return Drawing(
        "coverage",
        "What intervals hold against what they claim",
        f"Intervals that claim {percent(claims)} {words}. On the diagonal they cover what they "
        "claim.",
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
        luck = [CHANCE * np.sqrt(claimed * (1 - claimed) / one.rows) for one in parts]
        bottoms = [claimed - one for one in luck]
        axes.bar(places, [2 * one for one in luck], 0.9, bottoms, color=GRID)
        axes.axhline(claimed, color=MUTED, linewidth=1)
        axes.plot(places, held, "o", color=TWIN, markersize=7)
        for place, value in zip(places, held, strict=True):
            beside_point(axes, f"{100 * value:.0f} %", (place, value), (0, 7), ha="center")
        axes.set_xticks(list(places), [f"{one.least:.3g}\nto {one.most:.3g}" for one in parts])
        axes.tick_params(axis="x", length=0, labelsize=9)
        least = max(0.0, min([*held, *bottoms]) - 0.06)
        axes.set_ylim(least, 1.06)
        axes.set_yticks([one for one in axes.get_yticks() if 0 <= one <= 1])
        axes.set_ylim(least, 1.06)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.grid(False, axis="x")
        axes.set(xlabel=f"true {plain(found.target)}", ylabel="true values inside")

    listed = "; ".join(
        f"{one.least:.3g} to {one.most:.3g}: {percent(one.covered or 0)}" for one in parts
    )
    return Drawing(
        "sizes",
        f"Intervals of {percent(claimed)} by size of the target",
        f"True values inside the interval, by their size. {listed}. The grey bars are what chance "
        f"leaves of {percent(claimed)}.",
        draw,
    )


def importance(found: Findings) -> Drawing:
    """Draw how much the error grows without each column."""
    shown = found.importance[:_MOST_BARS]

    def draw(axes: "Axes") -> None:
        values = [max(one.worth, 0.0) for one in shown]
        errors = [one.error for one in shown]
        places = np.arange(len(shown))
        axes.barh(places, values, color=TWIN, height=0.6)
        axes.set_yticks(places, [plain(one.column) for one in shown])
        axes.errorbar(values, places, xerr=errors, fmt="none", ecolor=INK, elinewidth=1)
        ends = [value + error for value, error in zip(values, errors, strict=True)]
        for place, end, value in zip(places, ends, values, strict=True):
            beside_point(axes, f"{value:.3g}", (end, float(place)), (4, 0), va="center")
        axes.invert_yaxis()
        axes.set_xlim(0, 1.18 * max(ends) or 1)
        _bare(axes)
        axes.set_xlabel("error grows by, when shuffled")

    listed = ", ".join(f"{one.column} {one.worth:.3g}" for one in shown)
    more = len(found.importance) - len(shown)
    rest = f" {number(more, 'column')} more matter less." if more else ""
    return Drawing(
        "importance",
        "What each column is worth",
        f"How much the error grows when a column is shuffled: {listed}.{rest}",
        draw,
        height=max(2.2, 0.7 + 0.3 * len(shown)),
    )


def curves(found: Findings) -> Drawing:
    """Draw the prediction and its interval along the columns that matter most."""
    shown, y = found.importance[:_MOST_CURVES], found.accuracy.predictions.y
    across = min(2, len(shown))
    down = -(-len(shown) // across)
    # Spans all targets and predictions; intervals that reach further are clipped.
    values = [point.mean for one in shown for point in one.curve]
    reach = min(*values, float(y.min())), max(*values, float(y.max()))

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

    listed = "; ".join(
        f"{one.column}: {one.curve[0].mean:.4g} to {one.curve[-1].mean:.4g}" for one in shown
    )
    return Drawing(
        "curves",
        f"{found.target} as one column changes".replace("\n", " "),
        "Predictions from a typical row, from the least to the largest value of a column. "
        f"{listed}.",
        draw,
        (down, across),
        0.5 + 1.55 * down,
    )


def anchors(found: Findings) -> Drawing:
    """Draw the validation error against the number of anchors."""
    curve = found.comparison.curve
    assert curve is not None
    lines = {
        method: [(one.k, one.rmse_val) for one in curve.points if one.method == method]
        for method in curve.methods
    }

    def draw(axes: "Axes") -> None:
        bound = (1 + curve.tolerance) * curve.rmse_all
        axes.axhspan(curve.rmse_all, bound, color=GRID, linewidth=0)
        axes.axhline(curve.rmse_all, color=INK, linewidth=1)
        words, first = f"all {curve.training_points} training points", min(curve.counts)
        beside_point(axes, words, (first, curve.rmse_all), (0, -4), ha="left", va="top")
        for method, colour, mark in zip(lines, (TWIN, OTHER), "os", strict=False):
            axes.plot(*zip(*lines[method], strict=True), f"-{mark}", color=colour, label=method)
        axes.set_xscale("log", base=2)
        ticks(axes, curve.counts)
        errors = [error for line in lines.values() for _, error in line]
        least, most = min(*errors, curve.rmse_all), max(*errors, bound)
        room = most - least or 1
        axes.set_ylim(least - 0.2 * room, most + 0.08 * room)
        axes.set(xlabel="anchors", ylabel=f"validation RMSE of {plain(found.target)}")
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
    model, compared = found.pack.model, found.comparison
    sizes, networks, trees = compared.sizes, compared.networks, compared.trees
    twins = "one twin" if model.twins == 1 else f"{model.twins} twins"
    others: list[tuple[NetworkRival | Trees, str, str]] = [
        (one, mark, ANN) for one, mark in zip(networks, _MARKERS, strict=False)
    ]
    others += [(trees, "X", OTHER)] if trees else []

    def draw(axes: "Axes") -> None:
        points = [(one.bytes, one.rmse) for one in sizes]
        axes.plot(*zip(*points, strict=True), "-o", color=TWIN, label=f"{twins}, by anchors")
        mine = next(one for one in sizes if one.anchors == model.anchors)
        ring: dict[str, Any] = {"markeredgecolor": TWIN, "markeredgewidth": 2, "markersize": 9}
        axes.plot(mine.bytes, mine.rmse, "o", color=PAPER, label="this pack", **ring)
        for one, at in zip(sizes, points, strict=True):
            beside_point(axes, f"{one.anchors}", at, (0, -6), ha="center", va="top")
        for other, mark, colour in others:
            axes.plot(other.bytes, other.rmse, mark, color=colour, markersize=7, label=other.name)
        errors = [one.rmse for one in sizes] + [one.rmse for one, *_ in others]
        room = max(max(errors) - min(errors), 0.1 * max(errors)) or 1
        axes.set_ylim(min(errors) - 0.25 * room, max(errors) + 0.15 * room)
        axes.margins(x=0.08)
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        axes.locator_params(axis="x", nbins=6)
        axes.set(xlabel="bytes on the device", ylabel=f"RMSE of {plain(found.target)}")
        # Above the axes, where no point is.
        axes.legend(fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderpad=0.2)

    first, last = sizes[0], sizes[-1]
    beside = "; ".join(f"{one.name}, {one.bytes:,} bytes: {one.rmse:.4g}" for one in networks)
    return Drawing(
        "accuracy",
        "Error against bytes",
        f"Packs with {first.anchors} to {last.anchors} anchors take {first.bytes:,} to "
        f"{last.bytes:,} bytes and have an error of {first.rmse:.4g} to {last.rmse:.4g}. "
        + (f"Ordinary networks: {beside}." if beside else "Ordinary networks were not trained.")
        + (f" Trees: {trees.bytes:,} bytes: {trees.rmse:.4g}." if trees else ""),
        draw,
    )


def ticks(axes: "Axes", numbers: Sequence[int]) -> None:
    """Label powers of two only; if there are many, every second one."""
    powers = [one for one in numbers if not one & (one - 1)] or list(numbers)
    shown = powers[::2] if len(powers) > 8 else powers
    axes.set_xticks(shown, [str(one) for one in shown])
    axes.minorticks_off()


def _bare(axes: "Axes") -> None:
    """Remove grid and ticks that horizontal bars do not need."""
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=5)


def memory(found: Findings) -> Drawing:
    """Draw bytes against ensemble size: the paper's figure for this model."""
    model, rows = found.pack.model, found.costs.memory
    members = [one.members for one in rows]
    ann, twin = [one.ann_bytes for one in rows], [one.twin_bytes for one in rows]

    def draw(axes: "Axes") -> None:
        axes.plot(members, ann, "-s", color=ANN)
        axes.plot(members, twin, "-o", color=TWIN)
        axes.axvline(model.anchors, color=MUTED, linewidth=1, linestyle=":")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        low, high = min(ann + twin), max(ann + twin)
        axes.set_ylim(10 ** np.floor(np.log10(low)), 2.5 * high)
        middle = 2 * len(members) // 3
        at = (members[middle], ann[middle])
        beside_point(axes, "ordinary networks", at, (-6, 4), ha="right", color=ANN)
        at = (members[-1], twin[-1])
        name = "one twin" if model.twins == 1 else f"{model.twins} twins"
        beside_point(axes, name, at, (0, -12), ha="right", va="top", color=TWIN)
        at_end = (model.anchors, float(axes.get_ylim()[0]))
        beside_point(axes, f" {number(model.anchors, 'anchor')}", at_end, (2, 6))
        ticks(axes, members)
        axes.yaxis.set_major_formatter(lambda value, _: amount(value))
        axes.set(xlabel="ensemble size", ylabel=f"bytes with {model.weights} weights")

    start = found.costs.budget["smaller_from"]["bytes"]
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
    pieces = uses(found.pack.description.pieces).items()
    parts = sorted((one for one in pieces if one[1]), key=lambda one: one[1])

    def draw(axes: "Axes") -> None:
        names, values = zip(*parts, strict=True)
        bars = axes.barh(names, values, color=TWIN, height=0.7)
        axes.bar_label(bars, [f"{value:,}" for value in values], padding=3, fontsize=9)
        axes.set_xlim(0, 1.2 * max(values))
        axes.xaxis.set_major_formatter(lambda value, _: amount(value))
        _bare(axes)
        axes.set_xlabel("bytes")

    listed = ", ".join(f"{name} {value:,}" for name, value in reversed(parts))
    return Drawing(
        "pack",
        "What the bytes of the pack are for",
        f"Bytes: {listed}.",
        draw,
        height=max(2.4, 0.6 + 0.21 * len(parts)),
    )
