"""Anchors by row number: which are valid, and which twin owns which. Needs only numpy.

Rows are dealt out in turn: twin ``t`` of ``twins`` owns ``rows[t::twins]``.
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
        Number of training points.
    twins : int
        Number of networks that share the rows.
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
            f"anchors: there is no row {outside[0]}; the training points are rows 0 to {count - 1}"
        )
    numbers, times = np.unique(array, return_counts=True)
    if not twice and (times > 1).any():
        raise InputError(f"anchors: row {numbers[times > 1][0]} is listed more than once")
    if len(array) % twins:
        raise InputError(f"anchors: {len(array)} rows cannot be dealt out evenly to {twins} twins")
    return array.astype(np.intp)


def check_count(k: Any, count: int, twins: int) -> None:
    """Refuse a number of anchors that is out of range or cannot be shared evenly."""
    if not whole(k) or k < 1:
        raise InputError(f"anchors: {k!r} is not a positive whole number")
    if k > count:
        raise InputError(f"anchors: {k} is more than the {count} training points")
    if k % twins:
        near = (2 * k + twins) // (2 * twins) * twins  # the larger of two that are equally near
        near = max(twins, min(near, count - count % twins))
        raise InputError(f"anchors: {k} cannot be dealt out evenly to {twins} twins; {near} can")


def deal_out(rows: Rows, twins: int) -> Rows:
    """Deal rows ``(k,)`` out evenly to the twins; returns ``(twins, k / twins)``."""
    return rows.reshape(-1, twins).T


def gather(dealt: Sequence[Rows]) -> Rows:
    """Undo ``deal_out``: the rows of all twins, in the order before they were dealt."""
    return np.stack(dealt, axis=1).ravel()


def whole(value: Any) -> bool:
    """Whether a value is a whole number; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)
