"""How long does a run of thousands of rows take to become a pack?

Makes a table of 8 features, trains a network of the usual shape on it for a few steps, and runs
``twinedge export RUN --formats twin`` in a process of its own, several times. How well the network
has learnt does not change the time. The least time counts, as everything else on a machine only
adds to it; seconds of all cores together tell how busy it was.

    python benchmarks/export_speed.py
    python benchmarks/export_speed.py --rows 20000 --repeat 1
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from record import publish

from twinedge import fit_csv

RESULTS = Path(__file__).parent / "results" / "export_speed.json"
FEATURES, TRAINING = 8, 0.7  # share of the rows that are trained on
STEPS = 300


def write_table(path: Path, rows: int) -> None:
    """Write a smooth function of some features with noise, ``rows`` rows to train on."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (round(rows / TRAINING), FEATURES))
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] ** 2 + x[:, 4]
    y += 0.1 * rng.normal(size=len(y)) * (1 + np.abs(x[:, 5]))
    names = ",".join([*(f"x{k}" for k in range(1, FEATURES + 1)), "y"])
    np.savetxt(path, np.column_stack([x, y]), "%.6g", ",", header=names, comments="")


def seconds(run: Path, out: Path) -> tuple[float, float]:
    """Export a run once: seconds on the clock, and of all cores."""
    words = [sys.executable, "-m", "twinedge", "export", run, "--formats", "twin", "-o", out]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([*words, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="to train on")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory() as room:
        table, run = Path(room) / "table.csv", Path(room) / "run"
        write_table(table, options.rows)
        done = fit_csv(table, target="y", run=run, steps=STEPS, random_state=0)
        rows = len(done.model.anchor_y_)
        taken = []
        for count in range(options.repeat):
            taken.append(seconds(run, Path(room) / f"out{count}"))
            print(f"{taken[-1][0]:.1f} s, {taken[-1][1]:.1f} s of cores", file=sys.stderr)
    clock, cores = min(taken)
    publish(
        RESULTS,
        ("numpy", "scikit-learn"),
        rows=rows,
        seconds=round(clock, 2),
        core_seconds=round(cores, 2),
        repeats=options.repeat,
    )


if __name__ == "__main__":
    main()
