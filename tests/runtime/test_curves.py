"""Maps and target curves have the bits of FORMAT.md, and do what they are for."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.pack import InputMap, TargetCurve, write_pack
from twinedge.runtime import reference
from twinedge.runtime.adaptation import adapted_pack
from twinedge.runtime.pack_calibration import calibrate_pack, calibration_of

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 2**32 - 1)


def near_knots(rng, pack, count):
    """Draw quantised queries: anywhere, on knots and beside them, and at the ends of the range."""
    q = rng.integers(-32767, 32768, (count, pack.features))
    for feature, rows in pack.map.curves():
        near = rng.choice(pack.map.knots[rows].astype(int), count) + rng.integers(-1, 2, count)
        q[:, feature] = np.where(rng.random(count) < 0.5, near, q[:, feature])
    q[rng.random(q.shape) < 0.05] = rng.choice([-32767, 32767])
    return np.clip(q, -32767, 32767).astype(np.int16)


def test_the_map_has_the_bits_of_the_format(random_pack, plain):
    @quick
    @given(seeds)
    def holds(seed):
        rng = np.random.default_rng(seed)
        pack = random_pack(rng, hidden=(1,), counts=[1], mapped=True)
        q = near_knots(rng, pack, 20)
        exact = plain(write_pack(pack))
        z = reference.map_points(pack, q)
        assert (z.dtype, z.shape) == (np.int16, (20, pack.inputs))
        assert z.tolist() == [exact.mapped(row) for row in q.tolist()]

    holds()


def interpolated(pack, q):
    """What the map computes, in floats: the query and the curves, linear between knots."""
    curves = pack.map
    total = np.pad(q.astype(np.float64), ((0, 0), (0, curves.outputs - pack.features)))
    for feature, rows in curves.curves():
        for output in range(curves.outputs):
            heights = curves.table[rows, output] * 2.0 ** (14 - int(curves.shifts[output]))
            total[:, output] += np.interp(q[:, feature], curves.knots[rows], heights)
    return np.clip(total, -32767, 32767)


def test_the_map_is_an_interpolation(random_pack):
    @quick
    @given(seeds)
    def holds(seed):
        rng = np.random.default_rng(seed)
        pack = random_pack(rng, hidden=(1,), counts=[1], mapped=True)
        q = near_knots(rng, pack, 30)
        off = np.abs(reference.map_points(pack, q) - interpolated(pack, q))
        # A place between knots is rounded down to 1/16384 of their distance.
        steepest = 255 * 2.0 ** -pack.map.shifts.astype(float)
        assert (off <= 0.5 + np.count_nonzero(pack.map.bins) * steepest + 1e-6).all()

    holds()


def with_curves(pack, **changes):
    return replace(pack, map=replace(pack.map, **changes))


def test_a_curve_is_constant_beyond_its_knots(random_pack):
    pack = random_pack(np.random.default_rng(0), features=1, hidden=(1,), counts=[1], mapped=True)
    knots = np.array([-1000, 0, 500], np.int16)
    table = np.array([[-100], [50], [127]], np.int8)
    curves = InputMap(np.array([2], np.uint8), np.array([10], np.uint8), knots, table)
    pack = replace(pack, map=curves)
    q = np.array([[-30000], [-1001], [-1000], [-500], [0], [250], [500], [501], [20000]], np.int16)
    added = [-1600, -1600, -1600, -400, 800, 1416, 2032, 2032, 2032]
    assert (reference.map_points(pack, q) - q.astype(int))[:, 0].tolist() == added
    # The sum is limited to what a quantised number can be.
    ends = reference.map_points(pack, np.array([[-32767], [32767]], np.int16))
    assert ends[:, 0].tolist() == [-32767, 32767]


@pytest.mark.parametrize("height", [-128, 127])
def test_the_largest_sums_of_a_map_fit(random_pack, plain, height):
    features = 1024
    rng = np.random.default_rng(0)
    pack = random_pack(rng, features=features, hidden=(1,), counts=[1], mapped=False)
    ends = np.tile(np.array([-32767, 32767], np.int16), features)
    for shift in (1, 24):
        shifts = np.full(features, shift, np.uint8)
        table = np.full((2 * features, features), height, np.int8)
        curves = InputMap(np.ones(features, np.uint8), shifts, ends, table)
        mapped = replace(pack, map=curves)
        q = np.full((1, features), -32767 if height < 0 else 32767, np.int16)
        z = reference.map_points(mapped, q)
        assert set(z[0].tolist()) == {-32767 if height < 0 else 32767}
        assert plain(write_pack(mapped)).mapped(q[0].tolist()) == z[0].tolist()


def test_a_feature_without_a_curve_is_passed_on(random_pack):
    rng = np.random.default_rng(1)
    pack = random_pack(rng, features=3, hidden=(1,), counts=[1], mapped=True)
    curves = InputMap(
        np.zeros(3, np.uint8),
        np.ones(5, np.uint8),
        np.zeros(0, np.int16),
        np.zeros((0, 5), np.int8),
    )
    q = rng.integers(-32767, 32768, (10, 3)).astype(np.int16)
    z = reference.map_points(replace(pack, map=curves), q)
    np.testing.assert_array_equal(z, np.pad(q, ((0, 0), (0, 2))))
    assert reference.map_points(replace(pack, map=None), q) is q


@pytest.mark.parametrize("kinds", [("mapped",), ("curved",), ("mapped", "curved")], ids="-".join)
@pytest.mark.parametrize("seed", range(2))
def test_predictions_have_the_bits_of_the_format(plain, random_pack, kinds, seed):
    rng = np.random.default_rng([len(kinds), seed])
    for number in range(6):
        pack = random_pack(rng, scaled=bool(number % 2), **dict.fromkeys(kinds, True))
        exact = plain(write_pack(pack))
        x = rng.normal(0, 1, (3, pack.features)) * 40000 / pack.x_gain + pack.x_offset
        x[(rng.random(x.shape) < 0.1) & reference.fillable(pack)] = np.nan
        found = reference.evaluate(pack, x)
        for row, query in enumerate(x.tolist()):
            mean, spread, *raw, estimates = exact.evaluate(query)
            assert (found.mean[row].tobytes().hex(), found.spread[row].tobytes().hex()) == (
                *(mean, spread),
            )
            assert [found.raw_mean[row], found.raw_spread[row]] == raw
            assert found.estimates[row].tolist() == estimates
            if pack.intervals is not None:
                scale, raw_scale, ends = exact.bounds(query)
                for level, (low, high, *raw_ends) in ends.items():
                    bounds = reference.bounds(pack, found, level)
                    parts = [getattr(bounds, one)[row] for one in ("scale", "low", "high")]
                    assert [one.tobytes().hex() for one in parts] == [scale, low, high]
                    assert bounds.raw_scale[row] == raw_scale
                    assert [bounds.raw_low[row], bounds.raw_high[row]] == raw_ends


def test_anchors_are_near_where_the_map_has_put_them(random_pack, plain):
    # The nearest of what the twins take, not of the features.
    rng = np.random.default_rng(3)
    pack = random_pack(rng, features=2, hidden=(3,), counts=[30], neighbors=2, mapped=True)
    pack.anchors[:15] = reference.map_points(pack, near_knots(rng, pack, 15))
    q = near_knots(rng, pack, 10)
    exact = plain(write_pack(pack))
    found = reference.evaluate_raw(pack, q)
    assert found.estimates.tolist() == [exact.evaluate_raw(row)[4] for row in q.tolist()]


# Target curves.


@st.composite
def curves(draw):
    shift = draw(st.integers(0, 24))
    most = min(12, (2**31 - 1 >> shift) - 1)
    steps = draw(st.lists(st.integers(1, draw(st.sampled_from([3, 1000, 2**26]))), min_size=1,
                          max_size=most))  # fmt: skip
    start = draw(st.integers(1 - 2**30, 2**30 - 1 - sum(steps)))
    values = start + np.cumsum([0, *steps])
    room = min(2**30 - 1, 2**31 - 1 - (len(steps) << shift))
    return TargetCurve(draw(st.integers(1 - 2**30, room)), shift, values.astype(np.int32))


@st.composite
def curves_and_estimates(draw):
    """A curve, and estimates: any, at its entries, beside them and in between."""
    curve = draw(curves())
    end = curve.first + (curve.bins << curve.shift)
    near = st.builds(
        lambda k, off: curve.first + (k << curve.shift) + off,
        st.integers(0, curve.bins),
        st.integers(-2, 2),
    )
    one = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(curve.first, end), near)
    estimates = draw(st.lists(one, min_size=2, max_size=20))
    return curve, np.clip(np.array(estimates), -(2**31), 2**31 - 1)


@pytest.fixture
def curved(random_pack):
    """A small pack to give a target curve: ``curved(curve)``."""
    pack = random_pack(np.random.default_rng(0), features=1, hidden=(1,), counts=[1])
    units = {"y_gain": np.float32(0.25), "y_offset": np.float32(-3)}
    return lambda curve: replace(pack, target_curve=curve, **units)


def test_a_target_curve_has_the_bits_of_the_format(curved, plain):
    @quick
    @given(curves_and_estimates())
    def holds(drawn):
        pack, estimates = curved(drawn[0]), drawn[1]
        exact = plain(write_pack(pack))
        u = reference.curved(pack, estimates)
        assert u.tolist() == [exact.curved(one) for one in estimates.tolist()]
        found = reference.targets_of(pack, estimates)
        assert found.dtype == np.float32
        assert found.tolist() == [exact.in_units(one) for one in estimates.tolist()]
        raw = np.abs(estimates).astype(np.uint32)
        for parts in (1, 16, 37):
            one = reference.deviations_of(pack, estimates, raw, parts)
            both = zip(estimates.tolist(), raw.tolist(), strict=True)
            assert one.tolist() == [exact.deviation(m, a, parts) for m, a in both]
            assert (one >= 0).all()

    holds()


def test_a_target_curve_ascends_and_stays_between_its_ends(curved):
    @quick
    @given(curves_and_estimates())
    def holds(drawn):
        curve, estimates = drawn
        u = reference.curved(curved(curve), np.sort(estimates))
        assert (np.diff(u) >= 0).all()
        assert curve.values[0] <= u[0]
        assert u[-1] <= curve.values[-1]
        entries = curve.first + (np.arange(curve.bins + 1) << curve.shift)
        assert reference.curved(curved(curve), entries).tolist() == curve.values.tolist()
        # Nothing but an interpolation, rounded down.
        inside = [one for one in estimates.tolist() if entries[0] <= one <= entries[-1]]
        found = reference.curved(curved(curve), np.array(inside, int)).tolist()
        for one, u in zip(inside, found, strict=True):
            k = min((one - curve.first) >> curve.shift, curve.bins - 1)
            share = Fraction(one - int(entries[k]), 1 << curve.shift)
            low, high = (int(value) for value in curve.values[k : k + 2])
            assert 0 <= low + share * (high - low) - u < 1

    holds()


def test_the_inverse_of_a_target_curve_is_within_a_unit(curved, plain):
    @quick
    @given(curves_and_estimates())
    def holds(drawn):
        curve, estimates = drawn
        pack = replace(curved(curve), y_gain=np.float32(1), y_offset=np.float32(0))
        # Those that single precision can express.
        u = reference.curved(pack, estimates)
        y = u.astype(np.float32)
        exact = y.astype(np.int64) == u
        found = reference.estimates_of(pack, y)
        uncurved = plain(write_pack(pack)).uncurved
        assert found[exact].tolist() == [uncurved(one) for one in u[exact].tolist()]
        # The last estimate that is not above the target.
        assert (reference.curved(pack, found) <= u)[exact].all()
        assert (reference.curved(pack, found + 1) >= u)[exact].all()
        # In units of an estimate: no more than what one unit of the value takes there.
        inside = exact & (u > curve.values[0]) & (u < curve.values[-1])
        k = np.clip((found - curve.first) >> curve.shift, 0, curve.bins - 1)
        flattest = np.minimum(np.diff(curve.values)[k], np.diff(curve.values)[np.maximum(k - 1, 0)])
        reach = 1 + (1 << curve.shift) // np.maximum(flattest, 1) + 1
        assert ((estimates - reach <= found) & (found <= estimates))[inside].all()

    holds()


def test_targets_beyond_a_curve_are_those_at_its_ends(curved):
    pack = curved(TargetCurve(-64, 5, np.array([10, 20, 100], np.int32)))
    y = pack.y_offset + pack.y_gain * np.array([-1000, 9, 10, 20, 60, 100, 101, 2**29])
    assert reference.estimates_of(pack, y).tolist() == [-64, -64, -64, -32, -16, 0, 0, 0]
    beyond = pack.y_offset + pack.y_gain * np.array([2.0**30, -(2.0**30), np.nan, np.inf])
    assert set(reference.estimates_of(pack, beyond).tolist()) == {reference.NO_ESTIMATE}


def bent(random_pack, **more):
    """A pack with intervals, a gentle network and a target curve like an exponential function."""
    rng = np.random.default_rng(6)
    pack = random_pack(
        rng, features=2, hidden=(6,), activation="relu", counts=[9], neighbors=0, weights="normal",
        scaled=True, **more
    )  # fmt: skip
    targets = rng.integers(-50_000, 50_001, 9).astype(np.int32)
    if pack.map is not None:  # not so steep that all sums are at their limits
        pack = with_curves(pack, shifts=np.full(pack.inputs, 9, np.uint8))
    values = np.rint(1e6 * np.exp(np.linspace(-3, 3, 129))).astype(np.int32)
    domain = replace(pack.domain, fill=np.zeros(2, np.int16))
    return replace(
        pack,
        targets=targets,
        target_curve=TargetCurve(-(64 << 12), 12, values),
        y_gain=np.float32(1e-4),
        y_offset=np.float32(0),
        domain=domain,
        intervals=replace(pack.intervals, trust=30000),
    )


def around(pack, x, rng, noise):
    """Targets that are off by a normal error on the side where estimates are."""
    raw = reference.evaluate(pack, x).raw_mean
    off = rng.normal(0, noise, len(raw))
    return reference.targets_of(pack, np.rint(raw + off))


def queries(pack, rng, count):
    return (rng.uniform(-30000, 30000, (count, 2)) / pack.x_gain + pack.x_offset).astype(np.float32)


@pytest.mark.parametrize("mapped", [False, True])
def test_calibrated_intervals_cover_on_the_curve(random_pack, mapped):
    pack, rng = bent(random_pack, mapped=mapped), np.random.default_rng(8)
    x = queries(pack, rng, 400)
    done = calibrate_pack(pack, x, around(pack, x, rng, 9000))
    more = queries(pack, rng, 2000)
    y = around(pack, more, rng, 9000)
    found = reference.evaluate(done, more)
    for level in (500, 900):
        bounds = reference.bounds(done, found, level)
        covered = np.mean((bounds.low <= y) & (y <= bounds.high))
        assert abs(covered - level / 1000) < 0.05
        # As wide on the side of the target as the curve is steep there.
        steep = (bounds.high - bounds.low)[np.argsort(found.mean)]
        assert steep[-200:].mean() > 1.5 * steep[:200].mean()
    assert (bounds.low < found.mean).all()
    assert (found.mean < bounds.high).all()
    # A calibration in units of an estimate, or of anything that is a multiple of it.
    one, other = calibration_of(done), calibration_of(done, 0.5)
    assert one.constant == 2 * other.constant == done.intervals.constant / 4096
    assert one.typical == 2 * other.typical


def test_a_calibration_with_rows_beside_it_takes_their_unit(random_pack):
    from twinedge.scoring.calibration import CalibrationRows

    pack, rng = bent(random_pack), np.random.default_rng(8)
    x = queries(pack, rng, 100)
    y = around(pack, x, rng, 5000)
    signals, errors = rng.uniform(1, 2, (3, 50)) * 3000, rng.normal(0, 5000, 50)
    made = [
        calibrate_pack(pack, x, y, unit=unit, beside=CalibrationRows(unit * signals, unit * errors))
        for unit in (1.0, 0.125)
    ]
    assert made[0].intervals == made[1].intervals
    with pytest.raises(InputError, match="far beyond"):
        calibrate_pack(pack, x, np.where(np.arange(100) == 3, np.float32(1e30), y))


@pytest.mark.parametrize("mapped", [False, True])
def test_devices_learn_on_the_curve(random_pack, opened, mapped):
    pack, rng = bent(random_pack, mapped=mapped), np.random.default_rng(9)
    x = queries(pack, rng, 300)
    pack = calibrate_pack(pack, x, around(pack, x, rng, 3000))
    points, unseen = queries(pack, rng, 60), queries(pack, rng, 200)
    # This machine reads a fifth more than the others: an error of one size on the curve.
    shift = 0.2 / 6 * (128 << 12)
    y, true = (
        reference.targets_of(pack, reference.evaluate(pack, one).raw_mean + round(shift))
        for one in (points, unseen)
    )
    devices = opened(pack)
    answers = []
    for device in devices:
        before = np.abs(device.predict(unseen) / true - 1).mean()
        device.learn(points, y)
        errors = device.errors().scores()
        assert errors["rmse_adapted"] < 0.3 * errors["rmse_shipped"]
        assert np.abs(device.predict(unseen) / true - 1).mean() < 0.3 * before
        found = device.predict_all(unseen)
        assert ((found.low <= found.mean) & (found.mean <= found.high)).all()
        answers.append(np.stack([found.mean, found.spread, found.scale, found.low, found.high]))
    np.testing.assert_array_equal(answers[0].view(np.uint32), answers[1].view(np.uint32))
    # The same for devices without a store: the curve begins elsewhere.
    learnt = devices[0].points
    made = adapted_pack(pack, learnt.errors, learnt.scores)
    assert made.target_curve.first < pack.target_curve.first
    assert (made.y_offset, made.y_gain) == (pack.y_offset, pack.y_gain)
    moved = pack.target_curve.first - made.target_curve.first
    units = {"kind": "log", "offset": 1.5, "unit": 0.25}
    described = replace(pack, metadata={"target_curve": units})
    described = adapted_pack(described, learnt.errors, learnt.scores).metadata["target_curve"]
    assert described == {"kind": "log", "offset": 1.5 + 0.25 * moved, "unit": 0.25}
    assert np.abs(reference.evaluate(made, unseen).mean / true - 1).mean() < 0.05


def test_devices_answer_alike(random_pack, opened):
    rng = np.random.default_rng(10)
    pack = bent(random_pack, mapped=True)
    x = queries(pack, rng, 30)
    x[::4, 0], x[1::7, 1] = np.nan, np.inf
    one, other = opened(pack)
    for name in ("predict_all", "estimates", "outside", "missing"):
        found, expected = (getattr(device, name)(x) for device in (one, other))
        parts = zip(found, expected, strict=True) if name == "predict_all" else [(found, expected)]
        for mine, theirs in parts:
            np.testing.assert_array_equal(mine, theirs, name)
    right = reference.evaluate(pack, x)
    np.testing.assert_array_equal(one.predict(x), right.mean)
    np.testing.assert_array_equal(one.estimates(x), reference.targets_of(pack, right.estimates))
    assert (one.features, one.outside(x).shape) == (2, (30, 2))
