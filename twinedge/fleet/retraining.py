"""What would a pack gain that is trained again, with the points of all devices?

Nobody trains a network to answer that. A small regressor stands in for it: it predicts the errors
of the pack, in scales, from the features, and always for devices that it has not seen.
Ridge regression on the features, or on these and all their squares and products, or a constant, or
nothing at all; which of them, and how much ridge, is chosen by leaving out other devices, among
those that remain. So it gains nothing by chance, and what it finds a network can find as well, and
perhaps more: the estimate errs to the side of caution.

What is left is divided again: into what the points of one device have in common, which learning on
site removes and retraining cannot, and the rest, which nothing removes.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from twinedge.fleet.stores import FleetPoints
from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference
from twinedge.runtime.store import Evaluated
from twinedge.runtime.store_summary import point_errors

LEAST_DEVICES = 5
_FOLDS = 10
_MOST_ADAPTED = 1000  # devices whose points are predicted from each other
_MOST_TERMS = 300  # beyond that, features have no products
_FARTHEST = 7.0  # scales; a larger error counts as this in a fit
_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # times the number of points


@dataclass(frozen=True)
class Gain:
    """What retraining would bring, for devices that are not among those trained with.

    Parameters
    ----------
    rmse_shipped, rmse_retrained : float
        Errors of the pack as it is and after retraining, in units of the target.
    rmse_adapted, rmse_retrained_adapted : float
        The same, each point predicted with the others of its device; of a thousand devices at most.
    gain, standard_error : float
        Mean share of the squared error, in scales, that retraining removes, over devices.
    shared : float
        Share of the squared error, in scales, that all devices have in common, as a function of the
        features: for retraining.
    of_devices : float
        Share that the points of each device have in common: for learning on site.
    rest : float
        Share that is noise, or cannot be learnt so easily.
    """

    rmse_shipped: float
    rmse_retrained: float
    rmse_adapted: float
    rmse_retrained_adapted: float
    gain: float
    standard_error: float
    shared: float
    of_devices: float
    rest: float

    @property
    def worthwhile(self) -> bool:
        """Whether it is certain that retraining brings something."""
        return self.gain > 2 * self.standard_error

    def record(self) -> dict[str, Any]:
        """Return everything, as values for JSON."""
        return asdict(self) | {"worthwhile": self.worthwhile}


def estimate_gain(pack: Pack, points: FleetPoints) -> Gain | None:
    """Estimate what retraining would bring, by leaving devices out; None for very few devices.

    Points that their device gives no weight are left out.
    """
    counts = points.weights > 0
    devices, device = np.unique(points.device[counts], return_inverse=True)
    if len(devices) < LEAST_DEVICES:
        return None
    scale = np.maximum(points.scale[counts], 1) / 16
    z = (points.targets - points.mean)[counts] / scale
    expected = predict_left_out(points.features[counts], z, device)
    left = z - expected
    before, after = _mean_squares(z, device), _mean_squares(left, device)
    total = max(float(np.square(z).mean()), 1e-300)
    own = _in_common(left, device)
    shared = max(total - float(np.square(left).mean()), 0.0)
    shift = np.zeros(len(points), np.int64)
    shift[counts] = np.rint(expected * scale).astype(np.int64)
    some = devices[:: -(-len(devices) // _MOST_ADAPTED)]
    sample = np.isin(points.device, some)
    adapted = _adapted(pack, points, shift, sample)[counts & sample]
    each = (before - after) / before.mean()
    return Gain(
        _rmse(_in_units(pack, points.targets[counts], z * scale)),
        _rmse(_in_units(pack, points.targets[counts], left * scale)),
        _rmse(points.adapted[counts & sample]),
        _rmse(adapted),
        float(each.mean()),
        float(each.std(ddof=1) / np.sqrt(len(devices))),
        shared / total,
        min(own, total - shared) / total,
        max(total - shared - own, 0.0) / total,
    )


def _in_units(pack: Pack, targets: Array, off: Array) -> Array:
    """Return errors ``(n,)``, in units of an estimate, in those of the target."""
    unit = float(pack.y_gain)
    if pack.target_curve is None:
        return off * unit
    predicted = np.rint(targets - off).astype(np.int64)
    return (reference.curved(pack, targets) - reference.curved(pack, predicted)) * unit


def _adapted(pack: Pack, points: FleetPoints, shift: Array, sample: Array) -> Array:
    """Errors ``(n,)`` in units of the target, each point predicted from the others of its device.

    ``shift`` is added to what the pack predicts. Devices that are not in the sample have NaN.
    """
    starts = np.flatnonzero(np.diff(points.device, prepend=-1))
    found = np.full(len(points), np.nan)
    for start, end in zip(starts, [*starts[1:], len(points)], strict=True):
        if sample[start]:
            rows = slice(start, end)
            mean, able = points.mean[rows] + shift[rows], np.ones(end - start, bool)
            at_points = Evaluated(able, points.targets[rows], mean, points.scale[rows])
            found[rows] = point_errors(pack, at_points).adapted
    return found


def predict_left_out(features: Array, z: Array, device: Array) -> Array:
    """Predict errors from the features, with what other devices show.

    Parameters
    ----------
    features : array of shape (n, f)
        In any unit.
    z : array of shape (n,)
        Errors, in scales.
    device : array of shape (n,)
        Numbers of devices, from 0.

    Returns
    -------
    array of shape (n,)
        Where nothing can be learnt, this is 0.
    """
    terms, linear = _terms(features)
    folds = min(_FOLDS, int(device.max()) + 1)
    # Neighbouring numbers may be neighbours on site: assign folds at random, but always alike.
    fold = (np.random.default_rng(0).permutation(int(device.max()) + 1) % folds)[device]
    fits = [
        (1, 0.0),
        *((n, one) for n in dict.fromkeys((linear, terms.shape[1])) for one in _RIDGES),
    ]
    limited = np.clip(z, -_FARTHEST, _FARTHEST)
    parts = [terms[fold == one] for one in range(folds)]
    moments = np.stack([part.T @ part for part in parts])
    products = np.stack([p.T @ limited[fold == one] for one, p in enumerate(parts)])
    sizes = np.bincount(fold, minlength=folds)
    answers = [limited[fold == one] for one in range(folds)]

    def fitted(without: list[int]) -> list[Array]:
        rest = [one for one in range(folds) if one not in without]
        moment, product = moments[rest].sum(axis=0), products[rest].sum(axis=0)
        return [_ridge(moment, product, n, one * sizes[rest].sum()) for n, one in fits]

    expected = np.zeros(len(z))
    for out in range(folds):
        errors = np.zeros(1 + len(fits))  # the first is for nothing at all
        for other in range(folds):
            if other != out:
                guesses = parts[other] @ np.stack(fitted([out, other]), axis=1)
                errors[0] += np.square(answers[other]).sum()
                errors[1:] += np.square(answers[other][:, None] - guesses).sum(axis=0)
        best = int(np.argmin(errors))
        if best:
            expected[fold == out] = parts[out] @ fitted([out])[best - 1]
    return expected


def _terms(features: Array) -> tuple[Array, int]:
    """Return a constant, features, their squares and products; how many come before the squares.

    Columns have a variance of 1.
    """
    columns = _standardised(features.astype(np.float64))
    count = columns.shape[1]
    one, two = np.triu_indices(count)
    if 1 + count + len(one) > _MOST_TERMS:
        one = two = np.arange(count if 1 + 2 * count <= _MOST_TERMS else 0)
    squares = _standardised(columns[:, one] * columns[:, two])
    return np.concatenate([np.ones((len(columns), 1)), columns, squares], axis=1), 1 + count


def _standardised(columns: Array) -> Array:
    spread = columns.std(axis=0)
    found: Array = (columns - columns.mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)
    return found


def _ridge(moment: Array, product: Array, count: int, ridge: float) -> Array:
    """Coefficients of all terms, of which only the first ``count`` are used."""
    found = np.zeros(len(product))
    penalty = np.full(count, ridge + 1e-9 * moment[0, 0])
    penalty[0] = 0.0  # the constant is free
    found[:count] = np.linalg.solve(moment[:count, :count] + np.diag(penalty), product[:count])
    return found


def _in_common(z: Array, device: Array) -> float:
    """Variance that errors of one device have in common, from an analysis of variance."""
    counts = np.bincount(device)
    means = np.bincount(device, z) / counts
    within = float(np.square(z - means[device]).sum()) / max(len(z) - len(counts), 1)
    # A mean of n errors varies by what they have in common and by 1 / n of what they have not.
    between = float((counts * np.square(means)).sum() - len(counts) * within) / len(z)
    return max(between, 0.0) if len(z) > len(counts) else 0.0


def _mean_squares(z: Array, device: Array) -> Array:
    squares: Array = np.bincount(device, np.square(z)) / np.bincount(device)
    return squares


def _rmse(errors: Array) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
