"""What is wrong with a device, from the errors of the pack at its points.

Errors are in scales: a scale is how far off the pack itself expects a prediction to be. A check
compares a device with healthy ones, whose errors follow the model of FORMAT.md, section 13: Student
with 4 degrees of freedom, of which any two on one device share ``trust`` of their variance. Each
check names one healthy device in a hundred or fewer. (The interval of devices with 60 points is an
exception: up to three in a hundred, as by this model some are noisier than others for good; where
noise is alike on all devices it is one in a hundred, too.)

off
    The mean error, weighted as the device weighs its points, is larger than those of healthy
    devices.
drifting
    Errors rise or fall from earlier to later points: their rank correlation (Spearman's) is larger
    than chance allows, and the medians of the two halves are at least half a scale apart.
interval
    Fewer points are inside the usual interval, each predicted from the others, than binomial chance
    allows if twice as many are outside as it promises. Healthy devices differ in their noise, so a
    little more than promised is no reason to look.
glitch
    A point has no weight, and is farther off than the farthest of so many on a healthy device.
"""

from math import erfc, log, sqrt
from typing import Any

import numpy as np

from twinedge.pack.contents import Array, Intervals
from twinedge.runtime.adaptation import MOST_POINTS
from twinedge.runtime.store_summary import PointErrors

FALSE_ALARMS = 0.01  # share of healthy devices that a check names
FINDINGS = ("off", "drifting", "interval", "glitch", "damaged")
_FREEDOM = 4  # degrees of freedom of the Student distribution
_LEAST_POINTS = 3  # for a statement about a device rather than about a point
_LEAST_DRIFT = 0.5  # scales
_PATIENCE = 2.0  # times as many points outside the interval as it promises are no reason to look
_CERTAIN = 2.0  # standard errors
_OFF_LIMIT = 4.604095  # where the Student distribution has FALSE_ALARMS beyond, on both sides
_DRIFT_LIMIT = 2.575829  # the same of the normal distribution
_LOG_FACTORIALS = np.append(0.0, np.cumsum(np.log(np.arange(1, MOST_POINTS + 1))))


def check_device(
    errors: PointErrors, scale: Array, order: Array, intervals: Intervals
) -> dict[str, Any]:
    """Check one device.

    Parameters
    ----------
    errors : PointErrors
        Errors at its points.
    scale : array of shape (k,)
        Expected errors there, in the units of the errors.
    order : array of shape (k,)
        Indices of the points, the earliest first.
    intervals : Intervals
        Those of the pack.

    Returns
    -------
    dict
        Ready for JSON. ``severity`` is how many times the limit of a check is exceeded, at most:
        1 or more names the device.
    """
    order = order[errors.used[order]]
    z, weights = errors.shipped[order] / scale[order], errors.weights[order]
    off = _offset(z, weights, intervals.trust / 65536)
    drift = _drift(z)
    usual = intervals.usual_level / 1000
    level = max(1 - _PATIENCE * (1 - usual), usual / 2)
    inside = [int(one[order].sum()) for one in (errors.covered_shipped, errors.covered)]
    chances = [_at_most(one, len(z), level) for one in inside]
    ratios = {
        "off": off.pop("ratio"),
        "drifting": drift.pop("ratio"),
        "interval": log(max(chances[1], 1e-300)) / log(FALSE_ALARMS),
    }
    findings = [name for name, ratio in ratios.items() if ratio > 1]
    glitches = _glitches(z, weights, off["mean_in_scales"] or 0.0)
    if glitches and "drifting" not in findings:
        findings.append("glitch")
    share = [one / len(z) if len(z) else None for one in inside]
    return {
        **off,
        **drift,
        **dict(zip(("inside_shipped", "inside_adapted"), share, strict=True)),
        **dict(zip(("chance_shipped", "chance_adapted"), chances, strict=True)),
        "glitches": glitches,
        "findings": findings,
        "severity": max(ratios.values()),
    }


def _offset(z: Array, weights: Array, trust: float) -> dict[str, Any]:
    """Mean error in scales, its standard error, what it is at least, and if that is usual.

    The variance within devices that the model expects counts like four more points, so that two
    points which happen to agree do not look certain.
    """
    total = float(weights.sum())
    if not total:
        return dict.fromkeys(("mean_in_scales", "standard_error", "off_by_at_least")) | {"ratio": 0}
    mean = float((weights * z).sum() / total)
    squares = float((weights * np.square(z - mean)).sum())
    variance = (_FREEDOM * (1 - trust) + squares) / (_FREEDOM + max(total - 1, 0))
    error = sqrt(variance / total)
    usual = sqrt(trust + (1 - trust) / total)
    return {
        "mean_in_scales": mean,
        "standard_error": error,
        "off_by_at_least": max(abs(mean) - _CERTAIN * error, 0.0),
        "ratio": abs(mean) / usual / _OFF_LIMIT if len(z) >= _LEAST_POINTS else 0.0,
    }


def _drift(z: Array) -> dict[str, Any]:
    """How far later errors ``(k,)`` are above earlier ones, in scales, and if that is chance."""
    half = len(z) // 2
    if half < 2:
        return {"drift": None, "chance_drift": None, "ratio": 0.0}
    drift = float(np.median(z[-half:]) - np.median(z[:half]))
    statistic = abs(_rank_correlation(z)) * sqrt(len(z) - 1)
    return {
        "drift": drift,
        "chance_drift": erfc(statistic / sqrt(2)),
        "ratio": min(statistic / _DRIFT_LIMIT, abs(drift) / _LEAST_DRIFT),
    }


def _rank_correlation(z: Array) -> float:
    """Spearman's correlation of numbers with their order; equal ones have their mean rank."""
    _, which, counts = np.unique(z, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[which]
    ranks -= ranks.mean()
    order = np.arange(len(z)) - (len(z) - 1) / 2
    among = sqrt(float(np.square(ranks).sum() * np.square(order).sum()))
    return float((ranks * order).sum()) / among if among else 0.0


def _glitches(z: Array, weights: Array, mean: float) -> int:
    """How many points are farther from the mean than the farthest on a healthy device."""
    far = np.abs(z[weights == 0] - mean)
    return int((_student_beyond(far) * len(z) < FALSE_ALARMS).sum())


def _student_beyond(t: Array) -> Array:
    """Chance that a Student variable with 4 degrees of freedom is larger, either sign: ``(n,)``."""
    sine, square = t / np.sqrt(_FREEDOM + np.square(t)), _FREEDOM / (_FREEDOM + np.square(t))
    beyond: Array = np.maximum(1 - sine * (1 + square / 2), 0.0)
    return beyond


def _at_most(hits: int, trials: int, chance: float) -> float:
    """Binomial chance of so many hits or fewer; ``trials`` is at most ``MOST_POINTS``.

    Examples
    --------
    >>> round(_at_most(1, 3, 0.9), 6), round(_at_most(0, 0, 0.9), 6)
    (0.028, 1.0)
    """
    some = np.arange(hits + 1)
    ways = _LOG_FACTORIALS[trials] - _LOG_FACTORIALS[some] - _LOG_FACTORIALS[trials - some]
    chances = np.exp(ways + some * log(chance) + (trials - some) * log(1 - chance))
    return min(float(chances.sum()), 1.0)
