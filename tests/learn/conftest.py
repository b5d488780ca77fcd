"""Fixtures for the tests of twinedge.learn."""

import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# A busy machine is not a failure; nor is a fixture of which a property damages a copy.
settings.register_profile(
    "learn",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("learn")


@pytest.fixture(scope="module")
def benchmark_named() -> Iterator[Callable[[str], ModuleType]]:
    """Import a benchmark by its name; the modules next to it are found as well."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(folder)


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Parameters of a network that trains instantly, with nothing left to choose."""
    return {
        "hidden": (8,),
        "activation": "silu",
        "learning_rate": 0.01,
        "weight_decay": 0.003,
        "steps": 300,
        "random_state": 0,
    }


@pytest.fixture(scope="session")
def perceptron() -> Callable[..., np.ndarray]:
    """Return a plain network in double precision that shares no code with the package."""

    def evaluate(architecture: Any, network: np.ndarray, x: np.ndarray) -> np.ndarray:
        widths = [architecture.inputs, *architecture.hidden, 1]
        flat, h = network.astype(np.float64), np.asarray(x, np.float64)
        for depth, (rows, columns) in enumerate(pairwise(widths)):
            kernel, flat = flat[: rows * columns].reshape(rows, columns), flat[rows * columns :]
            bias, flat = flat[:columns], flat[columns:]
            h = h @ kernel + bias
            if depth < len(architecture.hidden):
                h = h * (h > 0) if architecture.activation == "relu" else h / (1 + np.exp(-h))
        assert not len(flat)
        return h[..., 0]

    return evaluate


@pytest.fixture(scope="session")
def difference(perceptron) -> Callable[..., float]:
    """Return F(p, q) of one of a model's twins, in units of the target."""

    def evaluate(model: Any, twin: int, p: np.ndarray, q: np.ndarray) -> float:
        shift, scale = model.scaling_.x_mean, model.scaling_.x_scale
        pair = np.concatenate([(p - shift) / scale, (q - shift) / scale])
        return float(perceptron(model.architecture_, model.weights_[twin], pair)) * (
            model.scaling_.y_scale
        )

    return evaluate
