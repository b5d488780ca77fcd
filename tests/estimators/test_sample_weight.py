"""Rows count by their weights: in pairs, as anchors, in errors and in intervals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from twinedge import (
    AnnRegressor,
    EnsembleRegressor,
    InputError,
    LoopRegressor,
    TwinnedRegressor,
    TwinRegressor,
)
from twinedge.anchors.rows import assign
from twinedge.evaluation.small_trees import fit_small_trees
from twinedge.run_folder import Run, load_run
from twinedge.training import selection
from twinedge.training.batches import Examples, Setting
from twinedge.training.network import Scaling, tf
from twinedge.training.pairs import ExtraPairs
from twinedge.training.selection import Candidate
from twinedge.training.tasks import PairTask, PointTask
from twinedge.training.teachers import Predictions, TaughtTask, Teacher, Teaching, weigh
from twinedge.training.trainer import NetworkJob

TINY = {
    "hidden": (8,),
    "activation": "silu",
    "learning_rate": 0.01,
    "weight_decay": 0.003,
    "steps": 300,
    "random_state": 0,
}
OFFSET = 10.0  # of the rows that hardly count


@pytest.fixture(scope="module")
def plain():
    """120 points of a smooth function of two features."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def weighted(halves):
    """A twin that knows the weights of the halves."""
    X, y, weights = halves
    return TwinRegressor(**TINY).fit(X, y, sample_weight=weights)


@pytest.fixture(scope="module")
def halves(plain):
    """The same, with another target in every second row, and weights that speak against those."""
    X, y = plain
    odd = np.arange(len(y)) % 2 == 1
    return X, y + OFFSET * odd, np.where(odd, 1e-3, 1.0)


def assert_same(one, other, X):
    """Every bit of what was learnt is the same."""
    assert np.array_equal(one.weights_, other.weights_)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert one.validation_rmse_ == other.validation_rmse_
    assert one.trials_ == other.trials_
    if isinstance(one, TwinRegressor):
        assert np.array_equal(one.difficulty_, other.difficulty_)
        assert (one.calibration_ is None) == (other.calibration_ is None)
        if one.calibration_ is not None:
            assert np.array_equal(one.calibration_.weights, other.calibration_.weights)
            assert one.calibration_.quantiles == other.calibration_.quantiles


def test_equal_weights_are_no_weights(plain, tiny):
    X, y = plain
    none = TwinRegressor(**tiny).fit(X, y)
    assert none.sample_weights_ is None
    assert_same(none, TwinRegressor(**tiny).fit(X, y, sample_weight=np.full(len(y), 0.3)), X)


def test_rows_of_weight_zero_are_left_out(plain, tiny):
    X, y = plain
    weights = np.random.default_rng(1).random(len(y)) + 0.1
    weights[[0, 7, 8, 119]] = 0
    wild = np.where(weights[:, None] > 0, X, 1e9)  # would ruin the scaling
    kept = weights > 0
    groups = np.arange(len(y)) // 10
    with_them = TwinRegressor(**tiny)
    with_them.fit(wild, np.where(kept, y, -1e9), groups=groups, sample_weight=weights)
    without = TwinRegressor(**tiny)
    without.fit(X[kept], y[kept], groups=groups[kept], sample_weight=weights[kept])
    assert_same(with_them, without, X)
    assert len(with_them.anchor_y_) + len(with_them.validation_[1]) == 116


def test_rows_of_weight_zero_add_no_level_of_a_category(plain, tiny):
    X, y = plain
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 0, "high", "low")})
    weights = np.ones(len(y))
    weights[:3], frame.loc[:2, "kind"] = 0, "never seen"
    model = TwinRegressor(**tiny).fit(frame, y, sample_weight=weights)
    assert model.encoding_.inputs == ("x", "kind=high", "kind=low")
    assert_same(model, TwinRegressor(**tiny).fit(frame[3:], y[3:]), frame[3:])


def test_only_the_ratios_of_weights_matter(plain, tiny):
    X, y = plain
    weights = np.random.default_rng(2).random(len(y)) + 0.1
    one, other = (
        TwinRegressor(**tiny).fit(X, y, sample_weight=factor * weights) for factor in (1, 1024)
    )
    assert_same(one, other, X)
    assert one.sample_weights_.mean() == pytest.approx(1)
    assert one.validation_weights_.mean() == pytest.approx(1)


def slow(model):
    return pytest.param(model, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "model",
    [
        TwinRegressor(intervals=False),
        TwinRegressor(pairs="neighbors", neighbors=10, intervals=False),
        EnsembleRegressor(AnnRegressor(), 2),
        slow(TwinRegressor(twins=2)),
        slow(TwinRegressor(anchors=16)),
        slow(TwinRegressor(pairs=6)),
        slow(TwinRegressor(teachers=["networks", "trees", "gp"])),
    ],
    ids=lambda one: repr(one)[:60],
)
def test_a_model_follows_the_heavy_half(model, halves, plain, tiny):
    X, y, weights = halves
    base = getattr(model, "base", model)
    base.set_params(**(tiny | {"steps": 800}))
    off = model.fit(X, y, sample_weight=weights).predict(X) - plain[1]
    assert np.sqrt(np.mean(np.square(off))) < 0.1 * OFFSET / 2
    alike = model.fit(X, y).predict(X) - plain[1]
    assert np.mean(alike) > 0.8 * OFFSET / 2  # half-way between the two


@pytest.mark.parametrize("wrap", [lambda base: base, LoopRegressor], ids=["alone", "with loops"])
def test_so_does_any_regressor_on_pairs(wrap, halves, plain):
    X, y, weights = halves
    model = wrap(TwinnedRegressor(LinearRegression()))
    given = {} if isinstance(model, TwinnedRegressor) else {"unlabelled": X[:20]}
    model.fit(X, y, sample_weight=weights, **given)
    assert np.abs(model.predict(X) - plain[1]).mean() < 0.1 * OFFSET / 2
    assert np.abs(model.fit(X, y, **given).predict(X) - plain[1]).mean() > 0.8 * OFFSET / 2


def test_a_base_without_weights_is_named(halves):
    X, y, weights = halves
    model = TwinnedRegressor(KNeighborsRegressor())
    with pytest.raises(InputError, match=r"KNeighborsRegressor\(\) takes no sample_weight"):
        model.fit(X, y, sample_weight=weights)


@pytest.mark.slow
def test_extra_pairs_and_loops_go_with_weights(halves, plain, tiny):
    X, y, weights = halves
    rows = np.random.default_rng(0).integers(0, 120, (50, 2))
    extra = ExtraPairs(X, rows, plain[1][rows[:, 0]] - plain[1][rows[:, 1]])
    model = TwinRegressor(loop_weight=0.5, **(tiny | {"steps": 800}))
    model.fit(X, y, sample_weight=weights, extra=extra, unlabelled=X[:30] + 0.01)
    assert np.abs(model.predict(X) - plain[1]).mean() < 0.1 * OFFSET / 2


def shares_of(examples, table, width):
    """How often each row of the table is in a batch, for each network: ``(c, n)``."""
    steps, batch = 20, 500
    draws = examples.kind.draw(steps, batch, tf.constant([0, 0]), *examples.tensors)
    counts = 0
    for k in range(steps):
        x, _ = examples.kind.batch(k, draws, *examples.tensors)
        seen = x.numpy().reshape(len(x), -1, width)[..., 0]
        rows = np.rint(seen).astype(int)
        counts = counts + np.stack([np.bincount(one, minlength=table) for one in rows])
    return counts / counts.sum(axis=1, keepdims=True)


def test_the_scaling_is_that_of_repeated_rows(plain):
    X, y = plain
    times = np.random.default_rng(0).integers(1, 5, len(y))
    weighted = Scaling.of(X, y, weights=times)
    repeated = Scaling.of(np.repeat(X, times, axis=0), np.repeat(y, times))
    for name in ("x_mean", "x_scale", "y_mean", "y_scale"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name))


@pytest.fixture
def numbered():
    """A table whose feature is the number of the row, with weights; the last rows validate."""
    weights = np.array([1.0, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 5, 5, 5, 5])
    weights[:16] /= weights[:16].mean()
    x = np.arange(20, dtype=np.float32)[:, None]
    return {"x": x, "y": x[:, 0], "train": 16, "scale": 2.0, "hidden": (4,), "weights": weights}


def job(fold=None, seed=0):
    return NetworkJob("relu", Setting(0.01, 0.0), 10, seed, fold)


@pytest.mark.parametrize("kind", [PairTask, PointTask])
@pytest.mark.parametrize("fold", [None, 3])
def test_a_row_is_drawn_in_proportion_to_its_weight(kind, fold, numbered):
    task = kind(**numbered)
    jobs = [job(fold), job(fold, seed=5)]
    wanted = np.zeros(20)
    rows = task.rows(jobs[0])
    wanted[rows] = task.weights[rows] / task.weights[rows].sum()
    found = shares_of(task.examples(jobs), 20, 1)
    np.testing.assert_allclose(found, [wanted, wanted], atol=0.02)
    assert not found[:, wanted == 0].any()


def test_a_pair_counts_the_product_of_its_weights(numbered):
    task = PairTask(**numbered)
    examples = task.examples([job()])
    draws = examples.kind.draw(40, 500, tf.constant([0, 0]), *examples.tensors)
    counts = np.zeros((20, 20))
    for k in range(40):
        x, y = (one.numpy()[0] for one in examples.kind.batch(k, draws, *examples.tensors))
        first, second = np.rint(x).astype(int).T
        np.testing.assert_array_equal(y, first - second)
        np.add.at(counts, (first, second), 1)
    share = np.where(np.arange(20) < 16, task.weights, 0) / task.weights[:16].sum()
    np.testing.assert_allclose(counts / counts.sum(), np.outer(share, share), atol=0.004)


def test_a_listed_partner_is_drawn_in_proportion_to_its_weight():
    weights = np.array([1.0, 3.0, 4.0, 2.0])
    partners = np.array([[1, 2], [0, 3], [0, 1], [1, 2]], np.int32)
    x = np.arange(4, dtype=np.float32)[:, None]
    rows = np.array([[3, 1, 0, 2]], np.int32)
    examples = Examples.pairs(x, x[:, 0], rows, partners, weights)
    draws = examples.kind.draw(40, 500, tf.constant([0, 0]), *examples.tensors)
    counts = np.zeros((4, 4))
    for k in range(40):
        pairs = examples.kind.batch(k, draws, *examples.tensors)[0].numpy()[0]
        np.add.at(counts, tuple(np.rint(pairs).astype(int).T), 1)
    wanted = np.zeros((4, 4))
    for row, others in enumerate(partners):
        wanted[row, others] = weights[row] / 10 * weights[others] / weights[others].sum()
    np.testing.assert_allclose(counts / counts.sum(), (wanted + wanted.T) / 2, atol=0.01)


def test_taught_networks_draw_rows_in_proportion_and_points_between_them_alike(numbered):
    task, points = PairTask(**numbered), 8
    x = 20 + np.arange(points, dtype=np.float32)[:, None]
    teaching = Teaching(task.y[:16], x, x[:, 0], [])
    taught = replace(job(), taught=True)
    found = shares_of(TaughtTask(task, teaching).examples([taught]), 28, 1)[0]
    measured = 16 / (16 + points)  # with so few points, rows are not repeated
    np.testing.assert_allclose(found[:16], measured * task.weights[:16] / 16, atol=0.02)
    np.testing.assert_allclose(found[20:], (1 - measured) / points, atol=0.01)


def test_candidates_are_compared_by_weighted_errors(numbered):
    heavy = numbered["weights"][:16] > 2
    names = [Candidate("relu", Setting(0.01, 0.0)), Candidate("silu", Setting(0.01, 0.0))]
    found = [
        Predictions("right about light rows", numbered["y"][:16] + 1.0 * heavy, np.zeros(0)),
        Predictions("right about heavy rows", numbered["y"][:16] + 1.0 * ~heavy, np.zeros(0)),
    ]
    alike = PairTask(**(numbered | {"weights": None}))
    assert selection.best_candidates(alike, names, found)[0] == 0
    assert selection.best_candidates(PairTask(**numbered), names, found)[0] == 1


def test_candidates_are_scored_with_anchors_in_proportion_to_their_weights(numbered):
    # Untrained networks: an estimate is little more than the target of its anchor.
    weights = np.where(np.arange(20) < 4, 1000.0, 1.0)
    task = PairTask(**(numbered | {"weights": weights, "x": np.zeros((20, 1), np.float32)}))
    shape = task.architecture(job())
    predicted = task.predict(shape, shape.initial([0]), task.x[None, :1], [job()])
    assert predicted[0, 0] == pytest.approx(np.average(task.y[:16], weights=weights[:16]), abs=0.2)
    near = replace(task, neighbors=16)
    predicted = near.predict(shape, shape.initial([0]), task.x[None, :1], [job()])
    assert predicted[0, 0] == pytest.approx(np.average(task.y[:16], weights=weights[:16]), abs=1e-4)


def test_errors_of_validation_rows_are_weighted(numbered, monkeypatch):
    weights = numbered["weights"].copy()
    weights[16:] = [1, 1, 1, 9]
    task = PointTask(**(numbered | {"weights": weights}))
    predicted = np.array([[16.0, 17, 18, 29]])  # only the last is off, by 10
    monkeypatch.setattr(PointTask, "predict", lambda self, *rest: predicted)
    assert task.score(None, None, [job()])[0] == pytest.approx(2 * np.sqrt(0.75 * 100))
    errors = task.errors(None, np.zeros((1, 1)), [job()])
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(2 * np.sqrt(0.75 * 100))


def test_the_validation_error_is_weighted(halves, weighted):
    X, _, weights = halves
    model = weighted
    held, targets = model.validation_
    off = model.predict(held) - targets
    mean = np.average(np.square(off), weights=model.validation_weights_)
    assert model.validation_rmse_ == pytest.approx(np.sqrt(mean))
    assert model.validation_rmse_ < 0.1 * np.sqrt(np.mean(np.square(off)))
    kept = dict(zip(map(tuple, X), weights, strict=True))
    ratios = np.array([kept[tuple(x)] for x in held]) / model.validation_weights_
    np.testing.assert_allclose(ratios, ratios[0])
    assert model.score(held, targets, model.validation_weights_) > model.score(held, targets)


def test_validation_points_may_have_weights_of_their_own(halves, tiny):
    X, y, weights = halves
    train, held = slice(80), slice(80, None)
    given = X[train], y[train]
    model = TwinRegressor(**tiny).fit(
        *given, sample_weight=weights[train], validation=(X[held], y[held], None, weights[held])
    )
    assert model.validation_rmse_ == model.rmse(X[held], y[held], weights[held])
    alike = TwinRegressor(**tiny).fit(
        *given, sample_weight=weights[train], validation=(X[held], y[held])
    )
    assert alike.validation_weights_ is None
    assert alike.validation_rmse_ > 5 * model.validation_rmse_
    with pytest.raises(InputError, match="validation weights: row 0 has weight -1"):
        model.fit(*given, validation=(X[held], y[held], None, -weights[held] / weights[80]))


def test_anchors_count_as_much_as_their_weights(halves, tiny):
    X, y, weights = halves
    model = TwinRegressor(twins=2, **tiny).fit(X, y, sample_weight=weights)
    estimates = model.estimates(X, anchors="all")
    each = np.tile(model.sample_weights_, 2)
    mean = np.average(estimates, axis=1, weights=each)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-5)
    variance = np.average(np.square(estimates - mean[:, None]), axis=1, weights=each)
    np.testing.assert_allclose(model.spread(X), np.sqrt(variance), rtol=1e-4)
    drawn, _ = assign(40, len(model.anchor_y_), 2, model.sample_weights_)
    assert (model.sample_weights_[drawn] > 1).mean() > 0.97
    named = model.predict(X, anchors=[0, 1, 2, 3])
    np.testing.assert_allclose(
        named, model.estimates(X, anchors=[0, 1, 2, 3]).mean(axis=1), rtol=1e-5
    )


@pytest.mark.slow
def test_intervals_cover_their_share_of_the_weight(plain, tiny):
    # Heavy rows are noisier: intervals that count rows alike would be too narrow for them.
    rng = np.random.default_rng(3)

    def draw(rows):
        X = rng.uniform(-1, 1, (rows, 2))
        heavy = rng.random(rows) < 0.3
        noise = rng.normal(0, np.where(heavy, 1.0, 0.1))
        return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise, np.where(heavy, 20.0, 1.0)

    X, y = plain
    model = TwinRegressor(**tiny).fit(X, y)
    coverage = {}
    for name in ("alike", "weighted"):
        shares = []
        for _ in range(12):
            X, y, weights = draw(150)
            given = {"sample_weight": weights} if name == "weighted" else {}
            model.calibrate(X, y, **given)
            X, y, weights = draw(500)
            low, high = model.predict_interval(X, 0.9).T
            shares.append(np.average((low <= y) & (y <= high), weights=weights))
        coverage[name] = np.mean(shares)
    assert 0.88 < coverage["weighted"] < 0.95
    assert coverage["alike"] < 0.85


@pytest.mark.slow
def test_intervals_of_a_training_are_calibrated_by_weight(halves, tiny):
    X, y, weights = halves
    X, y, weights = (np.concatenate([one, one]) for one in (X, y, weights))
    model = TwinRegressor(validation_fraction=0.4, **(tiny | {"steps": 800}))
    model.fit(X, y, sample_weight=weights)
    narrow = np.ptp(model.predict_interval(X, 0.8), axis=1).mean()
    assert model.calibration_.rows < 60  # of 96
    model.calibrate(*model.validation_)
    assert narrow < 0.1 * np.ptp(model.predict_interval(X, 0.8), axis=1).mean()


class Recorder(LinearRegression):
    """Remembers the weights it was fitted with."""

    given = []  # noqa: RUF012 - shared by all copies

    def fit(self, X, y, sample_weight=None):
        self.given.append(sample_weight)
        return super().fit(X, y, sample_weight)


def test_teachers_that_take_weights_are_given_them(halves, tiny):
    X, y, weights = halves
    Recorder.given.clear()
    named = [Recorder(), KNeighborsRegressor(20)]
    model = TwinRegressor(teachers=named, **tiny).fit(X, y, sample_weight=weights)
    assert len(Recorder.given) == 5
    assert all(set(np.round(one / one.max(), 6)) == {0.001, 1} for one in Recorder.given)
    # Neighbors count alike, and are far off where it matters.
    first, second = model.teaching_["teachers"]
    assert (first["teacher"], second["teacher"]) == ("Recorder", "KNeighborsRegressor")
    assert second["weight"] == 0
    assert second["rmse"] > 2 * first["rmse"]
    Recorder.given.clear()
    TwinRegressor(teachers=named, **tiny).fit(X, y)
    assert Recorder.given == [None] * 5


def test_teachers_are_combined_by_weight():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=3000)
    predicted = truth[:, None] + rng.normal(size=(3000, 2))
    times = np.where(predicted[:, 0] > truth, 1, 5)
    target = truth + 0.5
    repeated = weigh(np.repeat(predicted, times, axis=0), np.repeat(target, times))
    np.testing.assert_allclose(weigh(predicted, target, times), repeated, atol=0.01)
    assert np.abs(weigh(predicted, target) - repeated).max() > 0.05
    fitted = Teacher("line", LinearRegression().fit(predicted, target), fitted=True)
    assert fitted.fit(predicted, target, times) is fitted.estimator


@pytest.mark.slow
def test_difficulty_is_learnt_where_weight_is(plain, tiny):
    # Light rows are wild on one side: whether that side is hard depends on their weight.
    X, y = plain
    X, y = np.concatenate([X, X + 0.01]), np.concatenate([y, y])
    wild = (X[:, 0] > 0) & (np.arange(240) % 4 == 0)
    y = y + np.where(wild, np.random.default_rng(0).normal(0, 5, 240), 0)
    ratios = {}
    for light in (1e-4, 1.0):
        model = TwinRegressor(**(tiny | {"steps": 800}))
        model.fit(X, y, sample_weight=np.where(wild, light, 1) + 1e-9 * np.arange(240))
        hard = model._signals(X, None, None)[1][2]
        ratios[light] = hard[X[:, 0] > 0.3].mean() / hard[X[:, 0] < -0.3].mean()
    assert ratios[1.0] > 2
    assert ratios[1e-4] < 0.7 * ratios[1.0]


def test_weights_are_part_of_what_a_training_belongs_to(numbered):
    task = PairTask(**numbered)
    others = [replace(task, weights=one) for one in (None, np.roll(task.weights, 1))]
    found = {one.fingerprint() for one in (task, *others)}
    assert len(found) == 3


def test_small_trees_learn_and_are_chosen_by_weight(halves):
    X, y, weights = halves
    train, held = slice(80), slice(80, None)
    found = fit_small_trees(
        (X[train], y[train]),
        (X[held], y[held]),
        few=True,
        weights=(weights[train], weights[held]),
    )
    off = np.square(found.predict(X[held]) - y[held])
    assert found.rmse_val == pytest.approx(np.sqrt(np.average(off, weights=weights[held])))
    assert found.rmse_val < 0.2 * OFFSET


def test_a_run_keeps_the_weights(halves, weighted, tmp_path):
    X, y, weights = halves
    model = weighted
    names = ("a", "b"), "y"
    run = Run(model, *names, model.validation_, (X[:9], y[:9]), test_weights=weights[:9])
    run.save(tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert np.array_equal(loaded.model.predict(X), model.predict(X))
    assert np.array_equal(loaded.model.sample_weights_, model.sample_weights_)
    assert np.array_equal(loaded.model.validation_weights_, model.validation_weights_)
    assert np.array_equal(loaded.evaluation_weights, model.validation_weights_)
    assert np.array_equal(loaded.test_weights, weights[:9])


def test_a_run_with_nothing_held_out_is_evaluated_by_the_weights_of_training(halves, tiny):
    X, y, weights = halves
    model = TwinRegressor(validation_fraction=0, **tiny).fit(X, y, sample_weight=weights)
    assert model.validation_weights_ is model.sample_weights_
    assert model.validation_rmse_ == pytest.approx(model.rmse(X, y, weights))
    run = Run(model, ("a", "b"), "y", model.validation_, (X[:0], y[:0]))
    assert run.evaluation_weights is model.sample_weights_


@pytest.mark.parametrize("model", [TwinRegressor(), TwinnedRegressor()], ids=repr)
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(119), r"must have shape \(120,\), one for each row, not shape \(119,\)"),
        (np.full(120, -1.0), "row 0 has weight -1; weights are finite numbers of at least 0"),
        (np.full(120, np.nan), "row 0 has weight nan"),
        (np.arange(120) == 3, "only one row has a weight above zero"),
        (np.zeros(120), "all weights are zero"),
        (["heavy"] * 120, "must be one number for each row"),
    ],
    ids=["too few", "negative", "nan", "one row", "zero", "words"],
)
def test_bad_weights_are_refused_before_the_training(model, weights, words, plain):
    with pytest.raises(InputError, match=words):
        model.fit(*plain, sample_weight=weights)
    assert not hasattr(model, "anchor_y_")
    assert not hasattr(model, "weights_")
