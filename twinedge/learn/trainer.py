"""The compiled training loop: hundreds of steps of AdamW in one call into TensorFlow.

Several networks train side by side as one stack. Each step draws a fresh batch of examples (pairs
for a twin, points for an ordinary network), so the n^2 pairs never exist in memory. The random
numbers of a step depend on nothing but the seed and the number of the step: a loop that was
stopped and resumed ends with the same bits as one that was not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import pi
from typing import Any, NamedTuple

import numpy as np

from twinedge.learn.backend import tf
from twinedge.learn.examples import Examples, Points
from twinedge.learn.network import Architecture, FloatArray

CHUNK = 500  # steps in one call: long enough to hide the call, short enough to stop at once
_SELDOM = 10  # steps between two updates of decay and average, which change slowly
_AVERAGING = 0.999  # decay per step of the average of the weights
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-7  # Adam's constants


class State(NamedTuple):
    """Everything a stack of ``c`` networks needs to go on training. Arrays ``(c, size)``."""

    weights: FloatArray
    first: FloatArray
    second: FloatArray
    average: FloatArray
    step: int


@dataclass(frozen=True)
class Setting:
    """How one network is trained: AdamW with cosine decay to zero.

    Parameters
    ----------
    learning_rate : float
        Step size at the start.
    weight_decay : float
        Decoupled decay of the kernels, multiplied by the learning rate.
    """

    learning_rate: float
    weight_decay: float


class Stack:
    """Networks of one architecture in training, side by side.

    Parameters
    ----------
    architecture : Architecture
        Shape of each network.
    examples : Examples
        Where batches come from, and which rows each network may see.
    learning_rate : float
        Step size at the start, the same for all: that lets TensorFlow's fused Adam serve the
        whole stack.
    weight_decays : list of float
        One for each network.
    steps : int
        Length of the whole training: the learning rate reaches zero here.
    batch : int
        Examples per step.
    seeds : list of int
        One for each network: its initial weights.
    seed : int
        Seed of the batches.
    """

    def __init__(
        self,
        architecture: Architecture,
        examples: Examples,
        *,
        learning_rate: float,
        weight_decays: list[float],
        steps: int,
        batch: int,
        seeds: list[int],
        seed: int,
    ) -> None:
        self.steps = steps
        self.step = 0
        self._examples = examples
        self._run = _compiled(architecture, examples.kind, batch)
        self._rate = tf.constant(learning_rate, tf.float32)
        self._decay = np.outer(weight_decays, architecture.kernel_mask()).astype(np.float32)
        self._seed = seed
        weights = architecture.initial(seeds)
        zeros = np.zeros_like(weights)
        self._variables = [tf.Variable(a) for a in (weights, zeros, zeros, weights)]

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.steps

    @property
    def state(self) -> State:
        """A copy of where the training stands; set it to go on from there."""
        weights, first, second, average = (variable.numpy() for variable in self._variables)
        return State(weights, first, second, average, self.step)

    @state.setter
    def state(self, state: State) -> None:
        for variable, value in zip(self._variables, state[:4], strict=True):
            variable.assign(value)
        self.step = state.step

    def average(self) -> FloatArray:
        """Averaged weights ``(c, size)``: what predicts best."""
        return np.asarray(self._variables[3].numpy())

    def advance(self) -> FloatArray:
        """Train for one chunk of steps; returns the mean loss ``(c,)`` of each network."""
        count = min(CHUNK, self.steps - self.step)
        loss = self._run(
            *self._variables,
            tf.constant([self.step, count, self.steps]),
            self._rate,
            self._decay,
            tf.constant([self._seed, self.step]),
            *self._examples.tensors,
        )
        self.step += count
        return np.asarray(loss.numpy())


@lru_cache(maxsize=64)
def _compiled(architecture: Architecture, kind: Points, batch: int) -> Callable[..., Any]:
    """Return the loop for one architecture: traced once for all stacks of the same length."""

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def run(
        weights: Any,
        first: Any,
        second: Any,
        average: Any,
        span: Any,
        top_rate: Any,
        decay: Any,
        seed: Any,
        *data: Any,
    ) -> Any:
        start, count, steps = tf.unstack(span)
        draws = kind.draw(count, batch, seed, *data)

        def step(k: Any, loss: Any) -> tuple[Any, Any]:
            x, y = kind.batch(k, draws, *data)
            values = weights.read_value()
            with tf.GradientTape() as tape:
                tape.watch(values)
                losses = kind.loss(architecture.forward(values, x), y)
            gradient = tape.gradient(losses, values)
            done = start + k + 1
            t = tf.cast(done, tf.float32)
            rate = top_rate * 0.5 * (1 + tf.cos(pi * t / tf.cast(steps, tf.float32)))
            tf.raw_ops.ResourceApplyAdam(
                var=weights.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=tf.pow(_FIRST, t),
                beta2_power=tf.pow(_SECOND, t),
                lr=rate,
                beta1=_FIRST,
                beta2=_SECOND,
                epsilon=_EPSILON,
                grad=gradient,
            )

            def settle() -> Any:
                """Decay the weights and follow them with the average, ten steps' worth at once."""
                now = weights.read_value()
                now -= _SELDOM * rate * decay * now
                weights.assign(now)
                # A short memory at first, so that the initial weights are forgotten.
                keep = tf.minimum(_AVERAGING**_SELDOM, (1 + t) / (10 + t))
                average.assign(now + keep * (average - now))
                return t

            tf.cond((done % _SELDOM == 0) | (done == steps), settle, lambda: t)
            return k + 1, loss + losses

        loss = tf.zeros(weights.shape[0])
        _, loss = tf.while_loop(lambda k, _: k < count, step, (0, loss), parallel_iterations=1)
        return loss / tf.cast(count, tf.float32)

    return run  # type: ignore[no-any-return]
