"""Is the choice of settings better than a setting that never changes?

The default training chooses activation and weight decay anew for each table, and whether to learn
from teachers. Here, the same twins are trained with every fixed setting instead: one round on the
training rows, nothing chosen. On each set, the mean test error of the default (the cells of
accuracy.json) is compared with that of the best fixed setting, which is picked in hindsight, by
these same test errors.

    python -m benchmarks.choices --jobs 2         # about two hours of one core
    python -m benchmarks.choices --no-compute     # from existing cells
"""

from argparse import Namespace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import accuracy
from benchmarks.harness.cells import Benchmark
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record, published_cells
from benchmarks.harness.rows import DEFAULT, MEMBERS, rows_of
from benchmarks.harness.trained import SHAPE
from twinedge import TwinRegressor, data

SPLITS = range(10, 15)
RATE = 1e-2
# Those that the default compares, and one between those of relu.
DECAYS = {"relu": (0.03, 0.1, 0.3), "silu": (0.001, 0.01, 0.1)}
SETTINGS = [(activation, decay) for activation in DECAYS for decay in DECAYS[activation]]


class Job(NamedTuple):
    """One cell to compute."""

    activation: str
    decay: float
    name: str
    split: int

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.activation} {self.decay:g}/{self.name}/{self.split}"


def compute(job: Job) -> dict[str, Any]:
    """Train one cell."""
    rows = rows_of(job.name, job.split, Path())
    model = TwinRegressor(
        twins=MEMBERS,
        hidden=DEFAULT[MEMBERS],
        activation=job.activation,
        learning_rate=RATE,
        weight_decay=job.decay,
        teachers=None,
        random_state=0,
    )
    model.fit(*rows.train, validation=rows.validation)
    return {"rmse_test": float(f"{model.rmse(*rows.test):.6g}")}


def jobs(options: Namespace | None = None) -> list[Job]:
    """List all cells, split by split."""
    return [
        Job(activation, decay, name, split)
        for split, name, (activation, decay) in product(SPLITS, data.names(), SETTINGS)
    ]


def compare(cells: Cells, chosen: Cells) -> list[dict[str, Any]]:
    """Compare the default with the best fixed setting, on sets that have all cells."""
    lines = []
    for name in data.names():
        ours = [accuracy.Job(SHAPE, name, split).key for split in SPLITS]
        fixed = {
            f"{activation} {decay:g}": [Job(activation, decay, name, k).key for k in SPLITS]
            for activation, decay in SETTINGS
        }
        if {*ours} <= {*chosen} and {key for keys in fixed.values() for key in keys} <= {*cells}:
            means = {one: _mean(cells, keys) for one, keys in fixed.items()}
            best = min(means, key=lambda one: means[one])
            mean = _mean(chosen, ours)
            lines.append(
                {
                    "dataset": name,
                    "default": mean,
                    "best": best,
                    "ratio": mean / means[best],
                    "fixed": means,
                }
            )
    return lines


def _mean(cells: Cells, keys: list[str]) -> float:
    return float(np.mean([cells[key]["rmse_test"] for key in keys]))


def summarise(cells: Cells) -> dict[str, Any]:
    """Compare with the published accuracy."""
    return {"summary": compare(cells, published_cells("accuracy"))}


def show(record: Record) -> None:
    """Print the table."""
    print(f"{'set':5}{'default':>12}{'ratio':>8}  best fixed setting")
    for line in record["summary"]:
        print(f"{line['dataset']:5}{line['default']:12.5f}{line['ratio']:8.3f}  {line['best']}")


def pages(record: Record) -> Tables:
    """Return the table of docs/training.md."""
    header = ["set", "default", "best fixed setting", "which: activation, decay", "ratio"]
    rows = []
    for line in record["summary"]:
        numbers = f"{line['default']:.4g}", f"{min(line['fixed'].values()):.4g}"
        which = line["best"].replace(" ", ", ")
        rows.append([line["dataset"], *numbers, which, f"{line['ratio']:.2f}"])
    return {"docs/training.md": {"choices": markdown(header, rows)}}


BENCHMARK = Benchmark(
    "choices", __doc__, jobs, compute, summarise, show, needs=("accuracy",), cost=27, pages=pages
)

if __name__ == "__main__":
    BENCHMARK.main()
