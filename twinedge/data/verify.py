"""Whether a table is the data set it is named after."""

import numpy as np
from numpy.typing import NDArray

from twinedge.data.catalogue import Entry
from twinedge.data.wording import quoted
from twinedge.errors import InputError

# Copies differ in the last digits they print, which moves a mean far less than this; a missing row,
# a swapped column or another target moves it far more.
_TOLERANCE = 1e-3  # standard deviations of the column


def verify(entry: Entry, values: NDArray[np.float64], where: str) -> None:
    """Refuse a table that is not the data set of the paper.

    Parameters
    ----------
    entry
        What is expected.
    values : ndarray of float64, shape (rows, features + 1)
        What was found, target last.
    where
        Path or address it was found at, for the message.

    Raises
    ------
    InputError
        When the shape, a column's mean or the order of the rows is not as expected.
    """
    rows, columns = values.shape
    if columns != entry.features + 1:
        raise InputError(
            f"{where}: has {columns - 1} features; {entry.title} ({entry.name}) has "
            f"{entry.features}, the header is {entry.header}"
        )
    if rows != entry.rows:
        raise InputError(f"{where}: has {rows} rows; {entry.title} ({entry.name}) has {entry.rows}")
    names = (*entry.feature_names, entry.target_name)
    slack = _TOLERANCE * values.std(axis=0)
    for k, (name, mean, expected) in enumerate(
        zip(names, values.mean(axis=0), entry.means, strict=True)
    ):
        # Written so that a NaN fails.
        if not abs(mean - expected) <= slack[k]:
            raise InputError(
                f"{where}: column {quoted(name)} has mean {mean:.6g}; in {entry.title} "
                f"({entry.name}) it is {expected:.6g}"
            )
    moment = np.average(values[:, -1], weights=np.arange(1, rows + 1))
    if not abs(moment - entry.row_moment) <= slack[-1]:
        raise InputError(
            f"{where}: the rows of {entry.title} ({entry.name}) are not in their original order, "
            f"which the paper's splits need; use an unsorted copy"
        )
