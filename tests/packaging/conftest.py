"""Fixtures for the tests of how the C runtime is packaged."""

import os
import runpy
import shutil
import subprocess
import venv
import zipfile
from functools import cache
from pathlib import Path
from threading import Timer
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FIRMWARE = ROOT / "firmware_ref"


@pytest.fixture(scope="session")
def firmware():
    """Folder of the C runtime."""
    return FIRMWARE


@pytest.fixture(scope="session")
def dist():
    """Return what ``tools/dist.py`` defines."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "dist.py")))


@pytest.fixture(scope="session")
def zipped(dist, tmp_path_factory):
    """Make a package of this checkout's C runtime: ``zipped("zephyr")`` is its file."""
    source = dist.Source(ROOT, commit="", epoch=0)
    return cache(lambda kind: dist.c_package(kind, source, tmp_path_factory.mktemp("zip")))


@pytest.fixture(scope="session")
def unpacked(zipped, tmp_path_factory):
    """Unpack such a package in an empty folder: ``unpacked("zephyr")`` is the folder in it."""

    @cache
    def unpack(kind):
        home = tmp_path_factory.mktemp(kind)
        with zipfile.ZipFile(zipped(kind)) as file:
            file.extractall(home)
        return home / "twinedge"

    return unpack


@pytest.fixture(scope="session")
def run():
    """Run a tool that must exist and succeed; return its output."""

    def call(*command, **options):
        words = [str(word) for word in command]
        assert shutil.which(words[0]), f"{words[0]} is not installed"
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(words, **both, text=True, check=False, **options)
        assert done.returncode == 0, done.stdout
        return done.stdout

    return call


@pytest.fixture(scope="session")
def native():
    """Return what ``library.py`` of the tests of the runtime defines."""
    return SimpleNamespace(**runpy.run_path(str(HERE.parent / "firmware" / "library.py")))


@pytest.fixture(scope="session")
def tools(run, tmp_path_factory):
    """Environment with the registries' own tools: returns its bin/."""
    home = tmp_path_factory.mktemp("tools")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt")
    return python.parent


@pytest.fixture(scope="session")
def uno(run, tmp_path_factory):
    """Compile a sketch as Arduino does, for the Uno: ``uno(sketch, *libraries)`` is an ELF file."""
    home = tmp_path_factory.mktemp("arduino")
    for name in ("cache", "tools"):
        (home / name).mkdir()

    def build(sketch, *libraries):
        folder = home / f"build{len(list(home.iterdir()))}"
        folder.mkdir()
        said = run(
            *("arduino-builder", "-compile", "-warnings", "all", "-fqbn", "arduino:avr:uno"),
            *(
                "-hardware",
                "/usr/share/arduino-builder",
                "-hardware",
                "/usr/share/arduino/hardware",
            ),
            *("-tools", home / "tools", "-build-path", folder, "-build-cache", home / "cache"),
            *("-prefs", "runtime.tools.avr-gcc.path=/usr"),
            # The core expects a newer compiler than Debian's.
            *("-prefs", "compiler.cpp.extra_flags=-DDECIMAL_DIG=__DECIMAL_DIG__"),
            *(word for library in libraries for word in ("-libraries", library)),
            sketch,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(home)},
        )
        mine = [line for line in said.splitlines() if "warning:" in line and "/cores/" not in line]
        assert mine == []
        return folder / f"{sketch.name}.elf"

    return build


@pytest.fixture(scope="session")
def first_line():
    """Run an ELF file on an ATmega328P and return the first line that it sends."""

    def listen(elf):
        command = ["simavr", "-m", "atmega328p", "-f", "16000000", str(elf)]
        assert shutil.which(command[0]), "simavr is not installed"
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as board:
            limit = Timer(60, board.kill)
            limit.start()
            try:
                for line in board.stderr:
                    text = line.decode("latin-1").partition("\x1b[32m")[2]
                    if text:
                        return text.strip().rstrip(".")  # carriage return and line feed
            finally:
                limit.cancel()
                board.kill()
        raise AssertionError(f"{elf.name} sends nothing")

    return listen
