"""Errors of ensembles of each kind and size, as in the paper's figure of them."""

import numpy as np
import pytest

from benchmarks.reproduction.networks import ensemble_curves
from twinedge import EnsembleRegressor, TwinRegressor


def rmse(prediction, y):
    return np.sqrt(np.mean((prediction - y) ** 2))


@pytest.fixture(scope="module")
def test_points(curve):
    X, y = curve
    return X[100:], y[100:]


@pytest.fixture(scope="module")
def members(curve):
    """Three twins, trained one by one."""
    X, y = curve
    base = TwinRegressor(
        hidden=(8,), activation="silu", learning_rate=0.01, weight_decay=0.003, steps=200
    )
    return EnsembleRegressor(base, 3, random_state=0).fit(
        X[:40], y[:40], validation=(X[80:90], y[80:90])
    )


@pytest.fixture(scope="module")
def estimates(members, test_points):
    """Of each point, by each twin with each anchor."""
    return np.stack([one.estimates(test_points[0]) for one in members.members_], axis=1)


def test_several_twins_are_the_first_so_many_with_all_their_anchors(
    members, estimates, test_points
):
    X, y = test_points
    found = ensemble_curves(members, X, y, (1, 2, 3))["twins"]
    each = estimates.mean(axis=2)
    np.testing.assert_allclose(found, [rmse(each[:, :k].mean(axis=1), y) for k in (1, 2, 3)])
    assert found[2] == pytest.approx(rmse(members.predict(X), y))


def test_where_there_are_not_so_many_members_there_is_no_error(members, test_points):
    found = ensemble_curves(members, *test_points, (1, 3, 4, 40, 41))
    known = {name: list(np.isfinite(errors)) for name, errors in found.items()}
    three = [True, True, False, False, False]
    anchors = [True, True, True, True, False]
    assert known == {"anchors": anchors, "twins": three, "single_anchor": three}


def test_anchors_are_drawn_for_each_point_and_each_single_one_has_its_twin(
    members, estimates, test_points
):
    X, y = test_points
    found = ensemble_curves(members, X, y, (2, 40))
    rows, all_anchors = np.arange(len(X)), np.broadcast_to(np.arange(40), (len(X), 40))
    order = np.random.default_rng(0).permuted(all_anchors, axis=1)
    one_twin = np.mean([estimates[rows, 0, order[:, k]] for k in (0, 1)], axis=0)
    two_twins = np.mean([estimates[rows, k, order[:, k]] for k in (0, 1)], axis=0)
    assert found["anchors"][0] == pytest.approx(rmse(one_twin, y))
    assert found["single_anchor"][0] == pytest.approx(rmse(two_twins, y))
    # All of them once each: none is drawn twice.
    assert found["anchors"][1] == pytest.approx(rmse(estimates[:, 0].mean(axis=1), y))


def test_points_in_blocks_give_what_they_give_at_once(members, test_points, monkeypatch):
    whole = ensemble_curves(members, *test_points, (1, 3))
    monkeypatch.setattr("benchmarks.reproduction.networks._BLOCK", 3 * 40 * 7)
    parts = ensemble_curves(members, *test_points, (1, 3))
    for name, expected in whole.items():
        np.testing.assert_allclose(parts[name], expected)
