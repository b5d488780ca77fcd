"""A target on a curve: what is learnt there, and what comes back in its own units."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression

from twinedge import AnnRegressor, EnsembleRegressor, InputError, LoopRegressor, TwinRegressor
from twinedge.estimators.uncertainty import (
    anchor_uncertainty,
    evaluate_uncertainty,
    uncertainty,
    weighted_prediction,
)
from twinedge.scoring.target_curve import CURVES, TargetCurve
from twinedge.training.pairs import ExtraPairs

TINY = {
    "hidden": (8,),
    "activation": "relu",
    "learning_rate": 0.01,
    "weight_decay": 0.03,
    "steps": 300,
    "random_state": 0,
}
TRAIN, HELD = 120, 60


@pytest.fixture(scope="module")
def skewed():
    """Points, and targets from 0.2 to 200 whose noise grows with their size."""
    rng = np.random.default_rng(3)
    X = rng.random((400, 2))
    return X, np.exp(3 * X[:, 0] + 2 * X[:, 1] - 1 + 0.3 * rng.normal(size=len(X)))


@pytest.fixture(scope="module", params=CURVES)
def both(request, skewed):
    """A curve, a model that learnt it, and one that was given the curved target as it is."""
    X, y = skewed
    curve = TargetCurve(request.param)
    held = slice(TRAIN, TRAIN + HELD)
    model = TwinRegressor(**TINY, twins=2, target_curve=curve.kind)
    model.fit(X[:TRAIN], y[:TRAIN], validation=(X[held], y[held]))
    plain, c = TwinRegressor(**TINY, twins=2), curve.forward(y)
    plain.fit(X[:TRAIN], c[:TRAIN], validation=(X[held], c[held]))
    return curve, model, plain


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_networks_are_those_of_the_curved_target(both):
    curve, model, plain = both
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.difficulty_, plain.difficulty_)
    assert model.calibration_.quantiles == plain.calibration_.quantiles
    assert model.trust_ == plain.trust_
    assert model.target_curve_ == curve.kind
    assert plain.target_curve_ == "none"


def test_predictions_and_intervals_come_back_in_units_of_the_target(both, skewed):
    curve, model, plain = both
    X = skewed[0][TRAIN + HELD :]
    mean, scale = model.predict(X, return_std=True)
    c, d = plain.predict(X, return_std=True)
    close(mean, curve.inverse(c))
    close(model.predict(X), curve.inverse(plain.predict(X)))
    close(scale, (curve.inverse(c + d) - curve.inverse(c - d)) / 2)
    for coverage in (0.9, [0.5, 0.8]):
        found = model.predict_interval(X, coverage)
        close(found, curve.inverse(plain.predict_interval(X, coverage)))
    close(model.spread(X), curve.deviation(plain.predict(X), plain.spread(X)))
    close(model.estimates(X), curve.inverse(plain.estimates(X)))
    close(model.estimates(X, curved=True), plain.estimates(X))
    some = {"anchors": [3, 5, 7, 9], "symmetric": False}
    close(model.predict(X, **some), curve.inverse(plain.predict(X, **some)))
    close(model.differences(X, X[::-1]), plain.differences(X, X[::-1]))


def test_an_interval_covers_as_often_as_on_the_curve(both, skewed):
    curve, model, plain = both
    X, y = (one[TRAIN + HELD :] for one in skewed)
    (low, high), (below, above) = model.predict_interval(X).T, plain.predict_interval(X).T
    c = curve.forward(y)
    covered = (low <= y) & (y <= high)
    np.testing.assert_array_equal(covered, (below <= c) & (c <= above))
    assert 0.82 <= covered.mean() <= 0.98
    assert (low < high).all()
    if curve.kind != "sqrt":  # small targets have short intervals, large ones long ones
        width = (high - low)[np.argsort(model.predict(X))]
        assert width[-50:].mean() > 3 * width[:50].mean()


def test_the_validation_error_is_in_units_of_the_target(both):
    _, model, _ = both
    X, y = model.validation_
    assert model.validation_rmse_ == pytest.approx(
        np.sqrt(np.mean(np.square(model.predict(X) - y)))
    )
    final = [one["rmse_val"] for one in model.trials_ if one["stage"] == "final round"]
    assert all(0.5 < one / model.validation_rmse_ < 2 for one in final)


def test_measures_of_uncertainty_are_in_units_of_the_target(both, skewed):
    curve, model, plain = both
    X, y = (one[TRAIN + HELD :][:40] for one in skewed)
    c = plain.predict(X, anchors="all")
    for by in ("spread", "loop_violation", "asymmetry"):
        close(uncertainty(model, X, by), curve.deviation(c, uncertainty(plain, X, by)))
        close(anchor_uncertainty(model, X, by), anchor_uncertainty(plain, X, by))
        close(weighted_prediction(model, X, by), curve.inverse(weighted_prediction(plain, X, by)))
    found = evaluate_uncertainty(model, X, y)
    assert found["rmse"] == pytest.approx(model.rmse(X, y))


def test_points_measured_on_site_are_learnt_on_the_curve(both, skewed):
    curve, model, plain = both
    X, y = (one[TRAIN + HELD :][:9] for one in skewed)
    queries = skewed[0][-50:]
    before = model.predict(queries)
    try:
        model.adapt(X, 2 * y)
        plain.adapt(X, curve.forward(2 * y))
        assert not np.allclose(model.predict(queries), before)
        close(model.predict(queries), curve.inverse(plain.predict(queries)))
        close(model.predict_interval(queries), curve.inverse(plain.predict_interval(queries)))
    finally:
        model.forget()
        plain.forget()
    close(model.predict(queries), before)


def test_intervals_are_recalibrated_on_the_curve(both, skewed):
    curve, model, plain = both
    X, y = (one[TRAIN + HELD :] for one in skewed)
    was = model.calibration_, plain.calibration_
    try:
        model.calibrate(X, y)
        plain.calibrate(X, curve.forward(y))
        assert model.calibration_.quantiles == plain.calibration_.quantiles
        assert model.calibration_.quantiles != was[0].quantiles
    finally:
        model.calibration_, plain.calibration_ = was


def test_one_anchor_makes_an_ordinary_network_in_units_of_the_target(both, skewed):
    curve, model, plain = both
    X = skewed[0][-20:]
    found = model.single_anchor(4, twin=1).predict(X)
    close(found, curve.inverse(plain.single_anchor(4, twin=1).predict(X)))


def test_an_ordinary_network_learns_a_curve_as_well(skewed):
    X, y = skewed
    model = AnnRegressor(**TINY, target_curve="log").fit(X[:TRAIN], y[:TRAIN])
    plain = AnnRegressor(**TINY).fit(X[:TRAIN], np.log(y[:TRAIN]))
    close(model.predict(X), np.exp(plain.predict(X)))
    assert model.resolved().get_params()["target_curve"] == "log"


def test_members_of_an_ensemble_are_averaged_in_units_of_the_target(skewed):
    X, y = skewed
    ensemble = EnsembleRegressor(TwinRegressor(**TINY, target_curve="log"), 2, random_state=1)
    ensemble.fit(X[:TRAIN], y[:TRAIN])
    each = np.stack([member.predict(X) for member in ensemble.members_])
    assert [member.target_curve_ for member in ensemble.members_] == ["log", "log"]
    mean, std = ensemble.predict(X, return_std=True)
    close(mean, each.mean(axis=0))
    close(std, each.std(axis=0))
    assert (mean > 0).all()


def test_a_notebook_shows_the_curve_and_its_bytes_are_counted(both):
    curve, model, plain = both
    assert model.facts()["target curve"] == curve.kind
    assert "target curve" not in plain.facts()
    assert 100 < model.pack_bytes() - plain.pack_bytes() < 1100


def test_a_copy_without_fit_keeps_the_parameter():
    assert clone(TwinRegressor(target_curve="sqrt")).target_curve == "sqrt"


@pytest.mark.parametrize("model", [TwinRegressor, AnnRegressor])
def test_a_curve_that_does_not_exist_is_refused(model, skewed):
    with pytest.raises(InputError, match="target_curve='cube' is not one of 'none', 'log'"):
        model(target_curve="cube").fit(*skewed)


def test_a_target_off_the_curve_is_named_by_its_row(skewed):
    X, y = (one[:40].copy() for one in skewed)
    model = TwinRegressor(**TINY, target_curve="log")
    y[[7, 20]] = 0
    with pytest.raises(InputError) as caught:
        model.fit(X, y)
    assert str(caught.value) == (
        "row 7 of y: the target is 0, but target_curve='log' takes targets above 0; use "
        "target_curve='log1p'"
    )
    weights = np.ones(40)
    weights[[2, 7]] = 0  # rows that do not count may have any target
    with pytest.raises(InputError, match="row 20 of y: "):
        model.fit(X, y, sample_weight=weights)
    weights[20] = 0
    model.fit(X, y, sample_weight=weights)
    with pytest.raises(InputError, match="row 7 of price: "):
        model.fit(X, pd.Series(y, name="price"))
    with pytest.raises(InputError, match="row 1 of the validation targets: the target is -2"):
        model.fit(X[30:], y[30:], validation=(X[:3], [1.0, -2.0, 3.0]))


def test_later_points_off_the_curve_are_named_as_well(both, skewed):
    curve, model, _ = both
    X, y = (one[-20:].copy() for one in skewed)
    y[7] = -1.0
    with pytest.raises(InputError, match=f"row 7: .* target_curve='{curve.kind}'"):
        model.adapt(X, y)
    was = model.calibration_
    with pytest.raises(InputError, match="row 7: the target is -1"):
        model.calibrate(X, y)
    assert model.calibration_ is was
    assert not model.own_
    assert model.rmse(X, y) > 0  # an error can be measured all the same


@pytest.mark.slow
def test_groups_are_left_out_on_the_curve(skewed):
    X, y = (one[:TRAIN] for one in skewed)
    groups = np.arange(TRAIN) % 12
    model = TwinRegressor(**TINY, target_curve="log").fit(X, y, groups=groups)
    plain = TwinRegressor(**TINY).fit(X, np.log(y), groups=groups)
    assert model.left_out_ is not None
    close(model.left_out_.errors, plain.left_out_.errors)
    assert model.trust_ == plain.trust_
    close(model.predict_interval(X), np.exp(plain.predict_interval(X)))


def test_weights_and_times_go_with_a_curve(skewed):
    X, y = (one[:TRAIN] for one in skewed)
    weights = np.linspace(0.5, 2, TRAIN)
    model = TwinRegressor(**TINY, target_curve="sqrt")
    model.fit(X, y, sample_weight=weights, times=np.arange(TRAIN))
    plain = TwinRegressor(**TINY).fit(X, np.sqrt(y), sample_weight=weights, times=np.arange(TRAIN))
    close(model.predict(X), np.square(plain.predict(X)))


class Exact(RegressorMixin, BaseEstimator):
    """A model that knows the truth, but predicts less than nothing here and there."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        found = np.exp(3 * X[:, 0] + 2 * X[:, 1] - 1)
        return np.where(X[:, 0] < 0.02, -1.0, found)


def test_a_fitted_teacher_predicts_in_units_of_the_target(skewed):
    X, y = (one[: TRAIN + HELD] for one in skewed)
    held, teacher = (X[TRAIN:], y[TRAIN:]), Exact().fit(X, y)
    model = TwinRegressor(**TINY, target_curve="log", teachers=[teacher, LinearRegression()])
    model.fit(X[:TRAIN], y[:TRAIN], validation=held)
    exact, line = model.teaching_["teachers"]
    assert exact["rmse"] == pytest.approx(
        np.sqrt(np.mean(np.square(np.maximum(teacher.predict(X[:TRAIN]), y.min()) - y[:TRAIN]))),
        rel=0.02,
    )
    # On the curve the target is a plane: a line that was fitted there is as good.
    assert line["rmse"] < 1.2 * exact["rmse"]
    assert exact["weight"] + line["weight"] == pytest.approx(1, abs=0.1)


def test_known_differences_must_be_of_the_same_curve(skewed):
    X, y = (one[:40] for one in skewed)
    rows = np.array([[0, 1], [2, 3]])
    extra = ExtraPairs(X, rows, np.array([1.0, 2.0]))
    with pytest.raises(InputError) as caught:
        TwinRegressor(**TINY, target_curve="log").fit(X, y, extra=extra)
    assert str(caught.value) == (
        "extra: the differences have the curve 'none', but the networks learn target_curve='log'; "
        "use target_curve='none'"
    )
    curved = ExtraPairs(X, rows, np.log(y[rows[:, 0]] / y[rows[:, 1]]), "log")
    model = TwinRegressor(**TINY, target_curve="log").fit(X, y, extra=curved)
    plain = ExtraPairs(X, rows, curved.differences)
    close(model.predict(X), np.exp(TwinRegressor(**TINY).fit(X, np.log(y), extra=plain).predict(X)))
    # With such differences, nothing else is there to choose.
    chosen = TwinRegressor(**TINY, target_curve="auto").fit(X, y, extra=extra)
    assert chosen.target_curve_ == "none"


def test_loops_close_on_the_curve(skewed):
    X, y = skewed
    found = []
    for curve, target in (("log", y), ("none", np.log(y))):
        base = TwinRegressor(**TINY, target_curve=curve)
        loops = LoopRegressor(base, loops=50, random_state=0)
        found.append(loops.fit(X[:40], target[:40], unlabelled=X[40:80]).predict(X))
    close(found[0], np.exp(found[1]))
