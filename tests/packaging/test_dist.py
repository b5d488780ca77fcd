"""A release: the same bytes from the same commit, nothing missing, and every file works.

Packages for Arduino, CMake, ESP-IDF and Zephyr are compiled, and those for registries packed, in
test files of their own; here is what all share, and how Python and plain C use theirs.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from twinedge.pack import read_pack
from twinedge.runtime.reference import evaluate
from twinedge.version import ADDRESS, __version__

ROOT = Path(__file__).parents[2]
PACK = ROOT / "firmware_ref" / "test" / "corpus" / "small.twin"
WHEN = 1_700_000_000  # of the commit
KINDS = ("amalgamation", "arduino", "cmake", "esp-idf", "platformio", "zephyr")
WHEEL = r"twinedge-[\d.]+-(cp311-abi3|cp310-cp310)-linux_\w+\.whl"
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_DATE": f"{WHEN} +0000",
    "GIT_COMMITTER_DATE": f"{WHEN} +0000",
    **{
        f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    },
}
# Compile time matters here, speed does not.
QUICKLY = '#!/bin/sh\nexec cc "$@" -O0\n'


def git(tree, *words):
    subprocess.run(["git", *words], cwd=tree, env=os.environ | GIT, check=True, capture_output=True)


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


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    compiler = tmp_path_factory.mktemp("compiler") / "cc"
    compiler.write_text(QUICKLY)
    compiler.chmod(0o755)
    return {"CC": str(compiler)}


@pytest.fixture(scope="module")
def made(commit, quick):
    """The folder dist/ of that commit."""
    done = release(commit, **quick)
    assert done.returncode == 0, done.stderr
    return commit / "dist"


def one(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


def names(folder):
    return {path.name for path in folder.iterdir()}


def unzip(path, folder):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def expected():
    answer = evaluate(read_pack(PACK.read_bytes()), np.array([[0.5, 0.25]], np.float32))
    return answer.mean[0], answer.spread[0]


def predicts(python, folder):
    """Predict in an empty folder with the installed package; return its location."""
    folder.mkdir()
    code = (
        "import sys, twinedge, numpy as np; print(twinedge.__file__)\n"
        "device = twinedge.load(sys.argv[1], backend='native')\n"
        "print(device.predict(np.array([[0.5, 0.25]]))[0])"
    )
    path = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [python, "-c", code, PACK], cwd=folder, env=path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, mean = done.stdout.split()
    assert float(mean) == pytest.approx(expected()[0], rel=1e-6)
    return Path(where)


@pytest.mark.slow  # builds all of it once more
def test_the_same_commit_gives_the_same_bytes(commit, made, quick, tmp_path):
    other = tmp_path / "another, with a longer name"
    git(tmp_path, "clone", "--quiet", commit, other)
    odd = {"TZ": "Asia/Kolkata", "CFLAGS": "-g", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7"}
    done = release(other, umask=0o077, **odd, **quick)
    assert done.returncode == 0, done.stderr
    assert names(other / "dist") == names(made)
    for path in made.iterdir():
        assert path.read_bytes() == (other / "dist" / path.name).read_bytes(), path.name


def test_all_is_there_and_has_its_checksum(made, run):
    wheel = one(made, "*.whl").name
    assert re.fullmatch(WHEEL, wheel)
    wanted = {f"twinedge-{kind}-{__version__}.zip" for kind in KINDS} | {wheel}
    wanted |= {f"twinedge-{__version__}.tar.gz", f"twinedge-{__version__}.cdx.json"}
    assert names(made) == {"SHA256SUMS"} | wanted
    output = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=made)
    assert set(output.splitlines()) == {f"{name}: OK" for name in wanted}


@pytest.mark.parametrize("kind", [*KINDS, "wheel"])
def test_a_zip_is_sorted_and_has_nothing_of_this_machine(made, kind):
    with zipfile.ZipFile(one(made, f"*-{kind}-*.zip" if kind != "wheel" else "*.whl")) as archive:
        found = archive.infolist()
    assert {info.external_attr >> 16 for info in found} == {0o100644}
    assert {info.date_time for info in found} == {(2023, 11, 14, 22, 13, 20)}
    listed = [info.filename for info in found]
    if kind == "wheel":
        assert listed[-1].endswith("/RECORD")
    else:
        assert listed == sorted(listed)
        assert {name.split("/")[0] for name in listed} == {"twinedge"}
        assert "twinedge/LICENSE" in listed


def test_the_source_distribution_has_nothing_of_this_machine(made):
    with tarfile.open(one(made, "*.tar.gz")) as archive:
        found = archive.getmembers()
    listed = [info.name for info in found]
    assert listed == sorted(listed)
    kept = {(info.type, info.mode, info.mtime, info.uid, info.gid, info.uname) for info in found}
    assert kept == {(tarfile.REGTYPE, 0o644, WHEN, 0, 0, "")}


def test_the_bill_knows_every_file_and_what_it_needs(made):
    text = one(made, "*.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert bill["metadata"]["component"]["version"] == __version__
    listed = {part["bom-ref"]: part for part in bill["components"]}
    files = {part["name"] for part in bill["components"] if part["type"] == "file"}
    assert files == names(made) - {"SHA256SUMS", f"twinedge-{__version__}.cdx.json"}
    for name in files:
        (digest,) = listed[name]["hashes"]
        assert digest["content"] == hashlib.sha256((made / name).read_bytes()).hexdigest()
    needs = {part["ref"]: set(part.get("dependsOn", ())) for part in bill["dependencies"]}
    assert needs["twinedge-C-runtime"] == set()
    assert needs[f"twinedge-arduino-{__version__}.zip"] == {"twinedge-C-runtime"}
    assert needs[one(made, "*.whl").name] == {"twinedge"}
    required = {name for name in needs["twinedge"] if listed[name].get("scope") == "required"}
    assert required == {"needs-click", "needs-numpy", "needs-tomli"}
    assert listed["needs-tensorflow"]["scope"] == "optional"
    assert listed["needs-numpy"]["purl"].startswith("pkg:pypi/numpy@")
    assert "needs-pytest" not in listed


def test_a_tree_with_changes_is_refused_in_one_line(commit, made):
    before = names(made)
    for name in ("README.md", "new.txt"):
        path = commit / name
        old = path.read_bytes() if path.exists() else None
        path.write_text("changed\n")
        done = release(commit)
        path.unlink() if old is None else path.write_bytes(old)
        assert done.returncode == 2
        assert done.stderr == f"dist: not committed: {name}; commit or stash first\n"
    assert names(made) == before


def test_version_and_address_of_the_package_are_written_into_all_manifests(commit, dist, tmp_path):
    tree = tmp_path / "tree"
    git(tmp_path, "clone", "--quiet", commit, tree)
    path = tree / "twinedge" / "version.py"
    text = path.read_text().replace(__version__, "12.3.45")
    path.write_text(text.replace(ADDRESS, "https://example.org/here"))
    git(tree, "commit", "--quiet", "--all", "--message", "Next")
    done = release(tree)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is not of version 12.3.45 and its address: run `make version`" in done.stderr
    done = release(tree, "--stamp")
    assert done.stdout.split() == [f"firmware_ref/{name}" for name in dist.VERSIONS]
    assert dist.stamped(tree) == {}
    assert "#define TWIN_VERSION_MINOR 3\n" in (tree / "firmware_ref/include/twin.h").read_text()
    for name in ("library.properties", "library.json", "idf_component.yml"):
        assert "https://example.org/here" in (tree / "firmware_ref" / name).read_text()


def test_wheels_that_were_built_elsewhere_are_taken_if_they_are_of_this_version(
    commit, made, dist, tmp_path
):
    there, folder = tmp_path / "wheels", tmp_path / "dist"
    there.mkdir()
    folder.mkdir()
    source = dist.Source(commit, "", WHEN)
    with pytest.raises(dist.DistError, match="has no wheel"):
        dist.python_packages(source, folder, there)
    name = one(made, "*.whl").name.replace("-linux_", "-manylinux_2_28_")
    shutil.copy(one(made, "*.whl"), there / name)
    dist.python_packages(source, folder, there)
    assert names(folder) == {name, one(made, "*.tar.gz").name}
    shutil.copy(there / name, there / name.replace(__version__, "0.0.9"))
    with pytest.raises(dist.DistError, match=r"has twinedge-0\.0\.9-"):
        dist.python_packages(source, folder, there)


def test_the_amalgamation_compiles_and_predicts(made, run, tmp_path):
    home = unzip(one(made, "*amalgamation*"), tmp_path) / "twinedge"
    assert names(home) == {"twin.c", "twin.h", "LICENSE"}
    shutil.copy(ROOT / "firmware_ref" / "example" / "main.c", home)
    run("cc", "-o", "example", "main.c", "twin.c", cwd=home)
    output = run(home / "example", PACK, "0.5", "0.25").split()
    assert output[:2] == [f"{number:.9g}" for number in expected()]


@pytest.fixture(scope="module")
def final(commit, tmp_path_factory):
    """The release as made by `make dist`, compiled in full, in its own folder."""
    folder = tmp_path_factory.mktemp("final") / "dist"
    done = release(commit, "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def test_pip_installs_it_into_an_empty_environment(final, run, tmp_path, pattern):
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt")
    run(*pip, one(final, pattern), cwd=tmp_path)
    assert predicts(python, tmp_path / "empty").is_relative_to(home)
    (tmp_path / "x.csv").write_text("x1,x2\n0.5,0.25\n")
    output = run(home / "bin" / "twinedge", "predict", PACK, tmp_path / "x.csv")
    assert float(output.splitlines()[1].split(",")[0]) == pytest.approx(expected()[0], rel=1e-6)


@pytest.mark.slow
def test_a_wheel_made_of_the_source_distribution_is_the_one_beside_it(final, dist, tmp_path):
    with tarfile.open(one(final, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    source = dist.Source(tree, "", WHEN)
    _, wheel = dist.python_packages(source, tmp_path)
    assert wheel.read_bytes() == one(final, "*.whl").read_bytes()
