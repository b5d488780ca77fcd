"""A key holds what determines the numbers of a cell, and nothing else.

Finished cells come back as they were, and anything else counts as missing.
"""

import json
import os
import platform
import time

import joblib
import pytest
from threadpoolctl import threadpool_info

from benchmarks.harness.machine import machine
from benchmarks.reproduction import cells, running
from benchmarks.reproduction.cells import METHODS, CellStore
from benchmarks.reproduction.experiments import EXPERIMENTS

RESULT = {"rmse": 0.1 + 0.2, "sizes": [1, 2], "none": None, "by": {"a": 1e-300}}
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
    monkeypatch.setattr(cells, "VERSION", cells.VERSION + 1)
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

    def where(cell):
        """Say which process computes a cell, and what it may use."""
        threads = max(one["num_threads"] for one in threadpool_info())
        return cell, (os.getpid(), joblib.cpu_count(), threads), 0.0

    monkeypatch.setattr(running, "timed", where)
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


def test_a_cell_comes_back_as_it_was(tmp_path, cell):
    kept = CellStore(tmp_path).save(cell(), {**RESULT, "tuple": (1, 2)})
    assert list(kept) == sorted(kept)
    assert kept == {**RESULT, "tuple": [1, 2]}
    store = CellStore(tmp_path)
    assert store.load(cell()) == kept
    assert store.damaged == []


def test_a_cell_that_was_not_kept_is_missing(tmp_path, cell):
    store = CellStore(tmp_path)
    store.save(cell(), RESULT)
    for other in (cell(split=1), cell(dataset="yh"), cell(protocol="text"), cell(number=2)):
        assert store.load(other) is None
    assert store.damaged == []


def file_of(folder):
    (path,) = (folder / "cells").glob("*.json")
    return path


def flipped(text, place):
    return text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :]


def edited(text):
    record = json.loads(text)
    record["result"]["rmse"] = 0.25
    return json.dumps(record)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: '{"result": {}}',
        edited,
        lambda text: text.replace('"dataset": "tf"', '"dataset": "yh"'),
        lambda text: "\udcff".encode("utf-8", "surrogateescape"),
    ],
    ids=["empty", "half", "list", "no sum", "edited", "other cell", "bytes"],
)
def test_a_damaged_cell_counts_as_missing_and_is_named(tmp_path, cell, damage):
    store = CellStore(tmp_path)
    store.save(cell(), RESULT)
    path = file_of(tmp_path)
    changed = damage(path.read_text())
    path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    assert store.load(cell()) is None
    assert store.damaged == [path]
    store.save(cell(), RESULT)
    assert CellStore(tmp_path).load(cell()) == RESULT


def test_no_flipped_bit_gives_another_number(tmp_path, cell):
    store = CellStore(tmp_path)
    store.save(cell(), RESULT)
    path = file_of(tmp_path)
    whole = path.read_text()
    for place in range(len(whole)):
        path.write_text(flipped(whole, place))
        assert store.load(cell()) in (None, RESULT), place  # a blank at the end may change


def test_what_a_killed_process_left_is_cleared_away(tmp_path, cell):
    CellStore(tmp_path)
    old, new = (tmp_path / "cells" / f".{name}.json.1.partial" for name in ("old", "new"))
    for path in (old, new):
        path.write_text("{")
    os.utime(old, (time.time() - 3600,) * 2)
    CellStore(tmp_path)
    assert not old.exists()
    assert new.exists()  # someone may be writing it
