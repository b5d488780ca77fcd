"""Plots and sentences of the evidence say what the files of results hold."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLOTS = ("accuracy", "rivals", "intervals", "adaptation", "speed")
COUNTS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


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


def page(name):
    """A page without its line breaks."""
    return " ".join((ROOT / name).read_text("utf-8").split())


def test_sentences_about_accuracy_are_true(tool):
    lines = [line for line in tool.results("accuracy")["summary"] if line["splits"] == 25]
    assert len(lines) == 9
    (behind,) = (line for line in lines if line["rmse_pack"] > line["paper_best"])
    errors = (behind["rmse_pack"] - behind["paper_best"]) / behind["standard_error"]
    assert errors == pytest.approx(1.5, abs=0.25)
    covered = [100 * line["coverage"] for line in lines]
    low, high = round(min(covered)), round(max(covered))
    readme, evidence = page("README.md"), page("docs/evidence.md")
    assert "On eight of the paper's nine data sets, the pack with 32 anchors is more" in readme
    assert "on the ninth one and a half standard errors behind it" in readme
    assert f"90 % intervals hold {low} to {high} % of the true values" in readme
    assert f"in the 90 % intervals of the pack, from {low} to {high} %" in evidence
    assert f"`{behind['dataset']}` is the one set where the paper's best method" in evidence
    assert "stays ahead, by one and a half standard errors" in evidence


def test_the_sentence_below_the_plot_of_intervals_is_true(tool):
    (found,) = tool.results("intervals")["summary"].values()
    ratios = [
        line[f"to_{kind}"]
        for line in found["sets"]
        for kind in ("constant", "networks", "boosting")
    ]
    above = COUNTS[sum(ratio > 1 for ratio in ratios)]
    assert f"set by set: all but {above} are below 1" in page("docs/intervals.md")


def test_sentences_about_the_coverage_of_groups_are_true(tool):
    record = tool.results("group_coverage")
    concrete, buildings, yachts = record["summary"]
    text = page("docs/intervals.md")
    for words, between, one in (
        ("mixes of concrete", "in the pack ", concrete),
        ("shapes of buildings", "", buildings),
        ("hulls of yachts", "", yachts),
    ):
        sentence = f"{words} {one['coverage']:.3f} ({between}{one['coverage_pack']:.3f})"
        assert sentence in text
    alone = [f"{one['coverage_validation_only']:.3f}" for one in record["summary"]]
    assert f"they would cover {alone[0]}, {alone[1]} and {alone[2]}" in text
    covered = [one["float"]["coverage"] for key, one in record["cells"].items() if "/ee/" in key]
    assert f"a single division is between {min(covered):.2g} and {max(covered):.0f}" in text
