import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinedge.data.table import count_duplicates

SMALL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, 1e300])


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=SMALL))
def test_the_count_is_rows_less_distinct_rows(rows):
    distinct = {tuple(row) for row in rows.tolist()}
    assert count_duplicates(rows) == len(rows) - len(distinct)


def test_rows_equal_in_x_but_not_in_y_are_no_duplicates():
    X = np.ones((3, 2))
    assert count_duplicates(X) == 2
    assert count_duplicates(X, np.array([1.0, 2.0, 1.0])) == 1


def test_zero_and_minus_zero_are_equal():
    assert count_duplicates(np.array([[0.0], [-0.0]])) == 1


@pytest.mark.parametrize(("name", "count"), [("cs", 25), ("wn", 240), ("bh", 0)])
def test_the_papers_sets_have_as_many_as_is_known(name, count, true_values):
    assert count_duplicates(true_values(name)) == count
