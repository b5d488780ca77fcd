from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from twinedge.progress import Progress
from twinedge_export.job import Job, Judge, Level, RoundingError

ROWS = np.arange(0, 80, 10)


@pytest.fixture(scope="module")
def points(curve):
    X, y = curve
    return (X[80:100], y[80:100]), (X[100:], y[100:])


@pytest.fixture(scope="module")
def judge(tiny_twin, points):
    return Judge.of(tiny_twin, ROWS, 0, *points)


@pytest.fixture(scope="module")
def spread(judge, tiny_twin):
    return tiny_twin.spread(judge.points[0], anchors=ROWS)


def both(model, **options):
    """Mean and spread of a float model, as from a file."""
    return lambda x: (model.predict(x, **options), model.spread(x, **options))


def test_the_float_model_itself_costs_nothing(judge, tiny_twin, spread):
    score = judge.score(both(tiny_twin, anchors=ROWS), spread)
    assert score.cost == score.spread_cost == score.tolerance == 0
    assert score.largest_deviation == 0
    assert score.ratio_to_float == pytest.approx(judge.same_rmse / judge.everyone.rmse)


def test_all_anchors_are_the_yardstick_of_the_ratio(judge, tiny_twin, points, spread):
    score = judge.score(both(tiny_twin), spread)
    assert score.ratio_to_float == 1
    assert score.rmse == pytest.approx(tiny_twin.rmse(*points[0]))
    assert score.rmse_test == judge.everyone_test.rmse == pytest.approx(tiny_twin.rmse(*points[1]))


def test_an_offset_shows_as_deviation_and_cost(judge, tiny_twin, spread):
    predict = tiny_twin.predict
    score = judge.score(lambda x: (predict(x, anchors=ROWS) + 100, spread[: len(x)]), spread)
    assert score.largest_deviation == pytest.approx(100)
    assert score.cost > 1


def test_a_lucky_deviation_costs_what_it_would_on_other_points(judge, tiny_twin, points, spread):
    y = points[0][1]

    def closer(x):
        """Halfway from the prediction to the truth, which no rounding can know."""
        mean, spread = both(tiny_twin, anchors=ROWS)(x)
        return (mean + y) / 2, spread

    lucky = Judge.of(tiny_twin, ROWS, 0, points[0], None).score(closer, spread)
    assert lucky.rmse < judge.same_rmse
    assert lucky.cost == pytest.approx(np.hypot(1, 0.5) - 1)


def test_without_test_points_there_is_no_test_error(tiny_twin, points, spread):
    judge = Judge.of(tiny_twin, ROWS, 0, points[0], None)
    assert judge.everyone_test is None
    assert judge.score(both(tiny_twin), spread).rmse_test is None


def test_neighbors_predict_where_they_will_on_the_device(tiny_twin, points):
    judge = Judge.of(tiny_twin, ROWS, 3, *points)
    np.testing.assert_array_equal(
        judge.same, tiny_twin.predict(points[0][0], anchors=ROWS, neighbors=3)
    )


def test_a_file_that_predicts_no_numbers_is_refused(judge, complaint, spread):
    good = np.zeros(20)
    for bad in (np.full(20, np.nan), np.zeros(3)):
        assert "finite numbers" in complaint(judge.score, lambda x, bad=bad: (bad, good), spread)
        assert "finite numbers" in complaint(judge.score, lambda x, bad=bad: (good, bad), spread)


@pytest.fixture
def job(tiny_twin, judge, tmp_path):
    return Job(tiny_twin, (ROWS,), 0, judge, 0.02, tmp_path, {}, Progress())


@pytest.fixture
def level(tiny_twin):
    """Make a level of the float model itself: ``level(made, make)``."""
    return lambda made, make: Level(made, make, lambda: tiny_twin)


def offset_by(tiny_twin):
    """A runtime for files that hold an offset of predictions and a factor of spreads."""

    def load(path):
        number, *times = map(float, path.read_text().split())
        mean, spread = tiny_twin.predict, tiny_twin.spread
        return lambda x: (
            mean(x, anchors=ROWS) + number,
            spread(x, anchors=ROWS) * (times or [1.0])[0],
        )

    return load


def test_the_first_level_within_the_tolerance_is_written(job, tiny_twin, level):
    levels = [
        level("coarse", lambda: b"9"),
        level("fine", lambda: b"0"),
        level("finer", lambda: 1 / 0),
    ]
    file = job.climb("kind", "model.txt", levels, offset_by(tiny_twin))
    assert (file.kind, file.made, file.bytes) == ("kind", "fine", 1)
    assert file.path.read_bytes() == b"0"
    assert file.score.cost == 0


def test_a_file_beyond_the_tolerance_is_named_and_taken_away(job, tiny_twin, level, complaint):
    levels = [level("coarse", lambda: b"9"), level("less so", lambda: b"8")]
    message = complaint(job.climb, "kind", "model.txt", levels, offset_by(tiny_twin))
    assert message.startswith("model.txt: ")
    for word in ("coarse", "less so", "tolerance=0.02"):
        assert word in message
    assert not list(job.folder.iterdir())


def test_a_file_whose_spread_is_off_gives_way_to_one_whose_is_not(job, tiny_twin, level):
    levels = [level("coarse", lambda: b"0 1.2"), level("fine", lambda: b"0 1.04")]
    file = job.climb("kind", "model.txt", levels, offset_by(tiny_twin))
    assert file.made == "fine"
    assert (file.score.cost, file.score.spread_cost) == (0, pytest.approx(0.04))


def test_a_spread_beyond_the_tolerance_is_named_and_the_file_taken_away(
    job, tiny_twin, level, complaint
):
    levels = [level("coarse", lambda: b"0 1.2"), level("less so", lambda: b"9 0.98")]
    load = offset_by(tiny_twin)
    message = complaint(job.climb, "kind", "model.txt", levels, load)
    assert "0.0 % and is 20.0 % off in the spread (coarse)" in message
    assert message.count("spread") == 1
    assert "tolerance=0.02" in message
    assert not list(job.folder.iterdir())
    with pytest.raises(RoundingError) as refused:
        job.climb("kind", "model.txt", levels[:1], load)
    wider = replace(job, tolerance=1.001 * refused.value.cost)
    assert wider.climb("kind", "model.txt", levels[:1], load).made == "coarse"


def test_a_spread_far_below_the_error_is_no_yardstick(judge, tiny_twin):
    predict, small = tiny_twin.predict, 1e-6 * judge.same_rmse
    tenfold = judge.score(
        lambda x: (predict(x, anchors=ROWS), np.full(len(x), 10 * small)), np.full(20, small)
    )
    assert 0 < tenfold.spread_cost < 0.001


@pytest.mark.parametrize("neighbors", [0, 3])
def test_the_yardstick_has_all_anchors_whatever_the_model_predicts_with(
    tiny_twin, points, neighbors
):
    X, y = points[0]
    few = copy(tiny_twin).set_params(anchors=16)
    everyone = tiny_twin.predict(X, anchors="all", neighbors=neighbors or None)
    assert not np.array_equal(few.predict(X, neighbors=neighbors or None), everyone)
    judge = Judge.of(few, ROWS, neighbors, *points)
    assert judge.everyone == (pytest.approx(np.sqrt(np.mean((everyone - y) ** 2))), 80, 80)
    assert judge.everyone_test.is_exact
    assert judge.everyone.words == "with all anchors"


def test_some_of_many_anchors_stand_for_all(tiny_twin, points, spread, monkeypatch):
    monkeypatch.setattr("twinedge.anchors.pool._FEWEST_ANCHORS", 5)
    each = 2 * tiny_twin.weights_.size * 20  # multiply-adds of an anchor with all points
    monkeypatch.setattr("twinedge.anchors.pool._MOST_WORK", 40 * each)
    judge = Judge.of(tiny_twin, ROWS, 0, *points)
    X, y = points[0]
    found = np.sqrt(np.mean((tiny_twin.predict(X, anchors=40) - y) ** 2))
    assert judge.everyone == (pytest.approx(found), 40, 80)
    assert judge.everyone.words == "with all 80 anchors, by 40 of them"
    assert judge.score(both(tiny_twin), spread).ratio_to_float == pytest.approx(1, rel=0.1)
    # Nearest anchors take no longer with more anchors; and there is a minimum.
    assert Judge.of(tiny_twin, ROWS, 3, *points).everyone.is_exact
    monkeypatch.setattr("twinedge.anchors.pool._MOST_WORK", 0)
    assert Judge.of(tiny_twin, ROWS, 0, *points).everyone.sample == 5


def test_without_validation_points_the_training_points_judge(tiny_twin, points):
    (X, y), _ = points
    for nothing in (None, (X[:0], y[:0])):
        judge = Judge.of(tiny_twin, ROWS, 0, nothing, None)
        assert judge.name == "training"
        assert judge.everyone.rmse == pytest.approx(
            tiny_twin.rmse(tiny_twin.anchor_X_, tiny_twin.anchor_y_)
        )
    assert Judge.of(tiny_twin, ROWS, 0, *points).name == "validation"
