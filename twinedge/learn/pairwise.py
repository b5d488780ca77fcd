"""Evaluating a stack of twins on points and anchors, in blocks of bounded memory.

The first layer is split in two halves, one for each point of a pair, so that each point passes
through it once and a pair costs one addition there.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.learn.backend import tf
from twinedge.learn.network import ACTIVATIONS, Architecture, FloatArray

_BLOCK = 1 << 22  # hidden values alive at a time: 16 MB


def differences(
    architecture: Architecture,
    stack: FloatArray,
    x: FloatArray,
    anchors: FloatArray,
    nearest: npt.NDArray[np.intp] | None = None,
    *,
    symmetric: bool = True,
) -> Iterator[FloatArray]:
    """Predicted differences between points and anchors, block by block.

    Parameters
    ----------
    architecture : Architecture
        Shape of the twins; ``inputs`` is twice the number of features.
    stack : array of shape (c, size)
        Weights of ``c`` twins.
    x : array of shape (c, n, f)
        Scaled points for each twin.
    anchors : array of shape (c, k, f)
        Scaled anchors of each twin.
    nearest : array of shape (c, n, m), optional
        Which anchors each point is compared with; all of them by default.
    symmetric : bool
        Average F(x, a) and -F(a, x).

    Yields
    ------
    array of shape (c, rows, k or m)
        Scaled differences ``y(x) - y(anchor)`` for the next rows of ``x``.
    """
    count, total, _ = x.shape
    members = anchors.shape[1] if nearest is None else nearest.shape[2]
    rows = max(1, _BLOCK // (count * members * max(architecture.hidden)))
    run = _compiled(architecture, symmetric, nearest is not None)
    for start in range(0, total, rows):
        part = slice(start, start + rows)
        chosen = () if nearest is None else (nearest[:, part].astype(np.int32),)
        yield run(stack, x[:, part], anchors, *chosen).numpy()


def last_hidden(
    architecture: Architecture, stack: FloatArray, x: FloatArray, anchors: FloatArray
) -> FloatArray:
    """Mean over the anchors of the last hidden layer, for pairs (anchor, point).

    Parameters
    ----------
    architecture : Architecture
        Shape of the twins.
    stack : array of shape (c, size)
        Weights of ``c`` twins.
    x : array of shape (n, f)
        Scaled points.
    anchors : array of shape (c, k, f)
        Scaled anchors of each twin.

    Returns
    -------
    array of shape (c, n, width)
    """
    rows = max(1, _BLOCK // (len(stack) * anchors.shape[1] * max(architecture.hidden)))
    run = _compiled_hidden(architecture)
    blocks = [
        run(stack, np.broadcast_to(part, (len(stack), *part.shape)), anchors).numpy()
        for part in (x[start : start + rows] for start in range(0, len(x), rows))
    ]
    return np.concatenate(blocks, axis=1)


def signals(
    architecture: Architecture,
    stack: FloatArray,
    readout: FloatArray,
    x: FloatArray,
    anchors: FloatArray,
    nearest: npt.NDArray[np.intp] | None = None,
) -> Iterator[FloatArray]:
    """Everything that pairs of points and anchors have to tell, block by block.

    Parameters are those of ``differences``, and the second output of each twin, ``(c, w + 1)``.

    Yields
    ------
    array of shape (3, c, rows, k or m)
        (F(x, a) - F(a, x)) / 2, (F(x, a) + F(a, x)) / 2 and the second output of (a, x), scaled.
    """
    count, total, _ = x.shape
    members = anchors.shape[1] if nearest is None else nearest.shape[2]
    rows = max(1, _BLOCK // (count * members * max(architecture.hidden)))
    run = _compiled_signals(architecture, nearest is not None)
    for start in range(0, total, rows):
        part = slice(start, start + rows)
        chosen = () if nearest is None else (nearest[:, part].astype(np.int32),)
        yield run(stack, x[:, part], anchors, readout, *chosen).numpy()


def _hidden(architecture: Architecture, stack: Any, x: Any, anchors: Any, nearest: Any) -> Any:
    """Return how to evaluate the last hidden layer of both orders of pairs, and the output.

    Two functions that give ``(c, rows, k, width)``, of (point, anchor) and of (anchor, point); and
    the kernel and bias that the output reads them with.
    """
    features = architecture.inputs // 2
    activate = ACTIVATIONS[architecture.activation]
    (kernel, bias), *hidden, last = architecture.tensors(stack)

    def evaluate(of_x: Any, of_anchors: Any) -> Any:
        mine = tf.matmul(x, of_x)[:, :, None]
        theirs = tf.matmul(anchors, of_anchors) + bias
        theirs = tf.gather(theirs, nearest[0], batch_dims=1) if nearest else theirs[:, None]
        h = activate(mine + theirs)
        shape = tf.shape(h)
        h = tf.reshape(h, (shape[0], shape[1] * shape[2], h.shape[-1]))
        for hidden_kernel, hidden_bias in hidden:
            h = activate(tf.matmul(h, hidden_kernel) + hidden_bias)
        return tf.reshape(h, (shape[0], shape[1], shape[2], h.shape[-1]))

    first, second = kernel[:, :features], kernel[:, features:]
    return (lambda: evaluate(first, second)), (lambda: evaluate(second, first)), last


@lru_cache(maxsize=16)
def _compiled_hidden(architecture: Architecture) -> Callable[..., Any]:
    points = tf.TensorSpec((None, None, architecture.inputs // 2), tf.float32)
    signature = [tf.TensorSpec((None, architecture.size), tf.float32), points, points]

    @tf.function(input_signature=signature, autograph=False)  # type: ignore[untyped-decorator]
    def run(stack: Any, x: Any, anchors: Any) -> Any:
        _, back, _ = _hidden(architecture, stack, x, anchors, ())
        return tf.reduce_mean(back(), axis=2)

    return run  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _compiled_signals(architecture: Architecture, chosen: bool) -> Callable[..., Any]:
    points = tf.TensorSpec((None, None, architecture.inputs // 2), tf.float32)
    readouts = tf.TensorSpec((None, architecture.hidden[-1] + 1), tf.float32)
    signature = [tf.TensorSpec((None, architecture.size), tf.float32), points, points, readouts]
    if chosen:
        signature.append(tf.TensorSpec((None, None, None), tf.int32))

    @tf.function(input_signature=signature, autograph=False)  # type: ignore[untyped-decorator]
    def run(stack: Any, x: Any, anchors: Any, readout: Any, *nearest: Any) -> Any:
        forward, back, (kernel, bias) = _hidden(architecture, stack, x, anchors, nearest)
        again = back()
        there, behind = _output(forward(), kernel, bias), _output(again, kernel, bias)
        hard = _output(again, readout[:, :-1, None], readout[:, None, -1:])
        return tf.stack([(there - behind) / 2, (there + behind) / 2, hard])

    return run  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _compiled(architecture: Architecture, symmetric: bool, chosen: bool) -> Callable[..., Any]:
    points = tf.TensorSpec((None, None, architecture.inputs // 2), tf.float32)
    signature = [tf.TensorSpec((None, architecture.size), tf.float32), points, points]
    if chosen:
        signature.append(tf.TensorSpec((None, None, None), tf.int32))

    @tf.function(input_signature=signature, autograph=False)  # type: ignore[untyped-decorator]
    def run(stack: Any, x: Any, anchors: Any, *nearest: Any) -> Any:
        forward, back, last = _hidden(architecture, stack, x, anchors, nearest)
        there = _output(forward(), *last)
        return (there - _output(back(), *last)) / 2 if symmetric else there

    return run  # type: ignore[no-any-return]


def _output(hidden: Any, kernel: Any, bias: Any) -> Any:
    """F ``(c, rows, k)`` from the last hidden layer ``(c, rows, k, width)``."""
    shape = tf.shape(hidden)
    flat = tf.reshape(hidden, (shape[0], shape[1] * shape[2], hidden.shape[-1]))
    return tf.reshape(tf.matmul(flat, kernel) + bias, shape[:3])
