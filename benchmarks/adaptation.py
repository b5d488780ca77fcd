"""What are a few points measured on site worth, for groups that the training never saw?

Three tables fall into groups: mixes of concrete (CS), shapes of buildings (EE), hulls of yachts
(YH). A division holds out whole groups to test, and others to validate; four 64-64 twins are
trained on the rest with `--effort quick` and exported with 32 anchors. Then k points of each test
group are measured (the youngest, for concrete), and the error is taken on its other points:

    shipped     the pack as it was exported
    adapted     the pack and the new points, by the rule of the device
    anchors     the same, but the points shift nothing: they are more anchors, with that weight
    replaced    the new points as the only anchors
    networks    four 64-64 ordinary networks, plus the mean residual at the new points
    retrained   the twins trained again with the new points of all test groups: the ceiling

`adapted` is measured again with every tenth point of a division replaced by a gross error: 30
scales too high, 30 too low, or -999. `gross` is the largest of the three errors relative to that
without gross errors, `worst` the error relative to `shipped` in the worst division.

All of ours except `retrained` use the integers of the pack. A division's error is taken over all
its test groups; the mean over divisions is shown. `retrained` is that of the first divisions alone.
Trained packs are kept in a folder.

    python -m benchmarks.adaptation --jobs 2
    python -m benchmarks.adaptation --divisions 2 --datasets yh
"""

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.cells import Benchmark
from benchmarks.harness.groups import LEADING, divided
from benchmarks.harness.interval_scores import COVERAGE
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.rows import ANCHORS
from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor, export, load, scoring
from twinedge.pack import Pack, write_pack
from twinedge.run_folder import Run
from twinedge.runtime import reference
from twinedge.runtime.native import Native
from twinedge.scoring.calibration import interval_score
from twinedge.training import VERSION

RUNS = Path("runs/adaptation")
DIVISIONS, RETRAINED = 20, 5
KS = (1, 2, 3, 5, 8)
GROSS = ("30", "-30", "-999")  # scales, or a value


class Job(NamedTuple):
    """One cell to compute."""

    name: str
    division: int
    runs: Path = RUNS

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.name}/{self.division}"


def fit(model: Any, table: Any, group: np.ndarray, train: np.ndarray, rows: Any) -> Any:
    """Train a model on some rows; others validate it."""
    validation = table.X[rows.val], table.y[rows.val], group[rows.val]
    return model.fit(table.X[train], table.y[train], validation=validation, groups=group[train])


def stored(place: Path, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Load an array from a file; compute and write it if it is missing."""
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, compute())
    return np.asarray(np.load(place))


def measured(name: str, table: Any, rows: np.ndarray, group: int) -> np.ndarray:
    """Put the rows of a group in the order in which they are measured."""
    if name == "cs":
        return rows[np.argsort(table.X[rows, 7], kind="stable")]
    return np.random.RandomState(group).permutation(rows)


def shipped(folder: Path, name: str, division: int) -> tuple[Path, dict[str, Any]]:
    """Return the pack of a division and how it was trained; trains and exports it if missing."""
    place = folder / "packs" / f"{name}-{division}.twin"
    settings = place.with_suffix(".json")
    if not settings.exists():
        table, group, rows = divided(name, division)
        validation, test = ((table.X[part], table.y[part]) for part in (rows.val, rows.test))
        model = TwinRegressor(twins=4, hidden=(64, 64), effort="quick", random_state=0)
        fit(model, table, group, rows.train, rows)
        scores = {"rmse_test": model.rmse(*test)}
        run = Run(model, table.feature_names, table.target_name, validation, test, scores=scores)
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as made:
            export(run, made, anchors=ANCHORS, formats=("twin",), tolerance=1.0)
            shutil.copy(Path(made) / "model.twin", place)
        chosen = ("activation", "learning_rate", "weight_decay", "steps")
        found = {key: getattr(model, f"{key}_") for key in chosen}
        settings.write_text(json.dumps({**found, "across": model.left_out_ is not None}))
    return place, json.loads(settings.read_text())


def networks(folder: Path, name: str, division: int) -> np.ndarray:
    """Predict all rows of the table with four ordinary networks."""

    def predict() -> np.ndarray:
        table, group, rows = divided(name, division)
        four = EnsembleRegressor(AnnRegressor(hidden=(64, 64), effort="quick"), n=4, random_state=0)
        return fit(four, table, group, rows.train, rows).predict(table.X)

    return stored(folder / "networks" / name / f"{division}.npy", predict)


def retrained(folder: Path, name: str, division: int, k: int) -> np.ndarray:
    """Predict all rows with twins trained with k points of each test group, too."""

    def predict() -> np.ndarray:
        table, group, rows = divided(name, division)
        settings = shipped(folder, name, division)[1]
        settings.pop("across")
        new = [
            measured(name, table, rows.test[group[rows.test] == one], one)[:k]
            for one in np.unique(group[rows.test])
        ]
        fixed = {"twins": 4, "hidden": (64, 64), "intervals": False, "random_state": 0}
        train = np.concatenate([rows.train, *new])
        return fit(TwinRegressor(**fixed, **settings), table, group, train, rows).predict(table.X)

    return stored(folder / "retrained" / name / f"{division}-{k}.npy", predict)


def as_anchors(pack: Pack, X: np.ndarray, y: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Predict with the points as the only anchors, in the integers of the pack."""
    twins = len(pack.twins)
    own = replace(
        pack,
        counts=np.full(twins, len(y), pack.counts.dtype),
        anchors=np.tile(reference.map_points(pack, reference.quantise(pack, X)), (twins, 1)),
        targets=np.tile(reference.estimates_of(pack, y).astype(np.int32), twins),
        ids=None,
        neighbors=0,
        trained_on_neighbors=False,
        metadata={},
    )
    return np.asarray(Native(write_pack(own), own).predict_with_spread(queries)[0])


def with_gross_error(
    kind: str, y: np.ndarray, mean: np.ndarray, scale: np.ndarray, first: int
) -> np.ndarray:
    """Replace every tenth point; ``first`` is how many points there were before these."""
    y = y.copy()
    tenth = (first + np.arange(len(y))) % 10 == 0
    y[tenth] = -999.0 if kind == "-999" else (mean + float(kind) * scale)[tenth]
    return y


def compute(job: Job) -> dict[str, Any]:
    """Try each way in one division, for each k."""
    name, division = job.name, job.division
    folder = job.runs / f"training-{VERSION}"
    table, group, rows = divided(name, division)
    device = load(shipped(folder, name, division)[0])
    trust = device.pack.intervals.trust / 65536
    ordinary = networks(folder, name, division)
    again = {}
    if division < RETRAINED:
        again = {k: retrained(folder, name, division, k) for k in KS}
    mean, scale = device.predict(table.X, return_std=True)
    ends = device.predict_interval(table.X, COVERAGE)
    cells: dict[str, Any] = {"trust": trust}
    for k in KS:
        found: dict[str, list[np.ndarray]] = {}
        before = division
        for one in np.unique(group[rows.test]):
            order = measured(name, table, rows.test[group[rows.test] == one], one)
            new, rest = order[:k], order[k:]
            if not len(rest):
                continue
            X, y = table.X[new], table.y[new]
            own = as_anchors(device.pack, X, y, table.X[rest])
            share = k * trust / (k * trust + 1 - trust)
            near = np.minimum(1, scale[rest] / scale[new].mean())
            parts = {
                "y": table.y[rest],
                "shipped": mean[rest],
                "shipped_ends": ends[rest],
                "anchors": mean[rest] + share * near * (own - mean[rest]),
                "replaced": own,
                "networks": ordinary[rest] + np.mean(y - ordinary[new]),
            }
            if again:
                parts["retrained"] = again[k][rest]
            for kind in ("", *GROSS):
                wrong = with_gross_error(kind, y, mean[new], scale[new], before) if kind else y
                device.learn(X, wrong)
                parts[f"adapted{kind}"] = device.predict(table.X[rest])
                parts[f"adapted{kind}_ends"] = device.predict_interval(table.X[rest], COVERAGE)
                device.forget()
            before += k
            for key, part in parts.items():
                found.setdefault(key, []).append(part)
        if found:
            cells[str(k)] = scores({key: np.concatenate(some) for key, some in found.items()})
    return cells


def scores(found: dict[str, np.ndarray]) -> dict[str, float]:
    """Return errors of each way, and scores of intervals."""
    y = found["y"]
    cell: dict[str, float] = {"points": len(y)}
    for key, part in found.items():
        if key.endswith("_ends"):
            low, high = part.T
            way = key.removesuffix("_ends")
            cell[f"{way}_coverage"] = float(np.mean((low <= y) & (y <= high)))
            cell[f"{way}_score"] = interval_score(low, high, y, COVERAGE)
        elif key != "y":
            cell[key] = scoring.rmse(part, y)
    return cell


def summarise(cells: Cells) -> dict[str, Any]:
    """Average over the divisions, table by table and k by k."""
    lines = []
    for name in LEADING:
        mine = [cell for key, cell in cells.items() if key.startswith(f"{name}/")]
        for k in map(str, KS):
            there = [cell[k] for cell in mine if k in cell]
            if not there:
                continue
            line = {"dataset": name, "k": int(k), "divisions": len(there)}
            keys = [key for key in there[0] if key != "points" and key != "retrained"]
            line |= {key: float(np.mean([cell[key] for cell in there])) for key in keys}
            line["gross"] = max(line[f"adapted{kind}"] for kind in GROSS) / line["adapted"]
            line["worst"] = max(cell["adapted"] / cell["shipped"] for cell in there)
            line["worst_gross"] = max(
                cell[f"adapted{kind}"] / cell["shipped"] for cell in there for kind in GROSS
            )
            both = [cell for cell in there if "retrained" in cell]
            if both:  # fewer divisions, so next to the others on the same ones
                line["retrained"] = float(np.mean([cell["retrained"] for cell in both]))
                line["adapted_there"] = float(np.mean([cell["adapted"] for cell in both]))
                line["retrained_divisions"] = len(both)
            lines.append(line)
    return {"summary": lines}


def show(record: Record) -> None:
    """Print the table."""
    print(
        "set  k  shipped  adapted  anchors  replaced  networks  retrained  "
        "covered before / after / gross  gross  worst / gross"
    )
    for line in record["summary"]:
        again = f"{line['retrained']:9.2f}" if "retrained" in line else f"{'-':>9}"
        covered = [line[f"{way}_coverage"] for way in ("shipped", "adapted", "adapted-999")]
        print(
            f"{line['dataset']:3}  {line['k']}  {line['shipped']:7.2f}  {line['adapted']:7.2f}  "
            f"{line['anchors']:7.2f}  {line['replaced']:8.2f}  {line['networks']:8.2f}  {again}  "
            f"{' / '.join(f'{one:.3f}' for one in covered)}          {line['gross']:.3f}  "
            f"{line['worst']:.2f} / {line['worst_gross']:.2f}"
        )


def pages(record: Record) -> Tables:
    """Return the table of docs/learning.md."""
    ways = ("shipped", "adapted", "anchors", "replaced", "networks")
    header = ["", "k", "as shipped", *ways[1:], "retrained", "gross", "covered"]
    rows = []
    for line in record["summary"]:
        again = "-"
        if "retrained" in line:
            again = f"{line['retrained']:.2f} ({line['adapted_there']:.2f})"
        kinds = ("shipped", "adapted", "adapted-999")
        covered = ", ".join(f"{line[f'{kind}_coverage']:.2f}" for kind in kinds)
        numbers = [f"{line[way]:.2f}" for way in ways]
        first = line["dataset"].upper(), str(line["k"])
        rows.append([*first, *numbers, again, f"{line['gross']:.2f}", covered])
    return {"docs/learning.md": {"adaptation": markdown(header, rows)}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--divisions", type=int, default=DIVISIONS, help="at most (default 20)")
    parser.add_argument("--datasets", default=",".join(LEADING))
    parser.add_argument("--runs", type=Path, default=RUNS, help="where trained packs are kept")


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, division by division: the first take longest."""
    return [
        Job(name, division, options.runs)
        for division in range(options.divisions)
        for name in options.datasets.split(",")
    ]


BENCHMARK = Benchmark(
    "adaptation",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    add_options=add_options,
    cost=60,
    pages=pages,
)

if __name__ == "__main__":
    BENCHMARK.main()
