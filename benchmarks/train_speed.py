"""How much sooner is our trainer as good as the paper's recipe?

Trains the paper's twin in Keras until its own rule stops it, then ours until its validation RMSE
(all anchors, symmetric) is at or below the recipe's; looking after it every 500 steps counts as
training time, as does compiling. The recipe's settings are fixed, so ours are too. They were tried
on split 1 of cs, not on split 0. One process, one data set, one seed; test rows are not read.

    python benchmarks/train_speed.py
    python benchmarks/train_speed.py --dataset yh --split 3
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
from machine import describe

from twinedge import data
from twinedge.learn.examples import Examples
from twinedge.learn.network import Architecture
from twinedge.learn.pairwise import differences
from twinedge.learn.scaling import Scaling
from twinedge.learn.trainer import Stack
from twinedge.reproduce.published import Points, published_twin

RESULTS = Path(__file__).parent / "results" / "train_speed.json"

LEARNING_RATE, WEIGHT_DECAY, STEPS, BATCH = 0.01, 0.03, 5_000, 64  # of our training


def run_paper(train: Points, validation: Points, seed: int) -> dict[str, object]:
    """Train by the paper's recipe, where text and published code differ by the code."""
    start = time.perf_counter()
    model = published_twin(train, validation, seed)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rmse_val": model.rmse(*validation), "steps": model.steps_}


def run_ours(train: Points, validation: Points, seed: int, goal: float) -> dict[str, object]:
    """Train until the goal is met, or to the end."""
    start = time.perf_counter()
    scaling = Scaling.of(*train)
    x, y = scaling.features(train[0]), scaling.target(train[1])
    held = scaling.features(validation[0])
    architecture = Architecture(2 * x.shape[1], (128, 128), "relu")
    stack = Stack(
        architecture,
        Examples.pairs(x, y, np.arange(len(y), dtype=np.int32)[None]),
        learning_rate=LEARNING_RATE,
        weight_decays=[WEIGHT_DECAY],
        steps=STEPS,
        batch=BATCH,
        seeds=[seed],
        seed=seed,
    )
    rmse = math.inf
    while rmse > goal and not stack.finished:
        stack.advance()
        blocks = differences(architecture, stack.average(), held[None], x[None])
        scaled = (np.concatenate(list(blocks), axis=1)[0] + y).mean(axis=1, dtype=np.float64)
        error = scaled * scaling.y_scale + scaling.y_mean - validation[1]
        rmse = float(np.sqrt(np.mean(error**2)))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rmse_val": rmse, "steps": stack.step, "reached": rmse <= goal}


def main() -> None:
    """Run both, print the comparison, and last one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="cs", choices=data.names())
    parser.add_argument("--split", type=int, default=0, help="0 to 24 (default 0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    table, rows = data.load(options.dataset), data.splits(options.dataset, options.split)
    train, held = ((table.X[part], table.y[part]) for part in (rows.train, rows.val))
    print("the paper's recipe, several minutes ...", file=sys.stderr, flush=True)
    paper = run_paper(train, held, options.seed)
    print(json.dumps(paper), file=sys.stderr, flush=True)
    ours = run_ours(train, held, options.seed, paper["rmse_val"])
    print(json.dumps(ours), file=sys.stderr, flush=True)

    notes = []
    if not ours["reached"]:
        notes.append("ours did not get as good as the recipe: there is no ratio")
    if load is not None and load > 0.5:
        notes.append(f"the machine was busy at the start (load {load:.1f}): times are unreliable")
    ratio = paper["seconds"] / ours["seconds"] if ours["reached"] else None
    result = {
        "dataset": options.dataset,
        "split": options.split,
        "seed": options.seed,
        "paper_seconds": round(paper["seconds"], 2),
        "paper_steps": paper["steps"],
        "paper_rmse_val": paper["rmse_val"],
        "ours_seconds": round(ours["seconds"], 2),
        "ours_rmse_val": ours["rmse_val"],
        "ours_steps": ours["steps"],
        "ours_reached": ours["reached"],
        "ratio": None if ratio is None else round(ratio, 2),
        "load_at_start": load,
        "notes": notes,
        "machine": describe("tensorflow", "keras", "scikit-learn", "numpy"),
    }
    keep(options.results, result)

    print(f"{options.dataset}, split {options.split}, seed {options.seed}")
    print(f"{'':16}{'seconds':>10}{'validation RMSE':>18}{'steps':>10}")
    for name, one in (("paper", paper), ("ours", ours)):
        print(f"{name:16}{one['seconds']:10.1f}{one['rmse_val']:18.4f}{one['steps']:10,}")
    print(f"{'ratio':16}" + (f"{'-':>10}" if ratio is None else f"{ratio:10.1f}"))
    for note in notes:
        print("Note:", note)
    print(json.dumps(result))


def keep(path: Path, result: dict[str, object]) -> None:
    """Add to the result file, written whole or not at all; one entry to a comparison."""
    record = json.loads(path.read_text()) if path.exists() else {}
    record["/".join(str(result[key]) for key in ("dataset", "split", "seed"))] = result
    beside = path.with_suffix(".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.replace(path)


if __name__ == "__main__":
    main()
