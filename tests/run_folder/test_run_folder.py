import json
from dataclasses import replace

import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.run_folder import Run, load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture
def another(curve, tiny):
    """A run of another model, trained on other rows, without test points."""
    X, y = curve
    model = TwinRegressor(**tiny, twins=2, anchors=np.array([4, 2]), pairs=np.int64(7))
    model.fit(X[20:60], y[20:60], validation=(X[:20], y[:20]))
    model.fill_values_ = np.arange(3.0)
    return Run(model, ("a", "b", "c"), "y", (X[:20], y[:20]), (X[:0], y[:0]))


def test_a_loaded_model_predicts_the_same_bits(tiny_twin, tiny_run, curve):
    X, _ = curve
    model = load_run(tiny_run).model
    assert model.weights_.tobytes() == tiny_twin.weights_.tobytes()
    for mine, theirs in zip(
        model.predict(X, return_std=True), tiny_twin.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(model.loop_violation(X), tiny_twin.loop_violation(X))
    np.testing.assert_array_equal(
        model.single_anchor(3).predict(X), tiny_twin.single_anchor(3).predict(X)
    )


def test_everything_about_a_run_comes_back(tiny_run, tiny_twin, curve):
    X, y = curve
    run = load_run(tiny_run)
    assert run.feature_names == ("angle", "offset", "idle")
    assert run.target_name == "level"
    assert run.source == {"dataset": "curve", "split": 0, "rows": 120}
    assert run.scores == {"rmse_val": tiny_twin.validation_rmse_}
    assert run.fill_values is None
    stored = X[80:100], y[80:100], X[100:], y[100:]
    for found, expected in zip((*run.validation, *run.test), stored, strict=True):
        np.testing.assert_array_equal(found, expected)
    model = run.model
    np.testing.assert_array_equal(model.anchor_X_, tiny_twin.anchor_X_)
    np.testing.assert_array_equal(model.anchor_y_, tiny_twin.anchor_y_)
    assert model.architecture_ == tiny_twin.architecture_
    assert model.get_params() == {**tiny_twin.get_params(), "twins": 1}
    for name in ("activation_", "learning_rate_", "weight_decay_", "steps_", "trials_"):
        assert getattr(model, name) == getattr(tiny_twin, name)
    assert (model.interrupted_, model.n_features_in_) == (False, 3)
    assert model.validation_rmse_ == tiny_twin.validation_rmse_


def test_a_loaded_model_can_be_trained_again(tiny_run, curve, tiny):
    model = load_run(tiny_run).model.set_params(steps=100)
    assert np.isfinite(model.fit(*curve).predict(curve[0])).all()


def test_several_twins_chosen_anchors_and_values_for_missing_cells_come_back(
    another, tmp_path, curve
):
    another.save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    np.testing.assert_array_equal(run.model.predict(curve[0]), another.model.predict(curve[0]))
    assert run.model.estimates(curve[0]).shape == (120, 2)
    np.testing.assert_array_equal(run.fill_values, [0, 1, 2])
    assert len(run.test[1]) == 0


def test_saving_again_replaces_the_whole_run(another, tiny_run, tmp_path, curve):
    folder = tmp_path / "runs" / "latest"
    load_run(tiny_run).save(folder)
    another.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "points.npz",
        "run.json",
        "twin.keras",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["latest"]
    np.testing.assert_array_equal(
        load_run(folder).model.predict(curve[0]), another.model.predict(curve[0])
    )


def test_a_link_keeps_pointing_to_the_run_saved_through_it(another, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "latest").symlink_to("real")
    another.save(tmp_path / "latest")
    another.save(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    assert load_run(tmp_path / "real").target_name == "y"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "real"]


def test_a_model_seeded_by_a_generator_can_be_saved(tiny_twin, tiny_run, tmp_path, curve):
    run = load_run(tiny_run)
    run.model.set_params(random_state=np.random.RandomState(0))
    run.save(tmp_path / "run")
    again = load_run(tmp_path / "run").model
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict(curve[0]), tiny_twin.predict(curve[0]))


def test_numbers_of_numpy_in_scores_and_source_are_stored_as_plain_ones(tiny_run, tmp_path):
    run = load_run(tiny_run)
    odd = replace(run, scores={"rmse_val": np.float32(0.5)}, source={"rows": np.array([1, 2])})
    odd.save(tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["scores"] == {"rmse_val": 0.5}
    assert record["source"] == {"rows": [1, 2]}
