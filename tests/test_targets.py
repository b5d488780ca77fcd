"""A column of targets minus a row of predictions would broadcast to a table, not an error."""

import numpy as np
import pytest

from twinedge import AnnRegressor, TwinRegressor
from twinedge.anchors import select
from twinedge.anchors.curves import measure, rmse
from twinedge.estimators.uncertainty import evaluate_uncertainty
from twinedge.evaluation.comparison import standing_beside
from twinedge.evaluation.rivals import rival_predictions
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge.scoring.scores import score
from twinedge_export.deviations import Evaluator
from twinedge_export.quantise import quantise

TINY = {"hidden": 8, "activation": "silu", "learning_rate": 0.01, "weight_decay": 0.003}


@pytest.fixture(scope="module")
def ordinary(curve):
    X, y = curve
    return AnnRegressor(**TINY, steps=50, random_state=0).fit(X[:80], y[:80])


@pytest.fixture(scope="module")
def pack(tiny_twin):
    return quantise(tiny_twin, [np.arange(8)], intervals=True)


# Each takes the models, and points with their targets.
TAKES = {
    "rmse of a twin": lambda twin, ann, pack, X, y: twin.rmse(X, y),
    "rmse of an ordinary network": lambda twin, ann, pack, X, y: ann.rmse(X, y),
    "validation of a twin": lambda twin, ann, pack, X, y: TwinRegressor(**TINY).fit(
        *anchors(twin), validation=(X, y)
    ),
    "validation of an ordinary network": lambda twin, ann, pack, X, y: AnnRegressor(**TINY).fit(
        *anchors(twin), validation=(X, y)
    ),
    "calibrate": lambda twin, ann, pack, X, y: twin.calibrate(X, y),
    "adapt": lambda twin, ann, pack, X, y: twin.adapt(X, y),
    "calibrate a pack": lambda twin, ann, pack, X, y: calibrate_pack(pack, X, y),
    "uncertainties": lambda twin, ann, pack, X, y: evaluate_uncertainty(twin, X, y),
    "scores": lambda twin, ann, pack, X, y: score(y, twin.predict(X), twin.spread(X)),
    "standing": lambda twin, ann, pack, X, y: standing_beside(
        rival_predictions(anchors(twin), X), y, twin.predict(X)
    ),
    "rmse with anchors": lambda twin, ann, pack, X, y: rmse(twin, (X, y)),
    "curve of anchors": lambda twin, ann, pack, X, y: measure(twin, (X, y)),
    "choice of anchors": lambda twin, ann, pack, X, y: select(X, y, 4),
    "validation of an export": lambda twin, ann, pack, X, y: Evaluator.of(
        twin, np.arange(8), 0, (X, y), None
    ),
    "test of an export": lambda twin, ann, pack, X, y: Evaluator.of(
        twin, np.arange(8), 0, twin.validation_, (X, y)
    ),
}
SHAPES = {
    "a column": lambda y: y[:, None],
    "one for all": lambda y: y[0],
    "too few": lambda y: y[:-1],
}


def anchors(twin):
    return twin.anchor_X_, twin.anchor_y_


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("use", TAKES)
def test_targets_of_another_shape_than_the_points_are_refused(
    complaint, tiny_twin, ordinary, pack, curve, use, shape
):
    X, y = (part[60:110] for part in curve)
    message = complaint(TAKES[use], tiny_twin, ordinary, pack, X, SHAPES[shape](y))
    assert "targets" in message or "y has shape" in message


def test_lists_of_targets_are_taken(tiny_twin, ordinary, curve):
    X, y = (part[100:] for part in curve)
    for model in (tiny_twin, ordinary):
        expected = np.sqrt(np.mean((model.predict(X) - y) ** 2))
        assert model.rmse(X.tolist(), y.tolist()) == pytest.approx(expected)
