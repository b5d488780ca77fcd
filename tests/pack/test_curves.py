"""Maps and target curves in a pack: what is refused, in which order, and what older readers see."""

import runpy
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.pack import (
    InputMap,
    PackError,
    Reason,
    TargetCurve,
    read_header,
    read_pack,
    write_pack,
)
from twinedge.pack.describe import describe, name_of, uses
from twinedge.pack.layout import Kind

FAULTS = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "faults.py")))
put, entry_of, inside = FAULTS.put, FAULTS.entry_of, FAULTS.inside
MAP, CURVE = FAULTS.MAP, FAULTS.CURVE


quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@pytest.fixture
def curved(packs):
    return FAULTS.curved(packs)


@pytest.fixture
def data(curved):
    return write_pack(curved)


def refused(data):
    with pytest.raises(PackError) as caught:
        read_pack(bytes(data))
    assert len(str(caught.value).splitlines()) == 1
    return caught.value.reason


def test_what_the_file_holds(curved, data):
    header = read_header(data)
    assert header.version == 3
    assert (header.shape.map, header.shape.curve_bins, header.shape.inputs) == ((5, 5), (3,), 5)
    lengths = {one.kind: one.length for one in header.sections}
    assert lengths[Kind.MAP] == 4 + 8 + 12 + 25
    assert lengths[Kind.TARGET_CURVE] == 8 + 16
    start = header.sections[1].offset
    expected = struct.pack("<HH8B5h2x25b", 5, 5, *(2, 0, 1), *(1, 2, 8, 23, 24),
                           *(-32767, 0, 100, 5, 32767), *range(-12, 13))  # fmt: skip
    assert data[start : start + len(expected)] == expected
    start = header.sections[2].offset
    assert data[start : start + 24] == struct.pack("<iBBH4i", -100, 4, 0, 3, -7, 0, 1, 1000)
    assert curved.inputs == 5
    assert [rows for _, rows in curved.map.curves()] == [slice(0, 3), slice(3, 5)]


def test_a_pack_without_curves_is_written_as_before(curved, data):
    features = replace(curved, map=None, target_curve=None)
    wide = {"x_offset": np.zeros(5, np.float32), "x_gain": np.ones(5, np.float32)}
    assert write_pack(replace(features, **wide))[4] == 1
    assert write_pack(replace(curved, target_curve=None))[4] == data[4] == 3
    assert write_pack(replace(features, **wide, target_curve=curved.target_curve))[4] == 3


@pytest.mark.parametrize(
    ("reason", "kind", "code", "more", "value"),
    FAULTS.CURVE_FAULTS.values(),
    ids=FAULTS.CURVE_FAULTS,
)
def test_what_is_refused(packs, data, reason, kind, code, more, value):
    assert refused(packs.repair(inside(data, kind, code, more, value))) is reason


def test_padding_of_bins_and_shifts(packs, curved):
    tables = {"bins": np.zeros(3, np.uint8), "shifts": np.ones(6, np.uint8)}
    empty = InputMap(**tables, knots=np.zeros(0, np.int16), table=np.zeros((0, 6), np.int8))
    layers = [packs.random_twin(np.random.default_rng(0), 6, (3,), np.int8, "normal")]
    anchors = np.zeros((2, 6), np.int16)
    data = write_pack(replace(curved, map=empty, twins=tuple(layers), anchors=anchors))
    assert read_pack(data).map.table.shape == (0, 6)
    for more in (13, 14, 15):
        assert refused(packs.repair(inside(data, MAP, "B", more, 1))) is Reason.PADDING


@pytest.mark.parametrize(
    ("kind", "length"),
    [*((MAP, n) for n in (0, 3, 4, 12, 48, 50)), *((CURVE, n) for n in (0, 4, 7, 8, 20, 23, 25))],
)
def test_sections_of_another_length(packs, data, kind, length):
    changed = packs.repair(put(data, "I", entry_of(data, kind) + 8, length))
    assert refused(changed) is Reason.SECTION


def test_a_curve_must_end_within_the_range_of_estimates(packs, data):
    for entries, passes in ((64, True), (65, True), (66, False)):  # 64 bins of 2^24 are 2^30
        first = 2**30 - 1
        values = np.arange(entries, dtype=np.int32)
        pack = replace(read_pack(data), target_curve=TargetCurve(first, 24, values))
        if passes:
            assert read_pack(write_pack(pack)).target_curve.first == first
        else:
            with pytest.raises(PackError, match="target curve"):
                write_pack(pack)
    near = inside(data, CURVE, "iB", 0, 2**30 - 1, 24)
    assert read_pack(packs.repair(near)).target_curve.bins == 3


def test_of_two_faults_the_first_in_the_list_counts(packs, data):
    head = inside(data, 2, "B", 0, 31)  # of a twin
    value = inside(head, CURVE, "i", 16, 0)
    padding = inside(value, CURVE, "B", 5, 1)
    knot = inside(padding, MAP, "h", 16, 0)
    filling = inside(knot, MAP, "B", 22, 1)
    scaling = inside(filling, 1, "f", 0, np.inf)
    reasons = [refused(packs.repair(one)) for one in (padding, knot, filling, scaling)]
    assert reasons == [Reason.PADDING, Reason.VALUE, Reason.PADDING, Reason.VALUE]
    assert refused(packs.repair(put(scaling, "H", entry_of(data, MAP) + 2, 0))) is Reason.SECTION


@pytest.mark.parametrize("kind", [MAP, CURVE])
def test_a_section_that_is_not_flagged_or_occurs_twice(packs, data, kind):
    table = entry_of(data, kind)
    assert refused(packs.repair(put(data, "H", table + 2, 0))) is Reason.SECTION
    other = entry_of(data, CURVE if kind is MAP else MAP)
    assert refused(packs.repair(put(data, "H", other, kind))) is Reason.SECTION


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", [MAP, CURVE])
def test_earlier_versions_do_not_know_these_sections(packs, small, version, kind):
    plain = put(write_pack(small), "H", 4, version)
    table = entry_of(write_pack(small), Kind.METADATA)
    own = packs.repair(put(plain, "HH", table, kind, 0))
    pack = read_pack(own)  # skipped, as by a reader of that time
    assert (pack.map, pack.target_curve, pack.metadata) == (None, None, {})
    assert refused(packs.repair(put(own, "HH", table, kind, 1))) is Reason.SECTION
    assert describe(own).pieces[-1].use in ("other", "padding")
    assert name_of(kind, version) == f"kind {int(kind)}"
    later = packs.repair(put(own, "H", 4, 3))
    assert refused(later) is Reason.SECTION


def test_a_file_of_version_3_may_have_neither(packs, small):
    later = packs.repair(put(write_pack(small), "H", 4, 3))
    assert read_pack(later).inputs == 2
    assert refused(packs.repair(put(later, "H", 38, 4))) is Reason.HEADER  # no new flag


def test_sections_may_be_in_any_order(packs, data):
    sections = read_header(data).sections
    contents = [(one, data[one.offset : one.end]) for one in sections]
    start = 48 + 12 * len(sections)
    table, body = b"", bytes(-start % 16)
    for one, content in reversed(contents):
        table += struct.pack("<HHII", one.kind, one.flags, start + len(body), len(content))
        body += content + bytes(-len(content) % 16)
    length = struct.pack("<I", start + len(body))
    turned = packs.repair(data[:8] + length + data[12:48] + table + body)
    assert write_pack(read_pack(turned)) == data


def test_every_flipped_bit_is_noticed(data):
    damaged = bytearray(data)
    for bit in range(8 * len(data)):
        damaged[bit // 8] ^= 1 << bit % 8
        refused(damaged)
        damaged[bit // 8] ^= 1 << bit % 8


def test_any_byte_of_a_curve_that_changes_changes_the_pack_or_is_refused(packs, data):
    # With the checksums put right, too: no byte is without a meaning.
    for section in read_header(data).sections[1:3]:
        for at in range(section.offset, section.end):
            for flip in (1, 128, 255):
                changed = packs.repair(put(data, "B", at, data[at] ^ flip))
                with suppress(PackError):
                    assert write_pack(read_pack(changed)) == changed != data


maps = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 12))  # a seed, and features


def test_any_map_and_curve_survive_writing_and_reading(packs):
    @quick
    @given(maps, st.booleans())
    def holds(drawn, scaled):
        seed, features = drawn
        rng = np.random.default_rng(seed)
        pack = packs.random_pack(
            rng, features=features, hidden=(2,), scaled=scaled, mapped=True, curved=seed % 3 > 0
        )
        data = write_pack(pack)
        found = read_pack(data)
        for name in ("bins", "shifts", "knots", "table"):
            one, other = getattr(found.map, name), getattr(pack.map, name)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        if pack.target_curve is None:
            assert found.target_curve is None
        else:
            assert found.target_curve.first == pack.target_curve.first
            assert found.target_curve.shift == pack.target_curve.shift
            np.testing.assert_array_equal(found.target_curve.values, pack.target_curve.values)
        assert write_pack(found) == data

    holds()


def test_hostile_maps_are_not_written(curved):
    curves, curve = curved.map, curved.target_curve
    wrong = {
        "bins of another type": replace(curves, bins=curves.bins.astype(np.int16)),
        "too few bins": replace(curves, bins=curves.bins[:2]),
        "fewer outputs than features": replace(curves, shifts=curves.shifts[:2]),
        "another number of outputs": replace(curves, shifts=np.ones(6, np.uint8)),
        "knots that do not increase": replace(curves, knots=curves.knots[::-1].copy()),
        "knots of another type": replace(curves, knots=curves.knots.astype(np.int32)),
        "too few knots": replace(curves, knots=curves.knots[:4]),
        "too few rows": replace(curves, table=curves.table[:4]),
        "too many rows": replace(curves, knots=np.zeros(2**16, np.int16)),
        "a table of another type": replace(curves, table=curves.table.astype(np.uint8)),
        "bins that do not add up": replace(curves, bins=np.array([1, 1, 1], np.uint8)),
        "a shift of 0": replace(curves, shifts=curves.shifts - np.uint8(1)),
    }
    for name, one in wrong.items():
        with pytest.raises(PackError) as caught:
            write_pack(replace(curved, map=one))
        assert len(str(caught.value).splitlines()) == 1, name
    for one in (
        replace(curve, first=2**31),
        replace(curve, shift=-1),
        replace(curve, shift=25),
        replace(curve, values=curve.values[:1]),
        replace(curve, values=curve.values[::-1].copy()),
        replace(curve, values=curve.values.astype(np.int64)),
        replace(curve, values=np.arange(4098, dtype=np.int32)),
    ):
        with pytest.raises(PackError):
            write_pack(replace(curved, target_curve=one))


def test_both_are_described(curved, data):
    found = describe(data)
    assert found.stated["version"] == 3
    assert [name_of(one.kind) for one in found.sections[1:3]] == ["map", "target curve"]
    parts = {one.part: one for one in found.pieces if one.section in ("map", "target curve")}
    assert list(parts) == ["sizes", "bins", "shifts", "knots", "table", "head", "values"]
    assert [(one.size, one.padding) for one in parts.values()] == [
        *((4, 0), (3, 0), (5, 0), (12, 2), (25, 0), (8, 1), (16, 0))
    ]
    assert (parts["table"].holds, parts["values"].holds) == ("int8[5][5]", "int32[4]")
    assert uses(found.pieces)["map"] == 4 + 8 + 10 + 25
    assert uses(found.pieces)["target curve"] == 23
    *features, target = found.ranges
    assert {one.anchors_least for one in features} == {None}  # the map hides them
    unit, offset = float(curved.y_gain), float(curved.y_offset)
    assert (target.least, target.most) == (offset - 7 * unit, offset + 1000 * unit)
    assert target.least <= target.anchors_least <= target.anchors_most <= target.most


def test_no_byte_is_left_out_or_counted_twice(packs):
    @quick
    @given(maps)
    def holds(drawn):
        seed, features = drawn
        rng = np.random.default_rng(seed)
        pack = packs.random_pack(rng, features=features, mapped=True, curved=seed % 2 > 0)
        data = write_pack(pack)
        found, end = describe(data), 0
        for piece in found.pieces:
            assert (piece.offset, piece.size > 0) == (end, True)
            end += piece.size
        assert end == len(data) == sum(uses(found.pieces).values())

    holds()
