"""Which columns of a file are features, which one is the target, and whether they can be used."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinedge.data.wording import closest, drop_options, listed, place, plural, quoted
from twinedge.errors import InputError

_INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_POSITIONAL = re.compile(r"x(\d{1,9})", re.ASCII)


def check_names(names: Sequence[str], path: Path) -> None:
    """Refuse a header with a name twice, or a column without one."""
    if "" in names:
        raise InputError(
            f"{place(path)}: column {names.index('') + 1} has no name (a row index written by "
            f"pandas, or a separator at the end of the line?); name it or remove it"
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{place(path)}: {count} columns are called {quoted(name)}; give each its own name"
        )


def target_position(names: Sequence[str], target: str | int, path: Path) -> int:
    """Find the target column.

    Parameters
    ----------
    names
        Column names.
    target
        A name, or a position (an integer, or a string of one that is no column's name): 0 is the
        leftmost, -1 the rightmost.
    path
        For messages.

    Returns
    -------
    int
        Position from the left, from 0.
    """
    if isinstance(target, str):
        if target in names:
            return names.index(target)
        if not _INTEGER.fullmatch(target):
            raise InputError(
                f"{place(path)}: no column {quoted(target)} for the target"
                f"{closest(target, names)}; the columns are {listed(names)}"
            )
        target = int(target)
    if not -len(names) <= target < len(names):
        raise InputError(
            f"{place(path)}: no column at position {target} for the target; "
            f"positions are 0 to {len(names) - 1} from the left, -1 to {-len(names)} from the right"
        )
    return target % len(names)


def group_position(names: Sequence[str], group: str, target: int | None, path: Path) -> int:
    """Find the column that tells which rows belong together."""
    if group not in names:
        raise InputError(
            f"{place(path)}: no column {quoted(group)} for the groups{closest(group, names)}; "
            f"the columns are {listed(names)}"
        )
    if names.index(group) == target:
        raise InputError(f"{place(path)}: column {quoted(group)} is the target and cannot group it")
    return names.index(group)


def without_dropped(
    names: Sequence[str], drop: Sequence[str], target: int | None, path: Path
) -> list[int]:
    """List the positions of the columns that stay, the target among them."""
    for name in drop:
        if name not in names:
            raise InputError(
                f"{place(path)}: no column {quoted(name)} to drop{closest(name, names)}; "
                f"the columns are {listed(names)}"
            )
        if target is not None and names.index(name) == target:
            raise InputError(
                f"{place(path)}: column {quoted(name)} is the target and cannot be dropped; "
                f"drop features only"
            )
    gone = set(drop)
    return [k for k, name in enumerate(names) if name not in gone]


def check_constant(
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    names: Sequence[str],
    target: str,
    path: Path,
) -> None:
    """Refuse a table in which a feature or the target never changes.

    Parameters
    ----------
    X : ndarray, shape (n, f)
    y : ndarray, shape (n,)
    names
        Names of the columns of `X`.
    target
        Name of `y`.
    path
        For messages.
    """
    if len(y) < 2:
        raise InputError(f"{place(path)}: has 1 row; a model needs at least 10 to learn from")
    if y.min() == y.max():
        raise InputError(
            f"{place(path)}: target column {quoted(target)} is {y[0]:g} in every row; "
            f"a target that varies is needed"
        )
    still = [name for name, constant in zip(names, X.min(0) == X.max(0), strict=True) if constant]
    if still:
        value = X[0, list(names).index(still[0])]
        raise InputError(
            f"{place(path)}: column {quoted(still[0])} is {value:g} in every row; leave out "
            f"what never changes with {drop_options(still)}"
        )


def match_features(
    names: Sequence[str],
    has_header: bool,
    wanted: Sequence[str],
    target: str | None,
    path: Path,
) -> tuple[list[int], int | None]:
    """Find a model's features, and the target if it is wanted, in a file.

    Parameters
    ----------
    names
        Columns of the file.
    has_header
        Whether the file itself gives those names.
    wanted
        The model's features, in its order.
    target
        Name of the target, or None when it is not wanted.
    path
        For messages.

    Returns
    -------
    features : list of int
        Position of each feature.
    target : int or None
        Position of the target.
    """
    if not has_header:
        return _match_positions(len(names), wanted, target, path)
    needed = [*wanted] if target is None else [*wanted, target]
    missing = [name for name in wanted if name not in set(names)]
    if missing:
        raise InputError(
            f"{place(path)}: has {len(wanted) - len(missing)} of the {len(wanted)} feature columns "
            f"the model was trained on: missing {listed(missing)}; the file has {listed(names)}"
        )
    if target is not None and target not in names:
        raise InputError(
            f"{place(path)}: no column {quoted(target)} for the target"
            f"{closest(target, names)}; the columns are {listed(names)}"
        )
    counts = Counter(names)
    for name in needed:
        if counts[name] > 1:
            raise InputError(
                f"{place(path)}: {counts[name]} columns are called {quoted(name)}; "
                f"give each its own name"
            )
    where = {name: k for k, name in enumerate(names)}
    return [where[name] for name in wanted], None if target is None else where[target]


def _match_positions(
    width: int, wanted: Sequence[str], target: str | None, path: Path
) -> tuple[list[int], int | None]:
    # A model trained on a headerless file has features x0, x2, ...: the same layout fits, with its
    # dropped columns, whether or not the target at its end is wanted.
    needed = [*wanted] if target is None else [*wanted, target]
    found = [_POSITIONAL.fullmatch(name) for name in needed]
    positions = [int(match[1]) for match in found if match]
    if len(positions) == len(needed):
        least = 1 + max(positions)
        if width == least or (target is None and width == least + 1):
            return positions[: len(wanted)], None if target is None else positions[-1]
    if width == len(needed):
        return list(range(len(wanted))), None if target is None else width - 1
    last = "" if target is None else f" and the target {quoted(target)} last"
    raise InputError(
        f"{place(path)}: has {plural(width, 'column')} and no header; expected a header, or the "
        f"model's {plural(len(wanted), 'feature')} {listed(wanted)}{last}"
    )
