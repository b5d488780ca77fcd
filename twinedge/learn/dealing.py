"""Which training points each twin uses as anchors."""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError
from twinedge.learn.parameters import positive_integer


def deal(anchors: Any, count: int, twins: int) -> npt.NDArray[np.intp]:
    """Deal anchors out to twins.

    Parameters
    ----------
    anchors : "all", int or array of int
        All points for every twin; or so many random ones, or these rows, dealt out in turn so that
        each twin gets its share.
    count : int
        Training points there are.
    twins : int
        Networks to share them.

    Returns
    -------
    array of shape (twins, k)
        Rows of the training points.
    """
    if isinstance(anchors, str):
        if anchors != "all":
            raise InputError(f"anchors={anchors!r} is not 'all', a number or a list of rows")
        return np.tile(np.arange(count), (twins, 1))
    if isinstance(anchors, Integral):
        number = positive_integer("anchors", anchors)
        if number > count:
            raise InputError(f"anchors={number} is more than the {count} training points")
        rows: npt.NDArray[Any] = np.random.default_rng(0).permutation(count)[:number]
    else:
        try:
            rows = np.asarray(anchors)
        except ValueError:  # lists of different lengths
            rows = np.empty((0, 0))
        if rows.ndim != 1 or not len(rows) or not np.issubdtype(rows.dtype, np.integer):
            raise InputError("anchors must be a list of row numbers that is not empty")
        if rows.min() < 0 or rows.max() >= count:
            raise InputError(f"anchors must be rows 0 to {count - 1} of the training points")
    if len(rows) % twins:
        raise InputError(f"{len(rows)} anchors cannot be dealt out evenly to {twins} twins")
    return rows.reshape(-1, twins).T
