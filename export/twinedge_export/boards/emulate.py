"""Running an image, and reading what its harness says."""

import struct
import subprocess
from typing import NamedTuple

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge_export.boards.board import Board
from twinedge_export.boards.build import RUNNER, Image

Said = dict[str, list[list[int]]]  # numbers of each line, by the word in front of them

# The words of main.c, and how many numbers follow them.
_WORDS = {
    "open": 3,
    "kernel": 2,
    "scratch": 2,
    "empty": 1,
    "opening": 1,
    "query": 4,
    "bound": 5,
    "done": 0,
}


class Kernel(NamedTuple):
    """Numbers of the ``twin_kernel`` that evaluated a pack; ``twin_kernel.h`` explains them."""

    pairs: int
    unit: int
    align: int
    partial_bytes: int
    block_bytes: int


class Answers(NamedTuple):
    """What a harness said: sizes and marks in bytes, then one entry to a query.

    ``mean`` and ``spread`` are bits of float32, ``members`` hashes of the estimates (0 where they
    were not kept), all uint32 ``(n,)``; ``instructions`` are float64 ``(n,)``, and so is
    ``opening``, those of opening the pack. ``bounds`` uint32 ``(5, n)`` are bits of scale, low and
    high and the masks of features outside and missing, where the runtime has intervals.
    """

    context: int
    kernel: Kernel
    scratch: int
    stack_open: int
    stack_predict: int
    opening: float
    mean: Array
    spread: Array
    members: Array
    instructions: Array
    bounds: Array


def run_image(board: Board, image: Image, seconds: float) -> Answers:
    """Run an image on the board's emulator.

    Raises
    ------
    InputError
        Where it does not come to an end in so many seconds, or to a good one.
    """
    return _read(listen(board, image, _WORDS, seconds), board.counts_per_instruction)


def listen(board: Board, image: Image, words: dict[str, int], seconds: float) -> Said:
    """Run an image of any program, and gather what it says.

    Parameters
    ----------
    board : Board
    image : Image
    words : dict
        How many numbers follow each word; lines that begin otherwise are passed over.
    seconds : float
        That it may take.

    Raises
    ------
    InputError
        Where it does not come to an end in that time, or to a good one.
    """
    runner = image.path.with_name(RUNNER)
    command = board.command(board.run, image=image.path, runner=runner)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{board.name}: the emulation did not end in {seconds:.0f} s") from error
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    said = [(word, numbers) for word, *numbers in map(str.split, lines) if word in words]
    if done.returncode or not said or said[-1][0] != "done":
        last = lines[-1] if lines else "silence"
        raise InputError(f"{board.name}: {command[0]} ended with {done.returncode} after: {last}")
    of: Said = {word: [] for word in words}
    for word, digits in said:
        numbers = [int(one, 16) for one in digits]
        assert len(numbers) == words[word], "the harness and its words do not fit together"
        of[word].append(numbers)
    return of


def _read(of: Said, counts_per_instruction: float) -> Answers:
    ((_, context, stack_open),) = of["open"]
    (bytes_of_kernel,) = of["kernel"]
    kernel = Kernel(*struct.unpack("<4BH2x", struct.pack("<2I", *bytes_of_kernel)))
    ((scratch, stack_predict),) = of["scratch"]
    ((empty,),) = of["empty"]
    mean, spread, members, counts = np.array(of["query"], np.uint32).reshape(-1, 4).T
    ((opening,),) = of["opening"]
    per_instruction = counts_per_instruction or np.nan
    instructions = (counts.astype(np.float64) - empty) / per_instruction
    marks = stack_open, stack_predict, (opening - empty) / per_instruction
    bounds = np.array(of["bound"], np.uint32).reshape(-1, 5).T
    return Answers(context, kernel, scratch, *marks, mean, spread, members, instructions, bounds)
