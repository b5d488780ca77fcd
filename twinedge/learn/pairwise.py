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


@lru_cache(maxsize=64)
def _compiled(architecture: Architecture, symmetric: bool, chosen: bool) -> Callable[..., Any]:
    features = architecture.inputs // 2
    activate = ACTIVATIONS[architecture.activation]
    points = tf.TensorSpec((None, None, features), tf.float32)
    signature = [tf.TensorSpec((None, architecture.size), tf.float32), points, points]
    if chosen:
        signature.append(tf.TensorSpec((None, None, None), tf.int32))

    @tf.function(input_signature=signature, autograph=False)  # type: ignore[untyped-decorator]
    def run(stack: Any, x: Any, anchors: Any, *nearest: Any) -> Any:
        (kernel, bias), *hidden, (last_kernel, last_bias) = architecture.tensors(stack)

        def evaluate(of_x: Any, of_anchors: Any) -> Any:
            """F in one order of the pair, given each point's half of the first kernel."""
            mine = tf.matmul(x, of_x)[:, :, None]
            theirs = tf.matmul(anchors, of_anchors) + bias
            theirs = tf.gather(theirs, nearest[0], batch_dims=1) if nearest else theirs[:, None]
            h = activate(mine + theirs)
            shape = tf.shape(h)
            h = tf.reshape(h, (shape[0], shape[1] * shape[2], h.shape[-1]))
            for hidden_kernel, hidden_bias in hidden:
                h = activate(tf.matmul(h, hidden_kernel) + hidden_bias)
            return tf.reshape(tf.matmul(h, last_kernel) + last_bias, shape[:3])

        first, second = kernel[:, :features], kernel[:, features:]
        forward = evaluate(first, second)
        return (forward - evaluate(second, first)) / 2 if symmetric else forward

    return run  # type: ignore[no-any-return]
