"""``twinedge export`` as a person meets it; the files themselves are tested in tests/export."""

import json
import shutil
from pathlib import Path

import pytest

TWIN = ("--formats", "twin", "--select", "xy")


@pytest.fixture
def folder(tiny_run, tmp_path):
    """A folder with one run in it, where a person works."""
    shutil.copytree(tiny_run, tmp_path / "runs" / "level")
    return tmp_path


def test_the_latest_run_is_exported_into_a_folder_out(cli, folder):
    answer = cli("export", "--anchors", "8", *TWIN)
    assert answer.code == 0
    assert "Exporting runs/level" in answer.err
    assert {path.name for path in Path("out").iterdir()} == {"model.twin", "export.json"}
    head, row, *_ = answer.out.splitlines()
    assert head.split()[:2] == ["file", "bytes"]
    assert row.startswith("out/model.twin")
    assert "8 anchors (xy)" in answer.out
    assert "An ensemble of 8 ordinary networks would take" in answer.out


def test_of_several_runs_the_one_written_last_is_the_latest(cli, folder):
    import os

    shutil.copytree("runs/level", "runs/older")
    os.utime("runs/older/run.json", (1, 1))
    assert cli("export", "--anchors", "8", *TWIN, "--json").json["run"] == "runs/level"


def test_json_has_what_programs_need(cli, folder):
    answer = cli("export", "runs/level", "--anchors", "8", "-o", "there", *TWIN, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["run"] == "runs/level"
    assert answer.json["anchors"] == 8
    assert answer.json["select"] == "xy"
    assert answer.json["float_rmse_val"] > 0
    assert answer.json["ann_ensemble_bytes"] > 0
    twin = answer.json["files"]["twin"]
    assert twin["path"] == "there/model.twin"
    assert twin["bytes"] == Path("there/model.twin").stat().st_size
    for key in ("rmse_val", "rmse_test", "ratio_to_float"):
        assert twin[key] > 0
    assert json.loads(Path("there/export.json").read_text()).keys() <= answer.json.keys()


def test_the_runtime_of_the_c_project_may_be_one_file(cli, folder):
    options = ("--anchors", "8", "--select", "xy", "--formats", "twin,c")
    assert cli("export", *options, "--single-file").code == 0
    names = {path.name for path in Path("out/c/model").iterdir()}
    assert names == {"model.ino", "model.c", "model.h", "twin.c", "twin.h"}
    assert cli("export", *options, "-o", "many").code == 0
    assert Path("many/c/model/src/twinedge/src/twin_open.c").is_file()


def test_the_anchors_may_be_named_in_a_file(cli, folder):
    Path("rows.txt").write_text("5, 6, 7\n")
    answer = cli("export", "--formats", "twin", "--select", "rows.txt", "--json")
    assert answer.json["anchors"] == 3


def test_with_no_run_the_test_function_is_trained_first(cli, tmp_path, monkeypatch):
    from twinedge.learn import selection

    brief = selection.Plan(rounds=(), lengths=(300,), settings=selection.SETTINGS[:1])
    monkeypatch.setitem(selection.PLANS, "quick", brief)
    answer = cli("export", "--anchors", "4", *TWIN, "--weights", "int16")
    assert answer.code == 0
    assert "training the built-in test function" in answer.err
    assert Path("runs/latest/run.json").is_file()
    assert Path("out/model.twin").is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--anchors", "0"], ["--anchors", "'0'"]),
        (["--anchors", "some"], ["--anchors", "'some'"]),
        (["--anchors", "81"], ["81", "80 training points"]),
        (["--formats", "elf"], ["--formats", "'elf'"]),
        (["--select", "nicest"], ["'nicest'", "auto"]),
        (["--weights", "int4"], ["--weights", "'int4'"]),
        (["--tolerance", "-1"], ["--tolerance", "'-1'"]),
        (["--seed", "x"], ["--seed"]),
        (["nowhere"], ["nowhere", "does not exist"]),
    ],
    ids=str,
)
def test_wrong_words_are_refused_in_one_line(refused, folder, arguments, says):
    refused("export", *arguments, "--quiet", says=says)


def test_a_place_that_holds_something_else_is_refused(refused, folder):
    (folder / "notes").mkdir()
    (folder / "notes" / "letter.txt").write_text("dear")
    refused("export", "runs/level", "-o", "notes", says=["notes", "not an export"])


def test_a_damaged_run_is_refused(refused, folder):
    points = folder / "runs" / "level" / "points.npz"
    points.write_bytes(points.read_bytes()[:-1])
    refused("export", "runs/level", says=["points.npz", "damaged"])
