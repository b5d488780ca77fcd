"""Which training points are anchors, and which twin owns which.

Anchors are given as "all", "auto", a number or rows. Rows are assigned to the twins in turn: twin
``t`` owns ``rows[t::twins]``. Needs only numpy.
"""

from collections.abc import Iterator, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.errors import InputError, wrong_value
from twinedge.scoring.weights import in_proportion
from twinedge.wording import quoted, shown

Rows = npt.NDArray[np.intp]
FloatArray = npt.NDArray[Any]

# Thousands of anchors predict the same as hundreds to the last digit, but take much longer.
_MANY, _ENOUGH = 4096, 256


def assign(
    anchors: Any,
    count: int,
    twins: int,
    weights: FloatArray | None = None,
    *,
    nearest: bool = False,
) -> tuple[Rows, FloatArray | None]:
    """Assign training points to the twins as their anchors.

    Parameters
    ----------
    anchors : "auto", "all", int or array of int
        All points for every twin, with "auto" only some if there are thousands; or this many random
        ones, or these rows, of which each twin gets its share.
    count : int
        Number of training points.
    twins : int
        Number of networks that share them.
    weights : array of shape (count,), optional
        Weights of the training points. Random anchors are taken in proportion to them, heavy ones
        more than once.
    nearest : bool
        Whether only the anchors nearest to a query predict: then "auto" is "all".

    Returns
    -------
    rows : array of shape (twins, k)
        Rows of the training points.
    weights : array of shape (count,) or None
        How much the estimate from each training point counts. None if all count alike, as anchors
        do that were drawn by their weights or named one by one.
    """
    if isinstance(anchors, str):
        if anchors not in ("auto", "all"):
            why = "is not 'auto', 'all', a number or a list of rows"
            raise wrong_value("anchors", anchors, why)
        if anchors == "all" or nearest or count <= _MANY:
            return np.tile(np.arange(count), (twins, 1)), weights
        return np.tile(np.sort(_drawn(_ENOUGH, count, weights)), (twins, 1)), None
    if isinstance(anchors, Integral):
        check_count(anchors, count, twins)
        return per_twin(_drawn(int(anchors), count, weights), twins), None
    return per_twin(check_rows(anchors, count, twins, twice=True), twins), None


def _drawn(k: int, count: int, weights: FloatArray | None) -> Rows:
    order = np.random.default_rng(0).permutation(count).astype(np.intp)
    return in_proportion(order, weights, k)


def per_twin(rows: Rows, twins: int) -> Rows:
    """Rows ``(k,)`` by the twin that owns them, ``(twins, k / twins)``."""
    return rows.reshape(-1, twins).T


def merge_twins(shares: Sequence[Rows]) -> Rows:
    """Undo ``per_twin``: the rows of all twins, in their order before."""
    return np.stack(shares, axis=1).ravel()


def shareable(count: int, twins: int) -> int:
    """Return the largest number of anchors, up to ``count``, that twins can share evenly."""
    return count - count % twins


def limit_count(k: Any, count: int, twins: int) -> Any:
    """Return ``k``, but no more than the twins can share of ``count`` training points."""
    if not whole(k) or k <= count or count < twins:
        return k  # ``check_count`` refuses what is no number of anchors
    return shareable(count, twins)


def describe_limit(k: Any, count: int, twins: int, *, weighted: bool = False) -> str:
    """Say how many anchors are used if ``k`` is more than there are training points.

    ``weighted`` says that ``count`` is how many points of equal weight they are worth.
    """
    by_weight = "by weight " if weighted else ""
    wanted = f"{k} anchors were asked for, but {by_weight}there are only {count} training points"
    used = limit_count(k, count, twins)
    if used == count and not weighted:
        return f"{wanted}: all of them are used"
    return f"{wanted}: {used} are used, the same number for each of {twins} twins"


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
        raise InputError(f"anchors: {len(array)} rows cannot be shared evenly by {twins} twins")
    return array.astype(np.intp)


def check_count(k: Any, count: int, twins: int) -> None:
    """Refuse a number of anchors that is out of range or cannot be shared evenly."""
    if not whole(k) or k < 1:
        raise InputError(f"anchors: {k!r} is not a positive whole number")
    if k > count:
        raise InputError(f"anchors: {k} is more than the {count} training points")
    if k % twins:
        near = (2 * k + twins) // (2 * twins) * twins  # the larger of two that are equally near
        near = max(twins, min(near, shareable(count, twins)))
        raise InputError(f"anchors: {k} cannot be shared evenly by {twins} twins; {near} can")


def whole(value: Any) -> bool:
    """Whether a value is a whole number; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


_DIGITS = 15  # more than any table needs; a longer number would not fit the array's integers


def rows_from_file(path: str | PathLike[str]) -> Rows:
    """Read row numbers, one per line or several separated by commas.

    Parameters
    ----------
    path : path
        A text file; ``#`` starts a comment, and empty lines are skipped.

    Returns
    -------
    array of shape (k,)
        In the order of the file; ``check_rows`` checks that the rows exist.
    """
    line_of: dict[int, int] = {}
    for number, field in _fields(Path(path)):
        where = f"{shown(path)}: line {number}"
        if not (field.isascii() and field.isdigit() and len(field) <= _DIGITS):
            raise InputError(f"{where}: {quoted(field)} is not a row number (0, 1, 2, ...)")
        row = int(field)
        if row in line_of:
            raise InputError(f"{where}: row {row} is already on line {line_of[row]}")
        line_of[row] = number
    if not line_of:
        raise InputError(f"{shown(path)}: has no row numbers; give one per line")
    return np.array(list(line_of), np.intp)


def _fields(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each field in a file."""
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.partition("#")[0].strip()
                for field in text.removesuffix(",").split(",") if text else ():
                    yield number, field.strip()
    except UnicodeDecodeError:
        raise InputError(
            f"{shown(path)}: not text after line {number}; give a file of row numbers"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise InputError(f"{shown(path)}: cannot be read: {reason}") from None
