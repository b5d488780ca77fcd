"""Rows that belong together are held out together, and determine how far new points are trusted."""

from copy import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from twinedge import AnnRegressor, EnsembleRegressor, TwinRegressor
from twinedge.estimators import difficulty
from twinedge.estimators.difficulty import trust_between
from twinedge.run_folder import Run, load_run
from twinedge.scoring.calibration import USUAL_TRUST, in_common
from twinedge.training.batches import Setting
from twinedge.training.network import Scaling
from twinedge.training.tasks import FOLDS, PairTask, PointTask
from twinedge.training.trainer import NetworkJob

LEAST, MOST = 0.05, 0.95  # of trust


@pytest.fixture(scope="module")
def machines():
    """12 machines with 15 rows each, and different offsets of the target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (180, 2))
    machine = np.repeat(np.arange(12), 15)
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, y, machine, rng.normal(0, 2, 12)[machine]


def prepared(model, X, y, validation=None, groups=None, seed=0):
    return model._prepare(X, y, validation, seed, groups)


def rows_of(part, X):
    """Which rows of X a part has; all rows differ."""
    place = {tuple(row): number for number, row in enumerate(X.tolist())}
    return [place[tuple(row)] for row in part[0].tolist()]


sizes = st.lists(st.integers(1, 30), min_size=2, max_size=12)


@settings(max_examples=100)
@example([1, 1, 8, 1, 5], 0.5, 0)
@example([1, 19], 0.125, 0)  # whichever of the two would come first
@example([19, 1], 0.125, 0)
@given(sizes, st.floats(0.02, 0.7), st.integers(0, 1000))
def test_validation_holds_out_whole_groups_and_leaves_rows_to_train_on(counts, fraction, seed):
    groups = np.repeat(np.arange(len(counts)), counts)
    groups = np.random.default_rng(seed).permutation(groups)
    rows = len(groups)
    if rows < 4 or rows - round(fraction * rows) < 2:
        return
    X = np.arange(2.0 * rows).reshape(rows, 2)
    model = TwinRegressor(validation_fraction=fraction)
    train, held = prepared(model, X, X[:, 0] ** 2, None, groups, seed)
    mine, others = rows_of(train, X), rows_of(held, X)
    assert sorted(mine + others) == list(range(rows))
    assert len(mine) >= 2
    assert not set(groups[mine]) & set(groups[others])
    np.testing.assert_array_equal(train[1], X[mine, 0] ** 2)
    wanted = round(fraction * rows) if rows >= 16 else 0
    if not wanted:
        assert not others
    else:
        # With one group less they would be too few,
        assert len(others) - np.bincount(groups[others]).max() < wanted
        # and if they are, one more would leave nothing to train on.
        assert len(others) >= wanted or len(mine) - np.bincount(groups[mine]).max() < 2
    # Each part has its groups numbered from 0, in the order of their names.
    for numbers, part in ((model.groups_, mine), (model.validation_groups_, others)):
        expected = np.unique(groups[part], return_inverse=True)[1]
        np.testing.assert_array_equal(numbers, expected)


def test_without_groups_rows_are_held_out_as_ever(machines):
    X, y, _, _ = machines
    model = TwinRegressor()
    train, held = prepared(model, X, y)
    order = np.random.default_rng([0, 0]).permutation(180)
    np.testing.assert_array_equal(np.concatenate([held[0], train[0]]), X[order])
    assert len(held[1]) == 22
    assert model.groups_ is None
    assert model.validation_groups_ is None


def test_given_validation_points_all_rows_are_trained_on(machines):
    X, y, machine, _ = machines
    model = TwinRegressor()
    (train, _), (held, _) = prepared(
        model, X[:100], y[:100], (X[100:], y[100:], machine[100:]), machine[:100]
    )
    np.testing.assert_array_equal(train, X[:100])
    np.testing.assert_array_equal(held, X[100:])
    np.testing.assert_array_equal(model.groups_, machine[:100])
    np.testing.assert_array_equal(model.validation_groups_, machine[100:] - 6)
    prepared(model, X[:100], y[:100], (X[100:], y[100:]), machine[:100])
    assert model.validation_groups_ is None


NAMED = {
    "words": [f"machine {one:02}" for one in range(12)],
    "numbers": np.arange(12) * 1000 - 7,
    "days": np.arange(12).astype("datetime64[D]"),
    "categories": pd.Categorical([f"{one:02}" for one in range(12)]),
    "a column": pd.Series([f"{one:02}" for one in range(12)]),
}


@pytest.mark.parametrize("kind", NAMED)
def test_groups_may_be_named_by_anything_that_sorts(machines, kind):
    X, y, machine, _ = machines
    expected, found = TwinRegressor(), TwinRegressor()
    right = prepared(expected, X, y, None, machine, 5)
    names = NAMED[kind]
    groups = [names[one] for one in machine] if isinstance(names, list) else names[machine]
    mine = prepared(found, X, y, None, groups, 5)
    for one, other in zip((*mine[0], *mine[1]), (*right[0], *right[1]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.groups_, expected.groups_)
    np.testing.assert_array_equal(found.validation_groups_, expected.validation_groups_)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(40), "one group for all rows; at least two"),
        (["same"] * 40, "one group for all rows; at least two"),
        (np.arange(39), "groups has 39 rows; one for each of 40 is needed"),
        (np.arange(41), "groups has 41 rows; one for each of 40 is needed"),
        ([], "groups has 0 rows"),
        (np.zeros((40, 1)), "groups has shape (40, 1); one for each row"),
        (7, "groups has shape (); one for each row"),
        ("machine", "groups has shape (); one for each row"),
        ([[1, 2], [3]], "one for each row"),
        (np.append(np.arange(39.0), np.nan), "missing or not finite"),
        (np.append(np.arange(39.0), np.inf), "missing or not finite"),
        ([*("ab" * 19), "c", None], "do not sort"),
        (pd.Series([*("ab" * 19), "c", None]), "do not sort"),
        ([*([1] * 38), "c", {}], "do not sort"),
    ],
    ids=str,
)
def test_what_does_not_group_is_refused(complaint, tiny, groups, message):
    X = np.arange(80.0).reshape(40, 2)
    if isinstance(groups, list) and groups and isinstance(groups[-1], dict | None):
        groups = np.array(groups, object)
    assert message in complaint(TwinRegressor(**tiny).fit, X, X[:, 0], groups=groups)


def test_groups_of_validation_points_are_checked_too(complaint, tiny):
    X = np.arange(80.0).reshape(40, 2)
    validation = X[:20], X[:20, 0], [1, 2, 3]
    groups = np.arange(40) % 4
    message = complaint(TwinRegressor(**tiny).fit, X, X[:, 0], validation=validation, groups=groups)
    assert "groups has 3 rows; one for each of 20" in message


# What is held out of the training rows in early rounds.


def job(fold, seed=0):
    return NetworkJob("relu", Setting(0.01, 0.01), 100, seed, fold)


def task(kind, groups, rows=0, **more):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(groups) + rows, 2)).astype(np.float32)
    return kind(x, x[:, 0], len(groups), 1.0, (4,), groups=groups, **more)


@pytest.mark.parametrize("kind", [PairTask, PointTask])
@given(
    counts=st.lists(st.integers(1, 9), min_size=2, max_size=23),
    rows=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_folds_are_of_whole_groups_and_disjoint(kind, counts, rows, seed):
    groups = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    mine = task(kind, groups, rows)
    seen = []
    for fold in range(FOLDS):
        learnt = mine.rows(job(fold, seed))
        held = mine._held_out(job(fold))
        assert sorted([*learnt, *held]) == list(range(len(groups)))
        assert not set(groups[learnt]) & set(groups[held])
        scored = mine.validation(job(fold))
        if rows or len(held):
            assert set(scored) == {*held, *range(len(groups), len(groups) + rows)}
        fewest = 0 if len(counts) < FOLDS or len(groups) < 2 * FOLDS else len(counts) // FOLDS
        assert fewest <= len(set(groups[held])) <= fewest + bool(fewest)
        seen += sorted(set(groups[held]))
    assert sorted(seen) == ([*range(len(counts))] if mine.has_folds else [])


# How far new points are trusted.


@pytest.mark.parametrize(("share", "unit"), [(0.0, 1.0), (0.4, 1e-6), (0.7, 1e6), (1.0, 1.0)])
def test_the_share_that_errors_of_a_group_have_in_common_is_found(share, unit):
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 12, 600)
    groups = np.repeat(np.arange(600), counts)
    errors = np.sqrt(share) * rng.normal(size=600)[groups]
    errors += np.sqrt(1 - share) * rng.normal(size=len(groups))
    order = rng.permutation(len(groups))
    found = in_common(unit * errors[order], np.array([f"g{one}" for one in groups])[order])
    assert found == pytest.approx(share, abs=0.05)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.integers(1, 6))
def test_the_share_is_at_most_one_and_at_least_minus_one(errors, count):
    errors = np.array(errors)
    groups = np.arange(len(errors)) % count
    found = in_common(errors, groups)
    if found is not None:
        assert -1 - 1e-9 <= found <= 1 + 1e-9


def test_where_no_group_has_two_rows_nothing_is_known():
    assert in_common(np.arange(5.0), np.arange(5)) is None
    assert in_common(np.zeros(6), np.arange(6) % 2) is None
    # A row that is alone in its group does not count.
    both = in_common(np.array([1.0, 1.0, 50.0]), np.array([0, 0, 1]))
    assert both == pytest.approx(1)


def fitted(X, y, groups):
    """The part of a model that the trust is learnt from."""
    return SimpleNamespace(
        anchor_X_=X, anchor_y_=y, sample_weights_=None, groups_=groups, scaling_=Scaling.of(X, y)
    )


def test_trust_is_high_where_machines_differ_and_low_where_they_do_not(machines):
    X, y, machine, shift = machines
    noise = np.random.default_rng(1).normal(0, 0.5, len(y))
    high = trust_between(fitted(X, y + shift + 0.1 * noise, machine), 0)
    between = trust_between(fitted(X, y + shift + 4 * noise, machine), 0)
    low = trust_between(fitted(X, y + noise, machine), 0)
    assert low < 0.2 < between < 0.65 < high


@pytest.mark.parametrize(
    ("found", "trust"), [(1.0, MOST), (0.9501, MOST), (0.5, 0.5), (0.02, LEAST), (-1.0, LEAST)]
)
def test_trust_is_never_blind_and_never_nothing(machines, monkeypatch, found, trust):
    X, y, machine, _ = machines
    monkeypatch.setattr(difficulty, "in_common", lambda errors, groups, weights: found)
    assert trust_between(fitted(X, y, machine), 0) == trust


@pytest.mark.parametrize("groups", [None, np.zeros(180, int), np.arange(180)])
def test_trust_is_the_usual_one_where_groups_tell_nothing(machines, groups):
    X, y, _, _ = machines
    assert trust_between(fitted(X, y, groups), 0) == USUAL_TRUST == 0.4


def test_trees_predict_groups_that_they_never_saw(machines):
    _, _, machine, _ = machines
    # The feature is the machine: one row of it tells all.
    x, y = machine[:, None].astype(float), np.random.default_rng(0).normal(size=12)[machine]
    known = difficulty._held_out_errors(x, y, 0, None)
    never = difficulty._held_out_errors(x, y, 0, machine)
    assert np.abs(known).mean() < 0.1 * np.abs(never).mean()
    alone = difficulty._held_out_errors(x, y, 0, np.zeros(180, int))
    np.testing.assert_array_equal(alone, known)


# Whole trainings, as short as possible.


@pytest.fixture(scope="module")
def brief():
    return {
        "hidden": (4,),
        "activation": "relu",
        "learning_rate": 0.01,
        "weight_decay": 0.003,
        "steps": 30,
        "random_state": 0,
    }


@pytest.fixture(scope="module")
def grouped(machines, brief):
    """A model that knows that machines differ."""
    X, y, machine, shift = machines
    return TwinRegressor(**brief).fit(X, y + shift, groups=machine)


def test_a_model_learns_what_machines_have_in_common_and_forgets_it(grouped, machines):
    X, y, _, shift = machines
    assert 0.5 < grouped.trust_ <= MOST
    grouped = copy(grouped).fit(X, y + shift)
    assert grouped.groups_ is None
    assert grouped.validation_groups_ is None
    assert grouped.trust_ == USUAL_TRUST


@pytest.mark.parametrize("more", [{"twins": 2}, {"pairs": "neighbors", "neighbors": 4}], ids=str)
def test_all_kinds_of_twins_take_groups(machines, brief, more):
    X, y, machine, shift = machines
    model = TwinRegressor(**brief, **more, intervals=False).fit(X, y + shift, groups=machine)
    assert np.isfinite(model.predict(X)).all()
    assert len(model.groups_) == len(model.anchor_y_)


def test_an_ordinary_network_and_an_ensemble_take_groups(machines, brief):
    X, y, machine, _ = machines
    several = EnsembleRegressor(AnnRegressor(**brief), 2, random_state=0)
    for member in several.fit(X, y, groups=machine).members_:
        assert len(member.groups_) + len(member.validation_groups_) == 180
    validation = X[:30], y[:30], machine[:30]
    several.fit(X[30:], y[30:], validation=validation, groups=machine[30:])
    for member in several.members_:
        np.testing.assert_array_equal(member.groups_, machine[30:] - 2)


def test_a_run_keeps_groups_and_trust(grouped, machines, tmp_path):
    X, y, _, _ = machines
    Run(grouped, ("a", "b"), "y", grouped.validation_, (X[:9], y[:9])).save(tmp_path / "run")
    back = load_run(tmp_path / "run").model
    np.testing.assert_array_equal(back.groups_, grouped.groups_)
    np.testing.assert_array_equal(back.validation_groups_, grouped.validation_groups_)
    assert back.trust_ == grouped.trust_
    back.calibrate(X, y)
    assert back.trust_ == grouped.trust_


def test_a_training_resumes_with_the_same_groups_by_any_name(machines, brief, complaint, tmp_path):
    X, y, machine, _ = machines
    table = {"X": X[30:], "y": y[30:], "validation": (X[:30], y[:30])}
    machine, place = machine[30:], {"checkpoint": tmp_path / "c"}
    model = TwinRegressor(**brief, intervals=False).fit(**table, groups=machine, **place)
    names = np.array([f"m{one:02}" for one in machine])
    again = TwinRegressor(**brief, intervals=False)
    again.fit(**table, groups=names, **place, resume=True)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    for groups in (None, machine // 2):
        message = complaint(again.fit, **table, groups=groups, **place, resume=True)
        assert "other data" in message
