"""``twinedge firmware``: packs on boards, as users see them."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from twinedge.budget import Model, all_boards
from twinedge.pack import read_pack, write_pack
from twinedge_export.boards import target_named
from twinedge_export.boards.reference_packs import random_pack

PACK = Path(__file__).parents[1] / "golden" / "odd-silu.twin"
BOARD = "mps2-an386"


@pytest.fixture
def files(tmp_path):
    """A pack, and a table of five queries for it."""
    pack = read_pack(PACK.read_bytes())
    shutil.copyfile(PACK, tmp_path / "model.twin")
    points = pack.anchors[:1].repeat(5, axis=0) / pack.x_gain + pack.x_offset
    points += np.arange(5)[:, None] * 100 / pack.x_gain
    header = ",".join(f"x{number}" for number in range(pack.features))
    np.savetxt(tmp_path / "data.csv", points, delimiter=",", header=header, comments="")
    return pack


def test_boards_are_listed(cli):
    answer = cli("firmware", "boards")
    assert (answer.code, answer.err) == (0, "")
    header, *rows = answer.out.splitlines()
    assert header.split()[:3] == ["board", "core", "title"]
    listed = cli("firmware", "boards", "--json").json["boards"]
    assert [row.split()[0] for row in rows] == [board["board"] for board in listed]
    assert {"uno", "mega2560", "microbit", BOARD, "riscv32-virt"} <= {
        board["board"] for board in listed
    }
    assert all(board["missing"] == [] for board in listed)


def test_run_compares_and_measures(cli, files):
    answer = cli("firmware", "run", "-b", BOARD, "model.twin", "data.csv", "--rows", 3, "--json")
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    assert found["board"] == BOARD
    assert found["core"] == "cortex-m4"
    assert found["queries"] == 3
    assert found["bit_exact"] is True
    counts = ("instructions_per_query", "macs_per_query", "text_bytes", "pack_bytes")
    counts = (*counts, "opening_instructions")
    for name in (*counts, "ram_bytes", "stack_bytes"):
        assert found[name] > 0
    inputs, outputs = files.hidden[:2]
    assert found["macs_per_query"] >= 2 * files.members * inputs * outputs
    parts = ("data_bytes", "bss_bytes", "context_bytes", "scratch_bytes", "stack_bytes")
    assert found["ram_bytes"] == sum(found[name] for name in parts) + 4 * files.features
    assert found["pack_bytes"] <= PACK.stat().st_size


STANDS_IN = {
    **dict.fromkeys(("mkrzero", "pico", "microbit-v1"), "microbit"),
    **dict.fromkeys(("nano33ble", "microbit-v2", "nrf52840"), "mps2-an386"),
    **dict.fromkeys(("nucleo-f411re", "nucleo-l432kc"), "mps2-an386"),
    **dict.fromkeys(("stm32h743", "teensy41"), "mps2-an500"),
    **dict.fromkeys(("pi-zero-2w", "pi4", "pi5"), "linux-aarch64"),
    **dict.fromkeys(("esp32-c3", "gd32vf103"), "riscv32-virt"),
    **dict.fromkeys(("nano-every", "leonardo"), "uno"),
    "pico2": "mps2-an505",
    "bluepill": "mps2-an385",
    **{name: name for name in ("uno", "mega2560", "esp8266")},
}
WITHOUT = {"esp32": "xtensa-lx6", "esp32-s3": "xtensa-lx7"}


def test_every_board_of_the_budget_is_played_by_one_of_its_core(cli):
    owned = all_boards()
    assert owned.keys() == STANDS_IN.keys() | WITHOUT.keys()
    for name, port in STANDS_IN.items():
        target = target_named(name)
        assert target.port.name == port
        assert target.port.core == owned[name].core.same_as
        words = None
        if port != name and name != "microbit-v1":  # which QEMU calls microbit
            words = f"{port} ({target.port.core}), as {name} has no emulator here"
        assert target.emulated == words
    listed = cli("firmware", "boards", "--json").json["boards"]
    plays = {name: one["board"] for one in listed for name in one["plays"]}
    assert plays == {name: port for name, port in STANDS_IN.items() if name != port}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_core_without_an_emulator_is_refused_with_the_boards_that_have_one(refused, files, name):
    says = (f"{name}: there is no emulator", WITHOUT[name], "pico, pico2", "mps2-an386")
    refused("firmware", "run", "-b", name, "model.twin", says=says)


def test_a_board_runs_on_the_emulator_of_its_core_with_a_remark(cli, files):
    name, core = "pico", "cortex-m0"
    answer = cli("firmware", "run", "-b", name, "model.twin", "data.csv", "--json")
    words = f"{STANDS_IN[name]} ({core}), as {name} has no emulator here"
    assert (answer.code, answer.err) == (0, f"Emulated on {words}\n")
    found = answer.json
    assert (found["board"], found["port"], found["emulated"]) == (name, STANDS_IN[name], words)
    assert (found["core"], found["queries"], found["bit_exact"]) == (core, 5, True)


def test_an_image_for_another_board_is_written_with_a_remark(cli, files, tmp_path):
    answer = cli("firmware", "build", "-b", "pico", "model.twin", "-o", "it.elf", "--json")
    assert (answer.code, answer.json["image"]) == (0, "it.elf")
    assert (answer.json["board"], answer.json["port"]) == ("pico", "microbit")
    assert answer.json["text_bytes"] > 0
    assert (tmp_path / "it.elf").read_bytes().startswith(b"\x7fELF")
    assert {path.name for path in tmp_path.iterdir()} == {"model.twin", "data.csv", "it.elf"}
    assert answer.err.startswith("Built for microbit (cortex-m0), as pico has no emulator here;")


@pytest.mark.slow
def test_limits_are_those_of_the_board_that_was_requested(refused, tmp_path):
    # An Uno has room for it; a Leonardo, whose boot loader is larger, does not.
    pack = random_pack(Model.of(8, (128, 128), 32))
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    says = ("leonardo: the image takes", "of 28672 bytes of flash")
    refused("firmware", "build", "-b", "leonardo", "model.twin", says=says)
    # A Nano Every might hold this, but not the Uno that emulates it.
    pack = random_pack(Model.of(8, (144, 128), 32))
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    says = ("will not fit", "emulated on uno (avr5), as nano-every has no emulator here")
    refused("firmware", "build", "-b", "nano-every", "model.twin", says=says)


def test_a_port_is_measured_and_not_what_it_plays(refused):
    says = ("pico is not a port: use microbit",)
    refused("firmware", "measure", "-b", "pico", says=says)


def test_an_answer_that_differs_ends_with_1(cli, files, monkeypatch):
    from twinedge.runtime import reference

    evaluate = reference.evaluate

    def wrong(pack, queries):
        found = evaluate(pack, queries)
        found.mean[1] = np.nextafter(found.mean[1], np.float32(np.inf))
        return found

    monkeypatch.setattr(reference, "evaluate", wrong)
    answer = cli("firmware", "run", "-b", BOARD, "model.twin", "data.csv")
    assert answer.code == 1
    assert re.search(r"^bit exact +no$", answer.out, re.MULTILINE)


@pytest.mark.slow
def test_all_of_the_runtime_has_intervals_even_on_an_avr(cli, tmp_path):
    model = Model.of(2, (8, 6), 4, intervals=True)
    (tmp_path / "model.twin").write_bytes(write_pack(random_pack(model)))
    trim, whole = (
        cli("firmware", "run", "-b", "uno", "model.twin", "--json", *more).json
        for more in ((), ("--keep-all",))
    )
    assert trim["bit_exact"]
    assert whole["bit_exact"]
    assert whole["text_bytes"] > trim["text_bytes"]


@pytest.mark.parametrize("command", ["run", "build"])
def test_a_board_or_a_pack_that_will_not_do(refused, files, tmp_path, command):
    says = ("'mps2-an368'", f"did you mean {BOARD!r}", "uno")
    refused("firmware", command, "-b", "mps2-an368", "model.twin", says=says)
    says = ("cannot read nothing.twin", "No such file")
    refused("firmware", command, "-b", BOARD, "nothing.twin", says=says)
    content = bytearray(PACK.read_bytes())
    content[len(content) // 2] ^= 16
    (tmp_path / "model.twin").write_bytes(content)
    refused("firmware", command, "-b", BOARD, "model.twin", says=("model.twin", "checksum"))


def test_a_table_that_will_not_do(refused, files, tmp_path):
    lines = (tmp_path / "data.csv").read_text().splitlines()
    lines[2] = lines[2].replace(lines[2].split(",")[1], "two", 1)
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    says = ("data.csv", "row 3", "x1", "'two'")
    refused("firmware", "run", "-b", BOARD, "model.twin", "data.csv", says=says)
    (tmp_path / "data.csv").write_text("x1\n0.5\n")
    says = ("data.csv", "1 column", "3 features")
    refused("firmware", "run", "-b", BOARD, "model.twin", "data.csv", says=says)


@pytest.mark.parametrize(
    ("board", "packages"),
    [
        (BOARD, ("gcc-arm-none-eabi", "qemu-system-arm")),
        ("uno", ("gcc-avr", "avr-libc")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_missing_toolchain_is_a_line_with_the_packages(
    refused, files, monkeypatch, tmp_path_factory, board, packages
):
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))
    says = ("apt-get install", *packages)
    refused("firmware", "build", "-b", board, "model.twin", says=says)
