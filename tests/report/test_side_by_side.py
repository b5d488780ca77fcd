"""Several models on one page: the best is named, and only by more than chance."""

from dataclasses import replace

import pytest

from twinedge.errors import InputError
from twinedge_export.report.formats import page
from twinedge_export.report.side_by_side import short_names, side_by_side


@pytest.fixture(scope="module")
def models(quick, look, run):
    """The same run with eight anchors, with two and int16 weights, and without intervals."""
    other = look(run, anchors=2, weights="int16")
    return [
        named(quick, "eight"),
        named(other, "wide"),
        named(replace(other, intervals=None), "two"),
    ]


def named(found, name):
    return replace(found, origin=replace(found.origin, place=f"runs/{name}"))


def predicting(found, name, change):
    """The same findings with changed predictions."""
    predictions = change(found.accuracy.predictions)
    return named(replace(found, accuracy=found.accuracy._replace(predictions=predictions)), name)


def test_the_least_error_comes_first_and_every_model_is_there(models):
    text = side_by_side(models, "twinedge report a b c")
    accuracy, intervals, memory, boards, _ = text.sections
    rows = accuracy.tables[0].rows
    assert [row[1] for row in rows] == sorted(one.accuracy.predictions.rmse for one in models)
    assert {row[0] for row in rows} == {"eight", "wide", "two"}
    assert text.title == "3 models of level compared"
    assert len(boards.tables[0].rows) == 24
    assert boards.tables[0].columns == ("board", *(row[0] for row in rows))
    assert text.facts[0].label == "Most accurate"
    (two,) = [row for row in memory.tables[0].rows if row[0] == "two"]
    assert two[1] == models[2].costs.budget["twin_bytes"]
    assert "two has none." in intervals.lead


def test_what_is_worse_by_more_than_chance_is_called_so(models):
    worse = predicting(models[0], "worse", lambda one: replace(one, mean=one.mean + 50.0))
    text = side_by_side([worse, models[0]], "x")
    assert text.verdict.words == "eight is the most accurate, by more than chance."
    assert text.sections[0].tables[0].rows[1][-2] == "worse"


def test_what_may_be_chance_is_not(models):
    close = named(models[0], "same")
    text = side_by_side([models[0], close], "x")
    words = "eight has the least error, though same may be as good, and is no smaller."
    assert text.verdict.words == words
    budget = {**close.costs.budget, "twin_bytes": 1}
    smaller = replace(close, costs=close.costs._replace(budget=budget))
    text = side_by_side([models[0], smaller], "x")
    assert text.verdict.words.endswith("; same is the smallest of these.")


def test_other_rows_are_no_comparison(models):
    def halve(one):
        ends = {level: ends[:9] for level, ends in one.ends.items()}
        return replace(one, y=one.y[:9], mean=one.mean[:9], spread=one.spread[:9], ends=ends)

    text = side_by_side([models[0], predicting(models[0], "half", halve)], "x")
    assert text.verdict.state == "limit"
    assert "but on different rows" in text.verdict.words
    assert "make the report on one table for all" in text.lead[1]


def test_models_of_other_targets_are_refused(models, look, run):
    other = look(replace(run, target_name="height"))
    with pytest.raises(InputError, match=r"'level' and runs/tiny 'height'"):
        side_by_side([models[0], other], "x")


def test_names_tell_models_apart():
    assert short_names(["runs/a", "runs/b/"]) == ["a", "b"]
    assert short_names(["cs/0", "ee/0"]) == ["cs/0", "ee/0"]
    assert short_names(["x/out/model.twin", "x/other.twin"]) == ["out", "other.twin"]
    assert short_names(["a", "a"]) == ["a", "a"]


@pytest.fixture(scope="module")
def comparison_file(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "comparison.html"
    path.write_text(page(side_by_side(models, "x")), "utf-8")
    return path


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
def test_the_page_is_readable_at_every_width(comparison_file, opened, width):
    shown = opened(comparison_file, width=width)
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert comparison_file.stat().st_size < 450_000


@pytest.mark.slow
def test_axe_finds_nothing_wrong(comparison_file, opened, violations):
    shown = opened(comparison_file, unfolded=True)
    assert violations(shown, resultTypes=["violations"]) == []
