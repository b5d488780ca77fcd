"""Files of results: what is written comes back, with the machine that measured it."""

import json

import pytest


@pytest.fixture(scope="module")
def record(benchmark_named):
    return benchmark_named("record")


def test_cells_come_back_and_what_is_new_in_a_folder_counts(record, tmp_path, capsys):
    path, cells = tmp_path / "results.json", {"a/0": {"rmse": 0.1}, "a/1": {"rmse": 0.2}}
    record.publish(path, ("numpy",), summary=[1], cells=cells)
    written = json.loads(path.read_text())
    assert list(written) == ["machine", "summary", "cells"]
    shown = json.loads(capsys.readouterr().out)
    assert shown == {key: one for key, one in written.items() if key != "cells"}
    new = json.dumps({"cell": "a/1", "rmse": 0.3})
    (tmp_path / "b.jsonl").write_text(f"{new}\n{new[:9]}")  # the second was cut off
    assert record.read_cells(path, tmp_path) == {**cells, "a/1": {"rmse": 0.3}}


def test_a_machine_that_measured_nothing_new_is_not_named(record, tmp_path):
    path = tmp_path / "results.json"
    record.write_record(path, (), cells={"a": 1.0})
    elsewhere = path.read_text().replace(json.loads(path.read_text())["machine"]["python"], "0.9")
    path.write_text(elsewhere)
    assert record.write_record(path, (), summary=2, cells={"a": 1.0})["machine"]["python"] == "0.9"
    assert record.write_record(path, (), cells={"a": 1.5})["machine"]["python"] != "0.9"
