"""The verdict says what was found, either way; baselines and drivers are what they claim."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.evaluation.verdict import Rival
from twinedge.scoring.scores import Coverage
from twinedge_export.report.drivers import drivers
from twinedge_export.report.interactive import span_of, usual_query
from twinedge_export.report.reliability import Baseline, Judged, beside_rows, beside_run, by_size
from twinedge_export.report.verdict import facts, reasons, verdict

# Models that compare with a twin of this error as named; a worse one has many times its error.
RIVALS = {
    "worse": lambda rmse, times: Rival(times * rmse, (times - 1) * rmse, 0.1 * rmse),
    "as good": lambda rmse, _: Rival(rmse, 0.0, 0.1 * rmse),
    "better": lambda rmse, times: Rival(0.8 * rmse / times, (0.8 / times - 1) * rmse, 0.1 * rmse),
    "perhaps better": lambda rmse, _: Rival(0.9 * rmse, -0.1 * rmse, 0.2 * rmse),
}


def standing(found, mean, linear):
    """The same findings, with baselines that compare with the twin as given."""
    rmse = found.judged.rmse
    return replace(
        found,
        trees=None,
        baselines=(
            Baseline(RIVALS[mean](rmse, 4), "mean"),
            Baseline(RIVALS[linear](rmse, 2), "linear"),
        ),
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
    said = verdict(covering(standing(found, mean, linear), 0.9))
    assert said.state == state
    assert says in said.words


def test_intervals_that_hold_too_little_are_no_green_light(found):
    fine = covering(standing(found, "worse", "worse"), 0.9)
    assert verdict(fine).state == "go"
    assert "(90 %), as claimed" in reasons(fine)[1]
    narrow = covering(fine, 0.5)
    assert verdict(narrow) == ("limit", "Accurate, but its intervals hold less than they claim.")
    assert "fewer than claimed: do not rely on them" in reasons(narrow)[1]


def test_trees_that_are_better_are_told(found):
    fine = covering(standing(found, "worse", "worse"), 0.9)
    rival = RIVALS["better"](found.judged.rmse, 1)
    better = replace(fine, trees=replace(found.trees, rival=rival))
    assert verdict(better).state == "limit"
    assert "trees" in verdict(better).words


def test_the_best_of_all_is_told_not_the_simplest(found):
    behind = covering(standing(found, "worse", "better"), 0.9)
    best = RIVALS["better"](found.judged.rmse, 4)
    said = verdict(replace(behind, trees=replace(found.trees, rival=best)))
    assert "trees of the same bytes" in said.words


def test_no_board_is_no_green_light(found):
    fine = covering(standing(found, "worse", "worse"), 0.9)
    none = [{**one, "verdict": "does not fit"} for one in fine.budget["boards"]]
    said = verdict(replace(fine, budget={**fine.budget, "boards": none}))
    assert said == ("limit", "Accurate, but no board is known to hold it.")


def test_reasons_and_facts_have_the_numbers(found):
    words = " ".join(reasons(found))
    judged, budget = found.judged, found.budget
    for number in (f"{judged.rmse:.4g}", f"{budget['twin_bytes']:,}", f"{budget['ann_bytes']:,}"):
        assert number in words
    for one in found.baselines:
        assert f"has {one.rmse:.4g}" in words
    values = [fact.value for fact in facts(found)]
    assert f"{budget['twin_bytes']:,} bytes" in values


def test_baselines_of_a_run_learn_from_its_training_rows(found, run):
    X, y = run.test
    learnt = run.model.anchor_y_.mean()
    mean, linear = beside_run(run, (X, y), found.judged.error)
    assert mean.rmse == pytest.approx(np.sqrt(np.mean((learnt - y) ** 2)))
    assert linear.rmse < mean.rmse
    assert mean.than_the_twin == "worse"


def test_each_row_is_judged_by_what_the_others_taught():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 100, 0.01]
    y = X @ [2, 0.03, 50] + rng.normal(size=40)
    mean, linear = beside_rows((X, y), np.full(40, 0.1))
    left = []
    for row in range(40):
        others = np.arange(40) != row
        Z = np.column_stack([np.ones(40), X])
        weights = np.linalg.lstsq(Z[others], y[others], rcond=None)[0]
        left.append((y[others].mean() - y[row], Z[row] @ weights - y[row]))
    expected = np.sqrt(np.mean(np.square(left), axis=0))
    assert mean.rmse == pytest.approx(expected[0])
    assert linear.rmse == pytest.approx(expected[1], rel=1e-3)
    assert (mean.than_the_twin, linear.than_the_twin) == ("worse", "worse")
    better = beside_rows((X, y), np.full(40, 30.0))
    assert [one.than_the_twin for one in better] == ["better", "better"]


def test_few_rows_and_holes_do_not_stop_it():
    assert beside_rows((np.zeros((2, 1)), np.arange(2.0)), np.zeros(2)) == ()
    X = np.array([[1.0, 5], [2, 5], [np.nan, 5], [4, 5], [5, 5], [6, 5]])
    found = beside_rows((X, np.arange(6.0)), np.ones(6))
    assert [one.name for one in found] == ["the mean", "a linear model"]
    assert all(np.isfinite(one.rmse) for one in found)


def test_a_column_that_does_nothing_is_worth_nothing(found):
    worth = {one.column: one.worth for one in found.drivers}
    assert [one.column for one in found.drivers][-1] == "idle"  # as tests/conftest.py makes it
    assert worth["idle"] < 0.1 * worth["angle"]
    again = drivers(found.device, found.points, found.seed)
    assert again == found.drivers


def test_curves_go_through_the_range_and_are_predictions(found):
    pack = found.device.pack
    for one in found.drivers:
        feature = found.device.encoding.names.index(one.column)
        span = span_of(pack, feature)
        values = [point.value for point in one.curve]
        assert (values[0], values[-1]) == (span.least, span.most)
        query = usual_query(pack)
        query[feature] = values[7]
        said = found.device.predict_all(query[None])
        point = one.curve[7]
        assert (point.mean, point.low, point.high) == (said.mean[0], said.low[0], said.high[0])


def test_parts_by_size_have_all_points_and_as_many_each():
    rng = np.random.default_rng(0)
    y = rng.normal(size=103)
    ends = np.column_stack([y - 1, np.where(y > 1, y - 0.5, y + 1)])
    judged = Judged("test", y, y + 0.25, np.ones(103), ends={0.9: ends})
    parts = by_size(judged, 0.9)
    assert [one.rows for one in parts] == [21, 21, 21, 20, 20]
    assert [one.least for one in parts] == sorted(one.least for one in parts)
    assert sum(one.covered * one.rows for one in parts) == pytest.approx((y <= 1).sum())
    assert all(one.mean_error == pytest.approx(0.25) for one in parts)
    assert len(by_size(Judged("test", y[:9], y[:9], y[:9]), None)) == 1
