"""Coverage of intervals: what a perfect spread covers, and how a factor corrects another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge_export.report.reliability import LEVELS, Predictions, reliability, spread_factor


def predictions(error, spread):
    zero = np.zeros(len(error))
    return Predictions("test", zero, zero + error, np.asarray(spread, float))


def noise(count, by=1.0, seed=0):
    """Errors drawn with the stated spread, or ``by`` times it."""
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.5, 2, count)
    return predictions(by * spread * rng.normal(size=count), spread)


def test_a_true_spread_covers_what_it_claims():
    found = reliability(noise(20_000), noise(20_000, seed=1))
    assert [one.claimed for one in found.coverage] == list(LEVELS)
    for one in found.coverage:
        assert one.covered == pytest.approx(one.claimed, abs=0.015)
    assert found.factor == pytest.approx(1, abs=0.03)


def test_the_factor_makes_up_for_a_spread_that_is_too_small():
    found = reliability(noise(20_000, by=3), noise(20_000, by=3, seed=1))
    assert found.factor == pytest.approx(3, rel=0.03)
    assert found.at(0.9).covered < 0.45
    assert found.at(0.9).scaled == pytest.approx(0.9, abs=0.015)


numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
pairs = st.lists(st.tuples(numbers, st.floats(0.01, 10)), min_size=1, max_size=30)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(pairs, pairs)
def test_wider_intervals_never_cover_less(test, validation):
    found = reliability(
        predictions(*zip(*test, strict=True)), predictions(*zip(*validation, strict=True))
    )
    for column in (1, 2):
        parts = [one[column] for one in found.coverage]
        if parts[0] is None:
            assert found.factor is None
            continue
        assert parts == sorted(parts)
        assert 0 <= parts[0] <= parts[-1] <= 1


@settings(derandomize=True, max_examples=60, deadline=None)
@given(pairs)
def test_on_its_own_points_the_factor_covers_as_claimed(points):
    own = predictions(*zip(*points, strict=True))
    factor = spread_factor(own)
    if factor is None:
        assert np.mean(own.error == 0) > 0.5
        return
    assert np.mean(np.abs(own.error) <= factor * own.spread * (1 + 1e-12)) >= 0.68


def test_without_spread_there_is_nothing_to_score():
    assert reliability(predictions([1, -1], [0, 0]), noise(10)) is None
    assert spread_factor(predictions([1, -1, 2], [0, 0, 1])) is None
    found = reliability(noise(10), predictions([1, -1, 2], [0, 0, 1]))
    assert found.factor is None
    assert all(one.scaled is None for one in found.coverage)
