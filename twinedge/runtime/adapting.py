"""Predict with a device's own points, and recalibrate a pack: section 12 of FORMAT.md in numpy.

The errors of points that belong together, from one machine or one batch, are modelled as a draw
from a Student distribution in which any two of them share a part, ``trust``. Knowing some of them
then says how far to move the others, and how certain that is.
"""

from dataclasses import dataclass, replace
from math import isqrt

import numpy as np

from twinedge.calibration import Calibration, CalibrationRows, adapted
from twinedge.errors import InputError
from twinedge.pack.contents import LARGEST, TARGET, Array, Intervals, Pack
from twinedge.pack.layout import MAX_ANCHORS
from twinedge.runtime import reference
from twinedge.scoring import check_targets

_MOST = 2**32 - 1


def calibration_of(pack: Pack) -> Calibration | None:
    """Return the calibration of a pack, in units of the target; None if it has no intervals."""
    stored, unit = pack.intervals, float(pack.y_gain)
    if stored is None:
        return None
    return Calibration(
        np.array(stored.weights) / 65536,
        stored.constant / 4096 * unit,
        {level / 1000: quantile / 65536 for level, quantile in stored.quantiles.items()},
        stored.rows,
        stored.typical / 16 * unit,
        stored.outside / 65536,
    )


def calibrate_pack(
    pack: Pack,
    X: Array,
    y: Array,
    *,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    beside: CalibrationRows | None = None,
    chosen: bool = False,
) -> Pack:
    """Calibrate a pack that has second outputs, on its own integer predictions for these rows.

    Parameters
    ----------
    pack : Pack
        A pack with intervals, which are replaced.
    X, y : array of shape (n, f), (n,)
        Rows that the networks were not trained on.
    sample_weight : array of shape (n,), optional
        How much each row counts; by default all alike.
    groups : array of shape (n,), optional
        Which rows belong together.
    beside : CalibrationRows, optional
        More rows, with the errors of other networks: training rows whose groups they did not see.
    chosen : bool
        Whether training settings were chosen on these rows.

    Raises
    ------
    InputError
        If the pack has no second output, or there is nothing to learn from these rows.
    """
    if pack.intervals is None:
        raise InputError("the pack was exported without intervals and cannot be calibrated")
    y = check_targets(y, len(X))
    q = reference.quantise(pack, X)
    found = reference.evaluate_raw(pack, q)
    assert found.signals is not None
    members, unit = found.estimates.shape[1], float(pack.y_gain)
    signals = found.signals.astype(np.float64) * unit / members
    outside = np.asarray(reference.outside(pack, q).any(axis=1))
    errors = np.asarray(y, np.float64) - found.mean
    rows = CalibrationRows(signals, errors, outside, sample_weight, groups).joined(beside)
    made = rows.calibrated(chosen)
    spread, asymmetry, difficulty = (_integer(65536 * weight) for weight in made.weights)
    intervals = Intervals(
        spread,
        asymmetry,
        difficulty,
        max(1, _integer(4096 * made.constant / unit)),
        min(made.rows, 65535),
        0,
        round(65536 * made.outside),
        {round(1000 * level): max(1, _integer(65536 * q)) for level, q in made.quantiles.items()},
        pack.intervals.trust,
    )
    scales = reference.raw_scale(found.signals, intervals, members)
    typical = round(float(np.average(scales, weights=sample_weight)))
    if beside is not None:  # the scales of all rows, of which only these are known as integers
        typical = round(16 * made.typical / unit)
    return replace(pack, intervals=replace(intervals, typical=typical))


def _integer(number: float) -> int:
    return min(round(number), _MOST)


MOST_POINTS = 1024
MOST_MEMBERS = 4096  # points, counted once for each twin
MOST_SCORE = 511  # in sixteenths
FREEDOM = 4  # degrees of freedom of the Student distribution
_WORD = 2**32 - 1
_NEAR = 0.02  # shares that differ by less are equally good
_MOST_TIMES = 16  # how much an adapted pack may grow in anchors


@dataclass(frozen=True)
class Points:
    """Points measured on site, in the order they arrived.

    Parameters
    ----------
    numbers : array of shape (k,), uint32
        Numbers of the points, ascending.
    features : array of shape (k, f), int16
        Quantised.
    targets : array of shape (k,), int32
        As measured, in units of an estimate.
    scores : array of shape (k,), int16
        How far off the pack was, in sixteenths of its scale.
    scales : array of shape (k,), uint16
        That scale, in units of 1/256 of the mean in calibration.
    """

    numbers: Array
    features: Array
    targets: Array
    scores: Array
    scales: Array

    @classmethod
    def none(cls, features: int) -> "Points":
        """Return an empty set of points."""
        return cls(
            np.empty(0, np.uint32),
            np.empty((0, features), np.int16),
            np.empty(0, np.int32),
            np.empty(0, np.int16),
            np.empty(0, np.uint16),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: Array | slice) -> "Points":
        return Points(*(column[which] for column in vars(self).values()))

    def joined(self, more: "Points") -> "Points":
        """Return these points followed by more."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return Points(*(np.concatenate(pair) for pair in pairs))

    def next_numbers(self, count: int) -> Array:
        """Numbers for the next ``count`` points; they wrap around."""
        first = int(self.numbers[-1]) + 1 if len(self) else 0
        return (first + np.arange(count)).astype(np.uint32)


def most_points(pack: Pack) -> int:
    """How many points a device with this pack can have."""
    return min(MOST_POINTS, MOST_MEMBERS // len(pack.twins))


def quantised_targets(pack: Pack, y: Array) -> Array:
    """Targets ``(n,)`` in units of an estimate, int64; 2^30 for NaN and out of range."""
    with np.errstate(over="ignore", invalid="ignore"):
        t = (np.asarray(y).astype(np.float32) - pack.y_offset) / pack.y_gain
    far = ~(np.abs(t) < TARGET)
    t = np.where(far, np.float32(0), t)
    whole = np.trunc(t)
    rounded = whole + np.where(np.abs(t - whole) >= 0.5, np.sign(t), 0)
    return np.where(far, TARGET, rounded).astype(np.int64)


def judged(intervals: Intervals, mean: Array, scale: Array, targets: Array) -> tuple[Array, Array]:
    """Scores int16 and scales uint16 ``(k,)`` of points, from the pack's predictions for them."""
    off = targets.astype(np.int64) - mean
    score = np.minimum(over(np.abs(off), scale) >> 8, MOST_SCORE)
    signed = np.where(off < 0, -score, score).astype(np.int16)
    return signed, relative(intervals, scale).astype(np.uint16)


def relative(intervals: Intervals, scale: Array) -> Array:
    """Scales in units of 1/256 of the mean in calibration, int64."""
    found: Array = np.minimum(over(scale, intervals.typical) >> 8, 65535)
    return found


def unlike(pack: Pack, y: Array) -> Array:
    """Which targets ``(n,)`` cannot be used: not numbers, or far beyond those of training."""
    far: Array = quantised_targets(pack, y) >= TARGET
    return far


def own_pack(pack: Pack, points: Points) -> Pack:
    """Return the pack with the points as the only anchors of each twin."""
    twins = len(pack.twins)
    return replace(
        pack,
        counts=np.full(twins, len(points), pack.counts.dtype),
        anchors=np.tile(points.features, (twins, 1)),
        targets=np.tile(points.targets, twins),
        ids=None,
        neighbors=0,
        trained_on_neighbors=False,
        metadata={},
    )


def blended(
    intervals: Intervals, points: Points, mean: Array, scale: Array, own: Array
) -> tuple[Array, Array]:
    """Mean and scale with the points, int64 ``(n,)``.

    Parameters
    ----------
    intervals : Intervals
        Intervals of the pack.
    points : Points
        At least one.
    mean, scale : array of shape (n,)
        What the pack predicts, in integers.
    own : array of shape (n,)
        What it predicts with the points as the only anchors.
    """
    k, trust = len(points), intervals.trust
    rest = 65536 - trust
    among = k * trust + rest
    part = k * relative(intervals, scale)
    scales = int(points.scales.sum(dtype=np.int64))
    near = np.where(part < scales, over(part, scales) >> 1, 32768)
    weight = (over(k * trust, among) >> 1) * near >> 15
    # May wrap around, but not with packs and points that twinedge writes.
    off = (own.astype(np.int64) - mean).astype(np.int32).astype(np.int64)
    moved = mean + (off * weight + 16384 >> 15)

    score = points.scores.astype(np.int64)
    total = abs(int(score.sum()))
    shared = (total * (16 * total // k) & _WORD) >> 4
    alone = max(int(np.square(score).sum()) - shared, 0)
    surprise = (int(over(alone, rest)) >> 2) + (int(over(shared, among)) >> 2)
    surprise = int(over(64 * FREEDOM + surprise, 64 * FREEDOM + 64 * k))
    left = 65536 - 3 * (trust * (weight * (65536 - near) >> 15) >> 17)
    factor = np.array([isqrt(one * surprise) for one in left.tolist()], np.uint64)
    wide = scale.astype(np.uint64) * factor >> np.uint64(16)
    return moved, np.minimum(wide, 2**31 - 1).astype(np.int64)


def adapted_pack(pack: Pack, points: Points) -> Pack:
    """Return a pack that has the points among its anchors, for devices without a store.

    Anchors are repeated until the points have the same share in a prediction as by the rule of
    ``blended``. A pack cannot express that the points count less where small errors are expected.
    Widths of intervals are adapted.

    Raises
    ------
    InputError
        If the pack has no intervals, or predicts from the nearest anchors.
    """
    if pack.intervals is None:
        raise InputError("the pack has no intervals and cannot learn without them")
    if pack.neighbors:
        raise InputError("the pack predicts from its nearest anchors: keep its points in a store")
    k, trust, twins = len(points), pack.intervals.trust / 65536, len(pack.twins)
    share = k * trust / (k * trust + 1 - trust)
    theirs, ours = _often(len(pack.targets), twins * k, share)
    parts = np.split(np.arange(len(pack.targets)), np.cumsum(pack.counts)[:-1])
    features, targets = [], []
    for rows in parts:
        features += [pack.anchors[rows]] * theirs + [points.features] * ours
        targets += [pack.targets[rows]] * theirs + [points.targets] * ours
    scores = points.scores / 16
    _, wider = adapted(trust, scores, np.ones(k), np.zeros(1), np.ones(1), np.zeros(1))
    old, factor = pack.intervals, float(wider[0])
    spread, asymmetry, difficulty, constant, typical = (
        min(round(one * factor), _WORD) for one in (*old.weights, old.constant, old.typical)
    )
    return replace(
        pack,
        counts=(theirs * pack.counts + ours * k).astype(pack.counts.dtype),
        anchors=np.concatenate(features),
        targets=np.concatenate(targets),
        ids=None,
        intervals=replace(
            old,
            by_spread=spread,
            by_asymmetry=asymmetry,
            by_difficulty=difficulty,
            constant=max(1, constant),
            typical=typical,
        ),
    )


def _often(shipped: int, own: int, share: float) -> tuple[int, int]:
    """How often to repeat shipped anchors and own points: the fewest close to the share."""
    pairs = [
        (theirs, ours)
        for theirs in range(1, 9)
        for ours in range(1, 257)
        if theirs * shipped + ours * own <= min(MAX_ANCHORS, _MOST_TIMES * (shipped + own))
    ] or [(1, 1)]

    def off(pair: tuple[int, int]) -> tuple[bool, float]:
        theirs, ours = pair[0] * shipped, pair[1] * own
        miss = abs(ours / (theirs + ours) - share)
        return (miss > _NEAR, theirs + ours if miss <= _NEAR else miss)

    return min(pairs, key=off)


def over(a: Array | int, b: Array | int) -> Array:
    """Return a / b in units of 1/65536, int64, as precise as 32-bit arithmetic allows."""
    a, b = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    shift = np.zeros(a.shape, np.int64)
    for bit in (16, 8, 4, 2, 1):  # until a has 16 digits
        shift += np.where(a >> (shift + bit - 1) >> 16 > 0, bit, 0)
    a, b = a >> shift, b >> shift
    quotient: Array = np.where(b > 0, (a << 16) // np.maximum(b, 1), _WORD)
    return quotient


def check_point(features: Array, target: int) -> bool:
    """Whether a point, int16 ``(f,)``, can be evaluated."""
    return bool(features.min() >= -LARGEST) and abs(target) < TARGET
