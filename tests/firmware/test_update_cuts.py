"""Whatever moment the power fails at, a device starts with a good pack, and keeps its points."""

import ctypes
import shutil
from dataclasses import replace

import numpy as np
import pytest

COUNTS = (
    *("cuts", "updates", "trials", "confirmed", "undone", "points"),
    *("bank 0", "bank 1", "starts", "repeated", "failed"),
)
BANK, UNITS = 1024, (1, 16, 64, 256)
POINTER, WORD = ctypes.c_void_p, ctypes.c_uint32


class Pack(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char_p), ("size", WORD), ("counter", WORD))


@pytest.fixture(scope="module")
def life(native, flash, releases, tmp_path_factory):
    """Build the device of update_cuts.c: ``life()(packs, seed, cuts, ...)`` cuts its power.

    ``right`` in twin_slots.c becomes ``wrong``. A table makes checksums quick.
    """
    folder = tmp_path_factory.mktemp("cuts")
    home, example = native.FIRMWARE, native.FIRMWARE / "examples" / "update"
    options = ("-O2", "-fPIC", "-DTWIN_HOST=0", f"-I{flash.HERE}", f"-I{example}")
    shutil.copytree(home / "src", folder / "src")
    shutil.copytree(home / "include", folder / "include")
    words = folder / "src" / "twin_words.h"
    code = words.read_text()
    begin, end = code.index("static inline uint32_t twini_crc_bits"), code.rindex("#endif")
    words.write_text(code[:begin] + '#include "quick_crc.h"\n' + code[end:])
    slots = (folder / "src" / "twin_slots.c").read_text()
    others = [folder / path.relative_to(home) for path in native.PORTABLE]
    others = [path for path in others if path.name != "twin_slots.c"]
    others += [*flash.SOURCES, flash.HERE / "update_cuts.c"]
    objects = [
        native.compile_c(folder / f"{path.stem}.o", *options, "-c", sources=[path])
        for path in others
    ]

    def build(right="", wrong="", name="right"):
        assert not right or slots.count(right) == 1
        path = folder / "src" / f"{name}.c"
        path.write_text(slots.replace(right, wrong) if right else slots)
        library = native.compile_c(
            folder / f"{name}.so", *options, "-shared", sources=[path, *objects]
        )
        signature = (WORD, POINTER, POINTER, POINTER, WORD, ctypes.c_char_p, WORD, POINTER)
        loaded = native.load(library, flash.SIGNATURES, {"update_cuts": signature})
        return lambda *given: live(loaded, *given)

    def live(library, packs, seed, cuts, unit=64, kind="erased to 255"):
        made = [
            flash.make(library, BANK, unit, "erased to 255", seed),
            flash.make(library, 4 * 32, 4, kind, seed + 1),
            flash.make(library, 12 * 40, 8, kind, seed + 2),
        ]
        memories = (POINTER * 3)(*(ctypes.addressof(memory) for memory, _ in made))
        storages = (flash.Storage * 3)(*(storage for _, storage in made))
        table = (Pack * len(packs))(*(Pack(data, len(data), one) for one, data in packs))
        counts = (WORD * len(COUNTS))()
        given = memories, storages, table, len(packs), releases.KEY, cuts, counts
        fault = library.update_cuts(*given)
        assert fault == 0, f"update_cuts.c:{fault}, seed {seed}"
        assert not any(memory.fault for memory, _ in made)
        return dict(zip(COUNTS, counts, strict=True))

    return build


@pytest.fixture(scope="module")
def good(releases, packs, cases):
    """Releases of one schema that a device may get: their counters and bytes."""
    pack = cases.draw(packs, "one-anchor-one-feature", scaled=True)
    pack = replace(pack, y_gain=np.float32(0.125), y_offset=np.float32(3))
    counters = (1, 1, 2, 3, 3, 4, 5, 5)
    moved = [replace(pack, targets=pack.targets // (2 + at)) for at in range(len(counters))]
    return [(one, releases.release(made, one)) for one, made in zip(counters, moved, strict=True)]


def cut_everywhere(live, packs, flash, lives, cuts, first=1):
    total = dict.fromkeys(COUNTS, 0)
    for seed in range(first, first + lives):
        kind = list(flash.KINDS)[seed % len(flash.KINDS)]
        found = live(packs, seed, cuts, UNITS[seed % len(UNITS)], kind)
        total = {name: total[name] + found[name] for name in COUNTS}
    return total


def assert_lived(total, cuts):
    assert total["cuts"] >= cuts
    for name in ("trials", "confirmed", "undone", "points", "bank 0", "bank 1"):
        assert total[name] > cuts / 200, name
    assert total["failed"] < cuts / 1000


@pytest.mark.parametrize("lives", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_every_power_cut_is_survived(life, good, flash, lives):
    assert_lived(cut_everywhere(life(), good, flash, lives, 2_500), 2_500 * lives)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_million_power_cuts(life, good, flash, part):
    total = cut_everywhere(life(), good, flash, 50, 5_000, first=1000 * (1 + part))
    assert_lived(total, 250_000)


# What keeps a device alive; without it, cuts are found that it does not survive.
BROKEN = {
    "what a cut left is relied on": (
        "if (!slots->settled)\n        status",
        "if (0)\n        status",
    ),
    "a confirmed pack is in the other bank": (
        "state->current = slots->bank;\n    state->trial = 0;",
        "state->trial = 0;",
    ),
    "a state is left out when records are moved": ("carrier->state = 0;\n    if (state)", "if (0)"),
    "the bank in use is erased": ("slots->state.current ? 0 :", "!slots->state.current ? 0 :"),
}


@pytest.mark.parametrize(
    "why", [pytest.param(one, marks=[pytest.mark.slow] * (at > 1)) for at, one in enumerate(BROKEN)]
)
def test_a_device_that_is_not_safe_is_found(life, good, flash, why):
    live = life(*BROKEN[why], name=f"wrong_{list(BROKEN).index(why)}")
    with pytest.raises(AssertionError, match=r"update_cuts\.c:"):
        cut_everywhere(live, good, flash, 40, 2_500)
