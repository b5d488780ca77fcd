import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from twinedge import EnsembleRegressor, TwinnedRegressor
from twinedge.estimators import twinned
from twinedge.estimators.twinned import point_folds
from twinedge.training.pairs import ExtraPairs, nearest_others

TREE = DecisionTreeRegressor(max_depth=6, random_state=0)


class Recorder(LinearRegression):
    """A regressor that keeps what it was trained on."""

    def fit(self, X, y):
        self.seen_ = X, y
        return super().fit(X, y)


@pytest.fixture(scope="module")
def table(curve):
    X, y = curve
    return X[:30], y[:30]


@pytest.fixture(scope="module")
def model(table):
    """A twinned forest of a few trees, which is far from antisymmetric."""
    return TwinnedRegressor(RandomForestRegressor(5), random_state=0).fit(*table)


@pytest.fixture(scope="module")
def X(curve):  # noqa: N802 - what every estimator calls it
    return curve[0][100:106]


def f(model, p, q):
    return model.estimator_.predict(np.concatenate([p, q, p - q])[None])[0]


def test_the_base_learns_all_ordered_pairs_with_their_difference(table):
    X, y = table
    features, differences = TwinnedRegressor(Recorder()).fit(X, y).estimator_.seen_
    assert features.shape == (900, 9)
    pairs = [(i, j) for i in range(30) for j in range(30)]
    expected = [np.concatenate([X[i], X[j], X[i] - X[j]]) for i, j in pairs]
    np.testing.assert_array_equal(features, expected)
    np.testing.assert_array_equal(differences, [y[i] - y[j] for i, j in pairs])


@pytest.mark.parametrize("pairs", ["neighbors", 4])
def test_fewer_pairs_come_in_both_orders_and_those_of_a_point_together(table, pairs):
    X, y = table
    model = TwinnedRegressor(Recorder(), pairs=pairs, neighbors=4, random_state=1).fit(X, y)
    features, differences = model.estimator_.seen_
    row = {tuple(point): i for i, point in enumerate(X)}
    first = np.array([row[tuple(one)] for one in features[:, :3]])
    second = np.array([row[tuple(one)] for one in features[:, 3:6]])
    np.testing.assert_array_equal(differences, y[first] - y[second])
    own, partners = first.reshape(30, 8)[:, :4], second.reshape(30, 8)[:, :4]
    np.testing.assert_array_equal(own, np.tile(np.arange(30)[:, None], 4))
    np.testing.assert_array_equal(first.reshape(30, 8)[:, 4:], partners)
    np.testing.assert_array_equal(second.reshape(30, 8)[:, 4:], own)
    if pairs == "neighbors":
        np.testing.assert_array_equal(partners, nearest_others(model.scaling_.features(X), 4))
    else:
        assert all(len({*row} - {i}) == 4 for i, row in enumerate(partners))


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_prediction_is_the_mean_of_equation_2_over_all_anchors(model, X, symmetric):
    mean, std = model.predict(X, return_std=True, symmetric=symmetric)
    for x, m, s in zip(X, mean, std, strict=True):
        estimates = [
            ((f(model, x, a) - f(model, a, x)) / 2 if symmetric else f(model, x, a)) + target
            for a, target in zip(model.anchor_X_, model.anchor_y_, strict=True)
        ]
        assert (m, s) == (pytest.approx(np.mean(estimates)), pytest.approx(np.std(estimates)))


def test_listed_anchors_and_neighbors_choose_among_the_estimates(model, X):
    every = model.estimates(X)
    assert every.shape == (6, 30)
    np.testing.assert_allclose(model.estimates(X, anchors=[7, 3]), every[:, [7, 3]])
    scaled, queries = model.scaling_.features(model.anchor_X_), model.scaling_.features(X)
    distance = np.linalg.norm(queries[:, None] - scaled, axis=2)
    nearest = np.argsort(distance, axis=1)[:, :3]
    found = model.estimates(X, neighbors=3)
    np.testing.assert_allclose(found, np.take_along_axis(every, nearest, axis=1))


def test_predictions_across_blocks_are_those_of_one_block(model, X, monkeypatch):
    whole = [model.estimates(X, neighbors=neighbors) for neighbors in (None, 3)]
    monkeypatch.setattr(twinned, "_BLOCK", 2 * 9 * 30)
    for neighbors, expected in zip((None, 3), whole, strict=True):
        np.testing.assert_allclose(model.estimates(X, neighbors=neighbors), expected)


def test_a_linear_base_gives_the_linear_regression_itself(table, X):
    expected = LinearRegression().fit(*table).predict(X)
    twinned = TwinnedRegressor(LinearRegression()).fit(*table)
    np.testing.assert_allclose(twinned.predict(X), expected)
    np.testing.assert_allclose(twinned.asymmetry(X), 0, atol=1e-9)


def test_a_twinned_forest_beats_a_forest_on_a_smooth_function(curve):
    X, y = curve
    plain = RandomForestRegressor(30, random_state=0).fit(X[:60], y[:60])
    twinned = TwinnedRegressor(plain, random_state=0).fit(X[:60], y[:60])
    errors = [np.sqrt(np.mean((one.predict(X[60:]) - y[60:]) ** 2)) for one in (plain, twinned)]
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize(
    "base",
    [TREE, KNeighborsRegressor(3), make_pipeline(StandardScaler(), KNeighborsRegressor(3))],
    ids=["tree", "neighbors", "pipeline"],
)
def test_any_regressor_will_do_as_base(base, table, X):
    model = TwinnedRegressor(base).fit(*table)
    assert np.isfinite(model.predict(X)).all()
    assert type(model.estimator_) is type(base)
    assert model.base is base
    assert not hasattr(base, "n_features_in_")


def test_the_random_state_reaches_the_base_wherever_it_takes_one(table, X):
    def predict(seed, base):
        return TwinnedRegressor(base, random_state=seed).fit(*table).predict(X)

    plain = RandomForestRegressor(3)
    np.testing.assert_array_equal(predict(3, plain), predict(3, plain))
    assert not np.array_equal(predict(3, plain), predict(4, plain))
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(3))
    np.testing.assert_array_equal(predict(3, pipeline), predict(3, pipeline))
    # With no seed, the base keeps its own.
    own = RandomForestRegressor(3, random_state=3)
    np.testing.assert_array_equal(predict(None, own), predict(None, own))


class Ledger(RegressorMixin, BaseEstimator):
    """Finds the target of every training point, and knows nothing about others.

    Pairs are differences, so it solves for the targets; an unseen point counts 0.
    """

    def __init__(self, depth=1):
        self.depth = depth

    @staticmethod
    def points(X):
        width = X.shape[1] // 3
        return [tuple(map(bytes, pair)) for pair in X[:, : 2 * width].reshape(-1, 2, width) + 0.0]

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        pairs = self.points(X)
        place = {point: k for k, point in enumerate(dict.fromkeys(sum(pairs, ())))}
        signs = np.zeros((len(pairs), len(place)))
        for row, (first, second) in zip(signs, pairs, strict=True):
            row[place[first]] += 1
            row[place[second]] -= 1
        found = np.linalg.lstsq(signs, y, rcond=None)[0]
        self.targets_ = {point: found[k] for point, k in place.items()}
        return self

    def predict(self, X):
        known = self.targets_
        return np.array([known.get(p, 0.0) - known.get(q, 0.0) for p, q in self.points(X)])


KINDS = ["all", "neighbors", 3]


@pytest.mark.parametrize(
    ("pairs", "signs", "besides"),
    [("all", False, False), ("neighbors", True, False), (3, True, True)],
)
def test_a_search_holds_points_out_in_either_role(pairs, signs, besides):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)  # targets do not depend on features
    X[:, 1] = 0.0
    if signs:  # the same points again, with the same targets
        X, y = np.concatenate([X, X * [1.0, -1.0]]), np.concatenate([y, y])
    extra = None
    if besides:  # pairs that would reveal every target
        rows = np.array([(k, (k + 1) % 40) for k in range(40)])
        extra = ExtraPairs(X, rows, y[rows[:, 0]] - y[rows[:, 1]])
    ledger = Ledger()
    model = TwinnedRegressor(ledger, search={"depth": [1]}, pairs=pairs, random_state=0)
    model.fit(X, y, extra=extra)
    # Held-out pairs share their points with others; held-out points do not.
    copy = model.resolved().set_params(base=Recorder())
    features, differences = copy.fit(X, y, extra=extra).estimator_.seen_
    shuffled = KFold(5, shuffle=True, random_state=0)
    leaky = cross_val_score(ledger, features, differences, cv=shuffled).mean()
    assert leaky > 0.9
    assert model.search_.best_score_ < 0.7


def test_pairs_of_two_points_that_are_held_out_are_not_scored(table):
    X, _ = table
    first, second = np.indices((30, 30)).reshape(2, -1)
    for trained, scored in point_folds(X, first, second, None, 0):
        known = {*first[trained]} | {*second[trained]}
        assert len(known) == 24
        assert all((first[pair] in known) != (second[pair] in known) for pair in scored)
        assert len(scored) == 2 * 6 * 24


def test_the_search_takes_what_is_best_for_points_held_out(table):
    model = TwinnedRegressor(TREE, search={"max_depth": [1, 8]}).fit(*table)
    assert model.estimator_.max_depth == 8
    assert len(model.search_.cv_results_["params"]) == 2
    assert model.search_.n_splits_ == 5


@pytest.mark.parametrize("pairs", KINDS)
def test_points_too_few_to_hold_some_out_are_refused(complaint, pairs):
    model = TwinnedRegressor(TREE, search={"max_depth": [1]}, pairs=pairs)
    same = np.ones((7, 2))
    assert "1 distinct point and" in complaint(model.fit, same, np.arange(7.0))


def test_a_grid_has_a_name(table, monkeypatch):
    grid = {"max_depth": [3], "n_estimators": [2]}
    monkeypatch.setitem(twinned.GRIDS, "text", grid)
    model = TwinnedRegressor(pairs=2, search="text").fit(*table)
    assert model.estimator_.max_depth == grid["max_depth"][0]


def test_a_resolved_copy_has_what_the_search_chose_and_no_search(table, X):
    grid = {"max_depth": [1, 8], "n_estimators": [3]}
    model = TwinnedRegressor(search=grid, random_state=5, pairs=6).fit(*table)
    again = model.resolved()
    assert again.search is None
    assert again.pairs == 6
    np.testing.assert_array_equal(again.fit(*table).predict(X), model.predict(X))


def test_extra_pairs_are_trained_on_besides(table):
    X, y = table
    extra = ExtraPairs(X[:3] + 1, np.array([[0, 2], [1, 1]]), np.array([5.0, 0.5]))
    features, differences = TwinnedRegressor(Recorder()).fit(X, y, extra=extra).estimator_.seen_
    assert len(features) == 902
    p, q = X[0] + 1, X[2] + 1
    np.testing.assert_array_equal(features[900], np.concatenate([p, q, p - q]))
    np.testing.assert_array_equal(differences[900:], [5.0, 0.5])


EXTRA = {
    "points have shape": lambda X: ExtraPairs(X[:, :2], [[0, 1]], [1.0]),
    "rows must be whole numbers": lambda X: ExtraPairs(X, [[0.5, 1]], [1.0]),
    "of shape (m, 2)": lambda X: ExtraPairs(X, [0, 1], [1.0]),
    "1 pairs have 2 differences": lambda X: ExtraPairs(X, [[0, 1]], [1.0, 2.0]),
    "rows must be 0 to 29": lambda X: ExtraPairs(X, [[0, 30]], [1.0]),
    "finite": lambda X: ExtraPairs(X, [[0, 1]], [np.nan]),
}


@pytest.mark.parametrize("words", EXTRA)
def test_extra_pairs_that_do_not_fit_are_refused(complaint, table, words):
    X, y = table
    assert words in complaint(TwinnedRegressor(TREE).fit, X, y, extra=EXTRA[words](X))


BAD = {
    "base": ["forest", StandardScaler(), RandomForestRegressor],
    "pairs": ["some", 0, 2.5, None, True],
    "neighbors": [0, 1.5, "all", None],
    "anchors": ["none", 0, 10_000, [], [-1], None],
    "search": ["best", 3, {"colour": ["red"]}],
    "random_state": ["seed", 1.5],
}
CASES = [pytest.param(name, value, id=f"{name}={value!r}") for name in BAD for value in BAD[name]]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_parameter_that_is_wrong_is_named(complaint, table, name, value):
    assert name in complaint(TwinnedRegressor(**{"base": TREE, name: value}).fit, *table)


def test_it_can_be_cloned_pickled_and_put_into_an_ensemble(model, table, X):
    assert repr(clone(model)) == repr(model)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    base = TwinnedRegressor(pairs=4, search={"max_depth": [2, 5], "n_estimators": [2]})
    ensemble = EnsembleRegressor(base, 3, random_state=0).fit(*table)
    assert len({one.predict(X).tobytes() for one in ensemble.members_}) == 3
    assert [one.search_ is None for one in ensemble.members_] == [False, True, True]
    depths = {one.estimator_.max_depth for one in ensemble.members_}
    assert len(depths) == 1
