"""What a device reports for a calibrated pack: scale, intervals, and unusual features."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import Domain
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.device import Device

TESTS = Path(__file__).parents[1]
CASES = runpy.run_path(str(TESTS / "firmware" / "cases.py"))
BACKENDS = ("numpy", "native")
NAMES = ("angle", "offset", "idle")


@pytest.fixture
def pack(random_pack):
    """Three features in -100 .. 100, of which the second may be missing; five levels."""
    drawn = random_pack(
        np.random.default_rng(43),
        features=3,
        hidden=(12, 9),
        activation="silu",
        counts=[5, 6],
        neighbors=0,
        weights="normal",
        scaled=True,
    )
    levels = (500, 800, 900, 950, 990)
    quantiles = dict(zip(levels, (44000, 84000, 108000, 130000, 170000), strict=True))
    features = [{"name": name, "min": -1.0, "max": 1.0} for name in NAMES]
    return replace(
        drawn,
        x_offset=np.zeros(3, np.float32),
        x_gain=np.full(3, 100, np.float32),
        intervals=replace(drawn.intervals, quantiles=quantiles),
        domain=Domain(
            np.array([-10000, -5000, -10000], np.int16),
            np.array([10000, 5000, 10000], np.int16),
            np.array([NO_FILL, 1234, NO_FILL], np.int16),
        ),
        metadata={"features": features, "target": "level"},
    )


def queries(pack, count, seed=0):
    return CASES["queries"](pack, count, seed)


def same_bits(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


def check_against_reference(device, pack, x):
    """All answers of a device, in one call and in several, against the reference."""
    found = reference.evaluate(pack, x)
    levels = list(pack.intervals.quantiles)
    bounds = [reference.bounds(pack, found, level) for level in levels]
    missing = np.isnan(x)
    outside = reference.outside(pack, reference.quantise(pack, x)) & ~missing
    assert device.coverages == tuple(level / 1000 for level in levels)
    mean, std = device.predict(x, return_std=True)
    same_bits(mean, found.mean)
    same_bits(std, bounds[0].scale)
    same_bits(device.predict(x), found.mean)
    same_bits(device.spread(x), found.spread)
    np.testing.assert_array_equal(device.outside(x), outside)
    np.testing.assert_array_equal(device.missing(x), missing)
    every = np.stack([np.stack([one.low, one.high], axis=1) for one in bounds], axis=2)
    same_bits(device.predict_interval(x, device.coverages), every)
    for number, (coverage, one) in enumerate(zip(device.coverages, bounds, strict=True)):
        same_bits(device.predict_interval(x, coverage), np.ascontiguousarray(every[:, :, number]))
        whole = device.predict_all(x, coverage)
        for name, right in (
            ("mean", found.mean),
            ("spread", found.spread),
            ("scale", one.scale),
            ("low", one.low),
            ("high", one.high),
        ):
            same_bits(getattr(whole, name), right)
        np.testing.assert_array_equal(whole.outside, outside)
        assert (whole.missing is not None) == device.fillable.any()
        if whole.missing is not None:
            np.testing.assert_array_equal(whole.missing, missing)
    usual = device.predict_all(x)
    at = pack.intervals.usual_level
    assert device.usual_coverage == at / 1000
    same_bits(usual.low, bounds[levels.index(at)].low)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 12))]
)
def test_random_packs_give_the_bits_of_the_reference(random_pack, opened, seed):
    rng = np.random.default_rng([21, seed])
    for number in range(3):
        pack = random_pack(rng, scaled=True)
        x = queries(pack, 30, number)
        for device in opened(pack):
            check_against_reference(device, pack, x)
            for row in (0, 7, 29):
                check_against_reference(device, pack, x[row : row + 1])


@pytest.mark.parametrize("name", ["64-features", "one-anchor-one-feature", "neighbors"])
def test_wide_and_narrow_packs_in_any_type(random_pack, opened, name):
    class Packs:
        pass

    Packs.random_pack = staticmethod(random_pack)
    pack = CASES["draw"](Packs, name, scaled=True)
    x = queries(pack, 60)
    for device in opened(pack):
        check_against_reference(device, pack, x)
        check_against_reference(device, pack, x.astype(np.float64))
        check_against_reference(device, pack, np.asfortranarray(x))


@pytest.mark.parametrize("neighbors", [1, 4096])
def test_neighbors_change_scale_and_ends_alike(pack, opened, neighbors):
    x = queries(pack, 40)
    near = replace(pack, neighbors=neighbors)
    found = reference.evaluate(near, x)
    bounds = reference.bounds(near, found, 900)
    for device in opened(pack):
        same_bits(device.predict(x, return_std=True, neighbors=neighbors)[1], bounds.scale)
        same_bits(device.spread(x, neighbors=neighbors), found.spread)
        low, high = device.predict_interval(x, neighbors=neighbors).T
        same_bits(low.copy(), bounds.low)
        same_bits(high.copy(), bounds.high)
        same_bits(device.predict_all(x, neighbors=neighbors).high, bounds.high)


def test_shapes_are_those_that_users_of_intervals_expect(pack, opened):
    x = queries(pack, 20)[:7]
    for device in opened(pack):
        one = device.predict_interval(x)
        assert (one.shape, one.dtype) == ((7, 2), np.float32)
        assert one.flags.c_contiguous
        assert (one[:, 0] <= one[:, 1]).all()
        some = device.predict_interval(x, [0.95, 0.5])
        assert some.shape == (7, 2, 2)
        np.testing.assert_array_equal(some[:, :, 0], device.predict_interval(x, 0.95))
        np.testing.assert_array_equal(some[:, :, 1], device.predict_interval(x, 0.5))
        for sequence in ((0.9,), np.array([0.9]), [np.float32(0.9)]):
            np.testing.assert_array_equal(device.predict_interval(x, sequence)[:, :, 0], one)
        assert device.predict_interval(x, []).shape == (7, 2, 0)
        assert device.predict_interval(x[:0]).shape == (0, 2)
        assert device.predict_interval(x[:0], [0.5, 0.9, 0.99]).shape == (0, 2, 3)
        assert device.predict_all(x[:0]).low.shape == (0,)
        assert device.predict(x[:0], return_std=True)[1].shape == (0,)


def test_a_coverage_is_found_despite_the_noise_of_floats(pack, opened):
    pack = replace(
        pack, intervals=replace(pack.intervals, quantiles=dict.fromkeys(range(100, 1000, 100), 9))
    )
    for device in opened(pack):
        assert device.coverages == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
        for coverage in (0.1 + 0.2, 0.7 + 0.2, 1 - 0.7, np.float32(0.9), np.float64(0.3)):
            assert device.predict_interval([[0, 0, 0]], coverage).shape == (1, 2)
        assert np.array(0.9).ndim == 0
        assert device.predict_interval([[0, 0, 0]], np.array(0.9)).shape == (1, 2)


def test_other_coverages_are_refused(pack, opened, complaint):
    numbers = (
        0,
        1.0,
        -0.9,
        90,
        np.nan,
        1e400,
        10**400,
        "0.9",
        None,
        True,
        0.9j,
        [0.9, 1.5],
        [[0.9]],
    )
    for device in opened(pack):
        for coverage in numbers:
            words = complaint(device.predict_interval, [[0, 0, 0]], coverage)
            assert "is not a number between 0 and 1" in words
        for coverage in (0.9005, 0.8995, 0.001, np.float16(0.9)):
            for call in (device.predict_interval, device.predict_all):
                words = complaint(call, [[0, 0, 0]], coverage)
                assert (
                    f"has no intervals of coverage {float(coverage):.9g}, it has 0.5, 0.8" in words
                )
        for coverage in (0.995, [0.5, 0.999]):
            words = complaint(device.predict_interval, [[0, 0, 0]], coverage)
            assert words.endswith("0.99; its calibration rows allow no more")


def test_the_default_is_for_ninety_percent_and_nothing_else(pack, opened, complaint):
    without = dict(pack.intervals.quantiles)
    del without[900]
    pack = replace(pack, intervals=replace(pack.intervals, quantiles=without))
    for device in opened(pack):
        assert "coverage 0.9, it has 0.5, 0.8" in complaint(device.predict_interval, [[0, 0, 0]])
        assert device.usual_coverage == 0.8
        low = device.predict_all([[0, 0, 0]]).low
        same_bits(low, device.predict_interval([[0, 0, 0]], 0.8)[:, 0].copy())


def test_the_usual_coverage_is_the_lowest_where_all_are_higher(pack, opened):
    pack = replace(pack, intervals=replace(pack.intervals, quantiles={950: 7, 990: 8}))
    assert [device.usual_coverage for device in opened(pack)] == [0.95, 0.95]


def test_a_feature_is_outside_by_its_integer(pack, opened):
    x = np.zeros((8, 3))
    # Units are hundredths, and half a unit is rounded away from zero.
    x[:, 0] = [100, 100.0049, 100.006, -100.0049, -100.006, np.inf, -np.inf, 1e300]
    expected = np.zeros((8, 3), bool)
    expected[:, 0] = [False, False, True, False, True, True, True, True]
    for device in opened(pack):
        np.testing.assert_array_equal(device.outside(x), expected)
        np.testing.assert_array_equal(device.predict_all(x).outside, expected)
        assert device.outside([[0, 60, 0]]).tolist() == [[False, True, False]]


def test_without_a_domain_the_metadata_say_what_is_outside(pack, opened):
    for device in opened(replace(pack, domain=None)):
        assert device.outside([[2, 0.5, -2]]).tolist() == [[True, False, True]]
        assert device.predict_all([[2, 0.5, -2]]).outside.tolist() == [[True, False, True]]
        assert device.fields == ("mean", "spread", "outside", "scale", "low", "high")
        assert device.predict_all([[2, 0.5, -2]]).missing is None


def test_a_fill_value_outside_is_missing_and_not_outside(pack, opened):
    domain = replace(pack.domain, fill=np.array([NO_FILL, 6000, NO_FILL], np.int16))
    for device in opened(replace(pack, domain=domain)):
        assert not device.outside([[0, np.nan, 0]]).any()
        assert not device.predict_all([[0, np.nan, 0]]).outside.any()
        assert device.outside([[0, 60, 0]]).any()


def test_a_name_that_would_break_the_line_is_escaped(pack, opened, complaint):
    features = [{"name": name, "min": 0, "max": 1} for name in ("a\nb", "c", "d")]
    for device in opened(replace(pack, metadata={"features": features})):
        assert complaint(device.predict, [[np.nan, 0, 0]]).endswith(r": 'a\nb'")


def test_flags_of_more_features_than_a_mask_has_bits(random_pack, opened):
    drawn = random_pack(np.random.default_rng(8), features=40, scaled=True, weights="normal")
    span = np.full(40, 10000, np.int16)
    pack = replace(drawn, domain=Domain(-span, span, np.zeros(40, np.int16)))
    x = np.tile(pack.x_offset, (40, 1)).astype(np.float64)
    x[np.arange(40), np.arange(40)] = np.where(np.arange(40) % 2, np.inf, np.nan)
    for device in opened(pack):
        found = device.predict_all(x)
        np.testing.assert_array_equal(found.missing, np.isnan(x))
        np.testing.assert_array_equal(found.outside, np.isinf(x))
        usual = device.predict_all(pack.x_offset[None])
        assert not (usual.missing | usual.outside).any()


def test_levels_that_no_writer_writes_are_passed_over():
    device = Device(
        {}, np.zeros((2, 1)), anchors=1, info={"file": "m"}, levels=[70000, 500, 0, 1000, 100, 500]
    )
    assert device.coverages == (0.1, 0.5)
