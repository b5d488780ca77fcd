"""Rounding whose errors cancel on the data: better than one by one, and never out of range."""

import numpy as np
import pytest

from twinedge.pack.contents import Twin, check_weights
from twinedge_export.round_weights import RoundingData, round_layer, round_output


def together(n=2000, inputs=24, *, seed=0):
    """Integers that resemble activations: smooth functions of a few variables."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2)) @ rng.normal(size=(2, inputs)) + rng.normal(size=inputs)
    return np.rint(9000 * np.logaddexp(hidden, 0))


def cost(rows, whole, inputs):
    """Rms error of each row's sums, in steps."""
    return np.sqrt(np.mean(np.square(inputs @ (rows - whole).T), axis=0))


def with_ones(inputs):
    return np.column_stack([inputs, np.ones(len(inputs))])


@pytest.mark.parametrize("seed", range(5))
def test_errors_cancel_on_points_never_seen(seed):
    rng = np.random.default_rng(seed)
    everything = together(4000, seed=seed)
    seen, unseen = everything[:2000], everything[2000:]
    rows = rng.uniform(-100, 100, (8, 24))
    whole = RoundingData(seen, seen @ rows.T, bias=False).rounded(rows, 127)
    assert np.array_equal(whole, np.rint(whole))
    plain = cost(rows, np.rint(rows), unseen)
    assert np.median(cost(rows, whole, unseen) / plain) < 0.3


def test_inputs_that_vary_independently_leave_nothing_to_gain():
    rng = np.random.default_rng(0)
    inputs = rng.integers(-3000, 3000, (100_000, 4)).astype(float)
    rows = rng.uniform(-100, 100, (5, 4))
    whole = RoundingData(inputs, inputs @ rows.T, bias=False).rounded(rows, 127)
    assert np.abs(whole - rows).max() < 0.6


@pytest.mark.parametrize("bias", [False, True], ids=["output", "layer"])
def test_whole_weights_stay_as_they_are(bias):
    inputs = together()
    rows = np.random.default_rng(0).integers(-127, 128, (8, 24 + bias)).astype(float)
    given = with_ones(inputs) if bias else inputs
    seen = RoundingData(inputs, given @ rows.T, bias=bias)
    np.testing.assert_allclose(seen.fitted(rows), rows, rtol=1e-9)
    np.testing.assert_array_equal(seen.rounded(rows, 127), rows)


def test_no_weight_leaves_its_range_but_a_bias_may():
    inputs = together()
    rows = np.random.default_rng(0).uniform(-140, 140, (50, 25))
    rows[:, -1] *= 1000
    whole = RoundingData(inputs, with_ones(inputs) @ rows.T, bias=True).rounded(rows, 127)
    assert np.abs(whole[:, :-1]).max() == 127
    assert np.abs(whole[:, -1]).max() > 50_000


def test_a_layer_is_fitted_to_what_the_layers_before_left():
    rng = np.random.default_rng(0)
    inputs = together()
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
@pytest.mark.parametrize("size", [1e-6, 1.0, 10.0])
def test_sums_overflow_nothing(dtype, size):
    # Rows with the largest possible sum: one more step up would be too many.
    rng = np.random.default_rng(1)
    q = together(inputs=600)
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

    q = together(inputs=600)
    kernel = np.random.default_rng(0).uniform(-1, 1, (4, 600))
    seen = Greedy(q, 1e-4 * q @ kernel.T, bias=True)
    layer = round_layer(kernel, np.zeros(4), 1e-4, 300.0, np.int8, seen)
    check_weights(Twin((layer,), np.zeros(4, np.int16), 0, 0), 0)
    assert np.abs(layer.kernel).min() == 0


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("weights", ["int8", "int16"])
def test_a_pack_is_nearer_to_its_model(untrained, deviation, curve, activation, weights):
    X, y = curve
    model = untrained(X[:80], y[:80], (24, 16), activation, twins=2)
    plain = deviation(model, X[80:], weights=weights, compensate=False)
    assert deviation(model, X[80:], weights=weights) < plain * {"int8": 0.5, "int16": 1.0}[weights]


def test_a_twin_of_neighbors_is_fitted_to_near_pairs(untrained, deviation, curve):
    X, y = curve
    model = untrained(X[:80], y[:80], (24, 16), "silu", pairs="neighbors", neighbors=4)
    plain = deviation(model, X[80:], anchors=60, compensate=False)
    assert deviation(model, X[80:], anchors=60) < 0.5 * plain
