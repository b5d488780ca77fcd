"""Input maps: a curve for each feature in front of the twins, which all of them share.

A network of a few thousand weights cannot follow a target that jumps or bends sharply along one
feature. A map tells it where the bends are. It turns ``f`` scaled features into ``g`` numbers,

    z = x, followed by zeros  +  sum over the features of an interpolated row of a table,

where a feature's table has a row of ``g`` numbers at each of its knots. Between knots the rows are
interpolated; beyond the outermost knots they stay what they are. The table is learnt together with
the networks, as the steps from each row to the next: a feature's *codes* say how far each of its
bins is filled, from 0 to 1, and the map is linear in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from twinedge.training.network import Architecture, FloatArray, tf

Knots = tuple[FloatArray, ...]  # of each scaled feature, ascending; none without a curve

# Bins narrower than this, in standard deviations, would be learnt from a few rows.
_NARROWEST = 0.02
_MOST_ROWS = 100_000  # that quantiles are taken of


@dataclass(frozen=True)
class InputMap:
    """A learnt map.

    Parameters
    ----------
    knots : tuple of arrays of shape (n_i + 1,)
        Of each scaled feature, ascending; empty for a feature without a curve.
    table : array of shape (rows, g)
        What is added at each knot, feature by feature.
    """

    knots: Knots
    table: FloatArray

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.knots)

    @property
    def outputs(self) -> int:
        """How many numbers the networks take for a point."""
        return int(self.table.shape[1])

    def parts(self) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Yield number, knots ``(n,)`` and table rows ``(n, g)`` of each feature with a curve."""
        start = 0
        for feature, knots in enumerate(self.knots):
            if len(knots):
                yield feature, knots, self.table[start : start + len(knots)]
                start += len(knots)

    def apply(self, x: FloatArray) -> FloatArray:
        """Map scaled features ``(..., f)`` to what the networks take, ``(..., g)``."""
        z = np.zeros((*x.shape[:-1], self.outputs), np.float32)
        z[..., : self.features] = x
        for feature, knots, rows in self.parts():
            at, share = _position(knots, x[..., feature])
            z += rows[at] + share[..., None] * (rows[at + 1] - rows[at])
        return z


def choose_knots(x: FloatArray, bins: int) -> Knots:
    """Place the knots of each scaled feature ``(n, f)``: quantiles, or each value if they are few.

    A feature with fewer than three values gets none: a straight line is all there is to learn.

    Examples
    --------
    >>> x = np.stack([np.repeat([0.0, 1.0], 50), np.tile([0.0, 1, 2, 3], 25), np.arange(100)], 1)
    >>> [knots.tolist() for knots in choose_knots(x, 4)]
    [[], [0.0, 1.0, 2.0, 3.0], [0.0, 25.0, 50.0, 74.0, 99.0]]
    """
    x = x[:: -(-len(x) // _MOST_ROWS)]
    return tuple(_knots(column, bins) for column in x.T)


def _knots(column: FloatArray, bins: int) -> FloatArray:
    values = np.unique(column)
    if len(values) > bins + 1:
        ranks = np.rint(np.linspace(0, len(column) - 1, bins + 1)).astype(np.intp)
        values = np.unique(np.sort(column)[ranks])
    kept = values[:1]
    for value in values[1:-1]:
        if min(value - kept[-1], values[-1] - value) >= _NARROWEST:
            kept = np.append(kept, value)
    kept = np.append(kept, values[-1:]) if len(values) > 1 else kept
    found: FloatArray = kept.astype(np.float32)
    return found if len(found) > 2 else found[:0]


def _position(knots: FloatArray, values: FloatArray) -> tuple[Any, FloatArray]:
    """Return the bin of each value, and how far it is filled."""
    at = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    share = (values - knots[at]) / (knots[at + 1] - knots[at])
    return at, np.clip(share, 0, 1).astype(np.float32)


def coded(knots: Knots, x: FloatArray) -> FloatArray:
    """Scaled features ``(n, f)``, followed by the codes of all their bins ``(n, c)``."""
    columns = [x]
    for feature, mine in enumerate(knots):
        if len(mine):
            filled = (x[:, feature, None] - mine[:-1]) / np.diff(mine)
            columns.append(np.clip(filled, 0, 1))
    found: FloatArray = np.concatenate(columns, axis=1).astype(np.float32)
    return found


@dataclass(frozen=True)
class MappedArchitecture(Architecture):
    """A twin with a map in front of it, as it is trained: it takes two points with their codes.

    The parameters of the map follow those of the network in the flat vector: for each code, what it
    adds to the ``inputs / 2`` numbers that the network takes for a point.

    Parameters
    ----------
    features, codes : int
        How many of each a point has.
    shared : bool
        Whether the networks of a stack learn one map together.
    pace : float
        Learning rate of the map, as a share of that of the networks.
    decay : float
        Weight decay of the map.
    """

    features: int = 0
    codes: int = 0
    shared: bool = False
    pace: float = 1.0
    decay: float = 0.0

    @property
    def network(self) -> Architecture:
        """Shape of the network behind the map."""
        return Architecture(self.inputs, self.hidden, self.activation, targets=self.targets)

    @property
    def outputs_of_map(self) -> int:
        """How many numbers the network takes for a point."""
        return self.inputs // 2

    @property
    def size(self) -> int:
        """Number of parameters of the network and of the map."""
        return self.network.size + self.codes * self.outputs_of_map

    def initial(self, seeds: list[int]) -> FloatArray:
        """Draw networks, and maps that leave features as they are and mix them at random beside."""
        stack = np.zeros((len(seeds), self.size), np.float32)
        stack[:, : self.network.size] = self.network.initial(seeds)
        tables = stack[:, self.network.size :].reshape(len(seeds), self.codes, -1)
        for table, seed in zip(tables, seeds, strict=True):
            rng = np.random.default_rng([seeds[0] if self.shared else seed, 5])
            extra = (self.codes, self.outputs_of_map - self.features)
            table[:, self.features :] = rng.normal(0, self.features**-0.5 / self.pace, extra)
        return stack

    def decays(self, weight_decays: list[float]) -> FloatArray:
        """Weight decay of each parameter ``(c, size)``: that of a map is always the same."""
        of_maps = np.full((len(weight_decays), self.size - self.network.size), self.decay)
        of_networks = self.network.decays(weight_decays)
        return np.concatenate([of_networks, of_maps], axis=1).astype(np.float32)

    def forward(self, stack: Any, x: Any) -> Any:
        """Return outputs ``(c, n)`` for pairs of points with their codes, as a tensor."""
        networks, maps = self._split(stack)
        count, pairs = tf.shape(x)[0], tf.shape(x)[1]
        whole = (self.codes, self.outputs_of_map)
        keep = np.eye(self.features, self.outputs_of_map, dtype=np.float32)
        if self.shared:  # one product for all networks is faster
            table = tf.concat([keep, self.pace * tf.reshape(maps[0], whole)], axis=0)
            z = tf.matmul(tf.reshape(x, (-1, self.features + self.codes)), table)
        else:
            tables = self.pace * tf.reshape(maps, (-1, *whole))
            kept = tf.broadcast_to(keep, (count, *keep.shape))
            points = tf.reshape(x, (count, 2 * pairs, self.features + self.codes))
            z = tf.matmul(points, tf.concat([kept, tables], axis=1))
        return self.network.forward(networks, tf.reshape(z, (count, pairs, self.inputs)))

    def tied(self, gradient: Any) -> Any:
        """Give all networks of a stack the gradient of the first one's map, if they share it."""
        if not self.shared:
            return gradient
        of_networks, of_maps = self._split(gradient)
        return tf.concat([of_networks, tf.broadcast_to(of_maps[:1], tf.shape(of_maps))], axis=1)

    def _split(self, stack: Any) -> Any:
        return tf.split(stack, [self.network.size, self.size - self.network.size], axis=1)

    def limit_sums(self, stack: FloatArray, x: FloatArray) -> bool:
        """Shrink units of silu whose sums are too large for a pack; ``x`` are coded pairs."""
        found = False
        for flat, pairs in zip(stack, x, strict=True):
            points = pairs.reshape(-1, self.features + self.codes)
            z = points[:, self.features :] @ self.steps(flat)
            z[:, : self.features] += points[:, : self.features]
            network = flat[None, : self.network.size]
            found |= self.network.limit_sums(network, z.reshape(1, -1, self.inputs))
        return found

    def steps(self, flat: FloatArray) -> FloatArray:
        """Return what each code adds, ``(codes, g)``: the map of one network ``(size,)``."""
        found: FloatArray = self.pace * flat[self.network.size :].reshape(self.codes, -1)
        return found

    def without_map(self, flat: FloatArray, knots: Knots) -> tuple[FloatArray, InputMap]:
        """Split one trained network into the network ``(size,)`` behind the map, and the map.

        Only differences between the rows of a feature's table matter, as constants are part of the
        network's first bias. So each column of it is centred: then the smallest numbers suffice.
        """
        network, steps = flat[: self.network.size].copy(), self.steps(flat)
        kernel, bias = self.network.parts(network)[0]
        rows, start = [], 0
        middle = np.zeros(self.outputs_of_map)
        for mine in knots:
            if len(mine):
                own = steps[start : start + len(mine) - 1].astype(np.float64)
                start += len(own)
                table = np.concatenate([np.zeros((1, own.shape[1])), np.cumsum(own, axis=0)])
                centre = (table.max(axis=0) + table.min(axis=0)) / 2
                rows.append(table - centre)
                middle += centre
        bias += np.concatenate([middle, middle]) @ kernel
        found = np.concatenate(rows) if rows else np.zeros((0, self.outputs_of_map))
        return network, InputMap(knots, found.astype(np.float32))


def codes_of(knots: Knots) -> int:
    """Count the codes of a point: the bins of all features."""
    return sum(max(0, len(mine) - 1) for mine in knots)
