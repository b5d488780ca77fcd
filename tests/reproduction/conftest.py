"""Cells with made-up results, and the tiny table that the tests kill."""

import os
import sys
from pathlib import Path

import pytest

from benchmarks.reproduction.cells import Cell, Setup

TINY = Path(__file__).with_name("tiny.py")


@pytest.fixture
def cell():
    """Return a maker of cells that differ in what is given."""

    def make(method="nearest", dataset="tf", split=0, number=None, **setup):
        return Cell(method, dataset, split, Setup(**setup), number)

    return make


@pytest.fixture(scope="session")
def tiny_command():
    """Command line of the tiny table, without its folder and where to compute."""
    return [sys.executable, str(TINY)]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, tiny_command):
    """Folder of the tiny table from an undisturbed run."""
    import subprocess

    folder = tmp_path_factory.mktemp("undisturbed")
    done = subprocess.run(
        [*tiny_command, str(folder), "2"], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def same_answer(undisturbed):
    """Return a check that a folder holds the same table, figure and cells, byte by byte."""

    def check(folder):
        for name in ("tiny.json", "tiny.md", "tiny.svg"):
            same = (folder / name).read_bytes() == (undisturbed / name).read_bytes()
            assert same, name
        theirs = {path.name: path.read_bytes() for path in (folder / "cells").glob("*.json")}
        ours = {path.name: path.read_bytes() for path in (undisturbed / "cells").glob("*.json")}
        same = theirs == ours
        assert same, sorted(set(ours) ^ set(theirs))
        assert len(ours) == 60

    return check
