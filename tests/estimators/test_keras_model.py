import time
from dataclasses import replace

import numpy as np
import pytest

from twinedge.training.network import Architecture, Scaling, from_keras, save_keras, tf, to_keras

# Keras 3 and numpy 2 disagree about a keyword.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

# A volume, a capacity in farads and a frequency in hertz.
SCALING = Scaling(np.array([5.0, 3e-12, 2e9]), np.array([2.0, 4e-13, 5e8]), 50.0, 7.0)


@pytest.fixture(params=[(1, (6,), "relu"), (3, (5, 4), "silu")], ids=["one", "three"])
def twins(request):
    count, hidden, activation = request.param
    architecture = Architecture(6, hidden, activation)
    weights = architecture.initial(list(range(count)))
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


def test_features_go_no_further_than_the_limit(twins, tmp_path):
    architecture, weights = twins
    limited = replace(SCALING, limit=0.5)
    to_keras(architecture, weights, limited).save(tmp_path / "twin.keras")
    model = tf.keras.models.load_model(tmp_path / "twin.keras")
    first, second = points(0), points(1)
    assert np.abs(SCALING.features(first)).max() > 1
    found = model.predict({"first": first, "second": second}, verbose=0)
    inside = {"first": limited.reached(first), "second": limited.reached(second)}
    free = to_keras(architecture, weights, SCALING).predict(inside, verbose=0)
    np.testing.assert_allclose(found, free, rtol=1e-3, atol=1e-4)
    again, kept = from_keras(model)
    assert again == architecture
    np.testing.assert_array_equal(kept, weights)


def test_a_round_trip_through_a_file_keeps_every_bit(twins, tmp_path):
    architecture, weights = twins
    to_keras(architecture, weights, SCALING).save(tmp_path / "twin.keras")
    again, found = from_keras(tf.keras.models.load_model(tmp_path / "twin.keras"))
    assert again == architecture
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, weights)


def test_the_same_model_gives_the_same_bytes_whenever_it_is_saved(twins, tmp_path):
    for name in ("first", "second"):
        save_keras(to_keras(*twins, SCALING), tmp_path / f"{name}.keras")
        time.sleep(2.1)  # a zip archive tells times two seconds apart
    first, second = ((tmp_path / f"{name}.keras").read_bytes() for name in ("first", "second"))
    assert first == second
    _, weights = from_keras(tf.keras.models.load_model(tmp_path / "second.keras"))
    np.testing.assert_array_equal(weights, twins[1])


def test_a_fitted_model_equals_its_keras_model(tiny_twin, curve):
    model = to_keras(tiny_twin.architecture_, tiny_twin.weights_, tiny_twin.scaling_)
    X, _ = curve
    anchor = np.repeat(tiny_twin.anchor_X_[:1], len(X), axis=0)
    found = model.predict({"first": X, "second": anchor}, verbose=0)[:, 0]
    expected = tiny_twin.predict(X, anchors=[0], symmetric=False) - tiny_twin.anchor_y_[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def foreign(*names, activation="relu"):
    layers = [tf.keras.layers.Dense(2, activation, name=name) for name in names]
    return tf.keras.Sequential([tf.keras.layers.Input((4,)), *layers])


@pytest.mark.parametrize(
    "names", [(), ("dense",), ("twin0_layer0", "twin2_layer1"), ("twin1_layer0",)], ids=str
)
def test_a_model_of_someone_else_is_refused(complaint, names):
    assert "no twins" in complaint(from_keras, foreign(*names))


def test_an_activation_that_is_not_ours_is_refused(complaint):
    model = foreign("twin0_layer0", "twin0_layer1", activation="tanh")
    assert "tanh" in complaint(from_keras, model)
