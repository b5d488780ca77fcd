"""Verdicts follow from cells: the same finding holds, holds partly or does not, as they say."""

import pytest

from benchmarks.reproduction.claims import (
    FAILS,
    HOLDS,
    PARTLY,
    UNKNOWN,
    Observed,
    everywhere,
    on_many,
    overall,
    verdicts,
)
from benchmarks.reproduction.measures import ANCHORS, LOOP_WEIGHTS, NEIGHBORS
from benchmarks.reproduction.paper_tables import ORDER, printed

BUT_TWO = [name for name in ORDER if name not in ("bc", "wn")]


@pytest.fixture
def words(outcome):
    """Verdicts on an experiment whose cells a function makes up, in the order of its claims."""
    return lambda name, make: [verdict.word for _, verdict in verdicts(outcome(name, make, ORDER))]


def observed(shows):
    return {name: Observed(name in shows, "+1 %") for name in ORDER}


def test_a_finding_of_certain_sets_holds_if_it_shows_on_them_and_on_no_other():
    assert everywhere(observed(BUT_TWO), BUT_TWO).word == HOLDS
    verdict = everywhere(observed(ORDER), BUT_TWO)
    assert verdict.word == PARTLY
    assert "7 of 9 sets; different on BC (+1 %), WN (+1 %)" in verdict.observed
    assert everywhere(observed(["bc", "wn"]), BUT_TWO).word == FAILS


def test_a_finding_of_so_many_sets_holds_if_on_as_many():
    assert on_many(observed(BUT_TWO), 7).word == HOLDS
    assert on_many(observed(BUT_TWO), 8).word == PARTLY
    assert on_many(observed(["bc"]), 7).word == FAILS


def test_a_few_sets_give_no_verdict():
    few = {name: Observed(True, "") for name in ORDER[:4]}
    assert everywhere(few).word == UNKNOWN
    assert on_many(few, 1).word == UNKNOWN
    assert everywhere({}).observed == "no set was computed"


def test_a_table_holds_if_all_that_is_measured_does():
    assert overall([HOLDS, UNKNOWN]) == HOLDS
    assert overall([HOLDS, FAILS]) == PARTLY
    assert overall([FAILS, FAILS]) == FAILS
    assert overall([UNKNOWN]) == UNKNOWN


def ensembles(cell, *, anchors=0.5, twins=0.5, networks=0.9):
    """Twins with error 1 for one anchor, and fractions of that for all or several."""
    if cell.method == "networks":
        return {"sizes": [1, 2, 4], "networks": [1, networks, networks]}
    levels = [1.0] + [anchors] * (len(ANCHORS) - 1)
    several = [anchors, anchors * twins, anchors * twins] + [None] * 4
    return {
        "sizes": list(ANCHORS),
        "anchors": levels,
        "twins": several,
        "single_anchor": [1.0, anchors * twins * 1.1, anchors * twins * 1.1] + [None] * 4,
        "all_anchors": anchors,
        "ensemble": anchors * twins,
    }


def test_findings_about_ensembles(words):
    good = words("tnnr_ensemble", ensembles)
    # No number is as printed, and neither BC nor WN is the ANNs'.
    assert good == [HOLDS, HOLDS, HOLDS, FAILS, PARTLY, HOLDS, PARTLY, UNKNOWN]
    bad = words("tnnr_ensemble", lambda cell: ensembles(cell, anchors=1.5, twins=1.2))
    assert bad == [FAILS] * 7 + [UNKNOWN]
    assert words("ann_ensemble", ensembles)[0] == HOLDS
    assert words("ann_ensemble", lambda cell: ensembles(cell, networks=1.1))[0] == FAILS


def test_numbers_as_printed(words):
    def forests(cell):
        mean, error = printed("twin_rf", int(cell.method != "forest"), cell.dataset)
        return {"rmse": mean + error * (1.9 if cell.split else -1.9)}

    assert words("twin_rf", forests) == [HOLDS] * 5
    assert words("twin_rf", lambda cell: {"rmse": 9.0}) == [PARTLY, FAILS, HOLDS, FAILS, FAILS]


@pytest.mark.parametrize(("at_16", "word"), [(1.04, HOLDS), (1.06, FAILS)])
def test_findings_about_the_multiplier(words, at_16, word):
    def twins(cell):
        if cell.method == "twins":
            return {"all_anchors": 1.0 if cell.dataset in BUT_TWO else 2.0}
        return {"rmse": {1: 1.5, 16: at_16}.get(cell.number, 1.2)}

    assert words("multiplier", twins) == [HOLDS, word]
    assert words("multiplier", lambda cell: {"all_anchors": 2.0, "rmse": 1.0})[0] == FAILS


def neighbors(inference, training, k_nn=None):
    """Cells of twins with error 1; those of neighbors have errors by number, 1 if not given."""

    def make(cell):
        return {
            "all_anchors": 1.0,
            "neighbours": list(NEIGHBORS),
            "nearest_anchors": [inference.get(k, 1.0) for k in NEIGHBORS],
            "nearest": [(k_nn or {}).get(k, 3.0) for k in NEIGHBORS],
            "rmse": training.get(cell.number, 1.0),
        }

    return make


def test_findings_about_neighbors(words):
    as_in_paper = neighbors({1: 1.2, 32: 0.9}, {1: 1.5, 32: 0.8})
    assert words("neighbors", as_in_paper) == [HOLDS] * 4
    against = neighbors({1: 0.9, 128: 1.3}, {1: 0.8, 128: 1.4, 16: 1.1, 32: 1.2, 64: 1.1})
    assert words("neighbors", against) == [FAILS] * 4
    assert words("knn_tnnr", as_in_paper) == [HOLDS] * 3
    assert words("knn_tnnr", against) == [FAILS] * 3


def test_findings_about_k_nn(words):
    def by_set(cell):
        better = 0.7 if cell.dataset in ("bc", "wn") else 2.0
        return neighbors({}, {32: 0.8}, {4: better})(cell)

    assert words("knn", by_set) == [HOLDS, HOLDS]
    assert words("knn", neighbors({}, {2: 0.9}, {4: 0.8})) == [FAILS, FAILS]


def loops(gain_at_one, best=1.0):
    weights = list(LOOP_WEIGHTS)
    errors = [1.0] * len(weights)
    errors[weights.index(1.0)] = 1 - gain_at_one
    errors[weights.index(best)] -= 0.001
    return lambda cell: {"supervised": 1.0, "loop_weights": weights, "semi_supervised": errors}


def test_findings_about_loops(words):
    assert words("rf_ssl", loops(0.005)) == [HOLDS] * 4
    assert words("rf_ssl", loops(0.05)) == [HOLDS, FAILS, HOLDS, HOLDS]
    assert words("rf_ssl", loops(-0.05, 10.0)) == [FAILS, HOLDS, FAILS, FAILS]


def test_findings_about_time(words):
    def seconds(cell, near=5.0, network=1.0):
        took = network if cell.method == "timed_network" else 8.0 if not cell.number else near
        return {"training": took, "predicting": 0.5}

    assert words("timing", seconds) == [HOLDS, HOLDS]
    assert words("timing", lambda cell: seconds(cell, 9.0, 9.0)) == [FAILS, FAILS]


def test_findings_about_uncertainty_and_checks(words):
    def weighted(cell, part):
        kinds = {"weighted_rmse": part + cell.split / 100, "correlation": 0.5}
        return {"rmse": 1.0, **dict.fromkeys(("spread", "loop_violation", "asymmetry"), kinds)}

    assert words("uncertainty", lambda cell: weighted(cell, 1.0)) == [HOLDS]
    assert words("uncertainty", lambda cell: weighted(cell, 0.5)) == [FAILS]

    def check(cell, warned=("bc", "wn")):
        ratios = dict.fromkeys(("nearest", "forest", "networks", "pairs"), 1.0)
        return {"warns": float(cell.dataset in warned), **ratios}

    assert words("check", check) == [HOLDS]
    assert words("check", lambda cell: check(cell, BUT_TWO)) == [FAILS]


def test_memory_is_counted(outcome):
    ((_, verdict),) = verdicts(outcome("memory", None, ORDER))
    assert verdict.word == HOLDS
    assert "29 times fewer for f = 10" in verdict.observed
