"""A training in a separate process, stopped by a real signal."""

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from twinedge import AnnRegressor, TwinRegressor
from twinedge.training import selection, trainer

SETTINGS = {
    "hidden": (8,),
    "activation": "silu",
    "learning_rate": 0.01,
    "weight_decay": 0.003,
    "steps": 5_000,
    "random_state": 3,
}
BRIEF = {"steps": 100, "intervals": False}

# Saves all the time, and waits halfway until the signal was sent.
CHILD = """
import sys, time
from pathlib import Path
import numpy as np
from twinedge import TwinRegressor
from twinedge.training import batches, trainer

folder = Path(sys.argv[1])
advance = batches.Stack.advance

def slowly(self):
    time.sleep(0.1)
    while self.step >= 1000 and not (folder / "signal sent").exists():
        time.sleep(0.05)
    return advance(self)

batches.Stack.advance = slowly
trainer.INTERVAL = 0.05
X, y = (np.load(folder / f"{name}.npy") for name in ("X", "y"))
model = TwinRegressor(**%r)
model.fit(X, y, checkpoint=folder / "checkpoint")
assert model.interrupted_
np.savez(folder / "result.npz", rmse=model.rmse(X, y))
"""


@pytest.fixture(scope="module")
def stopped(curve, tmp_path_factory):
    """Stop a training by a signal; return its folder, exit code and errors: ``stopped(name)``."""

    @cache
    def stop(name):
        folder = tmp_path_factory.mktemp(name)
        for part, values in zip("Xy", curve, strict=True):
            np.save(folder / f"{part}.npy", values)
        command = [sys.executable, "-c", CHILD % SETTINGS, folder]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        saved = folder / "checkpoint" / "final round.npz"
        deadline = time.monotonic() + 300
        while not (saved.exists() and np.load(saved)["0/step"] > 0):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, getattr(signal, name))
        (folder / "signal sent").touch()
        _, errors = process.communicate(timeout=300)
        return folder, process.returncode, errors

    return stop


@pytest.fixture(scope="module")
def uninterrupted(curve):
    return TwinRegressor(**SETTINGS).fit(*curve)


@pytest.mark.slow  # quickly, the command is interrupted (tests/cli/test_interrupt.py)
def test_ctrl_c_leaves_a_model_that_predicts(stopped, curve):
    folder, code, errors = stopped("SIGINT")
    assert (code, errors) == (0, "")
    with np.load(folder / "result.npz") as result:
        assert result["rmse"] < 0.5 * np.std(curve[1])


@pytest.mark.slow  # quickly, test_trainer.py resumes in the same process
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_stopped_training_resumed_ends_with_the_bits_of_one_never_stopped(
    stopped, uninterrupted, curve, name
):
    folder, code, _ = stopped(name)
    assert code == (0 if name == "SIGINT" else -signal.SIGKILL)
    with np.load(folder / "checkpoint" / "final round.npz") as saved:
        assert 0 < saved["0/step"] < 5_000
    model = TwinRegressor(**SETTINGS)
    model.fit(*curve, checkpoint=folder / "checkpoint", resume=True)
    assert not model.interrupted_
    np.testing.assert_array_equal(model.weights_, uninterrupted.weights_)
    np.testing.assert_array_equal(model.predict(curve[0]), uninterrupted.predict(curve[0]))


@pytest.fixture(scope="module")
def finished(curve, tmp_path_factory):
    """The checkpoint of a short training; copy it before damaging it."""
    folder = tmp_path_factory.mktemp("finished") / "c"
    TwinRegressor(**SETTINGS | BRIEF).fit(*curve, checkpoint=folder)
    return folder


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"steps": 400}, "another value of steps"),
        ({"random_state": 1}, "other data and another value of seed"),
        ({"hidden": (9,), "twins": 2}, "other values of hidden, twins"),
        ({"pairs": "neighbors"}, "another value of pairs"),
    ],
)
def test_resuming_with_other_settings_is_refused_by_name(
    complaint, curve, finished, changed, named
):
    model = TwinRegressor(**SETTINGS | BRIEF | changed)
    assert named in complaint(model.fit, *curve, checkpoint=finished, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X + np.eye(120, 3), y),
        lambda X, y: (X, 2 * y),  # the same network, but errors in different units
    ],
)
def test_resuming_with_other_data_is_refused(complaint, curve, finished, change):
    message = complaint(
        TwinRegressor(**SETTINGS | BRIEF).fit, *change(*curve), checkpoint=finished, resume=True
    )
    assert "other data" in message


def test_resuming_another_kind_of_model_is_refused(complaint, curve, finished):
    model = AnnRegressor(**{**SETTINGS, "steps": 100})
    assert "other values of" in complaint(model.fit, *curve, checkpoint=finished, resume=True)


def test_what_the_training_does_not_depend_on_may_change(curve, tmp_path):
    settings = SETTINGS | BRIEF
    given = {"random_state": np.random.RandomState(4)}
    before = TwinRegressor(**settings | given).fit(*curve, checkpoint=tmp_path / "c")
    given = {"random_state": np.random.RandomState(4), "anchors": 5, "verbose": True}
    after = TwinRegressor(**settings | given).fit(*curve, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(after.weights_, before.weights_)


def test_a_damaged_checkpoint_is_refused(complaint, curve, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "c")
    path = folder / "final round.npz"
    path.write_bytes(path.read_bytes()[:100])
    model = TwinRegressor(**SETTINGS | BRIEF)
    assert "damaged" in complaint(model.fit, *curve, checkpoint=folder, resume=True)


RACE = {
    "hidden": (6,),
    "effort": "quick",
    "teachers": ["networks", DecisionTreeRegressor(max_depth=3, random_state=0)],
    "random_state": 0,
}


@pytest.fixture(
    scope="module", params=[AnnRegressor, pytest.param(TwinRegressor, marks=pytest.mark.slow)]
)
def raced(request, curve):
    """A kind of model, and one of it that was never stopped; what is called quick is brief."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(selection.PLANS, "quick", selection.Plan(folds=100, final=400))
        yield request.param, request.param(**RACE).fit(*curve)


@pytest.mark.parametrize("stage", ["folds", "final round"])
def test_a_race_stopped_in_any_round_and_resumed_chooses_and_learns_the_same(
    raced, curve, tmp_path, monkeypatch, stage
):
    kind, whole = raced

    def pressed(futures, timeout):
        if (tmp_path / "c" / f"{stage}.begun").exists():
            raise KeyboardInterrupt
        return wait(futures)

    wait, load = trainer.wait, trainer.Checkpoint.load

    def noted(self, name, fresh):
        (tmp_path / "c" / f"{name}.begun").touch()
        return load(self, name, fresh)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "wait", pressed)
        patch.setattr(trainer.Checkpoint, "load", noted)
        stopped = kind(**RACE).fit(*curve, checkpoint=tmp_path / "c")
    assert stopped.interrupted_
    assert stage in {one["stage"] for one in stopped.trials_}
    assert np.isfinite(stopped.predict(curve[0])).all()
    resumed = kind(**RACE).fit(*curve, checkpoint=tmp_path / "c", resume=True)
    assert resumed.trials_ == whole.trials_
    assert resumed.teaching_ == whole.teaching_
    assert not resumed.interrupted_
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
