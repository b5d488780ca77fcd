"""What do 32 predictions of a query cost on a Cortex-M4: as 32 networks of emlearn, and as a twin?

The usual way to get a network onto a microcontroller is scikit-learn's ``MLPRegressor`` through
emlearn: 8 features, 128-128 relu, one output. One such network, an ensemble of 32 of them, and one
128-128 twin with 32 anchors are built for the same board, mps2-an386 as emulated by QEMU, and given
the same queries. Instructions are counted by the emulator. Flash is code, constants and weights;
RAM excludes stack. emlearn's network is compiled with -Os and with -O3, and the faster counts; the
board and the printing code count for neither. Every answer is compared: emlearn's with
scikit-learn's within 1e-5, the twin's bit for bit with the reference.

Then what rivals.py compares: our packs of both sizes, and trees in the same bytes. These are chosen
on the first split of the concrete set (8 features), and fitted to features scaled to 16-bit
integers. emlearn's C is compiled in both forms that it offers, tables and nested conditions. All
take features as floats. The network is scikit-learn's, through emlearn, in floats.

    pip install emlearn
    python -m benchmarks.device
    python -m benchmarks.device --networks 2 --steps 50 --results try.json    # a quick try
"""

import os
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.machine import describe
from benchmarks.harness.record import command_line, publish, results_of
from benchmarks.harness.rows import ANCHORS, DEFAULT, MEMBERS, hidden_of, room, rows_of
from twinedge import TwinRegressor
from twinedge.evaluation.small_trees import KINDS, SmallTrees, fit_small_trees
from twinedge.pack import write_pack
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge_export.boards import Builder, Port, port_named, run_pack
from twinedge_export.boards.build import flags_for
from twinedge_export.quantise import quantise

HERE = Path(__file__).parent
BOARD = "mps2-an386"
LEVELS = ("-Os", "-O3")
FEATURES, HIDDEN = 8, (128, 128)
QUERIES, TREE_QUERIES, STEPS = 4, 8, 300
TITLES = {"boosting": "boosted trees", "forest": "forest"}


class Source(NamedTuple):
    """C of a model, and the name of its function: float (const float *features, int32_t count)."""

    code: str
    function: str


def network_sources(networks: list[Any]) -> list[Source]:
    """Let emlearn convert scikit-learn networks, all of one shape."""
    import emlearn

    # emlearn compiles what it converts for this machine, in the current folder. Once is enough: the
    # others differ in their weights alone.
    made = emlearn.convert(networks[0], method="loadable", return_type="regressor")
    sources = []
    for number, network in enumerate(networks):
        made.weights, made.biases = network.coefs_, network.intercepts_
        name = f"net{number}"
        sources.append(Source(made.save(name=name), f"{name}_regress1"))
    return sources


def header(sources: list[Source], x: np.ndarray) -> str:
    """Return the C of models to average, and the queries."""
    rows = ",\n".join("{" + ", ".join(f"{value!r}f" for value in row.tolist()) + "}" for row in x)
    parts = [
        f"#define MODELS {len(sources)}",
        f"#define FEATURES {x.shape[1]}",
        *(source.code for source in sources),
        f"#define QUERIES {len(x)}",
        f"static const float queries[QUERIES][FEATURES] = {{{rows}}};",
    ]
    if sources:
        calls = ", ".join(source.function for source in sources)
        parts.append(f"static float (*const models[])(const float *, int32_t) = {{{calls}}};")
    return "\n".join(parts) + "\n"


def build(board: Port, code: str, level: str, folder: Path) -> Path:
    """Compile emlearn's C for the board."""
    import emlearn

    (folder / "models.h").write_text(code)
    image = folder / "image.elf"
    sources = [HERE / "device.c", *(board.folder / one for one in board.sources)]
    command = [
        *(board.compiler, "-std=c99", *board.flags, level, "-ffunction-sections"),
        *("-fdata-sections", f"-I{board.folder.parent / 'harness'}", f"-I{folder}"),
        *(f"-I{emlearn.includedir}", *map(str, sources), *board.command(board.link)),
        *("-Wl,--gc-sections", "-o", str(image), "-lm"),
    ]
    subprocess.run(command, check=True)
    return image


def sizes(image: Path) -> np.ndarray:
    """Flash and static RAM of an image, in bytes."""
    sizes = subprocess.run(
        ["arm-none-eabi-size", image], check=True, capture_output=True, text=True
    ).stdout
    text, data, bss = map(int, sizes.splitlines()[1].split()[:3])
    return np.array([text + data, data + bss])


def run(board: Port, image: Path) -> tuple[np.ndarray, float]:
    """Return the means of an image's queries, and the instructions of one query."""
    command = board.command(board.run, image=image)
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    words = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    means = np.array([int(word, 16) for kind, word in words if kind == "mean"], np.uint32)
    counts = [int(word, 16) for kind, word in words if kind == "counts"]
    return means.view(np.float32), float(np.mean(counts)) / board.counts_per_instruction


def cost(
    board: Port, sources: list[Source], x: np.ndarray, expected: np.ndarray, level: str
) -> dict[str, Any]:
    """Build models, compare the means of their answers, and return what they cost."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        empty = sizes(build(board, header([], x), level, folder))
        image = build(board, header(sources, x), level, folder)
        flash, ram = (sizes(image) - empty).tolist()
        means, instructions = run(board, image)
    assert np.abs(means - expected).max() < 1e-5 * max(1.0, np.abs(expected).max())
    return {
        "level": level,
        "instructions_per_query": round(instructions),
        "flash_bytes": flash,
        "ram_bytes": ram,
    }


def fastest(
    board: Port, sources: list[Source], x: np.ndarray, expected: np.ndarray
) -> dict[str, Any]:
    """Return what models cost at their best optimisation level."""
    found = (cost(board, sources, x, expected, level) for level in LEVELS)
    return min(found, key=lambda row: row["instructions_per_query"])


def pack_cost(board: Port, content: bytes, x: np.ndarray, flags: Any) -> dict[str, Any]:
    """Build a pack, compare its answers bit for bit with the reference, and return its cost."""
    with TemporaryDirectory() as folder:
        found = run_pack(Builder(board, Path(folder), flags), content, x)
    assert not len(found.mismatches)
    code = found.image.sizes
    return {
        "level": "-Os",
        "instructions_per_query": found.instructions_per_query,
        "flash_bytes": code.text + code.rodata + code.data + found.image.pack_bytes,
        "ram_bytes": found.ram_bytes - found.stack_bytes,
    }


@contextmanager
def board_in_scratch() -> Iterator[Port]:
    """Yield the board, in a temporary working folder: emlearn leaves files in the current one."""
    board, before = port_named(BOARD), Path.cwd()
    board.check_tools()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield board
        finally:
            os.chdir(before)


def measure(board: Port) -> dict[str, Any]:
    """Measure what rivals.py compares, in both sizes; include the machine."""
    rows = rows_of("cs", 0, Path())
    x = rows.test[0][:TREE_QUERIES].astype(np.float32)
    found = {}
    for size in ("20", "8"):
        budget = room(size, x.shape[1])
        label = f"{budget:,} bytes"
        found[f"our four twins, {label}"] = _twins(board, rows, size, MEMBERS, x)
        found[f"our one twin, {label}"] = _twins(board, rows, size, 1, x)
        for kind in KINDS:
            for method, row in _trees(board, rows, kind, budget, x).items():
                found[f"{TITLES[kind]}, {label}, {method}"] = row
    hidden = "-".join(map(str, DEFAULT[1]))
    found[f"one network of {hidden}, floats"] = _network(board, rows, x)
    return {
        "board": board.name,
        "core": board.core,
        "queries": TREE_QUERIES,
        "machine": describe("emlearn", "scikit-learn"),
        "rows": found,
    }


def _twins(board: Port, rows: Any, size: str, twins: int, x: np.ndarray) -> dict[str, Any]:
    """Our pack with intervals; trained briefly, as cost does not depend on the weights."""
    hidden = hidden_of(size, twins, x.shape[1])
    model = TwinRegressor(
        twins=twins, hidden=hidden, activation="silu", steps=STEPS, random_state=0
    )
    model.fit(*rows.train, validation=rows.validation)
    lists = [np.arange(twin, ANCHORS, twins) for twin in range(twins)]
    pack = quantise(model, lists, intervals=True)
    pack = calibrate_pack(pack, *rows.validation)
    return pack_cost(board, write_pack(pack, metadata=False), x, flags_for(pack))


def _trees(
    board: Port, rows: Any, kind: str, budget: int, x: np.ndarray
) -> dict[str, dict[str, Any]]:
    """Trees, both ways."""
    least = rows.train[0].min(axis=0).astype(np.float32)
    most = rows.train[0].max(axis=0).astype(np.float32)
    gain = np.float32(30_000) / np.maximum(most - least, np.float32(1e-6))

    def whole(X: np.ndarray) -> np.ndarray:
        return np.trunc((X.astype(np.float32) - least) * gain).astype(np.float64)

    train, validation = ((whole(X), y) for X, y in (rows.train, rows.validation))
    found = fit_small_trees(train, validation, budget, kinds=(kind,))
    assert found is not None
    expected = found.predict(whole(x))
    costs = {}
    for method, title in (("loadable", "tables"), ("inline", "conditions")):
        source = _source(found, method, least, gain)
        row = fastest(board, [source], x, expected)
        leaves = found.setting.leaves
        shape = {"trees": found.trees, "leaves": leaves, "table_bytes": found.bytes}
        costs[title] = {**shape, **row}
    return costs


def _source(found: SmallTrees, method: str, least: np.ndarray, gain: np.ndarray) -> Source:
    """Let emlearn convert trees, and scale the features first."""
    from emlearn.trees import Wrapper

    grown = list(np.ravel(found.model.estimators_)[: found.trees])
    made = Wrapper(_Regressor(estimators_=grown), method, dtype="int16_t")
    nodes, roots, leaves = made.forest_
    # emlearn tests whether a feature is less than the integer part, scikit-learn whether it is at
    # most the threshold: for integers that is the same with the next integer.
    nodes = [[feature, floor(at) + 1, left, right] for feature, at, left, right in nodes]
    if found.setting.family == "boosting":
        # emlearn averages trees; boosting adds them to an initial guess.
        first = float(found.model.init_.constant_.item())
        leaves = [first + found.setting.rate * found.trees * value for value in leaves]
    made.forest_ = nodes, roots, leaves
    count = len(least)
    shifts, gains = (
        ", ".join(f"{value!r}f" for value in values.tolist()) for values in (least, gain)
    )
    scale = f"""
static float scaled(const float *x, int32_t count) {{
    static const float least[{count}] = {{{shifts}}}, gain[{count}] = {{{gains}}};
    int16_t q[{count}];
    int32_t i;
    for (i = 0; i < count; i++)
        q[i] = (int16_t)((x[i] - least[i]) * gain[i]);
    return trees_predict(q, count);
}}
"""
    return Source(made.save(name="trees") + scale, "scaled")


class _Regressor(SimpleNamespace):
    """Looks like a forest to emlearn."""


def _network(board: Port, rows: Any, x: np.ndarray) -> dict[str, Any]:
    """One network, as ``compare`` builds it."""
    mean, scale = rows.train[0].mean(axis=0), rows.train[0].std(axis=0)
    networks = train_networks(1, DEFAULT[1], (rows.train[0] - mean) / scale, rows.train[1])
    x = ((x - mean) / scale).astype(np.float32)
    return fastest(board, network_sources(networks), x, networks[0].predict(x))


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and their targets."""
    x = np.random.default_rng(seed).normal(size=(count, FEATURES)).astype(np.float32)
    return x, np.sin(x[:, 0] * x[:, 1]) + np.abs(x[:, 2]) + x[:, 3:].sum(axis=1) / 2


def train_networks(count: int, hidden: tuple[int, ...], X: np.ndarray, y: np.ndarray) -> list[Any]:
    """Train networks for emlearn: few iterations, as cost does not depend on the weights."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            MLPRegressor(hidden_layer_sizes=hidden, max_iter=5, random_state=seed).fit(X, y)
            for seed in range(count)
        ]


def twin(board: Port, x: np.ndarray, steps: int) -> dict[str, Any]:
    """Build a twin with its anchors, and return what it costs."""
    model = TwinRegressor(hidden=HIDDEN, activation="relu", steps=steps, random_state=0)
    model.fit(*points(600, seed=0))
    pack = quantise(model, [np.arange(ANCHORS)])
    content = write_pack(pack, metadata=False)
    return {"anchors": ANCHORS, **pack_cost(board, content, x, flags_for(pack))}


def compare(board: Port, count: int, steps: int, results: Path) -> None:
    """Build all three; print a table and one line of JSON last."""
    x, _ = points(QUERIES, seed=1)
    networks = train_networks(count, HIDDEN, *points(600, seed=0))
    sources, answers = network_sources(networks), [network.predict(x) for network in networks]
    single = fastest(board, sources[:1], x, answers[0])
    many = cost(board, sources, x, np.mean(answers, axis=0), single["level"])
    found = {
        "emlearn, one network": {"networks": 1, **single},
        f"emlearn, {count} networks": {"networks": count, **many},
        f"twin, {ANCHORS} anchors": twin(board, x, steps),
    }
    print(f"{board.title}, {board.core}: 8 features, 128-128 relu, one query")
    print(f"{'':24}{'instructions':>14}{'flash bytes':>14}{'RAM bytes':>12}")
    for name, row in found.items():
        cells = (row["instructions_per_query"], row["flash_bytes"], row["ram_bytes"])
        print(f"{name:24}{cells[0]:14,}{cells[1]:14,}{cells[2]:12,}")
    one, many, ours = found.values()
    columns = ("instructions_per_query", "flash_bytes", "ram_bytes")
    publish(
        results,
        ("emlearn", "scikit-learn"),
        board=board.name,
        core=board.core,
        queries=QUERIES,
        emlearn_one=one,
        emlearn_ensemble=many,
        twin=ours,
        ensemble_to_twin={name: round(many[name] / ours[name], 2) for name in columns},
        rivals=measure(board),
    )


def main() -> None:
    """Read the options."""
    parser = command_line(__doc__, results_of("device"))
    parser.add_argument("--networks", type=int, default=32, help="in the ensemble (default 32)")
    parser.add_argument("--steps", type=int, default=STEPS, help="to train the twin (default 300)")
    options = parser.parse_args()

    results = options.results.resolve()
    with board_in_scratch() as board:
        compare(board, options.networks, options.steps, results)


if __name__ == "__main__":
    main()
