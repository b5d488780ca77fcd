"""Ordinary neural network regression, for comparison: the same architecture with one input."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from twinedge.learn.estimator import NetworkRegressor, Validation
from twinedge.learn.network import Architecture, FloatArray
from twinedge.learn.parameters import seed_of
from twinedge.learn.scaling import Scaling
from twinedge.learn.tasks import PointTask

_BLOCK = 1 << 16  # points evaluated at a time


class AnnRegressor(NetworkRegressor):
    """A multilayer perceptron trained as the twins are, on points instead of pairs.

    Parameters are those of ``TwinRegressor``, less what concerns pairs and anchors.

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
        validation_fraction: float = 0.125,
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
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_network(
        cls, architecture: Architecture, weights: FloatArray, scaling: Scaling
    ) -> "AnnRegressor":
        """Wrap weights ``(1, size)`` that came from elsewhere as a fitted regressor."""
        model = cls(hidden=architecture.hidden, activation=architecture.activation)
        model.architecture_, model.weights_, model.scaling_ = architecture, weights, scaling
        model.activation_, model.n_features_in_ = architecture.activation, architecture.inputs
        return model

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        validation: Validation = None,
        *,
        groups: npt.ArrayLike | None = None,
        checkpoint: Path | None = None,
        resume: bool = False,
    ) -> "AnnRegressor":
        """Train on these points; parameters as in ``TwinRegressor.fit``."""
        seed = seed_of(self.random_state)
        train, held = self._prepare(X, y, validation, seed, groups)
        task = PointTask(**self._scale(train, held))
        choice = self._choose(
            task, train, held, networks=1, seed=seed, checkpoint=checkpoint, resume=resume
        )
        self.architecture_ = task.architecture(self.activation_)
        self.weights_ = choice.weights
        self.validation_rmse_ = self.rmse(*(held if len(held[1]) else train))
        return self

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Predictions ``(n,)`` in units of the target."""
        check_is_fitted(self)
        x = self.scaling_.features(validate_data(self, X, dtype=np.float64, reset=False))[None]
        blocks = [
            self.architecture_.forward(self.weights_, x[:, start : start + _BLOCK]).numpy()[0]
            for start in range(0, x.shape[1], _BLOCK)
        ]
        scaled = np.concatenate(blocks).astype(np.float64)
        return scaled * self.scaling_.y_scale + self.scaling_.y_mean
