"""Pairs of points: how they are formed, and evaluating twins on them.

The first layer is split into two halves, one for each point of a pair, so that each point passes
through it once and a pair costs one addition there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.training.network import ACTIVATIONS, Architecture, FloatArray, Scaling
from twinedge.training.parameters import one_of, positive_integer


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
    """Rows ``(n, m)`` that each of the scaled points ``(n, f)`` is paired with; None for all.

    ``pairs`` and ``neighbors`` are parameters of ``TwinRegressor``; ``seed`` is that of random
    others.
    """
    neighbors = positive_integer("neighbors", neighbors)
    if not isinstance(pairs, str):
        return random_others(len(x), positive_integer("pairs", pairs), seed)
    if one_of("pairs", pairs, ("all", "neighbors")) == "all":
        return None
    return nearest_others(x, neighbors)


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
    curve : {"none", "log", "log1p", "sqrt"}
        The target curve that the differences are of: log(y(first)) - log(y(second)), say.
    """

    points: FloatArray
    rows: npt.NDArray[np.int64]
    differences: FloatArray
    curve: str = "none"

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
        learnt = "none" if scaling.curve is None else scaling.curve.kind
        if self.curve != learnt:
            raise ParameterError(
                f"extra: the differences have the curve {self.curve!r}, but the networks learn ",
                *(Parameter("target_curve", learnt), "; use "),
                Parameter("target_curve", self.curve),
            )
        differences = (self.differences / scaling.y_scale).astype(np.float32)
        return ExtraPairs(scaling.features(self.points), self.rows, differences, learnt)

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
        return ExtraPairs(points, rows.astype(np.int64), differences, self.curve)


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
    for pairs in _blocks(architecture, stack, x, anchors, nearest):
        there = pairs.output(pairs.forward())
        yield (there - pairs.output(pairs.backward())) / 2 if symmetric else there


def last_hidden(
    architecture: Architecture, stack: FloatArray, x: FloatArray, anchors: FloatArray
) -> FloatArray:
    """Mean over the anchors of the last hidden layer, for pairs (anchor, point): ``(c, n, width)``.

    Parameters are those of ``differences``, but all twins get the same points ``(n, f)``.
    """
    everywhere = np.broadcast_to(x, (len(stack), *x.shape))
    blocks = _blocks(architecture, stack, everywhere, anchors)
    return np.concatenate([pairs.backward().mean(axis=2) for pairs in blocks], axis=1)


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
    reads = readout[:, :-1, None], readout[:, None, -1:]
    for pairs in _blocks(architecture, stack, x, anchors, nearest):
        behind = pairs.backward()
        there, back = pairs.output(pairs.forward()), pairs.output(behind)
        yield np.stack([(there - back) / 2, (there + back) / 2, pairs.output(behind, reads)])


class _Pairs:
    """Pairs of some points and their anchors, and what a stack predicts for them."""

    def __init__(
        self,
        architecture: Architecture,
        stack: FloatArray,
        x: FloatArray,
        anchors: FloatArray,
        nearest: npt.NDArray[np.intp] | None = None,
    ) -> None:
        (kernel, self._bias), *self._hidden, self._last = architecture.arrays(stack)
        features = architecture.inputs // 2
        self._halves = kernel[:, :features], kernel[:, features:]
        self._activate = ACTIVATIONS[architecture.activation]
        self._x, self._anchors, self._nearest = x, anchors, nearest

    def forward(self) -> FloatArray:
        """Return the last hidden layer ``(c, rows, k, width)`` for (point, anchor)."""
        return self._evaluate(*self._halves)

    def backward(self) -> FloatArray:
        """Return the last hidden layer ``(c, rows, k, width)`` for (anchor, point)."""
        return self._evaluate(*reversed(self._halves))

    def output(
        self, hidden: FloatArray, readout: tuple[FloatArray, FloatArray] | None = None
    ) -> FloatArray:
        """Return F ``(c, rows, k)``, or what a different kernel and bias read, from that layer."""
        kernel, bias = readout or self._last
        found: FloatArray = (np.matmul(hidden, kernel[:, None]) + bias[:, None])[..., 0]
        return found

    def _evaluate(self, of_x: FloatArray, of_anchors: FloatArray) -> FloatArray:
        points = np.matmul(self._x, of_x)[:, :, None]
        anchors = np.matmul(self._anchors, of_anchors) + self._bias
        if self._nearest is None:
            anchors = anchors[:, None]
        else:
            anchors = anchors[np.arange(len(anchors))[:, None, None], self._nearest]
        h = points + anchors
        self._activate(h)
        shape = h.shape[:3]
        h = h.reshape(shape[0], shape[1] * shape[2], -1)
        for kernel, bias in self._hidden:
            h = np.matmul(h, kernel)
            h += bias
            self._activate(h)
        last: FloatArray = h.reshape(*shape, -1)
        return last


def _blocks(
    architecture: Architecture,
    stack: FloatArray,
    x: FloatArray,
    anchors: FloatArray,
    nearest: npt.NDArray[np.intp] | None = None,
) -> Iterator[_Pairs]:
    """Pairs of all points ``(c, n, f)``, as many points at a time as memory should hold."""
    stack, x, anchors = (np.asarray(one, np.float32) for one in (stack, x, anchors))
    members = anchors.shape[1] if nearest is None else nearest.shape[2]
    rows = max(1, _BLOCK // (len(stack) * members * max(architecture.hidden)))
    for start in range(0, x.shape[1], rows):
        part = slice(start, start + rows)
        chosen = None if nearest is None else nearest[:, part]
        yield _Pairs(architecture, stack, x[:, part], anchors, chosen)
