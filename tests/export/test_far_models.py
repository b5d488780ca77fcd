"""Converted files of unusual models, in units, shape or weights."""

import numpy as np
import pytest

from twinedge.runtime.loading import load
from twinedge_export.onnx_file import onnx_model
from twinedge_export.tflite_file import tflite_model

# Allowed rms deviation in standard deviations of the target.
FILES = {
    "int8.tflite": (tflite_model, "int8", 0.04),
    "int16.tflite": (tflite_model, "int16, float edges", 0.004),
    "int8.onnx": (onnx_model, "int8", 0.02),
    "weights.onnx": (onnx_model, "int8 weights", 0.004),
}


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow if name == "int16.tflite" else ())
        for name in FILES
    ]
)
def deviation(request, tmp_path):
    """Measure how far a file is from its model, relative to what is allowed."""
    make, level, allowed = FILES[request.param]

    def measure(model, x, rows):
        path = tmp_path / request.param
        path.write_bytes(make(model, [rows], level=level))
        mean, spread = load(path).predict(x, return_std=True)
        expected = model.predict(x, return_std=True, anchors=rows)
        unit = model.anchor_y_.std()
        off = np.array([mean, spread], np.float64) / unit - np.array(expected) / unit
        return np.sqrt(np.mean(np.square(off))) / allowed

    return measure


@pytest.fixture(scope="module")
def wide(untrained):
    """Make a 20-20 model with random weights."""

    def make(X, y, hidden=(20, 20), activation="silu"):
        return untrained(X, y, hidden, activation)

    return make


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_targets_in_any_unit(wide, deviation, curve, unit):
    X, y = curve
    assert deviation(wide(X, unit * y), X[:50], np.arange(8)) < 1


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_features_in_any_unit(wide, deviation, curve, unit):
    X, y = curve
    assert deviation(wide(unit * X, y), unit * X[:50], np.arange(8)) < 1


def test_a_target_far_from_zero(wide, deviation, curve):
    X, y = curve
    assert deviation(wide(X, 1e4 * y.std() + y), X[:50], np.arange(8)) < 1


def test_dead_and_tiny_neurons(wide, deviation, curve):
    X, y = curve
    model = wide(X, y)
    for kernel, bias in model.architecture_.parts(model.weights_[0])[:2]:
        kernel[:, 2], bias[2] = 0, 0.7
        kernel[:, 5], bias[5] = 1e-30, -3
        kernel[:, 7], bias[7] = 1e-7, 0
    assert deviation(model, X[:50], np.arange(8)) < 1


@pytest.mark.parametrize("hidden", [(1,), (1, 1, 1), (3, 130)], ids=str)
def test_narrow_and_wide_layers(wide, deviation, curve, hidden):
    X, y = curve
    assert deviation(wide(X, y, hidden, "relu"), X[:50], np.arange(8)) < 1


def test_one_feature_and_one_anchor(wide, deviation, curve):
    X, y = curve
    assert deviation(wide(X[:, :1], y), X[:50, :1], np.array([3])) < 1


def test_a_constant_feature(wide, deviation, curve):
    X, y = curve
    X = np.column_stack([X, np.full(len(X), 5.0)])
    assert deviation(wide(X, y), X[:50], np.arange(8)) < 1


def test_more_features_and_anchors_than_usual(wide, deviation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 40))
    model = wide(X, X[:, 0] + np.sin(X[:, 1]))
    assert deviation(model, X[:30], np.arange(300)) < 1


def test_wild_values_of_a_long_table_go_no_further_than_the_network_saw_them(wide, deviation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    X[:2] = [[1e5, 0, 0], [0, -1e4, 1e3]]
    model = wide(X, X[:, 0].clip(-3, 3) + np.sin(X[:, 1]))
    assert model.scaling_.limit < 10
    assert deviation(model, X[:50], np.arange(8)) < 1
