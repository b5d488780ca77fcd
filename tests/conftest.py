"""Models small enough to train in a second, trained once for all tests."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A shell lets what it runs in the background ignore Ctrl-C, and the commands under test would
# inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def curve():
    """120 points of a smooth function of three features, the last of which does nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3)) * [1.0, 10.0, 100.0] + [0.0, 5.0, -20.0]
    return X, 50 + 10 * np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="session")
def tiny_twin(curve):
    """A twin with one hidden layer of 8, trained for a second."""
    from twinedge import TwinRegressor

    X, y = curve
    model = TwinRegressor(
        hidden=(8,),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=1500,
        random_state=0,
    )
    return model.fit(X[:80], y[:80], (X[80:100], y[80:100]))


@pytest.fixture(scope="session")
def four_twins(curve):
    """Four small networks, trained side by side."""
    from twinedge import TwinRegressor

    X, y = curve
    model = TwinRegressor(
        twins=4,
        hidden=(6, 5),
        activation="relu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=500,
        random_state=1,
    )
    return model.fit(X[:60], y[:60], (X[80:100], y[80:100]))


@pytest.fixture(scope="session")
def tiny_run(tiny_twin, curve, tmp_path_factory) -> Path:
    """The same as a run folder; copy it before damaging it."""
    from twinedge.learn.run import Run

    X, y = curve
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    Run(
        tiny_twin,
        ("angle", "offset", "idle"),
        "level",
        (X[80:100], y[80:100]),
        (X[100:], y[100:]),
        {"dataset": "curve", "split": 0, "rows": len(y)},
        {"rmse_val": tiny_twin.validation_rmse_},
    ).save(folder)
    return folder


@pytest.fixture(scope="session")
def complaint() -> Callable[..., str]:
    """Return a caller that expects an InputError of one line and returns its message."""
    from twinedge import InputError

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
        with pytest.raises(InputError) as caught:
            function(*args, **kwargs)
        message = str(caught.value)
        assert message
        assert len(message.splitlines()) == 1
        return message

    return call
