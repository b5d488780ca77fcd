"""The plots of the pages of evidence, from benchmarks/results: `make plots`.

Each is drawn from files of results alone, so that one that is not current is found by drawing it
again. Colours keep their meaning: blue is a twin.
"""

import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from generate.lean import lean_picture
from twinedge.figure_style import styled

DOCS = Path(__file__).resolve().parents[1]
RESULTS = DOCS.parent / "benchmarks" / "results"
BLUE, ORANGE, GREEN, GREY = "#0b5394", "#b45f06", "#38761d", "#777777"
PURPLE, RED, PINK = "#674ea7", "#a61c00", "#a64d79"
LOOK = {"font.size": 9, "legend.frameon": False, "legend.fontsize": 8}


def results(name: str) -> dict[str, Any]:
    """Read a file of results."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found


def accuracy(figure: Any) -> None:
    """Errors relative to those of the paper's best neural method, and how often intervals hold."""
    rows = results("accuracy")["summary"]
    names = [one["dataset"] for one in rows]
    errors, coverage = figure.subplots(1, 2, width_ratios=[3, 2])
    best = [one["paper_best"] for one in rows]
    for key, mark, colour, offset, words in (
        ("paper_twin", "s", GREY, 0.0, "one twin of the paper"),
        ("rmse_test", "D", ORANGE, -0.12, "all training points as anchors"),
        ("rmse_pack", "o", BLUE, 0.12, "pack, 32 anchors"),
    ):
        ratios = [one[key] / other for one, other in zip(rows, best, strict=True)]
        places = [place + offset for place in range(len(rows))]
        spread = None
        if key == "rmse_test":
            spread = [one["standard_error"] / other for one, other in zip(rows, best, strict=True)]
        errors.errorbar(ratios, places, xerr=spread, fmt=mark, ms=4, color=colour, label=words)
    errors.axvline(1, color=GREY, lw=0.8, ls="--")
    errors.set(xlabel="RMSE, relative to the paper's best neural method", xscale="log")
    _plain_ticks(errors, [0.2, 0.5, 1, 2])
    _names(errors, names)
    errors.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=1)
    coverage.plot([100 * one["coverage"] for one in rows], range(len(rows)), "o", ms=4, color=BLUE)
    coverage.axvline(90, color=GREY, lw=0.8, ls="--")
    coverage.set(xlabel="true values in 90 % intervals, %", xlim=(85, 100))
    _names(coverage, names)


def rivals(figure: Any) -> None:
    """Errors of other models of the same bytes, relative to ours on the same splits."""
    found = results("rivals")["summary"]["20"]
    kinds = {
        "boosting": ("boosted trees", GREEN, "^"),
        "forest": ("forest", ORANGE, "v"),
        "nearest": ("neighbors", PURPLE, "s"),
        "linear": ("linear", GREY, "x"),
        "network": ("one network", RED, "o"),
        "networks": ("four networks", PINK, "D"),
    }
    names = list(found["twins"]["tables"])
    axes = figure.subplots()
    axes.axvline(1, color=BLUE, lw=1.5, label="our four twins")
    for number, (kind, (words, colour, mark)) in enumerate(kinds.items()):
        tables = found[kind]["tables"]
        rows = [
            (tables[one]["ratio"], place)
            for place, one in enumerate(names)
            if "ratio" in tables.get(one, {})
        ]
        places = [place + (number - 2.5) / 9 for _, place in rows]
        axes.plot([ratio for ratio, _ in rows], places, mark, ms=4, color=colour, label=words)
    axes.set(xlabel="RMSE on test rows, relative to ours on the same splits", xscale="log")
    _plain_ticks(axes, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
    _names(axes, names)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def intervals(figure: Any) -> None:
    """Interval scores relative to those of three other kinds of intervals."""
    (summary,) = results("intervals")["summary"].values()
    rows = summary["sets"]
    axes = figure.subplots()
    axes.axvline(1, color=GREY, lw=0.8, ls="--")
    for number, (key, mark, colour, words) in enumerate(
        (
            ("to_constant", "o", BLUE, "of constant width, same predictions"),
            ("to_networks", "D", ORANGE, "of four networks in the same bytes"),
            ("to_boosting", "^", GREEN, "of quantile gradient boosting"),
        )
    ):
        places = [place + (number - 1) / 6 for place in range(len(rows))]
        axes.plot([one[key] for one in rows], places, mark, ms=4, color=colour, label=words)
    axes.set(xlabel="interval score, relative to that of other intervals", xscale="log")
    _plain_ticks(axes, [0.002, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1])
    _names(axes, [one["dataset"] for one in rows])
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.75))


def adaptation(figure: Any) -> None:
    """Errors at a new group of rows, by how many of its points were measured."""
    rows = results("adaptation")["summary"]
    names = {"cs": "mixes of concrete", "ee": "shapes of buildings", "yh": "hulls of yachts"}
    for axes, (name, title) in zip(figure.subplots(1, 3), names.items(), strict=True):
        mine = [one for one in rows if one["dataset"] == name]
        counts = [one["k"] for one in mine]
        for key, mark, colour, words in (
            ("shipped", "s--", GREY, "as shipped"),
            ("networks", "D:", ORANGE, "networks, plus the mean residual"),
            ("adapted", "o-", BLUE, "adapted"),
        ):
            axes.plot(counts, [one[key] for one in mine], mark, ms=4, color=colour, label=words)
        axes.set_title(title, fontsize=9)
        axes.set(xlabel="points measured", ylim=(0, None))
        axes.set_xticks(counts, map(str, counts))
    figure.axes[0].set(ylabel="RMSE on the other points")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def speed(figure: Any) -> None:
    """Instructions of a query against bytes of flash, on a Cortex-M4."""
    record = results("device")
    points = {
        "one network of 128-128, floats": (record["emlearn_one"], "o", RED),
        "32 networks, floats": (record["emlearn_ensemble"], "o", RED),
    }
    kinds = {"our": ("o", BLUE), "boosted": ("^", GREEN), "forest,": ("v", ORANGE)}
    for name, row in record["rivals"]["rows"].items():
        if (kind := kinds.get(name.split()[0])) is not None:
            points[name.replace(" bytes", "")] = row, *kind
    axes = figure.subplots()
    for name, (row, mark, colour) in points.items():
        x, y = row["flash_bytes"], row["instructions_per_query"]
        axes.plot(x, y, mark, ms=5, color=colour)
        aside = {"ha": "right", "xytext": (-6, -3)} if x > 1e6 else {"xytext": (6, -3)}
        if name.startswith("our one twin"):  # beside it are four twins
            aside = {"xytext": (-4, 6)}
        axes.annotate(name, (x, y), textcoords="offset points", fontsize=7, **aside)
    axes.set(xscale="log", yscale="log", xlabel="bytes of flash", ylabel="instructions per query")
    axes.set(xlim=(6e3, 4e6))
    _plain_ticks(axes, [1e4, 1e5, 1e6])
    axes.set_yticks([1e3, 1e4, 1e5, 1e6], ["1,000", "10,000", "100,000", "1,000,000"])
    axes.grid(alpha=0.3)


PLOTS: dict[str, tuple[Callable[[Any], None], tuple[float, float]]] = {
    "accuracy": (accuracy, (7, 3.6)),
    "rivals": (rivals, (7, 4.2)),
    "intervals": (intervals, (7, 3.2)),
    "adaptation": (adaptation, (7, 3)),
    "speed": (speed, (7, 4)),
}


def _names(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", alpha=0.3)


def _plain_ticks(axes: Any, ticks: list[float]) -> None:
    low, high = axes.get_xlim()
    shown = [one for one in ticks if low <= one <= high]
    axes.set_xticks(shown, [f"{one:,g}" if one < 1e5 else f"{one:,.0f}" for one in shown])
    axes.minorticks_off()


def drawn(name: str) -> str:
    """Draw a plot; return its SVG."""
    draw, size = PLOTS[name]
    with styled(LOOK) as figure_of:
        figure = figure_of(figsize=size, layout="constrained", facecolor="white")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return lean_picture(buffer.getvalue())


def kept(name: str) -> Path:
    """Return where a plot is kept."""
    return DOCS / f"evidence-{name}.svg"


def differences(one: str, other: str) -> Iterator[str]:
    """Yield what differs by more than rounding: text, or a number by more than 0.02."""
    one, other = (re.sub(r"\b[pm][0-9a-f]{10}\b", "id", text) for text in (one, other))
    number = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+)?(?![\w.])")
    words = [number.sub("#", text) for text in (one, other)]
    if words[0] != words[1]:
        yield "lines, or what is written"
        return
    for old, new in zip(number.findall(one), number.findall(other), strict=True):
        if not math.isclose(float(old), float(new), abs_tol=0.021):
            yield f"{new} is {old}"


def main() -> None:
    """Draw all plots into docs/."""
    for name in PLOTS:
        kept(name).write_text(drawn(name), "utf-8")
        print(kept(name).relative_to(DOCS.parent), file=sys.stderr)


if __name__ == "__main__":
    main()
