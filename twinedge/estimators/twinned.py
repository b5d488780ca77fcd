"""Twinned regression with any scikit-learn regressor, random forests above all."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import has_fit_parameter

from twinedge.anchors.rows import assign
from twinedge.defaults import NEIGHBORS
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError, wrong_value
from twinedge.estimators.anchored import AnchoredRegressor, Anchors, Chosen
from twinedge.estimators.inputs import counted_rows
from twinedge.scoring.weights import relative
from twinedge.training.network import FloatArray, Scaling
from twinedge.training.pairs import ExtraPairs, partners_of
from twinedge.training.parameters import one_of, seed_of
from twinedge.wording import plural

FOLDS = 5
# Hyperparameters of the forests, as listed in the paper's text and in its code.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "text": {
        "max_depth": [4, 8, 16, 32, 64],
        "max_features": [0.33, 0.667, 1.0],
        "min_samples_leaf": [1, 2, 5],
        "min_samples_split": [2, 4, 8],
        "n_estimators": [100, 300, 600],
    },
    "published": {
        "max_depth": [8, 16, 32],
        "max_features": [0.33, 0.667, 1.0],
        "min_samples_leaf": [1, 2],
        "min_samples_split": [2, 3, 4],
        "n_estimators": [100],
    },
}

Rows = npt.NDArray[np.intp]

_BLOCK = 1 << 22  # values of pairs held at a time in a prediction: 32 MB


def pair_features(first: FloatArray, second: FloatArray) -> FloatArray:
    """Features ``(n, 3 f)`` of pairs: (x_i, x_j, x_i - x_j).

    A tree splits on one feature at a time and would need many splits to learn a difference.
    """
    return np.concatenate([first, second, first - second], axis=-1)


def point_folds(
    X: FloatArray, first: Rows, second: Rows, extra: ExtraPairs | None, seed: int
) -> list[tuple[Rows, Rows]]:
    """Return the numbers of the pairs to train on and to score on, for each fold of the points.

    A held-out point is in no training pair, neither as the first nor as the second; equal points,
    however often they were measured, are held out together. Pairs of a held-out point and one that
    is not are scored, in either order, since a prediction is made from such pairs.

    Parameters
    ----------
    X : array of shape (n, f)
        Training points.
    first, second : array of shape (m,)
        Rows of the points of each pair.
    extra : ExtraPairs, optional
        More pairs, numbered after those. They are trained on if none of their points equals a
        held-out one, and never scored, since their differences may be a model's predictions.
    seed : int
        Seed of the folds.

    Raises
    ------
    InputError
        If a fold leaves nothing to train or to score on.
    """
    points = X if extra is None else np.concatenate([X, extra.points])
    who = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    pairs = who[np.stack([first, second], axis=1)]
    if extra is not None:
        pairs = np.concatenate([pairs, who[len(X) + extra.rows]])
    distinct = np.unique(who[: len(X)])
    order = np.random.default_rng([seed, 3]).permutation(distinct)
    folds = []
    for part in np.array_split(order, min(FOLDS, len(order))):
        held = np.isin(pairs, part).sum(axis=1)
        train, scored = np.flatnonzero(held == 0), np.flatnonzero(held[: len(first)] == 1)
        if not len(train) or not len(scored):
            count = plural(len(distinct), "distinct point")
            raise InputError(f"search: {count} and their pairs are too few to hold some out")
        folds.append((train, scored))
    return folds


class TwinnedRegressor(AnchoredRegressor):
    """Predict differences of targets with any regressor, and from them the target itself.

    The base regressor learns F(x_i, x_j) = y_i - y_j from the features (x_i, x_j, x_i - x_j). As
    with a twin network, every training point is then an anchor, and F(x, anchor) + y_anchor is an
    estimate.

    Parameters
    ----------
    base : scikit-learn regressor, default=None
        Learns the differences; None means ``RandomForestRegressor()``. It sees features in their
        own units: put a scaler before it in a pipeline if it needs one.
    pairs : "all", "neighbors" or int, default="all"
        What to train on: all n^2 ordered pairs; each point with its nearest; or each point with
        this many others at random, the latter two in both orders. Training takes memory for all of
        them.
    neighbors : int, default=32
        How many neighbors ``pairs="neighbors"`` uses, in training and prediction.
    anchors : "all", int or array of int, default="all"
        Training points that predict: all, this many at random, or these rows of ``anchor_X_``.
    search : None, "published", "text" or dict, default=None
        Hyperparameters of the base to choose by cross-validation with a fifth of the points held
        out at a time: the grid of the paper's code, that of its text (405 forests of up to 600
        trees), or a grid as for ``GridSearchCV``.
    random_state : int, RandomState or None, default=None
        Seed of the pairs, and of the base if it takes one. None leaves the base as it is.
    n_jobs : int, default=None
        Number of processes for the search.

    Attributes
    ----------
    estimator_ : regressor
        The fitted base.
    search_ : GridSearchCV or None
        The search, if there was one.
    anchor_X_, anchor_y_ : array of shape (n, features), (n,)
        Training points, in their own units.

    Examples
    --------
    >>> import numpy as np
    >>> from twinedge import TwinnedRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = TwinnedRegressor(random_state=0).fit(X, np.sin(3 * X[:, 0]))
    >>> y, std = model.predict([[0.5]], return_std=True)
    >>> bool(abs(y[0] - np.sin(1.5)) < 0.05)
    True
    """

    def __init__(
        self,
        base: Any = None,
        *,
        pairs: str | int = "all",
        neighbors: int = NEIGHBORS,
        anchors: Anchors = "all",
        search: str | Mapping[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.pairs = pairs
        self.neighbors = neighbors
        self.anchors = anchors
        self.search = search
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: npt.ArrayLike | None = None,
        encoding: Encoding | None = None,
        extra: ExtraPairs | None = None,
    ) -> "TwinnedRegressor":
        """Train the base on pairs of these points.

        Parameters
        ----------
        X : array of shape (n, columns), or data frame
            Training points; all of them may become anchors.
        y : array of shape (n,)
            Their targets.
        sample_weight : array of shape (n,), optional
            How much each point counts, at least 0, for a base that takes weights: the weight of a
            pair is that of its points multiplied. A search compares settings without them.
        encoding : Encoding, optional
            Columns that the features were made of, if they are already encoded.
        extra : ExtraPairs, optional
            More pairs to train on; each counts as much as two points of mean weight.
        """
        X, y, _, weights = counted_rows(X, y, None, sample_weight)
        self.sample_weights_ = relative(weights)
        X, y = self._read_training(X, y, encoding)
        assign(self.anchors, len(y), 1)  # fail now, not after the training
        self.scaling_ = Scaling.of(X, y)
        seed = seed_of(self.random_state)
        first, second = self._pairs(self.scaling_.features(X), seed)
        features, differences = pair_features(X[first], X[second]), y[first] - y[second]
        if extra is not None:
            extra = extra.checked(X.shape[1])
            more = pair_features(extra.first, extra.second)
            features = np.concatenate([features, more])
            differences = np.concatenate([differences, extra.differences])
        base = self._base(seed)
        given = {}
        if weights is not None:
            if not has_fit_parameter(base, "sample_weight"):
                why = "takes no sample_weight: leave it out, or use a base that does"
                raise wrong_value("base", base, why)
            more = np.full(0 if extra is None else len(extra), weights.mean() ** 2)
            given["sample_weight"] = np.append(weights[first] * weights[second], more)
        grid, self.search_ = self._grid(base), None
        if grid is None:
            self.estimator_ = base.fit(features, differences, **given)
        else:
            folds = point_folds(X, first, second, extra, seed)
            self.search_ = GridSearchCV(base, grid, cv=folds, n_jobs=self.n_jobs)
            self.estimator_ = self.search_.fit(features, differences, **given).best_estimator_
        self.anchor_X_, self.anchor_y_ = X, y
        return self

    def resolved(self) -> "TwinnedRegressor":
        """Return an unfitted copy with the chosen settings in place of a search."""
        copy: TwinnedRegressor = clone(self).set_params(base=clone(self.estimator_), search=None)
        return copy

    def _grid(self, base: Any) -> Mapping[str, Any] | None:
        """Return what to search; None for no search."""
        grid = self.search
        if grid is None:
            return None
        if not isinstance(grid, Mapping):
            grid = GRIDS[one_of("search", grid, tuple(GRIDS))]
        for name in grid:
            if name not in base.get_params():
                raise InputError(f"search: {type(base).__name__} has no parameter {name!r}")
        return grid

    @property
    def _twins(self) -> int:
        return 1

    def _across(
        self, x: FloatArray, anchors: FloatArray, chosen: Chosen | None = None, *, symmetric: bool
    ) -> Iterator[FloatArray]:
        (points,) = anchors
        members = len(points) if chosen is None else chosen.shape[2]
        rows = max(1, _BLOCK // (3 * members * x.shape[1]))
        for start in range(0, len(x), rows):
            own = points[None] if chosen is None else points[chosen[0, start : start + rows]]
            queries, own = np.broadcast_arrays(x[start : start + rows, None], own)
            there = self._evaluate(queries, own)
            yield ((there - self._evaluate(own, queries)) / 2 if symmetric else there)[None]

    def _evaluate(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """F of pairs ``(rows, k, f)``."""
        features = pair_features(first, second)
        found: FloatArray = self.estimator_.predict(features.reshape(-1, features.shape[-1]))
        return found.reshape(features.shape[:-1])

    def _pairs(self, x: FloatArray, seed: int) -> tuple[Rows, Rows]:
        """First and second row of every training pair, point by point."""
        rows = np.arange(len(x))
        partners = partners_of(x, self.pairs, self.neighbors, seed)
        if partners is None:
            return np.repeat(rows, len(x)), np.tile(rows, len(x))
        own = np.broadcast_to(rows[:, None], partners.shape)
        return np.hstack([own, partners]).ravel(), np.hstack([partners, own]).ravel()

    def _base(self, seed: int) -> Any:
        """Return a copy of the base with this seed wherever it takes one."""
        try:
            suits = self.base is None or is_regressor(self.base)
        except (AttributeError, TypeError):  # not an estimator, or a class of estimators
            suits = False
        if not suits:
            raise wrong_value("base", self.base, "is not a scikit-learn regressor")
        base = RandomForestRegressor() if self.base is None else clone(self.base)
        if self.random_state is None:
            return base
        names = [name for name in base.get_params() if name.split("__")[-1] == "random_state"]
        return base.set_params(**dict.fromkeys(names, seed))
