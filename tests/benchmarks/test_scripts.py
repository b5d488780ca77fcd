"""Each benchmark computes a cell, sums up what it found, and prints it; with tiny trainings."""

import json
from functools import partial

import pytest

from benchmarks.harness.pages import NOTHING_NEWER
from twinedge import AnnRegressor, TwinRegressor

TINY = {"activation": "relu", "learning_rate": 0.01, "weight_decay": 0.01, "steps": 40}


@pytest.fixture
def quickly(benchmark_named, monkeypatch):
    """Import a benchmark whose networks are trained for an instant."""

    def named(name):
        module = benchmark_named(name)
        for kind in (TwinRegressor, AnnRegressor):
            if hasattr(module, kind.__name__):
                monkeypatch.setattr(module, kind.__name__, partial(kind, **TINY))
        monkeypatch.setattr("twinedge.AnnRegressor", partial(AnnRegressor, **TINY))
        shared = benchmark_named("harness.trained")
        monkeypatch.setattr(shared, "TwinRegressor", partial(TwinRegressor, **TINY))
        return module

    return named


def published(module, cells, capsys):
    """Return the record of some cells, after printing it and making its tables."""
    cells = {key: json.loads(json.dumps(cell)) for key, cell in cells.items()}
    record = json.loads(json.dumps(module.BENCHMARK.summarise(cells))) | {"cells": cells}
    module.BENCHMARK.show(record)
    assert capsys.readouterr().out
    for page, tables in module.BENCHMARK.pages(record).items():
        assert page.endswith(".md")
        for table in {*tables.values()} - {NOTHING_NEWER}:
            widths = {line.count("|") for line in table.splitlines() if line.startswith("|")}
            assert len(widths) == 1
    return record


@pytest.mark.slow
def test_accuracy_anchors_and_quantisation_share_a_training(quickly, tmp_path, capsys):
    accuracy, anchors, quantisation = map(quickly, ("accuracy", "anchors", "quantisation"))
    job = accuracy.Job("4x56-56", "yh", 0, "normal", tmp_path)
    record = published(accuracy, {job.key: accuracy.compute(job)}, capsys)
    (line,) = record["summary"]
    assert (line["dataset"], line["splits"], line["standard_error"]) == ("yh", 1, None)
    assert line["rmse_pack"] == pytest.approx(line["rmse_test"], rel=0.2)
    (trained,) = tmp_path.glob("training-*/normal/4x56-56/yh/0")
    before = trained.stat().st_mtime_ns

    job = anchors.Job("yh", 0, tmp_path)
    record = published(anchors, {job.key: anchors.compute(job)}, capsys)
    lines = {(line["what"], line["anchors"]): line for line in record["lines"]}
    assert lines["random", 32]["mean"] > 0.5
    assert lines["overruled: never", 8]["mean"] > 0.5

    job = quantisation.Job("yh", tmp_path)
    record = published(quantisation, {job.key: quantisation.compute(job)}, capsys)
    assert record["mean_ratio"] == record["worst_ratio"]
    for kind in ("twin", "tflite", "onnx", "float_32"):
        assert record["mean_ratio"][kind] == pytest.approx(1, abs=0.2)
    assert trained.stat().st_mtime_ns == before


def test_fixed_settings_are_trained_as_they_are(quickly):
    choices = quickly("choices")
    cell = choices.compute(choices.Job("silu", 0.1, "yh", 10))
    assert 1 < cell["rmse_test"] < 30


@pytest.mark.slow
def test_points_of_a_group_are_learnt(quickly, tmp_path, monkeypatch, capsys):
    adaptation = quickly("adaptation")
    monkeypatch.setattr(adaptation, "KS", (1,))
    monkeypatch.setattr(adaptation, "RETRAINED", 1)
    cells = {
        job.key: adaptation.compute(job)
        for job in (adaptation.Job("yh", 0, tmp_path), adaptation.Job("yh", 1, tmp_path))
    }
    (line,) = published(adaptation, cells, capsys)["summary"]
    assert (line["dataset"], line["k"], line["divisions"]) == ("yh", 1, 2)
    assert line["retrained_divisions"] == 1
    assert line["adapted"] > 0


@pytest.mark.slow
def test_coverage_is_that_of_groups_never_seen(quickly, capsys):
    module = quickly("group_coverage")
    job = module.Job("normal", "yh", 0)
    (line,) = published(module, {job.key: module.compute(job)}, capsys)["summary"]
    assert (line["dataset"], line["divisions"]) == ("yh", 1)
    assert 0 < line["coverage"] <= 1


def test_intervals_are_compared_on_splits_that_all_have(quickly, capsys):
    pytest.importorskip("mapie")
    module = quickly("intervals")
    cells = {job.key: module.compute(job) for job in (module.Job(k, "yh", 0) for k in module.KINDS)}
    assert all(0.5 < cell["coverage"] <= 1 for cell in cells.values())
    ours = {"score": 10.0, "coverage": 0.9, "width": 5.0}
    pack = {"ours": ours, "constant": {"score": 20.0}, "spread": {"score": 5.0}, "rank": 0.5}
    pack |= {"rmse": 1.0, "rmse_without": 1.0}
    packs = {f"normal/4x56-56/yh/{split}": {"pack": pack} for split in range(3)}
    found = module.compare(cells, packs)
    (line,) = found["sets"]
    assert (line["splits"], line["to_constant"], line["to_spread"]) == (1, 0.5, 2.0)
    assert line["to_networks"] == pytest.approx(10 / cells["networks/yh/0"]["score"])
    assert found["geometric_mean"]["to_constant"] == pytest.approx(0.5)
    record = {"summary": {"4x56-56": found}}
    module.show(record)
    assert "4x56-56" in capsys.readouterr().out
    assert "| yh | 0.900 | 0.500 |" in module.pages(record)["docs/intervals.md"]["intervals"]


def test_a_target_is_compared_on_splits_that_both_packs_have(benchmark_named, capsys):
    targets = benchmark_named("targets")
    joint = {"rmse": [1.0, 4.0], "rmse_float": [1.0, 4.0], "coverage": [0.9, 0.5]}
    joint |= {"width": [2.0, 2.0], "bytes": 1050, "suffers": [None, True], "refused": None}
    own = joint | {"rmse": [2.0, 2.0], "bytes": [1000, 1000], "refused": [None, None]}
    cells = {
        f"{kind}/ee/{split}": one
        for kind, one in (("joint", joint), ("own", own))
        for split in range(3)
    }
    cells["board/ee/0"] = {"joint": {"instructions": 110}, "own": {"instructions": 100}}
    cells["own/ee/1"] = own | {"refused": [None, "too far off"]}
    cells["forest/ee/0"] = {"rmse": [4.0, 4.0]}
    del cells["own/ee/2"]
    record = published(targets, cells, capsys)
    first, second = record["targets"]
    assert (first["splits"], first["ratio"], second["ratio"]) == (1, 0.5, 2.0)
    assert (first["to_forest"], second["to_forest"]) == (0.25, 1.0)
    assert "to_network" not in first
    assert (first["suffers"], second["suffers"]) == (0, 1)
    (size,) = record["bytes"]
    assert (size["ratio"], size["refused"], size["instructions_ratio"]) == (1.05, 1, 1.1)
    assert [*record["holds"].values()] == [True, True, False, False, True, False]


@pytest.mark.slow
def test_targets_share_a_pack_and_have_their_own(quickly, capsys):
    targets = quickly("targets")
    cells = {
        job.key: targets.compute(job)
        for job in (targets.Job(kind, "stations", 0) for kind in targets.KINDS)
    }
    lines = published(targets, cells, capsys)["targets"]
    assert [line["target"] for line in lines] == ["re", "se", "sz"]
    assert all(0.5 < line["ratio"] < 2 for line in lines)
    assert len(cells["own/stations/0"]["bytes"]) == 3
    room = cells["joint/stations/0"]["bytes"] * 1.05
    assert all(cells[f"{kind}/stations/0"]["bytes"] < room for kind in targets.RIVALS)


def test_energy_has_both_loads_in_the_order_of_the_paper(benchmark_named):
    targets = benchmark_named("targets")
    table = targets.table_of("ee")
    assert table.Y.shape == (768, 2)
    train, validation, test = targets.rows_of("ee", 0)
    assert [len(part[1]) for part in (train, validation, test)] == [539, 76, 153]


@pytest.mark.slow
def test_streams_trains_with_and_without_derived_inputs(quickly, monkeypatch, capsys):
    streams = quickly("streams")
    monkeypatch.setattr(streams, "TrainSettings", partial(streams.TrainSettings, hidden=8, **TINY))
    jobs = [streams.Job(12, inputs, "quick") for inputs in streams.INPUTS]
    record = published(streams, {job.key: streams.compute(job) for job in jobs}, capsys)
    (line,) = record["summary"]
    assert line["naive"] == pytest.approx(41.7, abs=0.1)
    assert line["boosting_derived"] < line["boosting_now"]
    assert line["test_rows"] == 403
