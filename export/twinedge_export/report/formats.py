"""The forms of a report: a page, Markdown, and a sheet."""

import base64
import csv
import io
import json
import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from twinedge_export.report.document import Cell, Document, Grid, Light, Section, shown

_ALWAYS = ("page.js",)
_CALCULATOR = ("budget.js", "chart.js", "calculator.js")
_PREDICTOR = ("runtime.js", "calendar.js", "curves.js", "try.js")
# Short titles of sections.
_LABELS = {
    "accuracy": "Accuracy",
    "intervals": "Intervals",
    "spread": "Spread",
    "groups": "Groups",
    "time": "Time",
    "drivers": "Drivers",
    "try": "Try it",
    "anchors": "Anchors",
    "memory": "Memory",
    "boards": "Boards",
    "pack": "Bytes",
    "origin": "Origin",
}


def page(document: Document) -> str:
    """Write the page.

    Its policy allows the one script inside, WebAssembly if there is something to try, and no
    connections.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_template),
    )
    environment.filters["shown"] = shown
    environment.tests["light"] = lambda cell: isinstance(cell, Light)
    names = [*_ALWAYS]
    names += [*_CALCULATOR] if document.calculator else []
    names += [*_PREDICTOR] if document.predictor else []
    script = '"use strict";\n' + "".join(_template(name) for name in names)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" + (" 'wasm-unsafe-eval'" if document.predictor else "")
    return environment.get_template("page.html").render(
        document=document,
        labels=_LABELS,
        style=_template("style.css"),
        script=script,
        script_source=allowed,
        facts=_embedded(document.calculator),
        predictor=_embedded(document.predictor),
    )


def _template(name: str) -> str:
    place = files("twinedge_export.report") / "templates" / name
    return place.read_text(encoding="utf-8")


def _embedded(facts: dict[str, Any]) -> str:
    """JSON escaped so that it cannot end the script element or start a comment."""
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


_LIGHTS = {
    "go": "\N{LARGE GREEN CIRCLE}",
    "limit": "\N{LARGE YELLOW CIRCLE}",
    "stop": "\N{LARGE RED CIRCLE}",
    "unknown": "\N{MEDIUM WHITE CIRCLE}",
}


def markdown(document: Document, figures: Path | None = None) -> str:
    """Write the report as Markdown.

    Parameters
    ----------
    document : Document
        The report.
    figures : path, optional
        Folder with an SVG of each figure, relative to the file; no figures without it.
    """
    facts = Grid("", "", ("", "", ""), tuple(map(tuple, document.facts)))
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
    """Quote any command."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", command)), default=0))
    return f"{fence} {command} {fence}" if "`" in command else f"`{command}`"


def _table(table: Grid) -> str:
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
    """Escape names from a table for Markdown and HTML, on one line."""
    text = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", text)


HEADER = ("section", "table", "row", "quantity", "value")


def sheet(document: Document) -> str:
    """Write the report as CSV; numbers are not rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for section in document.sections:
        for table in section.tables:
            for first, *cells in table.rows:
                for column, cell in zip(table.columns[1:], cells, strict=True):
                    line = (section.name, table.name, _value(first), column, _value(cell))
                    writer.writerow(map(_harmless, line))
    return text.getvalue()


def _value(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell.words if isinstance(cell, Light) else str(cell)


def _harmless(text: str) -> str:
    """Keep a spreadsheet from taking a name for a formula; negative numbers are safe."""
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
