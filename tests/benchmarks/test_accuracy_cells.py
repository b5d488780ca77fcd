"""The accuracy benchmark: what names a cell, what is kept of a training, what the page shows."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from twinedge import TwinRegressor

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def accuracy(benchmark_named):
    return benchmark_named("accuracy")


@pytest.fixture(scope="module")
def summary(accuracy):
    record = json.loads((ROOT / "benchmarks" / "results" / "accuracy.json").read_text())
    assert accuracy.summarise(record["cells"])["summary"] == record["summary"]
    return record["summary"]


def test_a_key_tells_apart_all_that_decides_a_cell(accuracy, tmp_path):
    job = accuracy.Job("1x4", "tf", 0, "normal", tmp_path)
    others = [
        job._replace(shape="4x2"),
        job._replace(name="yh"),
        job._replace(split=1),
        job._replace(effort="quick"),
    ]
    keys = [job.key, *(other.key for other in others)]
    assert len(set(keys)) == len(keys)
    assert job._replace(runs=tmp_path / "elsewhere").key == job.key


def test_the_page_shows_the_published_summary(summary):
    page = (ROOT / "docs" / "evidence.md").read_text()
    for line in summary:
        row = re.search(
            rf"^\| {line['dataset']} \| ([\d.]+) ± ([\d.]+) \| ([\d.]+) \|.*$", page, re.M
        )
        names = ("rmse_test", "standard_error", "rmse_pack")
        for shown, name in zip(row.groups(), names, strict=True):
            decimals = len(shown.partition(".")[2])
            assert shown == f"{line[name]:.{decimals}f}", row[0]
        score, coverage = line["interval_score_to_constant"], line["coverage"]
        paper = f"{line['paper_twin']:.4f} | {line['paper_best']:.4f}"
        assert row[0].endswith(f"| {score:.2f} | {coverage:.0%} | {paper} |")


def test_a_run_of_another_training_or_effort_is_not_taken_for_this_one(
    benchmark_named, monkeypatch, tmp_path
):
    trained, rows = (benchmark_named(f"harness.{name}") for name in ("trained", "rows"))
    tiny = {"activation": "relu", "learning_rate": 0.01, "weight_decay": 0.01, "steps": 20}
    monkeypatch.setattr(trained, "TwinRegressor", partial(TwinRegressor, intervals=False, **tiny))
    wanted = tmp_path, rows.rows_of("tf", 0, Path()), 1, (4,)
    made = trained.fit_or_load(*wanted, "normal")
    monkeypatch.setattr(trained, "TwinRegressor", None)  # a kept run needs no training
    assert trained.fit_or_load(*wanted, "normal").scores == made.scores
    with pytest.raises(TypeError):
        trained.fit_or_load(*wanted, "quick")
    monkeypatch.setattr(trained, "VERSION", trained.VERSION + 1)
    with pytest.raises(TypeError):
        trained.fit_or_load(*wanted, "normal")


def test_shapes_have_names(benchmark_named):
    trained = benchmark_named("harness.trained")
    assert trained.SHAPE == "4x56-56"
    assert trained.shape_named("4x56-56") == (4, (56, 56))
    assert trained.shape_name(1, (128, 64)) == "1x128-64"
