"""Long tables are trained, scored and predicted in bounded memory, and time."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource
import numpy as np
from twinedge import TwinRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(57_000, 8))
y = X[:, 0] + X[:, 1] ** 2
model = TwinRegressor(hidden=(16, 16), activation="relu", learning_rate=0.01, weight_decay=0.003,
                      steps=50, random_state=0)
model.fit(X[:50_000], y[:50_000], validation=(X[50_000:], y[50_000:]))
assert model.calibration_ is not None
assert model.estimates(X[:3]).shape == (3, 256)  # as good as thousands of anchors
assert model.estimates(X[:3], neighbors=5).shape == (3, 5)
few = model.predict(X[:100])
every, std = model.predict(X[:100], return_std=True, anchors="all")
assert np.isfinite(every).all() and (std > 0).all()
assert np.abs(few - every).max() < 0.5 * np.std(y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_fifty_thousand_rows_take_less_than_two_gigabytes():
    # All pairs of 7,000 validation rows with all anchors would be 22 GB for a layer and order.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2000
