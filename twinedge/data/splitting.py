"""Train, validation and test rows: the paper's 25 splits, and the same recipe for any table."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinedge.data.catalogue import entry_of
from twinedge.errors import InputError

SPLITS = 25
FEWEST_ROWS = 10


class Split(NamedTuple):
    """Row numbers, from 0; every row is in exactly one part.

    Attributes
    ----------
    train, val, test : ndarray of int64, shapes (n_train,), (n_val,), (n_test,)
    """

    train: NDArray[np.int64]
    val: NDArray[np.int64]
    test: NDArray[np.int64]


def split_rows(n: int, seed: int) -> Split:
    """Split `n` rows at random: a tenth to validate, a fifth to test, the rest to train.

    Parameters
    ----------
    n
        Number of rows, at least 10. A tenth and a fifth of it are rounded down.
    seed
        0 to 2**32 - 1; the same seed gives the same split.

    Returns
    -------
    Split

    Examples
    --------
    >>> [len(part) for part in split_rows(1000, seed=0)]
    [700, 100, 200]
    """
    if n < FEWEST_ROWS:
        raise InputError(
            f"the table has {n} row{'s' * (n != 1)}; at least {FEWEST_ROWS} are needed to split "
            f"into training, validation and test"
        )
    if not 0 <= seed < 2**32:
        raise InputError(f"seed: {seed} is out of range; use 0 to {2**32 - 1}")
    # The paper's legacy generator: np.random.seed(i); np.random.permutation(N), without touching
    # the global state.
    order = np.random.RandomState(seed).permutation(n).astype(np.int64)
    n_val, n_test = int(0.1 * n), int(0.2 * n)
    n_train = n - n_val - n_test
    return Split(order[:n_train], order[n_train : n_train + n_val], order[n_train + n_val :])


def splits(name: str, i: int) -> Split:
    """Return one of the paper's 25 splits of a data set.

    Parameters
    ----------
    name
        Key of the set, such as ``"bh"``.
    i
        Number of the split, 0 to 24.

    Returns
    -------
    Split
        Rows of ``load(name).X``.

    Examples
    --------
    >>> split = splits("yh", 0)
    >>> len(split.train), len(split.val), len(split.test)
    (217, 30, 61)
    """
    entry = entry_of(name)
    if not 0 <= i < SPLITS:
        raise InputError(f"split {i}: the paper's splits are numbered 0 to {SPLITS - 1}")
    split = split_rows(entry.rows, i)
    if entry.name != "bh":
        return split
    # The paper took Boston Housing from Keras, which shuffles the rows with seed 113; ours are in
    # the order of the original file.
    keras = np.arange(entry.rows)
    np.random.RandomState(113).shuffle(keras)
    return Split(keras[split.train], keras[split.val], keras[split.test])
