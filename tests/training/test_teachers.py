"""Teachers predict what they did not see, are weighed fairly, and followed in part."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from twinedge import TwinRegressor
from twinedge.errors import InputError
from twinedge.run_folder import Run, load_run
from twinedge.scoring.scores import rmse
from twinedge.training import selection
from twinedge.training.batches import Setting
from twinedge.training.network import Scaling
from twinedge.training.selection import Plan
from twinedge.training.tasks import FOLDS, PairTask, PointTask
from twinedge.training.teachers import (
    SHARE,
    GaussianProcess,
    Predictions,
    TaughtTask,
    Teacher,
    Teachers,
    Teaching,
    teachers_of,
    weigh,
)
from twinedge.training.trainer import NetworkJob

TRAIN, HELD = 60, 20
FAR = 100.0  # where the validation rows are


class Noted(RegressorMixin, BaseEstimator):
    """Remembers which rows it was fitted to, and which it predicts."""

    log: ClassVar[list] = []

    def __init__(self, off=0.1):
        self.off = off

    def fit(self, X, y):
        self.known_ = {tuple(row) for row in X}
        Noted.log.append((self.known_, set()))
        self.seen_ = Noted.log[-1][1]
        return self

    def predict(self, X):
        self.seen_ |= {tuple(row) for row in X}
        return X[:, 0] + X[:, 1] + self.off


def table(far=FAR):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(TRAIN + HELD, 2))
    X[TRAIN:] += far
    return X, X[:, 0] + X[:, 1]


def prepared(*teachers, networks=False, kind=PointTask, far=FAR, **more):
    X, y = table(far)
    scaling = Scaling.of(X[:TRAIN], y[:TRAIN])
    task = kind(scaling.features(X), scaling.target(y), TRAIN, scaling.y_scale, (4,), **more)
    rows = X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:]
    return Teachers(list(teachers), networks, *rows, scaling, 7), task


def predicted(held, task, own=()):
    return held.predict(task, held.points(task), list(own), lambda title: None)


@pytest.fixture(autouse=True)
def fresh():
    Noted.log = []


@pytest.mark.parametrize("groups", [None, np.arange(TRAIN) % 9])
def test_a_teacher_predicts_every_row_with_a_model_that_did_not_see_it(groups):
    held, task = prepared(Teacher("noted", Noted()), groups=groups)
    found = predicted(held, task)
    assert len(Noted.log) == FOLDS
    rows = [tuple(row) for row in held.X]
    times = np.sum([[row in seen for row in rows] for _, seen in Noted.log], axis=0)
    np.testing.assert_array_equal(times, 1)
    for known, seen in Noted.log:
        assert not known & seen
        assert not known & {tuple(row) for row in held.X_val}
        if groups is not None:
            of = dict(zip(rows, groups, strict=True))
            assert not {of[row] for row in known} & {of[row] for row in seen if row in of}
    expected = held.scaling.target(held.y + 0.1)
    np.testing.assert_allclose(found.rows, found.teachers[0]["weight"] * expected, rtol=1e-3)


def test_points_lie_between_neighboring_training_rows():
    held, task = prepared()
    points = held.points(task)
    x = task.x[:TRAIN]
    assert (points >= x.min(axis=0) - 1e-6).all()
    assert (points <= x.max(axis=0) + 1e-6).all()
    assert len(np.unique(points, axis=0)) > len(points) // 2
    np.testing.assert_array_equal(points, held.points(task))


def test_the_prediction_of_points_is_the_mean_over_the_folds_in_their_own_units():
    held, task = prepared(Teacher("line", LinearRegression()))
    found = predicted(held, task)
    raw = found.x * held.scaling.x_scale + held.scaling.x_mean
    expected = held.scaling.target(raw.sum(axis=1))
    np.testing.assert_allclose(found.y, expected, atol=1e-2)
    assert found.teachers[0]["rmse"] < 1e-6


def test_one_that_is_far_off_is_fitted_once_and_dropped():
    held, task = prepared(Teacher("good", Noted(0.01)), Teacher("bad", Noted(5.0)))
    found = predicted(held, task)
    assert len(Noted.log) == FOLDS + 1
    good, bad = found.teachers
    assert bad["teacher"] == "bad"
    assert bad["weight"] == 0
    assert bad["rmse"] == pytest.approx(5.0, rel=1e-3)
    assert good["weight"] > 0.5


def test_networks_of_the_folds_teach_if_they_are_named():
    held, task = prepared(Teacher("noted", Noted(0.5)), networks=True)
    elsewhere = np.zeros(HELD + len(held.points(task)), np.float32)
    own = [Predictions("relu networks", task.y[:TRAIN] + 0.01, elsewhere)]
    assert predicted(held, task, own).teachers[0]["teacher"] == "relu networks"
    silent = Teachers(**{**vars(held), "networks": False})
    names = [one["teacher"] for one in predicted(silent, task, own).teachers]
    assert "relu networks" not in names


def test_a_fitted_teacher_is_used_as_it_is_and_weighed_on_validation_rows():
    X, y = table(far=0)
    noise = np.random.default_rng(1).normal(size=TRAIN)
    by_heart = DecisionTreeRegressor().fit(X[:TRAIN], y[:TRAIN])  # right on all it saw
    tree = by_heart.tree_
    fair = LinearRegression().fit(X[:TRAIN], y[:TRAIN] + 0.1 * noise)
    teachers, networks = teachers_of([by_heart, fair], TRAIN, 0)
    assert [one.fitted for one in teachers] == [True, True]
    assert not networks
    held, task = prepared(*teachers, far=0)
    first, second = predicted(held, task).teachers
    assert by_heart.tree_ is tree
    assert first["weight"] < 0.2 < 0.8 < second["weight"]


def test_noise_is_the_error_of_all_together_on_rows_that_none_of_them_saw():
    held, task = prepared(Teacher("noted", Noted(0.1)))
    found = predicted(held, task)
    assert found.noise == pytest.approx(rmse(found.rows, task.y[:TRAIN]), rel=1e-5)
    by_heart = DecisionTreeRegressor().fit(held.X, held.y)  # right on all it saw
    held, task = prepared(Teacher("tree", by_heart, fitted=True), far=0)
    assert predicted(held, task).noise > 0.05
    nothing = Teachers(**{**vars(held), "X_val": held.X_val[:0], "y_val": held.y_val[:0]})
    assert predicted(nothing, task).noise == np.inf


columns = st.integers(1, 5)


@settings(max_examples=30, deadline=None)
@given(columns, st.integers(10, 60), st.integers(0, 1000), st.floats(1e-3, 1e3))
def test_weights_are_not_negative_and_know_no_units(count, rows, seed, unit):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=rows)
    each = target[:, None] + rng.normal(size=(rows, count))
    weights = weigh(each, target)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weigh(unit * each, unit * target), weights, atol=1e-6)
    error, of_mean = (np.mean((one - target) ** 2) for one in (each @ weights, each.mean(axis=1)))
    assert error <= of_mean * (1 + 1e-9)


def test_alike_teachers_share_and_a_perfect_one_has_all_weight():
    rng = np.random.default_rng(0)
    target = rng.normal(size=200)
    alike = target[:, None] + rng.normal(size=(200, 1)).repeat(3, axis=1)
    np.testing.assert_allclose(np.ptp(weigh(alike, target)), 0, atol=1e-9)
    one = np.stack([target, target + rng.normal(size=200)], axis=1)
    np.testing.assert_allclose(weigh(one, target), [1, 0], atol=1e-9)


@pytest.mark.parametrize("kind", [PairTask, PointTask])
def test_a_taught_network_learns_targets_and_predictions(kind):
    _, task = prepared(kind=kind)
    teaching = Teaching(task.y[:TRAIN] + 1, task.x[:30] + 0.5, np.full(30, 9.0), [])
    taught = TaughtTask(task, teaching)
    job = NetworkJob("relu", Setting(0.01, 0.03), 10, 3, taught=True)
    x, y, rows, *_ = taught.examples([job]).tensors
    np.testing.assert_allclose(y[:TRAIN], task.y[:TRAIN] + (1 - SHARE), rtol=1e-6)
    np.testing.assert_array_equal(y[len(task.y) :], 9.0)
    np.testing.assert_array_equal(x[len(task.y) :], teaching.x)
    kinds = np.bincount(np.where(rows[0] < TRAIN, 0, np.where(rows[0] < len(task.y), 1, 2)))
    assert kinds[1] == 0  # validation rows teach nobody
    assert kinds[2] == 30
    assert taught.architecture(job) == task.architecture(job)
    assert taught.batch_of("silu") == task.batch_of("silu")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_process_finds_its_lengths_once():
    X, y = table()
    first = GaussianProcess(0).fit(X[:TRAIN], y[:TRAIN])
    later = Teacher("gp", GaussianProcess(0)).after(first).fit(X[:40], y[:40])
    assert later.process_.kernel_ == first.process_.kernel_
    np.testing.assert_allclose(later.predict(X[40:60]), y[40:60], atol=0.2)


@pytest.mark.parametrize(
    ("teachers", "words"),
    [
        ("everybody", "'everybody' is not one of"),
        (["trees", "oracle"], "'oracle' is not one of"),
        ([], "names no teacher"),
        (3, "not 'auto', None or a list"),
        ([Ridge], "is not a scikit-learn regressor"),
        ([object()], "is not a scikit-learn regressor"),
    ],
)
def test_who_cannot_teach_is_refused_before_the_training(teachers, words, curve):
    with pytest.raises(InputError, match=words):
        TwinRegressor(teachers=teachers, effort="quick").fit(*curve)


def test_a_teacher_that_predicts_nonsense_is_named():
    class Lost(Noted):
        def predict(self, X):
            return np.full(len(X), np.nan)

    held, task = prepared(Teacher("Lost", Lost()))
    with pytest.raises(InputError, match="Lost predicts values that are not finite"):
        predicted(held, task)


@pytest.mark.parametrize("rows", [100, 5000, 20_000])
def test_built_in_teachers_suit_any_number_of_rows(rows):
    teachers, networks = teachers_of("auto", rows, 0)
    assert networks
    assert [one.name for one in teachers] == ["trees", "boosting", "gp"]
    assert teachers_of(None, rows, 0) is teachers_of("none", rows, 0) is None
    trees = teachers[0].estimator
    assert trees.bootstrap == (rows > 10_000)


@pytest.fixture
def brief(monkeypatch):
    """A normal effort that takes a moment."""
    monkeypatch.setitem(selection.PLANS, "normal", Plan(folds=60, final=120))


@pytest.mark.slow
def test_by_default_all_teach_and_a_run_records_it(brief, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((90, 2))
    y = X[:, 0] + 0.2 * rng.normal(size=90)
    model = TwinRegressor(hidden=8, random_state=0).fit(X, y)
    teaching = model.teaching_
    assert {one["teacher"] for one in teaching["teachers"]} == {
        "relu networks",
        "silu networks",
        "trees",
        "boosting",
        "gp",
    }
    assert teaching["share"] == (SHARE if teaching["taught"] else 1.0)
    held = X[:5], y[:5]
    Run(model, ("a", "b"), "y", held, held, source={}, scores={}).save(tmp_path / "run")
    assert load_run(tmp_path / "run").model.teaching_ == teaching


@pytest.mark.slow
def test_own_estimators_teach_even_a_quick_training(brief, tmp_path):
    X = np.random.default_rng(0).random((80, 2))
    model = TwinRegressor(
        hidden=8, effort="quick", steps=50, teachers=[Ridge(), "gp"], random_state=0
    ).fit(X, X[:, 0])
    assert [one["teacher"] for one in model.teaching_["teachers"]] == ["Ridge", "gp"]
    assert model.teaching_["noise"] < 0.2  # taught only because the teachers were named
    assert model.trials_[-1]["stage"] == "taught round"
    held = X[:5], X[:5, 0]
    Run(model, ("a", "b"), "y", held, held, source={}, scores={}).save(tmp_path / "run")
    assert load_run(tmp_path / "run").model.teachers == ["Ridge", "gp"]


@pytest.mark.parametrize(
    ("rows", "given"),
    [
        (39, {}),
        pytest.param(60, {"pairs": "neighbors", "neighbors": 4}, marks=pytest.mark.slow),
    ],
)
def test_where_nobody_can_teach_strong_decay_is_tried(rows, given, brief):
    X = np.random.default_rng(0).random((rows, 2))
    model = TwinRegressor(hidden=8, random_state=0, **given)
    model.fit(X, X[:, 0], validation=(X[:9], X[:9, 0]))
    assert model.teaching_ is None
    assert {one["weight_decay"] for one in model.trials_} == {0.03, 0.3, 0.001, 0.01, 0.1}


def test_networks_that_diverged_teach_nobody():
    held, task = prepared(Teacher("noted", Noted(0.5)), networks=True)
    elsewhere = np.zeros(HELD + len(held.points(task)), np.float32)
    lost = [Predictions("relu networks", np.full(TRAIN, np.nan, np.float32), elsewhere)]
    found = predicted(held, task, lost)
    assert [one["teacher"] for one in found.teachers] == ["noted"]
    assert np.isfinite(found.rows).all()


@pytest.mark.parametrize("given", [{"teachers": None}, {"steps": 50}])
def test_there_may_be_no_teachers(given, brief, curve):
    model = TwinRegressor(hidden=8, random_state=0, **given).fit(*curve)
    assert model.teaching_ is None
