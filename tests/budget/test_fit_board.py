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
from twinedge_export.settings import ExportSettings

UNO = board_named("uno")
TINY = {"steps": 60, "activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03}


@pytest.fixture
def points(curve):
    X, y = curve
    return (X[:80], y[:80]), (X[80:100], y[80:100])


def test_everything_listed_fits_and_nothing_else(firmware, monkeypatch):
    monkeypatch.setattr(fit_board, "WIDTHS", (96, 64, 16))
    flash = {}
    for intervals in (True, False):
        shapes = fitting(8, 32, UNO, firmware, intervals=intervals)
        assert list(shapes) == sorted(shapes, reverse=True)
        listed = {model: verdict for models in shapes.values() for model, verdict in models}
        models = [fit_board._models(8, 32, width, intervals) for width in fit_board.WIDTHS]
        every = {model for some in models for model in some}
        assert set(listed) == {model for model in every if board_verdict(model, UNO, firmware).fits}
        assert set(listed) < every
        even = [model for model in listed if model.twins in (1, 2, 4, 8)]
        assert {model.anchors for model in even} == {8, 16, 32}
        assert {model.twins for model in listed} == set(fit_board.TWINS)
        assert {model.weights for model in listed} == {"int8", "int16"}
        assert {model.intervals for model in listed} == {intervals}
        assert all(len(set(model.counts)) == 1 for model in listed)
        flash[intervals] = {
            replace(model, intervals=False): verdict.flash_bytes
            for model, verdict in listed.items()
        }
    assert set(flash[True]) <= set(flash[False])
    assert all(taken > flash[False][model] + 900 for model, taken in flash[True].items())


@pytest.mark.parametrize("most", [1, 7, pytest.param(100, marks=pytest.mark.slow)])
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
    verdicts = [(shape, board_verdict(shape, UNO, firmware)) for shape in shapes]
    attempts = fit_board._score(four_twins, verdicts, (X, y), seed=3)
    assert [one.model for one in attempts] == [replace(one, activation="relu") for one in shapes]
    for one in attempts:
        twins = one.model.twins
        part = fit_board.copy(four_twins)
        part.weights_ = four_twins.weights_[:twins]
        rows = select(part.anchor_X_, part.anchor_y_, one.model.anchors, "xy", twins=twins, seed=3)
        pack = quantise(part, rows.reshape(-1, twins).T, weights=one.model.weights)
        error = evaluate(pack, X).mean - y
        assert one.rmse_val == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-3)
        assert one.flash_bytes <= UNO.free_flash


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
    verdicts = [(shape, board_verdict(shape, UNO, firmware)) for shape in shapes]
    attempts = fit_board._score(broken, verdicts, (curve[0][:9], curve[1][:9]), seed=0)
    assert [one.model.twins for one in attempts] == [1]


def test_a_search_is_the_same_with_the_same_seed(points, firmware, monkeypatch):
    monkeypatch.setattr(fit_board, "WIDTHS", (8, 4, 2))
    monkeypatch.setattr(fit_board, "TWINS", (2, 1))
    messages = []
    one = search(*points, UNO, firmware, anchors=8, tries=2, say=messages.append, **TINY)
    assert one == search(*points, UNO, firmware, anchors=8, tries=2, **TINY)
    assert {one.model.hidden for one in one.attempts} == {(8, 8), (4, 4)}
    assert {one.model.intervals for one in one.attempts} == {True}
    assert messages == [
        *("Training width 8, twins 2", "Scoring width 8"),
        *("Training width 4, twins 2", "Scoring width 4"),
    ]


# -- input maps and target curves ------------------------------------------------------------------


@pytest.fixture
def mapped_firmware(core, parts):
    from twinedge.budget.measurements import read_runtime

    return {"avr5": read_runtime({**core, "parts": parts})}


@pytest.mark.slow
def test_models_with_a_map_take_its_room(firmware, mapped_firmware, complaint):
    plain = fitting(8, 32, UNO, mapped_firmware)
    assert plain == fitting(8, 32, UNO, firmware)
    curved = fitting(8, 32, UNO, mapped_firmware, bins=8, curved=True)
    assert max(curved) <= max(plain)
    for model, verdict in (one for models in curved.values() for one in models):
        assert (model.map_outputs, model.map_rows, model.map_curves) == (16, 72, 8)
        assert verdict == board_verdict(
            model, replace(UNO, reserved_flash=UNO.reserved_flash + 36), mapped_firmware
        )
        assert model.target_bins >= 320
    message = complaint(fitting, 8, 32, UNO, firmware, bins=8, curved=True)
    assert "uno: the size of the runtime with an input map and a target curve on avr5" in message
    assert "'twinedge firmware measure'" in message


def test_maps_are_tried_on_request_where_they_can_be(points, firmware, mapped_firmware):
    X, messages = points[0][0], []
    for input_map, kinds in (("none", [0]), (5, [5]), ("auto", [0, 16])):
        assert fit_board.map_kinds(input_map, X, UNO, mapped_firmware, messages.append) == kinds
    long = np.tile(X, (40, 1))
    assert fit_board.map_kinds("auto", long, UNO, mapped_firmware, messages.append) == [0, 16]
    assert fit_board.map_kinds("auto", X > 0, UNO, mapped_firmware, messages.append) == [0]
    assert messages == []
    assert fit_board.map_kinds("auto", X, UNO, firmware, messages.append) == [0]
    assert messages == ["Without input maps: the runtime was not run with one on avr5"]


def test_a_search_with_maps_scores_real_packs(points, mapped_firmware, monkeypatch):
    monkeypatch.setattr(fit_board, "WIDTHS", (8,))
    monkeypatch.setattr(fit_board, "TWINS", (2,))
    (X, y), (held_X, held_y) = points
    points = (X, np.exp(y / y.std())), (held_X, np.exp(held_y / y.std()))
    models, messages = [], []

    def kept(model, *others):
        models.append(model)
        return score(model, *others)

    score = fit_board._score
    monkeypatch.setattr(fit_board, "_score", kept)
    options = {"anchors": 8, "input_map": "auto", "target_curve": "log", "say": messages.append}
    found = search(*points, UNO, mapped_firmware, **options, **TINY)
    assert [one for one in messages if "Training" in one] == [
        "Training width 8, twins 2",
        "Training width 8 with a map, twins 2",
    ]
    assert {one.input_map for one in found.attempts} == {"none", 16}
    for one in found.attempts:
        model = models[one.bins > 0]
        rows = select(*points[0], one.model.anchors, "xy", twins=2, seed=0)
        pack = quantise(model, rows.reshape(-1, 2).T, weights=one.model.weights)
        assert (pack.map is not None) == (one.bins > 0)
        error = evaluate(pack, points[1][0]).mean - points[1][1]
        assert one.rmse_val == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.01)


def test_a_map_that_leaves_no_room_is_left_out(points, mapped_firmware, monkeypatch, complaint):
    monkeypatch.setattr(fit_board, "WIDTHS", (8,))
    monkeypatch.setattr(fit_board, "TWINS", (1,))
    least = min(
        verdict.flash_bytes
        for models in fitting(3, 8, UNO, mapped_firmware).values()
        for _, verdict in models
    )
    tight = replace(UNO, flash=least + UNO.reserved_flash + 40)
    found = search(*points, tight, mapped_firmware, anchors=8, input_map="auto", **TINY)
    assert {one.bins for one in found.attempts} == {0}
    message = complaint(search, *points, tight, mapped_firmware, anchors=8, input_map=8, **TINY)
    assert "uno: no model of 3 features fits" in message


def attempt(rmse, flash, anchors=8, weights="int8"):
    return Attempt(Model.of(3, (8, 8), anchors, weights=weights), flash, 100, rmse)


def test_the_best_has_most_anchors_among_those_as_good():
    tried = (
        attempt(1.0, 900, 8),
        attempt(1.005, 800, 32),
        attempt(1.009, 700, 32),
        attempt(1.2, 10, 64),
    )
    assert Search(tried).best == tried[1]
    assert Search(tried[:1]).best == tried[0]
    uneven = attempt(1.001, 850, 30)
    assert Search((*tried, uneven)).best == uneven
    wider = attempt(0.999, 1800, 32, weights="int16")
    assert Search((*tried, wider)).best == tried[1]
    assert Search((*tried, attempt(0.99, 1800, 32, weights="int16"))).best.rmse_val == 0.99


def test_the_frontier_holds_what_nothing_smaller_equals():
    tried = (
        attempt(3.0, 10),
        attempt(3.0, 20),
        attempt(2.0, 30),
        attempt(2.5, 40),
        attempt(1.0, 50),
    )
    tried += (attempt(2.0, 10),)
    assert Search(tried).frontier() == [tried[5], tried[4]]
    assert Search(tried[:5]).frontier() == [tried[0], tried[2], tried[4]]


def test_the_frontier_holds_the_best_even_where_something_smaller_is_better():
    small, winner, last = attempt(1.0, 10, 8), attempt(1.005, 40, 32), attempt(0.999, 50, 8)
    found = Search((attempt(2.0, 20), last, winner, small))
    assert found.best == winner
    assert found.frontier() == [small, winner, last]


WINNER = Model.of(3, (8,), 8)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_tolerance_is_widened_as_far_as_the_least_cost_needs(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr("twinedge_export.fine_tune._STEPS", 100)
    narrow, wide = (ExportSettings(tolerance=one) for one in (1e-9, 2.0))
    done, needed = write_winner(tiny_run, tmp_path / "out", WINNER, narrow)
    cost = done.files[0].score.tolerance
    assert needed >= cost > 1e-9
    assert needed == pytest.approx(cost, rel=0.01)
    assert write_winner(tiny_run, tmp_path / "wide", WINNER, wide)[1] == 2.0


def test_another_fault_is_named(complaint, tiny_run, tmp_path):
    (tmp_path / "out").write_text("")
    assert "out" in complaint(write_winner, tiny_run, tmp_path / "out", WINNER, ExportSettings())
