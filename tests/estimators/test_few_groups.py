"""With fewer than five validation groups, training groups decide, each left out in turn."""

import numpy as np
import pytest

from twinedge import AnnRegressor, TwinRegressor, export
from twinedge.anchors import choose
from twinedge.anchors.pool import Evidence
from twinedge.pack import read_pack
from twinedge.run_folder import Run, load_run
from twinedge.runtime.pack_calibration import calibration_of
from twinedge.scoring.calibration import CalibrationRows, calibrate, quantile, worth_of_groups
from twinedge.training.selection import ACROSS

BRIEF = {"hidden": (8,), "twins": 2, "effort": "quick", "steps": 200, "random_state": 0}


@pytest.fixture(scope="module")
def machines():
    """14 machines with 12 rows each, whose targets differ by an offset that no feature shows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (168, 2))
    machine = np.repeat(np.arange(14), 12)
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, 1, 14)[machine], machine


def fitted(machines, held=1, kind=TwinRegressor, **more):
    """A model with this many machines to validate and two more to test."""
    X, y, machine = machines
    test, val = machine < 2, (machine >= 2) & (machine < 2 + held)
    train = ~(test | val)
    validation = X[val], y[val], machine[val]
    model = kind(**{**BRIEF, **more})
    return model.fit(X[train], y[train], validation=validation, groups=machine[train])


@pytest.fixture(scope="module")
def model(machines):
    return fitted(machines)


@pytest.mark.slow
def test_five_validation_groups_decide_themselves(machines):
    model = fitted(machines, 5, steps=30)
    assert model.left_out_ is None
    assert not any(trial["stage"] == "across groups" for trial in model.trials_)


@pytest.mark.slow
def test_networks_leave_out_each_fold_of_groups(model):
    across = [trial for trial in model.trials_ if trial["stage"] == "across groups"]
    finalists = {(one["activation"], one["weight_decay"]) for one in across}
    assert len(across) == ACROSS * len(finalists)  # eleven groups in ten folds
    last = [one for one in model.trials_ if one["stage"] == "final round"]
    # They choose: one finalist is trained on all rows.
    assert len(finalists) == 2
    assert {(one["activation"], one["weight_decay"]) for one in last} < finalists
    assert len(last) == 2


def test_a_group_is_predicted_by_networks_that_did_not_see_it(machines):
    """The features are the machine: only who saw it can know its target."""
    machine = machines[2]
    X, y = np.eye(14)[machine], np.random.default_rng(0).permutation(14)[machine] / 1.0
    model = fitted((X, y, machine), steps=600, activation="silu", hidden=(16,))
    seen = model.anchor_y_ - model.predict(model.anchor_X_)
    assert np.abs(seen).mean() < 0.5
    assert np.abs(model.left_out_.errors).mean() > 2
    assert np.isfinite(model.left_out_.signals).all()
    assert model.left_out_.outside.any()


@pytest.mark.slow
def test_targets_of_few_validation_groups_choose_nothing(machines):
    X, y, machine = machines
    brief = {key: one for key, one in BRIEF.items() if key != "twins"} | {"steps": 100}
    val, train = machine < 1, machine > 2
    rng = np.random.default_rng(1)
    first, second = (
        AnnRegressor(**brief).fit(
            X[train], y[train], validation=(X[val], target, machine[val]), groups=machine[train]
        )
        for target in (y[val], rng.permutation(y[val]) + 5 * rng.normal(size=val.sum()))
    )
    np.testing.assert_array_equal(first.weights_, second.weights_)
    assert first.activation_ == second.activation_


def test_no_network_leaves_out_groups_for_nothing(machines):
    fixed = {"activation": "relu", "weight_decay": 0.03, "steps": 30, "intervals": False}
    model = fitted(machines, **fixed)
    assert {trial["stage"] for trial in model.trials_} == {"final round"}
    assert model.left_out_ is None


@pytest.mark.slow
def test_groups_that_fit_holds_out_itself_may_be_few_as_well(machines):
    X, y, machine = machines
    model = TwinRegressor(**{**BRIEF, "steps": 30}).fit(X, y, groups=machine)
    assert len(np.unique(model.validation_groups_)) < 5
    assert len(model.left_out_.errors) == len(model.anchor_y_)


def test_intervals_come_from_all_groups(model):
    both = len(model.left_out_.errors) + len(model.validation_[1])
    alone = CalibrationRows(*model._errors(*model.validation_), None, model.validation_groups_)
    again = alone.joined(model.left_out_).calibrated()
    assert again.quantiles == model.calibration_.quantiles
    # Rows of one machine are wrong together, and count for less.
    assert 11 < model.calibration_.rows < 0.5 * both


def test_signals_of_single_networks_are_as_large_as_those_of_the_model(model):
    """One network has less spread than all of them: its signals would make intervals too wide."""
    own = model.signals(model.validation_[0])[1]
    typical = np.sqrt(np.mean(np.square(own), axis=1))
    np.testing.assert_allclose(model.left_out_.typical, typical)


def test_a_run_keeps_what_was_left_out(model, machines, tmp_path):
    X, y, machine = machines
    test = X[machine < 2], y[machine < 2]
    Run(model, ("a", "b"), "y", model.validation_, test).save(tmp_path / "run")
    back = load_run(tmp_path / "run").model.left_out_
    for one, other in zip(back, model.left_out_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_pack_has_intervals_for_new_groups(model, tmp_path):
    export(model, tmp_path / "out", anchors=16, formats=("twin",))
    pack = read_pack((tmp_path / "out" / "model.twin").read_bytes())
    found, expected = calibration_of(pack), model.calibration_
    assert found.rows == pytest.approx(expected.rows, abs=3)
    assert found.typical == pytest.approx(expected.typical, rel=0.05)
    assert found.quantiles[0.9] == pytest.approx(expected.quantiles[0.9], rel=0.1)


def test_anchors_are_not_chosen_by_the_luck_of_one_group(model):
    X, y = model.validation_
    evidence = Evidence.of(model, model.validation_)
    assert len(evidence) == len(y) + len(model.anchor_y_)
    # All anchors are as wrong as networks that did not see the group.
    wrong = np.concatenate([y - model.predict(X, anchors="all"), model.left_out_.errors])
    assert evidence.all_anchors().rmse == pytest.approx(np.sqrt(np.mean(wrong**2)), rel=1e-6)
    more = {"model": model, "twins": 2, "seed": 0}
    points = model.anchor_X_, model.anchor_y_, 16
    chosen = choose(*points, "auto", validation=model.validation_, **more)
    assert chosen.method == "match"
    other = choose(*points, "auto", validation=(X, y[::-1] + 3), **more)
    np.testing.assert_array_equal(chosen.rows, other.rows)


# How far out a quantile of rows in groups must be.


def draw(rng, groups, rows, share):
    """Rows in groups: signals, errors of which a share is common to the group, and the groups."""
    group = np.repeat(np.arange(groups), rows)
    scale = rng.uniform(0.5, 2, len(group))
    common, own = rng.normal(size=groups)[group], rng.normal(size=len(group))
    errors = scale * (np.sqrt(share) * common + np.sqrt(1 - share) * own)
    return np.stack([scale, *rng.uniform(0.5, 1, (2, len(group)))]), errors, group


def coverage(share, grouped, groups=8, rows=12, times=15):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(times):
        signals, errors, group = draw(rng, groups, rows, share)
        made = calibrate(signals, errors, groups=group if grouped else None)
        signals, errors, _ = draw(rng, 8, rows, share)
        found.append(np.mean(np.abs(errors) <= made.reach(0.9) * made.scale(signals)))
    return np.mean(found)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_intervals_cover_what_they_claim_in_new_groups(share):
    assert 0.86 < coverage(share, grouped=True) < 0.94


def test_rows_are_worth_one_for_each_group_if_they_have_all_in_common():
    group = np.repeat(np.arange(7), 5)
    rng = np.random.default_rng(0)
    same = rng.normal(size=7)[group]
    assert worth_of_groups(same, group) == pytest.approx(7)
    assert worth_of_groups(np.tile(np.arange(5.0), 7), group) == pytest.approx(35)
    assert worth_of_groups(rng.normal(size=35), np.arange(35)) == pytest.approx(35)
    weights = np.repeat([1.0, 3.0], [20, 15])
    assert worth_of_groups(same, group, weights) == pytest.approx(
        np.square(weights.sum()) / sum(weights[group == one].sum() ** 2 for one in range(7))
    )


def test_a_quantile_of_fewer_rows_is_further_out_but_not_beyond_the_last():
    scores = np.arange(1.0, 101.0)
    assert quantile(scores, 0.9) == quantile(scores, 0.9, worth=100) == 91
    assert quantile(scores, 0.9, worth=10) == pytest.approx(95, abs=1)
    assert quantile(scores, 0.9, worth=2) == 100
    assert quantile(scores[:5], 0.9, worth=5) is None
    # Half of the scores are below the median, however few they are worth.
    assert quantile(scores, 0.5, worth=10) == quantile(scores, 0.5)


def test_joined_rows_keep_their_groups_apart():
    one = CalibrationRows(np.ones((3, 4)), np.arange(4.0), None, None, np.array([5, 5, 9, 9]))
    two = CalibrationRows(np.zeros((3, 2)), np.ones(2), np.ones(2, bool), np.array([1.0, 3.0]))
    both = one.joined(two)
    assert both.groups.tolist() == [0, 0, 1, 1, 2, 3]
    assert both.sample_weight.tolist() == [1, 1, 1, 1, 1, 3]
    assert both.outside.tolist() == [False] * 4 + [True] * 2
    assert both.signals.shape == (3, 6)
    assert one.joined(None) is one
