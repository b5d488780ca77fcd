"""Models of several targets: shapes, missing targets, and one model for each target inside."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest

from twinedge import AnnRegressor, ExtraPairs, TwinRegressor
from twinedge.errors import InputError
from twinedge.estimators.targets import folds_of, join_targets
from twinedge.estimators.uncertainty import evaluate_uncertainty
from twinedge.training.selection import LeftOut

BRIEF = {
    "hidden": (16,),
    "activation": "silu",
    "learning_rate": 0.01,
    "weight_decay": 0.003,
    "steps": 2000,
    "random_state": 0,
}


def table(rows=200, missing=0.0, seed=0):
    """Return points, and two targets of very different units; some rows miss one of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    Y = np.stack([np.sin(2 * X[:, 0]) + X[:, 1], 100 * np.cos(2 * X[:, 0]) - 50], axis=1)
    hit = rng.random(rows) < missing
    Y[hit, rng.integers(0, 2, rows)[hit]] = np.nan
    return X, Y


@pytest.fixture(scope="module")
def fitted():
    return TwinRegressor(**BRIEF).fit(*table())


@pytest.fixture(scope="module")
def gappy():
    """Return a model of a table with a third of its targets missing, with groups and weights."""
    X, Y = table(240, missing=0.5)
    rows = np.arange(240)
    model = TwinRegressor(**BRIEF, twins=2)
    return model.fit(X, Y, groups=rows // 4, sample_weight=1 + rows % 3)


def test_every_target_is_learnt_in_its_own_unit(fitted):
    X, Y = table(seed=1)
    assert (fitted.rmse(X, Y) < 0.1 * Y.std(axis=0)).all()
    assert fitted.score(X, Y) > 0.99
    assert fitted.validation_rmse_.shape == (2,)


def test_shapes_are_those_of_the_targets(fitted):
    X, Y = table(5)
    mean, std = fitted.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert fitted.spread(X).shape == Y.shape
    assert fitted.predict_interval(X).shape == (5, 2, 2)
    assert fitted.predict_interval(X, [0.5, 0.8]).shape == (5, 2, 2, 2)
    assert fitted.predict(X, anchors=[0, 1, 2]).shape == Y.shape


def test_a_single_column_is_one_target(fitted):
    X, Y = table(30)
    brief = {**BRIEF, "steps": 50}
    plain = TwinRegressor(**brief).fit(X, Y[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about the shape
        column = TwinRegressor(**brief).fit(X, Y[:, :1])
    np.testing.assert_array_equal(column.predict(X), plain.predict(X))


def test_a_target_alone_is_a_model_of_its_own(fitted, gappy):
    X, Y = table(20, seed=1)
    for model in (fitted, gappy):
        mean, std = model.predict(X, return_std=True)
        ends = model.predict_interval(X)
        for number, name in enumerate(model.target_names_):
            one = model.of_target(name)
            assert one.targets_ == 1
            own = one.predict(X, return_std=True)
            np.testing.assert_array_equal(own[0], mean[:, number])
            np.testing.assert_array_equal(own[1], std[:, number])
            np.testing.assert_array_equal(one.predict_interval(X), ends[:, number])
            assert one.rmse(X, Y[:, number]) == model.rmse(X, Y)[number]
            assert one.of_target(0) is one
            assert evaluate_uncertainty(one, X, Y[:, number])["rmse"] > 0


def test_rows_without_a_target_are_no_anchors_for_it(gappy):
    for number in range(2):
        one = gappy.of_target(number)
        known = np.isfinite(gappy.anchor_y_[:, number])
        assert 0 < known.mean() < 0.95
        np.testing.assert_array_equal(one.anchor_y_, gappy.anchor_y_[known, number])
        np.testing.assert_array_equal(one.anchor_X_, gappy.anchor_X_[known])
    both = np.flatnonzero(np.isfinite(gappy.anchor_y_).all(axis=1))[:4]
    assert gappy.predict(gappy.anchor_X_[:3], anchors=both).shape == (3, 2)
    missing = np.flatnonzero(np.isnan(gappy.anchor_y_[:, 1]))[:2]
    with pytest.raises(InputError, match=f"training point {missing.min()} has no y1"):
        gappy.predict(gappy.anchor_X_[:3], anchors=missing)


def test_a_fold_has_the_networks_of_one_target_for_the_rows_that_measured_it(gappy):
    missing = np.flatnonzero(np.isnan(gappy.anchor_y_[:, 1]))
    known = np.flatnonzero(np.isfinite(gappy.anchor_y_[:, 1]))
    some = np.sort(np.concatenate([missing[:3], known[:5]]))
    folds = [LeftOut(rows, gappy.weights_, None) for rows in (some, missing)]
    (one,) = folds_of(gappy, 1, folds)  # none of the other's rows measured it
    alone = gappy.of_target(1)
    np.testing.assert_array_equal(alone.anchor_X_[one.rows], gappy.anchor_X_[known[:5]])
    np.testing.assert_array_equal(one.weights, alone.weights_)


def test_a_model_stopped_before_all_targets_have_intervals_has_none(fitted):
    first, second = fitted.of_each_target()
    second.difficulty_ = second.calibration_ = None
    stopped = copy(fitted)
    join_targets(stopped, [first, second])
    assert stopped.difficulty_ is stopped.calibration_ is None
    assert stopped.coverages == []
    assert fitted.coverages


def test_missing_targets_are_learnt_from_the_other_rows(gappy):
    X, Y = table(seed=1)
    assert (gappy.rmse(X, Y) < 0.2 * Y.std(axis=0)).all()
    some = Y.copy()
    some[::2, 0] = np.nan
    known = gappy.rmse(X[1::2], Y[1::2])[0], gappy.rmse(X, Y)[1]
    np.testing.assert_allclose(gappy.rmse(X, some), known)


def test_a_score_is_the_mean_over_targets_of_the_rows_that_measured_them(gappy):
    X, Y = table(60, missing=0.5, seed=1)
    weights = np.arange(1.0, 61)
    for each in (None, weights):
        alone = []
        for number in range(2):
            known = np.isfinite(Y[:, number])
            of_known = None if each is None else each[known]
            one = gappy.of_target(number)
            alone.append(one.score(X[known], Y[known, number], of_known))
        assert gappy.score(X, Y, each) == pytest.approx(np.mean(alone))
    assert np.isnan(Y).any()


def test_points_on_site_may_miss_targets(gappy):
    X, Y = table(6, seed=2)
    before = gappy.predict(X)
    measured = Y + np.array([0.5, 50])
    measured[:, 1] = np.nan
    moved = gappy.adapt(X, measured).predict(X) - before
    assert (moved[:, 0] > 0).all()
    assert not moved[:, 1].any()
    np.testing.assert_array_equal(gappy.forget().predict(X), before)


def test_intervals_of_each_target_are_calibrated_by_rows_that_measured_it(fitted):
    X, Y = table(300, seed=3)
    Y[::3, 1] = np.nan
    fitted.calibrate(X, Y)
    first, second = fitted.calibration_
    assert (first.rows, second.rows) == (300, 200)
    low, high = np.moveaxis(fitted.predict_interval(X, 0.9), 2, 0)
    inside = ((low <= Y) & (high >= Y)).sum(axis=0) / np.isfinite(Y).sum(axis=0)
    assert (np.abs(inside - 0.9) < 0.03).all()


@pytest.mark.parametrize(
    "options", [{"input_map": 4}, {"pairs": 4}, {"pairs": "neighbors", "neighbors": 6}]
)
def test_maps_and_other_pairs(options):
    X, Y = table(60, missing=0.3)
    model = TwinRegressor(**{**BRIEF, "activation": "relu", "steps": 60}, **options).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_names_of_targets_are_those_of_a_frame():
    X, Y = table(40)
    frame = pd.DataFrame(Y, columns=["NOX", "CO, lab"])
    model = AnnRegressor(hidden=8, steps=20, random_state=0).fit(X, frame)
    assert model.target_names_ == ("NOX", "CO, lab")
    assert model.predict(X).shape == (40, 2)
    assert model.rmse(X, Y).shape == (2,)


def changed(row, column, value):
    X, Y = table(40)
    Y[row, column] = value
    return X, Y


REFUSED = {
    "a row without any": (changed(7, slice(None), np.nan), {}, "row 7 has none of the targets"),
    "infinity": (changed(3, 1, np.inf), {}, "infinity"),
    "too many": ((table(40)[0], np.ones((40, 9))), {}, "9 targets; a model has at most 8"),
    "a target that was not measured": (
        (table(40)[0], np.column_stack([np.arange(40), np.full(40, np.nan)])),
        {},
        "target 'y1' was measured in 0 of 35 training rows",
    ),
    "a target curve": (table(40), {"target_curve": "log"}, "is for a model of one target"),
    "a fitted teacher": (
        table(60),
        {"teachers": [AnnRegressor(hidden=4, steps=5).fit(*map(np.copy, table(40)))]},
        "a fitted one teaches a model of one target",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_learnt_is_refused_in_one_line(case):
    data, options, message = REFUSED[case]
    with pytest.raises((InputError, ValueError), match=message) as refused:
        TwinRegressor(**{**BRIEF, **options}).fit(*data)
    assert "\n" not in str(refused.value) or case == "infinity"


def test_what_is_for_one_target_says_so(fitted):
    X, Y = table(40)
    for ask in (
        lambda: fitted.estimates(X),
        lambda: fitted.asymmetry(X),
        lambda: fitted.crossed(X, X),
        lambda: fitted.loop_violation(X),
        lambda: fitted.single_anchor(0),
        lambda: fitted.signals(X),
    ):
        with pytest.raises(InputError, match=r"take one of them, with of_target\(0\)"):
            ask()
    with pytest.raises(InputError, match="is not one of y0, y1"):
        fitted.of_target("y2")
    with pytest.raises(InputError, match=r"targets must have shape \(40, 2\)"):
        fitted.calibrate(X, Y[:, 0])
    extra = ExtraPairs(X, np.array([[0, 1]]), np.array([0.5]))
    with pytest.raises(InputError, match="are for a model of one target"):
        TwinRegressor(**BRIEF).fit(X, Y, extra=extra)
