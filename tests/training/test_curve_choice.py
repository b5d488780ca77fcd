"""Which curve of the target is chosen, by what, and for how much work."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor
from twinedge.progress import Progress
from twinedge.training import curve_choice
from twinedge.training.curve_choice import SKEWED, _best, choose_curve, skewness, steps_of
from twinedge.training.network import Scaling
from twinedge.training.selection import PLANS, SETTINGS
from twinedge.training.tasks import FOLDS, PairTask, PointTask
from twinedge.training.trainer import Checkpoint

RNG = np.random.default_rng(0)
X = RNG.random((150, 2))
POWERS = np.exp(6 * X[:, 0] + 2 * X[:, 1])  # a plane on the logarithmic curve
ROOTS = np.square(1 + 4 * X[:, 0] ** 4 + X[:, 1])
ROUND = 5 + X[:, 0] + X[:, 1]  # not skewed


def task_of(y, kind=PairTask, **more):
    scaling = Scaling.of(X, y)
    task = kind(scaling.features(X), scaling.target(y), 120, scaling.y_scale, (16,), **more)
    return task, y, scaling


def chosen(y, kind=PairTask, plan=PLANS["quick"], **more):
    options = {"seed": 0, "progress": Progress(), "checkpoint": Checkpoint(None)}
    return choose_curve(*task_of(y, kind, **more), plan, **options)


@pytest.fixture
def untrained(monkeypatch):
    """Fail if a network is trained."""
    monkeypatch.setattr(curve_choice, "train", lambda *_, **__: pytest.fail("trained a network"))


@pytest.mark.parametrize("kind", [PairTask, PointTask])
def test_powers_are_learnt_by_their_logarithm(kind):
    found = chosen(POWERS, kind)
    assert found.curve.kind == "log"
    assert set(found.rmse) == {"none", "sqrt", "log"}
    assert found.rmse["log"] < 0.8 * found.rmse["none"]
    gain, error = found.gains["log"]
    assert gain == pytest.approx(1 - (found.rmse["log"] / found.rmse["none"]) ** 2)
    assert gain > error > 0
    assert found.record()["chosen"] == "log"
    assert found.record()["steps"] == 800


def test_a_target_that_is_not_skewed_costs_nothing(untrained):
    found = chosen(ROUND)
    assert found.curve is None
    assert found.skewness < SKEWED
    assert found.record()["reason"] == "only one above 1 is worth a comparison"
    assert found.record()["rmse"] == {}


def test_negative_targets_have_no_curve_to_compare(untrained):
    found = chosen(POWERS - 2 * POWERS.min())
    assert found.curve is None
    assert found.skewness > SKEWED
    assert found.reason == "some targets are negative"


def test_zero_has_a_root_but_no_logarithm():
    y = POWERS - POWERS.min()
    assert set(chosen(y).rmse) == {"none", "sqrt"}


def test_a_zero_among_the_validation_rows_counts_as_well():
    y = POWERS.copy()
    y[130] = 0
    assert set(chosen(y).rmse) == {"none", "sqrt"}


def test_few_rows_have_no_folds_to_compare_on(untrained):
    found = chosen(POWERS, groups=np.repeat([0, 1, 2], 40))
    assert found.reason == "there are too few rows to compare on"


def test_pairs_with_partners_are_compared_as_pairs_of_all():
    partners = np.zeros((120, 1), np.int32)
    plain = chosen(POWERS)
    assert chosen(POWERS, partners=partners, neighbors=5, foldable=False).rmse == plain.rmse


def test_every_row_is_predicted_by_a_network_that_did_not_see_it(monkeypatch):
    seen = []

    def noted(task, jobs, **more):
        seen.append([(set(task.rows(job)), set(task.fold(job.fold))) for job in jobs])
        return train(task, jobs, **more)

    train = curve_choice.train
    monkeypatch.setattr(curve_choice, "train", noted)
    chosen(POWERS)
    assert len(seen) == 3
    for folds in seen:
        assert folds == seen[0]  # the same rows for every curve
        assert len(folds) == FOLDS
        assert all(not learnt & held for learnt, held in folds)
        assert set.union(*(held for _, held in folds)) == set(range(120))


def off(error, rows=200, seed=0):
    return error * np.random.default_rng(seed).normal(size=rows)


def kind_of(choice):
    return None if choice.curve is None else choice.curve.kind


def test_none_is_kept_unless_another_is_clearly_better():
    same = {"none": off(1.0), "sqrt": off(1.0), "log": off(1.0)}
    assert kind_of(_best(same, None, None, 2.0, 800)) is None
    by_chance = {**same, "log": off(0.97, seed=1)}
    assert kind_of(_best(by_chance, None, None, 2.0, 800)) is None
    slightly = {**same, "log": 0.995 * off(1.0)}  # on every row, but nobody would notice
    assert kind_of(_best(slightly, None, None, 2.0, 800)) is None
    clearly = {"none": off(1.0), "sqrt": 0.9 * off(1.0), "log": 0.95 * off(1.0)}
    assert kind_of(_best(clearly, None, None, 2.0, 800)) == "sqrt"


def test_a_network_that_diverged_is_not_chosen():
    errors = {"none": off(1.0), "log": np.full(200, float(np.finfo(np.float32).max))}
    assert kind_of(_best(errors, None, None, 2.0, 800)) is None


def test_one_wild_row_does_not_decide():
    better = off(1.0)
    wild = better.copy()
    wild[17] = 100.0
    assert kind_of(_best({"none": wild, "log": better}, None, None, 2.0, 800)) is None


def test_chance_is_that_of_whole_groups():
    groups = np.repeat(np.arange(5), 40)
    of_groups = np.array([6.0, 1, 1, 1, 1])[groups]  # only one group gains
    errors = {"none": of_groups * off(1.0), "log": off(1.0)}
    assert kind_of(_best(errors, None, None, 2.0, 800)) == "log"
    assert kind_of(_best(errors, None, groups, 2.0, 800)) is None


def test_rows_count_by_their_weights():
    weights = np.where(np.arange(200) < 100, 10.0, 0.1)
    first = np.arange(200) < 100
    errors = {"none": off(1.0), "log": np.where(first, 0.7, 3.0) * off(1.0)}
    assert kind_of(_best(errors, None, None, 2.0, 800)) is None
    found = _best(errors, weights, None, 2.0, 800)
    assert kind_of(found) == "log"
    expected = np.sqrt(np.average(np.square(errors["log"]), weights=weights))
    assert found.rmse["log"] == pytest.approx(expected)


def test_skewness_is_that_of_the_weighted_rows():
    y = np.array([1.0, 1.0, 2.0, 10.0])
    assert skewness(np.full(5, 3.3)) == 0
    assert skewness(y, np.array([2.0, 1, 1, 1])) == pytest.approx(skewness(np.array([1.0, *y])))
    assert skewness(-y) == pytest.approx(-skewness(y))


@pytest.mark.parametrize("effort", ["normal", "thorough"])
@pytest.mark.parametrize("rows", [200, 5000])
def test_a_comparison_takes_an_eighth_of_a_training_at_most(effort, rows):
    plan = PLANS[effort].given(rows)
    # Steps of one network each: of all settings on the folds, and of four last networks. Those of
    # silu have larger batches, and teachers take time: this is the least a training takes.
    training = sum(map(len, SETTINGS.values())) * FOLDS * plan.folds + 4 * plan.final
    assert 3 * FOLDS * steps_of(plan) <= training / 8


def test_any_training_gives_curves_enough_steps():
    assert [steps_of(PLANS["quick"].ending_at(steps)) for steps in (10, 9000)] == [800, 900]


TINY = {"hidden": (8,), "activation": "relu", "learning_rate": 0.01, "weight_decay": 0.03}


@pytest.mark.parametrize("model", [TwinRegressor, AnnRegressor])
def test_an_estimator_learns_on_the_curve_that_it_chose(model):
    given = {**TINY, "hidden": (16,), "steps": 100, "random_state": 0}
    found = model(**given, target_curve="auto").fit(X, POWERS)
    assert found.target_curve_ == "log"
    assert found.curve_choice_["chosen"] == "log"
    assert found.resolved().target_curve == "log"
    fixed = model(**given, target_curve="log").fit(X, POWERS)
    assert fixed.curve_choice_ is None
    np.testing.assert_array_equal(found.weights_, fixed.weights_)
    np.testing.assert_array_equal(found.predict(X), fixed.predict(X))


def test_an_ensemble_chooses_once(monkeypatch):
    count = []
    train = curve_choice.train
    monkeypatch.setattr(curve_choice, "train", lambda *a, **k: count.append(1) or train(*a, **k))
    base = TwinRegressor(**TINY, steps=50, target_curve="auto")
    ensemble = EnsembleRegressor(base, 3, random_state=0).fit(X, POWERS)
    assert [one.target_curve_ for one in ensemble.members_] == ["log"] * 3
    assert len(count) == 3  # none, sqrt, log


def test_a_training_is_resumed_with_the_choice_it_made(tmp_path, monkeypatch):
    given = {**TINY, "steps": 100, "random_state": 0, "target_curve": "auto"}
    whole = TwinRegressor(**given).fit(X, POWERS)
    monkeypatch.setattr("twinedge.estimators.networks.choose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TwinRegressor(**given).fit(X, POWERS, checkpoint=tmp_path)
    monkeypatch.undo()
    assert {one.stem for one in tmp_path.glob("*.npz")} == {"curve none", "curve sqrt", "curve log"}
    steps = []
    progress = Progress.advance
    monkeypatch.setattr(
        Progress, "advance", lambda self, n, *rest: steps.append(n) or progress(self, n, *rest)
    )
    again = TwinRegressor(**given).fit(X, POWERS, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert again.curve_choice_ == whole.curve_choice_
    assert sum(steps) < 1500  # of which none are for the curves


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_stop_during_the_comparison_keeps_nothing(monkeypatch):
    def stopped(task, jobs, **_):
        raise curve_choice.Interrupted([])

    monkeypatch.setattr(curve_choice, "train", stopped)
    with pytest.raises(KeyboardInterrupt):
        TwinRegressor(**TINY, target_curve="auto").fit(X, POWERS)


def test_progress_names_each_curve(monkeypatch):
    titles = []
    monkeypatch.setattr(Progress, "stage", lambda _, title, *__, **___: titles.append(title))
    chosen(POWERS, plan=replace(PLANS["quick"], final=80))
    assert titles == [f"Comparing target curves, {kind}" for kind in ("none", "sqrt", "log")]
