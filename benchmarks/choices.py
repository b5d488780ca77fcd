"""Is the choice of settings better than a setting that never changes?

The default training chooses activation and weight decay anew for each table, and whether to learn
from teachers. Here, the same twins are trained with every fixed setting instead: one round on the
training rows, nothing chosen. On each set, the mean test error of the default (the cells of
accuracy.json) is compared with that of the best fixed setting, which is picked in hindsight, by
these same test errors. Every finished cell is one line in a file of --cells, so the run can be
stopped and resumed at any time.

    python benchmarks/choices.py --jobs 2         # about two hours of one core
    python benchmarks/choices.py --no-compute     # from existing cells
"""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from accuracy import RESULTS as ACCURACY
from accuracy import current_cells
from record import command_line, publish, read_cells
from rivals_rows import DEFAULT, MEMBERS, rows_of
from trained import TRAINING
from workers import write_cells

from twinedge import TwinRegressor, data

RESULTS = Path(__file__).parent / "results" / "choices.json"
SPLITS = range(10, 15)
RATE = 1e-2
# Those that the default compares, and one between them.
DECAYS = {"relu": (0.03, 0.1, 0.3), "silu": (0.001, 0.01, 0.1)}
SETTINGS = [(activation, decay) for activation in DECAYS for decay in DECAYS[activation]]

Errors = dict[str, float]


class Job(NamedTuple):
    """One cell to compute."""

    activation: str
    decay: float
    name: str
    split: int

    @property
    def key(self) -> str:
        """Everything that determines a cell, the version of the training first."""
        return f"{TRAINING}/{self.activation} {self.decay:g}/{self.name}/{self.split}"


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
    return {"cell": job.key, "rmse_test": float(f"{model.rmse(*rows.test):.6g}")}


def all_jobs() -> list[Job]:
    """List all cells, split by split."""
    return [
        Job(activation, decay, name, split)
        for split, name, (activation, decay) in product(SPLITS, data.names(), SETTINGS)
    ]


def known_cells(results: Path, folder: Path) -> Errors:
    """Read the cells of the result file, and of all files of lines in a folder."""
    found, wanted = read_cells(results, folder), {job.key for job in all_jobs()}
    errors = {key: found[key] for key in found if key in wanted}
    # In the result file a cell is its error alone.
    return {key: one["rmse_test"] if isinstance(one, dict) else one for key, one in errors.items()}


def summarise(cells: Errors, chosen: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare the default with the best fixed setting, on sets that have all cells."""
    shape = f"{MEMBERS}x{'-'.join(map(str, DEFAULT[MEMBERS]))}"
    lines = []
    for name in data.names():
        ours = [f"{TRAINING}/normal/{shape}/{name}/{split}" for split in SPLITS]
        fixed = {
            f"{activation} {decay:g}": [Job(activation, decay, name, k).key for k in SPLITS]
            for activation, decay in SETTINGS
        }
        if {*ours} <= {*chosen} and {key for keys in fixed.values() for key in keys} <= {*cells}:
            means = {one: float(np.mean([cells[k] for k in keys])) for one, keys in fixed.items()}
            best = min(means, key=lambda one: means[one])
            mean = float(np.mean([chosen[key]["rmse_test"] for key in ours]))
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


def main() -> None:
    """Fill in the missing cells, print the table, and last one line of JSON."""
    options = command_line(__doc__, RESULTS, Path("runs/choices")).parse_args()

    known = known_cells(options.results, options.cells)
    write_cells(options, compute, [job for job in all_jobs() if job.key not in known])
    cells = known_cells(options.results, options.cells)
    summary = summarise(cells, current_cells(ACCURACY, Path("runs/accuracy")))
    print(f"{'set':5}{'default':>12}{'ratio':>8}  best fixed setting")
    for line in summary:
        print(f"{line['dataset']:5}{line['default']:12.5f}{line['ratio']:8.3f}  {line['best']}")
    publish(options.results, ("tensorflow", "numpy"), summary=summary, cells=cells)


if __name__ == "__main__":
    main()
