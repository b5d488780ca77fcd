"""Models with an input map or a target curve: all their files predict what they do."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import twinedge
from twinedge import TwinRegressor
from twinedge.pack import read_pack, write_pack
from twinedge.runtime.interpreters import OnnxFile, TfliteFile
from twinedge.runtime.loading import load
from twinedge.runtime.reference import evaluate, map_points
from twinedge.runtime.reference import quantise as quantise_points
from twinedge_export import onnx_file, tflite_file
from twinedge_export.fine_tune import fine_tune
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
QUICK_LEVELS = {("onnx", "float32"), ("onnx", "int8"), ("tflite", "int16, float edges")}
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


USUAL = "map and log"


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=() if one == USUAL else pytest.mark.slow) for one in KINDS],
)
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


@pytest.mark.parametrize(
    ("form", "level"),
    [pytest.param(*one, marks=[pytest.mark.slow] * (one not in QUICK_LEVELS)) for one in ALLOWED],
)
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


def test_a_bare_twin_takes_points_as_the_pack_has_its_anchors(untrained, steep, tmp_path):
    X, y = steep
    model = untrained(X[:80], y[:80], (6,), bins=4)
    pack = quantise(model, [np.arange(5)], weights="int16")
    path = tmp_path / "model_twin.onnx"
    path.write_bytes(MAKE["onnx"](model, [np.arange(5)], shape="twin", level="float32"))
    inputs = map_points(pack, quantise_points(pack, X[80:85])).astype(np.float32)
    pairs = {"first": inputs, "second": pack.anchors.astype(np.float32)}
    found = OnnxFile(path).run(pairs)["difference"][:, 0]
    expected = model.differences(X[80:85], X[:5])
    np.testing.assert_allclose(found, expected, atol=0.02 * expected.std())
    assert inputs.shape == (5, 5)  # three features and two more


def test_a_pack_whose_metadata_lack_the_curve_is_no_help_to_a_bare_twin(
    untrained, steep, tmp_path, complaint
):
    X, y = steep
    model = untrained(X[:80], y[:80], (6,), curve="log")
    pack = quantise(model, [np.arange(5)])
    (tmp_path / "model_twin.onnx").write_bytes(MAKE["onnx"](model, [np.arange(5)], shape="twin"))
    for about in ({}, {"target_curve": 7}, {"target_curve": {"kind": "cube", "offset": "x"}}):
        path = tmp_path / "model.twin"
        path.write_bytes(write_pack(replace(pack, metadata=about)))
        assert "do not say what its target curve is" in complaint(
            load, tmp_path / "model_twin.onnx"
        )
        assert load(path).predict(X[:1]) > 0  # which needs no metadata


def test_fine_tuning_keeps_the_map(untrained, steep, monkeypatch):
    monkeypatch.setattr("twinedge_export.fine_tune._STEPS", 300)
    X, y = steep
    model = untrained(X[:80], y[:80], (8,), "silu", bins=4, curve="log")
    model.learning_rate_, model.weight_decay_ = 0.1, 0.0
    tuned = fine_tune(model, X[80:100], y[80:100])
    assert tuned.map_ is model.map_
    assert tuned.scaling_ is model.scaling_
    rows, errors = [np.arange(40)], []
    for one in (tuned, model):
        found = evaluate(quantise(one, rows), X[80:100]).mean
        errors.append(np.sqrt(np.mean(np.square(found - y[80:100]))))
    assert errors[0] < 0.8 * errors[1]


NAMES = ["carat", "cut", "depth", "grade"]
# Known, unknown and missing cells.
CELLS = [
    [0.5, "Idéal", 61.0, 1],
    [1.25, "Good, really", 60.5, 3],
    [0.75, "no such cut", 61.0, 1],
    [None, "Fair", 60.0, 2],
    [1.5, None, 61.5, 3],
    [1.5, "Odd", None, None],
]


@pytest.fixture(scope="module")
def stones_model(stones):
    """A table of numbers, names and missing cells, with a map and a target curve."""
    table = pd.read_csv(stones, keep_default_na=True)
    table["grade"] = table["grade"].astype("category")
    model = TwinRegressor(hidden=(8,), activation="relu", learning_rate=0.01, weight_decay=0.03)
    model.set_params(steps=300, impute="median", input_map=4, target_curve="log", random_state=0)
    return model.fit(table[NAMES], table["price"])


def test_names_and_missing_cells_go_through_maps(stones_model, tmp_path):
    model = stones_model
    formats = ("twin", "onnx")
    done = twinedge.export(model, tmp_path / "out", anchors=12, formats=formats, tolerance=0.1)
    queries = pd.DataFrame(CELLS, columns=NAMES)
    expected = model.predict(queries, anchors=done.rows)
    devices = {file.kind: load(file.path) for file in done.files}
    assert devices.keys() >= {"twin", "onnx", "onnx_twin", "onnx_float"}
    pack = devices["twin"].pack
    assert (pack.map.outputs > pack.features, pack.target_curve.bins > 1) == (True, True)
    # Levels have two values and no curve; both columns of numbers have one.
    assert np.count_nonzero(pack.map.bins) == 2
    for kind, device in devices.items():
        found = device.predict_all(queries)
        np.testing.assert_allclose(found.mean, expected, rtol=0.02, err_msg=kind)
        assert (found.low < found.mean).all()
        assert (found.mean < found.high).all()
        missing = device.encoding.by_column(found.missing)
        assert missing.sum(axis=1).tolist() == [0, 0, 0, 1, 1, 2]
        outside = device.encoding.by_column(found.outside)
        assert outside[:, 1].tolist() == [False, False, True, False, False, False]
    native = load(tmp_path / "out" / "model.twin", "native").predict_all(queries)
    plain = load(tmp_path / "out" / "model.twin", "numpy").predict_all(queries)
    for one, other in zip(native, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    exact = devices["onnx_float"].predict_all(queries)
    for name in ("low", "high"):
        np.testing.assert_allclose(getattr(plain, name), getattr(exact, name), rtol=0.02)
    for name in ("scale", "spread"):
        np.testing.assert_allclose(getattr(plain, name), getattr(exact, name), rtol=0.1)


@pytest.mark.parametrize(
    ("form", "level"), [("onnx", "int8 weights"), ("tflite", "int16, float edges")]
)
def test_another_reader_gives_the_same(
    untrained, steep, with_intervals, by_openvino, tmp_path, form, level
):
    X, y = steep
    model = untrained(X[:80], y[:80], (12, 8), "silu", twins=2, bins=6, curve="log")
    path = tmp_path / f"model.{form}"
    path.write_bytes(MAKE[form](model, ROWS, level=level, pack=with_intervals(model, ROWS)))
    queries = {"x": X[80:].astype(np.float32)}
    expected = {"onnx": OnnxFile, "tflite": TfliteFile}[form](path).run(queries)
    assert expected.keys() == {"mean", "spread", "scale", "low", "high"}
    found = by_openvino(path, queries, in_floats=form == "tflite")
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0.002)


def test_intervals_of_a_curve_are_those_of_the_model(stones_model, stones, tmp_path):
    model = stones_model
    done = twinedge.export(model, tmp_path / "out", anchors=12, formats=("twin",), tolerance=0.1)
    device = load(done.files[0].path)
    table = pd.read_csv(stones)
    low, high = device.predict_interval(table[NAMES], 0.9).T
    assert np.mean((low <= table["price"]) & (table["price"] <= high)) > 0.8
    mean, scale = device.predict(table[NAMES], return_std=True)
    # Further up than down, as errors grow with the price.
    assert (high - mean > mean - low).all()
    assert (scale < high - low).all()
