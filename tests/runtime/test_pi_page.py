"""Times and memory on the page about Raspberry Pis were measured."""

import json
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "raspberry-pi.md").read_text()


@pytest.fixture
def measured(monkeypatch):
    """Names in a script, and what it recorded."""

    def read(name):
        monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
        record = json.loads((BENCHMARKS / "results" / f"{name}.json").read_text())
        return runpy.run_path(str(BENCHMARKS / f"{name}.py")), record

    return read


def test_the_table_of_footprints_was_measured(page, measured):
    script, record = measured("footprint")
    assert "\n".join(script["table"](record)) in page


def test_the_speed_of_lines_was_measured(page, measured):
    script, record = measured("streaming")
    for line in script["words"](record["flood"], record["one_by_one"]):
        assert f"\n{line}\n" in page
