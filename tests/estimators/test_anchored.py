"""What anchors estimate, and how far twins contradict themselves."""

import numpy as np
import pytest

UNITS = {"rtol": 1e-5, "atol": 1e-3}  # targets lie between 30 and 80


@pytest.fixture(params=["tiny_twin", "four_twins"])
def model(request):
    """One twin with one hidden layer, and four with two."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def X(curve):  # noqa: N802 - what every estimator calls it
    return curve[0][100:106]


def estimates_of(model, difference, x, rows_of_twins, symmetric=True):
    """Every estimate of equation 2, one network and one pair at a time."""
    found = []
    for twin, rows in enumerate(rows_of_twins):
        for j in rows:
            anchor, target = model.anchor_X_[j], model.anchor_y_[j]
            there = difference(model, twin, x, anchor)
            back = difference(model, twin, anchor, x)
            found.append((0.5 * (there - back) if symmetric else there) + target)
    return np.array(found)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_prediction_is_the_mean_of_equation_2_over_all_anchors(model, difference, X, symmetric):
    everyone = [range(len(model.anchor_y_))] * len(model.weights_)
    mean = model.predict(X, symmetric=symmetric)
    std = model.spread(X, symmetric=symmetric)
    for x, m, s in zip(X, mean, std, strict=True):
        estimates = estimates_of(model, difference, x, everyone, symmetric)
        assert m == pytest.approx(estimates.mean(), rel=1e-5)
        assert s == pytest.approx(estimates.std(), rel=1e-3)


def test_listed_anchors_are_shared_among_the_twins_in_turn(model, difference, X):
    rows = [5, 2, 40, 11, 7, 3, 50, 8]
    twins = len(model.weights_)
    estimates = model.estimates(X, anchors=rows)
    assert estimates.shape == (len(X), len(rows))
    shared = [rows[twin::twins] for twin in range(twins)]
    expected = [estimates_of(model, difference, x, shared) for x in X]
    np.testing.assert_allclose(estimates, expected, **UNITS)


def test_a_number_of_anchors_picks_the_same_random_rows_every_time(model, X):
    few = model.estimates(X, anchors=8)
    assert few.shape == (len(X), 8)
    np.testing.assert_array_equal(model.estimates(X, anchors=8), few)
    everyone = model.estimates(X)
    assert everyone.shape == (len(X), len(model.weights_) * len(model.anchor_y_))
    for mine, all_of_them in zip(few, everyone, strict=True):
        assert all(np.isclose(all_of_them, one, **UNITS).any() for one in mine)


def test_anchors_set_in_the_constructor_are_those_predict_uses(model, X):
    before = model.anchors
    try:
        model.set_params(anchors=[4, 9, 1, 30])
        chosen = model.predict(X)
    finally:
        model.set_params(anchors=before)
    np.testing.assert_array_equal(chosen, model.predict(X, anchors=[4, 9, 1, 30]))
    assert not np.allclose(chosen, model.predict(X))


def test_neighbors_are_the_anchors_nearest_in_scaled_features(model, difference, X):
    estimates = model.estimates(X, neighbors=3)
    scaled = (model.anchor_X_ - model.scaling_.x_mean) / model.scaling_.x_scale
    for x, mine in zip(X, estimates, strict=True):
        query = (x - model.scaling_.x_mean) / model.scaling_.x_scale
        closest = np.argsort(np.linalg.norm(scaled - query, axis=1))[:3]
        expected = estimates_of(model, difference, x, [closest] * len(model.weights_))
        np.testing.assert_allclose(mine, expected, **UNITS)


def test_neighbors_of_shared_anchors_are_among_each_twins_own(four_twins, difference, X):
    rows = np.arange(0, 24)
    estimates = four_twins.estimates(X, anchors=rows, neighbors=2)
    scaling = four_twins.scaling_
    scaled = (four_twins.anchor_X_ - scaling.x_mean) / scaling.x_scale
    for x, mine in zip(X, estimates, strict=True):
        distance = np.linalg.norm(scaled - (x - scaling.x_mean) / scaling.x_scale, axis=1)
        own = [rows[twin::4] for twin in range(4)]
        closest = [one[np.argsort(distance[one])[:2]] for one in own]
        expected = estimates_of(four_twins, difference, x, closest)
        np.testing.assert_allclose(mine, expected, **UNITS)


def test_predictions_across_blocks_are_those_of_one_block(model, X, monkeypatch):

    whole = [model.estimates(X, neighbors=neighbors) for neighbors in (None, 3)]
    monkeypatch.setattr("twinedge.training.pairs._BLOCK", 2 * 6 * 80 * len(model.weights_))
    for neighbors, expected in zip((None, 3), whole, strict=True):
        found = model.estimates(X, neighbors=neighbors)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_loop_violation_is_the_spread_of_random_closed_loops_around_zero(model, difference, X):
    found = model.loop_violation(X, loops=7)
    rng = np.random.default_rng(0)
    loops = [rng.choice(len(model.anchor_y_), 2, replace=False) for _ in range(7)]
    for x, violation in zip(X, found, strict=True):
        residuals = []
        for twin in range(len(model.weights_)):
            for j, k in loops:
                a, b = model.anchor_X_[j], model.anchor_X_[k]
                path = ((x, a), (a, b), (b, x))
                residuals.append(sum(difference(model, twin, *step) for step in path))
        expected = np.sqrt(np.mean(np.square(residuals)))
        assert violation == pytest.approx(expected, rel=1e-2, abs=1e-3)


def test_single_anchor_is_the_ordinary_network_for_that_anchor(tiny_twin, curve):
    X, _ = curve
    for j in (0, 17, 79):
        ordinary = tiny_twin.single_anchor(j)
        expected = tiny_twin.predict(X, anchors=[j], symmetric=False)
        np.testing.assert_allclose(ordinary.predict(X), expected, **UNITS)
        assert ordinary.architecture_.inputs == X.shape[1]


def test_single_anchor_takes_any_of_the_twins(four_twins, X, difference):
    ordinary = four_twins.single_anchor(9, twin=2)
    anchor, target = four_twins.anchor_X_[9], four_twins.anchor_y_[9]
    expected = [difference(four_twins, 2, x, anchor) + target for x in X]
    np.testing.assert_allclose(ordinary.predict(X), expected, **UNITS)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda model, X: model.predict(X, neighbors=0), "neighbors"),
        (lambda model, X: model.predict(X, anchors=1000), "anchors"),
        (lambda model, X: model.estimates(X, anchors="none"), "anchors"),
        (lambda model, X: model.loop_violation(X, loops=0), "loops"),
        (lambda model, X: model.single_anchor(-1), "j"),
        (lambda model, X: model.single_anchor(80), "j"),
        (lambda model, X: model.single_anchor(0, twin=1), "twin"),
    ],
)
def test_a_bad_argument_is_named(complaint, tiny_twin, X, call, name):
    assert name in complaint(call, tiny_twin, X)


def test_a_point_far_outside_the_training_data_gets_a_number(model):
    mean, std = model.predict([[1e300, -1e300, 0.0]], return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("method", ["predict", "estimates", "loop_violation", "asymmetry"])
def test_another_number_of_features_is_refused(tiny_twin, X, method):
    with pytest.raises(ValueError, match=r"^X has 2 features, .* 3 features as input\.$"):
        getattr(tiny_twin, method)(X[:, :2])


def test_differences_are_those_of_each_pair_in_order_averaged_over_the_twins(model, difference, X):
    first, second = X[:5], X[1:]
    found = model.differences(first, second)
    twins = range(len(model.weights_))
    expected = [
        np.mean([difference(model, twin, p, q) for twin in twins])
        for p, q in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(found, expected, **UNITS)
    assert not np.allclose(found, -model.differences(second, first), rtol=1e-4)


def test_points_that_make_no_pairs_are_refused(complaint, tiny_twin, X):
    assert "6 first and 5 second points" in complaint(tiny_twin.differences, X, X[1:])


@pytest.mark.parametrize("anchors", [None, [3, 1, 40, 7]], ids=["all", "listed"])
def test_asymmetry_is_the_rms_of_both_orders_of_a_pair_added(model, difference, X, anchors):
    found = model.asymmetry(X, anchors=anchors)
    twins = len(model.weights_)
    rows = range(len(model.anchor_y_)) if anchors is None else anchors
    for x, value in zip(X, found, strict=True):
        sums = []
        for twin in range(twins):
            for j in rows if anchors is None else rows[twin::twins]:
                a = model.anchor_X_[j]
                sums.append(difference(model, twin, x, a) + difference(model, twin, a, x))
        assert value == pytest.approx(np.sqrt(np.mean(np.square(sums))), rel=1e-2, abs=1e-3)
        assert value > 0
