"""The verdict says what was found, either way; baselines and curves are what they claim."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.evaluation.verdict import Rival
from twinedge.scoring.scores import Coverage
from twinedge_export.report.importance import importance
from twinedge_export.report.interactive import column_range, usual_query
from twinedge_export.report.reliability import (
    Baseline,
    Predictions,
    by_size,
    cross_validate_baselines,
    fit_baselines,
)
from twinedge_export.report.verdict import facts, reasons, verdict

# Models that compare with a twin of this error as named; a worse one has many times its error.
RIVALS = {
    "worse": lambda rmse, times: Rival(times * rmse, (times - 1) * rmse, 0.1 * rmse),
    "as good": lambda rmse, _: Rival(rmse, 0.0, 0.1 * rmse),
    "better": lambda rmse, times: Rival(0.8 * rmse / times, (0.8 / times - 1) * rmse, 0.1 * rmse),
    "perhaps better": lambda rmse, _: Rival(0.9 * rmse, -0.1 * rmse, 0.2 * rmse),
}


def beside(found, mean, linear, trees=None):
    """The same findings, with other models that compare with the twin as given."""
    rmse = found.accuracy.predictions.rmse
    baselines = (
        Baseline("mean", RIVALS[mean](rmse, 4)),
        Baseline("linear", RIVALS[linear](rmse, 2)),
    )
    grown = trees and found.comparison.trees._replace(rival=trees)
    return replace(
        found,
        accuracy=found.accuracy._replace(baselines=baselines),
        comparison=found.comparison._replace(trees=grown),
    )


def covering(found, covered):
    scores = found.intervals
    levels = tuple(
        Coverage(one.claimed, covered if one.claimed == 0.9 else one.covered, *one[2:])
        for one in scores.intervals
    )
    return replace(found, intervals=scores._replace(intervals=levels))


@pytest.mark.parametrize(
    ("mean", "linear", "state", "says"),
    [
        ("worse", "worse", "go", "Worth using: 4.0 times better than the mean and 2.0 times"),
        ("worse", "as good", "limit", "A linear model is as accurate"),
        ("worse", "better", "stop", "Use a linear model instead"),
        ("as good", "worse", "stop", "no better than predicting the mean"),
        ("better", "worse", "stop", "worse than predicting the mean"),
        ("as good", "better", "stop", "Use a linear model instead"),
        ("worse", "perhaps better", "limit", "too few to tell it from a linear model"),
    ],
)
def test_baselines_decide(found, mean, linear, state, says):
    words = verdict(covering(beside(found, mean, linear), 0.9))
    assert words.state == state
    assert says in words.words


def test_intervals_that_hold_too_little_are_no_green_light(found):
    fine = covering(beside(found, "worse", "worse"), 0.9)
    assert verdict(fine).state == "go"
    assert "(90 %), as claimed" in reasons(fine)[1]
    narrow = covering(fine, 0.5)
    assert verdict(narrow) == ("limit", "Accurate, but its intervals hold less than they claim.")
    assert "fewer than claimed: do not rely on them" in reasons(narrow)[1]


@pytest.mark.parametrize(("linear", "times"), [("worse", 1), ("better", 4)])
def test_trees_that_are_the_best_of_all_are_named(found, linear, times):
    trees = RIVALS["better"](found.accuracy.predictions.rmse, times)
    words = verdict(covering(beside(found, "worse", linear, trees), 0.9))
    assert words.state == "limit"
    assert "trees of the same bytes" in words.words


def test_no_board_is_no_green_light(found):
    fine = covering(beside(found, "worse", "worse"), 0.9)
    budget = fine.costs.budget
    none = [{**one, "verdict": "does not fit"} for one in budget["boards"]]
    costs = fine.costs._replace(budget={**budget, "boards": none})
    words = verdict(replace(fine, costs=costs))
    assert words == ("limit", "Accurate, but no board is known to hold it.")


def test_without_other_models_it_does_what_it_claims(found):
    fine = covering(beside(found, "worse", "worse"), 0.9)
    alone = replace(fine, accuracy=fine.accuracy._replace(baselines=()))
    assert verdict(alone) == ("go", "It does what it claims on these rows.")
    assert "The mean has" in reasons(fine)[0]
    assert "The mean has" not in reasons(alone)[0]


def test_targets_that_do_not_vary_have_no_variance_to_explain(found):
    predictions = found.accuracy.predictions
    same = replace(predictions, y=np.full_like(predictions.y, predictions.y[0]))
    flat = replace(found, accuracy=found.accuracy._replace(predictions=same))
    assert "of its variance" in reasons(found)[0]
    assert "of its variance" not in reasons(flat)[0]
    assert [facts(one)[0].label for one in (found, flat)] == ["R²", "Typical error"]


def test_the_time_of_a_single_board_is_no_range(found):
    holding = found.costs.budget["boards"][:2]
    timed = [
        {**one, "milliseconds_estimated": [count, 2 * count]}
        for count, one in enumerate(holding, 3)
    ]
    texts = []
    for boards in (timed[:1], timed):
        budget = {**found.costs.budget, "boards": boards}
        texts.append(reasons(replace(found, costs=found.costs._replace(budget=budget)))[3])
    titles = [one["title"] for one in holding]
    assert [title in texts[0] for title in titles] == [False, False]
    assert [title in texts[1] for title in titles] == [True, True]
    assert texts[0].startswith("1 of 1 boards hold it, with a query in an estimated 3-6 ms.")


def test_reasons_and_facts_have_the_numbers(found):
    words = " ".join(reasons(found))
    predictions, budget = found.accuracy.predictions, found.costs.budget
    for number in (
        f"{predictions.rmse:.4g}",
        f"{budget['twin_bytes']:,}",
        f"{budget['ann_bytes']:,}",
    ):
        assert number in words
    for one in found.accuracy.baselines:
        assert f"has {one.rmse:.4g}" in words
    values = [fact.value for fact in facts(found)]
    assert f"{budget['twin_bytes']:,} bytes" in values


def test_baselines_of_a_run_learn_from_its_training_rows(found, run):
    X, y = run.test
    learnt = run.model.anchor_y_.mean()
    mean, linear = fit_baselines(run, (X, y), found.accuracy.predictions.error)
    assert mean.rmse == pytest.approx(np.sqrt(np.mean((learnt - y) ** 2)))
    assert linear.rmse < mean.rmse
    assert mean.rival.than_the_twin == "worse"


def test_each_row_is_predicted_from_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 100, 0.01]
    y = X @ [2, 0.03, 50] + rng.normal(size=40)
    mean, linear = cross_validate_baselines((X, y), np.full(40, 0.1))
    left = []
    for row in range(40):
        others = np.arange(40) != row
        Z = np.column_stack([np.ones(40), X])
        weights = np.linalg.lstsq(Z[others], y[others], rcond=None)[0]
        left.append((y[others].mean() - y[row], Z[row] @ weights - y[row]))
    expected = np.sqrt(np.mean(np.square(left), axis=0))
    assert mean.rmse == pytest.approx(expected[0])
    assert linear.rmse == pytest.approx(expected[1], rel=1e-3)
    assert (mean.rival.worse, linear.rival.worse) == (True, True)
    better = cross_validate_baselines((X, y), np.full(40, 30.0))
    assert [one.rival.better for one in better] == [True, True]


def test_few_rows_and_holes_do_not_stop_it():
    assert cross_validate_baselines((np.zeros((2, 1)), np.arange(2.0)), np.zeros(2)) == ()
    X = np.array([[1.0, 5], [2, 5], [np.nan, 5], [4, 5], [5, 5], [6, 5]])
    found = cross_validate_baselines((X, np.arange(6.0)), np.ones(6))
    assert [one.name for one in found] == ["the mean", "a linear model"]
    assert all(np.isfinite(one.rmse) for one in found)


def test_a_column_that_does_nothing_is_worth_nothing(found):
    worth = {one.column: one.worth for one in found.importance}
    assert [one.column for one in found.importance][-1] == "idle"  # as tests/conftest.py makes it
    assert worth["idle"] < 0.1 * worth["angle"]
    again = importance(found.pack.device, found.accuracy.points, found.origin.seed)
    assert again == found.importance


def test_curves_go_through_the_range_and_are_predictions(found):
    device = found.pack.device
    for one in found.importance:
        feature = device.encoding.names.index(one.column)
        span = column_range(device, feature, found.accuracy.points[0])
        values = [point.value for point in one.curve]
        assert (values[0], values[-1]) == (span.least, span.most)
        query = usual_query(device, found.accuracy.points[0])
        query[feature] = values[7]
        known = device.predict_all(query[None])
        assert one.curve[7][1:] == (known.mean[0], known.low[0], known.high[0])


def test_parts_by_size_have_all_points_and_as_many_each():
    rng = np.random.default_rng(0)
    y = rng.normal(size=103)
    ends = np.column_stack([y - 1, np.where(y > 1, y - 0.5, y + 1)])
    predictions = Predictions("test", y, y + 0.25, np.ones(103), ends={0.9: ends})
    parts = by_size(predictions, 0.9)
    assert [one.rows for one in parts] == [21, 21, 21, 20, 20]
    assert [one.least for one in parts] == sorted(one.least for one in parts)
    assert sum(one.covered * one.rows for one in parts) == pytest.approx((y <= 1).sum())
    assert all(one.mean_error == pytest.approx(0.25) for one in parts)
    assert len(by_size(Predictions("test", y[:9], y[:9], y[:9]), None)) == 1
