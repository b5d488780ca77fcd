"""From cells to tables: means over the splits, standard errors, and which method is better.

The columns of each table are in the paper's order. Its text calls the energy data EF in one place
and EE in all others.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reproduction.cells import Cell, Results, Setup
from benchmarks.reproduction.experiment import Comparison, Experiment, Measure, Sweep

Printed = tuple[float, float]

ORDER = ("bc", "bh", "cs", "ee", "rcl", "tf", "wn", "wsb", "yh")

TABLES: dict[str, dict[str, tuple[Printed, ...]]] = {
    "ann_ensemble": {
        "bc": ((0.7874, 0.012), (0.7438, 0.0118)),
        "bh": ((3.5695, 0.1051), (3.3291, 0.1137)),
        "cs": ((5.3829, 0.0964), (4.9842, 0.0938)),
        "ee": ((1.0310, 0.0313), (0.9649, 0.0224)),
        "rcl": ((0.0193, 0.0002), (0.0157, 0.0002)),
        "tf": ((0.0076, 0.0005), (0.0071, 0.0005)),
        "wn": ((0.7681, 0.024), (0.6487, 0.0068)),
        "wsb": ((0.0443, 0.0016), (0.0359, 0.0014)),
        "yh": ((0.6723, 0.0406), (0.6143, 0.0357)),
    },
    "tnnr_ensemble": {
        "bc": ((0.9021, 0.0131), (0.8140, 0.0149), (0.7947, 0.0134)),
        "bh": ((3.4793, 0.1262), (3.2897, 0.1293), (3.2232, 0.1256)),
        "cs": ((4.9602, 0.1073), (4.5385, 0.1124), (4.2791, 0.0995)),
        "ee": ((0.7445, 0.0224), (0.7071, 0.0229), (0.6468, 0.0196)),
        "rcl": ((0.0212, 0.0003), (0.0155, 0.0002), (0.0130, 0.0001)),
        "tf": ((0.0106, 0.0004), (0.0053, 0.0004), (0.0028, 0.0001)),
        "wn": ((0.7654, 0.0059), (0.6985, 0.0064), (0.6713, 0.0055)),
        "wsb": ((0.0309, 0.0009), (0.0239, 0.0009), (0.0227, 0.0008)),
        "yh": ((0.6344, 0.0363), (0.5798, 0.0362), (0.5723, 0.0336)),
    },
    "knn_tnnr": {
        "bc": ((0.8234, 0.0144), (0.8162, 0.0155), (0.8133, 0.0152)),
        "bh": ((3.3104, 0.1202), (3.2898, 0.1202), (3.3563, 0.1161)),
        "cs": ((4.4731, 0.1242), (4.4458, 0.1091), (4.4290, 0.1174)),
        "ee": ((0.7156, 0.0204), (0.7056, 0.0193), (0.6825, 0.0216)),
        "rcl": ((0.0158, 0.0002), (0.0151, 0.0003), (0.0140, 0.0002)),
        "tf": ((0.0050, 0.0001), (0.0028, 0.0002), (0.0021, 0.0003)),
        "wn": ((0.6998, 0.006), (0.6951, 0.0062), (0.6944, 0.006)),
        "wsb": ((0.0233, 0.0006), (0.0224, 0.0009), (0.0236, 0.0009)),
        "yh": ((0.5977, 0.0344), (0.5184, 0.0331), (0.5009, 0.0333)),
    },
    "rf_ssl": {
        "bc": ((0.7367, 0.0081), (0.7357, 0.0078)),
        "bh": ((3.8408, 0.1322), (3.8281, 0.1356)),
        "cs": ((5.8813, 0.2242), (5.8440, 0.2276)),
        "ee": ((1.9112, 0.0417), (1.8919, 0.0411)),
        "rcl": ((0.2934, 0.0068), (0.2932, 0.0068)),
        "tf": ((0.0857, 0.0022), (0.0855, 0.0021)),
        "wn": ((0.6066, 0.0083), (0.6045, 0.0084)),
        "wsb": ((0.0958, 0.0025), (0.0958, 0.0022)),
        "yh": ((1.1138, 0.0383), (1.1091, 0.0384)),
    },
    "twin_rf": {
        "bc": ((0.7407, 0.0087), (0.7427, 0.0081)),
        "bh": ((4.0019, 0.1394), (3.8301, 0.1322)),
        "cs": ((6.3763, 0.2136), (5.8519, 0.2242)),
        "ee": ((1.8773, 0.0422), (1.8906, 0.0417)),
        "rcl": ((0.3168, 0.0071), (0.2958, 0.0068)),
        "tf": ((0.1402, 0.0044), (0.0874, 0.0023)),
        "wn": ((0.5989, 0.0085), (0.6068, 0.0083)),
        "wsb": ((0.1461, 0.0039), (0.0942, 0.0025)),
        "yh": ((1.1917, 0.029), (1.1117, 0.0383)),
    },
}

# Rows and features, as in Table 5 of the paper.
DATA_SETS: dict[str, tuple[int, int]] = {
    "bc": (779, 14),
    "bh": (506, 13),
    "cs": (1030, 8),
    "ee": (768, 8),
    "rcl": (4000, 6),
    "tf": (1000, 2),
    "wn": (1599, 11),
    "wsb": (200, 4),
    "yh": (308, 6),
}


def printed(table: str, column: int, dataset: str) -> Printed:
    """Mean and standard error in a column (0 is the first) of a table of the paper."""
    return TABLES[table][dataset][column]


class Mean(NamedTuple):
    """Mean of a measure over the splits; its standard error is None for a single split."""

    mean: float
    standard_error: float | None


class Row(NamedTuple):
    """A comparison on one data set.

    ``gain`` is the share of the first error that the second saves; ``surely`` the mean difference
    of the two on the same split, in standard errors of that mean. Numbers that the paper lacks are
    None.
    """

    dataset: str
    base: Mean
    other: Mean
    gain: float
    surely: float | None
    better: str
    paper_base: Mean | None
    paper_other: Mean | None
    paper_gain: float | None


@dataclass(frozen=True)
class Sheet:
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


@dataclass(frozen=True)
class Question:
    """What a table asks: an experiment, on these sets, with this many splits and this setup.

    Splits in ``unknown``, by data set, are left out of the means.
    """

    experiment: Experiment
    datasets: list[str]
    splits: int
    setup: Setup
    unknown: dict[str, set[int]] = field(default_factory=dict)

    def cells(self) -> list[Cell]:
        """List the cells that are needed to answer it."""
        cells = self.experiment.cells(self.datasets, self.splits, self.setup)
        return [cell for cell in cells if cell.split in self.splits_of(cell.dataset)]

    def splits_of(self, dataset: str) -> list[int]:
        """List the splits of a set that enter its means."""
        return [one for one in range(self.splits) if one not in self.unknown.get(dataset, ())]

    def known(self, results: Results) -> "Question":
        """Restrict the question to the splits for which these results have every cell."""
        unknown: dict[str, set[int]] = {}
        for cell in self.cells():
            if cell not in results:
                unknown.setdefault(cell.dataset, set()).add(cell.split)
        left = [name for name in self.datasets if len(unknown.get(name, ())) < self.splits]
        return replace(self, datasets=left, unknown=unknown)

    def shortfall(self) -> str:
        """Say which sets and splits are left out; empty if none is."""
        parts = [
            f"{name} ({len(self.splits_of(name))} of {self.splits} splits)"
            for name in self.datasets
            if self.unknown.get(name)
        ]
        gone = [name for name in self.unknown if name not in self.datasets]
        return "; ".join(
            [f"not computed: {', '.join(gone)}"] * bool(gone)
            + [f"in part: {', '.join(parts)}"] * bool(parts)
        )

    def values(self, measure: Measure, dataset: str, results: Results) -> Any:
        """Numbers ``(splits,)`` of a measure."""
        cells = [
            Cell(measure.method, dataset, split, self.setup, measure.number)
            for split in self.splits_of(dataset)
        ]
        return np.array([measure.read(results[cell]) for cell in cells])


def mean_of(values: Any) -> Mean:
    """Mean and standard error of numbers, one for each split."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return Mean(float(np.mean(values)), error)


def compare(asked: Question, pair: Comparison, results: Results) -> list[Row]:
    """Compare two measures, set by set."""
    rows = []
    for dataset in asked.datasets:
        first, second = (asked.values(one, dataset, results) for one in (pair.base, pair.other))
        base, other, difference = mean_of(first), mean_of(second), mean_of(first - second)
        known = difference.standard_error
        their_base, their_other = (_in_paper(one, dataset) for one in (pair.base, pair.other))
        their_gain = None
        if their_base and their_other:
            their_gain = gain(their_base.mean, their_other.mean)
        rows.append(
            Row(
                dataset,
                base,
                other,
                gain(base.mean, other.mean),
                difference.mean / known if known else None,
                _better(pair, base.mean, other.mean),
                their_base,
                their_other,
                their_gain,
            )
        )
    return rows


def curve(asked: Question, measures: list[Measure], dataset: str, results: Results) -> list[Mean]:
    """Points of one curve of a sweep."""
    return [mean_of(asked.values(one, dataset, results)) for one in measures]


def gain(base: float, other: float) -> float:
    """Share of the first error that the second saves.

    Examples
    --------
    >>> gain(0.8, 0.6)
    0.25
    """
    return round(1 - other / base, 12) if base else 0.0


def finding(pair: Comparison, rows: list[Row]) -> str:
    """Say on how many sets the second is better, here and in the paper."""
    wins = sum(row.gain > 0 for row in rows)
    theirs = [row.paper_gain for row in rows if row.paper_gain is not None]
    paper = f"; in the paper on {sum(one > 0 for one in theirs)}" if theirs else ""
    return f"{pair.other.title} better than {pair.base.title} on {wins} of {len(rows)} sets{paper}"


def sheets(asked: Question, results: Results) -> list[Sheet]:
    """Lay out all tables of an experiment."""
    found = [comparison_sheet(pair, compare(asked, pair, results)) for pair in _pairs(asked)]
    if asked.experiment.columns:
        found.append(_means_sheet(asked, results))
    found += [_sweep_sheet(asked, sweep, results) for sweep in asked.experiment.sweeps]
    counts = asked.experiment.counts
    if counts:
        rows = [[label, *map(str, row)] for label, row in counts.rows.items()]
        found.append(Sheet(counts.title, (counts.x_title, *map(str, counts.x)), rows))
    return found


def findings(asked: Question, results: Results) -> list[str]:
    """State all findings of an experiment in sentences."""
    return [finding(pair, compare(asked, pair, results)) for pair in _pairs(asked)]


def comparison_sheet(pair: Comparison, rows: list[Row]) -> Sheet:
    """Lay out a comparison beside the paper's numbers."""
    base, other = pair.base.title, pair.other.title
    header: tuple[str, ...] = (
        "set",
        base,
        other,
        "gain",
        "paper",
        "paper",
        "paper gain",
        "better",
        "by",
    )
    if not any(row.paper_gain is not None for row in rows):
        header = (*header[:4], *header[7:])
    shown = []
    for row in rows:
        theirs = []
        if len(header) == 9:
            theirs = [_shown(row.paper_base), _shown(row.paper_other), _percent(row.paper_gain)]
        ours = [_shown(row.base), _shown(row.other), _percent(row.gain)]
        sure = "-" if row.surely is None else f"{abs(row.surely):.1f} s.e."
        shown.append([row.dataset, *ours, *theirs, row.better, sure])
    return Sheet(f"{other} against {base}", header, shown)


def sentence(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]


def _pairs(asked: Question) -> list[Comparison]:
    return asked.experiment.comparisons


def _means_sheet(asked: Question, results: Results) -> Sheet:
    columns = asked.experiment.columns
    rows = [
        [
            dataset,
            *(f"{mean_of(asked.values(one, dataset, results)).mean:.3g}" for one in columns),
        ]
        for dataset in asked.datasets
    ]
    return Sheet("Means over the splits", ("set", *(one.title for one in columns)), rows)


def _sweep_sheet(asked: Question, sweep: Sweep, results: Results) -> Sheet:
    """Lay out a sweep: a row for each curve of each set, a column for each place on the x axis."""
    places = sorted({x for xs, _ in sweep.curves.values() if len(xs) > 1 for x in xs})
    rows = []
    for dataset in asked.datasets:
        for label, (xs, measures) in sweep.curves.items():
            points = curve(asked, measures, dataset, results)
            if len(xs) > 1:
                known = dict(zip(xs, points, strict=True))
                words = [_number(known[x].mean) if x in known else "-" for x in places]
            else:  # a level, the same everywhere
                words = [_number(points[0].mean)] * len(places)
            rows.append([dataset, label, *words])
    header = ("set", sweep.x_title, *(f"{x:.3g}" for x in places))
    return Sheet(sweep.title, header, rows)


def _in_paper(measure: Measure, dataset: str) -> Mean | None:
    if measure.paper is None:
        return None
    return Mean(*printed(*measure.paper, dataset))


def _better(pair: Comparison, base: float, other: float) -> str:
    if base == other:
        return "level"
    return pair.other.title if other < base else pair.base.title


def _shown(value: Mean | None) -> str:
    if value is None:
        return "-"
    error = "" if value.standard_error is None else f" ± {_number(value.standard_error, 2)}"
    return f"{_number(value.mean)}{error}"


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell[:1] in "+-"


def _number(value: float, digits: int = 4) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}g}"


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:+.1f} %"
