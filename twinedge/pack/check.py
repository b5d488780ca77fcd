"""Checks on the numbers in a pack, behind its layout: also the proof that no sum can overflow."""

import numpy as np

from twinedge.pack.contents import Array, Intervals, Pack, Twin
from twinedge.pack.errors import PackError, Reason
from twinedge.pack.layout import FRACTIONS, MAX_SHIFT

LARGEST = 32767  # magnitude of a quantised feature or activation, and of a multiplier
ACCUMULATOR, OUTPUT, TARGET, CURVE = 2**31, 2**30, 2**30, 2**14  # each the first beyond its range


def check_contents(pack: Pack) -> None:
    """Refuse a pack with a number FORMAT.md does not allow, in the order of its section 10."""
    check_scaling(
        np.append(pack.x_offset, pack.y_offset),
        np.append(pack.x_gain, pack.y_gain),
    )
    for number, twin in enumerate(pack.twins):
        check_head(twin, number)
        check_weights(twin, number)
    if pack.curve is not None:
        check_curve(pack.curve)
    check_anchors(pack.counts, pack.anchors, pack.targets)
    if pack.intervals is not None:
        check_intervals(pack.intervals)


def check_scaling(offsets: Array, gains: Array) -> None:
    """Refuse offsets and gains that are not finite, and gains that are not positive."""
    if not (np.isfinite(gains).all() and np.isfinite(offsets).all() and (gains > 0).all()):
        raise PackError(Reason.VALUE, "an offset or gain is not finite, or a gain not positive")


def check_head(twin: Twin, number: int) -> None:
    """Refuse shifts, fraction bits and multipliers of outputs outside their ranges."""
    shifts, multipliers = [*twin.shifts], [twin.multiplier]
    if twin.difficulty is not None:
        shifts.append(twin.difficulty.shift)
        multipliers.append(twin.difficulty.multiplier)
    if not (
        all(0 <= shift <= MAX_SHIFT for shift in shifts)
        and all(fraction in FRACTIONS for fraction in twin.fractions)
        and all(0 <= multiplier <= LARGEST for multiplier in multipliers)
    ):
        raise PackError(Reason.VALUE, f"the head of twin {number} has an impossible value")


def check_weights(twin: Twin, number: int) -> None:
    """Refuse negative multipliers; prove from the weights that no accumulator can overflow."""
    if any((layer.multiplier < 0).any() for layer in twin.layers):
        raise PackError(Reason.VALUE, f"twin {number} has a negative multiplier")
    for depth, layer in enumerate(twin.layers):
        reach = _magnitudes(layer.kernel) * LARGEST + np.abs(layer.bias, dtype=np.int64)
        worst = int(reach.argmax())
        if reach[worst] >= ACCUMULATOR:
            raise PackError(
                Reason.OVERFLOW,
                f"a sum in layer {depth + 1} of twin {number} could overflow (output {worst} "
                f"reaches {int(reach[worst])}, the limit is {ACCUMULATOR})",
            )
    # Both orders of a pair are added up, and a bias to them.
    output = 2 * int(_magnitudes(twin.output)) * LARGEST + abs(twin.bias)
    if output >= ACCUMULATOR:
        raise PackError(
            Reason.OVERFLOW,
            f"the output of twin {number} could overflow (it reaches {output}, the limit is "
            f"{ACCUMULATOR})",
        )
    if twin.difficulty is not None:
        second = int(_magnitudes(twin.difficulty.output)) * LARGEST + abs(twin.difficulty.bias)
        if second >= ACCUMULATOR:
            raise PackError(
                Reason.OVERFLOW,
                f"the difficulty of twin {number} could overflow (it reaches {second}, the limit "
                f"is {ACCUMULATOR})",
            )


def check_curve(curve: Array) -> None:
    """Refuse entries of the activation's table outside their range."""
    if curve.min() < 0 or curve.max() >= CURVE:
        raise PackError(Reason.VALUE, "the table of the activation has an impossible value")


def check_anchors(counts: Array, anchors: Array, targets: Array) -> None:
    """Refuse numbers of anchors that do not add up, and anchors outside their range."""
    if counts.min() < 1 or counts.sum(dtype=np.int64) != len(targets):
        raise PackError(Reason.VALUE, "the twins' anchors do not add up")
    if _largest(anchors) > LARGEST or _largest(targets) >= TARGET:
        raise PackError(Reason.VALUE, "an anchor lies outside what can be stored")


def check_intervals(intervals: Intervals) -> None:
    """Refuse numbers that cannot be stored; any others can be evaluated, and harm nothing."""
    numbers = (
        *intervals.weights,
        intervals.constant,
        intervals.typical,
        intervals.outside,
        *intervals.quantiles,
        *intervals.quantiles.values(),
    )
    halves = intervals.rows, intervals.trust
    if not all(0 <= one < 2**32 for one in numbers) or not all(0 <= one < 2**16 for one in halves):
        raise PackError(Reason.VALUE, "the intervals have a number that cannot be stored")


def _magnitudes(weights: Array) -> Array:
    """Sum of magnitudes along the last axis; in 64 bits, as the magnitude of -128 is no int8."""
    total: Array = np.abs(weights, dtype=np.int32).sum(axis=-1, dtype=np.int64)
    return total


def _largest(values: Array) -> int:
    """Largest magnitude."""
    return max(-int(values.min()), int(values.max()))
