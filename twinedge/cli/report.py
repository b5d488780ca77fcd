"""``twinedge report``: what a model costs, how good it is and where it runs, on one page."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_record
from twinedge.cli.values import Whole
from twinedge.defaults import ANN_STEPS, COVERAGE

if TYPE_CHECKING:
    from twinedge_export.report.findings import Findings

_OF_THE_FILE = ("models", "output", "form", "figures", "as_json", "quiet")


@options.command(
    "report",
    "report runs/latest",
    "report runs/latest --anchors 16 -o sensor.html --figures figures",
    "report runs/latest --quick --format md",
    "report runs/a runs/b",
    "report out --data measured.csv",
)
@options.argument(
    "models",
    "MODEL...",
    "Run folders, packs, or their export folders; several are compared.",
    nargs=-1,
    required=True,
)
@options.file_option(
    "--data", metavar="DATA.csv", text="Measured rows to judge on; packs need them."
)
@options.file_option("--output", "-o", text="File to write (report.html).")
@options.option(
    "--format",
    "form",
    metavar="html|md|csv",
    type=click.Choice(("html", "md", "csv")),
    default="html",
    text="A page, text for a pull request, or a sheet.",
)
@options.folder_option("--figures", text="Also write each figure as SVG and PNG.")
@options.anchors("Training points that travel.")
@options.select("How to choose them, as in export.")
@options.weights
@options.pack_intervals
@options.flag(
    "--try/--no-try", "tried", default=True, text="Embed the pack, so that the page can predict."
)
@options.flag("--quick", text="Do not compare with other networks and choices of anchors.")
@options.value(
    "--ann-steps",
    "STEPS",
    Whole(1),
    default=ANN_STEPS,
    text="How long ordinary networks are trained.",
)
@options.firmware_sizes
@options.seed
@options.as_json
@options.quiet
def report(
    models: tuple[Path, ...],
    data: Path | None,
    output: Path | None,
    form: str,
    figures: Path | None,
    anchors: Any,
    select: str,
    weights: str,
    intervals: bool,
    tried: bool,
    quick: bool,
    ann_steps: int,
    firmware: Path | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a self-contained report on a model.

    First the verdict, then accuracy, intervals, what drives the prediction, sliders to try it,
    anchors, memory against an ensemble of ordinary networks, boards, the bytes of the pack, and how
    each number was obtained. Ordinary networks of the same size are trained briefly for comparison.
    Several models are compared on one page.
    """
    from twinedge_export.report.making import report as write

    done = write(
        models,
        output or Path(f"report.{form}"),
        form,
        data=data,
        figures=figures,
        firmware=firmware,
        tried=tried,
        command=_command(click.get_current_context()),
        anchors=anchors,
        select=select,
        weights=weights,
        intervals=intervals,
        quick=quick,
        ann_steps=ann_steps,
        seed=seed,
        verbose=not quiet,
    )
    told = [_told(str(path), one) for path, one in zip(models, done.findings, strict=True)]
    file = {"file": str(done.path), "bytes": done.path.stat().st_size}
    pictures = {"figures": [str(path) for path in done.figures]}
    for found in done.findings:
        for remark in found.export.remarks if found.export is not None else ():
            note(remark, quiet=quiet)
    if as_json:
        print_json({**file, **(told[0] if len(told) == 1 else {"models": told}), **pictures})
        return
    for one in told:
        print_record(
            {key: value for key, value in one.items() if not isinstance(value, list | dict)}
        )
    print_record(file | ({"figures": f"{len(done.figures)} files in {figures}"} if figures else {}))


def _command(context: click.Context) -> str:
    """Return the command that makes the same report, wherever it is written."""
    words = ["twinedge", "report", *map(str, context.params["models"])]
    for one in context.command.params:
        name = str(one.name)
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name in _OF_THE_FILE:
            continue
        value = context.params[name]
        if isinstance(value, bool):
            words.append(one.opts[0] if value else one.secondary_opts[0])
        else:
            words += [one.opts[0], str(value)]
    return shlex.join(words)


def _told(model: str, found: "Findings") -> dict[str, Any]:
    from twinedge_export.report.verdict import verdict

    budget, judged, worth, done = found.budget, found.judged, found.reliability, found.export
    usual = found.usual or (worth.at(COVERAGE) if worth is not None else None)
    intervals = found.intervals.intervals if found.intervals is not None else ()
    verdicts = [one["verdict"] for one in budget["boards"]]
    return {
        "model": model,
        "verdict": verdict(found).words,
        "judged_on": judged.name,
        "rows": len(judged.y),
        "rmse": judged.rmse,
        "r2": judged.r2,
        "covered_of_90_percent": None if usual is None else usual.covered,
        "intervals": [one._asdict() for one in intervals],
        "spread_factor": None if worth is None else worth.factor,
        "baselines": [vars(one) for one in found.baselines],
        "importance": {one.column: one.worth for one in found.drivers},
        "anchors": found.model.anchors,
        "anchors_asked": None if done is None else done.requested,
        "recommended": found.recommended and found.recommended._asdict(),
        "remarks": [] if done is None else list(done.remarks),
        "method": None if done is None else done.method,
        "twin_bytes": budget["twin_bytes"],
        "ann_bytes": budget["ann_bytes"],
        "ratio": budget["ratio"],
        "boards_that_fit": verdicts.count("fits") + verdicts.count("fits, slowly"),
        "boards_that_fit_slowly": verdicts.count("fits, slowly"),
        "boards_not_measured": verdicts.count("not measured"),
        "packs": [one._asdict() for one in found.sizes],
        "ordinary_networks": [one._asdict() for one in found.rivals],
        "trees": [vars(found.trees)] if found.trees else [],
        "boards": {one["board"]: one["verdict"] for one in budget["boards"]},
    }
