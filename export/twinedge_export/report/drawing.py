"""How figures look, and how they become files and parts of a page.

Colours are those of the light page. In the page each becomes a variable of the style sheet, which
has another value in the dark. The same numbers give the same bytes on one machine.
"""

import io
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, GRID, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
TWIN, ANN, OTHER = "#0b5cad", "#b3470f", "#7d3659"
# Variables of the style sheet; a test holds the two together.
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    TWIN: "--twin",
    ANN: "--ann",
    OTHER: "--other",
}
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "twinedge",  # ids by content, not at random
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.facecolor": PAPER,
    "legend.edgecolor": PAPER,
    "legend.framealpha": 0.85,
    "legend.fontsize": 9,
}
_NUMBER = re.compile(r"-?\d+\.\d+")
_WIDTH = 4.8  # inches: small, so that words stay legible on a telephone


@dataclass(frozen=True)
class Drawing:
    """A figure.

    Parameters
    ----------
    name : str
        Of its file, without an ending.
    title : str
        In a few words.
    alt : str
        What one sees, for those who do not.
    draw : function
        Draws it into axes: one, or as many as there are panels.
    panels : (int, int)
        Rows and columns of axes.
    height : float
        In inches.
    """

    name: str
    title: str
    alt: str
    draw: Callable[..., None]
    panels: tuple[int, int] = (1, 1)
    height: float = 3.4

    def render(self, ending: str) -> bytes:
        """Draw it as a file: "svg" or "png"."""
        logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells about its font cache
        import matplotlib
        from matplotlib.figure import Figure

        file = io.BytesIO()
        metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[ending]
        with matplotlib.rc_context(_STYLE):
            size = _WIDTH, self.height
            figure = Figure(figsize=size, layout="constrained", facecolor=PAPER)
            grid: list[Axes] = list(figure.subplots(*self.panels, squeeze=False).flat)
            for axes in grid:
                axes.set_facecolor(PAPER)
            self.draw(*grid)
            figure.savefig(file, format=ending, dpi=200, metadata=metadata)
        return file.getvalue()

    def inline(self) -> str:
        """Draw it as a part of a page, with its words, in the colours of the page."""
        svg = self.render("svg").decode()
        svg = svg[svg.index("<svg") :]
        for part in ("metadata", "style"):  # the latter would hold for the whole page
            svg = re.sub(rf"<{part}.*?</{part}>\s*", "", svg, flags=re.DOTALL)
        # Ids are told apart from those of other figures.
        svg = re.sub(r'\b(id=")([^"]+")', rf"\1{self.name}-\2", svg)
        svg = re.sub(r'(url\(#|href="#)', rf"\1{self.name}-", svg)
        for colour, variable in VARIABLES.items():
            svg = svg.replace(colour, f"var({variable})")
        svg = re.sub(r"font-family: [^;\"]*(; )?", "", svg)  # words in the letters of the page
        svg = _shortened(svg)
        head, rest = svg.split(">", 1)
        view = re.search(r'viewBox="[^"]+"', head)
        assert view is not None
        words = f"<title>{escape(self.title)}</title><desc>{escape(self.alt)}</desc>"
        label = escape(f"{self.title}. {self.alt}", quote=True)
        return f'<svg {view[0]} role="img" aria-label="{label}">{words}{rest}'


def _shortened(svg: str) -> str:
    """Take out what nobody sees: a thousandth of a point, line breaks, names of groups.

    Words between the tags stay as they are.
    """
    svg = re.sub(r"<[^>]+>", lambda tag: _NUMBER.sub(_rounded, " ".join(tag[0].split())), svg)
    svg = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg)
    svg = re.sub(r"([MLCQz]) (?=[-\d])", r"\1", svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r"<defs>\s*</defs>", "", svg)
    return re.sub(r">\s+<", "><", svg)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def beside_point(
    axes: "Axes", words: str, at: tuple[float, float], by: tuple[float, float], **options: Any
) -> None:
    """Write words beside a point, so many points of the printer away."""
    axes.annotate(words, at, by, textcoords="offset points", fontsize=9, **options)


def plain(text: str) -> str:
    """Make a name from a table one that can be drawn: formulas, control signs and all."""
    shown = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
    return shown.replace("$", r"\$")
