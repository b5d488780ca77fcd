"""The C runtime refuses what the Python reader refuses, with the same code, and nothing else."""

import os

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.runtime import reference

MUTATIONS = 4 * int(os.environ.get("TWIN_TEST_QUERIES", "400"))


@pytest.fixture(scope="module")
def data(packs, faults):
    return write_pack(faults.small(packs))


def test_every_flipped_bit_is_refused_alike(data, same):
    damaged = bytearray(data)
    for bit in range(8 * len(data)):
        damaged[bit // 8] ^= 1 << bit % 8
        assert same(damaged) != "ok"
        damaged[bit // 8] ^= 1 << bit % 8
    assert same(damaged) == "ok"


def test_every_truncation_is_refused_alike(data, same):
    for length in range(len(data)):
        assert same(data[:length]) == "truncated"


def test_lengths_and_numbers_of_sections_that_cannot_be(packs, data, same, faults):
    put = faults.put
    for more in (b"\0", bytes(16), b"TWIN" * 100):
        assert same(data + more) == "length"
    for size in (40, 8):
        assert same(put(data, "I", 8, size)) == "length"
    cut = data[:-8]
    assert same(put(cut, "I", 8, len(cut))) == "length"
    for count in (0, 33, 65535):
        assert same(packs.repair(put(data, "H", 6, count))) == "header"
    # A table that leaves the file.
    assert same(packs.repair(put(put(data[:64], "I", 8, 64), "H", 6, 2))) == "header"


def test_header_fields_and_section_entries(packs, data, same, faults):
    for code, at, values in faults.HEADER_FAULTS:
        assert same(packs.repair(faults.put(data, code, at, *values))) == "header"
    for fault in faults.ENTRY_FAULTS.values():
        assert same(packs.repair(fault(data))) == "section"
    for kind in (0, 10, 31, 32, 32767, 32768, 65535):  # one that is unknown and optional is skipped
        assert same(packs.repair(faults.put(data, "HH", faults.METADATA, kind, 0))) == "ok"


# Settings under which the pack of these faults is supported; the last are those of an Uno.
CONFIGURATIONS = {
    "no floats": ("-DTWIN_FLOAT=0",),
    "no 16 bits": ("-DTWIN_INT16=0",),
    "as on an Uno": (
        *("-DTWIN_INTERVALS=0", "-DTWIN_QUICK_OPEN=0", "-DTWIN_OPEN_STEPS=0"),
        *("-DTWIN_PARTIAL=0", "-DTWIN_STORE=0", "-DTWIN_TEXT=0"),
    ),
}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(one, id=name, marks=[pytest.mark.slow] * (name != "as on an Uno"))
        for name, one in CONFIGURATIONS.items()
    ],
)
def test_all_configurations_refuse_the_same(
    packs, data, native, tmp_path, settings, faults, expected
):
    options = (*native.SHARED, "-shared", "-DTWIN_HOST=0", "-DTWIN_BLOCK=1", *settings)
    path = native.compile_c(tmp_path / "libtwin.so", *options, sources=native.PORTABLE)
    library, put = native.load(path), faults.put
    wrong = [fault(data) for fault in faults.ENTRY_FAULTS.values()]
    wrong += [put(data, code, at, *values) for code, at, values in faults.HEADER_FAULTS]
    for _, code, place, values in faults.CONTENT_FAULTS.values():
        wrong.append(
            put(data, code, place(data), *(values if isinstance(values, tuple) else (values,)))
        )
    for number, content in enumerate([data, data[:-16], *map(packs.repair, wrong)]):
        assert native.Native(library, content).status == expected(content), number
    q = np.ones((1, 2), np.int16)
    found = native.Native(library, data).predict_raw(q)[-1]
    assert found.tolist() == reference.evaluate_raw(read_pack(data), q).estimates.tolist()
    wide = write_pack(packs.random_pack(np.random.default_rng(1), dtype=np.int16))
    status = native.Native(library, wide).status
    assert status == ("unsupported" if "-DTWIN_INT16=0" in settings else "ok")


def test_contents(packs, data, same, faults):
    for name, (_, code, place, values) in faults.CONTENT_FAULTS.items():
        values = values if isinstance(values, tuple) else (values,)
        found = same(packs.repair(faults.put(data, code, place(data), *values)))
        assert (found == "ok") == ("metadata" in name), name  # which C does not read


def test_the_last_sum_that_fits_passes(packs, data, same, faults):
    put, offset_of = faults.put, faults.offset_of
    kernel = read_pack(data).twins[0].layers[0].kernel[0].astype(int)
    most = 2**31 - 1 - 32767 * int(np.abs(kernel).sum())
    at = offset_of(data, 2) + faults.BIAS
    for bias, code in (
        (most, "ok"),
        (-most, "ok"),
        (most + 1, "overflow"),
        (-most - 1, "overflow"),
    ):
        assert same(packs.repair(put(data, "i", at, bias))) == code
    at = offset_of(data, 2) + faults.OUTPUT
    assert same(packs.repair(put(data, "5h", at, -32768, 1, 0, 0, 0))) == "ok"
    assert same(packs.repair(put(data, "5h", at, -32768, 1, 1, 0, 0))) == "overflow"


@pytest.mark.parametrize(("total", "code"), [(65538, "ok"), (65539, "overflow")])
def test_the_last_weights_that_fit_pass(packs, same, total, code, faults):
    pack = packs.random_pack(
        np.random.default_rng(1), features=2, hidden=(1,), dtype=np.int16, counts=[1], neighbors=0
    )
    layer = pack.twins[0].layers[0]
    layer.kernel[:], layer.bias[:] = [[32767, -32768, 1, 2]], 0  # 65538, so a bias of 1 passes
    data = bytearray(write_pack(pack))
    at = faults.offset_of(bytes(data), 2) + 16 + 8 + 2
    assert data[at : at + 2] == b"\2\0"
    data[at] += total - 65538
    assert same(packs.repair(data)) == code


def test_mutations_with_good_checksums_are_refused_alike_or_evaluate_alike(
    packs, open_pack, faults, expected
):
    rng = np.random.default_rng(3)
    seen = set()
    for number in range(MUTATIONS):
        if number % 50 == 0:
            pack = packs.random_pack(
                rng,
                features=int(rng.integers(1, 4)),
                hidden=tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4))),
                counts=[2, 1],
                scaled=bool(number // 50 % 2),
            )
            data = write_pack(pack)
        damaged = packs.repair(faults.mutate(rng, data))
        opened = open_pack(damaged)
        assert opened.status == expected(damaged)
        seen.add(opened.status)
        if opened.status == "ok" and number % 10 == 0:
            changed = read_without_metadata(packs, damaged)
            q = rng.integers(-32767, 32768, (2, changed.features)).astype(np.int16)
            right = reference.evaluate_raw(changed, q)
            mean, root, _, estimates = opened.predict_raw(q)
            assert estimates.tolist() == right.estimates.tolist()
            assert mean.tolist() == right.raw_mean.tolist()
            assert root.tolist() == right.raw_spread.tolist()
    assert seen >= {"ok", "header", "section", "padding", "value", "overflow"}


def read_without_metadata(packs, data):
    """Read a pack whose metadata may be damaged: as a section of no known kind."""
    data = bytearray(data)
    for at in range(48, 48 + 12 * data[6], 12):
        if data[at : at + 2] == b"\6\0":
            data[at : at + 2] = b"\0\xc0"
    return read_pack(packs.repair(data))


def test_random_bytes_behind_a_good_header(packs, same):
    rng = np.random.default_rng(2)
    for length in range(48, 1024, 16):
        data = bytearray(rng.bytes(length))
        data[:12] = (
            b"TWIN\1\0" + bytes([int(rng.integers(1, 33)), 0]) + length.to_bytes(4, "little")
        )
        assert same(packs.repair(data)) != "ok"


def test_only_a_multiple_of_four_is_an_address_for_a_pack(data, open_pack):
    q = np.ones((1, 2), np.int16)
    for start in (1, 2, 3):
        assert open_pack(data, start=start).status == "alignment"
    for start in (4, 8, 12):
        shifted = open_pack(data, start=start)
        assert shifted.predict_raw(q)[-1].tolist() == open_pack(data).predict_raw(q)[-1].tolist()
