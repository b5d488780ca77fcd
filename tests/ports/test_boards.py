"""What a query costs on emulated boards: instructions, exact as the emulators count, and bytes."""

import subprocess
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from twinedge.pack import InputMap, TargetCurve, write_pack

MACS = 1_048_576  # of the second layer: 32 anchors in both orders, 128 times 128

# Models of about the same bytes: hidden layers, activation, anchors of each twin.
MODELS = {
    "relu": ((128, 128), "relu", [32]),
    "silu": ((128, 128), "silu", [32]),
    "four": ((64, 64), "relu", [8, 8, 8, 8]),
    "smaller": ((112, 112), "relu", [32]),
    "plain": ((56, 56), "relu", [8, 8, 8, 8]),
    "mapped": ((48, 48), "relu", [8, 8, 8, 8]),
    "tiny": ((16, 8), "silu", [5, 4]),
}
FEATURES, MORE, BINS = 8, 8, 12  # of a map: features, outputs beyond them, bins of most features

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
MAPPED = 1.02  # of a plain model of about the same bytes
# What a map and a target curve add to the text on a Cortex-M4, about half of it to check packs.
MAP_TEXT, TARGET_CURVE_TEXT = 560, 380
BOARDS = [one if one == "mps2-an386" else pytest.param(one, marks=pytest.mark.slow) for one in MOST]


def with_map(pack):
    """Put a map in front of a pack: of half of its inputs, one of them without a curve."""
    rng = np.random.default_rng(4)
    bins = np.full(FEATURES, BINS, np.uint8)
    bins[2] = 0
    knots = [np.sort(rng.choice(np.arange(-30000, 30000), n + 1, replace=False)) for n in bins if n]
    rows = sum(map(len, knots))
    curves = InputMap(
        bins,
        rng.integers(6, 10, FEATURES + MORE).astype(np.uint8),
        np.concatenate(knots).astype(np.int16),
        rng.integers(-128, 128, (rows, FEATURES + MORE)).astype(np.int8),
    )
    scaling = {"x_offset": pack.x_offset[:FEATURES], "x_gain": pack.x_gain[:FEATURES]}
    return replace(pack, **scaling, map=curves)


def with_target_curve(pack):
    """Let the targets of a pack grow with the exponential of its estimates."""
    estimates = np.arange(-(2**20), 2**20 + 1, 2**14)
    values = np.rint(1e6 * np.exp(estimates / 2**19)).astype(np.int32)
    return replace(pack, target_curve=TargetCurve(-(2**20), 14, values))


@pytest.fixture(scope="module")
def run(untrained, packs, builder):
    """Three queries of a model on a board, run once: ``run(model, board)``.

    "relu with intervals" is the model "relu" with them, "tiny with a map and a target curve" the
    model "tiny" with these.
    """
    from twinedge_export.boards import run_pack
    from twinedge_export.boards.build import flags_for

    made, results = {}, {}
    queries = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float32)

    def make(model, board, *flags):
        if model not in made:
            mapped = "map" in model
            shape = MODELS[model.split()[0]]
            made[model] = untrained(*shape, features=FEATURES + MORE * mapped)
            if mapped:
                made[model] = with_map(made[model])
            if "target curve" in model:
                made[model] = with_target_curve(made[model])
            if "intervals" in model:
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


def test_a_map_costs_no_more_than_wider_layers(run):
    """Of about the same bytes: layers of 48 behind a map with 8 more outputs, layers of 56."""
    board = "mps2-an386"
    plain, mapped = run("plain", board), run("mapped", board)
    assert 0.95 <= mapped.image.pack_bytes / plain.image.pack_bytes <= 1.1
    assert mapped.instructions_per_query <= MAPPED * plain.instructions_per_query


@pytest.mark.slow
def test_what_map_and_target_curve_cost_in_flash(run):
    board = "mps2-an386"
    for intervals, plain in (("", TEXT_BEFORE), (" with intervals", TEXT_BEFORE + INTERVALS_TEXT)):
        text = {
            name: run(f"{model}{intervals}", board).image.sizes.text
            for name, model in {
                "map": "mapped",
                "target curve": "plain with a target curve",
            }.items()
        }
        assert text["map"] <= plain + MAP_TEXT
        assert text["target curve"] <= plain + TARGET_CURVE_TEXT


CURVED = [
    f"tiny with {curves}{intervals}"
    for curves in ("a map", "a target curve", "a map and a target curve")
    for intervals in ("", " with intervals")
]
QUICK = ("mps2-an386", CURVED[-1])


@pytest.mark.parametrize(
    ("board", "model"),
    [
        pytest.param(*one, marks=() if one == QUICK else pytest.mark.slow)
        for one in product((*MOST, "uno"), CURVED)
    ],
)
def test_maps_and_target_curves_are_the_same_bits_on_every_core(run, board, model):
    run(model, board)  # asserts it


@pytest.mark.parametrize("board", ["mps2-an386", pytest.param("microbit", marks=pytest.mark.slow)])
def test_opening_a_pack_keeps_within_its_instructions(run, board):
    found = run("relu", board)
    assert found.answers.opening <= OPENING[board] * found.image.pack_bytes
    assert found.answers.opening < found.instructions_per_query


@pytest.mark.slow
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
@pytest.mark.parametrize(
    "model", ["relu", *(pytest.param(one, marks=pytest.mark.slow) for one in ("silu", "four"))]
)
def test_intervals_are_the_same_bits_on_every_core(run, board, model):
    run(f"{model} with intervals", board)  # asserts it


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
