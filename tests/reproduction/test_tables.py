"""Tables from made-up cells: means, standard errors, gains and who is better."""

import math
import re

import pytest

from benchmarks.reproduction.answers import Answer
from benchmarks.reproduction.cells import Setup
from benchmarks.reproduction.experiment import LOOP_WEIGHTS
from benchmarks.reproduction.experiments import experiment
from benchmarks.reproduction.tables import Question, compare, finding, gain, mean_of

SETUP = Setup()


def asked(name="twin_rf", datasets=("bc", "tf"), splits=4):
    return Question(experiment(name, SETUP), list(datasets), splits, SETUP)


@pytest.fixture
def forests():
    """Forests at 2 and 4 in turn; twinned ones half of that on tf, a little more on bc."""
    question = asked()
    results = {}
    for cell in question.cells():
        plain = 2.0 + 2 * (cell.split % 2)
        share = 1 if cell.method == "forest" else {"tf": 0.5, "bc": 1.01}[cell.dataset]
        results[cell] = {"rmse": plain * share}
    return question, results


def test_means_errors_gains_and_winners(forests):
    question, results = forests
    (pair,) = question.experiment.comparisons
    bc, tf = compare(question, pair, results)
    assert (tf.base.mean, tf.other.mean, tf.gain, tf.better) == (3.0, 1.5, 0.5, "twinned forest")
    assert (bc.gain, bc.better) == (-0.01, "forest")
    # Deviations of 1 four times: s = sqrt(4/3), and half of it for four splits.
    assert tf.base.standard_error == pytest.approx(math.sqrt(4 / 3) / 2)
    # Differences are 1 and 2 in turn: their mean is 1.5, with half the error of the above.
    assert tf.surely == pytest.approx(1.5 / (math.sqrt(1 / 3) / 2))
    assert tf.paper_base == (0.1402, 0.0044)
    assert tf.paper_gain == pytest.approx(0.3766, abs=5e-4)
    assert finding(pair, [bc, tf]) == (
        "twinned forest better than forest on 1 of 2 sets; in the paper on 1"
    )


def test_one_split_has_no_standard_error():
    assert mean_of([2.0]) == (2.0, None)
    assert gain(0.0, 0.0) == 0.0


def test_the_answer_says_all_of_it(forests):
    question, results = forests
    answer = Answer(question, results)
    record = answer.record()
    assert record["findings"] == answer.findings
    assert [row["dataset"] for row in record["comparisons"][0]["rows"]] == ["bc", "tf"]
    assert record["comparisons"][0]["rows"][1]["other"]["mean"] == 1.5
    assert len(record["cells"]) == 16
    page = answer.markdown()
    assert "| tf | 3 ± 0.58 | 1.5 ± 0.29 | +50.0 % | 0.1402 ± 0.0044 | 0.0874 ± 0.0023 |" in page
    assert "Grid: small" in page
    assert "- Twinned forest better than forest on 1 of 2 sets; in the paper on 1." in page


def test_figures_are_the_same_twice(forests, tmp_path):
    answer = Answer(*forests)
    for name in ("a.svg", "b.svg"):
        assert answer.write_figure(tmp_path / name)
    first = (tmp_path / "a.svg").read_bytes()
    assert first == (tmp_path / "b.svg").read_bytes()
    assert b"twinned forest against" in first
    assert b"TF" in first


def test_sweeps_have_a_column_for_each_number(tmp_path):
    question = asked("neighbors", ["tf"], 1)
    numbers = (1, 2, 4, 8, 16, 32, 64, 128)
    results = {}
    for cell in question.cells():
        results[cell] = {
            "all_anchors": 0.5,
            "neighbours": numbers,
            "nearest_anchors": [k / 10 for k in numbers],
            "nearest": [k / 5 for k in numbers],
            "rmse": cell.number,
        }
    answer = Answer(question, results)
    (sheet,) = answer.sheets
    assert sheet.header == ("set", "neighbors", *map(str, numbers))
    rows = {row[1]: row[2:] for row in sheet.rows}
    assert rows["all anchors"] == ["0.5"] * 8
    assert rows["NN training + inference"][:3] == ["1", "2", "4"]
    assert rows["NN inference"][0] == "0.1"
    assert answer.write_figure(tmp_path / "n.svg")


def test_counts_need_no_cells(tmp_path):
    answer = Answer(asked("memory"), {})
    assert answer.record()["counts"]["rows"]["twin, f = 10"][5] == 19681
    assert answer.write_figure(tmp_path / "memory.svg")


def test_a_panel_ends_where_what_is_far_beyond_would_flatten_it(tmp_path):
    question = asked("rf_ssl", ["tf"], 1)
    errors = [1.0] * (len(LOOP_WEIGHTS) - 1) + [50.0]
    (cell,) = question.cells()
    found = {"supervised": 1.0, "loop_weights": list(LOOP_WEIGHTS), "semi_supervised": errors}
    assert Answer(question, {cell: found}).write_figure(tmp_path / "loops.svg")
    ticks = re.findall(r">(\d+(?:\.\d+)?)</text>", (tmp_path / "loops.svg").read_text())
    assert ticks
    assert not {"40", "50"} & set(ticks)
