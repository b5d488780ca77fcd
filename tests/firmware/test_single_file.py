"""The runtime as one file compiles wherever the separate files do, and computes the same bits."""

import platform
import re
import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference
from twinedge_export.amalgamation import write_amalgamation

HERE = platform.machine()
TRIPLETS = {"aarch64": "aarch64-linux-gnu", "x86_64": "x86_64-linux-gnu"}
LISTED = runpy.run_path(str(Path(__file__).parent / "library.py"))["HOST_KERNELS"]


def kernels_of(machine):
    return (*(name for name, one in LISTED.items() if machine in one.machines), "portable")


KERNELS = [name for name in kernels_of(HERE) if name not in LISTED or LISTED[name].relu]

# Flags of a device, and its kernel in assembly.
DEVICES = {
    "cortex-m0": ("arm-none-eabi-gcc", ("-mcpu=cortex-m0", "-mthumb"), "thumb"),
    "cortex-m3": ("arm-none-eabi-gcc", ("-mcpu=cortex-m3", "-mthumb"), "thumb"),
    "cortex-m4": ("arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb"), "dsp"),
    "cortex-m55": (
        *("arm-none-eabi-gcc", ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard")),
        "helium",
    ),
    "atmega328p": ("avr-gcc", ("-mmcu=atmega328p",), None),
    "atmega2560": ("avr-gcc", ("-mmcu=atmega2560", "-DTWIN_FLASH=2"), None),
}
SETTINGS = [
    ("-DTWIN_HOST=0",),
    ("-DTWIN_HOST=0", "-DTWIN_BLOCK=1", "-DTWIN_PARTIAL=0", "-DTWIN_TEXT=0"),
    ("-DTWIN_FLOAT=0", "-DTWIN_NEIGHBORS=0", "-DTWIN_OPEN_STEPS=0"),
    ("-DTWIN_SILU=0", "-DTWIN_INT16=0", "-DTWIN_QUICK_OPEN=0", "-DTWIN_STORE=0"),
]

# replay.c, with the kernel that the environment names.
PICKING_C = """
#include "twin.h"
#include <stdlib.h>
#include <string.h>
static twin_status open_and_pick(twin_model *model, twin_pack pack, uint32_t size) {
    const char *wanted = getenv("KERNEL"), *name;
    twin_status status = twin_open(model, pack, size);
    unsigned number = 0;
    if (status)
        return status;
    while ((name = twin_kernel_name(model, number)) && strcmp(wanted, name))
        number++;
    return twin_set_kernel(model, name ? number : 0); /* it may not be for 16-bit weights */
}
#undef twin_open
#define twin_open open_and_pick
#include "REPLAY"
"""


@pytest.fixture(scope="module")
def single(native, tmp_path_factory):
    """Folder with both files, and a program that replays."""
    folder = tmp_path_factory.mktemp("single")
    write_amalgamation(folder)
    replay = native.FIRMWARE / "test" / "replay.c"
    (folder / "picking.c").write_text(PICKING_C.replace("REPLAY", str(replay)))
    (folder / "twin_host.h").write_text('#include "twin.h"\n')  # included by replay.c
    return folder


@pytest.fixture(scope="module")
def compiled(native, single):
    """Compile twin.c, once for the same options; no other header can be found."""

    @cache
    def make(options, compiler, standard):
        output = single / f"{compiler}{''.join(options)}.o".replace("/", "_")
        words = (f"-std={standard}", *native.WARNINGS, *options, "-c", "twin.c", "-o", output)
        native.run(compiler, *words, cwd=single)
        return output

    # An explicit default equals an implicit one.
    return lambda *options, compiler="gcc", standard="c99": make(options, compiler, standard)


@pytest.fixture(scope="module")
def program(native, single, compiled):
    """Link it with a program that replays."""

    @cache
    def call(compiler):
        output = single / f"replay-{compiler}"
        runtime = compiled("-O1", "-fPIC", compiler=compiler)
        native.run(compiler, "-O1", "-I.", "picking.c", runtime, "-o", output, cwd=single)
        return output

    return call


@pytest.fixture(scope="module")
def library(native, single, compiled):
    native.run("gcc", "-shared", compiled("-O1", "-fPIC"), "-o", single / "libtwin.so")
    return native.load(single / "libtwin.so")


@pytest.fixture(scope="module")
def separate(native, objects, tmp_path_factory):
    """Shared library of the separate files."""
    path = tmp_path_factory.mktemp("separate") / "libtwin.so"
    return native.compile_c(path, "-shared", sources=objects(*native.USUAL, host=True))


@pytest.fixture(scope="module")
def small_replay(make_replay):
    return make_replay(30)


# What gcc warns of depends on its optimiser; what clang warns of does not.
@pytest.mark.slow  # quickly, devices compile it
@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        *(("gcc", options) for options in (("-O0",), ("-O1", "-fPIC"), ("-O2",))),
        ("clang", ("-O0",)),
    ],
    ids=str,
)
def test_no_warning(compiled, compiler, options):
    compiled(*options, compiler=compiler)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_no_warning_as_cpp(compiled, compiler):
    compiled("-xc++", compiler=compiler, standard="c++17")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warning_on_the_other_machine(compiled, compiler):
    triplet = next(TRIPLETS[machine] for machine in TRIPLETS if machine != HERE)
    if compiler == "clang":
        compiled(f"--target={triplet}", f"-I/usr/{triplet}/include", compiler="clang")
    else:
        compiled("-O2", "-fPIC", compiler=f"{triplet}-gcc")


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
def test_no_warning_with_other_settings(compiled, settings):
    compiled(*settings)


def public(native, path, *options, tool="nm"):
    """Names that a file exports, without their settings, and those that it needs."""
    lines = native.run(tool, "--format=posix", *options, path).splitlines()
    symbols = [line.split()[:2] for line in lines]
    shown = {name for name, kind in symbols if kind.isupper() and kind != "U"}
    needed = {name for name, kind in symbols if kind == "U"}
    return {re.sub(r"_v\d+_.*", "", name) for name in shown}, needed


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(one, marks=[pytest.mark.slow] * (one not in ("cortex-m4", "atmega328p")))
        for one in DEVICES
    ],
)
def test_devices_compile_it_and_see_public_names_only(native, compiled, device):
    compiler, options, assembly = DEVICES[device]
    path = compiled(*options, "-Os", compiler=compiler)
    shown, _ = public(native, path, tool=re.sub("gcc$", "nm", compiler))
    assert "twin_open" in shown
    others = {name for name in shown if not name.startswith("twin_")}
    assert bool(others) == bool(assembly)
    assert all(name.startswith(f"twini_{assembly}_") for name in others)
    if assembly:
        symbols = native.run("arm-none-eabi-readelf", "--symbols", "--wide", path)
        lines = [line for line in symbols.splitlines() if any(name in line for name in others)]
        assert all("HIDDEN" in line for line in lines if "GLOBAL" in line)


def test_assembly_is_found_from_cpp(native, compiled):
    _, options, _ = DEVICES["cortex-m4"]
    path = compiled("-xc++", *options, compiler="arm-none-eabi-g++", standard="c++17")
    _, needed = public(native, path, tool="arm-none-eabi-nm")
    assert {name for name in needed if "twin" in name} == set()


@pytest.mark.slow
def test_it_shows_and_needs_what_the_separate_files_do(native, single, library, separate):
    shown, needed = public(native, single / "libtwin.so", "--dynamic")
    shown_apart, needed_apart = public(native, separate, "--dynamic")
    assert shown == shown_apart
    assert {"twin_open", "twin_predict", "twin_set_kernel"} <= shown
    assert needed <= needed_apart  # a compiler that sees all of it may expand every memcpy


@pytest.mark.slow
def test_nothing_is_global_but_what_is_public(native, compiled, library, single):
    shown, _ = public(native, single / "libtwin.so", "--dynamic")
    assert public(native, compiled("-O1", "-fPIC"))[0] == shown


@pytest.mark.slow
def test_programs_may_have_the_separate_headers_and_the_other_way_round(
    native, single, compiled, separate, tmp_path
):
    # They are the same functions under the same names, settings included.
    text = (native.FIRMWARE / "example" / "main.c").read_text()
    assert text.count('"twin_release.h"') == 1  # the single header has it
    main = tmp_path / "main.c"
    for headers, header, runtime in (
        (native.FIRMWARE / "include", "twin_release.h", compiled("-O1", "-fPIC")),
        (single, "twin.h", separate),
    ):
        main.write_text(text.replace("twin_release.h", header))
        native.run("gcc", f"-I{headers}", main, runtime, "-o", tmp_path / "example")


@pytest.mark.slow
def test_kernels_are_offered_as_by_the_separate_files(native, library, separate, packs):
    for dtype in (np.int8, np.int16):
        data = write_pack(packs.random_pack(np.random.default_rng(3), dtype=dtype))
        opened = [native.Native(one, data) for one in (library, native.load(separate))]
        assert opened[0].kernels() == opened[1].kernels()
        assert set(opened[0].kernels()) <= set(KERNELS)


def assert_same_bits(native, library, packs, cases, seed, count):
    """Check that all kernels of a library compute the bits of the reference; return them."""
    rng = np.random.default_rng([51, seed])
    seen = set()
    for number in range(count):
        pack = packs.random_pack(rng)
        opened = native.Native(library, write_pack(pack))
        x = cases.queries(pack, 20, number)
        expected = reference.evaluate(pack, x)
        for kernel in opened.kernels():
            opened.set_kernel(kernel)
            mean, spread, estimates = opened.predict(x)
            np.testing.assert_array_equal(estimates, expected.estimates)
            np.testing.assert_array_equal(mean.view(np.uint32), expected.mean.view(np.uint32))
            np.testing.assert_array_equal(spread.view(np.uint32), expected.spread.view(np.uint32))
            seen.add(kernel)
    return seen


@pytest.mark.slow
def test_every_kernel_of_this_machine_gives_the_bits_of_the_reference(
    native, library, packs, cases
):
    seen = assert_same_bits(native, library, packs, cases, 0, 24)
    assert "portable" in seen
    assert HERE not in TRIPLETS or len(seen) > 1


@pytest.mark.slow
def test_kernels_of_x86_64_by_functions_for_their_instructions(
    native, single, packs, cases, tmp_path
):
    # See test_kernels.py for what that proves. All of them are reported as available.
    words = (*native.EMULATED_X86, "-D__builtin_cpu_supports(name)=1")
    path = tmp_path / "libtwin.so"
    native.run("gcc", "-O1", "-fPIC", "-shared", *words, single / "twin.c", "-o", path)
    seen = assert_same_bits(native, native.load(path), packs, cases, 0, 40)
    assert seen == set(kernels_of("x86_64"))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_replay(small_replay, program, monkeypatch, compiler, kernel):
    monkeypatch.setenv("KERNEL", kernel)
    wrong, total = small_replay.mismatches(program(compiler))
    assert wrong == 0
    assert total > 10_000


@pytest.mark.parametrize("kernel", ["avx2", "portable"])
@pytest.mark.slow
def test_replay_on_x86_64(small_replay, program, monkeypatch, kernel):
    # No emulator has AVX-512; vnni is tested above if the processor has it.
    triplet = TRIPLETS["x86_64"]
    here = HERE == "x86_64"
    emulator = ("qemu-x86_64", "-cpu", "max", "-L", "/" if here else f"/usr/{triplet}")
    monkeypatch.setenv("KERNEL", kernel)
    replay = program("gcc" if here else f"{triplet}-gcc")
    wrong, total = small_replay.mismatches(replay, *emulator)
    assert wrong == 0
    assert total > 10_000


def test_tiny_c_compiles_it_and_gives_the_same_bits(small_replay, native, single):
    # A compiler without GNU builtins, attributes or intrinsics.
    replay = native.FIRMWARE / "test" / "replay.c"
    words = (f"-I{single}", "-Wall", "-Werror", single / "twin.c", replay)
    native.run("tcc", *words, "-o", single / "replay-tcc")
    wrong, _ = small_replay.mismatches(single / "replay-tcc")
    assert wrong == 0
