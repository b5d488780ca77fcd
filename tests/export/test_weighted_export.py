"""An export of a model whose training points do not count alike."""

import numpy as np
import pytest

import twinedge
from twinedge import TwinRegressor
from twinedge.budget import Model
from twinedge.progress import Progress
from twinedge.run_folder import Run
from twinedge_export import fine_tune
from twinedge_export.deviations import Evaluator
from twinedge_export.report.measure_run import grow_trees, train_networks
from twinedge_export.report.reliability import fit_baselines

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

OFFSET = 100.0
TWIN = {"formats": ["twin"], "qat": False}


@pytest.fixture(scope="module")
def halves(curve):
    """The curve three times over, with another target in odd rows, which hardly count."""
    rng = np.random.default_rng(0)
    X, y = (np.concatenate([one] * 3) for one in curve)
    X = X + rng.normal(0, 0.01, X.shape)
    odd = np.arange(len(y)) % 2 == 1
    return X, y + OFFSET * odd, np.where(odd, 1e-3, 1.0), y


@pytest.fixture(scope="module")
def weighted(halves):
    X, y, weights, _ = halves
    model = TwinRegressor(
        twins=2,
        hidden=(8,),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=1500,
        validation_fraction=0.3,
        random_state=0,
    )
    return model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("anchors", "fewest", "most"),
    [
        (8, 8, 8),
        ("all", 120, 132),  # of 252 training points, half of which hardly count
        (200, 120, 132),
        pytest.param("fewest", 1, 132, marks=pytest.mark.slow),
    ],
)
def test_a_device_follows_the_heavy_half(weighted, halves, tmp_path, anchors, fewest, most):
    X, _, _, truth = halves
    done = twinedge.export(weighted, tmp_path / "out", anchors=anchors, **TWIN)
    assert fewest <= len(done.rows) <= most
    assert (weighted.sample_weights_[done.rows] > 1).all()
    off = twinedge.load(tmp_path / "out" / "model.twin").predict(X) - truth
    assert np.sqrt(np.mean(np.square(off))) < 0.05 * OFFSET
    limited = any("by weight there are only 12" in remark for remark in done.remarks)
    assert limited == (anchors == 200)


def test_its_errors_and_intervals_are_weighted(weighted, halves, tmp_path):
    X, y, weights, truth = halves
    tested = (X[:50], y[:50])
    names = ("a", "b", "c")
    run = Run(weighted, names, "y", weighted.validation_, tested, test_weights=weights[:50])
    done = twinedge.export(run, tmp_path / "out", anchors=16, **TWIN)
    device = twinedge.load(tmp_path / "out" / "model.twin")
    score = done.files[0].score
    for rmse, (points, target), each in (
        (score.rmse, run.validation, weighted.validation_weights_),
        (score.rmse_test, run.test, weights[:50]),
    ):
        off = np.square(device.predict(points) - target)
        assert rmse == pytest.approx(np.sqrt(np.average(off, weights=each)), rel=1e-6)
        assert rmse < 0.2 * np.sqrt(np.mean(off))
    assert done.evaluator.all_anchors.rmse == pytest.approx(weighted.validation_rmse_)
    for baseline in fit_baselines(run, (X[:50], truth[:50]), np.zeros(50)):
        assert baseline.rmse < 0.3 * OFFSET  # learnt from all rows alike, half of the offset
    assert 50 < device.pack.intervals.rows < 60  # of 108 validation rows
    low, high = device.predict_interval(X, 0.8).T
    assert np.average((low <= y) & (y <= high), weights=weights) > 0.75
    assert np.mean(high - low) < 0.2 * OFFSET  # counted alike, it would be wider than that


@pytest.mark.slow
def test_networks_and_trees_of_a_report_learn_by_weight(weighted, halves):
    X, y, _, truth = halves
    run = Run(weighted, ("a", "b", "c"), "y", weighted.validation_, (X[:50], y[:50]))
    points, shape = (X[:50], truth[:50]), Model.of(3, (8,), 8, twins=2)
    networks = train_networks(run, shape, 2000, points, 300, 0, Progress())
    # Learnt from all rows alike, half of the offset.
    assert min(one.rmse for one in networks) < 0.3 * OFFSET
    assert grow_trees(run, 2000, points, np.zeros(50), 0).rmse < 0.3 * OFFSET


def test_fine_tuning_draws_and_scores_by_weight(weighted, monkeypatch):
    X, y = weighted.validation_
    given = []
    pairs = fine_tune.Examples.pairs
    monkeypatch.setattr(
        fine_tune.Examples, "pairs", lambda *data: (given.append(data[-1]), pairs(*data))[1]
    )
    monkeypatch.setattr(fine_tune, "_STEPS", 50)
    rmse, weights = fine_tune.scoring.rmse, []
    monkeypatch.setattr(
        fine_tune.scoring, "rmse", lambda a, b=0.0, w=None: (weights.append(w), rmse(a, b, w))[1]
    )
    fine_tune.fine_tune(weighted, X, y, sample_weight=weighted.validation_weights_)
    assert given[0] is weighted.sample_weights_
    assert all(np.array_equal(one, weighted.validation_weights_) for one in weights)


def test_training_points_are_scored_by_their_own_weights(weighted, halves):
    nothing = weighted.validation_[0][:0], weighted.validation_[1][:0]
    rows = np.flatnonzero(weighted.sample_weights_ > 1)[:16]
    evaluator = Evaluator.of(weighted, rows, 0, nothing, None, weighted.sample_weights_)
    assert evaluator.name == "training"
    assert evaluator.exported_rmse < 0.1 * OFFSET
    assert Evaluator.of(weighted, rows, 0, nothing, None).exported_rmse > 0.5 * OFFSET
