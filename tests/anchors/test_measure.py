import numpy as np
import pytest

from twinedge.anchors import METHODS, Point, choose, curve, recommend, rmse
from twinedge.anchors.choice import held_out, preferred
from twinedge.anchors.curves import Measurement, measure
from twinedge.anchors.pool import Evidence
from twinedge.progress import Progress


def test_points_are_those_of_the_curve(tiny_twin, curve_points):
    validation = curve_points
    found = measure(tiny_twin, validation, counts=[2, 8], seed=3)
    together = curve(
        *(tiny_twin.anchor_X_, tiny_twin.anchor_y_, tiny_twin, validation),
        counts=[2, 8],
        methods=found.methods,
        seed=3,
    )
    assert [point[:2] for point in found.points] == [point[:2] for point in together]
    errors = [[point.rmse_val for point in points] for points in (found.points, together)]
    np.testing.assert_array_equal(*errors)
    assert found.rmse_all == rmse(tiny_twin, validation)
    assert (found.training_points, found.validation_points) == (80, 40)
    assert (found.counts, set(found.methods)) == ((2, 8), {"auto", *METHODS})


@pytest.fixture(scope="session")
def curve_points(curve):
    X, y = curve
    return X[80:], y[80:]


def test_of_few_points_all_are_measured_too(oracle):
    found = measure(*oracle(n=9))
    assert found.counts == (1, 2, 4, 8, 9)
    assert found.recommended().within
    assert measure(*oracle(n=9, twins=4), methods=["xy"]).counts == (4, 8)


def test_progress_names_each_method_before_it_begins(oracle, monkeypatch):
    model, validation = oracle()
    shown = []

    class Recorded(Progress):
        def at(self, title, done, total):
            shown.append((title, done, total))

    monkeypatch.setattr("twinedge.progress.Progress", Recorded)
    measure(model, validation, methods=["xy", "random"])
    assert shown == [("xy", 0, 2), ("random", 1, 2)]


def test_the_same_seed_gives_the_same_measurement(oracle):
    model, validation = oracle()
    assert measure(model, validation, seed=1) == measure(model, validation, seed=1)
    assert measure(model, validation, seed=1) != measure(model, validation, seed=2)


def test_all_methods_are_measured_on_the_points_that_greedy_has_room_for(oracle, monkeypatch):
    model, validation = oracle(v=100, n=60)
    monkeypatch.setattr("twinedge.anchors.methods._TABLE", 30 * 60)
    found = measure(model, validation, counts=[4], methods=["random", "greedy"], seed=1)
    alone = measure(model, validation, counts=[4], methods=["random"], seed=1)
    assert (found.validation_points, alone.validation_points) == (30, 30)
    assert found.rmse_all == alone.rmse_all != rmse(model, validation)
    assert found.points[0] == alone.points[0]


def test_too_few_validation_points_for_greedy_leave_it_out(oracle):
    found = measure(*oracle(v=19), counts=[2])
    assert set(found.methods) == {"auto", *METHODS} - {"greedy"}


def test_random_and_greedy_points_are_not_recommended_beside_others():
    points = (Point("xy", 8, 1.0), Point("xy", 4, 1.2), Point("random", 2, 0.9))
    points += (Point("greedy", 1, 0.8),)
    found = Measurement(points, 1.0, 100, 20, 0.01)
    assert found.recommended() == (8, "xy", 1.0, True)
    assert found.smallest("random") == ("random", 2, 0.9)
    assert found.smallest("xy") == ("xy", 8, 1.0)
    assert Measurement(points[2:3], 1.0, 100, 20, 0.01).recommended() == (2, "random", 0.9, True)
    assert Measurement(points[3:], 1.0, 100, 20, 0.01).recommended() == (1, "greedy", 0.8, True)
    assert found.counts == (1, 2, 4, 8)


def test_where_none_is_as_good_as_all_the_most_are_recommended():
    points = (Point("xy", 4, 0.9), Point("xy", 8, 1.2), Point("medoids", 8, 1.1))
    found = Measurement(points, 1.0, 100, 20, 0.01)
    assert found.smallest("xy") is None
    assert found.recommended() == (8, "medoids", 1.1, False)


def test_what_auto_comes_to_is_recommended(tiny_twin, curve_points):
    found = measure(tiny_twin, curve_points, seed=2)
    best = found.recommended()
    mine = found.smallest("auto")
    assert (best.k, best.rmse_val) == mine[1:]
    assert best.method == found.winners[best.k]
    assert found.winners.keys() == set(found.counts)


def test_the_same_is_recommended_whatever_else_is_measured(four_twins, curve_points):
    seed = 1
    whole = measure(four_twins, curve_points, seed=seed).recommended()
    assert recommend(four_twins, curve_points, seed=seed) == whole
    given = four_twins.anchor_X_, four_twins.anchor_y_, whole.k
    choice = choose(*given, model=four_twins, validation=curve_points, twins=4, seed=seed)
    assert choice.method == whole.method


def test_auto_is_scored_on_points_that_did_not_choose():
    # Three methods with a mean square of 1 differ by chance alone, by 0.22 over 40 points: the best
    # of them has 0.81 where it is chosen, and 1 elsewhere. The first is always overruled.
    rng = np.random.default_rng(0)
    own, honest = [], []
    for _ in range(100):
        errors = {name: rng.chisquare(1, 40) for name in ("match", "xy", "medoids", "stratified")}
        errors["match"] += 3
        own.append(errors[preferred(errors)].mean())
        honest.append(held_out(errors, np.array_split(rng.permutation(40), 5)).mean())
    assert np.mean(own) == pytest.approx(0.81, abs=0.06)
    assert np.mean(honest) == pytest.approx(1, abs=0.08)


def test_points_that_belong_together_are_scored_together(oracle):
    model, (X, y) = oracle(v=60)
    model.validation_, model.validation_groups_ = (X, y), np.repeat(np.arange(12), 5)
    folds = Evidence.of(model, (X, y)).folds(3)
    assert np.array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    owners = [set(model.validation_groups_[fold]) for fold in folds]
    assert sum(map(len, owners)) == 12
    assert len(folds) == 5
    other = Evidence.of(model, (X[:50], y[:50]))  # other points than those with the groups
    assert other.groups is None
    assert [len(fold) for fold in other.folds(3)] == [10] * 5


def test_more_anchors_than_points_are_all_of_them(oracle):
    model, validation = oracle(n=9)
    found = measure(model, validation, counts=[4, 32, 64], methods=["xy"])
    assert (found.counts, found.beyond) == ((4, 9), (32, 64))
    assert found.points[-1].rmse_val == pytest.approx(found.rmse_all)
    four, validation = oracle(n=9, twins=4)
    assert measure(four, validation, counts=[32], methods=["xy"]).counts == (8,)


def test_without_validation_points_nothing_is_measured(complaint, oracle):
    model, (X, y) = oracle()
    assert "no validation points" in complaint(measure, model, (X[:0], y[:0]))
