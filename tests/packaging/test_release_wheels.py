"""The wheels of a release: which systems take them, and each tried on its kind of processor.

Golden vectors are predicted by each: on this processor by the interpreters that are here, on others
in qemu, by Debian's Python and numpy; and by a Python for musl.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.utils import parse_wheel_filename

from twinedge.version import __version__

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACK = ROOT / "firmware_ref" / "test" / "corpus" / "small.twin"
KEPT = ROOT / "build" / "foreign"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf"}  # as Debian calls them
MACHINE = platform.machine()
EXTENSION = "twinedge/runtime/_native.abi3.so"
BORROWED = {"getauxval", "memcmp", "memcpy", "memmove", "memset", "raise", "strcmp", "strlen"}


def wheels(folder):
    """Wheels by the processor they are for, or ``any``."""
    found = {
        re.search(r"(any|x86_64|aarch64|armv7l)\.whl$", path.name)[1]: path
        for path in folder.glob("*.whl")
    }
    assert set(found) == {"any", *MACHINES}
    return found


def unzip(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def fetched(made, tmp_path, *options, **variables):
    """Name of the wheel that pip takes from a release for a system."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-index", "--no-deps")
    done = subprocess.run(
        [*pip, "--find-links", made, "--dest", tmp_path, *options, "twinedge"],
        env=os.environ | {"PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "processor"),
    [
        ("manylinux2014_x86_64", "x86_64"),
        ("manylinux_2_17_aarch64", "aarch64"),
        ("musllinux_1_1_x86_64", "x86_64"),
        ("musllinux_1_1_aarch64", "aarch64"),
        ("manylinux_2_17_armv7l", "armv7l"),
        ("win_amd64", "any"),
        ("macosx_14_0_arm64", "any"),
        ("linux_riscv64", "any"),
    ],
)
def test_pip_takes_the_wheel_for_a_system(made, tmp_path, system, processor):
    options = ("--only-binary", ":all:", "--python-version", "3.10", "--platform", system)
    assert fetched(made, tmp_path, *options).name == wheels(made)[processor].name


@pytest.mark.slow
def test_pip_on_this_machine_takes_the_compiled_wheel_and_on_a_pi_zero_the_one_for_any(
    made, tmp_path
):
    for name, variables in ((MACHINE, {}), ("any", {"_PYTHON_HOST_PLATFORM": "linux-armv6l"})):
        (tmp_path / name).mkdir()
        assert fetched(made, tmp_path / name, **variables).name == wheels(made)[name].name


@pytest.mark.slow
def test_wheels_differ_by_the_extension_alone_and_say_what_their_names_say(made):
    contents = {}
    for name, path in wheels(made).items():
        with zipfile.ZipFile(path) as archive:
            contents[name] = {one: archive.read(one) for one in archive.namelist()}
        about = next(text for one, text in contents[name].items() if one.endswith("/WHEEL"))
        stated = set(re.findall(r"^Tag: (.*)$", about.decode(), re.M))
        assert stated == {str(tag) for tag in parse_wheel_filename(path.name)[3]}
        assert f"Root-Is-Purelib: {str(name == 'any').lower()}\n" in about.decode()
    pure = contents.pop("any")
    own = {next(one for one in pure if one.endswith(end)) for end in ("/WHEEL", "/RECORD")}
    for files in contents.values():
        assert set(files) - set(pure) == {EXTENSION}
        assert {one for one in pure if files[one] != pure[one]} == own
    assert len({files[EXTENSION] for files in contents.values()}) == len(contents)


@pytest.mark.slow
@pytest.mark.parametrize("processor", MACHINES)
def test_an_extension_needs_python_and_what_every_c_library_has(made, run, tmp_path, processor):
    extension = unzip(wheels(made)[processor], tmp_path) / EXTENSION
    shown = run("readelf", "--wide", "--file-header", "--dynamic", "--segments", extension)
    assert {"x86_64": "X86-64", "aarch64": "AArch64", "armv7l": "ARM"}[processor] in shown
    assert "NEEDED" not in shown
    assert re.search(r"GNU_STACK .* RW ", shown)  # not executable
    symbols = run("readelf", "--wide", "--dyn-syms", extension).splitlines()
    rows = [line.split() for line in symbols if re.match(r" +\d+:", line)]
    undefined = {row[7] for row in rows if row[6] == "UND" and len(row) > 7}
    assert {one for one in undefined if not one.startswith(("Py", "_Py"))} <= BORROWED
    defined = {row[7] for row in rows if row[6] != "UND" and row[3] != "SECTION"}
    assert defined == {"PyInit__native"}
    if processor == "armv7l":
        known = run("readelf", "--arch-specific", extension)
        assert "Tag_CPU_arch: v7\n" in known
        assert "Tag_FP_arch: VFPv3-D16\n" in known
        assert "Tag_ABI_VFP_args: VFP registers\n" in known


def test_an_extension_that_needs_a_library_is_refused(dist, run, tmp_path):
    (tmp_path / "one.c").write_text('#include <stdio.h>\nvoid f(void) { puts("here"); }\n')
    library = tmp_path / "one.so"
    run("gcc", "-shared", "-fPIC", "-o", library, tmp_path / "one.c")
    with pytest.raises(dist.DistError, match=r"needs libc\.so\.6, .*puts"):
        dist.wheels.check_needs(library, "")


def test_without_a_cross_compiler_there_is_no_release(commit, quick, releasing, tmp_path):
    for name in (
        "git",
        "readelf",
        "x86_64-linux-gnu-gcc",
        "x86_64-linux-gnu-readelf",
        "x86_64-linux-gnu-nm",
        "as",
        "ld",
        "sh",
    ):
        (tmp_path / name).symlink_to(shutil.which(name, path=quick["PATH"]))
    done = releasing.release(commit, "-o", tmp_path / "dist", PATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "dist: there is no aarch64-linux-gnu-gcc, which the wheel for aarch64 needs"
    ]
    assert not (tmp_path / "dist").exists()


def golden_words(python, golden, backend, tmp_path, **variables):
    """Predict the golden words with what a Python has installed; check them all."""
    folder = tmp_path / "empty"
    folder.mkdir()
    done = subprocess.run(
        [python, HERE / "golden_words.py", golden, backend],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"} | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = SimpleNamespace(**json.loads(done.stdout))
    assert found.wrong == []
    assert found.packs == len([*golden.glob("*.twin")]) > 40
    assert found.backends == [backend]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [MACHINE, "any"])
def test_a_wheel_predicts_the_golden_words_here(made, golden, tmp_path, name):
    site = unzip(wheels(made)[name], tmp_path / "site")
    backend = "numpy" if name == "any" else "native"
    found = golden_words(sys.executable, golden, backend, tmp_path, PYTHONPATH=str(site))
    assert Path(found.file).is_relative_to(site)


@pytest.mark.slow
def test_the_wheel_for_any_system_says_in_a_sentence_who_evaluates(made, tmp_path):
    site = unzip(wheels(made)["any"], tmp_path / "site")

    def call(*words):
        done = subprocess.run(
            [sys.executable, "-m", "twinedge", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    version, remark = call("--version")
    assert version == f"{__version__}\n"
    assert remark.count("\n") == 1
    assert "numpy evaluates packs, with the same bits but slower" in remark
    assert call("inspect", PACK)[1] == remark
    assert call("inspect", PACK, "--json")[1] == ""
    (tmp_path / "x.csv").write_text("x0,x1\n0.5,0.25\n")
    assert call("predict", PACK, "x.csv")[1] == ""  # not at each use


def interpreters():
    """Every Python from 3.10 on that is here, the one that runs this first."""
    found = {sys.version_info[:2]: sys.executable}
    # Beside this one first: a shim on the path may stand for one that is not chosen.
    beside = map(str, Path(sys.base_prefix).parent.glob("*/bin"))
    places = [*beside, *os.environ["PATH"].split(os.pathsep)]
    for minor in range(10, 20):
        path = shutil.which(f"python3.{minor}", path=os.pathsep.join(places))
        works = path and not subprocess.run([path, "-c", "import venv"], stderr=-3).returncode
        if works:
            found.setdefault((3, minor), path)
    return found


@pytest.mark.slow  # downloads numpy for each
@pytest.mark.parametrize("version", interpreters(), ids=lambda one: ".".join(map(str, one)))
def test_pip_installs_it_for_every_python_here(final, golden, run, tmp_path, version):
    run(interpreters()[version], "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", wheels(final)[MACHINE], cwd=tmp_path)
    found = golden_words(python, golden, "native", tmp_path)
    assert found.python == list(version)
    assert Path(found.file).is_relative_to(tmp_path / "env")
    (tmp_path / "x.csv").write_text("x0,x1\n0.5,0.25\n")
    shown = run(python.parent / "twinedge", "predict", PACK, tmp_path / "x.csv")
    assert len(shown.splitlines()) == 2


@pytest.mark.slow  # compiles the extension
def test_pip_builds_the_source_distribution(final, golden, run, tmp_path):
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    (sdist,) = final.glob("*.tar.gz")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", sdist, cwd=tmp_path)
    found = golden_words(python, golden, "native", tmp_path)
    assert Path(found.file).is_relative_to(home)


@pytest.mark.slow
def test_wheels_made_of_the_source_distribution_are_those_beside_it(
    final, dist, releasing, tmp_path
):
    (sdist,) = final.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    _, *again = dist.python_packages(dist.Source(tree, "", releasing.when), tmp_path)
    assert len(again) == 1 + len(MACHINES)
    for wheel in again:
        assert wheel.read_bytes() == (final / wheel.name).read_bytes()


@pytest.mark.slow  # downloads a Debian, and qemu is slow
@pytest.mark.parametrize("processor", MACHINES)
def test_pip_installs_it_on_debian_on_each_processor(final, golden, run, tmp_path, processor):
    tool = ROOT / "tools" / "foreign-python"
    python = run(tool, MACHINES[processor], KEPT).splitlines()[-1]
    site = tmp_path / "site"
    options = ("--quiet", "--no-index", "--no-deps", "--find-links", final, "--target", site)
    run(python, "-m", "pip", "install", *options, "twinedge", env={"PATH": os.environ["PATH"]})
    (about,) = site.glob("*.dist-info/WHEEL")
    assert f"_{processor}\n" in about.read_text()
    found = golden_words(python, golden, "native", tmp_path, PYTHONPATH=str(site))
    assert Path(found.file).is_relative_to(site)


@pytest.mark.slow  # compiles a Python
def test_pip_installs_it_on_musl(final, golden, run, tmp_path):
    python = run(ROOT / "tools" / "musl-python", KEPT / "musl").splitlines()[-1]
    # Later ones need a later musl than Debian's.
    system = ("--platform", f"musllinux_1_1_{MACHINE}", "--python-version", "3.11")
    fetch = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", tmp_path)
    run(*fetch, "--only-binary", ":all:", *system, "numpy<2")
    (numpy,) = tmp_path.glob("numpy-*.whl")
    import pip

    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "pip").symlink_to(Path(pip.__file__).parent)
    site = tmp_path / "site"
    options = ("--quiet", "--no-index", "--no-deps", "--find-links", final, "--target", site)
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "tools")}
    run(python, "-m", "pip", "install", *options, "twinedge", numpy, env=own)
    (about,) = site.glob("twinedge-*.dist-info/WHEEL")
    assert f"musllinux_1_1_{MACHINE}\n" in about.read_text()
    golden_words(python, golden, "native", tmp_path, PYTHONPATH=str(site))
