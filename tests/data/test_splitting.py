import numpy as np
import pytest

from twinedge.data import load, names, split_rows, splits
from twinedge.data.catalogue import CATALOGUE
from twinedge.data.splitting import split_in_two


def recipe(n, i):
    """The lines of the paper's code."""
    state = np.random.get_state()
    np.random.seed(i)
    p = np.random.permutation(n)
    np.random.set_state(state)
    n_val, n_test = int(0.1 * n), int(0.2 * n)
    n_train = n - n_val - n_test
    return p[:n_train], p[n_train : n_train + n_val], p[n_train + n_val :]


@pytest.mark.parametrize("name", names())
def test_the_25_splits_are_the_partitions_of_the_paper(name):
    n = CATALOGUE[name].rows
    for i in range(25):
        split = splits(name, i)
        assert sorted(np.concatenate(split)) == list(range(n))
        for part, of_paper in zip(split, recipe(n, i), strict=True):
            assert len(part) == len(of_paper)
            assert np.array_equal(part, of_paper) == (name != "bh")


@pytest.mark.parametrize("i", [0, 13, 24])
def test_splits_of_bh_pick_the_papers_points_from_our_rows(i, true_values):
    rows = true_values("bh")
    idx = np.arange(506)
    np.random.RandomState(113).shuffle(idx)
    papers_copy = rows[idx]
    data = load("bh")
    points = np.column_stack([data.X, data.y])
    for part, p in zip(splits("bh", i), recipe(506, i), strict=True):
        np.testing.assert_array_equal(points[part], papers_copy[p])
        assert not np.array_equal(part, p)


def test_the_first_rows_of_keras_boston_housing_come_first(true_values):
    # Known from Keras: the first target of its training data is 15.2, then 42.3 and 50.
    idx = np.arange(506)
    np.random.RandomState(113).shuffle(idx)
    assert true_values("bh")[idx[:3], -1].tolist() == [15.2, 42.3, 50.0]


def test_splitting_leaves_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()
    splits("bh", 3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("i", [-1, 25])
def test_only_splits_0_to_24_exist(i, complaint):
    message = complaint(splits, "bh", i)
    assert str(i) in message
    assert "0 to 24" in message


def test_splits_of_an_unknown_set_are_refused(complaint):
    assert "the sets are" in complaint(splits, "nosuch", 0)


@pytest.mark.parametrize("n", [10, 11, 99, 1000])
def test_any_table_is_split_70_10_20(n):
    split = split_rows(n, seed=5)
    for part, expected in zip(split, recipe(n, 5), strict=True):
        np.testing.assert_array_equal(part, expected)
        assert part.dtype == np.int64
    assert min(map(len, split)) >= 1


@pytest.mark.parametrize("n", [0, 1, 9])
def test_a_table_too_short_to_split_is_refused(n, complaint):
    message = complaint(split_rows, n, 0)
    assert f"{n} row" in message
    assert "at least 10" in message


def test_rows_of_one_time_have_no_later_ones_to_validate_on(complaint):
    assert "all rows have the same time" in complaint(split_in_two, 40, 0, times=np.zeros(40))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed, complaint):
    assert "4294967295" in complaint(split_rows, 100, seed)
