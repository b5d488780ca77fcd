import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twinedge import TwinRegressor
from twinedge.errors import InputError
from twinedge.run_folder import Run, load_run
from twinedge.training.batches import Examples, Setting, Stack
from twinedge.training.input_map import (
    InputMap,
    MappedArchitecture,
    choose_knots,
    coded,
    codes_of,
)
from twinedge.training.network import tf
from twinedge.training.pairs import differences
from twinedge.training.selection import Candidate
from twinedge.training.tasks import MapPlan, PairTask
from twinedge.training.trainer import _stacks

finite = st.floats(-5, 5, width=32)


def points(rows=60, seed=0):
    """Two features with curves, and an indicator between them."""
    x = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    x[:, 1] = x[:, 1] > 0
    return x


def mapped_shape(knots, extra=2, **more):
    features, codes = len(knots), codes_of(knots)
    return MappedArchitecture(
        2 * (features + extra), (5,), "relu", features=features, codes=codes, **more
    )


@given(arrays(np.float32, st.tuples(st.integers(2, 60), st.just(2)), elements=finite))
@settings(max_examples=80, deadline=None)
def test_knots_are_values_of_the_feature_apart_from_each_other_and_reach_its_ends(x):
    for column, knots in zip(x.T, choose_knots(x, 8), strict=True):
        assert len(knots) <= 9
        if len(knots):
            assert len(knots) >= 3
            assert np.isin(knots, column).all()
            assert (np.diff(knots) >= np.float32(0.0199)).all()
            assert (knots[0], knots[-1]) == (column.min(), column.max())
        else:
            between = (column - column.min() > 0.0201) & (column.max() - column > 0.0201)
            # Of many values, quantiles may be all at the ends.
            few = len(np.unique(column)) <= 9
            assert between.sum() <= (0 if few else len(x) / 8 + 2)


def test_a_step_has_a_knot_at_each_value_and_an_indicator_none():
    x = np.stack([np.tile([0.0, 1, 2, 5], 25), np.tile([0.0, 1.0], 50), np.arange(100.0)], 1)
    counts, indicator, many = choose_knots(x, 8)
    assert counts.tolist() == [0, 1, 2, 5]
    assert not len(indicator)
    assert len(many) == 9


def test_between_knots_a_map_is_linear_and_beyond_them_only_the_feature_itself_goes_on():
    knots = (np.array([-1.0, 0.0, 2.0], np.float32), np.zeros(0, np.float32))
    table = np.array([[1.0, 0, 5], [2.0, 0, 6], [0.0, 0, 9]], np.float32)
    learnt = InputMap(knots, table)
    x = np.array([[-1.0, 7], [-0.5, 7], [1.0, 7], [2.0, 7], [-3.0, 7], [4.0, 7]], np.float32)
    expected = [
        [0, 7, 5],
        [1, 7, 5.5],
        [2, 7, 7.5],
        [2, 7, 9],
        [-2, 7, 5],
        [4, 7, 9],
    ]
    np.testing.assert_allclose(learnt.apply(x), expected, rtol=1e-6)
    np.testing.assert_array_equal(learnt.apply(x.reshape(2, 3, 2)).reshape(6, 3), learnt.apply(x))


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_the_network_behind_its_map_predicts_what_was_trained(activation):
    x = points()
    knots = choose_knots(x, 4)
    shape = replace(mapped_shape(knots), activation=activation)
    rng = np.random.default_rng(1)
    (flat,) = shape.initial([3]) + rng.normal(size=(1, shape.size)).astype(np.float32)
    pairs = coded(knots, x)[rng.integers(len(x), size=(20, 2))]
    trained = shape.forward(flat[None], pairs.reshape(1, 20, -1)).numpy()[0]
    network, learnt = shape.without_map(flat, knots)
    z = learnt.apply(pairs[..., :3].reshape(40, 3)).reshape(1, 20, -1)
    np.testing.assert_allclose(shape.network.outputs(network[None], z)[0], trained, atol=2e-5)
    for _, mine, rows in learnt.parts():  # centred, so that few digits suffice
        np.testing.assert_allclose(rows.max(axis=0), -rows.min(axis=0), atol=1e-6)
        assert len(mine) == len(rows)


def stack_of(shape, knots, x, y, seeds, **more):
    rows = np.stack([np.random.default_rng(seed).permutation(len(y)) for seed in seeds])
    examples = Examples.pairs(coded(knots, x), y, rows.astype(np.int32))
    return Stack(
        shape,
        examples,
        learning_rate=0.01,
        weight_decays=[0.03] * len(seeds),
        steps=60,
        batch=16,
        seeds=seeds,
        seed=0,
        **more,
    )


def test_twins_that_share_a_map_have_the_same_one_and_others_their_own():
    x = points()
    y, knots = np.abs(x[:, 0]), choose_knots(x, 4)
    for shared in (True, False):
        shape = mapped_shape(knots, shared=shared)
        stack = stack_of(shape, knots, x, y, [0, 1, 2])
        while not stack.finished:
            stack.advance()
        maps = np.stack([shape.steps(one) for one in stack.state.weights])
        networks = stack.state.weights[:, : shape.network.size]
        assert np.ptp(networks, axis=0).max() > 0.1
        assert (np.ptp(maps, axis=0).max() == 0) == shared
        assert np.abs(maps[0] - shape.steps(shape.initial([0])[0])).max() > 0.01  # it learnt


def test_a_shared_map_follows_the_sum_of_what_the_twins_want():
    x = points()
    knots = choose_knots(x, 4)
    shared, apart = (mapped_shape(knots, shared=both, pace=0.3) for both in (True, False))
    stack = tf.constant(shared.initial([0, 1, 2]))
    pairs = coded(knots, x).reshape(1, len(x) // 2, -1) * np.ones((3, 1, 1), np.float32)

    def gradient(shape):
        with tf.GradientTape() as tape:
            tape.watch(stack)
            losses = tf.reduce_mean(tf.square(shape.forward(stack, pairs) - 1), axis=1)
        return shape.tied(tape.gradient(losses, stack)).numpy()

    together, alone = gradient(shared), gradient(apart)
    size = shared.network.size
    np.testing.assert_allclose(together[:, :size], alone[:, :size], atol=1e-5)
    total = np.tile(alone[:, size:].sum(axis=0), (3, 1))
    assert np.abs(total).max() > 0.1
    np.testing.assert_allclose(together[:, size:], total, atol=1e-5)


def test_a_map_has_its_own_pace_and_decay():
    knots = choose_knots(points(), 4)
    quick, slow = (mapped_shape(knots, pace=pace, decay=0.3) for pace in (1.0, 0.1))
    np.testing.assert_allclose(
        slow.steps(slow.initial([0])[0]), quick.steps(quick.initial([0])[0]), rtol=1e-6
    )
    decays = slow.decays([0.01, 0.02])
    size = slow.network.size
    np.testing.assert_array_equal(decays[:, :size], slow.network.decays([0.01, 0.02]))
    np.testing.assert_array_equal(decays[:, size:], np.float32(0.3))


def test_networks_that_share_a_map_are_one_stack_whatever_the_threads():
    plain, mapped = (
        Candidate("relu", Setting(0.01, 0.03)),
        Candidate("relu", Setting(0.01, 0.03), 8),
    )
    last = [mapped.job(100, seed) for seed in range(4)] + [
        plain.job(100, seed) for seed in range(4)
    ]
    assert sorted(map(sorted, _stacks(last, 4))) == [[0, 1, 2, 3], [4, 5], [6, 7]]
    folds = [mapped.job(100, seed, seed) for seed in range(4)]
    assert len(_stacks(folds, 4)) == 4


def test_a_task_scores_each_network_through_its_own_map():
    x = points()
    task = PairTask(x, np.abs(x[:, 0]), 50, 2.0, (5,), maps={4: MapPlan(2, (6,))})
    jobs = [Candidate("relu", Setting(0.01, 0.03), 4).job(10, seed, seed) for seed in range(2)]
    shape = task.architecture(jobs[0])
    assert (shape.inputs, shape.hidden) == (10, (6,))
    stack = shape.initial([0, 1])
    stack += np.random.default_rng(0).normal(size=stack.shape).astype(np.float32)
    both = task.score(shape, stack, jobs)
    alone = [task.score(shape, one[None], [job])[0] for one, job in zip(stack, jobs, strict=True)]
    np.testing.assert_allclose(both, alone, rtol=1e-5)
    network, learnt = shape.without_map(stack[1], task.knots(4))
    rows, anchors = task.validation(jobs[1]), task.rows(jobs[1])
    z = learnt.apply(task.x)
    (found,) = differences(shape.network, network[None], z[None, rows], z[None, anchors])
    off = (found[0] + task.y[anchors]).mean(axis=1) - task.y[rows]
    assert both[1] == pytest.approx(2 * np.sqrt(np.mean(off**2)), rel=1e-4)


def bent(x):
    """A target that bends often along one feature, which a small network cannot follow."""
    zigzag = np.abs(np.abs(np.abs(2 * x[:, 0]) - 1) - 0.5)
    return 4 * zigzag + 0.3 * x[:, 1] + 0.2 * x[:, 2]


@pytest.fixture(scope="module")
def table():
    x = points(240, seed=5)
    return x, bent(x)


@pytest.fixture(scope="module")
def fitted(table):
    model = TwinRegressor(
        hidden=(8,),
        twins=2,
        input_map=16,
        activation="relu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=4000,
        random_state=0,
    )
    return model.fit(*table)


def test_a_model_with_a_map_predicts_what_its_parts_say(fitted, table):
    assert fitted.input_map_ == 16
    assert fitted.map_.outputs == 3 + 8 == fitted.architecture_.inputs // 2
    x = fitted.scaling_.features(table[0][:5])
    z = fitted.inputs_of(x)
    np.testing.assert_array_equal(z, fitted.map_.apply(x))
    rows = np.arange(7)
    anchors = fitted.inputs_of(fitted.scaling_.features(fitted.anchor_X_[rows]))
    (found,) = differences(
        fitted.architecture_, fitted.weights_, np.stack([z, z]), np.stack([anchors, anchors])
    )
    expected = (found + fitted.scaling_.target(fitted.anchor_y_[rows])).mean(axis=(0, 2))
    expected = expected * fitted.scaling_.y_scale + fitted.scaling_.y_mean
    predicted = fitted.predict(table[0][:5], anchors=np.repeat(rows, 2))
    np.testing.assert_allclose(predicted, expected, rtol=1e-4, atol=1e-5)


def test_a_map_follows_bends_that_a_plain_network_of_the_same_width_cannot(fitted, table):
    plain = TwinRegressor(**{**fitted.get_params(), "input_map": "none"}).fit(*table)
    assert plain.map_ is None
    x = points(400, seed=6)
    assert fitted.rmse(x, bent(x)) < 0.9 * plain.rmse(x, bent(x))


def test_one_anchor_makes_an_ordinary_network_of_a_twin_with_a_map(fitted, table):
    x = table[0][:6]
    ordinary = fitted.single_anchor(3, twin=1)
    z = np.broadcast_to(fitted.anchor_X_[3], (6, 3))
    expected = fitted._paired(x, z)[1] + fitted.anchor_y_[3]
    np.testing.assert_allclose(ordinary.predict(x), expected, rtol=1e-4, atol=1e-5)


def test_a_chosen_map_is_fixed_in_the_resolved_model(fitted):
    assert fitted.resolved().input_map == 16


def saved(model, folder):
    nothing = model.anchor_X_[:0], model.anchor_y_[:0]
    Run(model, ("x0", "x1", "x2"), "y", model.validation_, nothing).save(folder)
    return folder


def test_a_map_comes_back_from_a_run(fitted, table, tmp_path):
    model = load_run(saved(fitted, tmp_path / "run")).model
    np.testing.assert_array_equal(model.predict(table[0]), fitted.predict(table[0]))
    assert model.input_map_ == 16
    assert model.resolved().input_map == 16


@pytest.mark.parametrize(
    "wrong", [{"outputs": 12}, {"knots": [17, 0]}, {"knots": [16, 0, 17]}, {"knots": None}]
)
def test_a_run_whose_map_does_not_fit_is_refused(fitted, tmp_path, wrong):
    record = saved(fitted, tmp_path / "run") / "run.json"
    stored = json.loads(record.read_text())
    stored["map"] |= wrong
    record.write_text(json.dumps(stored))
    with pytest.raises(InputError, match="is not a run"):
        load_run(record.parent)


@pytest.fixture
def short_folds(monkeypatch):
    """Folds of a tenth of the usual length are long enough to compare maps."""
    monkeypatch.setattr("twinedge.estimators.twin.LONG_ENOUGH", 100)


def tried(model):
    """Bins of all maps that a model was trained with, 0 for none."""
    return {one.get("bins", 0) for one in model.trials_}


@pytest.mark.usefixtures("short_folds")
def test_by_default_folds_compare_a_map_with_none(table):
    model = TwinRegressor(activation="relu", steps=300, random_state=0).fit(*table)
    assert {one.get("bins", 0) for one in model.trials_ if one["stage"] == "folds"} == {0, 16}
    assert model.input_map_ in (16, "none")
    assert (model.map_ is None) == (model.input_map_ == "none")


@pytest.mark.usefixtures("short_folds")
@pytest.mark.parametrize(
    "given",
    [
        {"hidden": (8,)},
        {"steps": 50},
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in (
                {"input_map": "none"},
                {"activation": "silu"},
                {"pairs": "neighbors"},
                {"pairs": 4},
                {"effort": "quick", "steps": 50},
            )
        ),
    ],
)
def test_by_default_there_is_no_map_where_layers_cannot_give_way_or_folds_cannot_tell(table, given):
    settings = {"activation": "relu", "steps": 300, "random_state": 0, **given}
    assert tried(TwinRegressor(**settings).fit(*table)) == {0}


@pytest.mark.usefixtures("short_folds")
def test_by_default_few_rows_have_no_map(table):
    X, y = (one[:9] for one in table)
    assert tried(TwinRegressor(activation="relu", steps=300, random_state=0).fit(X, y)) == {0}


def test_layers_give_way_so_that_a_pack_does_not_become_larger():
    x = np.random.default_rng(0).normal(size=(40, 8))
    plain, mapped = (
        TwinRegressor(input_map=kind, activation="relu", effort="quick", steps=5).fit(x, x[:, 0])
        for kind in ("none", 8)
    )
    assert plain.architecture_.hidden == (56, 56)
    assert mapped.architecture_.hidden < (56, 56)
    assert 0.95 * plain.pack_bytes() < mapped.pack_bytes() <= plain.pack_bytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"input_map": 0}, "input_map"),
        ({"input_map": "yes"}, "input_map"),
        ({"input_map": 256}, "more than 255"),
        ({"input_map": 4, "pairs": "neighbors"}, "neighbors"),
    ],
)
def test_a_map_that_cannot_be_is_refused(table, wrong, message):
    with pytest.raises(InputError, match=message):
        TwinRegressor(hidden=(4,), steps=10, **wrong).fit(*table)


def test_a_map_for_indicators_alone_is_refused_and_auto_goes_without(table, monkeypatch):
    x, y = (table[0][:, 1:2], table[1])
    with pytest.raises(InputError, match="more than two values"):
        TwinRegressor(hidden=(4,), steps=10, input_map=8).fit(x, y)
    monkeypatch.setattr("twinedge.estimators.twin.LONG_ENOUGH", 1)
    assert tried(TwinRegressor(activation="relu", steps=10).fit(x, y)) == {0}
