"""What do 32 predictions of a query cost on a Cortex-M4: as 32 networks of emlearn, and as a twin?

The ordinary way to a network on a microcontroller is scikit-learn's ``MLPRegressor`` through
emlearn: 8 features, 128-128 relu, one output. One such network, an ensemble of 32 of them, and one
twin of 128-128 with 32 anchors are built for the same board, mps2-an386 as QEMU plays it, and asked
the same queries. Instructions are counted by the emulator. Flash is code, constants and weights;
RAM is without stack. emlearn's network is compiled with -Os and with -O3, and the faster counts;
the board and what prints belong to neither. Every answer is compared: emlearn's with scikit-learn's
within 1e-5, the twin's bit for bit with the reference.

    pip install emlearn
    python benchmarks/device.py
    python benchmarks/device.py --networks 2 --steps 50    # a try-out
"""

import argparse
import os
import subprocess
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from record import publish

from twinedge import TwinRegressor
from twinedge.pack import write_pack
from twinedge_export.boards import Board, Workshop, board_named, try_pack
from twinedge_export.boards.build import left_out
from twinedge_export.quantise import quantise

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "device.json"
BOARD, FEATURES, HIDDEN, ANCHORS, QUERIES = "mps2-an386", 8, (128, 128), 32, 4
LEVELS = ("-Os", "-O3")


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and their targets."""
    x = np.random.default_rng(seed).normal(size=(count, FEATURES)).astype(np.float32)
    return x, np.sin(x[:, 0] * x[:, 1]) + np.abs(x[:, 2]) + x[:, 3:].sum(axis=1) / 2


def train_networks(count: int) -> list[Any]:
    """Train networks for emlearn: few rounds, as what they cost does not depend on the weights."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            MLPRegressor(hidden_layer_sizes=HIDDEN, max_iter=5, random_state=seed).fit(
                *points(600, seed=0)
            )
            for seed in range(count)
        ]


def header(networks: list[Any], x: np.ndarray) -> str:
    """Return emlearn's C for the networks, and the queries."""
    import emlearn

    parts = [f"#define NETWORKS {len(networks)}", f"#define FEATURES {FEATURES}"]
    names = [f"net{number}" for number in range(len(networks))]
    # emlearn compiles what it converts for this machine, in the folder it is called from. Once is
    # enough: the others differ in their weights alone.
    made = networks and emlearn.convert(networks[0], method="loadable", return_type="regressor")
    for name, network in zip(names, networks, strict=True):
        made.weights, made.biases = network.coefs_, network.intercepts_
        parts.append(made.save(name=name))
    rows = ",\n".join("{" + ", ".join(f"{value!r}f" for value in row.tolist()) + "}" for row in x)
    parts += [
        f"#define QUERIES {len(x)}",
        f"static const float queries[QUERIES][FEATURES] = {{{rows}}};",
    ]
    if names:
        calls = ", ".join(f"{name}_regress1" for name in names)
        parts.append(f"static float (*const networks[])(const float *, int32_t) = {{{calls}}};")
    return "\n".join(parts) + "\n"


def build(board: Board, code: str, level: str, folder: Path) -> Path:
    """Compile emlearn's C for the board."""
    import emlearn

    (folder / "networks.h").write_text(code)
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
    said = subprocess.run(
        ["arm-none-eabi-size", image], check=True, capture_output=True, text=True
    ).stdout
    text, data, bss = map(int, said.splitlines()[1].split()[:3])
    return np.array([text + data, data + bss])


def run(board: Board, image: Path) -> tuple[np.ndarray, float]:
    """Return the means of an image's queries, and instructions of one."""
    command = board.command(board.run, image=image)
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    said = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    means = np.array([int(word, 16) for kind, word in said if kind == "mean"], np.uint32)
    counts = [int(word, 16) for kind, word in said if kind == "counts"]
    return means.view(np.float32), float(np.mean(counts)) / board.counts_per_instruction


def ensemble(board: Board, networks: list[Any], x: np.ndarray, level: str) -> dict[str, Any]:
    """Build an ensemble of emlearn's networks, and return what it costs."""
    expected = np.mean([network.predict(x) for network in networks], axis=0)
    with TemporaryDirectory() as name:
        folder = Path(name)
        empty = sizes(build(board, header([], x), level, folder))
        image = build(board, header(networks, x), level, folder)
        flash, ram = (sizes(image) - empty).tolist()
        means, instructions = run(board, image)
    assert np.abs(means - expected).max() < 1e-5
    return {
        "networks": len(networks),
        "level": level,
        "instructions_per_query": round(instructions),
        "flash_bytes": flash,
        "ram_bytes": ram,
    }


def twin(board: Board, x: np.ndarray, steps: int) -> dict[str, Any]:
    """Build a twin with its anchors, and return what it costs."""
    model = TwinRegressor(hidden=HIDDEN, activation="relu", steps=steps, random_state=0)
    model.fit(*points(600, seed=0))
    pack = quantise(model, [np.arange(ANCHORS)])
    with TemporaryDirectory() as folder:
        shop = Workshop(board, Path(folder), left_out(pack))
        trial = try_pack(shop, write_pack(pack, metadata=False), x)
    assert not len(trial.mismatches)
    code = trial.image.sizes
    return {
        "anchors": ANCHORS,
        "level": "-Os",
        "instructions_per_query": trial.instructions_per_query,
        "flash_bytes": code.text + code.rodata + code.data + trial.image.pack_bytes,
        "ram_bytes": trial.ram_bytes - trial.stack_bytes,
    }


def compare(board: Board, count: int, steps: int, results: Path) -> None:
    """Build all three; print a table and one line of JSON last."""
    x, _ = points(QUERIES, seed=1)
    networks = train_networks(count)
    single = min(
        (ensemble(board, networks[:1], x, level) for level in LEVELS),
        key=lambda row: row["instructions_per_query"],
    )
    found = {
        "emlearn, one network": single,
        f"emlearn, {count} networks": ensemble(board, networks, x, single["level"]),
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
    )


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", type=int, default=32, help="in the ensemble (default 32)")
    parser.add_argument("--steps", type=int, default=300, help="to train the twin (default 300)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    results = options.results.resolve()
    board = board_named(BOARD)
    board.check_tools()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        compare(board, options.networks, options.steps, results)


if __name__ == "__main__":
    main()
