"""Train as the paper's code does: Adadelta until the loss stops improving.

The code has Keras train step by step. Here an epoch is one call into TensorFlow, which takes a
fraction of the time and gives the same results, except for the random numbers.

Two things differ from the code. Unlabelled loops of weight zero, half of what it computes, are left
out, which only saves time. Each pair is drawn independently, while the code takes its 24 pairs from
eight closed loops. The results are our estimators with these weights inside, so that all are
evaluated alike.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from twinedge.defaults import NEIGHBORS
from twinedge.encoding.encoder import Encoding
from twinedge.estimators import AnnRegressor, TwinRegressor
from twinedge.training.batches import Examples, PointExamples
from twinedge.training.network import Architecture, FloatArray, Scaling, tf
from twinedge.training.pairs import partners_of

_DECAY, _EPSILON = 0.95, 1e-7  # Keras' constants of Adadelta
_SLOWER, _STOP = 32, 64  # epochs without a better loss
_BETTER = 1e-4  # least improvement that Keras counts when it lowers the rate


@dataclass(frozen=True)
class Passes(PointExamples):
    """Points, every row once per epoch; the last batch has the remainder.

    Parameters
    ----------
    size : int
        Number of points in a batch.
    """

    size: int

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Shuffle the rows."""
        return tf.random.experimental.stateless_shuffle(tf.range(tf.shape(data[2])[1]), seed)

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(1, batch, f)`` and targets ``(1, batch)`` of step ``k``."""
        return super().batch(0, draws[None, k * self.size : (k + 1) * self.size], *data)


class Plateaus:
    """Decides when to halve the rate and when to stop, like two of Keras' callbacks."""

    def __init__(self) -> None:
        self.rate = 1.0
        self.stopped = False
        self._loss = self._held = np.inf
        self._patience = self._hope = 0

    def note(self, loss: float, held: float) -> None:
        """Record an epoch: its mean loss, and the loss on the validation set after it."""
        self._patience = 0 if loss < self._loss - _BETTER else self._patience + 1
        self._loss = loss if self._patience == 0 else self._loss
        if self._patience == _SLOWER:
            self.rate, self._patience = self.rate / 2, 0
        self._hope = 0 if held < self._held else self._hope + 1
        self._held = min(held, self._held)
        self.stopped = self._hope == _STOP


def adadelta(
    shape: Architecture,
    examples: Examples,
    held: tuple[FloatArray, FloatArray],
    *,
    steps: int,
    batch: int,
    epochs: int,
    seed: int,
) -> tuple[FloatArray, int]:
    """Train a network; returns its last weights ``(size,)``, not the best, and the epochs taken.

    Parameters
    ----------
    shape : Architecture
        Shape of the network.
    examples : Examples
        Source of the batches.
    held : (inputs, targets)
        Validation set, which stops the training.
    steps, batch : int
        Number of batches in an epoch, and of examples in a batch.
    epochs : int
        Most epochs.
    seed : int
        Seed of the weights and batches.
    """
    tf.begin_training()
    weights, squares, updates = (
        tf.Variable(value)
        for value in (shape.initial([seed]), *np.zeros((2, 1, shape.size), np.float32))
    )

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def epoch(number: Any, rate: Any) -> Any:
        draws = examples.kind.draw(steps, batch, tf.stack([seed, number]), *examples.tensors)

        def step(k: Any, total: Any, count: Any) -> tuple[Any, Any, Any]:
            x, y = examples.kind.batch(k, draws, *examples.tensors)
            values = weights.read_value()
            with tf.GradientTape() as tape:
                tape.watch(values)
                loss = examples.kind.loss(shape.forward(values, x), y)
            tf.raw_ops.ResourceApplyAdadelta(
                var=weights.handle,
                accum=squares.handle,
                accum_update=updates.handle,
                lr=rate,
                rho=_DECAY,
                epsilon=_EPSILON,
                grad=tape.gradient(loss, values),
            )
            size = tf.cast(tf.shape(y)[1], tf.float32)
            return k + 1, total + size * loss[0], count + size

        start = (0, 0.0, 0.0)
        _, total, count = tf.while_loop(lambda k, *_: k < steps, step, start, parallel_iterations=1)
        outputs = shape.forward(weights.read_value(), held[0][None])
        return total / count, tf.reduce_mean(tf.square(outputs[0] - held[1]))

    rule, done = Plateaus(), 0
    while done < epochs and not rule.stopped:
        loss, later = epoch(tf.constant(done), tf.constant(rule.rate, tf.float32))
        rule.note(float(loss), float(later))
        done += 1
    return np.asarray(weights.numpy()[0]), done


Rows = tuple[FloatArray, FloatArray]

HIDDEN = (128, 128)
PAIRS = 24  # in a batch
POINTS = 16  # in a batch of an ordinary network
EPOCHS = {"twin": 10_000, "network": 2_000}  # never reached: training stops earlier


def published_twin(
    train: Rows,
    validation: Rows,
    seed: int,
    *,
    pairs: str | int = "all",
    neighbors: int = NEIGHBORS,
    epochs: int = EPOCHS["twin"],
) -> TwinRegressor:
    """Train a twin; ``pairs`` and ``neighbors`` as in ``TwinRegressor``."""
    scaling = published_scaling(train[0])
    x, y = scaling.features(train[0]), scaling.target(train[1])
    held = scaling.features(validation[0]), scaling.target(validation[1])
    rows = np.arange(len(y), dtype=np.int32)[None]
    shape = Architecture(2 * x.shape[1], HIDDEN, "relu")
    network, _ = adadelta(
        shape,
        Examples.pairs(x, y, rows, partners_of(x, pairs, neighbors, seed)),
        loop_pairs(*held, seed),
        steps=epoch_length(len(y)),
        batch=PAIRS,
        epochs=epochs,
        seed=seed,
    )
    model = TwinRegressor(hidden=HIDDEN, activation="relu", pairs=pairs, neighbors=neighbors)
    model.architecture_ = shape
    model.weights_, model.scaling_, model.activation_ = network[None], scaling, "relu"
    model.anchor_X_, model.anchor_y_ = train
    model.remember_columns(Encoding.numbered(x.shape[1]))
    return model


def published_network(
    train: Rows, validation: Rows, seed: int, *, epochs: int = EPOCHS["network"]
) -> AnnRegressor:
    """Train an ordinary network."""
    scaling = published_scaling(train[0])
    x, y = scaling.features(train[0]), scaling.target(train[1])
    shape = Architecture(x.shape[1], HIDDEN, "relu")
    network, _ = adadelta(
        shape,
        Examples(Passes(x.shape[1], POINTS), (x, y, np.arange(len(y), dtype=np.int32)[None])),
        (scaling.features(validation[0]), scaling.target(validation[1])),
        steps=math.ceil(len(y) / POINTS),
        batch=POINTS,
        epochs=epochs,
        seed=seed,
    )
    return AnnRegressor.from_network(shape, network[None], scaling)


def epoch_length(rows: int) -> int:
    """Batches in an epoch of a twin; as in the code, the test rows are counted in."""
    return math.ceil(5 * (rows + round(rows * 2 / 7)) / 16)


def published_scaling(X: FloatArray) -> Scaling:
    """Scale features by their largest value above the mean; the target is not scaled."""
    mean = X.mean(axis=0)
    largest = (X - mean).max(axis=0)
    return Scaling(mean, np.where(largest > 0, largest, 1.0), 0.0, 1.0)


def loop_pairs(x: FloatArray, y: FloatArray, seed: int) -> Rows:
    """Ordered pairs whose error stops training: the sides of a loop from each point."""
    rng = np.random.default_rng([seed, 1])
    loops = np.stack([[i, *rng.choice(len(y), 2, replace=False)] for i in range(len(y))])
    first, second = loops.ravel(), np.roll(loops, -1, axis=1).ravel()
    return np.concatenate([x[first], x[second]], axis=1), y[first] - y[second]
