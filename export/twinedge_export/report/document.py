"""A report as sections of words, figures and tables, before it is a page, a text or a sheet."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twinedge_export.report.drawing import Drawing
from twinedge_export.report.words import percent

# Traffic lights, by what ``twinedge budget`` calls a board.
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


class Part(float):
    """A part of a whole, told as percent."""


Cell = str | int | float | Light | None


@dataclass(frozen=True)
class Table:
    """Rows under a header; the first cell of a row says what it is about."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False  # whether a page shows it when asked only: a figure tells the same

    @property
    def quantities(self) -> tuple[bool, ...]:
        """Which columns hold numbers, or nothing, and no words."""
        columns = zip(*self.rows, strict=True)
        return tuple(all(_is_quantity(cell) for cell in column) for column in columns)


class Check(NamedTuple):
    """A command, and what of the section it prints."""

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
        Paragraphs: what is to be learnt here.
    figures : tuple of Drawing
        Beside each other.
    tables : tuple of Table
        Below them.
    how : tuple of str
        How the numbers were obtained.
    checks : tuple of Check
        Commands that print them.
    panel : str
        What moves in a page: "try", "calculator", or nothing.
    """

    name: str
    title: str
    lead: tuple[str, ...]
    figures: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
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
        The same as numbers.
    sections : tuple of Section
        The evidence.
    calculator, trial : dict
        What the calculator starts from and computes with, and what a page needs to predict; empty
        where there is none.
    """

    title: str
    verdict: Light
    lead: tuple[str, ...]
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    calculator: dict[str, Any] = field(default_factory=dict)
    trial: dict[str, Any] = field(default_factory=dict)

    @property
    def figures(self) -> tuple[Drawing, ...]:
        """All figures, in order."""
        return tuple(one for section in self.sections for one in section.figures)


def _is_quantity(cell: Cell) -> bool:
    return cell is None or isinstance(cell, int | float)


def shown(cell: Cell) -> str:
    """Write a cell for a person."""
    if cell is None:
        return "-"
    if isinstance(cell, Light):
        return cell.words
    if isinstance(cell, Part):
        return percent(cell)
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell
