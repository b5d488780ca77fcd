"""tflite-runtime 2.14, the interpreter of 32-bit Raspberry Pis, passes the checks of LiteRT.

It needs a numpy of its own, so the checks run in an environment made by
``tools/tflite-runtime-env``.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny", "four", "calibrated"])
def test_it_passes_the_same_checks(exported, device_checks, tflite_runtime, model):
    folder = exported[model]
    done = subprocess.run(
        [tflite_runtime, HERE / "device_checks.py", folder],
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
