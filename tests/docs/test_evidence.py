"""Plots of the evidence show what the files of results hold."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLOTS = ("accuracy", "rivals", "intervals", "adaptation", "speed")


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT / "docs"))
    from generate import evidence

    yield evidence
    sys.path.remove(str(ROOT / "docs"))


def test_every_plot_is_on_a_page(tool):
    assert tuple(tool.PLOTS) == PLOTS
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))
    for name in PLOTS:
        (words,) = re.findall(rf"!\[([^\]]+)\]\({tool.kept(name).name}\)", pages)
        assert len(words) > 80


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_current(name, tool):
    found = list(tool.differences(tool.kept(name).read_text("utf-8"), tool.drawn(name)))
    assert found == [], "draw it again: make plots"


def test_a_plot_that_is_not_current_is_found(tool, monkeypatch):
    true = tool.results

    def results(name):
        record = json.loads(json.dumps(true(name)))
        if name == "accuracy":
            record["summary"][3]["rmse_pack"] *= 1.02
        return record

    before = tool.kept("accuracy").read_text("utf-8")
    monkeypatch.setattr(tool, "results", results)
    (first, *_) = tool.differences(before, tool.drawn("accuracy"))
    assert re.fullmatch(r"[\d.]+ is [\d.]+", first)


def test_rounding_is_no_difference_but_words_are(tool):
    one = '<svg><g id="p0123456789"><path d="M 1.23 4"/></g><text x="3">90 %</text></svg>'
    assert list(tool.differences(one, one.replace("p0123456789", "pfedcba9876"))) == []
    assert list(tool.differences(one, one.replace("1.23", "1.24"))) == []
    assert list(tool.differences(one, one.replace("1.23", "1.33"))) == ["1.33 is 1.23"]
    assert list(tool.differences(one, one.replace("90", "91"))) == ["91 is 90"]
    assert list(tool.differences(one, one.replace(" %", ""))) == ["lines, or what is written"]
