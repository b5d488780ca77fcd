"""From run folders or packs to a report on disk."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from twinedge.budget import Board, Runtime, all_boards, read_firmware
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.placing import check_file, place_file
from twinedge_export.report.calculator import facts
from twinedge_export.report.document import Document
from twinedge_export.report.findings import Findings
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
    findings : tuple of Findings
        What it tells, of each model.
    path : path
        The file.
    figures : tuple of path
        Files of its figures, if they were asked for.
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
    **options: Any,
) -> Report:
    """Write a report on a model, or on several side by side, in place of one that is there.

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
        Folder for an SVG and a PNG of each figure; other files in it stay.
    firmware : path, optional
        Measured sizes of the runtime, if not those shipped.
    tried : bool
        Whether a page on one model is to predict.
    command : str
        What a person typed, for the report to tell.
    options
        As in ``of_run.find``.

    Raises
    ------
    InputError
        Where a report cannot be made or not be written; nothing is written then.
    """
    check_needs()
    check_output(output, figures)
    boards, measured = list(all_boards().values()), read_firmware(firmware)
    found = _found(models, data, boards, measured, options)
    if len(found) == 1:
        calculator = facts(found[0].model, boards, measured)
        text = document(found[0], command, calculator, tried=tried and form == "html")
    else:
        from twinedge_export.report.comparing import comparison

        text = comparison(found, command)
    say: Callable[[str], None] = options.get("say", lambda message: None)
    say("Drawing")
    pictures = _pictures(text) if figures is not None else {}
    written = _written(text, form, output, figures)
    places = []
    if figures is not None:
        try:
            figures.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{figures} cannot be made: {error.strerror}") from error
        for name, picture in pictures.items():
            place_file(figures / name, picture)
            places.append(figures / name)
    place_file(output, written.encode())
    return Report(tuple(found), output, tuple(places))


def is_pack(path: Path) -> bool:
    """Whether a path is a pack, or an export with one, and no run."""
    return path.suffix == ".twin" or (path / "model.twin").is_file()


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


def _found(
    models: Sequence[Path],
    data: Path | None,
    boards: list[Board],
    measured: dict[str, Runtime],
    options: dict[str, Any],
) -> list[Findings]:
    """Measure each model; of several nothing that is about one alone."""
    from twinedge_export.report.of_pack import find_pack

    packs = [path for path in models if is_pack(path)]
    runs = [path for path in models if path not in packs]
    if packs and not runs and data is None:
        raise InputError(
            f"{packs[0]} is a pack, which has no rows to judge it on: name some with --data"
        )
    alone = len(models) == 1
    known = {
        path: _of_run(path, data, boards, measured, alone=alone, **options)
        for path in dict.fromkeys(runs)
    }
    for path in packs:
        name, points = _rows(path, data, list(known.values()))
        table = "measured.csv" if data is None else str(data)
        seed = options.get("seed", 0)
        known[path] = find_pack(path, name, points, boards, measured, table=table, seed=seed)
    return [known[path] for path in models]


def _rows(path: Path, data: Path | None, runs: list[Findings]) -> tuple[str, tuple[Array, Array]]:
    """Rows for a pack: those of a table, or of a run beside it that has the same columns."""
    from twinedge.runtime.loading import load
    from twinedge_export.report.of_pack import pack_file, read_rows

    file = pack_file(path)
    if data is not None:
        return data.name, read_rows(file, data)
    device = load(file)
    for one in runs:
        if one.device.encoding.inputs == device.encoding.inputs:
            return one.judged.name, one.points
    raise InputError(
        f"{path} has other columns than {runs[0].place}: name rows for both with --data"
    )


def _of_run(
    path: Path,
    data: Path | None,
    boards: list[Board],
    measured: dict[str, Runtime],
    **options: Any,
) -> Findings:
    from twinedge.learn.run import load_run
    from twinedge_export.report.of_run import find, read_rows

    run = load_run(path)
    rows = None if data is None else (data.name, read_rows(run, data))
    return find(run, str(path), boards, measured, data=rows, **options)


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
