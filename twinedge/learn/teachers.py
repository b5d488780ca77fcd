"""Who may teach a twin: any regressor of scikit-learn's manner, and three that are at hand.

Trees know what networks do not, and the other way round; their weighted mean is better than any of
them. A device has no room for it, but for a network that has learnt from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from twinedge.errors import InputError
from twinedge.learn.network import FloatArray

NETWORKS = "networks"  # the twins themselves, trained on the other folds
NAMES = (NETWORKS, "trees", "boosting", "gp")

_MANY_ROWS = 3000  # from here on boosting goes by histograms
_TREE_ROWS = 10_000  # as many as a forest is grown from
_GP_ROWS, _GP_LENGTH_ROWS = 1500, 300  # a process remembers so many, and finds its lengths on these


@dataclass(frozen=True)
class Teacher:
    """One who teaches.

    Parameters
    ----------
    name : str
        What a record calls it.
    estimator : regressor
        Of scikit-learn's manner; it sees features and targets in their own units.
    fitted : bool
        Whether it is asked as it is, and never fitted.
    """

    name: str
    estimator: Any
    fitted: bool = False

    def fit(self, X: FloatArray, y: FloatArray) -> Any:
        """Return one that knows these points, or that knows what it knew."""
        return self.estimator if self.fitted else clone(self.estimator).fit(X, y)

    def after(self, first: Any) -> "Teacher":
        """Return who is fitted to the other folds: what took the first long to find stays."""
        settled = getattr(first, "settled", None)
        return self if settled is None or self.fitted else Teacher(self.name, settled())


def teachers_of(asked: Any, rows: int, seed: int) -> tuple[list[Teacher], bool] | None:
    """Resolve the parameter ``teachers``.

    Parameters
    ----------
    asked : "auto", None, "none", or a sequence of names and estimators
        As the estimators take it.
    rows : int
        Training rows.
    seed : int
        Of those that are at hand.

    Returns
    -------
    (list of Teacher, bool) or None
        Those asked for and whether the networks teach, too; None if nobody does.
    """
    if asked is None or (isinstance(asked, str) and asked == "none"):
        return None
    if isinstance(asked, str):
        wanted: Sequence[Any] = NAMES if asked == "auto" else (asked,)
    elif isinstance(asked, list | tuple):
        wanted = asked
    else:
        raise InputError(f"teachers={asked!r} is not 'auto', None or a list of teachers")
    if not wanted:
        raise InputError("teachers=[] names nobody; None is for nobody")
    found = []
    for one in wanted:
        if isinstance(one, str) and one not in NAMES:
            words = ", ".join(map(repr, NAMES))
            raise InputError(f"teachers: {one!r} is not one of {words}, nor a regressor")
        if not isinstance(one, str):
            found.append(_own(one))
        elif one != NETWORKS:
            found.append(Teacher(one, _AT_HAND[one](rows, seed)))
    names = [teacher.name for teacher in found]
    named = [
        Teacher(f"{t.name} {names[: k + 1].count(t.name)}", t.estimator, t.fitted)
        if names.count(t.name) > 1
        else t
        for k, t in enumerate(found)
    ]
    return named, any(isinstance(one, str) and one == NETWORKS for one in wanted)


def _own(estimator: Any) -> Teacher:
    """Take somebody's own estimator, fitted or not."""
    try:
        suits = is_regressor(estimator) or hasattr(estimator, "predict")
    except (AttributeError, TypeError):  # no estimator at all
        suits = False
    if not suits or isinstance(estimator, type):
        raise InputError(f"teachers: {estimator!r} is not a scikit-learn regressor")
    try:
        check_is_fitted(estimator)
        fitted = True
    except (NotFittedError, TypeError):
        fitted = False
    return Teacher(type(estimator).__name__, estimator, fitted)


def _trees(rows: int, seed: int) -> Any:
    # A forest of more rows than it is grown from would be no better for as much longer.
    share = None if rows <= _TREE_ROWS else _TREE_ROWS / rows
    return ExtraTreesRegressor(
        200, max_features=0.6, bootstrap=share is not None, max_samples=share, random_state=seed
    )


def _boosting(rows: int, seed: int) -> Any:
    if rows > _MANY_ROWS:
        return HistGradientBoostingRegressor(max_iter=300, learning_rate=0.08, random_state=seed)
    return GradientBoostingRegressor(
        n_estimators=400, learning_rate=0.06, max_depth=5, subsample=0.5, random_state=seed
    )


class GaussianProcess(RegressorMixin, BaseEstimator):
    """A Gaussian process with a length for each feature, in seconds however long the table.

    Parameters
    ----------
    random_state : int
        Draws the rows that it remembers.
    kernel : kernel, optional
        With lengths that are known; they are looked for by default.
    """

    def __init__(self, random_state: int = 0, kernel: Any = None) -> None:
        self.random_state = random_state
        self.kernel = kernel

    def fit(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Find lengths on some rows and remember more of them."""
        rows = np.random.default_rng(self.random_state).permutation(len(y))[:_GP_ROWS]
        self.scaler_ = StandardScaler().fit(X)
        self.mean_, self.scale_ = float(np.mean(y)), float(np.std(y)) or 1.0
        x, t = self.scaler_.transform(X[rows]), (y[rows] - self.mean_) / self.scale_
        kernel = self.kernel
        if kernel is None:
            smooth = Matern(np.ones(x.shape[1]), (1e-2, 1e3), nu=1.5)
            kernel = ConstantKernel(1.0) * smooth + WhiteKernel(0.1, (1e-6, 10.0))
            few = slice(_GP_LENGTH_ROWS)
            kernel = GaussianProcessRegressor(kernel, random_state=0).fit(x[few], t[few]).kernel_
        self.process_ = GaussianProcessRegressor(kernel, optimizer=None).fit(x, t)
        return self

    def settled(self) -> "GaussianProcess":
        """Return an unfitted copy with the lengths that were found."""
        return GaussianProcess(self.random_state, self.process_.kernel_)

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions ``(n,)``."""
        said = self.process_.predict(self.scaler_.transform(X))
        return np.asarray(said * self.scale_ + self.mean_)


def _gp(_: int, seed: int) -> Any:
    return GaussianProcess(seed)


_AT_HAND = {"trees": _trees, "boosting": _boosting, "gp": _gp}
