"""What a twin is worth compared with the mean and a linear model, and how surely."""

import numpy as np
import pytest

from twinedge.evaluation.comparison import (
    compare,
    few_rows,
    rmse_range,
    standing_beside,
)
from twinedge.evaluation.rivals import fit_linear, rival_predictions
from twinedge.evaluation.verdict import FEWEST


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_rival_is_measured_by_its_own_errors_and_ours(rng):
    ours, theirs = rng.normal(size=(2, 50))
    found = compare(ours, theirs)
    assert found.rmse == pytest.approx(np.sqrt(np.mean(theirs**2)))
    assert found.behind == pytest.approx(found.rmse - np.sqrt(np.mean(ours**2)))
    back = compare(theirs, ours)
    assert (back.behind, back.error) == pytest.approx((-found.behind, found.error))


@pytest.mark.parametrize("rows", [2, 12, 13])
def test_models_that_are_as_good_are_seldom_called_anything_else(rng, rows):
    """Five in a hundred are called better, and five worse."""
    common, one, two = rng.normal(size=(3, 1000, rows))
    found = [compare(a, b) for a, b in zip(common + one, common + two, strict=True)]
    for calls in ([one.better for one in found], [one.worse for one in found]):
        assert 0.02 < np.mean(calls) < 0.08


@pytest.mark.parametrize("rows", [3, 200])
def test_a_model_that_is_far_better_is_called_so(rng, rows):
    ours, theirs = rng.normal(size=(2, rows))
    found = compare(0.05 * ours, theirs)
    assert (found.worse, found.better) == (True, False)
    assert compare(theirs, 0.05 * ours).better


def test_what_both_find_hard_is_no_part_of_the_error(rng):
    """A difference far below the scatter of the errors is detected."""
    ours = 10 * rng.normal(size=200)
    assert compare(ours, ours + 0.5 * np.sign(ours)).worse


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_comparison_does_not_depend_on_the_unit(rng, unit):
    ours, theirs = rng.normal(size=(2, 40))
    found = np.array(compare(unit * ours, unit * theirs))
    assert found / unit == pytest.approx(np.array(compare(ours, theirs)))


def test_one_point_tells_nothing(rng):
    found = compare(np.zeros(1), np.ones(1))
    assert (found.behind, found.error, found.worse) == (1.0, np.inf, False)


def test_a_difference_of_rounding_is_none():
    ours = np.linspace(1, 2, 50)
    found = compare(ours, ours * (1 + 1e-9))
    assert (found.worse, found.better) == (False, False)
    assert compare(np.zeros(3), np.zeros(3)) == (0, 0, 0)


def test_a_linear_model_takes_any_columns(rng):
    """Constant, repeated and one-hot ones, and more of them than rows."""
    X = rng.normal(size=(200, 2))
    kinds = np.eye(3)[rng.integers(0, 3, 200)]
    X = np.column_stack([X, X[:, 0], np.ones(200), kinds])
    y = 5 + X[:, 0] - 2 * X[:, 1] + kinds @ [0, 1, 2]
    model = fit_linear(X[:100], y[:100])
    np.testing.assert_allclose(model.predict(X[100:]), y[100:], atol=1e-5)
    assert np.isfinite(fit_linear(X[:4], y[:4]).predict(X)).all()


def test_groups_with_an_error_in_common_are_counted_not_their_rows(rng):
    """A rival that is worse by chance in each of eight groups is not called worse."""
    groups = np.repeat(np.arange(8), 50)
    calls = []
    for _ in range(300):
        ours, theirs = rng.normal(size=(2, 8))[:, groups] + 0.1 * rng.normal(size=(2, 400))
        calls.append(compare(ours, theirs, groups))
    assert np.mean([one.better or one.worse for one in calls]) < 0.15
    assert compare(ours, 2 * rng.normal(size=400) + 2 * ours, groups).worse
    assert np.mean([compare(*rng.normal(size=(2, 8))[:, groups]).worse for _ in range(300)]) > 0.3


@pytest.fixture
def standing(rng):
    """Return a function that compares predictions ``p(X)`` of 100 test rows of ``t(X, noise)``."""

    def make(target, predict, rows=100):
        X = rng.normal(size=(200 + rows, 2))
        y = target(X, rng.normal(size=len(X)))
        train, validation, test = np.split(np.arange(len(X)), [150, 200])
        known, chosen_on = (X[train], y[train]), (X[validation], y[validation])
        rivals = rival_predictions(known, X[test], chosen_on, 4096)
        return standing_beside(rivals, y[test], predict(X[test]), 4096)

    return make


def test_a_twin_that_is_ahead_of_all_needs_no_words(standing):
    found = standing(lambda X, noise: np.sin(3 * X[:, 0]), lambda X: np.sin(3 * X[:, 0]) + 0.01)
    assert found.rmse == pytest.approx(0.01)
    assert found.r2 > 0.9
    assert found.verdict[:2] == ("best", "twin")
    assert found.scores() == {
        "rmse_test": found.rmse,
        "r2_test": found.r2,
        "rmse_mean": found.rivals["mean"].rmse,
        "beats_mean": True,
        "rmse_linear": found.rivals["linear"].rmse,
        "beats_linear": True,
        "rmse_trees": found.rivals["trees"].rmse,
        "beats_trees": True,
        "verdict": None,
    }


def test_trees_of_the_same_bytes_are_named_where_they_are_better(standing):
    """Steps are what trees are made for."""
    found = standing(
        lambda X, noise: np.sign(X) @ [1, 2] + 0.1 * noise, lambda X: np.tanh(3 * X) @ [1, 2]
    )
    assert found.rivals["trees"].rmse < 0.7 * found.rmse
    assert found.scores()["beats_trees"] is False
    assert found.verdict.sentence.startswith("Trees in the same 4,096 bytes do better (RMSE ")
    assert "emlearn" in found.verdict.sentence


def test_without_validation_rows_or_room_there_are_no_trees(rng):
    X = rng.normal(size=(60, 2))
    part, none = (X, X[:, 0]), (X[:0], X[:0, 0])
    for validation, room in ((None, 4096), (none, 4096), (part, 20)):
        rivals = rival_predictions(part, X, validation, room)
        found = standing_beside(rivals, X[:, 0], X[:, 0] + 0.1, room)
        assert "trees" not in found.rivals
        assert found.scores()["rmse_trees"] is found.scores()["beats_trees"] is None


def test_noise_is_no_better_than_the_mean(standing):
    found = standing(lambda X, noise: noise, lambda X: 0.05 * X[:, 0])
    assert found.verdict.sentence.startswith("The twin is no better than predicting the mean")
    mean = found.rivals["mean"].rmse
    assert f"(RMSE {mean:.4g} against {found.rmse:.4g} of the twin)" in found.verdict.sentence


def test_what_is_far_off_is_worse_than_the_mean(standing):
    found = standing(lambda X, noise: noise, lambda X: 5 * X[:, 0])
    assert found.verdict.sentence.startswith("The twin is worse than predicting the mean")
    assert found.r2 < -1


def test_a_line_needs_no_twin(standing):
    as_well = standing(lambda X, noise: X[:, 0] + 0.2 * noise, lambda X: X[:, 0])
    assert as_well.verdict.sentence.startswith("A linear model does as well")
    assert as_well.scores()["beats_mean"] is True
    better = standing(lambda X, noise: X[:, 0] + 0.2 * noise, lambda X: X[:, 0] + 0.3 * X[:, 1])
    assert better.verdict.sentence.startswith("A linear model does better")


def test_few_rows_are_blamed_where_they_are_few(standing):
    noise = standing(lambda X, noise: noise, lambda X: 0 * X[:, 0], rows=2)
    assert noise.verdict[:2] == ("undecided", None)
    assert "2 test rows cannot tell the twin from" in noise.verdict.sentence
    line = standing(lambda X, noise: X[:, 0] + 0.1 * noise, lambda X: X[:, 0], rows=6)
    assert "6 test rows cannot tell the twin from trees" in line.verdict.sentence


def test_a_target_that_does_not_vary_has_no_r2(standing):
    found = standing(lambda X, noise: np.full(len(X), 0.1), lambda X: X[:, 0])
    assert found.r2 is None
    assert found.rivals["mean"].better


@pytest.mark.parametrize("rows", [1, 10])
def test_nine_of_ten_true_errors_are_in_their_range(rng, rows):
    low, high = rmse_range(rows)
    seen = np.sqrt(np.mean(rng.normal(size=(4000, rows)) ** 2, axis=1))
    assert np.mean((low * seen < 1) & (high * seen > 1)) == pytest.approx(0.9, abs=0.02)


def test_the_fewest_rows_for_a_verdict_are_those_of_a_range_that_is_not_vague():
    assert rmse_range(FEWEST)[1] <= 1.5 < rmse_range(FEWEST - 1)[1]


def test_few_rows_are_called_few():
    assert few_rows(2, 1) == (
        "Warning: 2 test rows cannot tell much: the true RMSE may be 0.58 to 4.4 times the one "
        "shown (90 % interval); settings were chosen on 1 validation row, largely by chance"
    )
    assert "validation" not in few_rows(12, 6)
    assert "test" not in few_rows(40, 2)
    assert few_rows(13, 6) is None
