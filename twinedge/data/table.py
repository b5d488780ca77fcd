"""A person's own table: a CSV file of numbers, one column of it the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinedge.data.columns import (
    check_constant,
    check_names,
    group_position,
    match_features,
    target_position,
    without_dropped,
)
from twinedge.data.csvfile import open_csv
from twinedge.data.duplicates import count_duplicates
from twinedge.data.wording import place, plural, quoted
from twinedge.errors import InputError


@dataclass(frozen=True)
class Table:
    """A table read from a CSV file.

    Parameters
    ----------
    X : ndarray of float64, shape (n, f)
        Features, in the units of the file.
    y : ndarray of float64, shape (n,), or None
        Target, in the units of the file; None when no target was asked for.
    feature_names : tuple of str
        Names of the columns of `X`.
    target_name : str or None
    path : Path
    duplicates : int
        How many rows repeat an earlier row in every feature and the target.
    imputed : int
        How many missing values were filled in.
    dropped : tuple of str
        Columns of the file that are neither feature nor target.
    fill_values : ndarray of float64, shape (f,), or None
        What missing values of each feature are filled with; None when they are refused.
    groups : ndarray of str, shape (n,), or None
        Which rows belong together; None when no such column was asked for.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64] | None
    feature_names: tuple[str, ...]
    target_name: str | None
    path: Path
    duplicates: int
    imputed: int
    dropped: tuple[str, ...]
    fill_values: NDArray[np.float64] | None = None
    groups: NDArray[np.str_] | None = None


def read_table(
    path: str | Path,
    *,
    target: str | int | None,
    drop: Sequence[str] = (),
    impute: str | None = None,
    group: str | None = None,
) -> Table:
    """Read a table to train on.

    Parameters
    ----------
    path
        CSV file: UTF-8; columns separated by comma, semicolon, tab, bar or blanks; with a header
        or without (then the columns are called x0, x1, ...); decimal commas where commas do not
        separate columns.
    target
        Name of the target column, or its position: 0 is the leftmost, -1 the rightmost. A string
        that is no column's name and holds an integer is a position. None: there is no target, and
        constant columns are allowed.
    drop
        Names of columns to leave out.
    impute
        None refuses missing values; "median" fills those of a feature with the median of its
        column over the whole file. A missing target is always refused.
    group
        Name of a column that tells which rows belong together; it is no feature, and may be text.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        When the file cannot be used as asked, with row and column.
    """
    path = Path(path)
    if impute not in (None, "median"):
        raise InputError(f"impute: unknown method {quoted(str(impute))}; use 'median' or leave out")
    with open_csv(path) as file:
        check_names(file.names, path)
        goal = None if target is None else target_position(file.names, target, path)
        kept = without_dropped(file.names, drop, goal, path)
        label = None if group is None else group_position(file.names, group, goal, path)
        kept = [k for k in kept if k != label]
        features = [k for k in kept if k != goal]
        if not features:
            raise InputError(
                f"{place(path)}: no feature is left of {plural(len(file.names), 'column')}; "
                f"at least one besides the target is needed"
            )
        values = file.numbers(
            kept,
            may_miss=features if impute else (),
            # What is read without a target is not trained on, by commands without these options.
            could_impute=features if goal is not None else (),
            could_drop=goal is not None,
            label=label,
        )
        names = file.names
        labels = file.labels
    X, y = _parted(values, kept, features, goal)
    feature_names = tuple(names[k] for k in features)
    fill_values = None
    imputed = 0
    if impute == "median":
        fill_values = _medians(X, feature_names, path)
        imputed = _fill(X, fill_values)
    if y is not None:
        assert goal is not None
        check_constant(X, y, feature_names, names[goal], path)
    return Table(
        X=X,
        y=y,
        feature_names=feature_names,
        target_name=None if goal is None else names[goal],
        path=path,
        duplicates=count_duplicates(X) if y is None else count_duplicates(X, y),
        imputed=imputed,
        dropped=tuple(name for k, name in enumerate(names) if k not in set(kept)),
        fill_values=fill_values,
        groups=None if label is None else np.array(labels),
    )


def read_features(
    path: str | Path,
    feature_names: Sequence[str],
    *,
    target: str | None = None,
    impute_values: NDArray[np.float64] | None = None,
) -> Table:
    """Read a table for a model that was trained before.

    Columns are found by name, in any order; further columns are ignored. A file without a header
    is taken by position when it has as many columns as the model has features (and the target
    last, when one is wanted), or is laid out like the headerless file the model was trained on.

    Parameters
    ----------
    path
        CSV file, as for `read_table`.
    feature_names
        The model's features, in its order.
    target
        Name of the target column when it is wanted too.
    impute_values : ndarray of float64, shape (f,), optional
        What to fill missing values of each feature with; NaN refuses them for that feature.

    Returns
    -------
    Table
        With `X` in the order of `feature_names`.

    Raises
    ------
    InputError
        When columns are missing or a cell is not a number, with row and column.
    """
    path = Path(path)
    wanted = tuple(feature_names)
    fill_values = None
    if impute_values is not None:
        fill_values = np.asarray(impute_values, dtype=np.float64)
        if fill_values.shape != (len(wanted),):
            raise InputError(
                f"impute_values: has shape {fill_values.shape}; one value for each of "
                f"{plural(len(wanted), 'feature')} was expected"
            )
    with open_csv(path, known=wanted) as file:
        features, goal = match_features(file.names, file.has_header, wanted, target, path)
        columns = features if goal is None else [*features, goal]
        fillable = () if fill_values is None else np.array(features)[~np.isnan(fill_values)]
        values = file.numbers(columns, may_miss=[int(k) for k in fillable])
        names = file.names
    X, y = _parted(values, columns, features, goal)
    return Table(
        X=X,
        y=y,
        feature_names=wanted,
        target_name=target,
        path=path,
        imputed=0 if fill_values is None else _fill(X, fill_values),
        duplicates=count_duplicates(X) if y is None else count_duplicates(X, y),
        dropped=tuple(name for k, name in enumerate(names) if k not in set(columns)),
        fill_values=fill_values,
    )


def _parted(
    values: NDArray[np.float64], columns: Sequence[int], features: Sequence[int], goal: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    if goal is None:
        return values, None
    at = list(columns).index(goal)
    return np.delete(values, at, axis=1), values[:, at].copy()


def _medians(X: NDArray[np.float64], names: Sequence[str], path: Path) -> NDArray[np.float64]:
    medians = np.empty(X.shape[1])
    for k, name in enumerate(names):
        present = np.sort(X[~np.isnan(X[:, k]), k])
        if not present.size:
            raise InputError(
                f"{place(path)}: column {quoted(name)} has no value in any row; leave it out "
                f"with --drop"
            )
        # np.median adds before it halves, and so overflows on values near the largest double.
        low, high = present[(present.size - 1) // 2], present[present.size // 2]
        medians[k] = low if low == high else low / 2 + high / 2
    return medians


def _fill(X: NDArray[np.float64], fill_values: NDArray[np.float64]) -> int:
    rows, columns = np.nonzero(np.isnan(X))
    X[rows, columns] = fill_values[columns]
    return int(rows.size)
