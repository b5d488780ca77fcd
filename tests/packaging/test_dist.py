"""A release: the same bytes from the same commit, nothing missing, and every file works.

Packages for Arduino, CMake, ESP-IDF and Zephyr are compiled, and those for registries packed, in
test files of their own; here is what all share, and how Python and plain C use theirs.
"""

import hashlib
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import read_pack
from twinedge.runtime.reference import evaluate
from twinedge.version import ADDRESS, __version__

ROOT = Path(__file__).parents[2]
PACK = ROOT / "firmware_ref" / "test" / "corpus" / "small.twin"
KINDS = ("amalgamation", "arduino", "cmake", "esp-idf", "platformio", "zephyr")
SYSTEMS = (
    "cp310-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "cp310-abi3-manylinux2014_armv7l.manylinux_2_17_armv7l",
    "cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "py3-none-any",
)


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


@pytest.mark.slow  # builds all of it once more
def test_the_same_commit_gives_the_same_bytes(commit, made, quick, releasing, tmp_path):
    other = tmp_path / "another, with a longer name"
    releasing.git(tmp_path, "clone", "--quiet", commit, other)
    odd = {"TZ": "Asia/Kolkata", "CFLAGS": "-g", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "7"}
    done = releasing.release(other, umask=0o077, CCACHE_DISABLE="1", **odd, **quick)
    assert done.returncode == 0, done.stderr
    assert names(other / "dist") == names(made)
    for path in made.iterdir():
        assert path.read_bytes() == (other / "dist" / path.name).read_bytes(), path.name


@pytest.mark.slow
def test_all_is_there_and_has_its_checksum(made, run):
    wanted = {f"twinedge-{kind}-{__version__}.zip" for kind in KINDS}
    wanted |= {f"twinedge-{__version__}-{system}.whl" for system in SYSTEMS}
    wanted |= {f"twinedge-{__version__}.tar.gz", f"twinedge-{__version__}.cdx.json"}
    assert names(made) == {"SHA256SUMS"} | wanted
    output = run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=made)
    assert set(output.splitlines()) == {f"{name}: OK" for name in wanted}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *SYSTEMS])
def test_a_zip_is_sorted_and_has_nothing_of_this_machine(made, kind):
    with zipfile.ZipFile(one(made, f"*-{kind}*.[zw]*")) as archive:
        found = archive.infolist()
    assert {info.external_attr >> 16 for info in found} == {0o100644}
    assert {info.date_time for info in found} == {(2023, 11, 14, 22, 13, 20)}
    listed = [info.filename for info in found]
    if kind in SYSTEMS:
        assert listed[-1].endswith("/RECORD")
    else:
        assert listed == sorted(listed)
        assert {name.split("/")[0] for name in listed} == {"twinedge"}
        assert "twinedge/LICENSE" in listed


@pytest.mark.slow
def test_the_source_distribution_has_nothing_of_this_machine(made, releasing):
    with tarfile.open(one(made, "*.tar.gz")) as archive:
        found = archive.getmembers()
    listed = [info.name for info in found]
    assert listed == sorted(listed)
    kept = {(info.type, info.mode, info.mtime, info.uid, info.gid, info.uname) for info in found}
    assert kept == {(tarfile.REGTYPE, 0o644, releasing.when, 0, 0, "")}


@pytest.mark.slow
def test_the_bill_knows_every_file_and_what_it_needs(made):
    text = one(made, "*.cdx.json").read_text()
    # Loading these takes seconds.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

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
    assert needs[one(made, "*-any.whl").name] == {"twinedge"}
    required = {name for name in needs["twinedge"] if listed[name].get("scope") == "required"}
    assert required == {"needs-click", "needs-numpy", "needs-tomli"}
    assert listed["needs-tensorflow"]["scope"] == "optional"
    assert listed["needs-numpy"]["purl"].startswith("pkg:pypi/numpy@")
    assert "needs-pytest" not in listed


@pytest.mark.slow
def test_a_tree_with_changes_is_refused_in_one_line(commit, made, releasing):
    before = names(made)
    for name in ("README.md", "new.txt"):
        path = commit / name
        old = path.read_bytes() if path.exists() else None
        path.write_text("changed\n")
        done = releasing.release(commit)
        path.unlink() if old is None else path.write_bytes(old)
        assert done.returncode == 2
        assert done.stderr == f"dist: not committed: {name}; commit or stash first\n"
    assert names(made) == before


def test_version_and_address_of_the_package_are_written_into_all_manifests(
    commit, dist, releasing, tmp_path
):
    tree = tmp_path / "tree"
    releasing.git(tmp_path, "clone", "--quiet", commit, tree)
    path = tree / "twinedge" / "version.py"
    text = path.read_text().replace(__version__, "12.3.45")
    path.write_text(text.replace(ADDRESS, "https://example.org/here"))
    releasing.git(tree, "commit", "--quiet", "--all", "--message", "Next")
    done = releasing.release(tree)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is not of version 12.3.45 and its address: run `make version`" in done.stderr
    done = releasing.release(tree, "--stamp")
    assert done.stdout.split() == [f"firmware_ref/{name}" for name in dist.VERSIONS]
    assert dist.stamped(tree) == {}
    assert "#define TWIN_VERSION_MINOR 3\n" in (tree / "firmware_ref/include/twin.h").read_text()
    for name in ("library.properties", "library.json", "idf_component.yml"):
        assert "https://example.org/here" in (tree / "firmware_ref" / name).read_text()


@pytest.mark.slow
def test_the_amalgamation_compiles_and_predicts(made, run, tmp_path):
    home = unzip(one(made, "*amalgamation*"), tmp_path) / "twinedge"
    assert names(home) == {"twin.c", "twin.h", "LICENSE"}
    example = (ROOT / "firmware_ref" / "example" / "main.c").read_text("utf-8")
    (home / "main.c").write_text(example.replace("twin_release.h", "twin.h"))
    run("cc", "-o", "example", "main.c", "twin.c", cwd=home)
    output = run(home / "example", PACK, "0.5", "0.25").split()
    assert output[:2] == [f"{number:.9g}" for number in expected()]
