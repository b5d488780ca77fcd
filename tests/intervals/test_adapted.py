"""What points measured on site do to a prediction and its scale, by the rule in floats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinedge.calibration import adapted

FREEDOM = 4
KNOWN = 0.75  # fraction of what the points explain that is believed

trusts = st.floats(0.02, 0.98)
scores = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(-8, 8))


@given(trusts, scores, st.floats(0.01, 100), st.floats(-50, 50))
def test_it_is_what_a_student_distribution_says_of_one_more_error(trust, scores, unit, mean):
    """The errors are one joint draw: mean and scale of the next follow from the others."""
    count = len(scores)
    together = np.full((count, count), trust) + (1 - trust) * np.eye(count)
    beside = np.full(count, trust)
    solved = np.linalg.solve(together, np.stack([beside, scores], axis=1))
    middle = beside @ solved[:, 1]
    wider = (FREEDOM + scores @ solved[:, 1]) / (FREEDOM + count)
    variance = (1 - KNOWN * beside @ solved[:, 0]) * wider
    # Each point says: the pack was off by this much here, so it will be there.
    own = mean + unit * scores.mean()
    found = adapted(
        trust, scores, np.full(count, unit), np.array([mean]), np.array([unit]), np.array([own])
    )
    assert found[0] == pytest.approx(mean + unit * middle, rel=1e-9, abs=1e-9 * unit)
    assert found[1] == pytest.approx(unit * np.sqrt(variance), rel=1e-6)


@given(trusts, scores, st.floats(-10, 10), st.floats(-10, 10), st.floats(0.01, 5))
def test_a_prediction_lies_between_the_two_and_a_scale_is_above_zero(
    trust, scores, mean, own, scale
):
    ends = sorted([mean, own])
    found = adapted(
        trust,
        scores,
        np.ones(len(scores)),
        np.array([mean]),
        np.array([scale]),
        np.array([own]),
    )
    assert ends[0] - 1e-9 <= found[0][0] <= ends[1] + 1e-9
    assert found[1][0] > 0


def moved(trust, count, scale=1.0):
    """Fraction of the way that this many points move a prediction of this scale."""
    where = np.zeros(1), np.array([scale]), np.ones(1)
    return adapted(trust, np.ones(count), np.ones(count), *where)[0][0]


@given(trusts, st.integers(1, 50))
def test_more_points_and_more_trust_move_further(trust, count):
    assert 0 < moved(trust, count) < moved(trust, count + 1) < 1
    assert moved(trust, count) < moved(trust + 0.01, count)
    assert moved(trust, 10**6) == pytest.approx(1, abs=1e-4)
    assert moved(trust, 1) == pytest.approx(trust)


@given(trusts, st.integers(1, 50), st.floats(0.01, 1))
def test_where_small_errors_are_expected_they_move_less(trust, count, scale):
    assert moved(trust, count, scale) == pytest.approx(scale * moved(trust, count))
    assert moved(trust, count, 7.0) == moved(trust, count)


@given(trusts, st.integers(1, 50), st.floats(0.01, 1))
def test_where_they_move_less_they_tell_less(trust, count, scale):
    """Variance of an error minus a fraction of the mean of the others, each of variance 1."""
    part = moved(trust, count, scale)
    left = 1 - 2 * part * trust + part**2 * (trust + (1 - trust) / count)
    wider = FREEDOM / (FREEDOM + count)
    right = scale * np.sqrt((1 - KNOWN * (1 - left)) * wider)
    assert scale_with(trust, [0.0] * count, scale) == pytest.approx(right)


def scale_with(trust, scores, scale=1.0):
    scores = np.array(scores)
    where = np.zeros(1), np.array([scale]), np.zeros(1)
    return adapted(trust, scores, np.ones(len(scores)), *where)[1][0]


@given(trusts, st.integers(1, 40))
def test_points_as_expected_make_it_narrower_and_surprising_ones_wider(trust, count):
    small = [0.1 * (-1) ** k for k in range(count)]
    assert scale_with(trust, small) < 1
    assert scale_with(trust, [0.0] * count) < scale_with(trust, small)
    assert scale_with(trust, [9.0 * (-1) ** k for k in range(count + count % 2)]) > 1
    assert scale_with(trust, [20.0] * count) > scale_with(trust, [1.0] * count)


def test_errors_that_agree_surprise_less_where_they_have_much_in_common():
    alike, apart = [2.0] * 8, [2.0, -2.0] * 4
    ratios = [scale_with(trust, alike) / scale_with(trust, apart) for trust in (0.1, 0.5, 0.9)]
    assert 1 > ratios[0] > ratios[1] > ratios[2]


@given(trusts, scores, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(trust, scores, random):
    shuffled = scores.tolist()
    random.shuffle(shuffled)
    assert scale_with(trust, shuffled) == pytest.approx(scale_with(trust, scores))


def test_each_query_is_looked_at_by_itself():
    rng = np.random.default_rng(0)
    points = rng.normal(size=5), rng.uniform(0.5, 2, 5)
    mean, scale, own = rng.normal(size=7), rng.uniform(0.1, 3, 7), rng.normal(size=7)
    together = adapted(0.4, *points, mean, scale, own)
    for row in range(7):
        one = slice(row, row + 1)
        alone = adapted(0.4, *points, mean[one], scale[one], own[one])
        np.testing.assert_allclose(alone, [part[one] for part in together])
