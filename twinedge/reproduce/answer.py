"""An experiment answered: its tables in words and numbers, its figure, and the files of both."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twinedge.reproduce.run import Results
from twinedge.reproduce.store import write_whole
from twinedge.reproduce.tables import (
    Question,
    Sheet,
    compare,
    curve,
    findings,
    mean_of,
    sentence,
    sheets,
)


@dataclass(frozen=True)
class Answer:
    """What came out.

    Parameters
    ----------
    asked : Question
        What was asked.
    results : Results
        Cells of it, and maybe others.
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
        """Everything as one JSON object, the cells included."""
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
        """Tables, remarks and findings as text for a page."""
        parts = [sentence("; ".join(self.asked.experiment.remarks)) + "."]
        parts += [sheet.markdown() for sheet in self.sheets]
        if self.findings:
            parts.append("\n".join(f"- {sentence(one)}." for one in self.findings))
        return "\n\n".join(parts) + "\n"

    def write_figure(self, path: Path) -> bool:
        """Draw the figure, if there is one to draw."""
        from twinedge.reproduce.figures import figure

        drawn = figure(self.asked, self.results)
        if drawn is not None:
            write_whole(path, drawn)
        return drawn is not None

    def _points(self, measures: Any, dataset: str) -> list[dict[str, Any]]:
        return [one._asdict() for one in curve(self.asked, measures, dataset, self.results)]


def _row(row: Any) -> dict[str, Any]:
    return {
        name: value._asdict() if hasattr(value, "_asdict") else value
        for name, value in row._asdict().items()
    }
