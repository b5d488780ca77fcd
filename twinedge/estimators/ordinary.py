"""Ordinary networks, and ensembles of them or of any other regressor."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from twinedge.encoding.encoder import Encoding
from twinedge.estimators.inputs import copy_columns
from twinedge.estimators.networks import NetworkRegressor, Validation
from twinedge.training.input_map import InputMap
from twinedge.training.network import Architecture, FloatArray, Scaling
from twinedge.training.parameters import positive_integer, seed_of
from twinedge.training.tasks import PointTask

_BLOCK = 1 << 16  # points evaluated at a time


class AnnRegressor(NetworkRegressor):
    """A multilayer perceptron trained like the twins, but on points instead of pairs.

    Parameters are those of ``TwinRegressor``, except those about pairs and anchors.

    Examples
    --------
    >>> import numpy as np
    >>> from twinedge import AnnRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = AnnRegressor(hidden=(16,), activation="silu", learning_rate=0.01,
    ...                      weight_decay=0.003, steps=2000, random_state=0)
    >>> bool(abs(model.fit(X, np.sin(3 * X[:, 0])).predict([[0.5]])[0] - np.sin(1.5)) < 0.05)
    True
    """

    def __init__(
        self,
        *,
        hidden: int | tuple[int, ...] = (128, 128),
        activation: str = "auto",
        learning_rate: float | str = "auto",
        weight_decay: float | str = "auto",
        effort: str = "normal",
        steps: int | str = "auto",
        teachers: Any = "auto",
        target_curve: str = "none",
        impute: str | None = None,
        validation_fraction: float = 0.125,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.effort = effort
        self.steps = steps
        self.teachers = teachers
        self.target_curve = target_curve
        self.impute = impute
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_network(
        cls,
        architecture: Architecture,
        weights: FloatArray,
        scaling: Scaling,
        encoding: Encoding | None = None,
        input_map: InputMap | None = None,
    ) -> "AnnRegressor":
        """Wrap weights ``(1, size)`` that came from elsewhere as a fitted regressor."""
        model = cls(hidden=architecture.hidden, activation=architecture.activation)
        model.architecture_, model.weights_, model.scaling_ = architecture, weights, scaling
        model.activation_, model.map_ = architecture.activation, input_map
        model.remember_columns(encoding or Encoding.numbered(architecture.inputs))
        return model

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        validation: Validation = None,
        groups: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        encoding: Encoding | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "AnnRegressor":
        """Train on these points; parameters as in ``TwinRegressor.fit``."""
        seed = seed_of(self.random_state)
        train, held = self._prepare(X, y, validation, seed, groups, encoding, sample_weight, times)
        task = PointTask(**self._scale(train, held))
        self._choose(task, train, held, networks=1, seed=seed, checkpoint=checkpoint, resume=resume)
        if not len(held[1]):
            held, self.validation_weights_ = train, self.sample_weights_
        self.validation_rmse_ = self.rmse(*held, self.validation_weights_)
        return self

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Predictions ``(n,)``, or of several targets ``(n, m)``, in their units."""
        x = self._check(X)
        x = self.inputs_of(self.scaling_.features(x))[None]
        blocks = [
            self.architecture_.outputs(self.weights_, x[:, start : start + _BLOCK])[0]
            for start in range(0, x.shape[1], _BLOCK)
        ]
        return self.scaling_.restored(np.concatenate(blocks))


class EnsembleRegressor(RegressorMixin, BaseEstimator):
    """Mean of ``n`` models that differ only in their random numbers.

    The first model chooses whatever its parameters leave to "auto"; the others use its choice.

    Parameters
    ----------
    base : TwinRegressor, AnnRegressor or TwinnedRegressor
        The model to train ``n`` times.
    n : int, default=32
        Number of members.
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

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> "EnsembleRegressor":
        """Train every member on the same points; parameters are those of the base's ``fit``."""
        count = positive_integer("n", self.n)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=count)
        self.members_: list[Any] = []
        base = clone(self.base)
        # Teachers would make members alike, and their disagreement already measures uncertainty.
        alone = {"teachers": None, "intervals": False}
        base.set_params(**{k: v for k, v in alone.items() if k in base.get_params()})
        for seed in seeds:
            member = clone(base).set_params(random_state=int(seed)).fit(X, y, **options)
            self.members_.append(member)
            base = member.resolved()
            if getattr(member, "interrupted_", False):
                break
        copy_columns(member, self)
        return self

    def predict(self, X: npt.ArrayLike, return_std: bool = False) -> Any:
        """Mean over the members ``(n,)``, and with ``return_std`` their standard deviation.

        Members that learnt a target curve are averaged in units of the target.
        """
        check_is_fitted(self)
        predictions: FloatArray = np.stack([member.predict(X) for member in self.members_])
        if return_std:
            return predictions.mean(axis=0), predictions.std(axis=0)
        return predictions.mean(axis=0)
