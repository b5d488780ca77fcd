"""Find the stores of a fleet, and evaluate their points: here, or wherever a batch is sent.

Files are hostile until checked. One that cannot be used costs a line in the answer, not the answer.
"""

import glob
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.errors import InputError, MissingPackageError
from twinedge.fleet.device_checks import check_device
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference
from twinedge.runtime.evaluator import Reference
from twinedge.runtime.journal import read_journal
from twinedge.runtime.native import Native
from twinedge.runtime.store import Evaluated, Points, Raw, check_owner, evaluated, stamp_of
from twinedge.runtime.store_summary import StoreSummary, point_errors, read_store
from twinedge.wording import plural, shown


def find_stores(given: Sequence[str | Path], apart_from: Path) -> tuple[list[Path], list[Path]]:
    """Find all files that may be stores; a file that is found twice counts once.

    Parameters
    ----------
    given : sequence of path
        Files, folders, whose files are found at any depth, and patterns such as ``site-*.store``.
        Hidden files count only if they are named.
    apart_from : path
        A file that is none, such as the pack.

    Returns
    -------
    list of path, list of path
        Those found, and what was given but does not exist.
    """
    found: dict[str, Path] = {}
    missing = []
    for one in map(Path, given):
        matches = [one] if one.exists() else _matches(one)
        if not matches:
            missing.append(one)
        for match in matches:
            for path in _files_in(match) if match.is_dir() else [match]:
                found.setdefault(os.path.realpath(path), path)
    found.pop(os.path.realpath(apart_from), None)
    return list(found.values()), missing


def _matches(pattern: Path) -> list[Path]:
    # Path.glob takes no absolute pattern.
    return sorted(map(Path, glob.glob(str(pattern), recursive=True)))  # noqa: PTH207


def _files_in(folder: Path) -> list[Path]:
    files = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [Path(parent, name) for name in sorted(names) if not name.startswith(".")]
    return files


class Task(NamedTuple):
    """A batch of stores for one worker.

    ``stores`` are paths and None where the worker reads the files itself, otherwise their bytes,
    compressed: most of a store is erased. ``target`` is the number of the one to evaluate.
    """

    number: int
    pack: bytes
    stores: list[tuple[Path, bytes | None]]
    target: int = 0


def with_contents(task: Task) -> Task:
    """Return a task with the bytes of its files, for workers on other machines."""
    stores: list[tuple[Path, bytes | None]] = []
    for path, _ in task.stores:
        data = None
        with suppress(OSError):  # whoever reads it says why it cannot be read
            if path.is_file():
                data = zlib.compress(path.read_bytes(), 1)
        stores.append((path, data))
    return task._replace(stores=stores)


@dataclass(frozen=True)
class FleetPoints:
    """Points of many devices, one after the other; only those that are used.

    Parameters
    ----------
    device : array of shape (n,), int64
        Which device each belongs to; ascending from 0.
    features : array of shape (n, f), int16
        As the networks of the pack take them.
    targets, mean, scale : array of shape (n,), int64
        What was measured, and what the pack predicts; units as in ``Evaluated``.
    weights : array of shape (n,)
        How far each point is believed, from 0 to 1.
    adapted : array of shape (n,)
        Error of the prediction from the other points of the device, in units of the target.
    """

    device: Array
    features: Array
    targets: Array
    mean: Array
    scale: Array
    weights: Array
    adapted: Array

    @classmethod
    def joined(cls, parts: Sequence["FleetPoints"]) -> "FleetPoints":
        """Put points of different devices one after the other, and number the devices anew."""
        columns = zip(*(vars(one).values() for one in parts), strict=True)
        device, *others = (np.concatenate(column) for column in columns)
        counts = np.array([one.device.max(initial=-1) + 1 for one in parts])
        before = np.repeat(np.cumsum(counts) - counts, [len(one) for one in parts])
        return cls(device + before, *others)

    def __len__(self) -> int:
        return len(self.device)


class Batch(NamedTuple):
    """What a worker found: devices as for JSON, their points, and files that are of no use."""

    number: int
    devices: list[dict[str, Any]]
    points: FleetPoints
    unused: list[dict[str, str]]


def evaluate_batch(task: Task) -> Batch:
    """Read the stores of a batch, and check their devices."""
    whole, raw, stamp = _open_pack(task.pack, task.target)
    pack = whole.single(task.target)
    found = [_read_store(path, data, whole, stamp, task.target) for path, data in task.stores]
    summaries = [one for one in found if isinstance(one, StoreSummary)]
    unused = [one for one in found if not isinstance(one, StoreSummary)]
    devices: list[dict[str, Any]] = []
    features = np.concatenate([np.empty((0, pack.features)), *(one.points.X for one in summaries)])
    targets = np.concatenate([np.empty(0), *(one.points.y for one in summaries)])
    at_all = evaluated(pack, raw, Points.unscored(features, targets))  # once: it is much quicker
    device = np.full(len(targets), -1)  # -1 for a point that is not used
    weights, adapted = np.zeros((2, len(targets)))
    start = 0
    for summary in summaries:
        rows = slice(start, start + len(summary.points))
        start = rows.stop
        at_points = Evaluated(*(column[rows] for column in at_all))
        if not at_points.able.any():
            why = "has no points that the pack can use"
            unused.append({"file": shown(summary.path), "why": why})
            continue
        errors = point_errors(pack, at_points)
        device[rows] = np.where(errors.used, len(devices), -1)
        weights[rows], adapted[rows] = errors.weights, errors.adapted
        devices.append(_describe(replace(summary, errors=(errors,)), at_points, pack))
    used = device >= 0
    points = FleetPoints(
        device[used],
        reference.quantise(pack, features[used]),
        *(column[used] for column in (at_all.targets, at_all.mean, at_all.scale, weights, adapted)),
    )
    return Batch(task.number, devices, points, unused)


def _read_store(
    path: Path, data: bytes | None, pack: Pack, stamp: int, target: int
) -> StoreSummary | dict[str, str]:
    """Read a store that has points for a pack; otherwise say why it is of no use."""
    try:
        if data is None:
            summary = read_store(path)
        else:
            content = read_journal(zlib.decompress(data))
            if content is None:
                raise InputError(f"{path} is not a store of twinedge")
            summary = StoreSummary(path, content, Points.of(content))
        check_owner(path, summary.content, pack, stamp)
        if pack.others and len(summary.points):
            points = Points.of(summary.content, len(pack.every_target)).with_target(target)
            summary = replace(summary, points=points)
        if len(summary.points):
            return summary
        damaged = summary.content.damaged
        also = f", with {plural(damaged, 'damaged slot')}" if damaged else ""
        raise InputError(f"{path} is empty{also}")
    except InputError as error:
        why = str(error).removeprefix(f"{path} ").removesuffix("; name another file")
        return {"file": shown(path), "why": why}


def _describe(summary: StoreSummary, at_points: Evaluated, pack: Pack) -> dict[str, Any]:
    """Return what there is to say about a device, of which this is predicted at its points."""
    assert pack.intervals is not None
    (errors,) = summary.errors
    points, facts = summary.points, summary.facts
    timed = bool((points.times > 0).all())
    order = np.lexsort((points.numbers, points.times if timed else points.numbers))
    unit = float(pack.y_gain)
    scale = np.maximum(at_points.scale, 1) * (unit / 16)
    # On the target's curve, if it has one: there, a scale is as long at either side.
    off = np.where(errors.used, at_points.targets - at_points.mean, np.nan) * unit
    checked = check_device(replace(errors, shipped=off), scale, order, pack.intervals)
    if facts["damaged"] or facts["cut_short"]:
        checked["findings"].append("damaged")
    wanted = ("points", "used", "suspect", "damaged", "cut_short", "last_time")
    scores = ("rmse_shipped", "rmse_adapted", "mean_error")
    printable = "".join(sign if sign.isprintable() else "?" for sign in summary.device)
    return {
        "device": printable,
        "file": shown(summary.path),
        **{name: facts[name] for name in (*wanted, *scores)},
        **checked,
    }


@lru_cache(maxsize=1)
def _open_pack(data: bytes, target: int) -> tuple[Pack, Raw, int]:
    """Return a pack, what evaluates one of its targets, and its checksum."""
    pack = read_pack(data)
    single = pack.single(target)
    try:
        own = Native(write_pack(single) if pack.others else data, single)
        return pack, own.raw, stamp_of(data)
    except MissingPackageError:
        return pack, Reference(single).raw, stamp_of(data)
