"""From run folders or packs to a report on disk: as a page, Markdown or a sheet."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from twinedge.atomic_files import check_file, write_file
from twinedge.budget import Runtime, read_firmware
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.extras import require
from twinedge.progress import Progress, progress_bar
from twinedge.runtime.loading import load
from twinedge.runtime.pack_device import PackDevice
from twinedge_export.report.document import Document
from twinedge_export.report.findings import (
    Findings,
    ReportSettings,
    measure_pack,
    pack_file,
    read_rows,
)
from twinedge_export.report.formats import markdown, page, sheet
from twinedge_export.report.one_model import document, document_of_targets
from twinedge_export.report.reliability import Points
from twinedge_export.report.side_by_side import side_by_side

_PICTURES = ("svg", "png")
_DRAWING = "Drawing"


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Parameters
    ----------
    findings : tuple of Findings
        What was measured, for each model, or for each target of one.
    path : path
        The file.
    figures : tuple of path
        Files of its figures, if requested.
    """

    findings: tuple[Findings, ...]
    path: Path
    figures: tuple[Path, ...]


def write_report(
    models: Sequence[Path],
    output: Path,
    settings: ReportSettings,
    *,
    command: str,
    form: str = "html",
    figures: Path | None = None,
    with_predictor: bool = True,
) -> Report:
    """Write a report on a model, or on several side by side, replacing an earlier one.

    Parameters
    ----------
    models : sequence of path
        Run folders, ``.twin`` files, or folders of exports.
    output : path
        File to write.
    settings : ReportSettings
        What to measure.
    command : str
        Command line to print in the report.
    form : {"html", "md", "csv"}
        A page, text for a pull request, or a sheet.
    figures : path, optional
        Folder for an SVG and a PNG of each figure; other files in it are kept.
    with_predictor : bool
        Whether a page on one model lets the reader predict.

    Raises
    ------
    InputError
        If a report cannot be made or written; then nothing is written.
    """
    require("matplotlib", "jinja2")
    check_file(output)
    if figures is not None and (
        (figures.exists() and not figures.is_dir()) or not figures.parent.is_dir()
    ):
        raise InputError(f"{figures} cannot be a folder for figures: name a new or existing one")
    firmware = read_firmware(settings.firmware)
    with progress_bar(settings.export.verbose) as progress:
        several = dict.fromkeys(map(str, models), 15.0) if len(models) > 1 else {}
        progress.plan({**several, _DRAWING: 3.0})
        found = _measure(models, settings, firmware, progress)
        progress.stage(_DRAWING)
        if len(found) == 1:
            predict = with_predictor and form == "html"
            text = document(found[0], command, with_predictor=predict)
        elif len(models) == 1:
            text = document_of_targets(found, command)
        else:
            text = side_by_side(found, command)
        pictures = {
            f"{drawing.name}.{ending}": drawing.render(ending)
            for drawing in (() if figures is None else text.figures)
            for ending in _PICTURES
        }
        content = _format(text, form, output, figures)
    paths = []
    if figures is not None:
        try:
            figures.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{figures} cannot be made: {error.strerror}") from error
        for name, picture in pictures.items():
            write_file(figures / name, picture)
            paths.append(figures / name)
    write_file(output, content.encode())
    return Report(tuple(found), output, tuple(paths))


def _measure(
    models: Sequence[Path],
    settings: ReportSettings,
    firmware: dict[str, Runtime],
    progress: Progress,
) -> list[Findings]:
    """Measure each model; for several, skip what a comparison does not show.

    Of one model for several targets, measure each of these unless one is named.
    """
    packs = [path for path in models if is_pack(path)]
    runs = [path for path in models if path not in packs]
    if packs and not runs and settings.data is None:
        raise ParameterError(
            f"{packs[0]} is a pack, which has no rows to score it on: name some with ",
            Parameter("data"),
        )
    known: dict[Path, Findings] = {}
    for path in dict.fromkeys(runs):
        from twinedge.run_folder import load_run
        from twinedge_export.report.measure_run import measure_every_target, measure_run

        with progress.part(str(path)):
            run, alone = load_run(path), len(models) == 1
            if alone and settings.target is None and len(run.model.target_names_) > 1:
                return measure_every_target(run, str(path), settings, firmware)
            known[path] = measure_run(run, str(path), settings, firmware, alone=alone)
    of_runs = list(known.values())
    if len(models) == 1 and settings.target is None and packs:
        return [
            measure_pack(
                packs[0],
                _rows(packs[0], settings.data, name, of_runs),
                replace(settings, target=name),
                firmware,
            )
            for name in _device(packs[0]).target_names
        ]
    for path in packs:
        rows = _rows(path, settings.data, settings.target, of_runs)
        known[path] = measure_pack(path, rows, settings, firmware)
    return [known[path] for path in models]


def is_pack(path: Path) -> bool:
    """Whether a path is a pack, or an export with one, rather than a run."""
    return path.suffix == ".twin" or (path / "model.twin").is_file()


def _device(path: Path) -> PackDevice:
    device = load(pack_file(path))
    assert isinstance(device, PackDevice)
    return device


def _rows(
    path: Path, data: Path | None, target: str | None, runs: list[Findings]
) -> tuple[str, Points]:
    """Rows for a pack: those of a table, or of a run in this report with the same columns."""
    device = _device(path)
    if data is not None:
        return data.name, read_rows(device, data, target)
    for one in runs:
        if one.pack.device.encoding.inputs == device.encoding.inputs:
            return one.accuracy.predictions.name, one.accuracy.points
    raise ParameterError(
        f"{path} and {runs[0].origin.place} have different columns: name rows for both with ",
        Parameter("data"),
    )


def _format(text: Document, form: str, output: Path, figures: Path | None) -> str:
    if form == "csv":
        return sheet(text)
    if form == "html":
        return page(text)
    folder = output.resolve().parent
    seen = None if figures is None else Path(os.path.relpath(figures.resolve(), folder))
    return markdown(text, seen)
