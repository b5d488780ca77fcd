"""The loop of the published training does what Keras does, and its rules are Keras' callbacks."""

import numpy as np
import pytest

from benchmarks.reproduction.published import Passes, Plateaus, adadelta
from twinedge.training.batches import Examples
from twinedge.training.network import Architecture, tf

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

SHAPE = Architecture(3, (8, 5), "relu")


@pytest.fixture
def points(curve):
    X, y = (np.asarray(part, np.float32) for part in curve)
    return X[:40], y[:40]


def passes(points, size):
    x, y = points
    return Examples(Passes(x.shape[1], size), (x, y, np.arange(len(y), dtype=np.int32)[None]))


def batches(examples, epoch, seed, steps):
    """The batches of an epoch, as the loop draws them."""
    draws = examples.kind.draw(steps, 0, tf.constant([seed, epoch]), *examples.tensors)
    return [examples.kind.batch(k, draws, *examples.tensors) for k in range(steps)]


def keras_network(weights):
    layers = [tf.keras.layers.Dense(width, activation="relu") for width in SHAPE.hidden]
    model = tf.keras.Sequential(
        [tf.keras.Input((SHAPE.inputs,)), *layers, tf.keras.layers.Dense(1)]
    )
    for (kernel, bias), layer in zip(SHAPE.parts(weights), model.layers, strict=True):
        layer.set_weights([kernel, bias])
    return model


def test_every_row_is_seen_once_in_an_epoch_and_the_order_changes(points):
    examples = passes(points, 16)
    orders = []
    for epoch in (0, 1):
        seen = [y.numpy().ravel() for _, y in batches(examples, epoch, 5, 3)]
        assert [len(one) for one in seen] == [16, 16, 8]
        orders.append(np.concatenate(seen))
    np.testing.assert_array_equal(*map(np.sort, orders))
    np.testing.assert_array_equal(np.sort(orders[0]), np.sort(points[1]))
    assert not np.array_equal(*orders)


def test_the_steps_are_those_of_keras(points):
    examples, epochs, steps = passes(points, 16), 3, 3
    weights, done = adadelta(SHAPE, examples, points, steps=steps, batch=16, epochs=epochs, seed=5)
    assert done == epochs
    model = keras_network(SHAPE.initial([5])[0])
    model.compile(tf.keras.optimizers.Adadelta(learning_rate=1.0), "mse")
    for epoch in range(epochs):
        for x, y in batches(examples, epoch, 5, steps):
            model.train_on_batch(x[0], y[0])
    for (kernel, bias), layer in zip(SHAPE.parts(weights), model.layers, strict=True):
        for ours, theirs in zip((kernel, bias), layer.get_weights(), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    start = SHAPE.initial([5])[0]
    assert np.abs(weights - start).max() > 0.01  # it did learn


def test_the_rules_are_those_of_keras():
    rng = np.random.default_rng(0)
    losses = np.concatenate([np.linspace(2, 1, 20), 1 + 1e-5 * rng.standard_normal(400)])
    held = np.concatenate([np.linspace(3, 2, 150), 2 + 0.1 * rng.random(300)])
    model = keras_network(SHAPE.initial([0])[0])
    model.compile(tf.keras.optimizers.Adadelta(learning_rate=1.0), "mse")
    callbacks = [
        tf.keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=32, min_lr=0),
        tf.keras.callbacks.EarlyStopping("val_loss", patience=64),
    ]
    for one in callbacks:
        one.set_model(model)
        one.on_train_begin()
    model.stop_training = False
    rule = Plateaus()
    for epoch, (loss, later) in enumerate(zip(losses, held, strict=False)):
        for one in callbacks:
            one.on_epoch_end(epoch, {"loss": loss, "val_loss": later})
        rule.note(float(loss), float(later))
        assert rule.rate == pytest.approx(float(model.optimizer.learning_rate)), epoch
        assert rule.stopped == model.stop_training, epoch
        if rule.stopped:
            break
    assert (rule.stopped, epoch) == (True, 213)
    assert rule.rate < 0.1


def test_training_ends_by_its_rule(points):
    x, y = points
    weights, done = adadelta(
        SHAPE, passes(points, 16), (x, 0 * y), steps=3, batch=16, epochs=500, seed=1
    )
    assert 64 < done < 500
    assert np.isfinite(weights).all()


def test_the_same_seed_gives_the_same_bits_and_another_does_not(points):
    first, again, other = (
        adadelta(SHAPE, passes(points, 16), points, steps=3, batch=16, epochs=2, seed=seed)[0]
        for seed in (1, 1, 2)
    )
    assert first.tobytes() == again.tobytes() != other.tobytes()
