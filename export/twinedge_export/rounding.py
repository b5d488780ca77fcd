"""One float network as integers.

Kernels are rounded per output, as finely as their type and the accumulator allow; activations get
the power of two that holds what they reach on training pairs. A multiplier is chosen first and the
step of its kernel taken from it, so multipliers add no error: with 16-bit activations, what a pack
loses it loses to the rounding of kernels. That is done so that the errors cancel on the pairs.
"""

from dataclasses import replace
from math import floor, log2
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.learn.network import Architecture
from twinedge.pack.check import ACCUMULATOR, LARGEST, OUTPUT
from twinedge.pack.contents import Array, Difficulty, Layer, Twin
from twinedge.pack.layout import FRACTIONS, MAX_SHIFT
from twinedge.runtime.reference import activate
from twinedge_export.compensation import Calibration
from twinedge_export.curve import silu_curve

_BOTH = 0.5  # weight of errors in both orders' sum, against those in their difference
_TINY = 1e-12  # step of weights that are all zero
_HEADROOM = 1.1  # what activations may reach beyond the training pairs before they are limited


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
) -> Twin:
    """Round a network.

    Parameters
    ----------
    architecture : Architecture
        Shape of the network.
    network : array of shape (size,)
        Its weights.
    pairs : array of shape (n, 2 f)
        Scaled pairs of points, to see what activations are.
    x_unit, y_unit : float
        Scaled size of the unit of a quantised feature, and of an estimate.
    dtype : {int8, int16}
        Type of the kernels.
    compensate : bool
        Round weights so that their errors cancel on the pairs; else each by itself.
    readout : array of shape (width + 1,), optional
        The second output: weights of the last hidden layer, and a bias.

    Raises
    ------
    InputError
        Where weights or activations are beyond what a pack can hold.
    """
    if not np.isfinite(network).all():
        raise InputError("the network has weights that are not finite: its training diverged")
    *hidden, (last, last_bias) = architecture.parts(network.astype(np.float64))
    curve = silu_curve() if architecture.activation == "silu" else None
    layers = []
    # Each pair in both orders, as it is evaluated.
    h = np.concatenate([pairs, np.roll(pairs, pairs.shape[1] // 2, axis=1)])
    q, unit = np.rint(h / x_unit).clip(-LARGEST, LARGEST), x_unit
    for kernel, bias in hidden:
        z = h @ kernel + bias
        reach = float(np.abs(z).max())
        seen = Calibration(q, z, bias=True) if compensate else None
        layer = round_layer(kernel.T, bias, unit, reach, dtype, seen)
        layers.append(layer)
        h = np.maximum(z, 0) if curve is None else z * _sigmoid(z)
        q = activate(layer, q @ layer.kernel.T + layer.bias, curve).astype(np.float64)
        unit = 2.0**-layer.fraction
    # A difference is taken in both orders and halved, so the output's bias cancels.
    orders = [np.split(both, 2) for both in (h, q)]
    h, q = (np.subtract(*both) for both in orders)
    if readout is not None:  # then it matters, too, what both orders have together
        more = [_BOTH * np.add(*both) for both in orders]
        h, q = np.concatenate([h, more[0]]), np.concatenate([q, more[1]])
    seen = Calibration(q, h @ last / unit, bias=False) if compensate else None
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
    reach: float,
    dtype: Any,
    seen: Calibration | None = None,
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
    reach : float
        Largest magnitude of what goes into the activation.
    dtype : {int8, int16}
        Type of the kernel.
    seen : Calibration, optional
        What the layer gets; without it, each weight is rounded by itself.
    """
    rows = np.column_stack([kernel * unit, bias])
    if seen is not None:
        rows = seen.fitted(rows)
    kernel, bias = rows[:, :-1] / unit, rows[:, -1]
    most = np.iinfo(dtype).max
    load = np.abs(kernel).sum(axis=1) + np.abs(bias) / (unit * LARGEST)
    finest = _finest(kernel, load, ACCUMULATOR, most)
    fraction = _fraction(_HEADROOM * reach, float(finest.max()) * unit)
    steps, multiplier, shift = _steps(finest, unit * 2.0**fraction)
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
    """Bias of an output that is to come to so many estimate units."""
    whole = round(units * 2.0 ** (16 + shift) / max(multiplier, 1))
    return max(-room, min(whole, room))


def round_output(
    weights: Array, unit: float, seen: Calibration | None = None, both: float = 0.0
) -> tuple[Array, int, int]:
    """Round the output's weights ``(inputs,)``; an input of 1 stands for ``unit`` estimate units.

    ``both`` is what is added to both orders of a pair together, in estimate units.

    Returns the weights, int16 ``(inputs,)``, the multiplier and the shift.
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


def _whole(rows: Array, seen: Calibration | None, most: int, costs: Array, limit: int) -> Array:
    """Round weights ``(outputs, i)`` that are given in steps.

    ``costs`` ``(i,)`` is what a step of each adds to the largest sum, which stays below ``limit``.
    """
    plain: Array = np.rint(rows)
    if seen is None:
        return plain
    whole = seen.rounded(rows, most)
    fits = np.abs(whole) @ costs < limit
    return np.where(fits[:, None], whole, plain)


def _finest(kernel: Array, load: Array, limit: int, most: int) -> Array:
    """Smallest step ``(outputs,)`` that neither the type of a kernel nor its sums forbid.

    ``load`` is the sum of magnitudes ``(outputs,)``. Rounding adds half a step to each at most, and
    a little more where errors are to cancel.
    """
    room = (limit - 1) / LARGEST - 2 * (kernel.shape[1] + 1)
    finest: Array = np.maximum(np.abs(kernel).max(axis=1) / most, load / room)
    return finest


def _fraction(reach: float, unit: float) -> int:
    """Fraction bits that hold ``reach``, but need no multiplier beyond a half."""
    bits = floor(log2(LARGEST / max(reach, 1e-9)))
    if bits < FRACTIONS[0]:
        raise InputError(
            f"activations reach {reach:.3g}, and a pack holds {LARGEST >> FRACTIONS[0]}: the "
            "network's weights are too large"
        )
    return max(FRACTIONS[0], min(bits, FRACTIONS[-1], _exponent(unit)))


def _steps(finest: Array, scale: float) -> tuple[Array, Array, int]:
    """Enlarge steps ``(outputs,)`` until their multipliers are whole numbers.

    Returns steps, multipliers, int16, and the shift with which they make ``step * scale``.
    """
    shift = min(_exponent(float(finest.max()) * scale), MAX_SHIFT)
    if shift < 0:
        raise InputError("the network's weights are too large: an output exceeds its inputs by far")
    factor = scale * 2.0 ** (16 + shift)
    multiplier = np.ceil(finest * factor).clip(1, LARGEST)
    return multiplier / factor, multiplier.astype(np.int16), shift


def _exponent(factor: float) -> int:
    """Largest power of two by which a factor can be raised before its multiplier is too large."""
    return floor(log2(LARGEST / 65536 / max(factor, 1e-30)))


def _sigmoid(z: Array) -> Array:
    # Written so that no exponential overflows.
    small = np.exp(-np.abs(z))
    sigmoid: Array = np.where(z >= 0, 1.0, small) / (1 + small)
    return sigmoid
