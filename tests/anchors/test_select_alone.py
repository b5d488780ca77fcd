"""What holds for every method that chooses anchors from the training points alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from threadpoolctl import threadpool_limits

from twinedge.anchors import METHODS, select

ALONE = [name for name, method in METHODS.items() if not method.needs_model]
SCALED = ["medoids", "farthest", "xy"]


MEASURED = st.floats(-1e6, 1e6)
FEW = st.sampled_from([0.0, 1.0, 7.0])


@st.composite
def tables(draw, values):
    """A table, how many twins, and how many anchors they share."""
    twins, each = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    k = twins * each
    n = draw(st.integers(k, k + 25))
    X = draw(hnp.arrays(float, (n, draw(st.integers(1, 3))), elements=values))
    y = draw(hnp.arrays(float, n, elements=values))
    return X, y, k, twins


@pytest.mark.parametrize("method", ALONE)
@settings(max_examples=25, deadline=None)
@given(table=tables(MEASURED) | tables(FEW), seed=st.integers(0, 2**32))
def test_rows_are_distinct_there_and_as_many_as_requested(method, table, seed):
    X, y, k, twins = table
    rows = select(X, y, k, method, twins=twins, seed=seed)
    assert rows.shape == (k,)
    assert np.issubdtype(rows.dtype, np.integer)
    assert len(set(rows.tolist())) == k
    assert 0 <= rows.min() <= rows.max() < len(y)


@pytest.mark.parametrize("method", ["medoids", "farthest", "xy"])
def test_every_distinct_point_comes_before_any_copy(method):
    X = np.repeat([[0.0], [1.0], [5.0], [9.0]], [1, 40, 3, 2], axis=0)
    rows = select(X, X[:, 0], 4, method)
    assert sorted(X[rows, 0]) == [0, 1, 5, 9]
    rows = select(X, X[:, 0], 7, method)
    assert set(X[rows, 0]) == {0, 1, 5, 9}


def test_medoids_of_points_closer_than_rounding():
    X = np.concatenate([[[-1.0]], 1 + np.arange(20)[:, None] * 2.3e-16])
    assert len(set(select(X, X[:, 0], 9, "medoids").tolist())) == 9


@pytest.mark.parametrize("method", ALONE)
def test_all_rows_can_be_chosen(method):
    X = np.random.default_rng(0).normal(size=(24, 2))
    rows = select(X, X[:, 0], 24, method, twins=4)
    assert sorted(rows) == list(range(24))


@pytest.mark.parametrize("method", SCALED)
@settings(max_examples=10, deadline=None)
@given(
    data=st.data(),
    powers=st.lists(st.integers(-20, 20), min_size=3, max_size=3),
    seed=st.integers(0, 99),
)
def test_units_and_order_of_features_do_not_matter(method, data, powers, seed):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    y = X[:, 0] + X[:, 1]
    order = data.draw(st.permutations(range(3)))
    # Powers of two: other factors round, and could change which of two near points is nearer.
    other = (X * 2.0 ** np.array(powers) * [1, -1, 1])[:, order]
    rows = select(X, y, 8, method, twins=2, seed=seed)
    np.testing.assert_array_equal(select(other, y * 1024, 8, method, twins=2, seed=seed), rows)


@pytest.mark.parametrize("method", SCALED)
def test_a_constant_feature_does_not_matter(method):
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = X.sum(axis=1)
    with_constant = np.column_stack([X, np.full(50, 1e9 + 0.1)])
    np.testing.assert_array_equal(select(with_constant, y, 6, method), select(X, y, 6, method))


@pytest.mark.parametrize("method", ALONE)
def test_the_same_seed_gives_the_same_rows_whatever_else_is_drawn(method):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0]
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    first = select(X, y, 12, method, twins=3, seed=5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.random.seed(2)
    np.testing.assert_array_equal(select(X, y, 12, method, twins=3, seed=5), first)


@pytest.mark.parametrize("method", ["random", "stratified"])
def test_another_seed_gives_other_rows(method):
    X, y = np.arange(90.0)[:, None], np.repeat([0.0, 1.0, 2.0], 30)
    assert set(select(X, y, 3, method, seed=0)) != set(select(X, y, 3, method, seed=1))


@pytest.mark.parametrize("method", ["medoids", "xy"])
def test_the_number_of_threads_does_not_matter(method):
    X = np.random.default_rng(0).normal(size=(3000, 4))
    found = []
    for threads in (1, 4):
        with threadpool_limits(threads):
            found.append(select(X, X[:, 0], 16, method, twins=2))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("method", [name for name in ALONE if name != "random"])
@pytest.mark.parametrize(("twins", "each"), [(1, 5), (4, 2)])
def test_every_twins_share_covers_both_halves(method, twins, each):
    rng = np.random.default_rng(3)
    half = np.repeat([0, 1], [150, 50])
    X = rng.normal(size=(200, 2)) + 100 * half[:, None]
    # In quantiles of the target a half of a quarter of the rows has one stratum of two at best.
    y = X[:, 0] if method != "stratified" else rng.normal(size=200) + 100 * (np.arange(200) % 2)
    side = half if method != "stratified" else np.arange(200) % 2
    rows = select(X, y, twins * each, method, twins=twins)
    for twin in range(twins):
        assert set(side[rows[twin::twins]]) == {0, 1}


def test_medoids_are_the_centres_of_clusters():
    X = np.concatenate([centre + np.arange(-2.0, 3.0) for centre in (0, 50, 200)])[:, None]
    assert sorted(X[select(X, X[:, 0], 3, "medoids"), 0]) == [0, 50, 200]


def test_xy_passes_over_a_point_with_an_odd_target():
    x = np.concatenate([centre + np.arange(-2.0, 3.0) for centre in (0, 50, 200)])
    y = np.zeros(15)
    y[2] = 30.0  # the middle of the first cluster of x
    assert 2 in select(x[:, None], y, 3, "medoids")
    rows = select(x[:, None], y, 4, "xy")
    assert 2 in rows  # its own cluster
    assert set(rows) & {0, 1, 3, 4}


def test_farthest_starts_in_the_middle_and_goes_outwards():
    X = np.array([[0.0], [4.0], [5.0], [7.0], [10.0]])
    assert select(X, X[:, 0], 4, "farthest").tolist() == [2, 0, 4, 3]


def test_stratified_takes_the_median_of_each_part():
    y = np.array([3.0, 1.0, 2.0, 30.0, 10.0, 20.0, 300.0, 100.0, 200.0])
    rows = select(np.zeros((9, 1)), y, 3, "stratified")
    assert y[rows].tolist() == [2, 20, 200]
