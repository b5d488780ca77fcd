"""Do intervals keep their promise, and are they narrow? Nine sets, from the integers of the pack.

Each shape is trained on each split with default settings, exported with 32 anchors and calibrated
on the validation rows; coverage, width and interval score (width plus 20 times the miss) at 90 %
are measured on the test rows, and compared with

    constant    intervals of constant width around the same predictions
    spread      intervals from the spread of the estimates alone
    networks    four ordinary networks in the bytes of one 128-128 twin, by their disagreement,
                calibrated by MAPIE
    boosting    quantile gradient boosting, conformalised by MAPIE

Trained runs are kept in a folder and results in a file, so the run can be stopped and resumed at
any time; runs from other machines can be added.

    python benchmarks/intervals.py --splits 10
    python benchmarks/intervals.py --splits 2 --datasets cs,yh --shapes 4x64-64
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from record import command_line, write_record
from rivals import RUNS, rows_of
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor
from trained import fit_or_load, packed

from twinedge import AnnRegressor, EnsembleRegressor, data, scoring
from twinedge.budget import Model, ann_bytes
from twinedge.budget.model import twin_bytes
from twinedge.run_folder import Run
from twinedge.runtime import reference
from twinedge.scoring.calibration import interval_score, quantile
from twinedge.scoring.scores import rank_correlation
from twinedge_export.quantise import quantise

RESULTS = Path(__file__).parent / "results" / "intervals.json"
ANCHORS, COVERAGE, LEVEL = 32, 0.9, 900
RIVALS = ("constant", "spread", "networks", "boosting")


def trained(folder: Path, name: str, split: int, shape: str, effort: str = "normal") -> Run:
    """Load a run, or train it; benchmarks share them."""
    twins, hidden = shape.split("x")
    rows = rows_of(name, split, Path())
    return fit_or_load(folder, rows, int(twins), tuple(map(int, hidden.split("-"))), effort)


def score_intervals(low: np.ndarray, high: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Score intervals."""
    return {
        "coverage": float(np.mean((low <= y) & (y <= high))),
        "width": float(np.mean(high - low)),
        "score": interval_score(low, high, y, COVERAGE),
    }


def measure(run: Run) -> dict[str, object]:
    """Score a run on its test points, from the integers of its pack."""
    pack, lists = packed(run, ANCHORS)
    plain = reference.evaluate(quantise(run.model, lists), run.test[0]).mean
    X, y = run.test
    seen, found = (reference.evaluate(pack, points) for points in (run.validation[0], X))
    ends = reference.bounds(pack, found, LEVEL)
    errors = np.abs(run.validation[1] - seen.mean)
    width = quantile(errors, COVERAGE)
    least = np.finfo(np.float32).tiny
    spread = quantile(errors / np.maximum(seen.spread, least), COVERAGE) * found.spread
    return {
        "ours": score_intervals(ends.low, ends.high, y),
        "constant": score_intervals(found.mean - width, found.mean + width, y),
        "spread": score_intervals(found.mean - spread, found.mean + spread, y),
        "rank": rank_correlation(ends.scale, found.mean - y),
        "rmse": scoring.rmse(found.mean, y),
        "rmse_without": scoring.rmse(plain, y),
        "rows": int(pack.intervals.rows),
    }


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


def networks(folder: Path, name: str, split: int) -> dict[str, object]:
    """Four ordinary networks in the bytes of one twin of 128-128, calibrated by MAPIE."""
    from mapie.conformity_scores import ResidualNormalisedScore
    from mapie.regression import SplitConformalRegressor

    _, _, train, validation, test, *_ = rows_of(name, split, Path())
    place = folder / "networks" / name / f"{split}.npz"
    if not place.exists():
        features = train[0].shape[1]
        room = twin_bytes(Model.of(features, (128, 128), ANCHORS))
        width = max(
            one
            for one in range(32, 160, 4)
            if ann_bytes(Model.of(features, (one, one), ANCHORS), 4) <= room
        )
        four = EnsembleRegressor(AnnRegressor(hidden=(width, width)), n=4, random_state=0)
        four.fit(*train, validation=validation)
        predictions = {
            key: np.stack([member.predict(points[0]) for member in four.members_])
            for key, points in (("val", validation), ("test", test))
        }
        place.parent.mkdir(parents=True, exist_ok=True)
        np.savez(place, width=width, **predictions)
    with np.load(place) as file:
        predictions = np.concatenate([file["val"], file["test"]], axis=1)
        width = int(file["width"])
    mean, scale = predictions.mean(axis=0), predictions.std(axis=0)
    scale = scale + np.median(scale[: len(validation[1])])
    numbers = np.arange(len(mean), dtype=float)[:, None]
    known, queries = np.split(numbers, [len(validation[1])])
    score = ResidualNormalisedScore(residual_estimator=Stored(scale), prefit=True)
    wrapped = SplitConformalRegressor(
        Stored(mean), confidence_level=COVERAGE, conformity_score=score, prefit=True
    )
    _, ends = wrapped.conformalize(known, validation[1]).predict_interval(queries)
    return {"networks": score_intervals(ends[:, 0, 0], ends[:, 1, 0], test[1]), "width": width}


def boosting(name: str, split: int) -> dict[str, object]:
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
    return {"boosting": score_intervals(ends[:, 0, 0], ends[:, 1, 0], y)}


def summarise(cells: dict[str, dict], shape: str) -> dict[str, object]:
    """Means over the available splits, set by set, and the geometric mean over the sets."""
    lines = []
    for name in data.names():
        keys = [key for key in cells if key.startswith(f"{shape}/{name}/")]
        mine = [cells[key] for key in keys]
        theirs = [cells.get(key.replace(shape, "rivals", 1), {}) for key in keys]
        if not mine:
            continue
        ours = np.mean([one["ours"]["score"] for one in mine])
        line = {
            "dataset": name,
            "splits": len(mine),
            "coverage": float(np.mean([one["ours"]["coverage"] for one in mine])),
            "width": float(np.mean([one["ours"]["width"] for one in mine])),
            "rank": float(np.mean([one["rank"] for one in mine])),
            "rmse_ratio": float(
                np.mean([one["rmse"] for one in mine])
                / np.mean([one["rmse_without"] for one in mine])
            ),
        }
        for rival in RIVALS:
            scores = [one[rival]["score"] for one in (*mine, *theirs) if rival in one]
            if len(scores) == len(mine):
                line[f"to_{rival}"] = float(ours / np.mean(scores))
        lines.append(line)
    means = {
        key: float(np.exp(np.mean([np.log(line[key]) for line in lines])))
        for key in (f"to_{rival}" for rival in RIVALS)
        if lines and all(key in line for line in lines)
    }
    return {"sets": lines, "geometric_mean": means}


def keep(path: Path, cells: dict[str, dict]) -> dict[str, object]:
    """Write the result file with a summary of each shape; returns the record."""
    shapes = [one for one in dict.fromkeys(key.split("/")[0] for key in cells) if one != "rivals"]
    return write_record(
        path,
        ("tensorflow", "scikit-learn", "numpy", "mapie"),
        summary={shape: summarise(cells, shape) for shape in shapes},
        cells=cells,
    )


def main() -> None:
    """Fill in the missing cells, print the tables, and last one line of JSON."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--splits", type=int, default=10, help="how many of the 25 (default 10)")
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--shapes", default="1x128-128,4x64-64", help="twins x hidden widths")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained runs are kept")
    options = parser.parse_args()

    warnings.simplefilter("ignore")
    cells = json.loads(options.results.read_text())["cells"] if options.results.exists() else {}
    for name in options.datasets.split(","):
        for split in range(options.splits):
            for shape in (*options.shapes.split(","), "rivals"):
                key = f"{shape}/{name}/{split}"
                if key in cells:
                    continue
                if shape == "rivals":
                    cells[key] = networks(options.runs, name, split) | boosting(name, split)
                else:
                    cells[key] = measure(trained(options.runs, name, split, shape))
                print(key, json.dumps(cells[key]), file=sys.stderr, flush=True)
        keep(options.results, cells)
    record = keep(options.results, cells)
    head = f"{'set':5}{'splits':>7}{'coverage':>10}{'rank':>7}"
    for shape, found in record["summary"].items():
        print(f"\n{shape}: interval score at 90 %, relative to rivals")
        print(head + "".join(f"{rival:>10}" for rival in RIVALS))
        for line in found["sets"]:
            parts = "".join(f"{line.get(f'to_{rival}', np.nan):10.3f}" for rival in RIVALS)
            print(
                f"{line['dataset']:5}{line['splits']:7d}{line['coverage']:10.3f}"
                f"{line['rank']:7.2f}{parts}"
            )
        means = found["geometric_mean"]
        parts = "".join(f"{means.get(f'to_{rival}', np.nan):10.3f}" for rival in RIVALS)
        print(f"{'mean':29}{parts}")
    print(json.dumps({"machine": record["machine"], "summary": record["summary"]}))


if __name__ == "__main__":
    main()
