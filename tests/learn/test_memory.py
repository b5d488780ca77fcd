import subprocess
import sys

SCRIPT = """
import resource
import numpy as np
from twinedge import TwinRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(20_010, 8))
y = X[:, 0] + X[:, 1] ** 2
model = TwinRegressor(hidden=(16, 16), activation="relu", learning_rate=0.01, weight_decay=0.003,
                      steps=50, random_state=0)
model.fit(X[:20_000], y[:20_000], (X[20_000:], y[20_000:]))
mean, std = model.predict(X[:1000], return_std=True, anchors="all")
assert np.isfinite(mean).all() and (std > 0).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_a_thousand_points_against_twenty_thousand_anchors_take_less_than_two_gigabytes():
    # All pairs at once would be 1.3 GB for each layer and order.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2000
