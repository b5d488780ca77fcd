"""Models with an input map or a target curve: all their files predict what they do."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.runtime.loading import load
from twinedge.runtime.reference import evaluate
from twinedge_export import onnx_file, tflite_file
from twinedge_export.quantise import quantise

ROWS = [np.arange(5), np.array([50, 3, 20])]
MAKE = {"onnx": onnx_file.onnx_model, "tflite": tflite_file.tflite_model}
# Allowed rms deviation of mean and spread, in standard deviations of the target on its curve.
ALLOWED = {
    ("onnx", "float32"): 1e-5,
    ("onnx", "int8 weights"): 0.004,
    ("onnx", "int8"): 0.02,
    ("tflite", "float32"): 1e-5,
    ("tflite", "int16, float edges"): 0.004,
    ("tflite", "int8, float edges"): 0.02,
}
PACKED = {"int8": 0.01, "int16": 0.002}
KINDS = {
    "map": {"bins": 6},
    "log": {"curve": "log"},
    "map and log": {"bins": 6, "curve": "log"},
    "map and log1p": {"bins": 3, "extra": 0, "curve": "log1p"},
    "map and sqrt": {"bins": 9, "curve": "sqrt"},
}


@pytest.fixture(scope="module")
def steep(curve):
    """A positive target over two powers of ten."""
    X, _ = curve
    return X, 20 * np.exp(1.5 * np.sin(2 * X[:, 0]) + X[:, 1] / 10)


@pytest.fixture(scope="module", params=KINDS)
def model(request, untrained, steep):
    X, y = steep
    model = untrained(X[:80], y[:80], (12, 8), "silu", twins=2, **KINDS[request.param])
    for network in model.weights_:
        model.architecture_.parts(network)[-1][0][...] *= 0.5  # spreads within the table of a curve
    return model


def on_curve(model):
    """Return the same model as one of a plain target: what is on the curve."""
    plain = copy(model)
    plain.scaling_ = replace(model.scaling_, curve=None)
    plain.anchor_y_ = model.scaling_.curved(model.anchor_y_)
    return plain


def off(found, model, X):
    """How far means and spreads are off, in standard deviations of the target on its curve."""
    estimates = []
    for twin, rows in enumerate(ROWS):
        alone = on_curve(model)
        alone.weights_ = model.weights_[twin : twin + 1]
        estimates.append(alone.estimates(X, anchors=rows))
    every = np.concatenate(estimates, axis=1)
    c, d = every.mean(axis=1), every.std(axis=1)
    wanted = model.scaling_.uncurved(c), model.scaling_.deviation(c, d)
    # One deviation is worth more where the target is larger.
    unit = model.scaling_.deviation(c, model.scaling_.y_scale)
    errors = [(one - other) / unit for one, other in zip(found, wanted, strict=True)]
    return float(np.sqrt(np.mean(np.square(errors), axis=1)).max())


@pytest.mark.parametrize("weights", PACKED)
def test_a_pack_predicts_like_its_model(model, steep, weights):
    pack = read_pack(write_pack(quantise(model, ROWS, weights=weights)))
    assert (pack.map is None) == (model.map_ is None)
    assert (pack.target_curve is None) == (model.scaling_.curve is None)
    found = evaluate(pack, steep[0][80:])
    assert off((found.mean, found.spread), model, steep[0][80:]) < PACKED[weights]


@pytest.mark.parametrize(("form", "level"), ALLOWED)
def test_every_file_predicts_like_its_model(model, steep, tmp_path, form, level):
    X = steep[0][80:]
    (tmp_path / "model.twin").write_bytes(write_pack(quantise(model, ROWS)))
    for shape, name in (("ensemble", "model"), ("twin", "model_twin")):
        path = tmp_path / f"{name}.{form}"
        path.write_bytes(MAKE[form](model, ROWS, shape=shape, level=level))
        found = load(path).predict(X, return_std=True)
        # A bare twin gets its points from the pack, whose map is rounded.
        allowed = max(ALLOWED[form, level], 0.002 if shape == "twin" else 0)
        assert off(found, model, X) < allowed
