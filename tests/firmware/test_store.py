"""The store: predictions with points have the reference's bits, whatever is read or replaced."""

import ctypes
import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.errors import InputError
from twinedge.pack import write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.adaptation import adapted, point_weights
from twinedge.runtime.journal import read_journal
from twinedge.runtime.pack_device import Reference
from twinedge.runtime.store import UNSCORED, Points, Store, scored

ALL = (0, 2**32 - 1)  # numbers of points
# Bytes of code: store and journal, by themselves.
STORE_M0, JOURNAL_M0 = 2004, 1468
STORE_M4, JOURNAL_M4 = 1872, 1392


class Journal(ctypes.Structure):
    """``twin_journal``."""

    _fields_ = (
        ("status", ctypes.c_int8),
        *((name, ctypes.c_uint8) for name in ("heads", "moved", "failed")),
        *((name, ctypes.c_uint16) for name in ("size", "slot", "slots", "count")),
        *((name, ctypes.c_uint16) for name in ("damaged", "at", "end", "next")),
        *((name, ctypes.c_void_p) for name in ("storage", "buffer", "record")),
        *((name, ctypes.c_uint32) for name in ("owner", "stamp", "block", "generation")),
        *((name, ctypes.c_uint32) for name in ("number", "least")),
    )


class Point(ctypes.Structure):
    """``twin_point``."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("number", "time")),
        ("target", ctypes.c_float),
        *((name, ctypes.c_int32) for name in ("error", "score")),
    )


class StoreInC(ctypes.Structure):
    """``twin_store``."""

    _fields_ = (
        ("journal", Journal),
        ("model", ctypes.c_void_p),
        ("points", ctypes.POINTER(Point)),
        ("pack", ctypes.c_uint32),
        *((name, ctypes.c_uint16) for name in ("most", "count")),
        ("status", ctypes.c_int8),
    )


def load(native, flash, folder, *options, sources, compiler="gcc"):
    """Load the runtime with flash.c."""
    options = ("-fPIC", "-shared", f"-I{flash.HERE}", *options, *native.EXTRA_OPTIONS)
    sources = [*sources, *flash.SOURCES]
    path = native.compile_c(folder / "libtwin.so", *options, compiler=compiler, sources=sources)
    library = native.load(path)
    flash.declare(library)
    pointer, word, short, status = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint16, ctypes.c_int
    for name, result, *arguments in (
        ("twin_store_size", word, pointer, pointer, short),
        ("twin_store_open", status, *(pointer,) * 5, short),
        ("twin_store_step", status, pointer, pointer, word),
        ("twin_learn", status, pointer, pointer, word, pointer, ctypes.c_float, word),
        ("twin_forget", status, pointer, word, word),
        ("twin_forget_before", status, pointer, word),
        ("twin_keep_latest", status, pointer, short),
        ("twin_predict_adapted_raw", status, pointer, pointer, word, pointer, pointer),
        ("twin_predict_adapted", status, pointer, pointer, word, pointer, pointer),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Device:
    """An open pack, a flash, and a store on it once opened."""

    def __init__(self, native, flash, library, pack, *, most=5, program_size=8, slots=None):
        self.native, self.library, self.most = native, library, most
        slot = -(-(24 + 4 * pack.features) // program_size) * program_size
        size = slot * (most + 4 if slots is None else slots)
        self.memory, self.storage = flash.make(library, size, program_size)
        self.update(pack)

    def update(self, pack):
        """Replace the pack; the store must be opened again."""
        self.pack, self.data = pack, write_pack(pack)
        self.opened = self.native.Native(self.library, self.data)

    def open(self, most=None, *, shift=0):
        """Open the store, as after a reset, and read its points."""
        said = self.begin(most, shift=shift)
        while said == "more":
            said = self.step()
        return said

    def begin(self, most=None, *, shift=0):
        """Open the store, and read nothing."""
        self.most = self.most if most is None else most
        model, storage = ctypes.byref(self.opened.model), ctypes.byref(self.storage)
        size = self.library.twin_store_size(model, storage, self.most)
        self._room = np.full(size // 4 + self.native.CANARY, 0xA5A5A5A5, np.uint32)
        self._canary = self._room.view(np.uint8)[shift + size :]
        self.store = StoreInC()
        ctypes.memset(ctypes.byref(self.store), 0xA5, ctypes.sizeof(StoreInC))
        return self._said(
            self.library.twin_store_open(
                ctypes.byref(self.store),
                model,
                self.native.address(self.opened.pack),
                storage,
                ctypes.c_void_p(self._room.ctypes.data + shift),
                self.most,
            )
        )

    def step(self):
        return self._call("twin_store_step")

    def learn(self, x, target, time=0):
        return self._call("twin_learn", np.ascontiguousarray(x, np.float32), target, time)

    def forget(self, first, last):
        return self._said(self.library.twin_forget(ctypes.byref(self.store), first, last))

    def keep_latest(self, count):
        return self._said(self.library.twin_keep_latest(ctypes.byref(self.store), count))

    def forget_before(self, time):
        return self._said(self.library.twin_forget_before(ctypes.byref(self.store), time))

    def predict_raw(self, query):
        """Status, and fields by name."""
        return self._predict("twin_predict_adapted_raw", query, np.int16, self.native.Raw())

    def predict(self, x):
        """Status, and fields by name."""
        return self._predict("twin_predict_adapted", x, np.float32, self.native.Prediction())

    def points(self):
        """Points in RAM: number, time, target, error and score of each."""
        return [
            tuple(getattr(point, name) for name, _ in Point._fields_)
            for point in self.store.points[: self.store.count]
        ]

    def numbers(self):
        return [point[0] for point in self.points()]

    def stored(self):
        """Points as Python reads them from both blocks."""
        return Points.of(read_journal(self.memory.content()))

    def _call(self, name, query=None, *more):
        function, scratch = getattr(self.library, name), self.opened.scratch
        given = () if query is None else (self.native.address(query), *more)
        where = ctypes.byref(self.store), self.native.address(scratch), self.opened.size
        status = function(*where, *given)
        assert (scratch[self.opened.size :] == 0xA5).all()
        return self._said(status)

    def _predict(self, name, query, dtype, out):
        ctypes.memset(ctypes.byref(out), 0x5A, ctypes.sizeof(out))
        said = self._call(name, np.ascontiguousarray(query, dtype), ctypes.byref(out))
        return said, {field: getattr(out, field) for field, _ in out._fields_}

    def _said(self, status):
        assert (self._canary == 0xA5).all()
        assert self.memory.fault == 0, f"flash.c:{self.memory.fault}"
        return self.native.name_of(status)


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
            "mean": mean.astype(np.float32) * pack.y_gain + pack.y_offset,
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
        for (said, found), expected in (
            (device.predict_raw(q[row]), raw),
            (device.predict(x[row]), floats),
        ):
            assert said == "ok"
            for name, column in expected.items():
                one = np.array(found[name], column.dtype)
                assert one.tobytes() == column[row].tobytes(), (name, found[name], column[row])


def assert_predicts_alone(device):
    assert_predicts(device, Points.none(device.pack.features))


@pytest.fixture(scope="module")
def objects(native, tmp_path_factory):
    """The runtime with the portable kernel, compiled once."""
    folder = tmp_path_factory.mktemp("objects")
    options = ("-O2", "-fPIC", "-ffunction-sections", "-DTWIN_HOST=0", *native.EXTRA_OPTIONS)
    made = []
    for source in portable(native):
        made.append(folder / f"{source.stem}.o")
        native.compile_c(made[-1], *options, "-c", sources=[source])
    return made


def portable(native):
    """Files of the runtime without kernels of other machines."""
    return [
        path
        for path in native.SOURCES
        if path.parent.name == "src" or path.stem == "kernel_portable"
    ]


@pytest.fixture(scope="module")
def store_library(native, flash, objects, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    return load(native, flash, folder, "-O2", "-DTWIN_HOST=0", sources=objects)


@pytest.fixture
def bare(native):
    """Skip if the library is instrumented and the test would notice."""
    if native.EXTRA_OPTIONS:
        pytest.skip("instrumented")


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
def device(native, flash, store_library, tiny):
    """Make a device, with that pack unless another is given: ``device(most=3)``."""
    return lambda pack=tiny, **given: Device(native, flash, store_library, pack, **given)


# ---- bits

BUILDS = {
    "portable": ("-O2", "-DTWIN_HOST=0"),
    "host": ("-O0",),  # test_kernels.py has the levels of kernels
    "no neighbors": ("-O1", "-DTWIN_HOST=0", "-DTWIN_NEIGHBORS=0"),
    # As on a big-endian machine.
    "bytes": ("-O1", "-DTWIN_HOST=0", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321"),
    "-O3": ("-O3", "-DTWIN_HOST=0"),
}
QUICK_BUILDS = ("portable", "bytes")


@pytest.mark.parametrize(
    "build",
    [pytest.param(one, marks=() if one in QUICK_BUILDS else pytest.mark.slow) for one in BUILDS],
)
def test_points_and_predictions_have_the_bits_of_the_reference(
    request, native, flash, packs, cases, build, tmp_path
):
    if native.EXTRA_OPTIONS and build != "portable":
        pytest.skip("one build is instrumented")
    if build == "portable":
        library = request.getfixturevalue("store_library")
    else:
        sources = native.SOURCES if build == "host" else portable(native)
        compiler = "clang" if build == "-O3" else "gcc"
        library = load(native, flash, tmp_path, *BUILDS[build], sources=sources, compiler=compiler)
    moved = 0
    for number, count in itertools.product(range(8), (1, 5, 40)):
        rng = np.random.default_rng([62, number])
        given = {"neighbors": 0} if build == "no neighbors" else {}
        pack = packs.random_pack(rng, scaled=True, **given)
        program_size = flash.PROGRAM_SIZES[number]
        made = Device(native, flash, library, pack, most=count, program_size=program_size)
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
    assert moved > 15  # otherwise points would have no say


def draw_targets(pack, x, rng):
    """Targets as far off as the pack expects, some far beyond, and some that are none."""
    mean, _, scale = Reference(pack).raw(reference.quantise(pack, x)).astype(np.float64)
    off = rng.normal(1, 1, len(x)) * scale / 16 * rng.choice([1, 1, 1, 30], len(x))
    with np.errstate(over="ignore"):
        y = ((mean + off) * pack.y_gain + pack.y_offset).astype(np.float32)
    wild = rng.choice([np.nan, np.inf, -3e38, float(pack.y_gain) * 2**29], len(x))
    return np.where(rng.random(len(x)) < 0.1, wild, y).astype(np.float32)


@settings(deadline=None, max_examples=60)
@given(
    trust=st.sampled_from([0, 1, 26214, 65535]),
    offs=st.lists(st.sampled_from([-600, -7, -6.9, -2, -0.5, 0, 0.1, 1, 4, 7, 40]), max_size=12),
    seed=st.integers(0, 1000),
)
def test_any_points_give_the_bits_of_the_rule(
    native, flash, store_library, sensor, trust, offs, seed
):
    pack = replace(sensor, intervals=replace(sensor.intervals, trust=trust))
    made = Device(native, flash, store_library, pack, most=12)
    assert made.open() == "ok"
    x, y = some_points(pack, len(offs), seed, np.array(offs))
    for query, target in zip(x, y, strict=True):
        assert made.learn(query, target) == "ok"
    assert_predicts(made, points_of(pack, x, y), queries(pack, 2, seed))


# ---- readings that are wrong


def shipped(device, x):
    found = device.opened.predict_all(np.ascontiguousarray(x[None], np.float32))
    return {name: column[0] for name, column in found.items() if name != "estimates"}


def test_a_glitch_as_the_only_point_changes_nothing(device, sensor):
    made = device(sensor)
    (x,) = queries(sensor, 1)
    assert made.open() == "ok"
    for glitches in (1, 2):  # the pack has a vote, too
        assert made.learn(x, -999.0) == "ok"
        said, found = made.predict(x)
        before = shipped(made, x)
        if glitches == 1:
            assert said == "ok"
            assert found == before
            assert found["points"] == 0
            assert found["high"] - found["low"] < 1
    assert_predicts(made, points_of(sensor, np.stack([x, x]), [-999.0, -999.0]))


def test_a_glitch_among_exact_points_changes_nothing(device, sensor):
    made = device(sensor, most=30)
    x, y = some_points(sensor, 20, off=0.0)
    assert made.open() == "ok"
    for query, target in zip(x, y, strict=True):
        assert made.learn(query, target) == "ok"
    before = made.predict(x[0])
    assert made.learn(x[3], -999.0) == "ok"
    assert made.predict(x[0]) == before
    assert before[1]["points"] == 20
    assert abs(before[1]["mean"] - y[0]) < 0.1


@pytest.mark.parametrize("wrong", [9999.0, 500.0])
def test_one_wrong_reading_of_ten_leaves_the_interval_on_the_truth(device, sensor, wrong):
    pack = replace(sensor, y_offset=np.float32(12.8))  # so the truth is about that
    made = device(pack, most=10)
    x, y = some_points(pack, 10, off=0.5)
    assert made.open() == "ok"
    for row, query in enumerate(x):
        assert made.learn(query, wrong if row == 4 else y[row]) == "ok"
    (new,), (truth,) = some_points(pack, 1, seed=9, off=0.5)
    _, found = made.predict(new)
    assert found["low"] < truth < found["high"]
    assert found["high"] - found["low"] < 1
    assert found["points"] == 9


# ---- storage that fails


def test_a_failure_takes_back_nothing_and_later_calls_succeed(device, flash, tiny):
    """Let each call of the storage fail once, while a point is learnt."""
    seen = set()
    for slots, reopened in itertools.product((8, 12), (False, True)):
        for call in itertools.count():
            made = device(most=5, slots=slots)
            points = fill(made, 4)
            if reopened:
                assert made.open() == "ok"
            (x,), (y,) = some_points(tiny, 1, seed=5)
            made.memory.error = made.memory.calls + call
            said = made.learn(x, y)
            through = made.memory.calls <= made.memory.error
            after = points.joined(replace(points_of(tiny, x[None], [y]), numbers=[4]))
            assert_predicts(made, after if said == "ok" else points)
            seen.add(said)
            if said != "ok":
                assert said == "storage"
                assert made.learn(x, y) == "ok"
                assert_predicts(made, after)
            made.memory.error = flash.NEVER
            assert made.open() == "ok"
            assert made.points()[:4] == rows(points)
            assert len(made.points()) == 5
            if through:
                break
    assert seen == {"ok", "storage"}


def test_a_storage_that_is_gone_leaves_the_points_in_ram(device):
    made = device(most=5)
    points = fill(made, 4)
    made.memory.dead = 1
    for said in (made.learn([0, 0], 0.0), made.forget(0, 1), made.keep_latest(1)):
        assert said == "storage"
    assert_predicts(made, points)
    made.memory.dead = 0
    assert made.keep_latest(3) == "ok"
    assert_predicts(made, points[1:])


def test_reading_goes_on_where_it_failed(device):
    made = device(most=5)
    points = fill(made, 4)
    assert made.begin() == "more"
    assert made.step() == "more"
    made.memory.dead = 1
    assert made.step() == "storage"
    assert_predicts_alone(made)
    for said in (made.learn([0, 0], 0.0), made.forget(0, 1), made.keep_latest(1)):
        assert said == "more"  # points are to be read first
    made.memory.dead = 0
    while (said := made.step()) == "more":
        pass
    assert said == "ok"
    assert made.points() == rows(points)
    assert made.begin() == "more"
    assert made.step() == "more"
    assert made.forget(*ALL) == "ok"  # even if some cannot be read
    assert made.step() == "ok"
    assert_predicts_alone(made)
    made.memory.dead = 1
    assert made.open() == "storage"
    assert_predicts_alone(made)


def test_a_power_cut_leaves_the_points_of_before_or_of_after(device, flash):
    changes = {
        "learn": lambda made: made.learn([1, 2], 3.0),
        "keep": lambda made: made.keep_latest(2),
        "before": lambda made: made.forget_before(3),
    }
    for (name, change), seed in itertools.product(changes.items(), range(30)):
        made = device(most=6, slots=10)
        fill(made, 4, times=[1, 2, 3, 4])
        before = made.points()
        assert made.open() == "ok"
        made.memory.random += seed
        made.memory.cut = made.memory.changes + seed % 7
        said = change(made)
        after = made.points()
        assert said in ("ok", "storage")
        made.memory.dead, made.memory.cut = 0, flash.NEVER
        assert made.open() == "ok"
        assert made.points() == after or (said == "storage" and len(made.points()) != len(before))
        assert set(made.points()) <= set(before) or name == "learn"


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
    assert made.forget(*ALL) == "ok"
    assert_predicts_alone(made)
    assert made.learn(x[0], y[0]) == "ok"


# ---- forgetting


def test_a_range_that_ends_before_it_starts_is_refused(device):
    made = device()
    points = fill(made, 5)
    before = made.memory.content()
    assert made.forget(3, 2) == "value"
    assert made.memory.content() == before
    assert_predicts(made, points)
    assert made.forget(1, 3) == "ok"
    assert made.numbers() == made.stored().numbers.tolist() == [0, 4]


def test_the_latest_are_kept(device):
    made = device()
    points = fill(made, 5)
    before = made.memory.content()
    for count in (5, 6, 100, 65535):  # as many as there are, or more
        assert made.keep_latest(count) == "ok"
    assert made.memory.content() == before
    assert made.forget(2, 2) == "ok"
    assert made.keep_latest(3) == "ok"
    assert made.points() == [rows(points)[i] for i in (1, 3, 4)]
    assert made.open() == "ok"
    assert made.numbers() == [1, 3, 4]
    assert made.keep_latest(0) == "ok"
    assert_predicts_alone(made)
    assert made.open() == "ok"
    assert made.numbers() == []
    assert made.store.journal.number == 5  # numbers are never used again


def test_old_points_are_forgotten_by_their_time(device):
    made = device(most=6)
    fill(made, 6, times=[0, 5, 9, 10, 2**32 - 1, 3])
    for time, left in ((0, 6), (3, 6), (4, 5), (10, 3), (2**32 - 1, 2)):
        assert made.forget_before(time) == "ok"
        assert len(made.numbers()) == len(made.stored()) == left
    assert [point[1] for point in made.points()] == [0, 2**32 - 1]
    assert made.open() == "ok"
    assert made.stored().times.tolist() == [0, 2**32 - 1]


changes = st.one_of(
    st.tuples(st.just("learn"), st.integers(0, 9)),
    st.tuples(st.just("learn"), st.integers(0, 9)),
    st.tuples(st.just("forget"), st.integers(0, 12), st.integers(0, 12)),
    st.tuples(st.just("keep"), st.integers(0, 6)),
    st.tuples(st.just("before"), st.integers(0, 9)),
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
    native, flash, store_library, tiny, done, size, most, more
):
    made = Device(
        native, flash, store_library, tiny, most=most, program_size=size, slots=most + more
    )
    expected, number = [], 0
    x, y = some_points(tiny, len(done) + 1)
    assert made.open() == "ok"
    for count, (name, *values) in enumerate(done):
        if name == "reopen":
            assert made.open() == "ok"
        elif name == "learn":
            said = made.learn(x[count], y[count], values[0])
            assert said == ("full" if len(expected) == most else "ok")
            if said == "ok":
                ((_, *fields),) = rows(points_of(tiny, x[[count]], y[[count]], values[0]))
                expected.append((number, *fields))
                number += 1
        elif name == "forget":
            first, last = values
            assert made.forget(first, last) == ("value" if first > last else "ok")
            expected = [one for one in expected if not first <= one[0] <= last]
        elif name == "keep":
            assert made.keep_latest(values[0]) == "ok"
            expected = expected[len(expected) - min(values[0], len(expected)) :]
        else:
            assert made.forget_before(values[0]) == "ok"
            expected = [one for one in expected if not 0 < one[1] < values[0]]
        assert made.points() == expected
    assert rows(made.stored()) == expected
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
    with Store(file, update, made.data, Reference(update).raw) as in_python:
        assert rows(in_python.points) == made.points()
    x, y = some_points(update, 1, seed=4)
    assert made.learn(x[0], y[0]) == "ok"
    assert rows(made.stored()) == made.points()  # with the scores of the new pack
    assert made.begin() == "more"
    made.opened.model.members = 0  # what was scored by this pack is not evaluated again
    while (said := made.step()) == "more":
        pass
    assert said == "ok"
    assert made.points() == rows(made.stored())


def test_points_of_another_schema_stay_as_they_are(device, tiny, tmp_path):
    made = device(most=5)
    points = fill(made, 4)
    before = made.memory.content()
    made.update(replace(tiny, schema=tiny.schema ^ 1))
    assert made.open() == "other"
    assert_predicts_alone(made)
    for said in (
        made.step(),
        made.learn([0, 0], 0.0),
        made.forget(0, 3),
        made.keep_latest(1),
        made.forget_before(9),
    ):
        assert said == "other"
    assert made.memory.content() == before
    file = tmp_path / "dump.bin"
    file.write_bytes(before)
    with pytest.raises(InputError, match="another model"):
        Store(file, made.pack, made.data, Reference(made.pack).raw)
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


def test_storage_and_memory_that_cannot_serve_are_refused(native, device, tiny):
    made = device()
    fill(made, 2)

    def refused():
        assert made.open() == "store"
        for said in (
            made.step(),
            made.learn([0, 0], 0.0),
            made.forget(*ALL),
            made.keep_latest(0),
            made.forget_before(1),
        ):
            assert said == "store"
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
    said, found = made.predict([0, 0])
    assert (said, found["points"]) == ("ok", 0)


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
    for said, found in (made.predict([1, np.nan]), made.predict_raw([1, NO_FILL])):
        assert (said, found["points"], found["intervals"]) == ("query", 0, 0)
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


# ---- the code


def test_it_is_small(native, tmp_path):
    sizes = tmp_path / "size.c"
    sizes.write_text(
        '#include "twin_store.h"\n'
        "typedef char store_is_small[sizeof(twin_store) <= 80 ? 1 : -1];\n"
        "typedef char point_is_small[sizeof(twin_point) <= 20 ? 1 : -1];\n"
        "typedef char storage_is_small[sizeof(twin_storage) <= 24 ? 1 : -1];\n"
    )
    needed = {}
    hard = ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
    for cpu, floats, *most in (
        ("cortex-m0", (), STORE_M0, JOURNAL_M0),
        ("cortex-m4", hard, STORE_M4, JOURNAL_M4),
    ):
        needed[cpu] = set()
        options = (f"-mcpu={cpu}", "-mthumb", *floats, "-Os", "-c")
        output = tmp_path / f"{cpu}.o"
        native.compile_c(output, *options, compiler="arm-none-eabi-gcc", sources=[sizes])
        for name, limit in zip(("twin_store", "twin_journal"), most, strict=True):
            source = native.FIRMWARE / "src" / f"{name}.c"
            native.compile_c(output, *options, compiler="arm-none-eabi-gcc", sources=[source])
            text, data, bss = native.run("arm-none-eabi-size", output).splitlines()[1].split()[:3]
            assert int(text) <= limit, (cpu, name)
            assert (data, bss) == ("0", "0")
            said = native.run("arm-none-eabi-nm", "--undefined-only", output)
            needed[cpu] |= {line.split()[-1] for line in said.splitlines()}
    # No division of 64 bits, and no float but what predictions have.
    own = {name for name in needed["cortex-m4"] if name.startswith("twin")}
    assert needed["cortex-m4"] <= own
    assert needed["cortex-m0"] - own <= {"__aeabi_lmul", "__aeabi_uidiv", "__aeabi_uidivmod"}


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("knob", ["TWIN_STORE", "TWIN_INTERVALS", "TWIN_FLOAT"])
def test_it_can_be_left_out(native, tmp_path, knob, language):
    source = native.FIRMWARE / "src" / "twin_store.c"
    words = ("-c", *native.WARNINGS, *native.INCLUDES, f"-D{knob}=0", f"-x{language}", source)
    native.run("gcc", *words, "-o", tmp_path / "store.o")
    assert native.run("nm", tmp_path / "store.o") == ""


@pytest.mark.parametrize(
    ("chip", "flash"), [("atmega328p", 1), ("atmega2560", 1), ("atmega2560", 2)]
)
def test_avr_has_it_where_it_is_asked_for(native, tmp_path, chip, flash):
    knobs = ("-DTWIN_STORE=1", "-DTWIN_INTERVALS=1", f"-DTWIN_FLASH={flash}")
    sources = [path for path in native.SOURCES if path.parent.name == "src"]
    found = ""
    for source in (*sources, native.FIRMWARE / "src" / "kernels" / "kernel_avr.c"):
        output = tmp_path / f"{source.stem}.o"
        options = (f"-mmcu={chip}", "-Os", "-c", *knobs, "-Wno-pedantic")
        words = (*native.WARNINGS, *options, *native.INCLUDES, source, "-o", output)
        native.run("avr-gcc", "-std=gnu99", *words)
        found += native.run("avr-nm", "--defined-only", output)
    assert "twin_predict_adapted" in found


PROGRAM = """
#include "twin_store.h"
int main(void) {
    twin_model model;
    twin_prediction out;
    return twin_open(&model, 0, 0) || twin_predict(&model, 0, 0, 0, &out, 0);
}
"""


def test_a_program_that_does_not_learn_does_not_have_it(bare, native, objects, tmp_path):
    main = tmp_path / "main.c"
    main.write_text(PROGRAM)
    options = ("-O2", "-DTWIN_HOST=0", "-ffunction-sections", "-Wl,--gc-sections")
    native.compile_c(tmp_path / "example", *options, sources=[main, *objects])
    found = native.run("nm", tmp_path / "example")
    assert "twin_open" in found
    assert re.findall("store|learn|adapt|journal|point", found) == []


def test_a_cpp_program_learns(bare, native, objects, tmp_path):
    main = tmp_path / "main.cpp"
    main.write_text(
        '#include "twin_store.h"\n'
        "int main() {\n"
        "    twin_model model = {}; twin_storage storage = {}; twin_store store;\n"
        "    storage.program_size = 1;\n"
        "    return twin_store_open(&store, &model, 0, &storage, 0, 5) != TWIN_ERROR_STORE ||\n"
        "           twin_forget(&store, 0, 0) != TWIN_ERROR_STORE;\n"
        "}\n"
    )
    words = ("-std=c++17", *native.WARNINGS, *native.INCLUDES, "-DTWIN_HOST=0")
    native.run("g++", *words, main, *objects, "-o", tmp_path / "main")
    native.run(tmp_path / "main")


def test_every_status_of_it_has_a_text(native, store_library):
    store_library.twin_text.restype = ctypes.c_char_p
    texts = {store_library.twin_text(-native.STATUSES.index(name)) for name in native.MISTAKES[-5:]}
    assert len(texts) == 5
    assert all(texts)
