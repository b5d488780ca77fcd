"""The network of the paper, stacks of them in one array, and as a Keras model.

TensorFlow is loaded when a training or a conversion begins, not on import, and not to predict: that
takes numpy alone. Threads: a matrix of 128 by 128 is too small to share among cores; what scales is
several networks side by side. So when a training begins each operation gets one thread, and
``n_jobs`` decides how many stacks train at a time. A program that imported TensorFlow itself keeps
its own settings.

A network is a multilayer perceptron with an output for each target. All its kernels and biases are
in one flat vector, and a stack of ``c`` networks is an array of shape ``(c, size)``: an optimiser
step is then a handful of operations, however many networks there are. Of several targets, the last
axis of an array counts them; of a single one, there is no such axis.

Scaling: tables have wild values, such as a misplaced decimal point or a zero for a missing
measurement. A few of them would dominate mean and deviation, and a network extrapolates in a
straight line to wherever they are. So one row in two thousand at either end of a long table is
ignored by the scaling, in any table whatever is a hundred interquartile ranges away from the middle
half of its column, and features are clipped a quarter beyond the range of the rest. Other short
tables, where every row counts, are scaled as they are.

A device takes float32. A column that hardly varies for its size, such as a time in seconds since
1970, is rounded to that before it is learnt from.

The Keras model takes two points and returns a difference for each twin. Scaling is part of it.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count

from twinedge.scoring.target_curve import TargetCurve
from twinedge.scoring.weights import mean_and_std, measured_rows
from twinedge.silence import silence

# Read when the library is loaded: no start-up messages, and no oneDNN, which is slower at this size
# and blocks differently on each machine, which changes the last bits.
_VARIABLES = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


class _TensorFlow:
    """TensorFlow, loaded on first use: importing twinedge changes nothing about the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._module: Any = None
        self._to_configure = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded(), name)

    def _loaded(self) -> Any:
        with self._lock:
            if self._module is None:
                self._to_configure = "tensorflow" not in sys.modules
                if self._to_configure:
                    for name, value in _VARIABLES.items():
                        os.environ.setdefault(name, value)
                with silence():  # on x86-64 it looks for a GPU before it reads its log level
                    self._module = import_module("tensorflow")
                if self._to_configure:
                    logging.getLogger("tensorflow").setLevel(logging.ERROR)
            return self._module

    def begin_training(self) -> None:
        """Set up threads, unless the program imported TensorFlow itself or has already used it."""
        threads = self._loaded().config.threading
        with self._lock:
            if not self._to_configure:
                return
            self._to_configure = False
            if threads.get_intra_op_parallelism_threads():
                return  # the program has chosen
            with suppress(RuntimeError):  # TensorFlow has already been used
                threads.set_intra_op_parallelism_threads(1)
                threads.set_inter_op_parallelism_threads(cpu_count())


tf: Any = _TensorFlow()

FloatArray = npt.NDArray[Any]


def _relu(x: FloatArray) -> None:
    np.maximum(x, 0, out=x)


def _silu(x: FloatArray) -> None:
    # x / (1 + exp(-x)), by the one of these functions that numpy vectorises on every processor.
    x *= 0.5
    tanh = np.tanh(x)
    tanh += 1
    x *= tanh


# Of arrays, in place; TensorFlow's have the same names.
ACTIVATIONS: dict[str, Callable[[FloatArray], None]] = {"relu": _relu, "silu": _silu}

# Largest sum of a unit of silu. A pack holds its curve up to 1023; the rest is for inputs that were
# not observed. relu has no curve: there, a pack takes sums of any size.
LARGEST_SUM = 600.0


@dataclass(frozen=True)
class Architecture:
    """Shape of one network."""

    inputs: int  # the features of a pair for a twin, of one point for an ordinary network
    hidden: tuple[int, ...]  # width of each hidden layer
    activation: str  # "relu" or "silu", of the hidden layers; the output is linear
    targets: int = field(default=1, kw_only=True)  # outputs, which share the hidden layers

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer, first to last."""
        widths = [self.inputs, *self.hidden, self.targets]
        return list(pairwise(widths))

    @property
    def sizes(self) -> list[int]:
        """Lengths of the parts of the flat vector: kernel, bias, kernel, bias, ..."""
        return [size for rows, columns in self.layers for size in (rows * columns, columns)]

    @property
    def size(self) -> int:
        """Number of parameters of one network."""
        return sum(self.sizes)

    def initial(self, seeds: list[int]) -> FloatArray:
        """Draw Glorot-uniform kernels and zero biases, one network ``(size,)`` for each seed."""
        stack = np.zeros((len(seeds), self.size), np.float32)
        for network, seed in zip(stack, seeds, strict=True):
            rng = np.random.default_rng(seed)
            for kernel, _ in self.parts(network):
                limit = np.sqrt(6 / sum(kernel.shape))
                kernel[...] = rng.uniform(-limit, limit, kernel.shape)
        return stack

    def parts(self, network: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """View a network as the kernel ``(inputs, outputs)`` and bias of each layer."""
        pieces = np.split(network, np.cumsum(self.sizes)[:-1])
        return [
            (kernel.reshape(shape), bias)
            for shape, kernel, bias in zip(self.layers, pieces[::2], pieces[1::2], strict=True)
        ]

    def decays(self, weight_decays: list[float]) -> FloatArray:
        """Weight decay of each parameter ``(c, size)``: it acts on kernels, not on biases."""
        kernels = np.repeat([1.0, 0.0] * len(self.layers), self.sizes)
        return np.outer(weight_decays, kernels).astype(np.float32)

    def arrays(self, stack: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Kernel ``(c, inputs, outputs)`` and bias ``(c, 1, outputs)`` of each layer of a stack."""
        return self._layered(np.split(stack, np.cumsum(self.sizes)[:-1], axis=1), np.reshape)

    def tensors(self, stack: Any) -> list[tuple[Any, Any]]:
        """Return the same for a stack that is a tensor."""
        return self._layered(tf.split(stack, self.sizes, axis=1), tf.reshape)

    def _layered(self, pieces: list[Any], reshape: Callable[..., Any]) -> list[tuple[Any, Any]]:
        return [
            (reshape(kernel, (-1, *shape)), reshape(bias, (-1, 1, shape[1])))
            for shape, kernel, bias in zip(self.layers, pieces[::2], pieces[1::2], strict=True)
        ]

    def of_target(self, stack: FloatArray, target: int) -> "tuple[Architecture, FloatArray]":
        """Take the networks of one target from a stack; returns their shape and ``(c, size)``."""
        if self.targets == 1:
            return self, stack
        head, width = sum(self.sizes[:-2]), self.hidden[-1]
        kernel = stack[:, head : head + width * self.targets].reshape(len(stack), width, -1)
        parts = stack[:, :head], kernel[..., target], stack[:, [target - self.targets]]
        return replace(self, targets=1), np.concatenate(parts, axis=1)

    def outputs(self, stack: FloatArray, x: FloatArray) -> FloatArray:
        """Return outputs ``(c, n)``, or ``(c, n, m)``, of a stack for inputs ``(c, n, inputs)``."""
        activate = ACTIVATIONS[self.activation]
        *hidden, (kernel, bias) = self.arrays(stack)
        for hidden_kernel, hidden_bias in hidden:
            x = np.matmul(x, hidden_kernel)
            x += hidden_bias
            activate(x)
        found: FloatArray = np.matmul(x, kernel) + bias
        return found[..., 0] if self.targets == 1 else found

    def limit_sums(self, stack: FloatArray, x: FloatArray) -> bool:
        """Shrink units of silu whose sums are too large for a pack, in place.

        The weights that such a unit is read with grow in turn. Far from zero silu is a straight
        line, so the networks stay nearly the same.

        Parameters
        ----------
        stack : array of shape (c, size)
            Networks; those that diverged are left alone.
        x : array of shape (c, n, inputs)
            Inputs to observe the sums at.

        Returns
        -------
        bool
            Whether there were any.
        """
        found = False
        for network, h in zip(stack, x, strict=True):
            for (kernel, bias), (after, _) in pairwise(self.parts(network)):
                with np.errstate(over="ignore", invalid="ignore"):
                    h = h @ kernel + bias
                reach = np.abs(h).max(axis=0)
                if not np.isfinite(reach).all():
                    break
                if reach.max() > LARGEST_SUM:
                    found = True
                    share = np.minimum(1, LARGEST_SUM / np.maximum(reach, 1)).astype(np.float32)
                    kernel *= share
                    bias *= share
                    after /= share[:, None]
                    h *= share
                _silu(h)
        return found

    def tied(self, gradient: Any) -> Any:
        """Return the gradient ``(c, size)`` of a stack as its networks follow it: each its own."""
        return gradient

    def forward(self, stack: Any, x: Any) -> Any:
        """Return the outputs as a tensor, which knows its gradients."""
        activate = getattr(tf.nn, self.activation)
        *hidden, (kernel, bias) = self.tensors(stack)
        for hidden_kernel, hidden_bias in hidden:
            x = activate(tf.matmul(x, hidden_kernel) + hidden_bias)
        found = tf.matmul(x, kernel) + bias
        return tf.squeeze(found, 2) if self.targets == 1 else found


_OF_TARGET = ("y_mean", "y_scale")
FARTHEST = 1e9  # standard deviations; squares and sums of these still fit into float32
_MANY_ROWS = 4096
_ROWS_TO_A_WILD_ONE = 2000
_FENCE = 100.0  # interquartile ranges beyond the quartiles: what is farther is wild in any table
# A row dominates a column with this share of its variance, if it is this many deviations out.
_DOMINANT, _FAR = 0.25, 6.0
_HEADROOM, _LEAST_REACH = 1.25, 2.0
_INDICATOR = 0.5  # scale of an input of a category or calendar: a rare level is not a wild value
_FINE = 2.0**16  # deviations from zero where steps of float32 are a hundredth of a deviation
_NOISE = 1e-12  # of the mean: the spread of a constant column is rounding noise, not quite zero


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of the features ``(f,)`` and of the target, taken from the training rows.

    Scaled features are clipped to ``limit``. With a ``curve``, networks learn the target on it:
    ``y_mean`` and ``y_scale`` are of that, and so are the units "on the curve". Those of several
    targets are arrays ``(m,)``.
    """

    x_mean: FloatArray
    x_scale: FloatArray
    y_mean: Any
    y_scale: Any
    limit: float = FARTHEST
    curve: TargetCurve | None = None

    @classmethod
    def of(
        cls,
        x: FloatArray,
        y: FloatArray,
        indicators: npt.NDArray[np.bool_] | None = None,
        weights: FloatArray | None = None,
        curve: TargetCurve | None = None,
    ) -> "Scaling":
        """Z-score of these rows; a constant column is only shifted.

        ``indicators`` ``(f,)`` says which features are inputs of categories and calendars,
        ``weights`` ``(n,)`` how much each row counts, ``curve`` what is learnt of the target.
        """
        numbers = np.ones(x.shape[1], bool) if indicators is None else ~indicators
        x_mean, x_scale, limit = _scales(x, numbers, weights)
        coarse = np.abs(x_mean) > _FINE * x_scale
        if coarse.any():
            x_mean, x_scale, limit = _scales(_rounded(x, coarse), numbers, weights)
            x_mean = _rounded(x_mean, coarse)
        return cls(x_mean, x_scale, 0.0, 1.0, limit).bent(y, weights, curve)

    def bent(
        self, y: FloatArray, weights: FloatArray | None, curve: TargetCurve | None
    ) -> "Scaling":
        """Return the same scaling of the features, with a curve for the targets of these rows."""
        if y.ndim == 2:
            each = [self.bent(*measured_rows(one, one, weights)[1:], curve) for one in y.T]
            return self._of_targets(each)
        y = y if curve is None else curve.forward(y)
        y_mean, y_scale = map(float, mean_and_std(y, 0, weights))
        y_scale = 1.0 if y_scale <= _NOISE * abs(y_mean) else y_scale
        return replace(self, y_mean=y_mean, y_scale=y_scale, curve=curve)

    def _of_targets(self, each: "Sequence[Scaling]") -> "Scaling":
        """Return the scaling of several targets, made of those of each."""
        mean, scale = (np.array([getattr(one, name) for one in each]) for name in _OF_TARGET)
        return replace(self, y_mean=mean, y_scale=scale)

    def of_target(self, target: int) -> "Scaling":
        """Return the scaling of one of several targets."""
        mean, scale = (float(getattr(self, name)[target]) for name in _OF_TARGET)
        return replace(self, y_mean=mean, y_scale=scale)

    @property
    def _coarse(self) -> npt.NDArray[np.bool_]:
        """Columns that were rounded as a device does: then their mean is a float32, too."""
        far = np.abs(self.x_mean) > _FINE * self.x_scale
        return np.asarray(far & (self.x_mean == self.x_mean.astype(np.float32)))

    def features(self, x: FloatArray) -> FloatArray:
        """Scaled features, in float32 as the networks take them."""
        scaled = (_rounded(x, self._coarse) - self.x_mean) / self.x_scale
        # Far outside the training data an answer means nothing, but it should be a number.
        return np.clip(scaled, -self.limit, self.limit).astype(np.float32)

    def reached(self, x: FloatArray) -> FloatArray:
        """Return features clipped as the networks see them, in their own units."""
        reach = self.limit * self.x_scale
        return np.asarray(np.clip(x, self.x_mean - reach, self.x_mean + reach))

    def target(self, y: FloatArray) -> FloatArray:
        """Scaled target, in float32, as the networks learn it."""
        return self.scaled(self.curved(y))

    def scaled(self, c: FloatArray) -> FloatArray:
        """Scaled target, in float32, of targets on the curve."""
        scaled: FloatArray = ((c - self.y_mean) / self.y_scale).astype(np.float32)
        return scaled

    def restored(self, scaled: FloatArray) -> FloatArray:
        """Return scaled targets in their own units, in float64."""
        return self.uncurved(np.asarray(scaled, np.float64) * self.y_scale + self.y_mean)

    def curved(self, y: FloatArray) -> FloatArray:
        """Return targets on the curve: themselves if there is none."""
        return y if self.curve is None else self.curve.forward(y)

    def uncurved(self, c: FloatArray) -> FloatArray:
        """Return targets on the curve in their own units."""
        return c if self.curve is None else self.curve.inverse(c)

    def deviation(self, c: FloatArray, d: FloatArray) -> FloatArray:
        """Return deviations ``d`` on the curve, around ``c``, in units of the target."""
        return d if self.curve is None else self.curve.deviation(c, d)


def _rounded(x: FloatArray, coarse: npt.NDArray[np.bool_]) -> FloatArray:
    """Round columns as a device does, so that nothing is learnt from digits that it cannot see."""
    with np.errstate(over="ignore"):  # infinity is as good as any number out of range
        return np.where(coarse, x.astype(np.float32), x) if coarse.any() else x


def _scales(
    x: FloatArray, numbers: npt.NDArray[np.bool_], weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, float]:
    """Mean and scale ``(f,)`` of columns, and the limit; ``numbers`` ``(f,)`` are no indicators."""
    wild = len(x) // _ROWS_TO_A_WILD_ONE if len(x) > _MANY_ROWS else 0
    ordered, quarter = np.sort(x[:, numbers], axis=0), len(x) // 4
    ends = ordered[[wild, -1 - wild]]
    low, high = ordered[quarter], ordered[-1 - quarter]
    room = np.where(high > low, _FENCE * (high - low), np.inf)
    tame = ends.clip(low - room, high + room)
    clips = numbers.any() and (wild > 0 or not np.array_equal(tame, ends))
    if clips:
        x = x.copy()
        x[:, numbers] = x[:, numbers].clip(*tame)
    x_mean, x_scale = mean_and_std(x, 0, weights)
    x_scale[~numbers] = _INDICATOR
    x_scale = np.where(x_scale <= _NOISE * np.abs(x_mean), 1.0, x_scale)
    reach = np.abs((tame - x_mean[numbers]) / x_scale[numbers]).max(initial=0.0)
    if clips or reach > max(_FAR, np.sqrt(_DOMINANT * len(x))):
        return x_mean, x_scale, max(_LEAST_REACH, _HEADROOM * float(reach))
    return x_mean, x_scale, FARTHEST


def to_keras(architecture: Architecture, weights: FloatArray, scaling: Scaling) -> Any:
    """Build the model: inputs ``first`` and ``second`` ``(n, f)``, output ``(n, twins)``."""
    layers = tf.keras.layers
    features = architecture.inputs // 2
    inputs = [layers.Input((features,), name=name) for name in ("first", "second")]
    # Not Normalization, which treats a spread below 1e-7 (say, of a capacitance in farads) as zero.
    centre = layers.Rescaling(1.0, offset=-scaling.x_mean, name="centre")
    scale = layers.Rescaling(1 / scaling.x_scale, name="scale")
    scaled = [scale(centre(point)) for point in inputs]
    if scaling.limit < FARTHEST:
        scaled = [tf.keras.ops.clip(point, -scaling.limit, scaling.limit) for point in scaled]
    pair = layers.Concatenate(name="pair")(scaled)
    outputs = []
    for twin, network in enumerate(weights):
        x, dense = pair, []
        for depth, (_, width) in enumerate(architecture.layers):
            last = depth == len(architecture.hidden)
            activation = None if last else architecture.activation
            dense.append(layers.Dense(width, activation, name=f"twin{twin}_layer{depth}"))
            x = dense[-1](x)
        for layer, (kernel, bias) in zip(dense, architecture.parts(network), strict=True):
            layer.set_weights([kernel, bias])
        outputs.append(x)
    stacked = layers.Concatenate(name="twins")(outputs) if len(outputs) > 1 else outputs[0]
    outputs = layers.Rescaling(scaling.y_scale, name="unscale")(stacked)
    return tf.keras.Model(inputs, outputs, name="twin")
