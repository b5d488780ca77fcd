"""How much does an ensemble store: as networks, or as one twin and its anchors?

Draws the paper's figure of memory requirements: parameters against ensemble size, for several
numbers of features, with two hidden layers of 128 as in the paper. The same versions of Python and
matplotlib draw the same bytes.

    python benchmarks/memory_figure.py
    python benchmarks/memory_figure.py --features 2 8 13 -o figure.svg
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

from twinedge.budget import Model
from twinedge.budget.model import smaller_in_params
from twinedge.figure_style import STYLE

FIGURE = Path(__file__).parents[1] / "docs" / "memory.svg"
FEATURES = (1, 10, 100, 1000)
HIDDEN = (128, 128)
MEMBERS = [2**power for power in range(11)]
# Distinguishable in print and for the colour-blind: each number of features has a marker.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = "os^DvPX"


def curves(features: int) -> tuple[list[int], list[int]]:
    """Parameters of networks, and of one twin with as many anchors, for each ensemble size."""
    models = [Model.of(features, HIDDEN, members) for members in MEMBERS]
    return [one.ann_params for one in models], [one.twin_params for one in models]


def draw(path: Path, numbers: list[int]) -> None:
    """Draw the figure; replace the file atomically."""
    with matplotlib.rc_context({**STYLE, "font.size": 10}):
        figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
        for number, features in enumerate(numbers):
            look = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
                "markersize": 4,
            }
            ann, twin = curves(features)
            axes.plot(MEMBERS, ann, "-", label=f"ANNs, f = {features}", **look)
            axes.plot(MEMBERS, twin, "--", label=f"twin, f = {features}", **look)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(MEMBERS, [str(members) for members in MEMBERS])
        axes.set_xlabel("ensemble size")
        axes.set_ylabel("parameters stored")
        axes.grid(alpha=0.3)
        axes.legend(ncols=2, fontsize=8)
        title = "Parameters of ANN ensembles and of one twin with anchors, by ensemble size"
        beside = path.with_suffix(".partial")
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a date, and without the version of the library.
        metadata = {"Title": title, "Date": None, "Creator": None}
        figure.savefig(beside, format="svg", metadata=metadata)
        pyplot.close(figure)
        beside.replace(path)


def main() -> None:
    """Draw the figure, print what it shows, and last one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", type=int, nargs="+", default=list(FEATURES))
    parser.add_argument("--output", "-o", type=Path, default=FIGURE)
    options = parser.parse_args()
    draw(options.output, options.features)

    print(f"{'features':>8}{'members':>9}{'ANNs':>12}{'twin':>10}{'ratio':>8}")
    rows = []
    for features in options.features:
        start = smaller_in_params(Model.of(features, HIDDEN))
        for members, ann, twin in zip(MEMBERS, *curves(features), strict=True):
            if members in (1, 32, 1024):
                print(f"{features:8}{members:9}{ann:12}{twin:10}{ann / twin:8.1f}")
            rows.append({"features": features, "members": members, "ann": ann, "twin": twin})
        print(f"{features:8}  the twin is smaller from {start} members on")
    result = {"figure": options.output.name, "hidden": list(HIDDEN), "parameters": rows}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
