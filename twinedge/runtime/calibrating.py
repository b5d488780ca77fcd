"""What makes the intervals of a pack: read from it, and made anew by what its integers say."""

from dataclasses import replace

import numpy as np

from twinedge.calibration import Calibration, calibrate
from twinedge.errors import InputError
from twinedge.pack.contents import Array, Intervals, Pack
from twinedge.runtime import reference
from twinedge.scoring import check_targets

_MOST = 2**32 - 1


def calibration_of(pack: Pack) -> Calibration | None:
    """Give what a pack makes its intervals with, in units of the target; None without any."""
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


def calibrate_pack(pack: Pack, X: Array, y: Array, *, chosen: bool = False) -> Pack:
    """Calibrate a pack that has second outputs, on what its own integers say of these rows.

    Parameters
    ----------
    pack : Pack
        With intervals, whatever they are; they are made anew.
    X, y : array of shape (n, f), (n,)
        Rows that the networks were not trained on.
    chosen : bool
        Whether settings of the training were chosen on these rows.

    Raises
    ------
    InputError
        Where the pack has no second output, or there is nothing to learn from these rows.
    """
    if pack.intervals is None:
        raise InputError("the pack was exported without intervals, and cannot be given any")
    y = check_targets(y, len(X))
    q = reference.quantise(pack, X)
    found = reference.evaluate_raw(pack, q)
    assert found.signals is not None
    members, unit = found.members.shape[1], float(pack.y_gain)
    signals = found.signals.astype(np.float64) * unit / members
    outside = np.asarray(reference.outside(pack, q).any(axis=1))
    errors = np.asarray(y, np.float64) - found.mean
    made = calibrate(signals, errors, outside=outside, chosen=chosen)
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
    typical = reference.raw_scale(found.signals, intervals, members).mean()
    return replace(pack, intervals=replace(intervals, typical=round(float(typical))))


def _integer(number: float) -> int:
    return min(round(number), _MOST)
