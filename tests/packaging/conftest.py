"""Fixtures for the tests of how the C runtime and the wheel are packaged."""

import io
import os
import runpy
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path
from threading import Timer
from types import SimpleNamespace

import numpy as np
import pytest
from packaging.requirements import Requirement

from twinedge.pack import read_pack
from twinedge_export.boards import Builder, port_named
from twinedge_export.boards.build import flags_for

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FIRMWARE = ROOT / "firmware_ref"
HOST = """\
#include "board.h"
#include <stdio.h>
#include <stdlib.h>
void board_write(const char *text) { fputs(text, stdout); }
void board_exit(int status) { exit(status); }
"""
BESIDE = """
add_executable(beside beside.c host.c model/model.c)
target_include_directories(beside PRIVATE model {})
target_link_libraries(beside PRIVATE twinedge::twinedge)
"""
ROLES = ("AUTHOR", "COMMITTER")
WHEN = 1_700_000_000  # of commits
BUILD = "import sys; from setuptools import build_meta as b; print(b.build_{}(sys.argv[1]))"


@pytest.fixture(scope="session")
def firmware():
    """Folder of the C runtime."""
    return FIRMWARE


@pytest.fixture(scope="session")
def dist():
    """Return what ``tools/dist.py`` defines, and as ``wheels`` the module beside it."""
    tools = str(ROOT / "tools")
    sys.path.insert(0, tools)
    try:
        import wheels

        return SimpleNamespace(**runpy.run_path(f"{tools}/dist.py"), wheels=wheels)
    finally:
        sys.path.remove(tools)


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
def kconfig():
    """Return options as a framework derives them from Kconfig; all is on by default."""

    def make(**settings):
        parts = ("FLOAT", "NEIGHBORS", "INTERVALS", "STORE", "SILU", "INT16", "TEXT", "PARTIAL")
        parts += ("MAP", "TARGET_CURVE", "OPEN_STEPS", "QUICK_OPEN")
        answers = {**dict.fromkeys(parts, "y"), "BLOCK": "2", "TARGETS": "1", **settings}
        return [f"-DCONFIG_TWIN_{name}={answer}" for name, answer in answers.items()]

    return make


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
def promised():
    """Return the line that the README of a C project promises."""

    def read(project):
        promise = (project / "README.md").read_text("utf-8").partition("It prints")[2]
        return next(line.strip() for line in promise.splitlines() if line.startswith("    "))

    return read


@pytest.fixture(scope="session")
def built_beside(run, tmp_path_factory):
    """Build a C project with one more program, ``beside``; return the folder of both."""

    def build(project, code):
        folder = tmp_path_factory.mktemp("project") / "c"
        shutil.copytree(project, folder)
        (folder / "beside.c").write_text(code)
        (folder / "host.c").write_text(HOST)
        with (folder / "CMakeLists.txt").open("a") as file:
            file.write(BESIDE.format(FIRMWARE / "ports" / "harness"))
        # Kernels of hosts take most of the time; test_c_project.py has them.
        flags = "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror -pedantic -DTWIN_HOST=0"
        run("cmake", "-B", "build", flags, "-DCMAKE_BUILD_TYPE=Debug", cwd=folder)  # quick
        run("cmake", "--build", "build", "--parallel", "2", cwd=folder)
        return folder / "build"

    return build


@pytest.fixture(scope="session")
def on_a_board(run, tmp_path_factory):
    """Run a program with the C project of an export on an emulated board; return its lines."""

    def answer(export, code):
        folder, board = tmp_path_factory.mktemp("board"), port_named("mps2-an386")
        pack = read_pack((export / "model.twin").read_bytes())
        (folder / "beside.c").write_text(code + '\n#include "model.c"\n')
        flags = (*flags_for(pack), f"-I{export / 'c' / 'model'}")
        builder = Builder(board, folder / "work", flags, program=str(folder / "beside"))
        image = builder.image(b"", np.empty((0, pack.features)))
        command = board.command(board.run, image=image.path)
        output = run(*command, stdin=subprocess.DEVNULL, timeout=300)
        return [line.strip() for line in output.splitlines()]

    return answer


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
def esphome():
    """Path of the command ``esphome``, in an environment that `make test` installs as well."""
    done = subprocess.run(
        [ROOT / "tools" / "esphome-env", ROOT / "build" / "esphome"],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"no environment with ESPHome: {done.stderr[-200:]}")
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def uno(run, tmp_path_factory):
    """Compile a sketch as Arduino does, for the Uno: ``uno(sketch, *libraries)`` is an ELF file."""
    home = tmp_path_factory.mktemp("arduino")
    for name in ("cache", "tools"):
        (home / name).mkdir()

    def build(sketch, *libraries):
        folder = home / f"build{len(list(home.iterdir()))}"
        folder.mkdir()
        output = run(
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
        mine = [
            line for line in output.splitlines() if "warning:" in line and "/cores/" not in line
        ]
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


def build(what, tree, folder, **environment):
    """Build from a folder of sources, like pip but without a network; return the file."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(what), folder],
        cwd=tree,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / done.stdout.split()[-1]


def extracted(archive, folder):
    with tarfile.open(**archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The source distribution, and the wheel that is built from it."""
    home = tmp_path_factory.mktemp("built")
    done = subprocess.run([ROOT / "tools" / "wheel-sources"], capture_output=True, check=True)
    checkout = extracted({"fileobj": io.BytesIO(done.stdout)}, home / "checkout")
    sdist = build("sdist", checkout, home)
    (tree,) = extracted({"name": sdist}, home / "unpacked").iterdir()
    wheel = build("wheel", tree, home)
    return SimpleNamespace(checkout=checkout, sdist=sdist, wheel=wheel)


@pytest.fixture(scope="session")
def bare(built, tmp_path_factory):
    """The wheel of a machine without a compiler, from a checkout."""
    return build("wheel", built.checkout, tmp_path_factory.mktemp("bare"), CC="false")


def link(dist, extras, site, done, *paths):
    """Give an environment just what a distribution needs, from these folders or our own."""
    for requirement in map(Requirement, dist.requires or []):
        name, marker = requirement.name, requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            continue
        if (name, *requirement.extras) in done:
            continue
        done.add((name, *requirement.extras))
        there = (
            dist
            if name == dist.name
            else next(iter(Distribution.discover(name=name, path=paths)), None)
        )
        other = there or distribution(name)
        for top in {file.parts[0] for file in other.files} - {"..", "__pycache__"}:
            if other is not dist and not (site / top).exists():
                (site / top).symlink_to(other.locate_file(top))
        link(other, requirement.extras, site, done, *paths)


@pytest.fixture(scope="session")
def installed(built, tmp_path_factory, request):
    """Install the wheel with some extras: ``installed("train")`` has the variables to run it."""

    @cache
    def install(*extras):
        home = tmp_path_factory.mktemp("fresh") / "env"
        venv.create(home, symlinks=True)
        python = home / "bin" / "python"
        quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
        pip = (sys.executable, "-m", "pip", "--python", python, "install", *quiet)
        subprocess.run([*pip, built.wheel], check=True)
        (site,) = home.glob("lib/python*/site-packages")
        (information,) = site.glob("twinedge-*.dist-info")
        paths = []
        if "tflite-runtime" in extras:  # with a numpy of its own
            other = Path(request.getfixturevalue("tflite_runtime"))
            paths = map(str, other.parents[1].glob("lib/python*/site-packages"))
        link(Distribution.at(information), extras, site, set(), *paths)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TWINEDGE_")}
        kept.pop("PYTHONPATH", None)
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        return kept | {"PATH": path, "VIRTUAL_ENV": str(home)}

    return install


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """A folder with the packs of the golden vectors, their queries, and the bits of the answers."""
    folder = tmp_path_factory.mktemp("golden")
    vectors = runpy.run_path(str(HERE.parent / "golden" / "vectors.py"))
    words = {}
    for case in (*vectors["load"](), *vectors["load_several"]()):
        (folder / f"{case.name}.twin").write_bytes(case.pack)
        words[f"{case.name} queries"] = case.queries
        for kind in ("mean", "spread"):
            words.setdefault(f"{case.name} {kind}", []).append(getattr(case, kind))
    answers = {
        name: one if isinstance(one, np.ndarray) else np.column_stack(one).squeeze()
        for name, one in words.items()
    }
    np.savez(folder / "words.npz", **answers)
    return folder


@pytest.fixture(scope="session")
def commit(tmp_path_factory):
    """A repository with this checkout as its only commit, including uncommitted changes."""
    tree = tmp_path_factory.mktemp("first") / "tree"
    words = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others"]
    listed = subprocess.run(
        [*words, "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "All")
    return tree


def git(tree, *words):
    """Run git as somebody, at the time ``WHEN``."""
    who = {f"GIT_{who}_{what}": "test" for who in ROLES for what in ("NAME", "EMAIL")}
    when = {f"GIT_{who}_DATE": f"{WHEN} +0000" for who in ROLES}
    variables = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull} | who | when
    subprocess.run(["git", *words], cwd=tree, env=variables, check=True, capture_output=True)


def release(tree, *words, umask=0o022, **environment):
    """Call a tree's own tools/dist.py, which writes its dist/."""
    return subprocess.run(
        [sys.executable, "tools/dist.py", *words],
        cwd=tree,
        env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull} | environment,
        umask=umask,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="session")
def releasing():
    """Functions ``git`` and ``release``, and the time of commits."""
    return SimpleNamespace(git=git, release=release, when=WHEN)


@pytest.fixture(scope="session")
def quick(dist, tmp_path_factory):
    """Variables with which extensions compile quickly; speed does not matter in most tests."""
    folder = tmp_path_factory.mktemp("compilers")
    # Where compilers are links to ccache, it would look for the next one of that name: this one.
    path = os.pathsep.join(
        one for one in os.environ["PATH"].split(os.pathsep) if not one.endswith("ccache")
    )
    for processor in dist.wheels.PROCESSORS.values():
        name = f"{processor.tools}gcc"
        compiler = shutil.which(name, path=path)
        assert compiler, f"{name} is not installed"
        words = f"{shutil.which('ccache') or ''} {compiler}"
        (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@" -O0\n')
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def made(commit, quick):
    """The folder dist/ of that commit."""
    done = release(commit, **quick)
    assert done.returncode == 0, done.stderr
    return commit / "dist"


@pytest.fixture(scope="session")
def final(commit, tmp_path_factory):
    """The release as made by `make dist`, compiled in full, in its own folder."""
    folder = tmp_path_factory.mktemp("final") / "dist"
    done = release(commit, "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder
