"""What a training step sees: pairs of points for a twin, single points for an ordinary network.

Batches are drawn on the fly inside the compiled loop. All networks of a stack share the drawn
numbers, but each reads them through its own order of the rows, so that two networks see different
batches and the batches of a network do not depend on who else is in the stack.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.learn.backend import tf
from twinedge.learn.network import FloatArray

IndexArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Points:
    """The input is ``x_i``, the target ``y_i``.

    Data: x ``(n, f)``, y ``(n,)`` and the rows ``(c, m)`` each network sees.
    """

    features: int

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw positions in ``rows`` for ``count`` batches."""
        _, _, rows = data
        return whole_numbers((count, batch), seed, tf.shape(rows)[1])

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, f)`` and targets ``(c, batch)`` of step ``k``."""
        x, y, rows = data
        points = tf.gather(rows, draws[k], axis=1)
        return tf.gather(x, points), tf.gather(y, points)

    def loss(self, outputs: Any, targets: Any) -> Any:
        """Return what each network minimises, ``(c,)``: the mean square error."""
        return tf.reduce_mean(tf.square(outputs - targets), axis=1)


@dataclass(frozen=True)
class Pairs(Points):
    """The input is ``(x_i, x_j)``, the target ``y_i - y_j``, for any two rows."""

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw positions in ``rows`` of both points, for ``count`` batches."""
        _, _, rows = data
        return whole_numbers((count, batch, 2), seed, tf.shape(rows)[1])

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, 2 f)`` and differences ``(c, batch)`` of step ``k``."""
        x, y, rows = data
        return self._join(tf.gather(rows, draws[k], axis=1), x, y)

    def _join(self, pairs: Any, x: Any, y: Any) -> tuple[Any, Any]:
        shape = tf.shape(pairs)
        points = tf.reshape(tf.gather(x, pairs), (shape[0], shape[1], 2 * self.features))
        targets = tf.gather(y, pairs)
        return points, targets[..., 0] - targets[..., 1]


@dataclass(frozen=True)
class ListedPairs(Pairs):
    """Pairs of a row with one of its listed partners, in either order.

    Data: as for ``Points``, then the partners ``(n, m)`` of each row.
    """

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw position in ``rows``, position in the list of partners, and order."""
        _, _, rows, partners = data
        limits = tf.stack([tf.shape(rows)[1], tf.shape(partners)[1], 2])
        return whole_numbers((count, batch, 3), seed, tf.int32.max) % limits

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, 2 f)`` and differences ``(c, batch)`` of step ``k``."""
        x, y, rows, partners = data
        row, position, swap = tf.unstack(draws[k], axis=-1)
        first = tf.gather(rows, row, axis=1)
        position = tf.broadcast_to(position, tf.shape(first))
        second = tf.gather_nd(partners, tf.stack([first, position], axis=-1))
        forward, backward = tf.stack([first, second], -1), tf.stack([second, first], -1)
        return self._join(tf.where(swap[:, None] == 1, backward, forward), x, y)


@dataclass(frozen=True)
class Examples:
    """Training data of a stack of networks.

    Parameters
    ----------
    kind : Points
        How a batch is made of rows.
    tensors : tuple of array
        Its data, in the order ``kind`` takes it.
    """

    kind: Points
    tensors: tuple[Any, ...]

    @classmethod
    def points(cls, x: FloatArray, y: FloatArray, rows: IndexArray) -> "Examples":
        """Single points; ``rows`` ``(c, m)`` are those each network sees."""
        return cls(Points(x.shape[1]), (x, y, rows))

    @classmethod
    def pairs(
        cls, x: FloatArray, y: FloatArray, rows: IndexArray, partners: IndexArray | None = None
    ) -> "Examples":
        """Pairs of any two rows, or of a row and one of its ``partners`` ``(n, m)``."""
        if partners is None:
            return cls(Pairs(x.shape[1]), (x, y, rows))
        return cls(ListedPairs(x.shape[1]), (x, y, rows, partners))


def whole_numbers(shape: Any, seed: Any, limit: Any) -> Any:
    """Draw whole numbers from 0 to below a limit."""
    return tf.random.stateless_uniform(shape, seed, 0, limit, tf.int32)
