"""Weights on the steps of a converter: it has nothing left to round."""

from itertools import pairwise

import numpy as np
import pytest

from twinedge_export.fold_anchors import Dense, Inputs, fold
from twinedge_export.graph import SHAPES
from twinedge_export.round_weights import _LARGEST_WEIGHT, on_grid, with_core_on_grid


def plainly(layer):
    """Round each weight by itself, as a converter does."""
    steps = np.abs(layer.kernel).max(axis=0) / _LARGEST_WEIGHT
    return Dense(np.rint(layer.kernel / steps) * steps, layer.bias, layer.activated)


def activations(n=1500, outputs=24, *, seed=0):
    """Smooth functions of two variables, like activations."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2)) @ rng.normal(size=(2, outputs)) + rng.normal(size=outputs)
    return np.maximum(hidden, 0)


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


@pytest.mark.parametrize("seed", range(4))
def test_weights_lie_on_steps_and_err_less_than_each_by_itself(seed):
    inputs = activations(seed=seed)
    (layer,) = layers(False, 24, 8, seed=seed)
    (rounded,) = on_grid([layer], inputs[:1000], "relu")
    assert_on_grid(rounded.kernel)
    exact = inputs[1000:] @ layer.kernel + layer.bias

    def off(other):
        return np.sqrt(np.mean(np.square(inputs[1000:] @ other.kernel + other.bias - exact)))

    assert off(rounded) < 0.3 * off(plainly(layer))


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_later_layers_make_good_for_earlier_ones(activation):
    inputs = activations()
    stack = layers(True, 24, 40, 40) + layers(False, 40, 1)
    together = on_grid(stack, inputs, activation)
    apart = [plainly(layer) for layer in stack]
    assert all(one.activated == other.activated for one, other in zip(together, stack, strict=True))

    def output(some):
        h = inputs
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
    inputs = activations()
    inputs[:, 3] = 0
    (layer,) = layers(False, 24, 8)
    layer.kernel[:, 2], layer.bias[2] = 0, 0.5
    (rounded,) = on_grid([layer], inputs, "relu")
    assert np.isfinite(rounded.kernel).all()
    np.testing.assert_allclose(inputs @ rounded.kernel[:, 2] + rounded.bias[2], 0.5, atol=1e-3)
    (nothing,) = on_grid([layer], np.zeros_like(inputs), "relu")
    assert np.isfinite(nothing.kernel).all()


def test_what_is_beside_the_last_layer_is_rounded_too_and_leaves_the_others():
    inputs = activations()
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
