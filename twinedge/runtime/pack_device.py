"""A ``.twin`` file as a device, and the backend that evaluates it with numpy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from twinedge.errors import InputError, wrong_value
from twinedge.pack import PackError, read_pack, write_pack
from twinedge.pack.contents import LARGEST, Array, Intervals, Pack
from twinedge.runtime import reference
from twinedge.runtime.adapting import (
    Points,
    blended,
    judged,
    most_points,
    own_pack,
    quantised_targets,
    unlike,
)
from twinedge.runtime.device import Device
from twinedge.runtime.store import Store
from twinedge.scoring import check_targets


class Evaluator(Protocol):
    """Evaluates one pack.

    ``neighbors`` is how many nearest anchors of each twin predict: 0 for all, negative for as many
    as the pack says.
    """

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``.

        Levels are in thousandths, and must be in the pack.
        """

    def evaluate(self, x: Array, neighbors: int = -1) -> reference.Evaluation:
        """Evaluate queries ``(n, f)``, with the estimate of each anchor."""

    def raw(self, q: Array, neighbors: int = -1) -> Array:
        """Means, spreads times the number of members, and scales of quantised queries.

        Integers ``(3, n)``; only for a pack with intervals.
        """


class Reference:
    """The integer arithmetic in numpy."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""
        found = self.evaluate(x, neighbors)
        return np.stack([found.mean, found.spread])

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``."""
        assert self._pack.intervals is not None
        found = self.evaluate(x, neighbors)
        usual = reference.bounds(self._pack, found, self._pack.intervals.usual_level)
        at_each = [reference.bounds(self._pack, found, level) for level in levels]
        ends = [end for one in at_each for end in (one.low, one.high)]
        return np.stack([found.mean, found.spread, usual.scale, *ends])

    def evaluate(self, x: Array, neighbors: int = -1) -> reference.Evaluation:
        """Evaluate queries ``(n, f)``, with the estimate of each anchor."""
        return reference.evaluate(self._asked(neighbors), x)

    def raw(self, q: Array, neighbors: int = -1) -> Array:
        """Means, spreads times the number of members, and scales: integers ``(3, n)``."""
        assert self._pack.intervals is not None
        found = reference.evaluate_raw(self._asked(neighbors), q)
        assert found.signals is not None
        scale = reference.raw_scale(found.signals, self._pack.intervals, found.estimates.shape[1])
        return np.stack([found.raw_mean.astype(np.int64), found.raw_spread, scale])

    def _asked(self, neighbors: int) -> Pack:
        return self._pack if neighbors < 0 else replace(self._pack, neighbors=neighbors)


class _Own(NamedTuple):
    """Points, and an evaluator of the pack that has them as its only anchors."""

    points: Points
    said: Evaluator


class PackDevice(Device):
    """A device that evaluates a pack.

    Parameters
    ----------
    pack : Pack
        Contents of the file.
    path : path
        The file, for messages.
    evaluate_with : function
        Makes an evaluator from a pack.
    backend : str
        Name of the backend.

    Attributes
    ----------
    points : Points
        What it has learnt.
    """

    def __init__(
        self, pack: Pack, path: Path, evaluate_with: Callable[[Pack], Evaluator], backend: str
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
            levels=() if pack.intervals is None else tuple(pack.intervals.quantiles),
            fillable=reference.fillable(pack),
        )
        self.pack = pack
        self._evaluate_with = evaluate_with
        self._evaluator = evaluate_with(pack)
        self.points = Points.none(pack.features)
        self._store: Store | None = None
        self._own: _Own | None = None  # None without points

    @property
    def learnt(self) -> int:
        """Number of points learnt on site."""
        return len(self.points)

    def keep(self, path: str | Path) -> None:
        """Keep what is learnt in a store, and load what is already there.

        What was learnt before without a store is added to it.

        Parameters
        ----------
        path : path
            The file; it is created when the first point is learnt.

        Raises
        ------
        InputError
            If the file is not a store, or belongs to another pack; if the pack has no intervals.
        """
        self._able()
        store = Store(path, self.pack, self._file())
        if self._store is None:
            store.add(self.points)
        else:
            self._store.close()
        self._store = store
        self._set(store.points)

    def _learnt_state(self) -> Any:
        return self.points if self._store is None and len(self.points) else None

    def __setstate__(self, points: Points) -> None:
        """Learn again what a pickled device had learnt without a store."""
        self._set(points)

    @property
    def lost(self) -> int:
        """Number of store entries that cannot be read: damaged, or cut short."""
        return 0 if self._store is None else self._store.lost

    def learn(self, X: Any, y: Any) -> int:
        """Learn points measured on site; see ``Device.learn``."""
        intervals = self._able()
        x = self._check(X)
        y = check_targets(y, len(x))
        if len(bad := np.flatnonzero(unlike(self.pack, y))):
            raise InputError(
                f"the target of point {bad[0] + 1} is {float(y[bad[0]]):g}: not a number, or far "
                f"beyond those of training"
            )
        if not len(x):
            return 0
        most = most_points(self.pack)
        if len(x) > most:
            raise InputError(f"{len(x)} new points are too many: {most} at most")
        before = self._before()
        if len(x) + len(before) > most:
            raise InputError(
                f"{len(before)} learnt and {len(x)} new points are too many, "
                f"{most} at most: forget some"
            )
        q, targets = reference.quantise(self.pack, x), quantised_targets(self.pack, y)
        mean, _, scale = self._evaluator.raw(q).astype(np.int64)
        new = Points(
            before.next_numbers(len(x)),
            q,
            targets.astype(np.int32),
            *judged(intervals, mean, scale, targets),
        )
        if self._store is None:
            self._set(before.joined(new))
        else:
            self._store.add(new)
            self._set(self._store.points)
        return len(x)

    def forget(
        self, first: int | None = None, last: int | None = None, *, keep: int | None = None
    ) -> int:
        """Forget points; see ``Device.forget``."""
        self._able()
        _check_range(first, last, keep)
        before = self._before()
        low, high = _range(first, last, keep, before.numbers)
        if self._store is not None:
            gone = self._store.forget(low, high)
            self._set(self._store.points)
            return gone
        left = before[(before.numbers < low) | (before.numbers > high)]
        self._set(left)
        return len(before) - len(left)

    def _able(self) -> Intervals:
        if self.pack.intervals is None:
            raise InputError(f"{self.info['file']} has no intervals and cannot learn without them")
        return self.pack.intervals

    def _before(self) -> Points:
        """Lock the store, if there is one, and return all points learnt so far."""
        if self._store is not None:
            self._store.lock()
            return self._store.points
        return self.points

    def _file(self) -> bytes:
        """Read the file again, since the store needs its checksum."""
        path = Path(self.info["file"])
        try:
            data = path.read_bytes()
            same = _bare(read_pack(data)) == _bare(self.pack)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        except PackError:
            same = False
        if not same:
            raise InputError(f"{path} has changed since it was loaded: load it again")
        return data

    def _set(self, points: Points) -> None:
        own = self._evaluate_with(own_pack(self.pack, points)) if len(points) else None
        self.points = points
        self._own = None if own is None else _Own(points, own)

    def _predict(self, x: Array, neighbors: int | None) -> tuple[Array, Array]:
        if self._own is not None:
            mean, spread, _ = self._adapted(self._own, x, neighbors, ())
        else:
            mean, spread = self._evaluator.predict_with_spread(x, neighbors or -1)
        return mean, spread

    def _bounds(self, x: Array, neighbors: int | None, levels: tuple[int, ...]) -> Array:
        if self._own is not None:
            return self._adapted(self._own, x, neighbors, levels)
        return self._evaluator.predict_with_bounds(x, levels, neighbors or -1)

    def _adapted(
        self, own: _Own, x: Array, neighbors: int | None, levels: tuple[int, ...]
    ) -> Array:
        """Predict with the points: mean, spread, scale, low and high at each level."""
        pack, intervals = self.pack, self._able()
        q = reference.quantise(pack, x)
        mean, root, scale = self._evaluator.raw(q, neighbors or -1)
        mean, scale = blended(intervals, own.points, mean, scale, own.said.raw(q)[0])
        most = neighbors or pack.neighbors
        counts = np.minimum(pack.counts, most) if most else pack.counts
        unit = pack.y_gain
        with np.errstate(over="ignore"):
            told = [
                mean.astype(np.float32) * unit + pack.y_offset,
                root.astype(np.float32) * unit / np.float32(counts.sum(dtype=np.int64)),
                scale.astype(np.float32) * unit / np.float32(16),
            ]
        for level in levels:
            ends = reference.bounded(pack, mean, scale, level)
            told += [ends.low, ends.high]
        return np.stack(told)

    def _outside(self, x: Array) -> Array:
        if self.pack.domain is None:
            return super()._outside(x)
        # Compare integers, as C does: values that quantise alike are both outside, or neither is.
        outside: Array = reference.outside(self.pack, reference.quantise(self.pack, x))
        return outside & ~np.isnan(x)

    def _estimates(self, x: Array, neighbors: int | None) -> Array:
        raw = self._evaluator.evaluate(x, neighbors or -1).estimates.astype(np.float32)
        estimates: Array = raw * self.pack.y_gain + self.pack.y_offset
        return estimates


def read_pack_file(path: Path) -> Pack:
    """Read a pack; errors name the file."""
    try:
        return read_pack(path.read_bytes())
    except PackError as error:
        raise PackError(error.reason, f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def open_reference(path: Path, threads: int = 1) -> Device:
    """Open a ``.twin`` file; always uses one thread."""
    del threads
    pack = read_pack_file(path)
    return PackDevice(pack, path, Reference, "numpy")


def _bare(pack: Pack) -> bytes:
    return write_pack(pack, metadata=False)


def _check_range(first: Any, last: Any, keep: Any) -> None:
    """Refuse arguments that do not say which points to forget."""
    for name, one in (("first", first), ("last", last), ("keep", keep)):
        whole = isinstance(one, Integral) and not isinstance(one, bool)
        if one is not None and (not whole or one < 0):
            raise wrong_value(name, one, "is not a whole number of at least 0")
    if keep is not None and (first is not None or last is not None):
        raise InputError("forget takes numbers of points, or how many to keep, not both")


def _range(
    first: int | None, last: int | None, keep: int | None, numbers: Array
) -> tuple[int, int]:
    """Return the first and the last number to forget."""
    if keep is not None:
        gone = max(len(numbers) - int(keep), 0)
        return 0, int(numbers[gone - 1]) if gone else -1
    low = 0 if first is None else int(first)
    high = (2**32 - 1 if first is None else low) if last is None else int(last)
    return low, high
