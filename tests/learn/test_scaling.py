import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.learn.scaling import Scaling


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
