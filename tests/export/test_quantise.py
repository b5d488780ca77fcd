"""A pack predicts what its model predicts, whatever the model and its units."""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack import read_pack, write_pack
from twinedge.runtime.reference import evaluate
from twinedge_export.quantise import quantise

# RMS difference from the float model in standard deviations of the target. Ten times less is usual.
ALLOWED = {"int8": 0.03, "int16": 0.001}


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("weights", ALLOWED)
def test_trained_twins(four_twins, tiny_twin, deviation, curve, weights):
    for model in (four_twins, tiny_twin):
        assert deviation(model, curve[0][80:], weights=weights) < ALLOWED[weights]


@pytest.mark.parametrize("weights", ALLOWED)
@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("hidden", [(1, 1, 1), (7,), (128, 128)], ids=str)
def test_random_networks_of_every_shape(untrained, deviation, curve, weights, activation, hidden):
    X, y = curve
    model = untrained(X[:80], y[:80], hidden, activation, twins=2)
    assert deviation(model, X[80:], weights=weights) < ALLOWED[weights]


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_one_feature_and_one_neuron(untrained, deviation, curve, activation):
    X, y = curve
    model = untrained(X[:80, :1], y[:80], (1,), activation)
    for anchors in (1, 8):
        assert deviation(model, X[80:, :1], anchors=anchors) < ALLOWED["int8"]


@pytest.mark.parametrize(
    ("features", "target"),
    [
        (lambda X: 1e9 * X, lambda y: 1e-9 * y),
        (lambda X: 1e-9 * X, lambda y: 1e9 * y),
        (lambda X: np.column_stack([X, np.full(len(X), 1e6)]), lambda y: y),
    ],
    ids=["large features", "large target", "constant column"],
)
def test_features_and_targets_of_any_size(untrained, deviation, curve, features, target):
    X, y = features(curve[0]), target(curve[1])
    model = untrained(X[:80], y[:80], (9, 4), "silu")
    for weights, allowed in ALLOWED.items():
        assert deviation(model, X[80:], weights=weights) < allowed


def test_a_constant_target_is_predicted(untrained, curve):
    X, y = curve[0], np.full(len(curve[1]), 7.0)
    model = untrained(X[:80], y[:80], (4,))
    model.weights_[...] = 0
    found = evaluate(quantise(model, [np.arange(5)]), X[80:])
    np.testing.assert_array_equal(found.mean, np.float32(7))
    np.testing.assert_array_equal(found.spread, 0)


@pytest.mark.parametrize(("bias", "size"), [(0.0, 0.0), (0.7, 1e-30), (-3.0, 1e-7)])
@pytest.mark.parametrize("depth", [0, 1])
def test_a_dead_unit_costs_the_others_nothing(untrained, deviation, curve, bias, size, depth):
    X, y = curve
    model = untrained(X[:80], y[:80], (6, 5), "silu")
    kernel, biases = model.architecture_.parts(model.weights_[0])[depth]
    kernel[:, 2], biases[2] = size, bias
    assert deviation(model, X[80:], weights="int16") < ALLOWED["int16"]


def test_units_of_very_different_size(untrained, deviation, curve):
    X, y = curve
    model = untrained(X[:80], y[:80], (6, 5), "silu")
    kernel, biases = model.architecture_.parts(model.weights_[0])[0]
    kernel *= 10.0 ** np.arange(-4, 2)
    biases *= 10.0 ** np.arange(-4, 2)
    assert deviation(model, X[80:], weights="int16") < ALLOWED["int16"]


def test_a_heavy_bias_takes_no_room_from_others(untrained, deviation, curve):
    X, y = curve
    model = untrained(X[:80], y[:80], (6,), "relu")
    model.architecture_.parts(model.weights_[0])[0][1][:] = [100, -100, 0, 50, 1, 0]
    assert deviation(model, X[80:], weights="int8") < ALLOWED["int8"]


@pytest.mark.parametrize("twins", [1, 3])
def test_neighbors(untrained, deviation, curve, twins):
    X, y = curve
    model = untrained(X[:80], y[:80], (8,), "silu", twins=twins, pairs="neighbors", neighbors=4)
    assert deviation(model, X[80:], anchors=20, weights="int16") < ALLOWED["int16"]
    pack = quantise(model, np.tile(np.arange(10), (twins, 1)))
    assert pack.neighbors == 4
    assert pack.trained_on_neighbors
    assert read_pack(write_pack(pack)).members == 4 * twins
    assert quantise(model, np.tile(np.arange(10), (twins, 1)), neighbors=2).neighbors == 2
    with pytest.raises(InputError, match="all anchors"):
        quantise(model, np.tile(np.arange(10), (twins, 1)), neighbors=0)


def test_twins_may_have_different_numbers_of_anchors(untrained, curve):
    X, y = curve
    model = untrained(X[:80], y[:80], (8,), "silu", twins=2)
    rows = [np.arange(7), np.array([50, 3])]
    pack = quantise(model, rows, weights="int16", metadata={"target": "level"})
    expected = np.concatenate(
        [
            replace_twins(model, twin).estimates(X[80:], anchors=mine)
            for twin, mine in enumerate(rows)
        ],
        axis=1,
    )
    found = evaluate(pack, X[80:])
    np.testing.assert_allclose(found.mean, expected.mean(axis=1), atol=0.001 * y.std())
    np.testing.assert_allclose(found.spread, expected.std(axis=1), atol=0.001 * y.std())
    assert pack.counts.tolist() == [7, 2]
    assert pack.ids.tolist() == [*range(7), 50, 3]
    assert pack.metadata == {"target": "level"}


def replace_twins(model, twin):
    """Return a model of one of the twins alone."""
    alone = copy(model)
    alone.weights_ = model.weights_[twin : twin + 1]
    return alone


def test_impossible_settings_and_shapes_are_refused(untrained, curve, complaint):
    model = untrained(*curve)
    assert "4097 anchors" in complaint(quantise, model, np.zeros((1, 4097), int))
    assert "int4" in complaint(quantise, model, [[0]], weights="int4")
    assert "neighbors" in complaint(quantise, model, [[0]], neighbors=5000)
    assert "4 hidden layers" in complaint(quantise, untrained(*curve, (2, 2, 2, 2)), [[0]])
    assert "1025 neurons" in complaint(quantise, untrained(*curve, (1025,)), [[0]])


@pytest.mark.parametrize("size", [1.0, 30.0, 1e9])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_outputs_of_any_size_fit_a_coarser_unit(untrained, curve, activation, size):
    X, y = curve
    model = untrained(X[:80], y[:80], (9, 4), activation, twins=2)
    plain = quantise(model, [[0], [1]])
    first = model.architecture_.parts(model.weights_[0])
    for kernel, _ in first[:2]:
        kernel *= 10  # sums in the hundreds
    first[2][0][:] *= size
    pack = read_pack(write_pack(quantise(model, [[0], [1]], weights="int16")))
    assert plain.y_gain <= pack.y_gain <= plain.y_gain * size
    assert (pack.y_gain > plain.y_gain) == (size > 1)
    expected = model.predict(X[80:], anchors=[0, 1])
    off = evaluate(pack, X[80:]).mean - expected
    assert np.sqrt(np.mean(np.square(off))) < 0.001 * np.std(expected)


def test_a_second_output_of_any_size_fits_a_coarser_unit(untrained, curve):
    # This is where the pack of the protein table failed: its rare large activations leave the
    # layer few digits, and the difficulty has the largest weights.
    X, y = curve
    model = untrained(X[:80], y[:80], (9, 4), "silu")
    model.architecture_.parts(model.weights_[0])[1][0][:] *= 100
    model.difficulty_ = np.full((1, 5), 30, np.float32)
    plain, pack = (quantise(model, [[0]], weights="int16", intervals=i) for i in (False, True))
    assert pack.y_gain >= 2 * plain.y_gain
    _, (spread, asymmetry, difficulty) = model._signals(X[80:], [0], None)
    found = evaluate(read_pack(write_pack(pack)), X[80:]).signals * float(pack.y_gain)
    np.testing.assert_allclose(found[2], difficulty, atol=0.001 * difficulty.mean())
    asymmetry = asymmetry.clip(max=1048575 * pack.y_gain)  # FORMAT.md, section 8
    np.testing.assert_allclose(found[1], asymmetry, atol=0.001 * asymmetry.mean())
    np.testing.assert_array_equal([found[0], spread], 0)  # of one anchor


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_activations_of_relu_may_be_of_any_size(untrained, deviation, curve, size):
    X, y = curve
    model = untrained(X[:80], y[:80], (9, 4), "relu")
    before = deviation(model, X[80:])
    for layer, factor in zip(
        model.architecture_.parts(model.weights_[0]), (size, 1 / size, 1), strict=True
    ):
        for one in layer:
            one *= factor
    first, second, _ = model.architecture_.parts(model.weights_[0])
    second[1][:] *= size
    assert np.abs(first[0]).max() > size / 10
    assert deviation(model, X[80:]) < max(ALLOWED["int8"], 2 * before)


def test_activations_of_silu_are_clipped_for_rare_pairs_only(untrained, deviation, curve):
    X, y = curve
    model = untrained(X[:80], y[:80], (9, 4), "silu")
    kernel = model.architecture_.parts(model.weights_[0])[0][0]
    kernel[:, 3] = 0
    kernel[0, 3] = 300
    model.architecture_.parts(model.weights_[0])[1][0][3] *= 1e-3
    model.anchor_X_ = model.anchor_X_.copy()
    scaling = model.scaling_
    model.anchor_X_[7, 0] = scaling.x_mean[0] + 5 * scaling.x_scale[0]  # a sum of 1500
    # One pair in eighty has this row first, and one in a hundred may be clipped.
    with pytest.raises(InputError, match="activations reach"):
        quantise(model, [[0]])
    model.anchor_X_ = np.tile(model.anchor_X_, (3, 1))
    model.anchor_X_[80:, 0] = model.anchor_X_[0, 0]
    model.anchor_y_ = np.tile(model.anchor_y_, 3)
    assert deviation(model, X[80:]) < ALLOWED["int8"]


def test_what_a_pack_cannot_hold_is_refused(untrained, curve, complaint):
    X, y = curve
    model = untrained(X, y, activation="silu")
    model.weights_ = model.weights_ * 1e4
    assert "activations reach" in complaint(quantise, model, [[0]])
    model = untrained(X, y)
    model.weights_[0, 3] = np.nan
    assert "not finite" in complaint(quantise, model, [[0]])
    assert "not finite" in complaint(quantise, untrained(1e-44 * X, y), [[0]])
    model = untrained(X, y)
    model.scaling_ = replace(model.scaling_, y_mean=1e9 + 3, y_scale=1e-9)
    assert "varies too little" in complaint(quantise, model, [[0]])


def test_wild_values_reach_as_far_as_integers_do(untrained):
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[:2] = [[1e5, 0], [0, -1e4]]
    model = untrained(X, X[:, 0].clip(-3, 3), (8, 8))
    rows = np.arange(8)
    pack = quantise(model, [rows])
    assert np.abs(pack.anchors[:2]).max() == 32767
    scaling = model.scaling_
    edge = scaling.x_mean + scaling.limit * scaling.x_scale
    wild = np.array([[1e9, 0.3], [edge[0], 0.3]])
    found = evaluate(pack, wild).mean
    assert found[0] == found[1]
    expected = model.predict(wild, anchors=rows)
    np.testing.assert_allclose(found, expected, atol=0.02 * float(scaling.y_scale))
