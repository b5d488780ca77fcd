"""Checks on a Raspberry Pi besides the runtime's tests; ``test_userland.py`` runs them there.

TWINEDGE_EXPORTED names the models, TWINEDGE_ENVIRONMENT what is installed.
"""

import json
import os
import struct
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import twinedge

MACHINE, ENVIRONMENT = os.environ.get("TWINEDGE_ENVIRONMENT", "none/none").split("/")
MODELS = Path(os.environ.get("TWINEDGE_EXPORTED", ""))
INTERPRETER = {"litert": "ai_edge_litert", "tflite-runtime": "tflite_runtime"}.get(ENVIRONMENT)


def test_this_is_what_a_pi_runs():
    assert "VERSION_CODENAME=bookworm" in Path("/etc/os-release").read_text()
    assert sys.version_info[:2] == (3, 11)
    assert struct.calcsize("P") == {"arm64": 8, "armhf": 4}[MACHINE]
    assert Path(twinedge.__file__).parts[:3] == ("/", "opt", ENVIRONMENT)


def test_the_versions_are_those_it_was_made_with():
    packages = ["numpy", "click"]
    packages += ["ai-edge-litert", "onnxruntime"] if ENVIRONMENT == "litert" else ["tflite-runtime"]
    found = {name: version(name) for name in packages}
    print(json.dumps({"machine": MACHINE, "environment": ENVIRONMENT, **found}))
    assert (int(found["numpy"].partition(".")[0]) < 2) == (ENVIRONMENT == "tflite-runtime")


def test_c_evaluates_packs():
    device = twinedge.load(MODELS / "tiny" / "model.twin")
    assert device.info["backend"] == "native"
    if MACHINE == "arm64":
        assert device.info["kernel"].startswith("neon")


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("model", ["tiny", "four"])
def test_bits_are_those_of_the_workstation(model, backend):
    given = np.load(MODELS / model / "bits.npz")
    device = twinedge.load(MODELS / model / "model.twin", backend)
    for found, bits in zip(
        device.predict(given["x"], return_std=True), (given["mean"], given["spread"]), strict=True
    ):
        np.testing.assert_array_equal(found.view(np.uint32), bits)
    np.testing.assert_array_equal(device.estimates(given["x"]).view(np.uint32), given["estimates"])


def test_a_tflite_file_is_run_by_what_is_installed():
    device = twinedge.load(MODELS / "tiny" / "tflite-int8" / "model.tflite")
    assert device.info["runtime"] == INTERPRETER


def test_an_onnx_file_is_run_or_what_is_missing_is_named():
    path = MODELS / "tiny" / "onnx-int8" / "model.onnx"
    if ENVIRONMENT == "litert":
        assert twinedge.load(path).info["backend"] == "onnx"
    else:
        with pytest.raises(twinedge.InputError, match=r"pip install 'twinedge\[onnx\]'"):
            twinedge.load(path)


def command(*arguments, given=""):
    done = subprocess.run(
        ["twinedge", *map(str, arguments)], input=given, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_commands_work(tmp_path):
    pack = MODELS / "tiny" / "model.twin"
    (tmp_path / "data.csv").write_text("angle,offset,idle\n0.5,6,-20\n0.25,7,-30\n")
    head, *rows = command("predict", pack, tmp_path / "data.csv")
    assert head == "level,spread,outside"
    assert command("predict", pack, "-", given="0.5,6,-20\nbroken\n0.25,7,-30\n") == [
        rows[0],
        "error: 1 values, expected 3",
        rows[1],
    ]
    assert any("anchors" in line for line in command("inspect", pack))
