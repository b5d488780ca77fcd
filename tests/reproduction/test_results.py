"""Results from made-up cells: means, standard errors, gains, which is better, and what lacks."""

import math
import re

import pytest

from benchmarks.reproduction.figures import figure
from benchmarks.reproduction.measures import LOOP_WEIGHTS
from benchmarks.reproduction.results import gain, mean_of
from benchmarks.reproduction.sheets import findings, markdown, sheets


@pytest.fixture
def forests(outcome):
    """Forests at 2 and 4 in turn; twinned ones half of that on tf, a little more on bc."""

    def result(cell):
        plain = 2.0 + 2 * (cell.split % 2)
        return {
            "rmse": plain
            * (1 if cell.method == "forest" else {"tf": 0.5, "bc": 1.01}[cell.dataset])
        }

    return outcome("twin_rf", result, ["bc", "tf"], 4)


def test_means_errors_gains_and_winners(forests):
    (pair,) = forests.experiment.comparisons
    bc, tf = forests.compare(pair)
    assert (tf.base.mean, tf.other.mean, tf.gain, tf.better) == (3.0, 1.5, 0.5, "twinned forest")
    assert (bc.gain, bc.better) == (-0.01, "forest")
    # Deviations of 1 four times: s = sqrt(4/3), and half of it for four splits.
    assert tf.base.standard_error == pytest.approx(math.sqrt(4 / 3) / 2)
    # Differences are 1 and 2 in turn: their mean is 1.5, with half the error of the above.
    assert tf.surely == pytest.approx(1.5 / (math.sqrt(1 / 3) / 2))
    assert tf.paper_base == (0.1402, 0.0044)
    assert tf.paper_gain == pytest.approx(0.3766, abs=5e-4)
    assert mean_of([2.0]) == (2.0, None)
    assert gain(0.0, 0.0) == 0.0


def test_the_record_and_the_page_say_all_of_it(forests):
    record = forests.record()
    assert [row["dataset"] for row in record["comparisons"][0]["rows"]] == ["bc", "tf"]
    assert record["comparisons"][0]["rows"][1]["other"]["mean"] == 1.5
    assert len(record["cells"]) == 16
    found = "twinned forest better than forest on 1 of 2 sets; in the paper on 1"
    assert findings(forests) == [found]
    page = markdown(forests)
    assert "| tf | 3 ± 0.58 | 1.5 ± 0.29 | +50.0 % | 0.1402 ± 0.0044 | 0.0874 ± 0.0023 |" in page
    assert "Grid: small" in page
    assert f"- {found.capitalize()}." in page


def test_figures_are_the_same_twice(forests):
    drawn = figure(forests)
    assert drawn == figure(forests)
    assert "twinned forest against" in drawn
    assert "TF" in drawn


def test_sweeps_have_a_column_for_each_number(outcome):
    numbers = (1, 2, 4, 8, 16, 32, 64, 128)
    found = outcome(
        "neighbors",
        lambda cell: {
            "all_anchors": 0.5,
            "neighbours": numbers,
            "nearest_anchors": [k / 10 for k in numbers],
            "nearest": [k / 5 for k in numbers],
            "rmse": cell.number,
        },
        ["tf"],
        1,
    )
    (sheet,) = sheets(found)
    assert sheet.header == ("set", "neighbors", *map(str, numbers))
    rows = {row[1]: row[2:] for row in sheet.rows}
    assert rows["all anchors"] == ["0.5"] * 8
    assert rows["NN training + inference"][:3] == ["1", "2", "4"]
    assert rows["NN inference"][0] == "0.1"
    assert "NN inference" in figure(found)


def test_a_panel_ends_where_what_is_far_beyond_would_flatten_it(outcome):
    errors = [1.0] * (len(LOOP_WEIGHTS) - 1) + [50.0]
    cell = {"supervised": 1.0, "loop_weights": list(LOOP_WEIGHTS), "semi_supervised": errors}
    drawn = figure(outcome("rf_ssl", lambda _: cell, ["tf"], 1))
    ticks = re.findall(r">(\d+(?:\.\d+)?)</text>", drawn)
    assert ticks
    assert not {"40", "50"} & set(ticks)


def test_splits_with_a_missing_cell_are_left_out_and_named(outcome):
    def result(cell):
        missing = cell.dataset == "yh" or (
            cell.dataset == "tf" and (cell.split, cell.method) == (1, "forest")
        )
        return None if missing else {"rmse": 1.0 + cell.split}

    found = outcome("twin_rf", result, ["bc", "tf", "yh"], 3)
    assert found.datasets == ["bc", "tf"]
    assert found.complete["tf"] == [0, 2]
    assert found.shortfall() == "not computed: yh; in part: tf (2 of 3 splits)"
    bc, tf = found.compare(found.experiment.comparisons[0])
    assert (bc.base.mean, tf.base.mean) == (2.0, 2.0)
    assert outcome("twin_rf", lambda cell: {"rmse": 1.0}, ["bc"]).shortfall() == ""
