"""A report says what was measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.anchors.curves import measure
from twinedge.budget import ann_bytes, summarise, twin_bytes
from twinedge.evaluation.small_trees import fit_small_trees, forest_bytes
from twinedge.evaluation.verdict import Rival
from twinedge.pack import read_pack, write_pack
from twinedge.runtime.reference import evaluate
from twinedge_export.deploy import export
from twinedge_export.files import RoundingError
from twinedge_export.report.of_run import growing, widest, with_anchors

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def four(four_twins, curve):
    """A run of four twins without test rows."""
    from twinedge.run_folder import Run

    X, y = curve
    return Run(four_twins, ("a", "b", "c"), "y", (X[80:100], y[80:100]), (X[:0], y[:0]))


@pytest.fixture
def unrivalled(look, monkeypatch):
    """Measure a run with several numbers of anchors, and without networks and trees."""
    monkeypatch.setattr("twinedge_export.report.of_run.rivals", lambda *args, **options: [])
    monkeypatch.setattr("twinedge_export.report.of_run.trees", lambda *args: None)
    return lambda run, **options: look(run, quick=False, **options)


def test_the_pack_is_what_export_writes(found, run, tmp_path):
    done = export(run, tmp_path / "out", anchors=8, formats=("twin",))
    data = (tmp_path / "out" / "model.twin").read_bytes()
    assert found.pack.length == len(data)
    assert write_pack(found.pack.pack) == data
    score = done.files[0].score
    assert found.judged.rmse == pytest.approx(score.rmse_test, rel=1e-6)
    assert found.validation.rmse == pytest.approx(score.rmse, rel=1e-6)
    assert found.budget["twin_bytes"] == twin_bytes(found.model) < len(data)


def test_the_budget_is_that_of_the_calculator(found, boards, firmware):
    assert found.budget == summarise(found.model, boards, firmware)
    for one in found.memory:
        model = found.model.with_anchors(one.members)
        assert (one.ann_params, one.twin_params) == (model.ann_params, model.twin_params)
        assert (one.ann_bytes, one.twin_bytes) == (ann_bytes(model), twin_bytes(model))


def test_what_is_recommended_is_what_the_command_says(found, run):
    assert found.recommended == measure(run.model, run.validation).recommended()
    assert found.export.remarks == ()


def test_greedy_anchors_are_scored_on_rows_they_were_not_chosen_on(unrivalled, run):
    X, y = run.validation
    alone = replace(run, test=(X[:0], y[:0]))
    found = unrivalled(alone, select="greedy")
    assert found.judged.name == "validation"
    mine = next(one for one in found.sizes if one.anchors == 8)
    # Eight of 80 points, chosen on the 20 rows they are judged on, would look better than this.
    assert mine.rmse > found.judged.rmse
    assert "greedy looked at the validation points" in found.export.remarks[0]


def test_sizes_are_those_of_packs(found, run):
    assert [one.anchors for one in found.sizes] == [1, 8, 64]
    mine = next(one for one in found.sizes if one.anchors == 8)
    assert mine.rmse == pytest.approx(found.judged.rmse, rel=1e-12)
    for one in found.sizes:
        assert one.bytes == twin_bytes(found.model.with_anchors(one.anchors))


def test_the_same_anchors_give_the_same_pack(found, run):
    pack = found.pack.pack
    again = with_anchors(run, pack, found.export.rows)
    assert write_pack(again) == write_pack(pack)


def test_anchors_are_dealt_out_as_export_does(four, look, tmp_path):
    found = look(four)
    export(four, tmp_path / "out", anchors=[*range(4, 16)], formats=("twin",))
    exported = read_pack((tmp_path / "out" / "model.twin").read_bytes())
    mine = with_anchors(four, found.pack.pack, np.arange(4, 16))
    for name in ("anchors", "targets", "counts", "ids"):
        assert np.array_equal(getattr(mine, name), getattr(exported, name)), name
    X = four.validation[0]
    assert np.array_equal(evaluate(mine, X).mean, evaluate(exported, X).mean)


def test_ordinary_ensembles_take_the_same_bytes(found):
    budget = twin_bytes(found.model)
    assert [one.members for one in found.rivals] == [1, 2, 4, 8]
    assert widest(found.model, 16, budget) is None  # even of one neuron are too large
    for one in found.rivals:
        assert one.bytes <= budget
        shape = replace(found.model, hidden=one.hidden)
        assert ann_bytes(shape, one.members) == one.bytes
        wider = replace(found.model, hidden=tuple(width + 1 for width in one.hidden))
        assert ann_bytes(wider, one.members) > budget
        assert np.isfinite(one.rmse)
        assert one.rmse > 0


def test_trees_take_the_same_bytes_and_are_told(found, text):
    trees = found.trees
    assert forest_bytes(trees.trees, trees.trees) < trees.bytes <= twin_bytes(found.model)
    grown = fit_small_trees(
        (found.run.model.anchor_X_, found.run.model.anchor_y_),
        found.run.validation,
        twin_bytes(found.model),
        few=True,
    )
    X, y = found.run.test
    assert trees.rmse == pytest.approx(np.sqrt(np.mean((grown.predict(X) - y) ** 2)))
    section = next(one for one in text.sections if one.name == "accuracy")
    assert f"have an error of {trees.rmse:.4g}" in " ".join(section.lead)
    assert section.tables[1].rows[-1][1:] == (trees.bytes, trees.rmse)


@pytest.mark.parametrize(
    ("behind", "says"),
    [
        (-0.1, "consider emlearn"),
        (0.01, "may be chance"),
        (0.1, "worse than the twin by more than chance"),
    ],
)
def test_trees_are_recommended_only_where_they_are_better(found, write, behind, says):
    rmse = found.judged.rmse
    rival = Rival((1 + behind) * rmse, behind * rmse, 0.05 * rmse)
    told = write(replace(found, trees=replace(found.trees, rival=rival)))
    lead = " ".join(next(one for one in told.sections if one.name == "accuracy").lead)
    assert says in lead
    assert ("emlearn" in lead) == (behind < 0)


def test_the_share_of_the_variance_is_called_by_its_name(found, text):
    first = text.facts[0]
    y = found.run.test[1]
    r2 = 1 - found.judged.rmse**2 / np.var(y)
    assert (first.label, first.value) == ("R²", f"{r2:.3f}")
    assert "of the variance explained; error " in first.note
    assert "Accuracy" not in [one.label for one in text.facts]


def test_networks_keep_their_proportions(found):
    deep = replace(found.model, hidden=(64, 16, 32))
    shape = widest(deep, 2, twin_bytes(deep))
    assert shape.hidden[0] // shape.hidden[2] == 2
    assert max(widest(deep, 1, 1 << 30).hidden) == 1024


def test_quick_trains_nothing(look, run, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("trained")

    monkeypatch.setattr("twinedge_export.report.of_run.choose_plan", never)
    monkeypatch.setattr("twinedge_export.quantise.fine_tune", never)
    quick = look(run)
    assert (quick.rivals, quick.trees, quick.anchors, quick.sizes) == ((), None, None, ())


def test_stopping_a_training_stops_the_report(look, run, monkeypatch):
    from types import SimpleNamespace

    stopped = SimpleNamespace(interrupted=True)
    monkeypatch.setattr("twinedge_export.report.of_run.choose_plan", lambda *a, **k: stopped)
    with pytest.raises(KeyboardInterrupt):
        look(run, quick=False)


def test_a_pack_that_export_would_refuse_is_reported_all_the_same(look, run, monkeypatch, write):
    monkeypatch.setattr("twinedge_export.report.of_run.export", refusing)
    found = look(run)
    assert "rounding raises the validation error" in found.refused
    rows = dict(write(found).sections[-1].tables[0].rows)
    assert rows["twinedge export would refuse this"] == found.refused


def refusing(*args, **options):
    """Export as if rounding cost too much for the default tolerance."""
    if "tolerance" not in options:
        raise RoundingError("model.twin: rounding raises the validation error", cost=0.5)
    return export(*args, **options)


def test_without_test_rows_the_validation_rows_are_judged_and_it_says_so(four, unrivalled, write):
    found = unrivalled(four)
    assert found.judged.name == "validation"
    text = write(found)
    words = " ".join(line for section in text.sections for line in (*section.lead, *section.how))
    assert "20 validation rows (the run has no test rows)" in words
    assert "the rows that intervals were calibrated on, which flatters them" in words
    assert [one.anchors for one in found.sizes] == [4, 8, 32]
    assert any("4 twins of 6-5 with 8 anchors" in line for line in text.lead)


def test_one_anchor_has_no_spread(look, run, write):
    found = look(run, anchors=1, intervals=False)
    assert found.reliability is None
    section = next(one for one in write(found).sections if one.name == "spread")
    assert section.figures == ()
    assert "no spread" in section.lead[0]


def test_intervals_are_those_of_the_pack(found, run, write):
    device = load_pack(found)
    X, y = run.test
    assert [one.claimed for one in found.intervals.intervals] == [*device.coverages]
    for one in found.intervals.intervals:
        low, high = device.predict_interval(X, one.claimed).T.astype(float)
        assert one.covered == np.mean((low <= y) & (y <= high))
        assert one.mean_width == pytest.approx(np.mean(high - low), rel=1e-12)
        missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        score = np.mean(high - low + 2 / (1 - one.claimed) * missed)
        assert one.interval_score == pytest.approx(score, rel=1e-9)
    assert found.usual.claimed == 0.9
    assert found.reliability is None
    assert found.intervals.mean_scale == pytest.approx(
        device.predict(X, return_std=True)[1].mean(), rel=1e-6
    )
    section = next(one for one in write(found).sections if one.name == "intervals")
    table, sizes = section.tables
    assert table.rows == found.intervals.intervals
    assert sum(row[1] for row in sizes.rows) == len(y)
    assert "flatters" not in " ".join(section.how)


def load_pack(found):
    """The pack of a report as a device."""
    from tempfile import TemporaryDirectory

    from twinedge.runtime.loading import load

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.twin"
        path.write_bytes(write_pack(found.pack.pack))
        return load(path, "numpy")


def test_a_pack_without_intervals_is_judged_by_its_spread(look, run, write):
    found = look(run, intervals=False)
    assert found.pack.pack.intervals is None
    assert (found.intervals, found.usual, found.model.intervals) == (None, None, False)
    assert found.reliability.points == len(run.test[1])
    text = write(found)
    section = next(one for one in text.sections if one.name == "spread")
    assert [one.name for one in section.figures] == ["coverage"]
    assert section.tables[0].columns == ("claimed", "covered", "covered with the factor")
    assert any(fact.label == "Spread" for fact in text.facts)


def test_every_use_of_bytes_is_explained(found, look, run, write):
    for one in (found, look(run, intervals=False)):
        section = next(section for section in write(one).sections if section.name == "pack")
        *rows, whole = section.tables[0].rows
        assert all(words for *_, words in rows)
        assert sum(size for _, size, *_ in rows) == whole[1] == one.pack.length


def test_many_test_rows_are_thinned_out(look, run, write):
    X, y = run.test
    many = replace(run, test=(np.tile(X, (130, 1)), np.tile(y, 130)))
    found = look(many)
    assert (len(found.judged.y), found.rows) == (1300, 2600)
    words = " ".join(line for section in write(found).sections for line in section.how)
    assert "1,300 of 2,600 test rows" in words


def test_a_model_of_neighbors(unrivalled, run):
    near = replace(run)
    near.model.set_params(pairs="neighbors", neighbors=4)
    try:
        found = unrivalled(near)
    finally:
        near.model.set_params(pairs="all", neighbors=32)
    assert found.model.neighbors == 4
    assert [one.anchors for one in found.sizes] == [8, 64]
    assert found.memory[-1].twin_bytes > 0


def test_numbers_of_anchors_grow():
    assert growing(1, 32, 300, 4) == [1, 4, 16, 32, 64, 256]
    assert growing(4, 12, 60, 2) == [4, 8, 12, 16, 32]
    assert growing(1, 500, 256, 4)[-1] == 500
