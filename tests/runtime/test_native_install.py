"""What pip installs: the C runtime, compiled where that can be, and its sources for exports."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference

ROOT = Path(__file__).parents[2]
PARTS = ("twinedge", "export", "firmware_ref")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
MOST_BYTES = 1_000_000

BUILD = "import sys; from setuptools import build_meta as b; print(b.build_{}(sys.argv[1]))"
ASK = """
import json, sys
import numpy as np
from pathlib import Path
from twinedge.runtime import native, reference
from twinedge_export.firmware import firmware_folder
path = Path(sys.argv[1])
x = np.load(path.with_suffix(".npy"))
device = native.open_file(path)
print(json.dumps({
    "mean": device.predict(x).view(np.uint32).tolist(),
    "home": native.__file__,
    "kernel": device.info["kernel"],
    "header": (firmware_folder() / "include" / "twin.h").read_text(),
    "firmware": str(firmware_folder()),
}))
"""
MISSING = """
from twinedge.runtime import native
assert native._native is None
try:
    native.open_file(__import__("pathlib").Path(__import__("sys").argv[1]))
except native.MissingPackageError as error:
    print(error)
"""


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        cwd=environment.get("PWD"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """A folder with the setuptools that pyproject.toml asks for."""
    folder = tmp_path_factory.mktemp("tools")
    run("-m", "pip", "install", "--quiet", "--target", folder, "setuptools>=77")
    return folder


@pytest.fixture(scope="module")
def wheels(tools, tmp_path_factory):
    """A wheel built from a source distribution, with a compiler and without one."""
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("built")
    for name in FILES:
        shutil.copy(ROOT / name, tree)
    for name in PARTS:
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "build", "*.egg-info")
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    name = run("-c", BUILD.format("sdist"), built, PYTHONPATH=tools, PWD=tree).split()[-1]
    wheels = {}
    for kind, more in (("compiled", {}), ("bare", {"CC": "false"})):
        source = tmp_path_factory.mktemp(kind)
        with tarfile.open(built / name) as archive:
            archive.extractall(source, filter="data")
        (tree,) = source.iterdir()
        out = source / "out"
        made = run("-c", BUILD.format("wheel"), out, PYTHONPATH=tools, PWD=tree, **more)
        wheels[kind] = out / made.split()[-1]
    return wheels


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """Folders into which the wheels were unpacked."""
    folders = {}
    for kind, wheel in wheels.items():
        folders[kind] = tmp_path_factory.mktemp(f"installed-{kind}")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folders[kind])
    return folders


@pytest.fixture
def model(random_pack, tmp_path):
    pack = random_pack(np.random.default_rng(51), features=4, hidden=(9, 6), neighbors=0)
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    x = np.random.default_rng(52).normal(0, 10, (50, 4)).astype(np.float32)
    np.save(tmp_path / "model.npy", x)
    return tmp_path / "model.twin", reference.evaluate(pack, x).mean.view(np.uint32).tolist()


@pytest.mark.slow
def test_a_wheel_has_the_extension_and_the_sources(wheels):
    with zipfile.ZipFile(wheels["compiled"]) as archive:
        names = set(archive.namelist())
    assert any(name.startswith("twinedge/runtime/_native.") and ".so" in name for name in names)
    sources = {
        f"twinedge_export/{path.relative_to(ROOT)}"
        for part in ("include", "src")
        for path in (ROOT / "firmware_ref" / part).rglob("*.[ch]")
    }
    assert sources <= names
    assert "twinedge/runtime/_native.c" not in names
    assert wheels["compiled"].stat().st_size < MOST_BYTES


@pytest.mark.slow
def test_one_wheel_serves_later_versions_of_python(wheels):
    # Buffers are in the limited API since 3.11; before, each version needs its own.
    this = "cp{}{}".format(*sys.version_info)
    expected = "cp311-abi3" if sys.version_info >= (3, 11) else f"{this}-{this}"
    assert f"-{expected}-" in wheels["compiled"].name


@pytest.mark.slow
def test_an_installed_wheel_predicts(installed, model):
    path, mean = model
    folder = installed["compiled"]
    said = json.loads(run("-c", ASK, path, PYTHONPATH=folder, PWD=path.parent))
    assert said["mean"] == mean
    assert Path(said["home"]).is_relative_to(folder)
    assert Path(said["firmware"]).is_relative_to(folder)
    assert said["header"] == (ROOT / "firmware_ref" / "include" / "twin.h").read_text()


@pytest.mark.slow
def test_without_a_compiler_all_but_the_extension_is_installed(installed, model):
    path, _ = model
    words = run("-c", MISSING, path, PYTHONPATH=installed["bare"], PWD=path.parent)
    assert "the C runtime was not compiled" in words
    assert not list(installed["bare"].rglob("_native.*so"))
