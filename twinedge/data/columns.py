"""Decide which columns of a file are features or the target, and refuse unusable ones."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from twinedge.encoding.cells import numbered
from twinedge.encoding.tables import Column
from twinedge.encoding.times import looks_like_time
from twinedge.errors import InputError, Parameter, ParameterError, dropping
from twinedge.pack.layout import MAX_TARGETS
from twinedge.wording import closest, listed, missing_columns, plural, quoted, shown

_INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_ROWS_OF_AN_ID = 20
_WITH_UNIT = re.compile(
    r"(?P<before>[^\w+.,-]*)[+-]?[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?(?P<after>[^0-9]*)"
)
_POSITIONAL = re.compile(r"x(\d{1,9})", re.ASCII)


def check_names(names: Sequence[str], path: Path, index: int | None = None) -> None:
    """Refuse a header with duplicate names, or a nameless column other than ``index``."""
    nameless = [k for k, name in enumerate(names) if not name and k != index]
    if nameless:
        raise InputError(
            f"{shown(path)}: column {nameless[0] + 1} has no name (a separator at the end of the "
            f"line?); name it or remove it"
        )
    _check_unique(names, path)


def _check_unique(names: Sequence[str], path: Path) -> None:
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{shown(path)}: {count} columns are called {quoted(name)}; give each its own name"
        )


def _no_column(path: Path, names: Sequence[str], name: str, purpose: str) -> InputError:
    return InputError(
        f"{shown(path)}: no column {quoted(name)} {purpose}{closest(name, names)}; "
        f"the columns are {listed(names)}"
    )


def target_position(names: Sequence[str], target: str | int, path: Path) -> int:
    """Find the target column.

    Parameters
    ----------
    names
        Column names.
    target
        A name, or a position (an integer, or one as a string that is no column's name): 0 is the
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
            raise _no_column(path, names, target, "for the target")
        target = int(target)
    if not -len(names) <= target < len(names):
        raise InputError(
            f"{shown(path)}: no column at position {target} for the target; "
            f"positions are 0 to {len(names) - 1} from the left, -1 to {-len(names)} from the right"
        )
    return target % len(names)


def target_positions(
    names: Sequence[str], target: str | int | Sequence[str | int], path: Path
) -> list[int]:
    """Find one target column, or several; ``"a,b"`` means two, unless one column has that name."""
    wanted = [target] if isinstance(target, str | int | np.integer) else target
    found: list[int] = []
    for word in wanted:
        whole = not isinstance(word, str) or word in names
        parts: Sequence[str | int] = [word] if whole else str(word).split(",")
        for one in parts:
            where = target_position(names, one, path)
            if where in found:
                raise InputError(f"{shown(path)}: target {quoted(names[where])} is named twice")
            found.append(where)
    if not 1 <= len(found) <= MAX_TARGETS:
        raise InputError(
            f"{shown(path)}: {plural(len(found), 'target')}; a model has 1 to {MAX_TARGETS}"
        )
    return found


def column_holding(
    what: str, names: Sequence[str], wanted: str, used_for: Mapping[int | None, str], path: Path
) -> int:
    """Find a column that is no feature, and holds groups, weights or times.

    ``used_for`` tells what other columns are used for, by position.
    """
    if wanted not in names:
        raise _no_column(path, names, wanted, f"for the {what}")
    where = names.index(wanted)
    if where in used_for:
        raise InputError(
            f"{shown(path)}: column {quoted(wanted)} is {used_for[where]} and cannot hold {what}"
        )
    return where


def check_weight_column(weights: NDArray[np.float64], name: str, path: Path) -> None:
    """Refuse weights of rows that are negative, or none of which is above zero."""
    if (weights < 0).any():
        raise InputError(
            f"{shown(path)}: column {quoted(name)} holds the weight {weights.min():g}; weights are "
            "at least 0"
        )
    if not weights.any():
        raise InputError(
            f"{shown(path)}: all weights in column {quoted(name)} are zero; rows of weight 0 are "
            "left out"
        )


def without_dropped(
    names: Sequence[str], drop: Sequence[str], targets: Sequence[int], path: Path
) -> list[int]:
    """List the positions of the columns that stay, including the targets."""
    gone = _positions(names, drop, targets, path, "drop", "dropped")
    return [k for k in range(len(names)) if k not in gone]


def name_columns(
    names: Sequence[str], wanted: Sequence[str], targets: Sequence[int], path: Path
) -> set[int]:
    """Find the columns whose values are to be treated as names."""
    wanted = [name for name in wanted if name != "auto" or name in names]
    return _positions(names, wanted, targets, path, "treat as names", "a category")


def calendar_columns(
    names: Sequence[str], wanted: Sequence[str], used_for: Mapping[int | None, str], path: Path
) -> list[int]:
    """Find the columns of times to learn from; ``used_for`` says what others are used for."""
    found = sorted(_positions(names, wanted, (), path, "take times from", "a calendar"))
    for k in found:
        if k in used_for:
            raise InputError(
                f"{shown(path)}: column {quoted(names[k])} is {used_for[k]} and cannot be a "
                "calendar"
            )
    return found


def _positions(
    names: Sequence[str],
    wanted: Sequence[str],
    targets: Sequence[int],
    path: Path,
    to_do: str,
    done: str,
) -> set[int]:
    """Find columns by name; ``a,b`` means two, unless one column has that name."""
    found = set()
    for word in wanted:
        for name in [word] if word in names else word.split(","):
            if name not in names:
                raise _no_column(path, names, name, f"to {to_do}")
            if names.index(name) in targets:
                raise InputError(
                    f"{shown(path)}: column {quoted(name)} is the target and cannot be {done}; "
                    f"name features only"
                )
            found.add(names.index(name))
    return found


def check_columns(
    columns: Sequence[Column],
    y: NDArray[np.float64],
    targets: Sequence[str],
    path: str | Path,
    categories: Collection[str] = (),
) -> None:
    """Refuse a table with a column, or a target, that nothing can be learnt from.

    Parameters
    ----------
    columns
        Features.
    y : ndarray, shape (n,), or of several targets (n, m)
    targets
        Names of `y`.
    path
        For messages.
    categories
        Columns that the user calls categorical, even if they hold dates.
    """
    if len(y) < 2:
        raise InputError(f"{shown(path)}: has 1 row; a model needs at least 10 to learn from")
    for name, values in zip(targets, y.reshape(len(y), -1).T, strict=True):
        known = values[~np.isnan(values)]
        if not len(known):
            raise InputError(f"{shown(path)}: target column {quoted(name)} has no value in any row")
        if known.min() == known.max():
            raise InputError(
                f"{shown(path)}: target column {quoted(name)} is {known[0]:g} in every row; "
                f"a target that varies is needed"
            )
    for column in columns:
        if column.texts is not None:
            _check_names_of(column, path, may_be_dates=column.name in categories)
    still = [one for one in columns if _is_constant(one.values)]
    if still:
        name, values, texts = still[0]
        value = values[~np.isnan(values)][0]
        word = f"{value:g}" if texts is None else quoted(texts[int(value)])
        raise ParameterError(
            f"{shown(path)}: column {quoted(name)} is {word} in every row; leave out what never "
            "changes with ",
            dropping([one.name for one in still]),
        )


def _is_constant(values: NDArray[np.float64]) -> bool:
    present = values[~np.isnan(values)]
    return len(present) > 0 and present.min() == present.max()


def _check_names_of(column: Column, path: str | Path, *, may_be_dates: bool) -> None:
    """Refuse a column of texts that cannot be levels, such as dates or ids."""
    name, values, texts = column
    assert texts is not None
    if not texts:
        return  # all cells are missing, which is refused elsewhere
    where = f"{shown(path)}: column {quoted(name)}"
    if not may_be_dates and hold_times(texts):
        raise ParameterError(
            f"{where} holds dates or times such as {quoted(texts[0])}; if they say when each row "
            "was measured, use ",
            Parameter("time", name),
            "; to learn from their hour, weekday and season, use ",
            Parameter("calendar", [name]),
            "; otherwise write them as a number, say days since the first, or leave the column out "
            "with ",
            dropping([name]),
        )
    count = int((~np.isnan(values)).sum())
    if len(texts) == count or (2 * len(texts) > count and count >= _ROWS_OF_AN_ID):
        if (unit := unit_of(texts)) is not None:
            raise ParameterError(
                f"{where} holds numbers with {quoted(unit)}, such as {quoted(texts[0])}; write "
                "them without it, or leave the column out with ",
                dropping([name]),
            )
        raise ParameterError(
            f"{where} has {len(texts)} different texts in {plural(count, 'row')}, like an id; "
            "nothing can be learnt from texts that hardly repeat: leave it out with ",
            dropping([name]),
        )


def unit_of(texts: Collection[str]) -> str | None:
    """Return the unit of numbers, or the sign in front of them, if most texts are numbers with it.

    Examples
    --------
    >>> unit_of(["12 kg", "1.5 kg", "unknown"]), unit_of(["€ 1,50", "€ 20"]), unit_of(["A1", "A2"])
    ('kg', '€', None)
    """
    read = (_WITH_UNIT.fullmatch(text.strip()) for text in texts)
    signs = Counter(one["before"].strip() or one["after"].strip() for one in read if one)
    (unit, count), *_ = [*signs.most_common(1), ("", 0)]
    is_unit = any(one.isalpha() or one in "%‰°" or category(one) == "Sc" for one in unit)
    return unit if is_unit and 2 * count > len(texts) else None


def hold_times(texts: Collection[str]) -> bool:
    """Tell whether most of these texts are dates or times."""
    return 2 * sum(map(looks_like_time, texts)) > len(texts)


def match_features(
    names: Sequence[str],
    has_header: bool,
    wanted: Sequence[str],
    targets: Sequence[str],
    path: Path,
    target_name: str | None = None,
) -> tuple[list[int], list[int]]:
    """Find a model's features, and the targets that are wanted, in a file.

    Parameters
    ----------
    names
        Columns of the file.
    has_header
        Whether those names come from the file.
    wanted
        The model's features, in its order.
    targets
        Names of the targets that are wanted, if any.
    path
        For messages.
    target_name
        Name of the model's target, wanted or not. A model that was trained on a file without a
        header has one like x3.

    Returns
    -------
    features : list of int
        Position of each feature.
    targets : list of int
        Position of each target.
    """
    if not has_header:
        return _match_positions(len(names), wanted, targets, path, target_name)
    needed = [*wanted, *targets]
    # The names of an array's columns were made up, so nobody can have meant them.
    if tuple(wanted) == numbered(len(wanted)) and not set(wanted) & set(names):
        goals = [names.index(target) for target in targets if target in names]
        others = [k for k in range(len(names)) if k not in goals]
        if len(others) == len(wanted) and len(goals) == len(targets):
            return others, goals
    if not set(wanted) <= set(names):
        raise InputError(
            f"{shown(path)}: has {missing_columns(names, wanted)}; the file has {listed(names)}"
        )
    for target in targets:
        if target not in names:
            raise _no_column(path, names, target, "for the target")
    _check_unique([name for name in names if name in needed], path)
    where = {name: k for k, name in enumerate(names)}
    return [where[name] for name in wanted], [where[name] for name in targets]


def _match_positions(
    width: int, wanted: Sequence[str], targets: Sequence[str], path: Path, target_name: str | None
) -> tuple[list[int], list[int]]:
    # A model trained on a headerless file has features x0, x2, ...: the same layout fits, with its
    # dropped columns, whether or not the target at its end is wanted.
    needed = [*wanted, *targets]
    found = [_POSITIONAL.fullmatch(name) for name in needed]
    positions = [int(match[1]) for match in found if match]
    by_position = target_name is None or _POSITIONAL.fullmatch(target_name)
    if by_position and len(positions) == len(needed):
        least = 1 + max(positions)
        if width == least or (not targets and width == least + 1):
            return positions[: len(wanted)], positions[len(wanted) :]
    if width == len(needed):
        return list(range(len(wanted))), list(range(len(wanted), width))
    noun = "target" if len(targets) == 1 else "targets"
    last = f" and the {noun} {', '.join(map(quoted, targets))} last" if targets else ""
    raise InputError(
        f"{shown(path)}: has {plural(width, 'column')} and no header; expected a header, or the "
        f"model's {plural(len(wanted), 'feature')} {listed(wanted)}{last}"
    )
