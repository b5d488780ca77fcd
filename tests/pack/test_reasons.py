"""Each rule of FORMAT.md has a file that breaks it alone, and is refused for that reason."""

import runpy
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.pack import PackError, Reason, read_pack, write_pack

FAULTS = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "faults.py")))
put, offset_of = FAULTS.put, FAULTS.offset_of
TABLE, IDS, METADATA = FAULTS.TABLE, FAULTS.IDS, FAULTS.METADATA
A, BIAS, OUTPUT = FAULTS.A, FAULTS.BIAS, FAULTS.OUTPUT


def refused(data):
    with pytest.raises(PackError) as caught:
        read_pack(bytes(data))
    assert len(str(caught.value).splitlines()) == 1
    return caught.value.reason


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


@pytest.mark.parametrize(("code", "at", "values"), FAULTS.HEADER_FAULTS, ids=str)
def test_header_fields(packs, data, code, at, values):
    assert refused(packs.repair(put(data, code, at, *values))) is Reason.HEADER


@pytest.mark.parametrize("fault", FAULTS.ENTRY_FAULTS.values(), ids=FAULTS.ENTRY_FAULTS)
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


@pytest.mark.parametrize(
    ("reason", "code", "place", "values"), FAULTS.CONTENT_FAULTS.values(), ids=FAULTS.CONTENT_FAULTS
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
