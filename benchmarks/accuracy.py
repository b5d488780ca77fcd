"""How accurate are the twins on the paper's data sets and splits?

Trains each shape on each split with default settings. A cell has the test RMSE of the float model
(all anchors, symmetric), which is compared with the paper's tables; and that of the integers of a
pack with 32 anchors, with its interval score at 90 % and that of intervals of constant width. Every
finished cell is one line in a file of --cells, so the run can be stopped and resumed at any time,
and lines from other machines can be added.

    python benchmarks/accuracy.py --jobs 2
    python benchmarks/accuracy.py --splits 5 --datasets cs,yh --shapes 1x128-128
    python benchmarks/accuracy.py --no-compute              # from existing cells
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from intervals import measure, trained
from machine import machine
from record import command_line, publish, read_cells
from reproduction.paper_tables import ORDER, TABLES, printed
from rivals import RUNS
from scipy.stats import sem
from trained import TRAINING
from workers import write_cells

from twinedge import data
from twinedge.data.splitting import SPLITS

# Test RMSE in the paper: one twin network with all anchors, and the best of its neural methods.
NEURAL = ("ann_ensemble", "tnnr_ensemble", "knn_tnnr")
PAPER_TWIN = {name: printed("tnnr_ensemble", 1, name)[0] for name in ORDER}
PAPER_BEST = {
    name: min(mean for table in NEURAL for mean, _ in TABLES[table][name]) for name in ORDER
}
RESULTS = Path(__file__).parent / "results" / "accuracy.json"
SHAPE = "4x56-56"

Cells = dict[str, dict[str, Any]]


class Job(NamedTuple):
    """One cell to compute."""

    shape: str
    name: str
    split: int
    effort: str
    runs: Path

    @property
    def key(self) -> str:
        """Everything that determines a cell, the version of the training first."""
        return f"{TRAINING}/{self.effort}/{self.shape}/{self.name}/{self.split}"


def compute(job: Job) -> dict[str, Any]:
    """Train one cell, or load its run from the folder; return its results."""
    start = time.perf_counter()
    run = trained(job.runs, job.name, job.split, job.shape, job.effort)
    model = run.model
    return {
        "cell": job.key,
        "rmse_test": run.scores["rmse_test"],
        "rmse_val": model.validation_rmse_,
        "activation": model.activation_,
        "teaching": model.teaching_,
        "pack": measure(run),
        "seconds": round(time.perf_counter() - start, 1),
        "machine": machine(),
    }


def current_cells(results: Path, folder: Path) -> Cells:
    """Cells that were made by the present way to train."""
    found = read_cells(results, folder)
    return {key: cell for key, cell in found.items() if key.startswith(f"{TRAINING}/")}


def summarise(cells: Cells, effort: str) -> list[dict[str, Any]]:
    """Mean and standard error over the available splits, shape by shape and set by set."""
    lines = []
    start = f"{TRAINING}/{effort}/"
    shapes = dict.fromkeys(key.removeprefix(start).split("/")[0] for key in cells)
    for shape in sorted(shapes, reverse=True):
        for name in data.names():
            mine = [cells[key] for key in cells if key.startswith(f"{start}{shape}/{name}/")]
            if not mine:
                continue
            scores = [cell["rmse_test"] for cell in mine]
            packs = [cell["pack"] for cell in mine]
            ours, constant = (
                np.mean([pack[kind]["score"] for pack in packs]) for kind in ("ours", "constant")
            )
            taught = [cell["teaching"]["taught"] for cell in mine if cell["teaching"]]
            lines.append(
                {
                    "dataset": name,
                    "shape": shape,
                    "splits": len(scores),
                    "rmse_test": float(np.mean(scores)),
                    "standard_error": float(sem(scores)) if len(scores) > 1 else None,
                    "rmse_pack": float(np.mean([pack["rmse"] for pack in packs])),
                    "interval_score_to_constant": float(ours / constant),
                    "coverage": float(np.mean([pack["ours"]["coverage"] for pack in packs])),
                    "taught": sum(taught),
                    "paper_twin": PAPER_TWIN[name],
                    "paper_best": PAPER_BEST[name],
                }
            )
    return lines


def main() -> None:
    """Fill in the missing cells, print the table, and last one line of JSON."""
    parser = command_line(__doc__, RESULTS, Path("runs/accuracy"))
    parser.add_argument("--splits", type=int, default=SPLITS, help="at most (default 25)")
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--shapes", default=SHAPE, help="twins x hidden widths")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained runs are kept")
    options = parser.parse_args()

    known = current_cells(options.results, options.cells)
    wanted = (
        Job(shape, name, split, options.effort, options.runs)
        for shape in options.shapes.split(",")
        for split in range(options.splits)
        for name in options.datasets.split(",")
    )
    write_cells(options, compute, [job for job in wanted if job.key not in known])
    cells = current_cells(options.results, options.cells)
    summary = summarise(cells, options.effort)
    print(
        f"{'set':5}{'shape':12}{'splits':>7}{'test RMSE':>12}{'s.e.':>10}"
        f"{'paper twin':>12}{'paper best':>12}{'pack':>10}{'interval':>10}{'taught':>8}"
    )
    for line in summary:
        error = "-" if line["standard_error"] is None else f"{line['standard_error']:.5f}"
        print(
            f"{line['dataset']:5}{line['shape']:12}{line['splits']:7d}{line['rmse_test']:12.4f}"
            f"{error:>10}{line['paper_twin']:12.4f}{line['paper_best']:12.4f}"
            f"{line['rmse_pack']:10.4f}{line['interval_score_to_constant']:10.3f}"
            f"{line['taught']:8d}"
        )
    publish(options.results, ("tensorflow", "scikit-learn", "numpy"), summary=summary, cells=cells)


if __name__ == "__main__":
    main()
