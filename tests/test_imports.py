"""What loads what: a Pi that predicts must not need what a workstation trains with."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import twinedge
import twinedge_export

HEAVY = {"tensorflow", "keras", "sklearn", "scipy", "pandas"}
PACKAGE = Path(twinedge.__file__).parent


def layers() -> list[set[str]]:
    """The table of CONTRIBUTING.md, from the top: a layer imports only what is below it."""
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    table = text.partition("## What imports what")[2].partition("```\n")[2].partition("```")[0]
    return [{*line.partition(":")[2].split()} for line in table.splitlines()]


def loaded_after(code):
    """Names of the top-level modules that a fresh interpreter has loaded after this code."""
    script = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def run_command(*arguments):
    return (
        "import runpy, sys\n"
        f"sys.argv = ['twinedge', *{arguments!r}]\n"
        "try: runpy.run_module('twinedge', run_name='__main__')\n"
        "except SystemExit as stop: assert not stop.code, stop.code"
    )


def test_importing_the_package_loads_nothing_heavy():
    loaded = loaded_after(
        "import twinedge; twinedge.__version__; twinedge.InputError; dir(twinedge)"
    )
    assert not loaded & HEAVY
    assert "numpy" not in loaded


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("train", "--help"),
        ("predict", "--help"),
    ],
    ids=str,
)
def test_help_loads_nothing_heavy(arguments):
    assert not loaded_after(run_command(*arguments)) & HEAVY


def test_reading_a_table_loads_numpy_and_nothing_heavier():
    loaded = loaded_after("import twinedge.data as data; data.read_table")
    assert not loaded & HEAVY


def test_a_regressor_brings_scikit_learn_and_no_tensorflow():
    # A control: this is what loading looks like, so the tests above can fail.
    loaded = loaded_after("from twinedge import TwinRegressor")
    assert loaded & {"tensorflow", "sklearn"} == {"sklearn"}


def test_every_public_name_resolves():
    assert set(dir(twinedge)) == set(twinedge.__all__)
    for name in twinedge.__all__:
        assert getattr(twinedge, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = twinedge.colour


def modules() -> dict[str, Path]:
    """Each module of the two packages, by its full name."""
    found = {}
    for package in (PACKAGE, Path(twinedge_export.__file__).parent):
        for path in package.rglob("*.py"):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports_of(path: Path) -> set[str]:
    """Everything a file imports, also in functions and for type checkers."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def part_of(name: str) -> str | None:
    """The part of the table that a module, or a name in one, belongs to."""
    package, _, rest = name.partition(".")
    if package == "twinedge_export":
        return "export.report" if rest.startswith("report") else "export"
    first = rest.partition(".")[0]
    known = package == "twinedge" and {path.stem for path in PACKAGE.iterdir()}
    return first if known and first in known else None


def test_imports_point_down_the_table_of_contributing():
    level = {part: depth for depth, parts in enumerate(layers()) for part in parts}
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules().items()
        if (part := part_of(name)) not in (None, "__main__")
        for imported in imports_of(path)
        if (other := part_of(imported)) not in (None, part) and level[other] <= level[part]
    ]
    assert not wrong


def test_every_part_is_in_the_table_once():
    listed = [part for parts in layers() for part in sorted(parts)]
    assert len(listed) == len(set(listed))
    assert {*listed, "__main__"} == {*map(part_of, modules())} - {None}


@pytest.mark.parametrize("part", ["errors", "encoding", "scoring", "pack", "runtime", "budget"])
def test_what_runs_on_a_device_names_nothing_heavy(part):
    for name, path in modules().items():
        if part_of(name) == part:
            assert not {one.partition(".")[0] for one in imports_of(path)} & HEAVY, path
