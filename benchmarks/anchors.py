"""Which method should choose anchors, and when should another one take over?

Everything is measured on validation points; test points are not touched. The first split of a set
is its trained run, the others are networks with the settings of that run, trained briefly.

For each method: the validation error relative to that of all anchors, mean and worst, and the
relative spread (greedy on points it was not chosen on; random as the mean of eight draws). Then the
same error for each rule by which validation points may overrule the first choice: the points are
split in random halves, the rule decides on one half, and the other is scored.

    python benchmarks/anchors.py --runs runs/nine --splits 4
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from record import command_line, publish
from trained import load_or_train

from twinedge import TwinRegressor, data
from twinedge.anchors import METHODS, select
from twinedge.anchors.choice import PREFERENCE, preferred
from twinedge.anchors.methods import Candidates
from twinedge.anchors.pool import Evidence, Pool

COUNTS = (8, 32)
RULES = {"never": np.inf, "3 errors": 3.0, "2 errors": 2.0, "1 error": 1.0, "always": 0.0}
DRAWS, HALVES, STEPS = 8, 20, 4000
RESULTS = Path(__file__).parent / "results" / "anchors.json"


def models(name: str, runs: Path, splits: int) -> Iterator[tuple[TwinRegressor, tuple[Any, Any]]]:
    """Yield a fitted model and its validation data for each split."""
    run = load_or_train(runs, name)
    yield run.model, run.validation
    table = data.load(name)
    for split in range(1, splits):
        rows = data.splits(name, split)
        validation = table.X[rows.val], table.y[rows.val]
        model = TwinRegressor(
            hidden=run.model.architecture_.hidden,
            activation=run.model.activation_,
            learning_rate=run.model.learning_rate_,
            weight_decay=run.model.weight_decay_,
            steps=STEPS,
            random_state=split,
        )
        yield model.fit(table.X[rows.train], table.y[rows.train], validation=validation), validation


def measure(model: TwinRegressor, validation: tuple[Any, Any], k: int) -> dict[str, Any]:
    """Squared errors ``(v,)`` of all anchors and of each method, and each relative spread."""
    X, y = model.anchor_X_, model.anchor_y_
    estimates = model.estimates(validation[0], anchors=np.arange(len(y)))

    def squares(rows: Any) -> Any:
        return np.square(estimates[:, rows].mean(axis=1) - validation[1])

    def spread(rows: Any) -> float:
        return float(np.sqrt(estimates[:, rows].var(axis=1).mean()))

    everyone = np.arange(len(y))
    found = {"all": (squares(everyone), 1.0)}
    for name, method in METHODS.items():
        draws = [
            select(X, y, k, name, model=model, validation=validation, seed=seed)
            for seed in range(DRAWS if name == "random" else 1)
        ]
        errors = np.mean([squares(rows) for rows in draws], axis=0)
        if method.needs_validation:
            evidence = Evidence.of(model, validation)
            candidates = Candidates.of(Pool.of(X, y, 1), k, 0, evidence)
            errors = candidates.held_out_errors([k], evidence.folds(0))[0]
        found[name] = errors, np.mean([spread(rows) for rows in draws]) / spread(everyone)
    return found


def overruled(found: dict[str, Any], clear: float) -> list[float]:
    """Error relative to all anchors, if a rule decides on the other half of the points."""
    ratios = []
    for seed in range(HALVES):
        order = np.random.default_rng(seed).permutation(len(found["all"][0]))
        one, other = np.array_split(order, 2)
        winner = preferred({name: found[name][0][one] for name in PREFERENCE}, clear)
        ratios.append(ratio(found[winner][0][other], found["all"][0][other]))
    return ratios


def ratio(squares: Any, of_all: Any) -> float:
    """Error relative to that of all anchors."""
    return float(np.sqrt(squares.mean() / of_all.mean()))


def summarise(cells: dict[int, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a line for each method and number of anchors, then for each rule."""
    lines = []
    for k, cell in cells.items():
        for way in METHODS:
            errors = [ratio(found[way][0], found["all"][0]) for found in cell]
            spread = float(np.mean([found[way][1] for found in cell]))
            lines.append(_line(way, k, errors) | {"spread": spread})
        for rule, clear in RULES.items():
            errors = [np.mean(overruled(found, clear)) for found in cell]
            lines.append(_line(f"overruled: {rule}", k, errors))
    return lines


def _line(what: str, k: int, errors: list[Any]) -> dict[str, Any]:
    return {"what": what, "anchors": k, "mean": float(np.mean(errors)), "worst": max(errors)}


def main() -> None:
    """Print the table, and last one line of JSON."""
    parser = command_line(__doc__, RESULTS)
    parser.add_argument("--runs", type=Path, default=Path("runs/nine"))
    parser.add_argument("--datasets", default=",".join(data.names()))
    parser.add_argument("--splits", type=int, default=4, help="of each set (default 4)")
    options = parser.parse_args()

    cells: dict[int, list[dict[str, Any]]] = {k: [] for k in COUNTS}
    for name in options.datasets.split(","):
        for split, given in enumerate(models(name, options.runs, options.splits)):
            print(name, split, file=sys.stderr, flush=True)
            for k in COUNTS:
                cells[k].append(measure(*given, k))
    lines = summarise(cells)
    print(f"{'what':22}{'anchors':>8}{'mean':>9}{'worst':>9}{'spread':>9}")
    for line in lines:
        spread = f"{line['spread']:9.3f}" if "spread" in line else ""
        print(
            f"{line['what']:22}{line['anchors']:8d}{line['mean']:9.4f}{line['worst']:9.4f}{spread}"
        )
    publish(
        options.results,
        ("tensorflow", "scikit-learn", "numpy"),
        datasets=options.datasets.split(","),
        splits=options.splits,
        lines=lines,
    )


if __name__ == "__main__":
    main()
