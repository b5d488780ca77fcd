"""The generated parts of docs/reproduction.md; called by benchmarks/reproduction.py.

Only what is between marks is generated; the rest is written by hand and stays.
"""

import re
from collections import Counter
from collections.abc import Iterable
from statistics import geometric_mean
from typing import NamedTuple

from benchmarks.reproduction.answers import Answer
from benchmarks.reproduction.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    PARTLY,
    UNKNOWN,
    Claim,
    Ruling,
    Seen,
    everywhere,
    judged,
    overall,
)
from benchmarks.reproduction.tables import DATA_SETS, Sheet, compare, sentence
from twinedge.data.catalogue import CATALOGUE

Judged = list[tuple[Claim, Ruling]]
CURVES = "curves.md"
DEFINITION = "a definition, nothing to measure"
HERE_ALREADY = {"memory": "memory.svg"}  # figures that another page has


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
    Part("Text", "weighing anchors, checking a set", "Told without a table"),
)


def fill(page: str, name: str, text: str) -> str:
    """Replace the text between the marks of a name."""
    marks = re.compile(rf"(<!-- {name}: generated -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"the page has no place for {name}")
    return marks.sub(lambda found: f"{found[1]}\n{text.strip()}\n\n{found[2]}", page)


def filled(page: str, answers: dict[str, Answer], own: Answer, machines: Iterable[str]) -> str:
    """Write everything that is generated into the page."""
    verdicts = [one for answer in answers.values() for one in judged(answer)] + data_judged()
    unfinished = {
        claim.part
        for answer in answers.values()
        for claim, _ in judged(answer)
        if answer.asked.shortfall()
    }
    texts = {
        "index": index(verdicts, unfinished),
        "machines": machines_text(machines),
        "own": own_text(own, answers["tnnr_ensemble"]),
        "data_sets": f"{found_text(data_judged())}\n\n{data_sheet().markdown()}",
        **{name: section(name, answer) for name, answer in answers.items()},
    }
    for name, text in texts.items():
        page = fill(page, name, text)
    return page


def index(verdicts: Judged, unfinished: set[str]) -> str:
    """Table of all tables and figures of the paper: where they are, and whether they hold."""
    count = Counter(verdict.word for _, verdict in verdicts)
    lost = sorted({claim.part for claim, verdict in verdicts if verdict.word == FAILS})
    told = f"Of {len(verdicts)} findings {_counted(count)}."
    told += f" With findings that do not hold: {', '.join(lost)}." if lost else ""
    lines = ["| of the paper | here | its findings |", "| --- | --- | --- |"]
    for part in PARTS:
        words = [verdict.word for claim, verdict in verdicts if claim.part == part.name]
        link = f"[{part.name}, {part.shows}](#{_anchor(part.section)})"
        if words:
            so_far = " (cells are missing)" if part.name in unfinished else ""
            found = f"**{overall(words)}**{so_far}"
            lines.append(f"| {link} | {found} | {_counted(Counter(words))} |")
        else:
            lines.append(f"| {link} | {UNKNOWN} | {DEFINITION} |")
    return "\n".join([told, "", *lines])


def section(name: str, answer: Answer) -> str:
    """Remarks, findings, tables and the figure of an experiment; curves are figures here."""
    experiment = answer.asked.experiment
    parts = [sentence("; ".join(experiment.remarks)) + "."]
    lacking = answer.asked.shortfall()
    if lacking:
        parts.append(f"**Not all of it is measured yet: {lacking}.**")
    parts.append(found_text(judged(answer)))
    if answer.asked.datasets:
        curves = curve_titles(answer)
        shown = [sheet for sheet in answer.sheets if sheet.title not in curves]
        parts += [sheet.markdown() for sheet in shown]
        if name in HERE_ALREADY:
            parts.append(f"![{experiment.title}]({HERE_ALREADY[name]})")
        elif has_figure(answer):
            parts.append(f"![{experiment.title}](reproduction/{name}.svg)")
        if curves:
            parts.append(f"The curves in numbers: [{CURVES}](reproduction/{CURVES}).")
    return "\n\n".join(parts)


def curve_titles(answer: Answer) -> set[str]:
    """Titles of the tables that are curves."""
    experiment = answer.asked.experiment
    counts = {experiment.counts.title} if experiment.counts else set()
    return counts | {sweep.title for sweep in experiment.sweeps}


def has_figure(answer: Answer) -> bool:
    """Tell whether there is something to draw."""
    experiment = answer.asked.experiment
    return bool(answer.asked.datasets and (experiment.sweeps or experiment.comparisons))


def curves_page(answers: dict[str, Answer]) -> str:
    """Write the page of all curves in numbers."""
    parts = [
        "# Curves in numbers",
        "Means over the splits of what the figures of [reproduction.md](../reproduction.md) show; "
        "generated by `benchmarks/reproduction.py`.",
    ]
    for answer in answers.values():
        titles = curve_titles(answer)
        sheets = [sheet for sheet in answer.sheets if sheet.title in titles and sheet.rows]
        if sheets:
            parts.append(f"## {answer.asked.experiment.title}")
            parts += [sheet.markdown() for sheet in sheets]
    return "\n\n".join(parts) + "\n"


def found_text(verdicts: Judged) -> str:
    """List for each finding the verdict, what the paper found, and what is seen here."""
    return "\n".join(
        f"- {claim.part}, **{verdict.word}**: {claim.says} Here: {verdict.seen}."
        for claim, verdict in verdicts
    )


def own_text(own: Answer, published: Answer) -> str:
    """Say whether twins win with either trainer, and what ours gains for each side."""
    network, twin = (_lower(own, published, place) for place in ("base", "other"))
    told = (
        f"Against training as published, errors of one ANN are lower by {network}, those of one "
        f"twin by {twin} (geometric means over the sets)."
    )
    claim = next(one for one in CLAIMS["tnnr_ensemble"] if "one ANN" in one.says)
    lacking = own.asked.shortfall()
    note = f"\n\n**Not all of it is measured yet: {lacking}.**" if lacking else ""
    return f"{told}\n\n{found_text([(claim, claim.judge(own))])}{note}"


def _lower(own: Answer, published: Answer, place: str) -> str:
    """By what fraction our trainer lowers the errors of one side, ANN or twin."""
    means = []
    for answer in (published, own):
        pair = answer.asked.experiment.comparisons[2]
        rows = compare(answer.asked, pair, answer.results)
        means.append({row.dataset: getattr(row, place).mean for row in rows})
    shared = [name for name in means[0] if name in means[1]]
    return f"{100 * (1 - geometric_mean(means[1][one] / means[0][one] for one in shared)):.0f} %"


def machines_text(machines: Iterable[str]) -> str:
    """How many cells each machine computed."""
    return "\n".join(f"- {count} cells: {name}" for name, count in Counter(machines).most_common())


def data_sheet() -> Sheet:
    """Rows and features here and in the paper."""
    rows = []
    for name, (count, features) in DATA_SETS.items():
        entry = CATALOGUE[name]
        here, there = (str(entry.rows), str(entry.features)), (str(count), str(features))
        rows.append([name, entry.title, *here, *there, entry.note or "-"])
    header = ("set", "title", "rows", "features", "paper: rows", "paper: features", "note")
    return Sheet("Sets as they are here", header, rows)


def data_judged() -> Judged:
    """Whether the sets are those of the paper's table."""
    found = []
    for place, what in enumerate(("rows", "features")):
        seen = {}
        for name, theirs in DATA_SETS.items():
            ours = (CATALOGUE[name].rows, CATALOGUE[name].features)[place]
            seen[name] = Seen(ours == theirs[place], f"{ours} against {theirs[place]}")
        found.append(_claimed(f"The sets have the {what} that are printed.", everywhere(seen)))
    return found


def _claimed(says: str, verdict: Ruling) -> tuple[Claim, Ruling]:
    return Claim("Table 5", says, lambda _: verdict), verdict


def _counted(words: Counter[str]) -> str:
    plural = {HOLDS: "hold", PARTLY: "hold partly", FAILS: "do not hold", UNKNOWN: "not measured"}
    told = [
        f"{words[word]} {word if words[word] == 1 else plural[word]}"
        for word in plural
        if words[word]
    ]
    return ", ".join(told)


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
