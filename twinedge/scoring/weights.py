"""Sample weights: how much each row counts. Needs only numpy.

A row of weight 2 counts as two rows of weight 1, and a row of weight 0 as none. Only the ratios of
weights matter. Weights that are all the same say nothing: they are dropped, so that a training with
equal weights is, bit for bit, one without.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]


def check_weights(sample_weight: Any, count: int, name: str = "sample_weight") -> Array:
    """Check the weights of ``count`` rows; returns them as an array ``(count,)`` of float64.

    Raises
    ------
    InputError
        If there is not one number for each row, if one is negative or not finite, or if fewer than
        two are above zero.
    """
    try:
        weights = np.asarray(sample_weight)
        if weights.dtype.kind not in "biufO":
            raise ValueError(weights.dtype)
        weights = weights.astype(np.float64)
    except (TypeError, ValueError):  # lists of different lengths, texts, dates
        raise InputError(f"{name} must be one number for each row") from None
    if weights.shape != (count,):
        raise InputError(
            f"{name} must have shape ({count},), one for each row, not shape {weights.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        row = wrong[0]
        raise InputError(
            f"{name}: row {row} has weight {weights[row]:g}; weights are finite numbers of at "
            "least 0"
        )
    positive = np.count_nonzero(weights)
    if positive < 2:
        found = "only one row has a weight above zero" if positive else "all weights are zero"
        raise InputError(f"{name}: {found}; at least two rows must count")
    return weights


def relative(weights: Array | None) -> Array | None:
    """Weights divided by their mean; None if there are none, or if they are all the same."""
    if weights is None or not len(weights) or np.ptp(weights) == 0:
        return None
    weights = weights / weights.max()  # so that no sum is out of range
    found: Array = weights / weights.mean()
    return found


def of_rows(weights: Array | None, rows: Any) -> Array | None:
    """Weights of some rows, if they have any."""
    return None if weights is None else weights[rows]


def joined_weights(*parts: tuple[Array | None, int]) -> Array | None:
    """Weights of several parts of a table, each with its number of rows; None if all are None."""
    if all(weights is None for weights, _ in parts):
        return None
    return np.concatenate([np.ones(rows) if one is None else one for one, rows in parts])


def effective_rows(weights: Array | None, count: int) -> float:
    """How many rows of equal weight are worth as much as ``count`` rows of these weights.

    That is Kish's effective sample size, the squared sum of the weights over the sum of their
    squares.

    Examples
    --------
    >>> effective_rows(np.array([1.0, 1.0, 1.0, 0.0]), 4)
    3.0
    """
    if weights is None:
        return float(count)
    return float(np.square(weights.sum()) / np.square(weights).sum())


def mean_and_std(values: Array, axis: Any, weights: Array | None) -> tuple[Array, Array]:
    """Mean and standard deviation along axes, weighted by an array of the same shape if any."""
    if weights is None:
        return values.mean(axis=axis), values.std(axis=axis)
    mean = np.average(values, axis=axis, weights=weights, keepdims=True)
    square = np.average(np.square(values - mean), axis=axis, weights=weights)
    return mean.reshape(square.shape), np.sqrt(square)


def measured_rows(
    values: Array, y: Array, weights: Array | None = None
) -> tuple[Array, Array, Array | None]:
    """Keep rows whose target ``(n,)`` was measured: values, targets and weights of these."""
    known = np.isfinite(y)
    return values[known], y[known], of_rows(weights, known)


def mean_over_targets(values: Array, known: Array, weights: Array | None = None) -> Array:
    """Mean over several targets of values at rows that measured some of them.

    Parameters
    ----------
    values : array of shape (..., n, m)
        Anything where a row did not measure a target.
    known : array of bool, of shape (..., n, m) or (n, m)
        Which targets each row measured.
    weights : array of shape (..., n) or (n,), optional
        How much each row counts.

    Returns
    -------
    array of shape (..., n)
        Their mean over the rows, weighted if rows have weights, is the mean over the targets of
        each target's mean over the rows that measured it. Targets that none measured do not count.

    Examples
    --------
    >>> values = np.array([[1.0, 4.0], [3.0, np.nan]])
    >>> float(mean_over_targets(values, np.isfinite(values)).mean())
    3.0
    """
    each = known * (1.0 if weights is None else weights[..., None])
    rows = known.shape[-2] if weights is None else weights.sum(axis=-1)[..., None, None]
    share = each.sum(axis=-2, keepdims=True)
    share = np.maximum(share, 1e-300) * np.count_nonzero(share, axis=-1)[..., None]
    found: Array = (np.where(known, values, 0.0) * (rows / share) * known).sum(axis=-1)
    return found


def running_shares(weights: Array) -> Array:
    """Return running sums along the last axis, as shares of the whole; the last is 1.

    A uniform random number below 1 falls before the first share that exceeds it, which draws that
    row with a probability in proportion to its weight.
    """
    sums = np.cumsum(weights, axis=-1, dtype=np.float64)
    found: Array = sums / sums[..., -1:]
    return found


def draw(rng: "np.random.Generator", count: int, weights: Array | None, shape: Any) -> Rows:
    """Draw from ``count`` rows, with replacement, in proportion to their weights if any."""
    if weights is None:
        return np.asarray(rng.integers(0, count, shape))
    found: Rows = np.searchsorted(running_shares(weights), rng.random(shape), side="right")
    return found


def in_proportion(rows: Rows, weights: Array | None, count: int) -> Rows:
    """Take ``count`` of some rows, each about as often as its weight says.

    Parameters
    ----------
    rows : array of shape (n,)
        Rows, in random order.
    weights : array, optional
        Weights of all rows of the table; without them, the first rows are taken.
    count : int
        How many to take. A heavy row may be taken more than once.

    Returns
    -------
    array of shape (count,), or (n,) if that is shorter and there are no weights

    Examples
    --------
    >>> in_proportion(np.array([2, 0, 1]), np.array([1.0, 1.0, 2.0]), 4)
    array([2, 2, 0, 1])
    """
    if weights is None:
        return rows[:count]
    places = (np.arange(count) + 0.5) / count
    return rows[np.searchsorted(running_shares(weights[rows]), places, side="right")]
