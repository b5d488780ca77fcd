"""Float layers whose weights are int8 already.

A converter rounds each weight by itself, to a step that is 1/127 of the largest weight of its
output. Given weights that lie on such steps, it has nothing to round: so here they are put there,
in a way that the errors cancel on the data.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twinedge.pack.contents import Array
from twinedge_export.compensation import Calibration
from twinedge_export.folding import Dense
from twinedge_export.graph import Graph, Tensors

LARGEST = 127
_LARGEST_BIAS = 1 << 30
_TINY = 1e-30  # for outputs that are always zero
_ATTEMPTS = 6
# Weights are rounded as if activations had 16 bits. Told of coarser ones they do no better: the
# errors of those differ from pair to pair, and no weight can make good for them.
_LEVELS = 32767


def with_core_on_grid(graph: Graph, queries: Tensors) -> Graph:
    """Round the layers of a graph's core, as training queries go through it."""
    hidden = graph.first(queries) if graph.integers else graph.head(queries)
    twins = []
    for name, twin in zip(graph.between, graph.folding.twins, strict=True):
        inputs = hidden[name].numpy().reshape(-1, hidden[name].shape[-1]).astype(np.float64)
        core, others = twin.layers[: graph.core_layers], twin.layers[graph.core_layers :]
        # A second output is rounded where the first is.
        beside = [] if others or twin.difficulty is None else [twin.difficulty]
        done = on_grid(core, inputs, graph.folding.activation, beside)
        difficulty = done.pop() if beside else twin.difficulty
        twins.append(replace(twin, layers=(*done, *others), difficulty=difficulty))
    return type(graph)(replace(graph.folding, twins=tuple(twins)), integers=graph.integers)


def on_grid(
    layers: Sequence[Dense], inputs: Array, activation: str, beside: Sequence[Dense] = ()
) -> list[Dense]:
    """Round the kernels of layers, one behind the other.

    Parameters
    ----------
    layers : sequence of Dense
        From a float network.
    inputs : array of shape (n, i)
        What comes into the first of them.
    activation : {"relu", "silu"}
        Of the hidden layers.
    beside : sequence of Dense
        More that take what comes into the last of them; they come last.
    """
    rounded = []
    exact = seen = inputs
    for layer in layers:
        unit = float(np.abs(seen).max()) / _LEVELS or 1.0
        coming = unit, np.rint(seen / unit), exact
        rounded.append(_on_grid(layer, *coming))
        exact = exact @ layer.kernel + layer.bias
        seen = unit * coming[1] @ rounded[-1].kernel + rounded[-1].bias
        if layer.activated:
            exact, seen = _activate(exact, activation), _activate(seen, activation)
    return [*rounded, *(_on_grid(layer, *coming) for layer in beside)]


def _on_grid(layer: Dense, unit: float, whole: Array, exact: Array) -> Dense:
    """Round a layer that is to make of whole inputs what it made of the exact ones."""
    data = Calibration(whole, exact @ layer.kernel + layer.bias, bias=True)
    rows = data.fitted(np.column_stack([layer.kernel.T * unit, layer.bias]))
    # So fine that the largest weight makes 127 steps; but a bias is to be some 32-bit number.
    finest = np.maximum(np.abs(rows[:, -1]) / _LARGEST_BIAS, _TINY)
    steps = np.maximum(np.abs(rows[:, :-1]).max(axis=1) / LARGEST, finest)
    for _ in range(_ATTEMPTS):
        whole = data.rounded(rows / steps[:, None], LARGEST)
        largest = np.abs(whole[:, :-1]).max(axis=1)
        short = (largest > 0) & (largest < LARGEST) & (steps > finest)
        if not short.any():
            break
        # Of this row a converter would take the steps for finer than they are.
        steps = np.where(short, np.maximum(steps * (largest - 1) / LARGEST, finest), steps)
    weights = whole * steps[:, None]
    return Dense(weights[:, :-1].T / unit, weights[:, -1], layer.activated)


def _activate(z: Array, activation: str) -> Array:
    if activation == "relu":
        return np.maximum(z, 0)
    small = np.exp(-np.abs(z))  # written so that no exponential overflows
    activated: Array = z * np.where(z >= 0, 1.0, small) / (1 + small)
    return activated
