"""Read a store, with the errors of a pack at its points: as shipped, and with what was learnt."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference
from twinedge.runtime.adaptation import (
    FULL_WEIGHT,
    MOST_POINTS,
    MOST_SCORE,
    left_one_out,
    point_weights,
    score_errors,
)
from twinedge.runtime.journal import Content
from twinedge.runtime.journal_file import read_journal_file
from twinedge.runtime.store import Evaluated, Points


@dataclass(frozen=True)
class PointErrors:
    """Errors of a pack at points, in units of the target; a target minus its prediction.

    Parameters
    ----------
    shipped, adapted : array of shape (k,)
        As shipped, and as predicted from all the other points; NaN for a point that is not used.
    weights : array of shape (k,)
        How far each point is believed, from 0 to 1; 0 for one that is not used.
    beyond : array of shape (k,), bool
        Whether the error is larger than predictions can be corrected by: ``MOST_SCALES`` times what
        the pack expects.
    covered_shipped, covered : array of shape (k,), bool
        Whether the target is within the usual interval, as shipped and as adapted.
    """

    shipped: Array
    adapted: Array
    weights: Array
    beyond: Array
    covered_shipped: Array
    covered: Array

    @property
    def used(self) -> Array:
        """Which points ``(k,)`` the pack can evaluate and has room for."""
        return np.isfinite(self.shipped)

    @property
    def suspect(self) -> Array:
        """Which points ``(k,)`` are so far from the others that they count for nothing."""
        suspect: Array = self.used & (self.weights == 0)
        return suspect

    @property
    def mostly_beyond(self) -> bool:
        """Whether most points that count are beyond correction, as if in other units."""
        counts = self.weights > 0
        return 2 * int((self.beyond & counts).sum()) > int(counts.sum())

    def scores(self) -> dict[str, Any]:
        """Return errors and coverage of the points that count, None without any."""
        counts = self.weights > 0
        if not counts.any():
            return dict.fromkeys(_SCORES)
        shipped, adapted = self.shipped[counts], self.adapted[counts]
        found = (
            _rmse(shipped),
            _rmse(adapted),
            float(shipped.mean()),
            float(self.covered_shipped[counts].mean()),
            float(self.covered[counts].mean()),
        )
        return dict(zip(_SCORES, found, strict=True))


_SCORES = ("rmse_shipped", "rmse_adapted", "mean_error", "coverage_shipped", "coverage_adapted")


def _rmse(errors: Array) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def point_errors(pack: Pack, points: Evaluated) -> PointErrors:
    """Predict each point of a device from all the others, as the device would.

    Parameters
    ----------
    pack : Pack
        A pack with intervals.
    points : Evaluated
        What it predicts at them.
    """
    assert pack.intervals is not None
    count, unit = len(points.able), float(pack.y_gain)
    used = np.flatnonzero(points.able)[-MOST_POINTS:]
    shipped, adapted = np.full((2, count), np.nan)
    weights, (beyond, *inside) = np.zeros(count), np.zeros((3, count), bool)
    if len(used):
        targets, mean, scale = (column[used] for column in points[1:])
        errors, scores = score_errors(mean, scale, targets)
        moved, wide = left_one_out(pack.intervals, errors, scores, mean, scale)
        true, *both = (reference.curved(pack, one) for one in (targets, mean, moved))
        shipped[used], adapted[used] = ((true - one) * unit for one in both)
        weights[used] = point_weights(scores) / FULL_WEIGHT
        beyond[used] = np.abs(scores) == MOST_SCORE
        level = pack.intervals.usual_level
        for row, ends in enumerate(((mean, scale), (moved, wide))):
            bounds = reference.bounded(pack, *ends, level)
            inside[row][used] = (bounds.raw_low <= targets) & (targets <= bounds.raw_high)
    return PointErrors(shipped, adapted, weights, beyond, *inside)


@dataclass(frozen=True)
class StoreSummary:
    """A store, and the errors of a pack at its points.

    Parameters
    ----------
    path : path
        The file.
    content : Content
        The journal in it.
    points : Points
        Its points.
    errors : tuple of PointErrors
        Errors of a pack at these points, for each target; empty without a pack.
    names : tuple of str
        Names of the targets.
    """

    path: Path
    content: Content
    points: Points
    errors: tuple[PointErrors, ...] = ()
    names: tuple[str, ...] = ("y",)

    @property
    def device(self) -> str:
        """Name of the device: that of the file, without its suffix."""
        return self.path.stem

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the store, as values for JSON."""
        content, times = self.content, self.points.times[self.points.times > 0]
        found: dict[str, Any] = {
            "file": str(self.path),
            "device": self.device,
            "points": len(self.points),
            "room": content.room,
            "next_number": content.following,
            "first_time": int(times.min()) if len(times) else None,
            "last_time": int(times.max()) if len(times) else None,
            "damaged": content.damaged,
            "cut_short": content.truncated,
            "generation": content.head.generation,
        }
        each = [
            {"used": int(one.used.sum()), "suspect": int(one.suspect.sum()), **one.scores()}
            for one in self.errors
        ]
        if len(each) == 1:
            return found | each[0]
        if each:
            found["targets"] = dict(zip(self.names, each, strict=True))
        return found

    def listed(self, encoding: Encoding | None = None) -> list[dict[str, Any]]:
        """List the points, as values for JSON.

        Parameters
        ----------
        encoding : Encoding, optional
            What the features are made of; without it they are x0, x1, ...
        """
        if encoding is None:
            encoding = Encoding.numbered(self.points.X.shape[1])
        points = self.points
        texts = encoding.decode(points.X)
        cells = [
            [
                None if one == "" else float(one) if isinstance(kind, Derived | None) else one
                for one in column
            ]
            for column, kind in zip(texts, encoding.kinds, strict=True)
        ]
        features = [dict(zip(encoding.names, row, strict=True)) for row in zip(*cells, strict=True)]
        columns: dict[str, list[Any]] = {
            "number": points.numbers.tolist(),
            "time": [one or None for one in points.times.tolist()],
            "features": features,
            "target": self._of_targets([points.y] if points.y.ndim == 1 else points.y.T),
        }
        if self.errors:
            columns |= {
                "error_shipped": self._of_targets([one.shipped for one in self.errors]),
                "error_adapted": self._of_targets([one.adapted for one in self.errors]),
                "suspect": self._of_targets([one.suspect for one in self.errors]),
            }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _of_targets(self, columns: Iterable[Array]) -> list[Any]:
        """Values of the points, as values for JSON; of several targets, by name."""
        rows = [[_plain(one) for one in column] for column in columns]
        if len(rows) == 1:
            return rows[0]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*rows, strict=True)]


def _plain(value: Any) -> Any:
    """Make a value for JSON, with the digits that single precision has."""
    return float(str(value)) if isinstance(value, np.float32) else value.item()


def read_store(path: Path, targets: int = 1) -> StoreSummary:
    """Read a store, or a dump of a microcontroller's two blocks, without the pack.

    Parameters
    ----------
    path : path
        The file.
    targets : int
        How many targets its points have, which it does not say.

    Raises
    ------
    InputError
        If there is no such file, or it is not a store.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist")
    content = read_journal_file(path)
    names = ("y",) if targets == 1 else tuple(f"y{number}" for number in range(targets))
    try:
        return StoreSummary(path, content, Points.of(content, targets), names=names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
