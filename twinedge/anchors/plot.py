"""Plot the validation error against the number of anchors, in plain text or to a file."""

import logging
import math
from io import BytesIO
from pathlib import Path
from typing import Any

from twinedge.anchors.curves import AUTO, Measurement
from twinedge.atomic_files import check_file, write_file
from twinedge.errors import InputError
from twinedge.extras import require

ENDINGS = (".svg", ".png")

# The same in every plot; "m" is match, so medoids is "d".
LETTERS = {
    "auto": "a",
    "match": "m",
    "xy": "x",
    "stratified": "s",
    "medoids": "d",
    "farthest": "f",
    "greedy": "g",
    "random": "r",
}

_HEIGHT = 14  # lines of a text plot


def text_plot(found: Measurement) -> list[str]:
    """Draw with letters, one column for each number of anchors and each method.

    Where curves meet, their letters are side by side in the order of the legend. Errors grow
    upwards on a logarithmic scale, with the few largest all on the first line; the dashes mark the
    error of all anchors.
    """
    values = {(point.method, point.k): point.rmse_val for point in found.points}
    scale = _Scale(list(values.values()), found.rmse_all)
    level = scale.line(found.rmse_all)
    letters = {method: LETTERS[method] for method in found.methods}
    width = max(len(letters), len(str(found.counts[-1]))) + 1
    lines = []
    for number in range(scale.lines):
        blank = "-" if number == level else " "
        cells = (
            "".join(
                letter
                if (method, k) in values and scale.line(values[method, k]) == number
                else blank
                for method, letter in letters.items()
            ).ljust(width, blank)
            for k in found.counts
        )
        mark = " all" if number == level else ""
        lines.append(f"{scale.label(number):>10} |{blank}{''.join(cells)}{mark}".rstrip())
    axis = "".join(str(k).ljust(width) for k in found.counts)
    legend = "  ".join(f"{letter} {method}" for method, letter in letters.items())
    return [f"{'RMSE':>10}", *lines, f"{'anchors':>10}   {axis}".rstrip(), f"{'':>10}   {legend}"]


class _Scale:
    """Maps errors to lines, the largest on the first, where a few outliers are put as well."""

    def __init__(self, values: list[float], level: float) -> None:
        ascending = sorted(values)
        self._most = max(level, ascending[math.ceil(0.9 * len(values)) - 1])
        # An error of 0 has no logarithm, and below 1/1000 the difference does not matter.
        self._least = max(min(level, ascending[0]), self._most / 1000)
        self._span = math.log(self._most / self._least) if self._most > 0 else 0.0
        self.lines = _HEIGHT if self._span > 0 else 1
        self._beyond = ascending[-1] > self._most

    def line(self, value: float) -> int:
        if self.lines == 1:
            return 0
        height = math.log(min(max(value, self._least), self._most) / self._least) / self._span
        return round((1 - height) * (self.lines - 1))

    def label(self, line: int) -> str:
        """Error at the middle of a line."""
        part = 1 - line / max(self.lines - 1, 1)
        value = f"{self._least * math.exp(self._span * part):.4g}"
        return f">{value}" if line == 0 and self._beyond else value


def check_drawing(path: Path) -> None:
    """Refuse a plot that could not be drawn or written, before the work is done.

    Raises
    ------
    InputError
        If matplotlib, the folder or a known file ending is missing.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: a plot is written as {' or '.join(ENDINGS)}")
    check_file(path)
    require("matplotlib")


def draw(found: Measurement, path: Path, *, title: str, target: str) -> None:
    """Write the plot as a file; the same measurement gives the same bytes on one machine.

    Parameters
    ----------
    found : Measurement
        What to draw.
    path : path
        File to write; its ending decides the format.
    title, target : str
        What was measured, and the name of the target.
    """
    check_drawing(path)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no notes about its font cache
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for method in found.methods:
        k, error = zip(
            *((p.k, p.rmse_val) for p in found.points if p.method == method), strict=True
        )
        # The line of "auto" mostly lies on that of another method.
        style: dict[str, Any] = {"linestyle": "--", "color": "black"} if method == AUTO else {}
        axes.plot(k, error, marker="o", markersize=4, linewidth=1.5, label=method, **style)
    bound = (1 + found.tolerance) * found.rmse_all
    axes.axhline(found.rmse_all, color="black", linewidth=1, label=f"all {found.training_points}")
    axes.axhspan(found.rmse_all, bound, color="black", alpha=0.1, linewidth=0)
    best = found.recommended()
    if best.within:
        axes.plot(best.k, best.rmse_val, "o", markersize=11, fillstyle="none", color="black")
    axes.set_xscale("log", base=2)
    axes.set_xticks(found.counts, labels=map(str, found.counts))
    axes.minorticks_off()
    axes.set_xlabel("anchors")
    axes.set_ylabel(f"validation RMSE of {_plain(target)}")
    axes.set_title(_plain(title))
    axes.legend(frameon=False, fontsize="small")
    ending = path.suffix.lower()[1:]
    metadata = {"Date": None} if ending == "svg" else {"Software": None}
    drawn = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "twinedge", "svg.fonttype": "none"}):
        figure.savefig(drawn, format=ending, dpi=150, metadata=metadata)
    write_file(path, drawn.getvalue())


def _plain(text: str) -> str:
    """Escape dollars, which matplotlib takes for formulas, and what UTF-8 cannot encode."""
    return text.encode(errors="replace").decode().replace("$", r"\$")
