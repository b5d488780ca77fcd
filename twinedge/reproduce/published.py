"""Training as the paper's code does it: Keras, Adadelta at a rate of 1, until nothing gets better.

As in the code, the last weights predict, not the best. Against the code, in its favour: pairs are
drawn inside TensorFlow, and unlabelled loops of weight zero, half of what the code computes, are
left out. What comes out are our estimators with these weights inside, so that all are evaluated
alike.
"""

import math
from typing import Any

import numpy as np

from twinedge.learn import AnnRegressor, TwinRegressor
from twinedge.learn.backend import tf
from twinedge.learn.neighbours import partners_of
from twinedge.learn.network import Architecture, FloatArray
from twinedge.learn.scaling import Scaling

Points = tuple[FloatArray, FloatArray]

HIDDEN = (128, 128)
PAIRS = 24  # in a batch
POINTS = 16  # in a batch of an ordinary network
EPOCHS = {"twin": 10_000, "network": 2_000}  # never reached: training stops before
_SLOWER, _STOP = 32, 64  # epochs without a better loss


def published_twin(
    train: Points,
    validation: Points,
    seed: int,
    *,
    pairs: str | int = "all",
    neighbors: int = 32,
    epochs: int = EPOCHS["twin"],
) -> TwinRegressor:
    """Train a twin; ``pairs`` and ``neighbors`` as in ``TwinRegressor``."""
    scaling = _scaling(train[0])
    x, y = scaling.features(train[0]), scaling.target(train[1])
    held = scaling.features(validation[0]), scaling.target(validation[1])
    partners = partners_of(x, pairs, neighbors, seed)
    # A fifth of all rows is for testing, and counts in the length of an epoch.
    steps = math.ceil(5 * (len(y) + round(len(y) * 2 / 7)) / 16)
    batches = _random_pairs(x, y, partners, steps, seed)
    network, trained = _train(
        Architecture(2 * x.shape[1], HIDDEN, "relu"),
        _loop_pairs(*held, seed),
        seed,
        x=batches,
        steps_per_epoch=steps,
        shuffle=False,  # the pairs are random as they come
        epochs=epochs,
    )
    model = TwinRegressor(hidden=HIDDEN, activation="relu", pairs=pairs, neighbors=neighbors)
    model.architecture_ = Architecture(2 * x.shape[1], HIDDEN, "relu")
    model.weights_, model.scaling_, model.activation_ = network[None], scaling, "relu"
    model.anchor_X_, model.anchor_y_ = train
    model.n_features_in_, model.steps_ = x.shape[1], trained * steps
    return model


def published_network(
    train: Points, validation: Points, seed: int, *, epochs: int = EPOCHS["network"]
) -> AnnRegressor:
    """Train an ordinary network."""
    scaling = _scaling(train[0])
    shape = Architecture(train[0].shape[1], HIDDEN, "relu")
    network, _ = _train(
        shape,
        (scaling.features(validation[0]), scaling.target(validation[1])),
        seed,
        x=scaling.features(train[0]),
        y=scaling.target(train[1]),
        batch_size=POINTS,
        epochs=epochs,
    )
    return AnnRegressor.from_network(shape, network[None], scaling)


def _scaling(X: FloatArray) -> Scaling:
    """Features divided by the largest above their mean; the target as it is."""
    mean = X.mean(axis=0)
    largest = (X - mean).max(axis=0)
    return Scaling(mean, np.where(largest > 0, largest, 1.0), 0.0, 1.0)


def _train(shape: Architecture, held: Points, seed: int, **fitting: Any) -> tuple[FloatArray, int]:
    """Train until the rule of the paper's code says stop; returns weights ``(size,)``, epochs."""
    keras = tf.keras
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dense(width, activation=shape.activation) for width in shape.hidden]
    model = keras.Sequential([keras.Input((shape.inputs,)), *layers, keras.layers.Dense(1)])
    # XLA is slower for networks of this size.
    model.compile(keras.optimizers.Adadelta(learning_rate=1.0), "mse", jit_compile=False)
    history = model.fit(
        **fitting,
        validation_data=held,
        validation_batch_size=len(held[1]),
        callbacks=[
            keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=_SLOWER, min_lr=0),
            keras.callbacks.EarlyStopping("val_loss", patience=_STOP),
        ],
        verbose=0,
    )
    network = np.empty(shape.size, np.float32)
    for (kernel, bias), layer in zip(shape.parts(network), model.layers, strict=True):
        kernel[...], bias[...] = layer.get_weights()
    return network, len(history.epoch)


def _random_pairs(
    x: FloatArray, y: FloatArray, partners: FloatArray | None, steps: int, seed: int
) -> Any:
    """Endless batches of ordered pairs, drawn an epoch at a time to be cheap."""
    points, targets = tf.constant(x), tf.constant(y)
    shape = steps, PAIRS

    def epoch(number: Any) -> tuple[Any, Any]:
        keys = [tf.stack([tf.constant(seed, tf.int64), 3 * number + k]) for k in range(3)]
        draw = tf.random.stateless_uniform
        first = draw(shape, keys[0], 0, len(y), tf.int32)
        if partners is None:
            second = draw(shape, keys[1], 0, len(y), tf.int32)
        else:
            position = draw(shape, keys[1], 0, partners.shape[1], tf.int32)
            second = tf.gather_nd(tf.constant(partners), tf.stack([first, position], -1))
            swap = draw(shape, keys[2], 0, 2, tf.int32) == 1
            first, second = tf.where(swap, second, first), tf.where(swap, first, second)
        pairs = tf.concat([tf.gather(points, first), tf.gather(points, second)], -1)
        return pairs, tf.gather(targets, first) - tf.gather(targets, second)

    return tf.data.Dataset.counter().map(epoch).prefetch(1).unbatch().prefetch(64)


def _loop_pairs(x: FloatArray, y: FloatArray, seed: int) -> Points:
    """Ordered pairs whose error stops the training: a loop from each point through two others."""
    rng = np.random.default_rng([seed, 1])
    loops = np.stack([[i, *rng.choice(len(y), 2, replace=False)] for i in range(len(y))])
    first, second = loops.ravel(), np.roll(loops, -1, axis=1).ravel()
    return np.concatenate([x[first], x[second]], axis=1), y[first] - y[second]
