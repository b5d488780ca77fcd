"""Calibration on rows that do not count alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge.scoring.calibration import calibrate, in_common, quantile


def drawn(seed, rows):
    """Signals of which the second is right up to a factor, and errors of that size."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.5, 5, rows)
    signals = np.stack([rng.uniform(0, 1, rows), size / 4, rng.uniform(0, 1, rows)])
    return signals, size * rng.standard_t(5, rows)


def assert_same(one, other):
    assert np.array_equal(one.weights, other.weights)
    assert vars(one) | {"weights": 0} == vars(other) | {"weights": 0}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(10, 80), st.booleans())
def test_equal_weights_are_no_weights(seed, rows, chosen):
    signals, errors = drawn(seed, rows)
    plain = calibrate(signals, errors, chosen=chosen)
    assert_same(plain, calibrate(signals, errors, chosen=chosen, sample_weight=[0.7] * rows))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_rows_of_weight_zero_are_left_out(seed, alike):
    signals, errors = drawn(seed, 60)
    rng = np.random.default_rng(seed)
    kept = rng.random(60) < 0.7
    weights = np.ones(60) if alike else rng.uniform(1, 2, 60)
    outside = rng.random(60) < 0.5
    without = calibrate(
        signals[:, kept], errors[kept], outside=outside[kept], sample_weight=weights[kept]
    )
    weights = np.where(kept, weights, 0)
    assert_same(without, calibrate(signals, errors, outside=outside, sample_weight=weights))


@settings(max_examples=50)
@given(st.integers(0, 1000), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.0, 0.5]))
def test_a_quantile_of_few_weights_is_that_of_repeated_scores(seed, coverage, further):
    # Beyond the finite-sample rank, which counts repeated rows as if they were new ones.
    rng = np.random.default_rng(seed)
    scores, times = rng.exponential(size=2000), rng.integers(1, 5, 2000)
    repeated = quantile(np.repeat(scores, times), coverage, further)
    assert quantile(scores, coverage, further, times) == pytest.approx(repeated, rel=0.02)


def test_a_quantile_needs_enough_effective_scores():
    scores = np.arange(20.0)
    weights = np.where(scores < 10, 1.0, 1e-9)
    assert quantile(scores, 0.9) == 18
    assert quantile(scores, 0.9, 0, weights) == 9  # ten rows count
    assert quantile(scores[:9], 0.9, 0, weights[:9]) == 8
    assert quantile(scores[:8], 0.9, 0, weights[:8]) is None
    assert quantile(scores, 0.95, 0, weights) is None
    assert quantile(scores, 0.95) == 19


def test_intervals_cover_their_share_of_the_weight():
    rng = np.random.default_rng(0)

    def scores(rows):
        heavy = rng.random(rows) < 0.3
        return np.abs(rng.normal(size=rows)) * np.where(heavy, 3, 1), np.where(heavy, 8.0, 1.0)

    for coverage in (0.5, 0.8, 0.9):
        covered, alike = [], []
        for _ in range(300):
            (mine, weights), (theirs, of_theirs) = scores(60), scores(1000)
            reach = quantile(mine, coverage, 0, weights)
            covered.append(np.average(theirs <= reach, weights=of_theirs))
            alike.append(np.average(theirs <= quantile(mine, coverage), weights=of_theirs))
        assert coverage < np.mean(covered) < coverage + 0.03
        assert np.mean(alike) < coverage - 0.05


def test_the_scale_is_that_of_the_rows_that_count():
    signals, errors = drawn(0, 400)
    light = np.arange(400) % 2 == 0
    errors = np.where(light, 100 * errors, errors)
    outside = light.astype(float)
    found = calibrate(signals, errors, outside=outside, sample_weight=np.where(light, 1e-6, 1.0))
    alone = calibrate(signals[:, ~light], errors[~light])
    np.testing.assert_allclose(found.scale(signals), alone.scale(signals), rtol=0.1)
    assert found.rows == 200
    assert found.outside < 1e-5
    assert found.typical == pytest.approx(alone.scale(signals[:, ~light]).mean(), rel=0.1)


def test_signals_are_weighed_by_the_rows_that_count():
    rng = np.random.default_rng(0)
    signals = rng.uniform(0.1, 5, (3, 400))
    light = np.arange(400) % 2 == 0
    errors = np.where(light, signals[0], signals[2]) * rng.normal(size=400)
    found = calibrate(signals, errors, sample_weight=np.where(light, 1e-6, 1.0))
    other = calibrate(signals, errors, sample_weight=np.where(light, 1.0, 1e-6))
    assert found.weights[2] > 5 * found.weights[0]
    assert other.weights[0] > 5 * other.weights[2]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 1], r"must have shape \(30,\)"),
        ([-1] * 30, "row 0 has weight -1"),
        ([0] * 21 + [1] * 9, "9 rows are too few to calibrate on: 10 are needed"),
        ([1000] * 2 + [1] * 28, "unequal weights are worth 2.1 to calibrate on: 10 are needed"),
    ],
    ids=["shape", "negative", "zeros", "unequal"],
)
def test_weights_that_do_not_suffice_are_refused(weights, words):
    with pytest.raises(InputError, match=words):
        calibrate(*drawn(0, 30), sample_weight=weights)


def test_errors_in_common_follow_the_weights():
    groups = np.repeat([0, 1], 20)
    rng = np.random.default_rng(0)
    shared = np.array([3.0, -3.0])[groups] + rng.normal(size=40)
    alone = 3 * rng.normal(size=40)
    heavy = np.arange(40) % 2 == 0
    errors = np.where(heavy, shared, alone)
    assert in_common(errors, groups, np.ones(40)) == in_common(errors, groups)
    assert in_common(errors, groups, np.where(heavy, 1.0, 1e-6)) > 0.8
    assert in_common(errors, groups, np.where(heavy, 1e-6, 1.0)) < 0.3


def test_a_pack_is_calibrated_by_weight(trained_pack, curve):
    X, y = curve
    wild = np.arange(120) % 2 == 0
    y = y + np.where(wild, 1000.0, 0)
    plain = calibrate_pack(trained_pack, X, y).intervals
    found = calibrate_pack(trained_pack, X, y, sample_weight=np.where(wild, 1e-6, 1.0)).intervals
    assert found.rows == 60
    assert found.typical < 0.1 * plain.typical
