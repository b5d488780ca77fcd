"""Which backend reads a file, and the message if none can."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import twinedge
from twinedge.errors import MissingPackageError
from twinedge.runtime import interpreters, loading
from twinedge.runtime.device import Device
from twinedge.runtime.file_device import seal
from twinedge.runtime.loading import BACKENDS, Backend, load


@pytest.fixture
def files(exported, tmp_path):
    """A folder with one file of each kind, as in an export."""
    for kind in ("tflite", "onnx"):
        for name in ("model", "model_twin"):
            shutil.copy(exported["tiny"] / f"{kind}-int8" / f"{name}.{kind}", tmp_path)
    shutil.copy(exported["tiny"] / "model.twin", tmp_path)
    return tmp_path


@pytest.fixture
def without(monkeypatch):
    """Make packages impossible to import."""

    def hide(*names):
        for name in [one for one in sys.modules if one.partition(".")[0] in names]:
            monkeypatch.delitem(sys.modules, name)
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_by_name_and_by_itself(files, backend):
    path = files / f"model{BACKENDS[backend].suffix}"
    named = load(path, backend=backend)
    assert isinstance(named, Device)
    assert named.info["backend"] == backend
    assert load(str(path)).features == named.features


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_change_no_prediction(files, backend):
    path = files / f"model{BACKENDS[backend].suffix}"
    one, several = (load(path, backend, threads=threads) for threads in (1, None))
    x = np.random.default_rng(0).normal(size=(300, one.features)).astype(np.float32)
    np.testing.assert_array_equal(several.predict(x), one.predict(x))


@pytest.mark.parametrize("threads", [0, 1.5, True, "2"])
def test_other_numbers_of_threads_are_refused(files, complaint, threads):
    message = complaint(load, files / "model.twin", threads=threads)
    assert f"threads={threads!r} is not a whole number of at least 1" in message


def test_a_run_has_no_backends(tiny_run, complaint):
    message = complaint(twinedge.load, tiny_run, "native")
    assert message.endswith("is a run: backends and stores are for the files of an export")


def test_c_evaluates_a_pack_by_default(files):
    assert load(files / "model.twin").info["backend"] == "native"


def test_other_backends_and_files_are_refused(files, complaint, tmp_path):
    assert "'fpga' is not one of auto, " in complaint(load, files / "model.twin", "fpga")
    assert "reads .onnx files" in complaint(load, files / "model.twin", "onnx")
    assert "(.twin, .tflite, .onnx)" in complaint(load, files / "model.h5")
    assert "does not exist" in complaint(load, files / "nothing.twin")
    (tmp_path / "folder.twin").mkdir()
    assert "is not a file" in complaint(load, tmp_path / "folder.twin")


@pytest.mark.parametrize(
    "content",
    [b"", b"TFL3", bytes(100), bytes(4) + b"TFL3" + bytes(9)],
    ids=["nothing", "short", "zeros", "empty"],
)
@pytest.mark.parametrize("suffix", [".twin", ".tflite", ".onnx"])
def test_something_else_under_that_name_is_refused(tmp_path, complaint, content, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert str(path) in complaint(load, path)


@pytest.mark.parametrize("suffix", [".tflite", ".onnx"])
def test_metadata_that_are_no_object_are_refused(files, complaint, suffix):
    path = files / f"model{suffix}"
    data = path.read_bytes()[:-8]
    start = data.index(b'{"')
    _, length = json.JSONDecoder().raw_decode(data[start:].decode("latin-1"))
    array = b"[]".ljust(length)
    path.write_bytes(seal(data[:start] + array + data[start + length :]))
    assert complaint(load, path).endswith("file of twinedge")


@pytest.mark.parametrize("suffix", [".tflite", ".onnx"])
@pytest.mark.parametrize("name", ["sensor_twin", "sensor_float_twin", "sensor"])
def test_a_bare_twin_takes_its_anchors_from_the_pack_beside_it(
    files, exported, complaint, suffix, name
):
    bare = files / f"model_twin{suffix}"
    expected = load(bare).predict([[0.0, 5.0, 1.0]])
    renamed = bare.rename(files / f"{name}{suffix}")
    assert f"takes its anchors from {files / 'sensor.twin'}" in complaint(load, renamed)
    shutil.copy(files / "model.twin", files / "sensor.twin")
    np.testing.assert_array_equal(load(renamed).predict([[0.0, 5.0, 1.0]]), expected)
    shutil.copy(exported["four"] / "model.twin", files / "sensor.twin")
    assert "another model" in complaint(load, renamed)


def test_a_damaged_pack_beside_it_is_named(files, complaint):
    data = bytearray((files / "model.twin").read_bytes())
    data[-1] ^= 1
    (files / "model.twin").write_bytes(data)
    assert "model.twin: " in complaint(load, files / "model_twin.onnx")
    for backend in ("native", "numpy"):
        assert "model.twin: " in complaint(load, files / "model.twin", backend)


def test_interpreters_are_tried_from_the_lightest_on(files, without):
    assert load(files / "model.tflite").info["runtime"] == "ai_edge_litert"
    expected = load(files / "model.tflite").predict([[0.0, 5.0, 1.0]])
    without("ai_edge_litert", "tflite_runtime")
    device = load(files / "model.tflite")
    assert device.info["runtime"] == "tensorflow"
    np.testing.assert_array_equal(device.predict([[0.0, 5.0, 1.0]]), expected)


def test_a_missing_package_is_named_with_what_to_install(files, without, complaint, monkeypatch):
    # TensorFlow is left alone: later tests need it.
    packages = {name: module for name, module in interpreters.PACKAGES.items() if name < "tensor"}
    monkeypatch.setattr(interpreters, "PACKAGES", packages)
    without("ai_edge_litert", "tflite_runtime", "onnxruntime")
    assert "pip install 'twinedge[tflite]'" in complaint(load, files / "model.tflite")
    assert "pip install 'twinedge[onnx]'" in complaint(load, files / "model.onnx")
    assert load(files / "model.twin").anchors == 8


def test_auto_falls_back_where_something_is_missing(files, complaint, monkeypatch, tmp_path):
    (tmp_path / "missing_backend.py").write_text(
        "from twinedge.errors import MissingPackageError\n"
        "def open_pack(path, threads): raise MissingPackageError('not built')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    backends = {
        "fast": Backend(".twin", "missing_backend", "open_pack"),
        "numpy": BACKENDS["numpy"],
    }
    monkeypatch.setattr(loading, "BACKENDS", backends)
    assert load(files / "model.twin").info["backend"] == "numpy"
    assert complaint(load, files / "model.twin", "fast") == "not built"
    assert issubclass(MissingPackageError, ValueError)


CODE = """
import json, sys
from pathlib import Path
from twinedge.runtime.loading import load
before = set(sys.modules)
for path in map(Path, sys.argv[1:]):
    load(path).predict([[0.0, 5.0, 1.0]])
print(json.dumps([sorted(before), sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    ("kind", "brings"),
    [("tflite", {"ai_edge_litert"}), ("onnx", {"onnxruntime"})],
    ids=["tflite", "onnx"],
)
def test_a_prediction_loads_what_it_needs_and_says_nothing(files, kind, brings):
    done = subprocess.run(
        [sys.executable, "-c", CODE, files / f"model.{kind}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    before, after = ({name.partition(".")[0] for name in one} for one in json.loads(done.stdout))
    heavy = {"tensorflow", "keras", "sklearn", "onnx", "twinedge_export"}
    interpreters = {"ai_edge_litert", "onnxruntime"}
    assert not before & (heavy | interpreters)
    assert after & (heavy | interpreters) == brings
