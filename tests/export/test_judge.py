from copy import copy

import numpy as np
import pytest

from twinedge_export.job import Job, Judge, Level

ROWS = np.arange(0, 80, 10)


@pytest.fixture(scope="module")
def points(curve):
    X, y = curve
    return (X[80:100], y[80:100]), (X[100:], y[100:])


@pytest.fixture(scope="module")
def judge(tiny_twin, points):
    return Judge.of(tiny_twin, ROWS, 0, *points)


def test_the_float_model_itself_costs_nothing(judge, tiny_twin):
    score = judge.score(lambda x: tiny_twin.predict(x, anchors=ROWS))
    assert score.cost == 0
    assert score.largest_deviation == 0
    assert score.ratio_to_float == pytest.approx(judge.same_rmse / judge.everyone.rmse)


def test_all_anchors_are_the_yardstick_of_the_ratio(judge, tiny_twin, points):
    score = judge.score(tiny_twin.predict)
    assert score.ratio_to_float == 1
    assert score.rmse == pytest.approx(tiny_twin.rmse(*points[0]))
    assert score.rmse_test == judge.everyone_test.rmse == pytest.approx(tiny_twin.rmse(*points[1]))


def test_an_offset_shows_as_deviation_and_cost(judge, tiny_twin):
    score = judge.score(lambda x: tiny_twin.predict(x, anchors=ROWS) + 100)
    assert score.largest_deviation == pytest.approx(100)
    assert score.cost > 1


def test_a_lucky_deviation_costs_what_it_would_on_other_points(judge, tiny_twin, points):
    y = points[0][1]

    def closer(x):
        """Half way from the prediction to the truth, which no rounding can know."""
        return (tiny_twin.predict(x, anchors=ROWS) + y) / 2

    lucky = Judge.of(tiny_twin, ROWS, 0, points[0], None).score(closer)
    assert lucky.rmse < judge.same_rmse
    assert lucky.cost == pytest.approx(np.hypot(1, 0.5) - 1)


def test_without_test_points_there_is_no_test_error(tiny_twin, points):
    judge = Judge.of(tiny_twin, ROWS, 0, points[0], None)
    assert judge.everyone_test is None
    assert judge.score(tiny_twin.predict).rmse_test is None


def test_neighbors_predict_where_they_will_on_the_device(tiny_twin, points):
    judge = Judge.of(tiny_twin, ROWS, 3, *points)
    np.testing.assert_array_equal(
        judge.same, tiny_twin.predict(points[0][0], anchors=ROWS, neighbors=3)
    )


def test_a_file_that_predicts_no_numbers_is_refused(judge, complaint):
    assert "not a number" in complaint(judge.score, lambda x: np.full(len(x), np.nan))
    assert "not a number" in complaint(judge.score, lambda x: np.zeros(3))


@pytest.fixture
def job(tiny_twin, judge, tmp_path):
    said = []
    return Job(tiny_twin, (ROWS,), 0, judge, 0.02, tmp_path, {}, said.append)


def offset_by(tiny_twin):
    """A runtime for files that hold the number to add to the prediction."""

    def load(path):
        number = float(path.read_text())
        return lambda x: tiny_twin.predict(x, anchors=ROWS) + number

    return load


def test_the_first_level_within_the_tolerance_is_written(job, tiny_twin):
    levels = [
        Level("coarse", lambda: b"9"),
        Level("fine", lambda: b"0"),
        Level("finer", lambda: 1 / 0),
    ]
    file = job.climb("kind", "model.txt", levels, offset_by(tiny_twin))
    assert (file.kind, file.made, file.bytes) == ("kind", "fine", 1)
    assert file.path.read_bytes() == b"0"
    assert file.score.cost == 0


def test_a_file_beyond_the_tolerance_is_named_and_taken_away(job, tiny_twin, complaint):
    levels = [Level("coarse", lambda: b"9"), Level("less so", lambda: b"8")]
    message = complaint(job.climb, "kind", "model.txt", levels, offset_by(tiny_twin))
    assert message.startswith("model.txt: ")
    for word in ("coarse", "less so", "tolerance=0.02"):
        assert word in message
    assert not list(job.folder.iterdir())


@pytest.mark.parametrize("neighbors", [0, 3])
def test_the_yardstick_has_all_anchors_whatever_the_model_predicts_with(
    tiny_twin, points, neighbors
):
    X, y = points[0]
    few = copy(tiny_twin).set_params(anchors=16)
    everyone = tiny_twin.predict(X, anchors="all", neighbors=neighbors or None)
    assert not np.array_equal(few.predict(X, neighbors=neighbors or None), everyone)
    judge = Judge.of(few, ROWS, neighbors, *points)
    assert judge.everyone == (pytest.approx(np.sqrt(np.mean((everyone - y) ** 2))), 20, 20)
    assert judge.everyone_test.compared == 20
    assert judge.with_all_anchors == "with all anchors"


def test_many_anchors_are_asked_about_some_of_the_points(tiny_twin, points, monkeypatch):
    monkeypatch.setattr("twinedge_export.job._FEWEST_POINTS", 5)
    monkeypatch.setattr("twinedge_export.job._MOST_WORK", 2 * 80 * tiny_twin.weights_.size * 7)
    judge = Judge.of(tiny_twin, ROWS, 0, *points)
    X, y = points[0]
    some = [0, 3, 6, 9, 12, 15, 19]  # evenly from the first to the last
    everyone = np.sqrt(np.mean((tiny_twin.predict(X[some], anchors="all") - y[some]) ** 2))
    beside = np.sqrt(np.mean((judge.same[some] - y[some]) ** 2))
    assert judge.everyone == (pytest.approx(everyone / beside * judge.same_rmse), 7, 20)
    assert judge.with_all_anchors == "with all 80 anchors, by 7 of 20 points"
    assert judge.score(tiny_twin.predict).ratio_to_float == pytest.approx(1, rel=0.1)
    # Nearest anchors take no longer, however many there are; nor are there fewer points than this.
    assert Judge.of(tiny_twin, ROWS, 3, *points).everyone.compared == 20
    monkeypatch.setattr("twinedge_export.job._MOST_WORK", 0)
    assert Judge.of(tiny_twin, ROWS, 0, *points).everyone.compared == 5


def test_without_validation_points_the_training_points_judge(tiny_twin, points):
    (X, y), _ = points
    for nothing in (None, (X[:0], y[:0])):
        judge = Judge.of(tiny_twin, ROWS, 0, nothing, None)
        assert judge.name == "training"
        assert judge.everyone.rmse == pytest.approx(
            tiny_twin.rmse(tiny_twin.anchor_X_, tiny_twin.anchor_y_)
        )
    assert Judge.of(tiny_twin, ROWS, 0, *points).name == "validation"
