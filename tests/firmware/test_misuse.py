"""What a caller may forget, or do at the wrong time, is refused and does no harm.

test_sanitizers.py runs these tests once more, with a library that checks its memory.
"""

import ctypes
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.pack.layout import PackError
from twinedge.runtime import reference

BEGINNINGS = {
    "twin_begin": (np.float32, np.float32(np.nan)),
    "twin_begin_raw": (np.int16, np.int16(-32768)),
}
QUIET_NAN = 0x7FC00000


def assert_nothing_is_read(opened, run, status):
    """A refused run does not step, and its status tells why; it keeps no old numbers."""
    assert opened.step(run, 1) == 0
    assert opened.step(run, 65535) == 0
    found, mean, spread = opened.read(run)
    assert found == status
    assert mean.view(np.uint32) == spread.view(np.uint32) == QUIET_NAN
    assert opened.read_raw(run) == (status, 0, 0, 0)


@pytest.mark.parametrize("function", BEGINNINGS)
def test_a_query_or_a_scratch_that_cannot_be_used(open_pack, small, function):
    opened = open_pack(write_pack(small))
    dtype, wrong = BEGINNINGS[function]
    for size in (0, opened.size - 1):
        status, run = opened.begin(function, np.zeros(2, dtype), size=size)
        assert status == "scratch"
        assert_nothing_is_read(opened, run, "scratch")
        assert (opened.scratch == 0xA5).all()
    for place in range(2):  # a sensor that reports NaN
        query = np.zeros(2, dtype)
        query[place] = wrong
        status, run = opened.begin(function, query)
        assert status == "query"
        assert_nothing_is_read(opened, run, "query")
    opened.scratch = None  # no memory was left
    status, run = opened.begin(function, np.zeros(2, dtype))
    assert status == "scratch"
    assert_nothing_is_read(opened, run, "scratch")


@pytest.mark.parametrize("step", [None, 64])
@pytest.mark.parametrize("function", BEGINNINGS)
def test_a_model_whose_pack_was_refused(open_pack, native, small, function, step):
    data = bytearray(write_pack(small))
    data[-1] ^= 1
    opened = open_pack(data, step=step)
    assert opened.status == "body_crc"
    assert opened.library.twin_scratch_size(opened.model) == 0
    opened.size, opened.scratch = 1 << 16, np.full(1 << 16, 0xA5, np.uint8)
    opened.library.twin_set_neighbors(opened.model, 3)
    status, run = opened.begin(function, np.zeros(2, BEGINNINGS[function][0]))
    assert status == "model"
    assert_nothing_is_read(opened, run, "model")


def test_a_model_that_was_open_and_is_refused_now(open_pack, small):
    opened = open_pack(write_pack(small))
    assert opened.library.twin_open(opened.model, opened.pack.ctypes.data, 16) != 0
    status, run = opened.begin("twin_begin", np.zeros(2, np.float32))
    assert status == "model"
    assert_nothing_is_read(opened, run, "model")


@pytest.mark.parametrize("name", ["twin_predict", "twin_predict_raw"])
def test_a_prediction_that_is_refused_leaves_nothing_of_the_one_before(
    open_pack, native, small, name
):
    opened = open_pack(write_pack(small))
    dtype, wrong = BEGINNINGS[name.replace("predict", "begin")]
    out = native.Raw() if "raw" in name else native.Prediction()
    for query, status in ((np.zeros(2, dtype), "ok"), (np.full(2, wrong), "query")):
        found = getattr(opened.library, name)(
            opened.model,
            *(opened.scratch.ctypes.data, opened.size, query.ctypes.data, ctypes.byref(out), 0),
        )
        assert native.name_of(found) == status
    fields = {field: getattr(out, field) for field, _ in out._fields_}
    floats = [] if "raw" in name else ["mean", "spread", "scale", "low", "high"]
    assert np.isnan([fields.pop(field) for field in floats]).all()
    assert not any(fields.values())


@pytest.mark.parametrize("begun_with", [0, 1, 4])
@pytest.mark.parametrize("then", [0, 2, 30])
def test_a_run_keeps_the_neighbors_that_it_began_with(open_pack, packs, cases, begun_with, then):
    pack = cases.draw(packs, "neighbors-of-four-twins")
    opened = open_pack(write_pack(pack))
    opened.set_neighbors(begun_with)
    expected = dataclasses.replace(pack, neighbors=begun_with, trained_on_neighbors=False)
    q = cases.queries(pack, 20)[3]
    for done in (0, 1, 3):
        estimates = np.zeros(expected.members, np.int32)
        status, run = opened.begin("twin_begin", q, estimates)
        assert status == "ok"
        opened.step(run, done)
        opened.library.twin_set_neighbors(opened.model, then)  # and no further scratch
        assert opened.step(run, 65535) == 0
        assert estimates.tolist() == reference.evaluate(expected, q[None]).estimates[0].tolist()
        assert (opened.scratch[opened.size :] == 0xA5).all()
        opened.library.twin_set_neighbors(opened.model, begun_with)


def test_a_file_that_goes_on_after_its_last_section(open_pack, packs, small):
    data = bytearray(write_pack(small, metadata=False)) + bytes(16)
    data[8:12] = len(data).to_bytes(4, "little")
    data = bytes(packs.repair(data))
    with pytest.raises(PackError) as refusal:
        read_pack(data)
    assert refusal.value.reason.value == "section"
    assert open_pack(data).status == "section"
    assert open_pack(data, step=64).status == "section"


@pytest.mark.parametrize("step", [0, 1, 4, 5, 64, 1000, 2**32 - 1])
def test_opening_in_steps(open_pack, packs, cases, step):
    for name in cases.SHAPES:
        pack = cases.draw(packs, name)
        q = cases.queries(pack, 12)[:1]
        opened = open_pack(write_pack(pack), step=step)
        assert opened.status == "ok"
        assert opened.predict(q)[-1].tolist() == reference.evaluate(pack, q).estimates.tolist()


def test_steps_of_opening_are_bounded(library, native, packs, cases):
    pack = cases.draw(packs, "relu-128-128-of-32")
    data = np.frombuffer(write_pack(pack), np.uint8).copy()
    model, opening = native.Model(), native.Opening()
    place = data.ctypes.data
    status = library.twin_open_begin(ctypes.byref(opening), model, place, len(data))
    steps = 0
    while status == native.MORE:
        status = library.twin_open_step(ctypes.byref(opening), 256)
        steps += 1
    assert status == 0
    # Each byte is read twice, and a step exceeds its bytes by a row at most.
    assert 2 * len(data) / (256 + 2 * 128) <= steps <= 2 * len(data) / 256 + 1
    assert library.twin_open_step(ctypes.byref(opening), 256) == 0  # and stays so


def test_an_opening_that_was_refused_stays_so(library, native, small):
    data = np.frombuffer(b"none" + write_pack(small)[4:], np.uint8).copy()
    model, opening = native.Model(), native.Opening()
    status = library.twin_open_begin(ctypes.byref(opening), model, data.ctypes.data, len(data))
    again = library.twin_open_step(ctypes.byref(opening), 1 << 20)
    assert native.name_of(status) == native.name_of(again) == "magic"


MODEL, STORE = -16, -20
MISUSES = {
    **dict.fromkeys(["run", "run raw", "opening", "model", "store", "store raw"], MODEL),
    **dict.fromkeys(["store step", "learn", "forget", "forget some", "forget before"], STORE),
    **dict.fromkeys(["keep", "next", "append", "clear"], STORE),
    **dict.fromkeys(["steps", "target"], 0),
    "refused": -1,
    "same": 1,
}


@pytest.mark.parametrize("checked", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_memory_that_is_zero_and_models_that_change_during_a_run(
    native, objects, packs, cases, tmp_path, checked
):
    """With the kernels of this machine, prepared and not; under sanitizers in a minute."""
    if checked and native.EXTRA_OPTIONS:
        pytest.skip("instrumented")
    options = native.SANITIZED if checked else native.SHARED
    sources = [*objects(*options, host=True), Path(__file__).parent / "misuse.c"]
    built = native.compile_c(tmp_path / "misuse", *options, "-O0", sources=sources)
    for name in ("relu-128-128-of-32", "some-of-everything"):
        (tmp_path / "model.twin").write_bytes(write_pack(cases.draw(packs, name)))
        lines = native.run(built, tmp_path / "model.twin").splitlines()
        found = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
        assert found == MISUSES
