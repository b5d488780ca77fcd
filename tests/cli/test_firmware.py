"""``twinedge firmware``: packs on boards, as a person meets them."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from twinedge.budget import Model
from twinedge.pack import read_pack, write_pack
from twinedge_export.boards.references import random_pack

PACK = Path(__file__).parents[1] / "golden" / "odd-silu.twin"
BOARD = "mps2-an386"


@pytest.fixture
def files(tmp_path):
    """A pack, and a table of five queries for it."""
    pack = read_pack(PACK.read_bytes())
    shutil.copyfile(PACK, tmp_path / "model.twin")
    points = pack.anchors[:1].repeat(5, axis=0) / pack.x_gain + pack.x_offset
    points += np.arange(5)[:, None] * 100 / pack.x_gain
    header = ",".join(f"x{number}" for number in range(1, pack.features + 1))
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


def test_build_writes_an_image(cli, files, tmp_path):
    answer = cli("firmware", "build", "-b", BOARD, "model.twin", "-o", "it.elf", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json["image"] == "it.elf"
    assert answer.json["text_bytes"] > 0
    assert (tmp_path / "it.elf").read_bytes().startswith(b"\x7fELF")
    assert {path.name for path in tmp_path.iterdir()} == {"model.twin", "data.csv", "it.elf"}


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
def test_no_such_board(refused, files, command):
    says = ("'mps2-an368'", f"did you mean {BOARD!r}", "uno")
    refused("firmware", command, "-b", "mps2-an368", "model.twin", says=says)


@pytest.mark.parametrize("command", ["run", "build"])
def test_no_such_pack(refused, files, command):
    says = ("nothing.twin", "No such file", "name a .twin file")
    refused("firmware", command, "-b", BOARD, "nothing.twin", says=says)


@pytest.mark.parametrize("command", ["run", "build"])
def test_a_damaged_pack(refused, files, tmp_path, command):
    content = bytearray(PACK.read_bytes())
    content[len(content) // 2] ^= 16
    (tmp_path / "model.twin").write_bytes(content)
    refused("firmware", command, "-b", BOARD, "model.twin", says=("model.twin", "checksum"))


def test_a_damaged_table(refused, files, tmp_path):
    lines = (tmp_path / "data.csv").read_text().splitlines()
    lines[2] = lines[2].replace(lines[2].split(",")[1], "two", 1)
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    says = ("data.csv", "row 3", "x2", "'two'")
    refused("firmware", "run", "-b", BOARD, "model.twin", "data.csv", says=says)


def test_a_table_of_other_columns(refused, files, tmp_path):
    (tmp_path / "data.csv").write_text("x1\n0.5\n")
    says = ("data.csv", "1 column", "3 features")
    refused("firmware", "run", "-b", BOARD, "model.twin", "data.csv", says=says)


def test_no_such_table(refused, files):
    refused("firmware", "run", "-b", BOARD, "model.twin", "no.csv", says=("no.csv",))


def test_a_number_of_rows_that_is_none(refused, files):
    arguments = ("firmware", "run", "-b", BOARD, "model.twin", "data.csv", "--rows", "0")
    refused(*arguments, says=("--rows", "0"))


@pytest.mark.parametrize(
    ("board", "packages"),
    [
        (BOARD, ("gcc-arm-none-eabi", "qemu-system-arm")),
        ("uno", ("gcc-avr", "avr-libc")),
        ("riscv32-virt", ("gcc-riscv64-unknown-elf", "qemu-system-misc")),
        ("linux-armhf", ("gcc-arm-linux-gnueabihf", "qemu-user")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_missing_toolchain_is_a_line_with_the_packages(
    refused, files, monkeypatch, tmp_path_factory, board, packages
):
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))
    says = ("apt-get install", *packages)
    refused("firmware", "build", "-b", board, "model.twin", says=says)
