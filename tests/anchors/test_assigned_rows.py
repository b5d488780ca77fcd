import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.training.pairs import deal


def test_all_gives_every_point_to_every_twin():
    np.testing.assert_array_equal(deal("all", 3, 2), [[0, 1, 2], [0, 1, 2]])


def test_rows_are_dealt_out_in_turn():
    np.testing.assert_array_equal(deal([7, 1, 4, 2], 8, 2), [[7, 4], [1, 2]])


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 20))
def test_a_number_deals_out_so_many_different_points(twins, each, more):
    count = twins * each + more
    dealt = deal(twins * each, count, twins)
    assert dealt.shape == (twins, each)
    assert len(set(dealt.ravel())) == twins * each
    assert 0 <= dealt.min() <= dealt.max() < count
    np.testing.assert_array_equal(deal(np.int64(twins * each), count, twins), dealt)


@pytest.mark.parametrize(
    "anchors",
    ["some", 0, -1, 11, True, None, 1.5, [], [[1, 2]], [1.0, 2.0], [0, 10], [-1, 2], [[1], [2, 3]]],
    ids=repr,
)
def test_anchors_that_are_not_there_are_refused(complaint, anchors):
    assert "anchors" in complaint(deal, anchors, 10, 1)


@pytest.mark.parametrize("anchors", [9, [0, 1, 2]])
def test_anchors_that_cannot_be_shared_evenly_are_refused(complaint, anchors):
    assert "evenly to 2 twins" in complaint(deal, anchors, 10, 2)


def test_of_thousands_some_are_enough():
    np.testing.assert_array_equal(deal("auto", 4096, 2), deal("all", 4096, 2))
    dealt = deal("auto", 4097, 2)
    assert dealt.shape == (2, 256)
    assert len(set(dealt[0])) == 256
    assert dealt.max() > 4000
    np.testing.assert_array_equal(dealt[0], dealt[1])
    np.testing.assert_array_equal(dealt, deal("auto", 4097, 2))
