import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from twinedge import AnnRegressor, TwinnedRegressor, TwinRegressor, scoring
from twinedge.estimators.uncertainty import (
    MEASURES,
    anchor_uncertainty,
    evaluate_uncertainty,
    sparsification,
    sparsification_area,
    uncertainty,
    weighted_prediction,
)


@pytest.fixture(scope="module")
def forest(curve):
    X, y = curve
    return TwinnedRegressor(RandomForestRegressor(4), random_state=0).fit(X[:20], y[:20])


@pytest.fixture(params=["forest", "tiny_twin", "four_twins"])
def model(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def X(curve):  # noqa: N802 - what every estimator calls it
    return curve[0][100:106]


def test_the_measures_are_those_of_the_model(model, X):
    std = model.spread(X)
    np.testing.assert_array_equal(uncertainty(model, X, "spread"), std)
    np.testing.assert_array_equal(uncertainty(model, X, "asymmetry"), model.asymmetry(X))
    np.testing.assert_array_equal(uncertainty(model, X, "loop_violation"), model.loop_violation(X))


def test_the_root_mean_square_asymmetry_of_the_anchors_is_that_of_the_point(model, X):
    each = anchor_uncertainty(model, X, "asymmetry")
    assert each.shape == model.estimates(X).shape
    np.testing.assert_allclose(np.sqrt(np.mean(each**2, axis=1)), model.asymmetry(X), rtol=1e-6)


def test_the_loop_violation_of_an_anchor_is_that_of_loops_which_begin_with_it(model, X):
    found = anchor_uncertainty(model, X, "loop_violation")
    anchors = model.anchor_X_
    b = anchors[np.random.default_rng(0).permutation(len(anchors))[:32]]
    leave, across, back = model.crossed(X, anchors), model.crossed(anchors, b), model.crossed(b, X)
    for point in range(len(X)):
        loops = (
            leave[:, point, :, None].astype(np.float64) + across + back[:, None, :, point]
        )  # (twins, anchors, b)
        expected = np.sqrt(np.mean(loops**2, axis=2)).ravel()
        np.testing.assert_allclose(found[point], expected, rtol=1e-5, atol=1e-6)


def test_the_spread_of_an_anchor_is_what_the_others_disagree_about_its_target(model, X):
    found = anchor_uncertainty(model, X, "spread")
    std = model.spread(model.anchor_X_)
    members = model.estimates(X).shape[1]
    np.testing.assert_array_equal(found, np.tile(std, (len(X), members // len(std))))


@pytest.mark.parametrize("by", MEASURES)
def test_a_power_of_zero_gives_the_plain_mean(model, X, by):
    np.testing.assert_allclose(weighted_prediction(model, X, by, power=0), model.predict(X))


@pytest.mark.parametrize("by", MEASURES)
def test_surer_anchors_weigh_more(model, X, by):
    each, estimates = anchor_uncertainty(model, X, by), model.estimates(X)
    found = weighted_prediction(model, X, by, power=2)
    share = np.maximum(each / each.mean(axis=1, keepdims=True), 0.01)
    np.testing.assert_allclose(found, np.average(estimates, axis=1, weights=share**-2.0))
    surest = weighted_prediction(model, X, by, power=1e5)
    floor = np.take_along_axis(estimates, np.argmin(share, axis=1)[:, None], axis=1)[:, 0]
    tied = np.sum(share < 1.001 * share.min(axis=1, keepdims=True), axis=1) > 1
    np.testing.assert_allclose(surest[~tied], floor[~tied])


def test_a_function_of_true_differences_contradicts_itself_nowhere(curve):
    X, y = curve
    model = TwinnedRegressor(LinearRegression()).fit(X[:20], y[:20])
    for by in ("asymmetry", "loop_violation"):
        np.testing.assert_allclose(uncertainty(model, X, by), 0, atol=1e-9)
        np.testing.assert_allclose(anchor_uncertainty(model, X, by), 0, atol=1e-5)
        found = weighted_prediction(model, X[20:], by)
        assert np.isfinite(found).all()


values = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40)


@settings(max_examples=40)
@given(values, st.randoms(use_true_random=False))
def test_sparsification_begins_with_all_points_and_ends_with_the_surest(errors, random):
    error = np.array(errors)
    unsure = np.array(random.sample(range(1000), len(errors)), float)
    removed, rmse = sparsification(unsure, error)
    assert len(removed) == len(rmse) == len(errors)
    assert removed[0] == 0
    order = np.argsort(-unsure)
    for k, (part, value) in enumerate(zip(removed, rmse, strict=True)):
        assert part == pytest.approx(k / len(errors))
        left = error[order[k:]]
        assert value == pytest.approx(np.sqrt(np.mean(left**2)), rel=1e-6, abs=1e-6)


@settings(max_examples=40)
@given(values, st.randoms(use_true_random=False))
def test_no_uncertainty_beats_the_error_itself(errors, random):
    error = np.array(errors)
    unsure = np.array([random.random() for _ in errors])
    least = sparsification_area(np.abs(error), error)
    assert least <= sparsification_area(unsure, error) + 1e-9
    assert least <= 1 + 1e-9


@given(values)
def test_an_uncertainty_that_never_varies_ranks_nothing(errors):
    error = np.array(errors)
    assert sparsification_area(np.ones(len(error)), error) == pytest.approx(1)


def test_points_that_are_hard_to_predict_are_uncertain(curve):
    # Half of the points are far from any anchor.
    X, y = curve
    inside = np.abs(X[:, 0]) < 0.5
    model = TwinnedRegressor(RandomForestRegressor(20), random_state=0)
    model.fit(X[inside][:30], y[inside][:30])
    found = evaluate_uncertainty(model, X[~inside], y[~inside])
    assert {"rmse", "least_area", *MEASURES} == {*found}
    assert found["spread"]["correlation"] > 0.3
    for by in MEASURES:
        assert found["least_area"] <= found[by]["area"]
        assert -1 <= found[by]["correlation"] <= 1


def test_what_is_evaluated_is_the_mean_of_all_anchors(model, curve):
    X, y = curve[0][100:], curve[1][100:]
    found = evaluate_uncertainty(model, X, y)
    error = model.predict(X) - y
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    for by in MEASURES:
        unsure = uncertainty(model, X, by)
        weighted = weighted_prediction(model, X, by) - y
        assert found[by] == {
            "correlation": scoring.rank_correlation(unsure, error),
            "area": sparsification_area(unsure, error),
            "weighted_rmse": pytest.approx(np.sqrt(np.mean(weighted**2))),
        }


@pytest.mark.parametrize("function", [uncertainty, anchor_uncertainty, weighted_prediction])
def test_an_unknown_measure_and_a_model_without_anchors_are_refused(complaint, forest, X, function):
    assert "by='luck'" in complaint(function, forest, X, "luck")
    assert "AnnRegressor" in complaint(function, AnnRegressor(), X)


def test_a_negative_power_is_refused(complaint, forest, X):
    assert "power=-1" in complaint(weighted_prediction, forest, X, power=-1)


def test_anchors_of_a_model_trained_on_neighbors_are_not_weighted(complaint, curve, X, tiny):
    model = TwinRegressor(**{**tiny, "steps": 20}, pairs="neighbors", neighbors=5).fit(*curve)
    assert "neighbors" in complaint(weighted_prediction, model, X)
    assert uncertainty(model, X).shape == (6,)


@pytest.mark.parametrize("function", [sparsification, sparsification_area])
@pytest.mark.parametrize(
    ("unsure", "error"),
    [([1.0, 2.0], [1.0]), ([], []), ([[1.0]], [[1.0]]), ([np.nan], [1.0]), ([1.0], [np.inf])],
    ids=["lengths", "empty", "shape", "nan", "inf"],
)
def test_what_cannot_be_ranked_is_refused(complaint, function, unsure, error):
    assert "error" in complaint(function, np.array(unsure), np.array(error))
