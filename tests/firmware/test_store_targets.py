"""A store of several targets in C: each is predicted from the points that have it, as in Python."""

import ctypes
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import joined
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.evaluator import reference_of
from twinedge.runtime.store import UNSCORED, Points, Store, scored, stamp_of

STORE = runpy.run_path(str(Path(__file__).parent / "test_store.py"))


@pytest.fixture(scope="module")
def several(native, flash, stores, tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "libtwin.so"
    options = (*native.SHARED, "-DTWIN_HOST=0", "-DTWIN_TARGETS=8", "-shared")
    native.compile_c(path, *options, sources=[*native.PORTABLE, *flash.SOURCES])
    select = (stores.STATUS, stores.POINTER, stores.POINTER, ctypes.c_uint)
    return native.load(
        *(path, flash.SIGNATURES, stores.SIGNATURES, stores.OF_TARGETS),
        {"twin_select_target": select},
    )


@pytest.fixture
def device(native, flash, stores, several):
    """Make a device: ``device(pack, most=3)``."""
    return lambda pack, **given: stores.Device(native, flash, several, pack, **given)


def draw_pack(packs, seed, targets, **given):
    return packs.random_pack(
        np.random.default_rng([63, seed]), scaled=True, outputs=targets, **given
    )


def points_of(pack, x, y, times=0):
    """Points that this pack has scored, numbered from 0."""
    points = Points.unscored(x, y, np.zeros(len(x)) + times)
    points = replace(points, numbers=np.arange(len(x), dtype=np.uint32))
    return scored(pack, reference_of(pack).raw, points)


def draw_points(pack, x, rng):
    """Targets of points, some of them not measured, and some that are none."""
    y = np.stack([STORE["draw_targets"](one, x, rng) for one in pack.singles], axis=1)
    return np.where(rng.random(y.shape) < 0.25, np.float32(np.nan), y)


def calm_points(pack, count, seed):
    """Points of targets that all can be used, but for some that were not measured."""
    x = STORE["queries"](pack, count, seed)
    each = [STORE["some_points"](one, count, seed)[1] for one in pack.singles]
    y = np.stack(each, axis=1)
    rng = np.random.default_rng([64, seed])
    y[np.arange(count), rng.integers(0, y.shape[1], count)] = np.nan
    return x, y


def status_of(points):
    """What learning each of these points returns."""
    usable = points.scores != UNSCORED
    wrong = ~usable & ~np.isnan(points.y)
    return np.where(usable.any(axis=1) & ~wrong.any(axis=1), "ok", "target")


def words_of(points):
    """Points as they lie in RAM."""
    records = points.to_records().view(np.uint32)[:, : 1 + 3 * points.targets]
    return np.concatenate([points.numbers[:, None], records], axis=1)


def assert_predicts(device, points, x):
    """Whether predictions of all targets are those with these points, bit for bit."""
    pack, targets = device.pack, len(device.pack.every_target)
    level = next(iter(pack.intervals.quantiles))
    assert device.opened.set_coverage(level) == "ok"
    q = np.where(np.isnan(x), np.int16(NO_FILL), reference.quantise(pack, x))
    expected = [
        STORE["expect"](one, level, points.single(target), x)
        for target, one in enumerate(pack.singles)
    ]
    for row in range(len(x)):
        for kind, query in enumerate((q[row], x[row])):
            status, found = device.predict_targets(query, targets)
            assert status == "ok"
            first = (device.predict_raw, device.predict)[kind](query)
            assert repr(first) == repr(("ok", found[0]))
            for target, one in enumerate(found):
                for name, column in expected[target][kind].items():
                    bits = np.array(one[name], column.dtype).tobytes()
                    assert bits == column[row].tobytes(), (target, name, one[name], column[row])


@pytest.mark.parametrize("targets", [1, 2, 3, 8])
@pytest.mark.parametrize("number", range(4))
def test_points_and_predictions_have_the_bits_of_python(
    device, flash, cases, packs, tmp_path, targets, number
):
    rng, count = np.random.default_rng([65, targets, number]), (1, 5, 30, 12)[number]
    curves = {"mapped": number % 2, "curved": number // 2}
    pack = draw_pack(packs, number, targets, **curves)
    made = device(pack, most=count, program_size=flash.PROGRAM_SIZES[number])
    x = cases.queries(pack, count + 4 * len(cases.EXTREMES), number)
    rng.shuffle(x)
    y = draw_points(pack, x[:count], rng).reshape(count, -1)
    all_points = points_of(pack, x[:count], y if targets > 1 else y[:, 0], np.arange(count))
    if targets == 1:
        statuses = np.where(all_points.scores != UNSCORED, "ok", "target")
    else:
        statuses = status_of(all_points)
    assert made.open() == "ok"
    for row, status in enumerate(statuses):
        if rng.random() < 0.1:
            assert made.open() == "ok"
        assert made.learn_targets(x[row], y[row], row) == status
    learnt = all_points[statuses == "ok"]
    points = replace(learnt, numbers=np.arange(len(learnt), dtype=np.uint32))
    for _ in range(2):  # again after reopening
        np.testing.assert_array_equal(made.words(), words_of(points))
        assert_predicts(made, points, x[count : count + 3])
        assert made.open() == "ok"
    assert made.stored().to_records().tobytes() == points.to_records().tobytes()
    if len(points):
        file = tmp_path / "dump.bin"
        file.write_bytes(made.memory.content())
        in_python = Store(file, pack, stamp_of(made.data), reference_of(pack).raw)
        assert in_python.points.to_records().tobytes() == points.to_records().tobytes()


def test_points_move_a_target_only_if_they_have_it(device, packs):
    pack = draw_pack(packs, 1, 3, neighbors=0)
    made, (x, y) = device(pack, most=8), calm_points(pack, 8, 3)
    assert made.open() == "ok"
    y[:, 1] = np.nan
    for one, targets in zip(x, y, strict=True):
        expected = "ok" if not np.isnan(targets).all() else "target"
        assert made.learn_targets(one, targets) == expected
    _, found = made.predict_targets(x[0], 3)
    assert [one["points"] > 0 for one in found] == [True, False, True]


def test_another_pack_scores_all_targets_again_and_old_points_give_way(device, packs, tmp_path):
    pack = replace(draw_pack(packs, 2, 2), schema=77)
    made, (x, y) = device(pack, most=6), calm_points(pack, 6, 1)
    assert made.open() == "ok"
    for one, targets in zip(x, y, strict=True):
        assert made.learn_targets(one, targets, 5) == "ok"
    twins = tuple(replace(one, output=one.output[::-1].copy()) for one in pack.twins)
    newer = replace(pack, twins=twins, y_offset=pack.y_offset + pack.y_gain * 1000)
    made.update(newer)
    assert made.open() == "ok"
    points = points_of(newer, x, y, 5)
    np.testing.assert_array_equal(made.words(), words_of(points))
    file = tmp_path / "dump.bin"
    file.write_bytes(made.memory.content())
    in_python = Store(file, newer, stamp_of(made.data), reference_of(newer).raw)
    assert in_python.points.to_records().tobytes() == points.to_records().tobytes()
    assert made.open(4) == "full"
    np.testing.assert_array_equal(made.words(), words_of(points[2:]))
    assert_predicts(made, points[2:], x[:2])
    assert made.keep_latest(2) == "ok"
    np.testing.assert_array_equal(made.words(), words_of(points[4:]))
    assert made.stored().to_records().tobytes() == points[4:].to_records().tobytes()
    assert made.learn_targets(x[0], y[0]) == "ok"
    assert made.open(4) == "ok"
    assert made.words()[:, 0].tolist() == [4, 5, 6]
    assert made.forget(5, 5) == "ok"
    assert made.words()[:, 0].tolist() == [4, 6]


def test_a_target_that_a_pack_cannot_take_stays_in_the_journal(device, packs):
    pack = replace(draw_pack(packs, 2, 2, curved=False), schema=77)
    made, (x, y) = device(pack, most=4), calm_points(pack, 2, 1)
    y[:] = [one.y_offset for one in pack.singles]
    y[0, 1] += 2**29 * float(pack.singles[1].y_gain)
    assert made.open() == "ok"
    for one, targets in zip(x, y, strict=True):
        assert made.learn_targets(one, targets) == "ok"
    first, second = pack.singles
    narrow = joined([first, replace(second, y_gain=second.y_gain / 4)])
    points = points_of(narrow, x, y)
    assert (points.scores == UNSCORED).tolist() == [[False, True], [False, False]]
    made.update(narrow)
    for _ in range(2):
        assert made.open() == "ok"
        np.testing.assert_array_equal(made.words(), words_of(points))
        assert_predicts(made, points, x)
        assert made.forget(9, 9) == "ok"  # none, but all have the scores of this pack now
    made.update(pack)
    assert made.open() == "ok"
    np.testing.assert_array_equal(made.words(), words_of(points_of(pack, x, y)))


def test_a_failure_of_the_storage_takes_back_nothing(device, flash, packs):
    """Let each call of the storage fail once, while a point is learnt."""
    pack, seen = draw_pack(packs, 3, 2), set()
    x, y = calm_points(pack, 5, 2)
    points = points_of(pack, x, y)
    for slots in (8, 12):
        for call in range(100):
            made = device(pack, most=5, slots=slots)
            assert made.open() == "ok"
            for one, targets in zip(x[:4], y[:4], strict=True):
                assert made.learn_targets(one, targets) == "ok"
            assert made.open() == "ok"
            made.memory.error = made.memory.calls + call
            status = made.learn_targets(x[4], y[4])
            if made.memory.calls <= made.memory.error:
                break  # it needs no more calls than that
            seen.add(status)
            learnt = points if status == "ok" else points[:4]
            np.testing.assert_array_equal(made.words(), words_of(learnt))
            if status != "ok":
                assert made.learn_targets(x[4], y[4]) == "ok"
            made.memory.error = flash.NEVER
            assert made.open() == "ok"
            np.testing.assert_array_equal(made.words(), words_of(points))
    assert seen == {"ok", "storage"}


def test_a_power_cut_leaves_the_points_of_before_or_of_after(device, flash, packs):
    """Cut the power at each change of the memory, while points are learnt and forgotten."""
    pack, seen = draw_pack(packs, 4, 2), set()
    x, y = calm_points(pack, 5, 4)
    before, rng = words_of(points_of(pack, x, y))[:4], np.random.default_rng(66)
    for change, after in (
        (lambda made: made.learn_targets(x[4], y[4]), words_of(points_of(pack, x, y))),
        (lambda made: made.forget(1, 2), before[[0, 3]]),
    ):
        for cut in range(60):
            size = int(rng.choice(flash.PROGRAM_SIZES))
            made = device(pack, most=5, program_size=size)
            assert made.open() == "ok"
            for one, targets in zip(x[:4], y[:4], strict=True):
                assert made.learn_targets(one, targets) == "ok"
            assert made.open() == "ok"
            made.memory.cut = made.memory.changes + cut
            status = change(made)
            made.memory.dead, made.memory.cut = 0, flash.NEVER
            assert made.open() == "ok"
            found = made.words().tolist()
            assert found == after.tolist() or (status != "ok" and found == before.tolist())
            seen.add((status, found == before.tolist()))
            assert_predicts(made, made.stored(), x[:1])
            if status == "ok":
                break
        assert status == "ok"
    assert seen >= {("storage", True), ("ok", False)}


def test_points_that_are_none_are_refused(device, packs):
    pack = draw_pack(packs, 5, 2)
    domain = replace(pack.domain, fill=np.full(pack.features, NO_FILL, np.int16))
    made = device(replace(pack, domain=domain))
    x, y = calm_points(made.pack, 1, 1)
    good = np.where(np.isnan(y[0]), made.pack.y_offset, y[0]).astype(np.float32)
    assert made.open() == "ok"
    assert made.learn_targets(x[0], y[0]) == "ok"
    before, points = made.memory.content(), made.words()
    for bad in (np.inf, -np.inf, 3.4e38, -3.4e38):
        for place in (0, 1):
            targets = good.copy()
            targets[place] = bad
            assert made.learn_targets(x[0], targets) == "target"
    assert made.learn_targets(x[0], [np.nan, np.nan]) == "target"
    assert made.learn_targets(np.full_like(x[0], np.nan), good) == "query"
    assert made.learn(x[0], float(good[0])) == "targets"
    assert made.learn_targets(x[0], good[:1]) == "targets"
    status, found = made.predict_targets(x[0], 1)
    assert status == "targets"
    assert np.isnan(found[0]["mean"])
    assert found[0]["points"] == found[0]["intervals"] == 0
    status, found = made.predict_targets(x[0], 3)
    assert status == "ok"
    assert np.isnan([one["mean"] for one in found]).tolist() == [False, False, True]
    assert made.memory.content() == before
    np.testing.assert_array_equal(made.words(), points)


def test_a_model_of_one_of_several_targets_has_no_store(native, device, packs, several):
    made = device(draw_pack(packs, 6, 2))
    whole, made.opened.model = made.opened.model, native.Model()
    one = ctypes.byref(made.opened.model)
    assert several.twin_select_target(one, ctypes.byref(whole), 1) == 0
    made.opened.fit_scratch()
    assert made.open() == "store"
    assert made.learn(np.zeros(made.pack.features), 0.0) == "store"
    status, found = made.predict(np.zeros(made.pack.features, np.float32))
    assert (status, found["points"]) == ("ok", 0)


IN_HEADER = """
#include "twin_store.h"
twin_status learn(twin_store *store, void *scratch, uint32_t size, const float *x,
                  const float *targets, unsigned count) {
    return twin_learn_targets(store, scratch, size, x, targets, count, 0);
}
twin_status predict(const twin_store *store, void *scratch, uint32_t size, const float *x,
                    twin_prediction *out, unsigned count) {
    return twin_predict_adapted_targets(store, scratch, size, x, out, count);
}
twin_status predict_raw(const twin_store *store, void *scratch, uint32_t size,
                        const int16_t *query, twin_raw *out, unsigned count) {
    return twin_predict_adapted_targets_raw(store, scratch, size, query, out, count);
}
"""


def test_a_build_for_one_target_has_the_same_functions(
    native, objects, flash, stores, packs, tmp_path
):
    source = tmp_path / "in_header.c"
    source.write_text(IN_HEADER)
    sources = [source, *objects(*native.SHARED), *flash.SOURCES]
    options = (*native.SHARED, "-DTWIN_HOST=0", "-shared")
    path = native.compile_c(tmp_path / "libtwin.so", *options, sources=sources)
    call = (stores.STATUS, stores.POINTER, stores.POINTER, stores.WORD, *[stores.POINTER] * 2)
    names = ("learn", "predict", "predict_raw")
    signatures = dict.fromkeys(names, (*call, ctypes.c_uint))
    library = native.load(path, flash.SIGNATURES, stores.SIGNATURES, signatures)
    pack = draw_pack(packs, 7, 1)
    made, x = stores.Device(native, flash, library, pack), STORE["queries"](pack, 1)[0]
    target = np.full(1, pack.y_offset, np.float32)
    assert made.open() == "ok"

    def called(name, query, given, count):
        where = ctypes.byref(made.store), native.address(made.opened.scratch), made.opened.size
        return native.name_of(getattr(library, name)(*where, native.address(query), given, count))

    assert called("learn", x, native.address(target), 0) == "targets"
    assert called("learn", x, native.address(target), 1) == "ok"
    q = reference.quantise(pack, x[None])[0]
    for name, query, kind in (("predict", x, native.Prediction), ("predict_raw", q, native.Raw)):
        out = (kind * 2)()
        assert called(name, query, ctypes.byref(out), 0) == "targets"
        assert called(name, query, ctypes.byref(out), 2) == "ok"
        _, right = made.predict(x) if name == "predict" else made.predict_raw(q)
        assert {field: getattr(out[0], field) for field in right} == right
        assert right["points"] == 1
        assert (out[1].points, out[1].intervals) == (0, 0)
