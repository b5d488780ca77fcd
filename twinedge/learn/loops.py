"""Semi-supervised regression by loop consistency (Algorithm 1 of the paper), for any twin.

A trained twin predicts the three differences around loops of one labelled and two unlabelled
points. What they add up to, a, should be zero; each is corrected by a part of a and becomes the
label of its pair, and the twin is trained again on these pairs too.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from twinedge.errors import InputError
from twinedge.learn.anchored import AnchoredRegressor
from twinedge.learn.estimator import Validation
from twinedge.learn.extra_pairs import ExtraPairs
from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import nonnegative_number, one_of, positive_integer, seed_of

_BLOCK = 1 << 18  # pairs predicted at a time
# Of the target's standard deviation. A forest on several threads adds its trees in any order; the
# last bits of a label would decide between cuts that are equally good, and so grow another forest.
_DIGITS = 7


class LoopRegressor(RegressorMixin, BaseEstimator):
    """A twinned regressor that learns from points without targets too.

    Parameters
    ----------
    base : TwinnedRegressor or TwinRegressor
        What to train, first on the labelled points alone and then on the loops too. What it
        chooses by itself is chosen in the first training.
    loop_weight : float, default=1.0
        Part of a loop's sum that is taken off each of its differences: 1/3 closes the loop, the
        paper found 1 best. With 0 a loop has nothing to say and none is added: the model is the
        supervised one. (However small a weight adds the model's own predictions as labels.)
    loops : "published", "text" or int, default="published"
        How many loops: one for three training pairs, as the paper's code has it; one for three
        labelled points, as its text has it; or so many.
    random_state : int, RandomState or None, default=None
        Seed of the loops. The base has its own.

    Attributes
    ----------
    supervised_ : fitted base
        After the first training.
    model_ : fitted base
        After the second, which predicts.

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
        validation: Validation = None,
        *,
        unlabelled: npt.ArrayLike | None = None,
    ) -> "LoopRegressor":
        """Train twice.

        Parameters
        ----------
        X : array of shape (n, features)
            Labelled points; all of them may become anchors.
        y : array of shape (n,)
            Their targets.
        validation : (X, y), optional
            Points to choose settings on, for a base that takes them.
        unlabelled : array of shape (u, features), optional
            Points without targets: those to be predicted later, where they are known already.
            Without them there are no loops.
        """
        if not isinstance(self.base, AnchoredRegressor):
            raise InputError(f"base={self.base!r} is not a TwinRegressor or a TwinnedRegressor")
        if self.base.pairs == "neighbors":
            raise InputError(
                "base: loops join far points, of which a model trained on neighbors knows nothing; "
                "use pairs='all'"
            )
        weight = nonnegative_number("loop_weight", self.loop_weight)
        if isinstance(self.loops, str):
            one_of("loops", self.loops, ("published", "text"))
        else:
            positive_integer("loops", self.loops)
        rng = np.random.RandomState(seed_of(self.random_state))
        first = clone(self.base).fit(
            X, y, **({} if validation is None else {"validation": validation})
        )
        self.supervised_ = self.model_ = first
        self.n_features_in_ = first.n_features_in_
        if unlabelled is None:
            return self
        points = validate_data(first, unlabelled, dtype=np.float64, reset=False)
        if weight and not getattr(first, "interrupted_", False):
            loops = draw_loops(self._count(), len(first.anchor_y_), len(points), rng)
            extra = propose(first, points, loops, weight)
            # The very rows the first was trained and judged on.
            held = {"validation": first.validation_} if hasattr(first, "validation_") else {}
            self.model_ = first.settled().fit(first.anchor_X_, first.anchor_y_, extra=extra, **held)
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

    Parameters
    ----------
    count : int
        Loops to draw, with replacement.
    labelled, unlabelled : int
        Points there are of each.
    rng : RandomState
        Draws them.

    Returns
    -------
    array of shape (count, 3)
        Rows of the labelled points followed by the unlabelled ones.
    """
    first = rng.choice(labelled, (count, 1))
    return np.hstack([first, labelled + rng.choice(unlabelled, (count, 2))])


def propose(
    model: Any, unlabelled: FloatArray, loops: npt.NDArray[np.int64], weight: float
) -> ExtraPairs:
    """Label the sides of loops with predictions that close them better.

    Parameters
    ----------
    model : AnchoredRegressor
        Fitted.
    unlabelled : array of shape (u, f)
        Points without targets.
    loops : array of shape (l, 3)
        Rows of ``model.anchor_X_`` followed by those points.
    weight : float
        Part of the sum around a loop that is taken off each side.

    Returns
    -------
    ExtraPairs
        The three sides (i, j), (j, k), (k, i) of each loop, one behind the other.
    """
    points = np.concatenate([model.anchor_X_, unlabelled])
    sides = np.stack([loops, np.roll(loops, -1, axis=1)], axis=2).reshape(-1, 2)
    blocks = [sides[start : start + _BLOCK] for start in range(0, len(sides), _BLOCK)]
    found = [model.differences(points[one[:, 0]], points[one[:, 1]]) for one in blocks]
    scale = model.scaling_.y_scale
    shares = np.concatenate(found).astype(np.float64).reshape(-1, 3) / scale
    predicted = scale * np.round(shares, _DIGITS)
    corrected = predicted - weight * predicted.sum(axis=1, keepdims=True)
    return ExtraPairs(points, sides, corrected.ravel())
