"""Packs of several targets: rounded, calibrated and scored target by target, anchors with all."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from twinedge import TwinRegressor, export, load
from twinedge.anchors import choose
from twinedge.anchors.curves import measure
from twinedge.errors import InputError
from twinedge.estimators.targets import anchors_of
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import schema_of
from twinedge.runtime.interpreters import OnnxFile, TfliteFile
from twinedge.runtime.reference import evaluate
from twinedge_export.fine_tune import fine_tune
from twinedge_export.onnx_file import onnx_model
from twinedge_export.quantise import quantise

BRIEF = {
    "hidden": (12, 12),
    "activation": "silu",
    "learning_rate": 0.01,
    "weight_decay": 0.003,
    "steps": 1200,
    "random_state": 0,
}


def table(rows=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], 100 * np.cos(2 * X[:, 0]) - 50], axis=1)
    Y += rng.normal(size=Y.shape) * [0.05, 3]
    Y[::5, 1] = np.nan
    return X, Y


@pytest.fixture(scope="module")
def model():
    return TwinRegressor(**BRIEF, twins=2).fit(*table())


@pytest.fixture(scope="module")
def done(model, tmp_path_factory):
    return export(model, tmp_path_factory.mktemp("targets") / "out", anchors=16, formats=("twin",))


@pytest.fixture(scope="module")
def device(done):
    return load(done.folder / "model.twin")


@pytest.mark.slow
def test_anchors_have_all_targets(model, done, device):
    assert np.isfinite(model.anchor_y_[done.rows]).all()
    assert device.anchors == 16
    np.testing.assert_array_equal(read_pack(done.files[0].path.read_bytes()).ids.shape, (16,))


def test_its_size_is_known_before(model, done):
    pack = read_pack(done.files[0].path.read_bytes())
    bare = len(write_pack(replace(pack, release=None), metadata=False))
    assert model.pack_bytes(16) == pytest.approx(bare, rel=0.05)  # levels are not known before
    assert model.pack_bytes(16) > model.of_target(0).pack_bytes(16)


def test_a_device_predicts_what_the_model_does_with_the_same_anchors(model, done, device):
    X, Y = table()
    exact, spread = model.predict(X, anchors=done.rows), model.spread(X, anchors=done.rows)
    unit = np.nanstd(Y, axis=0)
    np.testing.assert_allclose(device.predict(X) / unit, exact / unit, atol=0.02)
    np.testing.assert_allclose(device.spread(X) / unit, spread / unit, atol=0.02)
    assert device.target_names == model.target_names_


def test_intervals_of_each_target_hold_what_they_claim(device):
    X, Y = table(1000, seed=1)
    ends = device.predict_interval(X, 0.8)
    known = np.isfinite(Y)
    held = ((ends[..., 0] <= Y) & (ends[..., 1] >= Y)).sum(axis=0) / known.sum(axis=0)
    assert (np.abs(held - 0.8) < 0.15).all()  # calibrated on 24 and 30 points


def test_every_target_is_scored_on_the_points_that_measured_it(model, done):
    X, Y = model.validation_
    score, record = done.files[0].score, done.record()
    pack = read_pack(done.files[0].path.read_bytes())
    for target, single in enumerate(pack.singles):
        known = np.isfinite(Y[:, target])
        off = evaluate(single, X[known]).mean - Y[known, target]
        assert score.rmse[target] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-4)
    assert score.cost < 0.02
    assert len(record["float_rmse_val"]) == 2
    assert len(record["files"]["twin"]["rmse_val"]) == 2


def test_one_network_serves_all_targets(model, done):
    pack = read_pack(done.files[0].path.read_bytes())
    alone = quantise(model.of_target(0), [np.arange(8), np.arange(8, 16)])
    assert len(pack.twins[0].others) == 1
    assert len(pack.twins[0].layers) == len(alone.twins[0].layers)
    assert pack.schema == schema_of(["x0", "x1"], ["y0", "y1"])
    assert pack.singles[1].metadata["target"] == "y1"


@pytest.mark.slow
def test_fine_tuning_improves_no_target_at_the_cost_of_another(model):
    tuned = fine_tune(model, *model.validation_)
    assert (tuned.rmse(*model.validation_) <= 1.05 * model.rmse(*model.validation_)).all()


def test_anchors_are_chosen_for_all_targets_together(model):
    whole, rows = model.with_all_targets()
    np.testing.assert_array_equal(whole.anchor_y_, model.anchor_y_[rows])
    X, Y = whole.anchor_X_, whole.anchor_y_
    for method in ("match", "xy", "stratified", "farthest", "auto"):
        found = choose(X, Y, 8, method, model=whole, validation=model.validation_, twins=2)
        assert len(set(found.rows)) == 8
    measured = measure(model, model.validation_, counts=[2, 4, 8], methods=["match", "auto"])
    assert measured.rmse_all == pytest.approx(
        np.sqrt(
            np.mean(
                np.square(whole.rmse(*model.validation_) / whole.anchor_y_.std(axis=0)),
            )
        ),
        rel=0.02,
    )
    with pytest.raises(InputError, match="greedy looks at the errors of one target"):
        choose(X, Y, 8, "greedy", model=whole, validation=model.validation_, twins=2)


def test_what_a_pack_cannot_hold_is_refused(model, tmp_path):
    lacking = np.flatnonzero(np.isnan(model.anchor_y_[:, 1]))[:2]
    with pytest.raises(InputError, match=f"training point {lacking[0]} (lacks a target|has no y1)"):
        export(model, tmp_path / "out", anchors=lacking.tolist(), formats=("twin",))
    never = copy(model)
    never.anchor_y_ = model.anchor_y_.copy()
    never.anchor_y_[:, 1] = np.nan
    with pytest.raises(InputError, match="0 training points have all of y0, y1"):
        never.with_all_targets()
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Export a model with a map in all converted formats; return the model and the export."""
    model = TwinRegressor(**{**BRIEF, "steps": 300}, twins=2, input_map=4).fit(*table())
    folder = tmp_path_factory.mktemp("converted") / "out"
    formats = ("twin", "tflite", "onnx")
    return model, export(model, folder, anchors=16, formats=formats, tolerance=0.1)


def test_converted_files_predict_what_the_pack_does(converted):
    model, done = converted
    X, Y = table(60, seed=1)
    unit = np.nanstd(Y, axis=0)
    pack = load(done.files[0].path)
    expected, ends = pack.predict_all(X), pack.predict_interval(X, 0.8)
    assert [file.kind for file in done.files[1:]] == [
        *("tflite", "tflite_twin", "onnx", "onnx_float", "onnx_twin", "onnx_float_twin")
    ]
    for file in done.files[1:]:
        device = load(file.path)
        assert device.target_names == model.target_names_
        found = device.predict_all(X)
        for name in ("mean", "spread", "scale"):
            off = (getattr(found, name) - getattr(expected, name)) / unit
            assert np.sqrt(np.mean(off**2)) < 0.05, (file.kind, name)
        off = (device.predict_interval(X, 0.8) - ends) / unit[:, None]
        assert np.sqrt(np.mean(off**2)) < 0.05
        assert len(file.score.rmse) == 2
        assert file.score.cost < 0.1


def test_outputs_have_an_axis_for_the_targets(converted):
    _, done = converted
    X = table(5)[0].astype(np.float32)
    levels = len(load(done.files[0].path).coverages)
    for file in done.files[1:]:
        made = (TfliteFile if file.path.suffix == ".tflite" else OnnxFile)(file.path)
        if file.kind.endswith("twin"):
            points = np.zeros((5, read_pack(done.files[0].path.read_bytes()).inputs), np.float32)
            found = made.run({"first": points, "second": points})
            shapes = {"difference": (5, 2, 2), "difficulty": (5, 2, 2)}
        else:
            found = made.run({"x": X})
            shapes = dict.fromkeys(("mean", "spread", "scale"), (5, 2))
            shapes |= dict.fromkeys(("low", "high"), (5, 2, levels))
        assert {name: value.shape for name, value in found.items()} == shapes
        assert [one["target"] for one in made.metadata["targets"]] == ["y0", "y1"]


def test_integers_of_each_target_have_a_step_of_their_own(converted):
    _, done = converted
    model, *_ = (file for file in done.files if file.kind == "tflite")
    first, second = TfliteFile(model.path).metadata["integers"]["mean"]["step"]
    assert second > 10 * first  # as its deviation is


@pytest.mark.parametrize("shape", ["ensemble", "twin"])
def test_a_float_file_is_those_of_its_targets_side_by_side(model, tmp_path, shape):
    rows = np.flatnonzero(np.isfinite(model.anchor_y_).all(axis=1))[:12]

    def outputs(one, lists):
        path = tmp_path / "model.onnx"
        path.write_bytes(onnx_model(one, lists, shape=shape, level="float32"))
        x = table(20, seed=2)[0].astype(np.float32)
        queries = {"x": x} if shape == "ensemble" else {"first": x, "second": x[::-1].copy()}
        return OnnxFile(path).run(queries)

    together = outputs(model, [rows[::2], rows[1::2]])
    for target in range(2):
        mine = anchors_of(model, target, rows)
        alone = outputs(model.of_target(target), [mine[::2], mine[1::2]])
        for name, value in alone.items():
            np.testing.assert_allclose(together[name][..., target], value, rtol=1e-3, atol=1e-4)
