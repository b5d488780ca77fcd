"""Ordinary networks, and ensembles of models."""

import numpy as np
import pytest

from twinedge import AnnRegressor, EnsembleRegressor
from twinedge.training.network import Architecture, Scaling


@pytest.fixture(scope="module")
def model(curve):
    X, y = curve
    network = AnnRegressor(
        hidden=(12, 12),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=500,
        random_state=0,
    )
    return network.fit(X[:80], y[:80], validation=(X[80:100], y[80:100]))


def test_a_prediction_is_the_network_in_units_of_the_target(model, perceptron, curve):
    X, _ = curve
    scaled = (X - model.scaling_.x_mean) / model.scaling_.x_scale
    output = perceptron(model.architecture_, model.weights_[0], scaled)
    expected = output * model.scaling_.y_scale + model.scaling_.y_mean
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)


def test_the_validation_error_is_that_of_the_validation_points(model, curve):
    X, y = curve
    expected = np.sqrt(np.mean((model.predict(X[80:100]) - y[80:100]) ** 2))
    assert model.validation_rmse_ == pytest.approx(expected)
    assert model.trials_[-1]["rmse_val"] == pytest.approx(expected, rel=1e-4)


def test_weights_from_elsewhere_predict():
    architecture = Architecture(1, (1,), "relu")
    weights = np.array([[2.0, 0.0, 3.0, 1.0]], np.float32)  # 3 relu(2 x) + 1
    scaling = Scaling(np.array([10.0]), np.array([5.0]), 100.0, 0.5)
    model = AnnRegressor.from_network(architecture, weights, scaling)
    np.testing.assert_allclose(model.predict([[15.0], [0.0]]), [103.5, 100.5])


def test_another_number_of_features_is_refused(model, curve):
    with pytest.raises(ValueError, match=r"^X has 2 features, .* 3 features as input\.$"):
        model.predict(curve[0][:, :2])


@pytest.fixture
def base(tiny):
    return AnnRegressor(**{**tiny, "steps": 50, "random_state": None})


def test_mean_and_std_are_those_of_members_that_differ(base, curve):
    X, y = curve
    model = EnsembleRegressor(base, 3, random_state=0).fit(X, y)
    assert len(model.members_) == 3
    predictions = np.stack([member.predict(X) for member in model.members_])
    assert len({one.tobytes() for one in predictions}) == 3
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, predictions.mean(axis=0))
    np.testing.assert_allclose(std, predictions.std(axis=0))
    np.testing.assert_array_equal(model.predict(X), mean)


def test_the_same_random_state_gives_the_same_bits_and_another_does_not(base, curve):
    X, y = curve
    first, again, other = (
        EnsembleRegressor(base, 2, random_state=seed).fit(X, y).predict(X) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_others_take_what_the_first_member_chose(curve):
    X, y = curve
    base = AnnRegressor(hidden=(6,), effort="quick", steps=100)
    model = EnsembleRegressor(base, 3, random_state=0).fit(X, y)
    first, *others = model.members_
    assert len(first.trials_) > 2
    for member in others:
        assert len(member.trials_) == 1
        assert member.activation_ == first.activation_
        assert member.learning_rate_ == first.learning_rate_
        assert member.weight_decay_ == first.weight_decay_


def test_validation_points_reach_every_member(base, curve):
    X, y = curve
    model = EnsembleRegressor(base, 2, random_state=0).fit(
        X[:80], y[:80], validation=(X[80:], y[80:])
    )
    for member in model.members_:
        assert member.validation_rmse_ == pytest.approx(member.rmse(X[80:], y[80:]))


def test_an_ensemble_stopped_early_has_the_members_it_got(base, curve, monkeypatch):
    fit = type(base).fit

    def stopped(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        self.interrupted_ = True
        return self

    monkeypatch.setattr(type(base), "fit", stopped)
    model = EnsembleRegressor(base, 5, random_state=0).fit(*curve)
    assert len(model.members_) == 1
    assert np.isfinite(model.predict(curve[0])).all()
