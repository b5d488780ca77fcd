"""Which training points each twin uses as anchors."""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError
from twinedge.learn.parameters import positive_integer

# Thousands of anchors agree to the last digit with hundreds, and take as many times longer.
_MANY, _ENOUGH = 4096, 256


def deal(anchors: Any, count: int, twins: int) -> npt.NDArray[np.intp]:
    """Deal anchors out to twins.

    Parameters
    ----------
    anchors : "auto", "all", int or array of int
        All points for every twin, with "auto" some of them where there are thousands; or so many
        random ones, or these rows, dealt out in turn so that each twin gets its share.
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
        if anchors not in ("auto", "all"):
            raise InputError(
                f"anchors={anchors!r} is not 'auto', 'all', a number or a list of rows"
            )
        everyone = np.arange(count)
        if anchors == "auto" and count > _MANY:
            everyone = np.sort(_shuffled(count)[:_ENOUGH])
        return np.tile(everyone, (twins, 1))
    if isinstance(anchors, Integral):
        number = positive_integer("anchors", anchors)
        if number > count:
            raise InputError(f"anchors={number} is more than the {count} training points")
        rows: npt.NDArray[Any] = _shuffled(count)[:number]
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


def _shuffled(count: int) -> npt.NDArray[np.intp]:
    return np.random.default_rng(0).permutation(count).astype(np.intp)
