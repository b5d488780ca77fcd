"""The report as Markdown, for a pull request."""

import re
from pathlib import Path

from twinedge_export.report.document import Cell, Document, Light, Section, Table, shown

_LIGHTS = {
    "go": "\N{LARGE GREEN CIRCLE}",
    "limit": "\N{LARGE YELLOW CIRCLE}",
    "stop": "\N{LARGE RED CIRCLE}",
    "unknown": "\N{MEDIUM WHITE CIRCLE}",
}


def markdown(document: Document, figures: Path | None = None) -> str:
    """Write it.

    Parameters
    ----------
    document : Document
        The report.
    figures : path, optional
        Folder with an SVG of each figure, as seen from the file; without one there are none.
    """
    facts = Table("", "", ("", "", ""), tuple(map(tuple, document.facts)))
    verdict = f"{_LIGHTS[document.verdict.state]} **{_safe(document.verdict.words)}**"
    parts = [f"# {_safe(document.title)}", verdict, *map(_safe, document.lead), _table(facts)]
    for section in document.sections:
        parts += _section(section, figures)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, figures: Path | None) -> list[str]:
    parts = [f"## {_safe(section.title)}", *map(_safe, section.lead)]
    if figures is not None:
        for drawing in section.figures:
            place = (figures / f"{drawing.name}.svg").as_posix()
            parts.append(f"![{_safe(drawing.title)}. {_safe(drawing.alt)}](<{place}>)")
    for table in section.tables:
        if table.folded:
            summary = f"<details><summary>{_safe(table.title)}</summary>"
            parts += [summary, _table(table), "</details>"]
        else:
            parts.append(_table(table))
    parts += [f"_How:_ {_safe(line)}" for line in section.how]
    if section.checks:
        parts.append(
            "\n".join(f"- {_code(one.command)}: {_safe(one.prints)}" for one in section.checks)
        )
    return parts


def _code(command: str) -> str:
    """Quote a command, whatever is in it."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", command)), default=0))
    return f"{fence} {command} {fence}" if "`" in command else f"`{command}`"


def _table(table: Table) -> str:
    lines = [
        table.columns,
        ["--:" if right else "---" for right in table.quantities],
        *([_cell(cell) for cell in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    words = _safe(shown(cell))
    return f"{_LIGHTS[cell.state]} {words}" if isinstance(cell, Light) else words


def _safe(text: str) -> str:
    """Keep names from a table from meaning anything in Markdown or HTML, and on one line."""
    text = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", text)
