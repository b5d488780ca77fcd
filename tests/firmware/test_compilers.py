"""The bits do not depend on the compiler, its optimisation, or the size of a block."""

import platform

import numpy as np
import pytest

from twinedge.pack import write_pack


@pytest.fixture(scope="module")
def emulated_replay(make_replay):
    """Few queries: an emulated x87 is slow."""
    return make_replay(20)


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_and_levels(short_replay, compiler, level):
    wrong, total = short_replay.mismatches(short_replay.build(level, compiler=compiler))
    assert wrong == 0
    assert total > 40_000


@pytest.mark.parametrize(
    "options",
    [
        ("-DTWIN_BLOCK=1",),
        ("-DTWIN_BLOCK=2",),
        ("-DTWIN_BLOCK=3", "-DTWIN_PARTIAL=0"),
        ("-ffp-contract=fast", "-std=gnu99"),
        ("-ffreestanding", "-DTWIN_BLOCK=2"),
    ],
    ids=" ".join,
)
def test_blocks_and_flags(short_replay, options):
    wrong, _ = short_replay.mismatches(short_replay.build("-O2", *options))
    assert wrong == 0


def test_bytes_are_composed_where_loads_are_not_known_to_fit(short_replay):
    # As on a big-endian machine.
    program = short_replay.build("-O2", "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321")
    wrong, _ = short_replay.mismatches(program)
    assert wrong == 0


@pytest.mark.parametrize(
    "flag",
    [
        "-ffast-math",
        "-ffinite-math-only",
        "-funsafe-math-optimizations",
        "-freciprocal-math",
        "-fno-signed-zeros",
    ],
)
def test_flags_that_change_bits_are_refused(short_replay, flag):
    with pytest.raises(AssertionError, match="#error"):
        short_replay.build("-O2", "-fsyntax-only", flag)


def test_clang_refuses_them_as_far_as_it_tells(short_replay):
    for flag in ("-ffast-math", "-ffinite-math-only"):
        with pytest.raises(AssertionError, match="error: "):
            short_replay.build("-O2", "-fsyntax-only", flag, compiler="clang")


def test_nan_is_found_where_a_compiler_believes_that_there_is_none(short_replay, native, small):
    # The check itself, without the code that refuses the flag: it looks at bits.
    options = ("-O3", "-fPIC", "-shared", "-DTWIN_HOST=0", "-ffinite-math-only")
    library = native.load(
        native.compile_c(
            short_replay.folder / "finite.so", *options, "-U__FINITE_MATH_ONLY__", "-w"
        )
    )
    opened = native.Native(library, write_pack(small))
    status, run = opened.begin("twin_begin", np.array([0, np.nan], np.float32))
    assert status == "query"
    assert opened.step(run, 65535) == 0


@pytest.mark.parametrize("standard", ["gnu99", "c99"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_more_digits_than_a_float_has_are_not_kept(emulated_replay, standard, level):
    # The x87 computes with 64 bits, and GNU C keeps them unless told otherwise.
    options = (level, "-mfpmath=387", f"-std={standard}")
    here = platform.machine() == "x86_64"
    triplet = "x86_64-linux-gnu"
    program = emulated_replay.build(*options, compiler="gcc" if here else f"{triplet}-gcc")
    emulator = () if here else ("qemu-x86_64", "-L", f"/usr/{triplet}")
    wrong, _ = emulated_replay.mismatches(program, *emulator)
    assert wrong == 0


# What other compilers than GNU's lack: gcc without extensions, and a real one.
FOREIGN = ("-U__GNUC__", "-U__clang__", "-D__inline=inline")


@pytest.mark.parametrize("options", [(), ("-D__ICCARM__=1",), ("-D_MSC_VER=1930",)], ids=str)
def test_a_compiler_that_is_not_gnu_takes_the_portable_kernel(native, tmp_path, options):
    options = ("-O2", "-c", "-Wno-undef", *FOREIGN, *options)
    for source in native.SOURCES:
        output = tmp_path / f"{source.stem}.o"
        native.compile_c(output, *options, sources=[source])
        symbols = native.run("nm", "--defined-only", output)
        if source.name.startswith("kernel_") and source.name != "kernel_portable.c":
            assert symbols.split() == []


def test_armclang_takes_the_portable_kernel(native, tmp_path):
    # It also claims to be GNU and clang.
    cortex = ("--target=arm-none-eabi", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard")
    options = ("-ffreestanding", "-D__ARMCC_VERSION=6210000", "-O2", "-c")
    for source in native.SOURCES:
        output = tmp_path / f"{source.stem}.o"
        native.compile_c(output, *cortex, *options, compiler="clang", sources=[source])
    assert native.run("nm", "--defined-only", tmp_path / "kernel_dsp.o").split() == []
    assert "twini_kernel_portable" in native.run("nm", tmp_path / "twin_open.o")


def test_tiny_c_compiles_it_and_gives_the_same_bits(short_replay, native):
    # A compiler without GNU builtins, attributes or intrinsics.
    sources = [*native.SOURCES, native.FIRMWARE / "test" / "replay.c"]
    program = short_replay.folder / "replay-tcc"
    native.run("tcc", *native.INCLUDES, "-Wall", "-Werror", *sources, "-o", program)
    wrong, _ = short_replay.mismatches(program)
    assert wrong == 0
