"""One float network as integers: rounding whose errors cancel, and float layers on the same grid.

Rounded independently, weights err at random, and so do their sums. But the inputs of a layer are
correlated, and one can stand in for another. So weights are rounded one by one, and each is first
moved by what the errors before it cost: for the inputs it will see, the layer then behaves as if
it had far finer weights. The method is known as Babai's nearest plane, and for networks as GPTQ.
Before that, the weights are refitted to the inputs as the earlier layers left them, which makes up
for the rounding there, too.

Kernels are rounded per output, as finely as their type and the accumulator allow; activations get
the power of two that holds what they reach on training pairs. A multiplier is chosen first and the
step of its kernel derived from it, so multipliers add no error: with 16-bit activations, all that a
pack loses is lost to the rounding of kernels, done so that the errors cancel on the pairs.

A converter rounds each weight independently, to a step that is 1/127 of the largest weight of its
output. Weights that already lie on such steps leave it nothing to round, so they are put there
here, such that the errors cancel on the data.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import floor, log2
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import ACCUMULATOR, LARGEST, OUTPUT, Array, Difficulty, Layer, Twin
from twinedge.pack.layout import FRACTIONS, MAX_SHIFT
from twinedge.runtime.reference import activate, silu_curve
from twinedge.training.network import Architecture
from twinedge_export.fold_anchors import Dense
from twinedge_export.graph import Graph, Tensors

# How strongly weights are held where the data do not determine them, as a fraction of the inputs'
# mean square. A tenth does as well; ten times as much leaves errors that could have been corrected.
_HOLD = 1e-3


class RoundingData:
    """Integer inputs of a layer, and the outputs wanted for them.

    Parameters
    ----------
    inputs : array of shape (n, i)
        As on a device.
    wanted : array of shape (n, outputs)
        Sums of the float network, before the activation.
    bias : bool
        Whether the layer has a bias, as the last of the weights.
    """

    def __init__(self, inputs: Array, wanted: Array, *, bias: bool) -> None:
        self._count = inputs.shape[1]
        self._inputs = np.column_stack([inputs, np.ones(len(inputs))]) if bias else inputs
        self._wanted = wanted
        self._gram = self._inputs.T @ self._inputs / len(inputs)
        weights = np.arange(self._count)
        # Plus the square of one unit, for inputs that are always zero.
        self._gram[weights, weights] += _HOLD * self._gram.diagonal()[weights].mean() + 1

    def fitted(self, rows: Array) -> Array:
        """Refit weights ``(outputs, i)``, per unit of their inputs, to the data."""
        off = self._wanted - self._inputs @ rows.T
        move: Array = np.linalg.solve(self._gram, self._inputs.T @ off / len(off))
        return rows + move.T

    def rounded(self, rows: Array, most: int) -> Array:
        """Round weights ``(outputs, i)``, given in steps; only a bias may exceed ``most``.

        With the Gram matrix written as R R', R upper triangular, the error of a row is the length
        of R'(row - whole). Its entries are made small one by one: each weight determines one, given
        those before it.
        """
        strongest_first = np.argsort(-self._gram.diagonal()[: self._count], kind="stable")
        order = np.append(strongest_first, np.arange(self._count, rows.shape[1]))
        gram = self._gram[np.ix_(order, order)]
        root = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1]
        whole, error = np.empty_like(rows), np.empty_like(rows)
        for place, column in enumerate(order):
            before = error[:, :place] @ root[:place, place] / root[place, place]
            limit = most if column < self._count else np.inf
            whole[:, column] = np.rint(rows[:, column] + before).clip(-limit, limit)
            error[:, place] = rows[:, column] - whole[:, column]
        return whole


_BOTH = 0.5  # weight of errors in the sum of both orders, relative to their difference
_TINY = 1e-12  # step of weights that are all zero
_CLIPPED = 0.01  # share of the training pairs whose activations may be clipped
_HEADROOM = 1.1  # how far activations may exceed the training pairs before they are clipped


def round_network(
    architecture: Architecture,
    network: Array,
    pairs: Array,
    x_unit: float,
    *,
    y_unit: float,
    dtype: Any,
    compensate: bool = True,
    readout: Array | None = None,
    whole: Array | None = None,
) -> Twin:
    """Round a network.

    Parameters
    ----------
    architecture : Architecture
        Shape of the network.
    network : array of shape (size,)
        Its weights.
    pairs : array of shape (n, 2 g)
        Pairs of points as the network takes them, to observe the activations.
    x_unit, y_unit : float
        What one unit of a quantised feature, and of an estimate, stands for, scaled.
    dtype : {int8, int16}
        Type of the kernels.
    compensate : bool
        Round weights so that their errors cancel on the pairs; otherwise each by itself.
    readout : array of shape (width + 1,), optional
        The second output: weights for the last hidden layer, and a bias.
    whole : array of shape (n, 2 g), optional
        The same pairs as a device has them; by default rounded to units of ``x_unit``.

    Returns
    -------
    Twin
        The shifts of its outputs are negative where ``y_unit`` is too fine for them.

    Raises
    ------
    InputError
        If weights or activations exceed what a pack can hold.
    """
    if not np.isfinite(network).all():
        raise InputError("the network has weights that are not finite: its training diverged")
    *hidden, (last, last_bias) = architecture.parts(network.astype(np.float64))
    curve = silu_curve() if architecture.activation == "silu" else None
    layers = []
    if whole is None:
        whole = np.rint(pairs / x_unit).clip(-LARGEST, LARGEST)
    # Each pair in both orders, as in evaluation.
    h, q = (np.concatenate([x, np.roll(x, x.shape[1] // 2, axis=1)]) for x in (pairs, whole))
    unit = x_unit
    for kernel, bias in hidden:
        z = h @ kernel + bias
        reach = np.abs(z).max(axis=1)
        seen = RoundingData(q, z, bias=True) if compensate else None
        # The curve of silu is in absolute units. relu has none: its layers may have any scale.
        least = FRACTIONS[0] if curve is not None else None
        layer = round_layer(kernel.T, bias, unit, reach, dtype, seen, least)
        unit = 2.0**-layer.fraction
        layer = replace(layer, fraction=max(layer.fraction, FRACTIONS[0]))
        layers.append(layer)
        h = _activate(z, architecture.activation)
        q = activate(layer, q @ layer.kernel.T + layer.bias, curve).astype(np.float64)
    # A difference is taken in both orders and halved, so the output's bias cancels.
    orders = [np.split(both, 2) for both in (h, q)]
    h, q = (np.subtract(*both) for both in orders)
    if readout is not None:  # then the sum of both orders matters, too
        more = [_BOTH * np.add(*both) for both in orders]
        h, q = np.concatenate([h, more[0]]), np.concatenate([q, more[1]])
    seen = RoundingData(q, h @ last / unit, bias=False) if compensate else None
    both = 0.0 if readout is None else float(last_bias[0]) / y_unit
    output, multiplier, shift = round_output(last[:, 0], unit / (2 * y_unit), seen, both)
    twin = Twin(tuple(layers), output, multiplier, shift)
    if readout is None:
        return twin
    room = ACCUMULATOR - 1 - 2 * LARGEST * int(np.abs(output.astype(np.int64)).sum())
    return replace(
        twin,
        bias=_bias(both, multiplier, shift, room),
        difficulty=round_difficulty(readout.astype(np.float64), unit / y_unit, 1 / y_unit),
    )


def round_layer(
    kernel: Array,
    bias: Array,
    unit: float,
    reach: float | Array,
    dtype: Any,
    seen: RoundingData | None = None,
    least: int | None = FRACTIONS[0],
) -> Layer:
    """Round a hidden layer.

    Parameters
    ----------
    kernel : array of shape (outputs, inputs)
        Weights.
    bias : array of shape (outputs,)
        In the units of the float network.
    unit : float
        What an integer input of 1 stands for.
    reach : float or array of shape (n,)
        Largest magnitude before the activation, of all pairs or of each.
    dtype : {int8, int16}
        Type of the kernel.
    seen : RoundingData, optional
        Inputs of the layer; without them, each weight is rounded by itself.
    least : int or None
        Fewest fraction bits; None for any number, also a negative one.
    """
    rows = np.column_stack([kernel * unit, bias])
    if seen is not None:
        rows = seen.fitted(rows)
    kernel, bias = rows[:, :-1] / unit, rows[:, -1]
    most = np.iinfo(dtype).max
    load = np.abs(kernel).sum(axis=1) + np.abs(bias) / (unit * LARGEST)
    finest = _finest(kernel, load, ACCUMULATOR, most)
    fraction = _fraction(reach, float(finest.max()) * unit, least)
    steps, multiplier, shift = _steps(finest, unit * 2.0**fraction)
    if shift < 0:
        raise InputError("the network's weights are too large: a sum exceeds its inputs by far")
    costs = np.append(np.full(kernel.shape[1], LARGEST), 1)
    whole = _whole(rows / (steps * unit)[:, None], seen, most, costs, ACCUMULATOR)
    return Layer(
        whole[:, :-1].astype(dtype), whole[:, -1].astype(np.int32), multiplier, shift, fraction
    )


def round_difficulty(readout: Array, unit: float, bias_unit: float) -> Difficulty:
    """Round the second output, weights and a bias ``(inputs + 1,)``.

    An input of 1 stands for ``unit`` estimate units, and the bias is in ``bias_unit`` of them.
    """
    row, bias = readout[None, :-1], float(readout[-1]) * bias_unit
    load = np.abs(row).sum(axis=1) + abs(bias) / (unit * LARGEST)
    finest = np.maximum(_finest(row, load, ACCUMULATOR, LARGEST), _TINY)
    steps, multiplier, shift = _steps(finest, unit)
    weights = np.rint(row / steps)[0].astype(np.int16)
    room = ACCUMULATOR - 1 - LARGEST * int(np.abs(weights.astype(np.int64)).sum())
    factor = int(multiplier[0])
    return Difficulty(weights, _bias(bias, factor, shift, room), factor, shift)


def _bias(units: float, multiplier: int, shift: int, room: int) -> int:
    """Bias that amounts to ``units`` estimate units."""
    whole = round(units * 2.0 ** (16 + shift) / max(multiplier, 1))
    return max(-room, min(whole, room))


def round_output(
    weights: Array, unit: float, seen: RoundingData | None = None, both: float = 0.0
) -> tuple[Array, int, int]:
    """Round the output's weights ``(inputs,)``; an input of 1 stands for ``unit`` estimate units.

    ``both`` is the amount added to the sum of both orders of a pair, in estimate units.

    Returns the weights, int16 ``(inputs,)``, the multiplier and the shift, which is negative if the
    estimate unit is too fine for the largest output.
    """
    row = weights[None]
    if seen is not None:
        row = seen.fitted(row)
    load = np.abs(row).sum(axis=1) + abs(both) / (2 * unit * LARGEST)
    finest = _finest(row, load, OUTPUT, LARGEST)
    steps, multiplier, shift = _steps(finest, unit)
    costs = np.full(len(weights), LARGEST)
    whole = _whole(row / steps, seen, LARGEST, costs, OUTPUT)
    return whole[0].astype(np.int16), int(multiplier[0]), shift


def _whole(rows: Array, seen: RoundingData | None, most: int, costs: Array, limit: int) -> Array:
    """Round weights ``(outputs, i)``, given in steps.

    ``costs`` ``(i,)`` is what a step of each adds to the largest sum, which stays below ``limit``.
    """
    plain: Array = np.rint(rows)
    if seen is None:
        return plain
    whole = seen.rounded(rows, most)
    fits = np.abs(whole) @ costs < limit
    return np.where(fits[:, None], whole, plain)


def _finest(kernel: Array, load: Array, limit: int, most: int) -> Array:
    """Smallest step ``(outputs,)`` that the type of a kernel and its sums allow.

    ``load`` is the sum of magnitudes ``(outputs,)``. Rounding adds half a step to each at most, and
    a little more if errors are to cancel.
    """
    room = (limit - 1) / LARGEST - 2 * (kernel.shape[1] + 1)
    finest: Array = np.maximum(np.abs(kernel).max(axis=1) / most, load / room)
    return finest


def _fraction(reach: float | Array, unit: float, least: int | None) -> int:
    """Most fraction bits that hold ``reach`` with no multiplier above a half.

    A few pairs may reach further than the fewest bits can hold: there, sums are clipped.
    """
    bits = floor(log2(LARGEST / max(_HEADROOM * float(np.max(reach)), 1e-9)))
    most = min(bits, FRACTIONS[-1], _exponent(unit))
    if least is None:
        return most
    usual = float(np.quantile(reach, 1 - _CLIPPED))
    if usual > LARGEST >> least:
        raise InputError(
            f"activations reach {usual:.3g}, and a pack holds {LARGEST >> least}: the network's "
            "weights are too large"
        )
    return max(least, most)


def _steps(finest: Array, scale: float) -> tuple[Array, Array, int]:
    """Enlarge steps ``(outputs,)`` until their multipliers are whole numbers.

    Returns steps, int16 multipliers, and the shift; together they equal ``step * scale``.
    """
    shift = min(_exponent(float(finest.max()) * scale), MAX_SHIFT)
    factor = scale * 2.0 ** (16 + shift)
    multiplier = np.ceil(finest * factor).clip(1, LARGEST)
    return multiplier / factor, multiplier.astype(np.int16), shift


def _exponent(factor: float) -> int:
    """Largest power of two that a factor can be scaled by before its multiplier is too large."""
    return floor(log2(LARGEST / 65536 / max(factor, 1e-30)))


_LARGEST_WEIGHT = 127
_LARGEST_BIAS = 1 << 30
_TINIEST = 1e-30  # for outputs that are always zero
_ATTEMPTS = 6
# Weights are rounded as if activations had 16 bits. Knowing of coarser ones would not help: their
# errors differ from pair to pair, and no weight can correct them.
_LEVELS = 32767


def with_core_on_grid(graph: Graph, queries: Tensors) -> Graph:
    """Round the layers of a graph's core, on training queries."""
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
    """Round the kernels of consecutive layers.

    Parameters
    ----------
    layers : sequence of Dense
        From a float network.
    inputs : array of shape (n, i)
        Inputs of the first.
    activation : {"relu", "silu"}
        Of the hidden layers.
    beside : sequence of Dense
        More layers with the inputs of the last; returned at the end.
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
    """Round a layer so that it maps whole inputs to what it made of the exact ones."""
    data = RoundingData(whole, exact @ layer.kernel + layer.bias, bias=True)
    rows = data.fitted(np.column_stack([layer.kernel.T * unit, layer.bias]))
    # So fine that the largest weight is 127 steps, but a bias has to fit 32 bits.
    finest = np.maximum(np.abs(rows[:, -1]) / _LARGEST_BIAS, _TINIEST)
    steps = np.maximum(np.abs(rows[:, :-1]).max(axis=1) / _LARGEST_WEIGHT, finest)
    for _ in range(_ATTEMPTS):
        whole = data.rounded(rows / steps[:, None], _LARGEST_WEIGHT)
        largest = np.abs(whole[:, :-1]).max(axis=1)
        short = (largest > 0) & (largest < _LARGEST_WEIGHT) & (steps > finest)
        if not short.any():
            break
        # For such a row a converter would infer finer steps than these.
        steps = np.where(short, np.maximum(steps * (largest - 1) / _LARGEST_WEIGHT, finest), steps)
    weights = whole * steps[:, None]
    return Dense(weights[:, :-1].T / unit, weights[:, -1], layer.activated)


def _activate(z: Array, activation: str) -> Array:
    if activation == "relu":
        return np.maximum(z, 0)
    small = np.exp(-np.abs(z))  # written so that no exponential overflows
    activated: Array = z * np.where(z >= 0, 1.0, small) / (1 + small)
    return activated
