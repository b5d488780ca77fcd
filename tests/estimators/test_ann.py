import numpy as np
import pytest

from twinedge import AnnRegressor
from twinedge.training.network import Architecture, Scaling


@pytest.fixture(scope="module")
def model(curve):
    X, y = curve
    network = AnnRegressor(
        hidden=(12, 12),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=3000,
        random_state=0,
    )
    return network.fit(X[:80], y[:80], validation=(X[80:100], y[80:100]))


def test_a_prediction_is_the_network_in_units_of_the_target(model, perceptron, curve):
    X, _ = curve
    scaled = (X - model.scaling_.x_mean) / model.scaling_.x_scale
    output = perceptron(model.architecture_, model.weights_[0], scaled)
    expected = output * model.scaling_.y_scale + model.scaling_.y_mean
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)


def test_it_beats_the_mean_and_a_linear_model_by_far(model, curve):
    X, y = curve
    Z = np.column_stack([X, np.ones(len(X))])
    linear = Z[100:] @ np.linalg.lstsq(Z[:80], y[:80])[0]
    error = model.rmse(X[100:], y[100:])
    assert error < 0.15 * np.std(y[100:])
    assert error < 0.7 * np.sqrt(np.mean((linear - y[100:]) ** 2))


def test_the_validation_error_is_that_of_the_validation_points(model, curve):
    X, y = curve
    expected = np.sqrt(np.mean((model.predict(X[80:100]) - y[80:100]) ** 2))
    assert model.validation_rmse_ == pytest.approx(expected)
    assert model.trials_[-1]["rmse_val"] == pytest.approx(expected, rel=1e-4)


def test_the_same_random_state_gives_the_same_bits_and_another_does_not(curve, tiny):
    first, again = (AnnRegressor(**tiny).fit(*curve) for _ in range(2))
    np.testing.assert_array_equal(first.weights_, again.weights_)
    other = AnnRegressor(**{**tiny, "random_state": 1}).fit(*curve)
    assert not np.array_equal(first.weights_, other.weights_)


def test_predictions_across_blocks_are_those_of_one_block(model, curve, monkeypatch):
    whole = model.predict(curve[0])
    monkeypatch.setattr("twinedge.estimators.networks._BLOCK", 7)
    np.testing.assert_allclose(model.predict(curve[0]), whole, rtol=1e-6)


def test_weights_from_elsewhere_predict():
    architecture = Architecture(1, (1,), "relu")
    weights = np.array([[2.0, 0.0, 3.0, 1.0]], np.float32)  # 3 relu(2 x) + 1
    scaling = Scaling(np.array([10.0]), np.array([5.0]), 100.0, 0.5)
    model = AnnRegressor.from_network(architecture, weights, scaling)
    np.testing.assert_allclose(model.predict([[15.0], [0.0]]), [103.5, 100.5])


def test_another_number_of_features_is_refused(model, curve):
    with pytest.raises(ValueError, match=r"^X has 2 features, .* 3 features as input\.$"):
        model.predict(curve[0][:, :2])
