"""What worked with the release before still does: names, files, and the numbers they give.

``python tests/test_interface.py`` lists the names, for the folder of the next release.
"""

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest

import twinedge
from twinedge.cli import app

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / "firmware_ref" / "include"
FROZEN = ROOT / "tests" / "golden" / "release-0.1"  # a run, a pack, answers, and all names

# Modules whose names the documentation uses.
MODULES = (
    "twinedge",
    "twinedge.anchors",
    "twinedge.budget",
    "twinedge.data",
    "twinedge.pack",
)


def commands(command: click.Command, name: str = "twinedge") -> Iterator[str]:
    """Each command, and each spelling of its options and arguments."""
    yield name
    for parameter in command.params:
        for spelling in (*parameter.opts, *parameter.secondary_opts):
            yield f"{name} {spelling}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from commands(found, f"{name} {child}")


def members(name: str, value: Any) -> Iterator[str]:
    """A public name, its parameters, and the methods of a class."""
    yield name
    try:
        parameters = inspect.signature(value).parameters if callable(value) else {}
    except ValueError:  # of a built-in
        parameters = {}
    for parameter in parameters:
        yield f"{name}({parameter}"
    if inspect.isclass(value):
        for child in dir(value):
            if not child.startswith("_"):
                method = getattr(value, child)
                yield f"{name}.{child}"
                if inspect.isfunction(method):
                    for parameter in inspect.signature(method).parameters:
                        if parameter != "self":
                            yield f"{name}.{child}({parameter}"


def python_names() -> Iterator[str]:
    """Everything that the modules of the documentation export, and what ``load`` returns."""
    for module in MODULES:
        loaded = import_module(module)
        for name in loaded.__all__:
            yield from members(f"{module}.{name}", getattr(loaded, name))
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")])
    for loaded in (twinedge.load(FROZEN / "model.twin"), twinedge.load(FROZEN / "run")):
        for name in dir(loaded):
            if not name.startswith("_") and re.search(rf"\w\.{name}\b", pages):
                yield f"{type(loaded).__name__}.{name}"


def c_names() -> Iterator[str]:
    """Functions, types and macros of the public headers."""
    for header in sorted(HEADERS.glob("*.h")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.DOTALL)
        for name in set(re.findall(r"\b(?:twin|TWIN)_\w+", text)):
            yield f"{header.name} {name}"


def interface() -> list[str]:
    """Everything, sorted."""
    return sorted({*commands(app), *python_names(), *c_names()})


def bits(values):
    return np.asarray(values).tobytes().hex()


def answers(folder):
    """What the pack and the run of a release predict for the table beside them."""
    table = pd.read_csv(folder / "table.csv").drop(columns="strength")
    device, run = twinedge.load(folder / "model.twin"), twinedge.load(folder / "run")
    mean, spread = run.model.predict(run.test[0], return_std=True)
    return {
        "pack": bits(device.predict(table)),
        "pack_intervals": bits(device.predict_interval(table, 0.9)),
        "run": mean.tolist(),
        "run_spread": spread.tolist(),
    }


def test_every_name_of_the_release_is_still_there():
    before = (FROZEN / "interface.txt").read_text().splitlines()
    assert not set(before) - set(interface())


def test_files_of_the_release_give_the_same_predictions():
    expected, found = json.loads((FROZEN / "answers.json").read_text()), answers(FROZEN)
    for name in ("pack", "pack_intervals"):  # integers: the same bits on every machine
        assert found[name] == expected[name]
    for name in ("run", "run_spread"):  # floats: BLAS may add in any order
        assert found[name] == pytest.approx(expected[name], rel=1e-6)


def test_a_run_of_the_release_was_trained_without_a_map():
    model = twinedge.load(FROZEN / "run").model
    assert (model.input_map, model.input_map_) == ("none", "none")


if __name__ == "__main__":
    print("\n".join(interface()))
