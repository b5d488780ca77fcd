"""The store: no power cut costs a point, and predictions with points have the reference's bits."""

import ctypes
import itertools
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.pack import write_pack
from twinedge.runtime import adapting, reference

HERE = Path(__file__).parent
ALL = (0, 2**32 - 1)  # numbers of points
NEVER = 2**31 - 1
NOWHERE = -1
BLOCK = 16384  # size of a block in flash.c
SIZES = (1, 2, 4, 8, 16, 32)  # program sizes


class Flash(ctypes.Structure):
    """``flash`` of flash.c."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("block_size", "program_size")),
        ("random", ctypes.c_uint64),
        *((name, ctypes.c_int32) for name in ("cut", "changes")),
        *((name, ctypes.c_int32) for name in ("fail", "skip", "lie", "stuck", "unread")),
        *((name, ctypes.c_uint32) for name in ("once", "dead", "fault")),
        ("hit", ctypes.c_uint32 * 2),
        *((name, ctypes.c_uint8 * (2 * BLOCK)) for name in ("cell", "weak", "done", "meant")),
    )


class Storage(ctypes.Structure):
    """``twin_storage``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("read", "program", "erase", "context")),
        ("block_size", ctypes.c_uint32),
        ("program_size", ctypes.c_uint16),
    )


class Store(ctypes.Structure):
    """``twin_store``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("model", "storage", "memory", "spare", "targets")),
        *((name, ctypes.c_uint32) for name in ("pack", "block", "generation", "number")),
        *((name, ctypes.c_uint32) for name in ("slots", "next")),
        *((name, ctypes.c_uint16) for name in ("slot", "most", "count", "lost")),
        ("settled", ctypes.c_uint),
        ("status", ctypes.c_int),
    )


def load(native, folder, *options, sources, compiler="gcc"):
    """Load the runtime with flash.c."""
    options = ("-fPIC", "-shared", *options, *native.EXTRA_OPTIONS)
    sources = [*sources, HERE / "flash.c"]
    path = native.compile_c(folder / "libtwin.so", *options, compiler=compiler, sources=sources)
    library = native.load(path)
    pointer, word, short, status = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint16, ctypes.c_int
    for name, result, *arguments in (
        ("flash_reset", None, pointer, pointer, word, short, word),
        ("flash_trial", word, *(pointer,) * 5, word, short, word, word, pointer),
        ("twin_store_size", word, pointer, pointer, short),
        ("twin_store_open", status, *(pointer,) * 5, short),
        ("twin_learn_raw", status, pointer, pointer, word, pointer, ctypes.c_int32),
        ("twin_learn", status, pointer, pointer, word, pointer, ctypes.c_float),
        ("twin_forget", status, pointer, word, word),
        ("twin_predict_adapted_raw", status, pointer, pointer, word, pointer, pointer),
        ("twin_predict_adapted", status, pointer, pointer, word, pointer, pointer),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Device:
    """An open pack, a flash, and a store on it once opened."""

    def __init__(self, native, library, data, *, most=5, program_size=8, slots=None):
        self.native, self.library, self.data = native, library, bytes(data)
        self.opened = native.Native(library, data)
        self.flash, self.storage, self.most = Flash(), Storage(), most
        self.size = 16 + int(self.opened.model.anchor_size)
        self.slot = -(-self.size // program_size) * program_size
        block_size = self.slot * (most + 3 if slots is None else slots)
        block_size += -block_size % program_size
        library.flash_reset(
            ctypes.byref(self.flash), ctypes.byref(self.storage), block_size, program_size, most
        )

    def open(self, most=None):
        """Reopen the store, as after a reset."""
        self.most = self.most if most is None else most
        size = self.library.twin_store_size(
            ctypes.byref(self.opened.model), ctypes.byref(self.storage), self.most
        )
        self._memory = np.full(-(-(size + self.native.CANARY) // 4), 0xA5A5A5A5, np.uint32)
        self._canary = self._memory.view(np.uint8)[size:]
        self.store = Store()
        ctypes.memset(ctypes.byref(self.store), 0xA5, ctypes.sizeof(Store))
        return self._said(
            self.library.twin_store_open(
                ctypes.byref(self.store),
                ctypes.byref(self.opened.model),
                self.native.address(self.opened.pack),
                ctypes.byref(self.storage),
                self.native.address(self._memory),
                self.most,
            )
        )

    def learn_raw(self, query, target):
        return self._call("twin_learn_raw", np.ascontiguousarray(query, np.int16), int(target))

    def learn(self, x, target):
        return self._call("twin_learn", np.ascontiguousarray(x, np.float32), float(target))

    def forget(self, first, last):
        return self._said(self.library.twin_forget(ctypes.byref(self.store), first, last))

    def predict_raw(self, query):
        """Status, and fields by name."""
        return self._predict("twin_predict_adapted_raw", query, np.int16, self.native.Raw())

    def predict(self, x):
        """Status, and fields by name."""
        return self._predict("twin_predict_adapted", x, np.float32, self.native.Prediction())

    def alone(self, x):
        """What the pack says without a store, all fields of a ``twin_prediction``."""
        found = self.opened.predict_all(np.ascontiguousarray(x[None], np.float32))
        return {name: column[0] for name, column in found.items() if name != "estimates"}

    def points(self):
        """Entries in memory: number, target, score, scale and features of each."""
        memory = self._memory.view(np.uint8)
        found = []
        for at in range(0, self.store.count * self.slot, self.slot):
            entry = memory[at : at + self.size].tobytes()
            fields = struct.unpack_from("<IihH", entry, 4)
            features = np.frombuffer(entry, "<i2", self.opened.model.features, 16)
            found.append((*fields, *features.tolist()))
        return found

    def bytes(self):
        """Both blocks."""
        return bytes(self.flash.cell)[: 2 * self.storage.block_size]

    def address(self, slot, other=False):
        """Bytes of a slot, in the block in use or in the other one."""
        block = self.store.block
        return (self.storage.block_size - block if other else block) + slot * self.slot

    def _call(self, name, query, *more):
        function, scratch = getattr(self.library, name), self.opened.scratch
        status = function(
            ctypes.byref(self.store),
            self.native.address(scratch),
            self.opened.size,
            self.native.address(query),
            *more,
        )
        assert (scratch[self.opened.size :] == 0xA5).all()
        return self._said(status)

    def _predict(self, name, query, dtype, out):
        ctypes.memset(ctypes.byref(out), 0x5A, ctypes.sizeof(out))
        said = self._call(name, np.ascontiguousarray(query, dtype), ctypes.byref(out))
        return said, {field: getattr(out, field) for field, _ in out._fields_}

    def _said(self, status):
        assert (self._canary == 0xA5).all()
        assert self.flash.fault == 0, f"flash.c:{self.flash.fault}"
        return self.native.name_of(status)


class Journal:
    """What is in a flash after changes none of which fails: section 11 of FORMAT.md."""

    def __init__(self, device):
        self.device, self.blocks, self.now = device, ({}, {}), 1
        self.points, self.generation, self.next = [], 0, None
        crc = struct.unpack_from("<I", device.data, 12)[0]
        self.whose = crc + 65536 + device.slot & 0xFFFFFFFF

    @property
    def number(self):
        return self.points[-1][0] + 1 if self.points else 0

    def reopen(self):
        self.next = None

    def learn(self, target, score, scale, *features):
        if self.next is None or self.next == self.device.storage.block_size // self.device.slot:
            self._move()
        point = (self.number, target, score, scale, *features)
        self.points.append(point)
        self.blocks[self.now][self.next] = _entry(point)
        self.next += 1

    def forget(self, first, last):
        self.points = [point for point in self.points if not first <= point[0] <= last]
        self._move()

    def _move(self):
        self.now ^= 1
        self.generation += 1
        block = self.blocks[self.now]
        block.clear()
        block.update(enumerate(map(_entry, self.points), 2))
        self.next = 2 + len(self.points)
        block[0] = block[1] = _summed(struct.pack("<3I", self.generation, self.whose, self.next))

    def check(self):
        """Whether the flash has these bytes; those after an entry mean nothing."""
        size, slot = self.device.storage.block_size, self.device.slot
        found = self.device.bytes()
        assert not any(self.device.flash.weak)
        for start, block in zip((0, size), self.blocks, strict=True):
            for number in range(size // slot):
                expected = block.get(number, b"\xff" * slot)
                at = start + number * slot
                assert found[at : at + len(expected)] == expected, number
            assert set(found[start + size // slot * slot : start + size]) <= {255}


def _summed(body):
    return struct.pack("<I", zlib.crc32(body)) + body


def _entry(point):
    number, target, score, scale, *features = point
    padded = features + [0] * (-len(features) % 4)
    return _summed(struct.pack(f"<IihH{len(padded)}h", number, target, score, scale, *padded))


def judge(pack, q, targets):
    """Points as a store would have them, numbered from 0."""
    found = reference.evaluate_raw(pack, q)
    scale = reference.raw_scale(found.signals, pack.intervals, found.estimates.shape[1])
    targets = np.asarray(targets, np.int64)
    scores = adapting.judged(pack.intervals, found.raw_mean, scale.astype(np.int64), targets)
    return adapting.Points(np.arange(len(q), dtype=np.uint32), q, targets.astype(np.int32), *scores)


def expect(pack, level, points, q, missing=None):
    """Fields of ``twin_raw`` and of ``twin_prediction`` for quantised queries, by name."""
    found = reference.evaluate_raw(pack, q)
    scale = reference.raw_scale(found.signals, pack.intervals, found.estimates.shape[1])
    mean = found.raw_mean
    if len(points):
        own = reference.evaluate_raw(adapting.own_pack(pack, points), q).raw_mean
        mean, scale = adapting.blended(
            pack.intervals, points, mean.astype(np.int64), scale.astype(np.int64), own
        )
        mean = mean.astype(np.int32)
    wide = scale.astype(np.uint64) * np.uint64(pack.intervals.quantiles[level]) >> np.uint64(20)
    width = np.minimum(wide, 2**31 - 1).astype(np.int64)
    low, high = (
        np.clip(mean + signed, -(2**31), 2**31 - 1).astype(np.int32) for signed in (-width, width)
    )
    missing = np.zeros(q.shape, bool) if missing is None else missing
    flags = {
        "outside": reference.mask(reference.outside(pack, q) & ~missing),
        "missing": reference.mask(missing),
        "intervals": np.ones(len(q), np.uint8),
    }
    raw = {
        "mean": mean,
        "root": found.raw_spread,
        "scale": scale.astype(np.uint32),
        "low": low,
        "high": high,
        "count": np.full(len(q), found.estimates.shape[1]),
    }
    with np.errstate(over="ignore"):
        told = {
            name: raw[name].astype(np.float32) * pack.y_gain + pack.y_offset
            for name in ("mean", "low", "high")
        }
        told["scale"] = raw["scale"].astype(np.float32) * pack.y_gain / np.float32(16)
    return raw | flags, told | flags | {"spread": found.spread}


def assert_same(found, expected, row):
    for name, column in expected.items():
        one = np.array(found[name], column.dtype)
        assert one.tobytes() == column[row].tobytes(), (name, found[name], column[row])


@pytest.fixture(scope="module")
def objects(native, tmp_path_factory):
    """The runtime with the portable kernel, compiled once."""
    folder = tmp_path_factory.mktemp("objects")
    sources = [*(native.FIRMWARE / "src").glob("*.c"), *native.FIRMWARE.rglob("kernel_portable.c")]
    options = ("-O2", "-fPIC", "-ffunction-sections", "-DTWIN_HOST=0", *native.EXTRA_OPTIONS)
    made = [folder / f"{source.stem}.o" for source in sources]
    for source, output in zip(sources, made, strict=True):
        native.compile_c(output, *options, "-c", sources=[source])
    return made


@pytest.fixture(scope="module")
def store_library(native, objects, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    return load(native, folder, "-O2", "-DTWIN_HOST=0", sources=objects)


@pytest.fixture
def bare(native):
    """Skip if the library is instrumented and the test would notice."""
    if native.EXTRA_OPTIONS:
        pytest.skip("instrumented")


@pytest.fixture(scope="module")
def tiny(packs, cases):
    """A pack of two features and two twins that trusts its points."""
    pack = cases.draw(packs, "some-of-everything", scaled=True)
    return replace(pack, intervals=replace(pack.intervals, trust=40000))


@pytest.fixture
def device(native, store_library, tiny):
    """Make a device with that pack and arguments of ``Device``: ``device(most=3)``."""
    data = write_pack(tiny)
    return lambda **given: Device(native, store_library, given.pop("data", data), **given)


def some_points(pack, count, seed=0):
    """Quantised queries, and targets that the pack does not quite expect."""
    rng = np.random.default_rng([61, seed])
    q = rng.integers(-32767, 32768, (count, pack.features)).astype(np.int16)
    mean = reference.evaluate_raw(pack, q).raw_mean.astype(np.int64)
    off = rng.integers(-(10**6), 10**6, count)
    return q, np.clip(mean + off, 1 - 2**30, 2**30 - 1)


def fill(device, pack, count, seed=0):
    """Open the store and learn this many points; return them."""
    assert device.open() == "ok"
    q, targets = some_points(pack, count, seed)
    for query, target in zip(q, targets, strict=True):
        assert device.learn_raw(query, target) == "ok"
    return judge(pack, q, targets)


def rows(points):
    """Points as ``Device.points`` has them."""
    columns = (points.numbers, points.targets, points.scores, points.scales)
    return [
        (*fields, *row)
        for *fields, row in zip(
            *map(np.ndarray.tolist, columns), points.features.tolist(), strict=True
        )
    ]


def level_of(device, pack):
    """Set the smallest coverage of the pack; return it."""
    level = next(iter(pack.intervals.quantiles))
    assert device.opened.set_coverage(level) == "ok"
    return level


def assert_predicts(device, pack, points, seed=1, count=3):
    """Whether predictions are those with these points, and no others."""
    q, _ = some_points(pack, count, seed)
    raw, _ = expect(pack, level_of(device, pack), points, q)
    for row, query in enumerate(q):
        said, found = device.predict_raw(query)
        assert said == "ok"
        assert_same(found, raw, row)


def assert_predicts_alone(device):
    """Whether predictions are those of the pack, as without a store."""
    x = np.linspace(-1, 1, device.opened.model.features, dtype=np.float32)
    said, found = device.predict(x)
    assert said == "ok"
    for name, value in device.alone(x).items():
        np.testing.assert_array_equal(found[name], value)


# ---- bits

BUILDS = {
    "portable": ("-O2", "-DTWIN_HOST=0"),
    "host": ("-O0",),  # test_kernels.py has the levels of kernels
    "one anchor at a time": ("-O1", "-DTWIN_HOST=0", "-DTWIN_BLOCK=1", "-DTWIN_PARTIAL=0"),
    "three anchors at a time": ("-O1", "-DTWIN_HOST=0", "-DTWIN_BLOCK=3"),
    "no neighbors": ("-O1", "-DTWIN_HOST=0", "-DTWIN_NEIGHBORS=0"),
    # As on a big-endian machine.
    "bytes": ("-O1", "-DTWIN_HOST=0", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321"),
    "-O0": ("-O0", "-DTWIN_HOST=0"),
    "-O3": ("-O3", "-DTWIN_HOST=0"),
}
QUICK_BUILDS = ("portable", "host", "bytes")


@pytest.mark.parametrize(
    "build",
    [pytest.param(one, marks=() if one in QUICK_BUILDS else pytest.mark.slow) for one in BUILDS],
)
def test_journal_and_predictions_have_the_bits_of_the_reference(
    request, native, packs, cases, build, tmp_path
):
    if native.EXTRA_OPTIONS and build != "portable":
        pytest.skip("one build is instrumented")
    if build == "portable":
        library = request.getfixturevalue("store_library")
    else:
        sources = native.SOURCES if build == "host" else portable(native)
        compiler = "clang" if build == "-O3" else "gcc"
        library = load(native, tmp_path, *BUILDS[build], sources=sources, compiler=compiler)
    moved = 0
    for number in range(9):
        rng = np.random.default_rng([62, number])
        given = {"neighbors": 0} if build == "no neighbors" else {}
        pack = packs.random_pack(rng, scaled=True, **given)
        data = write_pack(pack)
        program_size = SIZES[number % len(SIZES)]
        for count in (1, 5, 64):
            count = min(count, adapting.most_points(pack))
            device = Device(native, library, data, most=count, program_size=program_size)
            moved += assert_bits(device, pack, cases, rng, count)
            kernels = device.opened.kernels() if build == "host" else []
            for kernel in kernels if count == 5 else ():
                device.opened.take_kernel(kernel)
                assert_predicts(device, pack, judge_again(device, pack))
    assert moved > 80  # otherwise points would have no say


def portable(native):
    """Files of the runtime without kernels of other machines."""
    return [
        path
        for path in native.SOURCES
        if path.parent.name == "src" or path.stem == "kernel_portable"
    ]


def judge_again(device, pack):
    """Points of a device as it stores them."""
    found = np.array(device.points(), np.int64)
    return judge(pack, found[:, 4:].astype(np.int16), found[:, 1])


def assert_bits(device, pack, cases, rng, count):
    """Check that a device has the bits of the reference; return how many predictions moved."""
    level = int(rng.choice(list(pack.intervals.quantiles)))
    assert device.opened.set_coverage(level) == "ok"
    journal = Journal(device)
    x = cases.queries(pack, count + 4 * len(cases.EXTREMES), int(rng.integers(100)))
    rng.shuffle(x)
    q, missing = reference.quantise(pack, x), np.isnan(x)
    targets = draw_targets(pack, q[:count], rng)
    with np.errstate(over="ignore"):
        y = targets.astype(np.float32) * pack.y_gain + pack.y_offset
    exact = adapting.quantised_targets(pack, y)
    assert device.open() == "ok"
    learnt = []
    for row in range(count):
        if rng.random() < 0.1:
            assert device.open() == "ok"
            journal.reopen()
        target = int(targets[row])
        if row % 2 == 0:
            assert device.learn_raw(q[row], target) == "ok"
        elif abs(exact[row]) < 2**30:
            target = int(exact[row])
            assert device.learn(x[row], y[row]) == "ok"
        else:
            assert device.learn(x[row], y[row]) == "target"
            continue
        point = judge(pack, q[row : row + 1], [target])
        journal.learn(*rows(point)[0][1:])
        learnt.append((row, target))
    journal.check()
    points = judge(pack, q[[row for row, _ in learnt]], [target for _, target in learnt])
    assert device.points() == rows(points) == journal.points
    assert device.store.lost == 0
    for _ in range(2):  # again after reopening
        asked = slice(count, count + 6)
        raw, told = expect(pack, level, points, q[asked], missing[asked])
        plain, _ = expect(pack, level, points[:0], q[asked], missing[asked])
        filled = np.where(missing, -32768, q).astype(np.int16)
        for row in range(6):
            for (said, found), expected in (
                (device.predict_raw(filled[asked][row]), raw),
                (device.predict(x[asked][row]), told),
            ):
                assert said == "ok"
                assert_same(found, expected, row)
        assert device.open() == "ok"
    return int((raw["mean"] != plain["mean"]).sum() + (raw["scale"] != plain["scale"]).sum())


def test_scores_end_at_511_and_are_whole_below(device, tiny):
    q, _ = some_points(tiny, 1)
    found = reference.evaluate_raw(tiny, q)
    mean = int(found.raw_mean[0])
    scale = int(reference.raw_scale(found.signals, tiny.intervals, found.estimates.shape[1])[0])
    assert 2**10 < scale < 2**28
    made = device(most=1)
    assert made.open() == "ok"
    scores = set()
    for score, more, sign in itertools.product((0, 1, 2, 510, 511, 512, 600), (-1, 0, 1), (-1, 1)):
        target = mean + sign * (-(-score * scale // 256) + more)
        assert made.learn_raw(q[0], target) == "ok"
        assert made.points()[0][1:] == rows(judge(tiny, q, [target]))[0][1:]
        scores.add(made.points()[0][2])
        assert made.forget(*ALL) == "ok"
    assert {-511, -510, -1, 0, 1, 510, 511} <= scores
    assert max(map(abs, scores)) == 511


def draw_targets(pack, q, rng):
    """Targets as far off as the pack expects, some far beyond, and some at the limits."""
    found = reference.evaluate_raw(pack, q)
    scale = reference.raw_scale(found.signals, pack.intervals, found.estimates.shape[1])
    off = rng.normal(size=len(q)) * scale / 16 * rng.choice([1, 1, 1, 30], len(q))
    targets = np.clip(found.raw_mean + off, 1 - 2**30, 2**30 - 1)
    far = rng.choice([1 - 2**30, 2**30 - 1], len(q))
    return np.where(rng.random(len(q)) < 0.1, far, targets).astype(np.int64)


# ---- power cuts


def trial(device, changes, nested, seed):
    """Cut the power at every change of the memory; return the line of a fault, and counts."""
    counts = (ctypes.c_uint32 * 3)()
    flash, storage = device.flash, device.storage
    device.library.flash_reset(
        ctypes.byref(flash),
        ctypes.byref(storage),
        storage.block_size,
        storage.program_size,
        seed,
    )
    fault = device.library.flash_trial(
        ctypes.byref(flash),
        ctypes.byref(storage),
        ctypes.byref(device.opened.model),
        device.native.address(device.opened.pack),
        device.native.address(device.opened.scratch),
        device.opened.size,
        device.most,
        changes,
        nested,
        counts,
    )
    return fault, *counts


# Points, and slots beyond those that they need: some blocks are full soon, others seldom.
SHAPES = list(itertools.product((2, 5, 9), (3, 4, 8)))


@pytest.mark.parametrize("program_size", SIZES)
def test_a_power_cut_leaves_the_points_of_before_or_of_after(device, native, program_size):
    rounds = 1 if native.EXTRA_OPTIONS else 8
    total = np.zeros(3, int)
    for seed, (most, more) in enumerate(SHAPES * rounds):
        made = device(most=most, slots=most + more, program_size=program_size)
        fault, *counts = trial(made, 120, 6 if seed % 2 else 0, 1000 * program_size + seed)
        assert fault == 0, f"flash.c:{fault}, round {seed}"
        total += counts
    cuts, old, new = total
    assert cuts > 5_000 * rounds  # so some 250,000 in all
    assert old > cuts / 20
    assert new > cuts / 100


# What makes the journal safe; without it, the trial fails. Some faults take two cuts in a row.
BROKEN = {
    "a block counts though it lacks points": ("if (slot < end)", "if (end > slots)"),
    "what a cut left is not written again": ("if (!store->settled &&", "if (0 &&"),
    "a head that reads otherwise now is trusted": (
        "if (!twini_load(store, store->slots))",
        "if (!twini_load(store, store->slots) && 0)",
    ),
    "generations do not tell blocks apart": ("store->generation + 1", "store->generation"),
    "the second head comes first": (
        "if (twini_program(store, 0, entry))",
        "if (twini_program(store, 1, entry))",
    ),
    "the block in use is erased": ("    twini_turn(store);\n    failed", "    failed"),
}


@pytest.mark.parametrize("why", BROKEN)
def test_the_trial_finds_a_journal_that_is_not_safe(
    bare, native, objects, device, tiny, tmp_path, why
):
    right, wrong = BROKEN[why]
    code = (native.FIRMWARE / "src" / "twin_store.c").read_text()
    assert code.count(right) == 1
    (tmp_path / "broken.c").write_text(code.replace(right, wrong))
    sources = [*(path for path in objects if path.stem != "twin_store"), tmp_path / "broken.c"]
    library = load(native, tmp_path, "-O2", "-DTWIN_HOST=0", sources=sources)
    made = (
        Device(native, library, write_pack(tiny), most=most, slots=most + more)
        for most, more in SHAPES * 20
    )
    assert any(trial(one, 120, 6, seed)[0] for seed, one in enumerate(made))


def test_an_interrupted_takeover_leaves_the_other_store_or_an_empty_one(device, tiny):
    other = write_pack(replace(tiny, intervals=replace(tiny.intervals, trust=1)))
    seen = set()
    for cut, seed in itertools.product(range(3), range(40)):
        first = device(most=4)
        points = fill(first, tiny, 4)
        second = device(most=4, data=other)
        second.flash, second.storage.context = first.flash, first.storage.context
        assert second.open() == "other"
        first.flash.random += seed
        first.flash.cut = first.flash.changes + cut
        assert second.forget(*ALL) == "storage"
        first.flash.dead, first.flash.cut = 0, NEVER
        said = second.open()
        seen.add((cut, said))
        assert said in ("other", "ok")
        assert second.store.count == 0
        if said == "other" and cut == 0:
            assert first.open() == "ok"
            assert first.points() == rows(points)
        assert second.open() == "ok" or second.forget(*ALL) == "ok"
        assert second.learn_raw([1, 2], 3) == "ok"
        assert second.open() == "ok"
        assert second.store.count == 1
    assert {(0, "other"), (1, "other"), (1, "ok"), (2, "ok")} <= seen
    assert (0, "ok") not in seen


# ---- flipped bits


@pytest.mark.parametrize("program_size", [1, 32])
def test_a_bit_that_flips_costs_one_point_at_most(device, tiny, program_size):
    made = device(most=6, slots=10, program_size=program_size)
    points = fill(made, tiny, 4)
    assert made.forget(1, 1) == "ok"
    for query, target in zip(*some_points(tiny, 2, seed=5), strict=True):
        assert made.learn_raw(query, target) == "ok"
    assert made.open() == "ok"
    q, targets = some_points(tiny, 2, seed=5)
    whole = rows(points)
    del whole[1]
    whole += [(4 + number, *row) for number, *row in rows(judge(tiny, q, targets))]
    assert made.points() == whole
    block, size = made.store.block, made.storage.block_size
    query = some_points(tiny, 1, seed=9)[0]
    level = level_of(made, tiny)
    raw = {
        without: expect(tiny, level, judge_again_without(made, tiny, without), query)[0]
        for without in (None, *range(len(whole)))
    }
    before = made.bytes()
    for bit in range(8 * 2 * size):
        at, mask = bit // 8, 1 << bit % 8
        slot, offset = divmod(at - block, made.slot)
        made.flash.cell[at] ^= mask
        assert made.open() == "ok"
        point = slot - 2 if 2 <= slot < 2 + len(whole) and offset < made.size else None
        torn = offset < 4 and 2 + len(whole) <= slot < size // made.slot
        assert made.store.lost == (point is not None or torn), (slot, offset)
        left = [row for number, row in enumerate(whole) if number != point]
        assert made.points() == left
        said, found = made.predict_raw(query[0])
        assert said == "ok"
        assert_same(found, raw[point], 0)
        if bit % 97 == 0:  # and it goes on
            held = bytes(made.flash)
            assert made.learn_raw(query[0], 77) == "ok"
            assert made.open() == "ok"
            assert made.store.lost == 0
            assert [row[1:] for row in made.points()[:-1]] == [row[1:] for row in left]
            assert made.points()[-1][1] == 77
            ctypes.memmove(ctypes.byref(made.flash), held, len(held))
        made.flash.cell[at] ^= mask
    assert made.bytes() == before


def judge_again_without(device, pack, which):
    points = judge_again(device, pack)
    return points if which is None else points[np.arange(len(points)) != which]


# ---- what can go wrong


def test_a_full_store_says_so_and_goes_on_when_points_were_forgotten(device, tiny):
    made = device(most=3, slots=7)
    journal = Journal(made)
    assert made.open() == "ok"
    q, targets = some_points(tiny, 40)
    for query, target in zip(q, targets, strict=True):
        if made.store.count == 3:
            before = made.bytes()
            assert made.learn_raw(query, target) == "full"
            assert made.bytes() == before
            assert made.points() == journal.points
            oldest = journal.points[0][0]
            assert made.forget(oldest, oldest + int(target) % 2) == "ok"
            journal.forget(oldest, oldest + int(target) % 2)
        assert made.learn_raw(query, target) == "ok"
        journal.learn(*rows(judge(tiny, query[None], [target]))[0][1:])
        journal.check()
        assert made.store.number == journal.number
    assert made.points() == journal.points
    assert journal.generation > 10


def test_more_points_than_there_is_room_for_are_no_store(device, tiny):
    made = device(most=5)
    fill(made, tiny, 5)
    before = made.bytes()
    assert made.open(most=4) == "full"
    assert made.learn_raw([0, 0], 0) == "full"
    assert made.forget(*ALL) == "full"
    assert_predicts_alone(made)
    assert made.bytes() == before
    assert made.open(most=5) == "ok"
    assert made.store.count == 5


@pytest.mark.parametrize("way", ["fail", "skip", "bit"])
def test_a_worn_slot_is_passed_over(device, tiny, way):
    made = device(most=5, slots=9)
    points = fill(made, tiny, 2)
    at = made.address(made.store.next)
    if way == "bit":
        made.flash.cell[at + 9] &= 0xEF
    else:
        setattr(made.flash, way, at)
    q, targets = some_points(tiny, 1, seed=3)
    refused = 2**20 * 13 + 5  # has that bit set
    assert made.learn_raw(q[0], refused | 1 << 12) == "storage"
    assert made.points() == rows(points)
    assert_predicts(made, tiny, points)
    assert made.learn_raw(q[0], targets[0]) == "ok"
    whole = [row[1:] for row in rows(points) + rows(judge(tiny, q, targets))]
    assert [row[1:] for row in made.points()] == whole
    assert made.address(made.store.next) == at + 2 * made.slot
    assert made.open() == "ok"
    assert [row[1:] for row in made.points()] == whole
    assert made.store.lost == (way == "bit")
    numbers = [row[0] for row in made.points()]
    assert numbers == sorted(set(numbers))


def test_a_point_that_came_through_after_all_has_a_number_of_its_own(device, tiny):
    made = device(most=5, slots=9)
    points = fill(made, tiny, 2)
    made.flash.lie = made.address(made.store.next)
    assert made.learn_raw([5, 6], 7) == "storage"
    assert made.points() == rows(points)
    assert made.learn_raw([5, 6], 8) == "ok"
    assert made.open() == "ok"
    assert [row[:2] for row in made.points()[2:]] == [(2, 7), (3, 8)]
    assert made.forget(2, 2) == "ok"
    assert [row[:2] for row in made.points()[2:]] == [(3, 8)]


@pytest.mark.parametrize("slot", [0, 1, 2, 3, "erase"])
@pytest.mark.parametrize("way", ["fail", "skip", "lie"])
def test_a_worn_block_costs_nothing_that_was_confirmed(device, tiny, slot, way):
    made = device(most=6, slots=12)
    points = fill(made, tiny, 3)
    if slot == "erase":
        made.flash.stuck = made.address(0, other=True)
    else:
        setattr(made.flash, way, made.address(slot, other=True))
    assert made.forget(0, 0) == "storage"
    assert made.points() == rows(points)
    assert_predicts(made, tiny, points)
    before = made.points()
    q, targets = some_points(tiny, 1, seed=3)
    said = made.learn_raw(q[0], targets[0])
    # As long as it has no head, the other block is not valid, and this one is used.
    assert said == ("storage" if slot in (0, 1) else "ok")
    confirmed = made.points()
    assert confirmed[:3] == before
    assert len(confirmed) == 3 + (said == "ok")
    assert made.open() == "ok"
    assert made.points() == confirmed
    # If it has a head, points are now moved from the block with the worn slot.
    has_head = slot == 1 or (slot == 0 and way == "lie")
    assert made.forget(2, 2) == ("ok" if has_head else "storage")
    left = [row for row in confirmed if row[0] != 2]
    assert made.points() == (left if has_head else confirmed)
    made.flash.fail = made.flash.skip = made.flash.lie = made.flash.stuck = NOWHERE
    assert made.forget(2, 2) == "ok"
    assert made.points() == left
    assert made.learn_raw(q[0], targets[0]) == "ok"
    assert made.open() == "ok"
    assert made.points()[:-1] == left


@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize("once", [0, 1])  # some parts do not let bytes be programmed twice
def test_a_change_that_failed_at_a_head_may_show_but_only_as_a_whole(device, tiny, slot, once):
    made = device(most=6, slots=12)
    made.flash.once = once
    points = rows(fill(made, tiny, 4))
    made.flash.lie = made.address(slot, other=True)
    assert made.forget(1, 2) == "storage"
    assert made.points() == points
    made.flash.lie = NOWHERE
    for _ in range(2):
        assert made.open() == "ok"
        assert made.points() == [points[0], points[3]]
    assert made.learn_raw([1, 2], 3) == "ok"
    assert made.open() == "ok"
    assert [row[0] for row in made.points()] == [0, 3, 4]


def test_what_cannot_be_read_is_no_store_until_it_can(device, tiny):
    made = device(most=4)
    points = fill(made, tiny, 3)
    before = made.bytes()
    heads = [made.address(slot, other) for slot in (0, 1) for other in (False, True)]
    failed = 0
    for at in [*heads, *(made.address(slot) for slot in range(2, 7))]:
        made.flash.unread = at
        said = made.open()
        # The first head is read only if the second one is not intact.
        assert said == "storage" or at in heads[:2]
        if said == "storage":
            failed += 1
            assert made.learn_raw([0, 0], 0) == "storage"
            assert made.forget(*ALL) == "storage"
            assert_predicts_alone(made)
    assert failed >= 7
    made.flash.unread = NOWHERE
    assert made.bytes() == before
    assert made.open() == "ok"
    assert made.points() == rows(points)


def test_what_cannot_be_read_back_was_not_learnt_for_sure(device, tiny):
    made = device(most=4, slots=9)
    points = fill(made, tiny, 2)
    made.flash.unread = made.address(made.store.next)
    assert made.learn_raw([5, 6], 7) == "storage"
    made.flash.unread = NOWHERE
    assert made.learn_raw([5, 6], 7) == "storage"  # until it is reopened
    assert made.forget(*ALL) == "storage"
    assert_predicts_alone(made)
    assert made.open() == "ok"
    assert made.points()[:2] == rows(points)
    assert [row[0] for row in made.points()] == [0, 1, 2]


def test_points_of_another_pack_are_left_alone_until_all_are_forgotten(device, tiny):
    other = write_pack(replace(tiny, intervals=replace(tiny.intervals, trust=39999)))
    first = device(most=4)
    points = fill(first, tiny, 3)
    second = device(most=4, data=other)
    second.flash, second.storage.context = first.flash, first.storage.context
    before = first.bytes()
    assert second.open() == "other"
    assert second.store.count == 0
    for said in (
        second.learn_raw([0, 0], 0),
        second.learn([0, 0], 0),
        second.forget(0, 0),
        second.forget(0, 2**32 - 2),
        second.forget(1, 2**32 - 1),
    ):
        assert said == "other"
    assert_predicts_alone(second)
    assert first.bytes() == before
    assert first.open() == "ok"
    assert first.points() == rows(points)
    assert second.open() == "other"
    assert second.forget(*ALL) == "ok"
    assert second.learn_raw([1, 2], 3) == "ok"
    assert second.open() == "ok"
    assert [row[:2] for row in second.points()] == [(0, 3)]
    assert first.open() == "other"


def test_slots_of_another_size_are_another_store(device, tiny):
    first = device(most=4, program_size=8, slots=16)
    points = fill(first, tiny, 3)
    for program_size, said in ((1, "ok"), (4, "ok"), (16, "other"), (32, "other")):
        second = device(most=4, program_size=program_size)
        ctypes.memmove(ctypes.byref(second.flash), ctypes.byref(first.flash), ctypes.sizeof(Flash))
        second.flash.program_size = program_size
        second.storage.block_size = first.storage.block_size
        assert second.open() == said
        assert second.points() == (rows(points) if said == "ok" else [])
        if said == "other":
            assert second.forget(*ALL) == "ok"
        assert second.learn_raw([1, 2], 3) == "ok"
        assert second.open() == "ok"
        assert second.points()[-1][1] == 3
        assert second.store.lost == 0


def assert_is_none(device):
    """Whether a store that could not be opened does nothing."""
    before = bytes(device.flash)
    assert device.open() == "store"
    assert device.learn_raw(np.zeros(64), 0) == "store"
    assert device.learn(np.zeros(64), 0) == "store"
    assert device.forget(*ALL) == "store"
    if device.opened.status == "ok":
        assert_predicts_alone(device)
    assert bytes(device.flash) == before


def test_blocks_must_have_three_slots_more_than_points(device):
    for most, program_size in itertools.product((0, 1, 6), SIZES):
        assert device(most=most, program_size=program_size).open() == "ok"
        small = device(most=most, program_size=program_size)
        small.storage.block_size -= program_size
        assert_is_none(small)
    none = device()
    none.storage.block_size = 0
    assert_is_none(none)


def test_a_store_without_room_is_full(device):
    made = device(most=0)
    assert made.open() == "ok"
    assert made.learn_raw([0, 0], 0) == "full"
    assert_predicts_alone(made)


def test_there_are_1024_points_at_most_and_4096_of_all_twins(
    native, store_library, packs, tiny, device
):
    most = adapting.MOST_POINTS
    assert device(most=1).open() == "ok"
    for twins in (1, 4, 5):
        pack = packs.random_pack(
            np.random.default_rng(63),
            scaled=True,
            features=1,
            hidden=(2,),
            counts=[1] * twins,
            neighbors=0,
        )
        fits = min(most, adapting.MOST_MEMBERS // twins)
        assert fits == adapting.most_points(pack)
        for count, said in ((fits, "ok"), (fits + 1, "store")):
            made = Device(native, store_library, write_pack(pack), program_size=1)
            made.most = count
            made.storage.block_size = made.flash.block_size = 2**30
            made.flash.dead = 1
            assert made.open() == ("storage" if said == "ok" else said)


def test_a_pack_without_intervals_does_not_learn(native, store_library, tiny):
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in tiny.twins)
    without = replace(tiny, twins=twins, intervals=None)
    assert_is_none(Device(native, store_library, write_pack(without)))


def test_a_model_that_is_not_open_does_not_learn(native, store_library, tiny):
    data = bytearray(write_pack(tiny))
    data[-1] ^= 1
    closed = Device(native, store_library, data)
    assert closed.opened.status == "body_crc"
    closed.opened.scratch, closed.opened.size = np.full(64, 0xA5, np.uint8), 0
    assert_is_none(closed)
    assert closed.predict_raw(np.zeros(64))[0] == "model"
    assert closed.predict(np.zeros(64))[0] == "model"


def test_targets_that_are_none_are_refused(device, tiny):
    made = device(most=5)
    points = fill(made, tiny, 1)
    before = made.bytes()
    beyond = float(tiny.y_gain) * 2**30 * 1.0001
    for target in (2**30, -(2**30), 2**31 - 1, -(2**31)):
        assert made.learn_raw([1, 2], target) == "target"
    for target in (np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, beyond, -beyond):
        assert made.learn([1, 2], target) == "target"
    assert made.bytes() == before
    assert made.points() == rows(points)
    for target in (2**30 - 1, 1 - 2**30):
        assert made.learn_raw([1, 2], target) == "ok"
    assert [row[1] for row in made.points()[1:]] == [2**30 - 1, 1 - 2**30]


def test_missing_features_are_filled_in_or_refused(device, tiny):
    fills = replace(tiny, domain=replace(tiny.domain, fill=np.array([1234, -32768], np.int16)))
    made = device(most=4, data=write_pack(fills))
    assert made.open() == "ok"
    x = ((np.array([5000, 6000]) / tiny.x_gain) + tiny.x_offset).astype(np.float32)
    q = reference.quantise(fills, x[None])[0]
    assert made.learn([np.nan, x[1]], 0.0) == "ok"
    assert made.learn_raw([-32768, q[1]], 5) == "ok"
    assert [row[4:] for row in made.points()] == [(1234, q[1])] * 2
    before = made.bytes()
    assert made.learn([x[0], np.nan], 0.0) == "query"
    assert made.learn_raw([q[0], -32768], 5) == "query"
    for said, found in (made.predict([x[0], np.nan]), made.predict_raw([q[0], -32768])):
        assert said == "query"
        assert found["intervals"] == 0
    assert made.bytes() == before
    assert made.store.count == 2


def test_too_little_scratch_is_refused(device, tiny):
    made = device(most=4)
    points = fill(made, tiny, 2)
    before = made.bytes()
    made.opened.size -= 1
    made.opened.scratch = made.opened.scratch[: made.opened.size]
    assert made.learn_raw([1, 2], 3) == "scratch"
    assert made.learn([1, 2], 3) == "scratch"
    assert made.predict_raw([1, 2])[0] == "scratch"
    assert made.predict([1, 2])[0] == "scratch"
    assert made.bytes() == before
    assert made.points() == rows(points)


@pytest.mark.parametrize("filling", ["random", "zeros", "heads and garbage"])
def test_whatever_bytes_there_are_a_store_begins_there(device, tiny, filling):
    rng = np.random.default_rng(64)
    for program_size in SIZES:
        made = device(most=4, program_size=program_size)
        used = 2 * made.storage.block_size
        garbage = rng.integers(0, 256, used, np.uint8)
        if filling == "zeros":
            garbage[:] = 0
        kept = bytes(made.flash.cell)
        if filling == "heads and garbage":  # intact entries without a head do not count
            fill(made, tiny, 4)
            kept = bytes(made.flash.cell)
            garbage = np.frombuffer(kept, np.uint8)[:used].copy()
            for block in (0, made.storage.block_size):
                garbage[block : block + 2 * made.slot] = rng.integers(0, 256, 2 * made.slot)
        ctypes.memmove(made.flash.cell, garbage.tobytes() + kept[used:], len(kept))
        assert made.open() == "ok"
        assert (made.store.count, made.store.number, made.store.lost) == (0, 0, 0)
        assert_predicts_alone(made)
        assert made.bytes() == garbage.tobytes()  # opening only reads
        q, targets = some_points(tiny, 4)
        for query, target in zip(q, targets, strict=True):
            assert made.learn_raw(query, target) == "ok"
        assert made.open() == "ok"
        assert made.points() == rows(judge(tiny, q, targets))


def test_only_its_own_memory_and_blocks_are_touched(device, tiny):
    made = device(most=5, program_size=4)
    size = made.library.twin_store_size(
        ctypes.byref(made.opened.model), ctypes.byref(made.storage), 5
    )
    assert size == 6 * made.slot + 4 * 5
    fill(made, tiny, 5)
    assert made.forget(1, 2) == "ok"
    end = 2 * made.storage.block_size
    assert set(bytes(made.flash.cell)[end:]) == {255}


# ---- any sequence

changes = st.one_of(
    st.tuples(st.just("learn"), st.integers(-(2**30) + 1, 2**30 - 1)),
    st.tuples(st.just("learn"), st.integers(-1000, 1000)),
    st.tuples(st.just("forget"), st.integers(0, 12), st.integers(0, 12)),
    st.tuples(st.just("forget"), st.just(0), st.just(2**32 - 1)),
    st.tuples(st.just("reopen")),
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(changes, max_size=30),
    st.sampled_from(SIZES),
    st.integers(1, 6),
    st.integers(3, 6),
)
def test_any_changes_are_those_of_a_list(native, store_library, tiny, done, size, most, more):
    made = Device(
        native, store_library, write_pack(tiny), most=most, program_size=size, slots=most + more
    )
    journal = Journal(made)
    assert made.open() == "ok"
    for count, (name, *numbers) in enumerate(done):
        if name == "reopen":
            assert made.open() == "ok"
            journal.reopen()
        elif name == "forget":
            first, last = sorted(numbers)
            assert made.forget(first, last) == "ok"
            journal.forget(first, last)
        else:
            query, target = np.array([count * 999, -count], np.int16), numbers[0]
            said = made.learn_raw(query, target)
            assert said == ("full" if len(journal.points) == most else "ok")
            if said == "ok":
                journal.learn(*rows(judge(tiny, query[None], [target]))[0][1:])
        assert made.points() == journal.points
        assert (made.store.number, made.store.lost) == (journal.number, 0)
    journal.check()
    assert made.flash.changes == 0 or made.store.generation == journal.generation
    points = judge_again(made, tiny) if journal.points else judge(tiny, np.empty((0, 2)), [])
    assert_predicts(made, tiny, points, count=1)
    assert made.open() == "ok"
    assert made.points() == journal.points


# ---- the code


def test_it_is_small(native, tmp_path):
    source = native.FIRMWARE / "src" / "twin_store.c"
    assertion = tmp_path / "size.c"
    assertion.write_text(
        '#include "twin_store.h"\n'
        "typedef char store_is_small[sizeof(twin_store) <= 64 ? 1 : -1];\n"
        "typedef char storage_is_small[sizeof(twin_storage) <= 24 ? 1 : -1];\n"
    )
    needed = {}
    hard = ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
    for cpu, floats, most in (("cortex-m0", (), 2000), ("cortex-m4", hard, 1900)):
        output = tmp_path / f"{cpu}.o"
        options = (f"-mcpu={cpu}", "-mthumb", *floats, "-Os", "-c")
        native.compile_c(output, *options, compiler="arm-none-eabi-gcc", sources=[assertion])
        native.compile_c(output, *options, compiler="arm-none-eabi-gcc", sources=[source])
        text, data, bss = native.run("arm-none-eabi-size", output).splitlines()[1].split()[:3]
        assert int(text) < most
        assert (data, bss) == ("0", "0")
        said = native.run("arm-none-eabi-nm", "--undefined-only", output)
        needed[cpu] = {line.split()[-1] for line in said.splitlines()}
    # No division of 64 bits, and no float but what predictions have.
    ours = {name for name in needed["cortex-m4"] if name.startswith("twin")}
    assert needed["cortex-m4"] - ours <= {"memcpy"}
    helpers = {"__aeabi_lmul", "__aeabi_idiv", "__aeabi_uidiv", "__aeabi_uidivmod"}
    assert needed["cortex-m0"] - ours <= {"memcpy"} | helpers


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("knob", ["TWIN_STORE", "TWIN_INTERVALS"])
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
    assert re.findall("store|learn|adapt|heed|compact", found) == []


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


def test_the_example_of_the_header_compiles(native, tmp_path):
    header = (native.FIRMWARE / "include" / "twin_store.h").read_text()
    (code,) = re.findall(r"(?m)(?:^ \*     .*\n)+", header)
    source = tmp_path / "example.c"
    source.write_text(
        '#include "twin_store.h"\n'
        "extern twin_model model; extern const unsigned char pack[1000]; extern const float x[8];\n"
        "extern float y; extern twin_prediction out; extern uint32_t scratch[1024];\n"
        "extern const twin_storage storage;\n"
        "int measure(float *to); void do_without_it(void); void use(float low, float high);\n"
        "void example(void);\n"
        "void example(void) {\n" + re.sub(r"(?m)^ \* ?", "", code) + "}\n"
    )
    native.compile_c(tmp_path / "example.o", "-O2", "-c", sources=[source])
    assert re.findall(r"[;{)]\s*twin_\w+\(", re.sub(r"(?m)^ \*", "", code)) == []  # dropped


def test_every_status_of_it_has_a_text(native, store_library):
    store_library.twin_text.restype = ctypes.c_char_p
    texts = {store_library.twin_text(-native.STATUSES.index(name)) for name in native.MISTAKES[-5:]}
    assert len(texts) == 5
    assert all(texts)
