"""Measured sizes: read, checked, and never made up."""

import json
from dataclasses import replace

import pytest

from twinedge.budget import Model, read_firmware, write_firmware
from twinedge.budget.measurements import Scratch, read_runtime


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
    (put(*FIRST, "stack_bytes"), 1.5, "stack_bytes: 1.5"),
    (put(*FIRST, "bss_bytes"), True, "bss_bytes: True"),
    (put(*FIRST, "data_bytes"), None, "data_bytes: None"),
    (put(*FIRST, "scratch"), [16], "scratch is not an object"),
    (put(*FIRST, "scratch"), {"align": 8}, "scratch has no unit"),
    (put(*FIRST, "scratch", "moon"), 1, "scratch has the unknown field moon"),
    (put(*FIRST, "scratch", "unit"), "4", "unit: '4'"),
    (put(*FIRST, "scratch", "align"), 0, "at least 1"),
    (
        put(*FIRST, "scratch", "partial_bytes"),
        9,
        "comes to 1175 bytes for (128, 128) with 8 features",
    ),
    (put(*FIRST, "references"), {}, "references: {} is not a list"),
    (put(*FIRST, "references", 0), 5, "a reference is not an object"),
    (put(*FIRST, "references", 0, "hidden"), 128, "hidden: 128 is not a list"),
    (put(*FIRST, "references", 0, "hidden"), ["a"], "'a' is not a whole number"),
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


@pytest.mark.parametrize("name", ["port", "flags", "builds"])
def test_a_field_that_is_missing_is_named(complaint, core, name):
    del core[name]
    assert f"a core has no {name}" in complaint(read_runtime, core)


@pytest.mark.parametrize("name", ["activation", "text_bytes", "stack_bytes", "scratch"])
def test_a_field_that_a_build_lacks_is_named(complaint, core, name):
    del core["builds"][0][name]
    assert f"a build has no {name}" in complaint(read_runtime, core)


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
def test_a_file_that_is_not_ours_is_refused(complaint, tmp_path, text, says):
    path = tmp_path / "firmware.json"
    path.write_text(text)
    assert says in complaint(read_firmware, path)


def test_a_file_that_is_not_there_is_named(complaint, tmp_path):
    assert "none.json" in complaint(read_firmware, tmp_path / "none.json")
    assert "cannot read" in complaint(read_firmware, tmp_path)


def test_bytes_that_are_no_text_are_refused(complaint, tmp_path):
    path = tmp_path / "firmware.json"
    path.write_bytes(b"\xff\xfe{}")
    assert "not JSON" in complaint(read_firmware, path)
