"""Devices that learn: the rule against exact numbers, both backends, and what is refused."""

import threading
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinedge.calibration import adapted
from twinedge.pack import Intervals, read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.adapting import (
    Points,
    adapted_pack,
    blended,
    calibrate_pack,
    judged,
    most_points,
    over,
    quantised_targets,
)
from twinedge.runtime.device import Device
from twinedge.runtime.loading import load

BACKENDS = ("numpy", "native")
WORD = 2**32
LEVELS = {500: 44000, 800: 84000, 900: 108000, 990: 170000}


# The rule of FORMAT.md, section 12, in integers without bounds other than those it names.


def slow_over(a, b):
    while a >= 65536:
        a, b = a // 2, b // 2
    return 65536 * a // b if b else WORD - 1


def slow_rel(scale, typical):
    return min(slow_over(scale, typical) // 256, 65535)


def slow_blend(trust, typical, entries, mean, scale, own):
    """Mean and scale with points, given scores and scales of their entries."""
    k = len(entries)
    part, scales = k * slow_rel(scale, typical), sum(one for _, one in entries)
    among = k * trust + 65536 - trust
    near = 32768 if part >= scales else slow_over(part, scales) // 2
    weight = slow_over(k * trust, among) // 2 * near % WORD // 32768
    off = (own - mean + 2**31) % WORD - 2**31
    total = abs(sum(score for score, _ in entries))
    shared = total * (16 * total // k) % WORD // 16
    alone = max(sum(score**2 for score, _ in entries) - shared, 0)
    surprise = slow_over(alone, 65536 - trust) // 4 + slow_over(shared, among) // 4
    wider = slow_over(256 + surprise, 256 + 64 * k)
    left = 65536 - 3 * (trust * (weight * (65536 - near) // 32768) // 2**17)
    wide = scale * isqrt(left * wider) // 65536
    return mean + (off * weight + 16384) // 32768, min(wide, 2**31 - 1)


def slow_target(pack, y):
    """A target in units of an estimate; None if it is invalid."""
    with np.errstate(all="ignore"):
        t = (np.float32(y) - np.float32(pack.y_offset)) / np.float32(pack.y_gain)
    if not abs(t) < 2**30:
        return None
    exact = Fraction(float(t))
    away = (abs(exact) + Fraction(1, 2)).__floor__()
    return away if exact >= 0 else -away


words = st.one_of(
    st.integers(0, WORD - 1),
    st.integers(0, 32).map(lambda bit: min(2**bit, WORD - 1)),
    st.integers(0, 32).map(lambda bit: 2**bit - 1),
    st.integers(0, 70_000),
)


@settings(max_examples=500)
@given(words, words)
def test_a_quotient_is_that_of_the_format(a, b):
    assert int(over(a, b)) == slow_over(a, b)


def test_quotients_of_arrays_are_those_of_their_numbers():
    rng = np.random.default_rng(0)
    a, b = (2 ** rng.uniform(0, 32, (2, 500))).astype(np.int64)
    b[::50] = 0
    found = over(a, b)
    assert found.tolist() == [slow_over(*one) for one in zip(a.tolist(), b.tolist(), strict=True)]
    assert over(a, 7).tolist() == [slow_over(one, 7) for one in a.tolist()]
    assert over(9, b).tolist() == [slow_over(9, one) for one in b.tolist()]
    assert found.dtype == np.int64


def intervals_with(trust, typical):
    return Intervals(1, 1, 1, 1, 1, typical, 0, LEVELS, trust)


def drawn_points(seed, k, score, scale):
    """This many points, with scores and scales up to these."""
    rng = np.random.default_rng(seed)
    return Points(
        np.arange(k, dtype=np.uint32),
        np.zeros((k, 1), np.int16),
        np.zeros(k, np.int32),
        rng.integers(-score, score + 1, k).astype(np.int16),
        rng.integers(0, scale + 1, k).astype(np.uint16),
    )


counts = st.one_of(st.integers(1, 12), st.sampled_from([64, 255, 256, 1023, 1024]))
halves = st.one_of(st.integers(0, 65535), st.sampled_from([0, 1, 26214, 65534, 65535]))
signed = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-1000, 1000))


@settings(max_examples=400)
@given(
    trust=halves,
    typical=words,
    count=counts,
    seed=st.integers(0, 2**20),
    score=st.sampled_from([0, 1, 16, 100, 511]),
    widest=st.sampled_from([0, 1, 256, 4000, 65535]),
    mean=signed,
    scale=st.one_of(st.integers(0, 2**31 - 1), st.integers(0, 5000)),
    own=signed,
)
def test_blending_is_that_of_the_format(
    trust, typical, count, seed, score, widest, mean, scale, own
):
    points = drawn_points(seed, count, score, widest)
    entries = list(zip(points.scores.tolist(), points.scales.tolist(), strict=True))
    found = blended(
        intervals_with(trust, typical),
        points,
        np.array([mean, 0, mean]),
        np.array([scale, 77, scale], np.uint32),
        np.array([own, 5, own]),
    )
    for place, query in ((0, (mean, scale, own)), (1, (0, 77, 5))):
        right = slow_blend(trust, typical, entries, *query)
        assert (int(found[0][place]), int(found[1][place])) == right
    assert found[0][0] == found[0][2]
    assert found[1][0] == found[1][2]


@settings(max_examples=300)
@given(
    st.integers(-(2**30) + 1, 2**30 - 1),
    signed,
    st.one_of(st.integers(0, 2**31 - 1), st.integers(0, 300)),
    words,
)
def test_scores_and_scales_of_points_are_those_of_the_format(target, mean, scale, typical):
    score, relative = judged(
        intervals_with(1, typical), np.array([mean]), np.array([scale]), np.array([target])
    )
    size = min(slow_over(abs(target - mean), scale) // 256, 511)
    assert int(score[0]) == (-size if target < mean else size)
    assert int(relative[0]) == slow_rel(scale, typical)
    assert (score.dtype, relative.dtype) == (np.int16, np.uint16)


@pytest.fixture(scope="module")
def plain_pack(random_pack):
    return random_pack(np.random.default_rng(5), features=2, scaled=True)


@settings(max_examples=300)
@given(
    y=st.floats(width=32) | st.floats() | st.integers(-(2**60), 2**60).map(float),
    offset=st.floats(-1e6, 1e6, width=32),
    gain=st.floats(2**-30, 2**10, width=32),
)
def test_targets_are_rounded_as_the_format_says(plain_pack, y, offset, gain):
    pack = replace(plain_pack, y_offset=np.float32(offset), y_gain=np.float32(gain))
    with np.errstate(over="ignore"):
        right = slow_target(pack, np.float32(y))
    found = int(quantised_targets(pack, np.array([y]))[0])
    assert found == (2**30 if right is None else right)


def test_a_half_is_rounded_away_from_zero_and_what_is_just_below_is_not(plain_pack):
    pack = replace(plain_pack, y_offset=np.float32(0), y_gain=np.float32(1))
    below = np.nextafter(np.float32(0.5), np.float32(0))
    y = np.array([0.5, -0.5, below, -below, 1.5, 2.5, -2.5, 8388607.5], np.float32)
    assert quantised_targets(pack, y).tolist() == [1, -1, 0, 0, 2, 3, -3, 8388608]


# Devices.


@pytest.fixture
def opened(tmp_path):
    """Open a pack with both backends: ``opened(pack)``."""

    def both(pack):
        path = tmp_path / "model.twin"
        path.write_bytes(write_pack(pack))
        return [load(path, backend) for backend in BACKENDS]

    return both


@pytest.fixture(scope="module")
def trained(tiny_twin, curve):
    """The tiny twin with eight anchors, and intervals."""
    X, y = curve
    names = [{"name": name, "min": -200, "max": 200} for name in ("angle", "offset", "idle")]
    metadata = {"features": names, "target": "level"}
    from twinedge_export.quantise import quantise

    pack = quantise(tiny_twin, [np.arange(0, 80, 10)], intervals=True, metadata=metadata)
    return calibrate_pack(pack, X[80:100], y[80:100], chosen=True)


@pytest.fixture(scope="module")
def trained_path(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("learning") / "model.twin"
    path.write_bytes(write_pack(trained))
    return path


@pytest.fixture(params=BACKENDS)
def device(trained_path, request):
    return load(trained_path, request.param)


def answers(device, x):
    """All answers of a device to queries, as bytes."""
    said = device.predict_all(x)
    parts = [
        device.predict(x),
        *device.predict(x, return_std=True),
        device.predict_interval(x, device.coverages),
        *(one for one in said if one is not None),
        device.spread(x),
        device.estimates(x),
    ]
    for neighbors in (1, 3, 4096):
        parts += device.predict(x, return_std=True, neighbors=neighbors)
        parts.append(device.predict_interval(x, device.coverages[0], neighbors=neighbors))
        parts += [one for one in device.predict_all(x, None, neighbors) if one is not None]
    return [np.ascontiguousarray(one).tobytes() for one in parts]


def drawn_site(rng, pack, count):
    """Points for a pack, with arbitrary features and targets."""
    q = rng.integers(-33000, 33001, (count, pack.features))
    x = (q / pack.x_gain.astype(np.float64) + pack.x_offset).astype(np.float32)
    x[rng.random(x.shape) < 0.03] = np.inf
    x[(rng.random(x.shape) < 0.1) & (pack.domain.fill != NO_FILL)] = np.nan
    reach = 2.0 ** rng.integers(1, 29)
    t = rng.uniform(-reach, reach, count)
    return x, (t * float(pack.y_gain) + float(pack.y_offset)).astype(np.float32)


@pytest.mark.parametrize("seed", range(10))
def test_both_backends_and_the_format_agree_to_the_bit(random_pack, opened, seed):
    rng = np.random.default_rng([77, seed])
    pack = random_pack(rng, scaled=True)
    x, _ = drawn_site(rng, pack, 40)
    count = int(rng.choice([1, 2, 9, 40]))
    points, y = drawn_site(rng, pack, count)
    devices = opened(pack)
    alone = [answers(device, x) for device in devices]
    for device in devices:
        assert device.learn(points, y) == device.learnt == count
    first, second = (answers(device, x) for device in devices)
    assert first == second
    assert alone[0] == alone[1]
    # The same by hand.
    for neighbors in (None, 2):
        mean, wide, spread = by_hand(pack, x, points, y, neighbors)
        with np.errstate(over="ignore"):
            expected = mean.astype(np.float32) * pack.y_gain + pack.y_offset
        found = devices[0].predict(x, return_std=True, neighbors=neighbors)
        np.testing.assert_array_equal(found[0], expected)
        for level in pack.intervals.quantiles:
            bounds = reference.bounded(pack, mean, wide, level)
            low, high = devices[0].predict_interval(x, level / 1000, neighbors=neighbors).T
            np.testing.assert_array_equal(low, bounds.low)
            np.testing.assert_array_equal(high, bounds.high)
        np.testing.assert_array_equal(found[1], bounds.scale)
        np.testing.assert_array_equal(devices[0].spread(x, neighbors), spread)


def by_hand(pack, x, points, y, neighbors):
    """Means and scales with points, in integers, and spreads."""
    q, theirs = reference.quantise(pack, x), reference.quantise(pack, points)
    at_points = reference.evaluate_raw(pack, theirs)
    scales = reference.raw_scale(at_points.signals, pack.intervals, pack.members).tolist()
    targets, entries = [slow_target(pack, one) for one in y], []
    for target, mean, scale in zip(targets, at_points.raw_mean.tolist(), scales, strict=True):
        size = min(slow_over(abs(target - mean), scale) // 256, 511)
        relative = slow_rel(scale, pack.intervals.typical)
        entries.append((-size if target < mean else size, relative))
    twins = len(pack.twins)
    of_points = replace(
        pack,
        neighbors=0,
        trained_on_neighbors=False,
        counts=np.full(twins, len(y), np.uint16),
        anchors=np.concatenate([theirs] * twins),
        targets=np.array(targets * twins, np.int32),
        ids=None,
    )
    own = reference.evaluate_raw(of_points, q).raw_mean.tolist()
    asked = pack if neighbors is None else replace(pack, neighbors=neighbors)
    alone = reference.evaluate_raw(asked, q)
    scale = reference.raw_scale(alone.signals, pack.intervals, asked.members).tolist()
    right = [
        slow_blend(pack.intervals.trust, pack.intervals.typical, entries, *one)
        for one in zip(alone.raw_mean.tolist(), scale, own, strict=True)
    ]
    mean, wide = (np.array(part) for part in zip(*right, strict=True))
    return mean, wide, alone.spread


def test_one_query_is_answered_as_among_many(device, site, curve):
    device.learn(*site)
    many = device.predict_all(curve[0])
    for row in (0, 7, 119):
        alone = device.predict_all(curve[0][row : row + 1])
        assert [one[0] for one in alone[:2]] == [one[row] for one in many[:2]]
        assert alone.high[0] == many.high[row]
    assert device.predict(curve[0][:0]).shape == (0,)
    assert device.predict_interval(curve[0][:0]).shape == (0, 2)


@pytest.fixture(scope="module")
def site(curve):
    """20 points from a site where everything is a little higher."""
    X, y = curve
    return X[100:], y[100:] + 2 + 0.3 * np.random.default_rng(0).normal(size=20)


def test_points_may_come_one_by_one(trained_path, site, curve):
    for backend in BACKENDS:
        one_by_one, at_once = load(trained_path, backend), load(trained_path, backend)
        for row in range(20):
            one_by_one.learn(site[0][row : row + 1], site[1][row : row + 1])
        at_once.learn(*site)
        assert answers(one_by_one, curve[0]) == answers(at_once, curve[0])
        assert one_by_one.points.numbers.tolist() == list(range(20))


def test_predictions_are_pulled_towards_what_is_measured(device, site):
    X, y = site
    errors = [device.predict(X[10:]) - y[10:]]
    for row in range(10):
        device.learn(X[row : row + 1], y[row : row + 1])
        errors.append(device.predict(X[10:]) - y[10:])
    sizes = np.sqrt(np.square(errors).mean(axis=1))
    assert sizes[1] < 0.8 * sizes[0]
    assert sizes[10] < 0.6 * sizes[0]
    assert abs(errors[10].mean()) < abs(errors[1].mean()) < abs(errors[0].mean())


@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("trust", [0.05, 0.4, 0.95])
def test_it_is_the_rule_in_floats_but_for_rounding(trained, opened, site, curve, count, trust):
    intervals = replace(trained.intervals, trust=round(65536 * trust))
    pack = replace(trained, intervals=intervals)
    X, y = site[0][:count], site[1][:count]
    own = replace(
        pack,
        counts=np.array([count], np.uint16),
        anchors=reference.quantise(pack, X),
        targets=quantised_targets(pack, y).astype(np.int32),
        ids=None,
    )
    theirs = reference.evaluate(own, curve[0]).mean
    for device in opened(pack):
        mean, scale = device.predict(curve[0], return_std=True)
        at_points, scales = device.predict(X, return_std=True)
        right = adapted(trust, (y - at_points) / scales, scales, mean, scale, theirs)
        device.learn(X, y)
        found = device.predict(curve[0], return_std=True)
        np.testing.assert_allclose(found[0], right[0], atol=0.002 * curve[1].std())
        # Scores are kept in sixteenths.
        np.testing.assert_allclose(found[1], right[1], rtol=0.02)


def test_expected_points_narrow_intervals_and_surprising_ones_widen_them(trained_path, curve):
    X = curve[0][:40]
    for backend in BACKENDS:
        calm, wild = load(trained_path, backend), load(trained_path, backend)
        mean, scale = calm.predict(X, return_std=True)
        before = np.diff(calm.predict_interval(X))
        calm.learn(X, mean + 0.1 * scale)
        wild.learn(X, mean + 8 * scale * np.where(np.arange(40) % 2, 1, -1))
        assert (np.diff(calm.predict_interval(X)) < before).all()
        assert (np.diff(wild.predict_interval(X)) > 2 * before).all()


def test_a_missing_feature_of_a_point_is_filled_in_as_that_of_a_query(random_pack, opened):
    pack = random_pack(np.random.default_rng(8), features=3, weights="normal", scaled=True)
    fill = np.array([NO_FILL, 1234, NO_FILL], np.int16)
    pack = replace(
        pack,
        domain=replace(pack.domain, fill=fill),
        x_offset=np.zeros(3, np.float32),
        x_gain=np.full(3, 100, np.float32),
    )
    for one, other in zip(opened(pack), opened(pack), strict=True):
        one.learn([[1.0, np.nan, 3.0]], [float(pack.y_offset)])
        other.learn([[1.0, 12.34, 3.0]], [float(pack.y_offset)])
        assert answers(one, np.zeros((3, 3))) == answers(other, np.zeros((3, 3)))


def test_points_of_any_type_are_the_same_points(device, trained_path, curve):
    points = [[0, 5, -20], [1, 6, -21]]
    device.learn(points, [55, 60])
    right = answers(device, curve[0])
    for kind in (np.int64, np.float16, np.float32, np.float64, ">f4"):
        again = load(trained_path, device.info["backend"])
        again.learn(np.asfortranarray(np.array(points, kind)), np.array([55, 60], kind)[::1])
        assert answers(again, curve[0]) == right


# Forgetting.


def test_what_is_forgotten_leaves_no_trace(device, site, curve):
    right = answers(device, curve[0])
    device.learn(*site)
    assert answers(device, curve[0]) != right
    assert device.forget() == 20
    assert device.learnt == 0
    assert answers(device, curve[0]) == right
    assert device.forget() == 0


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ({}, []),
        ({"first": 3}, [0, 1, 2, 4, 5, 6, 7, 8, 9]),
        ({"first": 3, "last": 5}, [0, 1, 2, 6, 7, 8, 9]),
        ({"last": 5}, [6, 7, 8, 9]),
        ({"first": 9, "last": 2**32 - 1}, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ({"first": 10}, list(range(10))),
        ({"first": 5, "last": 4}, list(range(10))),
        ({"first": 2**40}, list(range(10))),
        ({"first": 0, "last": 2**70}, []),
        ({"keep": 4}, [6, 7, 8, 9]),
        ({"keep": 0}, []),
        ({"keep": 10}, list(range(10))),
        ({"keep": 10**30}, list(range(10))),
        ({"keep": np.int64(1)}, [9]),
    ],
    ids=str,
)
def test_points_are_forgotten_by_number_or_by_age(device, trained_path, site, curve, how, left):
    X, y = site[0][:10], site[1][:10]
    device.learn(X, y)
    assert device.forget(**how) == 10 - len(left)
    assert device.points.numbers.tolist() == left
    fresh = load(trained_path, device.info["backend"])
    fresh.learn(X[left], y[left])
    assert answers(device, curve[0]) == answers(fresh, curve[0])


def test_numbers_go_on_behind_the_last_and_are_kept(device, site):
    X, y = site
    device.learn(X[:5], y[:5])
    device.forget(1, 2)
    device.learn(X[5:7], y[5:7])
    assert device.points.numbers.tolist() == [0, 3, 4, 5, 6]
    device.forget(5, 6)
    device.learn(X[7:8], y[7:8])
    assert device.points.numbers.tolist() == [0, 3, 4, 5]
    device.forget()
    device.learn(X[:1], y[:1])
    assert device.points.numbers.tolist() == [0]


@pytest.mark.parametrize(
    "how",
    [
        {"first": -1},
        {"first": 1.5},
        {"first": "3"},
        {"first": True},
        {"last": -7},
        {"last": [1]},
        {"keep": -1},
        {"keep": 2.0},
        {"keep": None, "first": np.nan},
        {"keep": 3, "first": 1},
        {"keep": 3, "last": 1},
    ],
    ids=str,
)
def test_what_does_not_say_which_points_is_refused(device, site, complaint, how):
    device.learn(*site)
    message = complaint(device.forget, **how)
    assert "whole number" in message or "not both" in message
    assert device.learnt == 20


# Points that cannot be learnt.


GOOD = [[0.0, 5.0, -20.0]]
BAD = {
    "nan": (GOOD, [np.nan], "target of point 1 is nan"),
    "infinity": (GOOD, [np.inf], "target of point 1 is inf"),
    "minus infinity": (GOOD * 3, [1.0, -np.inf, 1.0], "target of point 2 is -inf"),
    "huge": (GOOD, [1e30], "target of point 1 is 1e+30"),
    "more than single precision has": (GOOD, [1e300], "target of point 1 is 1e+300"),
    "a huge integer": (GOOD, [2**63], "target of point 1"),
    "text": (GOOD, ["high"], "targets must be numbers"),
    "nothing": (GOOD, [None], "targets must be numbers"),
    "no real number": (GOOD, [1j], "targets must be numbers"),
    "too few": (
        GOOD * 2,
        [50.0],
        "targets must have shape (2,), one for each point, not shape (1,)",
    ),
    "too many": (
        GOOD,
        [50.0, 51.0],
        "targets must have shape (1,), one for each point, not shape (2,)",
    ),
    "a column": (GOOD, [[50.0]], "not shape (1, 1)"),
    "a number": (GOOD, 50.0, "not shape ()"),
    "ragged": (GOOD * 2, [[1.0], [2.0, 3.0]], "one number for each point"),
    "other features": ([[0.0, 5.0]], [50.0], "needs 3"),
    "one short row": (GOOD[0][:2], [50.0], "needs 3"),
    "ragged points": ([[1.0], [2.0, 3.0]], [50.0, 51.0], "same length"),
    "words for a point": ([["a", "b", "c"]], [50.0], "'a' is not a number"),
    "nan in a point": ([[0.0, np.nan, 1.0]], [50.0], "not a number: offset"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_point_is_refused_and_nothing_is_learnt(
    device, site, curve, complaint, tmp_path, name
):
    X, y, says = BAD[name]
    device.keep(tmp_path / "site.store")
    device.learn(site[0][:2], site[1][:2])
    before, stored = answers(device, curve[0]), (tmp_path / "site.store").read_bytes()
    assert says in complaint(device.learn, X, y)
    assert answers(device, curve[0]) == before
    assert (tmp_path / "site.store").read_bytes() == stored
    assert device.learnt == 2


@pytest.mark.parametrize("value", [30000.0, -30000.0])
def test_a_target_far_off_is_learnt_as_long_as_it_can_be_stored(trained, opened, value):
    y = value * float(trained.y_gain) * 30000 + float(trained.y_offset)
    for device in opened(trained):
        device.learn(GOOD, [y])
        before = device.predict(GOOD)[0]
        assert np.isfinite(before)
        assert np.sign(before - float(trained.y_offset)) == np.sign(value)


def test_to_learn_nothing_is_to_learn_nothing(device, curve):
    right = answers(device, curve[0])
    assert device.learn(np.empty((0, 3)), []) == 0
    assert answers(device, curve[0]) == right


@pytest.mark.parametrize("twins", [1, 3, 8])
def test_there_are_as_many_points_as_there_may_be_and_no_more(
    random_pack, tmp_path, complaint, twins
):
    counts = [1] * twins
    pack = random_pack(
        np.random.default_rng(3), features=1, hidden=(2,), counts=counts, scaled=True, neighbors=0
    )
    most = most_points(pack)
    assert most == {1: 1024, 3: 1024, 8: 512}[twins]
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack))
    device = load(path)
    x, y = np.zeros((most, 1)), np.full(most, float(pack.y_offset))
    device.learn(x[:-1], y[:-1])
    message = complaint(device.learn, x[:2], y[:2])
    assert f"{most - 1} learnt and 2 new points are too many, {most} at most: forget" in message
    assert device.learnt == most - 1
    device.learn(x[:1], y[:1])
    complaint(device.learn, x[:1], y[:1])
    right = load(path, "numpy")
    right.learn(x, y)
    assert answers(device, x[:3]) == answers(right, x[:3])
    device.forget(keep=most - 5)
    assert device.learn(x[:5], y[:5]) == 5


def test_a_pack_without_intervals_learns_nothing(random_pack, opened, complaint, tmp_path):
    pack = random_pack(np.random.default_rng(3), features=3, scaled=False)
    for device in opened(pack):
        right = device.predict(GOOD)
        for call in (
            lambda one: one.learn(GOOD, [1.0]),
            lambda one: one.forget(),
            lambda one: one.keep(tmp_path / "site.store"),
        ):
            assert "no intervals" in complaint(call, device)
        np.testing.assert_array_equal(device.predict(GOOD), right)
        assert (device.learnt, device.lost) == (0, 0)
    assert "no intervals" in complaint(load, tmp_path / "model.twin", store=tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert not (tmp_path / "site.store").exists()


def test_other_files_learn_nothing(exported, complaint, tmp_path):
    for name in ("tflite-int8/model.tflite", "onnx-int8/model.onnx"):
        path = exported["calibrated"] / name
        if not path.exists():
            path = next(exported["calibrated"].glob(f"*/{path.name}"))
        device = load(path)
        right = device.predict(GOOD)
        assert "cannot learn: only a .twin" in complaint(device.learn, GOOD, [1.0])
        assert "cannot learn: only a .twin" in complaint(device.forget)
        assert "cannot learn: only a .twin" in complaint(load, path, store=tmp_path / "s")
        np.testing.assert_array_equal(device.predict(GOOD), right)
        assert device.lost == 0
    assert not (tmp_path / "s").exists()


def test_a_device_of_any_kind_says_that_it_does_not_learn(complaint):
    device = Device({}, np.zeros((2, 1)), anchors=1, info={"file": "m.any"})
    calls = (
        lambda: device.learn([[1]], [1]),
        lambda: device.forget(),
        lambda: device.keep("site.store"),
    )
    for call in calls:
        assert "m.any cannot learn" in complaint(call)


# Threads.


def test_threads_may_predict_while_nothing_is_learnt(device, site, curve):
    device.learn(*site)
    x = np.tile(curve[0], (4, 1))
    right = device.predict_interval(x).tobytes()
    wrong = []

    def ask():
        for _ in range(10):
            if device.predict_interval(x).tobytes() != right:
                wrong.append(1)
            if device.predict(x[:1])[0] != device.predict(x)[0]:
                wrong.append(2)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Points in a pack.


@pytest.mark.parametrize("count", [1, 5, 20])
@pytest.mark.parametrize("trust", [0.1, 0.4, 0.9])
def test_a_pack_with_the_points_inside_predicts_as_the_device_does(
    trained, opened, site, curve, tmp_path, count, trust
):
    # If all expected errors are equal, a pack can do what a store does.
    intervals = replace(
        trained.intervals,
        trust=round(65536 * trust),
        by_spread=0,
        by_asymmetry=0,
        by_difficulty=0,
        constant=4096 * 800,
        typical=16 * 800,
    )
    pack = replace(trained, intervals=intervals)
    device = opened(pack)[1]
    device.learn(site[0][:count], site[1][:count])
    new = read_pack(write_pack(adapted_pack(pack, device.points)))
    (tmp_path / "adapted.twin").write_bytes(write_pack(new))
    other = load(tmp_path / "adapted.twin")
    before = np.abs(opened(pack)[0].predict(curve[0]) - device.predict(curve[0]))
    assert before.mean() > 0.005 * curve[1].std()
    apart = other.predict(curve[0]) - device.predict(curve[0])
    # Its points have their share, within 0.02.
    off = np.abs(site[1][:count] - load(tmp_path / "model.twin").predict(site[0][:count])).max()
    assert np.abs(apart).max() < 0.03 * off + 0.005 * curve[1].std()
    width, right = (np.diff(one.predict_interval(curve[0])) for one in (other, device))
    np.testing.assert_allclose(width, right, rtol=0.03)
    assert other.coverages == device.coverages
    assert new.metadata == trained.metadata
    assert other.learn(site[0][:1], site[1][:1]) == 1


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(1, 65535), st.integers(0, 10))
def test_points_have_their_share_of_the_anchors(trained, count, trust, seed):
    pack = replace(trained, intervals=replace(trained.intervals, trust=trust))
    points = replace(drawn_points(seed, count, 30, 500), features=np.zeros((count, 3), np.int16))
    new = adapted_pack(pack, points)
    new = read_pack(write_pack(new))
    own = np.count_nonzero((new.anchors == 0).all(axis=1))
    share = count * trust / (count * trust + 65536 - trust)
    assert len(new.targets) <= 16 * (8 + count)
    best = min(abs(a * count / (a * count + 8) - share) for a in range(1, 17))
    assert abs(own / len(new.targets) - share) <= max(0.02, best + 1e-9)
    assert new.counts.sum() == len(new.targets)


def test_each_twin_of_a_pack_gets_the_points(random_pack):
    pack = random_pack(
        np.random.default_rng(2), features=2, counts=[3, 4], neighbors=0, scaled=True
    )
    points = replace(
        drawn_points(0, 5, 30, 500),
        features=np.arange(10, dtype=np.int16).reshape(5, 2),
        targets=np.arange(5, dtype=np.int32),
    )
    new = adapted_pack(pack, points)
    for part in np.split(np.arange(len(new.targets)), np.cumsum(new.counts)[:-1]):
        rows = np.column_stack([new.anchors[part], new.targets[part]]).tolist()
        times = {rows.count([*one, k]) for k, one in enumerate(points.features.tolist())}
        assert len(times) == 1
        assert times != {0}


def test_what_no_pack_can_say_is_refused(trained, random_pack, complaint):
    points = replace(drawn_points(0, 2, 9, 9), features=np.zeros((2, 3), np.int16))
    assert "nearest anchors" in complaint(adapted_pack, replace(trained, neighbors=3), points)
    bare = random_pack(np.random.default_rng(3), features=3, scaled=False)
    assert "no intervals" in complaint(adapted_pack, bare, points)


# Stores; their bytes are in test_store.py.


def test_a_fresh_device_continues_with_what_a_store_holds(trained_path, site, curve, tmp_path):
    X, y = site
    store = tmp_path / "site.store"
    alone = load(trained_path)
    before = answers(alone, curve[0])
    alone.learn(X, y)
    for backend, rows in (("native", slice(0, 7)), ("numpy", slice(7, 8)), ("auto", slice(8, 20))):
        device = load(trained_path, backend, store=store)
        assert device.learn(X[rows], y[rows]) == rows.stop - rows.start
        assert device.learnt == rows.stop
        del device
    again = load(trained_path, store=store)
    assert answers(again, curve[0]) == answers(alone, curve[0]) != before
    assert again.forget(keep=3) == 17
    del again
    again = load(trained_path, store=str(store))
    assert again.points.numbers.tolist() == [17, 18, 19]
    again.forget()
    assert answers(load(trained_path, store=store), curve[0]) == before


def test_a_store_that_is_not_there_is_made_with_the_first_point(trained_path, site, tmp_path):
    store = tmp_path / "site.store"
    device = load(trained_path, store=store)
    device.predict(site[0])
    device.learn(np.empty((0, 3)), [])
    assert not store.exists()
    device.learn(site[0][:1], site[1][:1])
    assert store.exists()
    assert [one.name for one in tmp_path.iterdir()] == ["site.store"]


def test_what_was_learnt_before_goes_into_the_store(trained_path, site, curve, tmp_path):
    X, y = site
    load(trained_path, store=tmp_path / "a").learn(X[:2], y[:2])
    device = load(trained_path)
    device.learn(X[2:5], y[2:5])
    device.keep(tmp_path / "a")
    assert device.points.numbers.tolist() == [0, 1, 2, 3, 4]
    right = load(trained_path)
    right.learn(X[:5], y[:5])
    assert answers(device, curve[0]) == answers(right, curve[0])
    # Another store is another site: points of this one stay here.
    device.keep(tmp_path / "b")
    assert device.learnt == 0
    assert load(trained_path, store=tmp_path / "a").learnt == 5


def test_a_refused_store_leaves_the_device_as_it_was(device, site, curve, tmp_path, complaint):
    device.learn(*site)
    right = answers(device, curve[0])
    table = tmp_path / "site.csv"
    table.write_text("angle,offset,idle,level\n")
    assert "not a store" in complaint(device.keep, table)
    assert answers(device, curve[0]) == right
    assert table.read_text() == "angle,offset,idle,level\n"
    device.forget(0)
    assert device.learnt == 19


def test_forgetting_by_age_sees_what_others_have_learnt(trained_path, site, tmp_path):
    X, y = site
    store = tmp_path / "site.store"
    waiting = load(trained_path, store=store)
    load(trained_path, store=store).learn(X[:10], y[:10])
    assert waiting.learnt == 0
    assert waiting.forget(keep=4) == 6
    assert waiting.points.numbers.tolist() == [6, 7, 8, 9]
    assert waiting.learn(X[:1], y[:1]) == 1
    assert load(trained_path, store=store).learnt == 5


def test_a_pack_that_was_replaced_is_not_taken_for_the_one_loaded(
    trained, random_pack, tmp_path, complaint
):
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(trained))
    device = load(path)
    other = random_pack(np.random.default_rng(0), features=3, scaled=True)
    for content in (write_pack(other), b"rubbish", b""):
        path.write_bytes(content)
        assert "has changed since it was loaded" in complaint(device.keep, tmp_path / "s")
    path.unlink()
    assert "cannot read" in complaint(device.keep, tmp_path / "s")
    path.write_bytes(write_pack(trained))
    device.keep(tmp_path / "s")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(1, 4).map(lambda n: ("learn", n)),
            st.tuples(st.just("forget"), st.integers(0, 12), st.integers(0, 12)),
            st.integers(0, 9).map(lambda n: ("keep", n)),
            st.just(("again",)),
        ),
        max_size=10,
    )
)
def test_a_device_with_a_store_is_one_without_that_is_never_switched_off(
    trained_path, site, curve, tmp_path_factory, steps
):
    store = tmp_path_factory.mktemp("stores") / "site.store"
    kept, alone, row = load(trained_path, store=store), load(trained_path, "numpy"), 0
    for name, *numbers in steps:
        if name == "learn":
            rows = np.arange(row, row + numbers[0]) % 20
            row += numbers[0]
            for device in (kept, alone):
                device.learn(site[0][rows], site[1][rows])
        elif name == "forget":
            assert kept.forget(*numbers) == alone.forget(*numbers)
        elif name == "keep":
            assert kept.forget(keep=numbers[0]) == alone.forget(keep=numbers[0])
        else:
            del kept
            kept = load(trained_path, store=store)
        assert kept.points.numbers.tolist() == alone.points.numbers.tolist()
    assume(steps)
    np.testing.assert_array_equal(kept.predict(curve[0]), alone.predict(curve[0]))
    np.testing.assert_array_equal(kept.predict_interval(curve[0]), alone.predict_interval(curve[0]))
