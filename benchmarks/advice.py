"""Does ``twinedge check`` name the model that wins?

Every cell checks the training rows of one split of a table, and fits the models that it compares to
measure their errors on test rows. The error of the twin there is that of a default training, from
the stored cells of accuracy.py and rivals.py. A model is named rightly if no other is better on the
test rows by more than the noise of the difference: 1.645 times its standard deviation over the
splits of the table. Beside it is the former ``check``: three folds, one network of 128-128
after 2,000 steps, and the best of the models that it called better.

    python -m benchmarks.advice --jobs 2
    python -m benchmarks.advice --datasets cs,wn --splits 3
    python -m benchmarks.advice --no-compute              # from existing cells
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import accuracy
from benchmarks.harness.cells import Benchmark
from benchmarks.harness.record import Cells, Record, published_cells
from benchmarks.harness.rows import LONG, LONG_SPLITS, TABLES, Rows, rows_of
from benchmarks.harness.trained import SHAPE
from twinedge import data
from twinedge.data.source import Source
from twinedge.data.splitting import SPLITS, Split
from twinedge.evaluation.small_trees import ROOM
from twinedge.evaluation.verdict import LARGE, Rival, verdict

TUNING_SPLITS = 11  # the verdict's limits were chosen on these
BEFORE_SPLITS = 2  # of each of the paper's sets: the earlier check takes minutes
NOISE = 1.645  # standard deviations


class Job(NamedTuple):
    """One cell to compute."""

    kind: str
    table: str
    split: int
    tables: Path

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.kind}/{self.table}/{self.split}"


def compute(job: Job) -> dict[str, Any]:
    """Check one split, as now or as before."""
    rows = rows_of(job.table, job.split, job.tables)
    return _check(rows) if job.kind == "check" else _before(rows)


def _check(rows: Rows) -> dict[str, Any]:
    from twinedge.evaluation.rivals import RIVALS, fit_rival
    from twinedge.evaluation.suitability import suitability
    from twinedge.scoring.scores import rmse

    parts = rows.train, rows.validation, rows.test
    ends = np.cumsum([0, *(len(y) for _, y in parts)])
    source = Source(
        rows.name,
        *(np.concatenate(one) for one in zip(*parts, strict=True)),
        rows.encoding,
        rows.target_name,
        Split(*(np.arange(*ends[k : k + 2]) for k in range(3))),
        rows.split,
    )
    found = suitability(source, n_jobs=1)
    X, y = rows.test
    test = {}
    for name in RIVALS:
        predict = fit_rival(name, rows.train, rows.validation)
        assert predict is not None  # the default room is enough for a tree
        test[name] = rmse(predict(X), y)
    return {
        "rows": found.rows,
        "twin": found.twin,
        "rivals": found.rivals,
        "test": test,
    }


def _before(rows: Rows) -> dict[str, Any]:
    from benchmarks.reproduction.pair_gain import pair_gain

    X, y = (np.concatenate(one) for one in zip(rows.train, rows.validation, strict=True))
    found = pair_gain(X, y)
    return {"twin": found.twin, "rivals": found.rivals}


def named(cell: dict[str, Any], kind: str, *, small: bool = False) -> str | None:
    """Return the model that a cell names as the best, None if it is undecided."""
    rivals = {
        name: Rival(*one)
        for name, one in cell["rivals"].items()
        if not (small and name in LARGE) and name != "networks"
    }
    if kind == "check":
        return verdict(cell["twin"], rivals, cell["rows"], ROOM).best
    better = [name for name, one in rivals.items() if one.better]
    return min(better, key=lambda name: rivals[name].rmse, default="twin")


def test_errors(cells: Cells) -> dict[tuple[str, int], dict[str, float]]:
    """Errors of all models on the test rows of each table and split, where the twin's is known."""
    trained, long = published_cells("accuracy"), published_cells("rivals")
    found = {}
    for key, cell in cells.items():
        kind, table, number = key.split("/")
        split = int(number)
        twin = (
            long.get(f"twins/20/{table}/{split}")
            if table in LONG
            else trained.get(accuracy.Job(SHAPE, table, split).key)
        )
        if kind == "check" and twin is not None:
            found[table, split] = {"twin": twin["rmse_test"], **cell["test"]}
    return found


def outcome(
    name: str | None,
    errors: dict[tuple[str, int], dict[str, float]],
    at: tuple[str, int],
    models: list[str],
) -> str:
    """Say whether a model was named rightly, among some models."""
    if name is None:
        return "undecided"
    best = min(models, key=lambda one: errors[at][one])
    if name == best:
        return "right"
    behind = [one[name] - one[best] for (table, _), one in errors.items() if table == at[0]]
    noise = NOISE * np.std(behind, ddof=1) if len(behind) > 1 else 0.0
    return "right" if errors[at][name] - errors[at][best] <= noise else "wrong"


def summarise(cells: Cells) -> dict[str, Any]:
    """Count how often each kind of check was right."""
    errors = test_errors(cells)
    counts: dict[str, Counter[str]] = {}
    tables: dict[str, Counter[str]] = {}
    for key, cell in cells.items():
        kind, table, split = key.split("/")
        at = table, int(split)
        if at not in errors:
            continue
        titles = {kind: False, f"{kind}, of a pack's size": True}
        if at[1] >= TUNING_SPLITS:
            titles |= {f"{title}, later splits": small for title, small in titles.items()}
        for title, small in titles.items():
            models = [one for one in errors[at] if not (small and one in LARGE)]
            found = outcome(named(cell, kind, small=small), errors, at, models)
            counts.setdefault(title, Counter())[found] += 1
            if title == "check":
                tables.setdefault(table, Counter())[found] += 1
    shares = {
        title: {
            "cells": sum(one.values()),
            **{word: one[word] / sum(one.values()) for word in ("right", "undecided", "wrong")},
        }
        for title, one in counts.items()
    }
    seconds = [cell["seconds"] for key, cell in cells.items() if key.startswith("check/")]
    median = float(np.median(seconds)) if seconds else None
    return {"summary": {"shares": shares, "tables": tables, "median_seconds": median}}


def show(record: Record) -> None:
    """Print how often each kind of check was right, and on which tables."""
    summary = record["summary"]
    print(f"later splits: from {TUNING_SPLITS} on; the limits were chosen on those before")
    print(f"{'':38}{'cells':>8}{'right':>8}{'undecided':>11}{'wrong':>8}")
    for title, one in summary["shares"].items():
        numbers = f"{one['right']:8.1%}{one['undecided']:11.1%}{one['wrong']:8.1%}"
        print(f"{title:38}{one['cells']:8d}{numbers}")
    for table, one in summary["tables"].items():
        right, undecided, wrong = (one.get(word, 0) for word in ("right", "undecided", "wrong"))
        print(f"{table:38}{sum(one.values()):8d}{right:8d}{undecided:11d}{wrong:8d}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--splits", type=int, default=SPLITS, help="at most (default 25)")
    parser.add_argument("--datasets", default=",".join([*data.names(), *LONG]))
    parser.add_argument("--tables", type=Path, default=TABLES, help="folder of long tables")


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells: today's check first."""
    wanted = [
        Job("check", name, split, options.tables)
        for name in options.datasets.split(",")
        for split in range(min(options.splits, LONG_SPLITS if name in LONG else SPLITS))
    ]
    before = [job for job in wanted if job.table not in LONG and job.split < BEFORE_SPLITS]
    return wanted + [job._replace(kind="before") for job in before]


BENCHMARK = Benchmark(
    "advice",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    add_options=add_options,
    needs=("accuracy", "rivals"),
)

if __name__ == "__main__":
    BENCHMARK.main()
