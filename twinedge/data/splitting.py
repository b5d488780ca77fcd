"""Train, validation and test rows: the paper's 25 splits, and the same recipe for any table."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinedge.data.catalogue import entry_of
from twinedge.errors import InputError
from twinedge.wording import plural

SPLITS = 25
FEWEST_ROWS = 10
FEWEST_GROUPS = 4  # one to test, one to validate, and two to learn what groups have in common


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
    _check_count(n)
    _check_seed(seed)
    # The paper's legacy generator: np.random.seed(i); np.random.permutation(N), without touching
    # the global state.
    order = np.random.RandomState(seed).permutation(n).astype(np.int64)
    n_val, n_test = int(0.1 * n), int(0.2 * n)
    n_train = n - n_val - n_test
    return Split(order[:n_train], order[n_train : n_train + n_val], order[n_train + n_val :])


def split_groups(groups: ArrayLike, seed: int) -> Split:
    """Split rows so that those of one group stay together.

    At random, a fifth of the groups to test, a tenth to validate (both rounded down, but at least
    one), the rest to train.

    Parameters
    ----------
    groups
        The group of each row: numbers or names, shape (n,).
    seed
        0 to 2**32 - 1; the same seed gives the same split.

    Returns
    -------
    Split
        Rows of each part in ascending order.

    Examples
    --------
    >>> split = split_groups(["a", "b", "a", "c", "d"], seed=0)
    >>> [part.tolist() for part in split]
    [[0, 1, 2], [4], [3]]
    """
    group = number_groups(groups)
    count = int(group.max(initial=-1)) + 1
    if count < FEWEST_GROUPS:
        raise InputError(
            f"there {'is' if count == 1 else 'are'} {plural(count, 'group')} of rows; at least "
            f"{FEWEST_GROUPS} are needed to split into training, validation and test"
        )
    _check_seed(seed)
    order = np.random.RandomState(seed).permutation(count)
    n_test, n_val = max(1, int(0.2 * count)), max(1, int(0.1 * count))
    position = np.empty(count, np.intp)
    position[order] = np.arange(count)
    where = position[group]
    return Split(
        np.flatnonzero(where >= n_test + n_val),
        np.flatnonzero((where >= n_test) & (where < n_test + n_val)),
        np.flatnonzero(where < n_test),
    )


def split_times(times: ArrayLike) -> Split:
    """Split rows in order of time: train on the past, validate and test on its future.

    The oldest 70 % are to train, the next 10 % to validate, and the newest 20 % to test. Rows of
    the same time are on the same side of both cuts, which are moved as little as that takes.

    Parameters
    ----------
    times
        The time of each row, as a number, shape (n,).

    Returns
    -------
    Split
        Rows of each part in order of time; those of the same time in that of the table.

    Examples
    --------
    >>> split = split_times([9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    >>> [part.tolist() for part in split]
    [[9, 8, 7, 6, 5, 4, 3], [2], [1, 0]]
    """
    seconds = np.asarray(times, np.float64)
    n = len(seconds)
    _check_count(n)
    order = np.argsort(seconds, kind="stable")
    cuts = 1 + np.flatnonzero(np.diff(seconds[order]))  # between rows of different times
    cuts = cuts[cuts > 1]  # one row is too few to train on
    if len(cuts) < 2:
        count = len(np.unique(seconds))
        raise InputError(
            f"the rows have {plural(count, 'different time')}; more are needed to split them "
            "into earlier ones for training and later ones for validation and test"
        )
    n_val, n_test = int(0.1 * n), int(0.2 * n)
    first = _nearest(cuts[:-1], n - n_val - n_test)
    second = _nearest(cuts[cuts > first], n - n_test)
    train, val, test = np.split(order.astype(np.int64), [first, second])
    return Split(train, val, test)


def _nearest(values: NDArray[np.int64], wanted: int) -> int:
    return int(values[np.argmin(np.abs(values - wanted))])


def time_blocks(times: ArrayLike, count: int) -> NDArray[np.intp]:
    """Assign rows to consecutive blocks of time, of about equal size.

    Rows of the same time are in the same block, so that there may be fewer blocks.

    Parameters
    ----------
    times
        The time of each row, as a number, shape (n,).
    count
        How many blocks.

    Returns
    -------
    array of int, shape (n,)
        Number of each row's block, from 0, the oldest.

    Examples
    --------
    >>> time_blocks([5, 1, 2, 3, 4, 4], 3).tolist()
    [2, 0, 0, 1, 2, 2]
    """
    _, which, counts = np.unique(
        np.asarray(times, np.float64), return_inverse=True, return_counts=True
    )
    middle = np.cumsum(counts) - counts / 2  # rank of all rows of this time
    block = np.floor(count * middle / max(len(which), 1)).astype(np.intp)
    return np.asarray(np.unique(block, return_inverse=True)[1], np.intp)[which]


def split_in_two(
    n: int, seed: int, groups: ArrayLike | None = None, times: ArrayLike | None = None
) -> Split:
    """Split rows into seven eighths to train and one eighth to validate, and none to test.

    Parameters
    ----------
    n
        Number of rows, at least 10.
    seed
        0 to 2**32 - 1; the same seed gives the same split. Not used with ``times``.
    groups
        The group of each row, shape (n,): rows of one group stay together.
    times
        The time of each row, shape (n,): the newest rows are to validate.

    Examples
    --------
    >>> [len(part) for part in split_in_two(80, 0)]
    [70, 10, 0]
    """
    _check_count(n)
    _check_seed(seed)
    if times is not None:
        block = time_blocks(times, 8)
        if not block.any():
            raise InputError("all rows have the same time: there are no later ones to validate on")
        held = np.asarray(block == block.max())
    elif groups is not None:
        group = number_groups(groups)
        count = int(group.max(initial=-1)) + 1
        if count < FEWEST_GROUPS - 1:
            raise InputError(
                f"{plural(count, 'group')} of rows cannot be split into training and validation; "
                f"at least {FEWEST_GROUPS - 1} are needed"
            )
        order = np.random.RandomState(seed).permutation(count)
        held = np.isin(group, order[: max(1, count // 8)])
    else:
        held = np.zeros(n, bool)
        held[np.random.RandomState(seed).permutation(n)[: max(1, n // 8)]] = True
    return Split(np.flatnonzero(~held), np.flatnonzero(held), np.empty(0, np.int64))


def cross_splits(
    n: int,
    folds: int,
    seed: int,
    groups: ArrayLike | None = None,
    times: ArrayLike | None = None,
) -> list[Split]:
    """Split rows for cross-validation: each is in the test part of exactly one fold.

    The parts are random, of whole groups, or blocks of time. What is left of a fold is split in
    two, as ``split_in_two`` does.

    Parameters
    ----------
    n
        Number of rows.
    folds
        How many, at least 2.
    seed, groups, times
        As for ``split_in_two``.

    Examples
    --------
    >>> [[len(part) for part in fold] for fold in cross_splits(100, 4, 0)]
    [[66, 9, 25], [66, 9, 25], [66, 9, 25], [66, 9, 25]]
    """
    _check_count(n)
    _check_seed(seed)
    owner, what = np.arange(n), "row"
    if times is not None:
        part = time_blocks(times, folds)
        if part.max() + 1 < folds:
            raise InputError(
                f"the rows have too few different times for {folds} folds; use {part.max() + 1}"
            )
    else:
        if groups is not None:
            owner, what = number_groups(groups), "group"
        count = int(owner.max()) + 1
        if count < folds:
            raise InputError(f"{folds} folds need at least {folds} {what}s, and there are {count}")
        position = np.empty(count, np.intp)
        order = np.random.RandomState(seed).permutation(count)
        for number, those in enumerate(np.array_split(order, folds)):
            position[those] = number
        part = position[owner]
    found = []
    for fold in range(folds):
        rest = np.flatnonzero(part != fold)
        named = None if groups is None else np.asarray(groups)[rest]
        timed = None if times is None else np.asarray(times)[rest]
        try:
            train, val, _ = split_in_two(len(rest), seed, named, timed)
        except InputError as error:
            raise InputError(f"fold {fold + 1} of {folds}: of what it leaves, {error}") from error
        found.append(Split(rest[train], rest[val], np.flatnonzero(part == fold)))
    return found


def number_groups(groups: ArrayLike) -> NDArray[np.intp]:
    """Assign the groups of rows numbers from 0, in the order of their names.

    Parameters
    ----------
    groups
        The group of each row, shape (n,): anything that sorts.

    Raises
    ------
    InputError
        If there is not one for each row, one is missing, or they do not sort.
    """
    try:
        names = np.asarray(groups)
    except ValueError as error:
        raise InputError("groups must be one for each row") from error
    if names.ndim != 1:
        raise InputError(f"groups has shape {names.shape}; one for each row is needed")
    try:
        missing = np.asarray(names != names).any()  # NaN does not equal itself
        numbers = np.unique(names, return_inverse=True)[1]
    except TypeError as error:
        raise InputError("groups has values that do not sort: use numbers or names only") from error
    if missing or (names.dtype.kind == "f" and not np.isfinite(names).all()):
        raise InputError("groups has a value that is missing or not finite")
    return numbers.astype(np.intp)


def _check_count(n: int) -> None:
    if n < FEWEST_ROWS:
        raise InputError(
            f"the table has {plural(n, 'row')}; at least {FEWEST_ROWS} are needed to split into "
            "training, validation and test"
        )


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise InputError(f"seed: {seed} is out of range; use 0 to {2**32 - 1}")


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
