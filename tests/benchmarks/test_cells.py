"""Benchmarks made of cells: they resume, and results of one training never mix with another's."""

import json
from typing import NamedTuple

import pytest

from twinedge.errors import InputError
from twinedge.training import VERSION


class Job(NamedTuple):
    name: str
    number: int

    @property
    def key(self):
        return f"{self.name}/{self.number}"


def compute(job):
    if job.number == 13:
        raise InputError("thirteen is not a number")
    return {"square": job.number**2}


@pytest.fixture
def cells(benchmark_named, monkeypatch, tmp_path):
    module = benchmark_named("harness.cells")
    monkeypatch.setattr(module, "results_of", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr(module, "write_versions", list)
    monkeypatch.setattr(module, "write_tables", lambda tables: None)
    monkeypatch.chdir(tmp_path)
    return module


@pytest.fixture
def squares(cells):
    """A benchmark of four cells, of which one does not depend on the training."""

    def add_options(parser):
        parser.add_argument("--numbers", default="1,2,3")

    def jobs(options):
        return [Job("plain", 0), *(Job("ours", int(one)) for one in options.numbers.split(","))]

    return cells.Benchmark(
        "squares",
        "Square.",
        jobs,
        compute,
        lambda found: {"sum": sum(cell["square"] for cell in found.values())},
        lambda record: print("sum", record["sum"]),
        packages=("numpy",),
        add_options=add_options,
        trained=lambda key: key != "plain/0",
        alone=True,
    )


@pytest.fixture
def stored(tmp_path):
    """The file of results, by version and cells."""

    def store(version, **numbers):
        cells = {key.replace("_", "/"): {"square": one} for key, one in numbers.items()}
        record = {"machine": {}, "training": version, "sum": -1, "cells": cells}
        (tmp_path / "squares.json").write_text(json.dumps(record))

    return store


def read(tmp_path):
    return json.loads((tmp_path / "squares.json").read_text())


def lines(tmp_path):
    paths = sorted((tmp_path / "runs" / "squares").glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def test_cells_are_computed_once_and_published(squares, tmp_path, capsys):
    squares.run([])
    record = read(tmp_path)
    assert (record["training"], record["sum"]) == (VERSION, 14)
    assert list(record["cells"]) == ["ours/1", "ours/2", "ours/3", "plain/0"]
    assert {"square", "seconds", "processor"} == {*record["cells"]["ours/3"]}
    assert [line["cell"] for line in lines(tmp_path)] == ["plain/0", "ours/1", "ours/2", "ours/3"]
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last == {key: one for key, one in record.items() if key != "cells"}
    squares.run([])
    assert len(lines(tmp_path)) == 4
    squares.run(["--numbers", "4"])
    assert len(lines(tmp_path)) == 5
    assert read(tmp_path)["sum"] == 30


def test_an_interrupted_run_goes_on(squares, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        squares.run(["--numbers", "1,2,13,3"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "python -m benchmarks.squares: error: thirteen is not a number"
    )
    assert [line["cell"] for line in lines(tmp_path)] == ["plain/0", "ours/1", "ours/2"]
    squares.run([])
    assert [line["cell"] for line in lines(tmp_path)][3:] == ["ours/3"]
    assert read(tmp_path)["sum"] == 14


def test_results_of_another_training_stay_until_all_cells_are_there(squares, stored, tmp_path):
    stored(VERSION - 1, ours_1=100, ours_2=100, ours_3=100, plain_0=0)
    before = read(tmp_path)
    (tmp_path / "runs" / "squares").mkdir(parents=True)
    line = {"cell": "ours/2", "training": VERSION, "square": 4}
    old = {"cell": "ours/3", "training": VERSION - 1, "square": 100}
    (tmp_path / "runs" / "squares" / "a.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(old)}")
    squares.run(["--no-compute"])
    after = read(tmp_path)
    assert after.pop("unfinished") == {"training": VERSION, "cells": {"ours/2": {"square": 4}}}
    assert after == before
    (tmp_path / "runs" / "squares" / "a.jsonl").unlink()  # the results remember
    squares.run(["--numbers", "1"])
    assert [line["cell"] for line in lines(tmp_path)] == ["ours/1"]
    assert {*read(tmp_path)["unfinished"]["cells"]} == {"ours/1", "ours/2"}
    squares.run([])
    done = read(tmp_path)
    assert (done["training"], done["sum"]) == (VERSION, 14)
    assert "unfinished" not in done
    assert done["cells"]["plain/0"] == {"square": 0}  # no training decides that


def test_what_is_there_can_be_published_early(squares, stored, tmp_path):
    stored(VERSION - 1, ours_1=100, plain_0=0)
    squares.run(["--numbers", "2", "--partial"])
    record = read(tmp_path)
    assert (record["training"], record["sum"], "unfinished" in record) == (VERSION, 4, False)


def test_nothing_is_not_published(squares, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        squares.run(["--no-compute"])
    assert stop.value.code == 2
    assert "no cell yet" in capsys.readouterr().err
    assert not (tmp_path / "squares.json").exists()


def test_what_it_is_compared_with_comes_first(cells, squares, stored, tmp_path):
    stored(VERSION - 1, ours_1=100)
    compared = cells.Benchmark(**{**vars(squares), "needs": ("others",)})
    others = tmp_path / "others.json"
    others.write_text(json.dumps({"training": VERSION - 1}))
    compared.run([])
    assert read(tmp_path)["training"] == VERSION - 1
    others.write_text(json.dumps({"training": VERSION}))
    compared.run([])
    assert read(tmp_path)["training"] == VERSION


def test_times_are_expected_to_be_those_of_before(cells, squares, tmp_path):
    known = {"ours/1": {"seconds": 10.0}, "ours/2": {"seconds": 30.0}, "plain/0": {}}
    record = {"training": VERSION - 1, "cells": known}
    (tmp_path / "squares.json").write_text(json.dumps(record))
    one = cells.Benchmark(**{**vars(squares), "cost": 7.0})
    options = one.parser().parse_args([])
    assert one.expected(options, [Job("ours", 1)]) == 10
    assert one.expected(options, [Job("ours", 3)]) == 20
    assert one.expected(options, [Job("plain", 0), Job("other", 0)]) == 14


def test_what_is_timed_runs_alone_and_the_rest_on_processes_or_a_cluster(cells, squares):
    many = cells.Benchmark(**{**vars(squares), "alone": False})
    for option in ("--jobs", "--cluster"):
        assert option in many.parser().format_help()
        assert option not in squares.parser().format_help()
    assert sorted(cells.spread(abs, [-1, -2, 3], 2)) == [1, 2, 3]
    assert list(cells.spread(abs, [], 2)) == []


def test_a_cluster_can_do_the_work(cells):
    distributed = pytest.importorskip("distributed")
    local = {"processes": False, "dashboard_address": None, "n_workers": 1}
    with distributed.LocalCluster(**local) as cluster:
        found = cells.spread(abs, [-1, -2, 3], 1, cluster.scheduler_address)
        assert sorted(found) == [1, 2, 3]
