"""Reference packs to measure boards with: random numbers in shapes from large to tiny."""

from dataclasses import replace
from itertools import product

import numpy as np

from twinedge.budget import Model
from twinedge.budget.measurements import Kind
from twinedge.budget.model import anchor_counts
from twinedge.pack import (
    Difficulty,
    Domain,
    InputMap,
    Intervals,
    Layer,
    Pack,
    TargetCurve,
    Twin,
)
from twinedge.pack.contents import Array
from twinedge.pack.layout import ACTIVATIONS
from twinedge.runtime.reference import silu_curve

# From the paper's model to one so small that the work around its layers shows.
SHAPES = (
    Model.of(8, (128, 128), 32),
    Model.of(8, (64, 64), 32, twins=4),
    Model.of(8, (64, 64), 16),
    Model.of(13, (33, 17), 10),
    Model.of(3, (16,), 8),
)
# The default of exports in every combination; without intervals, only the usual ones.
KINDS: tuple[Kind, ...] = (
    *product(ACTIVATIONS, ("int8", "int16"), (False, True), (True,)),
    *product(ACTIVATIONS, ("int8",), (False,), (False,)),
)
_NEIGHBORS = 4
_LARGEST = 32767  # magnitude of an input
_TYPICAL = 8192  # and of most inputs
_ROOM, _OUTPUT_ROOM = 65535, 32767  # sum of weight magnitudes per output that cannot overflow
_MAP_SHIFT, _MAP_TYPICAL = 10, 127  # a row of a map adds up to a quarter of a typical input
_HARD = 3  # bits by which errors are smaller than targets
# Levels in thousandths, and the quantiles of a normal distribution in units of 1/65536.
_QUANTILES = {500: 44203, 800: 83988, 900: 107796, 950: 128448, 990: 168810}


def references(kind: Kind) -> list[Model]:
    """List the models for a build: activation, weights, with or without neighbors and intervals."""
    activation, weights, near, intervals = kind
    return [
        replace(
            one,
            activation=activation,
            weights=weights,
            neighbors=_NEIGHBORS * near,
            intervals=intervals,
        )
        for one in SHAPES
    ]


def random_pack(model: Model) -> Pack:
    """Draw a pack whose activations stay in range, as those of a trained network do.

    With intervals it is the same pack, extended by what intervals need; so it is with a target
    curve, and with an input map that has no more outputs than features.
    """
    rng = np.random.default_rng(0)
    features, inputs = model.features, model.inputs
    pack = Pack(
        activation=model.activation,
        x_offset=np.zeros(features, np.float32),
        x_gain=np.full(features, _TYPICAL, np.float32),
        y_offset=np.float32(0),
        y_gain=np.float32(1 / _TYPICAL),
        twins=tuple(_twin(rng, model) for _ in model.counts),
        anchors=_within(rng, (model.anchors, inputs), _TYPICAL).astype(np.int16),
        targets=_within(rng, (model.anchors,), _TYPICAL).astype(np.int32),
        counts=np.array(model.counts, np.uint16),
        curve=silu_curve() if model.activation == "silu" else None,
        neighbors=model.neighbors,
        trained_on_neighbors=model.neighbors > 0,
        map=_map(np.random.default_rng(2), model) if model.map_outputs else None,
        target_curve=_target_curve(model.target_bins) if model.target_bins else None,
    )
    return _with_intervals(np.random.default_rng(1), pack) if model.intervals else pack


def _with_intervals(rng: np.random.Generator, pack: Pack) -> Pack:
    points = pack.anchors[:, : pack.features]
    ends = points.min(axis=0), points.max(axis=0)
    middle = np.median(points, axis=0).astype(np.int16)
    half = 65536 // 2
    return replace(
        pack,
        twins=tuple(_with_difficulty(rng, twin) for twin in pack.twins),
        intervals=Intervals(half, half, half, 4096 * 64, 100, 16 * 1024, 655, _QUANTILES),
        domain=Domain(*ends, middle),
        schema=0,
    )


def _with_difficulty(rng: np.random.Generator, twin: Twin) -> Twin:
    """Add a second output that is seldom negative, as it estimates an error."""
    inputs = len(twin.output)
    output = _within(rng, (1, inputs), _OUTPUT_ROOM // inputs)
    multiplier, shift = _scale(output)
    bias = int(2 * _TYPICAL * np.sqrt(np.square(output.astype(float)).sum()))
    last = output[0].astype(np.int16), bias, int(multiplier[0]), shift + _HARD
    typical = int(_within(rng, (), _TYPICAL))
    return replace(twin, bias=typical, difficulty=Difficulty(*last))


def _map(rng: np.random.Generator, model: Model) -> InputMap:
    """Draw curves that add about as much as a typical input; the first features have them."""
    knots = anchor_counts(model.map_rows, model.map_curves) if model.map_curves else ()
    bins = np.zeros(model.features, np.uint8)
    bins[: len(knots)] = np.array(knots, int) - 1
    return InputMap(
        bins,
        np.full(model.map_outputs, _MAP_SHIFT, np.uint8),
        np.concatenate(
            [np.linspace(-2 * _TYPICAL, 2 * _TYPICAL, one).astype(np.int16) for one in (*knots, 0)]
        ),
        _within(rng, (model.map_rows, model.map_outputs), _MAP_TYPICAL).astype(np.int8),
    )


def _target_curve(bins: int) -> TargetCurve:
    """Return a parabola over typical estimates, and some more."""
    shift = max(0, (8 * _TYPICAL // bins).bit_length() - 1)
    first = -(bins << shift) // 2
    rise = np.arange(bins + 1, dtype=np.int64) << shift
    return TargetCurve(first, shift, (first + rise + rise**2 // (16 * _TYPICAL)).astype(np.int32))


def _twin(rng: np.random.Generator, model: Model) -> Twin:
    layers, inputs = [], 2 * model.inputs
    dtype = np.dtype(model.weights)
    for width in model.hidden:
        most = min(int(np.iinfo(dtype).max), _ROOM // inputs)
        kernel = _within(rng, (width, inputs), most)
        multiplier, shift = _scale(kernel)
        bias = _within(rng, (width,), _TYPICAL).astype(np.int32)
        layers.append(Layer(kernel.astype(dtype), bias, multiplier, shift, 12))
        inputs = width
    output = _within(rng, (1, inputs), _OUTPUT_ROOM // inputs)
    multiplier, shift = _scale(output)
    return Twin(tuple(layers), output[0].astype(np.int16), int(multiplier[0]), shift)


def _within(rng: np.random.Generator, shape: tuple[int, ...], most: int) -> Array:
    return rng.integers(-most, most, shape, endpoint=True)


def _scale(kernel: Array) -> tuple[Array, int]:
    """Multipliers and the shift that bring sums over typical inputs back to typical ones."""
    factor = 1 / np.maximum(np.sqrt(np.square(kernel.astype(float)).sum(axis=1)), 1)
    shift = int(np.clip(np.floor(np.log2(0.5 / factor.max())), 0, 30))
    multiplier = np.clip(factor * 2.0 ** (16 + shift), 1, _LARGEST)
    return multiplier.astype(np.int16), shift
