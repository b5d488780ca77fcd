"""``twinedge export`` as users see it; the files themselves are tested in tests/export."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from twinedge.budget import board_named, board_verdict, read_firmware
from twinedge.budget.read_model import from_pack
from twinedge_export.files import PURPOSES

TWIN = ("--formats", "twin", "--select", "xy")


@pytest.fixture
def folder(tiny_run, tmp_path):
    """A working folder with one run in it."""
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
    assert answer.json["judged_on"] == "validation"
    assert answer.json["float_rmse_val"] > 0
    assert answer.json["float_rmse_val_anchors"] == 80
    assert "rmse_train" not in answer.out
    assert answer.json["ann_ensemble_bytes"] > 0
    twin = answer.json["files"]["twin"]
    assert twin["path"] == "there/model.twin"
    assert twin["bytes"] == Path("there/model.twin").stat().st_size
    for key in ("rmse_val", "rmse_test", "ratio_to_float"):
        assert twin[key] > 0
    kept = json.loads(Path("there/export.json").read_text())
    assert kept.keys() - {"sha256"} <= answer.json.keys()
    assert twin["purpose"].startswith("Python")


def test_where_nothing_was_held_out_errors_are_those_of_training(cli, folder):
    from twinedge.run_folder import load_run

    run = load_run(folder / "runs" / "level")
    trained = run.model.anchor_X_, run.model.anchor_y_
    replace(run, validation=trained, scores={"rmse_train": 1.5}).save(folder / "runs" / "all")
    again = load_run(folder / "runs" / "all")
    assert len(again.validation[1]) == 0
    assert again.model.validation_rmse_ == 1.5
    options = ("export", "runs/all", "--anchors", "8", "--select", "xy", "--formats", "twin,c")
    answer = cli(*options)
    assert answer.code == 0
    assert "nothing was held out: errors are those of the training points" in answer.err
    assert "training error" in answer.out.splitlines()[0]
    assert "RMSE on the training points" in answer.out
    assert "alidation" not in answer.out
    page = Path("out/c/README.md").read_text()
    assert "| training RMSE |" in page
    assert "alidation RMSE" not in page
    kept = Path("out/export.json").read_text()
    assert json.loads(kept)["judged_on"] == "training"
    assert "rmse_val" not in kept
    shown = cli("inspect", "out/model.twin", "--json").out
    assert '"rmse_train": 1.5' in shown
    assert "rmse_val" not in shown


def test_the_c_project_and_what_becomes_of_an_earlier_one(cli, folder):
    options = ("export", "--anchors", "8", "--select", "xy", "--formats")
    assert cli(*options, "c", "--single-file").code == 0
    names = {path.name for path in Path("out/c/model").iterdir()}
    assert names == {"model.ino", "model.c", "model.h", "twin.c", "twin.h"}

    many = cli(*options, "twin,c")
    assert "Removed, from an earlier export: out/c/model/twin.c, out/c/model/twin.h\n" in many.err
    assert Path("out/c/model/src/twinedge/src/twin_open.c").is_file()
    assert not Path("out/c/model/twin.c").exists()

    # It reports flash, not the length of the text.
    packed, _ = from_pack(Path("out/model.twin"))
    verdict = board_verdict(packed, board_named("nrf52840"), read_firmware())
    lines = many.out.splitlines()
    assert lines[2].split()[:2] == ["out/c", str(verdict.flash_bytes)]
    assert lines[6].split() == ["out/c", *PURPOSES["c"].split()]
    assert "flash on a Cortex-M4" in lines[8]

    alone = cli(*options, "twin", "--json")
    assert "Stale, from an earlier export: out/c\n" in alone.err
    assert alone.json["stale"] == ["c/"]
    assert Path("out/c/model/src/twinedge/src/twin_open.c").is_file()


def test_an_export_that_was_changed_is_refused_before_any_work(cli, refused, folder):
    command = ("export", "--anchors", "8", *TWIN)
    assert cli(*command).code == 0
    pack = Path("out/model.twin").read_bytes()
    Path("out/model.twin").write_bytes(b"mine")
    Path("out/notes.txt").write_text("mine")
    says = ["out: model.twin was changed", "notes.txt is not part of the export", "--overwrite"]
    refused("export", "nowhere", says=says)
    answer = cli(*command, "--overwrite")
    assert answer.code == 0
    assert "Replaced, as --overwrite allows: out/model.twin\n" in answer.err
    assert Path("out/model.twin").read_bytes() == pack
    assert Path("out/notes.txt").read_text() == "mine"


def test_with_no_run_the_line_shows_what_to_type(refused, tmp_path):
    says = ["no run in runs/", "'twinedge train DATA.csv --target COLUMN'", "'twinedge export RUN'"]
    refused("export", says=says)
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    refused("export", "--formats", "twin", says=says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--anchors", "0"], ["--anchors", "0 is not in the range x>=1", "'fewest' or 'all'"]),
        (["--formats", "elf"], ["--formats", "'elf'"]),
        (["--select", "nicest"], ["'nicest'", "auto"]),
        (["--tolerance", "-1"], ["--tolerance", "-1.0 is not in the range x>=0"]),
        (["nowhere"], ["nowhere", "does not exist"]),
    ],
    ids=str,
)
def test_wrong_words_are_refused_in_one_line(refused, folder, arguments, says):
    refused("export", *arguments, "--quiet", says=says)
