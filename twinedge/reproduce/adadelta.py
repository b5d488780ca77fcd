"""The training of the paper's code: Adadelta at a rate of 1, until nothing gets better.

The code has Keras train step by step. Here an epoch is one call into TensorFlow, which takes a
fraction of the time and gives the same, but for the random numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from twinedge.learn.backend import tf
from twinedge.learn.examples import Examples, Points
from twinedge.learn.network import Architecture, FloatArray

_DECAY, _EPSILON = 0.95, 1e-7  # Keras' constants of Adadelta
_SLOWER, _STOP = 32, 64  # epochs without a better loss
_BETTER = 1e-4  # what Keras takes for a better loss, where it makes training slower


@dataclass(frozen=True)
class Passes(Points):
    """Points, every row once in an epoch; the last batch has what is left.

    Parameters
    ----------
    size : int
        Points of a batch.
    """

    size: int

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Put the rows in an order."""
        return tf.random.experimental.stateless_shuffle(tf.range(tf.shape(data[2])[1]), seed)

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(1, batch, f)`` and targets ``(1, batch)`` of step ``k``."""
        return super().batch(0, draws[None, k * self.size : (k + 1) * self.size], *data)


class Plateaus:
    """When to halve the rate and when to stop, as two of Keras' callbacks decide."""

    def __init__(self) -> None:
        self.rate = 1.0
        self.stopped = False
        self._loss = self._held = np.inf
        self._patience = self._hope = 0

    def note(self, loss: float, held: float) -> None:
        """Take note of an epoch: its mean loss, and that on the validation set after it."""
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
        Of the network.
    examples : Examples
        Where batches come from.
    held : (inputs, targets)
        Validation set: stops the training.
    steps, batch : int
        Batches of an epoch and examples of a batch.
    epochs : int
        Most of them.
    seed : int
        Decides everything.
    """
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
