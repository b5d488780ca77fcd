"""The store: predictions with points have the reference's bits, whatever is read or replaced."""

import ctypes
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.adaptation import adapted, point_weights
from twinedge.runtime.evaluator import Reference
from twinedge.runtime.store import UNSCORED, Points, Store, scored, stamp_of

ALL = (0, 2**32 - 1)  # numbers of points


def points_of(pack, x, y, times=0):
    """Points that this pack has scored, numbered from 0."""
    points = Points.unscored(x, y, np.zeros(len(x)) + times)
    points = replace(points, numbers=np.arange(len(x), dtype=np.uint32))
    return scored(pack, Reference(pack).raw, points)


def rows(points):
    """Points as ``Device.points`` has them."""
    columns = (points.numbers, points.times, points.y, points.errors, points.scores)
    return list(zip(*map(np.ndarray.tolist, columns), strict=True))


def expect(pack, level, points, x):
    """Fields of ``twin_raw`` and of ``twin_prediction``, by name."""
    q, missing = reference.quantise(pack, x), np.isnan(x)
    mean, root, scale = Reference(pack).raw(q).astype(np.int64)
    used, members = 0, reference.evaluate_raw(pack, q).estimates.shape[1]
    if len(points):
        mean, scale = adapted(pack.intervals, points.errors, points.scores, mean, scale)
        used = np.count_nonzero(point_weights(points.scores))
    bounds = reference.bounded(pack, mean, scale, level)
    flags = {
        "outside": reference.mask(reference.outside(pack, q) & ~missing),
        "missing": reference.mask(missing),
        "points": np.full(len(q), used, np.uint16),
        "intervals": np.ones(len(q), np.uint8),
    }
    raw = {
        "mean": mean.astype(np.int32),
        "root": root.astype(np.uint32),
        "scale": scale.astype(np.uint32),
        "low": bounds.raw_low,
        "high": bounds.raw_high,
        "count": np.full(len(q), members, np.uint16),
    }
    with np.errstate(over="ignore"):
        floats = {
            "mean": reference.targets_of(pack, mean),
            "scale": bounds.scale,
            "low": bounds.low,
            "high": bounds.high,
        }
    return raw | flags, floats | flags


def queries(pack, count, seed=1):
    """Queries ``(n, f)`` in the range of training."""
    rng = np.random.default_rng([61, seed])
    q = rng.uniform(-32000, 32000, (count, pack.features))
    return (q / pack.x_gain.astype(float) + pack.x_offset).astype(np.float32)


def some_points(pack, count, seed=0, off=1.0):
    """Points at which the pack is off by some scales."""
    x = queries(pack, count, seed)
    mean, _, scale = Reference(pack).raw(reference.quantise(pack, x)).astype(np.float64)
    rng = np.random.default_rng([62, seed])
    t = mean + scale / 16 * (off + rng.normal(0, 0.5, count))
    return x, (np.clip(t, -(2**29), 2**29) * pack.y_gain + pack.y_offset).astype(np.float32)


def fill(device, count, seed=0, times=None):
    """Open the store and learn this many points; return them."""
    assert device.open() == "ok"
    x, y = some_points(device.pack, count, seed)
    times = np.zeros(count, int) if times is None else np.array(times)
    for query, target, time in zip(x, y, times.tolist(), strict=True):
        assert device.learn(query, target, time) == "ok"
    return points_of(device.pack, x, y, times)


def assert_predicts(device, points, x=None):
    """Whether predictions are those with these points, bit for bit."""
    pack, x = device.pack, queries(device.pack, 3) if x is None else x
    level = next(iter(pack.intervals.quantiles))
    assert device.opened.set_coverage(level) == "ok"
    raw, floats = expect(pack, level, points, x)
    q = np.where(np.isnan(x), NO_FILL, reference.quantise(pack, x))
    for row in range(len(x)):
        for (status, found), expected in (
            (device.predict_raw(q[row]), raw),
            (device.predict(x[row]), floats),
        ):
            assert status == "ok"
            for name, column in expected.items():
                one = np.array(found[name], column.dtype)
                assert one.tobytes() == column[row].tobytes(), (name, found[name], column[row])


def assert_predicts_alone(device):
    assert_predicts(device, Points.none(device.pack.features))


@pytest.fixture(scope="module")
def tiny(packs, cases):
    """A pack of two features and two twins that trusts its points."""
    pack = cases.draw(packs, "some-of-everything", scaled=True)
    domain = replace(pack.domain, fill=np.full(2, NO_FILL, np.int16))
    return replace(pack, domain=domain, intervals=replace(pack.intervals, trust=40000))


@pytest.fixture(scope="module")
def sensor(tiny):
    """The same pack for a sensor whose errors are some hundredths of its unit."""
    intervals = replace(
        tiny.intervals,
        by_spread=0,
        by_asymmetry=0,
        by_difficulty=0,
        constant=2**22,  # 1024 in units of an estimate
        quantiles={500: 44_000, 900: 108_000},
    )
    gain = np.float32(0.02 / 1024)
    return replace(tiny, y_gain=gain, y_offset=np.float32(-1), intervals=intervals)


@pytest.fixture
def device(native, flash, stores, library, tiny):
    """Make a device, with that pack unless another is given: ``device(most=3)``."""
    return lambda pack=tiny, **given: stores.Device(native, flash, library, pack, **given)


# ---- bits

BUILDS = {
    "portable": ("-O2", "-DTWIN_HOST=0"),
    "bytes": ("-O1", "-DTWIN_HOST=0", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321"),  # big-endian
    "host": ("-O0",),  # test_kernels.py has the levels of kernels
    "no neighbors": ("-O1", "-DTWIN_HOST=0", "-DTWIN_NEIGHBORS=0"),
    "-O3": ("-O3", "-DTWIN_HOST=0"),
}
QUICK_BUILDS = ("portable", "bytes")


@pytest.mark.parametrize(
    "build",
    [pytest.param(one, marks=() if one in QUICK_BUILDS else pytest.mark.slow) for one in BUILDS],
)
def test_points_and_predictions_have_the_bits_of_the_reference(
    request, native, flash, stores, packs, cases, build, tmp_path
):
    if native.EXTRA_OPTIONS and build != "portable":
        pytest.skip("one build is instrumented")
    if build == "portable":
        library = request.getfixturevalue("library")
    else:
        sources = [*(native.SOURCES if build == "host" else native.PORTABLE), *flash.SOURCES]
        compiler = "clang" if build == "-O3" else "gcc"
        options = ("-fPIC", "-shared", *BUILDS[build])
        path = native.compile_c(
            tmp_path / "libtwin.so", *options, compiler=compiler, sources=sources
        )
        library = native.load(path, flash.SIGNATURES, stores.SIGNATURES)
    moved = 0
    for number, count in itertools.product(range(8), (1, 5, 40)):
        rng = np.random.default_rng([62, number])
        given = {"neighbors": 0} if build == "no neighbors" else {}
        curves = {"mapped": number % 2, "curved": number // 2 % 2}
        pack = packs.random_pack(rng, scaled=True, **curves, **given)
        program_size = flash.PROGRAM_SIZES[number]
        made = stores.Device(native, flash, library, pack, most=count, program_size=program_size)
        x = cases.queries(pack, count + 4 * len(cases.EXTREMES), number)
        rng.shuffle(x)
        y = draw_targets(pack, x[:count], rng)
        points = points_of(pack, x[:count], y, np.arange(count))
        usable = points.scores != UNSCORED
        assert made.open() == "ok"
        for row, able in enumerate(usable):
            if rng.random() < 0.1:
                assert made.open() == "ok"
            assert made.learn(x[row], y[row], row) == ("ok" if able else "target")
        points = replace(points[usable], numbers=np.arange(usable.sum(), dtype=np.uint32))
        for _ in range(2):  # again after reopening
            assert made.points() == rows(points)
            assert_predicts(made, points, x[count : count + 3])
            assert made.open() == "ok"
        assert made.stored().to_records().tobytes() == points.to_records().tobytes()
        moved += len(points) and made.predict(x[-1])[1]["points"] > 0
    assert moved > 15  # otherwise points would not matter


def draw_targets(pack, x, rng):
    """Targets as far off as the pack expects, some far beyond, and some that are none."""
    mean, _, scale = Reference(pack).raw(reference.quantise(pack, x)).astype(np.float64)
    off = rng.normal(1, 1, len(x)) * scale / 16 * rng.choice([1, 1, 1, 30], len(x))
    with np.errstate(over="ignore"):
        y = ((mean + off) * pack.y_gain + pack.y_offset).astype(np.float32)
    wild = rng.choice([np.nan, np.inf, -3e38, float(pack.y_gain) * 2**29], len(x))
    return np.where(rng.random(len(x)) < 0.1, wild, y).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(
    trust=st.sampled_from([0, 1, 26214, 65535]),
    offs=st.lists(st.sampled_from([-600, -7, -6.9, -2, -0.5, 0, 0.1, 1, 4, 7, 40]), max_size=12),
    seed=st.integers(0, 1000),
)
def test_any_points_give_the_bits_of_the_rule(
    native, flash, stores, library, sensor, trust, offs, seed
):
    pack = replace(sensor, intervals=replace(sensor.intervals, trust=trust))
    made = stores.Device(native, flash, library, pack, most=12)
    assert made.open() == "ok"
    x, y = some_points(pack, len(offs), seed, np.array(offs))
    for query, target in zip(x, y, strict=True):
        assert made.learn(query, target) == "ok"
    assert_predicts(made, points_of(pack, x, y), queries(pack, 2, seed))


# ---- storage that fails


@pytest.mark.parametrize("slots", [8, pytest.param(12, marks=pytest.mark.slow)])
def test_a_failure_takes_back_nothing_and_later_calls_succeed(device, flash, tiny, slots):
    """Let each call of the storage fail once, while a point is learnt."""
    seen = set()
    for call in range(200):
        made = device(most=5, slots=slots)
        points = fill(made, 4)
        assert made.open() == "ok"
        (x,), (y,) = some_points(tiny, 1, seed=5)
        made.memory.error = made.memory.calls + call
        status = made.learn(x, y)
        if made.memory.calls <= made.memory.error:
            continue  # it needs no more calls than that
        after = points.joined(replace(points_of(tiny, x[None], [y]), numbers=[4]))
        assert_predicts(made, after if status == "ok" else points)
        seen.add(status)
        if status != "ok":
            assert made.learn(x, y) == "ok"
            assert_predicts(made, after)
        made.memory.error = flash.NEVER
        assert made.open() == "ok"
        assert made.points()[:4] == rows(points)
        assert len(made.points()) == 5
    assert seen == {"ok", "storage"}


def test_reading_goes_on_where_it_failed(device):
    made = device(most=5)
    points = fill(made, 4)
    made.memory.dead = 1
    for status in (made.learn([0, 0], 0.0), made.forget(0, 1), made.keep_latest(1)):
        assert status == "storage"
    assert made.forget(*ALL) == made.keep_latest(0) == "storage"
    assert_predicts(made, points)
    made.memory.dead = 0
    assert made.begin() == "more"
    assert made.step() == "more"
    made.memory.dead = 1
    assert made.step() == "storage"
    assert_predicts_alone(made)
    for status in (made.learn([0, 0], 0.0), made.forget(0, 1), made.keep_latest(1)):
        assert status == "more"  # points are to be read first
    made.memory.dead = 0
    while (status := made.step()) == "more":
        pass
    assert status == "ok"
    assert made.points() == rows(points)
    assert made.begin() == "more"
    assert made.step() == "more"
    assert made.forget(*ALL) == "ok"  # even if some cannot be read
    assert made.step() == "ok"
    assert_predicts_alone(made)
    made.memory.dead = 1
    assert made.open() == "storage"
    assert_predicts_alone(made)


def test_a_store_with_more_points_than_there_is_room_for_still_works(device, tiny):
    made = device(most=6)
    points = fill(made, 6)
    for most in (3, 1):
        assert made.open(most) == "full"
        assert made.points() == rows(points)[-most:]
        assert_predicts(made, points[6 - most :])
        assert made.learn([0, 0], 0.0) == "full"
    assert made.open(3) == "full"
    assert made.keep_latest(2) == "ok"
    assert made.numbers() == [4, 5]
    x, y = some_points(tiny, 1, seed=7)
    assert made.learn(x[0], y[0]) == "ok"
    assert made.open(3) == "ok"
    assert made.numbers() == [4, 5, 6]
    assert made.open(2) == "full"
    assert made.keep_latest(0) == "ok"
    assert_predicts_alone(made)
    assert made.learn(x[0], y[0]) == "ok"
    assert made.keep_latest(1) == "ok"  # it is the only one
    assert made.numbers() == [7]


times = st.sampled_from([0, 1, 2, 5, 9, 2**32 - 1])
changes = st.one_of(
    st.tuples(st.just("learn"), times),
    st.tuples(st.just("learn"), times),
    st.tuples(st.just("forget"), st.integers(0, 12), st.integers(0, 12)),
    st.tuples(st.just("keep"), st.integers(0, 6) | st.just(65535)),
    st.tuples(st.just("before"), times),
    st.tuples(st.just("reopen")),
)


@settings(deadline=None, max_examples=80)
@given(
    st.lists(changes, max_size=25),
    st.sampled_from([1, 4, 64, 256]),
    st.integers(1, 6),
    st.integers(3, 6),
)
def test_any_changes_are_those_of_a_list(
    native, flash, stores, library, tiny, done, size, most, more
):
    shape = {"most": most, "program_size": size, "slots": most + more}
    made = stores.Device(native, flash, library, tiny, **shape)
    expected, number = [], 0
    x, y = some_points(tiny, len(done) + 1)
    assert made.open() == "ok"
    for count, (name, *values) in enumerate(done):
        worn = made.memory.changes
        if name == "reopen":
            assert made.open() == "ok"
        elif name == "learn":
            status = made.learn(x[count], y[count], values[0])
            assert status == ("full" if len(expected) == most else "ok")
            if status == "ok":
                ((_, *fields),) = rows(points_of(tiny, x[[count]], y[[count]], values[0]))
                expected.append((number, *fields))
                number += 1
        elif name == "forget":
            first, last = values
            assert made.forget(first, last) == ("value" if first > last else "ok")
            assert first <= last or made.memory.changes == worn
            expected = [one for one in expected if not first <= one[0] <= last]
        elif name == "keep":
            assert made.keep_latest(values[0]) == "ok"
            if 0 < len(expected) <= values[0]:
                assert made.memory.changes == worn
            expected = expected[len(expected) - min(values[0], len(expected)) :]
        else:
            assert made.forget_before(values[0]) == "ok"
            expected = [one for one in expected if not 0 < one[1] < values[0]]
        assert made.points() == expected
    assert rows(made.stored()) == expected
    # Numbers are never used again.
    assert (made.store.journal.number, made.store.journal.damaged) == (number, 0)


# ---- another pack


def retrained(pack, **changes):
    """Another pack of the same schema."""
    rng = np.random.default_rng(3)
    twins = tuple(replace(one, output=rng.permutation(one.output)) for one in pack.twins)
    gain, offset = pack.y_gain * np.float32(0.9), pack.y_offset + pack.y_gain * 1000
    return replace(pack, twins=twins, y_gain=gain, y_offset=offset, **changes)


def test_points_are_scored_again_by_a_new_pack_as_in_python(device, tiny, tmp_path):
    made = device(most=5)
    old = fill(made, 4, times=[1, 2, 3, 4])
    update = retrained(tiny)
    made.update(update)
    before = made.memory.content()
    assert made.begin() == "more"
    assert [made.step() for _ in range(5)] == ["more"] * 4 + ["ok"]
    new = points_of(update, old.X, old.y, old.times)
    assert (new.errors != old.errors).all()
    assert made.points() == rows(new)
    assert_predicts(made, new)
    assert made.memory.content() == before  # opening only reads
    file = tmp_path / "dump.bin"
    file.write_bytes(before)
    in_python = Store(file, update, stamp_of(made.data), Reference(update).raw)
    assert rows(in_python.points) == made.points()
    x, y = some_points(update, 1, seed=4)
    assert made.learn(x[0], y[0]) == "ok"
    assert rows(made.stored()) == made.points()  # with the scores of the new pack
    assert made.begin() == "more"
    made.opened.model.members = 0  # what was scored by this pack is not evaluated again
    while (status := made.step()) == "more":
        pass
    assert status == "ok"
    assert made.points() == rows(made.stored())


def test_points_of_another_schema_stay_as_they_are(device, tiny, tmp_path):
    made = device(most=5)
    points = fill(made, 4)
    before = made.memory.content()
    made.update(replace(tiny, schema=tiny.schema ^ 1))
    assert made.open() == "other"
    assert_predicts_alone(made)
    assert made.try_everything() == {"other"}
    assert made.memory.content() == before
    file = tmp_path / "dump.bin"
    file.write_bytes(before)
    with pytest.raises(InputError, match="another model"):
        Store(file, made.pack, stamp_of(made.data), Reference(made.pack).raw)
    made.update(tiny)
    assert made.open() == "ok"
    assert made.points() == rows(points)
    made.update(replace(tiny, schema=tiny.schema ^ 1))
    assert made.open() == "other"
    assert made.forget(*ALL) == "ok"
    assert made.learn([0, 0], float(tiny.y_offset)) == "ok"
    assert made.open() == "ok"
    assert len(made.points()) == 1


def test_a_pack_without_a_schema_shares_its_points_with_no_other(device, tiny):
    made = device(replace(tiny, schema=None))
    fill(made, 2)
    assert made.open() == "ok"
    made.update(retrained(made.pack))
    assert made.open() == "other"


def test_points_that_a_pack_cannot_evaluate_stay_in_the_journal(device, tiny):
    fills = replace(tiny, domain=replace(tiny.domain, fill=np.array([5, NO_FILL], np.int16)))
    made = device(fills, most=4)
    x, y = some_points(fills, 3)
    x[1, 0] = np.nan
    y[2] = float(fills.y_offset) + float(fills.y_gain) * 2**29
    points = points_of(fills, x, y)
    assert made.open() == "ok"
    for query, target in zip(x, y, strict=True):
        assert made.learn(query, target) == "ok"
    narrow = replace(tiny, y_gain=fills.y_gain / 4)
    made.update(narrow)
    assert made.open() == "ok"
    assert made.numbers() == [0]
    assert made.keep_latest(1) == "ok"  # none is older
    assert made.store.journal.count == 3
    assert_predicts(made, points_of(narrow, x[:1], y[:1]))
    assert made.learn(x[0], y[0]) == "ok"  # moves all of them
    assert made.stored().scores.tolist()[1:3] == [UNSCORED, UNSCORED]
    assert made.open() == "ok"
    assert made.numbers() == [0, 3]
    made.update(fills)
    assert made.open() == "ok"
    assert made.points()[:3] == rows(points)


# ---- what is refused


def test_storage_and_memory_that_cannot_serve_are_refused(device):
    made = device()
    fill(made, 2)

    def refused():
        assert made.open() == "store"
        assert made.try_everything() == {"store"}
        assert_predicts_alone(made)
        return True

    for program_size in (0, 3, 12, 24, 257, 512, 65535):
        made.storage.program_size = program_size
        assert refused()
    made.storage.program_size = 8
    for name in ("read", "program", "erase"):
        function = getattr(made.storage, name)
        setattr(made.storage, name, None)
        assert refused()
        setattr(made.storage, name, function)
    block = made.storage.block_size
    for size in (0, block + 4, 3 * 32, 2**31):
        made.storage.block_size = size
        assert refused()
    made.storage.block_size = block
    for most in (0, 1025):
        assert made.open(most) == "store"
    made.most = 5
    for shift in (1, 2, 3):
        assert made.open(shift=shift) == "store"
    assert made.open() == "ok"
    assert len(made.points()) == 2


def test_a_pack_without_intervals_does_not_learn(device, tiny):
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in tiny.twins)
    made = device(replace(tiny, twins=twins, intervals=None))
    assert made.open() == "store"
    assert made.learn([0, 0], 0.0) == "store"
    status, found = made.predict([0, 0])
    assert (status, found["points"]) == ("ok", 0)


def test_a_model_that_is_not_open_does_not_learn(native, device):
    made = device()
    data = bytearray(made.data)
    data[-1] ^= 1
    made.opened = native.Native(made.library, data)
    assert made.opened.status == "body_crc"
    made.opened.scratch, made.opened.size = np.full(64, 0xA5, np.uint8), 0
    assert made.open() == "store"
    assert made.learn([0, 0], 0.0) == "store"
    assert made.predict([0, 0])[0] == made.predict_raw([0, 0])[0] == "model"


def test_points_that_are_none_are_refused(device, tiny):
    made = device()
    points = fill(made, 1)
    before = made.memory.content()
    beyond = float(tiny.y_gain) * 2**30 * 1.001
    for target in (np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, beyond, -beyond):
        assert made.learn([1, 2], target) == "target"
    assert made.learn([1, np.nan], 0.0) == "query"
    for status, found in (made.predict([1, np.nan]), made.predict_raw([1, NO_FILL])):
        assert (status, found["points"], found["intervals"]) == ("query", 0, 0)
    made.opened.size -= 1
    made.opened.scratch = made.opened.scratch[: made.opened.size]
    assert made.learn([1, 2], 3.0) == "scratch"
    assert made.predict_raw([1, 2])[0] == made.predict([1, 2])[0] == "scratch"
    assert made.memory.content() == before
    assert made.points() == rows(points)
    made.update(retrained(tiny))
    assert made.begin() == "more"
    made.opened.size -= 1
    made.opened.scratch = made.opened.scratch[: made.opened.size]
    assert made.step() == "scratch"
    made.opened.fit_scratch()
    assert [made.step(), made.step()] == ["more", "ok"]


def test_an_error_beyond_31_bits_counts_as_the_largest(device, tiny):
    alike = {"y_gain": np.float32(1), "y_offset": np.float32(0), "target_curve": None}
    made = device(replace(tiny, **alike, targets=np.full(len(tiny.targets), 1 - 2**30, np.int32)))
    x, y = queries(made.pack, 40), np.full(40, 2**30 - 64, np.float32)
    points = points_of(made.pack, x, y)
    assert points.errors.max() == 2**31 - 1
    farthest = np.flatnonzero(points.errors == 2**31 - 1)[:1]
    assert made.open() == "ok"
    assert made.learn(x[farthest[0]], y[0]) == "ok"
    points = points_of(made.pack, x[farthest], y[:1])
    assert made.points() == rows(points)
    assert_predicts(made, points)


@pytest.mark.parametrize("filling", ["random", "zeros", "no heads"])
def test_whatever_bytes_there_are_a_store_begins_there(device, tiny, filling):
    made = device(most=4)
    fill(made, 4)
    used = 2 * made.storage.block_size
    garbage = np.random.default_rng(64).integers(0, 256, used, np.uint8)
    if filling == "zeros":
        garbage[:] = 0
    if filling == "no heads":  # whole records without a head do not count
        heads, slots = garbage[: 3 * made.store.journal.slot].copy(), made.memory.content()
        garbage[:] = np.frombuffer(slots, np.uint8)
        for block in (0, made.storage.block_size):
            garbage[block : block + len(heads)] = heads
    ctypes.memmove(made.memory.cell, garbage.tobytes(), used)
    assert made.open() == "ok"
    assert made.store.count == 0
    assert_predicts_alone(made)
    assert made.memory.content() == garbage.tobytes()  # opening only reads
    points = fill(made, 4)
    assert made.open() == "ok"
    assert made.points() == rows(points)
    assert set(bytes(made.memory.cell)[used:]) == {255}  # nothing beyond its blocks
