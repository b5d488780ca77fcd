"""What a query costs on emulated boards: instructions, exact as the emulators count, and bytes."""

import subprocess

import numpy as np
import pytest

from twinedge.pack import write_pack

MACS = 1_048_576  # of the second layer: 32 anchors in both orders, 128 times 128

# Models of about the same bytes: hidden layers, activation, anchors of each twin.
MODELS = {
    "relu": ((128, 128), "relu", [32]),
    "silu": ((128, 128), "silu", [32]),
    "four": ((64, 64), "relu", [8, 8, 8, 8]),
    "smaller": ((112, 112), "relu", [32]),
}

# Most instructions of a query per multiply-add, including everything from float features to the
# spread, with relu.
MOST = {
    "mps2-an386": 0.9715,
    "mps2-an500": 0.9715,
    "mps2-an505": 0.9715,
    "mps2-an385": 2.3185,
    "microbit": 3.95,
    "mps3-an547": 0.3785,
    "riscv32-virt": 2.9,
    "esp8266": 4.8,
}
OPENING = {"mps2-an386": 22, "microbit": 45}  # and of opening a pack, per byte
# silu relative to relu, where it is straight lines from RAM, and where it is the curve of the pack
SILU, SILU_BY_CURVE = 1.08, {"riscv32-virt": 1.25, "esp8266": 1.19}
# What intervals may add on a Cortex-M4: fraction of the instructions, bytes of RAM, and of text
# relative to the runtime before it had them.
INTERVALS, INTERVALS_RAM, TEXT_BEFORE, INTERVALS_TEXT = 1.03, 64, 4484, 940
FOUR = 0.30  # of that in four small twins
BOARDS = [one if one == "mps2-an386" else pytest.param(one, marks=pytest.mark.slow) for one in MOST]


@pytest.fixture(scope="module")
def run(untrained, packs, builder):
    """Three queries of a model on a board, run once: ``run(model, board)``.

    "relu with intervals" is the model "relu" with them.
    """
    from twinedge_export.boards import run_pack
    from twinedge_export.boards.build import flags_for

    made, results = {}, {}
    queries = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float32)

    def make(model, board, *flags):
        if model not in made:
            made[model] = untrained(*MODELS[model.split()[0]])
            if model.endswith("with intervals"):
                made[model] = packs.with_intervals(np.random.default_rng(3), made[model])
        if (model, board, flags) not in results:
            content = write_pack(made[model], metadata=False)
            images = builder(board, (*flags_for(made[model]), *flags))
            found = run_pack(images, content, queries)
            assert not len(found.mismatches)
            results[model, board, flags] = found
        return results[model, board, flags]

    return make


@pytest.mark.parametrize("board", BOARDS)
def test_a_query_keeps_within_its_instructions(run, board):
    found = run("relu", board)
    assert found.macs_per_query == MACS
    assert found.instructions_per_query <= MOST[board] * MACS


@pytest.mark.parametrize("board", BOARDS)
def test_silu_costs_little_more(run, board):
    relu, silu = run("relu", board), run("silu", board)
    most = SILU_BY_CURVE.get(board, SILU)
    assert silu.instructions_per_query <= most * relu.instructions_per_query


def test_four_small_twins_cost_less_than_a_third(run):
    board = "mps2-an386"
    relu, four = run("relu", board), run("four", board)
    assert four.image.pack_bytes <= 1.2 * relu.image.pack_bytes
    assert four.macs_per_query == MACS / 4
    assert four.instructions_per_query <= FOUR * relu.instructions_per_query


@pytest.mark.parametrize("board", ["mps2-an386", pytest.param("microbit", marks=pytest.mark.slow)])
def test_opening_a_pack_keeps_within_its_instructions(run, board):
    found = run("relu", board)
    assert found.answers.opening <= OPENING[board] * found.image.pack_bytes
    assert found.answers.opening < found.instructions_per_query


def test_opening_in_one_go_and_bit_by_bit_takes_less_flash(run):
    found = run("relu", "mps2-an386", "-DTWIN_OPEN_STEPS=0", "-DTWIN_QUICK_OPEN=0")
    assert found.image.sizes.text <= 4210


def test_a_cortex_m4_needs_little_flash_and_ram(run):
    found = run("relu", "mps2-an386")
    sizes = found.image.sizes
    assert sizes.text <= 4488
    assert sizes.data + sizes.bss == 0
    assert found.ram_bytes <= 3072
    assert found.image.pack_bytes <= 21_600


def test_intervals_cost_a_cortex_m4_little(run):
    board = "mps2-an386"
    without, found = run("relu", board), run("relu with intervals", board)
    assert found.instructions_per_query <= INTERVALS * without.instructions_per_query
    assert found.ram_bytes <= without.ram_bytes + INTERVALS_RAM
    assert found.image.sizes.text <= TEXT_BEFORE + INTERVALS_TEXT
    assert found.image.sizes.data + found.image.sizes.bss == 0


@pytest.mark.parametrize("board", BOARDS)
def test_intervals_are_the_same_bits_on_every_core(run, board):
    for model in ("relu with intervals", "silu with intervals", "four with intervals"):
        run(model, board)  # asserts it


def static_bytes(image):
    """Flash, and RAM without stack, of everything in an image."""
    output = subprocess.run(["avr-size", image.path], capture_output=True, text=True, check=True)
    text, data, bss = map(int, output.stdout.splitlines()[1].split()[:3])
    return text + data, data + bss


@pytest.mark.parametrize(
    ("board", "most"),
    [("uno", 32_256), pytest.param("mega2560", 36_000, marks=pytest.mark.slow)],
)
def test_an_arduino_evaluates_32_anchors(run, board, most):
    found = run("relu", board)
    assert found.macs_per_query == MACS
    flash, ram = static_bytes(found.image)
    assert flash <= most  # as much as an Uno's bootloader leaves
    memory = 4 * 8 + 4 * 32 + found.answers.scratch  # query, estimates, scratch
    assert ram + memory + found.stack_bytes <= 1600


@pytest.mark.slow
def test_an_uno_evaluates_112_neurons_with_32_anchors_and_intervals(run):
    flash, _ = static_bytes(run("smaller with intervals", "uno").image)
    assert flash <= 32_256
