"""Measured sizes: read, checked, and never made up."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.budget import Model, read_firmware, write_firmware
from twinedge.budget.measurements import Scratch, read_runtime
from twinedge.budget.read_model import from_pack
from twinedge.pack import write_pack


def test_what_ships_is_sound():
    for runtime in read_firmware().values():
        assert runtime.builds
        assert all(build.text_bytes > 0 for build in runtime.builds.values())


def test_what_is_written_is_read(core, tmp_path):
    path = tmp_path / "firmware.json"
    write_firmware({"b": core, "a": core}, path)
    assert read_firmware(path) == {"a": read_runtime(core), "b": read_runtime(core)}
    assert list(json.loads(path.read_text())["cores"]) == ["a", "b"]
    assert [one.name for one in tmp_path.iterdir()] == ["firmware.json"]


def test_sums_by_hand(core):
    model = Model.of(8, (128, 128))
    build = read_runtime(core).build(model)
    assert build.flash_bytes == 4000 + 60 + 20 + 40
    assert build.scratch.bytes(model) == 8 * 128 + 2 * 8 + 7
    assert build.ram_bytes(model) == 20 + 30 + 50 + 1047 + 4 * 8 + 200
    with_intervals = replace(model, intervals=True)
    build = read_runtime(core).build(with_intervals)
    assert build.flash_bytes == 4900 + 60 + 20 + 40
    assert build.ram_bytes(with_intervals) == 20 + 30 + 60 + 1047 + 4 * 8 + 250
    assert with_intervals in [one.model for one in build.references]


def test_a_build_is_for_packs_of_its_kind(core):
    runtime = read_runtime(core)
    assert runtime.build(Model.of(8, activation="silu", weights="int16")).text_bytes == 4500
    assert runtime.build(Model.of(8, neighbors=4)) is None
    assert runtime.build(Model.of(8, (128, 128), weights="float32")) is None


def test_a_build_with_intervals_does_for_a_model_without(core):
    core["builds"] = [one for one in core["builds"] if one["intervals"]]
    runtime = read_runtime(core)
    assert runtime.build(Model.of(8, (128, 128))) == runtime.build(
        Model.of(8, (128, 128), intervals=True)
    )


# -- parts: what curves add to a build -------------------------------------------------------------

MAPPED = Model.of(8, (128, 128), map_outputs=16, map_rows=72)


def test_a_part_is_added_to_any_build(core, parts):
    core["builds"][4]["worst"] = {"pairs": 2, "rates": {"call": 100}}
    runtime = read_runtime({**core, "parts": parts})
    assert runtime.build(Model.of(8)) == read_runtime(core).build(Model.of(8))
    for model in (MAPPED, replace(MAPPED, activation="silu", weights="int16", intervals=True)):
        plain, mapped = runtime.build(replace(model, **PLAIN)), runtime.build(model)
        assert mapped.flash_bytes == plain.flash_bytes + 300 + 8 + 4
        assert mapped.fixed_ram_bytes == plain.fixed_ram_bytes + 4 + 2 + 12 + 40
        both = runtime.build(replace(model, target_bins=256))
        assert both.flash_bytes == mapped.flash_bytes + 100
        assert both.context_bytes == mapped.context_bytes + 4
        assert both.references == plain.references
        assert both.scratch == mapped.scratch == replace(plain.scratch, place_bytes=4)


PLAIN = {"map_outputs": 0, "map_rows": 0, "map_curves": 0, "target_bins": 0}


def test_the_longest_query_of_a_map_needs_its_rates(core, parts):
    for one in core["builds"]:
        one["worst"] = {"pairs": 2, "rates": {"call": 100, "feature": 1}}
    runtime = read_runtime({**core, "parts": parts})
    # A call, 8 features, the map itself, and 8 curves with 16 outputs each.
    assert runtime.build(MAPPED).worst.instructions(MAPPED) == 100 + 8 + 20 + 2.5 * 8 * 16
    assert runtime.build(replace(MAPPED, target_bins=9)).worst is None  # its rates are not known
    for one in core["builds"]:
        one["worst"] = None
    assert read_runtime({**core, "parts": parts}).build(MAPPED).worst is None


def test_a_part_that_was_not_measured_is_not_made_up(core, parts):
    assert read_runtime(core).build(MAPPED) is None
    del parts["map"]
    runtime = read_runtime({**core, "parts": parts})
    assert runtime.build(MAPPED) is None
    assert runtime.build(Model.of(8, target_bins=9)) is not None
    assert runtime.build(replace(MAPPED, target_bins=9)) is None


BAD_PARTS = [
    ([], "parts is not an object"),
    ({"moon": {}}, "parts has the unknown field moon"),
    ({"map": 5}, "map is not an object"),
    ({"map": {"text_bytes": 300}}, "map has no rodata_bytes"),
    ({"map": {"text_bytes": -1}}, "text_bytes: -1"),
    ({"map": {"size": 1}}, "map has the unknown field size"),
    ({"map": {"rates": []}}, "rates of map is not an object"),
    ({"map": {"rates": {"target curve": 1}}}, "rates of map has the unknown field target curve"),
    ({"target_curve": {"rates": {"target curve": -1}}}, "target curve of target_curve: -1"),
]


@pytest.mark.parametrize(("given", "says"), BAD_PARTS, ids=[says for _, says in BAD_PARTS])
def test_a_bad_part_is_refused(complaint, core, parts, given, says):
    whole = "has no" not in says
    if isinstance(given, dict):
        given = {
            name: {**parts[name], **one}
            if whole and isinstance(one, dict) and name in parts
            else one
            for name, one in given.items()
        }
    assert says in complaint(read_runtime, {**core, "parts": given})


# -- scratch ---------------------------------------------------------------------------------------


def test_scratch_by_hand():
    scratch = Scratch(
        align=8, unit=4, partial_bytes=8, block_bytes=6, room_bytes=0, lines=0, work_bytes=0
    )
    # Partial sums, a block for each layer but the last, the query, and what alignment may cost.
    model = Model(5, (6, 9, 30), (10, 2))
    assert scratch.bytes(model) == 48 + 48 + 72 + 16 + 7
    assert scratch.bytes(Model.of(5, (6,), 12)) == 48 + 16 + 7
    # Neighbors are listed if a twin has more anchors than that.
    assert scratch.bytes(replace(model, neighbors=9)) == scratch.bytes(model) + 72
    assert scratch.bytes(replace(model, neighbors=10)) == scratch.bytes(model)
    # Room for features, four at a time.
    assert replace(scratch, room_bytes=3).bytes(model) == scratch.bytes(model) + 24
    # With a map, the query and the room hold its outputs.
    mapped = replace(model, map_outputs=9, map_rows=4, map_curves=2)
    assert scratch.bytes(mapped) == scratch.bytes(replace(model, features=9))
    wide = replace(scratch, room_bytes=3)
    assert wide.bytes(mapped) == wide.bytes(replace(model, features=9))
    # A map needs room for places before the first layers do; neighbors have their own.
    places = replace(scratch, place_bytes=200)
    near = replace(mapped, neighbors=9)
    assert places.bytes(mapped) == 5 * 200 + 2 * 12 + 7
    assert places.bytes(near) == 72 + 5 * 200 + 2 * 12 + 7
    assert replace(places, work_bytes=2000).bytes(mapped) == scratch.bytes(mapped) + 2000
    assert replace(scratch, place_bytes=1).bytes(mapped) == scratch.bytes(mapped)
    assert places.bytes(model) == scratch.bytes(model)
    # Lines, for silu.
    silu = replace(model, activation="silu")
    assert replace(scratch, work_bytes=500).bytes(model) == scratch.bytes(model) + 500
    assert replace(scratch, lines=1).bytes(silu) == scratch.bytes(silu) + 1024
    assert replace(scratch, lines=1).bytes(model) == scratch.bytes(silu) == scratch.bytes(model)


def put(*keys):
    """Return a change that sets a value deep in an entry."""

    def change(core, value):
        place = core
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


FIRST = ("builds", 0)
BAD = [
    (put("compiler"), 12, "compiler 12"),
    (put("colour"), "red", "a core has the unknown field colour"),
    (put("builds"), {}, "builds: {} is not a list"),
    (put(*FIRST), 5, "a build is not an object"),
    (put(*FIRST, "colour"), "red", "a build has the unknown field colour"),
    (put(*FIRST, "activation"), "tanh", "relu or silu"),
    (put(*FIRST, "weights"), "int4", "int4"),
    (put(*FIRST, "neighbors"), 1, "neighbors of a build: 1"),
    (put(*FIRST, "intervals"), "yes", "intervals of a build: 'yes'"),
    (put(*FIRST, "intervals"), True, "two builds for relu and int8"),
    (put("builds", 1, "weights"), "int8", "two builds for relu and int8"),
    (put(*FIRST, "neighbors"), True, "0 neighbors belongs to another build"),
    (put(*FIRST, "text_bytes"), -1, "text_bytes: -1"),
    (put(*FIRST, "bss_bytes"), True, "bss_bytes: True"),
    (put(*FIRST, "scratch"), [16], "scratch is not an object"),
    (put(*FIRST, "scratch"), {"align": 8}, "scratch has no unit"),
    (put(*FIRST, "scratch", "moon"), 1, "scratch has the unknown field moon"),
    (put(*FIRST, "scratch", "align"), 0, "at least 1"),
    (
        put(*FIRST, "scratch", "partial_bytes"),
        9,
        "comes to 1175 bytes for (128, 128) with 8 features",
    ),
    (put(*FIRST, "references"), {}, "references: {} is not a list"),
    (put(*FIRST, "references", 0), 5, "a reference is not an object"),
    (put(*FIRST, "references", 0, "hidden"), 128, "hidden: 128 is not a list"),
    (put(*FIRST, "references", 0, "hidden"), [], "0 hidden layers"),
    (put(*FIRST, "references", 0, "neighbors"), 4, "4 neighbors belongs to another build"),
    (put(*FIRST, "references", 0, "instructions"), -5, "instructions: -5"),
    (put(*FIRST, "references", 0, "seconds"), 1, "a reference has the unknown field seconds"),
]


@pytest.mark.parametrize(("change", "value", "says"), BAD, ids=[says for *_, says in BAD])
def test_a_bad_entry_is_neither_read_nor_written(complaint, core, tmp_path, change, value, says):
    change(core, value)
    assert says in complaint(write_firmware, {"avr5": core}, tmp_path / "new.json")
    assert not list(tmp_path.iterdir())
    path = tmp_path / "firmware.json"
    path.write_text(json.dumps({"format": "twinedge firmware", "version": 1, "cores": {"x": core}}))
    message = complaint(read_firmware, path)
    assert says in message
    assert str(path) in message


def test_a_field_that_is_missing_is_named(complaint, core):
    for entry, what, names in (
        (core["builds"][0], "a build", ("activation", "text_bytes", "scratch", "worst")),
        (core, "a core", ("port", "builds", "stacks")),
    ):
        for name in names:
            value = entry.pop(name)
            assert f"{what} has no {name}" in complaint(read_runtime, core)
            entry[name] = value


FILES = [
    ("{", "not JSON"),
    ("[]", "format"),
    ("{}", "format"),
    ('{"format": "twinedge firmware", "version": 2, "cores": {}}', "version 2"),
    ('{"format": "twinedge firmware", "version": 1}', "'cores' is not an object"),
    ('{"format": "twinedge firmware", "version": 1, "cores": {"x": 1}}', "a core is not an object"),
    ("[" * 100_000, "not JSON"),
]


@pytest.mark.parametrize(
    ("text", "says"), FILES, ids=["cut", "list", "empty", "newer", "no cores", "number", "nested"]
)
def test_a_file_of_another_format_is_refused(complaint, tmp_path, text, says):
    path = tmp_path / "firmware.json"
    path.write_text(text)
    assert says in complaint(read_firmware, path)


def test_a_file_that_cannot_be_read_is_named(complaint, tmp_path):
    path = tmp_path / "firmware.json"
    assert "firmware.json" in complaint(read_firmware, path)
    assert "cannot read" in complaint(read_firmware, tmp_path)
    path.write_bytes(b"\xff\xfe{}")
    assert "not JSON" in complaint(read_firmware, path)


# -- scratch: what is predicted is what the C runtime needs ----------------------------------------

FIRMWARE = Path(__file__).parents[2] / "firmware_ref"
PROGRAM = """
#include "twin_kernel.h"
#include "twin_model.h"
#include <stdio.h>

int main(int argc, char **argv) {
    static uint32_t pack[1 << 20];
    twin_kernel kernel;
    twin_model model;
    int i;
    for (i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        unsigned long size;
        if (!file)
            return 1;
        size = (unsigned long)fread(pack, 1, sizeof pack, file);
        fclose(file);
        if (twin_open(&model, pack, (uint32_t)size))
            return 2;
        kernel = *model.kernel;
        kernel.lines = i % 2 && TWIN_WITH_LINES; /* where they are compiled */
        kernel.work_bytes = i % 3 * 512;
        model.kernel = &kernel;
        printf("%d %d %d %d %d %d %u %u %lu\\n", kernel.align, kernel.unit, kernel.partial_bytes,
               kernel.block_bytes, kernel.room_bytes, kernel.lines, kernel.work_bytes,
               (unsigned)sizeof(twini_place), (unsigned long)twin_scratch_size(&model));
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None and not os.environ.get("CI"):
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("scratch")
    (folder / "main.c").write_text(PROGRAM)
    core = [*FIRMWARE.glob("src/*.c"), FIRMWARE / "src" / "kernels" / "kernel_portable.c"]
    flags = ["-std=c99", "-O1", "-I", str(FIRMWARE / "include"), "-I", str(FIRMWARE / "src")]
    flags += ["-DTWIN_KERNEL=(&twini_kernel_portable)", "-DTWIN_HOST=1"]
    command = [compiler, *flags, "-o", "scratch", "main.c", *sorted(map(str, core))]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "scratch"


def test_scratch_is_what_the_runtime_says(program, packs, tmp_path):
    models = []
    for seed in range(24):
        path = tmp_path / f"{seed}.twin"
        # Many features and few neurons: the places of a map decide.
        shape = {"features": 90, "hidden": (2,)} if seed % 8 == 7 else {}
        pack = packs.random_pack(np.random.default_rng(seed), mapped=bool(seed % 2), **shape)
        path.write_bytes(write_pack(pack))
        models.append(from_pack(path)[0])
    assert {bool(model.neighbors) for model in models} == {False, True}
    assert {len(model.hidden) for model in models} == {1, 2, 3}
    assert {model.activation for model in models} == {"relu", "silu"}
    names = [str(tmp_path / f"{seed}.twin") for seed in range(24)]
    done = subprocess.run([program, *names], capture_output=True, text=True, check=True)
    for line, model in zip(done.stdout.splitlines(), models, strict=True):
        *kernel, size = map(int, line.split())
        assert Scratch(*kernel).bytes(model) == size
