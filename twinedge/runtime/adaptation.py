"""Predict with a device's own points: section 13 of FORMAT.md in numpy.

The errors of points that belong together, from one machine or one batch, are modelled as a draw
from a Student distribution in which any two of them share a part, ``trust``. Knowing some of them
then says how far to move the others, and how certain that is. A point that is far from what the
others and the pack allow has no weight.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array, Intervals, Pack
from twinedge.runtime.reference import NO_ESTIMATE, estimates_of

MOST_POINTS = 1024
MOST_SCORE = 511  # in sixteenths of a scale
MOST_SCALES = (MOST_SCORE + 1) // 16
FULL_WEIGHT = 48
_NO_WEIGHT = 112  # sixteenths of a scale from what the points agree on
_MOST_SURPRISE = 32  # of a score, in an interval
_FREEDOM = 4  # degrees of freedom of the Student distribution
_FARTHEST = 2**31 - 1
_WORD = 2**32 - 1


def unlike(pack: Pack, y: Array) -> Array:
    """Which targets ``(n,)`` cannot be used: not numbers, or far beyond those of training."""
    far: Array = estimates_of(pack, y) == NO_ESTIMATE
    return far


def score_errors(mean: Array, scale: Array, targets: Array) -> tuple[Array, Array]:
    """Errors and scores of points, int32 ``(k,)``.

    Parameters
    ----------
    mean, scale : array of shape (k,)
        What the pack predicts at the points, in integers.
    targets : array of shape (k,)
        What was measured there, in units of an estimate.
    """
    off = targets.astype(np.int64) - mean
    error = np.clip(off, -_FARTHEST, _FARTHEST)
    score = np.minimum((over(np.abs(off), scale) >> 7) + 1 >> 1, MOST_SCORE)
    return error.astype(np.int32), np.where(off < 0, -score, score).astype(np.int32)


def point_weights(scores: Array) -> Array:
    """Weights of points with these scores ``(k,)``, int64 from 0 to 48."""
    needed = (len(scores) + 1) // 2 + 1
    return _weights(scores, _agreed(scores, needed) - _agreed(-scores, needed))


def _agreed(scores: Array, needed: int) -> int:
    """Return the largest number, from 0 to 511, that so many scores are not below."""
    if needed > len(scores):
        return 0
    return int(np.clip(np.sort(scores)[-needed], 0, MOST_SCORE))


def _weights(scores: Array, agreed: int) -> Array:
    weight: Array = np.clip(_NO_WEIGHT - np.abs(scores.astype(np.int64) - agreed), 0, FULL_WEIGHT)
    return weight


def adapted(
    intervals: Intervals, errors: Array, scores: Array, mean: Array, scale: Array
) -> tuple[Array, Array]:
    """Mean and scale with the points, int64 ``(n,)``.

    Parameters
    ----------
    intervals : Intervals
        Intervals of the pack.
    errors, scores : array of shape (k,)
        What the pack gets wrong at the points.
    mean, scale : array of shape (n,)
        What the pack predicts, in integers.
    """
    sums = _summands(errors, scores, point_weights(scores)).sum(axis=1)
    return _with_sums(intervals, sums, mean, scale)


def left_one_out(
    intervals: Intervals, errors: Array, scores: Array, mean: Array, scale: Array
) -> tuple[Array, Array]:
    """Mean and scale at each point with all the other points, int64 ``(k,)``.

    The arguments are those of ``adapted``, for queries that are the points.
    """
    needed = len(scores) // 2 + 1
    agreed = _agreed_by_others(scores, needed) - _agreed_by_others(-scores, needed)
    sums = np.empty((5, len(scores)), np.int64)
    for one in np.unique(agreed).tolist():  # four at most
        summands, rows = _summands(errors, scores, _weights(scores, one)), agreed == one
        sums[:, rows] = summands.sum(axis=1, keepdims=True) - summands[:, rows]
    return _with_sums(intervals, sums, mean, scale)


def _agreed_by_others(scores: Array, needed: int) -> Array:
    """Return what ``_agreed`` says of all scores but one, int64 ``(k,)``."""
    if needed > len(scores) - 1:
        return np.zeros(len(scores), np.int64)
    order = np.argsort(-scores.astype(np.int64), kind="stable")
    found = np.full(len(scores), scores[order[needed - 1]], np.int64)
    found[order[:needed]] = scores[order[needed]]
    return np.clip(found, 0, MOST_SCORE)


def _summands(errors: Array, scores: Array, weight: Array) -> Array:
    """Return what points add to the sums of the rule, int64 ``(5, k)``."""
    error, score = errors.astype(np.int64), scores.astype(np.int64)
    limited = np.clip(score, -_MOST_SURPRISE, _MOST_SURPRISE)
    return weight * np.stack([np.ones_like(score), error, score, limited, limited * limited])


def _with_sums(intervals: Intervals, sums: Array, mean: Array, scale: Array) -> tuple[Array, Array]:
    """Mean and scale of queries ``(n,)``, with sums ``(5,)`` for all or ``(5, n)`` for each."""
    mean, scale = mean.astype(np.int64), scale.astype(np.int64)
    total, error, score, limited, squared = sums
    trust, least = intervals.trust, np.maximum(total, FULL_WEIGHT)
    among = total * trust + FULL_WEIGHT * (65536 - trust)
    share = over(total * trust, among) >> 1

    off = (16 * np.abs(score) // least).astype(np.uint64)
    most = np.minimum(scale.astype(np.uint64) * off >> np.uint64(12), _FARTHEST)
    shift = np.minimum(np.abs(error) // least, most.astype(np.int64)) * share >> 15
    shift = np.minimum(shift, _FARTHEST)
    moved = np.clip(mean + np.where(error >= 0, shift, -shift), -(2**31), 2**31 - 1)

    size = np.abs(limited)
    shared = size * (16 * size // least) >> 4
    alone = np.maximum(squared - shared, 0)
    surprise = (over(alone, 65536 - trust) >> 2) + 12 * over(shared, among)
    usual = 64 * FULL_WEIGHT * _FREEDOM
    surprise = over(usual + surprise, usual + 64 * total)
    left = 65536 - 13 * (trust * share >> 19)
    factor = np.sqrt((left * surprise).astype(np.float64)).astype(np.uint64)  # exact below 2^52
    wide = np.minimum(scale.astype(np.uint64) * factor >> np.uint64(16), _FARTHEST)
    some = total > 0
    return np.where(some, moved, mean), np.where(some, wide.astype(np.int64), scale)


def adapted_pack(pack: Pack, errors: Array, scores: Array) -> Pack:
    """Return a pack that predicts as with these points, for devices without a store.

    Its estimates are shifted, and its intervals scaled, as for a query of the mean scale. A pack
    cannot express that a prediction with a smaller scale is to be shifted less.

    Parameters
    ----------
    pack : Pack
        A pack with intervals.
    errors, scores : array of shape (k,)
        What it gets wrong at the points.

    Raises
    ------
    InputError
        If the pack has no intervals.
    """
    old = pack.intervals
    if old is None:
        raise InputError("the pack has no intervals and cannot learn without them")
    typical = np.array([max(old.typical, 1)])
    shift, scale = adapted(old, errors, scores, np.zeros(1, np.int64), typical)
    factor = float(scale[0] / typical[0])
    spread, asymmetry, difficulty, constant, typical_scale = (
        min(round(one * factor), _WORD) for one in (*old.weights, old.constant, old.typical)
    )
    intervals = replace(
        old,
        by_spread=spread,
        by_asymmetry=asymmetry,
        by_difficulty=difficulty,
        constant=max(1, constant),
        typical=typical_scale,
    )
    if pack.target_curve is not None:
        return replace(_shifted_on_curve(pack, int(shift[0])), intervals=intervals)
    offset = np.float32(float(pack.y_offset) + int(shift[0]) * float(pack.y_gain))
    return replace(pack, y_offset=offset, intervals=intervals)


def _shifted_on_curve(pack: Pack, shift: int) -> Pack:
    """Return a pack whose target curve takes estimates that are larger by ``shift``."""
    assert pack.target_curve is not None
    curve = replace(pack.target_curve, first=pack.target_curve.first - shift)
    metadata = pack.metadata
    with suppress(KeyError, TypeError):  # metadata may be anything
        about = metadata["target_curve"]
        offset = about["offset"] + shift * about["unit"]
        metadata = {**metadata, "target_curve": {**about, "offset": offset}}
    return replace(pack, target_curve=curve, metadata=metadata)


def over(a: Array | int, b: Array | int) -> Array:
    """Return a / b in units of 1/65536, int64, as precise as 32-bit arithmetic allows."""
    a, b = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    shift = np.zeros(a.shape, np.int64)
    for bit in (16, 8, 4, 2, 1):  # until a has 16 digits
        shift += np.where(a >> (shift + bit - 1) >> 16 > 0, bit, 0)
    a, b = a >> shift, b >> shift
    quotient: Array = np.where(b > 0, (a << 16) // np.maximum(b, 1), _WORD)
    return quotient
