"""The scratch reserved by an export is enough for every kernel on every machine."""

import ctypes
import platform
import re
import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from twinedge.pack import write_pack
from twinedge_export.boards.build import flags_for
from twinedge_export.c_project import scratch_expression

HERE = Path(__file__).parent
ARM = "arm-none-eabi-gcc"
# Hosts by their cross-compilers, except this one.
X86_64, AARCH64 = (
    "gcc" if platform.machine() == machine else f"{machine}-linux-gnu-gcc"
    for machine in ("x86_64", "aarch64")
)
MACHINES = {
    "this": ("gcc",),
    "this-by-four": ("gcc", "-DTWIN_BLOCK=4"),
    "this-without-partial": ("gcc", "-DTWIN_PARTIAL=0"),
    "this-without-host": ("gcc", "-DTWIN_HOST=0"),
    "x86_64": (X86_64,),
    "aarch64": (AARCH64,),
    "armhf": ("arm-linux-gnueabihf-gcc",),
    "cortex-m0": (ARM, "-mcpu=cortex-m0", "-mthumb"),
    "cortex-m3": (ARM, "-mcpu=cortex-m3", "-mthumb"),
    "cortex-m4": (ARM, "-mcpu=cortex-m4", "-mthumb"),
    "cortex-m4-by-eight": (ARM, "-mcpu=cortex-m4", "-mthumb", "-DTWIN_BLOCK=8"),
    "cortex-m33": (ARM, "-mcpu=cortex-m33", "-mthumb"),
    "cortex-m55": (ARM, "-mcpu=cortex-m55", "-mthumb"),
    "rv32": ("riscv64-unknown-elf-gcc", "-march=rv32imac", "-mabi=ilp32", "-ffreestanding"),
    "avr": ("avr-gcc", "-mmcu=atmega328p"),
    "avr-by-two": ("avr-gcc", "-mmcu=atmega328p", "-DTWIN_BLOCK=2", "-DTWIN_PARTIAL=1"),
}

QUICK = ("cortex-m4", "avr")
LISTED = runpy.run_path(str(HERE.parent / "firmware" / "library.py"))["HOST_KERNELS"]
OWN = {  # kernels that must be there
    "cortex-m4": ["kernel_dsp"],
    "cortex-m33": ["kernel_dsp"],
    **{
        name: [f"kernel_{one}" for one, kernel in LISTED.items() if machine in kernel.machines]
        for name, machine in {"x86_64": "x86_64", "aarch64": "aarch64", "armhf": "arm"}.items()
    },
}


class Kernel(ctypes.Structure):
    """``twin_kernel`` of twin_kernel.h, on this machine."""

    _fields_ = (
        *((name, ctypes.c_uint8) for name in ("pairs", "unit", "align", "partial_bytes")),
        ("block_bytes", ctypes.c_uint16),
        *((name, ctypes.c_void_p) for name in ("query", "first", "further")),
        ("room_bytes", ctypes.c_uint8),
        ("lines", ctypes.c_uint8),
        ("work_bytes", ctypes.c_uint32),
    )


@pytest.fixture(scope="module")
def cases():
    """Packs by name."""
    packs = SimpleNamespace(**runpy.run_path(str(HERE.parent / "pack" / "random_packs.py")))
    shapes = SimpleNamespace(**runpy.run_path(str(HERE.parent / "firmware" / "cases.py")))
    return {name: shapes.draw(packs, name) for name in shapes.SHAPES}


@pytest.fixture(scope="module")
def kernels_of(run, firmware, tmp_path_factory):
    """Read the kernels out of the objects of a machine: ``kernels_of(compiler, *flags)``."""

    @cache  # this machine has two names
    def read(compiler, *flags):
        folder = tmp_path_factory.mktemp(compiler)
        sources = sorted((firmware / "src" / "kernels").glob("*.c"))
        options = ("-O0", "-c", "-fdata-sections", "-fno-pic")
        run(compiler, *flags, *options, *sources, f"-I{firmware / 'include'}", cwd=folder)
        objcopy = re.sub("gcc$", "objcopy", compiler)
        found = {}
        for file in sorted(folder.glob("*.o")):
            out = folder / "bytes"
            only = ("-j", f".rodata.twini_{file.stem}", "-j", f".data.rel.ro.twini_{file.stem}")
            run(objcopy, "-O", "binary", *only, file, out)
            if out.read_bytes():
                found[file.stem] = fields(out.read_bytes())
        return found

    return read


def fields(content):
    """Return the fields of a ``twin_kernel``; three pointers come first."""
    pointer = {14: 2, 24: 4, 32: 4, 40: 8, 48: 8}[len(content)]  # a host has one pointer more
    kernel = Kernel(*content[:4], int.from_bytes(content[4:6], "little"))
    behind = -(-6 // pointer) * pointer + 3 * pointer
    kernel.room_bytes, kernel.lines = content[behind : behind + 2]
    if len(content) in (32, 48):
        kernel.work_bytes = int.from_bytes(content[behind + 4 : behind + 8], "little")
    return kernel


@pytest.fixture(scope="module")
def library(native, tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "libtwin.so"
    return native.load(native.compile_c(path, *native.USUAL, "-O0", "-shared"))


def set_aside(run, firmware, machine, cases, folder):
    """Return bytes by pack, and of a pointer, as the compiler of the machine sees them."""
    compiler, *flags = MACHINES[machine]
    source = folder / "sizes.c"
    lines = ["#include <twin_config.h>"]
    lines += [f"char pack{i}[{scratch_expression(p)}];" for i, p in enumerate(cases.values())]
    lines += [f"char pack{len(cases)}[sizeof(void *)];"]
    source.write_text("\n".join(lines) + "\n")
    run(compiler, *flags, "-c", source, f"-I{firmware / 'include'}", "-o", folder / "sizes.o")
    output = run(re.sub("gcc$", "nm", compiler), "-S", folder / "sizes.o")
    sizes = {int(i): int(size, 16) for size, i in re.findall(r"\S+ (\S+) \S pack(\d+)", output)}
    return {name: sizes[i] for i, name in enumerate(cases)}, sizes[len(cases)]


@pytest.mark.parametrize(
    "machine",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in MACHINES],
)
def test_what_is_set_aside_is_enough_for_every_kernel(
    machine, cases, kernels_of, library, native, run, firmware, tmp_path
):
    kernels = kernels_of(*MACHINES[machine])
    assert set(kernels) >= {"kernel_portable", *OWN.get(machine, ())}
    sizes, pointer = set_aside(run, firmware, machine, cases, tmp_path)
    for name, pack in cases.items():
        # This machine, which counts here, may have larger pointers: two of them for each curve.
        larger = 2 * (ctypes.sizeof(ctypes.c_void_p) - pointer)
        beyond = 0 if pack.map is None else larger * pack.features
        opened = native.Native(library, write_pack(pack))
        assert sizes[name] % 4 == 0
        takes = {}
        for which, kernel in kernels.items():
            opened.model.kernel = ctypes.addressof(kernel)
            takes[which] = library.twin_scratch_size(opened.model)
        assert max(takes.values()) <= sizes[name] + beyond, (name, takes)


def test_on_an_uno_little_is_wasted(cases, run, firmware, tmp_path):
    # Block of one anchor: 4 bytes of each neuron but the last layer's, and 6 of each feature.
    sizes, _ = set_aside(run, firmware, "avr", cases, tmp_path)
    assert sizes["relu-128-128-of-32"] <= 4 * 128 + 6 * 8 + 48
    assert "-DTWIN_NEIGHBORS=0" in flags_for(cases["relu-128-128-of-32"])
