"""Ctrl-C: the best weights are kept, and --resume ends where an uninterrupted training does."""

import json
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.cli import app, main
from twinedge.run_folder import load_run
from twinedge.training import selection, trainer

# The command line; it leaves a mark once the first training steps are done, then waits.
MARKED = """
import sys
import time
from pathlib import Path
from twinedge.cli import main
from twinedge.training.batches import Stack

advance = Stack.advance

def marked(stack):
    loss = advance(stack)
    Path("begun").touch()
    while not Path("sent").exists():
        time.sleep(0.01)
    return loss

Stack.advance = marked
main(sys.argv[1:])
"""


def _interrupted(arguments, folder):
    """Start a training and interrupt it; return exit code, stdout and stderr."""
    process = subprocess.Popen(
        [sys.executable, "-c", MARKED, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    deadline = time.monotonic() + 120
    while not (folder / "begun").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    (folder / "sent").touch()
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_an_interrupted_training_can_be_used_and_resumed(cli, curve_csv, loud, changed, tmp_path):
    long = changed(loud, "--steps", 1_000)
    command = ("train", curve_csv, "--target", "level", "--json", *long, "--no-intervals")
    code, out, err = _interrupted((*command, "-o", "run"), tmp_path)
    assert code == 130
    lines = [line for line in err.splitlines() if "% done" not in line]
    assert lines == ["Stopped early; the best weights are in run. Continue with --resume."]
    report = json.loads(out)
    assert report["interrupted"] is True

    assert load_run(tmp_path / "run").model.interrupted_ is True
    assert cli("evaluate", "run", curve_csv).code == 0

    resumed = cli(*command, "-o", "run", "--resume")
    whole = cli(*command, "-o", "whole")
    assert (resumed.code, resumed.err) == (0, "")
    assert resumed.json["interrupted"] is False
    assert resumed.json["rmse_val"] == whole.json["rmse_val"] != report["rmse_val"]
    assert resumed.json["rmse_test"] == whole.json["rmse_test"]
    assert cli("predict", "run", curve_csv) == cli("predict", "whole", curve_csv)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "run", "sent", "whole"]


def _ctrl_c(*arguments, **options):
    raise KeyboardInterrupt


def test_stopped_before_the_first_step(cli, curve_csv, loud, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "_Run", _ctrl_c)
    answer = cli("train", curve_csv, "--target", "level", "-o", "run", *loud)
    assert (answer.code, answer.out) == (130, "")
    assert answer.err == "Stopped before there was a network to keep.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_the_user_outlives_a_stop(cli, curve_csv, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(TwinRegressor, "fit", _ctrl_c)
    (tmp_path / "run.checkpoint").mkdir()
    (tmp_path / "run.checkpoint" / "cat.jpg").write_text("meow")
    assert cli("train", curve_csv, "--target", "level", "-o", "run", *tiny).code == 130
    assert (tmp_path / "run.checkpoint" / "cat.jpg").exists()


def test_stopped_between_folds_and_final_round(
    cli, curve_csv, loud, changed, tmp_path, monkeypatch
):
    choosing = changed(loud, "--weight-decay", "auto")
    command = ("train", curve_csv, "--target", "level", *choosing, "--no-intervals")
    train = selection.train

    def stopped(*arguments, stage, **options):
        return _ctrl_c() if stage == "final round" else train(*arguments, stage=stage, **options)

    with monkeypatch.context() as patch:
        patch.setattr(selection, "train", stopped)
        answer = cli(*command, "-o", "run")
    assert answer.code == 130
    assert answer.err == "Stopped early; the best weights are in run. Continue with --resume.\n"
    stopped = load_run(tmp_path / "run").model
    latest = [one for one in stopped.trials_ if one["stage"] == "folds"]
    assert latest[-1] == stopped.trials_[-1]
    assert stopped.weight_decay_ == min(latest, key=lambda one: one["rmse_val"])["weight_decay"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.checkpoint"]
    resumed = cli(*command, "-o", "run", "--resume", "--json").json
    whole = cli(*command, "-o", "whole", "--json").json
    assert resumed["rmse_test"] == whole["rmse_test"]


@pytest.mark.parametrize(
    "moment",
    [
        "twinedge.estimators.twin.TwinRegressor.rmse",
        pytest.param("twinedge.estimators.twin.learn_difficulty", marks=pytest.mark.slow),
        pytest.param(
            "twinedge.scoring.calibration.CalibrationRows.calibrated", marks=pytest.mark.slow
        ),
        "twinedge.evaluation.rivals.rival_predictions",
    ],
)
def test_stopped_while_the_networks_are_scored(moment, cli, curve_csv, loud, tmp_path, monkeypatch):
    command = ("train", curve_csv, "--target", "level", "-o", "run", *loud, "--json")
    with monkeypatch.context() as patch:
        patch.setattr(moment, _ctrl_c)
        answer = cli(*command)
    assert answer.code == 130
    assert answer.err == "Stopped early; the best weights are in run. Continue with --resume.\n"
    kept = load_run(tmp_path / "run").model
    assert kept.interrupted_
    assert np.isfinite(kept.validation_rmse_)
    assert cli("predict", "run", curve_csv).code == 0
    resumed = cli(*command, "--resume").json
    assert resumed["interrupted"] is False
    assert resumed["rmse_test"] is not None
    np.testing.assert_array_equal(load_run(tmp_path / "run").model.weights_, kept.weights_)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.fixture
def stopped(cli, curve_csv, tiny, monkeypatch):
    """The command of a training that was interrupted at once."""
    command = ("train", curve_csv, "--target", "level", "-o", "run", *tiny, "--no-intervals")
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "wait", _ctrl_c)
        answer = cli(*command)
    assert (answer.code, answer.err) == (130, "")
    assert "interrupted    yes\n" in answer.out
    return command


def test_resume_refuses_another_training_and_without_it_one_starts_over(
    cli, refused, stopped, tmp_path
):
    for option, word in (
        ("--seed", "another value of seed"),
        ("--split", "other data"),
        ("--twins", "another value of twins"),
    ):
        refused(*stopped, "--resume", option, 2, says=["run.checkpoint", f"begun with {word}"])
    assert cli(*stopped).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_resume_refuses_a_damaged_checkpoint(refused, stopped, tmp_path):
    for state in (tmp_path / "run.checkpoint").glob("*.npz"):
        state.write_bytes(state.read_bytes()[:100])
    refused(*stopped, "--resume", says=["run.checkpoint", "damaged", "without --resume"])


def test_resume_may_be_louder(cli, stopped):
    answer = cli(*(word for word in stopped if word != "--quiet"), "--resume")
    assert (answer.code, answer.err) == (0, "")


def test_ctrl_c_before_a_command_began_is_exit_130(cli, monkeypatch):
    monkeypatch.setattr(app, "make_context", _ctrl_c)
    assert cli("data", "list").code == 130


@pytest.mark.parametrize("fault", [EOFError(), ModuleNotFoundError("no lost", name="lost")])
def test_a_fault_of_ours_is_shown_whole(monkeypatch, fault):
    def fails(*_arguments, **_options):
        raise fault

    monkeypatch.setattr(app, "make_context", fails)
    with pytest.raises(type(fault)) as caught:
        main(["data", "list"])
    assert caught.value is fault


@pytest.mark.parametrize("options", [[], ["default"]])
def test_warnings_are_shown_only_if_python_was_asked_to(cli, monkeypatch, recwarn, options):
    def warns(*_arguments):
        warnings.warn("of a library", stacklevel=2)

    monkeypatch.setattr("sys.warnoptions", options)
    monkeypatch.setattr("twinedge.data.fetch.find_file", warns)
    cli("data", "list")
    assert ("of a library" in [str(one.message) for one in recwarn]) == bool(options)


def test_ctrl_c_anywhere_else_is_exit_130(cli, monkeypatch):
    monkeypatch.setattr("twinedge.data.fetch.find_file", _ctrl_c)
    answer = cli("data", "list")
    assert (answer.code, answer.out) == (130, "")
