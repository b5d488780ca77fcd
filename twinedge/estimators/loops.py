"""Semi-supervised regression by loop consistency (Algorithm 1 of the paper), and training on loops.

Around a closed loop differences add up to zero, whatever the targets are: F(a, b) + F(b, c) +
F(c, a) = 0. So points without targets can take part in training.

A trained twin predicts the three differences around loops of one labelled and two unlabelled
points. Their sum should be zero; each is corrected by a share of the sum and becomes the label of
its pair, and the twin is trained again with these pairs added.
"""

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from twinedge.errors import InputError, wrong_value
from twinedge.estimators.anchored import AnchoredRegressor
from twinedge.estimators.inputs import copy_columns
from twinedge.estimators.networks import Validation
from twinedge.training.batches import Examples, PointExamples, whole_numbers
from twinedge.training.network import FloatArray, tf
from twinedge.training.pairs import ExtraPairs
from twinedge.training.parameters import nonnegative_number, one_of, positive_integer, seed_of
from twinedge.training.tasks import PairTask
from twinedge.training.trainer import NetworkJob

_LOOP = 3  # points of a loop


@dataclass(frozen=True)
class LoopedPairs(PointExamples):
    """Pairs of another kind, and a third as many loops, whose sides are as many pairs again.

    Data: points x ``(n, f)``; the rows ``(c, m)`` a network may close loops through, unlabelled
    ones last; the unlabelled rows; then the data of the pairs.
    """

    pairs: PointExamples  # the other kind
    weight: float  # of the loops in the loss

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw pairs as without loops, and positions in ``rows`` of the points of each loop."""
        _, rows, unlabelled, *rest = data
        whole, last = tf.shape(rows)[1], tf.shape(unlabelled)[0]
        shape = (count, max(1, batch // _LOOP), _LOOP)
        drawn = whole_numbers(shape, tf.random.fold_in(seed, 1), tf.int32.max)
        # The first point is unlabelled: the pairs already teach loops of labelled points.
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
        """Return the loss of the pairs plus the weighted mean square of a loop's mean side."""
        count = tf.shape(targets)[1]
        sides = tf.reshape(outputs[:, count:], (tf.shape(outputs)[0], -1, _LOOP))
        loops = tf.reduce_mean(tf.square(tf.reduce_mean(sides, axis=2)), axis=1)
        return self.pairs.loss(outputs[:, :count], targets) + self.weight * loops


@dataclass(frozen=True)
class MixedPairs(PointExamples):
    """Pairs of another kind, some of them replaced by pairs from a list.

    Data: points ``(p, f)``, the rows ``(m, 2)`` and differences ``(m,)`` of the listed pairs; then
    the data of the other pairs.
    """

    pairs: PointExamples  # the other kind
    share: float  # of the examples that come from the list

    def draw(self, count: Any, batch: int, seed: Any, *data: Any) -> Any:
        """Draw pairs of the other kind, positions in the list, and which of the two to use."""
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
    """A twin that also learns from unlabelled points or extra pairs, without teachers."""

    unlabelled: FloatArray | None = None  # scaled points (u, f)
    loop_weight: float = 0.0  # of the loops through them
    extra: ExtraPairs | None = None  # scaled pairs

    @classmethod
    def of(cls, task: PairTask, *more: Any) -> "SemiSupervisedTask":
        """Extend a task with unlabelled points, the weight of their loops, and extra pairs."""
        return cls(*(getattr(task, field.name) for field in fields(task)), *more)

    @property
    def teachable(self) -> bool:
        """Whether teachers may take part."""
        return False

    def fingerprint(self) -> str:
        """Hash of the data, including unlabelled points and extra pairs."""
        arrays = [] if self.unlabelled is None else [self.unlabelled]
        if self.extra is not None:
            arrays += [self.extra.points, self.extra.rows, self.extra.differences]
        rest = b"".join(repr(one.shape).encode() + one.tobytes() for one in arrays)
        return sha256(super().fingerprint().encode() + rest).hexdigest()

    def examples(self, jobs: list[NetworkJob]) -> Examples:
        """Pairs drawn on the fly, plus extra pairs and loops."""
        examples, bins = super().examples(jobs), jobs[0].bins
        features = examples.kind.features
        if self.extra is not None and len(self.extra):
            share = len(self.extra) / (len(self.extra) + self._pair_count(jobs))
            rows = self.extra.rows.astype(np.int32)
            points = self.coded(self.extra.points, bins)
            tensors = (points, rows, self.extra.differences, *examples.tensors)
            examples = Examples(MixedPairs(features, examples.kind, share), tensors)
        if self.unlabelled is not None and self.loop_weight:
            x = self.coded(np.concatenate([self.x, self.unlabelled]), bins)
            last = np.arange(len(self.x), len(x), dtype=np.int32)
            own = self._rows_of_all(jobs)
            rows = np.hstack([own, np.broadcast_to(last, (len(jobs), len(last)))])
            kind = LoopedPairs(features, examples.kind, self.loop_weight)
            examples = Examples(kind, (x, rows, last, *examples.tensors))
        return examples

    def _pair_count(self, jobs: list[NetworkJob]) -> int:
        """Count the pairs that one of these networks draws from."""
        rows = len(self.rows(jobs[0]))
        return rows * (rows if self.partners is None else self.partners.shape[1])


_BLOCK = 1 << 18  # pairs predicted at a time
# Labels are rounded to this many digits of the target's standard deviation. A forest on several
# threads adds up its trees in any order; the last bits of a label would decide between equally good
# splits, and so grow a different forest.
_DIGITS = 7


class LoopRegressor(RegressorMixin, BaseEstimator):
    """A twinned regressor that also learns from points without targets.

    Parameters
    ----------
    base : TwinnedRegressor or TwinRegressor
        What to train, first on the labelled points alone and then with the loops added. Its
        settings are chosen in the first training.
    loop_weight : float, default=1.0
        Share of a loop's sum that is subtracted from each of its differences: 1/3 closes the loop,
        the paper found 1 best. With 0 no loops are added, and the model is the supervised one. (Any
        weight above 0, however small, adds the model's own predictions as labels.)
    loops : "published", "text" or int, default="published"
        How many loops: one for three training pairs, as in the paper's code; one for three labelled
        points, as in its text; or this many.
    random_state : int, RandomState or None, default=None
        Seed of the loops. The base has its own.

    Attributes
    ----------
    supervised_ : fitted base
        The model after the first training.
    model_ : fitted base
        The model after the second training, which predicts.

    Examples
    --------
    >>> import numpy as np
    >>> from twinedge import LoopRegressor, TwinnedRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = LoopRegressor(TwinnedRegressor(random_state=0), random_state=0)
    >>> model = model.fit(X[::2], np.sin(3 * X[::2, 0]), unlabelled=X[1::2])
    >>> bool(abs(model.predict(X[1::2]) - np.sin(3 * X[1::2, 0])).max() < 0.1)
    True
    """

    def __init__(
        self,
        base: Any,
        *,
        loop_weight: float = 1.0,
        loops: str | int = "published",
        random_state: Any = None,
    ) -> None:
        self.base = base
        self.loop_weight = loop_weight
        self.loops = loops
        self.random_state = random_state

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        validation: Validation = None,
        sample_weight: npt.ArrayLike | None = None,
        unlabelled: npt.ArrayLike | None = None,
    ) -> "LoopRegressor":
        """Train on the labelled points, then again with loops through unlabelled ones.

        Parameters
        ----------
        X : array of shape (n, features)
            Labelled points; all of them may become anchors.
        y : array of shape (n,)
            Their targets.
        validation : (X, y), optional
            Points to choose settings on, for a base that takes them.
        sample_weight : array of shape (n,), optional
            How much each labelled point counts, as the base's ``fit`` says. Loops go through all
            of them alike.
        unlabelled : array of shape (u, features), optional
            Points without targets, such as those to be predicted later, if already known. Without
            them there are no loops.
        """
        if not isinstance(self.base, AnchoredRegressor):
            raise wrong_value("base", self.base, "is not a TwinRegressor or a TwinnedRegressor")
        if self.base.pairs == "neighbors":
            raise InputError(
                "base: loops join distant points, which a model trained on neighbors cannot "
                "compare; use pairs='all'"
            )
        weight = nonnegative_number("loop_weight", self.loop_weight)
        if isinstance(self.loops, str):
            one_of("loops", self.loops, ("published", "text"))
        else:
            positive_integer("loops", self.loops)
        rng = np.random.RandomState(seed_of(self.random_state))
        given = {"validation": validation, "sample_weight": sample_weight}
        first = clone(self.base).fit(
            X, y, **{name: one for name, one in given.items() if one is not None}
        )
        self.supervised_ = self.model_ = first
        copy_columns(first, self)
        if unlabelled is None:
            return self
        points = first._check(unlabelled)
        if weight and not getattr(first, "interrupted_", False):
            loops = draw_loops(self._count(), len(first.anchor_y_), len(points), rng)
            extra = propose(first, points, loops, weight)
            # The same rows that the first was trained and validated on.
            held = {}
            if hasattr(first, "validation_"):
                held["validation"] = (*first.validation_, None, first.validation_weights_)
            self.model_ = first.resolved().fit(
                first.anchor_X_,
                first.anchor_y_,
                sample_weight=first.sample_weights_,
                encoding=first.encoding_,
                extra=extra,
                **held,
            )
        return self

    def predict(self, X: npt.ArrayLike, return_std: bool = False, **options: Any) -> Any:
        """Mean of the anchors' estimates; parameters as in ``TwinRegressor.predict``."""
        check_is_fitted(self)
        return self.model_.predict(X, return_std, **options)

    def _count(self) -> int:
        """How many loops to draw."""
        if not isinstance(self.loops, str):
            return int(self.loops)
        points = len(self.supervised_.anchor_y_)
        if self.loops == "text":
            return max(1, round(points / 3))
        partners = points if self.base.pairs == "all" else 2 * min(self.base.pairs, points - 1)
        return max(1, round(points * partners / 3))


def draw_loops(
    count: int, labelled: int, unlabelled: int, rng: np.random.RandomState
) -> npt.NDArray[np.int64]:
    """Draw loops of one labelled point and two unlabelled ones, in the order of the paper's code.

    Returns rows ``(count, 3)`` of the labelled points followed by the unlabelled ones.
    """
    first = rng.choice(labelled, (count, 1))
    return np.hstack([first, labelled + rng.choice(unlabelled, (count, 2))])


def propose(
    model: Any, unlabelled: FloatArray, loops: npt.NDArray[np.int64], weight: float
) -> ExtraPairs:
    """Label the sides (i, j), (j, k), (k, i) of loops with predictions that close them better.

    Parameters
    ----------
    model : AnchoredRegressor
        Fitted.
    unlabelled : array of shape (u, f)
        Points without targets.
    loops : array of shape (l, 3)
        Rows of ``model.anchor_X_`` followed by those points.
    weight : float
        Share of the sum around a loop that is subtracted from each side.
    """
    points = np.concatenate([model.anchor_X_, unlabelled])
    sides = np.stack([loops, np.roll(loops, -1, axis=1)], axis=2).reshape(-1, 2)
    blocks = [sides[start : start + _BLOCK] for start in range(0, len(sides), _BLOCK)]
    found = [model.differences(points[one[:, 0]], points[one[:, 1]]) for one in blocks]
    scale = model.scaling_.y_scale
    shares = np.concatenate(found).astype(np.float64).reshape(-1, 3) / scale
    predicted = scale * np.round(shares, _DIGITS)
    corrected = predicted - weight * predicted.sum(axis=1, keepdims=True)
    curve = model.scaling_.curve
    return ExtraPairs(points, sides, corrected.ravel(), "none" if curve is None else curve.kind)
