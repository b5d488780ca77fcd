"""A scale and intervals from signals and errors: what they keep, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin

from twinedge.errors import InputError
from twinedge.runtime import reference
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge.scoring.calibration import (
    LEAST_ROWS,
    CalibrationRows,
    calibrate,
    in_common,
    interval_score,
    quantile,
)


def drawn(seed, rows):
    """Signals of which the second is right up to a factor, and errors of that size."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.5, 5, rows)
    signals = np.stack([rng.uniform(0, 1, rows), size / 4, rng.uniform(0, 1, rows)])
    return signals, size * rng.standard_t(5, rows)


class Zero(RegressorMixin, BaseEstimator):
    """Predicts nothing, so that residuals are the targets."""

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return np.zeros(len(X))


@settings(max_examples=15)
@given(st.integers(10, 60), st.sampled_from([0.5, 0.8, 0.9]), st.integers(0, 1000))
def test_a_quantile_is_that_of_mapie(rows, coverage, seed):
    errors = np.random.default_rng(seed).standard_t(3, rows)
    X = np.arange(rows, dtype=float)[:, None]
    theirs = SplitConformalRegressor(Zero(), confidence_level=coverage, prefit=True)
    _, ends = theirs.conformalize(X, errors).predict_interval(X[:1])
    assert quantile(np.abs(errors), coverage) == pytest.approx(ends[0, 1, 0])
    assert -quantile(np.abs(errors), coverage) == pytest.approx(ends[0, 0, 0])


@pytest.mark.parametrize(("rows", "coverage"), [(8, 0.9), (18, 0.95), (98, 0.99), (0, 0.5)])
def test_a_coverage_that_so_few_rows_cannot_support_is_none(rows, coverage):
    assert quantile(np.ones(rows), coverage) is None
    assert quantile(np.ones(rows + 1), coverage) == 1


def test_ranks_further_out_are_interpolated_and_end_with_the_last():
    scores = np.arange(1.0, 21)
    assert quantile(scores, 0.9) == 19
    assert quantile(scores, 0.9, 0.5) == 19.5
    assert quantile(scores, 0.95, 0.5) == 20


def test_the_signal_that_knows_gets_the_weight():
    found = calibrate(*drawn(0, 400))
    signals, errors = drawn(1, 4000)
    parts = found.weights * signals.mean(axis=1)
    assert parts[1] > 5 * max(parts[0], parts[2], found.constant)
    scale = found.scale(signals)
    assert np.mean(np.abs(errors) <= scale) == pytest.approx(0.68, abs=0.05)
    for coverage, reach in found.quantiles.items():
        assert np.mean(np.abs(errors) <= reach * scale) == pytest.approx(coverage, abs=0.04)
    low, high = -found.reach(0.9) * scale, found.reach(0.9) * scale
    width = quantile(np.abs(drawn(0, 400)[1]), 0.9)
    same = np.full(len(errors), width)
    assert interval_score(low, high, errors, 0.9) < 0.9 * interval_score(-same, same, errors, 0.9)


@pytest.mark.parametrize("rows", [20, 50])
def test_few_rows_do_not_flatter_themselves(rows):
    covered = []
    for seed in range(20):
        found = calibrate(*drawn([seed, rows], rows))
        signals, errors = drawn([seed, 1], 500)
        covered.append(np.mean(np.abs(errors) <= found.reach(0.9) * found.scale(signals)))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.03)


def test_rows_that_settings_were_chosen_on_reach_further():
    signals, errors = drawn(0, 60)
    fresh, chosen = calibrate(signals, errors), calibrate(signals, errors, chosen=True)
    reach = [one.reach(0.9) * one.scale(signals).mean() for one in (fresh, chosen)]
    assert reach[0] <= reach[1] <= 1.3 * reach[0]


@pytest.mark.parametrize(
    ("signals", "errors", "says"),
    [
        (np.ones((3, 9)), np.arange(9.0), f"9 rows are too few to calibrate on: {LEAST_ROWS}"),
        (np.ones((3, 30)), np.full(30, 0.5), "the same error"),
        (np.zeros((3, 30)), np.arange(30.0), "zero for all rows"),
        (np.ones((3, 30)), np.append(np.arange(29.0), np.nan), "not finite"),
    ],
    ids=["too few", "constant", "no signal", "nan"],
)
def test_what_cannot_be_calibrated_is_refused_in_one_line(signals, errors, says):
    with pytest.raises(InputError, match=says) as caught:
        calibrate(signals, errors)
    assert len(str(caught.value).splitlines()) == 1


def test_a_coverage_that_is_not_there_is_refused_with_those_that_are():
    found = calibrate(*drawn(0, 30))
    assert list(found.quantiles) == [0.5, 0.8, 0.9, 0.95]
    says = r"no intervals of coverage 0.99, only of 0.5, 0.8, 0.9, 0.95: 30 calibration rows"
    with pytest.raises(InputError, match=says):
        found.reach(0.99)
    with pytest.raises(InputError, match=r"coverage 0.7, only of 0.5, 0.8, 0.9, 0.95$"):
        found.reach(0.7)


def test_a_calibration_scales_with_the_target():
    signals, errors = drawn(0, 100)
    one, other = calibrate(signals, errors), calibrate(1e-6 * signals, 1e-6 * errors)
    np.testing.assert_allclose(other.scale(1e-6 * signals), 1e-6 * one.scale(signals), rtol=1e-5)


def test_a_pack_is_calibrated_from_its_own_integers(trained_pack, curve):
    X, y = curve
    done = calibrate_pack(trained_pack, X, y)
    assert done.intervals.rows == len(y)
    np.testing.assert_array_equal(done.anchors, trained_pack.anchors)
    found = reference.evaluate(done, X)
    for level in done.intervals.quantiles:
        ends = reference.bounds(done, found, level)
        covered = np.mean((ends.low <= y) & (y <= ends.high))
        assert covered >= level / 1000 - 0.1
    usual = reference.bounds(done, found, 900)
    assert done.intervals.typical == pytest.approx(usual.raw_scale.mean(), abs=1)


def test_a_pack_without_second_outputs_cannot_be_calibrated(packs, curve):
    pack = packs.random_pack(np.random.default_rng(0), features=3, scaled=False)
    with pytest.raises(InputError, match="without intervals"):
        calibrate_pack(pack, *curve)


def test_signals_of_other_networks_are_brought_to_the_size_of_the_models():
    """By what both say of the same validation rows; their order and the errors stay."""
    rng = np.random.default_rng(0)
    own = CalibrationRows(rng.random((3, 20)), rng.normal(size=20))
    other = CalibrationRows(
        rng.random((3, 50)), rng.normal(size=50), typical=np.array([0.5, 2.0, 0.0])
    )
    found = other.like(own.signals)
    sizes = np.sqrt(np.mean(own.signals**2, axis=1))
    expected = other.signals * [[sizes[0] / 0.5], [sizes[1] / 2], [1]]
    np.testing.assert_allclose(found.signals, expected)
    np.testing.assert_allclose(found.typical, sizes)
    np.testing.assert_allclose(found.like(own.signals).signals, found.signals)
    both = own.joined(other)
    np.testing.assert_allclose(both.signals, np.column_stack([own.signals, found.signals]))
    np.testing.assert_array_equal(both.errors, np.append(own.errors, other.errors))
    plain = other._replace(typical=None)
    assert plain.like(own.signals) is plain


# ---- rows that do not count alike


def assert_same(one, other):
    assert np.array_equal(one.weights, other.weights)
    assert vars(one) | {"weights": 0} == vars(other) | {"weights": 0}


@settings(max_examples=8)
@given(st.integers(0, 1000), st.integers(10, 80), st.booleans())
def test_equal_weights_are_no_weights(seed, rows, chosen):
    signals, errors = drawn(seed, rows)
    plain = calibrate(signals, errors, chosen=chosen)
    assert_same(plain, calibrate(signals, errors, chosen=chosen, sample_weight=[0.7] * rows))


def test_a_single_group_is_no_group():
    signals, errors = drawn(0, 60)
    plain = calibrate(signals, errors)
    assert_same(plain, calibrate(signals, errors, groups=np.full(60, 7)))
    alike = np.argsort(np.argsort(errors)) // 6  # errors that grow from group to group
    assert calibrate(signals, errors, groups=alike).quantiles != plain.quantiles


@settings(max_examples=8)
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


@settings(max_examples=15)
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
        for _ in range(200):
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
