"""The search for a model that fits a board."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.anchors import select
from twinedge.budget import Model, board_named, board_verdict
from twinedge.runtime.reference import evaluate
from twinedge_export import fit_board
from twinedge_export.fit_board import Attempt, Search, fitting, search, write_winner
from twinedge_export.quantise import quantise

UNO = board_named("uno")
TINY = {"steps": 60, "activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03}


@pytest.fixture
def points(curve):
    X, y = curve
    return (X[:80], y[:80]), (X[80:100], y[80:100])


@pytest.mark.parametrize("intervals", [True, False], ids=["with", "without"])
def test_everything_listed_fits_and_nothing_else(firmware, intervals):
    shapes = fitting(8, 32, UNO, firmware, intervals=intervals)
    assert list(shapes) == sorted(shapes, reverse=True)
    listed = {model for models in shapes.values() for model, _ in models}
    models = [fit_board._models(8, 32, width, intervals) for width in fit_board.WIDTHS]
    every = {model for some in models for model in some}
    assert listed == {model for model in every if board_verdict(model, UNO, firmware).fits}
    assert listed < every
    even = [model for model in listed if model.twins in (1, 2, 4, 8)]
    assert {model.anchors for model in even} == {8, 16, 32}
    assert {model.twins for model in listed} == set(fit_board.TWINS)
    assert {model.weights for model in listed} == {"int8", "int16"}
    assert {model.intervals for model in listed} == {intervals}
    assert all(len(set(model.counts)) == 1 for model in listed)


def test_shapes_are_judged_with_intervals_unless_told_otherwise(firmware):
    assert fitting(8, 32, UNO, firmware) == fitting(8, 32, UNO, firmware, intervals=True)
    flash = [
        {
            replace(model, intervals=False): verdict.flash_bytes
            for models in fitting(8, 32, UNO, firmware, intervals=intervals).values()
            for model, verdict in models
        }
        for intervals in (True, False)
    ]
    assert set(flash[0]) <= set(flash[1])
    assert all(taken > flash[1][model] + 900 for model, taken in flash[0].items())


@pytest.mark.parametrize("most", [1, 3, 7, 12, 100])
def test_any_number_of_anchors_can_be_the_most(firmware, most):
    models = [model for models in fitting(2, most, UNO, firmware).values() for model, _ in models]
    assert max(model.anchors for model in models) == most
    assert all(model.anchors % model.twins == 0 for model in models)


def test_a_board_that_nobody_measured_is_refused(complaint, points, firmware):
    message = complaint(search, *points, board_named("pico"), firmware)
    assert "pico: the size of the runtime on cortex-m0 has not been measured" in message
    assert "'twinedge firmware measure'" in message


def test_a_board_too_small_for_anything_is_refused(complaint, points, firmware):
    board = replace(UNO, flash=5000)
    message = complaint(search, *points, board, firmware)
    assert "uno: no model of 3 features fits (does not fit: flash " in message


def test_scores_are_those_of_real_packs(four_twins, curve, firmware):
    X, y = curve[0][100:], curve[1][100:]
    shapes = [
        Model.of(3, (6, 5), anchors, twins=twins, activation="silu", weights=weights)
        for twins, anchors, weights in [
            (4, 16, "int8"),
            (4, 8, "int16"),
            (2, 16, "int8"),
            (1, 8, "int8"),
        ]
    ]
    judged = [(shape, board_verdict(shape, UNO, firmware)) for shape in shapes]
    trials = fit_board._score(four_twins, judged, (X, y), seed=3)
    assert [one.model for one in trials] == [replace(one, activation="relu") for one in shapes]
    for trial in trials:
        twins = trial.model.twins
        part = fit_board.copy(four_twins)
        part.weights_ = four_twins.weights_[:twins]
        rows = select(
            part.anchor_X_, part.anchor_y_, trial.model.anchors, "xy", twins=twins, seed=3
        )
        pack = quantise(part, rows.reshape(-1, twins).T, weights=trial.model.weights)
        error = evaluate(pack, X).mean - y
        assert trial.rmse_val == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-3)
        assert trial.flash_bytes <= UNO.free_flash


def test_more_rows_than_a_pack_holds_are_scored_in_pieces(four_twins, curve, monkeypatch):
    rows = np.arange(50)
    whole = fit_board._estimates(four_twins, 1, rows, "int8", curve[0][:7])
    monkeypatch.setattr(fit_board, "MAX_ANCHORS", 16)
    pieces = fit_board._estimates(four_twins, 1, rows, "int8", curve[0][:7])
    assert whole.shape == (7, 50)
    np.testing.assert_array_equal(pieces, whole)


def test_a_network_that_no_pack_holds_is_left_out(four_twins, curve, firmware):
    broken = fit_board.copy(four_twins)
    broken.weights_ = four_twins.weights_ * np.array([1, np.nan, 1, 1], np.float32)[:, None]
    shapes = [Model.of(3, (6, 5), 8, twins=twins) for twins in (1, 2, 4)]
    judged = [(shape, board_verdict(shape, UNO, firmware)) for shape in shapes]
    trials = fit_board._score(broken, judged, (curve[0][:9], curve[1][:9]), seed=0)
    assert [one.model.twins for one in trials] == [1]


def test_a_search_is_the_same_with_the_same_seed(points, firmware, monkeypatch):
    monkeypatch.setattr(fit_board, "WIDTHS", (8, 4, 2))
    monkeypatch.setattr(fit_board, "TWINS", (2, 1))
    said = []
    one = search(*points, UNO, firmware, anchors=8, tries=2, say=said.append, **TINY)
    assert one == search(*points, UNO, firmware, anchors=8, tries=2, **TINY)
    assert {trial.model.hidden for trial in one.trials} == {(8, 8), (4, 4)}
    assert {trial.model.intervals for trial in one.trials} == {True}
    assert said == [
        *("Training width 8, twins 2", "Scoring width 8"),
        *("Training width 4, twins 2", "Scoring width 4"),
    ]


def trial(rmse, flash, anchors=8, weights="int8"):
    return Attempt(Model.of(3, (8, 8), anchors, weights=weights), flash, 100, rmse)


def test_the_best_has_most_anchors_among_those_as_good():
    trials = (trial(1.0, 900, 8), trial(1.005, 800, 32), trial(1.009, 700, 32), trial(1.2, 10, 64))
    assert Search(trials).best == trials[1]
    assert Search(trials[:1]).best == trials[0]
    uneven = trial(1.001, 850, 30)
    assert Search((*trials, uneven)).best == uneven
    wider = trial(0.999, 1800, 32, weights="int16")
    assert Search((*trials, wider)).best == trials[1]
    assert Search((*trials, trial(0.99, 1800, 32, weights="int16"))).best.rmse_val == 0.99


def test_the_frontier_holds_what_nothing_smaller_equals():
    trials = (trial(3.0, 10), trial(3.0, 20), trial(2.0, 30), trial(2.5, 40), trial(1.0, 50))
    trials += (trial(2.0, 10),)
    assert Search(trials).frontier() == [trials[5], trials[4]]
    assert Search(trials[:5]).frontier() == [trials[0], trials[2], trials[4]]


def test_the_frontier_holds_the_best_even_where_something_smaller_is_better():
    small, winner, last = trial(1.0, 10, 8), trial(1.005, 40, 32), trial(0.999, 50, 8)
    found = Search((trial(2.0, 20), last, winner, small))
    assert found.best == winner
    assert found.frontier() == [small, winner, last]


WINNER = Model.of(3, (8,), 8)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_tolerance_is_widened_as_far_as_the_least_cost_needs(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr("twinedge_export.quantise._STEPS", 100)
    done, needed = write_winner(tiny_run, tmp_path / "out", WINNER, 0, tolerance=1e-9)
    cost = done.files[0].score.tolerance
    assert needed >= cost > 1e-9
    assert needed == pytest.approx(cost, rel=0.01)
    assert write_winner(tiny_run, tmp_path / "wide", WINNER, 0, tolerance=2.0)[1] == 2.0


def test_what_is_wrong_otherwise_is_told(complaint, tiny_run, tmp_path):
    (tmp_path / "out").write_text("")
    assert "out" in complaint(write_winner, tiny_run, tmp_path / "out", WINNER, 0)
