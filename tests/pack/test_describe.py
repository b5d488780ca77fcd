"""Every byte of a pack is accounted for once; of a damaged pack nothing untrue is stated."""

import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.pack import Reason, write_pack
from twinedge.pack.describe import describe, uses

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def test_no_byte_is_left_out_or_counted_twice(packs):
    @quick
    @given(seed=seeds, metadata=st.booleans())
    def holds(seed, metadata):
        pack = packs.random_pack(np.random.default_rng(seed), scaled=bool(seed % 2))
        data = write_pack(pack, metadata=metadata)
        found = describe(data)
        end = 0
        for piece in found.pieces:
            assert piece.offset == end
            assert 0 <= piece.padding <= piece.size
            assert piece.size > 0
            end += piece.size
        assert end == len(data) == found.length
        assert sum(uses(found.pieces).values()) == len(data)
        assert list(uses(found.pieces))[-1] == "padding"

    holds()


def test_each_array_lies_where_the_map_says(packs):
    @quick
    @given(seed=seeds)
    def holds(seed):
        pack = packs.random_pack(np.random.default_rng(seed))
        data = write_pack(pack)
        arrays = {p.part: stored(data, p) for p in describe(data).pieces if "[" in p.holds}
        for part, expected in contents(pack).items():
            np.testing.assert_array_equal(arrays.pop(part), expected)
        assert not arrays

    holds()


def stored(data, piece):
    """Read the numbers of a piece from the file, by its own description."""
    kind, sizes = re.match(r"(\w+?)((?:\[\d+\])+)", piece.holds).groups()
    *rows, last = (int(size) for size in re.findall(r"\d+", sizes))
    raw = data[piece.offset : piece.offset + piece.size]
    array = np.frombuffer(raw, np.dtype(kind).newbyteorder("<"))
    assert piece.size - piece.padding == np.prod([*rows, last]) * array.itemsize
    return array.reshape(*rows, -1)[..., :last]


def contents(pack):
    """Every array of a pack by the name of its part; anchor features hide those of scaling."""
    arrays = {
        "features": pack.anchors,
        "target": [pack.y_offset, pack.y_gain],
        "counts": pack.counts,
        "targets": pack.targets,
        "ids": pack.ids,
    }
    if pack.curve is not None:
        arrays["curve"] = pack.curve
    for number, twin in enumerate(pack.twins):
        arrays[f"twin {number} output weights"] = twin.output
        for depth, layer in enumerate(twin.layers):
            title = f"twin {number} layer {depth + 1}"
            halves = np.split(layer.kernel, [pack.features], axis=1) if depth == 0 else ()
            kernels = zip("AB", halves, strict=True) if depth == 0 else [("W", layer.kernel)]
            arrays |= {f"{title} kernel {name}": kernel for name, kernel in kernels}
            arrays[f"{title} biases"] = layer.bias
            arrays[f"{title} multipliers"] = layer.multiplier
    return arrays


def test_scaling_comes_first_feature_by_feature(small, data):
    piece = next(one for one in describe(data).pieces if one.section == "scaling")
    scaling = stored(data, piece)
    np.testing.assert_array_equal(scaling, np.column_stack([small.x_offset, small.x_gain]))


def test_a_sound_pack_is_described(small, data):
    found = describe(data)
    assert found.fault is None
    assert found.stated == {
        "version": 1,
        "length": len(data),
        "features": 2,
        "hidden": [3, 5],
        "activation": "silu",
        "kernel": "int8",
        "twins": 2,
        "anchors": 3,
        "neighbors": 2,
        "trained_on_neighbors": small.trained_on_neighbors,
        "intervals": False,
    }
    assert [(name, one.fits) for name, one in found.checksums.items()] == [
        ("header", True),
        ("body", True),
    ]
    stored_crc = struct.unpack_from("<II", data, 12)
    assert tuple(one.computed for one in found.checksums.values()) == stored_crc
    assert [one.kind for one in found.sections] == [1, 2, 3, 4, 5, 6]
    assert uses(found.pieces)["kernels"] == 2 * (2 * 3 * 2 + 3 * 5)
    assert uses(found.pieces)["metadata"] == found.sections[-1].length
    assert uses(found.pieces)["ids"] == 12


def test_ranges_are_in_the_units_of_the_user(small):
    pack = replace(
        small,
        x_offset=np.array([10, -1], np.float32),
        x_gain=np.array([100, 0.5], np.float32),
        y_offset=np.float32(3),
        y_gain=np.float32(0.25),
        anchors=np.array([[-100, 4], [200, 4], [0, 4]], np.int16),
        targets=np.array([8, -4, 0], np.int32),
        metadata={"features": [{"name": "angle"}, {"name": "load"}], "target": "level"},
    )
    first, second, target = describe(write_pack(pack)).ranges
    assert first == ("angle", 10, 100, 10 - 327.67, 10 + 327.67, 9, 12)
    assert second == ("load", -1, 0.5, -1 - 65534, -1 + 65534, 7, 7)
    assert target[:3] + target[5:] == ("level", 3, 0.25, 2, 5)
    assert target[3:5] == (3 - (2**31 - 1) / 4, 3 + (2**31 - 1) / 4)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"features": [{"name": "one"}]},
        {"features": [{"name": "one"}, {"name": 2}]},
        {"features": [{"name": "one"}, {"title": "two"}]},
        {"features": ["one", "two"]},
        {"features": 2},
    ],
    ids=["none", "too few", "no text", "no name", "no objects", "no list"],
)
def test_names_that_the_metadata_lacks_are_made_up(small, metadata):
    found = describe(write_pack(replace(small, metadata={**metadata, "target": 1})))
    assert [one.name for one in found.ranges] == ["x0", "x1", "target"]


def test_sections_that_nobody_knows_are_accounted_for(packs, data):
    table = data.find(struct.pack("<HH", 6, 0), 48)
    changed = data[:table] + struct.pack("<HH", 40000, 0) + data[table + 4 :]
    found = describe(packs.repair(changed))
    assert found.fault is None
    assert sum(uses(found.pieces).values()) == len(data)
    assert uses(found.pieces)["other"] == found.sections[-1].length


def test_an_empty_section_has_no_bytes(packs, data):
    at = 48 + 12 * 5
    offset = struct.unpack_from("<I", data, at + 4)[0]
    changed = bytearray(data[:offset])
    struct.pack_into("<I", changed, 8, offset)
    struct.pack_into("<HHII", changed, at, 50000, 0, offset, 0)
    found = describe(packs.repair(changed))
    assert found.fault is None
    assert (found.sections[-1].kind, found.pieces[-1].section) == (50000, "padding")
    assert sum(piece.size for piece in found.pieces) == offset


def assert_nothing_untrue(found, whole, length):
    assert found.fault is not None
    assert (found.length, found.pieces, found.ranges, found.pack) == (length, (), (), None)
    if found.fault.reason is Reason.VERSION:
        assert found.stated.keys() == {"version", "length"}
        assert found.stated["length"] == whole.stated["length"]
        return
    assert found.stated in ({}, whole.stated)
    assert found.sections == (whole.sections if found.stated else ())


def test_of_a_flipped_bit_nothing_untrue_is_stated(data):
    whole, damaged = describe(data), bytearray(data)
    vouched = 0
    for bit in range(8 * len(data)):
        damaged[bit // 8] ^= 1 << bit % 8
        found = describe(bytes(damaged))
        assert_nothing_untrue(found, whole, len(data))
        vouched += bool(found.sections)
        damaged[bit // 8] ^= 1 << bit % 8
    assert vouched == 8 * (len(data) - 48 - 12 * 6)  # the header vouches only for itself


def test_of_a_truncated_file_nothing_untrue_is_stated(data):
    whole = describe(data)
    for length in range(len(data)):
        found = describe(data[:length])
        assert_nothing_untrue(found, whole, length)
        assert bool(found.sections) == (length >= 48 + 12 * 6)
        assert bool(found.checksums) == (length >= 48)


def test_a_header_with_values_that_cannot_be_is_shown_as_it_is(packs, data):
    changed = bytearray(data)
    changed[22], changed[23], changed[30] = 9, 7, 5  # layers, activation, kernel type
    found = describe(packs.repair(changed))
    assert found.fault.reason is Reason.HEADER
    assert found.stated["hidden"] == [3, 5, 0]
    assert found.stated["activation"] == "unknown (7)"
    assert found.stated["kernel"] == "unknown (5)"


@pytest.mark.parametrize("count", [0, 33, 65535])
def test_an_impossible_section_table_is_not_shown(packs, data, count):
    found = describe(packs.repair(data[:6] + struct.pack("<H", count) + data[8:]))
    assert found.fault.reason is Reason.HEADER
    assert (found.stated, found.sections) == ({}, ())
    assert all(one.computed is None for one in found.checksums.values())


def test_nothing_is_stated_about_what_is_no_pack():
    for data in (b"", b"TWIN", b"GIF89a" * 100):
        found = describe(data)
        assert found.fault is not None
        assert (found.checksums, found.stated, found.sections) == ({}, {}, ())


def test_faults_behind_good_checksums_leave_the_header_alone(packs, data):
    changed = bytearray(data)
    changed[-1] = 1
    found = describe(packs.repair(changed))
    assert found.fault.reason is Reason.PADDING
    assert found.stated == describe(data).stated
    assert all(one.fits for one in found.checksums.values())
