"""What looks wrong in a table: bad cells, ids and clocks, groups, and leaks of the target.

The rules see only numbers and names, so they may be mistaken. Remarks name what they find, with its
column and rows, and the table stays as it is. They are strict, because nobody reads remarks that
are often wrong.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinedge.encoding.tables import Column
from twinedge.encoding.times import TICKS
from twinedge.errors import Advice, Parameter, dropping
from twinedge.wording import first_of, listed, plural, quoted

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FEW_ROWS = 20  # in fewer, hardly anything is beyond chance
_ROWS_TO_NAME = 5
_COLUMNS_TO_NAME = 12

_MOST_FAR = 5  # different values that are far from all others, on each side
_FEWEST_NEAR = 10  # different values on that side to compare them with
_FAR_ALONE, _FAR_AGAIN = 10.0, 3.0  # how many times as far from the middle as all others
_CODE = re.compile(r"-?99+")  # what people often write for a missing value
_FAR_CODE = 5.0  # how many ranges away from a few levels

_ID_WORDS = {"id", "pid", "uid", "uuid", "idx", "index", "serial"}
_ID_DISTINCT = 0.9  # share of the rows
_ID_DENSE = 1.5  # most numbers in the range of an id, per row

_CLOCK_WORDS = {"time", "timestamp", "date", "datetime", "epoch", "ts", "unix"}
_EPOCH = 1e9, 2e9  # seconds since 1970: from 2001 to 2033
_ROUND = 1e5  # seconds; whole multiples of that are frequencies or amounts, not times

_GROUP_WORDS = {
    *("machine", "batch", "device", "subject", "patient", "person", "operator", "wafer", "site"),
    *("station", "lot", "id"),
}
_NUMBER_WORDS = {"no", "nr", "num", "number", "code"}
_FEWEST_GROUPS = 5
_GROUP_DENSE = 2  # most numbers in the range of the groups, per group
_GROUP_ROUGH = 0.7  # least roughness of their means: 1 in random order, near 0 along a curve
_GROUP_RATIO = 5.0  # least F: how much more groups differ than rows within them would make them

_LEAK = 0.01  # most noise of a leak, in standard deviations
_LEAK_LEVELS = 10
_ROWS_TO_SORT = 20_000


@np.errstate(over="ignore", invalid="ignore")  # numbers near 1e300 are as good as infinite
def suspects(
    columns: Sequence[Column],
    y: Floats,
    target: str,
    rows: NDArray[Any],
    *,
    grouped: bool = False,
) -> list[Advice]:
    """Describe what looks wrong in a table.

    Parameters
    ----------
    columns : sequence of Column
        Features, ``(n,)`` each, NaN where a cell is missing; those of names are not looked at.
    y : array of shape (n,)
        Targets.
    target : str
        Name of the targets.
    rows : array of int or str, shape (n,)
        Number of each row in its file, or "5 of base.csv" if there are several.
    grouped : bool
        Whether it is already known which rows belong together.

    Returns
    -------
    list of Advice
        One remark for each thing that was found.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> heat, level = rng.normal(20, 5, (2, 100))
    >>> heat[[3, 50]] = -9999
    >>> (remark,) = suspects([Column("heat", heat)], level, "level", np.arange(2, 102))
    >>> remark.partition(";")[0]
    "-9999 is far from all other values of column 'heat' (rows 5, 52"
    """
    found: list[Advice] = []
    ids: list[str] = []
    numbers: list[Column] = []
    several = len(columns) > 1  # the only feature is needed, whatever it looks like
    for one in columns:
        if several and _is_id(one):
            ids.append(one.name)
        elif several and (unit := _ticks(one)):
            found.append(_on_clock(one, unit))
        elif one.texts is None:
            numbers.append(one)
    if ids:
        words = "numbers the rows: unless that means something, leave it out with "
        found.append(Advice(f"column {listed(ids)} {words}", dropping(ids)))
    cells = _far_cells([*numbers, Column(target, y)])
    found += _on_cells(cells, target, rows)
    # Bad cells have been named; what the others look like is another question.
    *features, (_, y) = ((one.name, np.where(one.far, np.nan, one.values)) for one in cells)
    for name, values in features if several else []:
        if _numbers_groups(name, values, y):
            found += [] if grouped else [_on_groups(name, values)]
        elif _gives_away(values, y):
            found.append(_on_leak(name, target))
    return found


class _Cells(NamedTuple):
    """The cells of a column, and which of them ``(n,)`` are far from all others."""

    name: str
    values: Floats
    far: NDArray[np.bool_]


def _far_cells(columns: Sequence[Column]) -> list[_Cells]:
    distinct = [np.unique(one.values[~np.isnan(one.values)], return_counts=True) for one in columns]
    far = [_far_values(*one) for one in distinct]
    # A code for missing values is the same in all columns, but not equally far away in all.
    for code in set[float]().union(*far):
        for mine, one in zip(far, distinct, strict=True):
            if _stands_apart(code, *one):
                mine.add(code)
    return [
        _Cells(one.name, one.values, np.isin(one.values, list(mine)))
        for one, mine in zip(columns, far, strict=True)
    ]


def _far_values(distinct: Floats, counts: Integers) -> set[float]:
    """Find values that are much farther from the middle than all others on their side.

    How much farther depends on how long a tail the others have on that side, and on whether a
    value repeats. Each value counts once: a code for missing values may fill most of a column.
    """
    if len(distinct) <= 2 * _FEWEST_NEAR:
        return _far_codes(distinct)
    middle = np.median(distinct)
    found: set[float] = set()
    for below in (True, False):
        side = distinct < middle if below else distinct > middle
        values, again = distinct[side], counts[side] > 1
        if below:
            values, again = values[::-1], again[::-1]
        distance = np.abs(values - middle)  # rises
        for count in range(min(_MOST_FAR, len(values) - _FEWEST_NEAR), 0, -1):
            near, last = distance[:-count], values[-count:].tolist()
            tail = near[int(0.9 * len(near))] / near[len(near) // 2]  # about 2 without a tail
            few = 1 + _FEWEST_NEAR / len(near)  # that show little of their tail
            alone, repeated = few * max(_FAR_ALONE, tail**2), max(_FAR_AGAIN, tail)
            usual = again[-count:] | [_is_code(one) for one in last]
            if np.all(distance[-count:] >= near[-1] * np.where(usual, repeated, alone)):
                found |= set(last)
                break
    return found


def _far_codes(distinct: Floats) -> set[float]:
    """Find numbers such as 99 and -999 beside a few levels that are far from them."""
    codes = [one for one in distinct.tolist() if _is_code(one)]
    levels = [one for one in distinct.tolist() if one not in codes]
    if len(levels) < 2:
        return set()
    low, high = levels[0], levels[-1]
    far = _FAR_CODE * (high - low)
    return {one for one in codes if max(one - high, low - one) > far}


def _is_code(value: float) -> bool:
    return value.is_integer() and _CODE.fullmatch(str(int(value))) is not None


def _stands_apart(value: float, distinct: Floats, counts: Integers) -> bool:
    """Tell whether a value that repeats is beyond the others, at the largest gap of them all."""
    if len(distinct) <= 2 * _FEWEST_NEAR or value not in (distinct[0], distinct[-1]):
        return False
    gaps = np.diff(distinct)
    if value == distinct[-1]:
        gaps, counts = gaps[::-1], counts[::-1]
    return bool(counts[0] > 1 and gaps[0] > gaps[1:].max())


def _on_cells(cells: Sequence[_Cells], target: str, rows: NDArray[Any]) -> list[Advice]:
    """Name cells that are far from all others; columns with the same ones are named together."""
    alike: dict[tuple[float, ...], list[_Cells]] = {}
    for one in cells:
        if one.far.any():
            alike.setdefault(tuple(np.unique(one.values[one.far]).tolist()), []).append(one)
    return [_on_values(values, those, target, rows) for values, those in alike.items()]


def _on_values(
    values: tuple[float, ...], cells: Sequence[_Cells], target: str, rows: NDArray[Any]
) -> Advice:
    named = [
        f"{'target' if one.name == target else 'column'} {quoted(one.name)} "
        f"({_numbered_rows(rows[one.far])}; the others are "
        f"{np.nanmin(one.values[~one.far]):g} to {np.nanmax(one.values[~one.far]):g})"
        for one in cells[:_COLUMNS_TO_NAME]
    ]
    if len(cells) > len(named):
        named.append(f"{plural(len(cells) - len(named), 'column')} more")
    codes = [_exact(one) for one in values]
    is_far, it, stands = "is far", "it", "it stands for a missing value"
    if len(codes) > 1:
        is_far, it, stands = "are far", "them", "they stand for missing values"
    advice: list[str | Parameter] = [Parameter("missing", codes)]
    if any(one.name == target for one in cells):
        advice += [" and ", Parameter("drop_missing_target", True)]
    return Advice(
        f"{', '.join(map(str, codes))} {is_far} from all other values of {', '.join(named)}: "
        f"correct {it} or, if {stands}, use ",
        *advice,
    )


def _exact(value: float) -> int | float | str:
    """Write a number so that it is read as the same, with as few digits as that needs."""
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value if float(f"{value:g}") == value else repr(value)


def _numbered_rows(rows: NDArray[Any]) -> str:
    noun = "row" if len(rows) == 1 else "rows"
    return f"{noun} {first_of([str(one) for one in rows.tolist()], _ROWS_TO_NAME)}"


def _words(name: str) -> list[str]:
    """Cut a name into words: machineID, machine_id and "Machine id" are two."""
    parts = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name)
    return [one.lower() for one in parts if one]


def _are_whole(values: Floats) -> bool:
    return bool(np.all(values == np.rint(values)))


def _is_id(column: Column) -> bool:
    """Tell whether a column numbers the rows: in order, in another one, or as its name says."""
    values = column.values[~np.isnan(column.values)]
    if column.texts is not None or len(values) < 3 or not _are_whole(values):
        return False
    steps = np.diff(values)
    if len(values) == len(column.values) and steps[0] in (-1, 1) and np.all(steps == steps[0]):
        return True
    distinct = len(np.unique(values))
    if len(values) < _FEW_ROWS or distinct < _ID_DISTINCT * len(values):
        return False
    dense = distinct == len(values) and float(np.ptp(values)) < _ID_DENSE * len(values)
    return dense or not _ID_WORDS.isdisjoint(_words(column.name))


def _ticks(column: Column) -> str | None:
    """Tell the unit of a column that holds times since 1970; None if it does not."""
    values = column.values[~np.isnan(column.values)]
    first, last = _EPOCH
    for unit, per_second in TICKS.items():
        seconds = values / per_second
        within = np.all((first <= seconds) & (seconds <= last))
        if within and np.any(seconds % _ROUND):
            steps = np.diff(seconds)
            in_order = np.all(steps >= 0) or np.all(steps <= 0)
            named = not _CLOCK_WORDS.isdisjoint(_words(column.name))
            return unit if in_order or named else None
    return None


def _on_clock(column: Column, unit: str) -> Advice:
    ends = np.array([np.nanmin(column.values), np.nanmax(column.values)]) / TICKS[unit]
    days = ends.astype("datetime64[s]").astype("datetime64[D]")
    return Advice(
        f"column {quoted(column.name)} holds times in {unit} since 1970, {days[0]} to {days[1]}: "
        "later ones are outside all that is learnt; to train on the past and test on the future, "
        "use ",
        Parameter("time", column.name),
        "; otherwise write what matters about them, such as the hour or the age, or leave it out "
        "with ",
        dropping([column.name]),
    )


def _numbers_groups(name: str, values: Floats, y: Floats) -> bool:
    """Tell whether whole numbers stand for groups of rows, as those of machines do.

    Their name says so; or each has one block of rows, and the mean targets of the blocks differ,
    but do not follow a curve, as they would if the number were a setting.
    """
    known = ~np.isnan(values) & ~np.isnan(y)
    values, y = values[known], y[known]
    if len(values) < _FEW_ROWS or not _are_whole(values):
        return False
    levels, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    if not 2 < len(levels) <= len(values) / 2:
        return False
    words = _words(name)
    if len(words) > 1 and words[-1] in _NUMBER_WORDS:
        words.pop()
    if words and words[-1] in _GROUP_WORDS:
        return True
    blocks = 1 + np.count_nonzero(np.diff(values))
    sparse = np.ptp(levels) + 1 > _GROUP_DENSE * len(levels)
    if sparse or not _FEWEST_GROUPS <= len(levels) == blocks:
        return False
    means = np.bincount(group, y) / counts
    rough = np.square(np.diff(means)).sum() / 2
    if rough < _GROUP_ROUGH * np.square(means - means.mean()).sum():
        return False
    between = counts @ np.square(means - y.mean()) / (len(levels) - 1)
    within = np.square(y - means[group]).sum() / (len(y) - len(levels))
    return bool(between >= _GROUP_RATIO * within)


def _on_groups(name: str, values: Floats) -> Advice:
    distinct = len(np.unique(values[~np.isnan(values)]))
    return Advice(
        f"column {quoted(name)} has {distinct} different whole numbers for {len(values)} rows, "
        "like numbers of machines or batches: if it says which rows belong together, name it as ",
        Parameter("group", name),
        "; if its numbers stand for names, use ",
        Parameter("categorical", [name]),
    )


def _gives_away(values: Floats, y: Floats) -> bool:
    """Tell whether a feature is a function of the target alone, but for a little noise.

    In order of the target, each value of a smooth function is between those before and after it.
    How far ranks are outside, compared with how far they vary, is about the size of the noise.
    """
    some = slice(None, None, 1 + len(y) // _ROWS_TO_SORT)
    pairs = np.column_stack([values[some], y[some]])
    # Rows of one group may share both values, whatever these are: they are one point.
    pairs = np.unique(pairs[~np.isnan(pairs).any(axis=1)], axis=0)
    pairs = np.random.default_rng(0).permutation(pairs)  # an order that means nothing
    levels, level, counts = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    if len(pairs) < _FEW_ROWS or len(levels) < _LEAK_LEVELS:
        return False
    ranks = (np.cumsum(counts) - counts / 2)[level][np.argsort(pairs[:, 1], kind="stable")]
    before, here, after = ranks[:-2], ranks[1:-1], ranks[2:]
    beyond = here - np.clip(here, np.minimum(before, after), np.maximum(before, after))
    return bool(np.square(beyond).mean() <= np.square(_LEAK) * ranks.var())


def _on_leak(name: str, target: str) -> Advice:
    return Advice(
        f"column {quoted(name)} is nearly a function of the target {quoted(target)} alone: unless "
        "it is known before the target is, leave it out with ",
        dropping([name]),
    )
