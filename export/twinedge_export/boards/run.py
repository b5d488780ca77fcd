"""A pack on a board: its answers on an emulator against the reference, and what it costs."""

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.data import read_features, read_table
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.pack import read_pack
from twinedge.pack.contents import Array, Pack, target_names
from twinedge.runtime import reference
from twinedge.runtime.reference import fillable
from twinedge.wording import plural, shown
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import (
    RUNNER,
    Builder,
    Image,
    bad_end,
    count_query,
    output_lines,
    run_emulator,
)


def read_queries(path: Path, pack: Pack, most: int | None = None) -> Array:
    """Read the first ``most`` rows of a CSV file as queries ``(n, f)``, float32.

    Columns are found by the names in the pack's metadata. A pack without names takes a file with
    as many columns as it has features, or also those of its targets, at the end.

    Raises
    ------
    InputError
        If the file lacks the columns.
    """
    names = _names(pack)
    if names:
        encoding = Encoding.of(pack.metadata.get("columns"), names)
        target = target_names(pack.metadata, len(pack.every_target), "y")[0]
        X, _ = read_features(path, encoding, target_name=target, fillable=fillable(pack))
    else:
        X = read_table(path, target=None).X
        if X.shape[1] - pack.features not in (0, len(pack.every_target)):
            raise InputError(
                f"{shown(path)} has {plural(X.shape[1], 'column')}, and the pack, which names "
                f"none, takes {plural(pack.features, 'feature')}"
            )
    with np.errstate(over="ignore"):
        queries: Array = X[:most, : pack.features].astype(np.float32)
    return queries


def anchor_queries(pack: Pack, most: int) -> Array:
    """Return the first anchors as queries ``(n, f)``, float32.

    Behind an input map a pack has no features of its anchors: there, what the map has made of them
    is taken for features, within the ranges of these.
    """
    anchors = pack.anchors[:most, : pack.features]
    if pack.map is not None and pack.domain is not None:
        anchors = np.clip(anchors, pack.domain.least, pack.domain.most)
    points = anchors.astype(np.float32) / pack.x_gain + pack.x_offset
    return points.astype(np.float32)


def _names(pack: Pack) -> list[str]:
    listed = pack.metadata.get("features")
    if not isinstance(listed, list) or len(listed) != pack.features:
        return []
    names = [one.get("name") if isinstance(one, dict) else None for one in listed]
    return [name for name in names if isinstance(name, str)] if all(names) else []


Output = dict[str, list[list[int]]]  # numbers of each line, by its keyword

# The keywords that main.c prints, and how many numbers follow each.
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
    """What a harness printed: sizes and high-water marks in bytes, then one entry per query.

    ``mean`` and ``spread`` are bits of float32, ``estimates`` hashes of the estimates (0 where they
    were not kept), all uint32 ``(n, targets)``; ``instructions`` are float64 ``(n,)``, and so is
    ``opening``, for opening the pack. ``bounds`` uint32 ``(5, n, targets)`` are bits of scale, low
    and high and the masks of features outside and missing, where the runtime has intervals.
    """

    context: int
    kernel: Kernel
    scratch: int
    stack_open: int
    stack_predict: int
    opening: float
    mean: Array
    spread: Array
    estimates: Array
    instructions: Array
    bounds: Array


def run_program(board: Port, image: Image, words: dict[str, int], seconds: float) -> Output:
    """Run an image of any program, and collect what it prints.

    Parameters
    ----------
    board : Port
    image : Image
    words : dict
        How many numbers follow each keyword; lines without a keyword are skipped.
    seconds : float
        Time limit.

    Raises
    ------
    InputError
        If it fails, or does not end in time.
    """
    runner = image.path.with_name(RUNNER)
    command = board.command(board.run, image=image.path, runner=runner)
    done = run_emulator(board, command, seconds)
    lines = output_lines(done.stdout)
    known = [(word, digits) for word, *digits in map(str.split, lines) if word in words]
    if done.returncode or not known or known[-1][0] != "done":
        raise bad_end(board, command[0], done.returncode, lines)
    output: Output = {word: [] for word in words}
    for word, digits in known:
        try:
            numbers = [int(one, 16) for one in digits]
        except ValueError:
            numbers = []
        if len(numbers) != len(digits) or len(numbers) != words[word]:
            line = " ".join([word, *digits])
            raise InputError(f"{board.name}: cannot read this line of the harness: {line}")
        output[word].append(numbers)
    return output


def _read(output: Output, targets: int, counts_per_instruction: float) -> Answers:
    ((_, context, stack_open),) = output["open"]
    (bytes_of_kernel,) = output["kernel"]
    kernel = Kernel(*struct.unpack("<4BH2x", struct.pack("<2I", *bytes_of_kernel)))
    ((scratch, stack_predict),) = output["scratch"]
    ((empty,),) = output["empty"]
    lines = np.array(output["query"], np.uint32).reshape(-1, targets, 4)
    mean, spread, estimates, counts = np.moveaxis(lines, -1, 0)
    ((opening,),) = output["opening"]
    instructions = instructions_of(counts[:, 0], empty, counts_per_instruction)
    took = float(instructions_of(np.array(opening), empty, counts_per_instruction))
    marks = stack_open, stack_predict, took
    bounds = np.moveaxis(np.array(output["bound"], np.uint32).reshape(-1, targets, 5), -1, 0)
    return Answers(context, kernel, scratch, *marks, mean, spread, estimates, instructions, bounds)


def instructions_of(counts: Array, empty: int, counts_per_instruction: float) -> Array:
    """Instructions that a counter saw; NaN where it counts none.

    Parameters
    ----------
    counts : array
        What it counted, including its own reading.
    empty : int
        What it counts for nothing.
    counts_per_instruction : float
        Its rate. A fine counter is less than half an instruction off each time, so that rounding
        both numbers makes the difference exact.
    """
    seen, nothing = (np.asarray(one, np.float64) for one in (counts, empty))
    if counts_per_instruction > 2:
        return np.rint(seen / counts_per_instruction) - np.rint(nothing / counts_per_instruction)
    return (seen - nothing) / (counts_per_instruction or np.nan)


_NAN = 0x7FC00000  # bits
_SECONDS = 60  # time limit of an emulator, at least
_MACS_PER_SECOND = 1e5  # of a slow emulator on a busy machine


class BoardRun(NamedTuple):
    """Results of running queries on a board."""

    board: Port
    image: Image
    answers: Answers
    macs_per_query: int
    features: int
    mismatches: Array  # indices of queries whose bits differ from the reference

    @property
    def instructions_per_query(self) -> int | None:
        """Mean over the queries; None where they were not counted."""
        mean = self.answers.instructions.mean()
        return None if np.isnan(mean) else round(float(mean))

    @property
    def opening_instructions(self) -> int | None:
        """Instructions to open the pack; None where they were not counted."""
        return None if np.isnan(self.answers.opening) else round(self.answers.opening)

    @property
    def stack_bytes(self) -> int:
        """High-water mark of opening and predicting."""
        return max(self.answers.stack_open, self.answers.stack_predict)

    @property
    def ram_bytes(self) -> int:
        """All RAM of a prediction: static, context, scratch, the query, stack."""
        sizes, answers = self.image.sizes, self.answers
        owned = answers.context + answers.scratch + 4 * self.features
        return sizes.data + sizes.bss + owned + self.stack_bytes

    def record(self) -> dict[str, Any]:
        """Lay it out for JSON."""
        sizes, answers = self.image.sizes, self.answers
        return {
            "board": self.board.name,
            "core": self.board.core,
            "queries": len(answers.mean),
            "bit_exact": not len(self.mismatches),
            "instructions_per_query": self.instructions_per_query,
            "macs_per_query": self.macs_per_query,
            "opening_instructions": self.opening_instructions,
            "text_bytes": sizes.text,
            "rodata_bytes": sizes.rodata,
            "data_bytes": sizes.data,
            "bss_bytes": sizes.bss,
            "pack_bytes": self.image.pack_bytes,
            "ram_bytes": self.ram_bytes,
            "context_bytes": answers.context,
            "scratch_bytes": answers.scratch,
            "stack_bytes": self.stack_bytes,
        }


def run_pack(builder: Builder, content: bytes, queries: Array, *, count: bool = True) -> BoardRun:
    """Build a pack into an image, run it, and compare every answer with the reference.

    Parameters
    ----------
    builder : Builder
    content : bytes
        The pack.
    queries : array of shape (n, f), float32
        In the user's units; NaN for a missing feature that the pack can fill in.
    count : bool
        Whether to count instructions even where that is slow, as on Linux.

    Raises
    ------
    InputError
        If the pack is invalid or does not fit, or a tool is missing.
    """
    pack = read_pack(content)
    image = builder.image(content, queries)
    macs = multiply_adds(pack)
    seconds = time_limit((len(queries) + 1) * macs)
    output = run_program(builder.board, image, _WORDS, seconds)
    targets = len(pack.every_target)
    answers = _read(output, targets, builder.board.counts_per_instruction)
    if count and not builder.board.counts_per_instruction:
        answers.instructions[:] = count_query(builder, content, queries[:1], seconds)
    wrong = _wrong(pack, queries, answers)
    return BoardRun(builder.board, image, answers, macs, pack.features, wrong)


def multiply_adds(pack: Pack) -> int:
    """Multiply-adds of a query between hidden layers, both orders of each pair.

    With a single hidden layer, those of that layer.
    """
    widths = pack.hidden if len(pack.hidden) > 1 else (pack.inputs, *pack.hidden)
    return 2 * pack.members * sum(inputs * outputs for inputs, outputs in pairwise(widths))


def time_limit(macs: float) -> float:
    """Seconds that an emulator may take for this many multiply-adds."""
    return _SECONDS + macs / _MACS_PER_SECOND


def _wrong(pack: Pack, queries: Array, answers: Answers) -> Array:
    same = np.ones(len(queries), bool)
    for target, single in enumerate(pack.singles):
        expected = reference.evaluate(single, queries)
        same &= answers.mean[:, target] == expected.mean.view(np.uint32)
        same &= answers.spread[:, target] == expected.spread.view(np.uint32)
        found = answers.estimates[:, target]
        same &= (found == 0) | (found == hashes(expected.estimates))
        if answers.bounds.size:
            same &= _same_bounds(single, queries, expected, answers.bounds[..., target])
    return np.flatnonzero(~same)


def _same_bounds(pack: Pack, queries: Array, expected: reference.Evaluation, found: Array) -> Array:
    missing = np.isnan(queries)
    masks = reference.outside(pack, reference.quantise(pack, queries)) & ~missing, missing
    ends = np.full((3, len(queries)), _NAN, np.uint32)
    if pack.intervals is not None:
        bounds = reference.bounds(pack, expected, pack.intervals.usual_level)
        ends = np.stack([bounds.scale, bounds.low, bounds.high]).view(np.uint32)
    right = np.stack([*ends, *(reference.mask(one) for one in masks)])
    same: Array = (found == right).all(axis=0)
    return same


def hashes(estimates: Array) -> Array:
    """Hash of each row of estimates, int32 ``(n, m)``, as the harness takes it: FNV-1a."""
    value = np.full(len(estimates), 2166136261, np.uint32)
    for column in estimates.view(np.uint32).T:
        value = (value ^ column) * np.uint32(16777619)
    return value
