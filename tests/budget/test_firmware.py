"""Measured sizes: read, checked, and never made up."""

import json
from dataclasses import replace

import pytest

from twinedge.budget import Model, read_firmware, write_firmware
from twinedge.budget.firmware import Scratch, runtime_of


def test_what_ships_is_sound():
    for runtime in read_firmware().values():
        assert runtime.text_bytes > 0
        assert runtime.references


def test_what_is_written_is_read(core, tmp_path):
    path = tmp_path / "firmware.json"
    write_firmware({"b": core, "a": core}, path)
    assert read_firmware(path) == {"a": runtime_of(core), "b": runtime_of(core)}
    assert list(json.loads(path.read_text())["cores"]) == ["a", "b"]
    assert [one.name for one in tmp_path.iterdir()] == ["firmware.json"]


def test_sums_by_hand(core):
    runtime = runtime_of(core)
    model = Model.of(8)
    assert runtime.flash_bytes == 4000 + 100 + 20
    assert runtime.scratch.bytes(model) == 8 * 128 + 2 * 8 + 7
    assert runtime.ram_bytes(model) == 20 + 30 + 50 + 1047 + 4 * 8 + 200


def test_scratch_by_hand():
    scratch = Scratch(align=8, unit=4, partial_bytes=8, block_bytes=6)
    # Partial sums, a block for each layer but the last, the query, and what alignment may cost.
    model = Model(5, (6, 9, 30), (10, 2))
    assert scratch.bytes(model) == 48 + 48 + 72 + 16 + 7
    assert scratch.bytes(Model.of(5, (6,), 12)) == 48 + 16 + 7
    # Neighbours are listed where a twin has more anchors than that.
    assert scratch.bytes(replace(model, neighbors=9)) == scratch.bytes(model) + 72
    assert scratch.bytes(replace(model, neighbors=10)) == scratch.bytes(model)


def put(*keys):
    """Return a change that sets a value deep in an entry."""

    def change(core, value):
        place = core
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


BAD = [
    (put("text_bytes"), -1, "text_bytes: -1"),
    (put("stack_bytes"), 1.5, "stack_bytes: 1.5"),
    (put("bss_bytes"), True, "bss_bytes: True"),
    (put("data_bytes"), None, "data_bytes: None"),
    (put("compiler"), 12, "compiler 12"),
    (put("colour"), "red", "a core has colour"),
    (put("scratch"), [16], "scratch is not an object"),
    (put("scratch"), {"align": 8}, "scratch has no unit"),
    (put("scratch", "moon"), 1, "scratch has moon"),
    (put("scratch", "unit"), "4", "unit: '4'"),
    (put("scratch", "align"), 0, "at least 1"),
    (put("scratch", "partial_bytes"), 9, "1175 bytes for (128, 128) with 8 features, but 1047"),
    (put("references"), {}, "references is not a list"),
    (put("references", 0), 5, "a reference is not an object"),
    (put("references", 0, "hidden"), 128, "lists of whole numbers"),
    (put("references", 0, "hidden"), ["a"], "'a' is not a whole number"),
    (put("references", 0, "hidden"), [], "0 hidden layers"),
    (put("references", 0, "activation"), "tanh", "relu or silu"),
    (put("references", 0, "weights"), "int4", "int4"),
    (put("references", 0, "instructions"), -5, "instructions: -5"),
    (put("references", 0, "seconds"), 1, "a reference has seconds"),
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


@pytest.mark.parametrize("name", ["port", "text_bytes", "context_bytes", "scratch", "references"])
def test_a_field_that_is_missing_is_named(complaint, core, name):
    del core[name]
    assert f"a core has no {name}" in complaint(runtime_of, core)


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
