"""What a twin predicts for pairs, and how far it contradicts itself."""

import numpy as np
import pytest

from twinedge.estimators import anchored

UNITS = {"rtol": 1e-5, "atol": 1e-3}  # targets lie between 30 and 80


@pytest.fixture(params=["tiny_twin", "four_twins"])
def model(request):
    """One twin with one hidden layer, and four with two."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def X(curve):  # noqa: N802 - what every estimator calls it
    return curve[0][100:106]


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


def test_differences_across_blocks_are_those_of_one_block(model, X, monkeypatch):
    whole = model.differences(X, X[::-1])
    monkeypatch.setattr(anchored, "_PAIRS", 4)
    np.testing.assert_allclose(model.differences(X, X[::-1]), whole, rtol=1e-6)


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


@pytest.mark.parametrize("method", ["differences", "asymmetry"])
def test_another_number_of_features_is_refused(tiny_twin, X, method):
    points = [X[:, :2]] * (1 + (method == "differences"))
    with pytest.raises(ValueError, match="X has 2 features"):
        getattr(tiny_twin, method)(*points)
