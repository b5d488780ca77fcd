import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.learn.network import FARTHEST, Scaling


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
    scaling = Scaling.of(np.arange(4.0)[:, None], np.full(4, 2.0))
    assert (scaling.y_mean, scaling.y_scale) == (2.0, 1.0)


def test_a_point_far_outside_the_training_data_is_still_a_number():
    scaling = Scaling.of(np.arange(10.0)[:, None], np.arange(10.0))
    scaled = scaling.features(np.array([[1e300], [-1e300]]))
    assert np.isfinite(np.square(scaled)).all()
    assert scaled[0, 0] > 0 > scaled[1, 0]


def test_a_large_offset_costs_no_precision():
    x = 1.7e9 + np.arange(10.0)[:, None]  # seconds since 1970
    scaled = Scaling.of(x, np.arange(10.0)).features(x)
    np.testing.assert_allclose(np.diff(scaled[:, 0]), 1 / np.std(np.arange(10)), rtol=1e-5)


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
    x[7] = 1e6
    scaling = Scaling.of(x, x[:, 0])
    assert (scaling.x_mean, scaling.x_scale) == (x.mean(axis=0), x.std(axis=0))
    assert scaling.limit == FARTHEST


def test_a_rare_level_of_a_category_is_not_wild():
    rng = np.random.default_rng(0)
    level = np.zeros(5000)
    level[:2] = 1
    x = np.column_stack([rng.normal(size=5000), level])
    scaling = Scaling.of(x, x[:, 0], np.array([False, True]))
    np.testing.assert_allclose(np.ptp(scaling.features(x)[:, 1]), 2)
    assert scaling.x_mean[1] == level.mean()


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
