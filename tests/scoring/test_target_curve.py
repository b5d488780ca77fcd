"""Curves of the target: there and back, what they refuse, and deviations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.scoring.target_curve import CURVES, TargetCurve

LEAST = {"log": 1e-30, "log1p": -0.999, "sqrt": 0.0}
kinds = st.sampled_from(CURVES)


@given(kinds, st.lists(st.floats(0, 1e37), min_size=1, max_size=20))
def test_a_target_comes_back_as_it_was(kind, y):
    y = np.maximum(y, LEAST[kind])
    curve = TargetCurve(kind)
    np.testing.assert_allclose(curve.inverse(curve.forward(y)), y, rtol=1e-12, atol=1e-15)


@given(kinds, st.floats(-1e3, 1e3), st.floats(0, 1e3))
def test_a_curve_ascends_also_where_no_target_is(kind, c, more):
    low, high = TargetCurve(kind).inverse([c, c + more])
    assert np.isfinite([low, high]).all()
    assert low <= high


@given(kinds, st.floats(0.01, 1e6), st.floats(0, 3))
def test_a_deviation_is_half_of_what_lies_between_its_ends(kind, y, d):
    curve = TargetCurve(kind)
    c = curve.forward(y)
    low, high = curve.inverse(c - d), curve.inverse(c + d)
    found = curve.deviation(c, d)
    assert found >= 0
    assert found == pytest.approx((high - low) / 2)


def test_a_small_deviation_is_the_slope_times_it():
    for kind, slope in (("log", 5.0), ("log1p", 6.0), ("sqrt", 2 * np.sqrt(5.0))):
        curve = TargetCurve(kind)
        found = curve.deviation(curve.forward(5.0), 1e-6)
        assert found == pytest.approx(1e-6 * slope, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "y", "message"),
    [
        (
            "log",
            [3.0, 0.0, -1.0],
            "price, row 1: the target is 0, but target_curve='log' takes targets above 0; use "
            "target_curve='none'",
        ),
        (
            "log",
            [3.0, 0.0, 1.0],
            "price, row 1: the target is 0, but target_curve='log' takes targets above 0; use "
            "target_curve='log1p'",
        ),
        (
            "sqrt",
            [0.0, -0.5],
            "price, row 1: the target is -0.5, but target_curve='sqrt' takes targets of at least "
            "0; use target_curve='none'",
        ),
        (
            "log1p",
            [0.0, -1.0],
            "price, row 1: the target is -1, but target_curve='log1p' takes targets above -1; use "
            "target_curve='none'",
        ),
    ],
)
def test_a_target_off_the_curve_is_refused_in_one_line(kind, y, message):
    with pytest.raises(InputError) as caught:
        TargetCurve(kind).check(y, lambda row: f"price, row {row}")
    assert str(caught.value) == message
    with pytest.raises(InputError, match="row 1: the target is"):
        TargetCurve(kind).forward(y)


@pytest.mark.parametrize("kind", CURVES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_only_finite_targets_have_a_place(kind, value):
    assert not TargetCurve(kind).takes([value])[0]


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'cube' is not one of log, log1p, sqrt"):
        TargetCurve("cube")


def test_estimates_below_the_root_of_zero_are_zero():
    assert TargetCurve("sqrt").inverse([-2.0, 0.0, 2.0]).tolist() == [0, 0, 4]
