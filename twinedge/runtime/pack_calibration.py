"""Calibrate the intervals of a pack on its own integer predictions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import joined
from twinedge.pack.contents import Array, Intervals, Pack, target_names
from twinedge.runtime import reference
from twinedge.scoring.calibration import Calibration, CalibrationRows
from twinedge.scoring.scores import check_targets

_MOST = 2**32 - 1


def calibration_of(pack: Pack, unit: float | None = None) -> Calibration | None:
    """Return the calibration of a pack; None if it has no intervals.

    Parameters
    ----------
    pack : Pack
        With or without intervals.
    unit : float, optional
        The units of the calibration: what an estimate of 1 is in them. By default those of the
        target; with a target curve, on which no unit of the target stays the same, estimates.
    """
    stored, unit = pack.intervals, _unit(pack, unit)
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
    unit: float | None = None,
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
    unit : float, optional
        What an estimate of 1 is in the units of ``beside``; by default the gain of the target, or 1
        with a target curve.
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
    members, unit = found.estimates.shape[1], _unit(pack, unit)
    signals = found.signals.astype(np.float64) * unit / members
    outside = np.asarray(reference.outside(pack, q).any(axis=1))
    errors = _errors(pack, y, found, unit)
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


def calibrate_targets(pack: Pack, X: Array, y: Array) -> Pack:
    """Calibrate each target of a pack that has second outputs.

    Parameters
    ----------
    pack : Pack
        A pack with intervals, which are replaced; levels that some target has no rows for are left
        out.
    X, y : array of shape (n, f), (n,)
        Rows that the networks were not trained on. For several targets ``y`` is ``(n, m)``, NaN for
        a target that was not measured.

    Raises
    ------
    InputError
        As ``calibrate_pack``; the message names the target, if there are several.
    """
    if not pack.others:
        return calibrate_pack(pack, X, y)
    done = []
    names = target_names(pack.metadata, len(pack.every_target))
    for one, column, name in zip(pack.singles, y.T, names, strict=True):
        known = ~np.isnan(column)
        try:
            done.append(calibrate_pack(one, X[known], column[known]))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    return joined(with_common_levels(done))


def with_common_levels(packs: Sequence[Pack]) -> list[Pack]:
    """Return packs whose intervals have the levels that all of them have."""
    each = [one.intervals for one in packs if one.intervals is not None]
    common = [level for level in each[0].quantiles if all(level in one.quantiles for one in each)]
    kept = [
        replace(one, quantiles={level: one.quantiles[level] for level in common}) for one in each
    ]
    return [replace(one, intervals=own) for one, own in zip(packs, kept, strict=True)]


def _unit(pack: Pack, unit: float | None) -> float:
    """Return the given unit, or what an estimate of 1 is where the calibration is to be."""
    if unit is not None:
        return unit
    return float(pack.y_gain) if pack.target_curve is None else 1.0


def _errors(pack: Pack, y: Array, found: reference.Evaluation, unit: float) -> Array:
    """Return the errors, float64 ``(n,)``: on the side of the target curve where estimates are.

    The curve is monotone, so an interval holds a target where it holds its estimate.
    """
    if pack.target_curve is None:
        errors: Array = np.asarray(y, np.float64) - found.mean
        return errors
    estimates = reference.estimates_of(pack, y)
    if (estimates == reference.NO_ESTIMATE).any():
        raise InputError("a target is far beyond those that the pack was made for")
    return np.asarray((estimates - found.raw_mean) * unit)


def _integer(number: float) -> int:
    return min(round(number), _MOST)
