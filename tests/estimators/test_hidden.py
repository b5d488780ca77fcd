"""``hidden=8`` is one layer of 8, everywhere."""

import json
import shutil

import numpy as np
import pytest
from sklearn.base import clone

from twinedge import AnnRegressor, TwinRegressor
from twinedge.budget import Model, ann_params, twin_params
from twinedge.budget.model import from_pack, from_run
from twinedge.cli import main
from twinedge.run_folder import Run, load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

TINY = {"activation": "silu", "learning_rate": 0.01, "weight_decay": 0.003, "steps": 100}


@pytest.fixture(scope="module")
def fitted(curve, tmp_path_factory):
    """A twin with ``hidden=8``, and its checkpoint."""
    folder = tmp_path_factory.mktemp("number") / "c"
    X, y = curve
    model = TwinRegressor(hidden=8, random_state=0, **TINY)
    return model.fit(X[:80], y[:80], validation=(X[80:], y[80:]), checkpoint=folder), folder


@pytest.fixture(scope="module")
def run(fitted, tmp_path_factory):
    model, _ = fitted
    folder = tmp_path_factory.mktemp("number") / "run"
    nothing = model.validation_[0][:0], model.validation_[1][:0]
    Run(model, ("a", "b", "c"), "y", model.validation_, nothing).save(folder)
    return folder


@pytest.mark.parametrize("kind", [TwinRegressor, AnnRegressor])
@pytest.mark.parametrize("number", [8, np.int64(8)], ids=["int", "numpy"])
def test_a_number_trains_the_network_of_a_tuple(curve, kind, number):
    one, other = (
        kind(hidden=hidden, random_state=0, **TINY).fit(*curve) for hidden in (number, (8,))
    )
    assert one.architecture_ == other.architecture_
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert one.hidden is number
    assert clone(one).hidden is number
    assert f"hidden={number!r}" in repr(one)


def test_a_training_with_a_tuple_goes_on_with_a_number(curve, fitted):
    X, y = curve
    model, folder = fitted
    again = TwinRegressor(hidden=(8,), random_state=0, **TINY)
    again.fit(X[:80], y[:80], validation=(X[80:], y[80:]), checkpoint=folder, resume=True)
    np.testing.assert_array_equal(again.weights_, model.weights_)


def test_a_run_says_the_widths_of_its_layers(fitted, run, curve):
    record = json.loads((run / "run.json").read_text())
    assert record["parameters"]["hidden"] == [8]
    model = load_run(run).model
    assert model.hidden == (8,)
    np.testing.assert_array_equal(model.predict(curve[0]), fitted[0].predict(curve[0]))
    assert clone(model).fit(*curve).architecture_.hidden == (8,)


def test_a_run_that_says_a_number_is_read(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    record = json.loads((folder / "run.json").read_text())
    record["parameters"]["hidden"] = 8
    (folder / "run.json").write_text(json.dumps(record))
    assert load_run(folder).model.hidden == (8,)
    assert from_run(folder).hidden == from_run(run).hidden == (8,)


def test_a_budget_counts_a_number_as_one_layer(capsys):
    assert Model.of(3, 8, 16) == Model.of(3, (8,), 16) == Model.of(3, [8], 16)
    assert Model.of(3, 8).hidden == (8,)
    assert ann_params(3, 8, 5) == ann_params(3, (8,), 5)
    assert twin_params(3, 8, 5) == twin_params(3, (8,), 5)
    with pytest.raises(SystemExit):
        main(["budget", "--features", "3", "--hidden", "8", "--json"])
    assert json.loads(capsys.readouterr().out)["hidden"] == [8]


def test_a_run_of_a_number_is_counted_and_exported(run, tmp_path, capsys):
    from twinedge import export

    with pytest.raises(SystemExit):
        main(["budget", str(run), "--json"])
    assert json.loads(capsys.readouterr().out)["hidden"] == [8]
    export(run, tmp_path / "out", anchors=8, formats=("twin",), tolerance=10.0)
    assert from_pack(tmp_path / "out" / "model.twin")[0].hidden == (8,)
