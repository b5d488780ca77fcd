"""``python -m benchmarks``: what is void is computed again, from short to long."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from twinedge.training import VERSION


@pytest.fixture
def bench(benchmark_named, monkeypatch):
    module = benchmark_named("__main__")
    monkeypatch.setattr(module, "write_pages", lambda: None)
    return module


@pytest.fixture
def plans(bench, monkeypatch):
    """Replace what benchmarks have by the plans of a test."""

    def use(*plans):
        named = {one.name: one for one in plans}
        monkeypatch.setattr(bench, "TRAINED", tuple(named))
        monkeypatch.setattr(bench, "REPRODUCTION", plans[-1].name)
        monkeypatch.setattr(bench, "with_needs", list)
        monkeypatch.setattr(bench, "plan", named.__getitem__)
        return plans

    return use


@pytest.fixture
def started(bench, monkeypatch):
    """Commands that would have run; those that name "broken" fail."""
    commands = []

    def run(words, check):
        commands.append(words[2:])
        return SimpleNamespace(returncode="benchmarks.broken" in words)

    monkeypatch.setattr(bench.subprocess, "run", run)
    return commands


def test_short_ones_come_first_but_after_what_they_need(bench):
    def plan(name, seconds, *needs):
        return bench.Plan(name, VERSION, 1, 1, seconds, needs)

    plans = [
        plan("long", 900.0),
        plan("advice", 10.0, "long", "middle"),
        plan("middle", 60.0, "short"),
        plan("choice", 20.0, "long"),
        plan("short", 5.0),
        plan("longest", 5000.0, "short"),
    ]
    names = [one.name for one in bench.ordered(plans)]
    assert names == ["short", "middle", "long", "advice", "choice", "longest"]


def test_what_is_due_runs_and_a_failure_stops_nothing(bench, plans, started, capsys):
    plans(
        bench.Plan("late", VERSION - 1, 8, 8, 800.0),
        bench.Plan("broken", None, 8, 8, 80.0),
        bench.Plan("fresh", VERSION, 0, 8, 0.0),
        bench.Plan("growing", VERSION, 2, 8, 20.0, alone=True),
        bench.Plan("public", None, 3, 3, 1.0),
        bench.Plan("paper", 1, 4, 4, 4.0),
    )
    assert bench.main(["--jobs", "3"]) == 1
    assert started == [
        ["benchmarks.paper", "page", "--jobs", "3"],
        ["benchmarks.growing"],
        ["benchmarks.broken", "--jobs", "3"],
        ["benchmarks.late", "--jobs", "3"],
    ]
    printed = capsys.readouterr().err
    assert "public is left out: it needs --data FOLDER" in printed
    assert "failed: broken; what they finished is kept" in printed


def test_a_cluster_and_public_splits_are_passed_on(bench, plans, started):
    plans(bench.Plan("public", None, 3, 3, 1.0), bench.Plan("paper", VERSION, 0, 4, 0.0))
    assert bench.main(["--cluster", "tcp://10.0.0.5:8786", "--data", "uci"]) == 0
    assert started == [["benchmarks.public", "--data", "uci", "--cluster", "tcp://10.0.0.5:8786"]]


def test_the_list_says_what_and_how_long_and_starts_nothing(bench, plans, started, capsys):
    plans(
        bench.Plan("late", VERSION - 1, 8, 9, 7200.0),
        bench.Plan("timed", None, 2, 2, 600.0, alone=True),
        bench.Plan("paper", VERSION, 0, 4, 0.0),
    )
    assert bench.main(["--list", "--jobs", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line}
    assert rows["late"] == ["late", str(VERSION - 1), "8", "9", "30", "min"]
    assert rows["timed"] == ["timed", "-", "2", "2", "10", "min"]
    assert rows["paper"][-3:] == ["up", "to", "date"]
    assert "In all about 40 min, 2.2 h of one core" in lines
    assert started == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "no such benchmark: nothing; there are accuracy"),
        (["--jobs", "0"], "--jobs 0"),
    ],
)
def test_wrong_words_are_refused(bench, capsys, words, message):
    with pytest.raises(SystemExit) as stop:
        bench.main(words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_needs_are_added(bench):
    assert bench.with_needs(["advice", "reproduction"]) == [
        *("accuracy", "rivals", "advice", "reproduction")
    ]


def test_the_list_of_all_is_of_what_is_stored(bench, benchmark_named):
    record = benchmark_named("harness.record")
    for name in bench.TRAINED:
        found = bench.plan(name)
        stored = record.read_record(record.results_of(name))
        assert found.version == stored.get("training"), name
        assert found.cells == len(bench.benchmark(name).jobs(_default(bench, name))), name
        if found.version == VERSION and found.missing == 0:
            assert found.seconds == 0
        if found.version != VERSION:
            assert found.missing > 0
            assert found.seconds > 60


def _default(bench, name):
    return bench.benchmark(name).parser().parse_args([])


def test_every_script_is_in_a_list(bench):
    folder = bench.RESULTS.parent
    scripts = {path.stem for path in folder.glob("*.py") if "__main__" in path.read_text()}
    assert scripts - {"__main__"} == {*bench.TRAINED, *bench.OTHERS}


def test_the_command_lists_what_would_run(bench):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--list", "time_order"],
        capture_output=True,
        text=True,
        cwd=bench.RESULTS.parents[1],
    )
    assert done.returncode == 0, done.stderr
    assert "time_order" in done.stdout


def test_json_of_results_has_one_version(bench):
    for path in bench.RESULTS.glob("*.json"):
        unfinished = json.loads(path.read_text()).get("unfinished")
        assert unfinished is None or unfinished["training"] == VERSION
