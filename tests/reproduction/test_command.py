"""``python -m benchmarks.reproduction`` as users see it."""

import json

import pytest
from click.testing import CliRunner

from benchmarks.reproduction.__main__ import main
from benchmarks.reproduction.cells import Cell, CellStore, Setup


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run the command in this process, in its own folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, list(map(str, words)))


def test_memory_is_counted_at_once(command, tmp_path):
    done = command("memory", "-o", "here", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "cells",
        "memory.json",
        "memory.md",
        "memory.svg",
    ]
    record = json.loads((tmp_path / "here" / "memory.json").read_text())
    rows = record["counts"]["rows"]
    assert (rows["ANNs, f = 1"][5], rows["twin, f = 10"][5]) == (32 * 16897, 19681)
    assert "twin, f = 10" in (tmp_path / "here" / "memory.svg").read_text()


@pytest.fixture
def kept(tmp_path):
    """A folder with all cells of a small table."""
    store = CellStore(tmp_path / "kept")
    for split in range(2):
        for method, rmse in (("forest", 0.14), ("twinned_forest", 0.09)):
            store.save(Cell(method, "tf", split, Setup()), {"rmse": rmse + split / 100})
    return tmp_path / "kept"


TABLE = ("twin_rf", "--datasets", "tf", "--splits", "2")


def test_a_table_is_shown_beside_the_paper(command, kept):
    done = command(*TABLE, "-o", kept)
    assert done.exit_code == 0
    assert done.stderr == "0 cells to compute, 4 kept from before\n"
    assert "0.145 ± 0.005" in done.stdout
    assert "0.1402 ± 0.0044" in done.stdout
    assert "twinned forest better than forest on 1 of 1 sets; in the paper on 1" in done.stdout
    assert "grid: small" in done.stdout
    assert "Table 6: Twinned forests save more than 30 %" in done.stdout
    (row,) = json.loads((kept / "twin_rf.json").read_text())["comparisons"][0]["rows"]
    assert row["base"]["mean"] == pytest.approx(0.145)
    assert row["better"] == "twinned forest"


def test_a_damaged_cell_is_computed_again_and_named(command, kept, monkeypatch):
    from benchmarks.reproduction import running

    monkeypatch.setattr(running, "compute", lambda cell: {"rmse": 0.14})
    damaged = min((kept / "cells").glob("forest-tf-0-*.json"))
    damaged.write_text(damaged.read_text()[:-20])
    done = command(*TABLE, "-o", kept, "--jobs", 1)
    assert done.exit_code == 0
    assert "1 cells to compute, 3 kept from before" in done.stderr
    assert f"{damaged.name} was damaged; its cell was computed again" in done.stderr
    assert "0.145 ± 0.005" in done.stdout


BAD = [
    ("tables", ["'tables'", "ann_ensemble", "page"]),
    ("twin_rf --datasets tf,iris", ["'iris'", "'bc', 'bh'"]),
    ("twin_rf --splits 26", ["'--splits'", "26 is not in the range 1<=x<=25"]),
    ("ann_ensemble --steps 0", ["'--steps'", "x>=1, nor 'auto'"]),
    ("ann_ensemble --steps 9 --trainer published", ["--steps", "by its own rule"]),
    ("twin_rf --cluster tcp://127.0.0.1:9 --jobs 2", ["--jobs", "--cluster"]),
    ("page --members 2", ["settings of its own"]),
    ("memory -o taken", ["'taken' is a file"]),
]


@pytest.mark.parametrize(("words", "parts"), BAD, ids=[words for words, _ in BAD])
def test_bad_words_are_refused_in_one_line(command, tmp_path, words, parts):
    (tmp_path / "taken").write_text("mine")
    done = command(*words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("Error: ")
    for part in parts:
        assert part in message


def test_no_scheduler_is_one_line(monkeypatch, complaint):
    from benchmarks.reproduction import running
    from twinedge import dask_cluster

    monkeypatch.setattr(dask_cluster, "_PATIENCE", "1s")
    message = complaint(running.on_cluster, "tcp://127.0.0.1:9")
    assert "cluster='tcp://127.0.0.1:9': no Dask scheduler" in message
    assert "nonsense" in complaint(running.on_cluster, "nonsense://nowhere")
