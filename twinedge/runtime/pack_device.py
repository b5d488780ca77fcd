"""A ``.twin`` file as a device, whatever evaluates it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import PackError, read_pack
from twinedge.pack.contents import LARGEST, Array, Intervals, Pack
from twinedge.runtime import reference
from twinedge.runtime.adaptation import MOST_POINTS, adapted, unlike
from twinedge.runtime.device import Device
from twinedge.runtime.evaluator import Evaluator, reference_of
from twinedge.runtime.store import (
    LARGEST_TIME,
    Evaluated,
    Points,
    Store,
    check_forgotten,
    check_owner,
    evaluated,
    forgotten,
    scored,
    stamp_of,
)
from twinedge.runtime.store_summary import PointErrors, StoreSummary, point_errors, read_store
from twinedge.scoring.scores import check_targets

if TYPE_CHECKING:
    from twinedge.runtime.watch import Watch


class PackDevice(Device):
    """A device that evaluates a pack.

    Parameters
    ----------
    pack : Pack
        Contents of the file.
    path : path
        The file, for messages.
    evaluator : Evaluator
        Evaluates that pack.
    backend : str
        Name of the backend.
    stamp : int, optional
        Checksum of the file, by which a store knows who scored its points.

    Attributes
    ----------
    points : Points
        What it has learnt.
    """

    def __init__(
        self, pack: Pack, path: Path, evaluator: Evaluator, backend: str, stamp: int = 0
    ) -> None:
        reach = LARGEST / pack.x_gain.astype(np.float64)
        super().__init__(
            pack.metadata,
            np.stack([pack.x_offset - reach, pack.x_offset + reach]),
            anchors=len(pack.targets),
            info={
                "file": str(path),
                "backend": backend,
                "shape": "pack",
                "level": f"int{pack.weight_bits}",
                "twins": len(pack.twins),
                "hidden": list(pack.hidden),
                "activation": pack.activation,
                "neighbors": pack.neighbors,
            },
            levels=_levels(pack),
            fillable=reference.fillable(pack),
            targets=len(pack.every_target),
        )
        self.pack = pack
        self.evaluator = evaluator
        self.points = self._no_points()
        self._stamp = stamp
        self._following = 0  # number of the next point, without a store

    @property
    def learnt(self) -> int:
        """Number of points learnt on site."""
        return len(self.points)

    def without_points(self) -> "PackDevice":
        """Return a device that shares this pack and has learnt nothing."""
        file, backend = Path(self.info["file"]), self.info["backend"]
        return PackDevice(self.pack, file, self.evaluator, backend, self._stamp)

    def keep(self, path: str | Path) -> None:
        """Keep what is learnt in a store, and load what is already there.

        What was learnt before without a store is added to it. Points that were learnt with another
        pack of the same schema are evaluated again.

        Parameters
        ----------
        path : path
            The file; it is created when the first point is learnt.

        Raises
        ------
        InputError
            If the file is not a store, or belongs to another model; if the pack has no intervals.
        """
        self._check_intervals()
        store = Store(path, self.pack, self._stamp, self.evaluator.raw)
        if self.store is None:
            store.add(self.points)
        else:
            self.store.journal.close()
        self.store = store
        self.points = store.points

    def _learnt_state(self) -> Any:
        return (self.points, self._following) if self.store is None and self._following else None

    def __setstate__(self, learnt: tuple[Points, int]) -> None:
        """Learn again what a pickled device had learnt without a store."""
        self.points, self._following = learnt

    def learn(self, X: Any, y: Any, times: Any = None) -> int:
        """Learn points measured on site; see ``Device.learn``."""
        self._check_intervals()
        x = self._check(X)
        y = self._check_targets(y, len(x))
        for target, column in enumerate(y.reshape(len(x), self.targets).T):
            bad = unlike(self.pack.single(target), column)
            if self.targets > 1:
                bad &= ~np.isnan(column)
            if bad.any():
                row = int(bad.argmax())
                which = "the target" if self.targets == 1 else self.target_names[target]
                raise InputError(
                    f"{which} of point {row + 1} is {float(column[row]):g}: not a number, or far "
                    "beyond those of training"
                )
        new = Points.unscored(x, y, None if times is None else _check_times(times, len(x)))
        if not len(x):
            return 0
        if len(x) > MOST_POINTS:
            raise InputError(f"{len(x)} new points are too many: {MOST_POINTS} at most")
        held = self._lock()
        if len(x) + len(held) > MOST_POINTS:
            raise InputError(
                f"{len(held)} learnt and {len(x)} new points are too many, "
                f"{MOST_POINTS} at most: forget some"
            )
        new = scored(self.pack, self.evaluator.raw, new)
        if self.store is None:
            numbers = (self._following + np.arange(len(new))).astype(np.uint32)
            self.points = held.joined(replace(new, numbers=numbers))
            self._following += len(new)
        else:
            self.store.add(new)
            self.points = self.store.points
        return len(x)

    def forget(
        self,
        first: int | None = None,
        last: int | None = None,
        *,
        keep: int | None = None,
        before: int | None = None,
    ) -> int:
        """Forget points; see ``Device.forget``."""
        self._check_intervals()
        check_forgotten(first, last, keep, before)
        held = self._lock()
        gone = forgotten(held, first, last, keep, before)
        if self.store is not None:
            self.store.keep(~gone)
            self.points = self.store.points
        else:
            self.points = held[~gone]
        return int(gone.sum())

    def has_learnt(self, X: Any, y: Any, times: Any = None) -> Array:
        """Which points ``(n,)`` were learnt already, with the same targets and times.

        The arguments are those of ``learn``; numbers are compared in single precision.
        """
        self._check_intervals()
        x = self._check(X)
        times = None if times is None else _check_times(times, len(x))
        held = self.points if self.store is None else self.store.held
        return Points.unscored(x, self._check_targets(y, len(x)), times).among(held)

    def _check_targets(self, y: Any, count: int) -> Array:
        """Refuse targets that are not numbers, or of points without any."""
        if self.targets == 1:
            return check_targets(y, count)
        try:
            found = np.asarray(y)
        except ValueError:  # lists of different lengths
            found = np.empty(0)
        if found.shape != (count, self.targets) or found.dtype.kind not in "biuf":
            raise InputError(
                f"targets must be numbers of shape ({count}, {self.targets}), one for each point "
                f"and target, not {found.dtype} of shape {found.shape}"
            )
        none = np.isnan(found).all(axis=1)
        if none.any():
            raise InputError(f"point {int(none.argmax()) + 1} has no target: none was measured")
        checked: Array = found
        return checked

    def errors(self, target: int = 0) -> PointErrors:
        """Errors at the points that were learnt: as shipped, and each predicted from the others.

        Parameters
        ----------
        target : int
            Which of several targets.
        """
        self._check_intervals()
        return self._errors(self.points)[target]

    def _errors(self, points: Points) -> tuple[PointErrors, ...]:
        found = evaluated(self.pack, self.evaluator.raw, points)
        if self.targets == 1:
            return (point_errors(self.pack, found),)
        return tuple(
            point_errors(one, Evaluated(*(column[:, target] for column in found)))
            for target, one in enumerate(self.pack.singles)
        )

    def summarise(self, path: str | Path) -> StoreSummary:
        """Read a store of any device, and say what this pack gets wrong at its points.

        Parameters
        ----------
        path : path
            The file, or a dump of a microcontroller's two blocks.

        Raises
        ------
        InputError
            If it is not a store, or belongs to another model; if the pack has no intervals.
        """
        self._check_intervals()
        found = self.read_store(path)
        return replace(found, errors=self._errors(found.points))

    def read_store(self, path: str | Path) -> StoreSummary:
        """Read a store of any device with this model; as ``summarise``, but without errors."""
        found = read_store(Path(path))
        check_owner(found.path, found.content, self.pack, self._stamp)
        written = found.content.head.generation
        points = Points.of(found.content, self.targets) if written else self._no_points()
        return replace(found, points=points, names=self.target_names)

    def _no_points(self) -> Points:
        return Points.none(self.pack.features, self.targets)

    def _check_intervals(self) -> Intervals:
        if self.pack.intervals is None:
            raise InputError(f"{self.info['file']} has no intervals and cannot learn without them")
        return self.pack.intervals

    def _lock(self) -> Points:
        """Lock the store, if there is one, and return all points that were learnt so far."""
        if self.store is None:
            return self.points
        self.store.lock()
        return self.store.held

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        if len(self.points):
            mean, spread, _ = self._adapted(x, neighbors, ())
        else:
            mean, spread = self.evaluator.predict_with_spread(x, neighbors or -1)
        return mean, spread

    def _bounds(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        if len(self.points):
            return self._adapted(x, neighbors, levels)
        return self.evaluator.predict_with_bounds(x, levels, neighbors or -1)

    def watch(self, coverage: float | None = None) -> "Watch":
        """Begin to watch this device: ``coverage`` is what its intervals should keep."""
        from twinedge.runtime.watch import Watch

        return Watch(self, coverage)

    def in_integers(self, x: Any, neighbors: int | None = None) -> tuple[Array, Array, Array]:
        """Predict queries of one target in the integers of the pack.

        Returns
        -------
        mean, scale : array of int, shape (n,)
            With what was learnt; the scale is in sixteenths.
        outside : array of bool, shape (n,)
            Whether a feature is outside its range, as C counts them: levels that are not known are
            not.
        """
        self._check_intervals()
        x, neighbors = self._check(x), self._check_neighbors(neighbors)
        raw = self.evaluator.raw(reference.quantise(self.pack, x), neighbors or -1)
        mean, _, scale = raw
        if len(self.points):
            points, intervals = self.points, self.pack.intervals
            assert intervals is not None
            mean, scale = adapted(intervals, points.errors, points.scores, mean, scale)
        flags: Array = self._outside(x)
        return mean, scale, np.asarray(flags.any(axis=1))

    def _adapted(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        """Predict with the points: mean, spread, scale, low and high at each level."""
        self._check_intervals()
        raw = self.evaluator.raw(reference.quantise(self.pack, x), neighbors or -1)
        if self.targets == 1:
            return _adapted(self.pack, self.points, raw, neighbors, levels)
        found = [
            _adapted(one, self.points.single(target), raw[..., target], neighbors, levels)
            for target, one in enumerate(self.pack.singles)
        ]
        return np.stack(found, axis=-1)

    def _outside(self, x: Array) -> Array:
        if self.pack.domain is None:
            return super()._outside(x)
        # Compare integers, as C does: values that quantise alike are both outside, or neither is.
        outside: Array = reference.outside(self.pack, reference.quantise(self.pack, x))
        return outside & ~np.isnan(x)

    def _estimates(self, x: Array, neighbors: int | None) -> Array:
        found = self.evaluator.estimates(x, neighbors or -1)
        if self.targets == 1:
            return reference.targets_of(self.pack, found)
        columns = zip(self.pack.singles, np.moveaxis(found, -1, 0), strict=True)
        return np.stack([reference.targets_of(*one) for one in columns], axis=-1)


def _adapted(
    pack: Pack, points: Points, raw: Array, neighbors: int | None, levels: tuple[int, ...]
) -> Array:
    """Mean, spread, scale, low and high at each level of one target, from raw ones ``(3, n)``."""
    assert pack.intervals is not None
    mean, root, scale = raw
    mean, scale = adapted(pack.intervals, points.errors, points.scores, mean, scale)
    most = neighbors or pack.neighbors
    counts = np.minimum(pack.counts, most) if most else pack.counts
    found = [
        reference.targets_of(pack, mean),
        reference.deviations_of(pack, mean, root, int(counts.sum(dtype=np.int64))),
        reference.deviations_of(pack, mean, scale, 16),
    ]
    for level in levels:
        ends = reference.bounded(pack, mean, scale, level)
        found += [ends.low, ends.high]
    return np.stack(found)


def _levels(pack: Pack) -> tuple[int, ...]:
    """Levels that the intervals of all targets have, in thousandths."""
    each = [one.intervals.quantiles for one in pack.every_target if one.intervals is not None]
    return tuple(level for level in (each[0] if each else ()) if all(level in one for one in each))


def read_pack_file(path: Path) -> tuple[Pack, bytes]:
    """Read a pack, and the bytes of its file; errors name the file."""
    try:
        data = path.read_bytes()
        return read_pack(data), data
    except PackError as error:
        raise PackError(error.reason, f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def open_reference(path: Path, threads: int = 1) -> Device:
    """Open a ``.twin`` file; always uses one thread."""
    del threads
    pack, data = read_pack_file(path)
    return PackDevice(pack, path, reference_of(pack), "numpy", stamp_of(data))


def _check_times(times: Any, count: int) -> Array:
    """Refuse times that no store can hold."""
    try:
        found = np.asarray(times)
        whole = found.dtype.kind in "iuf" and bool((np.floor(found) == found).all())
    except ValueError:  # lists of different lengths
        found, whole = np.empty(0), False
    if found.shape != (count,):
        raise InputError(
            f"times must have shape ({count},), one for each point, not shape {found.shape}"
        )
    if not whole or (count and not 0 <= found.min() <= found.max() <= LARGEST_TIME):
        raise InputError(
            f"times must be whole numbers from 0 to {LARGEST_TIME}, such as seconds since 1970"
        )
    return found
