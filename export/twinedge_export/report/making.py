"""From a run folder to a report on disk."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from twinedge.budget import all_boards, read_firmware
from twinedge.errors import InputError
from twinedge.learn.run import load_run
from twinedge.placing import check_file, place_file
from twinedge_export.report.calculator import facts
from twinedge_export.report.document import Document
from twinedge_export.report.findings import Findings, find
from twinedge_export.report.markdown import markdown
from twinedge_export.report.page import page
from twinedge_export.report.sections import document
from twinedge_export.report.sheet import sheet

FORMATS = ("html", "md", "csv")
_PICTURES = ("svg", "png")
_NEEDS = ("matplotlib", "jinja2")


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Parameters
    ----------
    findings : Findings
        What it tells.
    path : path
        The file.
    figures : tuple of path
        Files of its figures, if they were asked for.
    """

    findings: Findings
    path: Path
    figures: tuple[Path, ...]


def report(
    run: Path,
    output: Path,
    form: str = "html",
    *,
    figures: Path | None = None,
    firmware: Path | None = None,
    command: str,
    **options: Any,
) -> Report:
    """Write a report on a run, in place of one that is there.

    Parameters
    ----------
    run : path
        Run folder.
    output : path
        File to write.
    form : {"html", "md", "csv"}
        A page, text for a pull request, or a sheet.
    figures : path, optional
        Folder for an SVG and a PNG of each figure; other files in it stay.
    firmware : path, optional
        Measured sizes of the runtime, if not those shipped.
    command : str
        What a person typed, for the report to tell.
    options
        As in ``find``.

    Raises
    ------
    InputError
        Where a report cannot be made or not be written; nothing is written then.
    """
    check_needs()
    check_output(output, figures)
    boards, measured = list(all_boards().values()), read_firmware(firmware)
    found = find(load_run(run), run.resolve().name, boards, measured, **options)
    text = document(found, command, facts(found.model, boards, measured))
    say: Callable[[str], None] = options.get("say", lambda message: None)
    say("Drawing")
    pictures = _pictures(text) if figures is not None else {}
    data = _written(text, form, output, figures)
    places = []
    if figures is not None:
        try:
            figures.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{figures} cannot be made: {error.strerror}") from error
        for name, picture in pictures.items():
            place_file(figures / name, picture)
            places.append(figures / name)
    place_file(output, data.encode())
    return Report(found, output, tuple(places))


def check_needs() -> None:
    """Refuse where a library is missing that pages and figures are made with."""
    for name in _NEEDS:
        if find_spec(name) is None:
            raise InputError(
                f"a report needs {name}, which is not installed: pip install 'twinedge[report]'"
            )


def check_output(output: Path, figures: Path | None) -> None:
    """Refuse places that cannot be written, before the work is done."""
    check_file(output)
    if figures is not None and (
        (figures.exists() and not figures.is_dir()) or not figures.parent.is_dir()
    ):
        raise InputError(f"{figures} cannot be a folder for figures: name a new or existing one")


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
