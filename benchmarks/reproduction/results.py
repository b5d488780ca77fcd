"""The results of an experiment: means over the splits, standard errors, and which is better."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reproduction.cells import Cell, Results, Setup
from benchmarks.reproduction.measures import Comparison, Experiment, Measure
from benchmarks.reproduction.paper_tables import printed


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
class Outcome:
    """An experiment with the results of its cells.

    Parameters
    ----------
    experiment : Experiment
        What is measured.
    requested : list of str
        Keys of data sets.
    splits : int
        How many of the paper's splits, starting with the first.
    setup : Setup
        Settings of the cells.
    results : Results
        Results of its cells, and perhaps of others. A split of a set is left out of the means if
        one of its cells is missing.
    """

    experiment: Experiment
    requested: list[str]
    splits: int
    setup: Setup
    results: Results

    def cells(self) -> list[Cell]:
        """List the cells that it needs."""
        return self.experiment.cells(self.requested, self.splits, self.setup)

    @cached_property
    def complete(self) -> dict[str, list[int]]:
        """Splits of each set that have all their cells."""
        missing = {(cell.dataset, cell.split) for cell in self.cells() if cell not in self.results}
        return {
            name: [split for split in range(self.splits) if (name, split) not in missing]
            for name in self.requested
        }

    @property
    def datasets(self) -> list[str]:
        """Sets that have a mean."""
        return [name for name, splits in self.complete.items() if splits]

    def shortfall(self) -> str:
        """Say which sets and splits are left out; empty if none is."""
        gone = [name for name, splits in self.complete.items() if not splits]
        partial = [
            f"{name} ({len(splits)} of {self.splits} splits)"
            for name, splits in self.complete.items()
            if 0 < len(splits) < self.splits
        ]
        lists = {"not computed": gone, "in part": partial}
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in lists.items() if names)

    def values(self, measure: Measure, dataset: str) -> Any:
        """Numbers ``(splits,)`` of a measure."""
        cells = [
            Cell(measure.method, dataset, split, self.setup, measure.number)
            for split in self.complete[dataset]
        ]
        return np.array([measure.read(self.results[cell]) for cell in cells])

    def mean(self, measure: Measure, dataset: str) -> Mean:
        """Mean and standard error of a measure."""
        return mean_of(self.values(measure, dataset))

    def curve(self, measures: list[Measure], dataset: str) -> list[Mean]:
        """Points of one curve of a sweep."""
        return [self.mean(one, dataset) for one in measures]

    def compare(self, pair: Comparison) -> list[Row]:
        """Compare two measures, set by set."""
        rows = []
        for dataset in self.datasets:
            first, second = (self.values(one, dataset) for one in pair)
            base, other, difference = mean_of(first), mean_of(second), mean_of(first - second)
            error = difference.standard_error
            better = pair.other.title if other.mean < base.mean else pair.base.title
            paper_base, paper_other = (
                Mean(*printed(*one.paper, dataset)) if one.paper is not None else None
                for one in pair
            )
            paper_gain = None
            if paper_base and paper_other:
                paper_gain = gain(paper_base.mean, paper_other.mean)
            rows.append(
                Row(
                    dataset,
                    base,
                    other,
                    gain(base.mean, other.mean),
                    difference.mean / error if error else None,
                    "level" if other.mean == base.mean else better,
                    paper_base,
                    paper_other,
                    paper_gain,
                )
            )
        return rows

    def record(self) -> dict[str, Any]:
        """Everything as one JSON object, including the cells."""
        experiment = self.experiment
        return {
            "experiment": experiment.name,
            "title": experiment.title,
            "datasets": self.datasets,
            "splits": self.splits,
            **asdict(self.setup),
            "remarks": experiment.remarks,
            "comparisons": [
                {
                    "base": pair.base.title,
                    "other": pair.other.title,
                    "rows": [_as_dict(row) for row in self.compare(pair)],
                }
                for pair in experiment.comparisons
            ],
            "means": {
                one.title: {name: _as_dict(self.mean(one, name)) for name in self.datasets}
                for one in experiment.columns
            },
            "sweeps": [
                {
                    "title": sweep.title,
                    "curves": {
                        name: {
                            label: {"x": xs, "y": [_as_dict(one) for one in self.curve(ys, name)]}
                            for label, (xs, ys) in sweep.curves.items()
                        }
                        for name in self.datasets
                    },
                }
                for sweep in experiment.sweeps
            ],
            "counts": experiment.counts._asdict() if experiment.counts else None,
            "cells": [{**cell.key, "result": self.results[cell]} for cell in self.cells()],
        }


def _as_dict(row: Any) -> dict[str, Any]:
    return {
        name: value._asdict() if isinstance(value, Mean) else value
        for name, value in row._asdict().items()
    }


def mean_of(values: Any) -> Mean:
    """Mean and standard error of numbers, one for each split."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return Mean(float(np.mean(values)), error)


def gain(base: float, other: float) -> float:
    """Share of the first error that the second saves.

    Examples
    --------
    >>> gain(0.8, 0.6)
    0.25
    """
    return round(1 - other / base, 12) if base else 0.0
