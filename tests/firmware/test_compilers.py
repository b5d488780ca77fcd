"""The bits do not depend on the compiler, its optimisation, or the size of a block."""

import platform

import numpy as np
import pytest

from twinedge.pack import write_pack

# Name: compiler and options.
BUILDS = {
    "gcc": ("gcc", "-O2"),
    "clang": ("clang", "-O3"),
    "blocks of three": ("gcc", "-O1", "-DTWIN_BLOCK=3", "-DTWIN_PARTIAL=0"),
    "bytes composed, as if big-endian": (
        *("gcc", "-O1"),
        *("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321"),
    ),
}
MORE_BUILDS = {
    **{
        f"{compiler} {level}": (compiler, level)
        for compiler in ("gcc", "clang")
        for level in ("-O0", "-O2", "-O3", "-Os")
        if (compiler, level) not in BUILDS.values()
    },
    "blocks of one": ("gcc", "-O2", "-DTWIN_BLOCK=1"),
    "fused": ("gcc", "-O2", "-ffp-contract=fast", "-std=gnu99"),
    "freestanding": ("gcc", "-O2", "-ffreestanding", "-DTWIN_BLOCK=2"),
}


def check(replay, build):
    compiler, *options = build
    wrong, total = replay.mismatches(replay.build(*options, compiler=compiler))
    assert wrong == 0
    assert total > 40_000


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDS)
def test_a_build_has_the_bits_of_the_reference(replay, name):
    check(replay, BUILDS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE_BUILDS)
def test_more_builds_have_the_bits_of_the_reference(replay, name):
    check(replay, MORE_BUILDS[name])


@pytest.mark.parametrize(
    ("compiler", "flag"),
    [
        ("gcc", "-ffast-math"),
        ("gcc", "-ffinite-math-only"),
        ("gcc", "-funsafe-math-optimizations"),
        ("gcc", "-freciprocal-math"),
        ("gcc", "-fno-signed-zeros"),
        ("clang", "-ffast-math"),
        ("clang", "-ffinite-math-only"),  # clang does not report the others
    ],
)
def test_flags_that_change_bits_are_refused(native, tmp_path, compiler, flag):
    options, source = ("-fsyntax-only", flag), native.FIRMWARE / "src" / "twin_edge.c"
    with pytest.raises(AssertionError, match=r"changes? (the bits|what infinity)"):
        native.compile_c(tmp_path / "none", *options, compiler=compiler, sources=[source])


def test_nan_is_found_where_a_compiler_believes_that_there_is_none(
    native, objects, small, tmp_path
):
    # The check itself, without the code that refuses the flag: it looks at bits.
    options = ("-O3", "-fPIC", "-shared", "-DTWIN_HOST=0")
    believing = ("-ffinite-math-only", "-U__FINITE_MATH_ONLY__", "-w")
    sources = [path for path in objects(*native.SHARED) if path.stem != "twin_edge"]
    sources.append(native.FIRMWARE / "src" / "twin_edge.c")
    path = native.compile_c(tmp_path / "finite.so", *options, *believing, sources=sources)
    opened = native.Native(native.load(path), write_pack(small))
    status, run = opened.begin("twin_begin", np.array([0, np.nan], np.float32))
    assert status == "query"
    assert opened.step(run, 65535) == 0


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O2", "-O0"])
@pytest.mark.parametrize("standard", ["gnu99", "c99"])
def test_more_digits_than_a_float_has_are_not_kept(short_replay, standard, level):
    # The x87 computes with 64 bits, and GNU C keeps them unless told otherwise.
    options = (level, "-mfpmath=387", f"-std={standard}")
    here = platform.machine() == "x86_64"
    triplet = "x86_64-linux-gnu"
    program = short_replay.build(*options, compiler="gcc" if here else f"{triplet}-gcc")
    emulator = () if here else ("qemu-x86_64", "-L", f"/usr/{triplet}")
    wrong, _ = short_replay.mismatches(program, *emulator)
    assert wrong == 0


# What other compilers than GNU's lack: gcc without extensions, and a real one.
FOREIGN = ("-U__GNUC__", "-U__clang__", "-D__inline=inline")


@pytest.mark.parametrize(
    "compiler",
    [
        "-D__ICCARM__=1",
        pytest.param("-D_MSC_VER=1930", marks=pytest.mark.slow),
        pytest.param("-D__none__", marks=pytest.mark.slow),
    ],
)
def test_a_compiler_that_is_not_gnu_has_the_portable_kernel(native, tmp_path, compiler):
    kernels = [path for path in native.SOURCES if path.name.startswith("kernel_")]
    options = ("-std=c99", *native.INCLUDES, "-c", *FOREIGN, compiler)
    native.run("gcc", *options, *kernels, cwd=tmp_path)
    for path in kernels:
        symbols = native.run("nm", "--defined-only", tmp_path / f"{path.stem}.o").split()
        assert bool(symbols) == (path.stem == "kernel_portable")


def test_armclang_has_the_portable_kernel(native, tmp_path):
    # It also claims to be GNU and clang.
    cortex = ("--target=arm-none-eabi", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard")
    options = ("-ffreestanding", "-D__ARMCC_VERSION=6210000", "-c")
    source = native.FIRMWARE / "src"
    for path in (source / "kernels" / "kernel_dsp.c", source / "twin_open.c"):
        output = tmp_path / f"{path.stem}.o"
        native.compile_c(output, *cortex, *options, compiler="clang", sources=[path])
    assert native.run("nm", "--defined-only", tmp_path / "kernel_dsp.o").split() == []
    assert "twini_kernel_portable" in native.run("nm", tmp_path / "twin_open.o")


def test_tiny_c_compiles_it_and_gives_the_same_bits(replay, native):
    # A compiler without GNU builtins, attributes or intrinsics.
    sources = [*native.SOURCES, native.FIRMWARE / "test" / "replay.c"]
    program = replay.folder / "replay-tcc"
    native.run("tcc", *native.INCLUDES, "-Wall", "-Werror", *sources, "-o", program)
    wrong, _ = replay.mismatches(program)
    assert wrong == 0
