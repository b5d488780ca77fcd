"""The same 500 queries through the files of one export: all backends hold what it printed."""

import numpy as np
import pytest

from twinedge.runtime.loading import load

TOLERANCE = 0.02  # what an export allows, unless it is told otherwise
BACKENDS = {
    "twin": ("native", "numpy"),
    **dict.fromkeys(("tflite", "tflite_twin"), ("tflite",)),
    **dict.fromkeys(("onnx", "onnx_twin", "onnx_float", "onnx_float_twin"), ("onnx",)),
}


@pytest.fixture(scope="module")
def done(tiny_run, tmp_path_factory):
    from twinedge_export import export

    return export(
        tiny_run,
        tmp_path_factory.mktemp("export") / "out",
        anchors=8,
        formats=("twin", "tflite", "onnx"),
    )


@pytest.fixture(scope="module")
def queries(tiny_twin):
    """Within the training range."""
    low, high = tiny_twin.anchor_X_.min(axis=0), tiny_twin.anchor_X_.max(axis=0)
    return np.random.default_rng(9).uniform(low, high, (500, 3))


def test_every_file_of_the_export_is_asked(done):
    assert set(done.record()["files"]) == set(BACKENDS)


@pytest.mark.parametrize(
    ("kind", "backend"), [(kind, one) for kind, some in BACKENDS.items() for one in some]
)
def test_a_backend_holds_what_the_export_printed(done, queries, tiny_twin, kind, backend):
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
