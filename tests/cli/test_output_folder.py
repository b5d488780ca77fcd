"""Folders that cannot be written: reported before the training, not after it."""

import shutil

import pytest

from twinedge import TwinRegressor


@pytest.fixture
def no_training(monkeypatch):
    def fit(*arguments, **options):
        raise AssertionError("the training was begun")

    monkeypatch.setattr(TwinRegressor, "fit", fit)


@pytest.fixture
def refuse_output(refused, curve_csv, no_training):
    def refuse(output, says):
        refused("train", curve_csv, "--target", "level", "-o", output, says=says)

    return refuse


def test_the_output_is_a_file_or_holds_something_else(refuse_output, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    refuse_output("notes.txt", ["'notes.txt' is a file"])
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("meow")
    refuse_output("photos", ["photos holds something that is not a run"])


@pytest.fixture
def run(trained, tmp_path):
    """A run to be retrained, with a foreign file in it."""
    folder = shutil.copytree(trained[0], tmp_path / "run")
    (folder / "notes.txt").write_text("mine")
    return folder


def test_a_run_that_was_changed_or_holds_files_of_others(refuse_output, run):
    refuse_output("run", ["run: notes.txt is not part of the run", "--overwrite"])
    (run / "points.npz").write_bytes(b"mine")
    refuse_output("run", ["points.npz was changed", "and notes.txt is not part", "--overwrite"])


def test_overwriting_keeps_files_of_others(cli, curve_csv, tiny, run):
    (run / "points.npz").write_bytes(b"mine")
    command = ("train", curve_csv, "--target", "level", "-o", "run", *tiny, "--no-intervals")
    assert cli(*command, "--overwrite").code == 0
    assert (run / "notes.txt").read_text() == "mine"
    assert cli("evaluate", "run", curve_csv).code == 0


def test_what_others_put_there_during_a_training_does_not_cost_it(
    cli, trained, curve_csv, tiny, tmp_path, monkeypatch
):
    command = ("train", curve_csv, "--target", "level", "-o", "run", *tiny, "--no-intervals")
    shutil.copytree(trained[0], tmp_path / "run")
    fit = TwinRegressor.fit

    def meanwhile(*arguments, **options):
        (tmp_path / "run" / "notes.txt").write_text("mine")
        return fit(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(TwinRegressor, "fit", meanwhile)
        answer = cli(*command, "--seed", "1")
    assert answer.code == 2
    assert "notes.txt is not part of the run" in answer.err
    assert "the training is kept in run.checkpoint: continue with --resume" in answer.err
    assert cli(*command, "--seed", "1", "--resume", "--overwrite").code == 0
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "run.checkpoint").exists()


def test_a_folder_where_the_checkpoint_goes_is_left_alone(refused, curve_csv, tiny, tmp_path):
    (tmp_path / "run.checkpoint").mkdir()
    (tmp_path / "run.checkpoint" / "cat.jpg").write_text("meow")
    refused(
        *("train", curve_csv, "--target", "level", "-o", "run", *tiny),
        says=["run.checkpoint holds something that is not a checkpoint"],
    )


def test_nothing_to_resume(refused, curve_csv, tiny):
    refused(
        *("train", curve_csv, "--target", "level", "-o", "run", "--resume", *tiny),
        says=["run.checkpoint", "no training to resume", "without --resume"],
    )
