"""Training a twin on more than its labelled pairs: loops through unlabelled points, extra pairs.

Around a closed loop differences add up to zero, whatever the targets are: F(a, b) + F(b, c) +
F(c, a) = 0. So points without targets can take part in a training.
"""

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import numpy as np

from twinedge.learn.backend import tf
from twinedge.learn.examples import Examples, Points, whole_numbers
from twinedge.learn.extra_pairs import ExtraPairs
from twinedge.learn.network import FloatArray
from twinedge.learn.tasks import PairTask
from twinedge.learn.training import Job

_LOOP = 3  # points of a loop


@dataclass(frozen=True)
class LoopedPairs(Points):
    """Pairs of another kind, and a third as many loops, which are as many pairs again.

    Data: points x ``(n, f)``; the rows ``(c, m)`` a network may close loops through, unlabelled
    ones last; how many those are; then the data of the pairs.

    Parameters
    ----------
    features : int
        Features of a point.
    pairs : Points
        The other kind.
    weight : float
        Weight of the loops in the loss.
    """

    pairs: Points
    weight: float

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw pairs as without loops, and positions in ``rows`` of the points of each loop."""
        _, rows, unlabelled, *rest = data
        whole, last = tf.shape(rows)[1], tf.shape(unlabelled)[0]
        shape = (count, max(1, batch // _LOOP), _LOOP)
        drawn = whole_numbers(shape, tf.random.fold_in(seed, 1), tf.int32.max)
        # The first point is unlabelled: loops of labelled points alone are learnt from the pairs.
        loops = tf.concat([whole - last + drawn[..., :1] % last, drawn[..., 1:] % whole], -1)
        return self.pairs.draw(count, batch, seed, *rest), loops

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch + 3 loops, 2 f)`` and differences ``(c, batch)`` of step k."""
        x, rows, _, *rest = data
        drawn, loops = draws
        inputs, targets = self.pairs.batch(k, drawn, *rest)
        corners = tf.gather(x, tf.gather(rows, loops[k], axis=1))  # (c, loops, 3, f)
        sides = tf.concat([corners, tf.roll(corners, -1, axis=2)], axis=-1)
        sides = tf.reshape(sides, (tf.shape(sides)[0], -1, 2 * self.features))
        return tf.concat([inputs, sides], axis=1), targets

    def loss(self, outputs: Any, targets: Any) -> Any:
        """Return the loss of the pairs and the weighted mean square of the mean side of a loop."""
        count = tf.shape(targets)[1]
        sides = tf.reshape(outputs[:, count:], (tf.shape(outputs)[0], -1, _LOOP))
        loops = tf.reduce_mean(tf.square(tf.reduce_mean(sides, axis=2)), axis=1)
        return self.pairs.loss(outputs[:, :count], targets) + self.weight * loops


@dataclass(frozen=True)
class MixedPairs(Points):
    """Pairs of another kind and, in their stead now and then, one of a list.

    Data: points ``(p, f)``, the rows ``(m, 2)`` and differences ``(m,)`` of the listed pairs; then
    the data of the other pairs.

    Parameters
    ----------
    features : int
        Features of a point.
    pairs : Points
        The other kind.
    share : float
        Part of the examples that come from the list.
    """

    pairs: Points
    share: float

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw pairs of the other kind, positions in the list, and which of the two it is."""
        _, rows, _, *rest = data
        listed = whole_numbers((count, batch), tf.random.fold_in(seed, 2), tf.shape(rows)[0])
        coins = tf.random.stateless_uniform((count, batch), tf.random.fold_in(seed, 3)) < self.share
        return self.pairs.draw(count, batch, seed, *rest), listed, coins

    def batch(self, k: Any, draws: Any, *data: Any) -> tuple[Any, Any]:
        """Return inputs ``(c, batch, 2 f)`` and differences ``(c, batch)`` of step ``k``."""
        points, rows, differences, *rest = data
        drawn, listed, coins = draws
        inputs, targets = self.pairs.batch(k, drawn, *rest)
        pairs = tf.gather(points, tf.gather(rows, listed[k]))  # (batch, 2, f)
        pairs = tf.reshape(pairs, (-1, 2 * self.features))
        instead = coins[k]
        return (
            tf.where(instead[:, None], pairs, inputs),
            tf.where(instead, tf.gather(differences, listed[k]), targets),
        )


@dataclass(frozen=True)
class SemiSupervisedTask(PairTask):
    """A twin that learns from unlabelled points or extra pairs besides.

    Parameters
    ----------
    unlabelled : array of shape (u, f), optional
        Scaled points.
    loop_weight : float
        Weight of the loops through them.
    extra : ExtraPairs, optional
        Scaled pairs.
    """

    unlabelled: FloatArray | None = None
    loop_weight: float = 0.0
    extra: ExtraPairs | None = None

    @classmethod
    def of(
        cls,
        task: PairTask,
        unlabelled: FloatArray | None,
        loop_weight: float,
        extra: ExtraPairs | None,
    ) -> "SemiSupervisedTask":
        """Add to what a task asks."""
        known = {field.name: getattr(task, field.name) for field in fields(task)}
        return cls(**known, unlabelled=unlabelled, loop_weight=loop_weight, extra=extra)

    @property
    def teachable(self) -> bool:
        """What comes besides the labelled pairs is for the networks that learn from it."""
        return False

    def fingerprint(self) -> str:
        """Tell whether two trainings are of the same data, also of the unlabelled."""
        arrays = [] if self.unlabelled is None else [self.unlabelled]
        if self.extra is not None:
            arrays += [self.extra.points, self.extra.rows, self.extra.differences]
        rest = b"".join(repr(one.shape).encode() + one.tobytes() for one in arrays)
        return sha256(super().fingerprint().encode() + rest).hexdigest()

    def examples(self, jobs: list[Job]) -> Examples:
        """Pairs drawn on the fly, and what comes besides."""
        examples = super().examples(jobs)
        features = self.x.shape[1]
        if self.extra is not None and len(self.extra):
            share = len(self.extra) / (len(self.extra) + self._pair_count(jobs))
            rows = self.extra.rows.astype(np.int32)
            tensors = (self.extra.points, rows, self.extra.differences, *examples.tensors)
            examples = Examples(MixedPairs(features, examples.kind, share), tensors)
        if self.unlabelled is not None and self.loop_weight:
            x = np.concatenate([self.x, self.unlabelled])
            last = np.arange(len(self.x), len(x), dtype=np.int32)
            own = self._rows_of_all(jobs)
            rows = np.hstack([own, np.broadcast_to(last, (len(jobs), len(last)))])
            kind = LoopedPairs(features, examples.kind, self.loop_weight)
            examples = Examples(kind, (x, rows, last, *examples.tensors))
        return examples

    def _pair_count(self, jobs: list[Job]) -> int:
        """Pairs a network of these draws from."""
        rows = len(self.rows(jobs[0]))
        return rows * (rows if self.partners is None else self.partners.shape[1])
