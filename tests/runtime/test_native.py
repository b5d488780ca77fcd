"""The C runtime in Python: the bits of the reference, for any input, and no harm from misuse."""

import gc
import runpy
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.errors import InputError, MissingPackageError
from twinedge.pack import PackError, Reason, read_header, read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import native, reference
from twinedge.runtime.native import Native

TESTS = Path(__file__).parents[1]
CASES = runpy.run_path(str(TESTS / "firmware" / "cases.py"))
GOLDEN = runpy.run_path(str(TESTS / "golden" / "vectors.py"))
VECTORS = {case.name: case for case in GOLDEN["load"]()}
SEVERAL = GOLDEN["load_several"]()


@pytest.fixture(scope="module")
def packs():
    return runpy.run_path(str(TESTS / "pack" / "random_packs.py"))


@pytest.fixture
def small(random_pack):
    """A pack with 3 features, and the bytes of its file."""
    pack = random_pack(
        np.random.default_rng(41),
        features=3,
        hidden=(12, 9),
        activation="relu",
        counts=[5, 6],
        neighbors=0,
        weights="normal",
        scaled=False,
    )
    data = write_pack(pack)
    return read_pack(data), data


@pytest.fixture
def calibrated(packs, small):
    """The same with intervals and a fill value for every feature."""
    pack = packs["with_intervals"](np.random.default_rng(41), small[0])
    fill = np.array([0, -5, 30000], np.int16)
    pack = replace(pack, domain=replace(pack.domain, fill=fill))
    data = write_pack(pack)
    return read_pack(data), data


@pytest.fixture
def device(small, tmp_path):
    path = tmp_path / "model.twin"
    path.write_bytes(small[1])
    return native.open_native(path)


def queries(pack, count, seed=0):
    return CASES["queries"](pack, count, seed)


def evaluate(opened, pack, x):
    """What the reference returns, from the C runtime, which has no signals."""
    estimates = opened.estimates(x)
    raw = np.empty((2, len(x)), np.int32)
    opened.answer(reference.quantise(pack, x), raw, np.empty_like(estimates), -1)
    mean, root = raw
    floats = opened.predict_with_spread(x)
    return reference.Evaluation(*floats, mean, root.view(np.uint32), estimates)


def assert_same(found, expected):
    expected = expected._replace(signals=None)
    for name, one, other in zip(expected._fields, found, expected, strict=True):
        if other is None:
            assert one is None, name
            continue
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32), err_msg=name)


def test_the_c_runtime_was_compiled():
    # There is a compiler here; everything below tests what it built.
    assert native._native is not None, "pip install -e . did not compile twinedge.runtime._native"


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", CASES["SHAPES"])
def test_all_kinds_of_packs(packs, name, scaled):
    class Packs:
        random_pack = staticmethod(packs["random_pack"])

    pack = CASES["draw"](Packs, name, scaled)
    opened = Native(write_pack(pack), pack)
    x = queries(pack, 100)
    expected = reference.evaluate(pack, x)
    assert_same(evaluate(opened, pack, x), expected)
    mean, spread = opened.predict_with_spread(x)
    np.testing.assert_array_equal(mean.view(np.uint32), expected.mean.view(np.uint32))
    np.testing.assert_array_equal(spread.view(np.uint32), expected.spread.view(np.uint32))
    if scaled:
        assert_same_bounds(opened, pack, x, expected)


def assert_same_bounds(opened, pack, x, expected):
    """Scale, ends and flags, of all levels in one call and of one, as floats and as integers."""
    levels = list(pack.intervals.quantiles)
    bounds = [reference.bounds(pack, expected, level) for level in levels]
    missing = np.isnan(x)
    q = reference.quantise(pack, x)
    outside = reference.outside(pack, q) & ~missing
    flags = np.stack([reference.mask(outside), reference.mask(missing)])
    raw_ends = [end for one in bounds for end in (one.raw_low, one.raw_high)]
    ends = [end for one in bounds for end in (one.low, one.high)]
    whole = [expected.mean, expected.spread, bounds[0].scale, *ends]
    raw = [expected.raw_mean, expected.raw_spread, bounds[0].raw_scale, *raw_ends]
    found = opened.predict_with_bounds(x, levels)
    np.testing.assert_array_equal(found.view(np.uint32), [one.view(np.uint32) for one in whole])
    for level, one in zip(levels, bounds, strict=True):
        *_, low, high = opened.predict_with_bounds(x[:50], [level])
        np.testing.assert_array_equal(low.view(np.uint32), one.low[:50].view(np.uint32))
        np.testing.assert_array_equal(high.view(np.uint32), one.high[:50].view(np.uint32))
    some = np.where(missing, np.int16(NO_FILL), q)
    thousandths = np.array(levels, np.uint16)
    for given, right in ((x, whole), (some, raw)):
        out, masks = np.zeros((len(right), len(x)), np.int32), np.zeros((2, len(x)), np.uint32)
        opened.answer(np.ascontiguousarray(given), out, None, -1, thousandths, masks)
        np.testing.assert_array_equal(masks, flags)
        np.testing.assert_array_equal(out.view(np.uint32), [one.view(np.uint32) for one in right])


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))]
)
def test_bounds_of_random_packs(packs, seed):
    rng = np.random.default_rng([22, seed])
    for number in range(10):
        pack = packs["random_pack"](rng, scaled=True)
        x = queries(pack, 25, number)
        expected = reference.evaluate(pack, x)
        for kernel in Native(write_pack(pack), pack).kernels:
            opened = Native(write_pack(pack), pack, kernel)
            assert_same_bounds(opened, pack, x, expected)
            for row in (0, 11, 24):
                one = x[row : row + 1]
                assert_same_bounds(opened, pack, one, reference.evaluate(pack, one))


@pytest.mark.parametrize("case", VECTORS.values(), ids=VECTORS)
def test_every_kernel_gives_the_golden_bits(case):
    pack = read_pack(case.pack)
    names = Native(case.pack, pack).kernels
    assert names[-1] == "portable"
    for kernel in names:
        opened = Native(case.pack, pack, kernel)
        assert opened.kernel == kernel
        found = evaluate(opened, pack, case.queries)
        np.testing.assert_array_equal(found.mean.view(np.uint32), case.mean)
        np.testing.assert_array_equal(found.spread.view(np.uint32), case.spread)
        np.testing.assert_array_equal(found.raw_mean, case.raw_mean)
        np.testing.assert_array_equal(found.raw_spread, case.raw_spread)
        assert GOLDEN["digest"](found.estimates) == case.members_sha256
        if case.bounds is not None:
            level, *right = case.bounds
            bounds = opened.predict_with_bounds(case.queries, [level])[2:]
            np.testing.assert_array_equal(bounds.view(np.uint32), right[:3])


@pytest.mark.parametrize("case", SEVERAL, ids=[f"{one.name} {one.target}" for one in SEVERAL])
def test_every_kernel_gives_the_golden_bits_of_each_target(case):
    pack = read_pack(case.pack)
    for kernel in Native(case.pack, pack).kernels:
        opened = Native(case.pack, pack, kernel)
        mean, spread = opened.predict_with_spread(case.queries)[..., case.target].view(np.uint32)
        np.testing.assert_array_equal(mean, case.mean)
        np.testing.assert_array_equal(spread, case.spread)
        estimates = np.ascontiguousarray(opened.estimates(case.queries)[..., case.target])
        assert GOLDEN["digest"](estimates) == case.members_sha256
        if case.bounds is not None:
            level, *right = case.bounds
            bounds = opened.predict_with_bounds(case.queries, [level])[2:, :, case.target]
            for found, words in zip(bounds, right, strict=False):
                np.testing.assert_array_equal(found.view(np.uint32), words)


@pytest.mark.parametrize("kinds", [("mapped",), ("curved",), ("mapped", "curved")], ids="-".join)
def test_maps_and_target_curves_of_random_packs(packs, kinds):
    rng = np.random.default_rng([23, len(kinds)])
    for number in range(12):
        scaled = bool(number % 2)
        pack = packs["random_pack"](rng, scaled=scaled, **dict.fromkeys(kinds, True))
        data, x = write_pack(pack), queries(pack, 25, number)
        expected = reference.evaluate(pack, x)
        for kernel in Native(data, pack).kernels:
            opened = Native(data, pack, kernel)
            assert_same(evaluate(opened, pack, x), expected)
            if scaled:
                assert_same_bounds(opened, pack, x, expected)


def test_damaged_curves_are_refused_as_by_the_reader(packs):
    mutate = runpy.run_path(str(TESTS / "pack" / "faults.py"))["mutate"]
    rng, seen = np.random.default_rng(24), set()
    shape = {"features": 2, "hidden": (3,), "counts": [2, 1], "mapped": True, "curved": True}
    for number in range(1500):
        if number % 50 == 0:
            data = write_pack(packs["random_pack"](rng, **shape), metadata=False)
            sections = read_header(data).sections[1:3]
        damaged = mutate(rng, data) if number % 3 == 0 else bytearray(data)
        one = sections[number % 2]
        damaged[min(one.offset + rng.integers(min(one.length, 40)), len(damaged) - 1)] = rng.choice(
            [0, 1, 24, 25, 127, 128, 255]
        )
        damaged = packs["repair"](damaged)
        try:
            pack, reason = read_pack(damaged), None
        except PackError as error:
            pack, reason = None, error.reason
        seen.add(reason)
        if pack is None:
            with pytest.raises(PackError) as caught:
                Native(damaged, pack)
            assert caught.value.reason is reason
        elif number % 5 == 0:
            x = queries(pack, 12, number)
            assert_same(evaluate(Native(damaged, pack), pack, x), reference.evaluate(pack, x))
    assert seen >= {None, Reason.SECTION, Reason.PADDING, Reason.VALUE}


def test_the_fastest_kernel_is_taken(small):
    pack, data = small
    assert Native(data, pack).kernel == Native(data, pack).kernels[0]
    with pytest.raises(InputError, match="no kernel 'mmx' for this pack on this processor"):
        Native(data, pack, "mmx")


@pytest.mark.parametrize("row", [0, 256, 700])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_what_is_not_a_number_is_refused(small, device, row, kind):
    pack, _ = small
    x = np.zeros((701, pack.features), kind)
    x[row, 1] = np.nan
    for bad in (x, x[row : row + 1]):
        with pytest.raises(InputError, match="a query has a feature that is not a number: x1"):
            device.predict(bad)
    x[row, 1] = 0
    assert np.isfinite(device.predict(x)).all()


def test_the_pack_stays_as_long_as_the_model(small):
    pack, data = small
    data = bytearray(data)
    opened = Native(data, pack)
    with pytest.raises(BufferError):  # it is used in place
        data.append(0)
    before = evaluate(opened, pack, queries(pack, 20))
    del opened
    gc.collect()
    data.append(0)
    del data[-1]
    opened = Native(bytes(data), pack)
    del data
    gc.collect()
    assert_same(evaluate(opened, pack, queries(pack, 20)), before)


def test_nothing_is_leaked(small):
    pack, data = small
    x, bad = queries(pack, 20), np.full((2, 3), np.nan)
    held = sys.getrefcount(data)
    for _ in range(50):
        opened = Native(data, pack)
        opened.predict_with_spread(x)
        with pytest.raises(InputError):
            opened.predict_with_spread(bad)
        with pytest.raises(InputError):
            Native(data, pack, "none")
        with pytest.raises(PackError):
            Native(data[:-1], pack)
    del opened
    gc.collect()
    assert sys.getrefcount(data) == held


def test_a_file_that_is_refused_is_named(small, tmp_path):
    path = tmp_path / "cut.twin"
    path.write_bytes(small[1][:-16])
    with pytest.raises(PackError, match=r"cut\.twin: "):
        native.open_native(path)


def test_buffers_that_do_not_fit_are_refused(small):
    _, data = small
    model = native._native.Model(data)
    x, out, estimates = np.zeros((4, 3)), np.zeros(4, np.float32), np.zeros((4, 11), np.int32)
    assert model.predict(x, out, estimates, -1) == 4
    read_only = np.zeros(4, np.float32)
    read_only.flags.writeable = False
    for arguments in (
        (x[:3], out, None, -1),
        (x, out[:3], None, -1),
        (x, out.astype(np.float64), None, -1),
        (x, out, estimates[:, 1:].copy(), -1),
        (x, out, estimates, 2),
        (x.ravel()[:-1], out, None, -1),
        (x.astype(np.int8), out, None, -1),
        (x[:, :0], out, None, -1),
        (x.T, out, None, -1),
        (x, read_only, None, -1),
        (x, out, read_only, -1),
    ):
        with pytest.raises((ValueError, BufferError)):
            model.predict(*arguments)
    nothing = np.zeros(4, "V0")  # items of no bytes
    for arguments in ((nothing, out, None), (out, nothing, None), (x, out, nothing)):
        with pytest.raises((ValueError, BufferError)):
            model.predict(*arguments, -1)
    for arguments in ((x, out), (x, out, None, "1"), (1, out, None, -1), (x, None, None, -1)):
        with pytest.raises(TypeError):
            model.predict(*arguments)
    for arguments in ((), (1,), (data, 1), (data, None, None)):
        with pytest.raises(TypeError):
            native._native.Model(*arguments)


def test_levels_and_flags_that_do_not_fit_are_refused(calibrated, small):
    pack, data = calibrated
    model = native._native.Model(data)
    first, *others = pack.intervals.quantiles
    levels = np.array([first, *others[:1]], np.uint16)
    x, out, flags = np.zeros((4, 3)), np.zeros((7, 4), np.float32), np.zeros((2, 4), np.uint32)
    assert len(levels) == 2
    assert model.predict(x, out, None, -1, levels, flags) == 4
    assert model.predict(x, out[:5], None, -1, levels[:1], None) == 4
    assert model.predict(x, out[:3], None, -1, levels[:0], None) == 4
    assert model.predict(x[:0], out[:, :0], None, -1, levels, flags[:, :0]) == 0
    for columns in (1, 2, 3):
        assert model.predict(x, out[:columns], None, -1, None, flags) == 4
    unknown = next(level for level in range(1, 1000) if level not in pack.intervals.quantiles)
    for arguments in (
        (out, levels[:1], None),
        (out[:5], levels, None),
        (out[:2], levels[:1], None),
        (out[:4], None, None),
        (out[:0], None, None),
        (out, levels.astype(np.uint32), None),
        (out, levels.tobytes(), None),
        (out, np.array([first, unknown], np.uint16), None),
        (out[:5], np.array([0], np.uint16), None),
        (out[:5], np.array([65535], np.uint16), None),
        (out[:1], None, flags[:1]),
        (out[:1], None, flags.astype(np.uint64)),
        (out[:1], None, flags[:, :2].copy()),
        (out[:1], None, flags.tobytes()),
        (out, unaligned(levels), flags),
        (out, levels, unaligned(flags)),
    ):
        with pytest.raises((ValueError, BufferError)):
            model.predict(x, arguments[0], None, -1, *arguments[1:])
    for arguments in ((levels,), (levels, flags, None), (1, flags), (levels, 1)):
        with pytest.raises(TypeError):
            model.predict(x, out, None, -1, *arguments)
    plain = native._native.Model(small[1])
    assert plain.predict(x, out[:2], None, -1, None, flags) == 4
    assert not flags.any()
    for count, some in ((3, None), (5, levels[:1])):
        with pytest.raises(ValueError, match="no intervals of that coverage"):
            plain.predict(x, out[:count], None, -1, some, None)


def test_a_level_lasts_for_one_call(calibrated):
    pack, data = calibrated
    opened = Native(data, pack)
    x = queries(pack, 20)
    levels = list(pack.intervals.quantiles)
    each = {level: opened.predict_with_bounds(x, [level]) for level in levels}
    for level in reversed(levels):
        np.testing.assert_array_equal(opened.predict_with_bounds(x, [level]), each[level])
        np.testing.assert_array_equal(opened.predict_with_spread(x), each[level][:2])


def test_a_missing_feature_is_refused_where_nothing_stands_for_it(calibrated, small):
    pack, data = calibrated
    x = np.full((3, 3), np.nan, np.float32)
    expected = reference.evaluate(pack, x)
    assert_same(evaluate(Native(data, pack), pack, x), expected)
    raw, out = np.full((3, 3), NO_FILL, np.int16), np.empty(3, np.int32)
    Native(data, pack).answer(raw, out, None, -1)
    np.testing.assert_array_equal(out, expected.raw_mean)
    with pytest.raises(InputError, match="not a number: x0"):
        Native(small[1], small[0]).predict_with_spread(x)
    with pytest.raises(InputError, match="not a number"):
        Native(small[1], small[0]).answer(raw, out, None, -1)


def unaligned(array):
    """Return a copy at an odd address."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    copy = memory[1:].view(array.dtype).reshape(array.shape)
    copy[:] = array
    assert copy.ctypes.data % 2
    assert copy.flags.c_contiguous
    return copy


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_at_odd_addresses(small, device, kind):
    pack, data = small
    x = queries(pack, 20).astype(kind)
    expected = reference.evaluate(pack, x)
    np.testing.assert_array_equal(device.predict(unaligned(x)), expected.mean)
    opened = Native(data, pack)
    assert_same(evaluate(opened, pack, unaligned(x)), expected)
    out, estimates = np.zeros(20, np.float32), np.zeros((20, pack.members), np.int32)
    for arguments in (
        (unaligned(x), out, None),
        (x, unaligned(out), None),
        (x, out, unaligned(estimates)),
    ):
        with pytest.raises(ValueError, match="items"):
            opened.model.predict(*arguments, -1)


def test_threads_share_a_model(small, device):
    pack, _ = small
    x = queries(pack, 400)
    expected = reference.evaluate(pack, x)
    wrong = []

    def predict():
        for _ in range(10):
            if not np.array_equal(device.predict(x), expected.mean):
                wrong.append("batch")
            alone = [device.predict(x[row : row + 1])[0] for row in range(0, 400, 40)]
            if alone != expected.mean[::40].tolist():
                wrong.append("alone")

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.fixture(scope="module")
def slow(packs):
    """A slow model, and queries for half a second or more."""
    pack = packs["random_pack"](
        np.random.default_rng(42), features=2, hidden=(256, 256), counts=[256], neighbors=0
    )
    opened = Native(write_pack(pack), pack, "portable")
    x = np.zeros((1000, 2), np.float32)
    start = time.perf_counter()
    opened.predict_with_spread(x[:2])
    repeats = int(0.7 / (time.perf_counter() - start)) + 1
    return opened, np.zeros((2 * repeats, 2), np.float32)


@pytest.fixture(scope="module")
def long():
    """One query of a model that takes long."""
    from twinedge.budget import Model
    from twinedge_export.boards.reference_packs import random_pack

    pack = random_pack(Model.of(2, (1024, 1024), 400))
    return Native(write_pack(pack), pack, "portable"), np.zeros((1, 2), np.float32)


@pytest.mark.parametrize("what", ["slow", "long"], ids=["a batch", "one long query"])
def test_others_run_meanwhile(request, what):
    opened, x = request.getfixturevalue(what)
    work = threading.Thread(target=opened.predict_with_spread, args=(x,))
    work.start()
    steps = 0
    while work.is_alive():
        time.sleep(0.001)
        steps += 1
    assert steps > 20


@pytest.mark.parametrize("what", ["slow", "long"], ids=["a batch", "one long query"])
def test_it_can_be_interrupted(request, what):
    opened, x = request.getfixturevalue(what)
    start = time.perf_counter()
    opened.predict_with_spread(x)
    whole = time.perf_counter() - start
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, whole / 10)
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            opened.predict_with_spread(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.perf_counter() - start < whole  # before all is done


def test_without_the_c_runtime_it_says_what_to_do(small, device, monkeypatch):
    pack, data = small
    monkeypatch.setattr(native, "_native", None)
    with pytest.raises(MissingPackageError, match="has no compiled C runtime"):
        Native(data, pack)
    with pytest.raises(MissingPackageError):
        native.open_native(Path(device.info["file"]))


def test_threads_share_a_batch(calibrated, tmp_path):
    pack, data = calibrated
    path = tmp_path / "model.twin"
    path.write_bytes(data)
    one, several = native.open_native(path), native.open_native(path, threads=3)
    for count in (0, 1, 127, 128, 500, 1001):
        x = queries(pack, 1001)[:count]
        np.testing.assert_array_equal(several.predict(x), one.predict(x))
        np.testing.assert_array_equal(
            several.predict(x, return_std=True), one.predict(x, return_std=True)
        )
        np.testing.assert_array_equal(several.estimates(x), one.estimates(x))
        for found, right in zip(several.predict_all(x), one.predict_all(x), strict=True):
            np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("row", [0, 499])
def test_a_query_that_one_of_the_threads_refuses_is_named(small, tmp_path, row):
    pack, data = small
    path = tmp_path / "model.twin"
    path.write_bytes(data)
    several = native.open_native(path, threads=4)
    x = queries(pack, 500)
    x[row, 1] = np.nan
    with pytest.raises(InputError, match="not a number"):
        several.predict(x)
