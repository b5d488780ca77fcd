"""What loads what: a Pi that predicts must not need what a workstation trains with."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import twinedge

HEAVY = {"tensorflow", "keras", "sklearn", "scipy", "pandas"}
PACKAGE = Path(twinedge.__file__).parent

# What each part may import of the rest of the package.
ALLOWED = {
    "defaults": set(),
    "errors": set(),
    "version": set(),
    "extras": {"errors"},
    "troubleshooting": set(),
    "placing": {"errors"},
    "progress": set(),
    "cluster": {"errors", "extras"},
    "dealing": {"errors"},
    "drawing": set(),
    "cells": set(),
    "times": {"cells", "errors"},
    "quiet": set(),
    "categories": {"cells", "errors"},
    "calendars": {"errors", "times"},
    "tables": {"cells", "errors"},
    "encoding": {"calendars", "categories", "cells", "errors", "tables", "times"},
    "verdict": {"errors"},
    "weighting": {"errors"},
    "calibration": {"errors", "weighting"},
    "scoring": {"calibration", "errors"},
    "forecasting": {"data", "scoring", "times"},
    "data": {"calendars", "cells", "encoding", "errors", "placing", "tables", "times"},
    "held_out": {"data", "forecasting", "learn", "scoring", "times", "weighting"},
    "provenance": {"errors"},
    "anchors": {
        *(
            "calibration",
            "data",
            "dealing",
            "errors",
            "extras",
            "placing",
            "progress",
            "scoring",
            "weighting",
        ),
    },
    "learn": {
        "tables",
        *("budget", "calibration", "data", "dealing", "encoding", "errors", "notebook"),
        *("forecasting", "placing", "progress", "quiet", "record", "scoring", "times", "verdict"),
        *("provenance", "version", "weighting"),
    },
    "notebook": set(),
    "loading": {"errors", "learn", "record", "runtime"},
    "pack": {"cells", "errors"},
    "runtime": {
        *("calendars", "calibration", "categories", "cells", "encoding", "errors", "notebook"),
        *("pack", "quiet", "scoring", "tables"),
    },
    "record": {"errors", "placing"},
    "budget": {"errors", "pack", "placing", "record"},
    "fleet": {"cluster", "errors", "pack", "progress", "runtime"},
    "fitting": {
        *("budget", "data", "errors", "held_out", "learn", "progress", "weighting"),
    },
    "reproduce": {
        *("budget", "cluster", "data", "drawing", "encoding", "errors", "extras", "learn"),
        *("placing", "progress", "scoring", "verdict"),
    },
}


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
        ("reproduce", "--help"),
    ],
    ids=str,
)
def test_help_loads_nothing_heavy(arguments):
    assert not loaded_after(run_command(*arguments)) & HEAVY


def test_reading_a_table_loads_numpy_and_nothing_heavier():
    loaded = loaded_after("import twinedge.data as data; data.read_table")
    assert not loaded & HEAVY


def test_a_regressor_brings_what_it_trains_with():
    # A control: this is what loading looks like, so the tests above can fail.
    loaded = loaded_after("from twinedge import TwinRegressor")
    assert loaded & {"tensorflow", "sklearn"} == {"sklearn"}
    loaded = loaded_after("from twinedge.training.network import tf; tf.nn.relu")
    assert "tensorflow" in loaded


def test_every_public_name_resolves():
    assert set(dir(twinedge)) == set(twinedge.__all__)
    for name in twinedge.__all__:
        assert getattr(twinedge, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = twinedge.colour


def imports_of(path):
    """First two names of everything a file imports, also in functions and for type checkers."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {tuple(name.split(".")[:2]) for name in names}
    return found


def files_of(part):
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


@pytest.mark.parametrize("part", [part for part in sorted(ALLOWED) if files_of(part)[0].exists()])
def test_imports_go_in_the_direction_of_the_design(part):
    for path in files_of(part):
        for package, *rest in imports_of(path):
            if package == "twinedge" and rest and files_of(rest[0])[0].exists():
                allowed = {part, "defaults", *ALLOWED[part]}
                assert rest[0] in allowed, f"{path} imports {rest[0]}"
            assert package != "twinedge_export", f"{path} imports the exporter"


@pytest.mark.parametrize("part", ["errors", "pack", "runtime", "budget"])
def test_what_runs_on_a_device_names_nothing_heavy(part):
    for path in files_of(part):
        if path.exists():
            assert not {package for package, *_ in imports_of(path)} & HEAVY, path


def test_every_part_of_the_package_has_a_rule():
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    free = {"__init__", "__main__", "__pycache__", "cli", "anchors"}
    assert parts - free <= set(ALLOWED)
