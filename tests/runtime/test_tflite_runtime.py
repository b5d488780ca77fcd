"""tflite-runtime 2.14, the interpreter of 32-bit Raspberry Pis, passes the checks of LiteRT.

It needs a numpy of its own, so the checks run in an environment made by
``tools/tflite-runtime-env``; TWINEDGE_TFLITE_RUNTIME names a folder to keep it in.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def other_python(tmp_path_factory):
    """Path of a Python that has tflite-runtime."""
    folder = os.environ.get("TWINEDGE_TFLITE_RUNTIME") or tmp_path_factory.mktemp("env")
    done = subprocess.run(
        [ROOT / "tools" / "tflite-runtime-env", folder],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"no environment with tflite-runtime: {done.stderr[-200:]}")
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("model", ["tiny", "four", "calibrated"])
def test_it_passes_the_same_checks(exported, device_checks, other_python, model):
    folder = exported[model]
    done = subprocess.run(
        [other_python, HERE / "device_checks.py", folder],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    files = [name for name in device_checks["Given"](folder).allowed if name.endswith(".tflite")]
    assert report["runtimes"] == ["tflite_runtime"]
    assert report["numpy"].startswith("1.")
    assert report["passed"] == len(files) * len(device_checks["CHECKS"])
    assert files
