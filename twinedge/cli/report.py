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
    from collections.abc import Sequence

    from twinedge.evaluation.verdict import Rival
    from twinedge_export.report.findings import Findings

_TREES = ("family", "trees", "leaves", "bytes")
_OF_THE_PACK = (
    *("model", "id", "anchors", "anchors_asked", "remarks", "method"),
    *("twin_bytes", "ann_bytes", "ratio", "boards"),
    *("boards_that_fit", "boards_that_fit_slowly", "boards_not_measured"),
)
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
    "--data", metavar="DATA.csv", text="Measured rows to score on; packs need them."
)
@options.option("--target", metavar="NAME", text="Report on this one of several targets.")
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
    target: str | None,
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

    Of a model for several targets, the page has a section on each, and no sliders; --target names
    one to report on alone.
    """
    from twinedge_export.report.findings import ReportSettings
    from twinedge_export.report.write import write_report
    from twinedge_export.settings import ExportSettings

    chosen = ExportSettings(
        anchors=anchors,
        select=select,
        weights=weights,
        intervals=intervals,
        seed=seed,
        verbose=not quiet,
    )
    done = write_report(
        models,
        output or Path(f"report.{form}"),
        ReportSettings(chosen, data, firmware, quick, ann_steps, target),
        command=_command(click.get_current_context()),
        form=form,
        figures=figures,
        with_predictor=tried,
    )
    targets = len(models) == 1 < len(done.findings)
    places = [str(models[0])] * len(done.findings) if targets else map(str, models)
    records = [_record(place, one) for place, one in zip(places, done.findings, strict=True)]
    file = {"file": str(done.path), "bytes": done.path.stat().st_size}
    for found in done.findings[: 1 if targets else None]:
        for remark in found.origin.export.remarks if found.origin.export is not None else ():
            note(remark, quiet=quiet)
    about = _of_all(done.findings, records) if targets else {}
    if as_json:
        if not targets:
            about = records[0] if len(records) == 1 else {"models": records}
        print_json({**file, **about, "figures": [str(path) for path in done.figures]})
        return
    if targets:
        each: dict[str, dict[str, Any]] = about.pop("targets")
        records = [*({"target": name, **one} for name, one in each.items()), about]
    for one in records:
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


def _of_all(found: "Sequence[Findings]", records: list[dict[str, Any]]) -> dict[str, Any]:
    """Describe the targets of a model, and once what the pack of all of them is and takes."""
    from twinedge_export.report.one_model import all_targets

    shared = _record(records[0]["model"], all_targets(found))
    targets = {
        one.target: {key: value for key, value in record.items() if key not in _OF_THE_PACK}
        for one, record in zip(found, records, strict=True)
    }
    return {"targets": targets, **{key: shared[key] for key in _OF_THE_PACK}}


def _record(model: str, found: "Findings") -> dict[str, Any]:
    from twinedge.pack.sections import pack_id
    from twinedge_export.report.verdict import verdict

    predictions, spread, done = found.accuracy.predictions, found.reliability, found.origin.export
    usual = found.usual or (spread.at(COVERAGE) if spread is not None else None)
    intervals = found.intervals.intervals if found.intervals is not None else ()
    budget, compared = found.costs.budget, found.comparison
    verdicts = [one["verdict"] for one in budget["boards"]]
    trees = [] if compared.trees is None else [compared.trees]
    return {
        "model": model,
        "id": pack_id(found.pack.data).hex(),
        "verdict": verdict(found).words,
        "judged_on": predictions.name,
        "rows": len(predictions.y),
        "rmse": predictions.rmse,
        "r2": predictions.r2,
        "covered_of_90_percent": None if usual is None else usual.covered,
        "intervals": [one._asdict() for one in intervals],
        "spread_factor": None if spread is None else spread.factor,
        "baselines": [{"name": one.name, **_beside(one.rival)} for one in found.accuracy.baselines],
        "importance": {one.column: one.worth for one in found.importance},
        "anchors": found.pack.model.anchors,
        "anchors_asked": None if done is None else done.requested,
        "recommended": compared.recommended and compared.recommended._asdict(),
        "remarks": [] if done is None else list(done.remarks),
        "method": None if done is None else done.method,
        "twin_bytes": budget["twin_bytes"],
        "ann_bytes": budget["ann_bytes"],
        "ratio": budget["ratio"],
        "boards_that_fit": verdicts.count("fits") + verdicts.count("fits, slowly"),
        "boards_that_fit_slowly": verdicts.count("fits, slowly"),
        "boards_not_measured": verdicts.count("not measured"),
        "packs": [one._asdict() for one in compared.sizes],
        "ordinary_networks": [one._asdict() for one in compared.networks],
        "trees": [
            {name: getattr(one, name) for name in _TREES} | _beside(one.rival) for one in trees
        ],
        "boards": {one["board"]: one["verdict"] for one in budget["boards"]},
    }


def _beside(rival: "Rival") -> dict[str, Any]:
    return {"rmse": rival.rmse, "than_the_twin": rival.than_the_twin}
