"""Each device gets its kernel, and no other code for layers; kernels in C have the right bits.

On emulated boards, tests/ports compares the bits of all of them, and counts instructions.
"""

import pytest

# A kernel: the compiler that should choose it, and its options.
KERNELS = {
    "helium": ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    "dsp": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
    "thumb": ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb"),
    "avr": ("avr-gcc", "-mmcu=atmega328p"),
    "rv32": ("riscv64-unknown-elf-gcc", "--specs=picolibc.specs", "-march=rv32imc", "-mabi=ilp32"),
    "lx106": ("xtensa-lx106-elf-gcc",),
}
# Cores that are similar, but lack something.
PORTABLE = {
    "rv32 without multiplication": (*KERNELS["rv32"][:2], "-march=rv32iac", "-mabi=ilp32"),
    "rv32 with 16 registers": (*KERNELS["rv32"][:2], "-march=rv32em", "-mabi=ilp32e"),
    "rv64": (*KERNELS["rv32"][:2], "-march=rv64imac", "-mabi=lp64", "-mcmodel=medany"),
    "avr without multiplication": ("avr-gcc", "-mmcu=attiny85"),
    "blocks of one pair": (*KERNELS["rv32"], "-DTWIN_BLOCK=1"),
    "blocks of one pair on Xtensa": ("xtensa-lx106-elf-gcc", "-DTWIN_BLOCK=1"),
    "no partial sums": (*KERNELS["rv32"], "-DTWIN_PARTIAL=0"),
}
# In C, apart from single loops with a C function beside them: these run anywhere.
IN_C = ("rv32", "lx106")
CHECKED = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture
def kernels_in(native, tmp_path):
    """Names of the kernels that a source file refers to or defines: ``kernels_in(path, words)``."""

    def kernels_in(source, compiler, *options):
        output = tmp_path / f"{source.stem}.o"
        words = ("-c", "-fno-lto", *options)
        native.compile_c(output, *words, compiler=compiler, sources=[source])
        symbols = native.run(compiler.replace("gcc", "nm"), output).split()
        return {one.removeprefix("twini_kernel_") for one in symbols if "twini_kernel_" in one}

    return kernels_in


def files(native):
    """Kernel files of devices, by the name of their kernel."""
    found = sorted((native.FIRMWARE / "src" / "kernels").glob("kernel_*.c"))
    return {
        path.stem.removeprefix("kernel_"): path
        for path in found
        if "#ifdef TWIN_KERNEL_" in path.read_text("utf-8")
    }


def test_all_kernels_of_devices_are_listed(native):
    assert set(files(native)) == set(KERNELS)


@pytest.mark.parametrize(
    "kernel",
    [pytest.param(one, marks=[pytest.mark.slow] * (one not in ("dsp", "rv32"))) for one in KERNELS],
)
def test_a_device_has_its_kernel_and_no_other(native, kernels_in, kernel):
    words = (*KERNELS[kernel], "-Os")
    chooser = native.FIRMWARE / "src" / "twin_open.c"
    assert kernels_in(chooser, *words, "-DTWIN_INT16=0") == {kernel}
    assert kernels_in(chooser, *words) == {kernel, "portable"}  # for 16-bit weights
    for name, path in files(native).items():
        assert kernels_in(path, *words) == ({kernel} if name == kernel else set())


@pytest.mark.parametrize("core", PORTABLE)
def test_a_core_that_lacks_something_has_the_portable_kernel(native, kernels_in, core):
    assert kernels_in(native.FIRMWARE / "src" / "twin_open.c", *PORTABLE[core], "-Os") == {
        "portable"
    }


@pytest.mark.slow  # quickly, tests/ports runs a pack on a board of each
@pytest.mark.parametrize("kernel", IN_C)
def test_kernels_in_c_have_the_bits_of_the_reference(short_replay, native, kernel):
    chosen = (f"-DTWIN_KERNEL_{kernel.upper()}", f"-DTWIN_DEVICE_KERNEL=twini_kernel_{kernel}")
    options = (*CHECKED, *chosen, "-DTWIN_BLOCK=2")
    own = [files(native)[kernel]]
    program = short_replay.build(*options, compiler="clang", kernels=own)
    assert f" twini_kernel_{kernel}\n" in native.run("nm", program)
    wrong, total = short_replay.mismatches(program)
    assert wrong == 0
    assert total > 5_000
