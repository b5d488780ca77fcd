"""Write docs/reproduction.md: do the paper's findings hold here?

The page has networks as the paper's code trains them, and forests with a small grid, on all nine
sets. Its cells are kept in the results of the benchmarks, together with those that another folder
adds; each says where it was computed. Only what is between marks is generated; the rest of the page
is written by hand and stays.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

from benchmarks.reproduction.cells import Cell, CellStore, Setup
from benchmarks.reproduction.claims import (
    FAILS,
    HOLDS,
    PARTLY,
    UNKNOWN,
    Claim,
    Observed,
    Verdict,
    everywhere,
    overall,
    verdicts,
)
from benchmarks.reproduction.experiments import EXPERIMENTS
from benchmarks.reproduction.figures import figure
from benchmarks.reproduction.paper_tables import DATA_SETS
from benchmarks.reproduction.results import Outcome
from benchmarks.reproduction.sheets import Sheet, sentence, sheets
from twinedge import data
from twinedge.atomic_files import write_file
from twinedge.data.catalogue import CATALOGUE
from twinedge.training import VERSION
from twinedge.wording import joined

_BENCHMARKS = Path(__file__).parents[1]
RESULTS = _BENCHMARKS / "results" / "reproduction"
PAGE = _BENCHMARKS.parent / "docs" / "reproduction.md"
CURVES = "curves.md"
PUBLISHED = Setup(trainer="published")
OWN = Setup(members=2)  # twins and ANNs of our own trainer, for one finding
SPLITS = 5

Kept = dict[str, dict[str, Any]]  # results of cells, by all that decides them
Checked = list[tuple[Claim, Verdict]]


class Part(NamedTuple):
    """A table or figure of the paper, and the section that has it."""

    name: str
    shows: str
    section: str


PARTS = (
    Part("Figure 1", "the dual problem", "The dual problem"),
    Part("Figure 2", "kinds of ensembles", "Ensembles of twins"),
    Part("Figure 3", "training-set multiplier", "Training-set multiplier"),
    Part("Figure 4", "number of neighbors", "Number of neighbors"),
    Part("Figure 5", "twins and k-NN", "Twins and k-NN"),
    Part("Figure 6", "memory", "Memory"),
    Part("Figure 7", "weight of loops", "Semi-supervised forests"),
    Part("Figure 8", "time", "Time"),
    Part("Table 1", "ensembles of ANNs", "Ensembles of ordinary networks"),
    Part("Table 2", "ensembles of twins", "Ensembles of twins"),
    Part("Table 3", "twins of nearest neighbors", "Twins of nearest neighbors"),
    Part("Table 4", "semi-supervised forests", "Semi-supervised forests"),
    Part("Table 5", "data sets", "Data sets"),
    Part("Table 6", "twinned forests", "Twinned random forests"),
    Part("Text", "weighting anchors, checking a set", "Findings without a table"),
)


def cells() -> list[Cell]:
    """Cells of everything on the page."""
    pairs = [*((name, PUBLISHED) for name in EXPERIMENTS), ("tnnr_ensemble", OWN)]
    return [cell for name, setup in pairs for cell in _outcome(name, setup, {}).cells()]


def identity(cell: Cell, version: int | None = None) -> str:
    """Name a cell by all that decides its numbers, with a version of our own trainer: today's."""
    return json.dumps(cell.key if version is None else cell.key_of(version), sort_keys=True)


def version_of(kept: Kept) -> int:
    """Return the version of our own trainer that the page shows: the last that is complete."""
    ours = [cell for cell in cells() if cell.is_ours]
    versions = range(VERSION, 0, -1)
    return next(
        (one for one in versions if all(identity(cell, one) in kept for cell in ours)), VERSION
    )


def read_results(folder: Path = RESULTS) -> Kept:
    """Read the cells among the results of the benchmarks, each with its machine."""
    path = folder / "cells.json"
    if not path.exists():
        return {}
    record = json.loads(path.read_text())
    return {
        json.dumps(cell["cell"], sort_keys=True): {
            **cell["result"],
            "machine": record["machines"][cell["on"]],
        }
        for cell in record["cells"]
    }


def _write_results(kept: Kept) -> None:
    """Write cells into the results of the benchmarks, a line for each.

    They are of several trainers; the version is that of our own which the page shows.
    """
    machines = sorted({result["machine"] for result in kept.values()})
    lines = []
    for key in sorted(kept):
        result = {name: value for name, value in kept[key].items() if name != "machine"}
        on = machines.index(kept[key]["machine"])
        lines.append(json.dumps({"cell": json.loads(key), "on": on, "result": result}))
    head = f'"machines": {json.dumps(machines)}, "training": {version_of(kept)}'
    body = ",\n".join(lines)
    write_file(RESULTS / "cells.json", f'{{{head}, "cells": [\n{body}\n]}}\n')


def merge(kept: Kept, store: CellStore) -> Kept:
    """Return the cells of the page: those of the results, or else those of a store.

    Networks of an earlier version of our own trainer stay until those of today are complete.
    """
    found = {}
    for cell in cells():
        result = kept.get(identity(cell)) or store.load(cell)
        if result is not None:
            found[identity(cell)] = {"machine": "a machine that it does not name", **result}
    if any(identity(cell) not in found for cell in cells() if cell.is_ours):
        shown = version_of(kept)
        names = (identity(cell, shown) for cell in cells() if cell.is_ours)
        found |= {name: kept[name] for name in names if name in kept}
    return found


def outcomes(kept: Kept) -> dict[str, Outcome]:
    """Return all experiments of the page, as far as cells are there."""
    version = version_of(kept)
    return {name: _outcome(name, PUBLISHED, kept, version) for name in EXPERIMENTS}


def _outcome(name: str, setup: Setup, kept: Kept, version: int = VERSION) -> Outcome:
    wanted = Outcome(EXPERIMENTS[name](setup), list(data.names()), SPLITS, setup, {})
    names = {cell: identity(cell, version) for cell in wanted.cells()}
    results = {cell: kept[name] for cell, name in names.items() if name in kept}
    return Outcome(wanted.experiment, wanted.requested, SPLITS, setup, results)


def write(kept: Kept) -> list[dict[str, str]]:
    """Write cells, page, curves and figures; returns the findings."""
    _write_results(kept)
    folder, found = PAGE.with_suffix(""), outcomes(kept)
    for name, outcome in found.items():
        if has_figure(outcome):
            write_file(PAGE.parent / figure_path(name), str(figure(outcome)))
    write_file(folder / CURVES, curves_page(found))
    write_file(PAGE, filled(PAGE.read_text(), kept))
    findings = [
        {
            "part": claim.part,
            "finding": claim.sentence,
            "verdict": verdict.word,
            "seen": verdict.observed,
        }
        for outcome in found.values()
        for claim, verdict in verdicts(outcome)
    ]
    write_file(RESULTS / "findings.json", json.dumps(findings, indent=1) + "\n")
    return findings


def filled(page: str, kept: Kept) -> str:
    """Write everything that is generated into the page."""
    found = outcomes(kept)
    checked = {name: verdicts(outcome) for name, outcome in found.items()}
    unfinished = {
        claim.part
        for name, outcome in found.items()
        for claim, _ in checked[name]
        if outcome.shortfall()
    }
    every = [one for several in checked.values() for one in several] + data_verdicts()
    machines = Counter(result["machine"] for result in kept.values())
    texts = {
        "index": index(every, unfinished),
        "machines": "\n".join(f"- {count} cells: {on}" for on, count in machines.most_common()),
        "own": own_text(
            _outcome("tnnr_ensemble", OWN, kept, version_of(kept)), found["tnnr_ensemble"]
        ),
        "data_sets": f"{_listed(data_verdicts())}\n\n{data_sheet().markdown()}",
        **{name: section(outcome, checked[name]) for name, outcome in found.items()},
    }
    for name, text in texts.items():
        page = fill(page, name, text)
    return page


def fill(page: str, name: str, text: str) -> str:
    """Replace the text between the marks of a name."""
    marks = re.compile(rf"(<!-- {name}: generated -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"the page has no place for {name}")
    return marks.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[2]}", page)


def index(checked: Checked, unfinished: set[str]) -> str:
    """Table of all tables and figures of the paper: where they are, and whether they hold."""
    lost = sorted({claim.part for claim, verdict in checked if verdict.word == FAILS})
    count = _counted(verdict.word for _, verdict in checked)
    summary = f"Of {len(checked)} findings, {joined(count)}."
    summary += f" Findings that do not hold are in {joined(lost)}." if lost else ""
    lines = ["| of the paper | here | its findings |", "| --- | --- | --- |"]
    for part in PARTS:
        words = [verdict.word for claim, verdict in checked if claim.part == part.name]
        anchor = re.sub(r"[^a-z0-9 -]", "", part.section.lower()).replace(" ", "-")
        verdict, counted = UNKNOWN, "a definition, nothing to measure"
        if words:
            so_far = " (cells are missing)" if part.name in unfinished else ""
            verdict, counted = f"**{overall(words)}**{so_far}", ", ".join(_counted(words))
        lines.append(f"| [{part.name}, {part.shows}](#{anchor}) | {verdict} | {counted} |")
    return "\n".join([summary, "", *lines])


def section(outcome: Outcome, checked: Checked) -> str:
    """Remarks, findings, tables and the figure of an experiment; curves are figures here."""
    experiment = outcome.experiment
    parts = [sentence("; ".join(experiment.remarks)) + ".", _missing(outcome), _listed(checked)]
    if outcome.datasets:
        curves = _curve_titles(outcome)
        parts += [one.markdown() for one in sheets(outcome) if one.title not in curves]
        if has_figure(outcome):
            parts.append(f"![{experiment.title}]({figure_path(experiment.name)})")
        if curves:
            parts.append(f"The curves in numbers: [{CURVES}](reproduction/{CURVES}).")
    return "\n\n".join(filter(None, parts))


def _missing(outcome: Outcome) -> str:
    lacking = outcome.shortfall()
    return f"**Not all of it is measured yet: {lacking}.**" if lacking else ""


def _curve_titles(outcome: Outcome) -> set[str]:
    """Titles of the tables that are curves."""
    counts = outcome.experiment.counts
    curves = {sweep.title for sweep in outcome.experiment.sweeps}
    return curves | {counts.title} if counts else curves


def has_figure(outcome: Outcome) -> bool:
    """Whether there is something to draw."""
    one = outcome.experiment
    return bool(outcome.datasets and (one.sweeps or one.comparisons or one.counts))


def figure_path(name: str) -> str:
    """Where the figure of an experiment is, seen from the page; docs/budget.md shows one, too."""
    return "memory.svg" if name == "memory" else f"{PAGE.stem}/{name}.svg"


def curves_page(found: dict[str, Outcome]) -> str:
    """Write the page of all curves in numbers."""
    parts = [
        "# Curves in numbers",
        "Means over the splits of what the figures of [reproduction.md](../reproduction.md) show; "
        "generated by `python -m benchmarks.reproduction page`.",
    ]
    for outcome in found.values():
        titles = _curve_titles(outcome)
        shown = [sheet for sheet in sheets(outcome) if sheet.title in titles and sheet.rows]
        if shown:
            parts.append(f"## {outcome.experiment.title}")
            parts += [sheet.markdown() for sheet in shown]
    return "\n\n".join(parts) + "\n"


def _listed(checked: Checked) -> str:
    """List for each finding the verdict, what the paper found, and what is observed here."""
    return "\n".join(
        f"- {claim.part}, **{verdict.word}**: {claim.sentence} Here: {verdict.observed}."
        for claim, verdict in checked
    )


def own_text(own: Outcome, published: Outcome) -> str:
    """Say whether twins win with either trainer, and what ours gains for each side."""
    network, twin = (_lower(own, published, side) for side in ("base", "other"))
    gains = (
        f"Against training as published, errors of one ANN are lower by {network}, those of one "
        f"twin by {twin} (geometric means over the sets)."
    )
    checked = [one for one in verdicts(own) if "better than one ANN" in one[0].sentence]
    return "\n\n".join(filter(None, [gains, _listed(checked), _missing(own)]))


def _lower(own: Outcome, published: Outcome, side: str) -> str:
    """By what fraction our trainer lowers the errors of one side, ANN or twin."""
    theirs, ours = (
        {
            row.dataset: getattr(row, side).mean
            for row in outcome.compare(outcome.experiment.comparisons[2])
        }
        for outcome in (published, own)
    )
    ratio = geometric_mean(ours[name] / theirs[name] for name in theirs if name in ours)
    return f"{100 * (1 - ratio):.0f} %"


def data_sheet() -> Sheet:
    """Rows and features here and in the paper."""
    rows = []
    for name, theirs in DATA_SETS.items():
        entry = CATALOGUE[name]
        sizes = map(str, (entry.rows, entry.features, *theirs))
        rows.append([name, entry.title, *sizes, entry.note or "-"])
    header = ("set", "title", "rows", "features", "paper: rows", "paper: features", "note")
    return Sheet("Sets as they are here", header, rows)


def data_verdicts() -> Checked:
    """Whether the sets are those of the paper's table."""
    found = []
    for place, what in enumerate(("rows", "features")):
        observed = {}
        for name, theirs in DATA_SETS.items():
            ours = (CATALOGUE[name].rows, CATALOGUE[name].features)[place]
            number = f"{ours} against {theirs[place]}"
            observed[name] = Observed(ours == theirs[place], number)
        claim = Claim("Table 5", f"The sets have the {what} that are printed.")
        found.append((claim, everywhere(observed)))
    return found


def _counted(words: Iterable[str]) -> list[str]:
    """Count the verdicts of each kind."""
    count = Counter(words)
    forms = {
        HOLDS: (HOLDS, "hold"),
        PARTLY: (PARTLY, "hold partly"),
        FAILS: (FAILS, "do not hold"),
        UNKNOWN: (f"is {UNKNOWN}", f"are {UNKNOWN}"),
    }
    return [f"{count[word]} {forms[word][count[word] > 1]}" for word in forms if count[word]]
