"""The section on learnt curves, and what a target curve does to the words of a report."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge import scoring
from twinedge.budget import twin_bytes
from twinedge.budget.read_model import from_run
from twinedge.runtime.reference import evaluate, map_points
from twinedge_export.report.formats import markdown, page, sheet
from twinedge_export.report.interactive import anchor_targets, column_range, usual_query
from twinedge_export.report.learnt_curves import (
    curves,
    describe_target_curve,
    draw_curves,
    measure_curves,
    straightened,
)
from twinedge_export.report.measure_run import with_anchors
from twinedge_export.report.verdict import reasons


def test_a_plain_model_has_no_such_section(quick, write):
    assert quick.curves == measure_curves(quick.pack.device, quick.accuracy.points) == ()
    assert curves(quick) == ()
    assert describe_target_curve(quick) is None
    assert "learnt-curves" not in [one.name for one in write(quick).sections]


def test_a_straightened_curve_is_straight_between_its_ends(bent):
    pack = bent.pack.device.pack
    for feature, place in pack.map.curves():
        other = straightened(pack, feature)
        knots = pack.map.knots[place].astype(int)
        assert len(knots) > 2
        ends = np.zeros((2, pack.features), np.int16)
        ends[:, feature] = knots[0], knots[-1]
        assert (map_points(other, ends) == map_points(pack, ends)).all()
        between = np.zeros((41, pack.features), np.int16)
        between[:, feature] = np.linspace(knots[0], knots[-1], 41)
        share = ((between[:, feature] - knots[0]) / (knots[-1] - knots[0]))[:, None]
        first, last = map_points(other, ends).astype(float)
        assert abs(map_points(other, between) - first - share * (last - first)).max() <= 2
        # Those of the other features stay what they are.
        rest = np.zeros((9, pack.features), np.int16)
        rest[:, feature] = knots[0]
        rest[:, feature - 1] = np.linspace(-30000, 30000, 9)
        assert (map_points(other, rest) == map_points(pack, rest)).all()


def test_lines_are_mean_predictions_of_the_pack(bent):
    pack, (X, y) = bent.pack.device.pack, bent.accuracy.points
    assert {one.column for one in bent.curves} == {"angle", "offset", "idle"}
    assert [one.worth for one in bent.curves] == sorted(
        (one.worth for one in bent.curves), reverse=True
    )
    for one in bent.curves:
        feature = ["angle", "offset", "idle"].index(one.column)
        assert np.isin(one.knots, one.values).all()
        assert (np.diff(one.values) > 0).all()
        assert (one.values[0], one.values[-1]) == (one.knots[0], one.knots[-1])
        other = straightened(pack, feature)
        for place in (0, 7, len(one.values) - 1):
            rows = X.copy()
            rows[:, feature] = one.values[place]
            assert one.bent[place] == pytest.approx(evaluate(pack, rows).mean.mean())
            assert one.straight[place] == pytest.approx(evaluate(other, rows).mean.mean())
        grown = scoring.rmse(evaluate(other, X).mean, y) - bent.accuracy.predictions.rmse
        assert one.worth == pytest.approx(grown)
        assert one.bent[[0, -1]] == pytest.approx(one.straight[[0, -1]])
    (angle,) = [one for one in bent.curves if one.column == "angle"]
    assert abs(angle.bent - angle.straight).max() > 0.01 * np.std(y)


def test_the_section_says_what_bends_are_worth(bent, write):
    (section,) = curves(bent)
    model, first = bent.pack.model, bent.curves[0]
    assert (
        f"3 features of 3 went through learnt curves: straight lines between {model.map_rows} "
        in (section.lead[0])
    )
    assert f"That of {first.column} matters most" in section.lead[1]
    assert [row[0] for row in section.tables[0].rows] == [one.column for one in bent.curves]
    names = [one.name for one in write(bent).sections]
    assert names.index("learnt-curves") == names.index("drivers") + 1
    flat = replace(bent, curves=tuple(one._replace(worth=0.0) for one in bent.curves))
    (section,) = curves(flat)
    assert section.lead[1:] == ("No curve matters by itself on these rows.",)
    idle = (first, *(one._replace(worth=0.0) for one in bent.curves[1:]))
    (section,) = curves(replace(bent, curves=idle))
    assert section.lead[-1].startswith("The bends of ")
    # Curves of a time's waves are counted, but not drawn.
    hidden = replace(bent, curves=bent.curves[:1])
    assert "2 curves of numbers that stand for times are not shown." in curves(hidden)[0].how[0]


def test_every_format_has_it(bent, write):
    text = write(bent)
    html, words, cells = page(text), markdown(text, None), sheet(text)
    for content in (html, words):
        assert "Which curves it learnt" in content
        assert "The networks learnt the logarithm of level" in content
    assert "learnt-curves" in cells
    drawing = draw_curves(bent)
    assert drawing.inline().startswith("<svg")
    assert drawing.render("png").startswith(b"\x89PNG")
    many = replace(bent, curves=bent.curves * 3)
    assert "3 curves more matter less." in draw_curves(many).alt
    assert draw_curves(many).panels == (3, 2)
    assert draw_curves(replace(bent, curves=bent.curves[:1])).panels == (1, 1)


def test_a_target_curve_is_put_in_plain_words(bent, quick):
    assert "a prediction is a median" in describe_target_curve(bent)
    text = " ".join(reasons(bent))
    assert " wide on average." in text
    assert "to either side" not in text
    assert "to either side on average." in " ".join(reasons(quick))
    device, bare = bent.pack.device, {}
    for about in (bare, {"target_curve": "log"}, {"target_curve": {"kind": "cube"}}):
        other = type(device).__new__(type(device))
        other.__dict__ = {**device.__dict__, "pack": replace(device.pack, metadata=about)}
        other = replace(bent, pack=bent.pack._replace(device=other))
        assert "The networks learnt a curve of level" in describe_target_curve(other)


def test_typical_values_are_those_of_rows(bent):
    device, X = bent.pack.device, bent.accuracy.points[0]
    query = usual_query(device, X)
    for feature in range(3):
        span = column_range(device, feature, X)
        assert span.least <= query[feature] <= span.most
        assert abs(query[feature] - np.median(X[:, feature])) <= span.step
    X = X.copy()
    X[::3, 0] = np.nan
    assert np.isfinite(usual_query(device, X)).all()
    targets = anchor_targets(device.pack)
    assert (targets > 0).all()
    assert targets == pytest.approx(
        bent.origin.run.model.anchor_y_[bent.origin.export.rows], rel=0.01
    )


def test_anchors_of_other_packs_are_mapped(bent):
    run, pack = bent.origin.run, bent.pack.device.pack
    other = with_anchors(run, pack, bent.origin.export.rows)
    assert (other.anchors == pack.anchors).all()
    assert abs(other.targets - pack.targets).max() <= 1


def test_the_budget_of_the_run_is_that_of_its_pack(bent, bent_run):
    run, packed = from_run(bent_run, anchors=8), bent.pack.model
    assert run.target_bins == 256  # about
    assert replace(run, target_bins=packed.target_bins) == packed
    assert twin_bytes(replace(run, target_bins=packed.target_bins)) == twin_bytes(packed)
