"""The store of a device: points that it measured itself, in a journal beside the pack.

Points are in the user's units, so they stay when another pack of the same schema replaces the one
that they were learnt with: section 12 of FORMAT.md.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.errors import InputError, wrong_value
from twinedge.pack.contents import Array, Pack
from twinedge.pack.layout import HEADER_CRC_AT
from twinedge.runtime import reference
from twinedge.runtime.adaptation import MOST_POINTS, score_errors
from twinedge.runtime.journal import Content, slot_of
from twinedge.runtime.journal_file import Journal

UNSCORED = -(2**31)  # the score of a point that the pack cannot evaluate, or has not yet
LARGEST_TIME = 2**32 - 1
_VERSION = 2
_SPARE = 64  # slots of a new file beyond those for the most points

Raw = Callable[[Array], Array]  # quantised queries to means, spreads and scales, integers
_OF_TARGET = np.dtype([("target", "<f4"), ("error", "<i4"), ("score", "<i4")])


@dataclass(frozen=True)
class Points:
    """Points measured on site, in the order they arrived.

    For ``m`` targets, more than one, ``y``, ``errors`` and ``scores`` have shape (k, m).

    Parameters
    ----------
    numbers : array of shape (k,), uint32
        Numbers of the points, ascending.
    times : array of shape (k,), uint32
        When they were measured, or a counter; 0 if that is unknown.
    X : array of shape (k, f), float32
        Features in the user's units; NaN for a missing one.
    y : array of shape (k,), float32
        Measured targets, in their unit; NaN for one of several that was not measured.
    errors : array of shape (k,), int32
        How far off the pack is, in units of an estimate.
    scores : array of shape (k,), int32
        The same, in sixteenths of its scale; ``UNSCORED`` for a point that it cannot evaluate.
    """

    numbers: Array
    times: Array
    X: Array
    y: Array
    errors: Array
    scores: Array

    @classmethod
    def unscored(cls, X: Array, y: Array, times: Array | None = None) -> "Points":
        """Make points ``(k, f)`` with targets ``(k,)`` that have no numbers and no scores yet.

        For several targets, these are ``(k, m)``.
        """
        with np.errstate(over="ignore"):  # infinity is as good as any number beyond the range
            X, y = np.asarray(X).astype(np.float32), np.asarray(y).astype(np.float32)
        y = np.where(np.isnan(y), np.float32(np.nan), y)  # the same bytes for all that is missing
        none = np.zeros(len(X), np.uint32)
        times = none if times is None else times.astype(np.uint32)
        scores = np.full(y.shape, UNSCORED, np.int32)
        return cls(none, times, X, y, np.zeros(y.shape, np.int32), scores)

    @classmethod
    def none(cls, features: int, targets: int = 1) -> "Points":
        """Return an empty set of points."""
        return cls.unscored(np.empty((0, features)), np.empty(0 if targets == 1 else (0, targets)))

    @classmethod
    def of(cls, content: Content, targets: int = 1) -> "Points":
        """Read the points in a journal, which does not know how many targets they have.

        Raises
        ------
        InputError
            If its records are not points.
        """
        size = content.head.size
        if not content.head.generation:
            return cls.none(0, targets)
        features = features_in(size, targets)
        if features < 1:
            raise InputError(f"its points have room for fewer than {targets} targets")
        records = np.ascontiguousarray(content.records).view(_record(features, targets))[:, 0]
        measured = records["measured"][:, 0] if targets == 1 else records["measured"]
        own = (measured[name] for name in ("target", "error", "score"))
        return cls(content.numbers, records["time"], records["features"], *own)

    def to_records(self) -> Array:
        """Return the bytes of a journal's records, uint8 ``(k, 4 + 12 m + 4 f)``."""
        records = np.empty(len(self), _record(self.X.shape[1], self.targets))
        records["time"], records["features"] = self.times, self.X
        columns = {"target": self.y, "error": self.errors, "score": self.scores}
        for name, column in columns.items():
            records["measured"][name] = column.reshape(len(self), self.targets)
        return records.view(np.uint8).reshape(len(self), records.itemsize)

    @property
    def targets(self) -> int:
        """How many targets each point has."""
        return 1 if self.y.ndim == 1 else self.y.shape[1]

    def single(self, target: int) -> "Points":
        """Return the points with one target: those that can be used for it."""
        if self.y.ndim == 1:
            return self
        found = self.with_target(target)
        return found[found.scores != UNSCORED]

    def with_target(self, target: int) -> "Points":
        """Return all points with one target of several."""
        own = (column[:, target] for column in (self.y, self.errors, self.scores))
        return Points(self.numbers, self.times, self.X, *own)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: Array | slice) -> "Points":
        return Points(*(column[which] for column in vars(self).values()))

    def joined(self, *others: "Points") -> "Points":
        """Return these points followed by others."""
        columns = zip(*(vars(one).values() for one in (self, *others)), strict=True)
        return Points(*(np.concatenate(column) for column in columns))

    def usable(self, most: int) -> "Points":
        """Return the points that the pack can evaluate, the latest if there are more than that."""
        able = (self.scores != UNSCORED).reshape(len(self), self.targets).any(axis=1)
        return self[np.flatnonzero(able)[-most:]]

    def among(self, others: "Points") -> Array:
        """Which points ``(k,)`` have the same time, features and target as one of the others."""
        known = set(others.identities())
        return np.array([one in known for one in self.identities()], bool)

    def identities(self, *, numbered: bool = False) -> list[bytes]:
        """Bytes that are the same for points with the same time, features and target.

        If they are ``numbered``, also with the same number.
        """
        numbers = self.numbers if numbered else 0 * self.numbers
        none = np.zeros_like(self.scores)
        shown = numbers.astype(np.uint32).view(np.int32).reshape(-1, *[1] * (self.y.ndim - 1))
        same = replace(self, errors=none + shown, scores=none)
        return [one.tobytes() for one in same.to_records()]


def _record(features: int, targets: int) -> np.dtype[np.void]:
    """Return the type of a record."""
    return np.dtype(
        [("time", "<u4"), ("measured", _OF_TARGET, (targets,)), ("features", "<f4", (features,))]
    )


def features_in(size: int, targets: int = 1) -> int:
    """Return the number of features in a record of so many bytes."""
    return (size - record_size(0, targets)) // 4


def record_size(features: int, targets: int) -> int:
    """Return the bytes of a record."""
    return 4 + _OF_TARGET.itemsize * targets + 4 * features


class Evaluated(NamedTuple):
    """What a pack predicts at points ``(k,)``, or ``(k, m)`` for several targets, in integers.

    Where ``able`` is False it cannot evaluate a point, and the other numbers mean nothing.
    """

    able: Array
    targets: Array
    mean: Array
    scale: Array


def evaluated(pack: Pack, raw: Raw, points: Points) -> Evaluated:
    """Evaluate points with a pack that has intervals."""
    targets = estimates_of(pack, points.y)
    lacking = (np.isnan(points.X) & ~reference.fillable(pack)).any(axis=1)
    able = ((targets != reference.NO_ESTIMATE).T & ~lacking).T
    mean, scale = np.zeros((2, *targets.shape), np.int64)
    some = able if able.ndim == 1 else able.any(axis=1)
    if some.any():
        mean[some], _, scale[some] = raw(reference.quantise(pack, points.X[some]))
    return Evaluated(able, targets, mean, scale)


def estimates_of(pack: Pack, y: Array) -> Array:
    """Turn targets ``(n,)``, or ``(n, m)`` for several, into units of an estimate, int64."""
    if y.ndim == 1:
        return reference.estimates_of(pack, y)
    columns = zip(pack.singles, y.T, strict=True)
    return np.stack([reference.estimates_of(*one) for one in columns], axis=1)


def scored(pack: Pack, raw: Raw, points: Points) -> Points:
    """Return points with what a pack with intervals makes of them."""
    able, targets, mean, scale = evaluated(pack, raw, points)
    errors, scores = score_errors(mean, scale, targets)
    return replace(
        points,
        errors=np.where(able, errors, np.int32(0)),
        scores=np.where(able, scores, np.int32(UNSCORED)),
    )


def stamp_of(data: bytes) -> int:
    """Return the checksum in the header of a pack, by which a store knows who scored its points."""
    stamp: int = struct.unpack_from("<I", data, HEADER_CRC_AT)[0]
    return stamp


def owner_of(schema: int, slot: int) -> int:
    """Return the owner of a journal with points of this schema, in slots of so many bytes."""
    return (schema + 65536 * _VERSION + slot) % 2**32


def schema_in(content: Content) -> int:
    """Return the schema that the points of a journal belong to."""
    return (content.head.owner - owner_of(0, content.head.slot)) % 2**32


def _schema(pack: Pack, stamp: int) -> int:
    return stamp if pack.schema is None else pack.schema


def check_owner(path: Path, content: Content, pack: Pack, stamp: int) -> None:
    """Refuse a journal whose points do not belong to a pack with this checksum.

    Raises
    ------
    InputError
        If they belong to another model.
    """
    size = record_size(pack.features, len(pack.every_target))
    same = schema_in(content) == _schema(pack, stamp) and content.head.size == size
    if content.head.generation and not same:
        other = "pack" if pack.schema is None else "model, with other columns or another target"
        raise InputError(f"{path} holds points of another {other}; name another file")


class Store:
    """Points measured on site, in a file beside the pack.

    Opening it only reads. The file is locked from the first change until the store is closed.

    Parameters
    ----------
    path : path
        The file; it is created when the first point is learnt.
    pack : Pack
        The pack that evaluates the points, with intervals.
    stamp : int
        Checksum of its file, as ``stamp_of`` reads it.
    raw : function
        Evaluates queries with that pack.

    Attributes
    ----------
    held : Points
        What it holds.
    points : Points
        Those that are used: the pack can evaluate them, and there are not too many.
    journal : Journal
        The file. Close it so that other programs can write to it.

    Raises
    ------
    InputError
        If the file is not a store, or belongs to another model.
    """

    def __init__(self, path: str | Path, pack: Pack, stamp: int, raw: Raw) -> None:
        if pack.intervals is None:
            raise InputError("the pack has no intervals and cannot learn without them")
        self._pack, self._stamp, self._raw = pack, stamp, raw
        self.journal = Journal(path)
        self._load()

    def lock(self) -> None:
        """Keep other programs from writing, and read what they wrote.

        Raises
        ------
        InputError
            If another program holds the lock, or the file cannot be written.
        """
        before = self.journal.content
        self.journal.lock()
        if self.journal.content is not before:
            self._load()

    def add(self, points: Points) -> None:
        """Add points that the pack has scored; they are numbered in order.

        Raises
        ------
        InputError
            If there is no room for them, or the file cannot be written; none of them is kept then.
        """
        if not len(points):
            return
        self.lock()
        numbers = self.journal.add(points.to_records())
        self._set(self.held.joined(replace(points, numbers=numbers)))

    def keep(self, which: Array) -> None:
        """Forget all points but these, bool ``(k,)`` of those held.

        Raises
        ------
        InputError
            If the file cannot be written; nothing is forgotten then.
        """
        self.lock()
        if not which.all() or self.journal.content.damaged:
            self.journal.keep(which)
            self._set(self.held[which])

    def _load(self) -> None:
        """Make points of the records, evaluated by this pack."""
        pack, content = self._pack, self.journal.content
        targets = len(pack.every_target)
        size = record_size(pack.features, targets)
        if not content.head.generation:
            owner = owner_of(_schema(pack, self._stamp), slot_of(size))
            self.journal.lay_out(owner, size, MOST_POINTS + _SPARE, self._stamp)
            self._set(Points.none(pack.features, targets))
            return
        try:
            check_owner(self.journal.path, content, pack, self._stamp)
        except InputError:
            self.journal.close()
            raise
        held = Points.of(content, targets)
        unscored = (held.scores == UNSCORED) & ~np.isnan(held.y)
        if content.head.stamp != self._stamp or unscored.any():
            held = scored(pack, self._raw, held)
            self.journal.update(held.to_records(), self._stamp)
        self._set(held)

    def _set(self, held: Points) -> None:
        self.held, self.points = held, held.usable(MOST_POINTS)


def check_forgotten(first: Any, last: Any, keep: Any, before: Any) -> None:
    """Refuse arguments that do not say which points to forget."""
    given = {"first": first, "last": last, "keep": keep, "before": before}
    for name, one in given.items():
        whole = isinstance(one, Integral) and not isinstance(one, bool)
        if one is not None and (not whole or one < 0):
            raise wrong_value(name, one, "is not a whole number of at least 0")
    if sum((first is not None or last is not None, keep is not None, before is not None)) > 1:
        raise InputError(
            "forget takes numbers of points, how many to keep, or a time: one of these, not both"
        )
    if first is not None and last is not None and first > last:
        raise InputError(f"forget takes the first and the last number, but {first} is after {last}")


def forgotten(
    points: Points, first: int | None, last: int | None, keep: int | None, before: int | None
) -> Array:
    """Which points to forget, bool ``(k,)``; see ``Device.forget``."""
    if keep is not None:
        older: Array = np.arange(len(points)) < max(len(points) - int(keep), 0)
        return older
    low = 0 if first is None else int(first)
    high = LARGEST_TIME if last is None and first is None else low if last is None else int(last)
    values = points.numbers.astype(np.int64)
    if before is not None:
        values, low, high = points.times.astype(np.int64), 1, int(before) - 1
    within: Array = (values >= min(low, 2**32)) & (values <= min(high, 2**32))
    return within
