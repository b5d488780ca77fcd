"""A fitted model that takes points measured where it is used, as a device does."""

import pickle
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from twinedge import TwinRegressor
from twinedge.pack import write_pack
from twinedge.runtime.loading import load
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge.scoring.calibration import adapted
from twinedge_export.quantise import quantise


@pytest.fixture
def model(tiny_twin):
    """A private copy of the tiny twin, to adapt."""
    return copy(tiny_twin)


@pytest.fixture(scope="module")
def pack(tiny_twin, curve):
    """The same as a device, with all its anchors and intervals from the same points."""
    X, y = curve
    bare = quantise(tiny_twin, [np.arange(80)], intervals=True)
    return calibrate_pack(bare, X[80:100], y[80:100], chosen=True)


@pytest.fixture(scope="module")
def site(curve):
    """20 points from a site where everything is a little higher."""
    X, y = curve
    return X[100:], y[100:] + 2 + 0.3 * np.random.default_rng(0).normal(size=20)


@pytest.mark.parametrize(("count", "trust"), [(1, 0.4), (2, 0.95), (20, 0.05)])
def test_it_predicts_what_a_device_predicts(model, pack, curve, site, tmp_path, count, trust):
    X, y = site[0][:count], site[1][:count]
    path = tmp_path / "model.twin"
    intervals = replace(pack.intervals, trust=round(65536 * trust))
    path.write_bytes(write_pack(replace(pack, intervals=intervals)))
    model.trust_ = trust
    device = load(path)
    before = model.predict(curve[0])
    device.learn(X, y)
    mean, scale = model.adapt(X, y).predict(curve[0], return_std=True)
    found, device_scale = device.predict(curve[0], return_std=True)
    unit = curve[1].std()
    np.testing.assert_allclose(found, mean, atol=0.012 * unit)
    np.testing.assert_allclose(device_scale, scale, rtol=0.06)
    ends = model.predict_interval(curve[0], 0.9)
    np.testing.assert_allclose(device.predict_interval(curve[0], 0.9), ends, atol=0.02 * unit)
    # The points matter, so this does not compare the model with itself.
    assert np.abs(mean - before).mean() > (0.01 if trust < 0.1 else 0.05) * unit


@pytest.mark.parametrize("count", [1, 7])
def test_it_is_the_rule_on_what_the_fitted_model_predicts(model, curve, site, count):
    X, y = site[0][:count], site[1][:count]
    at_points, scales = model.predict(X, return_std=True)
    plain = model.predict(curve[0][:15], return_std=True)
    errors = y - at_points
    right = adapted(model.trust_, errors, errors / scales, *plain)
    found = model.adapt(X, y).predict(curve[0][:15], return_std=True)
    np.testing.assert_allclose(found, right, rtol=1e-6)
    np.testing.assert_allclose(model.predict(curve[0][:15]), right[0], rtol=1e-6)


def test_a_glitch_changes_nothing(model, curve):
    before = model.predict(curve[0], return_std=True)
    model.adapt(curve[0][:1], [-999.0])
    np.testing.assert_array_equal(model.predict(curve[0], return_std=True), before)


def test_predictions_get_nearer_to_what_is_measured_there(model, site):
    X, y = site
    before = model.rmse(X[10:], y[10:])
    errors = [model.adapt(X[k : k + 1], y[k : k + 1]).rmse(X[10:], y[10:]) for k in range(10)]
    assert errors[-1] < 0.6 * before
    assert errors[-1] < errors[0] < before


def test_expected_points_make_intervals_narrower_and_surprising_ones_wider(model, curve):
    X = curve[0][100:]
    mean, scale = model.predict(X, return_std=True)
    calm = copy(model).adapt(X, mean + 0.2 * scale)
    wild = copy(model).adapt(X, mean + 3 * scale * np.where(np.arange(20) % 2, 1, -1))
    assert (calm.predict(X, return_std=True)[1] < scale).all()
    assert (wild.predict(X, return_std=True)[1] > scale).all()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_points_may_come_one_after_another(tiny_twin, curve, site, counts):
    ends = np.cumsum(counts)
    ends = ends[ends <= 20]
    if not len(ends):
        return
    one_by_one, at_once = copy(tiny_twin), copy(tiny_twin)
    for start, stop in zip([0, *ends], ends, strict=False):
        one_by_one.adapt(site[0][start:stop], site[1][start:stop])
    at_once.adapt(site[0][: ends[-1]], site[1][: ends[-1]])
    for one, other in zip(
        one_by_one.predict(curve[0], return_std=True),
        at_once.predict(curve[0], return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_what_is_forgotten_leaves_no_trace(model, tiny_twin, curve, site):
    model.adapt(*site)
    assert model.forget() is model
    np.testing.assert_array_equal(model.predict(curve[0]), tiny_twin.predict(curve[0]))
    np.testing.assert_array_equal(
        model.predict_interval(curve[0]), tiny_twin.predict_interval(curve[0])
    )
    model.forget().adapt(*site)
    again = copy(tiny_twin).adapt(*site)
    np.testing.assert_array_equal(model.predict(curve[0]), again.predict(curve[0]))


def test_estimates_and_spread_stay_those_of_the_training(model, tiny_twin, curve, site):
    model.adapt(*site)
    X = curve[0][:9]
    np.testing.assert_array_equal(model.estimates(X), tiny_twin.estimates(X))
    np.testing.assert_array_equal(model.spread(X), tiny_twin.spread(X))
    np.testing.assert_array_equal(model.outside(X), tiny_twin.outside(X))


def test_an_export_is_of_the_model_as_it_was_fitted(model, tiny_twin, site):
    rows = [np.arange(8)]
    before = write_pack(quantise(tiny_twin, rows, intervals=True))
    assert write_pack(quantise(model.adapt(*site), rows, intervals=True)) == before


def test_other_anchors_and_neighbors_may_be_asked_for(model, curve, site):
    plain = model.predict(curve[0], anchors=np.arange(8)), model.predict(curve[0], neighbors=3)
    model.adapt(*site)
    found = model.predict(curve[0], anchors=np.arange(8)), model.predict(curve[0], neighbors=3)
    for one, other in zip(found, plain, strict=True):
        assert (one - other).mean() > 0.5


def test_fitting_again_forgets_the_points(curve, site, tiny):
    model = TwinRegressor(**{**tiny, "steps": 20}).fit(*curve)
    right = model.predict(curve[0])
    model.adapt(*site)
    assert not np.allclose(model.predict(curve[0]), right)
    np.testing.assert_array_equal(model.fit(*curve).predict(curve[0]), right)


def test_a_clone_has_no_points_and_a_copy_keeps_them(model, curve, site):
    model.adapt(*site)
    right = model.predict(curve[0], return_std=True)
    for again in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        np.testing.assert_array_equal(again.predict(curve[0], return_std=True), right)
        again.forget()
    np.testing.assert_array_equal(model.predict(curve[0], return_std=True), right)
    assert clone(model).own_ == ()
    assert "own_" not in model.get_params()


BAD = {
    "other features": ([[1.0, 2.0]], [3.0]),
    "no rows": (np.empty((0, 3)), []),
    "one dimension": ([1.0, 2.0, 3.0], [4.0]),
    "nan in a point": ([[1.0, np.nan, 3.0]], [4.0]),
    "infinity in a point": ([[1.0, np.inf, 3.0]], [4.0]),
    "text": ([["a", "b", "c"]], [4.0]),
    "nan for a target": ([[1.0, 2.0, 3.0]], [np.nan]),
    "infinity for a target": ([[1.0, 2.0, 3.0]], [np.inf]),
    "text for a target": ([[1.0, 2.0, 3.0]], ["high"]),
    "too few targets": ([[1.0, 2.0, 3.0]] * 2, [4.0]),
    "too many targets": ([[1.0, 2.0, 3.0]], [4.0, 5.0]),
    "a column of targets": ([[1.0, 2.0, 3.0]], [[4.0]]),
    "a number for targets": ([[1.0, 2.0, 3.0]], 4.0),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_point_is_refused_and_changes_nothing(model, curve, site, name):
    model.adapt(site[0][:2], site[1][:2])
    right = model.predict(curve[0])
    with pytest.raises((ValueError, TypeError)):  # of scikit-learn, in part
        model.adapt(*BAD[name])
    np.testing.assert_array_equal(model.predict(curve[0]), right)
    model.forget()


def test_a_model_without_intervals_adapts_to_nothing(model, complaint, curve, site):
    model.calibration_ = None
    right = model.predict(curve[0])
    assert "no intervals" in complaint(model.adapt, *site)
    np.testing.assert_array_equal(model.predict(curve[0]), right)


def test_a_model_that_was_not_fitted_is_refused(site):
    for call in (lambda one: one.adapt(*site), TwinRegressor.forget):
        with pytest.raises(NotFittedError):
            call(TwinRegressor())
