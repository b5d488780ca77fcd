"""A pack on a board: what it answers, against the reference, and what it costs."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from twinedge.pack import read_pack
from twinedge.pack.contents import Array, Pack
from twinedge.runtime import reference
from twinedge_export.boards.board import Board
from twinedge_export.boards.build import Image, Workshop
from twinedge_export.boards.count import count_query
from twinedge_export.boards.emulate import Answers, run_image

_NAN = 0x7FC00000  # bits
_SECONDS = 60  # that an emulator may take at least
_MACS_PER_SECOND = 1e5  # that a slow one does on a busy machine


class Trial(NamedTuple):
    """What came of running queries on a board."""

    board: Board
    image: Image
    answers: Answers
    macs_per_query: int
    features: int
    mismatches: Array  # numbers of the queries that got other bits than from the reference

    @property
    def instructions_per_query(self) -> int | None:
        """Mean over the queries; None where they were not counted."""
        mean = self.answers.instructions.mean()
        return None if np.isnan(mean) else round(float(mean))

    @property
    def opening_instructions(self) -> int | None:
        """Of opening the pack; None where they were not counted."""
        return None if np.isnan(self.answers.opening) else round(self.answers.opening)

    @property
    def stack_bytes(self) -> int:
        """High-water mark of opening and predicting."""
        return max(self.answers.stack_open, self.answers.stack_predict)

    @property
    def ram_bytes(self) -> int:
        """All RAM that predicting takes: static, context, scratch, the query, stack."""
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


def try_pack(workshop: Workshop, content: bytes, queries: Array, *, count: bool = True) -> Trial:
    """Build a pack into an image, run it, and compare every answer with the reference.

    Parameters
    ----------
    workshop : Workshop
    content : bytes
        The pack.
    queries : array of shape (n, f), float32
        In the user's units; NaN where the pack has a value for it.
    count : bool
        Whether to count instructions even where that takes long: for Linux.

    Raises
    ------
    InputError
        Where the pack is not sound, does not fit, or a tool is missing.
    """
    pack = read_pack(content)
    image = workshop.image(content, queries)
    macs = multiply_adds(pack)
    seconds = patience((len(queries) + 1) * macs)
    answers = run_image(workshop.board, image, seconds)
    if count and not workshop.board.counts_per_instruction:
        answers.instructions[:] = count_query(workshop, content, queries[:1], seconds)
    wrong = _wrong(pack, queries, answers)
    return Trial(workshop.board, image, answers, macs, pack.features, wrong)


def multiply_adds(pack: Pack) -> int:
    """Multiply-adds of a query between hidden layers, both orders of each pair.

    With one hidden layer those of that layer, as there are none between layers.
    """
    widths = pack.hidden if len(pack.hidden) > 1 else (pack.features, *pack.hidden)
    return 2 * pack.members * sum(inputs * outputs for inputs, outputs in pairwise(widths))


def patience(macs: float) -> float:
    """Seconds that an emulator may take for so many multiply-adds."""
    return _SECONDS + macs / _MACS_PER_SECOND


def _wrong(pack: Pack, queries: Array, answers: Answers) -> Array:
    expected = reference.evaluate(pack, queries)
    same = (answers.mean == expected.mean.view(np.uint32)) & (
        answers.spread == expected.spread.view(np.uint32)
    )
    kept = answers.members != 0
    same &= ~kept | (answers.members == hashes(expected.members))
    if answers.bounds.size:
        same &= _same_bounds(pack, queries, expected, answers.bounds)
    return np.flatnonzero(~same)


def _same_bounds(pack: Pack, queries: Array, expected: reference.Estimates, found: Array) -> Array:
    missing = np.isnan(queries)
    masks = reference.outside(pack, reference.quantise(pack, queries)) & ~missing, missing
    ends = np.full((3, len(queries)), _NAN, np.uint32)
    if pack.intervals is not None:
        bounds = reference.bounds(pack, expected, pack.intervals.usual_level)
        ends = np.stack([bounds.scale, bounds.low, bounds.high]).view(np.uint32)
    right = np.stack([*ends, *(reference.mask(one) for one in masks)])
    same: Array = (found == right).all(axis=0)
    return same


def hashes(members: Array) -> Array:
    """Hash of each row of estimates, int32 ``(n, m)``, as the harness takes it: FNV-1a."""
    value = np.full(len(members), 2166136261, np.uint32)
    for column in members.view(np.uint32).T:
        value = (value ^ column) * np.uint32(16777619)
    return value
