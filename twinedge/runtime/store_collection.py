"""Points of many stores, joined: as a table to train on, or as one store."""

from collections.abc import Iterator, Sequence
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


def distinct(stores: Sequence[StoreSummary]) -> Iterator[tuple[StoreSummary, Points]]:
    """Yield each store with the points that no earlier store of the same device has.

    A point is the same if its number, time, features and target are.
    """
    known: dict[str, set[bytes]] = {}
    for one in stores:
        mine = known.setdefault(one.device, set())
        names = one.points.identities(numbered=True)
        new = np.array([name not in mine for name in names], bool)
        mine.update(names)
        yield one, one.points[new]


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
        if not same or first.points.X.shape[1] != one.points.X.shape[1]:
            raise InputError(
                f"{one.path} holds points of another model than {first.path}: its columns or its "
                "target are different"
            )


def _suspect_numbers(points: Points) -> Array:
    """Numbers of the points of a device that count for nothing there."""
    scored = points[points.scores != UNSCORED]
    numbers: Array = scored.numbers[point_weights(scored.scores) == 0]
    return numbers


def as_table(
    stores: Sequence[StoreSummary],
    encoding: Encoding | None = None,
    target: str = "y",
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
    target : str
        Name of the target.
    times : bool
        Whether to add a column of times.
    suspect : bool
        Whether to take points that are so far from the others of their device that they count for
        nothing there: a glitch would be learnt.

    Raises
    ------
    InputError
        If the stores belong to different models, or hold no points.
    """
    check_alike(stores)
    parts, count = [], 0
    for one, points in distinct(stores):
        absurd = np.isin(points.numbers, [] if suspect else _suspect_numbers(one.points))
        parts.append((one.device, points[~absurd]))
        count += len(points)
    if not count:
        raise InputError("there are no points: the stores are empty")
    left_out = count - sum(len(points) for _, points in parts)
    if left_out == count:
        raise InputError("all points are suspect, so there are none to write")
    points = parts[0][1]
    for _, more in parts[1:]:
        points = points.joined(more)
    devices = [name for name, part in parts for _ in range(len(part))]
    if encoding is None:
        encoding = Encoding.plain(numbered(points.X.shape[1]))
    columns = dict(zip(encoding.names, encoding.decode(points.X), strict=True))
    columns[_free(target, columns)] = Encoding.plain([target]).decode(points.y[:, None])[0]
    if times:
        columns[_free("time", columns)] = ["" if not one else str(one) for one in points.times]
    columns[_free("device", columns)] = devices
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return PointTable(list(columns), rows, left_out)


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
    points, known = None, set()
    for one in stores:
        names = one.points.identities(numbered=True)
        new = one.points[np.array([name not in known for name in names], bool)]
        known.update(names)
        if len(new):
            points = new if points is None else points.joined(new)
    if points is None:
        raise InputError("there are no points: the stores are empty")
    if points.times.all():
        points = points[np.argsort(points.times, kind="stable")]
    heads = [one.content.head for one in stores if len(one.points)]
    if len({head.stamp for head in heads}) > 1:  # different packs scored them
        points = replace(points, scores=np.full(len(points), UNSCORED, np.int32))
    first, size = next(one.content for one in stores if len(one.points)), heads[0].size
    with Journal(path) as journal:
        owner = owner_of(schema_in(first), slot_of(size))
        journal.lay_out(owner, size, max(len(points), MOST_POINTS) + _SPARE, heads[0].stamp)
        numbers = journal.add(points.to_records())
    return replace(points, numbers=numbers)
