"""Anchors by their row numbers: which may be asked for, and which twin owns which; numpy alone.

Rows are dealt out in turn: of ``twins`` twins, twin ``t`` owns ``rows[t::twins]``.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError

Rows = npt.NDArray[np.intp]


def check_rows(rows: Any, count: int, twins: int = 1, *, twice: bool = False) -> Rows:
    """Check row numbers of training points.

    Parameters
    ----------
    rows : array of int
        Row numbers, from 0.
    count : int
        Training points there are.
    twins : int
        Networks to share them.
    twice : bool
        Whether a row may be listed more than once.

    Returns
    -------
    array of shape (k,)
        The same numbers in the same order.
    """
    try:
        array = np.asarray(rows)
    except (ValueError, OverflowError):  # lists of different lengths
        array = np.empty((0, 0))
    if array.ndim == 1 and not array.size:
        raise InputError("anchors: the list of rows is empty")
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError("anchors must be a list of whole row numbers")
    outside = array[(array < 0) | (array >= count)]
    if outside.size:
        raise InputError(
            f"anchors: row {outside[0]} is not there; the training points are rows 0 to {count - 1}"
        )
    numbers, times = np.unique(array, return_counts=True)
    if not twice and (times > 1).any():
        raise InputError(f"anchors: row {numbers[times > 1][0]} is listed more than once")
    if len(array) % twins:
        raise InputError(f"anchors: {len(array)} rows cannot be dealt out evenly to {twins} twins")
    return array.astype(np.intp)


def check_count(k: Any, count: int, twins: int) -> None:
    """Refuse a number of anchors that cannot be chosen or not be shared."""
    if not whole(k) or k < 1:
        raise InputError(f"anchors: {k!r} is not a positive whole number")
    if k > count:
        raise InputError(f"anchors: {k} is more than the {count} training points")
    if k % twins:
        near = k - k % twins or twins
        raise InputError(f"anchors: {k} cannot be dealt out evenly to {twins} twins; {near} can")


def deal_out(rows: Rows, twins: int) -> Rows:
    """Deal out rows ``(k,)``, of which each twin gets as many; returns ``(twins, k / twins)``."""
    return rows.reshape(-1, twins).T


def gather(dealt: Sequence[Rows]) -> Rows:
    """Put the rows of each twin, as many of each, in the order they were dealt out from."""
    return np.stack(dealt, axis=1).ravel()


def whole(value: Any) -> bool:
    """Whether a value is a whole number; True is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)
