"""Lay out the results of an experiment as tables of words, in Markdown or for a terminal."""

from typing import NamedTuple

import numpy as np

from benchmarks.reproduction.measures import Comparison, Sweep
from benchmarks.reproduction.results import Mean, Outcome


class Sheet(NamedTuple):
    """A table to be shown: words in a grid."""

    title: str
    header: tuple[str, ...]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Title and table in Markdown, numbers to the right."""
        columns = zip(self.header, *self.rows, strict=True)
        rule = ["---:" if all(map(_is_number, cells)) else "---" for _, *cells in columns]
        lines = [self.header, rule, *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"**{sentence(self.title)}**\n\n{table}"


def sheets(outcome: Outcome) -> list[Sheet]:
    """Lay out all tables of an experiment."""
    experiment = outcome.experiment
    found = [_comparison_sheet(outcome, pair) for pair in experiment.comparisons]
    if experiment.columns:
        means = [
            [name, *(f"{outcome.mean(one, name).mean:.3g}" for one in experiment.columns)]
            for name in outcome.datasets
        ]
        titles = (one.title for one in experiment.columns)
        found.append(Sheet("Means over the splits", ("set", *titles), means))
    found += [_sweep_sheet(outcome, sweep) for sweep in experiment.sweeps]
    counts = experiment.counts
    if counts:
        rows = [[label, *map(str, row)] for label, row in counts.rows.items()]
        found.append(Sheet(counts.title, (counts.x_title, *map(str, counts.x)), rows))
    return found


def findings(outcome: Outcome) -> list[str]:
    """Say on how many sets the second of each comparison is better, here and in the paper."""
    found = []
    for pair in outcome.experiment.comparisons:
        rows = outcome.compare(pair)
        wins = sum(row.gain > 0 for row in rows)
        theirs = [row.paper_gain for row in rows if row.paper_gain is not None]
        paper = f"; in the paper on {sum(one > 0 for one in theirs)}" if theirs else ""
        where = f"{wins} of {len(rows)} sets{paper}"
        found.append(f"{pair.other.title} better than {pair.base.title} on {where}")
    return found


def markdown(outcome: Outcome) -> str:
    """Tables, remarks and findings in Markdown."""
    parts = [sentence("; ".join(outcome.experiment.remarks)) + "."]
    parts += [sheet.markdown() for sheet in sheets(outcome)]
    parts += ["\n".join(f"- {sentence(one)}." for one in findings(outcome))]
    return "\n\n".join(filter(None, parts)) + "\n"


def sentence(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]


def percent(part: float | None) -> str:
    """Format a share with its sign."""
    return "-" if part is None else f"{100 * part:+.1f} %"


def _comparison_sheet(outcome: Outcome, pair: Comparison) -> Sheet:
    """Lay out a comparison beside the paper's numbers."""
    compared = outcome.compare(pair)
    in_paper = any(row.paper_gain is not None for row in compared)
    paper = ("paper", "paper", "paper gain") if in_paper else ()
    rows = []
    for row in compared:
        cells = [row.dataset, _with_error(row.base), _with_error(row.other), percent(row.gain)]
        if in_paper:
            cells += [_with_error(row.paper_base), _with_error(row.paper_other)]
            cells += [percent(row.paper_gain)]
        sure = "-" if row.surely is None else f"{abs(row.surely):.1f} s.e."
        rows.append([*cells, row.better, sure])
    base, other = pair.base.title, pair.other.title
    return Sheet(
        f"{other} against {base}", ("set", base, other, "gain", *paper, "better", "by"), rows
    )


def _sweep_sheet(outcome: Outcome, sweep: Sweep) -> Sheet:
    """Lay out a sweep: a row for each curve of each set, a column for each place on the x axis."""
    places = sorted({x for xs, _ in sweep.curves.values() if len(xs) > 1 for x in xs})
    rows = []
    for dataset in outcome.datasets:
        for label, (xs, measures) in sweep.curves.items():
            points = outcome.curve(measures, dataset)
            if len(xs) > 1:
                known = dict(zip(xs, points, strict=True))
                words = [_number(known[x].mean) if x in known else "-" for x in places]
            else:  # a level, the same everywhere
                words = [_number(points[0].mean)] * len(places)
            rows.append([dataset, label, *words])
    header = ("set", sweep.x_title, *(f"{x:.3g}" for x in places))
    return Sheet(sweep.title, header, rows)


def _with_error(value: Mean | None) -> str:
    if value is None:
        return "-"
    error = "" if value.standard_error is None else f" ± {_number(value.standard_error, 2)}"
    return f"{_number(value.mean)}{error}"


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell[:1] in "+-"


def _number(value: float, digits: int = 4) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}g}"
