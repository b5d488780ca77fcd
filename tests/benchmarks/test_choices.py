"""The benchmark of choices: it compares the default with settings that never change, fairly."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture(scope="module")
def choices(benchmark_named):
    return benchmark_named("choices")


@pytest.fixture(scope="module")
def record():
    return json.loads((RESULTS / "choices.json").read_text())


@pytest.fixture
def cells(choices):
    """All cells of two sets; on the first, one setting is best."""
    errors = {
        job.key: 2.0 if job[:3] == ("silu", 0.01, "bc") else 4.0 + job.split
        for job in choices.jobs()
        if job.name in {"bc", "yh"}
    }
    return {key: {"rmse_test": error} for key, error in errors.items()}


@pytest.fixture
def chosen(choices):
    """Errors of the default on all sets and splits."""
    return {
        choices.accuracy.Job("4x56-56", name, split).key: {"rmse_test": 3.0}
        for name in choices.data.names()
        for split in range(25)
    }


def test_the_best_setting_is_the_one_with_the_lowest_mean(choices, cells, chosen):
    bc, yh = choices.compare(cells, chosen)
    assert (bc["dataset"], bc["best"], bc["ratio"]) == ("bc", "silu 0.01", 1.5)
    assert yh["fixed"] == dict.fromkeys(bc["fixed"], 4 + 12)  # the mean of splits 10 to 14
    assert yh["ratio"] == 3 / 16


def test_a_set_with_a_missing_cell_has_no_verdict(choices, cells, chosen):
    del cells[next(key for key in cells if "/yh/" in key)]
    assert [line["dataset"] for line in choices.compare(cells, chosen)] == ["bc"]
    del chosen[next(key for key in chosen if "/bc/12" in key)]
    assert choices.compare(cells, chosen) == []


def test_the_published_summary_follows_from_the_cells(choices, record):
    accuracy = json.loads((RESULTS / "accuracy.json").read_text())
    if accuracy["training"] == record["training"]:
        assert choices.compare(record["cells"], accuracy["cells"]) == record["summary"]
    assert [line["dataset"] for line in record["summary"]] == list(choices.data.names())


def test_the_page_shows_the_published_summary(record):
    page = (ROOT / "docs" / "training.md").read_text()
    for line in record["summary"]:
        best, which = min(line["fixed"].values()), line["best"].replace(" ", ", ")
        shown = f"{line['default']:.4g} | {best:.4g} | {which} | {line['ratio']:.2f}"
        assert f"| {line['dataset']} | {shown} |" in page


def test_the_page_says_in_words_what_the_summary_says(record):
    page = " ".join((ROOT / "docs" / "training.md").read_text().split())
    lines = {line["dataset"]: line for line in record["summary"]}
    worse = lines["yh"]["fixed"][lines["wsb"]["best"]] / lines["yh"]["default"] - 1
    assert lines["wsb"]["best"] == "silu 0.1"
    assert f"is best on `wsb` and {worse:.0%}".replace("%", " %") + " worse" in page
    behind = [name for name, line in lines.items() if line["ratio"] > 1.01]
    assert len(behind) == 3
    assert "level or ahead on six sets, and behind the best in hindsight on three" in page
