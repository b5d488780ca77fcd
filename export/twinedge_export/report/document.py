"""A report as sections of words, figures and tables, before it becomes a page, text or sheet.

Colours are those of the light page. In the page each becomes a variable of the style sheet, with a
different value in dark mode. On one machine, the same numbers yield the same bytes.
"""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from twinedge.figure_style import styled
from twinedge.wording import format_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def amount(value: float) -> str:
    """Shorten a large number: 20k, 1.5M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def number(count: int, noun: str) -> str:
    """Count something: "1 anchor", "32 anchors"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def percent(part: float) -> str:
    """Write a fraction as percent; a small one is not shown as zero."""
    if 0 < part < 0.0005:
        return "< 0.1 %"
    return f"{100 * part:.1f}".removesuffix(".0") + " %"


def shape(hidden: tuple[int, ...]) -> str:
    """Write the widths of layers: "128-128"."""
    return "-".join(map(str, hidden))


def milliseconds(ends: Sequence[float]) -> str:
    """Write an estimated time with two digits: "0.83-1.6 ms", "1.2-2 s"."""
    unit, name = (1, "ms") if max(ends) < 1000 else (1000, "s")
    short = [float(f"{one / unit:.2g}") for one in ends]
    return f"{format_range(short)} {name}"


INK, MUTED, GRID, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
TWIN, ANN, OTHER = "#0b5cad", "#b3470f", "#7d3659"
# Variables of the style sheet; a test keeps the two in step.
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
    "font.size": 10,
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
_WIDTH = 4.8  # inches: small, so that text stays legible on a phone


@dataclass(frozen=True)
class Drawing:
    """A figure.

    Parameters
    ----------
    name : str
        Name of its file, without suffix.
    title : str
        In a few words.
    alt : str
        What the figure shows, for those who cannot see it.
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
        file = io.BytesIO()
        metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[ending]
        with styled(_STYLE) as figure_of:
            size = _WIDTH, self.height
            figure = figure_of(figsize=size, layout="constrained", facecolor=PAPER)
            grid: list[Axes] = list(figure.subplots(*self.panels, squeeze=False).flat)
            for axes in grid:
                axes.set_facecolor(PAPER)
            self.draw(*grid)
            figure.savefig(file, format=ending, dpi=200, metadata=metadata)
        return file.getvalue()

    def inline(self) -> str:
        """Draw it as part of a page, in the fonts and colours of the page."""
        svg = self.render("svg").decode()
        svg = svg[svg.index("<svg") :]
        for part in ("metadata", "style"):  # a style would apply to the whole page
            svg = re.sub(rf"<{part}.*?</{part}>\s*", "", svg, flags=re.DOTALL)
        # Ids are prefixed to differ from those of other figures.
        svg = re.sub(r'\b(id=")([^"]+")', rf"\1{self.name}-\2", svg)
        svg = re.sub(r'(url\(#|href="#)', rf"\1{self.name}-", svg)
        for colour, variable in VARIABLES.items():
            svg = svg.replace(colour, f"var({variable})")
        svg = re.sub(r"font-family: [^;\"]*(; )?", "", svg)  # text in the font of the page
        svg = _shortened(svg)
        head, rest = svg.split(">", 1)
        view = re.search(r'viewBox="[^"]+"', head)
        assert view is not None
        words = f"<title>{escape(self.title)}</title><desc>{escape(self.alt)}</desc>"
        label = escape(f"{self.title}. {self.alt}", quote=True)
        return f'<svg {view[0]} role="img" aria-label="{label}">{words}{rest}'


def _shortened(svg: str) -> str:
    """Remove what nobody sees: thousandths of a point, line breaks, names of groups.

    Text between the tags stays as it is.
    """

    def rounded(number: re.Match[str]) -> str:
        return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")

    svg = re.sub(r"<[^>]+>", lambda tag: _NUMBER.sub(rounded, " ".join(tag[0].split())), svg)
    svg = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg)
    svg = re.sub(r"([MLCQz]) (?=[-\d])", r"\1", svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r"<defs>\s*</defs>", "", svg)
    return re.sub(r">\s+<", "><", svg)


def beside_point(
    axes: "Axes", words: str, at: tuple[float, float], by: tuple[float, float], **options: Any
) -> None:
    """Write text beside a point, offset by ``by`` in typographic points."""
    axes.annotate(words, at, by, textcoords="offset points", fontsize=9, **options)


def plain(text: str) -> str:
    """Make a name from a table safe to draw: no formulas, no control characters."""
    shown = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
    return shown.replace("$", r"\$")


# Traffic lights, by the verdict of ``twinedge budget`` on a board.
LIGHTS = {
    "fits": "go",
    "fits, slowly": "limit",
    "fits with fewer anchors": "limit",
    "does not fit": "stop",
    "not measured": "unknown",
}


class Light(NamedTuple):
    """A verdict: "go", "limit", "stop" or "unknown", and the same in words."""

    state: str
    words: str


class Share(float):
    """A fraction, shown as percent."""


Cell = str | int | float | Light | None
Item = TypeVar("Item")


@dataclass(frozen=True)
class Grid:
    """Rows under a header; the first cell of a row says what it is about."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False  # whether a page shows it on demand only, as a figure shows the same

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        items: Iterable[Item],
        columns: Mapping[str, Callable[[Item], Cell]],
        folded: bool = False,
    ) -> "Grid":
        """Make a table with a row for each item; ``columns`` say how to fill its cells."""
        rows = tuple(tuple(cell(one) for cell in columns.values()) for one in items)
        return cls(name, title, tuple(columns), rows, folded)

    @property
    def quantities(self) -> tuple[bool, ...]:
        """Which columns hold only numbers or empty cells."""
        columns = zip(*self.rows, strict=True)
        kinds = int, float, type(None)
        return tuple(all(isinstance(cell, kinds) for cell in column) for column in columns)


class Check(NamedTuple):
    """A command, and which part of the section it prints."""

    command: str
    prints: str


@dataclass(frozen=True)
class Section:
    """One subject.

    Parameters
    ----------
    name, title : str
        For links, and for people.
    lead : tuple of str
        Paragraphs: what to learn here.
    figures : tuple of Drawing
        Side by side.
    tables : tuple of Grid
        Below them.
    how : tuple of str
        How the numbers were obtained.
    checks : tuple of Check
        Commands that print them.
    panel : str
        Interactive part of a page: "try", "calculator", or nothing.
    """

    name: str
    title: str
    lead: tuple[str, ...]
    figures: tuple[Drawing, ...] = ()
    tables: tuple[Grid, ...] = ()
    how: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    panel: str = ""


class Fact(NamedTuple):
    """A number for those in a hurry."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Document:
    """A whole report.

    Parameters
    ----------
    title : str
        What it is about.
    verdict : Light
        What to do, in a sentence.
    lead : tuple of str
        Why, in a few more.
    facts : tuple of Fact
        The same in numbers.
    sections : tuple of Section
        The evidence.
    calculator, predictor : dict
        What the calculator starts from and computes with, and what a page needs to predict; empty
        if there is none.
    """

    title: str
    verdict: Light
    lead: tuple[str, ...]
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    calculator: dict[str, Any] = field(default_factory=dict)
    predictor: dict[str, Any] = field(default_factory=dict)

    @property
    def figures(self) -> tuple[Drawing, ...]:
        """All figures, in order."""
        return tuple(one for section in self.sections for one in section.figures)


def shown(cell: Cell) -> str:
    """Write a cell for a person."""
    if cell is None:
        return "-"
    if isinstance(cell, Light):
        return cell.words
    if isinstance(cell, Share):
        return percent(cell)
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell
