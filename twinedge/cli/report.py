"""``twinedge report``: what a model costs, how good it is and where it runs, on one page."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinedge.cli.options import Json, Quiet, RunFolder, Seed, choice, examples, value
from twinedge.cli.output import note, print_json, print_record, saying
from twinedge.cli.words import one_of, whole

if TYPE_CHECKING:
    from twinedge_export.report.making import Report

EXAMPLES = examples(
    "report runs/latest",
    "report runs/latest --anchors 16 -o sensor.html --figures figures",
    "report runs/latest --quick --format md",
)


def report(
    run: RunFolder,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write (report.html)."),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="html|md|csv",
            parser=one_of("html", "md", "csv"),
            help="A page, text for a pull request, or a sheet.",
        ),
    ] = "html",
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write an SVG and a PNG of each figure, too."),
    ] = None,
    anchors: Annotated[
        Any, value("Training points that travel.", "N|auto|all", whole(1, "auto", "all"))
    ] = 32,
    select: Annotated[
        str, typer.Option(metavar="METHOD|FILE", help="How to choose them, as in export.")
    ] = "auto",
    weights: Annotated[str, choice("Weights of the pack.", "int8", "int16")] = "int8",
    intervals: Annotated[
        bool, typer.Option(help="A pack with intervals, ranges of the features and fill values.")
    ] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="Train nothing: leave ordinary networks out.")
    ] = False,
    ann_steps: Annotated[
        Any, value("How long ordinary networks are trained.", "STEPS", whole(1))
    ] = 4000,
    firmware: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measured sizes of the runtime, if not those shipped."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report on a run, to be read without anything else.

    Memory against an ensemble of ordinary networks, error against anchors and bytes, predictions
    with their intervals and what these are worth, boards, the bytes of the pack, and how each
    number was obtained. The page has a calculator. Ordinary networks of the same bytes are trained
    for a moment to compare with.
    """
    from twinedge_export.report.making import report as write

    numbers = {
        "--anchors": (anchors, 32),
        "--select": (select, "auto"),
        "--weights": (weights, "int8"),
        "--ann-steps": (ann_steps, 4000),
        "--firmware": (firmware, None),
        "--seed": (seed, 0),
    }
    changed = [
        word
        for option, (now, default) in numbers.items()
        if now != default
        for word in (option, str(now))
    ]
    flags = [*["--no-intervals"] * (not intervals), *["--quick"] * quick]
    command = shlex.join(["twinedge", "report", str(run), *flags, *changed])
    with saying("Reporting", quiet=quiet) as say:
        done = write(
            run,
            output or Path(f"report.{form}"),
            form,
            figures=figures,
            firmware=firmware,
            command=command,
            anchors=anchors,
            select=select,
            weights=weights,
            intervals=intervals,
            quick=quick,
            ann_steps=ann_steps,
            seed=seed,
            say=say,
        )
    result = _result(str(run), done)
    for remark in done.findings.export.remarks:
        note(remark, quiet=quiet)
    if as_json:
        print_json(result)
        return
    short = {key: one for key, one in result.items() if not isinstance(one, list | dict)}
    print_record(
        short | ({"figures": f"{len(done.figures)} files in {figures}"} if figures else {})
    )


def _result(run: str, done: "Report") -> dict[str, Any]:
    found = done.findings
    budget, judged, worth = found.budget, found.judged, found.reliability
    usual = found.usual or (worth.at(0.9) if worth is not None else None)
    intervals = found.intervals.intervals if found.intervals is not None else ()
    verdicts = [one["verdict"] for one in budget["boards"]]
    return {
        "run": run,
        "file": str(done.path),
        "bytes": done.path.stat().st_size,
        "anchors": found.model.anchors,
        "anchors_asked": found.export.asked,
        "recommended": found.recommended._asdict(),
        "remarks": list(found.export.remarks),
        "method": found.export.method,
        "twin_bytes": budget["twin_bytes"],
        "ann_bytes": budget["ann_bytes"],
        "ratio": budget["ratio"],
        "judged_on": judged.name,
        "rows": len(judged.y),
        "rmse": judged.rmse,
        "covered_of_90_percent": None if usual is None else usual.covered,
        "intervals": [one._asdict() for one in intervals],
        "spread_factor": None if worth is None else worth.factor,
        "boards_that_fit": verdicts.count("fits") + verdicts.count("fits, slowly"),
        "boards_that_fit_slowly": verdicts.count("fits, slowly"),
        "boards_not_measured": verdicts.count("not measured"),
        "packs": [one._asdict() for one in found.sizes],
        "ordinary_networks": [one._asdict() for one in found.rivals],
        "trees": [found.trees._asdict()] if found.trees else [],
        "boards": {one["board"]: one["verdict"] for one in budget["boards"]},
        "figures": [str(path) for path in done.figures],
    }
