"""Checks on the numbers of a pack, in the order of FORMAT.md, section 10: no sum may overflow."""

import numpy as np

from twinedge.pack.contents import (
    ACCUMULATOR,
    CURVE,
    LARGEST,
    TARGET,
    Array,
    InputMap,
    Intervals,
    Pack,
    TargetCurve,
    Twin,
)
from twinedge.pack.layout import (
    FRACTIONS,
    MAP_SHIFTS,
    MAX_CURVE_SHIFT,
    MAX_SHIFT,
    PackError,
    Reason,
)


def check_contents(pack: Pack) -> None:
    """Refuse a pack with a number that FORMAT.md does not allow, in the order of its section 10."""
    check_scaling(*scaling_of(pack))
    if pack.map is not None:
        check_map(pack.map)
    for one in pack.every_target:
        if one.target_curve is not None:
            check_target_curve(one.target_curve)
    for number, twin in enumerate(pack.twins):
        check_head(twin, number)
        check_weights(twin, number)
    if pack.curve is not None:
        check_curve(pack.curve)
    check_anchors(pack.counts, pack.anchors, targets_of_anchors(pack))
    for one in pack.every_target:
        if one.intervals is not None:
            check_intervals(one.intervals)
    if pack.schema is not None and not 0 <= pack.schema < 2**32:
        raise PackError(Reason.VALUE, "the schema is a number that cannot be stored")


def scaling_of(pack: Pack) -> tuple[Array, Array]:
    """Offsets and gains of features and targets, ``(f + targets,)``."""
    each = pack.every_target
    return (
        np.append(pack.x_offset, [one.y_offset for one in each]),
        np.append(pack.x_gain, [one.y_gain for one in each]),
    )


def targets_of_anchors(pack: Pack) -> Array:
    """Targets of the anchors, ``(targets, k)``."""
    each = [one.targets for one in pack.every_target]
    if any(one.shape != each[0].shape for one in each):
        raise PackError(Reason.VALUE, "every anchor must have a value of each target")
    return np.stack(each)


def check_scaling(offsets: Array, gains: Array) -> None:
    """Refuse offsets and gains that are not finite, and gains that are not positive."""
    if not (np.isfinite(gains).all() and np.isfinite(offsets).all() and (gains > 0).all()):
        raise PackError(Reason.VALUE, "an offset or gain is not finite, or a gain not positive")


def check_map(curves: InputMap) -> None:
    """Refuse bins that do not fit the knots, shifts out of range and knots that do not increase."""
    if curves.bins.sum(dtype=np.int64) + np.count_nonzero(curves.bins) != len(curves.knots):
        raise PackError(Reason.VALUE, "the bins of the map do not add up")
    if not all(shift in MAP_SHIFTS for shift in curves.shifts.tolist()):
        raise PackError(Reason.VALUE, "the map has an impossible shift")
    for feature, rows in curves.curves():
        knots = curves.knots[rows].astype(np.int64)
        if knots[0] < -LARGEST or (np.diff(knots) <= 0).any():
            raise PackError(Reason.VALUE, f"the knots of feature {feature} do not increase")


def check_target_curve(curve: TargetCurve) -> None:
    """Refuse a target curve that does not increase, or leaves the range of estimates."""
    values = curve.values.astype(np.int64)
    if not (
        abs(curve.first) < TARGET
        and 0 <= curve.shift <= MAX_CURVE_SHIFT
        and curve.first + (curve.bins << curve.shift) < ACCUMULATOR
        and _largest(values) < TARGET
        and (np.diff(values) > 0).all()
    ):
        raise PackError(
            Reason.VALUE, "the target curve does not increase, or has a value out of range"
        )


def check_head(twin: Twin, number: int) -> None:
    """Refuse shifts, fraction bits and multipliers of outputs outside their ranges."""
    parts = [part for one in twin.outputs for part in (one, one.difficulty) if part is not None]
    shifts = [*(layer.shift for layer in twin.layers), *(one.shift for one in parts)]
    multipliers = [one.multiplier for one in parts]
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
        _check_sum(int(reach[worst]), f"sum {worst} in layer {depth + 1} of twin {number}")
    for target, one in enumerate(twin.outputs):
        of = f"of twin {number}" + f" for target {target}" * bool(twin.others)
        # The sums of both orders of a pair, plus a bias.
        _check_sum(2 * int(_magnitudes(one.output)) * LARGEST + abs(one.bias), f"the output {of}")
        if one.difficulty is not None:
            second = int(_magnitudes(one.difficulty.output)) * LARGEST + abs(one.difficulty.bias)
            _check_sum(second, f"the difficulty {of}")


def _check_sum(reach: int, name: str) -> None:
    if reach >= ACCUMULATOR:
        raise PackError(
            Reason.OVERFLOW,
            f"{name} could overflow (it reaches {reach}, the limit is {ACCUMULATOR})",
        )


def check_curve(curve: Array) -> None:
    """Refuse entries of the activation table outside their range."""
    if curve.min() < 0 or curve.max() >= CURVE:
        raise PackError(Reason.VALUE, "the table of the activation has an impossible value")


def check_anchors(counts: Array, anchors: Array, targets: Array) -> None:
    """Refuse numbers of anchors that do not add up, and anchors outside their range.

    ``targets`` is ``(targets, k)``.
    """
    if counts.min() < 1 or counts.sum(dtype=np.int64) != targets.shape[1]:
        raise PackError(Reason.VALUE, "the twins' anchors do not add up")
    if _largest(anchors) > LARGEST or _largest(targets) >= TARGET:
        raise PackError(Reason.VALUE, "an anchor is outside the range that can be stored")


def check_intervals(intervals: Intervals) -> None:
    """Refuse numbers that cannot be stored; any others are safe to evaluate."""
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
    """Sum of magnitudes along the last axis; widened first, as 128 does not fit an int8."""
    total: Array = np.abs(weights, dtype=np.int32).sum(axis=-1, dtype=np.int64)
    return total


def _largest(values: Array) -> int:
    """Largest magnitude."""
    return max(-int(values.min()), int(values.max()))
