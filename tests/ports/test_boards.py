"""Packs on emulated boards: the bits of the reference, and what a query costs."""

import json
import subprocess

import numpy as np
import pytest

from twinedge.cli import main
from twinedge.pack import write_pack
from twinedge_export.quantise import quantise

MACS = 1_048_576  # of the second layer: 32 anchors in both orders, 128 times 128

# Instructions of a query for each of them, everything from float features to the spread included;
# counted by the emulator, exact.
MOST = {
    "mps2-an386": 1.05,
    "mps2-an500": 1.05,
    "mps2-an505": 1.05,
    "mps2-an385": 3.1,
    "microbit": 5.2,
    "mps3-an547": 0.42,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A file of 8 features, 128-128 relu, int8, 32 anchors, and a table of queries."""
    from twinedge import TwinRegressor
    from twinedge.learn.network import Architecture
    from twinedge.learn.scaling import Scaling

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = X.sum(axis=1)
    twin = TwinRegressor(hidden=(128, 128), activation="relu")
    twin.n_features_in_, twin.activation_ = 8, "relu"
    twin.scaling_ = Scaling.of(X, y)
    twin.architecture_ = Architecture(16, (128, 128), "relu")
    twin.weights_ = twin.architecture_.initial([0])
    twin.anchor_X_, twin.anchor_y_ = X, y
    folder = tmp_path_factory.mktemp("boards")
    (folder / "model.twin").write_bytes(write_pack(quantise(twin, [np.arange(32)]), metadata=False))
    header = ",".join(f"x{i}" for i in range(1, 9))
    np.savetxt(
        folder / "queries.csv", X[-3:], fmt="%.9g", delimiter=",", header=header, comments=""
    )
    return folder


def run(model, board, capsys):
    arguments = ["firmware", "run", "--board", board, model / "model.twin", model / "queries.csv"]
    with pytest.raises(SystemExit) as stop:
        main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert stop.value.code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("board", MOST)
def test_a_board_gives_the_bits_of_the_reference_within_its_instructions(model, board, capsys):
    found = run(model, board, capsys)
    assert found["bit_exact"]
    assert found["queries"] == 3
    assert found["macs_per_query"] == MACS
    assert found["instructions_per_query"] <= MOST[board] * MACS


def test_a_cortex_m4_needs_little_flash_and_ram(model, capsys):
    found = run(model, "mps2-an386", capsys)
    assert found["text_bytes"] <= 4096
    assert found["ram_bytes"] <= 3072
    assert found["pack_bytes"] <= 21_600


def test_risc_v_gives_the_same_bits(model, capsys):
    assert run(model, "riscv32-virt", capsys)["bit_exact"]


def static_bytes(model, board, folder, capsys):
    """Flash, and RAM that is not stack, of all that the linker puts into an image."""
    output = folder / "image.elf"
    with pytest.raises(SystemExit):
        main(["firmware", "build", "-b", board, str(model / "model.twin"), "-o", str(output)])
    capsys.readouterr()
    said = subprocess.run(["avr-size", output], capture_output=True, text=True, check=True)
    text, data, bss = map(int, said.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


@pytest.mark.parametrize(("board", "most"), [("uno", 32_256), ("mega2560", 36_000)])
def test_an_arduino_evaluates_32_anchors(model, board, most, tmp_path, capsys):
    found = run(model, board, capsys)
    assert found["bit_exact"]
    assert found["macs_per_query"] == MACS
    flash, ram = static_bytes(model, board, tmp_path, capsys)
    assert flash <= most  # of an Uno its bootloader leaves so much
    query, estimates = 4 * 8, 4 * 32
    assert ram + found["scratch_bytes"] + query + estimates + found["stack_bytes"] <= 1600
