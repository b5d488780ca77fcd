"""Which method should choose anchors, and when should another one take over?

Everything is measured on validation points; test points are not touched. Each cell is a default
training on one split of one of the paper's sets.

For each method: the validation error relative to that of all anchors, mean and worst, and the
relative spread (greedy on points it was not chosen on; random as the mean of eight draws). Then the
same error for each rule by which validation points may overrule the first choice: the points are
split in random halves, the rule decides on one half, and the other is scored.

    python -m benchmarks.anchors --jobs 2
    python -m benchmarks.anchors --datasets cs,yh --splits 1
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.cells import Benchmark
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.trained import RUNS, trained
from twinedge import data
from twinedge.anchors import METHODS, select
from twinedge.anchors.choice import PREFERENCE, preferred
from twinedge.anchors.methods import Candidates
from twinedge.anchors.pool import Evidence, Pool

COUNTS = (8, 32)
RULES = {"never": np.inf, "3 errors": 3.0, "2 errors": 2.0, "1 error": 1.0, "always": 0.0}
DRAWS, HALVES, SPLITS = 8, 20, 4


class Job(NamedTuple):
    """One cell to compute."""

    name: str
    split: int
    runs: Path = RUNS

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.name}/{self.split}"


def compute(job: Job) -> dict[str, Any]:
    """Try each method and each rule on one trained model."""
    run = trained(job.runs, job.name, job.split)
    found = {}
    for k in COUNTS:
        errors, spreads = measure(run.model, run.validation, k)
        found[str(k)] = {
            "error": {way: ratio(errors[way], errors["all"]) for way in METHODS},
            "spread": spreads,
            "overruled": {
                rule: float(np.mean(overruled(errors, clear))) for rule, clear in RULES.items()
            },
        }
    return found


def measure(
    model: Any, validation: tuple[Any, Any], k: int
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Squared errors ``(v,)`` of all anchors and of each method, and each relative spread."""
    X, y, twins = model.anchor_X_, model.anchor_y_, len(model.weights_)

    def scored(anchors: Any) -> tuple[np.ndarray, float]:
        estimates = model.estimates(validation[0], anchors=anchors)
        spread = float(np.sqrt(estimates.var(axis=1).mean()))
        return np.square(estimates.mean(axis=1) - validation[1]), spread

    errors, spreads = {}, {}
    errors["all"], everyone = scored("all")
    for name, method in METHODS.items():
        draws = [
            scored(select(X, y, k, name, model=model, validation=validation, twins=twins, seed=n))
            for n in range(DRAWS if name == "random" else 1)
        ]
        errors[name] = np.mean([squares for squares, _ in draws], axis=0)
        spreads[name] = float(np.mean([spread for _, spread in draws])) / everyone
        if method.needs_validation:
            evidence = Evidence.of(model, validation)
            candidates = Candidates.of(Pool.of(X, y, twins), k, 0, evidence)
            errors[name] = candidates.held_out_errors([k], evidence.folds(0))[0]
    return errors, spreads


def overruled(errors: dict[str, np.ndarray], clear: float) -> list[float]:
    """Error relative to all anchors, if a rule decides on the other half of the points."""
    ratios = []
    for seed in range(HALVES):
        order = np.random.default_rng(seed).permutation(len(errors["all"]))
        one, other = np.array_split(order, 2)
        winner = preferred({name: errors[name][one] for name in PREFERENCE}, clear)
        ratios.append(ratio(errors[winner][other], errors["all"][other]))
    return ratios


def ratio(squares: np.ndarray, of_all: np.ndarray) -> float:
    """Error relative to that of all anchors."""
    return float(np.sqrt(squares.mean() / of_all.mean()))


def summarise(cells: Cells) -> dict[str, Any]:
    """Return a line for each method and number of anchors, then for each rule."""
    lines = []
    for k in COUNTS:
        mine = [cell[str(k)] for cell in cells.values()]
        for way in METHODS if mine else ():
            spread = float(np.mean([one["spread"][way] for one in mine]))
            lines.append(_line(way, k, [one["error"][way] for one in mine]) | {"spread": spread})
        for rule in RULES if mine else ():
            errors = [one["overruled"][rule] for one in mine]
            lines.append(_line(f"overruled: {rule}", k, errors))
    return {"lines": lines}


def _line(what: str, k: int, errors: list[float]) -> dict[str, Any]:
    return {"what": what, "anchors": k, "mean": float(np.mean(errors)), "worst": max(errors)}


def show(record: Record) -> None:
    """Print the table."""
    print(f"{'what':22}{'anchors':>8}{'mean':>9}{'worst':>9}{'spread':>9}")
    for line in record["lines"]:
        spread = f"{line['spread']:9.3f}" if "spread" in line else ""
        print(
            f"{line['what']:22}{line['anchors']:8d}{line['mean']:9.4f}{line['worst']:9.4f}{spread}"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--splits", type=int, default=SPLITS, help="of each set (default 4)")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained runs are kept")


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, split by split."""
    return [
        Job(name, split, options.runs)
        for split in range(options.splits)
        for name in options.datasets.split(",")
    ]


BENCHMARK = Benchmark(
    "anchors", __doc__, jobs, compute, summarise, show, add_options=add_options, cost=150
)

if __name__ == "__main__":
    BENCHMARK.main()
