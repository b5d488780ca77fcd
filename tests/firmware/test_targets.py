"""Packs of several targets in C: one run predicts all of them, with the bits of the reference."""

import ctypes
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import joined, write_pack
from twinedge.pack.layout import Kind
from twinedge.pack.release import ANSWER, SelfTest
from twinedge.runtime import reference

VECTORS = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "vectors.py"))
STATUS, POINTER, WORD = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32
CALLS = ("twin_read_target", "twin_read_targets")
SIGNATURES = {
    **dict.fromkeys((CALLS[0], f"{CALLS[0]}_raw"), (STATUS, POINTER, ctypes.c_uint, POINTER)),
    **dict.fromkeys((CALLS[1], f"{CALLS[1]}_raw"), (STATUS, POINTER, POINTER, ctypes.c_uint)),
    "twin_select_target": (STATUS, POINTER, POINTER, ctypes.c_uint),
    **dict.fromkeys(
        ("twin_predict_targets", "twin_predict_targets_raw"),
        (STATUS, POINTER, POINTER, WORD, *(POINTER,) * 2, ctypes.c_uint),
    ),
    "twin_watch_begin": (STATUS, POINTER, POINTER, ctypes.c_uint16),
    "twin_watch_save": (None, POINTER, POINTER),
    "twin_watch_restore": (STATUS, POINTER, POINTER, POINTER),
    "twin_watch_add_prediction": (None, *(POINTER,) * 3),
    "twin_watch_add_target": (None, *(POINTER,) * 3, ctypes.c_float),
    "twin_self_test": (STATUS, POINTER, POINTER, POINTER, WORD),
}
TARGETS = (1, 2, 3, 8)


def compiled(native, folder, *options, sources):
    path = native.compile_c(folder / "lib.so", *native.SHARED, *options, "-shared", sources=sources)
    return native.load(path, SIGNATURES)


@pytest.fixture(scope="module")
def portable(native, tmp_path_factory):
    folder = tmp_path_factory.mktemp("portable")
    return compiled(native, folder, "-DTWIN_HOST=0", "-DTWIN_TARGETS=8", sources=native.PORTABLE)


@pytest.fixture(scope="module")
def single(native, objects, tmp_path_factory):
    return compiled(native, tmp_path_factory.mktemp("single"), sources=objects(*native.SHARED))


@pytest.fixture(scope="module")
def host(native, objects, tmp_path_factory):
    made = objects(*native.SHARED, host=True)
    return compiled(native, tmp_path_factory.mktemp("host"), sources=made)


def assert_same_bits(native, opened, pack, x):
    assert opened.status == "ok"
    singles, library = pack.singles, opened.library
    assert opened.model.targets == len(singles)
    expected = [reference.evaluate(one, x) for one in singles]
    for row, query in enumerate(x):
        estimates = np.zeros((len(singles), opened.model.members), np.int32)
        status, run = opened.begin("twin_begin", np.ascontiguousarray(query), estimates)
        assert status == "ok"
        assert opened.step(run, 65535) == 0
        for target, one in enumerate(singles):
            right, out, raw = expected[target], native.Prediction(), native.Raw()
            at = ctypes.byref(run), target
            assert library.twin_read_target(*at, ctypes.byref(out)) == 0
            assert library.twin_read_target_raw(*at, ctypes.byref(raw)) == 0
            assert estimates[target].tolist() == right.estimates[row].tolist()
            fields = {"mean": right.mean, "spread": right.spread}
            assert (raw.mean, raw.root) == (right.raw_mean[row], right.raw_spread[row])
            if one.intervals is not None:
                bounds = reference.bounds(one, right, one.intervals.usual_level)
                fields |= {name: getattr(bounds, name) for name in ("scale", "low", "high")}
                assert raw.scale == bounds.raw_scale[row]
            for name, column in fields.items():
                assert np.float32(getattr(out, name)).tobytes() == column[row].tobytes(), name


def random_packs(packs, seed, count):
    rng = np.random.default_rng([41, seed])
    for number in range(count):
        yield packs.random_pack(
            rng,
            features=int(rng.integers(1, 9)),
            hidden=tuple(int(one) for one in rng.integers(1, 20, rng.integers(1, 4))),
            counts=[9, 2],
            scaled=bool(number % 2),
            mapped=bool(number // 2 % 2),
            curved=bool(number // 4 % 2),
            outputs=TARGETS[number % 4] if number < 8 else int(rng.integers(1, 9)),
        )


@pytest.mark.parametrize("number", range(len(VECTORS["load_several"]())))
def test_golden_vectors(native, portable, number):
    case = VECTORS["load_several"]()[number]
    opened = native.Native(portable, case.pack)
    for row, query in enumerate(case.queries):
        status, run = opened.begin("twin_begin", np.ascontiguousarray(query))
        out = native.Prediction()
        assert status == "ok"
        opened.step(run, 65535)
        portable.twin_read_target(ctypes.byref(run), case.target, ctypes.byref(out))
        assert np.float32(out.mean).view(np.uint32) == case.mean[row]
        assert np.float32(out.spread).view(np.uint32) == case.spread[row]


def test_random_packs_with_the_portable_kernel(native, packs, cases, portable):
    for pack in random_packs(packs, 2, 12):
        opened = native.Native(portable, write_pack(pack))
        assert_same_bits(native, opened, pack, cases.queries(pack, 12))


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 3])
def test_random_packs_in_blocks(native, packs, cases, tmp_path, block):
    options = "-DTWIN_HOST=0", "-DTWIN_TARGETS=8", f"-DTWIN_BLOCK={block}"
    library = compiled(native, tmp_path, *options, sources=native.PORTABLE)
    for pack in random_packs(packs, block, 12):
        assert_same_bits(
            native, native.Native(library, write_pack(pack)), pack, cases.queries(pack, 12)
        )


def test_random_packs_with_every_kernel_of_this_machine(native, packs, cases, host):
    for pack in random_packs(packs, 3, 10):
        opened = native.Native(host, write_pack(pack))
        for name in opened.kernels():
            opened.set_kernel(name)
            assert_same_bits(native, opened, pack, cases.queries(pack, 12))
            if opened.prepare():
                assert_same_bits(native, opened, pack, cases.queries(pack, 12))


def test_a_model_of_one_target_predicts_it_alone(native, packs, cases, host):
    for pack in random_packs(packs, 4, 8):
        opened, x = native.Native(host, write_pack(pack)), cases.queries(pack, 12)
        for prepared in (False, True):
            if prepared and not opened.prepare():
                continue
            whole = opened.model
            for target, one in enumerate(pack.singles):
                opened.model = native.Model()
                status = host.twin_select_target(
                    ctypes.byref(opened.model), ctypes.byref(whole), target
                )
                assert (status, opened.model.targets) == (0, 1)
                opened.fit_scratch()
                found, right = opened.predict_all(x), reference.evaluate(one, x)
                np.testing.assert_array_equal(found["estimates"], right.estimates)
                assert found["mean"].tobytes() == right.mean.tobytes()
            opened.model = whole
            opened.fit_scratch()


@pytest.fixture
def opened(native, packs, portable):
    pack = next(one for one in random_packs(packs, 5, 2) if one.intervals is not None)
    made = native.Native(portable, write_pack(pack))
    made.contents = pack
    assert made.model.targets == 2
    return made


@pytest.mark.parametrize("kind", ["", "_raw"])
def test_arrays_hold_what_each_target_has(native, opened, portable, kind):
    """Read of a run, and predicted at once."""
    rng, Out = np.random.default_rng(9), native.Raw if kind else native.Prediction
    query = rng.integers(-3000, 3000, opened.model.features, dtype=np.int16)
    if not kind:
        query = rng.normal(size=opened.model.features).astype(np.float32)
    _, run = opened.begin(f"twin_begin{kind}", query)
    opened.step(run, 65535)
    each = (Out * 3)()
    for target in range(3):
        at = ctypes.byref(run), target, ctypes.byref(each[target])
        status = getattr(portable, f"twin_read_target{kind}")(*at)
        assert native.name_of(status) == ("ok" if target < 2 else "targets")
    out = (Out * 3)()
    assert getattr(portable, f"twin_read_targets{kind}")(ctypes.byref(run), out, 3) == 0
    assert bytes(out) == bytes(each)
    room = opened.scratch.ctypes.data, opened.size, query.ctypes.data
    for count, right in ((3, "ok"), (2, "ok"), (1, "targets")):
        out = (Out * 3)()
        call = getattr(portable, f"twin_predict_targets{kind}")
        status = call(ctypes.byref(opened.model), *room, out, count)
        assert native.name_of(status) == right
        if right == "ok":
            assert (
                bytes(out)[: ctypes.sizeof(Out) * count]
                == bytes(each)[: ctypes.sizeof(Out) * count]
            )


def test_misuse_is_refused(native, opened, portable):
    x = np.zeros(opened.model.features, np.float32)
    _, run = opened.begin("twin_begin", x)
    opened.step(run, 65535)
    out = (native.Prediction * 3)(*(native.Prediction(1.5, 2.5) for _ in range(3)))
    for target in (2, 7, 8, 255, 2**32 - 1):
        status = portable.twin_read_target(ctypes.byref(run), target, ctypes.byref(out))
        assert native.name_of(status) == "targets"
        assert np.isnan([out[0].mean, out[0].spread]).all()
    out[0].mean = 1.5
    too_few = portable.twin_read_targets(ctypes.byref(run), ctypes.byref(out), 1)
    assert native.name_of(too_few) == "targets"
    assert np.isnan(out[0].mean)
    assert out[1].mean == 1.5
    assert portable.twin_read_targets(ctypes.byref(run), ctypes.byref(out), 3) == 0
    assert np.isnan([one.mean for one in out]).tolist() == [False, False, True]
    one = native.Model()
    status = portable.twin_select_target(ctypes.byref(one), ctypes.byref(opened.model), 2)
    assert native.name_of(status) == "targets"
    assert not one.kernel
    closed = native.Model()
    status = portable.twin_select_target(ctypes.byref(one), ctypes.byref(closed), 0)
    assert native.name_of(status) == "model"
    never_begun = native.Run()
    ctypes.memset(ctypes.byref(never_begun), 0, ctypes.sizeof(never_begun))
    status = portable.twin_read_target(ctypes.byref(never_begun), 0, ctypes.byref(out))
    assert native.name_of(status) == "model"
    status = portable.twin_read_targets(ctypes.byref(never_begun), ctypes.byref(out), 1)
    assert native.name_of(status) == "model"
    quantiles = opened.model.quantile, *opened.model.quantiles
    assert opened.set_coverage(1000) == "level"
    assert (opened.model.quantile, *opened.model.quantiles) == quantiles


def test_a_watch_takes_one_target(native, opened, portable):
    watch, one = (ctypes.c_uint32 * 16)(), native.Model()
    level = min(opened.contents.intervals.quantiles)
    found = portable.twin_watch_begin(watch, ctypes.byref(opened.model), level)
    assert native.name_of(found) == "targets"
    assert portable.twin_select_target(ctypes.byref(one), ctypes.byref(opened.model), 1) == 0
    assert portable.twin_watch_begin(watch, ctypes.byref(one), level) == 0
    saved, x = (ctypes.c_uint8 * 72)(), np.zeros(opened.model.features, np.float32)
    portable.twin_watch_save(watch, saved)
    restored = portable.twin_watch_restore(watch, ctypes.byref(opened.model), saved)
    assert native.name_of(restored) == "targets"

    def read(target):
        _, run = opened.begin("twin_begin", x)
        opened.step(run, 65535)
        out = native.Prediction()
        assert portable.twin_read_target(ctypes.byref(run), target, ctypes.byref(out)) == 0
        return out

    given, before = read(1), bytes(watch)
    assert given.intervals == 1
    of_all = bytes(opened.model)
    for _ in range(9):  # far below the interval
        portable.twin_watch_add_prediction(watch, ctypes.byref(opened.model), ctypes.byref(given))
        portable.twin_watch_add_target(
            watch, ctypes.byref(opened.model), ctypes.byref(given), given.low - 1e6
        )
    assert (bytes(watch), bytes(opened.model)) == (before, of_all)
    quantile = one.quantile
    for _ in range(9):
        portable.twin_watch_add_target(
            watch, ctypes.byref(one), ctypes.byref(given), given.low - 1e6
        )
    assert bytes(watch) != before
    assert one.quantile > quantile
    assert bytes(read(1)) == bytes(given)  # of all targets, as calibrated


def answered(pack, wrong=None):
    q = np.random.default_rng(1).integers(-32767, 32768, (3, pack.features)).astype(np.int16)
    answers = np.zeros((3, len(pack.singles)), ANSWER)
    for target, one in enumerate(pack.singles):
        found = reference.evaluate_raw(one, q)
        answers["mean"][:, target] = found.raw_mean
        answers["root"][:, target] = found.raw_spread
        if found.signals is not None:
            members = found.estimates.shape[1]
            scale = reference.raw_scale(found.signals, one.intervals, members)
            answers["scale"][:, target] = scale
    if wrong is not None:
        answers["root"][2, wrong] ^= 1
    return SelfTest(q, answers)


@pytest.mark.parametrize("wrong", [None, 0, 1])
def test_the_self_test_is_of_all_targets(native, opened, portable, releases, wrong):
    data = releases.released(opened.contents, test=answered(opened.contents, wrong))
    made = native.Native(portable, data)
    where = made.pack.ctypes.data, native.address(made.scratch), made.size
    status = portable.twin_self_test(ctypes.byref(made.model), *where)
    assert native.name_of(status) == ("ok" if wrong is None else "self_test")
    one = native.Model()
    portable.twin_select_target(ctypes.byref(one), ctypes.byref(made.model), 0)
    assert native.name_of(portable.twin_self_test(ctypes.byref(one), *where)) == "targets"


def test_more_targets_than_the_build_takes_are_unsupported(native, packs, single, tmp_path):
    three = compiled(native, tmp_path, "-DTWIN_HOST=0", "-DTWIN_TARGETS=3", sources=native.PORTABLE)
    for pack in random_packs(packs, 6, 8):
        count, data = len(pack.every_target), write_pack(pack)
        for library, most in ((single, 1), (three, 3)):
            status = native.Native(library, data).status
            assert status == ("ok" if count <= most else "unsupported")


def test_faults_of_the_curves_of_targets_are_refused_alike(
    native, packs, faults, portable, expected
):
    """The first of two targets has no curve: its part of the section has eight bytes."""
    pack = packs.random_pack(np.random.default_rng(8), outputs=2, curved=True)
    first, second = pack.singles
    pack = joined([replace(first, target_curve=None), second])
    data = write_pack(pack)

    def status(damaged):
        damaged = packs.repair(damaged)
        found = native.Native(portable, damaged).status
        assert found == expected(damaged)
        return found

    kind, length = Kind.TARGET_CURVE, faults.entry_of(data, Kind.TARGET_CURVE) + 8
    assert status(data) == "ok"
    assert status(faults.inside(data, kind, "i", 0, 1)) == "value"  # of the first
    assert status(faults.inside(data, kind, "B", 4, 1)) == "value"
    assert status(faults.inside(data, kind, "B", 5, 1)) == "padding"
    for bins in (1, 4097, 65535):
        assert status(faults.inside(data, kind, "H", 6, bins)) == "section"
        assert status(faults.inside(data, kind, "H", 8 + 6, bins)) == "section"
    for less in (0, 4, 8, 12, 16):
        assert status(faults.put(data, "I", length, less)) == "section"


def test_faults_are_refused_alike(native, packs, faults, portable, expected):
    rng, seen = np.random.default_rng(7), set()
    for pack in random_packs(packs, 7, 12):
        data = write_pack(pack)
        if len(data) > 6000:
            continue
        for _ in range(60):
            damaged = packs.repair(faults.mutate(rng, data))
            status = native.Native(portable, damaged).status
            assert status == expected(damaged)
            seen.add(status)
    assert seen >= {"ok", "section", "padding", "value"}
