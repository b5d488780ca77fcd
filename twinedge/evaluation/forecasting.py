"""Scores in order of time: the naive forecast, and errors block by block. Needs only numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.data.splitting import time_blocks
from twinedge.encoding.times import Notation, format_time
from twinedge.scoring.scores import rmse

Array = npt.NDArray[Any]

BLOCKS = 5  # a table that is quickly read, and shows whether errors grow


def naive_forecast(times: Array, y: Array, streams: Array | None = None) -> Array:
    """Predict the last known value: the target of the row before, in order of time.

    It knows every target that was measured before a row, also those of other test rows. Rows of
    the same time do not know each other; the next row is predicted by the mean of their targets.

    Parameters
    ----------
    times, y : array of shape (n,)
        When each row was measured, as a number, and its target.
    streams : array of shape (n,), optional
        Which stream each row is of: the last value is that of the same one.

    Returns
    -------
    array of shape (n,)
        NaN for rows with none before them.

    Examples
    --------
    >>> naive_forecast(np.array([3, 1, 2]), np.array([30.0, 10.0, 20.0])).tolist()
    [20.0, nan, 10.0]
    """
    if streams is not None:
        found = np.empty(len(y))
        for one in np.unique(streams):
            mine = streams == one
            found[mine] = naive_forecast(times[mine], y[mine])
        return found
    _, when, counts = np.unique(times, return_inverse=True, return_counts=True)
    last = np.bincount(when, y) / counts
    return np.asarray(np.concatenate([[np.nan], last[:-1]])[when])


def score_blocks(
    times: Array,
    notation: Notation,
    error: Array,
    naive_error: Array,
    weights: Array | None = None,
) -> list[dict[str, Any]]:
    """Score predictions in up to five consecutive blocks of time, to show whether they get worse.

    Parameters
    ----------
    times : array of shape (n,)
        When each row was measured.
    notation : Notation
        What these numbers mean.
    error, naive_error : array of shape (n,)
        Errors of the predictions, and of the naive forecast, NaN where there is none.
    weights : array of shape (n,), optional
        How much each row counts.

    Returns
    -------
    list of dict
        In JSON types, oldest first: ``from`` and ``until``, the first and the last time, as ISO
        8601; ``rows``; ``rmse`` and ``rmse_naive``, the latter None without a naive forecast.
    """
    block, known = time_blocks(times, BLOCKS), np.isfinite(naive_error)
    return [
        {
            "from": format_time(float(times[mine].min()), notation),
            "until": format_time(float(times[mine].max()), notation),
            "rows": int(mine.sum()),
            "rmse": _rmse(error, mine, weights),
            "rmse_naive": _rmse(naive_error, mine & known, weights),
        }
        for mine in (block == one for one in range(int(block.max()) + 1))
    ]


def _rmse(error: Array, rows: Array, weights: Array | None) -> float | None:
    if not rows.any():
        return None
    return rmse(error[rows], weights=None if weights is None else weights[rows])
