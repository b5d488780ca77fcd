"""Training steps: the batch that each sees, and the compiled loop that runs hundreds per call.

Several networks train side by side as one stack. Each step draws a fresh batch of examples (pairs
for a twin, points for an ordinary network) inside the compiled loop, so the n^2 pairs never exist
in memory. The random numbers of a step depend only on the seed and the number of the step: a loop
that was stopped and resumed ends with the same bits as one that was not.

All networks of a stack share the drawn numbers, but each reads them through its own order of the
rows, so that two networks see different batches, and the batches of a network do not depend on the
rest of the stack.

Rows with weights are drawn in proportion to them. The drawn numbers are then shares of all weight,
which each network looks up in the running sum over its own order of the rows.

Of several targets, a row or a pair counts for those that were measured. A target that is seldom
measured counts the more where it is, so that all have about the same share of the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import pi
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.scoring.weights import of_rows, running_shares
from twinedge.training.network import Architecture, FloatArray, tf

IndexArray = npt.NDArray[np.int32]

_MOST_BALANCE = 10.0  # a target that is measured more seldom would make steps erratic


@dataclass(frozen=True)
class PointExamples:
    """The input is ``x_i``, the target ``y_i``.

    Data: x ``(n, f)``, y ``(n,)`` and the rows ``(c, m)`` each network sees; with weights, also
    the running shares ``(c, m)`` of these rows. Of several targets, y is ``(n, targets)``.
    """

    features: int
    # How much each of several targets counts where it was measured; none for a single one.
    balance: tuple[float, ...] = field(default=(), kw_only=True)

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw rows for ``count`` batches."""
        _, _, *rows = data
        return draw_rows((count, batch), seed, *rows)

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, f)`` and targets ``(c, batch)`` of step ``k``."""
        x, y, *rows = data
        points = drawn_rows(draws[k], *rows)
        return tf.gather(x, points), tf.gather(y, points)

    def loss(self, outputs: Any, targets: Any) -> Any:
        """Return what each network minimises, ``(c,)``: the mean square error."""
        if not self.balance:
            return tf.reduce_mean(tf.square(outputs - targets), axis=1)
        off = tf.where(tf.math.is_finite(targets), outputs - targets, 0.0)
        return tf.reduce_mean(tf.square(off) * self.balance, axis=[1, 2])


@dataclass(frozen=True)
class Pairs(PointExamples):
    """The input is ``(x_i, x_j)``, the target ``y_i - y_j``, for any two rows."""

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw the rows of both points, for ``count`` batches."""
        _, _, *rows = data
        return draw_rows((count, batch, 2), seed, *rows)

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, 2 f)`` and differences ``(c, batch)`` of step ``k``."""
        x, y, *rows = data
        return self._join(drawn_rows(draws[k], *rows), x, y)

    def _join(self, pairs: Any, x: Any, y: Any) -> tuple[Any, Any]:
        shape = tf.shape(pairs)
        points = tf.reshape(tf.gather(x, pairs), (shape[0], shape[1], 2 * self.features))
        targets = tf.gather(y, pairs)
        return points, targets[:, :, 0] - targets[:, :, 1]


@dataclass(frozen=True)
class ListedPairs(Pairs):
    """Pairs of a row with one of its listed partners, in either order.

    Data: x and y as for ``PointExamples``, the partners ``(n, m)`` of each row, and the rows; with
    weights, also the running shares of the rows, and those ``(n, m)`` of the partners.
    """

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw row, position in the list of partners, and order."""
        _, _, partners, rows, *shares = data
        if shares:
            return tf.random.stateless_uniform((count, batch, 3), seed, dtype=tf.float64)
        limits = tf.stack([tf.shape(rows)[1], tf.shape(partners)[1], 2])
        return whole_numbers((count, batch, 3), seed, tf.int32.max) % limits

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, 2 f)`` and differences ``(c, batch)`` of step ``k``."""
        x, y, partners, rows, *shares = data
        row, position, swap = tf.unstack(draws[k], axis=-1)
        first = drawn_rows(row, rows, *shares[:1])
        position = tf.broadcast_to(position, tf.shape(first))
        if shares:
            of_partners = tf.gather(shares[1], first)  # (c, batch, m)
            position = _position(of_partners, position[..., None])[..., 0]
            swap = tf.cast(2 * swap, tf.int32)
        second = tf.gather_nd(partners, tf.stack([first, position], axis=-1))
        forward, backward = tf.stack([first, second], -1), tf.stack([second, first], -1)
        return self._join(tf.where(swap[:, None] == 1, backward, forward), x, y)


@dataclass(frozen=True)
class Examples:
    """Training data of a stack of networks."""

    kind: PointExamples  # how a batch is made from rows
    tensors: tuple[Any, ...]  # its data, in the order that ``kind`` takes it

    @classmethod
    def points(
        cls, x: FloatArray, y: FloatArray, rows: IndexArray, weights: FloatArray | None = None
    ) -> "Examples":
        """Single points; ``rows`` ``(c, m)`` are those each network sees, ``weights`` of all."""
        kind = PointExamples(x.shape[1], balance=_balance(y, rows, weights, 1))
        return cls(kind, (x, y, rows, *_shares(weights, rows)))

    @classmethod
    def pairs(
        cls,
        x: FloatArray,
        y: FloatArray,
        rows: IndexArray,
        partners: IndexArray | None = None,
        weights: FloatArray | None = None,
    ) -> "Examples":
        """Pairs of any two rows, or of a row and one of its ``partners`` ``(n, m)``."""
        shares, balance = _shares(weights, rows), _balance(y, rows, weights, 2)
        if partners is None:
            return cls(Pairs(x.shape[1], balance=balance), (x, y, rows, *shares))
        more = _shares(weights, partners)
        kind = ListedPairs(x.shape[1], balance=balance)
        return cls(kind, (x, y, partners, rows, *shares, *more))


def _shares(weights: FloatArray | None, rows: IndexArray) -> tuple[FloatArray, ...]:
    """Return the running shares of rows ``(c, m)``, if they have weights."""
    return () if weights is None else (running_shares(weights[rows]),)


def _balance(
    y: FloatArray, rows: IndexArray, weights: FloatArray | None, points: int
) -> tuple[float, ...]:
    """How much each target ``(n, m)`` counts where examples of so many points measure it."""
    if y.ndim == 1:
        return ()
    seen = np.unique(rows)
    known = np.average(np.isfinite(y[seen]), axis=0, weights=of_rows(weights, seen))
    return tuple(np.minimum(1 / np.maximum(known, 1e-3) ** points, _MOST_BALANCE).tolist())


def draw_rows(shape: Any, seed: Any, rows: Any, shares: Any = None) -> Any:
    """Draw numbers that stand for rows: positions, or with weights shares of all weight."""
    if shares is None:
        return whole_numbers(shape, seed, tf.shape(rows)[1])
    return tf.random.stateless_uniform(shape, seed, dtype=tf.float64)


def drawn_rows(numbers: Any, rows: Any, shares: Any = None) -> Any:
    """Return the rows ``(c, ...)`` that drawn numbers ``(...)`` stand for in each network."""
    if shares is None:
        return tf.gather(rows, numbers, axis=1)
    networks = tf.shape(rows)[:1]
    every = tf.broadcast_to(tf.reshape(numbers, (1, -1)), [networks[0], tf.size(numbers)])
    found = tf.gather(rows, _position(shares, every), batch_dims=1)
    return tf.reshape(found, tf.concat([networks, tf.shape(numbers)], 0))


def _position(shares: Any, numbers: Any) -> Any:
    """Return the position of the first running share that exceeds a number."""
    return tf.searchsorted(shares, numbers, side="right")


def whole_numbers(shape: Any, seed: Any, limit: Any) -> Any:
    """Draw whole numbers from 0 to below a limit."""
    return tf.random.stateless_uniform(shape, seed, 0, limit, tf.int32)


CHUNK = 500  # steps per call: enough to hide its cost, few enough to stop quickly
_SELDOM = 10  # steps between two updates of decay and average, which change slowly
_AVERAGING = 0.999  # decay per step of the average of the weights
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-7  # Adam's constants


# To observe how large sums become: how many examples are drawn, and how many of them are used at
# random and because they are far out. Fewer are drawn if they are long.
_DRAWN, _FEWEST_DRAWN, _NUMBERS = 16_384, 256, 1 << 19
_OBSERVED = 1024


class State(NamedTuple):
    """Everything a stack of ``c`` networks needs to continue training. Arrays ``(c, size)``."""

    weights: FloatArray
    first: FloatArray
    second: FloatArray
    average: FloatArray
    step: int


@dataclass(frozen=True)
class Setting:
    """How one network is trained: AdamW with cosine decay to zero."""

    learning_rate: float  # at the start
    weight_decay: float  # decoupled, of the kernels, multiplied by the learning rate


# Examples times weights that two cores of 2020 get through in a second of training.
_PER_SECOND = 1e9


def expected_seconds(steps: int, batch: int, architecture: Architecture) -> float:
    """About how long so many steps of one network take, one by one."""
    return steps * batch * architecture.size / _PER_SECOND


class Stack:
    """Networks of one architecture in training, side by side.

    Parameters
    ----------
    architecture : Architecture
        Shape of each network.
    examples : Examples
        Where batches come from, and which rows each network may see.
    learning_rate : float
        Step size at the start; TensorFlow's fused Adam serves a stack in which it is the same.
    weight_decays, seeds : list of float, list of int
        Decay and seed of the initial weights of each network.
    steps : int
        Length of the whole training: the learning rate reaches zero here.
    batch : int
        Examples per step.
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
        self._architecture = architecture
        self._examples = examples
        self._observed: FloatArray | None = None
        self._run = _compiled(architecture, examples.kind, batch)
        self._rate = tf.constant(learning_rate, tf.float32)
        self._decay = architecture.decays(weight_decays)
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
        """A copy of the state of the training; set it to continue from there."""
        weights, first, second, average = (variable.numpy() for variable in self._variables)
        return State(weights, first, second, average, self.step)

    @state.setter
    def state(self, state: State) -> None:
        for variable, value in zip(self._variables, state[:4], strict=True):
            variable.assign(value)
        self.step = state.step

    def average(self) -> FloatArray:
        """Averaged weights ``(c, size)``, which predict best."""
        return np.asarray(self._variables[3].numpy())

    def limit_sums(self) -> None:
        """Keep the networks, and their averages, within what a pack can hold."""
        if self._architecture.activation != "silu":
            return
        if self._observed is None:
            self._observed = self._observe()
        weights, _, _, average = self._variables
        for variable in (weights, average):
            stack = variable.numpy()
            if self._architecture.limit_sums(stack, self._observed):
                variable.assign(stack)

    def _observe(self) -> FloatArray:
        """Draw inputs ``(c, n, inputs)``: some at random, and of many those farthest out."""
        count = max(_FEWEST_DRAWN, min(_DRAWN, _NUMBERS // self._architecture.inputs))
        kind, data = self._examples.kind, self._examples.tensors
        draws = kind.draw(1, count, tf.constant([self._seed, -1]), *data)
        x = np.asarray(kind.batch(0, draws, *data)[0].numpy())
        far = np.argsort(-np.abs(x).max(axis=2), axis=1, kind="stable")[:, :_OBSERVED]
        return np.concatenate([x[:, :_OBSERVED], np.take_along_axis(x, far[..., None], axis=1)], 1)

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
def _compiled(architecture: Architecture, kind: PointExamples, batch: int) -> Callable[..., Any]:
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
            gradient = architecture.tied(tape.gradient(losses, values))
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

            def decay_and_average() -> Any:
                """Decay the weights and follow them with the average, ten steps' worth at once."""
                now = weights.read_value()
                now -= _SELDOM * rate * decay * now
                weights.assign(now)
                # A short memory at first, so that the initial weights are forgotten.
                keep = tf.minimum(_AVERAGING**_SELDOM, (1 + t) / (10 + t))
                average.assign(now + keep * (average - now))
                return t

            tf.cond((done % _SELDOM == 0) | (done == steps), decay_and_average, lambda: t)
            return k + 1, loss + losses

        loss = tf.zeros(weights.shape[0])
        _, loss = tf.while_loop(lambda k, _: k < count, step, (0, loss), parallel_iterations=1)
        return loss / tf.cast(count, tf.float32)

    return run  # type: ignore[no-any-return]
