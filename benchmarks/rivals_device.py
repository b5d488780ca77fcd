"""What a query costs on a Cortex-M4, for benchmarks/rivals.py: emlearn's trees and our pack.

Trees are those chosen on the first split of the concrete set (8 features) in the bytes of our pack,
fitted to features scaled to 16-bit integers. emlearn's C is compiled in both forms that it offers,
tables and nested conditions, each with -Os and -O3; the fewest instructions of each count. All take
features as floats. The network is scikit-learn's, through emlearn, in floats.
"""

import os
from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
from emlearn_board import BOARD, Source, fastest, network_sources, pack_cost
from machine import describe
from rivals_rows import ANCHORS, DEFAULT, MEMBERS, hidden_of, room, rows_of

from twinedge import TwinRegressor
from twinedge.evaluation.small_trees import KINDS, SmallTrees, fit_small_trees
from twinedge.pack import write_pack
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge_export.boards import Port, port_named
from twinedge_export.boards.build import flags_for
from twinedge_export.quantise import quantise

QUERIES, STEPS = 8, 300
TITLES = {"boosting": "boosted trees", "forest": "forest"}


def measure() -> dict[str, Any]:
    """Measure both sizes; include the machine."""
    board = port_named(BOARD)
    board.check_tools()
    rows = rows_of("cs", 0, Path())
    x = rows.test[0][:QUERIES].astype(np.float32)
    found = {}
    with TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)  # emlearn leaves files in the current folder
        try:
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
        finally:
            os.chdir(before)
    return {
        "board": board.name,
        "core": board.core,
        "queries": QUERIES,
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
    """One network, as benchmarks/device.py builds it."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    mean, scale = rows.train[0].mean(axis=0), rows.train[0].std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network = MLPRegressor(hidden_layer_sizes=DEFAULT[1], max_iter=5, random_state=0)
        network.fit((rows.train[0] - mean) / scale, rows.train[1])
    x = ((x - mean) / scale).astype(np.float32)
    return fastest(board, network_sources([network]), x, network.predict(x))
