"""The input map and the target curve of a model as the integer tables of a pack.

The numbers of a map's table are rounded so that their errors cancel where the training points are,
as those of the kernels are: a point meets a row or two of every feature at once. Networks are then
fitted to what the integers make of a point.

The table of a target curve is straight between its entries, and the curve is not. Entries on the
curve itself would put all lines on one side of it; moved by a twelfth of their second difference,
they are right on average. There are as few of them as keep the error below a thousandth.
"""

from collections.abc import Iterator
from math import ceil, floor, log2

import numpy as np

from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import LARGEST, TARGET, Array, InputMap, TargetCurve
from twinedge.pack.layout import MAX_CURVE_BINS, MAX_CURVE_SHIFT
from twinedge.training import input_map
from twinedge.training.network import Scaling
from twinedge_export.round_weights import RoundingData

_MOST, _WHOLE = 127, 14  # largest number of a table; bits of the share of a bin
_SHIFTS = 1, 24
_ROWS = 4096  # training points to make errors cancel on


def round_map(learnt: input_map.InputMap, unit: float, scaled: Array) -> InputMap:
    """Round a map.

    Parameters
    ----------
    learnt : InputMap
        Of the model.
    unit : float
        What one unit of a quantised feature stands for, scaled; the same for all outputs.
    scaled : array of shape (n, f)
        Scaled training points.
    """
    bins = np.zeros(learnt.features, np.uint8)
    knots, rows = [np.zeros(0, np.int16)], [np.zeros((0, learnt.outputs))]
    for feature, mine, table in _distinct(learnt, unit):
        bins[feature] = len(mine) - 1
        knots.append(mine)
        rows.append(table)
    table = np.concatenate(rows)
    largest = np.abs(table).max(axis=0, initial=0.0)
    finest = _WHOLE + np.log2(_MOST * unit / np.maximum(largest, 1e-30))
    shifts = np.floor(finest).clip(*_SHIFTS)
    steps = unit * 2.0 ** (_WHOLE - shifts)
    made = InputMap(bins, shifts.astype(np.uint8), np.concatenate(knots), table)
    whole = np.rint(table / steps)
    if len(table):
        codes = _codes(made, np.rint(scaled[:: -(-len(scaled) // _ROWS)] / unit))
        data = RoundingData(codes, np.zeros((len(codes), 1)), bias=False)
        whole = data.rounded((table / steps).T, _MOST).T
    whole = whole.clip(-_MOST, _MOST).astype(np.int8)
    return InputMap(made.bins, made.shifts, made.knots, whole)


def _distinct(learnt: input_map.InputMap, unit: float) -> Iterator[tuple[int, Array, Array]]:
    """Feature, quantised knots and table of each curve; knots that became equal are one."""
    for feature, exact, table in learnt.parts():
        knots = np.rint(exact.astype(np.float64) / unit).clip(-LARGEST, LARGEST)
        kept, where, count = np.unique(knots, return_inverse=True, return_counts=True)
        rows = np.zeros((len(kept), table.shape[1]))
        np.add.at(rows, where, table)
        rows /= count[:, None]
        if len(kept) == 1:  # a constant still counts
            kept = kept + ([0, 1] if kept[0] < LARGEST else [-1, 0])
            rows = np.repeat(rows, 2, axis=0)
        yield feature, kept.astype(np.int16), rows


def _codes(made: InputMap, q: Array) -> Array:
    """Shares of all rows of the table at quantised points ``(n, f)``: ``(n, rows)``, 2^14 a row."""
    codes = np.zeros((len(q), len(made.knots)))
    everyone = np.arange(len(q))
    for feature, rows in made.curves():
        knots = made.knots[rows].astype(np.float64)
        at = np.clip(np.searchsorted(knots, q[:, feature], side="right") - 1, 0, len(knots) - 2)
        share = ((q[:, feature] - knots[at]) / (knots[at + 1] - knots[at])).clip(0, 1)
        codes[everyone, rows.start + at] = (1 - share) * 2**_WHOLE
        codes[everyone, rows.start + at + 1] = share * 2**_WHOLE
    return codes


_ERROR = 1e-3  # of a table, relative to how far the target varies
_FOLD = 1.0  # on a logarithm, further than this is several times the target itself
_EXTENDED = 0.5  # of the range of the training targets on the curve, at either end
# Deviations of the target: values above would make their unit too coarse for those below, and
# values between a limit of the target and the least of these are all alike.
_FARTHEST, _FINEST = 2.0**12, 2.0**-14
_BETWEEN = 16  # points of each bin at which the error is measured
_POINTS = 1000  # whose intervals are looked at
# What a device's floats can hold.
_LARGEST, _TINIEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)


def round_target_curve(model: TwinRegressor, unit: float) -> tuple[TargetCurve, np.float32]:
    """Make the table of a model's target curve.

    Parameters
    ----------
    model : TwinRegressor
        Fitted, with a target curve.
    unit : float
        What one unit of an estimate stands for, on the curve.

    Returns
    -------
    TargetCurve
        Of the fewest bins that will do.
    gain : float32
        What one unit of its values stands for; they need no offset.

    Raises
    ------
    InputError
        If no table is exact enough.
    """
    scaling, y = model.scaling_, model.anchor_y_
    first, last = ((end - scaling.y_mean) / unit for end in _range(model))
    start, widest = floor(first), min(ceil(log2(last - first)), MAX_CURVE_SHIFT)
    for shift in range(widest, -1, -1):
        bins = ceil((last - start) / 2**shift)
        if bins > MAX_CURVE_BINS:
            break
        fitted = _fitted(scaling, unit, start + np.arange(-1.0, bins + 2) * 2.0**shift)
        if curve_error(fitted, start, shift, scaling, unit) > _ERROR:
            continue
        most = float(np.abs(fitted).max())
        gain = most / (TARGET - 2 * MAX_CURVE_BINS)
        if most > _LARGEST or gain < _TINIEST:
            break
        gain = float(np.float32(gain))
        values = _increasing(fitted / gain)
        if np.abs(values * gain - fitted).max() > _ERROR * _deviation(y):
            break
        return TargetCurve(start, shift, values), np.float32(gain)
    raise InputError(
        "the target varies too little for its size, or over too many powers of ten, for a table "
        "of its curve: train it without one"
    )


def _range(model: TwinRegressor) -> tuple[float, float]:
    """Return the range that the table of a target curve spans, on the curve.

    It goes far beyond the training targets, and beyond the widest intervals of validation points.
    """
    scaling, y = model.scaling_, model.anchor_y_
    assert scaling.curve is not None
    c = scaling.curved(y)
    room = max(_EXTENDED * float(np.ptp(c)), scaling.y_scale)
    low, high = float(c.min()) - room, float(c.max()) + room
    if model.calibration_ is not None:
        coverage = max(model.calibration_.quantiles)
        widest = model.predict_interval(model.validation_[0][:_POINTS], coverage).ravel()
        widest = scaling.curved(widest[scaling.curve.takes(widest)])
        low, high = min([low, *widest]), max([high, *widest])
    limit = scaling.uncurved(np.array([-np.inf]))  # which no target is below
    finest = 0.0 if scaling.curve.kind == "sqrt" else _FINEST
    ends = limit + _deviation(y) * np.array([finest, _FARTHEST])
    least, most = scaling.curved(np.minimum(ends, _LARGEST / 2))
    return max(low, float(least)), max(float(c.max()), min(high, float(most)))


def _deviation(y: Array) -> float:
    """Return the standard deviation of targets; their size if they do not vary."""
    return float(np.std(y)) or float(np.abs(y).max()) or 1.0


def _fitted(scaling: Scaling, unit: float, estimates: Array) -> Array:
    """Return the entries of a table at all but the outer two of these estimates."""
    exact = scaling.uncurved(estimates * unit + scaling.y_mean)
    fitted: Array = np.maximum(exact[1:-1] - np.diff(exact, 2) / 12, exact[0])
    return fitted


def _increasing(values: Array) -> Array:
    """Round values ``(n,)`` that ascend such that each is above the one before, int32."""
    order, whole = np.arange(len(values)), np.rint(values)
    up = np.maximum.accumulate(whole - order) + order
    down = np.minimum.accumulate((whole - order)[::-1])[::-1] + order
    return np.floor((up + down + 1) / 2).astype(np.int32)


def curve_error(values: Array, first: int, shift: int, scaling: Scaling, unit: float) -> float:
    """Return the largest error of a table, relative to how far the target varies there.

    That is one deviation on the curve, but of a logarithm no more than the size of the target.
    """
    assert scaling.curve is not None
    at = np.arange((len(values) - 1) * _BETWEEN + 1) / _BETWEEN
    c = (first + at * 2.0**shift) * unit + scaling.y_mean
    most = np.inf if scaling.curve.kind == "sqrt" else _FOLD
    varies = scaling.deviation(c, np.full(len(c), min(scaling.y_scale, most)))
    found = np.interp(at, np.arange(len(values)), values)
    return float(np.max(np.abs(found - scaling.uncurved(c)) / varies))
