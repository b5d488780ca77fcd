"""From run folders or packs to a report on disk: as a page, Markdown or a sheet."""

import base64
import csv
import io
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from twinedge.atomic_files import check_file, write_file
from twinedge.budget import Board, Runtime, all_boards, read_firmware
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.extras import require
from twinedge.pack.contents import Array
from twinedge.progress import Progress, progress_bar
from twinedge_export.report import interactive
from twinedge_export.report.costs import boards, memory, origin, pack
from twinedge_export.report.document import Cell, Chapter, Document, Grid, Light, number, shown
from twinedge_export.report.findings import Findings
from twinedge_export.report.groups import groups
from twinedge_export.report.interactive import calculator_facts
from twinedge_export.report.quality import accuracy, anchors, drivers, intervals, trial
from twinedge_export.report.times import times
from twinedge_export.report.verdict import facts, reasons, verdict


def document(
    found: Findings, command: str, calculator: dict[str, Any], *, tried: bool = True
) -> Document:
    """Put the findings into words.

    Parameters
    ----------
    found : Findings
        What was measured.
    command : str
        Command line that makes the same report.
    calculator : dict
        For the calculator of the page.
    tried : bool
        Whether a page lets the reader predict.
    """
    columns = number(len(found.device.encoding.names), "column")
    return Document(
        f"{found.name}: {found.target} from {columns}",
        verdict(found),
        reasons(found),
        facts(found),
        (
            accuracy(found),
            intervals(found),
            *groups(found),
            *times(found),
            drivers(found),
            *([trial(found)] if tried else []),
            anchors(found),
            memory(found),
            boards(found),
            pack(found),
            origin(found, command),
        ),
        calculator,
        _trial(found) if tried else {},
    )


def _trial(found: Findings) -> dict[str, Any]:
    order = [one.column for one in found.drivers]
    return interactive.trial_facts(found.device.pack, found.data, found.points, order)


_ALWAYS = ("page.js",)
_CALCULATOR = ("budget.js", "chart.js", "calculator.js")
_TRIAL = ("runtime.js", "calendar.js", "curves.js", "try.js")
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
    names += [*_TRIAL] if document.trial else []
    script = '"use strict";\n' + "".join(_template(name) for name in names)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" + (" 'wasm-unsafe-eval'" if document.trial else "")
    return environment.get_template("page.html").render(
        document=document,
        labels=_LABELS,
        style=_template("style.css"),
        script=script,
        script_source=allowed,
        facts=_embedded(document.calculator),
        trial=_embedded(document.trial),
    )


def _template(name: str) -> str:
    place = files("twinedge_export.report").joinpath("templates", name)
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


def _section(section: Chapter, figures: Path | None) -> list[str]:
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


FORMATS = ("html", "md", "csv")
_PICTURES = ("svg", "png")
_NEEDS = ("matplotlib", "jinja2")
_DRAWING = "Drawing"


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Parameters
    ----------
    findings : tuple of Findings
        What was measured, for each model.
    path : path
        The file.
    figures : tuple of path
        Files of its figures, if requested.
    """

    findings: tuple[Findings, ...]
    path: Path
    figures: tuple[Path, ...]


def report(
    models: Sequence[Path],
    output: Path,
    form: str = "html",
    *,
    data: Path | None = None,
    figures: Path | None = None,
    firmware: Path | None = None,
    tried: bool = True,
    command: str,
    verbose: bool = False,
    **options: Any,
) -> Report:
    """Write a report on a model, or on several side by side, replacing an earlier one.

    Parameters
    ----------
    models : sequence of path
        Run folders, ``.twin`` files, or folders of exports.
    output : path
        File to write.
    form : {"html", "md", "csv"}
        A page, text for a pull request, or a sheet.
    data : path, optional
        Measured rows to judge on; packs need them, runs have test rows.
    figures : path, optional
        Folder for an SVG and a PNG of each figure; other files in it are kept.
    firmware : path, optional
        Measured sizes of the runtime, to use instead of those shipped.
    tried : bool
        Whether a page on one model lets the reader predict.
    command : str
        Command line to print in the report.
    verbose : bool
        Show progress on standard error.
    options
        As in ``of_run.find``.

    Raises
    ------
    InputError
        If a report cannot be made or written; then nothing is written.
    """
    require(*_NEEDS)
    check_output(output, figures)
    boards, measured = list(all_boards().values()), read_firmware(firmware)
    with progress_bar(verbose) as progress:
        several = dict.fromkeys(map(str, models), 15.0) if len(models) > 1 else {}
        progress.plan({**several, _DRAWING: 3.0})
        found = _found(models, data, boards, measured, options, progress)
        progress.stage(_DRAWING)
        if len(found) == 1:
            calculator = calculator_facts(found[0].model, boards, measured)
            text = document(found[0], command, calculator, tried=tried and form == "html")
        else:
            from twinedge_export.report.comparing import comparison

            text = comparison(found, command)
        pictures = _pictures(text) if figures is not None else {}
        written = _written(text, form, output, figures)
    places = []
    if figures is not None:
        try:
            figures.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{figures} cannot be made: {error.strerror}") from error
        for name, picture in pictures.items():
            write_file(figures / name, picture)
            places.append(figures / name)
    write_file(output, written.encode())
    return Report(tuple(found), output, tuple(places))


def is_pack(path: Path) -> bool:
    """Whether a path is a pack, or an export with one, rather than a run."""
    return path.suffix == ".twin" or (path / "model.twin").is_file()


def check_output(output: Path, figures: Path | None) -> None:
    """Refuse paths that cannot be written, before doing the work."""
    check_file(output)
    if figures is not None and (
        (figures.exists() and not figures.is_dir()) or not figures.parent.is_dir()
    ):
        raise InputError(f"{figures} cannot be a folder for figures: name a new or existing one")


def _found(
    models: Sequence[Path],
    data: Path | None,
    boards: list[Board],
    measured: dict[str, Runtime],
    options: dict[str, Any],
    progress: Progress,
) -> list[Findings]:
    """Measure each model; for several, skip what a comparison does not show."""
    from twinedge_export.report.findings import find_pack

    packs = [path for path in models if is_pack(path)]
    runs = [path for path in models if path not in packs]
    if packs and not runs and data is None:
        raise ParameterError(
            f"{packs[0]} is a pack, which has no rows to judge it on: name some with ",
            Parameter("data"),
        )
    alone = len(models) == 1
    known: dict[Path, Findings] = {}
    for path in dict.fromkeys(runs):
        with progress.part(str(path)):
            known[path] = _of_run(path, data, boards, measured, alone=alone, **options)
    for path in packs:
        name, points = _rows(path, data, list(known.values()))
        table = "measured.csv" if data is None else str(data)
        seed = options.get("seed", 0)
        known[path] = find_pack(path, name, points, boards, measured, table=table, seed=seed)
    return [known[path] for path in models]


def _rows(path: Path, data: Path | None, runs: list[Findings]) -> tuple[str, tuple[Array, Array]]:
    """Rows for a pack: those of a table, or of a run in this report with the same columns."""
    from twinedge.runtime.loading import load
    from twinedge_export.report.findings import pack_file, read_rows

    file = pack_file(path)
    if data is not None:
        return data.name, read_rows(file, data)
    device = load(file)
    for one in runs:
        if one.device.encoding.inputs == device.encoding.inputs:
            return one.judged.name, one.points
    raise ParameterError(
        f"{path} and {runs[0].place} have different columns: name rows for both with ",
        Parameter("data"),
    )


def _of_run(
    path: Path,
    data: Path | None,
    boards: list[Board],
    measured: dict[str, Runtime],
    **options: Any,
) -> Findings:
    from twinedge.run_folder import load_run
    from twinedge_export.report.of_run import find, read_rows

    run = load_run(path)
    rows = None if data is None else (data.name, read_rows(run, data))
    return find(run, str(path), boards, measured, data=rows, verbose=True, **options)


def _pictures(text: Document) -> dict[str, bytes]:
    return {
        f"{drawing.name}.{ending}": drawing.render(ending)
        for drawing in text.figures
        for ending in _PICTURES
    }


def _written(text: Document, form: str, output: Path, figures: Path | None) -> str:
    if form == "csv":
        return sheet(text)
    if form == "html":
        return page(text)
    folder = output.resolve().parent
    seen = None if figures is None else Path(os.path.relpath(figures.resolve(), folder))
    return markdown(text, seen)
