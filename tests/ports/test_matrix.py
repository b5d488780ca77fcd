"""Every board computes the bits of the reference, for every pack."""

import platform
import subprocess

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge_export.boards import all_ports, port_named, run_pack
from twinedge_export.boards.build import EVERYTHING, all_flags_for

# Name: features, hidden layers, activation, type of weights; anchors of twins, neighbors.
PACKS = {
    "relu": ((8, (40, 48), "relu", np.int8), [12], 0),
    "silu": ((8, (48, 40), "silu", np.int8), [12], 0),
    "odd-widths": ((5, (7, 13, 3), "relu", np.int8), [11], 0),
    "odd-widths-silu": ((3, (33, 9), "silu", np.int8), [7], 0),
    "1-anchor": ((2, (16, 16), "silu", np.int8), [1], 0),
    "64-anchors": ((3, (12, 10), "relu", np.int8), [64], 0),
    "neighbors": ((4, (16, 16), "silu", np.int8), [30], 5),
    "four-twins": ((8, (24, 24), "relu", np.int8), [3, 5, 4, 4], 0),
    "four-twins-of-neighbors": ((6, (10, 8), "silu", np.int8), [5, 1, 9, 3], 2),
    "int16": ((6, (20, 12), "relu", np.int16), [5], 0),
    "one-layer": ((3, (30,), "relu", np.int8), [5], 0),
    "one-layer-silu": ((8, (21,), "silu", np.int8), [4], 0),
    "three-layers-silu": ((9, (20, 32, 16), "silu", np.int8), [5], 0),
    "wide-layers-silu": ((8, (64, 112), "silu", np.int8), [3], 0),
}
QUERIES, QUERIES_ON_AVR = 100, 16
QUICK = "mps2-an386", 3  # of several targets
# Of everything: boards with kernels in assembly and in C with intrinsics, of 8 to 64 bits; one of
# several targets has the Cortex-M4, and tests/firmware the kernels of this machine.
QUICK_BOARDS = {"mps3-an547", "riscv32-virt", "uno", "linux-aarch64"}


def check(pack, cases, images, count):
    board = images.board
    result = run_pack(images, write_pack(pack), cases.queries(pack, count), count=False)
    assert len(result.answers.mean) == count
    assert not len(result.mismatches)
    if platform.machine() == board.core:  # then no emulator is needed
        here = subprocess.run([result.image.path], capture_output=True, check=True)
        emulated = subprocess.run(
            board.command(board.run, image=result.image.path), capture_output=True, check=True
        )
        answers = [
            [line for line in done.stdout.splitlines() if line.startswith(b"query")]
            for done in (here, emulated)  # which may have different kernels
        ]
        assert answers[0] == answers[1]
        assert len(answers[0]) == count


def draw(packs, cases, name):
    rng = np.random.default_rng([5, list(PACKS).index(name)])
    return cases.make(packs, rng, PACKS[name], weights="normal")


@pytest.mark.parametrize(
    "board",
    [
        pytest.param(
            name,
            marks=[pytest.mark.slow]
            * (name not in QUICK_BOARDS or port.core == platform.machine()),
        )
        for name, port in all_ports().items()
    ],
)
def test_a_pack_with_some_of_everything(packs, cases, builder, board):
    pack = draw(packs, cases, "four-twins-of-neighbors")
    quickly = ("-O0",) if port_named(board).hosted else ()  # their kernels take long to compile
    check(pack, cases, builder(board, (*EVERYTHING, *quickly)), 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKS)
@pytest.mark.parametrize("board", all_ports())
def test_all_packs(packs, cases, builder, board, name):
    count = QUERIES_ON_AVR if port_named(board).compiler == "avr-gcc" else QUERIES
    check(draw(packs, cases, name), cases, builder(board, EVERYTHING), count)


@pytest.mark.parametrize(
    ("board", "targets"),
    [
        pytest.param(board, targets, marks=[pytest.mark.slow] * ((board, targets) != QUICK))
        for board in all_ports()
        for targets in (2, 3, 8)
        if (board, targets) != ("uno", 8)  # whose stack is too small; a Mega has the same core
    ],
)
def test_packs_of_several_targets(packs, cases, builder, board, targets):
    rng = np.random.default_rng([7, targets])
    for activation, mapped in (("relu", targets < 8), ("silu", targets == 8)):
        shape = (6, (10, 8), activation, np.int8), [5, 1, 9, 3], 2 if targets == 3 else 0
        bent = {"mapped": mapped, "curved": mapped}
        pack = cases.make(packs, rng, shape, weights="normal", outputs=targets, **bent)
        check(pack, cases, builder(board, all_flags_for(pack)), 12)


def test_the_boards_are_all_there():
    cores = {board.core for board in all_ports().values()}
    arm = {f"cortex-m{number}" for number in (0, 3, 4, 7, 33, 55)}
    assert cores >= arm | {"rv32imac", "xtensa-lx106", "avr5", "avr6", "aarch64", "armhf"}


@pytest.mark.parametrize("board", all_ports())
def test_no_tool_of_a_board_is_missing(board):
    assert port_named(board).missing == []
