"""Draw figures as SVG: a panel for each data set, or gains beside those of the paper.

The same numbers give the same bytes on one machine.
"""

import io
import math
from typing import TYPE_CHECKING, Any

from benchmarks.reproduction.measures import Comparison, Counts, Sweep
from benchmarks.reproduction.results import Outcome
from twinedge.figure_style import styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinguishable for the colour-blind and in print: each curve has a marker, too.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#666666")
_MARKERS = "os^DvPX*"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
}
_ACROSS = 3  # panels side by side


def figure(outcome: Outcome) -> str | None:
    """Draw an experiment as SVG: its curves, or else its gains; None if it has neither."""
    experiment = outcome.experiment
    with styled(_STYLE) as figure_of:
        drawing = figure_of(layout="constrained")
        if experiment.counts:
            _draw_counts(drawing, experiment.counts)
        elif experiment.sweeps:
            _draw_sweep(drawing, outcome, experiment.sweeps[0])
        elif experiment.comparisons:
            _draw_gains(drawing, outcome)
        else:
            return None
        file = io.StringIO()
        # No date and no version of the library, so that the bytes stay the same.
        about = {"Title": experiment.title, "Date": None, "Creator": None}
        drawing.savefig(file, format="svg", metadata=about)
    return file.getvalue()


def _draw_counts(drawing: "Figure", counts: Counts) -> None:
    drawing.set_size_inches(6.4, 4.2)
    axes = drawing.subplots()
    for number, (label, row) in enumerate(counts.rows.items()):
        look: dict[str, Any] = {
            "color": _COLOURS[number // 2],
            "marker": _MARKERS[number // 2],
            "markersize": 4,
        }
        axes.plot(counts.x, row, "--" if number % 2 else "-", label=label, **look)
    _logarithmic(axes, [float(x) for x in counts.x])
    axes.set_yscale("log")
    axes.set(xlabel=counts.x_title, ylabel=counts.y_title, title=counts.title)
    axes.legend(ncols=2, fontsize=8)


def _draw_sweep(drawing: "Figure", outcome: Outcome, sweep: Sweep) -> None:
    across = min(_ACROSS, len(outcome.datasets))
    down = math.ceil(len(outcome.datasets) / across)
    drawing.set_size_inches(3.2 * across, 2.5 * down + 0.7)
    grid = drawing.subplots(down, across, squeeze=False)
    for number, dataset in enumerate(outcome.datasets):
        axes = grid[number // across, number % across]
        _draw_panel(axes, outcome, sweep, dataset)
        if number % across == 0:
            axes.set_ylabel(sweep.y_title)
        if number >= len(outcome.datasets) - across:
            axes.set_xlabel(sweep.x_title)
    for number in range(len(outcome.datasets), across * down):
        grid[number // across, number % across].set_axis_off()
    handles, labels = grid[0, 0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=min(3, len(labels)))


def _draw_panel(axes: "Axes", outcome: Outcome, sweep: Sweep, dataset: str) -> None:
    places = sorted({x for xs, _ in sweep.curves.values() for x in xs})
    levels = []
    for number, (label, (xs, measures)) in enumerate(sweep.curves.items()):
        points = outcome.curve(measures, dataset)
        means = [one.mean for one in points]
        colour = _COLOURS[number]
        if len(xs) == 1:
            axes.axhline(means[0], color=colour, label=label, linewidth=1.2)
            levels.append(means[0])
            continue
        errors = [one.standard_error or 0.0 for one in points]
        axes.errorbar(
            xs,
            means,
            errors,
            color=colour,
            marker=_MARKERS[number],
            markersize=4,
            linewidth=1.2,
            linestyle="--",
            label=label,
        )
    _logarithmic(axes, places)
    if sweep.logarithmic:
        axes.set_yscale("log")
    if sweep.ceiling is not None and levels:
        axes.set_ylim(top=min(axes.get_ylim()[1], sweep.ceiling * max(levels)))
    axes.set_title(dataset.upper(), fontsize=9)


def _draw_gains(drawing: "Figure", outcome: Outcome) -> None:
    pairs = outcome.experiment.comparisons
    drawing.set_size_inches(3.4 * len(pairs) + 0.6, 0.34 * len(outcome.datasets) + 1.4)
    grid = drawing.subplots(1, len(pairs), squeeze=False)
    for axes, pair in zip(grid[0], pairs, strict=True):
        _draw_gain(axes, outcome, pair)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside upper center", ncols=2)


def _draw_gain(axes: "Axes", outcome: Outcome, pair: Comparison) -> None:
    rows = outcome.compare(pair)
    heights = range(len(rows))
    axes.axvline(0, color="#000000", linewidth=0.8)
    axes.plot([100 * row.gain for row in rows], heights, "o", color=_COLOURS[0], label="here")
    theirs = [math.nan if row.paper_gain is None else 100 * row.paper_gain for row in rows]
    if not all(map(math.isnan, theirs)):
        axes.plot(theirs, heights, "s", color=_COLOURS[1], fillstyle="none", label="paper")
    axes.set_yticks(heights, [row.dataset.upper() for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("gain, %")
    axes.set_title(f"{pair.other.title} against\n{pair.base.title}", fontsize=9)


def _logarithmic(axes: "Axes", places: list[float]) -> None:
    """Scale the x axis, with ticks at the points, but no more than fit."""
    axes.set_xscale("log")
    shown = places[:: math.ceil(len(places) / 6)]
    forms = (".2g" if x < 1 else ".3g" if x < 1000 else ".0f" for x in shown)
    axes.set_xticks(shown, [f"{x:{form}}" for x, form in zip(shown, forms, strict=True)])
    axes.minorticks_off()
