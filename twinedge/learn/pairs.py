"""Pairs of points: how they are formed, which anchors each twin gets, and evaluating twins on them.

The first layer is split into two halves, one for each point of a pair, so that each point passes
through it once and a pair costs one addition there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from twinedge.dealing import check_count, check_rows, deal_out
from twinedge.errors import InputError
from twinedge.learn.network import ACTIVATIONS, Architecture, FloatArray, Scaling, tf
from twinedge.learn.parameters import one_of, positive_integer


def nearest(points: FloatArray, queries: FloatArray, count: int) -> npt.NDArray[np.intp]:
    """Rows ``(n, count)`` of the points nearest to each query, nearest first."""
    search = NearestNeighbors(n_neighbors=min(count, len(points))).fit(points)
    found: npt.NDArray[np.intp] = search.kneighbors(queries, return_distance=False)
    return found


def nearest_others(points: FloatArray, count: int) -> npt.NDArray[np.int32]:
    """Rows ``(n, count)`` of the points nearest to each point, itself left out."""
    search = NearestNeighbors(n_neighbors=min(count, len(points) - 1)).fit(points)
    # Without queries, the search leaves out each point itself, but not its duplicates.
    found: npt.NDArray[np.int32] = search.kneighbors(return_distance=False).astype(np.int32)
    return found


def random_others(rows: int, count: int, seed: int) -> npt.NDArray[np.int32]:
    """Pick ``count`` distinct other rows for each row: the paper's training-set multiplier."""
    rng = np.random.default_rng([seed, 2])
    count = min(count, rows - 1)
    partners = np.empty((rows, count), np.int32)
    for row in range(rows):
        others = rng.choice(rows - 1, count, replace=False)
        partners[row] = others + (others >= row)
    return partners


def partners_of(
    x: FloatArray, pairs: Any, neighbors: Any, seed: int
) -> npt.NDArray[np.int32] | None:
    """Rows each point is paired with in training, ``(n, m)``; None for every row.

    Parameters
    ----------
    x : array of shape (n, f)
        Scaled training points.
    pairs : "all", "neighbors" or int
        Any two points; each point and its nearest; or each point and this many others at random.
    neighbors : int
        How many nearest points.
    seed : int
        Seed of the random others.
    """
    neighbors = positive_integer("neighbors", neighbors)
    if not isinstance(pairs, str):
        return random_others(len(x), positive_integer("pairs", pairs), seed)
    if one_of("pairs", pairs, ("all", "neighbors")) == "all":
        return None
    return nearest_others(x, neighbors)


# Thousands of anchors predict the same as hundreds to the last digit, but take much longer.
_MANY, _ENOUGH = 4096, 256


def deal(anchors: Any, count: int, twins: int) -> npt.NDArray[np.intp]:
    """Deal anchors out to twins.

    Parameters
    ----------
    anchors : "auto", "all", int or array of int
        All points for every twin, with "auto" only some if there are thousands; or this many random
        ones, or these rows, dealt out in turn so that each twin gets its share.
    count : int
        Number of training points.
    twins : int
        Number of networks that share them.

    Returns
    -------
    array of shape (twins, k)
        Rows of the training points.
    """
    if isinstance(anchors, str):
        if anchors not in ("auto", "all"):
            raise InputError(
                f"anchors={anchors!r} is not 'auto', 'all', a number or a list of rows"
            )
        everyone = np.arange(count)
        if anchors == "auto" and count > _MANY:
            everyone = np.sort(_shuffled(count)[:_ENOUGH])
        return np.tile(everyone, (twins, 1))
    if isinstance(anchors, Integral):
        check_count(anchors, count, twins)
        return deal_out(_shuffled(count)[: int(anchors)], twins)
    return deal_out(check_rows(anchors, count, twins, twice=True), twins)


def _shuffled(count: int) -> npt.NDArray[np.intp]:
    return np.random.default_rng(0).permutation(count).astype(np.intp)


@dataclass(frozen=True)
class ExtraPairs:
    """Pairs to train on whose difference is known, or proposed, but not their targets.

    Parameters
    ----------
    points : array of shape (p, f)
        The points the pairs are made of, in their own units.
    rows : array of int of shape (m, 2)
        First and second point of each pair, as rows of ``points``.
    differences : array of shape (m,)
        y(first) - y(second), in units of the target.
    """

    points: FloatArray
    rows: npt.NDArray[np.int64]
    differences: FloatArray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def first(self) -> FloatArray:
        """First points ``(m, f)``."""
        return self.points[self.rows[:, 0]]

    @property
    def second(self) -> FloatArray:
        """Second points ``(m, f)``."""
        return self.points[self.rows[:, 1]]

    def scaled(self, scaling: Scaling) -> "ExtraPairs":
        """Return the pairs in the units that networks are trained in."""
        differences = (self.differences / scaling.y_scale).astype(np.float32)
        return ExtraPairs(scaling.features(self.points), self.rows, differences)

    def checked(self, features: int) -> "ExtraPairs":
        """Return the pairs as plain arrays; refuse shapes and rows that do not match."""
        points = np.asarray(self.points, np.float64)
        rows, differences = np.asarray(self.rows), np.asarray(self.differences, np.float64)
        if points.ndim != 2 or points.shape[1] != features:
            raise InputError(f"extra: points have shape {points.shape}; (p, {features}) is needed")
        if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
            raise InputError("extra: rows must be whole numbers of shape (m, 2)")
        if differences.shape != (len(rows),):
            raise InputError(f"extra: {len(rows)} pairs have {differences.size} differences")
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(points):
            raise InputError(f"extra: rows must be 0 to {len(points) - 1}")
        if not (np.isfinite(points).all() and np.isfinite(differences).all()):
            raise InputError("extra: points and differences must be finite numbers")
        return ExtraPairs(points, rows.astype(np.int64), differences)


_BLOCK = 1 << 22  # hidden values held at a time: 16 MB


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
    """Difference, asymmetry and difficulty of pairs of points and anchors, block by block.

    Parameters are those of ``differences``, plus the second output of each twin, ``(c, w + 1)``.

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
    """Return functions that evaluate the last hidden layer of both orders of pairs, and the output.

    Two functions that return ``(c, rows, k, width)``, for (point, anchor) and (anchor, point); and
    kernel and bias of the output.
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
