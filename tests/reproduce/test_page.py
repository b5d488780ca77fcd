"""The page shows what the stored cells say, and they say what the paper found."""

import importlib.util
import sys
from pathlib import Path

import pytest

from twinedge.reproduce.experiments.check import SHOULD_WARN
from twinedge.reproduce.tables import compare

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    """The benchmark that wrote results and page."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location(
            "reproduction", ROOT / "benchmarks" / "reproduction.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


@pytest.fixture(scope="module")
def answers(script):
    return {name: script.answer_from(script.RESULTS, name) for name in script.EXPERIMENTS}


def test_the_page_is_what_the_cells_say(script, answers):
    page = script.PAGE.read_text()
    for name, answer in answers.items():
        assert answer.markdown() in page, name
        figure = script.PAGE.with_suffix("") / f"{name}.svg"
        assert figure.exists() == (f"({figure.parent.name}/{figure.name})" in page), name


def test_five_splits_of_all_nine_sets(answers):
    for answer in answers.values():
        assert (len(answer.asked.datasets), answer.asked.splits) == (9, 5)


def gains(answers, name, base, other):
    answer = answers[name]
    (pair,) = (
        one
        for one in answer.asked.experiment.comparisons
        if (one.base.title, one.other.title) == (base, other)
    )
    rows = compare(answer.asked, pair, answer.results)
    return {row.dataset: row.gain for row in rows}


def test_all_anchors_are_better_than_one_everywhere(answers):
    found = gains(answers, "tnnr_ensemble", "one anchor", "all anchors")
    assert all(gain > 0 for gain in found.values()), found


def test_several_twins_are_better_than_one_nearly_everywhere(answers):
    found = gains(answers, "tnnr_ensemble", "one twin", "4 twins")
    assert sum(gain > 0 for gain in found.values()) >= 8, found


def test_a_twin_is_better_than_an_ordinary_network_on_most_sets(answers):
    found = gains(answers, "tnnr_ensemble", "one ANN", "one twin")
    assert sum(gain > 0 for gain in found.values()) >= 7, found


@pytest.mark.parametrize("dataset", ["tf", "wsb"])
def test_twinned_forests_are_far_ahead_where_the_paper_has_them_so(answers, dataset):
    assert gains(answers, "twin_rf", "forest", "twinned forest")[dataset] > 0.2


def test_check_warns_on_two_sets_and_no_other(answers):
    answer = answers["check"]
    warned = {
        dataset: {
            bool(answer.results[cell]["warns"])
            for cell in answer.asked.cells()
            if cell.dataset == dataset
        }
        for dataset in answer.asked.datasets
    }
    assert warned == {dataset: {dataset in SHOULD_WARN} for dataset in warned}
