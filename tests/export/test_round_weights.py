"""How weights are rounded: finely, without overflow, and so that errors cancel on the data."""

import zlib
from itertools import pairwise

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack.checks import check_weights
from twinedge.pack.contents import Twin
from twinedge.runtime.reference import silu_curve
from twinedge_export.fold_anchors import Dense, Inputs, fold
from twinedge_export.graph import SHAPES
from twinedge_export.round_weights import (
    _LARGEST_WEIGHT,
    RoundingData,
    on_grid,
    round_layer,
    round_output,
    with_core_on_grid,
)


def activations(n=2000, inputs=24, *, seed=0):
    """Integers that resemble activations: smooth functions of a few variables."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2)) @ rng.normal(size=(2, inputs)) + rng.normal(size=inputs)
    return np.rint(9000 * np.logaddexp(hidden, 0))


def with_ones(inputs):
    return np.column_stack([inputs, np.ones(len(inputs))])


def exact(layer, unit):
    """Return kernel and bias as floats, from the integers of a layer."""
    factor = layer.multiplier / 2.0 ** (16 + layer.shift + layer.fraction) / unit
    return layer.kernel * factor[:, None], layer.bias * factor * unit


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("inputs", [1, 128, 2048])
@pytest.mark.parametrize("size", [1e-6, 10.0])
def test_kernels_use_their_range_and_overflow_nothing(dtype, inputs, size):
    rng = np.random.default_rng(inputs)
    kernel = rng.normal(0, size, (16, inputs))
    kernel[3] = size  # this row has the largest possible sum
    bias = rng.normal(0, 10 * size, 16)
    unit = 4 / 32767
    layer = round_layer(kernel, bias, unit, 3.0, dtype)
    output, multiplier, shift = round_output(rng.normal(0, size, 16), 2.0**-layer.fraction)
    check_weights(Twin((layer,), output, multiplier, shift), 0)
    found, found_bias = exact(layer, unit)
    most = np.iinfo(dtype).max
    step = np.maximum(np.abs(kernel).max(axis=1) / most, np.abs(kernel).sum(axis=1) / 60_000)
    step += np.abs(bias) / 200_000 + step.max() / 2**13
    assert (np.abs(found - kernel) <= step[:, None]).all()
    np.testing.assert_allclose(found_bias, bias, rtol=1e-5, atol=1e-3 * size * unit * 32767)


@pytest.mark.parametrize(
    "weights", [np.ones(1024), np.eye(1024)[0], np.zeros(1024)], ids=["equal", "one", "none"]
)
def test_output_weights_just_fit(weights):
    whole, multiplier, shift = round_output(weights, 0.01)
    assert 32767 * int(np.abs(whole.astype(int)).sum()) < 2**30
    assert 1 <= multiplier <= 32767
    assert 0 <= shift <= 30
    np.testing.assert_allclose(
        whole * float(multiplier) / 2.0 ** (16 + shift), weights * 0.01, rtol=0.02
    )


@pytest.mark.parametrize("power", [1, 6, 11])
def test_steps_that_are_powers_of_two_fit_too(power):
    layer = round_layer(np.full((1, 1), 127.0), np.zeros(1), 2.0**-power / 64, 1.0, np.int8)
    found, _ = exact(layer, 2.0**-power / 64)
    np.testing.assert_allclose(found, 127.0, rtol=0.005)


def test_a_layer_of_nothing_is_a_layer():
    layer = round_layer(np.zeros((3, 2)), np.zeros(3), 1e-4, 0.0, np.int8)
    assert not layer.kernel.any()
    assert not layer.bias.any()
    assert (layer.multiplier >= 1).all()


def test_a_kernel_too_coarse_for_any_multiplier_is_refused():
    with pytest.raises(InputError, match="too large"):
        round_layer(np.full((1, 1), 1e6), np.zeros(1), 1.0, 1.0, np.int8)


def test_the_curve_follows_silu_and_is_the_same_on_every_machine():
    a = np.arange(0, 12, 1 / 1024)
    fine = a < 4
    position = np.where(fine, 32 * a, 128 + 8 * (a - 4))
    k = position.astype(int)
    curve = silu_curve().astype(float)
    line = curve[k] + (curve[k + 1] - curve[k]) * (position - k)
    error = line - 32768 * a / (1 + np.exp(a))
    assert np.abs(error).max() < 4  # half a unit of its finest use
    assert abs(error.mean()) < 0.2
    assert zlib.crc32(silu_curve().astype("<i2").tobytes()) == 0x6B30DDE2


@pytest.mark.parametrize("seed", range(2))
def test_errors_cancel_on_points_never_seen(seed):
    rng = np.random.default_rng(seed)
    everything = activations(4000, seed=seed)
    seen, unseen = everything[:2000], everything[2000:]
    rows = rng.uniform(-100, 100, (8, 24))
    whole = RoundingData(seen, seen @ rows.T, bias=False).rounded(rows, 127)
    assert np.array_equal(whole, np.rint(whole))

    def cost(some):
        return np.sqrt(np.mean(np.square(unseen @ (rows - some).T), axis=0))

    assert np.median(cost(whole) / cost(np.rint(rows))) < 0.3


def test_inputs_that_vary_independently_leave_nothing_to_gain():
    rng = np.random.default_rng(0)
    inputs = rng.integers(-3000, 3000, (100_000, 4)).astype(float)
    rows = rng.uniform(-100, 100, (5, 4))
    whole = RoundingData(inputs, inputs @ rows.T, bias=False).rounded(rows, 127)
    assert np.abs(whole - rows).max() < 0.6


@pytest.mark.parametrize("bias", [False, True], ids=["output", "layer"])
def test_whole_weights_stay_as_they_are(bias):
    inputs = activations()
    rows = np.random.default_rng(0).integers(-127, 128, (8, 24 + bias)).astype(float)
    given = with_ones(inputs) if bias else inputs
    seen = RoundingData(inputs, given @ rows.T, bias=bias)
    np.testing.assert_allclose(seen.fitted(rows), rows, rtol=1e-9)
    np.testing.assert_array_equal(seen.rounded(rows, 127), rows)


def test_no_weight_leaves_its_range_but_a_bias_may():
    inputs = activations()
    rows = np.random.default_rng(0).uniform(-140, 140, (50, 25))
    rows[:, -1] *= 1000
    whole = RoundingData(inputs, with_ones(inputs) @ rows.T, bias=True).rounded(rows, 127)
    assert np.abs(whole[:, :-1]).max() == 127
    assert np.abs(whole[:, -1]).max() > 50_000


def test_a_layer_is_fitted_to_what_the_layers_before_left():
    rng = np.random.default_rng(0)
    inputs = activations()
    rows = rng.uniform(-1, 1, (8, 25))
    wanted = with_ones(inputs) @ rows.T
    spoilt = np.rint(inputs * rng.uniform(0.9, 1.1, 24))  # as coarse weights would
    fitted = RoundingData(spoilt, wanted, bias=True).fitted(rows)
    off = [np.abs(wanted - with_ones(spoilt) @ each.T).mean() for each in (rows, fitted)]
    assert off[1] < off[0] / 5


@pytest.mark.parametrize("inputs", [np.zeros((50, 3)), np.full((50, 3), 7.0)], ids=["zero", "same"])
def test_inputs_that_say_nothing_leave_weights_near_where_they_were(inputs):
    rows = np.array([[0.3, -0.4, 0.2, 5.4], [100, -3.3, 0, -2.6]])
    seen = RoundingData(inputs, with_ones(inputs) @ rows.T, bias=True)
    np.testing.assert_allclose(seen.fitted(rows), rows, atol=1e-6)
    whole = seen.rounded(rows, 127)
    assert np.abs(whole - rows)[:, :-1].max() <= 1
    assert np.abs(with_ones(inputs) @ (whole - rows).T).max() <= 0.5


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("size", [1e-6, 10.0])
def test_sums_overflow_nothing(dtype, size):
    # Rows with the largest possible sum: one more step up would be too many.
    rng = np.random.default_rng(1)
    q = activations(inputs=600)
    kernel = size * np.where(rng.random((16, 600)) < 0.5, -1, 1) * rng.uniform(0.9, 1, (16, 600))
    bias, unit = rng.normal(0, 10 * size, 16), 4 / 32767
    z = unit * q @ kernel.T + bias
    layer = round_layer(kernel, bias, unit, 3.0, dtype, RoundingData(q, z, bias=True))
    weights = size * rng.choice([-1, 1], 600)
    seen = RoundingData(q, (q @ weights)[:, None], bias=False)
    output = round_output(weights, 2.0**-layer.fraction, seen)
    check_weights(Twin((layer,), *output), 0)


def test_a_row_whose_errors_cannot_cancel_within_bounds_is_rounded_plainly():
    class Greedy(RoundingData):
        def rounded(self, rows, most):
            return np.full_like(rows, most)

    q = activations(inputs=600)
    kernel = np.random.default_rng(0).uniform(-1, 1, (4, 600))
    seen = Greedy(q, 1e-4 * q @ kernel.T, bias=True)
    layer = round_layer(kernel, np.zeros(4), 1e-4, 300.0, np.int8, seen)
    check_weights(Twin((layer,), np.zeros(4, np.int16), 0, 0), 0)
    assert np.abs(layer.kernel).min() == 0


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize(("weights", "ratio"), [("int8", 0.5), ("int16", 1.0)])
def test_a_pack_is_nearer_to_its_model(untrained, deviation, curve, activation, weights, ratio):
    X, y = curve
    model = untrained(X[:80], y[:80], (24, 16), activation, twins=2)
    plain = deviation(model, X[80:], weights=weights, compensate=False)
    assert deviation(model, X[80:], weights=weights) < ratio * plain


def test_a_twin_of_neighbors_is_fitted_to_near_pairs(untrained, deviation, curve):
    X, y = curve
    model = untrained(X[:80], y[:80], (24, 16), "silu", pairs="neighbors", neighbors=4)
    plain = deviation(model, X[80:], anchors=60, compensate=False)
    assert deviation(model, X[80:], anchors=60) < 0.5 * plain


# Float layers on the steps of a converter, which then has nothing left to round.


def plainly(layer):
    """Round each weight by itself, as a converter does."""
    steps = np.abs(layer.kernel).max(axis=0) / _LARGEST_WEIGHT
    return Dense(np.rint(layer.kernel / steps) * steps, layer.bias, layer.activated)


def layers(activated, *widths, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Dense(rng.normal(size=(rows, columns)), rng.normal(size=columns), activated)
        for rows, columns in pairwise(widths)
    ]


def assert_on_grid(kernel):
    largest = np.abs(kernel).max(axis=0)
    steps = kernel / np.where(largest > 0, largest, 1) * _LARGEST_WEIGHT
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_layers_lie_on_steps_and_err_less_than_each_by_itself(activation):
    inputs = activations() / 9000
    stack = layers(True, 24, 40, 40) + layers(False, 40, 1)
    together = on_grid(stack, inputs[:1500], activation)
    apart = [plainly(layer) for layer in stack]
    assert all(one.activated == other.activated for one, other in zip(together, stack, strict=True))

    def output(some):
        h = inputs[1500:]
        for layer in some:
            h = h @ layer.kernel + layer.bias
            if layer.activated:
                h = np.maximum(h, 0) if activation == "relu" else h / (1 + np.exp(-h))
        return h

    exact = output(stack)
    assert np.std(output(together) - exact) < 0.3 * np.std(output(apart) - exact)
    for layer in together:
        assert_on_grid(layer.kernel)


def test_dead_inputs_and_outputs_stay_dead():
    inputs = activations() / 9000
    inputs[:, 3] = 0
    (layer,) = layers(False, 24, 8)
    layer.kernel[:, 2], layer.bias[2] = 0, 0.5
    (rounded,) = on_grid([layer], inputs, "relu")
    assert np.isfinite(rounded.kernel).all()
    np.testing.assert_allclose(inputs @ rounded.kernel[:, 2] + rounded.bias[2], 0.5, atol=1e-3)
    (nothing,) = on_grid([layer], np.zeros_like(inputs), "relu")
    assert np.isfinite(nothing.kernel).all()


def test_what_is_beside_the_last_layer_is_rounded_too_and_leaves_the_others():
    inputs = activations() / 9000
    stack, (second,) = layers(True, 24, 10) + layers(False, 10, 1), layers(False, 10, 1, seed=5)
    *rounded, beside = on_grid(stack, inputs, "relu", [second])
    for one, other in zip(rounded, on_grid(stack, inputs, "relu"), strict=True):
        np.testing.assert_array_equal(one.kernel, other.kernel)
        np.testing.assert_array_equal(one.bias, other.bias)
    assert_on_grid(beside.kernel)
    hidden = np.maximum(inputs @ stack[0].kernel + stack[0].bias, 0)
    exact = hidden @ second.kernel + second.bias
    plain = hidden @ plainly(second).kernel + second.bias
    assert np.std(hidden @ beside.kernel + beside.bias - exact) < 2 * np.std(plain - exact)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("integers", [False, True])
def test_all_layers_of_the_core_and_no_others_are_rounded(untrained, curve, shape, integers):
    X, y = curve
    model = untrained(X, y, (9, 8, 7), "silu", twins=2)
    inputs = Inputs.spanned(model) if integers else Inputs.scaled(model)
    graph = SHAPES[shape](fold(model, [np.arange(4), np.arange(3)], inputs), integers=integers)
    rounded = with_core_on_grid(graph, graph.calibration(model))
    for twin, original in zip(rounded.folding.twins, graph.folding.twins, strict=True):
        assert len(twin.layers) == 3
        for number, (layer, other) in enumerate(zip(twin.layers, original.layers, strict=True)):
            if integers or number < 2:
                assert_on_grid(layer.kernel)
                assert not np.array_equal(layer.kernel, other.kernel)
            else:
                np.testing.assert_array_equal(layer.kernel, other.kernel)
        np.testing.assert_array_equal(twin.first.kernel, original.first.kernel)
