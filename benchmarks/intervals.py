"""Are the intervals of a pack narrower than those of others that keep the same promise?

The intervals of the default pack on the paper's nine sets, at 90 %, are those of accuracy.json:
calibrated on the validation rows, and scored on the test rows by width plus 20 times the miss. Here
they are compared, on the first splits, with

    constant    intervals of constant width around the same predictions
    spread      intervals from the spread of the estimates alone
    networks    four ordinary networks in the bytes of the pack, by their disagreement,
                calibrated by MAPIE
    boosting    quantile gradient boosting, conformalised by MAPIE

    python -m benchmarks.intervals --jobs 2
    python -m benchmarks.intervals --splits 2 --datasets cs,yh
"""

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor

from benchmarks import accuracy
from benchmarks.harness.cells import PACKAGES, Benchmark
from benchmarks.harness.interval_scores import COVERAGE, score_intervals
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record, published_cells
from benchmarks.harness.rows import ANCHORS, MEMBERS, room, rows_of
from benchmarks.harness.trained import SHAPE
from twinedge import data
from twinedge.budget import Model, ann_bytes
from twinedge.budget.model import largest

SPLITS = 10
KINDS = ("networks", "boosting")
RIVALS = ("constant", "spread", *KINDS)


class Job(NamedTuple):
    """One cell to compute."""

    kind: str
    name: str
    split: int

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.kind}/{self.name}/{self.split}"


class Stored(RegressorMixin, BaseEstimator):
    """Maps row numbers to stored predictions, an estimator for MAPIE."""

    def __init__(self, answers: np.ndarray) -> None:
        self.answers = answers

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Stored":
        """Know already."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Look up."""
        return self.answers[np.asarray(X)[:, 0].astype(int)]


def compute(job: Job) -> dict[str, Any]:
    """Fit and score one rival on one split."""
    warnings.simplefilter("ignore")
    rival = {"networks": networks, "boosting": boosting}[job.kind]
    return rival(job.name, job.split)


def networks(name: str, split: int) -> dict[str, Any]:
    """Four ordinary networks in the bytes of the default pack, calibrated by MAPIE."""
    from mapie.conformity_scores import ResidualNormalisedScore
    from mapie.regression import SplitConformalRegressor

    from twinedge import AnnRegressor, EnsembleRegressor

    rows = rows_of(name, split, Path())
    features, known = rows.train[0].shape[1], len(rows.validation[1])
    width = largest(lambda one: _bytes(features, one) <= room("20", features), 256)
    four = EnsembleRegressor(AnnRegressor(hidden=(width, width)), n=MEMBERS, random_state=0)
    four.fit(*rows.train, validation=rows.validation)
    points = np.concatenate([rows.validation[0], rows.test[0]])
    estimates = np.stack([member.predict(points) for member in four.members_])
    mean, scale = estimates.mean(axis=0), estimates.std(axis=0)
    scale = scale + np.median(scale[:known])
    seen, queries = np.split(np.arange(len(mean), dtype=float)[:, None], [known])
    score = ResidualNormalisedScore(residual_estimator=Stored(scale), prefit=True)
    wrapped = SplitConformalRegressor(
        Stored(mean), confidence_level=COVERAGE, conformity_score=score, prefit=True
    )
    _, ends = wrapped.conformalize(seen, rows.validation[1]).predict_interval(queries)
    return {**score_intervals(ends[:, 0, 0], ends[:, 1, 0], rows.test[1]), "neurons": width}


def _bytes(features: int, width: int) -> int:
    return ann_bytes(Model.of(features, (width, width), ANCHORS, activation="silu"), MEMBERS)


def boosting(name: str, split: int) -> dict[str, Any]:
    """Quantile gradient boosting, conformalised by MAPIE on the validation rows."""
    from mapie.regression import ConformalizedQuantileRegressor

    rows = rows_of(name, split, Path())
    levels = ((1 - COVERAGE) / 2, 1 - (1 - COVERAGE) / 2, 0.5)
    models = [
        GradientBoostingRegressor(
            loss="quantile",
            alpha=alpha,
            n_estimators=200,
            max_depth=3,
            learning_rate=0.05,
            subsample=0.5,
            random_state=0,
        ).fit(*rows.train)
        for alpha in levels
    ]
    wrapped = ConformalizedQuantileRegressor(models, confidence_level=COVERAGE, prefit=True)
    wrapped.conformalize(*rows.validation)
    X, y = rows.test
    _, ends = wrapped.predict_interval(X)
    return score_intervals(ends[:, 0, 0], ends[:, 1, 0], y)


def compare(cells: Cells, packs: Cells) -> dict[str, Any]:
    """Means over the splits that all have, set by set, and the geometric mean over the sets.

    ``packs`` are cells of accuracy.
    """
    lines = []
    for name in data.names():
        splits = [
            split
            for split in range(accuracy.SPLITS)
            if accuracy.Job(SHAPE, name, split).key in packs
            and all(Job(kind, name, split).key in cells for kind in KINDS)
        ]
        if not splits:
            continue
        mine = [packs[accuracy.Job(SHAPE, name, split).key]["pack"] for split in splits]
        scores = {
            kind: [cells[Job(kind, name, split).key]["score"] for split in splits] for kind in KINDS
        } | {kind: [one[kind]["score"] for one in mine] for kind in ("constant", "spread")}
        ours = np.mean([one["ours"]["score"] for one in mine])
        lines.append(
            {
                "dataset": name,
                "splits": len(splits),
                "coverage": float(np.mean([one["ours"]["coverage"] for one in mine])),
                "width": float(np.mean([one["ours"]["width"] for one in mine])),
                "rank": float(np.mean([one["rank"] for one in mine])),
                "rmse_ratio": float(
                    np.mean([one["rmse"] for one in mine])
                    / np.mean([one["rmse_without"] for one in mine])
                ),
                **{f"to_{kind}": float(ours / np.mean(scores[kind])) for kind in RIVALS},
            }
        )
    means = {
        f"to_{kind}": float(np.exp(np.mean([np.log(line[f"to_{kind}"]) for line in lines])))
        for kind in RIVALS
        if lines
    }
    return {"sets": lines, "geometric_mean": means}


def summarise(cells: Cells) -> dict[str, Any]:
    """Compare the published packs with their rivals."""
    return {"summary": {SHAPE: compare(cells, published_cells("accuracy"))}}


def show(record: Record) -> None:
    """Print a table for each shape."""
    for shape, found in record["summary"].items():
        print(f"{shape}: interval score at 90 %, relative to rivals")
        print(f"{'set':5}{'splits':>7}{'coverage':>10}{'rank':>7}", end="")
        print("".join(f"{kind:>10}" for kind in RIVALS))
        for line in found["sets"]:
            parts = "".join(f"{line.get(f'to_{kind}', np.nan):10.3f}" for kind in RIVALS)
            print(
                f"{line['dataset']:5}{line['splits']:7d}{line['coverage']:10.3f}"
                f"{line['rank']:7.2f}{parts}"
            )
        means = found["geometric_mean"]
        print(f"{'mean':29}" + "".join(f"{means.get(f'to_{one}', np.nan):10.3f}" for one in RIVALS))


def pages(record: Record) -> Tables:
    """Return the table of docs/intervals.md."""
    shapes, columns = record["summary"], ("constant", "networks", "boosting")
    header = ["set"]
    for shape in shapes:
        header += [f"{shape}: covered", *(f"to {one}" for one in columns), "rank"]
    rows = []
    for lines in zip(*(one["sets"] for one in shapes.values()), strict=True):
        row = [lines[0]["dataset"]]
        for line in lines:
            scores = (f"{line[f'to_{one}']:.3f}" for one in columns)
            row += [f"{line['coverage']:.3f}", *scores, f"{line['rank']:.2f}"]
        rows.append(row)
    last = ["geometric mean"]
    for one in shapes.values():
        last += ["", *(f"{one['geometric_mean'][f'to_{name}']:.3f}" for name in columns), ""]
    return {"docs/intervals.md": {"intervals": markdown(header, [*rows, last])}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--splits", type=int, default=SPLITS, help="of the 25 (default 10)")
    parser.add_argument("--datasets", default=",".join(data.names()))


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, split by split."""
    return [
        Job(kind, name, split)
        for split in range(options.splits)
        for name in options.datasets.split(",")
        for kind in KINDS
    ]


BENCHMARK = Benchmark(
    "intervals",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=(*PACKAGES, "mapie"),
    add_options=add_options,
    needs=("accuracy",),
    trained=lambda key: not key.startswith("boosting/"),
    valid=lambda key, cell, options: key.split("/")[0] in KINDS,
    cost=48,
    pages=pages,
)

if __name__ == "__main__":
    BENCHMARK.main()
