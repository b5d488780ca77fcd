"""The integer arithmetic of FORMAT.md in numpy: slow, plain, and the reference for all others.

Matrix products are computed in float64, where numpy is fast: every sum stays far below 2^53
(FORMAT.md, section 9), so they are exact in any order.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from twinedge.encoding.cells import numbered
from twinedge.errors import InputError
from twinedge.pack.contents import LARGEST, TARGET, Array, InputMap, Intervals, Layer, Pack, Twin
from twinedge.pack.layout import CURVE_FINE, CURVE_LENGTH, NO_FILL

_POINTS = 100_000  # used to fit the table


@lru_cache(maxsize=1)
def silu_curve() -> Array:
    """Table of a / (1 + exp(a)) in units of 2^-15, int16 ``(193,)``, as FORMAT.md says.

    The entries are the knots of the piecewise linear function nearest to it by least squares: knots
    on the function itself would put the line on one side of it.
    """
    knots = np.concatenate(
        [np.arange(CURVE_FINE) / 32, 4 + np.arange(CURVE_LENGTH - CURVE_FINE) / 8]
    )
    a = np.linspace(0, knots[-1], _POINTS)
    right = np.clip(np.searchsorted(knots, a, side="right"), 1, CURVE_LENGTH - 1)
    share = (a - knots[right - 1]) / (knots[right] - knots[right - 1])
    # Normal equations of a piecewise linear function: each point involves only its two knots.
    normal, moment = np.zeros((CURVE_LENGTH, CURVE_LENGTH)), np.zeros(CURVE_LENGTH)
    value = a / (1 + np.exp(a))
    for one, weight in ((right - 1, 1 - share), (right, share)):
        np.add.at(moment, one, weight * value)
        for other, other_weight in ((right - 1, 1 - share), (right, share)):
            np.add.at(normal, (one, other), weight * other_weight)
    fitted = np.linalg.solve(normal, moment)
    curve: Array = np.rint(32768 * fitted).clip(0, 16383).astype(np.int16)
    curve.flags.writeable = False
    return curve


NO_ESTIMATE = 2**31  # the first integer that none can be
_SPREAD = 1048575  # estimates further apart than this count as this far
_WIDEST = 2**31 - 1  # half of an interval
_WHOLE = 1 << 14  # share of a bin of the map
_BLOCK = 1 << 20  # numbers held at a time in one array: 8 MB


class Evaluation(NamedTuple):
    """What a pack predicts for ``n`` queries.

    ``mean`` and ``spread`` are float32 ``(n,)`` in the units of the target; ``raw_mean`` int32 and
    ``raw_spread`` uint32 ``(n,)`` are the integers behind them (the latter times the number of
    members); ``estimates`` int32 ``(n, m)`` are those of the members. ``signals`` uint32
    ``(3, n)`` are spread, asymmetry and difficulty in units of the targets, each times the number
    of members; None if the pack has no second output.
    """

    mean: Array
    spread: Array
    raw_mean: Array
    raw_spread: Array
    estimates: Array
    signals: Array | None = None


class Bounds(NamedTuple):
    """Scale and interval of ``n`` queries.

    ``scale``, ``low`` and ``high`` are float32 ``(n,)`` in the units of the target; ``raw_scale``
    uint32, ``raw_low`` and ``raw_high`` int32 ``(n,)`` are the integers behind them.
    """

    scale: Array
    low: Array
    high: Array
    raw_scale: Array
    raw_low: Array
    raw_high: Array


def check_queries(
    x: Any, features: int, fillable: Array | None = None, names: Sequence[str] = ()
) -> Array:
    """Check queries ``(n, features)``; returns them as an array of numbers.

    NaN is a missing feature where ``fillable`` ``(features,)`` allows it. Features without
    ``names`` are called x0, x1, ... in messages.

    Raises
    ------
    InputError
        If a query has the wrong number of features, or is not a number.
    """
    try:
        x = np.asarray(x)
    except ValueError as error:  # lists of different lengths
        raise InputError(f"queries must have {features} features each") from error
    if x.ndim != 2 or x.shape[1] != features:
        raise InputError(f"queries must have {features} features, not shape {x.shape}")
    if x.dtype.kind not in "biuf":
        raise InputError(f"queries must be numbers, not {x.dtype}")
    missing = np.isnan(x)
    if missing.any():
        refused = missing if fillable is None else missing & ~fillable
        if refused.any():
            name = (names or numbered(features))[int(refused.any(axis=0).argmax())]
            name = name if name.isprintable() else ascii(name)
            raise InputError(f"a query has a feature that is not a number: {name}")
    checked: Array = x
    return checked


def evaluate(pack: Pack, x: Any) -> Evaluation:
    """Evaluate queries ``(n, f)``, in the user's units, for the first target of a pack.

    Like all functions of this module: ``Pack.single`` is the pack of another target.

    Raises
    ------
    InputError
        If a query has the wrong number of features, or is not a number.
    """
    return evaluate_raw(pack, quantise(pack, x))


def evaluate_targets(pack: Pack, x: Any) -> tuple[Evaluation, ...]:
    """Evaluate queries ``(n, f)`` for each target, as ``evaluate``."""
    q = quantise(pack, x)
    return tuple(evaluate_raw(one, q) for one in pack.singles)


def quantise(pack: Pack, x: Any) -> Array:
    """Convert queries ``(n, f)`` to integers, int16 ``(n, f)``.

    A missing feature, NaN, gets the fill value in the domain of the pack.
    """
    x = check_queries(x, pack.features, fillable(pack))
    missing = np.isnan(x)
    if missing.any():
        assert pack.domain is not None  # check_queries refuses NaN without one
        return np.where(missing, pack.domain.fill, quantise(pack, np.where(missing, 0, x)))
    with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
        t = (x.astype(np.float32) - pack.x_offset) * pack.x_gain
    t = np.clip(t, -LARGEST, LARGEST)
    whole = np.trunc(t)
    away = np.where(np.abs(t - whole) >= 0.5, np.sign(t), 0)
    q: Array = (whole + away).astype(np.int16)
    return q


def fillable(pack: Pack) -> Array:
    """Which features may be missing, bool ``(f,)``."""
    if pack.domain is None:
        return np.zeros(pack.features, bool)
    filled: Array = pack.domain.fill != NO_FILL
    return filled


def outside(pack: Pack, q: Array) -> Array:
    """Which quantised features, int16 ``(n, f)``, are outside their training range: bool."""
    if pack.domain is None:
        return np.zeros(q.shape, bool)
    beyond: Array = (q < pack.domain.least) | (q > pack.domain.most)
    return beyond


def mask(flags: Array) -> Array:
    """Turn flags of features, bool ``(n, f)``, into bits; the last of 32 is for all the rest."""
    bits = np.uint32(1) << np.minimum(np.arange(flags.shape[1]), 31).astype(np.uint32)
    masks: Array = np.bitwise_or.reduce(np.where(flags, bits, np.uint32(0)), axis=1)
    return masks


def map_points(pack: Pack, q: Array) -> Array:
    """Turn quantised points, int16 ``(n, f)``, into what the twins take, int16 ``(n, g)``.

    Without a map these are the points themselves.
    """
    curves = pack.map
    if curves is None:
        return q
    mapped = np.empty((len(q), curves.outputs), np.int16)
    for rows in _slices(len(q), curves.outputs):
        mapped[rows] = _mapped(curves, q[rows])
    return mapped


def _mapped(curves: InputMap, q: Array) -> Array:
    """Add the curves of quantised points ``(n, f)`` to them: ``(n, g)``."""
    sums = np.zeros((len(q), curves.outputs), np.int64)
    for feature, rows in curves.curves():
        knots, table = curves.knots[rows].astype(np.int64), curves.table[rows].astype(np.int64)
        c = np.clip(q[:, feature], knots[0], knots[-1])
        left = np.minimum(np.searchsorted(knots, c, side="right") - 1, len(knots) - 2)
        share = ((c - knots[left]) << 14) // (knots[left + 1] - knots[left])
        sums += table[left] * (_WHOLE - share)[:, None] + table[left + 1] * share[:, None]
    shifts = curves.shifts.astype(np.int64)
    z = sums + (1 << shifts - 1) >> shifts
    z[:, : q.shape[1]] += q
    limited: Array = np.clip(z, -LARGEST, LARGEST)
    return limited


def curved(pack: Pack, estimates: Array) -> Array:
    """Turn estimates, or means of them, into units of the target's gain, int64: ``U``."""
    m, curve = estimates.astype(np.int64), pack.target_curve
    if curve is None:
        return m
    values = curve.values.astype(np.int64)
    d = np.clip(m - curve.first, 0, curve.bins << curve.shift)
    k = np.minimum(d >> curve.shift, curve.bins - 1)
    r = d - (k << curve.shift)
    u: Array = values[k] + ((values[k + 1] - values[k]) * r >> curve.shift)
    return u


def targets_of(pack: Pack, estimates: Array) -> Array:
    """Turn estimates, or means of them, into the units of the target, float32."""
    with np.errstate(over="ignore"):
        y: Array = curved(pack, estimates).astype(np.float32) * pack.y_gain + pack.y_offset
    return y


def deviations_of(pack: Pack, mean: Array, raw: Array, parts: int) -> Array:
    """Turn deviations from ``mean``, each ``raw / parts``, into units of the target, float32.

    With a target curve that is half of the distance between the curve's values at either side.
    """
    with np.errstate(over="ignore"):
        if pack.target_curve is None:
            return raw.astype(np.float32) * pack.y_gain / np.float32(parts)
        m, d = mean.astype(np.int64), raw.astype(np.int64) // parts
        low, high = (curved(pack, np.clip(end, -(2**31), 2**31 - 1)) for end in (m - d, m + d))
        return (high - low).astype(np.float32) * pack.y_gain / np.float32(2)


def estimates_of(pack: Pack, y: Array) -> Array:
    """Turn targets ``(n,)`` into units of an estimate, int64.

    What is NaN, or so far off that no target is there, becomes ``NO_ESTIMATE``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        t = (np.asarray(y).astype(np.float32) - pack.y_offset) / pack.y_gain
    far = ~(np.abs(t) < TARGET)
    t = np.where(far, np.float32(0), t)
    whole = np.trunc(t)
    u = (whole + np.where(np.abs(t - whole) >= 0.5, np.sign(t), 0)).astype(np.int64)
    curve = pack.target_curve
    if curve is not None:
        values = curve.values.astype(np.int64)
        u = np.clip(u, values[0], values[-1])
        k = np.minimum(np.searchsorted(values, u, side="right") - 1, curve.bins - 1)
        r = ((u - values[k]) << curve.shift) // (values[k + 1] - values[k])
        u = curve.first + (k << curve.shift) + r
    return np.where(far, NO_ESTIMATE, u)


def evaluate_raw(pack: Pack, q: Array) -> Evaluation:
    """Evaluate quantised queries, int16 ``(n, f)``, none of them -32768."""
    q = map_points(pack, q)
    estimates = np.empty((len(q), pack.members), np.int32)
    beside = [np.zeros_like(estimates) for _ in range(2)] if pack.intervals is not None else []
    ends = np.cumsum(pack.counts, dtype=np.int64)
    column = 0
    for twin, start, stop in zip(pack.twins, ends - pack.counts, ends, strict=True):
        width = min(stop - start, pack.neighbors or stop - start)
        columns = slice(column, column + width)
        own, others = estimates[:, columns], [one[:, columns] for one in beside]
        _fill(own, others, pack, twin, q, pack.anchors[start:stop], pack.targets[start:stop])
        column += width
    found = combine(pack, estimates)
    if not beside:
        return found
    return found._replace(signals=_signals(found, *beside))


def bounds(pack: Pack, found: Evaluation, level: int) -> Bounds:
    """Scale and interval of evaluated queries, at a level of the pack, in thousandths."""
    intervals = pack.intervals
    assert intervals is not None
    assert found.signals is not None
    raw = raw_scale(found.signals, intervals, found.estimates.shape[1])
    return bounded(pack, found.raw_mean, raw, level)


def bounded(pack: Pack, mean: Array, raw: Array, level: int) -> Bounds:
    """Interval around means ``(n,)`` with scales ``(n,)``, both in integers."""
    assert pack.intervals is not None
    wide = raw.astype(np.uint64) * np.uint64(pack.intervals.quantiles[level]) >> np.uint64(20)
    width = np.minimum(wide, _WIDEST).astype(np.int64)
    ends = [
        np.clip(mean.astype(np.int64) + signed, -(2**31), 2**31 - 1).astype(np.int32)
        for signed in (-width, width)
    ]
    low, high = (targets_of(pack, end) for end in ends)
    return Bounds(deviations_of(pack, mean, raw, 16), low, high, raw, *ends)


def raw_scale(signals: Array, intervals: Intervals, members: int) -> Array:
    """Scale, uint32 ``(n,)``, from signals ``(3, n)``, in sixteenths of the unit of a target."""
    every = np.full((1, signals.shape[1]), 16 * members, np.uint64)
    weights = np.array([*intervals.weights, intervals.constant], np.uint64)
    parts = np.concatenate([signals, every]) * weights[:, None] >> np.uint64(12)
    columns = np.minimum(parts, _WIDEST).T.tolist()
    # Python's integers, because 64 bits would have to be unsigned here.
    roots = [isqrt(sum(part**2 for part in column)) // members for column in columns]
    return np.array(roots, np.uint32)


def _signals(found: Evaluation, asymmetries: Array, difficulties: Array) -> Array:
    """Spread, asymmetry and difficulty, uint32 ``(3, n)``, each times the number of members."""
    u = np.clip(asymmetries, -_SPREAD, _SPREAD).astype(np.int64)
    count = u.shape[1]
    roots = [isqrt(count * squares) for squares in np.square(u).sum(axis=1).tolist()]
    # In 32 bits that wrap around; a negative result counts as 0.
    difficulty = difficulties.sum(axis=1, dtype=np.int64).astype(np.int32)
    hard = np.maximum(difficulty, 0).astype(np.uint32)
    return np.stack([found.raw_spread, np.array(roots, np.uint32), hard])


def nearest(q: Array, anchors: Array, count: int) -> Array:
    """Numbers ``(n, count)`` of the anchors nearest to each query, in ascending order."""
    points, q = anchors.astype(np.float64), q.astype(np.float64)
    found = np.empty((len(q), min(count, len(anchors))), np.intp)
    squares = np.square(points).sum(axis=1)
    for rows in _slices(len(q), len(anchors)):
        # Without the square of the query, which is the same for all anchors.
        distance = squares - 2 * (q[rows] @ points.T)
        order = np.argsort(distance, axis=1, kind="stable")
        found[rows] = np.sort(order[:, : found.shape[1]], axis=1)
    return found


def combine(pack: Pack, estimates: Array) -> Evaluation:
    """Mean and spread of the members' estimates, int32 ``(n, m)``."""
    count = estimates.shape[1]
    mean, root = np.empty(len(estimates), np.int32), np.empty(len(estimates), np.uint32)
    for rows in _slices(len(estimates), count):
        e = estimates[rows].astype(np.int64)
        total = e.sum(axis=1)
        # Round half away from zero, in integers: the sign is removed and put back.
        mean[rows] = np.sign(total) * ((2 * np.abs(total) + count) // (2 * count))
        d = np.clip(e - e[:, :1], -_SPREAD, _SPREAD)
        sums = zip(np.square(d).sum(axis=1).tolist(), d.sum(axis=1).tolist(), strict=True)
        # Python's integers, because 64 bits would have to be unsigned here.
        root[rows] = [isqrt(count * squares - single**2) for squares, single in sums]
    spread = deviations_of(pack, mean, root, count)
    return Evaluation(targets_of(pack, mean), spread, mean, root, estimates)


def activate(layer: Layer, acc: Array, curve: Array | None) -> Array:
    """Turn a hidden layer's sums ``(..., outputs)`` into its outputs, in units of 2^-fraction."""
    z = _rsh(_mulw(acc, layer.multiplier.astype(np.int64)), layer.shift)
    z = np.clip(z, -LARGEST, LARGEST)
    h: Array = np.maximum(z, 0)
    if curve is None:
        return h
    return h - _bump(curve.astype(np.int64), np.abs(z), layer.fraction)


def _fill(
    estimates: Array,
    beside: list[Array],
    pack: Pack,
    twin: Twin,
    q: Array,
    anchors: Array,
    targets: Array,
) -> None:
    """Put the estimates of one twin's anchors into ``estimates`` ``(n, m)``.

    Their asymmetries and difficulties go into ``beside``, if the twin has a second output.
    """
    first = twin.layers[0]
    kernels = np.split(first.kernel.astype(np.float64), [pack.inputs], axis=1)
    # An anchor passes through the first layer once, as either half of a pair.
    first_sums = [anchors.astype(np.float64) @ kernel.T + first.bias for kernel in kernels[::-1]]
    everyone = np.arange(len(anchors))
    chosen = nearest(q, anchors, pack.neighbors) if pack.neighbors else everyone[None]
    width = max(pack.hidden)
    for columns in _slices(estimates.shape[1], width):
        for rows in _slices(len(q), (columns.stop - columns.start) * width):
            who = chosen[rows if pack.neighbors else slice(1), columns]
            hidden = [
                _hidden(pack, twin, (q[rows] @ kernel.T)[:, None] + of_anchors[who])
                for kernel, of_anchors in zip(kernels, first_sums, strict=True)
            ]
            forward, back = (one @ twin.output for one in hidden)
            difference = _rsh(_mulw(forward - back, np.int64(twin.multiplier)), twin.shift)
            estimates[rows, columns] = difference + targets[who]
            if twin.difficulty is not None:
                both, last = forward + back + twin.bias, twin.difficulty
                hard = hidden[1] @ last.output + last.bias
                asymmetries, difficulties = beside
                asymmetries[rows, columns] = _rsh(_mulw(both, twin.multiplier), twin.shift)
                difficulties[rows, columns] = _rsh(_mulw(hard, last.multiplier), last.shift)


def _hidden(pack: Pack, twin: Twin, acc: Array) -> Array:
    """Compute the last hidden layer, float64, from the first layer's sums ``(n, m, h)``."""
    h = activate(twin.layers[0], acc, pack.curve)
    for layer in twin.layers[1:]:
        h = activate(layer, h.astype(np.float64) @ layer.kernel.T + layer.bias, pack.curve)
    return h.astype(np.float64)


def _bump(curve: Array, a: Array, fraction: int) -> Array:
    """How far silu is below relu at a distance ``a`` from zero."""
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
    """Cut ``count`` items of ``size`` numbers into blocks of bounded memory."""
    step = max(1, _BLOCK // size)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
