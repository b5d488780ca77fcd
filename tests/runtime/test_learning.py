"""Devices that learn: the rule against exact numbers, both backends, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import isqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinedge.pack import Intervals, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.adaptation import (
    MOST_POINTS,
    adapted_pack,
    left_one_out,
    over,
    point_weights,
    score_errors,
)
from twinedge.runtime.adaptation import adapted as adapted_integers
from twinedge.runtime.loading import load
from twinedge.runtime.pack_calibration import calibrate_pack
from twinedge.scoring.calibration import adapted

BACKENDS = ("numpy", "native")
WORD = 2**32
LEVELS = {500: 44000, 800: 84000, 900: 108000, 990: 170000}


# The rule of FORMAT.md, section 13, in integers without bounds other than those it names.


def slow_over(a, b):
    while a >= 65536:
        a, b = a // 2, b // 2
    return 65536 * a // b if b else WORD - 1


def slow_score(error, scale):
    size = min((slow_over(abs(error), scale) // 128 + 1) // 2, 511)
    return -size if error < 0 else size


def slow_weights(scores):
    needed = (len(scores) + 1) // 2 + 1
    above = max(n for n in range(512) if not n or sum(one >= n for one in scores) >= needed)
    below = max(n for n in range(512) if not n or sum(one <= -n for one in scores) >= needed)
    return [min(max(112 - abs(one - (above - below)), 0), 48) for one in scores]


def slow_adapt(trust, entries, mean, scale):
    """Mean and scale with points, given their errors and scores."""
    weights = slow_weights([score for _, score in entries])
    total = sum(weights)
    if not total:
        return mean, scale
    least = max(total, 48)
    rows = [(weight, *one) for weight, one in zip(weights, entries, strict=True)]
    off = sum(weight * error for weight, error, _ in rows)
    most = 16 * abs(sum(weight * score for weight, _, score in rows)) // least
    among = total * trust + 48 * (65536 - trust)
    share = slow_over(total * trust, among) // 2
    shift = min(abs(off) // least, most * scale // 4096) * share // 32768
    moved = min(max(mean + (-shift if off < 0 else shift), -(2**31)), 2**31 - 1)
    rows = [(weight, min(max(score, -32), 32)) for weight, _, score in rows]
    total_score = abs(sum(weight * score for weight, score in rows))
    shared = total_score * (16 * total_score // least) // 16
    alone = max(sum(weight * score**2 for weight, score in rows) - shared, 0)
    surprise = slow_over(alone, 65536 - trust) // 4 + 12 * slow_over(shared, among)
    wider = slow_over(12288 + surprise, 12288 + 64 * total)
    left = 65536 - 13 * (trust * share // 2**19)
    return moved, min(scale * isqrt(left * wider) // 65536, 2**31 - 1)


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


@settings(max_examples=200)
@given(words, words)
def test_a_quotient_is_that_of_the_format(a, b):
    assert int(over(a, b)) == slow_over(a, b)


def intervals_with(trust, typical):
    return Intervals(1, 1, 1, 1, 1, typical, 0, LEVELS, trust)


def drawn_points(seed, k, score):
    """Errors and scores of this many points, with scores up to this one."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-score, score + 1, k).astype(np.int32)
    size = 2 ** rng.uniform(0, 31, k)
    return (np.sign(scores) * size).astype(np.int64).clip(-(2**31) + 1, 2**31 - 1), scores


counts = st.one_of(st.integers(1, 12), st.sampled_from([64, 255, 1024]))
halves = st.one_of(st.integers(0, 65535), st.sampled_from([0, 1, 26214, 65534, 65535]))
signed = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-1000, 1000))


@settings(max_examples=80, deadline=None)
@given(
    trust=halves,
    count=counts,
    seed=st.integers(0, 2**20),
    score=st.sampled_from([0, 1, 16, 100, 130, 511]),
    same=st.booleans(),
    mean=signed,
    scale=st.one_of(st.integers(0, 2**31 - 1), st.integers(0, 5000)),
)
def test_adapting_is_that_of_the_format(trust, count, seed, score, same, mean, scale):
    errors, scores = drawn_points(seed, count, score)
    if same:  # all on one side, as those of a machine that is off
        errors, scores = np.abs(errors), np.abs(scores)
    entries = list(zip(errors.tolist(), scores.tolist(), strict=True))
    found = adapted_integers(
        intervals_with(trust, 1),
        errors.astype(np.int32),
        scores,
        np.array([mean, 0, mean]),
        np.array([scale, 77, scale], np.uint32),
    )
    for place, query in ((0, (mean, scale)), (1, (0, 77))):
        right = slow_adapt(trust, entries, *query)
        assert (int(found[0][place]), int(found[1][place])) == right
    assert found[0][0] == found[0][2]
    assert found[1][0] == found[1][2]
    assert point_weights(scores).tolist() == slow_weights(scores.tolist())


@settings(max_examples=150, deadline=None)
@given(
    halves,
    st.lists(
        st.tuples(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(-511, 511)),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from([1, 100, 511]),
)
def test_leaving_one_out_is_adapting_to_the_others(trust, entries, most):
    errors, scores = np.array(entries, np.int32).T
    scores = np.sign(scores) * (np.abs(scores) % (most + 1))
    intervals, rng = intervals_with(trust, 1), np.random.default_rng(len(entries))
    mean, scale = rng.integers(-(2**20), 2**20, len(errors)), rng.integers(1, 2**16, len(errors))
    found = left_one_out(intervals, errors, scores, mean, scale)
    for one in range(len(errors)):
        others = np.arange(len(errors)) != one
        query = mean[one : one + 1], scale[one : one + 1]
        right = adapted_integers(intervals, errors[others], scores[others], *query)
        assert [int(part[one]) for part in found] == [int(part[0]) for part in right]


@settings(max_examples=100)
@given(
    st.integers(-(2**30) + 1, 2**30 - 1),
    signed,
    st.one_of(st.integers(0, 2**31 - 1), st.integers(0, 300)),
)
def test_errors_and_scores_of_points_are_those_of_the_format(target, mean, scale):
    error, score = score_errors(np.array([mean]), np.array([scale]), np.array([target]))
    assert int(error[0]) == min(max(target - mean, -(2**31) + 1), 2**31 - 1)
    assert int(score[0]) == slow_score(target - mean, scale)
    assert (error.dtype, score.dtype) == (np.int32, np.int32)


@pytest.fixture(scope="module")
def plain_pack(random_pack):
    return random_pack(np.random.default_rng(5), features=2, scaled=True)


@settings(max_examples=100)
@given(
    y=st.floats(width=32) | st.floats() | st.integers(-(2**60), 2**60).map(float),
    offset=st.floats(-1e6, 1e6, width=32),
    gain=st.floats(2**-30, 2**10, width=32),
)
def test_targets_are_rounded_as_the_format_says(plain_pack, y, offset, gain):
    pack = replace(plain_pack, y_offset=np.float32(offset), y_gain=np.float32(gain))
    with np.errstate(over="ignore"):
        right = slow_target(pack, np.float32(y))
    found = int(reference.estimates_of(pack, np.array([y]))[0])
    assert found == (reference.NO_ESTIMATE if right is None else right)


# Devices.


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


@pytest.fixture
def learner(trained_path):
    """A device, where the backend does not matter."""
    return load(trained_path)


def answers(device, x):
    """All answers of a device to queries, as bytes."""
    parts = [
        device.predict(x),
        *device.predict(x, return_std=True),
        device.predict_interval(x, device.coverages),
        *(one for one in device.predict_all(x) if one is not None),
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


@pytest.mark.parametrize("seed", range(3))
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
    q, at = reference.quantise(pack, x), reference.quantise(pack, points)
    at_points = reference.evaluate_raw(pack, at)
    scales = reference.raw_scale(at_points.signals, pack.intervals, pack.members).tolist()
    rows = zip(map(partial(slow_target, pack), y), at_points.raw_mean.tolist(), scales, strict=True)
    entries = [(target - mean, slow_score(target - mean, scale)) for target, mean, scale in rows]
    near = pack if neighbors is None else replace(pack, neighbors=neighbors)
    alone = reference.evaluate_raw(near, q)
    scale = reference.raw_scale(alone.signals, pack.intervals, near.members).tolist()
    right = [
        slow_adapt(pack.intervals.trust, entries, *one)
        for one in zip(alone.raw_mean.tolist(), scale, strict=True)
    ]
    mean, wide = (np.array(part) for part in zip(*right, strict=True))
    return mean, wide, alone.spread


@pytest.fixture(scope="module")
def site(curve):
    """20 points from a site where everything is a little higher."""
    X, y = curve
    return X[100:], y[100:] + 2 + 0.3 * np.random.default_rng(0).normal(size=20)


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


@pytest.mark.parametrize(("count", "trust"), [(1, 0.95), (3, 0.4), (20, 0.05)])
def test_it_is_the_rule_in_floats_but_for_rounding(trained, opened, site, curve, count, trust):
    intervals = replace(trained.intervals, trust=round(65536 * trust))
    X, y = site[0][:count], site[1][:count]
    for device in opened(replace(trained, intervals=intervals)):
        mean, scale = device.predict(curve[0], return_std=True)
        at_points, scales = device.predict(X, return_std=True)
        right = adapted(trust, y - at_points, (y - at_points) / scales, mean, scale)
        device.learn(X, y)
        found = device.predict(curve[0], return_std=True)
        # Scores are rounded to sixteenths, and limit how far a prediction moves.
        assert (np.abs(found[0] - right[0]) <= scale / 32 + 0.002 * curve[1].std()).all()
        np.testing.assert_allclose(found[1], right[1], rtol=0.02)


def test_expected_points_narrow_intervals_and_surprising_ones_widen_them(trained_path, curve):
    X = curve[0][:40]
    for backend in BACKENDS:
        calm, wild, absurd = (load(trained_path, backend) for _ in range(3))
        mean, scale = calm.predict(X, return_std=True)
        before = np.diff(calm.predict_interval(X))
        calm.learn(X, mean + 0.1 * scale)
        sign = np.where(np.arange(40) % 2, 1, -1)
        wild.learn(X, mean + 3 * scale * sign)
        absurd.learn(X, mean + 8 * scale * sign)
        assert (np.diff(calm.predict_interval(X)) < before).all()
        assert (np.diff(wild.predict_interval(X)) > 1.5 * before).all()
        np.testing.assert_array_equal(np.diff(absurd.predict_interval(X)), before)


# Forgetting.


FORGET = [
    ({}, []),
    ({"first": 3}, [0, 1, 2, 4, 5, 6, 7, 8, 9]),
    ({"first": 3, "last": 5}, [0, 1, 2, 6, 7, 8, 9]),
    ({"last": 5}, [6, 7, 8, 9]),
    ({"first": 2**40}, list(range(10))),
    ({"first": 0, "last": 2**70}, []),
    ({"keep": 4}, [6, 7, 8, 9]),
    ({"keep": np.int64(0)}, []),
    ({"keep": 10**30}, list(range(10))),
    ({"before": 1}, list(range(10))),
    ({"before": np.uint32(103)}, [0, 3, 4, 5, 6, 7, 8, 9]),
    ({"before": 2**70}, [0]),
]


@pytest.mark.parametrize(("how", "left"), FORGET, ids=str)
def test_points_are_forgotten_by_number_or_by_age(learner, trained_path, site, curve, how, left):
    X, y = site[0][:10], site[1][:10]
    learner.learn(X, y, [0, *range(101, 110)])  # the time of the first is unknown
    assert learner.forget(**how) == 10 - len(left)
    assert learner.points.numbers.tolist() == left
    fresh = load(trained_path)
    fresh.learn(X[left], y[left])
    assert answers(learner, curve[0]) == answers(fresh, curve[0])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        *(({"first": one}, "whole number") for one in (-1, 1.5, "3", True, np.nan)),
        ({"last": [1]}, "whole number"),
        ({"keep": 2.0}, "whole number"),
        ({"before": "2026-01-01"}, "whole number"),
        ({"keep": 3, "last": 1}, "not both"),
        ({"keep": 3, "before": 1}, "not both"),
        ({"before": 3, "first": 1}, "not both"),
        ({"first": 3, "last": 2}, "is after 2"),
    ],
    ids=str,
)
def test_what_does_not_say_which_points_is_refused(learner, site, complaint, how, says):
    learner.learn(*site)
    assert says in complaint(learner.forget, **how)
    assert learner.learnt == 20


# Times.


def test_points_have_the_times_that_are_given(learner, site):
    X, y = site
    learner.learn(X[:2], y[:2])
    learner.learn(X[2:4], y[2:4], np.array([7.0, 2**32 - 1]))
    assert learner.points.times.tolist() == [0, 0, 7, 2**32 - 1]
    np.testing.assert_array_equal(learner.points.X, X[:4].astype(np.float32))
    np.testing.assert_array_equal(learner.points.y, y[:4].astype(np.float32))


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([1], "one for each point, not shape (1,)"),
        (5, "not shape ()"),
        *(([1, one], "whole numbers from 0") for one in (-1, 2**32, 0.5, np.nan, np.inf)),
        (["a", "b"], "whole numbers from 0"),
        ([True, False], "whole numbers from 0"),
        ([[1], [2, 3]], "one for each point"),
    ],
    ids=str,
)
def test_times_that_no_store_can_hold_are_refused(learner, site, complaint, times, says):
    assert says in complaint(learner.learn, site[0][:2], site[1][:2], times)
    assert learner.learnt == 0


# Points that cannot be learnt.


GOOD = [[0.0, 5.0, -20.0]]
BAD = {
    "nan": (GOOD, [np.nan], "target of point 1 is nan"),
    "minus infinity": (GOOD * 3, [1.0, -np.inf, 1.0], "target of point 2 is -inf"),
    "huge": (GOOD, [1e30], "target of point 1 is 1e+30"),
    "more than single precision has": (GOOD, [1e300], "target of point 1 is 1e+300"),
    "text": (GOOD, ["high"], "targets must be numbers"),
    "too few": (
        GOOD * 2,
        [50.0],
        "targets must have shape (2,), one for each point, not shape (1,)",
    ),
    "a column": (GOOD, [[50.0]], "not shape (1, 1)"),
    "ragged": (GOOD * 2, [[1.0], [2.0, 3.0]], "one number for each point"),
    "other features": ([[0.0, 5.0]], [50.0], "needs 3"),
    "words for a point": ([["a", "b", "c"]], [50.0], "'a' is not a number"),
    "nan in a point": ([[0.0, np.nan, 1.0]], [50.0], "not a number: offset"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_point_is_refused_and_nothing_is_learnt(
    learner, site, curve, complaint, tmp_path, name
):
    X, y, says = BAD[name]
    learner.keep(tmp_path / "site.store")
    learner.learn(site[0][:2], site[1][:2])
    before, stored = answers(learner, curve[0]), (tmp_path / "site.store").read_bytes()
    assert says in complaint(learner.learn, X, y)
    assert answers(learner, curve[0]) == before
    assert (tmp_path / "site.store").read_bytes() == stored
    assert learner.learnt == 2


def test_there_are_as_many_points_as_there_may_be_and_no_more(random_pack, tmp_path, complaint):
    counts, most = [1] * 8, MOST_POINTS
    pack = random_pack(
        np.random.default_rng(3), features=1, hidden=(2,), counts=counts, scaled=True, neighbors=0
    )
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
        assert device.learnt == 0
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
    assert not (tmp_path / "s").exists()


# Points in a pack.


@pytest.mark.parametrize(("count", "trust"), [(1, 0.9), (5, 0.4), (20, 0.1)])
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
        constant=4096 * 8000,
        typical=16 * 8000,
    )
    pack = replace(trained, intervals=intervals)
    device = opened(pack)[1]
    device.learn(site[0][:count], site[1][:count])
    new = adapted_pack(pack, device.points.errors, device.points.scores)
    (tmp_path / "adapted.twin").write_bytes(write_pack(new))
    other = load(tmp_path / "adapted.twin")
    before = np.abs(opened(pack)[0].predict(curve[0]) - device.predict(curve[0]))
    assert before.mean() > 0.005 * curve[1].std()
    np.testing.assert_allclose(other.predict(curve[0]), device.predict(curve[0]), rtol=1e-5)
    width, right = (np.diff(one.predict_interval(curve[0])) for one in (other, device))
    np.testing.assert_allclose(width, right, rtol=0.01)
    assert other.coverages == device.coverages
    assert new.metadata == trained.metadata
    assert other.learn(site[0][:1], site[1][:1]) == 1


def test_a_pack_without_intervals_takes_no_points(random_pack, complaint):
    bare = random_pack(np.random.default_rng(3), features=3, scaled=False)
    assert "no intervals" in complaint(adapted_pack, bare, np.ones(2), np.ones(2))


# Stores; their bytes are in test_store.py.


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


def test_points_are_scored_by_the_pack_that_was_loaded(trained, random_pack, tmp_path, site):
    path, store = tmp_path / "model.twin", tmp_path / "s"
    trained = replace(trained, schema=7)
    path.write_bytes(write_pack(trained))
    device = load(path)
    other = random_pack(np.random.default_rng(0), features=3, scaled=True)
    path.write_bytes(write_pack(replace(other, schema=7)))
    device.keep(store)
    device.learn(*site)
    device.store.journal.close()
    # The pack that has replaced it scores them again.
    assert load(path, store=store).points.scores.tolist() != device.points.scores.tolist()
    path.write_bytes(write_pack(trained))
    assert load(path, store=store).points.scores.tolist() == device.points.scores.tolist()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.integers(1, 4).map(lambda n: ("learn", n)),
            st.tuples(st.integers(0, 12), st.integers(0, 12)).map(
                lambda ends: ("forget", *sorted(ends))
            ),
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
