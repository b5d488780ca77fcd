import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinedge.training.pairs import nearest, nearest_others, random_others

points = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)


def by_distance(point):
    return np.argsort(np.linalg.norm(points - point, axis=1))


def test_nearest_are_the_points_at_the_least_distance_nearest_first():
    queries = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    expected = [by_distance(query)[:4] for query in queries]
    np.testing.assert_array_equal(nearest(points, queries, 4), expected)


def test_nearest_others_leave_the_point_itself_out():
    expected = [by_distance(point)[1:5] for point in points]
    np.testing.assert_array_equal(nearest_others(points, 4), expected)


def test_a_point_is_not_its_own_neighbor_even_among_copies_of_itself():
    twice = np.repeat(points[:5], 2, axis=0)
    found = nearest_others(twice, 1)[:, 0]
    np.testing.assert_array_equal(found, np.arange(10) ^ 1)


def test_more_neighbors_than_points_are_all_there_are():
    assert nearest(points, points[:1], 99).shape == (1, 30)
    assert nearest_others(points, 99).shape == (30, 29)


@given(st.integers(2, 40), st.integers(1, 50), st.integers(0, 99))
def test_random_others_are_distinct_and_not_the_row_itself(rows, count, seed):
    partners = random_others(rows, count, seed)
    assert partners.shape == (rows, min(count, rows - 1))
    for row, mine in enumerate(partners):
        assert len({row, *mine}) == 1 + len(mine)
        assert 0 <= mine.min() <= mine.max() < rows


def test_random_others_depend_on_the_seed_alone():
    assert np.array_equal(random_others(20, 3, 1), random_others(20, 3, 1))
    assert not np.array_equal(random_others(20, 3, 1), random_others(20, 3, 2))
