"""The arithmetic that the ESP8266 has in ROM, and its port in a file, is correct."""

import ctypes
import subprocess
from itertools import product

import numpy as np
import pytest

from twinedge_export.boards import port_named

FLOAT, WORD, LONG = ctypes.c_float, ctypes.c_uint32, ctypes.c_uint64

# Zero, the smallest and the largest subnormal, the smallest normal, 1, 1.5, neighbors of a tie, the
# largest, infinity, NaN; and random bits.
SPECIAL = [
    *(0, 1, 2, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF),
    *(0x33800000, 0x33800001, 0x34000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000),
    *(0x4B7FFFFF, 0x4B800000, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def pairs(rng, count=20_000):
    """Bits of numbers of all sizes, of numbers of about the same size, and of special ones."""
    special = np.array([*SPECIAL, *(bits | 1 << 31 for bits in SPECIAL)], np.uint32)
    first, second = rng.integers(0, 1 << 32, (2, 2 * count), np.uint32)
    near = (first[count:] & 0xFF800000) + rng.integers(0, 1 << 24, count, np.uint32)
    second[count:] = near ^ (second[count:] & 1 << 31)
    listed = np.array(list(product(special, special)), np.uint32).T
    return np.hstack([listed, [first, second]])


@pytest.fixture(scope="module")
def rom(tmp_path_factory):
    """Return a function of the file by name, result and arguments."""
    library = tmp_path_factory.mktemp("rom") / "rom.so"
    source = port_named("esp8266").folder / "rom.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))

    def named(name, result, *arguments):
        function = loaded[name]
        function.restype, function.argtypes = result, arguments
        return function

    return named


def same_floats(found, expected):
    """Whether bits are the same; one NaN is as good as another."""
    found, nan = np.array(found, np.float32), np.isnan(expected)
    assert np.array_equal(np.isnan(found), nan)
    return np.array_equal(found[~nan].view(np.uint32), expected[~nan].view(np.uint32))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("__addsf3", np.add), ("__subsf3", np.subtract), ("__mulsf3", np.multiply)],
)
def test_floats_are_rounded_as_everywhere(rom, rng, name, expected):
    a, b = pairs(rng).view(np.float32)
    function = rom(name, FLOAT, FLOAT, FLOAT)
    with np.errstate(all="ignore"):
        wanted = expected(a, b)
    assert same_floats([function(x, y) for x, y in zip(a, b, strict=True)], wanted)


def test_floats_become_whole_numbers_towards_zero(rom, rng):
    a = np.hstack(pairs(rng))[:40_000].view(np.float32)
    a = np.hstack([a[~np.isnan(a)], rng.uniform(-2, 2**32, 1000).astype(np.float32)])
    function = rom("__fixunssfsi", WORD, FLOAT)
    right = np.trunc(np.clip(a.astype(float), 0, 2**32 - 1)).astype(np.uint32)
    assert [function(one) for one in a] == right.tolist()


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [("__floatsisf", ctypes.c_int32, np.int32), ("__floatunsisf", WORD, np.uint32)],
)
def test_integers_become_the_nearest_floats(rom, rng, name, kind, dtype):
    a = np.hstack(pairs(rng))
    a = np.hstack([a, a >> rng.integers(0, 32, len(a), np.uint32)]).view(dtype)
    function = rom(name, FLOAT, kind)
    assert same_floats([function(int(x)) for x in a], a.astype(np.float32))


def test_integers_are_multiplied_and_divided(rom, rng):
    a, b = pairs(rng)
    b = np.maximum(b >> rng.integers(0, 32, len(b), np.uint32), 1)
    divide, rest = (rom(name, WORD, WORD, WORD) for name in ("__udivsi3", "__umodsi3"))
    multiply = rom("__muldi3", LONG, LONG, LONG)
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        assert (divide(x, y), rest(x, y)) == divmod(x, y)
        high, low = x * y, y << 32 | x
        assert multiply(x, y) == high
        assert multiply(high, low) == high * low & 0xFFFFFFFFFFFFFFFF
