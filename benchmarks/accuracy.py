"""How accurate are the twins on the paper's data sets and splits?

Trains each shape on each split with default settings. A cell has the test RMSE of the float model
(all anchors, symmetric), which is compared with the paper's tables; and that of the integers of a
pack with 32 anchors, with its interval score at 90 % and that of intervals of constant width.

    python -m benchmarks.accuracy --jobs 2
    python -m benchmarks.accuracy --splits 5 --datasets cs,yh --shapes 1x128-128
    python -m benchmarks.accuracy --no-compute              # from existing cells
"""

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import sem

from benchmarks.harness.cells import Benchmark
from benchmarks.harness.interval_scores import measure
from benchmarks.harness.pages import Tables, markdown, newer_cells
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.trained import RUNS, SHAPE, trained
from benchmarks.reproduction.paper_tables import ORDER, TABLES, printed
from twinedge import data
from twinedge.data.splitting import SPLITS

# Test RMSE in the paper: one twin network with all anchors, and the best of its neural methods.
NEURAL = ("ann_ensemble", "tnnr_ensemble", "knn_tnnr")
PAPER_TWIN = {name: printed("tnnr_ensemble", 1, name)[0] for name in ORDER}
PAPER_BEST = {
    name: min(mean for table in NEURAL for mean, _ in TABLES[table][name]) for name in ORDER
}


class Job(NamedTuple):
    """One cell to compute."""

    shape: str
    name: str
    split: int
    effort: str = "normal"
    runs: Path = RUNS

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.effort}/{self.shape}/{self.name}/{self.split}"


def compute(job: Job) -> dict[str, Any]:
    """Train one cell, or load its run from the folder; return its results."""
    run = trained(job.runs, job.name, job.split, job.shape, job.effort)
    model = run.model
    return {
        "rmse_test": run.scores["rmse_test"],
        "rmse_val": model.validation_rmse_,
        "activation": model.activation_,
        "teaching": model.teaching_,
        "pack": measure(run),
    }


def summarise(cells: Cells) -> dict[str, Any]:
    """Mean and standard error over the available splits, shape by shape and set by set."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for key, cell in cells.items():
        effort, shape, name, _ = key.split("/")
        found.setdefault((effort, shape, name), []).append(cell)
    order = list(data.names())
    lines = []
    for effort, shape, name in sorted(found, key=lambda at: (*at[:2], order.index(at[2]))):
        mine = found[effort, shape, name]
        scores, packs = [cell["rmse_test"] for cell in mine], [cell["pack"] for cell in mine]
        ours, constant = (
            np.mean([pack[kind]["score"] for pack in packs]) for kind in ("ours", "constant")
        )
        taught = [cell["teaching"]["taught"] for cell in mine if cell["teaching"]]
        lines.append(
            {
                "dataset": name,
                "shape": shape,
                **({} if effort == "normal" else {"effort": effort}),
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
    return {"summary": lines}


def show(record: Record) -> None:
    """Print the table."""
    print(
        f"{'set':5}{'shape':12}{'splits':>7}{'test RMSE':>12}{'s.e.':>10}"
        f"{'paper twin':>12}{'paper best':>12}{'pack':>10}{'interval':>10}{'taught':>8}"
    )
    for line in record["summary"]:
        error = "-" if line["standard_error"] is None else f"{line['standard_error']:.5f}"
        print(
            f"{line['dataset']:5}{line['shape']:12}{line['splits']:7d}{line['rmse_test']:12.4f}"
            f"{error:>10}{line['paper_twin']:12.4f}{line['paper_best']:12.4f}"
            f"{line['rmse_pack']:10.4f}{line['interval_score_to_constant']:10.3f}"
            f"{line['taught']:8d}"
        )


def pages(record: Record) -> Tables:
    """Return the table of docs/evidence.md, of the default shape, and what is newer than that."""
    header = [
        "set",
        "all anchors",
        "pack",
        "intervals",
        "coverage",
        "paper, one twin",
        "paper, best",
    ]
    rows = []
    for line in record["summary"]:
        if line["shape"] == SHAPE and "effort" not in line:
            error = line["standard_error"]
            digits = 4 if not error else min(5, max(0, 1 - math.floor(math.log10(error))))
            numbers = [f"{line[name]:.{digits}f}" for name in ("rmse_test", "rmse_pack")]
            numbers[0] += f" ± {error:.{digits}f}" if error else ""
            score, paper = line["interval_score_to_constant"], ("paper_twin", "paper_best")
            numbers += [
                f"{score:.2f}",
                f"{line['coverage']:.0%}",
                *(f"{line[one]:.4f}" for one in paper),
            ]
            rows.append([line["dataset"], *numbers])
    newer = newer_cells(record, _set_of)
    return {
        "docs/evidence.md": {"accuracy": markdown(header, rows)},
        "docs/training.md": {"newer accuracy": newer},
    }


def _set_of(key: str) -> str | None:
    """Return the set of a cell of the default training."""
    effort, shape, name, _ = key.split("/")
    return name if (effort, shape) == ("normal", SHAPE) else None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--splits", type=int, default=SPLITS, help="at most (default 25)")
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--shapes", default=SHAPE, help="twins x hidden widths")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained runs are kept")


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, split by split."""
    return [
        Job(shape, name, split, options.effort, options.runs)
        for shape in options.shapes.split(",")
        for split in range(options.splits)
        for name in options.datasets.split(",")
    ]


BENCHMARK = Benchmark(
    "accuracy", __doc__, jobs, compute, summarise, show, add_options=add_options, pages=pages
)

if __name__ == "__main__":
    BENCHMARK.main()
