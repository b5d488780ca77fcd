import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from twinedge import AnnRegressor, LoopRegressor, TwinnedRegressor, TwinRegressor
from twinedge.estimators import loops
from twinedge.estimators.loops import draw_loops, propose

FOREST = TwinnedRegressor(RandomForestRegressor(4), random_state=0)


@pytest.fixture
def parts(curve):
    """20 labelled points, 15 unlabelled ones and their targets."""
    X, y = curve
    return X[:20], y[:20], X[40:55], y[40:55]


@pytest.fixture(params=["forest", "twins"])
def base(request, tiny):
    return {
        "forest": FOREST,
        "twins": TwinRegressor(**tiny | {"steps": 50}, twins=2, pairs=4),
    }[request.param]


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 40))
def test_a_loop_has_one_labelled_point_and_two_unlabelled_ones(count, labelled, unlabelled):
    found = draw_loops(count, labelled, unlabelled, np.random.RandomState(0))
    assert found.shape == (count, 3)
    assert (found[:, 0] < labelled).all()
    assert (found[:, 1:] >= labelled).all()
    assert (found[:, 1:] < labelled + unlabelled).all()


@pytest.fixture(scope="module")
def supervised(curve):
    X, y = curve
    return clone(FOREST).fit(X[:20], y[:20])


@settings(max_examples=20)
@given(weight=st.floats(0, 40), seed=st.integers(0, 99))
def test_the_sides_of_a_loop_are_predictions_less_a_part_of_their_sum(
    supervised, curve, weight, seed
):
    U = curve[0][40:55]
    drawn = draw_loops(7, 20, 15, np.random.RandomState(seed))
    extra = propose(supervised, U, drawn, weight)
    assert len(extra) == 21
    points = np.concatenate([supervised.anchor_X_, U])
    for loop, side, labels in zip(
        drawn, extra.rows.reshape(7, 3, 2), extra.differences.reshape(7, 3), strict=True
    ):
        i, j, k = loop
        np.testing.assert_array_equal(side, [[i, j], [j, k], [k, i]])
        m = [supervised.differences(points[[p]], points[[q]])[0] for p, q in side]
        rounded = 1e-6 * (1 + 3 * weight)  # of a target with a standard deviation of 9
        np.testing.assert_allclose(labels, m - weight * np.sum(m), atol=rounded)
        assert np.sum(labels) == pytest.approx((1 - 3 * weight) * np.sum(m), abs=3 * rounded)


def test_labels_do_not_depend_on_the_last_bits_of_a_prediction(supervised, curve, monkeypatch):
    U = curve[0][40:55]
    drawn = draw_loops(30, 20, 15, np.random.RandomState(0))
    whole = propose(supervised, U, drawn, 0.5)
    exact = type(supervised).differences

    def other_order(self, first, second):
        return exact(self, first, second) * (1 + 1e-15)

    monkeypatch.setattr(type(supervised), "differences", other_order)
    np.testing.assert_array_equal(propose(supervised, U, drawn, 0.5).differences, whole.differences)


def test_a_weight_of_zero_gives_the_supervised_model_exactly(base, parts):
    X, y, U, _ = parts
    expected = clone(base).fit(X, y).predict(U)
    model = LoopRegressor(base, loop_weight=0, random_state=0).fit(X, y, unlabelled=U)
    np.testing.assert_array_equal(model.predict(U), expected)
    assert model.model_ is model.supervised_
    no_points = LoopRegressor(base, loop_weight=1, random_state=0).fit(X, y)
    np.testing.assert_array_equal(no_points.predict(U), expected)


def test_the_second_training_takes_the_loops_in(base, parts):
    X, y, U, _ = parts
    model = LoopRegressor(base, loops=50, random_state=0).fit(X, y, unlabelled=U)
    first, second = model.supervised_.predict(U), model.predict(U)
    assert np.isfinite(second).all()
    assert not np.array_equal(first, second)
    again = LoopRegressor(base, loops=50, random_state=0).fit(X, y, unlabelled=U)
    np.testing.assert_array_equal(again.predict(U), second)
    np.testing.assert_array_equal(model.model_.anchor_X_, model.supervised_.anchor_X_)


@pytest.mark.parametrize(
    ("number", "pairs", "expected"),
    [
        ("published", "all", 133),  # of 400 ordered pairs
        ("published", 4, 53),  # of 20 x 4 pairs in both orders
        ("published", 100, 253),  # no point has more than 19 others
        ("text", "all", 7),
        (11, "all", 11),
    ],
)
def test_loops_are_as_many_as_the_protocol_says(parts, monkeypatch, number, pairs, expected):
    counts = []

    def watched(count, *rest):
        counts.append(count)
        return draw_loops(count, *rest)

    monkeypatch.setattr(loops, "draw_loops", watched)
    X, y, U, _ = parts
    base = TwinnedRegressor(DecisionTreeRegressor(max_depth=2), pairs=pairs)
    LoopRegressor(base, loops=number, random_state=0).fit(X, y, unlabelled=U)
    assert counts == [expected]


def test_closing_the_loops_makes_a_forest_more_consistent(parts):
    X, y, U, _ = parts
    model = LoopRegressor(FOREST, loop_weight=1 / 3, random_state=0).fit(X, y, unlabelled=U)
    drawn = draw_loops(500, 20, 15, np.random.RandomState(9))
    violations = [
        np.std(propose(one, U, drawn, 0.0).differences.reshape(-1, 3).sum(axis=1))
        for one in (model.supervised_, model.model_)
    ]
    assert violations[1] < 0.8 * violations[0]


def test_what_the_first_training_chose_is_carried_over(parts, tiny):
    X, y, U, _ = parts
    forest = TwinnedRegressor(
        RandomForestRegressor(2), search={"max_depth": [1, 6]}, random_state=0
    )
    model = LoopRegressor(forest, loops=5, random_state=0).fit(X, y, unlabelled=U)
    assert model.supervised_.search_ is not None
    assert model.model_.search_ is None
    assert model.model_.estimator_.max_depth == model.supervised_.estimator_.max_depth
    twin = TwinRegressor(**{**tiny, "weight_decay": "auto", "steps": 50})
    model = LoopRegressor(twin, loops=5, random_state=0).fit(X, y, unlabelled=U)
    assert len(model.supervised_.trials_) > len(model.model_.trials_) == 1
    assert model.model_.weight_decay_ == model.supervised_.weight_decay_


def test_both_trainings_of_a_twin_hold_out_the_same_rows(curve, tiny):
    X, y = curve
    twin = TwinRegressor(**{**tiny, "random_state": None, "steps": 20})
    model = LoopRegressor(twin, loops=20).fit(X[:60], y[:60], unlabelled=X[60:])
    first, second = model.supervised_, model.model_
    np.testing.assert_array_equal(second.anchor_X_, first.anchor_X_)
    for found, expected in zip(second.validation_, first.validation_, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_prediction_takes_the_parameters_of_the_base(parts):
    X, y, U, _ = parts
    model = LoopRegressor(FOREST, loops=5, random_state=0).fit(X, y, unlabelled=U)
    mean, std = model.predict(U, return_std=True, anchors=[3, 5], symmetric=False)
    own = model.model_.predict(U, return_std=True, anchors=[3, 5], symmetric=False)
    np.testing.assert_array_equal((mean, std), own)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(U), model.predict(U))


BAD = {
    "loop_weight": [-1, np.nan, np.inf, "some", None, True],
    "loops": ["many", 0, -3, 1.5, None, True],
    "base": [None, "twin", AnnRegressor(), RandomForestRegressor()],
    "random_state": ["seed", 1.5],
}
CASES = [pytest.param(name, value, id=f"{name}={value!r}") for name in BAD for value in BAD[name]]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_parameter_that_is_wrong_is_named(complaint, parts, name, value):
    X, y, U, _ = parts
    model = LoopRegressor(**{"base": FOREST, name: value})
    assert name in complaint(model.fit, X, y, unlabelled=U)


def test_a_base_trained_on_neighbors_is_refused(complaint, parts):
    X, y, U, _ = parts
    model = LoopRegressor(TwinnedRegressor(pairs="neighbors"))
    assert "neighbors" in complaint(model.fit, X, y, unlabelled=U)


def test_unlabelled_points_that_do_not_fit_are_refused(parts):
    X, y, U, _ = parts
    with pytest.raises(ValueError, match="X has 2 features"):
        LoopRegressor(FOREST, loop_weight=0).fit(X, y, unlabelled=U[:, :2])
