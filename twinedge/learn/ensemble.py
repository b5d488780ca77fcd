"""Ensembles of separately trained models."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from twinedge.learn.estimator import Validation
from twinedge.learn.network import FloatArray
from twinedge.learn.parameters import positive_integer


class EnsembleRegressor(RegressorMixin, BaseEstimator):
    """Mean of ``n`` models that differ in their random numbers alone.

    The first model chooses whatever its parameters leave to "auto"; the others take its choice.

    Parameters
    ----------
    base : TwinRegressor, AnnRegressor or TwinnedRegressor
        The model to train ``n`` times.
    n : int, default=32
        Members.
    random_state : int, RandomState or None, default=None
        Seed of the members' seeds.

    Attributes
    ----------
    members_ : list
        The fitted models.
    """

    def __init__(self, base: Any, n: int = 32, *, random_state: Any = None) -> None:
        self.base = base
        self.n = n
        self.random_state = random_state

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, validation: Validation = None, **options: Any
    ) -> "EnsembleRegressor":
        """Train every member on the same points; parameters are those of the base's ``fit``."""
        count = positive_integer("n", self.n)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=count)
        self.members_: list[Any] = []
        if validation is not None:
            options["validation"] = validation
        settled = clone(self.base)
        # What members are taught they would all have in common; and they have their disagreement.
        alone = {"teachers": None, "intervals": False}
        settled.set_params(**{k: v for k, v in alone.items() if k in settled.get_params()})
        for seed in seeds:
            member = clone(settled).set_params(random_state=int(seed)).fit(X, y, **options)
            self.members_.append(member)
            settled = member.settled()
            if getattr(member, "interrupted_", False):
                break
        self.n_features_in_ = member.n_features_in_
        return self

    def predict(self, X: npt.ArrayLike, return_std: bool = False) -> Any:
        """Mean over the members ``(n,)``, and with ``return_std`` their standard deviation."""
        check_is_fitted(self)
        predictions: FloatArray = np.stack([member.predict(X) for member in self.members_])
        if return_std:
            return predictions.mean(axis=0), predictions.std(axis=0)
        return predictions.mean(axis=0)
