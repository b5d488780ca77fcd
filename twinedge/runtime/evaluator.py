"""What evaluates a pack for a device, and the backend that does so with numpy."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference


class Evaluator(Protocol):
    """Evaluates one pack.

    ``neighbors`` is how many nearest anchors of each twin predict: 0 for all, negative for as many
    as the pack says. For several targets, all arrays have a last axis for them.
    """

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``.

        Levels are in thousandths, and must be in the pack.
        """

    def estimates(self, x: Array, neighbors: int = -1) -> Array:
        """Estimates of single anchors, int32 ``(n, m)``."""

    def raw(self, q: Array, neighbors: int = -1) -> Array:
        """Means, spreads times the number of members, and scales of quantised queries.

        Integers ``(3, n)``; only for a pack with intervals.
        """


class Reference:
    """The integer arithmetic in numpy, for one target."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n)``."""
        found = reference.evaluate(self._with(neighbors), x)
        return np.stack([found.mean, found.spread])

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: float32 ``(3 + 2 k, n)``."""
        assert self._pack.intervals is not None
        found = reference.evaluate(self._with(neighbors), x)
        usual = reference.bounds(self._pack, found, self._pack.intervals.usual_level)
        at_each = [reference.bounds(self._pack, found, level) for level in levels]
        ends = [end for one in at_each for end in (one.low, one.high)]
        return np.stack([found.mean, found.spread, usual.scale, *ends])

    def estimates(self, x: Array, neighbors: int = -1) -> Array:
        """Estimates of single anchors, int32 ``(n, m)``."""
        return reference.evaluate(self._with(neighbors), x).estimates

    def raw(self, q: Array, neighbors: int = -1) -> Array:
        """Means, spreads times the number of members, and scales: integers ``(3, n)``."""
        assert self._pack.intervals is not None
        found = reference.evaluate_raw(self._with(neighbors), q)
        assert found.signals is not None
        scale = reference.raw_scale(found.signals, self._pack.intervals, found.estimates.shape[1])
        return np.stack([found.raw_mean.astype(np.int64), found.raw_spread, scale])

    def _with(self, neighbors: int) -> Pack:
        return self._pack if neighbors < 0 else replace(self._pack, neighbors=neighbors)


class ReferenceTargets:
    """The integer arithmetic in numpy, for several targets."""

    def __init__(self, pack: Pack) -> None:
        self._each = [Reference(one) for one in pack.singles]

    def predict_with_spread(self, x: Array, neighbors: int = -1) -> Array:
        """Predict means and their spreads, float32 ``(2, n, m)``."""
        return np.stack([one.predict_with_spread(x, neighbors) for one in self._each], axis=-1)

    def predict_with_bounds(self, x: Array, levels: Sequence[int], neighbors: int = -1) -> Array:
        """Predict means, spreads, scales, low and high at each level: ``(3 + 2 k, n, m)``."""
        found = [one.predict_with_bounds(x, levels, neighbors) for one in self._each]
        return np.stack(found, axis=-1)

    def estimates(self, x: Array, neighbors: int = -1) -> Array:
        """Estimates of single anchors, int32 ``(n, k, m)``."""
        return np.stack([one.estimates(x, neighbors) for one in self._each], axis=-1)

    def raw(self, q: Array, neighbors: int = -1) -> Array:
        """Means, spreads times the number of members, and scales: integers ``(3, n, m)``."""
        return np.stack([one.raw(q, neighbors) for one in self._each], axis=-1)


def reference_of(pack: Pack) -> Evaluator:
    """Evaluate a pack with numpy."""
    return ReferenceTargets(pack) if pack.others else Reference(pack)
