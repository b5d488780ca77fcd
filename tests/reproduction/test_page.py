"""The page says what the stored cells say, and names what does not hold."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from benchmarks.reproduction.claims import FAILS, HOLDS, PARTLY, UNKNOWN, judged
from benchmarks.reproduction.experiments import NAMES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    """The benchmark that wrote results and page."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield importlib.import_module("reproduction")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def writer(script):
    """The module that writes the page."""
    return importlib.import_module("reproduction_page")


@pytest.fixture(scope="module")
def known(script):
    return script.kept(script.RESULTS)


@pytest.fixture(scope="module")
def answers(script, known):
    return script.answers_from(known)


@pytest.fixture(scope="module")
def page(script):
    return script.PAGE.read_text()


def test_writing_the_page_again_changes_nothing(script, writer, known, answers, page):
    assert script.page_from(page, known) == page
    curves = script.PAGE.with_suffix("") / writer.CURVES
    assert curves.read_text() == writer.curves_page(answers)


def test_a_cell_that_is_not_there_changes_the_page(script, known, page):
    fewer = dict(known)
    for key in known:
        if '"twinned_forest"' in key and '"tf"' in key:
            del fewer[key]
    assert "not computed: tf" in script.page_from(page, fewer)
    assert "not computed: tf" not in page


def test_all_experiments_are_on_the_page_with_their_figures(script, writer, answers, page):
    assert set(answers) == set(NAMES)
    for name, answer in answers.items():
        shown = f"(reproduction/{name}.svg)" in page
        assert shown == (writer.has_figure(answer) and name not in writer.HERE_ALREADY), name
    for link in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (script.PAGE.parent / link).exists(), link


def test_the_index_has_every_table_and_figure_of_the_paper(page):
    index = page[: page.index("<!-- end -->")]
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.strip("# ").lower()).replace(" ", "-")
        for line in page.splitlines()
        if line.startswith("#")
    }
    parts = [f"Table {n}" for n in range(1, 7)] + [f"Figure {n}" for n in range(1, 9)]
    for part in parts:
        (row,) = re.findall(rf"\| \[{part}, [^\]]+\]\(#([^)]+)\) \| \**([a-z ]+[a-z])", index)
        assert row[0] in headings, part
        assert row[1] in (HOLDS, PARTLY, FAILS, UNKNOWN), part


def test_what_does_not_hold_is_named_as_such(answers, page):
    index = page[: page.index("<!-- end -->")]
    for answer in answers.values():
        for claim, verdict in judged(answer):
            assert f"- {claim.part}, **{verdict.word}**: {claim.says} Here: {verdict.seen}." in page
            if verdict.word in (PARTLY, FAILS):
                assert f"**{HOLDS}**" not in _row(index, claim.part)
            if verdict.word == FAILS:
                (lost,) = re.findall(r"With findings that do not hold: (.*)\.", index)
                assert claim.part in lost.split(", ")


def _row(index, part):
    (row,) = [line for line in index.splitlines() if line.startswith(f"| [{part},")]
    return row


def test_what_is_missing_is_told(answers, page):
    for answer in answers.values():
        lacking = answer.asked.shortfall()
        assert not lacking or f"**Not all of it is measured yet: {lacking}.**" in page
        for claim, _ in judged(answer):
            assert not lacking or "(cells are missing)" in _row(page, claim.part)


def test_every_cell_says_where_it_was_computed(known, page):
    machines = {result["machine"] for result in known.values()}
    for name in machines:
        count = sum(result["machine"] == name for result in known.values())
        assert f"- {count} cells: {name}\n" in page


def test_stored_cells_are_those_of_this_version(script, known):
    assert set(known) <= {script.identity(cell.key) for cell in script.asked_cells()}
