from copy import copy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge_export.deviations import Evaluator

ROWS = np.arange(0, 80, 10)


@pytest.fixture(scope="module")
def points(curve):
    X, y = curve
    return (X[80:100], y[80:100]), (X[100:], y[100:])


@pytest.fixture(scope="module")
def evaluator(tiny_twin, points):
    return Evaluator.of(tiny_twin, ROWS, 0, *points)


@pytest.fixture(scope="module")
def spread(evaluator, tiny_twin):
    return tiny_twin.spread(evaluator.points[0], anchors=ROWS)


def device(mean, spread):
    """A loaded file that predicts by these functions."""
    return SimpleNamespace(
        predict=mean, predict_all=lambda x: SimpleNamespace(mean=mean(x), spread=spread(x))
    )


def both(model, **options):
    """A float model, as a file."""
    return device(partial(model.predict, **options), partial(model.spread, **options))


def test_the_float_model_itself_costs_nothing(evaluator, tiny_twin, spread):
    score = evaluator.score(both(tiny_twin, anchors=ROWS), spread)
    assert score.cost == score.spread_cost == score.tolerance == 0
    assert score.largest_deviation == 0
    assert score.ratio_to_float == pytest.approx(
        evaluator.exported_rmse / evaluator.all_anchors.rmse
    )


def test_all_anchors_are_the_yardstick_of_the_ratio(evaluator, tiny_twin, points, spread):
    score = evaluator.score(both(tiny_twin), spread)
    assert score.ratio_to_float == 1
    assert score.rmse == pytest.approx(tiny_twin.rmse(*points[0]))
    assert (
        score.rmse_test
        == evaluator.all_anchors_test.rmse
        == pytest.approx(tiny_twin.rmse(*points[1]))
    )


def test_an_offset_shows_as_deviation_and_cost(evaluator, tiny_twin, spread):
    offset = device(lambda x: tiny_twin.predict(x, anchors=ROWS) + 100, lambda x: spread)
    score = evaluator.score(offset, spread)
    assert score.largest_deviation == pytest.approx(100)
    assert score.cost > 1


def test_a_lucky_deviation_costs_what_it_costs_elsewhere(evaluator, tiny_twin, points, spread):
    y = points[0][1]

    # Halfway from the prediction to the target, which no rounding can know.
    closer = device(lambda x: (tiny_twin.predict(x, anchors=ROWS) + y) / 2, lambda x: spread)
    lucky = Evaluator.of(tiny_twin, ROWS, 0, points[0], None).score(closer, spread)
    assert lucky.rmse < evaluator.exported_rmse
    assert lucky.cost == pytest.approx(np.hypot(1, 0.5) - 1)


def test_without_test_points_there_is_no_test_error(tiny_twin, points, spread):
    evaluator = Evaluator.of(tiny_twin, ROWS, 0, points[0], None)
    assert evaluator.all_anchors_test is None
    assert evaluator.score(both(tiny_twin), spread).rmse_test is None


def test_neighbors_predict_where_they_will_on_the_device(tiny_twin, points):
    evaluator = Evaluator.of(tiny_twin, ROWS, 3, *points)
    np.testing.assert_array_equal(
        evaluator.predictions, tiny_twin.predict(points[0][0], anchors=ROWS, neighbors=3)
    )


def test_a_file_that_predicts_no_numbers_is_refused(evaluator, complaint, spread):
    good = np.zeros(20)
    for bad in (np.full(20, np.nan), np.zeros(3)):
        for mean, spreads in ((bad, good), (good, bad)):
            found = device(lambda x, mean=mean: mean, lambda x, spreads=spreads: spreads)
            assert "finite numbers" in complaint(evaluator.score, found, spread)


def test_a_spread_far_below_the_error_is_no_yardstick(evaluator, tiny_twin):
    small = 1e-6 * evaluator.exported_rmse
    found = device(partial(tiny_twin.predict, anchors=ROWS), lambda x: np.full(len(x), 10 * small))
    tenfold = evaluator.score(found, np.full(20, small))
    assert 0 < tenfold.spread_cost < 0.001


def test_of_spread_and_calibrated_scale_the_closer_one_counts(evaluator, tiny_twin, spread):
    X, scale = evaluator.points[0], np.linspace(1, 2, 20)

    def score(factor_of_spread, factor_of_scale):
        found = SimpleNamespace(
            mean=tiny_twin.predict(X, anchors=ROWS),
            spread=factor_of_spread * spread,
            scale=factor_of_scale * scale,
        )
        file = SimpleNamespace(predict_all=lambda x: found, predict=None)
        return replace(evaluator, test=(X[:0], scale[:0])).score(file, spread, scale)

    one = score(1.5, 1.1)
    assert (one.spread_cost, one.scale_cost) == (pytest.approx(0.5), pytest.approx(0.1))
    assert one.tolerance == pytest.approx(0.1 / 2.5)
    assert one.describe_uncertainty(0.05) == ""
    assert one.describe_uncertainty(0.03) == "10.0 % off in the scale"
    assert score(0.9, 0.5).describe_cost(0.03) == "0.0 % and is 10.0 % off in the spread"


@pytest.mark.parametrize("neighbors", [0, 3])
def test_the_yardstick_has_all_anchors_whatever_the_model_predicts_with(
    tiny_twin, points, neighbors
):
    X, y = points[0]
    few = copy(tiny_twin).set_params(anchors=16)
    everyone = tiny_twin.predict(X, anchors="all", neighbors=neighbors or None)
    assert not np.array_equal(few.predict(X, neighbors=neighbors or None), everyone)
    evaluator = Evaluator.of(few, ROWS, neighbors, *points)
    assert evaluator.all_anchors == (pytest.approx(np.sqrt(np.mean((everyone - y) ** 2))), 80, 80)
    assert evaluator.all_anchors_test.is_exact
    assert evaluator.all_anchors.words == "with all anchors"


def test_some_of_many_anchors_stand_for_all(tiny_twin, points, spread, monkeypatch):
    monkeypatch.setattr("twinedge.anchors.pool._FEWEST_ANCHORS", 5)
    each = 2 * tiny_twin.weights_.size * 20  # multiply-adds of an anchor with all points
    monkeypatch.setattr("twinedge.anchors.pool._MOST_WORK", 40 * each)
    evaluator = Evaluator.of(tiny_twin, ROWS, 0, *points)
    X, y = points[0]
    found = np.sqrt(np.mean((tiny_twin.predict(X, anchors=40) - y) ** 2))
    assert evaluator.all_anchors == (pytest.approx(found), 40, 80)
    assert evaluator.all_anchors.words == "with all 80 anchors, by 40 of them"
    assert evaluator.score(both(tiny_twin), spread).ratio_to_float == pytest.approx(1, rel=0.1)
    # Nearest anchors take no longer with more anchors; and there is a minimum.
    assert Evaluator.of(tiny_twin, ROWS, 3, *points).all_anchors.is_exact
    monkeypatch.setattr("twinedge.anchors.pool._MOST_WORK", 0)
    assert Evaluator.of(tiny_twin, ROWS, 0, *points).all_anchors.sample == 5


def test_without_validation_points_files_are_scored_on_training_points(tiny_twin, points):
    (X, y), _ = points
    for nothing in (None, (X[:0], y[:0])):
        evaluator = Evaluator.of(tiny_twin, ROWS, 0, nothing, None)
        assert evaluator.name == "training"
        assert evaluator.all_anchors.rmse == pytest.approx(
            tiny_twin.rmse(tiny_twin.anchor_X_, tiny_twin.anchor_y_)
        )
    assert Evaluator.of(tiny_twin, ROWS, 0, *points).name == "validation"
