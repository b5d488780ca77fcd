"""The runtime passes its tests on what a Raspberry Pi runs: Debian 12, 64 and 32 bits.

``tools/pi-userland`` makes such a system once, builds twinedge in it, and runs the tests there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from twinedge.runtime.loading import load

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent

# The runtime's tests that a Pi can run, as they need no training.
FILES = [
    "tests/golden/test_vectors.py",
    *(
        f"tests/runtime/test_{name}.py"
        for name in (
            "devices",
            "file_device",
            "imports",
            "native",
            "reference",
            "sensor_example",
            "streaming",
        )
    ),
    "tests/pi/platform_checks.py",
]
# ONNX Runtime has no wheels for numpy < 2, nor for 32 bits.
LEFT_OUT = {"litert": "", "tflite-runtime": "not (onnx and not platform_checks)"}


@pytest.fixture(scope="module")
def job(exported, tmp_path_factory):
    """A folder with tests, models, and the bits that models compute here."""
    folder = tmp_path_factory.mktemp("pi")
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")
    for part in ("golden", "pack", "pi", "runtime"):
        shutil.copytree(TESTS / part, folder / "tests" / part)
    for part in ("conftest.py", "firmware/cases.py"):
        place = folder / "tests" / part
        place.parent.mkdir(exist_ok=True)
        shutil.copy(TESTS / part, place)
    for name, source in exported.items():
        model = shutil.copytree(source, folder / "exported" / name)
        device = load(model / "model.twin", "numpy")
        rng = np.random.default_rng(3)
        x = rng.uniform(-1.2, 1.2, (500, 3)) * [1.0, 10.0, 100.0] + [0.0, 5.0, -20.0]
        mean, spread = device.predict(x, return_std=True)
        values = {"mean": mean, "spread": spread, "estimates": device.estimates(x)}
        bits = {key: value.view(np.uint32) for key, value in values.items()}
        np.savez(model / "bits.npz", x=x, **bits)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("where", ["arm64/litert", "arm64/tflite-runtime", "armhf/tflite-runtime"])
def test_the_runtime_passes_its_tests_on_a_pi(job, where):
    machine, environment = where.split("/")
    settings = ["TWINEDGE_EXPORTED=/job/exported", f"TWINEDGE_ENVIRONMENT={where}"]
    options = ["-p", "no:cacheprovider", "-m", "not slow", "-k", LEFT_OUT[environment]]
    tests = ["env", *settings, "pytest", *options, *FILES]
    done = subprocess.run(
        [ROOT / "tools" / "pi-userland", machine, environment, job, *tests],
        env=os.environ | {"PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
    )
    print(done.stdout)
    if done.returncode and not done.stdout and not os.environ.get("CI"):
        pytest.skip("no such system here: see above")
    assert not done.returncode
    assert " skipped" not in done.stdout
