"""Sample weights by themselves: what is refused, and rows drawn in proportion to them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge import InputError
from twinedge.scoring.weights import (
    check_weights,
    draw,
    effective_rows,
    in_proportion,
    mean_and_std,
    relative,
    running_shares,
)

some_weights = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40).map(np.array)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], r"must have shape \(3,\), one for each row, not shape \(2,\)"),
        (2.0, r"not shape \(\)"),
        (np.ones((3, 1)), r"not shape \(3, 1\)"),
        ([1, -2, 1], "row 1 has weight -2; weights are finite numbers of at least 0"),
        ([1, np.nan, 1], "row 1 has weight nan"),
        ([1, 1, np.inf], "row 2 has weight inf"),
        ([0, 0, 0], "all weights are zero; at least two rows must count"),
        ([0, 5, 0], "only one row has a weight above zero; at least two rows must count"),
        (["1", "2", "3"], "must be one number for each row"),
        ([1, "many", 3], "must be one number for each row"),
        ([[1], [2, 3], 4], "must be one number for each row"),
        ([1, None, 2], "row 1 has weight nan"),
        ([1j, 2, 3], "must be one number for each row"),
        (np.array(["2024-01-01"] * 3, "datetime64[D]"), "must be one number for each row"),
    ],
    ids=str,
)
def test_bad_weights_are_refused_in_one_line(weights, words):
    with pytest.raises(InputError, match=words) as found:
        check_weights(weights, 3)
    assert str(found.value).startswith("sample_weight")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "weights",
    [
        [1, 2, 0],
        (1.0, 2.0, 0.0),
        np.array([1, 2, 0], np.uint8),
        np.array([True, True, False]) * 1.5,
        pd.Series([1, 2, 0], index=[5, 5, 9]),
        pd.Series([1, 2, 0], dtype="Int64"),
    ],
    ids=lambda one: str(type(one).__name__),
)
def test_weights_of_any_kind_are_read(weights):
    found = check_weights(weights, 3)
    assert found.dtype == np.float64
    assert found.tolist() == [float(one) for one in weights]


def test_weights_that_are_all_the_same_say_nothing():
    assert relative(np.full(5, 0.3)) is None
    assert relative(None) is None
    assert relative(np.empty(0)) is None


@given(some_weights, st.sampled_from([1e-300, 0.5, 4.0, 1e300]))
def test_only_ratios_matter(weights, factor):
    one, other = relative(weights), relative(weights * factor)
    assert (one is None) == (other is None)
    if one is not None:
        assert one.mean() == pytest.approx(1)
        np.testing.assert_allclose(one, other, rtol=1e-9)


@given(some_weights)
def test_a_row_of_weight_two_is_worth_two_rows(weights):
    assert effective_rows(weights, len(weights)) <= len(weights) * (1 + 1e-12)
    assert effective_rows(np.ones(7), 7) == effective_rows(None, 7) == 7
    times = np.random.default_rng(0).integers(1, 4, len(weights))
    values = np.random.default_rng(1).normal(size=len(weights))
    mean, std = mean_and_std(values, 0, times)
    repeated = np.repeat(values, times)
    assert mean == pytest.approx(repeated.mean(), abs=1e-12)
    assert std == pytest.approx(repeated.std(), abs=1e-12)


@given(some_weights, st.integers(1, 200))
def test_rows_are_taken_as_often_as_their_weights_say(weights, count):
    rows = np.random.default_rng(0).permutation(len(weights))
    taken = np.bincount(in_proportion(rows, weights, count), minlength=len(weights))
    assert taken.sum() == count
    assert (np.abs(taken - count * weights / weights.sum()) < 1 + 1e-9).all()


def test_without_weights_the_first_rows_are_taken():
    rows = np.array([4, 1, 3, 0, 2])
    assert in_proportion(rows, None, 3).tolist() == [4, 1, 3]


def test_draws_follow_the_weights():
    weights = np.array([1.0, 0.0, 3.0, 6.0])
    assert running_shares(weights).tolist() == [0.1, 0.1, 0.4, 1.0]
    drawn = draw(np.random.default_rng(0), 4, weights, (2, 50_000))
    assert drawn.shape == (2, 50_000)
    shares = np.bincount(drawn.ravel(), minlength=4) / drawn.size
    np.testing.assert_allclose(shares, [0.1, 0, 0.3, 0.6], atol=0.01)
    assert shares[1] == 0
