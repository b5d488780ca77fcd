import numpy as np
import pytest

from twinedge import TwinRegressor
from twinedge.estimators import twin
from twinedge.training import pairs
from twinedge.training.tasks import PairTask


def fitted(curve, **parameters):
    X, y = curve
    return TwinRegressor(**{"intervals": False, **parameters}).fit(
        X[:80], y[:80], validation=(X[80:100], y[80:100])
    )


@pytest.fixture
def task(monkeypatch):
    """Catch the task a regressor hands to the trainer."""
    caught = []

    def catch(**data):
        caught.append(PairTask(**data))
        return caught[-1]

    monkeypatch.setattr(twin, "PairTask", catch)
    return caught


def test_a_twin_beats_the_mean_and_a_linear_model_by_far(curve, tiny):
    X, y = curve
    model = fitted(curve, **{**tiny, "hidden": (16, 16), "steps": 2000})
    Z = np.column_stack([X, np.ones(len(X))])
    linear = Z[100:] @ np.linalg.lstsq(Z[:80], y[:80])[0]
    error = model.rmse(X[100:], y[100:])
    assert error < 0.1 * np.std(y[100:])
    assert error < 0.5 * np.sqrt(np.mean((linear - y[100:]) ** 2))


def test_the_same_random_state_gives_the_same_bits_and_another_does_not(curve, tiny):
    first = fitted(curve, **tiny)
    np.testing.assert_array_equal(fitted(curve, **tiny).weights_, first.weights_)
    other = fitted(curve, **{**tiny, "random_state": 1})
    assert not np.array_equal(other.weights_, first.weights_)


def test_the_anchors_are_the_training_points_given(tiny_twin, curve):
    X, y = curve
    np.testing.assert_array_equal(tiny_twin.anchor_X_, X[:80])
    np.testing.assert_array_equal(tiny_twin.anchor_y_, y[:80])
    assert tiny_twin.validation_rmse_ == pytest.approx(tiny_twin.rmse(X[80:100], y[80:100]))


def test_without_validation_data_a_part_of_the_rows_is_held_out(curve, tiny):
    X, y = curve
    model = TwinRegressor(**tiny, intervals=False, validation_fraction=0.25).fit(X, y)
    assert len(model.anchor_y_) == 90
    rows = {tuple(row): target for row, target in zip(X, y, strict=True)}
    assert len({tuple(row) for row in model.anchor_X_}) == 90
    assert all(rows[tuple(a)] == t for a, t in zip(model.anchor_X_, model.anchor_y_, strict=True))
    held = np.array([row not in set(map(tuple, model.anchor_X_)) for row in map(tuple, X)])
    assert model.validation_rmse_ == pytest.approx(model.rmse(X[held], y[held]))


@pytest.mark.parametrize(("rows", "fraction"), [(15, 0.5), (40, 0)])
def test_a_tiny_table_or_no_fraction_holds_nothing_out(curve, tiny, rows, fraction):
    X, y = curve
    model = TwinRegressor(**tiny, intervals=False, validation_fraction=fraction).fit(
        X[:rows], y[:rows]
    )
    assert len(model.anchor_y_) == rows
    assert model.validation_rmse_ == pytest.approx(model.rmse(X[:rows], y[:rows]))


def test_two_points_are_enough(tiny):
    model = TwinRegressor(**tiny).fit([[0.0], [1.0]], [5.0, 7.0])
    assert np.isfinite(model.predict([[0.5]])).all()


def test_a_constant_target_is_learnt_as_such(tiny, curve):
    X, _ = curve
    model = TwinRegressor(**{**tiny, "steps": 1500}, intervals=False).fit(X, np.full(len(X), 0.1))
    np.testing.assert_allclose(model.predict(X), 0.1, atol=0.05)


def test_a_column_that_never_changed_has_no_effect(tiny, curve):
    X, y = curve
    X = np.column_stack([X, np.full(len(X), 0.1)])
    model = TwinRegressor(**tiny, intervals=False).fit(X[:80], y[:80])
    expected = model.predict(X[80:])
    X[80:, -1] = np.linspace(-1e4, 1e4, len(X) - 80)
    np.testing.assert_array_equal(model.predict(X[80:]), expected)
    assert model.outside(X[80:])[:, -1].all()


def test_neighbor_pairs_join_each_point_with_its_nearest(curve, tiny, task):
    model = fitted(curve, **tiny, pairs="neighbors", neighbors=5)
    scaled = model.scaling_.features(model.anchor_X_)
    np.testing.assert_array_equal(task[0].partners, pairs.nearest_others(scaled, 5))
    assert (task[0].neighbors, task[0].foldable) == (5, False)


def test_a_model_trained_on_neighbors_predicts_with_as_many(curve, tiny):
    X, _ = curve
    model = fitted(curve, **tiny, pairs="neighbors", neighbors=5)
    assert model.estimates(X[100:]).shape == (20, 5)
    np.testing.assert_array_equal(model.predict(X[100:]), model.predict(X[100:], neighbors=5))
    assert model.estimates(X[100:], neighbors=7).shape == (20, 7)


def test_a_multiplier_joins_each_point_with_so_many_random_others(curve, tiny, task):
    model = fitted(curve, **tiny, pairs=3)
    assert task[0].partners.shape == (80, 3)
    assert (task[0].neighbors, task[0].foldable) == (None, False)
    assert model.estimates(curve[0][100:]).shape == (20, 80)
    fitted(curve, **{**tiny, "random_state": 1}, pairs=3)
    assert not np.array_equal(task[0].partners, task[1].partners)


@pytest.mark.parametrize("pairs", ["neighbors", 3])
def test_every_kind_of_pairs_learns_the_curve(curve, tiny, pairs):
    X, y = curve
    model = fitted(curve, **{**tiny, "steps": 1500}, pairs=pairs)
    assert model.rmse(X[100:], y[100:]) < 0.3 * np.std(y[100:])


def test_four_twins_are_four_different_networks(four_twins):
    assert four_twins.weights_.shape == (4, four_twins.architecture_.size)
    assert len({network.tobytes() for network in four_twins.weights_}) == 4


def test_a_number_or_a_list_of_widths_gives_so_many_layers(curve, tiny):
    tiny |= {"steps": 10}
    assert fitted(curve, **{**tiny, "hidden": 5}).architecture_.hidden == (5,)
    assert fitted(curve, **{**tiny, "hidden": [5, 4]}).architecture_.hidden == (5, 4)


def test_a_training_prints_nothing_unless_verbose(curve, tiny, capfd, monkeypatch):
    monkeypatch.setattr("twinedge.progress.INTERVAL", 0.001)
    tiny["steps"] = 50
    TwinRegressor(**tiny).fit(*curve).predict(curve[0])
    assert capfd.readouterr() == ("", "")
    TwinRegressor(**tiny, verbose=True).fit(*curve)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Training the networks: " in err
    assert "% done" in err
