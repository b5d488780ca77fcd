import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.scoring.target_curve import CURVES, TargetCurve
from twinedge.training.network import FARTHEST, Scaling


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 100))
def test_scaled_training_rows_have_mean_zero_and_spread_one(shift, scale, seed):
    rng = np.random.default_rng(seed)
    spread = 10.0**scale
    x = rng.normal(size=(50, 2)) * spread + spread * shift
    y = rng.normal(size=50) * spread - spread * shift
    scaling = Scaling.of(x, y)
    for scaled in (scaling.features(x), scaling.target(y)):
        assert scaled.dtype == np.float32
        np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e9, 1e-12])
def test_a_constant_column_is_shifted_to_zero_and_keeps_its_unit(constant):
    x = np.full((7, 1), constant)
    scaling = Scaling.of(x, np.arange(7.0))
    np.testing.assert_array_equal(scaling.x_scale, 1)
    np.testing.assert_allclose(scaling.features(x), 0, atol=1e-6)


def test_a_constant_target_of_zero_spread_is_not_divided_by_zero():
    for value in (2.0, 0.1, -1e9):  # the mean of 0.1 seven times is not quite 0.1
        scaling = Scaling.of(np.arange(7.0)[:, None], np.full(7, value))
        assert (scaling.y_mean, scaling.y_scale) == (pytest.approx(value), 1.0)


def test_a_point_far_outside_the_training_data_is_still_a_number():
    scaling = Scaling.of(np.arange(10.0)[:, None], np.arange(10.0))
    scaled = scaling.features(np.array([[1e300], [-1e300]]))
    assert np.isfinite(np.square(scaled)).all()
    assert scaled[0, 0] > 0 > scaled[1, 0]


@pytest.mark.parametrize("seconds", [100.0, 5e4])
def test_nothing_is_learnt_from_digits_that_a_device_cannot_see(seconds):
    rng = np.random.default_rng(0)
    x = np.column_stack([1.7e9 + seconds * rng.random(200), rng.normal(size=200)])
    y = x[:, 1]
    scaling = Scaling.of(x, y)
    rounded = x.astype(np.float32)
    scaled = scaling.features(x)[:, 0]
    np.testing.assert_array_equal(scaled, scaling.features(rounded)[:, 0])
    levels = len(np.unique(rounded[:, 0]))
    assert len(np.unique(scaled)) == levels < 200
    # As a device calculates: offset and difference in float32.
    there = rounded - scaling.x_mean.astype(np.float32)
    np.testing.assert_array_equal(there[:, 0], (rounded - scaling.x_mean)[:, 0])
    alone = Scaling.of(x[:, 1:], y)
    np.testing.assert_array_equal(scaling.features(x)[:, 1], alone.features(x[:, 1:])[:, 0])


def test_a_column_that_is_constant_to_a_device_is_constant():
    x = 5 + 1e-9 * np.random.default_rng(0).normal(size=(50, 1))
    scaling = Scaling.of(x, x[:, 0])
    assert scaling.x_scale == 1
    np.testing.assert_allclose(scaling.features(x), 0, atol=1e-6)


def test_a_model_that_was_trained_on_more_digits_keeps_them():
    x = 1.7e9 + np.arange(10.0)[:, None]
    scaling = Scaling(x.mean(axis=0), x.std(axis=0), 0.0, 1.0)
    assert len(np.unique(scaling.features(x))) == 10


def test_wild_values_of_a_long_table_have_no_say_in_its_scaling():
    x = np.random.default_rng(0).uniform(-1, 1, (6000, 2))
    y = x[:, 0]
    tame = Scaling.of(x, y)
    x[7] = 1e6, -1e6  # three rows of 6,000 may be wild
    scaling = Scaling.of(x, y)
    np.testing.assert_allclose(scaling.x_mean, tame.x_mean, atol=0.01)
    np.testing.assert_allclose(scaling.x_scale, tame.x_scale, rtol=0.01)
    assert scaling.limit == pytest.approx(1.25 * np.sqrt(3), rel=0.01)
    scaled = scaling.features(x)
    np.testing.assert_array_equal(scaled[7], np.float32([scaling.limit, -scaling.limit]))
    others = np.delete(scaled, 7, axis=0)
    assert np.abs(others).max() < scaling.limit
    reached = scaling.reached(x)
    np.testing.assert_array_equal(np.delete(reached, 7, axis=0), np.delete(x, 7, axis=0))
    np.testing.assert_allclose(scaling.features(reached), scaled, rtol=1e-6)


def test_every_row_of_a_short_table_has_its_say():
    x = np.random.default_rng(0).uniform(-1, 1, (4096, 1))
    x[7] = 15
    scaling = Scaling.of(x, x[:, 0])
    assert (scaling.x_mean, scaling.x_scale) == (x.mean(axis=0), x.std(axis=0))
    assert scaling.limit == FARTHEST


@pytest.mark.parametrize(("rows", "size"), [(60, 1e4), (600, 1e9), (6000, -1e30)])
def test_a_wild_cell_has_no_say_in_a_table_of_any_length(rows, size):
    x = np.random.default_rng(0).normal(size=(rows, 2))
    tame = Scaling.of(x, x[:, 0])
    wild = x.copy()
    wild[7, 0] = size
    scaling = Scaling.of(wild, x[:, 0])
    assert scaling.x_scale[0] < 25 * tame.x_scale[0]  # 1e4 / sqrt(60) would be 1300 times
    assert scaling.limit < 1.25 * np.sqrt(rows)
    np.testing.assert_array_equal(scaling.x_scale[1], tame.x_scale[1])
    others = np.delete(scaling.features(wild), 7, axis=0)
    assert len(np.unique(others[:, 0])) > 0.99 * rows - 1
    assert np.abs(scaling.features(wild)[7, 0]) == np.float32(scaling.limit)


@given(st.integers(0, 100), st.sampled_from([50, 300, 1000, 4000, 5000]))
def test_the_middle_half_of_a_heavy_tail_stays_visible(seed, rows):
    x = np.random.default_rng(seed).standard_cauchy((rows, 1))
    low, high = np.quantile(Scaling.of(x, x[:, 0]).features(x), [0.25, 0.75])
    assert high - low > 0.02  # without limits, 0.001 is usual at 4000 rows


def test_rare_values_among_zeros_are_not_cut_off():
    x = np.zeros((1000, 1))
    x[::250] = [[3.0], [-500.0], [1.0], [1e-3]]
    scaling = Scaling.of(x, x[:, 0])
    assert scaling.x_scale == x.std(axis=0)
    scaled = scaling.features(x)
    assert len(np.unique(scaled)) == 5
    assert np.abs(scaled).max() < scaling.limit


def test_where_one_row_dominates_a_column_others_may_go_a_quarter_further():
    x = np.random.default_rng(0).normal(size=(300, 1))
    x[7] = 40
    scaling = Scaling.of(x, x[:, 0])
    assert (scaling.x_mean, scaling.x_scale) == (x.mean(axis=0), x.std(axis=0))
    assert scaling.limit == pytest.approx(1.25 * (40 - scaling.x_mean[0]) / scaling.x_scale[0])


def test_inputs_of_categories_are_divided_by_one_half_and_no_rare_level_is_wild():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=6000), np.zeros(6000)])
    x[7, 1] = 1  # so few rows would be wild values of a number
    y = x[:, 0]
    scaling = Scaling.of(x, y, np.array([False, True]))
    assert scaling.x_scale[1] == 0.5
    np.testing.assert_allclose(scaling.x_mean[1], 1 / 6000)
    np.testing.assert_allclose(np.ptp(scaling.features(x)[:, 1]), 2, rtol=1e-6)
    plain = Scaling.of(x[:, :1], y)
    assert (plain.limit, plain.x_scale[0]) == (scaling.limit, scaling.x_scale[0])


@pytest.mark.parametrize("kind", CURVES)
def test_a_curve_is_scaled_in_place_of_the_target(kind):
    rng = np.random.default_rng(0)
    x, y = rng.random((50, 2)), np.exp(rng.normal(3, 1, 50))
    curve = TargetCurve(kind)
    scaling, plain = Scaling.of(x, y, curve=curve), Scaling.of(x, curve.forward(y))
    assert scaling.y_mean == plain.y_mean
    assert scaling.y_scale == plain.y_scale
    np.testing.assert_array_equal(scaling.target(y), plain.target(curve.forward(y)))
    np.testing.assert_allclose(scaling.restored(scaling.target(y)), y, rtol=1e-5)
    np.testing.assert_allclose(scaling.uncurved(scaling.curved(y)), y, rtol=1e-12)
    c, d = curve.forward(y), np.full(50, 0.1)
    np.testing.assert_array_equal(scaling.deviation(c, d), curve.deviation(c, d))


def test_without_a_curve_targets_are_only_shifted_and_scaled():
    x, y = np.arange(10.0)[:, None], np.linspace(-5, 5, 10)
    scaling = Scaling.of(x, y)
    assert scaling.curve is None
    assert scaling.curved(y) is y
    assert scaling.uncurved(y) is y
    assert scaling.deviation(y, y) is y
    found = scaling.restored(scaling.target(y))
    assert found.dtype == np.float64
    expected = scaling.target(y).astype(np.float64) * scaling.y_scale + scaling.y_mean
    np.testing.assert_array_equal(found, expected)
