"""The wheel and its dependencies, and nothing else, are enough to predict."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.runtime import reference

ROOT = Path(__file__).parents[2]
LEARNING = {
    "tensorflow",
    "keras",
    "sklearn",
    "scipy",
    "pandas",
    "matplotlib",
    "onnx",
    "rich",
    "typer",
}
HEAVIER = LEARNING | {"onnxruntime", "ai_edge_litert", "tflite_runtime"}

# Runs a command, then says what it has loaded.
COMMAND = """
import json, runpy, sys
sys.argv = ["twinedge", *sys.argv[1:]]
try:
    runpy.run_module("twinedge", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    assert not stop.code, stop.code
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Folder of an environment with the wheel and its dependencies alone."""
    folder = tmp_path_factory.mktemp("core") / "env"
    done = subprocess.run(
        [ROOT / "tools" / "core-env", folder],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"no environment with the wheel: {done.stderr[-200:]}")
    assert not done.returncode, done.stderr
    return folder


@pytest.fixture
def pack(random_pack, tmp_path):
    path = tmp_path / "model.twin"
    pack = random_pack(np.random.default_rng(5), features=3, neighbors=0)
    path.write_bytes(write_pack(pack))
    return path


def run(core, *arguments):
    """Lines that a command prints, and the packages that it loads."""
    done = subprocess.run(
        [core / "bin" / "python", "-c", COMMAND, *arguments],
        cwd=core,  # not the checkout, which would shadow the wheel
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    *lines, loaded = done.stdout.splitlines()
    return lines, set(json.loads(loaded))


@pytest.mark.slow
def test_the_wheel_alone_predicts_and_inspects(core, pack):
    x = np.random.default_rng(6).normal(0, 10, (20, 3))
    table = pack.with_name("data.csv")
    np.savetxt(table, x, fmt="%.17g", delimiter=",", header="x0,x1,x2", comments="")
    (answer,), loaded = run(core, "predict", pack, table, "--json", "--quiet")
    expected = reference.evaluate(read_pack(pack.read_bytes()), x)
    np.testing.assert_array_equal(json.loads(answer)["prediction"], expected.mean)
    np.testing.assert_array_equal(json.loads(answer)["spread"], expected.spread)
    assert {"numpy", "click"} <= loaded
    assert not loaded & HEAVIER
    lines, loaded = run(core, "inspect", pack)
    assert lines
    assert not loaded & HEAVIER


@pytest.mark.slow
def test_the_wheel_is_small_and_has_the_c_runtime(core):
    (wheel,) = (core / "wheel").iterdir()
    assert wheel.stat().st_size < 1_500_000
    code = "from twinedge.runtime import _native; _native.Model"
    subprocess.run([core / "bin" / "python", "-c", code], cwd=core, check=True)
