"""From a table to a run, in Python as by ``twinedge train``."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import twinedge
from twinedge.errors import ParameterError
from twinedge.run_folder import load_run
from twinedge.training import trainer

TINY = {
    "hidden": (8,),
    "steps": 300,
    "activation": "relu",
    "learning_rate": 0.01,
    "weight_decay": 0.03,
    "random_state": 0,
}


@pytest.fixture
def table(curve, tmp_path):
    path = tmp_path / "curve.csv"
    np.savetxt(
        path, np.column_stack(curve), delimiter=",", header="angle,offset,idle,level", comments=""
    )
    return path


def test_a_table_becomes_a_run(table, tmp_path):
    said = []
    run = twinedge.fit_csv(table, target="level", drop="idle", say=said.append, **TINY)
    assert run.feature_names == ("angle", "offset")
    assert run.target_name == "level"
    assert run.source["dataset"] == "curve.csv"
    assert run.scores["rmse_test"] < run.test[1].std()
    error = run.model.predict(run.test[0]) - run.test[1]
    assert run.scores["rmse_test"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert all(isinstance(remark, str) for remark in said)
    assert [path.name for path in tmp_path.iterdir()] == ["curve.csv"]


def test_the_run_folder_holds_the_same(table, tmp_path):
    run = twinedge.fit_csv(table, target=-1, run=tmp_path / "run", split=1, **TINY)
    kept = load_run(tmp_path / "run")
    np.testing.assert_array_equal(kept.model.weights_, run.model.weights_)
    assert kept.scores == run.scores
    assert kept.source["split"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.csv", "run"]


def test_the_command_gives_the_same(table, tmp_path, monkeypatch, capsys):
    from twinedge.cli import main

    monkeypatch.chdir(tmp_path)
    words = "--hidden 8 --steps 300 --activation relu --learning-rate 0.01 --weight-decay 0.03"
    with pytest.raises(SystemExit):
        main(["train", str(table), "--target", "level", "-o", "run", "--quiet", *words.split()])
    assert "rmse test" in capsys.readouterr().out
    run = twinedge.fit_csv(table, target="level", **TINY)
    np.testing.assert_array_equal(load_run(tmp_path / "run").model.weights_, run.model.weights_)


def test_a_stopped_training_is_resumed(table, tmp_path, monkeypatch):
    def ctrl_c(*arguments, **options):
        raise KeyboardInterrupt

    given = {"target": "level", "run": tmp_path / "run", **TINY}
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "wait", ctrl_c)
        assert twinedge.fit_csv(table, **given).model.interrupted_
    resumed = twinedge.fit_csv(table, **given, resume=True)
    assert not resumed.model.interrupted_
    whole = twinedge.fit_csv(table, target="level", **TINY)
    np.testing.assert_array_equal(resumed.model.weights_, whole.model.weights_)
    with pytest.raises(ParameterError) as refused:
        twinedge.fit_csv(table, **given, resume=True)
    assert [one.name for one in refused.value.parameters] == ["resume"]


def test_a_diverging_training_names_the_parameter(table):
    with pytest.raises(ParameterError, match="smaller learning_rate") as refused:
        twinedge.fit_csv(table, target="level", **TINY | {"learning_rate": 1e9})
    assert [one.name for one in refused.value.parameters] == ["learning_rate"]


def test_a_column_with_more_digits_than_a_device_has_is_named(tmp_path):
    rows = "".join(f"{1.7e9 + k},{k % 7},{k % 5}\n" for k in range(60))
    (tmp_path / "log.csv").write_text("time,speed,level\n" + rows)
    said = []
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*32-bit")  # once is enough
        twinedge.fit_csv(tmp_path / "log.csv", target="level", say=said.append, **TINY)
    with pytest.warns(UserWarning, match="column 'time' .* 32-bit floats are 128 apart"):
        twinedge.fit_csv(tmp_path / "log.csv", target="level", **TINY)
    (remark,) = [one for one in said if "32-bit" in one]
    assert remark.startswith("log.csv: column 'time' varies by")
    assert remark.endswith(
        "around 1.7e+09, where a device's 32-bit floats are 128 apart: subtract a constant from it"
    )


def test_a_changed_folder_names_the_parameter(table, tmp_path):
    twinedge.fit_csv(table, target="level", run=tmp_path / "run", **TINY)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="overwrite=True"):
        twinedge.fit_csv(table, target="level", run=tmp_path / "run", **TINY)


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
