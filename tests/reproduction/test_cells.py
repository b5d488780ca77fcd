"""A key holds what determines the numbers of a cell, and nothing else."""

import os
import platform

import joblib
import pytest
from threadpoolctl import threadpool_info

from benchmarks.machine import machine
from benchmarks.reproduction import cells, running
from benchmarks.reproduction.cells import METHODS
from benchmarks.reproduction.experiments import EXPERIMENTS

BASE = {"members": 4, "effort": "quick", "trainer": "twinedge", "protocol": "published"}
OTHER = {
    "members": 8,
    "effort": "normal",
    "trainer": "published",
    "protocol": "text",
    "steps": 2000,
}


@pytest.mark.parametrize("method", METHODS)
def test_a_name_changes_with_what_decides_the_numbers_and_with_nothing_else(cell, method):
    before = cell(method, **BASE)
    assert cell(method, dataset="yh", **BASE).name != before.name
    assert cell(method, split=1, **BASE).name != before.name
    assert cell(method, number=8, **BASE).name != before.name
    for option, value in OTHER.items():
        changed = cell(method, **{**BASE, option: value})
        decides = option in METHODS[method].decided_by
        assert (changed.name != before.name) == decides, option
        assert (changed.key != before.key) == decides, option


def test_a_new_version_is_another_cell(cell, monkeypatch):
    before = cell("forest").name
    monkeypatch.setitem(METHODS, "forest", METHODS["forest"]._replace(version=99))
    assert cell("forest").name != before


def test_another_trainer_of_ours_changes_its_own_cells_alone(cell, monkeypatch):
    ours, theirs = cell("twins", **BASE), cell("twins", **{**BASE, "trainer": "published"})
    before = ours.name, theirs.name
    monkeypatch.setattr(cells, "OUR_TRAINER", cells.OUR_TRAINER + 1)
    assert ours.name != before[0]
    assert theirs.name == before[1]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_needs_cells_of_known_methods(cell, name):
    setup = cell(**BASE).setup
    experiment = EXPERIMENTS[name](setup)
    cells = experiment.cells(["tf", "yh"], 2, setup)
    assert {one.method for one in cells} <= set(METHODS)
    assert len({one.name for one in cells}) == len(cells)
    assert bool(cells) == (name != "memory")
    assert experiment.name == name
    assert experiment.remarks
    assert [one.split for one in cells] == sorted(one.split for one in cells)


def test_a_cell_says_where_it_was_computed(cell):
    _, result, _ = running.timed(cell("nearest", "wsb"))
    assert result["machine"] == machine()
    assert f"{platform.machine()}, Python {platform.python_version()}" in machine()


def test_where_seconds_count_a_cell_is_computed_alone(cell, monkeypatch):
    monkeypatch.setitem(METHODS, "nearest", METHODS["nearest"]._replace(alone=True))

    def where(cell, owner):
        """Say which process computes a cell, and what it may use."""
        threads = max(one["num_threads"] for one in threadpool_info())
        return cell, (os.getpid(), joblib.cpu_count(), threads), 0.0

    monkeypatch.setattr(running, "_in_worker", where)
    cells = [cell("nearest", "wsb", split) for split in range(3)]
    found = list(running.local(2)(cells))
    assert [one for one, *_ in found] == cells
    processes, cores, threads = zip(*(result for _, result, _ in found), strict=True)
    assert len({*processes}) == 1
    assert os.getpid() not in processes
    assert {*cores} == {1}
    assert {*threads} == {1}
    assert METHODS["timed_twin"].alone
    assert METHODS["timed_network"].alone
