import numpy as np
import pytest

from twinedge.anchors import METHODS, Point, curve, greedy, rmse
from twinedge.anchors.measure import Measurement, measure


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
    np.testing.assert_allclose(*errors, rtol=1e-4)
    assert found.rmse_all == rmse(tiny_twin, validation)
    assert (found.training_points, found.validation_points) == (80, 40)
    assert (found.counts, set(found.methods)) == ((2, 8), set(METHODS))


@pytest.fixture(scope="session")
def curve_points(curve):
    X, y = curve
    return X[80:], y[80:]


def test_every_twin_gets_its_share(four_twins, curve_points):
    assert measure(four_twins, curve_points, methods=["xy"]).counts == (4, 8, 16, 32)


def test_progress_names_each_method_before_it_begins(oracle):
    model, validation = oracle()
    told = []
    measure(model, validation, methods=["xy", "random"], progress=lambda *said: told.append(said))
    assert told == [("xy", 0, 2), ("random", 1, 2)]


def test_the_same_seed_gives_the_same_measurement(oracle):
    model, validation = oracle()
    assert measure(model, validation, seed=1) == measure(model, validation, seed=1)
    assert measure(model, validation, seed=1) != measure(model, validation, seed=2)


def test_all_methods_are_measured_on_the_points_that_greedy_has_room_for(oracle, monkeypatch):
    model, validation = oracle(v=100, n=60)
    monkeypatch.setattr(greedy, "_TABLE", 30 * 60)
    found = measure(model, validation, counts=[4], methods=["random", "greedy"], seed=1)
    alone = measure(model, validation, counts=[4], methods=["random"], seed=1)
    assert (found.validation_points, alone.validation_points) == (30, 100)
    assert found.rmse_all != alone.rmse_all
    assert found.points[0].rmse_val != alone.points[0].rmse_val


def test_too_few_validation_points_for_greedy_leave_it_out(oracle):
    found = measure(*oracle(v=19), counts=[2])
    assert set(found.methods) == METHODS.keys() - {"greedy"}


def test_random_points_are_not_named_beside_others():
    points = (Point("xy", 8, 1.0), Point("xy", 4, 1.2), Point("random", 2, 0.9))
    found = Measurement(points, 1.0, 100, 20, 0.01)
    assert found.smallest() == ("xy", 8, 1.0)
    assert found.smallest("random") == ("random", 2, 0.9)
    assert found.smallest("xy") == ("xy", 8, 1.0)
    assert Measurement(points[2:], 1.0, 100, 20, 0.01).smallest() == ("random", 2, 0.9)
    assert Measurement(points, 0.5, 100, 20, 0.01).smallest() is None
    assert found.counts == (2, 4, 8)


def test_without_validation_points_nothing_is_measured(complaint, oracle):
    model, (X, y) = oracle()
    assert "no validation points" in complaint(measure, model, (X[:0], y[:0]))
