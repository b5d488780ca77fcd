"""Scores in order of time: the last known value, and errors block by block."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twinedge.encoding.times import Notation
from twinedge.evaluation.forecasting import BLOCKS, naive_forecast, score_blocks

rows = st.lists(st.tuples(st.integers(0, 20), st.floats(-100, 100)), min_size=1, max_size=60)


@given(rows)
def test_the_naive_forecast_is_the_mean_of_the_last_time_before(table):
    times, y = (np.array(part) for part in zip(*table, strict=True))
    found = naive_forecast(times, y)
    for when, value in zip(times, found, strict=True):
        before = times[times < when]
        if not len(before):
            assert np.isnan(value)
        else:
            np.testing.assert_allclose(value, y[times == before.max()].mean(), atol=1e-9)


@given(rows)
def test_blocks_hold_every_row_once_in_order(table):
    times, error = (np.array(part) for part in zip(*table, strict=True))
    blocks = score_blocks(times, Notation(unit="numbers"), error, np.zeros(len(error)))
    assert len(blocks) <= BLOCKS
    assert sum(one["rows"] for one in blocks) == len(times)
    whole = sum(one["rows"] * one["rmse"] ** 2 for one in blocks) / len(times)
    np.testing.assert_allclose(whole, np.mean(error**2), atol=1e-9)
    ends = [float(one[end]) for one in blocks for end in ("from", "until")]
    assert ends == sorted(ends)
    assert ends[0] == times.min()
    assert ends[-1] == times.max()


def test_weights_count_within_a_block():
    weights = np.array([1.0, 3.0])
    (one,) = score_blocks(
        np.array([0.0, 0.0]), Notation(), np.array([2.0, 0.0]), np.array([0.0, 2.0]), weights
    )
    assert one == {
        "from": "1970-01-01T00:00:00Z",
        "until": "1970-01-01T00:00:00Z",
        "rows": 2,
        "rmse": 1.0,
        "rmse_naive": np.sqrt(3.0),
    }


def test_a_block_without_a_row_before_it_has_no_naive_error():
    one, two = score_blocks(
        np.array([1.0, 2.0]), Notation(), np.array([1.0, 1.0]), np.array([np.nan, 5.0])
    )
    assert one["rmse_naive"] is None
    assert two["rmse_naive"] == 5.0
