"""Cells with made-up results, and the tiny table that the tests kill."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.reproduction.cells import Cell, Setup
from benchmarks.reproduction.experiments import EXPERIMENTS
from benchmarks.reproduction.results import Outcome

ROOT = Path(__file__).parents[2]
TINY = Path(__file__).with_name("tiny.py")


@pytest.fixture
def cell():
    """Return a maker of cells that differ in what is given."""

    def make(method="nearest", dataset="tf", split=0, number=None, **setup):
        return Cell(method, dataset, split, Setup(**setup), number)

    return make


@pytest.fixture(scope="session")
def outcome():
    """Return a maker of outcomes whose cells a function makes up; None is a missing cell."""

    def make(name, result_of, datasets, splits=2):
        setup = Setup()
        experiment = EXPERIMENTS[name](setup)
        found = {cell: result_of(cell) for cell in experiment.cells(list(datasets), splits, setup)}
        results = {cell: result for cell, result in found.items() if result is not None}
        return Outcome(experiment, list(datasets), splits, setup, results)

    return make


@pytest.fixture(scope="session")
def tiny_table(tmp_path_factory):
    """Start the tiny table in a folder, on so many processes or on a cluster."""

    def start(folder, where="2"):
        return subprocess.Popen(
            [sys.executable, str(TINY), str(folder), where],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )

    return start


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, tiny_table):
    """Folder of the tiny table from an undisturbed run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run = tiny_table(folder)
    _, err = run.communicate()
    assert run.returncode == 0, err
    return folder


@pytest.fixture(scope="session")
def same_table(undisturbed):
    """Return a check that a folder holds the same table, figure and cells, byte by byte."""

    def check(folder):
        for name in ("tiny.json", "tiny.md", "tiny.svg"):
            same = (folder / name).read_bytes() == (undisturbed / name).read_bytes()
            assert same, name
        found, expected = (
            {path.name: path.read_bytes() for path in (one / "cells").glob("*.json")}
            for one in (folder, undisturbed)
        )
        same = found == expected
        assert same, sorted(set(expected) ^ set(found))
        assert len(expected) == 60

    return check
