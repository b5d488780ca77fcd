"""From a table to a run, in Python as by ``twinedge train``."""

import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import twinedge
from twinedge import TwinRegressor
from twinedge.errors import ParameterError
from twinedge.fitting import TrainSettings
from twinedge.run_folder import load_run
from twinedge.training import trainer

TINY = {
    "hidden": (8,),
    "steps": 60,
    "activation": "relu",
    "learning_rate": 0.01,
    "weight_decay": 0.03,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def table(curve, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "curve.csv"
    np.savetxt(
        path, np.column_stack(curve), delimiter=",", header="angle,offset,idle,level", comments=""
    )
    return path


@pytest.fixture(scope="module")
def whole(table):
    """The run of a training that was never stopped."""
    return twinedge.fit_csv(table, target="level", **TINY)


def test_settings_are_the_parameters_of_a_twin_with_the_same_defaults():
    given = TwinRegressor().get_params() | {"n_jobs": -1}
    assert TrainSettings().model().get_params() == given
    settings = TrainSettings(**TINY, run="runs/latest")
    assert settings.model().get_params() == given | TINY
    with pytest.raises(FrozenInstanceError):
        settings.steps = 7
    with pytest.raises(TypeError, match="colour"):
        TrainSettings(colour="red")


def test_resuming_without_a_folder_is_refused(complaint, table):
    message = complaint(twinedge.fit_csv, table, target="level", resume=True)
    assert message == "resume=True needs the folder of the run: give run"


def test_a_table_becomes_a_run(table):
    remarks = []
    run = twinedge.fit_csv(table, target="level", drop="idle", say=remarks.append, **TINY)
    assert run.feature_names == ("angle", "offset")
    assert run.target_name == "level"
    assert run.source["dataset"] == "curve.csv"
    error = run.model.predict(run.test[0]) - run.test[1]
    assert run.scores["rmse_test"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert all(isinstance(remark, str) for remark in remarks)
    assert [path.name for path in table.parent.iterdir()] == ["curve.csv"]


def test_the_command_gives_the_same(table, whole, tmp_path, monkeypatch, capsys):
    from twinedge.cli import main

    monkeypatch.chdir(tmp_path)
    words = "--hidden 8 --steps 60 --activation relu --learning-rate 0.01 --weight-decay 0.03"
    with pytest.raises(SystemExit):
        main(["train", str(table), "--target", "level", "-o", "run", "--quiet", *words.split()])
    assert "rmse test" in capsys.readouterr().out
    kept = load_run(tmp_path / "run")
    np.testing.assert_array_equal(kept.model.weights_, whole.model.weights_)
    assert kept.scores | {"seconds": 0} == whole.scores | {"seconds": 0}


def test_a_stopped_training_is_resumed(table, whole, tmp_path, monkeypatch):
    def ctrl_c(*arguments, **options):
        raise KeyboardInterrupt

    given = {"target": "level", "run": tmp_path / "run", **TINY}
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "wait", ctrl_c)
        assert twinedge.fit_csv(table, **given).model.interrupted_
    resumed = twinedge.fit_csv(table, **given, resume=True)
    assert not resumed.model.interrupted_
    np.testing.assert_array_equal(resumed.model.weights_, whole.model.weights_)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with pytest.raises(ParameterError) as refused:
        twinedge.fit_csv(table, **given, resume=True)
    assert [one.name for one in refused.value.parameters] == ["resume"]
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="overwrite=True"):
        twinedge.fit_csv(table, **given)


def test_a_diverging_training_names_the_parameter(table):
    with pytest.raises(ParameterError, match="smaller learning_rate") as refused:
        twinedge.fit_csv(table, target="level", **TINY | {"learning_rate": 1e9})
    assert [one.name for one in refused.value.parameters] == ["learning_rate"]


def test_a_column_with_more_digits_than_a_device_has_is_named(tmp_path):
    rows = "".join(f"{1.7e9 + k},{k % 7},{k % 5}\n" for k in range(60))
    (tmp_path / "log.csv").write_text("time,speed,level\n" + rows)
    remarks = []
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*32-bit")  # once is enough
        twinedge.fit_csv(tmp_path / "log.csv", target="level", say=remarks.append, **TINY)
    with pytest.warns(UserWarning, match="column 'time' .* 32-bit floats are 128 apart"):
        twinedge.fit_csv(tmp_path / "log.csv", target="level", **TINY)
    (remark,) = [one for one in remarks if "32-bit" in one]
    assert remark.startswith("log.csv: column 'time' varies by")
    assert remark.endswith(
        "around 1.7e+09, where a device's 32-bit floats are 128 apart: subtract a constant from it"
    )


def test_a_bad_table_is_refused_before_tensorflow_is_loaded(tmp_path):
    (tmp_path / "bad.csv").write_text("a,y\n1,2\n")
    code = (
        "import sys, twinedge\n"
        "try: twinedge.fit_csv('bad.csv', target='z')\n"
        "except twinedge.InputError as error: print(error, 'tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "'z'" in done.stdout
    assert done.stdout.endswith("False\n")
