"""Every setting of twin_config.h: what is left out is refused, and the rest still predicts."""

import ctypes
import struct
import zlib

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference

SETTINGS = {
    "TWIN_FLOAT": (),
    "TWIN_NEIGHBORS": ("neighbors", "one-neighbor"),
    "TWIN_SILU": ("three-layers", "any-weights"),
    "TWIN_INT16": ("relu-int16", "64-features-int16"),
    "TWIN_MAP": ("mapped-relu", "mapped-silu-curved"),
    "TWIN_TARGET_CURVE": ("curved", "mapped-silu-curved"),
    "TWIN_TEXT": (),
    "TWIN_PARTIAL": (),
    "TWIN_OPEN_STEPS": (),
    "TWIN_QUICK_OPEN": (),
    "TWIN_INTERVALS": (),
    "TWIN_STORE": (),
}


@pytest.mark.slow  # quickly, all are off at once, below
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_that_is_off(native, packs, cases, tmp_path, setting):
    options = ("-fPIC", "-shared", "-DTWIN_HOST=0", f"-D{setting}=0")
    path = native.compile_c(tmp_path / "lib.so", *options, sources=native.PORTABLE)
    library = native.load(path)
    for name in SETTINGS[setting]:
        pack = cases.draw(packs, name)
        assert native.Native(library, write_pack(pack)).status == "unsupported"
    pack = cases.draw(packs, "odd-widths")
    q = np.random.default_rng(0).integers(-32767, 32768, (20, pack.features)).astype(np.int16)
    found = native.Native(library, write_pack(pack)).predict_raw(q)
    assert found[-1].tolist() == reference.evaluate_raw(pack, q).estimates.tolist()


@pytest.mark.slow
def test_with_either_kind_of_curve_or_none(native, packs, cases, tmp_path):
    names = ("mapped-relu", "curved", "mapped-silu-curved", "odd-widths")
    made = {name: cases.draw(packs, name) for name in names}
    for left_out in ((), ("MAP",), ("TARGET_CURVE",), ("MAP", "TARGET_CURVE")):
        options = ("-fPIC", "-shared", "-DTWIN_HOST=0", *(f"-DTWIN_{one}=0" for one in left_out))
        path = native.compile_c(
            tmp_path / "-".join(["lib", *left_out]), *options, sources=native.PORTABLE
        )
        library = native.load(path)
        for name, pack in made.items():
            needed = {"MAP": pack.map, "TARGET_CURVE": pack.target_curve}
            lacking = any(needed[one] is not None for one in left_out)
            status = native.Native(library, write_pack(pack)).status
            assert status == ("unsupported" if lacking else "ok"), (left_out, name)


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.slow)])
def test_everything_off_at_once_is_smaller(native, tmp_path, compiler):
    options = ("-Os", "-fPIC", "-shared", "-DTWIN_HOST=0")
    off = [f"-D{setting}=0" for setting in SETTINGS]
    build = {"compiler": compiler, "sources": native.PORTABLE}
    whole = native.compile_c(tmp_path / "whole.so", *options, **build)
    least = native.compile_c(tmp_path / "least.so", *options, *off, **build)
    sizes = [int(native.run("size", path).split("\n")[1].split()[0]) for path in (whole, least)]
    assert sizes[1] < 0.75 * sizes[0]
    exported = native.run("nm", "-D", "--defined-only", least)
    assert "twin_predict_raw" in exported
    for gone in (
        "twin_predict\n",
        "twin_text",
        "twini_seek",
        "twin_set_neighbors",
        "twin_open_step",
        "twin_watch_begin",
        "twin_store_open",
        "twin_learn",
        "twini_map",
        "twin_target_raw",
    ):
        assert gone not in exported


CRC_C = """
#include "twin.h"
unsigned calls;
uint32_t board_crc(uint32_t crc, twin_flash at, uint32_t size) {
    uint32_t i;
    calls += (uintptr_t)at % 4 == 0 && size % 4 == 0;
    for (crc = ~crc; size--; at++)
        for (crc ^= *at, i = 0; i < 8; i++)
            crc = (crc >> 1) ^ (0xEDB88320u & (0 - (crc & 1)));
    return ~crc;
}
"""


@pytest.mark.parametrize("block", [0, -1, 256])
def test_impossible_blocks_do_not_compile(native, tmp_path, block):
    options, source = ("-c", f"-DTWIN_BLOCK={block}"), native.SOURCES[-1]
    with pytest.raises(AssertionError, match="TWIN_BLOCK must be 1 to 255"):
        native.compile_c(tmp_path / "open.o", *options, sources=[source])


LARGE_C = """
#include "twin.h"
#include <stdio.h>
#include <sys/mman.h>
#include <fcntl.h>

/* Of nothing but zeros after the pack proper: not read, as that would take minutes. */
uint32_t sum(uint32_t crc, twin_flash at, uint32_t size);
uint32_t sum(uint32_t crc, twin_flash at, uint32_t size) {
    (void)crc, (void)at, (void)size;
    return 12345;
}

int main(int argc, char **argv) {
    uint32_t size = 0xFFFFFFF0u;
    void *pack = mmap(0, size, PROT_READ, MAP_PRIVATE, open(argv[argc - 1], O_RDONLY), 0);
    twin_model model;
    printf("%d", (int)twin_open(&model, pack, size));
    return 0;
}
"""


def test_a_pack_of_four_gigabytes_opens(native, packs, small, tmp_path):
    """With a long section for private use at its end; the file is sparse."""
    length = 0xFFFFFFF0
    data = bytearray(write_pack(small, metadata=False))
    count = int.from_bytes(data[6:8], "little")
    offsets = [int.from_bytes(data[at : at + 4], "little") for at in range(52, 48 + 12 * count, 12)]
    table, shift = 48 + 12 * count, offsets[0] - (48 + 12 * count)
    behind = -(-(table + 12) // 16) * 16  # where sections begin with one more in the table
    entries = b"".join(
        data[48 + 12 * k : 52 + 12 * k]
        + (offsets[k] + behind - offsets[0]).to_bytes(4, "little")
        + data[56 + 12 * k : 60 + 12 * k]
        for k in range(count)
    )
    end = behind + len(data) - offsets[0]
    entries += struct.pack("<HHII", 40000, 0, end, length - end)
    made = bytearray(data[:48] + entries)
    made[6:8] = (count + 1).to_bytes(2, "little")
    made[8:12] = length.to_bytes(4, "little")
    made[12:20] = struct.pack("<II", 0, 12345)
    made[12:16] = zlib.crc32(made).to_bytes(4, "little")
    made += bytes(behind - len(made)) + data[offsets[0] :]
    assert shift >= 0
    with (tmp_path / "large.twin").open("wb") as file:
        file.write(made)
        file.truncate(length)
    (tmp_path / "large.c").write_text(LARGE_C)
    flags = ("-DTWIN_HOST=0", "-DTWIN_CRC=sum", "-D_DEFAULT_SOURCE")
    sources = [*native.PORTABLE, tmp_path / "large.c"]
    built = native.compile_c(tmp_path / "large", *flags, sources=sources)
    assert native.run(built, tmp_path / "large.twin") == "0"


def test_a_checksum_by_the_hardware(native, packs, cases, tmp_path):
    (tmp_path / "crc.c").write_text(CRC_C)
    options = ("-fPIC", "-shared", "-DTWIN_HOST=0", "-DTWIN_CRC=board_crc")
    sources = [*native.PORTABLE, tmp_path / "crc.c"]
    library = native.load(native.compile_c(tmp_path / "lib.so", *options, sources=sources))
    calls = ctypes.c_uint.in_dll(library, "calls")
    data = write_pack(cases.draw(packs, "odd-widths"))
    for step, expected in ((None, 1), (100, -(-len(data) // 100))):
        calls.value = 0
        assert native.Native(library, data, step=step).status == "ok"
        assert expected - 1 <= calls.value <= expected  # the runtime sums the header itself
    damaged = bytearray(data)
    damaged[-1] ^= 1
    assert native.Native(library, damaged).status == "body_crc"
