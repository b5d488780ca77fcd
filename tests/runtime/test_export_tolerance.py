"""The same 500 queries through the files of one export: all backends keep what it printed."""

from copy import copy
from functools import cache

import numpy as np
import pytest

from twinedge.estimators.difficulty import learn_difficulty
from twinedge.run_folder import load_run
from twinedge.runtime.loading import load
from twinedge.runtime.pack_calibration import calibration_of

TOLERANCE = 0.02  # the default of an export
BACKENDS = {
    "twin": ("native", "numpy"),
    **dict.fromkeys(("tflite", "tflite_twin"), ("tflite",)),
    **dict.fromkeys(("onnx", "onnx_twin", "onnx_float", "onnx_float_twin"), ("onnx",)),
}


@pytest.fixture(scope="module")
def done(tiny_run, tmp_path_factory):
    from twinedge_export import export

    folder = tmp_path_factory.mktemp("export") / "out"
    return export(tiny_run, folder, anchors=8, formats=("twin", "tflite", "onnx"))


@pytest.fixture(scope="module")
def queries(tiny_twin):
    """Within the training range."""
    low, high = tiny_twin.anchor_X_.min(axis=0), tiny_twin.anchor_X_.max(axis=0)
    return np.random.default_rng(9).uniform(low, high, (500, 3))


@pytest.fixture(scope="module")
def scale(tiny_twin, queries):
    """Return scales of the float model with the anchors and coefficients of an export."""

    @cache
    def of(folder, rows):
        model = copy(tiny_twin)
        model.difficulty_ = learn_difficulty(tiny_twin, 0, [np.array(rows)])
        calibration = calibration_of(load(folder / "model.twin").pack)
        return calibration.scale(model._signals(queries, np.array(rows), None)[1])

    return lambda done: of(done.folder, tuple(done.rows))


def test_every_file_of_the_export_is_tested(done):
    assert set(done.record()["files"]) == set(BACKENDS)


@pytest.mark.parametrize(
    ("kind", "backend"), [(kind, one) for kind, some in BACKENDS.items() for one in some]
)
def test_a_backend_holds_what_the_export_printed(done, queries, tiny_twin, scale, kind, backend):
    record = done.record()
    printed = record["files"][kind]
    device = load(printed["path"], backend)
    assert device.info["backend"] == backend
    exact = tiny_twin.predict(queries, anchors=done.rows)
    moved = np.sqrt(np.mean(np.square(device.predict(queries) - exact)))
    assert moved <= printed["largest_deviation"]
    # Noise of this size, added to the error of the float model, makes it larger by the tolerance.
    allowed = np.sqrt((1 + TOLERANCE) ** 2 - 1) * record["float_rmse_val_same_anchors"]
    assert printed["cost"] <= TOLERANCE
    assert moved <= allowed
    # Likewise for either end of an interval, with the coefficients of the pack.
    calibration = calibration_of(load(done.folder / "model.twin").pack)
    # Floats are off by the rounding of float32, and a bare twin's anchors by their 16 bits.
    within = 1e-4 * tiny_twin.anchor_y_.std() if kind.startswith("onnx_float") else allowed
    for coverage, quantile in calibration.quantiles.items():
        ends = device.predict_interval(queries, coverage)
        for end, side in zip(ends.T, (-1, 1), strict=True):
            off = end - (exact + side * quantile * scale(done))
            assert np.sqrt(np.mean(np.square(off))) <= within


def test_the_scale_of_a_pack_is_off_by_what_is_printed(done, tiny_run, tiny_twin):
    X, rows = load_run(tiny_run).validation[0], np.array(done.rows)
    pack = load(done.folder / "model.twin")
    model = copy(tiny_twin)
    model.difficulty_ = learn_difficulty(tiny_twin, 0, [rows])
    exact = calibration_of(pack.pack).scale(model.signals(X, anchors=rows)[1])
    off = pack.predict(X, return_std=True)[1] - exact
    files = done.record()["files"]
    expected = np.sqrt(np.mean(np.square(off)) / np.mean(np.square(exact)))
    assert files["twin"]["scale_cost"] == pytest.approx(expected, rel=1e-6)
    assert {one["scale_cost"] for kind, one in files.items() if kind != "twin"} == {None}


@pytest.mark.slow
def test_of_networks_that_were_fine_tuned_the_floats_have_a_second_output_of_their_own(
    tiny_run, tiny_twin, queries, scale, tmp_path
):
    from twinedge_export import export

    done = export(tiny_run, tmp_path / "out", anchors=8, formats=["onnx"], qat=True, tolerance=0.1)
    assert done.files[0].made == "int8, fine-tuned"
    found = load(done.folder / "model_float.onnx").predict(queries, return_std=True)[1]
    np.testing.assert_allclose(found, scale(done), atol=1e-4 * tiny_twin.anchor_y_.std())
