"""Networks as a Keras model."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.training.network import Architecture, Scaling, tf, to_keras

# Keras 3 and numpy 2 disagree about a keyword.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

# A volume, a capacity in farads and a frequency in hertz.
SCALING = Scaling(np.array([5.0, 3e-12, 2e9]), np.array([2.0, 4e-13, 5e8]), 50.0, 7.0)


@pytest.fixture
def twins():
    architecture = Architecture(6, (5, 4), "silu")
    weights = architecture.initial([0, 1, 2])
    weights += np.random.default_rng(0).normal(size=weights.shape).astype(np.float32) / 10
    return architecture, weights


def points(seed):
    scaled = np.random.default_rng(seed).normal(size=(20, 3))
    return scaled * SCALING.x_scale + SCALING.x_mean


def test_the_saved_model_gives_differences_of_raw_points_in_units_of_the_target(
    twins, perceptron, tmp_path
):
    architecture, weights = twins
    to_keras(architecture, weights, SCALING).save(tmp_path / "twin.keras")
    model = tf.keras.models.load_model(tmp_path / "twin.keras")
    first, second = points(0), points(1)
    found = model.predict({"first": first, "second": second}, verbose=0)
    assert found.shape == (20, len(weights))
    pairs = np.concatenate([(p - SCALING.x_mean) / SCALING.x_scale for p in (first, second)], 1)
    expected = [7.0 * perceptron(architecture, network, pairs) for network in weights]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-3, atol=1e-4)


def test_features_go_no_further_than_the_limit(twins):
    limited = replace(SCALING, limit=0.5)
    first, second = points(0), points(1)
    assert np.abs(SCALING.features(first)).max() > 1
    found = to_keras(*twins, limited).predict({"first": first, "second": second}, verbose=0)
    inside = {"first": limited.reached(first), "second": limited.reached(second)}
    free = to_keras(*twins, SCALING).predict(inside, verbose=0)
    np.testing.assert_allclose(found, free, rtol=1e-3, atol=1e-4)


def test_a_fitted_model_equals_its_keras_model(tiny_twin, curve):
    model = to_keras(tiny_twin.architecture_, tiny_twin.weights_, tiny_twin.scaling_)
    X, _ = curve
    anchor = np.repeat(tiny_twin.anchor_X_[:1], len(X), axis=0)
    found = model.predict({"first": X, "second": anchor}, verbose=0)[:, 0]
    expected = tiny_twin.predict(X, anchors=[0], symmetric=False) - tiny_twin.anchor_y_[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
