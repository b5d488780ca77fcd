"""The path of a newcomer: its steps are run, timed, and shown on the page of the start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import newcomer
from benchmarks.harness.pages import fill
from benchmarks.harness.record import read_record, results_of

ROOT = Path(__file__).parents[2]
STEPS = ("environment", "install", "predict"), ("train", "export", "board")
RECORD = {
    "cores": 2,
    "rows": 500,
    "effort": "quick",
    "board": "pico",
    "first_prediction": dict.fromkeys(STEPS[0], 1.25),
    "emulated_board": dict.fromkeys(STEPS[1], 40.0),
}


def test_the_page_has_a_place_for_every_step():
    ((page, parts),) = newcomer.pages(RECORD).items()
    text = fill((ROOT / page).read_text("utf-8"), *next(iter(parts.items())))
    section = text.partition("## How long this takes\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert len(rows) == len(newcomer.WORDS)
    assert "| `twinedge train`, 500 rows, `--effort quick` | 40.0 |" in rows
    assert "On 2 cores" in section


def test_what_is_published_is_as_quick_as_it_should_be():
    assert all(read_record(results_of("newcomer")).get("holds", {}).values())


def test_without_wheels_it_says_what_to_do(tmp_path):
    command = [sys.executable, "-m", "benchmarks.newcomer", "--wheels", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "has no wheels: run `make dist`" in done.stderr


@pytest.mark.slow  # downloads, trains, exports, and emulates a board
def test_every_step_works(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    sources = subprocess.run([ROOT / "tools" / "wheel-sources"], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", tree], input=sources.stdout, check=True)
    build = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"
    for command, where in (
        (("-c", build, tmp_path), tree),
        (
            ("-m", "benchmarks.newcomer", "--wheels", tmp_path, "--results", tmp_path / "r.json"),
            ROOT,
        ),
    ):
        done = subprocess.run([sys.executable, *command], cwd=where, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "r.json").read_text())
    assert (tuple(found["first_prediction"]), tuple(found["emulated_board"])) == STEPS
    assert all(one > 0 for one in (found["first_prediction"] | found["emulated_board"]).values())
