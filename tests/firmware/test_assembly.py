"""Functions in assembly have a size, stay inside the library, and can be unwound by a debugger."""

import re

import pytest

# Core: its kernel file, and the functions in assembly.
ARM = {
    "cortex-m0": ("thumb", {"further", "first"}),
    "cortex-m3": ("thumb", {"further", "first"}),
    "cortex-m4": ("dsp", {"query", "further", "first"}),
    "cortex-m33": ("dsp", {"query", "further", "first"}),
    "cortex-m55": ("helium", {"further", "first", "lines"}),
}
CORES = {**ARM, "rv32imac": ("rv32", {"sums"})}


def tool(core, name):
    """Name of a tool for a core."""
    return f"{'arm-none-eabi' if core in ARM else 'riscv64-unknown-elf'}-{name}"


@pytest.fixture(params=CORES)
def kernel(request, native, tmp_path):
    """Return a core, the object file of its kernel, and the functions in assembly."""
    core = request.param
    name, functions = CORES[core]
    source = native.FIRMWARE / "src" / "kernels" / f"kernel_{name}.c"
    output = tmp_path / "kernel.o"
    floats = ["-mfloat-abi=hard"] if name == "helium" else []
    options = [f"-mcpu={core}", "-mthumb", *floats]
    if core not in ARM:
        options = [f"-march={core}", "-mabi=ilp32", "--specs=picolibc.specs"]
    options += ["-Os", "-g", "-c"]
    native.compile_c(output, *options, compiler=tool(core, "gcc"), sources=[source])
    return core, output, {f"twini_{name}_{one}" for one in functions}


def symbols_of(native, core, output):
    """By name: section, address, size, visibility of the functions."""
    table = native.run(tool(core, "readelf"), "--wide", "--symbols", output)
    rows = [line.split() for line in table.splitlines() if " FUNC " in line]
    return {row[7]: (row[6], int(row[1], 16) & ~1, int(row[2]), row[5]) for row in rows}


def test_functions_have_a_size_and_are_hidden(native, kernel):
    core, output, functions = kernel
    symbols = symbols_of(native, core, output)
    assert functions <= set(symbols)
    for name in functions:
        _, _, size, visibility = symbols[name]
        assert size > 0
        assert visibility == "HIDDEN"


@pytest.fixture
def linked(native, kernel, tmp_path):
    """The same, linked: addresses are resolved."""
    core, output, functions = kernel
    path = tmp_path / "kernel.elf"
    machine = [] if core in ARM else ["-melf32lriscv"]
    words = ("--unresolved-symbols=ignore-all", "--entry=0", output, "-o", path)
    native.run(tool(core, "ld"), *machine, *words)
    return core, path, functions


def test_every_instruction_can_be_unwound(native, linked):
    core, path, functions = linked
    frames = native.run(tool(core, "readelf"), "--debug-dump=frames", path)
    ranges = [
        (int(start, 16) & ~1, int(end, 16) & ~1)
        for start, end in re.findall(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", frames)
    ]
    for name, (_, start, size, _) in symbols_of(native, core, path).items():
        if name in functions:
            assert any(low <= start and start + size <= high for low, high in ranges), name


def test_the_stack_is_followed_to_the_end(native, linked):
    """Where a function returns by popping the pc, its frame is what that pop takes; else none."""
    core, path, functions = linked
    frames = native.run(tool(core, "readelf"), "--debug-dump=frames-interp", path)
    offsets = {}  # where the distance to the caller's frame changes
    for address, offset in re.findall(r"(?m)^([0-9a-f]{8}) \w+\+(\d+)", frames):
        offsets[int(address, 16) & ~1] = int(offset)
    code = native.run(tool(core, "objdump"), "--disassemble", path)
    starts = {
        start: start + size
        for name, (_, start, size, _) in symbols_of(native, core, path).items()
        if name in functions
    }
    pops = 0
    for address, registers in re.findall(
        r"(?m)^ +([0-9a-f]+):\t[0-9a-f ]+\t(?:ret|(?:pop|ldmia\.w\tsp!,)\t?\s*\{(.*pc)\})", code
    ):
        at = int(address, 16)
        if not any(start <= at < end for start, end in starts.items()):
            continue
        frame = offsets[max(place for place in offsets if place <= at)]
        assert frame == 4 * count(registers), f"{address}: {registers}"
        pops += 1
    assert pops >= max(1, len(functions) - 1)  # two of them share their end on a DSP core


def count(registers):
    """How many registers a list such as ``r4, r5, pc`` or ``r4-r6, pc`` has."""
    total = 0
    for part in registers.split(",") if registers else ():
        low, _, high = part.strip().partition("-")
        total += int(high[1:]) - int(low[1:]) + 1 if high else 1
    return total
