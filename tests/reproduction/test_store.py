"""Finished cells come back as they were, and anything else counts as missing."""

import json
import os
import time

import pytest

from benchmarks.reproduction.cells import CellStore

RESULT = {"rmse": 0.1 + 0.2, "sizes": [1, 2], "none": None, "by": {"a": 1e-300}}


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
