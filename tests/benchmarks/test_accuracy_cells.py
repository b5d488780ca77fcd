"""Cells of the accuracy benchmark: recomputed whenever what determines them changes."""

import json
import re
import sys
from functools import partial
from pathlib import Path

import pytest

from twinedge import TwinRegressor

ROOT = Path(__file__).parents[2]
CELL = {"rmse_test": 1.0}


@pytest.fixture(scope="module")
def accuracy(benchmark_named):
    return benchmark_named("accuracy")


@pytest.fixture
def job(accuracy, tmp_path):
    return accuracy.Job("1x4", "tf", 0, "normal", tmp_path)


def test_a_key_tells_apart_all_that_decides_a_cell(accuracy, job, monkeypatch, tmp_path):
    others = [
        job._replace(shape="4x2"),
        job._replace(name="yh"),
        job._replace(split=1),
        job._replace(effort="quick"),
    ]
    keys = [job.key, *(other.key for other in others)]
    monkeypatch.setattr(accuracy, "TRAINING", "next")
    keys.append(job.key)
    assert len(set(keys)) == len(keys)
    assert job._replace(runs=tmp_path / "elsewhere").key == job.key


def test_cells_of_another_training_are_dropped(accuracy, job, monkeypatch, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"cell": job.key, **CELL}) + "\n")
    none = tmp_path / "none.json"
    assert accuracy.current_cells(none, tmp_path) == {job.key: CELL}
    monkeypatch.setattr(accuracy, "TRAINING", "next")
    assert accuracy.current_cells(none, tmp_path) == {}


def test_the_published_cells_are_of_the_training_of_today(accuracy, tmp_path):
    """Raising the version means computing them again."""
    stored = json.loads(accuracy.RESULTS.read_text())["cells"]
    assert stored
    assert accuracy.current_cells(accuracy.RESULTS, tmp_path).keys() == stored.keys()


def test_the_readme_shows_the_published_summary(accuracy):
    readme = (ROOT / "README.md").read_text()
    for line in json.loads(accuracy.RESULTS.read_text())["summary"]:
        row = re.search(
            rf"^\| {line['dataset']} \| ([\d.]+) ± ([\d.]+) \| ([\d.]+) \|.*$", readme, re.M
        )
        names = ("rmse_test", "standard_error", "rmse_pack")
        for shown, name in zip(row.groups(), names, strict=True):
            decimals = len(shown.partition(".")[2])
            assert shown == f"{line[name]:.{decimals}f}", row[0]
        score, coverage = line["interval_score_to_constant"], line["coverage"]
        paper = f"{line['paper_twin']:.4f} | {line['paper_best']:.4f}"
        assert row[0].endswith(f"| {score:.2f} | {coverage:.0%} | {paper} |")


def test_a_run_of_another_training_or_effort_makes_no_cell(accuracy, monkeypatch, tmp_path):
    trained = sys.modules["trained"]
    rows = sys.modules["rivals_rows"].rows_of("tf", 0, Path())
    tiny = {"activation": "relu", "learning_rate": 0.01, "weight_decay": 0.01, "steps": 20}
    monkeypatch.setattr(trained, "TwinRegressor", partial(TwinRegressor, intervals=False, **tiny))
    wanted = tmp_path, rows, 1, (4,)
    made = trained.fit_or_load(*wanted, "normal")
    assert trained.fit_or_load(*wanted, "normal").scores == made.scores
    with pytest.raises(SystemExit, match="effort normal, not quick"):
        trained.fit_or_load(*wanted, "quick")
    today = trained.TRAINING
    monkeypatch.setattr(trained, "TRAINING", "next")
    with pytest.raises(SystemExit, match=f"version {today} of the training, not next"):
        trained.fit_or_load(*wanted, "normal")
