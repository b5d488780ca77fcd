"""How accurate are the twins on the paper's data sets and splits?

Trains each shape on each split with default settings and compares the mean test RMSE (all anchors,
symmetric) with the paper's tables. Every finished cell is kept in the result file, so the run can
be stopped at any time and started again:

    python benchmarks/accuracy.py --splits 10
    python benchmarks/accuracy.py --splits 5 --datasets cs,yh --shapes 4x64-64
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from machine import describe

from twinedge import TwinRegressor, data

# Test RMSE in the paper: one twin network with all anchors, and the best of its neural methods.
PAPER_TWIN = {
    "bc": 0.8140,
    "bh": 3.2897,
    "cs": 4.5385,
    "ee": 0.7071,
    "rcl": 0.0155,
    "tf": 0.0053,
    "wn": 0.6985,
    "wsb": 0.0239,
    "yh": 0.5798,
}
PAPER_BEST = {
    "bc": 0.7438,
    "bh": 3.2232,
    "cs": 4.2791,
    "ee": 0.6468,
    "rcl": 0.0130,
    "tf": 0.0021,
    "wn": 0.6487,
    "wsb": 0.0224,
    "yh": 0.5009,
}
RESULTS = Path(__file__).parent / "results" / "accuracy.json"


def measure(name: str, split: int, shape: str, effort: str) -> dict[str, object]:
    """Train one cell; returns its scores and what was chosen."""
    twins, hidden = shape.split("x")
    table, rows = data.load(name), data.splits(name, split)
    model = TwinRegressor(
        twins=int(twins),
        hidden=tuple(map(int, hidden.split("-"))),
        effort=effort,
        random_state=0,
    )
    start = time.perf_counter()
    validation = table.X[rows.val], table.y[rows.val]
    model.fit(table.X[rows.train], table.y[rows.train], validation)
    seconds = time.perf_counter() - start
    error = model.predict(table.X[rows.test]) - table.y[rows.test]
    return {
        "rmse_test": float(np.sqrt(np.mean(error**2))),
        "rmse_val": model.validation_rmse_,
        "activation": model.activation_,
        "learning_rate": model.learning_rate_,
        "weight_decay": model.weight_decay_,
        "seconds": round(seconds, 1),
    }


def summarise(cells: dict[str, dict[str, object]], shape: str) -> list[dict[str, object]]:
    """Mean and standard error over the splits that are there, set by set."""
    lines = []
    for name in data.names():
        scores = [
            cell["rmse_test"] for key, cell in cells.items() if key.startswith(f"{shape}/{name}/")
        ]
        if scores:
            lines.append(
                {
                    "dataset": name,
                    "shape": shape,
                    "splits": len(scores),
                    "rmse_test": float(np.mean(scores)),
                    "standard_error": standard_error(scores) if len(scores) > 1 else None,
                    "paper_twin": PAPER_TWIN[name],
                    "paper_best": PAPER_BEST[name],
                }
            )
    return lines


def standard_error(values: list[float]) -> float:
    """Of the mean of at least two values."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5)


def compare(cells: dict[str, dict[str, object]], first: str, second: str) -> list[str]:
    """How much higher the error of the second shape is, split by split, set by set."""
    lines = []
    for name in data.names():
        keys = [(f"{first}/{name}/{split}", f"{second}/{name}/{split}") for split in range(25)]
        more = [
            cells[b]["rmse_test"] - cells[a]["rmse_test"] for a, b in keys if {a, b} <= {*cells}
        ]
        if len(more) > 1:
            mean = np.mean(more)
            lines.append(f"{name:5}{len(more):7d}{mean:+12.4f}{mean / standard_error(more):+18.1f}")
    return lines


def main() -> None:
    """Fill in the missing cells, print the table, and last one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=10, help="how many of the 25 (default 10)")
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--shapes", default="1x128-128,4x64-64", help="twins x hidden widths")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    record = json.loads(options.results.read_text()) if options.results.exists() else {}
    cells = record.setdefault("cells", {})
    for split in range(options.splits):
        for shape in options.shapes.split(","):
            for name in options.datasets.split(","):
                key = f"{shape}/{name}/{split}"
                if key in cells:
                    continue
                cells[key] = measure(name, split, shape, options.effort)
                print(key, json.dumps(cells[key]), file=sys.stderr, flush=True)
                keep(options.results, record, cells)
    summary = keep(options.results, record, cells)
    print(
        f"{'set':5}{'shape':12}{'splits':>7}{'test RMSE':>12}{'s.e.':>10}"
        f"{'paper twin':>12}{'paper best':>12}"
    )
    for line in summary:
        error = "-" if line["standard_error"] is None else f"{line['standard_error']:.5f}"
        print(
            f"{line['dataset']:5}{line['shape']:12}{line['splits']:7d}{line['rmse_test']:12.4f}"
            f"{error:>10}{line['paper_twin']:12.4f}{line['paper_best']:12.4f}"
        )
    shapes = list(dict.fromkeys(line["shape"] for line in summary))
    for second in shapes[1:]:
        print(f"\n{second} less {shapes[0]}, split by split")
        print(f"{'set':5}{'splits':>7}{'test RMSE':>12}{'standard errors':>18}")
        print("\n".join(compare(cells, shapes[0], second)))
    print(json.dumps({"machine": record["machine"], "summary": summary}))


def keep(
    path: Path, record: dict[str, object], cells: dict[str, dict[str, object]]
) -> list[dict[str, object]]:
    """Write the result file, whole or not at all; returns the summary in it."""
    shapes = dict.fromkeys(key.split("/")[0] for key in cells)
    summary = [line for shape in shapes for line in summarise(cells, shape)]
    record["machine"] = describe("tensorflow", "scikit-learn", "numpy")
    record["summary"] = summary
    beside = path.with_suffix(".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.replace(path)
    return summary


if __name__ == "__main__":
    main()
