"""What do 32 predictions of a query cost on a Cortex-M4: as 32 networks of emlearn, and as a twin?

The usual way to get a network onto a microcontroller is scikit-learn's ``MLPRegressor`` through
emlearn: 8 features, 128-128 relu, one output. One such network, an ensemble of 32 of them, and one
128-128 twin with 32 anchors are built for the same board, mps2-an386 as emulated by QEMU, and given
the same queries. Instructions are counted by the emulator. Flash is code, constants and weights;
RAM excludes stack. emlearn's network is compiled with -Os and with -O3, and the faster counts; the
board and the printing code count for neither. Every answer is compared: emlearn's with
scikit-learn's within 1e-5, the twin's bit for bit with the reference.

    pip install emlearn
    python benchmarks/device.py
    python benchmarks/device.py --networks 2 --steps 50    # a quick try
"""

import argparse
import os
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from emlearn_board import BOARD, cost, fastest, network_sources, pack_cost
from record import publish

from twinedge import TwinRegressor
from twinedge.pack import write_pack
from twinedge_export.boards import Port, port_named
from twinedge_export.boards.build import flags_for
from twinedge_export.quantise import quantise

RESULTS = Path(__file__).parent / "results" / "device.json"
FEATURES, HIDDEN, ANCHORS, QUERIES = 8, (128, 128), 32, 4


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and their targets."""
    x = np.random.default_rng(seed).normal(size=(count, FEATURES)).astype(np.float32)
    return x, np.sin(x[:, 0] * x[:, 1]) + np.abs(x[:, 2]) + x[:, 3:].sum(axis=1) / 2


def train_networks(count: int) -> list[Any]:
    """Train networks for emlearn: few iterations, as cost does not depend on the weights."""
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
    networks = train_networks(count)
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
    board = port_named(BOARD)
    board.check_tools()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        compare(board, options.networks, options.steps, results)


if __name__ == "__main__":
    main()
