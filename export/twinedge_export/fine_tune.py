"""Train a fitted model a little more, with the rounding its pack will have.

Rounding so that errors cancel is all that large networks need. A small one has fewer weights to
cancel with; there, a few seconds of training with rounded kernels gain more. The gradient ignores
the rounding, so the trainer runs unchanged.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from twinedge import defaults, scoring
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array
from twinedge.progress import Progress
from twinedge.runtime.reference import evaluate
from twinedge.scoring.weights import in_proportion, measured_rows, of_rows
from twinedge.training.batches import Examples, Stack, expected_seconds
from twinedge.training.network import Architecture, tf
from twinedge.training.pairs import partners_of
from twinedge_export.quantise import quantise
from twinedge_export.settings import check_weights

_STEPS, _BATCH = 4_000, 128
_TINY = 1e-9  # of the target's deviation: a smaller error is no yardstick
_SLOWER = 0.1  # learning rate, as a fraction of that of the training
_ANCHORS, _POINTS = 64, 1_000  # enough to tell models apart; integer numpy is slow


@dataclass(frozen=True)
class RoundedArchitecture(Architecture):
    """A network whose hidden kernels are rounded per output before they are used.

    Parameters
    ----------
    most : int
        Steps from zero to the largest weight of an output.
    """

    most: int = 127

    def arrays(self, stack: Array) -> list[tuple[Array, Array]]:
        """Kernels, rounded but for the last, and biases."""
        *hidden, last = super().arrays(stack)
        return [*((self._rounded(kernel), bias) for kernel, bias in hidden), last]

    def tensors(self, stack: Any) -> list[tuple[Any, Any]]:
        """Return the same as tensors; gradients ignore the rounding."""
        *hidden, last = super().tensors(stack)
        return [*((self._straight_through(kernel), bias) for kernel, bias in hidden), last]

    def _rounded(self, kernel: Array) -> Array:
        largest = np.abs(kernel).max(axis=1, keepdims=True)
        step = np.maximum(largest / self.most, np.finfo(np.float32).tiny)
        found: Array = np.rint(kernel / step) * step
        return found

    def _straight_through(self, kernel: Any) -> Any:
        largest = tf.reduce_max(tf.abs(kernel), axis=1, keepdims=True)
        step = tf.maximum(largest / self.most, np.finfo(np.float32).tiny)
        return kernel + tf.stop_gradient(tf.round(kernel / step) * step - kernel)

    def rounded(self, stack: Array) -> Array:
        """Networks ``(c, size)`` with their rounded kernels, as used in training."""
        layers = [part for layer in self.arrays(stack) for part in layer]
        flat: Array = np.concatenate([np.reshape(part, (len(stack), -1)) for part in layers], 1)
        return flat


def fine_tune(
    model: TwinRegressor,
    X_val: Array,
    y_val: Array,
    *,
    sample_weight: Array | None = None,
    weights: str = defaults.WEIGHTS,
    refused: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> TwinRegressor:
    """Train a fitted model a little more, with the rounding its pack will have.

    Parameters
    ----------
    model : TwinRegressor
        Fitted; not modified.
    X_val : array of shape (v, f)
        Points it was not trained on.
    y_val : array of shape (v,)
        Their targets.
    sample_weight : array of shape (v,), optional
        How much each of them counts.
    weights : {"int8", "int16"}
        Type of the kernels.
    refused : bool
        Whether the pack of ``model`` itself will not do, for its errors or for its spread.
    seed : int
        The same seed yields the same model on the same machine.
    progress : Progress, optional
        Receives the progress of the training.

    Returns
    -------
    TwinRegressor
        A copy with new weights, or ``model`` itself if its pack predicts the validation points as
        well and will do.
    """
    check_weights(weights)
    if not len(y_val):
        raise InputError("fine-tuning is scored on validation points, and there are none")
    X_val, y_val, each = X_val[:_POINTS], y_val[:_POINTS], of_rows(sample_weight, slice(_POINTS))
    progress = progress or Progress()
    twins = len(model.weights_)
    order = np.random.default_rng(seed).permutation(len(model.anchor_y_))
    if model.targets_ > 1:
        order = order[np.isin(order, model.with_all_targets()[1])]
    shares = [order[twin::twins] for twin in range(twins)]
    rows = [in_proportion(mine, model.sample_weights_, _ANCHORS) for mine in shares]

    exact = np.maximum(model.rmse(X_val, y_val, each), _TINY * model.scaling_.y_scale)

    def error(candidate: TwinRegressor) -> float:
        pack = quantise(candidate, rows, weights=weights)
        if not pack.others:
            return scoring.rmse(evaluate(pack, X_val).mean, y_val, each)
        pairs = zip(pack.singles, y_val.T, strict=True)
        errors = [
            scoring.rmse(*measured_rows(evaluate(one, X_val).mean, y, each)) for one, y in pairs
        ]
        return float(np.max(errors / exact))  # no target may lose what another gains

    before = error(model)
    best, least = model, np.inf if refused else before
    steps = _STEPS * twins
    seconds = expected_seconds(steps, _BATCH, model.architecture_)
    progress.stage("fine-tuning", steps, seconds=seconds)
    for networks in _trained(model, np.iinfo(np.dtype(weights)).max, seed, progress, before):
        candidate = copy(model)
        candidate.weights_ = networks
        if (now := error(candidate)) < least:
            best, least = candidate, now
    if best is not model:
        best.validation_rmse_ = best.rmse(X_val, y_val, each)
    return best


def _trained(
    model: TwinRegressor, most: int, seed: int, progress: Progress, score: float
) -> Iterator[Array]:
    """Last and averaged weights ``(twins, size)`` of a short training, rounded."""
    plain, twins = model.architecture_, len(model.weights_)
    architecture = RoundedArchitecture(
        plain.inputs, plain.hidden, plain.activation, most, targets=plain.targets
    )
    x = model.inputs_of(model.scaling_.features(model.anchor_X_))
    y = model.scaling_.target(model.anchor_y_)
    orders = [np.random.default_rng([seed, twin]).permutation(len(y)) for twin in range(twins)]
    stack = Stack(
        architecture,
        Examples.pairs(
            x,
            y,
            np.stack(orders).astype(np.int32),
            partners_of(x, model.pairs, model.neighbors, seed),
            model.sample_weights_,
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
        stack.limit_sums()
        progress.advance((stack.step - before) * twins, float(loss.mean()), score)
    for networks in (stack.state.weights, stack.average()):
        if np.isfinite(networks).all():
            yield architecture.rounded(networks)
