"""Answer the experiments that the command names, as tables, figures and files."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.reproduction.cells import CellStore, Results, Setup
from benchmarks.reproduction.experiments import experiment
from benchmarks.reproduction.running import local, on_cluster, progress_of, run
from benchmarks.reproduction.tables import (
    Question,
    Sheet,
    compare,
    curve,
    findings,
    mean_of,
    sentence,
    sheets,
)
from twinedge.atomic_files import write_file
from twinedge.extras import require


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Parameters
    ----------
    asked : Question
        The question.
    results : Results
        Results of its cells, and perhaps of others.
    """

    asked: Question
    results: Results

    @property
    def sheets(self) -> list[Sheet]:
        """Tables to show."""
        return sheets(self.asked, self.results)

    @property
    def findings(self) -> list[str]:
        """What the tables say, in sentences."""
        return findings(self.asked, self.results)

    def record(self) -> dict[str, Any]:
        """Everything as one JSON object, including the cells."""
        asked, experiment = self.asked, self.asked.experiment
        return {
            "experiment": experiment.name,
            "title": experiment.title,
            "datasets": asked.datasets,
            "splits": asked.splits,
            **asdict(asked.setup),
            "remarks": experiment.remarks,
            "findings": self.findings,
            "comparisons": [
                {
                    "base": pair.base.title,
                    "other": pair.other.title,
                    "rows": [_row(row) for row in compare(asked, pair, self.results)],
                }
                for pair in experiment.comparisons
            ],
            "means": {
                one.title: {
                    name: mean_of(asked.values(one, name, self.results))._asdict()
                    for name in asked.datasets
                }
                for one in experiment.columns
            },
            "sweeps": [
                {
                    "title": sweep.title,
                    "curves": {
                        name: {
                            label: {"x": xs, "y": self._points(measures, name)}
                            for label, (xs, measures) in sweep.curves.items()
                        }
                        for name in asked.datasets
                    },
                }
                for sweep in experiment.sweeps
            ],
            "counts": asdict(experiment.counts) if experiment.counts else None,
            "cells": [
                {**cell.key, "result": self.results[cell]} for cell in dict.fromkeys(asked.cells())
            ],
        }

    def markdown(self) -> str:
        """Tables, remarks and findings in Markdown."""
        parts = [sentence("; ".join(self.asked.experiment.remarks)) + "."]
        parts += [sheet.markdown() for sheet in self.sheets]
        if self.findings:
            parts.append("\n".join(f"- {sentence(one)}." for one in self.findings))
        return "\n\n".join(parts) + "\n"

    def write_figure(self, path: Path) -> bool:
        """Draw the figure, if there is one to draw."""
        from benchmarks.reproduction.panels import figure

        drawn = figure(self.asked, self.results)
        if drawn is not None:
            write_file(path, drawn)
        return drawn is not None

    def _points(self, measures: Any, dataset: str) -> list[dict[str, Any]]:
        return [one._asdict() for one in curve(self.asked, measures, dataset, self.results)]


def _row(row: Any) -> dict[str, Any]:
    return {
        name: value._asdict() if hasattr(value, "_asdict") else value
        for name, value in row._asdict().items()
    }


def answer_all(
    names: Sequence[str],
    datasets: list[str],
    splits: int,
    setup: Setup,
    folder: Path,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    quiet: bool = True,
) -> tuple[dict[str, Answer], list[Path]]:
    """Answer experiments by computing what a folder lacks, and write the answers there.

    Parameters
    ----------
    names : sequence of str
        Names of experiments.
    datasets : list of str
        Keys of data sets.
    splits : int
        How many of the paper's splits, starting with the first.
    setup : Setup
        Settings of the experiments.
    folder : path
        Folder for cells, tables and figures.
    jobs : int, optional
        Cells computed at a time on this machine; by default one per core.
    cluster : str, optional
        Address of a Dask scheduler to compute on instead.
    quiet : bool
        Print nothing on standard error.

    Returns
    -------
    dict of str to Answer, list of path
        The answers; and files of damaged cells, which were computed again.
    """
    questions = {name: Question(experiment(name, setup), datasets, splits, setup) for name in names}
    require("matplotlib")  # now, rather than fail after hours of work
    store = CellStore(folder)
    jobs = jobs or _cores()
    pool = local(jobs) if cluster is None else on_cluster(cluster)
    cells = [cell for asked in questions.values() for cell in asked.cells()]
    with progress_of(jobs, quiet=quiet) as progress:
        results = run(cells, store, pool, progress)
    answers = {name: Answer(asked, results) for name, asked in questions.items()}
    for name, answer in answers.items():
        write_file(folder / f"{name}.json", json.dumps(answer.record(), indent=1) + "\n")
        write_file(folder / f"{name}.md", answer.markdown())
        answer.write_figure(folder / f"{name}.svg")
    return answers, store.damaged


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
