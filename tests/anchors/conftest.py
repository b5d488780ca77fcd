"""Fixtures for the tests of twinedge.anchors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


class Oracle:
    """A model with given estimates, ``(v, twins, n)``.

    The only feature of a point to predict is its number, 0 to v - 1; any other number stands for
    one of these.
    """

    pairs = "all"

    def __init__(self, estimates: np.ndarray, X: np.ndarray, y: np.ndarray) -> None:
        self.written = estimates
        self.anchor_X_, self.anchor_y_ = X, y
        self.weights_ = np.zeros((estimates.shape[1], 1))
        self.calls = []  # how many estimates at a time; from several threads

    def _at(self, X: Any) -> np.ndarray:
        return self.written[np.asarray(X)[:, 0].astype(int) % len(self.written)]

    def estimates(self, X: Any, *, anchors: Any) -> np.ndarray:
        twins = len(self.weights_)
        shares = np.asarray(anchors).reshape(-1, twins).T
        found = self._at(X)
        columns = [found[:, twin, share] for twin, share in enumerate(shares)]
        self.calls.append(len(X) * shares.size)
        return np.concatenate(columns, axis=1)

    def predict(self, X: Any, *, anchors: Any) -> np.ndarray:
        if isinstance(anchors, str):
            return self._at(X).mean(axis=(1, 2))
        return self.estimates(X, anchors=anchors).mean(axis=1)


@pytest.fixture(scope="session")
def oracle() -> Callable[..., tuple[Oracle, tuple[np.ndarray, np.ndarray]]]:
    """Return a maker of models and their validation data.

    Each anchor has a bias of its own (``bias`` deviations), and noise that is new for each
    estimate, so that only the bias can be learned from validation data.
    """

    def make(
        v: int = 40, n: int = 60, twins: int = 1, *, bias: float = 1.0, noise: float = 1.0, seed=0
    ) -> Any:
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n, 1)), rng.normal(size=n)
        target = rng.normal(size=v)
        estimates = (
            target[:, None, None]
            + bias * rng.normal(size=(1, twins, n))
            + noise * rng.normal(size=(v, twins, n))
        )
        return Oracle(estimates, X, y), (np.arange(v, dtype=float)[:, None], target)

    return make
