"""A report says what was measured."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.anchors.curves import measure
from twinedge.budget import all_boards, ann_bytes, summarise, twin_bytes
from twinedge.evaluation.small_trees import fit_small_trees, forest_bytes
from twinedge.evaluation.verdict import Rival
from twinedge.pack import read_pack, write_pack
from twinedge.progress import Progress
from twinedge.runtime.loading import load
from twinedge.runtime.reference import evaluate
from twinedge_export.deploy import export, write_export
from twinedge_export.files import RoundingError
from twinedge_export.report import measure_run
from twinedge_export.report.measure_run import growing_counts, widest, with_anchors

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
    monkeypatch.setattr(measure_run, "train_networks", lambda *rest: [])
    monkeypatch.setattr(measure_run, "grow_trees", lambda *rest: None)
    return lambda run, **options: look(run, quick=False, **options)


def section_of(text, name):
    return next(one for one in text.sections if one.name == name)


def test_the_pack_is_what_export_writes(found, run, tmp_path):
    done = export(run, tmp_path / "out", anchors=8, formats=("twin",))
    data = (tmp_path / "out" / "model.twin").read_bytes()
    assert found.pack.description.length == len(data)
    assert write_pack(found.pack.device.pack) == data
    score = done.files[0].score
    assert found.accuracy.predictions.rmse == pytest.approx(score.rmse_test, rel=1e-6)
    assert found.accuracy.validation.rmse == pytest.approx(score.rmse, rel=1e-6)
    assert found.costs.budget["twin_bytes"] == twin_bytes(found.pack.model) < len(data)


def test_the_budget_is_that_of_the_calculator(found, firmware):
    assert found.costs.budget == summarise(found.pack.model, all_boards().values(), firmware)
    for one in found.costs.memory:
        model = found.pack.model.with_anchors(one.members)
        assert (one.ann_params, one.twin_params) == (model.ann_params, model.twin_params)
        assert (one.ann_bytes, one.twin_bytes) == (ann_bytes(model), twin_bytes(model))


def test_the_recommendation_is_that_of_the_command(found, run):
    assert found.comparison.recommended == measure(run.model, run.validation).recommended()
    assert found.origin.export.remarks == ()


def test_greedy_anchors_are_scored_on_rows_they_were_not_chosen_on(unrivalled, run):
    X, y = run.validation
    alone = replace(run, test=(X[:0], y[:0]))
    found = unrivalled(alone, select="greedy")
    assert found.accuracy.predictions.name == "validation"
    mine = next(one for one in found.comparison.sizes if one.anchors == 8)
    # Eight of 80 points, chosen on the 20 rows they are scored on, would look better than this.
    assert mine.rmse > found.accuracy.predictions.rmse
    assert "greedy looked at the validation points" in found.origin.export.remarks[0]


def test_sizes_are_those_of_packs(found, run):
    assert [one.anchors for one in found.comparison.sizes] == [1, 8, 64]
    mine = next(one for one in found.comparison.sizes if one.anchors == 8)
    assert mine.rmse == pytest.approx(found.accuracy.predictions.rmse, rel=1e-12)
    for one in found.comparison.sizes:
        assert one.bytes == twin_bytes(found.pack.model.with_anchors(one.anchors))
    pack = found.pack.device.pack
    again = with_anchors(run, pack, found.origin.export.rows)
    assert write_pack(again) == write_pack(pack)


def test_anchors_are_shared_as_export_does(four, look, tmp_path):
    found = look(four)
    export(four, tmp_path / "out", anchors=[*range(4, 16)], formats=("twin",))
    exported = read_pack((tmp_path / "out" / "model.twin").read_bytes())
    mine = with_anchors(four, found.pack.device.pack, np.arange(4, 16))
    for name in ("anchors", "targets", "counts", "ids"):
        assert np.array_equal(getattr(mine, name), getattr(exported, name)), name
    X = four.validation[0]
    assert np.array_equal(evaluate(mine, X).mean, evaluate(exported, X).mean)


def test_ordinary_ensembles_take_the_same_bytes(found):
    budget = twin_bytes(replace(found.pack.model, identified=False))
    assert [one.members for one in found.comparison.networks] == [1, 2, 4, 8]
    assert widest(found.pack.model, 16, budget) is None  # even of one neuron are too large
    for one in found.comparison.networks:
        assert one.bytes <= budget
        shape = replace(found.pack.model, hidden=one.hidden)
        assert ann_bytes(shape, one.members) == one.bytes
        wider = replace(found.pack.model, hidden=tuple(width + 1 for width in one.hidden))
        assert ann_bytes(wider, one.members) > budget
        assert np.isfinite(one.rmse)
        assert one.rmse > 0


def test_trees_take_the_same_bytes(found, text):
    trees = found.comparison.trees
    assert forest_bytes(trees.trees, trees.trees) < trees.bytes <= twin_bytes(found.pack.model)
    grown = fit_small_trees(
        (found.origin.run.model.anchor_X_, found.origin.run.model.anchor_y_),
        found.origin.run.validation,
        twin_bytes(replace(found.pack.model, identified=False)),
        few=True,
    )
    X, y = found.origin.run.test
    assert trees.rmse == pytest.approx(np.sqrt(np.mean((grown.predict(X) - y) ** 2)))
    section = section_of(text, "accuracy")
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
    rmse = found.accuracy.predictions.rmse
    rival = Rival((1 + behind) * rmse, behind * rmse, 0.05 * rmse)
    trees = found.comparison.trees._replace(rival=rival)
    changed = replace(found, comparison=found.comparison._replace(trees=trees))
    lead = " ".join(section_of(write(changed), "accuracy").lead)
    assert says in lead
    assert ("emlearn" in lead) == (behind < 0)


def test_the_share_of_the_variance_is_called_by_its_name(found, text):
    first = text.facts[0]
    y = found.origin.run.test[1]
    r2 = 1 - found.accuracy.predictions.rmse**2 / np.var(y)
    assert (first.label, first.value) == ("R²", f"{r2:.3f}")
    assert "of the variance explained; error " in first.note
    assert "Accuracy" not in [one.label for one in text.facts]


def test_networks_keep_their_proportions(found):
    deep = replace(found.pack.model, hidden=(64, 16, 32))
    shape = widest(deep, 2, twin_bytes(deep))
    assert shape.hidden[0] // shape.hidden[2] == 2
    assert max(widest(deep, 1, 1 << 30).hidden) == 1024


def test_quick_trains_nothing(look, run, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("trained")

    monkeypatch.setattr(measure_run, "choose_plan", never)
    monkeypatch.setattr("twinedge_export.twin_file.fine_tune", never)
    assert look(run).comparison == (None, None, (), (), None, 0)


def test_other_models_learn_by_weight_and_can_be_stopped(found, run, monkeypatch):
    weights = np.ones(len(run.model.anchor_y_)), np.full(len(run.validation[1]), 2.0)
    monkeypatch.setattr(run.model, "sample_weights_", weights[0])
    monkeypatch.setattr(run.model, "validation_weights_", weights[1])
    given = []
    stopped = SimpleNamespace(interrupted=True)
    choose = lambda task, *rest, **more: (given.append(task.weights), stopped)[1]  # noqa: E731
    monkeypatch.setattr(measure_run, "choose_plan", choose)
    grow = lambda *rest, weights, **more: given.append(np.concatenate(weights))  # noqa: E731
    monkeypatch.setattr(measure_run, "fit_small_trees", grow)
    with pytest.raises(KeyboardInterrupt):
        measure_run.train_networks(run, found.pack.model, 2000, run.test, 20, 0, Progress())
    assert measure_run.grow_trees(run, 2000, run.test, run.test[1], 0) is None
    assert [one.tolist() for one in given] == [np.concatenate(weights).tolist()] * 2


def test_a_pack_that_export_would_refuse_is_reported_all_the_same(look, run, monkeypatch, write):
    def refusing(run, folder, settings):
        """Export as if rounding cost too much for the default tolerance."""
        if np.isfinite(settings.tolerance):
            raise RoundingError("model.twin: rounding raises the validation error", cost=0.5)
        return write_export(run, folder, settings)

    monkeypatch.setattr(measure_run, "write_export", refusing)
    found = look(run)
    assert "rounding raises the validation error" in found.origin.refused
    rows = dict(write(found).sections[-1].tables[0].rows)
    assert rows["twinedge export would refuse this"] == found.origin.refused


def test_without_test_rows_the_validation_rows_are_used(four, unrivalled, write):
    found = unrivalled(four)
    assert found.accuracy.predictions.name == "validation"
    text = write(found)
    words = " ".join(line for section in text.sections for line in (*section.lead, *section.how))
    assert "20 validation rows (the run has no test rows)" in words
    assert "the rows that intervals were calibrated on, which flatters them" in words
    assert [one.anchors for one in found.comparison.sizes] == [4, 8, 32]
    assert any("4 twins of 6-5 with 8 anchors" in line for line in text.lead)


def test_one_anchor_has_no_spread(look, run, write):
    found = look(run, anchors=1, intervals=False)
    assert found.reliability is None
    section = section_of(write(found), "spread")
    assert section.figures == ()
    assert "no spread" in section.lead[0]


def test_intervals_are_those_of_the_pack(found, run, text, tmp_path):
    (tmp_path / "model.twin").write_bytes(found.pack.data)
    device = load(tmp_path / "model.twin", "numpy")
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
    section = section_of(text, "intervals")
    table, sizes = section.tables
    assert table.rows == found.intervals.intervals
    assert sum(row[1] for row in sizes.rows) == len(y)
    assert "flatters" not in " ".join(section.how)


def test_a_pack_without_intervals_is_scored_by_its_spread(spread, run, write):
    assert spread.pack.device.pack.intervals is None
    assert (spread.intervals, spread.usual, spread.pack.model.intervals) == (None, None, False)
    assert spread.reliability.points == len(run.test[1])
    text = write(spread)
    section = section_of(text, "spread")
    assert [one.name for one in section.figures] == ["coverage"]
    assert section.tables[0].columns == ("claimed", "covered", "covered with the factor")
    assert any(fact.label == "Spread" for fact in text.facts)


def test_every_use_of_bytes_is_explained(found, spread, write):
    for one in (found, spread):
        *rows, whole = section_of(write(one), "pack").tables[0].rows
        assert all(words for *_, words in rows)
        assert sum(size for _, size, *_ in rows) == whole[1] == one.pack.description.length


def test_many_test_rows_are_thinned_out(look, run, write):
    X, y = run.test
    many = replace(run, test=(np.tile(X, (130, 1)), np.tile(y, 130)))
    found = look(many)
    assert (len(found.accuracy.predictions.y), found.accuracy.rows) == (1300, 2600)
    words = " ".join(line for section in write(found).sections for line in section.how)
    assert "1,300 of 2,600 test rows" in words


def test_a_model_of_neighbors(unrivalled, run):
    near = replace(run)
    near.model.set_params(pairs="neighbors", neighbors=4)
    try:
        found = unrivalled(near)
    finally:
        near.model.set_params(pairs="all", neighbors=32)
    assert found.pack.model.neighbors == 4
    assert [one.anchors for one in found.comparison.sizes] == [8, 64]
    assert found.costs.memory[-1].twin_bytes > 0


def test_numbers_of_anchors_grow():
    assert growing_counts(1, 32, 300, 4) == [1, 4, 16, 32, 64, 256]
    assert growing_counts(4, 12, 60, 2) == [4, 8, 12, 16, 32]
    assert growing_counts(1, 500, 256, 4)[-1] == 500
