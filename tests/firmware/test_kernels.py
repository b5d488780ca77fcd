"""Every host kernel computes the bits of the reference, wherever it can run."""

import platform
import re
import runpy
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference

LIBRARY = runpy.run_path(str(Path(__file__).parent / "library.py"))
LISTED, USUAL = LIBRARY["HOST_KERNELS"], LIBRARY["USUAL"]
FEATURES = Path("/proc/cpuinfo").read_text().split()
# Those that this processor should have, the fastest first; and those of them for any activation.
ALL_HERE = tuple(
    name
    for name, kernel in LISTED.items()
    if platform.machine() in kernel.machines and kernel.feature in FEATURES
)
HERE = tuple(name for name in ALL_HERE if LISTED[name].relu)
ALL_OF_X86 = tuple(name for name, kernel in LISTED.items() if "x86_64" in kernel.machines)

EMBEDDING = Path(__file__).parents[2] / "docs" / "embedding.md"

# Emulators have AVX2, but nothing beyond, so on every machine the sources of these kernels also run
# with a plain C function for each instruction: of SIMDe, and more in emulated_x86. This proves the
# kernels' arithmetic, their layout of blocks and every read and write. What it cannot prove,
# that compilers turn the sources into the right instructions, is tested if the processor has them:
# then HERE lists their names, too.
EMULATED = ("amx", "vnni", "avx_vnni")
KERNELS = (
    *HERE,
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("amx-simde", "vnni-simde")),
)
# Machine, and processor to emulate, with the kernels that it must offer for 8-bit weights, fastest
# first; `neon_i8mm` for silu. The emulators have all of these.
PROCESSORS = {
    "cortex-a53": ("aarch64", ("neon", "portable")),  # Raspberry Pi 3
    "cortex-a72": ("aarch64", ("neon", "portable")),  # 4
    "cortex-a76": ("aarch64", ("neon_dot", "neon", "portable")),  # 5
    "max,sve=off": ("aarch64", ("neon_i8mm", "neon_dot", "neon", "portable")),
    "cortex-a7": ("arm", ("neon", "portable")),  # 2, and all of them with a 32-bit system
    "cortex-a9,neon=off": ("arm", ("portable",)),
    "qemu64": ("x86_64", ("portable",)),
    "max": ("x86_64", ("avx2", "portable")),  # all but AVX-512
}
# tests/ports runs the kernels of Arm on emulated Linux.
QUICK = () if platform.machine() == "x86_64" else ("max",)
SILU_ONLY = [name for name, kernel in LISTED.items() if not kernel.relu]
BYTES_ONLY = [name for name, kernel in LISTED.items() if not kernel.wide]
TRIPLETS = {
    "aarch64": "aarch64-linux-gnu",
    "x86_64": "x86_64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
}
# As 32-bit Raspberry Pi OS is compiled: for ARMv6, without NEON.
BASELINES = {"arm": ("-march=armv6", "-mfpu=vfp", "-mfloat-abi=hard", "-marm")}
WITH_NEON = {"arm": ("-march=armv7-a", "-mfpu=neon")}  # flags that clang needs

# For programs whose models use the kernel named by the environment, or the first.
PICK_H = """
#include "twin_kernel.h"
const twin_kernel *pick(const twin_model *model);
"""
PICK_C = """
#include <stdlib.h>
#include <string.h>
const twin_kernel *pick(const twin_model *model) {
    const char *wanted = getenv("KERNEL"), *name;
    const twin_kernel *kernel;
    unsigned number = 0;
    while ((kernel = twini_host_kernel(model, number++, &name)))
        if (!wanted || !strcmp(wanted, name))
            return kernel;
    return &twini_kernel_portable;
}
"""
OFFERS_C = """
#include "twin_host.h"
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    twin_model model;
    unsigned number;
    model.silu = !strcmp(words[1], "silu");
    model.wide = !strcmp(words[1], "wide");
    model.kernel = &twini_kernel_portable;
    for (number = 0; twin_kernel_name(&model, number); number++)
        puts(twin_kernel_name(&model, number));
    return twin_kernel_name(&model, number + 1) || count != 2;
}
"""


@pytest.fixture(scope="module")
def picking(native, tmp_path_factory):
    """Options and sources of a program that picks its kernels."""
    folder = tmp_path_factory.mktemp("picking")
    (folder / "pick.h").write_text(PICK_H)
    (folder / "pick.c").write_text(PICK_C)
    (folder / "offers.c").write_text(OFFERS_C)
    return SimpleNamespace(
        folder=folder,
        options=("-DTWIN_KERNEL=pick(model)", f"-include{folder / 'pick.h'}"),
        others=[*(path for path in native.SOURCES if not is_kernel(path)), folder / "pick.c"],
        replay=native.FIRMWARE / "test" / "replay.c",
    )


def is_kernel(path):
    return path.parent.name == "kernels"


@pytest.fixture(scope="module")
def kernels(native, tmp_path_factory):
    """Compile the kernels, which takes most of the time, once: ``kernels(options, compiler)``."""

    @cache
    def kernels(options, compiler):
        folder = tmp_path_factory.mktemp("objects")
        made = []
        for source in filter(is_kernel, native.SOURCES):
            made.append(folder / f"{source.stem}.o")
            native.compile_c(made[-1], *options, "-c", compiler=compiler, sources=[source])
        return made

    return kernels


@pytest.fixture(scope="module")
def build(native, picking, kernels):
    """Compile a program with a choice of kernels, once: ``build(source, options, compiler)``."""

    @cache
    def build(source, options, compiler):
        program = picking.folder / "-".join([source.stem, compiler, *options])
        sources = [*picking.others, source, *kernels(options, compiler)]
        return native.compile_c(
            program, *picking.options, *options, compiler=compiler, sources=sources
        )

    return build


def cross(machine):
    """Compiler and emulator for a machine; native tools on that machine."""
    triplet = TRIPLETS[machine]
    if machine == platform.machine():
        return "gcc", (f"qemu-{machine}", "-L", "/")
    return f"{triplet}-gcc", (f"qemu-{machine}", "-L", f"/usr/{triplet}")


@pytest.fixture(scope="module")
def library(native, objects, tmp_path_factory):
    """The runtime with all kernels, not optimised; Python's extension has -O3."""
    path, options = tmp_path_factory.mktemp("kernels") / "libtwin.so", native.SHARED
    made = objects(*options, host=True)
    return native.load(native.compile_c(path, *options, "-shared", sources=made))


@pytest.fixture(scope="module")
def emulated(native, tmp_path_factory):
    """The runtime with the kernels for x86-64, on any machine, as on a processor that has all."""
    folder = tmp_path_factory.mktemp("emulated")
    options = ("-Og", "-fPIC", *native.EXTRA_OPTIONS)  # SIMDe takes half a minute at -O2
    words = (*options, *native.EMULATED_X86, "-D__builtin_cpu_supports(name)=1", "-c")
    objects = [
        native.compile_c(folder / f"{source.stem}.o", *words, sources=[source])
        for source in filter(is_kernel, native.SOURCES)
    ]
    others = [path for path in native.SOURCES if not is_kernel(path)]
    path = native.compile_c(folder / "libtwin.so", "-shared", *options, sources=[*others, *objects])
    return native.load(path)


@pytest.fixture(scope="module")
def open_with(native, request):
    """Open a pack with a kernel: ``open_with(pack, name)``."""

    def open_with(pack, kernel):
        name, dash, _ = kernel.partition("-")
        library = request.getfixturevalue("emulated" if dash else "library")
        opened = native.Native(library, write_pack(pack))
        assert opened.status == "ok"
        opened.set_kernel(name)
        return opened

    return open_with


def assert_same_bits(opened, pack, x):
    """From the pack in place, then prepared."""
    expected = reference.evaluate(pack, x)
    right = {"mean": expected.mean, "spread": expected.spread}
    if pack.intervals is not None:
        bounds = reference.bounds(pack, expected, pack.intervals.usual_level)
        right |= {name: getattr(bounds, name) for name in ("scale", "low", "high")}
    for prepared in (False, True):
        assert not prepared or opened.prepare()
        found = opened.predict_all(x)
        np.testing.assert_array_equal(found["estimates"], expected.estimates)
        for name, bits in right.items():
            np.testing.assert_array_equal(found[name].view(np.uint32), bits.view(np.uint32), name)


def types_of(kernel):
    return [np.int8, np.int16] if LISTED[kernel.partition("-")[0]].wide else [np.int8]


def test_all_kernels_of_hosts_are_listed(native):
    chosen = (native.FIRMWARE / "src" / "kernels" / "choose_host.c").read_text()
    assert re.findall(r'{"(\w+)", &twini_kernel_\1,', chosen) == [*LISTED, "portable"]
    assert all(f"| `{name}` |" in EMBEDDING.read_text() for name in LISTED)


def test_this_machine_has_kernels_of_its_own():
    assert HERE, f"no kernel for {platform.machine()}: say so in the docs, and here"


@pytest.mark.parametrize("processor", ["library", pytest.param("emulated", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_models_are_offered_what_can_evaluate_them(native, request, packs, dtype, processor):
    library = request.getfixturevalue(processor)
    pack = packs.random_pack(np.random.default_rng(38), dtype=dtype)
    opened = native.Native(library, write_pack(pack))
    able = ALL_HERE if processor == "library" else ALL_OF_X86
    able = [one for one in able if LISTED[one].relu or pack.activation == "silu"]
    able = [one for one in able if dtype in types_of(one)]
    assert opened.kernels() == [*able, "portable"]
    fastest = opened.model.kernel  # chosen by twin_open
    for number in range(len(able) + 1):
        assert library.twin_set_kernel(opened.model, number) == 0
        assert (opened.model.kernel == fastest) == (number == 0)
    last = opened.model.kernel
    assert native.name_of(library.twin_set_kernel(opened.model, len(able) + 1)) == "unsupported"
    assert opened.model.kernel == last


def test_a_model_that_is_not_open_has_no_kernels(native, library):
    model = native.Model()
    assert library.twin_kernel_name(model, 0) is None
    assert native.name_of(library.twin_set_kernel(model, 0)) == "model"


@pytest.fixture
def draw(packs):
    """Draw a pack, of one twin and without neighbors by default: ``draw(rng, **shape)``."""
    return lambda rng, **shape: packs.random_pack(rng, **{"neighbors": 0, "counts": [9], **shape})


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_prepared_model_takes_little_memory(open_with, draw, kernel, activation):
    """Also if shares of all anchors would need too much memory, and are computed on demand."""
    rng = np.random.default_rng(39)
    shape = {"features": 8, "hidden": (128, 128), "activation": activation, "dtype": np.int8}
    sizes = {}
    for count in (32, 1000):
        pack = draw(rng, **shape, counts=[count])
        # Of silu: 64 KB for each different fraction on Arm, less elsewhere.
        fractions = {layer.fraction for twin in pack.twins for layer in twin.layers}
        each = 65536 if kernel.startswith("neon") else 1024
        tables = each * len(fractions) if activation == "silu" else 0
        sizes[count] = open_with(pack, kernel).prepare()
        assert 0 < sizes[count] <= 3 * len(write_pack(pack)) + 65536 + tables
    assert sizes[1000] < sizes[32] + 1000


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_would_take_much_memory_is_not_prepared(native, open_with, draw, cases, kernel):
    shape = {"features": 1, "hidden": (1,), "dtype": np.int8, "counts": [1] * 256}
    pack = draw(np.random.default_rng(40), **shape)
    opened = open_with(pack, kernel)
    assert opened.prepare() == 0
    status = opened.library.twin_prepare(opened.model, native.address(opened.scratch), opened.size)
    assert native.name_of(status) == "unsupported"
    x = cases.queries(pack, 12)
    np.testing.assert_array_equal(opened.predict(x)[2], reference.evaluate(pack, x).estimates)


@pytest.mark.parametrize("mapped", [False, True], ids=["plain", "mapped"])
@pytest.mark.parametrize("kernel", HERE)
def test_neighbors_and_steps_of_a_prepared_model(open_with, draw, cases, kernel, mapped):
    rng = np.random.default_rng(41)
    pack = draw(rng, features=4, hidden=(30, 12), dtype=np.int8, counts=[37, 5], mapped=mapped)
    q = reference.quantise(pack, cases.queries(pack, 12))
    opened = open_with(pack, kernel)
    assert opened.prepare()
    for neighbors in (0, 1, 8, 9, 40):
        opened.set_neighbors(neighbors)
        object.__setattr__(pack, "neighbors", neighbors)
        expected = reference.evaluate_raw(pack, q).estimates
        np.testing.assert_array_equal(opened.predict_raw(q)[3], expected)
        for query, right in zip(q, expected, strict=True):
            estimates = np.zeros(len(right), np.int32)
            sizes = rng.integers(1, 14, 60)
            for left, _ in opened.steps("twin_begin_raw", query, sizes, estimates):
                if not left:
                    break
            assert left == 0
            np.testing.assert_array_equal(estimates, right)


def test_another_kernel_undoes_what_was_prepared(native, library, packs):
    opened = native.Native(library, write_pack(packs.random_pack(np.random.default_rng(42))))
    before = opened.model.kernel
    assert opened.prepare()
    assert opened.model.kernel != before
    scratch = opened.size
    opened.set_kernel(opened.kernels()[0])
    assert opened.model.kernel == before
    assert opened.size != scratch


def test_what_cannot_be_prepared(native, library, packs):
    opened = native.Native(library, write_pack(packs.random_pack(np.random.default_rng(43))))
    size, kernel = library.twin_prepared_size(opened.model), opened.model.kernel
    memory = np.zeros(size, np.uint8)
    for room, given in ((memory, size - 1), (None, size)):
        status = library.twin_prepare(opened.model, native.address(room), given)
        assert native.name_of(status) == "scratch"
        assert opened.model.kernel == kernel
    opened.set_kernel("portable")
    assert opened.prepare() == 0
    closed = native.Model()
    assert library.twin_prepared_size(closed) == 0
    status = library.twin_prepare(closed, native.address(memory), size)
    assert native.name_of(status) == "model"


@pytest.mark.parametrize(
    "kernel",
    [*KERNELS, pytest.param("avx_vnni-simde", marks=pytest.mark.slow)],  # which is nearly avx2
)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in range(1, 6))]
)
def test_random_packs(open_with, packs, cases, kernel, seed):
    rng = np.random.default_rng([31, seed])
    for number in range(25):
        dtype = types_of(kernel)[rng.integers(len(types_of(kernel)))]
        kind = {"scaled": number % 2, "mapped": number // 2 % 2, "curved": number // 4 % 2}
        pack = packs.random_pack(rng, dtype=dtype, **kind)
        assert_same_bits(open_with(pack, kernel), pack, cases.queries(pack, 20, number))


WIDTHS = {"some": (1, 3, 8, 13, 33, 130), "more": (2, 4, 5, 7, 9, 12, 16, 17, 31, 127, 300)}


@pytest.mark.parametrize("widths", ["some", pytest.param("more", marks=pytest.mark.slow)])
@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_odd_widths(open_with, draw, cases, kernel, activation, widths):
    for width, dtype in product(WIDTHS[widths], types_of(kernel)):
        rng = np.random.default_rng([32, width])
        for number, hidden in enumerate(((width,), (width, 9), (11, width), (5, width, 6)), width):
            shape = {"features": int(rng.integers(1, 40)), "hidden": hidden, "dtype": dtype}
            counts, scaled = [int(rng.integers(1, 34))], bool(number % 2)
            pack = draw(rng, **shape, activation=activation, counts=counts, scaled=scaled)
            assert_same_bits(open_with(pack, kernel), pack, cases.queries(pack, 12, width))


@pytest.mark.parametrize("kernel", KERNELS)
def test_any_number_of_anchors(open_with, draw, cases, kernel):
    shape = {"features": 3, "hidden": (20, 9), "dtype": np.int8}
    for count in (1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 65):
        pack = draw(
            np.random.default_rng([33, count]), **shape, counts=[count, 2], scaled=bool(count % 2)
        )
        assert_same_bits(open_with(pack, kernel), pack, cases.queries(pack, 12))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weights", ["lowest", "highest"])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_the_most_that_may_be(open_with, draw, cases, kernel, weights, activation):
    rng = np.random.default_rng(34)
    shapes = ((33, (64, 64)), (1, (1,)), (250, (128,)), (12, (6, 5)))
    for dtype, (number, (features, hidden)) in product(types_of(kernel), enumerate(shapes)):
        shape = {"features": features, "hidden": hidden, "activation": activation, "dtype": dtype}
        pack = draw(rng, **shape, weights=weights, scaled=bool(number % 2))
        # Every sum at its largest: all features far out, also in the directions of the weights.
        pack.anchors[::2] = np.where(np.arange(features) % 2, 32767, -32767)
        pack.anchors[1::2] = np.sign(pack.anchors[1::2]) * 32767
        assert_same_bits(open_with(pack, kernel), pack, cases.queries(pack, 20))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("hidden", [(70, 9), (33, 40, 5)], ids=str)
def test_neurons_that_are_zero(open_with, draw, cases, kernel, hidden):
    rng = np.random.default_rng(37)
    patterns = [
        lambda i: i < 0,  # none is alive
        lambda i: i == 17,
        lambda i: i != 17,
        lambda i: i >= 16,
        lambda i: i % 16 == 15,
        lambda i: (i < 5) | (i > 28),
    ]
    shape = {"features": 5, "hidden": hidden, "activation": "relu", "weights": "normal"}
    for (number, alive), dtype in product(enumerate(patterns), types_of(kernel)):
        pack = draw(rng, **shape, dtype=dtype, counts=[18], scaled=bool(number % 2))
        for layer in pack.twins[0].layers[:-1]:
            dead = ~alive(np.arange(len(layer.bias)))
            layer.kernel[dead], layer.bias[dead] = 0, -1
            layer.multiplier[:] = np.maximum(layer.multiplier, 1)
        assert_same_bits(open_with(pack, kernel), pack, cases.queries(pack, 20))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_largest_layers(open_with, draw, cases, kernel):
    shapes = ((1024, (3,)), (2, (1024, 1)), (1, (1, 1024)), (1021, (130, 5)))
    for dtype, (features, hidden) in product(types_of(kernel), shapes):
        pack = draw(np.random.default_rng(35), features=features, hidden=hidden, dtype=dtype)
        assert_same_bits(open_with(pack, kernel), pack, cases.queries(pack, 12))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_place_on_any_curve(open_with, draw, kernel):
    """The second curve goes all the way up and down from each entry to the next."""
    shape = {"features": 1, "hidden": (1,), "activation": "silu", "counts": [1]}
    hostile = np.where(np.arange(193) % 2, 16383, 0).astype(np.int16)
    for fraction, dtype, curve in product(range(5, 16), types_of(kernel), (None, hostile)):
        rng = np.random.default_rng([36, fraction])
        pack = draw(rng, **shape, dtype=dtype)
        if curve is not None:
            pack.curve[:] = curve
        layer = pack.twins[0].layers[0]
        object.__setattr__(layer, "fraction", fraction)
        object.__setattr__(layer, "shift", 0)
        layer.kernel[:], layer.bias[:], layer.multiplier[:] = [[2, 0]], 0, 32767  # z = q
        q = np.unique([*range(-300, 300), *rng.integers(-32767, 32768, 300), -32767, 32767])
        opened = open_with(pack, kernel)
        expected = reference.evaluate_raw(pack, q[:, None].astype(np.int16))
        for prepared in (False, True):
            assert not prepared or opened.prepare()
            *_, estimates = opened.predict_raw(q[:, None])
            np.testing.assert_array_equal(estimates, expected.estimates)


CHECKED = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BUILDS = {
    "gcc -O0": ((*USUAL, "-O0"), "gcc"),
    "gcc -O1": (USUAL, "gcc"),
    "gcc -O2": (("-O2",), "gcc"),
    "gcc -O3": (("-O3",), "gcc"),
    "clang -O0": (("-O0",), "clang"),
    "clang -O3": (("-O3",), "clang"),
    "sanitizers": (CHECKED, "clang"),
}
# `make fuzz` has the others, too.
SOME_BUILDS = [
    one if one == "gcc -O0" else pytest.param(one, marks=pytest.mark.slow) for one in BUILDS
]


def check_replay(replay, monkeypatch, program, *emulator):
    """Run a replay, from the pack in place and prepared."""
    for prepared in (False, True):
        if prepared:
            monkeypatch.setenv("PREPARED", "1")
        wrong, total = replay.mismatches(program, *emulator)
        assert wrong == 0
        assert total > 5_000


@pytest.mark.parametrize("kernel", HERE)
@pytest.mark.parametrize("name", SOME_BUILDS)
def test_compilers_levels_and_sanitizers(short_replay, build, picking, monkeypatch, kernel, name):
    monkeypatch.setenv("KERNEL", kernel)
    check_replay(short_replay, monkeypatch, build(picking.replay, *BUILDS[name]))


# test_lint.py has this machine, and compiling for the emulators below gives those of gcc.
@pytest.mark.slow
@pytest.mark.parametrize("machine", [name for name in TRIPLETS if name != platform.machine()])
def test_clang_has_no_warning(native, machine):
    kernels = filter(is_kernel, native.SOURCES)
    there = (f"--target={TRIPLETS[machine]}", f"-I/usr/{TRIPLETS[machine]}/include")
    options = (*there, *WITH_NEON.get(machine, ()), *native.WARNINGS, *native.INCLUDES)
    assert native.run("clang", "-std=c99", *options, "-fsyntax-only", *kernels) == ""


@pytest.mark.parametrize(
    "processor",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in PROCESSORS],
)
def test_processors_get_the_kernels_they_can_run(
    short_replay, build, native, picking, monkeypatch, processor
):
    machine, offered = PROCESSORS[processor]
    compiler, emulator = cross(machine)
    run = (emulator[0], "-cpu", processor, *emulator[1:])
    # Not -O1: of the AVX2 that gcc makes then, qemu 7.2 computes what real processors do not.
    options = ("-O2", *BASELINES.get(machine, ()))
    offers = build(picking.folder / "offers.c", options, compiler)
    for which, lacking in (("silu", ()), ("relu", SILU_ONLY), ("wide", BYTES_ONLY)):
        found = tuple(native.run(*run, offers, which).split())
        assert found == tuple(name for name in offered if name not in lacking)
    check_replay(short_replay, monkeypatch, build(picking.replay, options, compiler), *run)
