"""The benchmark of advice: what the page says of it is what was measured."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def record():
    return json.loads((ROOT / "benchmarks" / "results" / "advice.json").read_text())


def test_the_published_summary_follows_from_the_cells(benchmark_named, record):
    assert record["summary"] == benchmark_named("advice").summarise(record["cells"])["summary"]


def test_the_page_says_in_words_how_often_a_check_is_right(record):
    text = " ".join((ROOT / "docs" / "training.md").read_text().split())
    every, later, before = (
        record["summary"]["shares"][name] for name in ("check", "check, later splits", "before")
    )
    words = "{right:.1%} were right, {undecided:.1%} undecided and {wrong:.1%} wrong."
    for start, shares in (
        (
            f"of {every['cells']} checks (25 splits of the paper's nine sets, three of five longer "
            "tables), ",
            every,
        ),
        (f"of the {later['cells']} checks of later ones, ", later),
    ):
        assert start + words.format(**shares).replace("%", " %") in text
    right = round(before["right"] * before["cells"])
    assert f"The check of earlier versions was right in {right} of {before['cells']}." in text
