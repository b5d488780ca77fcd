"""Errors of ensembles of each kind and size, as in the paper's figure of them."""

import numpy as np
import pytest

from benchmarks.reproduction.networks import ensemble_curves
from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor


def rmse(prediction, y):
    return np.sqrt(np.mean((prediction - y) ** 2))


@pytest.fixture
def test_points(curve):
    X, y = curve
    return X[100:], y[100:]


@pytest.fixture(scope="module")
def networks(curve):
    X, y = curve
    base = AnnRegressor(
        hidden=(8,), activation="silu", learning_rate=0.01, weight_decay=0.003, steps=200
    )
    return EnsembleRegressor(base, 4, random_state=0).fit(X[:60], y[:60])


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


def test_several_twins_are_the_first_so_many_with_all_their_anchors(four_twins, test_points):
    X, y = test_points
    found = ensemble_curves(four_twins, None, X, y, (1, 3, 4))
    assert {*found} == {"anchors", "twins", "single_anchor"}
    each = four_twins.estimates(X).reshape(len(X), 4, 60).mean(axis=2)
    expected = [rmse(each[:, :size].mean(axis=1), y) for size in (1, 3, 4)]
    np.testing.assert_allclose(found["twins"], expected)
    assert found["twins"][2] == pytest.approx(four_twins.rmse(X, y))


def test_members_of_an_ensemble_will_do_for_twins_side_by_side(members, test_points):
    X, y = test_points
    found = ensemble_curves(members, None, X, y, (1, 3))
    assert found["twins"][0] == pytest.approx(members.members_[0].rmse(X, y))
    assert found["twins"][1] == pytest.approx(rmse(members.predict(X), y))


def test_ordinary_networks_are_the_first_so_many(four_twins, networks, test_points):
    X, y = test_points
    found = ensemble_curves(four_twins, networks, X, y, (1, 4))["networks"]
    assert found[0] == pytest.approx(networks.members_[0].rmse(X, y))
    assert found[1] == pytest.approx(rmse(networks.predict(X), y))


def test_where_there_are_not_so_many_members_there_is_no_error(four_twins, networks, test_points):
    found = ensemble_curves(four_twins, networks, *test_points, (1, 4, 5, 60, 61))
    known = {name: list(np.isfinite(errors)) for name, errors in found.items()}
    four = [True, True, False, False, False]
    assert known == {
        "anchors": [True, True, True, True, False],
        "twins": four,
        "single_anchor": four,
        "networks": four,
    }


def test_anchors_are_drawn_for_each_point_and_each_single_one_has_its_twin(four_twins, test_points):
    X, y = test_points
    estimates = four_twins.estimates(X).reshape(len(X), 4, 60)
    rows, all_anchors = np.arange(len(X)), np.broadcast_to(np.arange(60), (len(X), 60))
    order = np.random.default_rng(7).permuted(all_anchors, axis=1)
    found = ensemble_curves(four_twins, None, X, y, (3, 60), seed=7)
    one_twin = np.mean([estimates[rows, 0, order[:, k]] for k in range(3)], axis=0)
    three_twins = np.mean([estimates[rows, k, order[:, k]] for k in range(3)], axis=0)
    assert found["anchors"][0] == pytest.approx(rmse(one_twin, y))
    assert found["single_anchor"][0] == pytest.approx(rmse(three_twins, y))
    # All of them once each: none is drawn twice.
    assert found["anchors"][1] == pytest.approx(rmse(estimates[:, 0].mean(axis=1), y))


def test_points_in_blocks_give_what_they_give_at_once(four_twins, test_points, monkeypatch):
    X, y = test_points
    whole = ensemble_curves(four_twins, None, X, y, (1, 4))
    monkeypatch.setattr("benchmarks.reproduction.networks._BLOCK", 4 * 60 * 7)
    parts = ensemble_curves(four_twins, None, X, y, (1, 4))
    for name, expected in whole.items():
        np.testing.assert_allclose(parts[name], expected)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((), "must not be empty"), ((0,), "sizes=0"), ((1.5,), "sizes=1.5")],
    ids=str,
)
def test_sizes_that_cannot_be_are_refused(complaint, four_twins, test_points, sizes, words):
    assert words in complaint(ensemble_curves, four_twins, None, *test_points, sizes)


def test_twins_trained_on_neighbors_are_refused(complaint, curve, tiny, test_points):
    model = TwinRegressor(**{**tiny, "steps": 20}, pairs="neighbors").fit(*curve)
    assert "neighbors" in complaint(ensemble_curves, model, None, *test_points, (1,))
