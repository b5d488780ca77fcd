"""The wheel and the source distribution: what is in them, and the README's tour from a wheel."""

import os
import re
import shlex
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from readme_renderer import markdown
from trove_classifiers import classifiers

from twinedge import data
from twinedge.version import ADDRESS, __version__

ROOT = Path(__file__).parents[2]
PACKAGES = {"twinedge": "twinedge", "twinedge_export": "export/twinedge_export"}
FIRMWARE = "twinedge_export/firmware_ref"
README = (ROOT / "README.md").read_text("utf-8")
MOST_BYTES = 1_500_000

# It answers a broker until it is stopped; tests/mqtt does that.
ENDLESS = {"twinedge serve": None}
# Extra options that keep the tour brief; None skips a slow command.
BRIEFLY = {
    **ENDLESS,
    "twinedge train measurements.csv": None,
    "twinedge train": "--hidden 8 --steps 300 --activation relu --learning-rate 0.01"
    " --weight-decay 0.03",
    "(cd out/c && cmake": None,
    "twinedge anchors": None,
    "twinedge budget fit": None,
    "twinedge report": "--quick",
    "twinedge check": None,
    "twinedge export runs/demo --anchors 4": None,
    "python": None,
}
# What else an installed package needs, mentioned elsewhere in the README.
FURTHER = (
    "twinedge firmware build --board mps2-an386 out/model.twin",
    "twinedge export runs/demo --anchors 4 --formats c --single-file -o one",
    "twinedge predict out/model.twin new.csv --backend native > native.csv",
    "twinedge predict out/model.twin new.csv --backend numpy > numpy.csv && cmp n*y.csv native.csv",
)
WHERE = "python -c 'import twinedge, twinedge_export as e; print(twinedge.__file__, e.__file__)'"


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def environment(installed):
    """A fresh environment with the wheel, and what the README installs with it."""
    extras = re.search(r"pip install .*'\.\[(.*)\]'", steps()[0][0])[1].split(",")
    return installed(*extras)


def steps():
    """Commands of the README, in order: pairs of a command and its expected output."""
    text = README.partition("\n## A tour\n")[2].partition("\n## ")[0]
    found = []
    pattern = r"^```(\w*)\n(.*?)^```$|^\| `(twinedge [^`]*)` \|"
    for kind, block, row in re.findall(pattern, text, re.M | re.S):
        if kind == "python":
            found.append((f"python -c {shlex.quote(block)}", ""))
        elif kind == "sh" or row:
            found.append((block or row, ""))
        else:
            found[-1] = (found[-1][0], block)
    return found


def changed(command, options):
    """Give each line its extra options, if it stays at all."""
    if command.startswith("python"):
        return "" if options.get("python", "") is None else command
    return "\n".join(filter(None, (_changed(line, options) for line in command.splitlines())))


def _changed(line, options):
    for start, more in options.items():
        if line.startswith(start):
            words, mark, comment = line.partition("#")
            return more and f"{words.rstrip()} {more} {mark}{comment}"
    return line


def tables(folder):
    """Write the files that a reader should have."""
    table = data.load("tf")
    sizes = {"data": 60, "measured": 30, "fresh": 40, "site": 6}
    ends = np.cumsum([*sizes.values()])
    columns = np.split(np.column_stack([table.X, table.y]), ends)
    for name, rows in zip(sizes, columns, strict=False):
        write(folder / f"{name}.csv", rows, "x1,x2,y")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (40, 2))
    rows = np.column_stack([X, 20 + 30 * X[:, 0] * X[:, 1]])
    write(folder / "measurements.csv", rows, "cement,age,strength")
    temp, flow = 20 + rng.normal(0, 1, 300).cumsum(), rng.uniform(0, 2, 300)
    power = np.convolve(temp, np.full(12, 1 / 12))[:300] + np.roll(flow, 6)
    write(
        folder / "log.csv",
        np.column_stack([np.arange(300), temp, flow, power]),
        "t,temp,flow,power",
    )


def write(path, rows, names):
    np.savetxt(path, rows, fmt="%.6f", delimiter=",", header=names, comments="")


def walk(environment, folder, options):
    """Take the tour in an empty folder, in one shell; return commands, promises and outputs."""
    folder.mkdir()
    tables(folder)
    _, *others = steps()  # the first installs
    todo = [*others, *((command, "") for command in FURTHER)]
    todo = [(changed(command, options), promise) for command, promise in todo]
    todo = [(WHERE, ""), *((command, promise) for command, promise in todo if command)]
    script = folder.with_suffix(".sh")
    script.write_text("".join(f"{command}\nprintf '\\0'\n" for command, _ in todo))
    done = subprocess.run(
        ["bash", "-eu", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    outputs = done.stdout.split("\0")
    assert done.returncode == 0, f"{todo[len(outputs) - 1][0]}\n{done.stderr[-2000:]}"
    assert outputs.pop() == ""
    return [(*step, output) for step, output in zip(todo, outputs, strict=True)]


def check(walked, environment, folder):
    """Check what a tour has printed and written."""
    home = Path(environment["VIRTUAL_ENV"])
    assert all(Path(file).is_relative_to(home) for file in walked[0][2].split())
    promised = {command: (promise, output) for command, promise, output in walked if promise}
    (made,) = (both for command, both in promised.items() if "twinedge export" in command)
    promise, output = (
        [re.split(r" {2,}", line) for line in text.split("\n\n")[0].splitlines()] for text in made
    )
    assert output[0] == promise[0]
    assert [row[0] for row in output] == [row[0] for row in promise]
    (shown,) = (both for command, both in promised.items() if "twinedge predict" in command)
    promise, output = ([line.split(",") for line in text.splitlines()] for text in shown)
    assert output[0] == promise[0]
    # One more row than is shown: the line of a sensor is answered, too.
    assert [len(row) for row in output[1:]] == [len(promise[0])] * len(promise)
    assert "</html>" in (folder / "report.html").read_text()
    assert (folder / "image.elf").read_bytes().startswith(b"\x7fELF")
    assert (folder / "site.store").stat().st_size > 0


def test_every_file_of_the_packages_and_of_the_runtime_is_in_the_wheel(built):
    found = contents(built.wheel)
    wanted = {
        f"{home}/{path.relative_to(built.checkout / place)}": path
        for home, place in {**PACKAGES, FIRMWARE: "firmware_ref"}.items()
        for path in (built.checkout / place).rglob("*")
        if path.is_file()
    }
    # Compiled, or for tests and tools.
    others = tuple(f"{FIRMWARE}/{name}" for name in ("test/", "proof/", "."))
    left_out = {name for name in wanted if name.startswith((*others, "twinedge/runtime/_native.c"))}
    assert not left_out & set(found)
    for name in set(wanted) - left_out:
        assert found.get(name) == wanted[name].read_bytes(), name
    top = {name.partition("/")[0] for name in found}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def test_without_extras_it_needs_numpy_and_click_alone(built):
    found = contents(built.wheel)
    (metadata,) = (text for name, text in found.items() if name.endswith("/METADATA"))
    lines = re.findall(r"^Requires-Dist: (.*)$", metadata.decode(), re.M)
    core = {one.name for one in map(Requirement, lines) if "extra" not in str(one.marker)}
    assert core == {"numpy", "click", "tomli"}  # tomli for Python 3.10
    trained = [one for one in map(Requirement, lines) if "train" in str(one.marker)]
    assert {"tensorflow", "scikit-learn"} <= {one.name for one in trained}


@pytest.fixture(scope="module")
def metadata(built):
    (text,) = (text for name, text in contents(built.wheel).items() if name.endswith("/METADATA"))
    return Parser().parsestr(text.decode())


def test_a_package_index_accepts_and_shows_it(built, metadata, run):
    shown = run(sys.executable, "-m", "twine", "check", "--strict", built.wheel, built.sdist)
    assert shown.count("PASSED") == 2
    page = markdown.render(metadata.get_payload())
    assert "<table>" in page
    addresses = re.findall(r'(?:href|src)="([^"#][^"]*)"', page)
    assert len(addresses) > 20
    at = re.compile(rf"{re.escape(ADDRESS)}/(raw|blob)/v{re.escape(__version__)}/([^#]+)(?:#.*)?")
    pictures = 0
    for address in addresses:
        assert address.startswith("https://"), address
        if address.startswith(ADDRESS):
            kind, path = at.fullmatch(address).groups()
            assert (ROOT / path).exists(), address
            pictures += kind == "raw"
    assert pictures == page.count("<img") > 0


def test_the_metadata_says_for_whom_it_is(metadata):
    mine = metadata.get_all("Classifier")
    assert set(mine) <= classifiers
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    tried = re.search(r"python: \[(.*)\]", workflow)[1].replace('"', "").split(", ")
    prefix = "Programming Language :: Python :: 3."
    assert [one.removeprefix(prefix[:-2]) for one in mine if one.startswith(prefix)] == tried
    assert metadata["Requires-Python"] == f">={tried[0]}"
    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert {"Source", "Documentation", "Changes", "Issues", "Paper"} == set(urls)
    assert all(url.startswith(ADDRESS) for name, url in urls.items() if name != "Paper")
    assert "dev" not in metadata.get_all("Provides-Extra")  # a dependency group


@pytest.fixture
def refused(environment, tmp_path):
    """Return what a command of the installed package prints when it refuses: one line."""

    def call(*words):
        command = ["twinedge", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        return done.stderr

    return call


def test_from_a_wheel_measuring_a_board_says_in_a_line_what_it_needs(refused):
    message = refused("firmware", "measure", "--board", "mps2-an386")
    assert "part of an installation" in message
    assert "-o" in message


def test_messages_lead_to_the_installed_pages(refused, environment):
    message = refused("train", "none.csv", "--target", "y")
    page, _, anchor = message.partition("(see ")[2].rstrip(")\n").partition("#")
    assert anchor == "the-file-does-not-exist"
    assert Path(page).is_relative_to(environment["VIRTUAL_ENV"])
    assert Path(page).read_bytes() == (ROOT / "docs" / "troubleshooting.md").read_bytes()


@pytest.mark.slow
def test_a_wheel_from_the_source_distribution_is_that_from_a_checkout(built, bare):
    one, other = contents(built.wheel), contents(bare)
    (native,) = set(one) - set(other)
    assert re.fullmatch(r"twinedge/runtime/_native\..*so", native)
    assert set(other) <= set(one)
    for name in set(other):
        assert name.endswith("RECORD") or one[name] == other[name], name


def test_the_wheel_is_small_and_serves_later_versions_of_python(built):
    assert built.wheel.stat().st_size < MOST_BYTES
    assert "-cp310-abi3-" in built.wheel.name


@pytest.mark.slow
def test_without_a_compiler_all_but_the_extension_is_there(bare, tmp_path):
    with zipfile.ZipFile(bare) as archive:
        archive.extractall(tmp_path)
    code = (
        "import sys; from pathlib import Path; from twinedge.runtime import native\n"
        "try: native.open_native(Path(sys.argv[1]))\n"
        "except native.MissingPackageError as error: print(native.__file__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ROOT / "firmware_ref" / "test" / "corpus" / "small.twin"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(tmp_path)), done.stderr
    assert "has no compiled C runtime" in done.stdout


@pytest.mark.slow  # test_extras.py runs all commands from a wheel
def test_the_tour_runs_from_a_wheel(environment, tmp_path):
    folder = tmp_path / "tour"
    check(walk(environment, folder, BRIEFLY), environment, folder)


@pytest.mark.slow
def test_the_whole_tour_runs_from_a_wheel_as_the_readme_has_it(environment, tmp_path):
    folder = tmp_path / "tour"
    walked = walk(environment, folder, ENDLESS)
    check(walked, environment, folder)
    assert len(walked) == len(steps()) + len(FURTHER) - len(ENDLESS)
    assert (folder / "out" / "c" / "build" / "model").is_file()
    assert (folder / "one" / "c" / "model" / "twin.c").is_file()
