"""Pairs of points: which are formed, and what twins predict for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.training.network import Architecture
from twinedge.training.pairs import differences, nearest, nearest_others, random_others

TWINS, POINTS, ANCHORS, FEATURES = 2, 7, 5, 3


@pytest.fixture(params=[(6,), (3, 5, 4)], ids=str)
def architecture(request):
    return Architecture(2 * FEATURES, request.param, "silu")


@pytest.fixture
def problem(architecture):
    rng = np.random.default_rng(0)
    stack = architecture.initial([1, 2])
    stack += rng.normal(size=stack.shape).astype(np.float32) / 4
    x, anchors = (
        rng.normal(size=(TWINS, n, FEATURES)).astype(np.float32) for n in (POINTS, ANCHORS)
    )
    return stack, x, anchors


def every_pair(architecture, stack, x, anchors, symmetric):
    """F of each point and anchor, one pair at a time."""
    result = np.empty((TWINS, POINTS, ANCHORS))

    def one(c, p, q):
        return architecture.outputs(stack[c : c + 1], np.concatenate([p, q])[None, None])[0, 0]

    for c in range(TWINS):
        for i, p in enumerate(x[c]):
            for k, a in enumerate(anchors[c]):
                there = one(c, p, a)
                result[c, i, k] = (there - one(c, a, p)) / 2 if symmetric else there
    return result


@pytest.mark.parametrize("symmetric", [True, False])
def test_differences_are_those_of_every_pair_by_itself(architecture, problem, symmetric):
    (block,) = differences(architecture, *problem, symmetric=symmetric)
    expected = every_pair(architecture, *problem, symmetric)
    np.testing.assert_allclose(block, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("symmetric", [True, False])
def test_differences_to_the_nearest_are_those_of_the_chosen_anchors(
    architecture, problem, symmetric
):
    chosen = np.random.default_rng(1).integers(0, ANCHORS, (TWINS, POINTS, 3))
    (block,) = differences(architecture, *problem, chosen, symmetric=symmetric)
    everything = every_pair(architecture, *problem, symmetric)
    expected = np.take_along_axis(everything, chosen, axis=2)
    np.testing.assert_allclose(block, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rows", "few"), [(1, False), (3, True), (POINTS, False)])
def test_blocks_put_together_are_the_whole(architecture, problem, monkeypatch, rows, few):
    chosen = np.random.default_rng(1).integers(0, ANCHORS, (TWINS, POINTS, 3)) if few else None
    (whole,) = differences(architecture, *problem, chosen)
    members = 3 if few else ANCHORS
    values = TWINS * members * max(architecture.hidden)
    monkeypatch.setattr("twinedge.training.pairs._BLOCK", rows * values + values - 1)
    blocks = list(differences(architecture, *problem, chosen))
    assert [block.shape[1] for block in blocks[:-1]] == [rows] * (-(-POINTS // rows) - 1)
    np.testing.assert_allclose(np.concatenate(blocks, axis=1), whole, rtol=1e-5, atol=1e-6)


def test_symmetric_differences_change_their_sign_with_the_order(architecture, problem):
    stack, x, anchors = problem
    (there,) = differences(architecture, stack, x, anchors)
    (back,) = differences(architecture, stack, anchors, x)
    np.testing.assert_allclose(there, -back.transpose(0, 2, 1), rtol=1e-5, atol=1e-6)


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


@given(st.integers(2, 40), st.integers(1, 50), st.integers(0, 99))
def test_random_others_are_distinct_and_not_the_row_itself(rows, count, seed):
    partners = random_others(rows, count, seed)
    assert partners.shape == (rows, min(count, rows - 1))
    for row, mine in enumerate(partners):
        assert len({row, *mine}) == 1 + len(mine)
        assert 0 <= mine.min() <= mine.max() < rows
