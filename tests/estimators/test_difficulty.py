"""The second output of a twin, and the intervals of estimators."""

from copy import copy

import numpy as np
import pytest
from sklearn.base import clone

from twinedge import TwinRegressor
from twinedge.errors import InputError
from twinedge.estimators.difficulty import learn_difficulty
from twinedge.run_folder import Run, load_run

SETTING = {
    "hidden": (16,),
    "activation": "silu",
    "learning_rate": 0.01,
    "weight_decay": 0.003,
    "steps": 400,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def noisy():
    """600 points whose noise grows with the first feature."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (600, 2))
    return X, np.sin(3 * X[:, 1]) + (0.02 + 0.5 * X[:, 0]) * rng.normal(size=600)


@pytest.fixture(scope="module")
def model(noisy):
    X, y = noisy
    return TwinRegressor(**SETTING).fit(X[:300], y[:300], validation=(X[300:400], y[300:400]))


def test_it_learns_where_errors_are_large(model, noisy):
    X, y = noisy[0][400:], noisy[1][400:]
    _, scale = model.predict(X, return_std=True)
    assert np.corrcoef(scale, 0.02 + 0.5 * X[:, 0])[0, 1] > 0.8
    assert np.mean(np.abs(y - model.predict(X)) <= scale) == pytest.approx(0.68, abs=0.12)


def test_intervals_cover_what_they_claim(model, noisy):
    X, y = noisy[0][400:], noisy[1][400:]
    for coverage in model.calibration_.quantiles:
        low, high = model.predict_interval(X, coverage).T
        assert np.mean((low <= y) & (y <= high)) == pytest.approx(coverage, abs=0.1)
        np.testing.assert_allclose((low + high) / 2, model.predict(X), atol=1e-5)


def test_several_coverages_at_once_are_as_mapie_has_them(model, noisy):
    X = noisy[0][:5]
    both = model.predict_interval(X, [0.8, 0.95])
    assert both.shape == (5, 2, 2)
    np.testing.assert_array_equal(both[..., 1], model.predict_interval(X, 0.95))


@pytest.fixture(scope="module")
def bare(model, noisy):
    """The same without a second output."""
    X, y = noisy
    plain = clone(model).set_params(intervals=False)
    return plain.fit(X[:300], y[:300], validation=(X[300:400], y[300:400]))


def test_predictions_are_those_of_a_model_without(model, bare, noisy):
    X, y = noisy
    np.testing.assert_array_equal(bare.weights_, model.weights_)
    np.testing.assert_array_equal(bare.predict(X), model.predict(X))
    assert bare.difficulty_ is None
    assert bare.calibration_ is None
    _, std = bare.predict(X, return_std=True)
    np.testing.assert_array_equal(std, bare.spread(X))
    with pytest.raises(InputError, match="no intervals"):
        bare.predict_interval(X)
    with pytest.raises(InputError, match="fitted without intervals"):
        bare.calibrate(X, y)


def test_too_few_validation_points_give_no_intervals(noisy):
    X, y = noisy
    few = TwinRegressor(**SETTING | {"steps": 20}).fit(
        X[:40], y[:40], validation=(X[40:45], y[40:45])
    )
    assert few.difficulty_ is not None
    assert few.calibration_ is None
    _, std = few.predict(X[:3], return_std=True)
    np.testing.assert_array_equal(std, few.spread(X[:3]))


def test_fresh_points_make_intervals_anew_and_bad_ones_change_nothing(model, noisy):
    X, y = noisy[0][400:], noisy[1][400:]
    again = copy(model)
    again.calibrate(X, 10 * y)
    assert again.calibration_.rows == 200
    assert again.calibration_.typical > 2 * model.calibration_.typical
    before = again.calibration_
    with pytest.raises(InputError, match="too few"):
        again.calibrate(X[:5], y[:5])
    assert again.calibration_ is before


def test_points_outside_the_training_range_are_flagged(model, noisy):
    flags = model.outside([[0.5, 0.5], [7, 0.5], [0.5, -1]])
    assert flags.tolist() == [[False, False], [True, False], [False, True]]


def test_the_same_seed_gives_the_same_output(model):
    first, second = (learn_difficulty(model, 3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (1, 17)


def test_few_or_equal_points_teach_nothing(noisy):
    X, y = noisy
    few = TwinRegressor(**SETTING | {"steps": 20}).fit(
        X[:12], y[:12], validation=(X[20:40], y[20:40])
    )
    assert not few.difficulty_.any()
    flat = TwinRegressor(**SETTING | {"steps": 20}).fit(
        X[:40], np.ones(40), validation=(X[:30], y[:30])
    )
    assert not flat.difficulty_.any()


def test_a_run_keeps_both(model, noisy, tmp_path):
    X, y = noisy
    Run(model, ("a", "b"), "y", (X[300:400], y[300:400]), (X[400:], y[400:])).save(tmp_path / "run")
    back = load_run(tmp_path / "run").model
    np.testing.assert_array_equal(back.predict_interval(X), model.predict_interval(X))
    assert back.calibration_.quantiles == model.calibration_.quantiles
