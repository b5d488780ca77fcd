"""Each rule of FORMAT.md has a file that breaks it alone, and is refused for that reason."""

import struct

import numpy as np
import pytest

from twinedge.pack import PackError, Reason, read_header, read_pack, write_pack

TABLE = 48


def refused(data):
    with pytest.raises(PackError) as caught:
        read_pack(bytes(data))
    assert len(str(caught.value).splitlines()) == 1
    return caught.value.reason


def put(data, code, at, *values):
    """Overwrite values in a copy."""
    changed = bytearray(data)
    struct.pack_into(f"<{code}", changed, at, *values)
    return changed


def offset_of(data, kind):
    return next(one.offset for one in read_header(data).sections if one.kind == kind)


def test_too_short_for_a_header(data):
    assert refused(b"") is Reason.TRUNCATED
    assert refused(data[:47]) is Reason.TRUNCATED


def test_magic_version_and_length_come_before_checksums(data):
    assert refused(b"TWIM" + data[4:]) is Reason.MAGIC
    assert refused(put(data, "H", 4, 4)) is Reason.VERSION
    assert refused(put(data, "H", 4, 0)) is Reason.VERSION
    assert refused(data[:-1]) is Reason.TRUNCATED
    assert refused(data + b"\0") is Reason.LENGTH
    assert refused(put(data, "I", 8, 40)) is Reason.LENGTH
    assert refused(put(data[:-8], "I", 8, len(data) - 8)) is Reason.LENGTH


def test_checksums(data):
    assert refused(put(data, "H", 20, 3)) is Reason.HEADER_CRC
    assert refused(put(data, "I", TABLE + 4, 0)) is Reason.HEADER_CRC
    assert refused(put(data, "B", len(data) - 1, 1)) is Reason.BODY_CRC


@pytest.mark.parametrize("count", [0, 33, 65535])
def test_impossible_numbers_of_sections(packs, data, count):
    assert refused(packs.repair(put(data, "H", 6, count))) is Reason.HEADER


def test_a_table_that_leaves_the_file(packs, data):
    short = put(put(data[:64], "I", 8, 64), "H", 6, 2)
    assert refused(packs.repair(short)) is Reason.HEADER


@pytest.mark.parametrize(
    ("code", "at", "values"),
    [
        ("H", 20, [0]),  # features
        ("H", 20, [1025]),
        ("B", 22, [0]),  # layers
        ("B", 22, [4]),
        ("B", 22, [1]),  # a width too many
        ("B", 22, [3]),  # a width too few
        ("B", 23, [2]),  # activation
        ("H", 24, [0]),  # widths
        ("H", 26, [1025]),
        ("H", 28, [1]),
        ("B", 30, [2]),  # kernel type
        ("B", 31, [1]),
        ("H", 32, [0]),  # twins
        ("H", 32, [257]),
        ("H", 32, [4]),  # more of them than anchors
        ("H", 34, [0]),  # anchors
        ("H", 34, [4097]),
        ("H", 36, [4097]),  # neighbors
        ("HH", 36, [0, 1]),  # trained on them, but all anchors predict
        ("H", 38, [2]),  # flags
        ("B", 40, [1]),
        ("B", 47, [1]),
    ],
    ids=str,
)
def test_header_fields(packs, data, code, at, values):
    assert refused(packs.repair(put(data, code, at, *values))) is Reason.HEADER


SCALING, TWINS, CURVE, ANCHORS, IDS, METADATA = (TABLE + 12 * number for number in range(6))
ENTRY_FAULTS = {
    "an unknown flag": lambda data: put(data, "H", SCALING + 2, 3),
    "misaligned": lambda data: put(data, "I", IDS + 4, offset_of(data, 5) + 4),
    "over the table": lambda data: put(data, "I", SCALING + 4, 48),
    "over another": lambda data: put(data, "I", TWINS + 4, offset_of(data, 1)),
    "behind the file": lambda data: put(data, "I", METADATA + 4, len(data)),
    "too long": lambda data: put(data, "I", METADATA + 8, 2**32 - 1),
    "twice": lambda data: put(data, "H", METADATA, 5),
    "scaling missing": lambda data: put(data, "HH", SCALING, 40000, 0),
    "twins missing": lambda data: put(data, "HH", TWINS, 40000, 0),
    "curve missing": lambda data: put(data, "HH", CURVE, 40000, 0),
    "anchors missing": lambda data: put(data, "HH", ANCHORS, 40000, 0),
    "unknown and required": lambda data: put(data, "HH", METADATA, 7, 1),
    "anyone's own, yet required": lambda data: put(data, "HH", METADATA, 32768, 1),
    "scaling not required": lambda data: put(data, "H", SCALING + 2, 0),
    "ids required": lambda data: put(data, "H", IDS + 2, 1),
    "scaling of another length": lambda data: put(data, "I", SCALING + 8, 20),
    "twins of another length": lambda data: put(data, "I", TWINS + 8, 16),
    "curve of another length": lambda data: put(data, "I", CURVE + 8, 384),
    "anchors of another length": lambda data: put(data, "I", ANCHORS + 8, 36),
    "ids of another length": lambda data: put(data, "I", IDS + 8, 8),
    "a domain of another length": lambda data: put(data, "HH", METADATA, 8, 0),
    "a schema of another length": lambda data: put(data, "HH", METADATA, 9, 0),
    "intervals without their flag": lambda data: put(data, "HH", METADATA, 7, 0),
    "further on than the next multiple of 16": lambda data: put(
        data, "II", METADATA + 4, offset_of(data, 6) + 16, 0
    ),
    "the last one shorter than the file": lambda data: put(data, "I", METADATA + 8, 0),
    "a curve for relu": lambda data: put(data, "B", 23, 0),
}


@pytest.mark.parametrize("fault", ENTRY_FAULTS.values(), ids=ENTRY_FAULTS)
def test_section_entries(packs, data, fault):
    assert refused(packs.repair(fault(data))) is Reason.SECTION


@pytest.mark.parametrize("kind", [0, 10, 31, 32, 32767, 32768, 65535])
def test_an_unknown_optional_section_is_skipped(packs, data, kind):
    pack = read_pack(packs.repair(put(data, "HH", METADATA, kind, 0)))
    assert pack.metadata == {}
    assert len(pack.twins) == 2


def test_a_section_may_be_empty(packs, data):
    end = offset_of(data, 6)
    cut = put(put(data[:end], "I", 8, end), "HHII", METADATA, 50000, 0, end, 0)
    assert read_pack(packs.repair(cut)).metadata == {}


def at(kind, more):
    """Return the place this many bytes into a section."""
    return lambda data: offset_of(data, kind) + more


# A twin with 2 features and widths 3 and 5 in i8: head 16, A and B 12 each, bias 12, multipliers 8,
# W 20, bias 20, multipliers 12, output 16.
A, BIAS, MULTIPLIERS, OUTPUT, RECORD_END = 16, 40, 52, 112, 128
CONTENT_FAULTS = {
    "in front of a section": (Reason.PADDING, "B", lambda data: TABLE + 72, 1),
    "behind the last section": (Reason.PADDING, "B", lambda data: len(data) - 1, 1),
    "an infinite offset": (Reason.VALUE, "f", at(1, 0), np.inf),
    "an offset that is no number": (Reason.VALUE, "I", at(1, 8), 0x7F800001),
    "a gain of zero": (Reason.VALUE, "f", at(1, 4), 0.0),
    "a negative gain": (Reason.VALUE, "f", at(1, 20), -1.0),
    "a shift": (Reason.VALUE, "B", at(2, 0), 31),
    "a shift of no layer": (Reason.VALUE, "B", at(2, 2), 1),
    "too few fraction bits": (Reason.VALUE, "B", at(2, 3), 4),
    "too many fraction bits": (Reason.VALUE, "B", at(2, 4), 16),
    "fraction bits of no layer": (Reason.VALUE, "B", at(2, 5), 5),
    "the output's shift": (Reason.VALUE, "B", at(2, 6), 31),
    "a byte kept zero": (Reason.VALUE, "B", at(2, 7), 1),
    "the output's multiplier": (Reason.VALUE, "h", at(2, 8), -1),
    "the last byte of the head": (Reason.VALUE, "B", at(2, 15), 1),
    "columns beyond the inputs": (Reason.PADDING, "B", at(2, A + 2), 1),
    "padding of multipliers": (Reason.PADDING, "B", at(2, MULTIPLIERS + 6), 1),
    "weights beyond the outputs": (Reason.PADDING, "h", at(2, OUTPUT + 10), 1),
    "a negative multiplier": (Reason.VALUE, "h", at(2, MULTIPLIERS), -1),
    "a bias too large": (Reason.OVERFLOW, "i", at(2, BIAS), -(2**31)),
    "output weights too large": (Reason.OVERFLOW, "hh", at(2, OUTPUT), (-32768, -32768)),
    "the second twin's head": (Reason.VALUE, "B", at(2, RECORD_END), 31),
    "the second twin's bias": (Reason.OVERFLOW, "i", at(2, RECORD_END + BIAS), -(2**31)),
    "a negative entry of the curve": (Reason.VALUE, "h", at(3, 0), -1),
    "a large entry of the curve": (Reason.VALUE, "h", at(3, 384), 16384),
    "features beyond the last": (Reason.PADDING, "h", at(4, 4 + 4), 1),
    "a twin without anchors": (Reason.VALUE, "HH", at(4, 0), (3, 0)),
    "too many anchors": (Reason.VALUE, "H", at(4, 0), 3),
    "a feature": (Reason.VALUE, "h", at(4, 4), -32768),
    "a large target": (Reason.VALUE, "i", at(4, 4 + 24), 2**30),
    "a negative target": (Reason.VALUE, "i", at(4, 4 + 24), -(2**30)),
    "metadata that is no UTF-8": (Reason.VALUE, "B", at(6, 0), 255),
    "metadata that is no JSON": (Reason.VALUE, "B", at(6, 0), ord("}")),
}


@pytest.mark.parametrize(
    ("reason", "code", "place", "values"), CONTENT_FAULTS.values(), ids=CONTENT_FAULTS
)
def test_contents(packs, data, reason, code, place, values):
    values = values if isinstance(values, tuple) else (values,)
    assert refused(packs.repair(put(data, code, place(data), *values))) is reason


@pytest.mark.parametrize("text", [b"[]", b"NaN", b'{"a": NaN}', b'{"a": 1e999}', b"", b"[" * 99999])
def test_metadata_that_is_no_object_of_finite_numbers(packs, data, text):
    start = offset_of(data, 6)
    changed = put(data[:start] + text + bytes(-len(text) % 16), "I", METADATA + 8, len(text))
    struct.pack_into("<I", changed, 8, len(changed))
    assert refused(packs.repair(changed)) is Reason.VALUE


def test_padding_behind_a_record(packs):
    pack = packs.random_pack(
        np.random.default_rng(0), features=1, hidden=(1,), dtype=np.int8, counts=[1]
    )
    data = write_pack(pack)
    # Head 16, A and B 4 each, bias 4, multiplier 2, output 8: 40 bytes in a record of 48.
    for more in range(40, 48):
        changed = packs.repair(put(data, "B", offset_of(data, 2) + more, 1))
        assert refused(changed) is Reason.PADDING


def test_the_last_sum_that_fits_passes(packs, data):
    for limit, passes in ((2**31 - 1, True), (2**31, False)):
        pack = read_pack(data)
        kernel, bias = pack.twins[0].layers[0].kernel, pack.twins[0].layers[0].bias
        bias[0] = limit - 1 - 32767 * int(np.abs(kernel[0].astype(int)).sum())
        start = offset_of(data, 2) + BIAS
        bias[0] = int(bias[0]) + 1
        changed = packs.repair(put(data, "i", start, int(bias[0])))
        if passes:
            read_pack(changed)
        else:
            assert refused(changed) is Reason.OVERFLOW


def test_the_last_output_sum_that_fits_passes(packs, data):
    start = offset_of(data, 2) + OUTPUT
    read_pack(packs.repair(put(data, "5h", start, -32768, 1, 0, 0, 0)))
    assert refused(packs.repair(put(data, "5h", start, -32768, 1, 1, 0, 0))) is Reason.OVERFLOW


def test_of_two_faults_the_first_in_the_list_counts(packs, data):
    head, bias = offset_of(data, 2), offset_of(data, 2) + BIAS
    both = put(put(data, "i", bias, -(2**31)), "B", head + A + 2, 1)
    assert refused(packs.repair(both)) is Reason.PADDING
    assert refused(packs.repair(put(both, "B", head, 31))) is Reason.VALUE
    assert refused(packs.repair(put(both, "B", len(data) - 1, 1))) is Reason.PADDING
    assert refused(packs.repair(put(both, "H", IDS + 2, 1))) is Reason.SECTION
    assert refused(packs.repair(put(both, "f", offset_of(data, 1), np.nan))) is Reason.VALUE
