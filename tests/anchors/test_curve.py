import numpy as np
import pytest

from twinedge.anchors import Point, curve, rmse, select, smallest_within


def measured(model, validation, **options):
    twins = len(model.weights_)
    return curve(model.anchor_X_, model.anchor_y_, model, validation, twins=twins, **options)


def test_points_are_those_of_the_rows_that_select_gives(tiny_twin, curve):
    X, y = curve
    validation = X[80:], y[80:]
    methods = ["random", "farthest", "xy", "match"]
    points = measured(tiny_twin, validation, counts=[1, 4, 20], methods=methods, seed=2)
    assert [point[:2] for point in points] == [(m, k) for m in methods for k in (1, 4, 20)]
    for method, k, error in points:
        rows = select(tiny_twin.anchor_X_, tiny_twin.anchor_y_, k, method, model=tiny_twin, seed=2)
        assert error == pytest.approx(rmse(tiny_twin, validation, rows), rel=1e-4)


def test_by_default_counts_double_up_to_all_rows(tiny_twin, curve):
    X, y = curve
    points = measured(tiny_twin, (X[80:], y[80:]))
    assert {point.k for point in points} == {1, 2, 4, 8, 16, 32, 64}
    assert {point.method for point in points} == {
        "match",
        "xy",
        "medoids",
        "stratified",
        "farthest",
        "greedy",
    }


def test_by_default_every_twin_gets_as_many(four_twins, curve):
    X, y = curve
    points = measured(four_twins, (X[80:], y[80:]), methods=["medoids"])
    assert [point.k for point in points] == [4, 8, 16, 32, 60]
    rows = select(four_twins.anchor_X_, four_twins.anchor_y_, 8, "medoids", twins=4)
    truth = rmse(four_twins, (X[80:], y[80:]), rows)
    assert points[1].rmse_val == pytest.approx(truth, rel=1e-4)


def test_greedy_is_scored_on_points_it_has_not_seen(oracle):
    model, validation = oracle(v=40, n=200, bias=0)
    points = measured(model, validation, counts=[4], methods=["greedy"])
    rows = select(model.anchor_X_, model.anchor_y_, 4, "greedy", model=model, validation=validation)
    assert points[0].rmse_val > 1.3 * rmse(model, validation, rows)


def test_greedy_points_end_where_its_candidates_do(oracle, monkeypatch):
    monkeypatch.setattr("twinedge.anchors.curves.MOST_CANDIDATES", 10)
    monkeypatch.setattr("twinedge.anchors.methods.MOST_CANDIDATES", 10)
    model, validation = oracle(n=50)
    points = measured(model, validation, counts=[4, 16], methods=["greedy", "random"])
    assert [point[:2] for point in points] == [("greedy", 4), ("random", 4), ("random", 16)]


def test_memory_is_bounded(oracle, monkeypatch):
    model, validation = oracle(v=100, n=80, twins=2)
    whole = measured(model, validation)
    assert max(model.calls) > 1000
    model.calls.clear()
    monkeypatch.setattr("twinedge.anchors.pool._BLOCK", 1000)
    monkeypatch.setattr("twinedge.anchors.pool.cpu_count", lambda: 4)
    for one, other in zip(measured(model, validation), whole, strict=True):
        assert one[:2] == other[:2]
        assert one.rmse_val == pytest.approx(other.rmse_val)
    assert 4 * max(model.calls) <= 1000


def test_the_fewest_anchors_within_the_tolerance_are_found():
    points = [
        Point("xy", 4, 1.2),
        Point("xy", 8, 1.009),
        Point("xy", 16, 0.99),
        Point("greedy", 8, 1.001),
        Point("greedy", 16, 0.9),
    ]
    assert smallest_within(points, 1.0) == Point("greedy", 8, 1.001)
    assert smallest_within(points, 1.0, 0.3) == Point("xy", 4, 1.2)
    assert smallest_within(points, 1.0, 0.0) == Point("greedy", 16, 0.9)
    assert smallest_within(points, 0.5) is None
    assert smallest_within([], 1.0) is None


def test_a_lucky_number_with_worse_ones_above_it_is_not_enough():
    points = [Point("xy", 1, 0.9), Point("xy", 2, 1.5), Point("xy", 4, 1.0), Point("xy", 8, 1.0)]
    assert smallest_within(points, 1.0) == Point("xy", 4, 1.0)
    assert smallest_within([*points, Point("xy", 16, 1.5)], 1.0) is None


def test_rmse_is_that_of_all_anchors_by_default(tiny_twin, curve):
    X, y = curve
    error = tiny_twin.predict(X[80:], anchors="all") - y[80:]
    assert rmse(tiny_twin, (X[80:], y[80:])) == pytest.approx(np.sqrt(np.mean(error**2)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"counts": []}, "one number"),
        ({"counts": [0]}, "positive"),
        ({"counts": [61]}, "more than the 60"),
        ({"methods": []}, "one method"),
        ({"methods": ["all"]}, "auto, random, medoids, farthest, stratified, xy, match, greedy"),
    ],
)
def test_what_cannot_be_measured_is_refused(complaint, oracle, options, words):
    assert words in complaint(measured, *oracle(), **options)


def test_too_few_points_to_score_greedy_are_refused(complaint, oracle):
    model, validation = oracle(v=19)
    assert "20 validation points" in complaint(measured, model, validation, methods=["greedy"])
    assert "greedy" not in {point.method for point in measured(model, validation)}
