"""Training that knows the rounding: a little more of it, with kernels as a pack will hold them.

Rounding so that errors cancel is all that large networks need. A small one has fewer weights to
cancel with; there a few seconds of training with rounded kernels gain more. The gradient passes
through the rounding as if it were not there, so that the trainer runs as it is.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.learn.backend import tf
from twinedge.learn.examples import Examples
from twinedge.learn.neighbours import partners_of
from twinedge.learn.network import Architecture
from twinedge.learn.progress import Progress, Silent
from twinedge.learn.trainer import Stack
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.runtime.reference import evaluate
from twinedge_export.quantise import WEIGHTS, quantise

_STEPS, _BATCH = 4_000, 128
_SLOWER = 0.1  # learning rate, as a part of what the network was trained with
_ANCHORS, _POINTS = 64, 1_000  # as many as tell models apart; integers in numpy are slow


@dataclass(frozen=True)
class RoundedArchitecture(Architecture):
    """A network whose hidden kernels are rounded per output before they are used.

    Parameters
    ----------
    most : int
        Steps from zero to the largest weight of an output.
    """

    most: int = 127

    def tensors(self, stack: Any) -> list[tuple[Any, Any]]:
        """Kernels, rounded but for the last, and biases; gradients ignore the rounding."""
        *hidden, last = super().tensors(stack)
        return [*((self._straight_through(kernel), bias) for kernel, bias in hidden), last]

    def _straight_through(self, kernel: Any) -> Any:
        largest = tf.reduce_max(tf.abs(kernel), axis=1, keepdims=True)
        step = tf.maximum(largest / self.most, np.finfo(np.float32).tiny)
        return kernel + tf.stop_gradient(tf.round(kernel / step) * step - kernel)

    def rounded(self, stack: Array) -> Array:
        """Networks ``(c, size)`` with the kernels they were trained with in place of their own."""
        layers = [part for layer in self.tensors(tf.constant(stack)) for part in layer]
        flat: Array = np.concatenate([np.reshape(part, (len(stack), -1)) for part in layers], 1)
        return flat


def fine_tune(
    model: TwinRegressor,
    X_val: Array,
    y_val: Array,
    *,
    weights: str = "int8",
    seed: int = 0,
    progress: Progress | None = None,
) -> TwinRegressor:
    """Train a fitted model a little more, with the rounding its pack will have.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; it stays as it is.
    X_val : array of shape (v, f)
        Points it was not trained on.
    y_val : array of shape (v,)
        Their targets.
    weights : {"int8", "int16"}
        Type of the kernels.
    seed : int
        The same seed gives the same model on the same machine.
    progress : Progress, optional
        Is told how far the training is.

    Returns
    -------
    TwinRegressor
        Other weights, the rest the same; or ``model`` itself, where its pack predicts the
        validation points as well.
    """
    if weights not in WEIGHTS:
        raise InputError(f"weights={weights!r} is not one of {', '.join(WEIGHTS)}")
    if not len(y_val):
        raise InputError("fine-tuning is judged on validation points, and there are none")
    X_val, y_val = X_val[:_POINTS], y_val[:_POINTS]
    progress = progress or Silent()
    twins = len(model.weights_)
    order = np.random.default_rng(seed).permutation(len(model.anchor_y_))
    rows = [order[twin::twins][:_ANCHORS] for twin in range(twins)]

    def error(candidate: TwinRegressor) -> float:
        mean = evaluate(quantise(candidate, rows, weights=weights), X_val).mean
        return float(np.sqrt(np.mean(np.square(mean - y_val))))

    best, least = model, error(model)
    progress.stage("fine-tuning", _STEPS * twins)
    for networks in _trained(model, np.iinfo(WEIGHTS[weights]).max, seed, progress, least):
        candidate = copy(model)
        candidate.weights_ = networks
        if (now := error(candidate)) < least:
            best, least = candidate, now
    if best is not model:
        best.validation_rmse_ = best.rmse(X_val, y_val)
    return best


def _trained(
    model: TwinRegressor, most: int, seed: int, progress: Progress, score: float
) -> Iterator[Array]:
    """Last and averaged weights ``(twins, size)`` of a short training, rounded."""
    plain, twins = model.architecture_, len(model.weights_)
    architecture = RoundedArchitecture(plain.inputs, plain.hidden, plain.activation, most)
    x, y = model.scaling_.features(model.anchor_X_), model.scaling_.target(model.anchor_y_)
    orders = [np.random.default_rng([seed, twin]).permutation(len(y)) for twin in range(twins)]
    stack = Stack(
        architecture,
        Examples.pairs(
            x,
            y,
            np.stack(orders).astype(np.int32),
            partners_of(x, model.pairs, model.neighbors, seed),
        ),
        learning_rate=_SLOWER * model.learning_rate_,
        weight_decays=[model.weight_decay_] * twins,
        steps=_STEPS,
        batch=_BATCH,
        seeds=[seed] * twins,
        seed=seed,
    )
    stack.state = stack.state._replace(weights=model.weights_, average=model.weights_)
    while not stack.finished:
        before = stack.step
        loss = stack.advance()
        progress.advance((stack.step - before) * twins, float(loss.mean()), score)
    for networks in (stack.state.weights, stack.average()):
        if np.isfinite(networks).all():
            yield architecture.rounded(networks)
