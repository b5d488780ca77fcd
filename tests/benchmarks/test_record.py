"""Files of results: what is written comes back, with the machine that measured it."""

import json

import pytest


@pytest.fixture(scope="module")
def record(benchmark_named):
    return benchmark_named("harness.record")


CELLS = {"a/0": {"rmse": 0.1}, "a/1": {"rmse": 0.2}}


def test_a_record_is_printed_without_its_cells_and_read_again(record, tmp_path, capsys):
    path = tmp_path / "results.json"
    record.publish(path, ("numpy",), training=3, summary=[1], cells=CELLS)
    written = record.read_record(path)
    assert list(written) == ["machine", "training", "summary", "cells"]
    shown = json.loads(capsys.readouterr().out)
    assert shown == {key: one for key, one in written.items() if key != "cells"}
    assert record.read_record(tmp_path / "none.json") == {}


@pytest.mark.parametrize("cells", [{}, CELLS])
def test_each_cell_is_a_line(record, tmp_path, cells):
    path = tmp_path / "results.json"
    unfinished = {"training": 4, "cells": {"a/0": {"rmse": 0.3}}}
    content = {"summary": {"x": [1, {"y": 2}]}, "cells": cells, "unfinished": unfinished}
    written = record.write_record(path, (), **content)
    assert json.loads(path.read_text()) == written == {"machine": written["machine"], **content}
    lines = [line.strip().rstrip(",") for line in path.read_text().splitlines()]
    for key, cell in [*cells.items(), *unfinished["cells"].items()]:
        assert f"{json.dumps(key)}: {json.dumps(cell)}" in lines


def test_a_line_that_was_cut_off_does_not_count(record, tmp_path):
    line = json.dumps({"cell": "a/1", "rmse": 0.3})
    (tmp_path / "b.jsonl").write_text(f"{line}\n{line[:9]}")
    assert list(record.lines_of(tmp_path)) == [("a/1", {"rmse": 0.3})]


def test_a_machine_that_measured_nothing_new_is_not_named(record, tmp_path):
    path = tmp_path / "results.json"
    record.write_record(path, (), cells={"a": 1.0})
    elsewhere = path.read_text().replace(json.loads(path.read_text())["machine"]["python"], "0.9")
    path.write_text(elsewhere)
    assert record.write_record(path, (), summary=2, cells={"a": 1.0})["machine"]["python"] == "0.9"
    assert record.write_record(path, (), cells={"a": 1.5})["machine"]["python"] != "0.9"
