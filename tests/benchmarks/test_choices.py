"""The benchmark of choices: it compares the default with settings that never change, fairly."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def choices(benchmark_named):
    return benchmark_named("choices")


@pytest.fixture
def cells(choices):
    """All cells of two sets; on the first, one setting is best."""
    jobs = [job for job in choices.all_jobs() if job.name in {"bc", "yh"}]
    return {job.key: 2.0 if job[:3] == ("silu", 0.01, "bc") else 4.0 + job.split for job in jobs}


@pytest.fixture
def chosen(choices):
    """Errors of the default on all sets and splits."""
    shape = "4x56-56"
    return {
        f"{choices.TRAINING}/normal/{shape}/{name}/{split}": {"rmse_test": 3.0}
        for name in choices.data.names()
        for split in range(25)
    }


def test_the_best_setting_is_the_one_with_the_lowest_mean(choices, cells, chosen):
    bc, yh = choices.summarise(cells, chosen)
    assert (bc["dataset"], bc["best"], bc["ratio"]) == ("bc", "silu 0.01", 1.5)
    assert yh["fixed"] == dict.fromkeys(bc["fixed"], 4 + 12)  # the mean of splits 10 to 14
    assert yh["ratio"] == 3 / 16


def test_a_set_with_a_missing_cell_has_no_verdict(choices, cells, chosen):
    del cells[next(key for key in cells if "/yh/" in key)]
    assert [line["dataset"] for line in choices.summarise(cells, chosen)] == ["bc"]
    del chosen[next(key for key in chosen if "/bc/12" in key)]
    assert choices.summarise(cells, chosen) == []


def test_cells_of_another_training_are_dropped(choices, cells, monkeypatch, tmp_path):
    lines = [json.dumps({"cell": key, "rmse_test": error}) for key, error in cells.items()]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, lines[0][:20]]))
    none = tmp_path / "none.json"
    assert choices.known_cells(none, tmp_path) == cells
    monkeypatch.setattr(choices, "TRAINING", "next")
    assert choices.known_cells(none, tmp_path) == {}


def test_the_published_summary_follows_from_cells_of_the_training_of_today(choices, tmp_path):
    record = json.loads(choices.RESULTS.read_text())
    assert choices.known_cells(choices.RESULTS, tmp_path) == record["cells"]
    chosen = choices.current_cells(choices.ACCURACY, tmp_path)
    assert choices.summarise(record["cells"], chosen) == record["summary"]
    assert [line["dataset"] for line in record["summary"]] == list(choices.data.names())


def test_the_page_shows_the_published_summary(choices):
    page = (ROOT / "docs" / "training.md").read_text()
    for line in json.loads(choices.RESULTS.read_text())["summary"]:
        best, which = min(line["fixed"].values()), line["best"].replace(" ", ", ")
        shown = f"{line['default']:.4g} | {best:.4g} | {which} | {line['ratio']:.2f}"
        assert f"| {line['dataset']} | {shown} |" in page
