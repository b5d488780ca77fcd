"""``twinedge reproduce`` as users see it."""

import json

import pytest

from benchmarks.reproduction import __main__
from benchmarks.reproduction.cells import Cell, CellStore, Setup
from benchmarks.reproduction.experiments import NAMES
from twinedge import data


def test_the_command_knows_every_experiment_and_set(cli):
    shown = " ".join(cli("reproduce", "--help").out.split())
    assert f"One of {', '.join(NAMES)}, or all." in shown
    assert set(__main__.DATASETS) == set(data.names())


def test_memory_is_counted_at_once(cli, tmp_path):
    answer = cli("reproduce", "memory", "-o", "here", "--json", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["counts"]["rows"]["ANNs, f = 1"][5] == 32 * 16897
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "cells",
        "memory.json",
        "memory.md",
        "memory.svg",
    ]
    assert json.loads((tmp_path / "here" / "memory.json").read_text()) == answer.json


@pytest.fixture
def kept(tmp_path):
    """A folder with all cells of a small table."""
    store = CellStore(tmp_path / "kept")
    for split in range(2):
        for method, rmse in (("forest", 0.14), ("twinned_forest", 0.09)):
            store.save(Cell(method, "tf", split, Setup()), {"rmse": rmse + split / 100})
    return tmp_path / "kept"


TABLE = ("reproduce", "twin_rf", "--datasets", "tf", "--splits", "2")


def test_a_table_is_shown_beside_the_paper(cli, kept):
    answer = cli(*TABLE, "-o", kept)
    assert answer.code == 0
    assert answer.err == "0 cells to compute, 4 kept from before\n"
    assert "0.145 ± 0.005" in answer.out
    assert "0.1402 ± 0.0044" in answer.out
    assert "twinned forest better than forest on 1 of 1 sets; in the paper on 1" in answer.out
    assert "grid: small" in answer.out


def test_json_is_one_object_and_nothing_else(cli, kept):
    answer = cli(*TABLE, "-o", kept, "--json", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    (row,) = answer.json["comparisons"][0]["rows"]
    assert row["base"]["mean"] == pytest.approx(0.145)
    assert row["better"] == "twinned forest"


def test_a_damaged_cell_is_computed_again_and_named(cli, kept, monkeypatch):
    from benchmarks.reproduction import running

    monkeypatch.setattr(running, "compute", lambda cell: {"rmse": 0.14})
    damaged = min((kept / "cells").glob("forest-tf-0-*.json"))
    damaged.write_text(damaged.read_text()[:-20])
    answer = cli(*TABLE, "-o", kept, "--jobs", 1)
    assert answer.code == 0
    assert "1 cells to compute, 3 kept from before" in answer.err
    assert f"{damaged.name} was damaged; its cell was computed again" in answer.err
    assert "0.145 ± 0.005" in answer.out


BAD = [
    ("tables", ["'tables'", "ann_ensemble", "all"]),
    ("twin_rf --datasets tf,iris", ["'iris'", "'bc', 'bh'"]),
    ("twin_rf --splits 0", ["'--splits'", "0 is not in the range 1<=x<=25"]),
    ("twin_rf --splits 26", ["'--splits'", "26 is not in the range 1<=x<=25"]),
    ("twin_rf --members 0", ["'--members'", "x>=1"]),
    ("twin_rf --jobs 0", ["'--jobs'", "x>=1"]),
    ("twin_rf --effort lazy", ["'--effort'", "'quick', 'normal', 'thorough'"]),
    ("twin_rf --trainer me", ["'--trainer'", "'twinedge', 'published'"]),
    ("ann_ensemble --steps 0", ["'--steps'", "x>=1, nor 'auto'"]),
    ("ann_ensemble --steps 9 --trainer published", ["--steps", "by its own rule"]),
    ("twin_rf --protocol mine", ["'--protocol'", "'published', 'text'"]),
    ("twin_rf --cluster tcp://127.0.0.1:9 --jobs 2", ["--jobs", "--cluster"]),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[words for words, _ in BAD])
def test_bad_words_are_refused_in_one_line(refused, words, says):
    refused("reproduce", *words.split(), says=says)


def test_a_folder_that_is_a_file_is_refused(refused, tmp_path):
    (tmp_path / "taken").write_text("mine")
    refused("reproduce", "memory", "-o", "taken", says=["'taken' is a file"])
