"""The integer arithmetic of FORMAT.md in numpy: slow, plain, and the judge of all others.

Products of matrices are taken in float64, where numpy is fast: every sum stays far below 2^53
(FORMAT.md, section 7), so they are exact in any order.
"""

from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from twinedge.pack.check import LARGEST
from twinedge.pack.contents import Array, Layer, Pack, Twin
from twinedge.pack.layout import CURVE_FINE, CURVE_LENGTH
from twinedge.runtime.device import check_queries

_SPREAD = 1048575  # estimates further apart than this count as this far
_BLOCK = 1 << 20  # numbers alive at a time in one array: 8 MB


class Estimates(NamedTuple):
    """What a pack says of ``n`` queries.

    ``mean`` and ``spread`` are float32 ``(n,)`` in the units of the target; ``raw_mean`` int32 and
    ``raw_spread`` uint32 ``(n,)`` are the integers behind them (the latter times the number of
    members); ``members`` int32 ``(n, m)`` are the estimates themselves.
    """

    mean: Array
    spread: Array
    raw_mean: Array
    raw_spread: Array
    members: Array


def evaluate(pack: Pack, x: Any) -> Estimates:
    """Evaluate queries ``(n, f)``, in the user's units.

    Raises
    ------
    InputError
        Where a query has another number of features, or is not a number.
    """
    return evaluate_raw(pack, quantise(pack, x))


def quantise(pack: Pack, x: Any) -> Array:
    """Bring queries ``(n, f)`` to the integers the networks take, int16 ``(n, f)``."""
    x = check_queries(x, pack.features)
    with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
        t = (x.astype(np.float32) - pack.x_offset) * pack.x_gain
    t = np.clip(t, -LARGEST, LARGEST)
    whole = np.trunc(t)
    away = np.where(np.abs(t - whole) >= 0.5, np.sign(t), 0)
    q: Array = (whole + away).astype(np.int16)
    return q


def evaluate_raw(pack: Pack, q: Array) -> Estimates:
    """Evaluate quantised queries, int16 ``(n, f)``, none of them -32768."""
    members = np.empty((len(q), pack.members), np.int32)
    ends = np.cumsum(pack.counts, dtype=np.int64)
    column = 0
    for twin, start, stop in zip(pack.twins, ends - pack.counts, ends, strict=True):
        width = min(stop - start, pack.neighbors or stop - start)
        theirs = members[:, column : column + width]
        _fill(theirs, pack, twin, q, pack.anchors[start:stop], pack.targets[start:stop])
        column += width
    return combine(pack, members)


def nearest(q: Array, anchors: Array, count: int) -> Array:
    """Numbers ``(n, count)`` of the anchors nearest to each query, in ascending order."""
    points, q = anchors.astype(np.float64), q.astype(np.float64)
    found = np.empty((len(q), min(count, len(anchors))), np.intp)
    squares = np.square(points).sum(axis=1)
    for rows in _slices(len(q), len(anchors)):
        # Less the square of the query, which is the same for all anchors.
        distance = squares - 2 * (q[rows] @ points.T)
        order = np.argsort(distance, axis=1, kind="stable")
        found[rows] = np.sort(order[:, : found.shape[1]], axis=1)
    return found


def combine(pack: Pack, members: Array) -> Estimates:
    """Mean and spread of the members' estimates, int32 ``(n, m)``."""
    count = members.shape[1]
    mean, root = np.empty(len(members), np.int32), np.empty(len(members), np.uint32)
    for rows in _slices(len(members), count):
        e = members[rows].astype(np.int64)
        total = e.sum(axis=1)
        # Half away from zero, in integers: the sign is taken off and put back.
        mean[rows] = np.sign(total) * ((2 * np.abs(total) + count) // (2 * count))
        d = np.clip(e - e[:, :1], -_SPREAD, _SPREAD)
        sums = zip(np.square(d).sum(axis=1).tolist(), d.sum(axis=1).tolist(), strict=True)
        # In Python's integers, as 64 bits must be unsigned here.
        root[rows] = [isqrt(count * squares - single**2) for squares, single in sums]
    with np.errstate(over="ignore"):
        prediction = mean.astype(np.float32) * pack.y_gain + pack.y_offset
        spread = root.astype(np.float32) * pack.y_gain / np.float32(count)
    return Estimates(prediction, spread, mean, root, members)


def activate(layer: Layer, acc: Array, curve: Array | None) -> Array:
    """Turn a hidden layer's sums ``(..., outputs)`` into its outputs, in units of 2^-fraction."""
    z = _rsh(_mulw(acc, layer.multiplier.astype(np.int64)), layer.shift)
    z = np.clip(z, -LARGEST, LARGEST)
    h: Array = np.maximum(z, 0)
    if curve is None:
        return h
    return h - _bump(curve.astype(np.int64), np.abs(z), layer.fraction)


def _fill(members: Array, pack: Pack, twin: Twin, q: Array, anchors: Array, targets: Array) -> None:
    """Put the estimates of one twin's anchors into ``members`` ``(n, m)``."""
    first = twin.layers[0]
    kernels = np.split(first.kernel.astype(np.float64), [pack.features], axis=1)
    # An anchor passes through the first layer once, as either half of a pair.
    theirs = [anchors.astype(np.float64) @ kernel.T + first.bias for kernel in kernels[::-1]]
    everyone = np.arange(len(anchors))
    chosen = nearest(q, anchors, pack.neighbors) if pack.neighbors else everyone[None]
    width = max(pack.hidden)
    for columns in _slices(members.shape[1], width):
        for rows in _slices(len(q), (columns.stop - columns.start) * width):
            who = chosen[rows if pack.neighbors else slice(1), columns]
            forward, back = (
                _output(pack, twin, (q[rows] @ kernel.T)[:, None] + of_anchors[who])
                for kernel, of_anchors in zip(kernels, theirs, strict=True)
            )
            difference = _rsh(_mulw(forward - back, np.int64(twin.multiplier)), twin.shift)
            members[rows, columns] = difference + targets[who]


def _output(pack: Pack, twin: Twin, acc: Array) -> Array:
    """Everything behind the first layer's sums ``(n, m, h)``: the output's sums ``(n, m)``."""
    h = activate(twin.layers[0], acc, pack.curve)
    for layer in twin.layers[1:]:
        h = activate(layer, h.astype(np.float64) @ layer.kernel.T + layer.bias, pack.curve)
    return h.astype(np.float64) @ twin.output


def _bump(curve: Array, a: Array, fraction: int) -> Array:
    """By how much silu lies below relu at a distance ``a`` from zero."""
    far = a >= 4 << fraction
    width = np.where(far, fraction - 3, fraction - 5)
    r = np.where(far, a - (4 << fraction), a)
    k = (r >> width) + np.where(far, CURVE_FINE, 0)
    beyond = k >= CURVE_LENGTH - 1
    k = np.minimum(k, CURVE_LENGTH - 2)
    g = curve[k] + (((curve[k + 1] - curve[k]) * (r & ((1 << width) - 1))) >> width)
    return np.where(beyond, 0, _rsh(g, 15 - fraction))


def _mulw(a: Array, m: Any) -> Array:
    wide: Array = (a.astype(np.int64) * m) >> 16
    return wide


def _rsh(a: Array, n: int) -> Array:
    return (a + (1 << (n - 1))) >> n if n else a


def _slices(count: int, size: int) -> list[slice]:
    """Cut ``count`` things of ``size`` numbers into blocks of bounded memory."""
    step = max(1, _BLOCK // size)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
