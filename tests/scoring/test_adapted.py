"""What points measured on site do to a prediction and its scale, by the rule in floats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinedge.scoring.calibration import adapted, point_weights

FREEDOM = 4
KNOWN = 13 / 16  # fraction of what the points explain that is believed
NONE = 7  # scales off from which on a point has no weight

trusts = st.floats(0.02, 0.98)
usual = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(-2, 2))
any_scores = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(-60, 60))


def predicted(trust, scores, mean=0.0, scale=1.0, unit=1.0):
    """Mean and scale of one prediction, with points whose scale is the unit."""
    scores = np.asarray(scores, float)
    found = adapted(trust, unit * scores, scores, np.array([mean]), np.array([scale]))
    return found[0][0], found[1][0]


@given(trusts, usual, st.floats(0.01, 100), st.floats(-50, 50))
def test_it_is_what_a_student_distribution_says_of_one_more_error(trust, scores, unit, mean):
    """The errors are one joint draw: mean and scale of the next follow from the others."""
    count = len(scores)
    together = np.full((count, count), trust) + (1 - trust) * np.eye(count)
    beside = np.full(count, trust)
    solved = np.linalg.solve(together, np.stack([beside, scores], axis=1))
    middle = beside @ solved[:, 1]
    wider = (FREEDOM + scores @ solved[:, 1]) / (FREEDOM + count)
    variance = (1 - KNOWN * beside @ solved[:, 0]) * wider
    found = predicted(trust, scores, mean, unit, unit)
    assert found[0] == pytest.approx(mean + unit * middle, rel=1e-9, abs=1e-9 * unit)
    assert found[1] == pytest.approx(unit * np.sqrt(variance), rel=1e-6)


@given(trusts, any_scores, st.floats(0.01, 5))
def test_a_prediction_moves_by_less_than_the_points_are_off(trust, scores, scale):
    mean, wide = predicted(trust, scores, scale=scale)
    most = np.abs(scores).max()
    assert abs(mean) <= most * min(1, scale) + 1e-9
    assert wide > 0


@given(trusts, st.integers(1, 50))
def test_more_points_and_more_trust_move_further(trust, count):
    def moved(trust, count):
        return predicted(trust, np.ones(count))[0]

    assert 0 < moved(trust, count) < moved(trust, count + 1) < 1
    assert moved(trust, count) < moved(trust + 0.01, count)
    assert moved(trust, 10**6) == pytest.approx(1, abs=1e-4)
    assert moved(trust, 1) == pytest.approx(trust)


@given(trusts, st.integers(1, 50), st.floats(0.01, 1))
def test_where_small_errors_are_expected_they_move_less(trust, count, scale):
    scores = np.ones(count)
    full = predicted(trust, scores)[0]
    assert predicted(trust, scores, scale=scale)[0] == pytest.approx(scale * full)
    assert predicted(trust, scores, scale=7.0)[0] == pytest.approx(full)


@given(trusts, st.floats(NONE, 1e9), st.sampled_from([-1, 1]))
def test_a_glitch_as_the_only_point_changes_nothing(trust, off, sign):
    assert predicted(trust, [sign * off], 3.0, 2.0) == (3.0, 2.0)


# A point that is off by s scales has weight (7 - s) / 3; from 6.54 on, that times s is below 1.
@given(trusts, st.floats(6.55, 7), st.floats(0.1, 10))
def test_one_that_is_almost_a_glitch_moves_by_less_than_a_scale(trust, off, scale):
    assert abs(predicted(trust, [off], scale=scale)[0]) < scale


@given(trusts, st.integers(4, 40), st.floats(-2, 2), st.floats(15, 1e9), st.booleans())
def test_a_glitch_among_good_points_is_as_good_as_none(trust, count, middle, off, low):
    rng = np.random.default_rng(count)
    good = rng.normal(middle, 0.5, count)
    glitch = -off if low else off
    with_it = predicted(trust, [*good, glitch])
    assert with_it == pytest.approx(predicted(trust, good), rel=1e-9)
    assert point_weights(np.array([*good, glitch])).tolist() == [1.0] * count + [0.0]


@given(st.integers(2, 20), st.floats(20, 1e6), st.sampled_from([-1, 1]))
def test_points_that_agree_are_believed_however_far_off_they_are(count, off, sign):
    """A machine that really is different says so more than once."""
    scores = sign * (off + np.linspace(-1, 1, count))
    assert (point_weights(scores) == 1).all()
    assert sign * predicted(0.9, scores)[0] > off / 2


@pytest.mark.parametrize("count", [3, 4, 29])
def test_fewer_glitches_than_half_of_the_points_decide_nothing(count):
    good = np.linspace(-1, 1, count)
    for glitches in range((count - 1) // 2):
        weights = point_weights(np.concatenate([good, np.full(glitches, 50.0)]))
        assert (weights[:count] == 1).all()
        assert (weights[count:] == 0).all()


@given(trusts, st.integers(1, 40))
def test_points_as_expected_make_it_narrower_and_surprising_ones_wider(trust, count):
    def wide(scores):
        return predicted(trust, scores)[1]

    small = [0.1 * (-1) ** k for k in range(count)]
    assert wide(small) < 1
    assert wide(np.zeros(count)) < wide(small)
    assert wide([2.0 * (-1) ** k for k in range(count + count % 2)]) > 1
    assert wide(2 * np.ones(count)) > wide(np.ones(count))


def test_errors_that_agree_surprise_less_where_they_have_much_in_common():
    alike, apart = [2.0] * 8, [2.0, -2.0] * 4
    ratios = [predicted(t, alike)[1] / predicted(t, apart)[1] for t in (0.1, 0.5, 0.9)]
    assert 1 > ratios[0] > ratios[1] > ratios[2]


@given(trusts, any_scores, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(trust, scores, random):
    shuffled = scores.tolist()
    random.shuffle(shuffled)
    assert predicted(trust, shuffled) == pytest.approx(predicted(trust, scores))


def test_each_query_is_looked_at_by_itself():
    rng = np.random.default_rng(0)
    points = rng.normal(size=5), rng.uniform(-2, 2, 5)
    mean, scale = rng.normal(size=7), rng.uniform(0.1, 3, 7)
    together = adapted(0.4, *points, mean, scale)
    for row in range(7):
        one = slice(row, row + 1)
        alone = adapted(0.4, *points, mean[one], scale[one])
        np.testing.assert_allclose(alone, [part[one] for part in together])
