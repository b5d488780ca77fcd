"""Points of many stores, joined: as a table to train on, or as one store."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twinedge.encoding.cells import numbered
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.adaptation import MOST_POINTS, point_weights
from twinedge.runtime.journal import slot_of
from twinedge.runtime.journal_file import Journal
from twinedge.runtime.store import UNSCORED, Points, owner_of, schema_in
from twinedge.runtime.store_summary import StoreSummary

_SPARE = 64  # slots of a new file beyond those for its points


class PointTable(NamedTuple):
    """Points as the cells of a table, and how many were left out because they are suspect."""

    header: list[str]
    rows: list[list[str]]
    suspect: int


def distinct(stores: Sequence[StoreSummary], *, by_device: bool) -> list[Points]:
    """Return, of each store, the points that no earlier one has: of its device, or of any.

    A point is the same if its number, time, features and target are.
    """
    known: dict[str, set[bytes]] = {}
    found = []
    for one in stores:
        seen = known.setdefault(one.device if by_device else "", set())
        names = one.points.identities(numbered=True)
        found.append(one.points[np.array([name not in seen for name in names], bool)])
        seen.update(names)
    return found


def shared_points(stores: Sequence[StoreSummary]) -> tuple[StoreSummary, StoreSummary] | None:
    """Find two stores of different devices that hold the same point: dumps of one device."""
    owners: dict[bytes, StoreSummary] = {}
    for one in stores:
        for name in one.points.identities(numbered=True):
            other = owners.setdefault(name, one)
            if other.device != one.device:
                return other, one
    return None


def check_alike(stores: Sequence[StoreSummary]) -> None:
    """Refuse stores of different schemas.

    Raises
    ------
    InputError
        If there are none, or two differ.
    """
    written = [one for one in stores if one.content.head.generation]
    for one in written[1:]:
        first = written[0]
        same = schema_in(first.content) == schema_in(one.content)
        if not same or first.content.head.size != one.content.head.size:
            raise InputError(
                f"{one.path} holds points of another model than {first.path}: its columns or its "
                "target are different"
            )


def _suspect_numbers(points: Points) -> Array:
    """Numbers of the points of a device that count for nothing there, for one of its targets."""
    each = [points.single(target) for target in range(points.targets)]
    some = [one[one.scores != UNSCORED] for one in each]
    return np.concatenate([one.numbers[point_weights(one.scores) == 0] for one in some])


def as_table(
    stores: Sequence[StoreSummary],
    encoding: Encoding | None = None,
    targets: Sequence[str] = ("y",),
    *,
    times: bool = False,
    suspect: bool = False,
) -> PointTable:
    """Join the points of stores in a table: columns, target and device.

    Parameters
    ----------
    stores : sequence of StoreSummary
        Stores of one schema.
    encoding : Encoding, optional
        What the features are made of; without it they are x0, x1, ...
    targets : sequence of str
        Names of the targets.
    times : bool
        Whether to add a column of times.
    suspect : bool
        Whether to write points that are so far from the others of their device that they count for
        nothing there: a glitch would be learnt.

    Raises
    ------
    InputError
        If the stores belong to different models, or hold no points.
    """
    check_alike(stores)
    parts = distinct(stores, by_device=True)
    count = sum(map(len, parts))
    if not suspect:
        parts = [
            points[~np.isin(points.numbers, _suspect_numbers(one.points))]
            for one, points in zip(stores, parts, strict=True)
        ]
    points = _joined(parts)
    left_out = count - sum(map(len, parts))
    if points is None:
        empty = "there are no points: the stores are empty"
        raise InputError(
            "all points are suspect, so there are none to write" if left_out else empty
        )
    devices = [
        one.device for one, part in zip(stores, parts, strict=True) for _ in range(len(part))
    ]
    if encoding is None:
        encoding = Encoding.plain(numbered(points.X.shape[1]))
    columns = dict(zip(encoding.names, encoding.decode(points.X), strict=True))
    measured = Encoding.plain(targets).decode(points.y.reshape(len(points), -1))
    for target, column in zip(targets, measured, strict=True):
        columns[_free(target, columns)] = column
    if times:
        columns[_free("time", columns)] = ["" if not one else str(one) for one in points.times]
    columns[_free("device", columns)] = devices
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return PointTable(list(columns), rows, left_out)


def _joined(parts: Iterable[Points]) -> Points | None:
    """Return points one after the other; None if there are none."""
    some = [one for one in parts if len(one)]
    return some[0].joined(*some[1:]) if some else None


def _free(name: str, taken: dict[str, list[str]]) -> str:
    while name in taken:
        name += "_"
    return name


def merge(stores: Sequence[StoreSummary], path: Path) -> Points:
    """Write a new store with the points of others, and return them.

    The same point in two of them counts once. Points are in order of time if all have one, else in
    that of the stores, and get new numbers.

    Raises
    ------
    InputError
        If the stores belong to different models, hold no points, or the file exists.
    """
    check_alike(stores)
    if path.exists():
        raise InputError(f"{path} exists already: name a new file")
    points = _joined(distinct(stores, by_device=False))
    if points is None:
        raise InputError("there are no points: the stores are empty")
    if points.times.all():
        points = points[np.argsort(points.times, kind="stable")]
    contents = [one.content for one in stores if len(one.points)]
    if len({one.head.stamp for one in contents}) > 1:  # different packs scored them
        points = replace(points, scores=np.full_like(points.scores, UNSCORED))
    head = contents[0].head
    with Journal(path) as journal:
        owner = owner_of(schema_in(contents[0]), slot_of(head.size))
        journal.lay_out(owner, head.size, max(len(points), MOST_POINTS) + _SPARE, head.stamp)
        numbers = journal.add(points.to_records())
    return replace(points, numbers=numbers)
