"""Intervals in C: levels that the caller chooses, unusual queries, and packs that are refused."""

import dataclasses
import struct

import numpy as np
import pytest

from twinedge.pack import Domain, read_header, read_pack, write_pack
from twinedge.pack.layout import NO_FILL, Kind
from twinedge.runtime import reference


@pytest.fixture(scope="module")
def pack(packs):
    """Two twins with intervals at three levels, and a fill value for the second feature only."""
    pack = packs.random_pack(
        np.random.default_rng(4),
        features=2,
        hidden=(3, 5),
        activation="relu",
        dtype=np.int8,
        counts=[2, 3],
        neighbors=0,
        weights="normal",
        scaled=True,
    )
    levels = {500: 40_000, 900: 100_000, 990: 200_000}
    ends = np.array([[-1000, -2000], [1000, 2000]], np.int16)
    domain = Domain(*ends, np.array([NO_FILL, 77], np.int16))
    intervals = dataclasses.replace(pack.intervals, quantiles=levels)
    return dataclasses.replace(pack, intervals=intervals, domain=domain)


@pytest.fixture(scope="module")
def data(pack):
    return write_pack(pack)


def place(data, kind):
    """Offsets of a section's entry, and of the section."""
    sections = read_header(data).sections
    number = [one.kind for one in sections].index(kind)
    return 48 + 12 * number, sections[number].offset


@pytest.mark.parametrize("level", [500, 900, 990])
def test_the_caller_chooses_the_level(open_pack, pack, data, cases, level):
    opened, x = open_pack(data), cases.queries(pack, 30)
    assert opened.set_coverage(level) == "ok"
    found = opened.predict_all(x)
    bounds = reference.bounds(pack, reference.evaluate(pack, x), level)
    for name in ("scale", "low", "high"):
        np.testing.assert_array_equal(found[name], getattr(bounds, name))
    assert (found["low"] <= found["mean"]).all()
    assert (found["mean"] <= found["high"]).all()


def test_a_level_that_is_not_there_is_refused_and_changes_nothing(open_pack, packs, data):
    opened = open_pack(data)
    before = opened.model.quantile
    assert before == 100_000  # the one for 900
    for level in (0, 499, 950, 1000, 65535):
        assert opened.set_coverage(level) == "level"
        assert opened.model.quantile == before
    bare = packs.random_pack(np.random.default_rng(0), scaled=False)
    assert open_pack(write_pack(bare)).set_coverage(900) == "level"
    assert open_pack(b"").set_coverage(900) == "model"


def test_what_is_unusual_about_a_query_is_reported(open_pack, pack, data):
    opened = open_pack(data)
    q = np.array([[0, 0], [1001, 0], [-1000, 2000], [-32767, -2001], [5, NO_FILL]], np.int16)
    found = opened.predict_raw_all(q)
    assert found["outside"].tolist() == [0, 1, 0, 3, 0]
    assert found["missing"].tolist() == [0, 0, 0, 0, 2]
    filled = opened.predict_raw_all(np.array([[5, 77]], np.int16))
    assert found["estimates"][4].tolist() == filled["estimates"][0].tolist()
    x = np.array([[np.inf, np.nan]], np.float32)
    found = opened.predict_all(x)
    assert (found["outside"][0], found["missing"][0]) == (1, 2)


def test_a_feature_that_nothing_stands_for_is_refused(open_pack, data):
    opened = open_pack(data)
    status, run = opened.begin("twin_begin", np.array([np.nan, 0], np.float32))
    assert status == "query"
    assert np.isnan(opened.read(run)[1:]).all()
    assert opened.begin("twin_begin_raw", np.array([NO_FILL, 0], np.int16))[0] == "query"


def test_intervals_are_there_from_the_first_anchor_on(open_pack, pack, data):
    opened, query = open_pack(data), np.array([3, 4], np.int16)
    for left, run in opened.steps("twin_begin_raw", query, [1, 1, 1, 1, 1]):
        out = opened.read_raw_all(run)
        done = pack.members - left
        assert out["intervals"] == (done > 0)
        assert (out["scale"] > 0) == (done > 0)


# What is refused and why: the format, offset and value of a field; in the entry of a section in
# the table, or behind the start of its content.
FAULTS = {
    "flag in version 1": ("header", "H", 4, 1),
    "unknown flag": ("header", "H", 38, 6),
    "no flag": ("section", "H", 38, 0),
    "intervals not required": ("section", "H", ("entry", Kind.INTERVALS, 2), 0),
    "domain required": ("section", "H", ("entry", Kind.DOMAIN, 2), 1),
    "no intervals": ("section", "I", ("entry", Kind.INTERVALS, 0), 99),
    "no levels": ("section", "I", ("content", Kind.INTERVALS, 28), 0),
    "another number of levels": ("section", "I", ("content", Kind.INTERVALS, 28), 4),
    "many levels": ("section", "I", ("content", Kind.INTERVALS, 28), 2**32 - 1),
    "short intervals": ("section", "I", ("entry", Kind.INTERVALS, 8), 16),
    "short domain": ("section", "I", ("entry", Kind.DOMAIN, 8), 6),
    "short schema": ("section", "I", ("entry", Kind.SCHEMA, 8), 3),
    "long schema": ("section", "I", ("entry", Kind.SCHEMA, 8), 5),
    "schema required": ("section", "H", ("entry", Kind.SCHEMA, 2), 1),
    "second shift": ("value", "B", ("content", Kind.TWINS, 7), 31),
    "second multiplier": ("value", "h", ("content", Kind.TWINS, 10), -1),
    "bias of the output": ("overflow", "i", ("content", Kind.TWINS, 12), -(2**31)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_refused_alike(packs, data, same, fault, faults):
    reason, code, at, value = FAULTS[fault]
    if not isinstance(at, int):
        where, kind, more = at
        at = place(data, kind)[where == "content"] + more
    assert same(packs.repair(faults.put(data, code, at, value))) == reason


def test_the_second_output_is_proved_not_to_overflow(packs, pack, data, same, faults):
    record = read_header(data).shape.twin_size
    behind = place(data, Kind.TWINS)[1] + record
    end = behind - record + 16 + 3 * 4 * 2 + 3 * 4 + 8 + 5 * 4 + 5 * 4 + 12
    twin = pack.twins[0]
    assert struct.unpack_from("<i", data, end)[0] == twin.difficulty.bias
    room = 2**31 - 1 - 32767 * int(np.abs(twin.difficulty.output.astype(int)).sum())
    assert same(packs.repair(faults.put(data, "i", end, room))) == "ok"
    assert same(packs.repair(faults.put(data, "i", end, room + 1))) == "overflow"
    assert same(packs.repair(faults.put(data, "i", end, -room - 1))) == "overflow"
    assert same(packs.repair(faults.put(data, "h", end + 4 + 4 * 5, 1))) == "padding"
    room = 2**31 - 1 - 65534 * int(np.abs(twin.output.astype(int)).sum())
    at = place(data, Kind.TWINS)[1] + 12
    assert same(packs.repair(faults.put(data, "i", at, room))) == "ok"
    assert same(packs.repair(faults.put(data, "i", at, room + 1))) == "overflow"


def test_any_numbers_of_intervals_and_ranges_are_harmless(packs, open_pack, data):
    rng = np.random.default_rng(6)
    for kind, size in ((Kind.INTERVALS, 28), (Kind.DOMAIN, 12)):
        at = place(data, kind)[1]
        for _ in range(60):
            changed = bytearray(data)
            changed[at : at + size] = rng.bytes(size)
            changed = packs.repair(changed)
            other, opened = read_pack(changed), open_pack(changed)
            q = rng.integers(-32767, 32768, (3, 2)).astype(np.int16)
            right = reference.evaluate_raw(other, q)
            bounds = reference.bounds(other, right, 900)
            found = opened.predict_raw_all(q)
            for name in ("scale", "low", "high"):
                np.testing.assert_array_equal(found[name], getattr(bounds, f"raw_{name}"))


def test_a_runtime_without_intervals_refuses_them_and_takes_the_rest(native, packs, pack, tmp_path):
    options = ("-fPIC", "-shared", "-DTWIN_HOST=0", "-DTWIN_INTERVALS=0")
    library = native.load(native.compile_c(tmp_path / "lib.so", *options, sources=native.PORTABLE))
    assert native.Native(library, write_pack(pack)).status == "unsupported"
    bare = packs.random_pack(np.random.default_rng(2), features=2, scaled=False)
    ranged = dataclasses.replace(bare, domain=pack.domain)
    data = write_pack(ranged)
    assert data[4] == 2
    assert native.Native(library, data).status == "ok"
    assert not hasattr(library, "twin_set_coverage")
