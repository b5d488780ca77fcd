"""Several models on one page: the best is named, and only by more than chance."""

from dataclasses import replace

import pytest

from twinedge.errors import InputError
from twinedge_export.report.comparing import comparison, labels
from twinedge_export.report.making import page


@pytest.fixture(scope="module")
def models(look, run):
    """The same run with eight anchors, with one of wider weights, and without intervals."""
    return [
        replace(look(run), place="runs/eight"),
        replace(look(run, weights="int16"), place="runs/wide"),
        replace(look(run, anchors=2, intervals=False), place="runs/two"),
    ]


def worse(found, by):
    """The same predictions, off by more."""
    judged = found.judged
    return replace(found, judged=replace(judged, mean=judged.mean + by), place="runs/worse")


def test_the_least_error_comes_first_and_every_model_is_there(models):
    text = comparison(models, "twinedge report a b c")
    table = text.sections[0].tables[0]
    errors = [row[1] for row in table.rows]
    assert errors == sorted(one.judged.rmse for one in models)
    assert {row[0] for row in table.rows} == {"eight", "wide", "two"}
    assert text.title == "3 models of level compared"
    boards = text.sections[3].tables[0]
    assert len(boards.rows) == 24
    assert boards.columns == ("board", *(row[0] for row in table.rows))
    assert text.facts[0].label == "Most accurate"
    (spread,) = [row for row in text.sections[2].tables[0].rows if row[0] == "two"]
    assert spread[1] == models[2].budget["twin_bytes"]
    assert "two has none." in text.sections[1].lead


def test_what_is_worse_by_more_than_chance_is_called_so(models):
    text = comparison([worse(models[0], 50.0), models[0]], "x")
    assert text.verdict.words == "eight is the most accurate, by more than chance."
    assert text.sections[0].tables[0].rows[1][-2] == "worse"


def test_what_may_be_chance_is_not(models):
    close = replace(models[0], place="runs/same")
    text = comparison([models[0], close], "x")
    words = "eight has the least error, though same may be as good, and is no smaller."
    assert text.verdict.words == words
    smaller = replace(close, budget={**close.budget, "twin_bytes": 1})
    text = comparison([models[0], smaller], "x")
    assert text.verdict.words.endswith("; same is the smallest of these.")


def test_other_rows_are_no_comparison(models):
    judged = models[0].judged
    half = {"y": judged.y[:9], "mean": judged.mean[:9], "spread": judged.spread[:9]}
    ends = {level: one[:9] for level, one in judged.ends.items()}
    other = replace(models[0], judged=replace(judged, **half, ends=ends), place="runs/half")
    text = comparison([models[0], other], "x")
    assert text.verdict.state == "limit"
    assert "the rows judged on differ" in text.verdict.words
    assert "make the report on one table for all" in text.lead[1]


def test_models_of_other_targets_are_refused(models, look, run):
    other = look(replace(run, target_name="height"))
    with pytest.raises(InputError) as refusal:
        comparison([models[0], other], "x")
    assert "'level'" in str(refusal.value)
    assert "'height'" in str(refusal.value)


def test_names_tell_models_apart():
    assert labels(["runs/a", "runs/b/"]) == ["a", "b"]
    assert labels(["cs/0", "ee/0"]) == ["cs/0", "ee/0"]
    assert labels(["x/out/model.twin", "x/other.twin"]) == ["out", "other.twin"]
    assert labels(["a", "a"]) == ["a", "a"]


def test_the_page_holds_at_every_width(models, opened, tmp_path):
    path = tmp_path / "comparison.html"
    path.write_text(page(comparison(models, "x")), "utf-8")
    for width in (390, 768, 1280, 1920):
        shown = opened(path, width=width)
        assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert path.stat().st_size < 450_000
