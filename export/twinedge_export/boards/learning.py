"""Points that a board learns itself: its predictions with them, against the reference."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from twinedge.pack import read_pack
from twinedge.pack.contents import Array, Pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.adaptation import adapted, point_weights
from twinedge.runtime.pack_device import Reference
from twinedge.runtime.store import Points, scored
from twinedge_export.boards.build import EVERYTHING, Builder, Image, join_packs
from twinedge_export.boards.run import (
    Output,
    instructions_of,
    multiply_adds,
    run_program,
    time_limit,
)

PROGRAM = "store"
WITH_STORE = (*EVERYTHING, "-DTWIN_STORE=1")  # some boards have less by default

# The keywords that store.c prints, and how many numbers follow each.
_WORDS = {
    "store": 2,
    "empty": 1,
    "opened": 3,
    "learnt": 1,
    "alone": 6,
    "adapted": 6,
    "raw": 6,
    "stack": 1,
    "block": 1,
    "done": 0,
}
_CALLS = ("alone", "adapted", "raw")  # by twin_predict, and its two counterparts with a store
_UPDATED = 1  # the round, of those from 0, before which a second pack replaces the first


class LearningRun(NamedTuple):
    """Results of learning points on a board, and of predicting with more of them each round.

    ``context``, ``memory`` and ``stack`` are bytes: of a ``twin_store``, of the memory given to it,
    and the high-water mark. ``kept`` and ``damaged`` ``(r,)`` count the points, and the slots
    without one, found when the store was opened in each round. ``answers`` uint32 ``(3, r, n, 5)``
    are bits of mean, scale, low and high, and the number of points in them: from the pack alone,
    with the points, and the latter in integers. Instructions are float64, NaN where they were not
    counted: ``learning`` ``(k,)`` for each point, ``opening`` ``(r,)`` for finding them,
    ``predicting`` ``(3, r, n)`` for each answer. ``mismatches`` ``(m, 2)`` are round and query
    where the bits differ from the reference. ``dump`` is what both blocks hold in the end.
    """

    image: Image
    context: int
    memory: int
    stack: int
    kept: Array
    damaged: Array
    answers: Array
    learning: Array
    opening: Array
    predicting: Array
    mismatches: Array
    dump: bytes


def run_points(
    builder: Builder,
    content: bytes,
    x: Array,
    y: Array,
    queries: Array,
    counts: tuple[int, ...],
    update: bytes | None = None,
) -> LearningRun:
    """Let a board learn points and predict, and compare every answer with the reference.

    Points are measured at the times 1, 2, 3, and so on.

    Parameters
    ----------
    builder : Builder
        For the program ``PROGRAM``, with ``WITH_STORE`` among its flags.
    content : bytes
        A pack with intervals.
    x, y : arrays of shape (k, f) and (k,), float32
        The points, in the user's units; NaN for a missing feature that the pack can fill in.
    queries : array of shape (n, f), float32
        Likewise.
    counts : tuple of int
        Points learnt before the queries of each round; ascending, up to k.
    update : bytes
        A pack of the same schema that replaces the first one in the second round, between points
        and queries. It needs no more scratch.

    Raises
    ------
    InputError
        If the pack is invalid, the image does not fit, or a tool is missing.
    """
    board, pack = builder.board, read_pack(content)
    packs = [pack] * len(counts)
    rows = _rows(pack, x, y, queries, counts, updates=update is not None)
    if update is not None:
        packs[_UPDATED:] = [read_pack(update)] * (len(counts) - _UPDATED)
        content = join_packs([content, update])
    image = builder.image(content, rows)
    output = run_program(board, image, _WORDS, time_limit(_macs(pack, len(queries), counts)))
    each = zip(packs, counts, strict=True)
    right = np.stack([_right(one, x[:k], y[:k], queries) for one, k in each], axis=1)
    return _result(image, output, right, board.counts_per_instruction)


def _result(
    image: Image, output: Output, right: Array, counts_per_instruction: float
) -> LearningRun:
    ((context, memory),) = output["store"]
    ((stack,),) = output["stack"]
    ((empty,),) = output["empty"]
    times, kept, damaged = np.array(output["opened"]).T
    found = np.array([output[one] for one in _CALLS], np.uint32).reshape(*right.shape[:3], 6)
    answers = found[..., :5]
    learning, opening, predicting = (
        instructions_of(one, empty, counts_per_instruction)
        for one in (np.array(output["learnt"])[:, 0], times, found[..., 5])
    )
    wrong = np.argwhere((answers != right).any(axis=(0, 3)))
    dump = np.array(output["block"], "<u4").tobytes()
    sizes = context, memory, stack
    counts = learning, opening, predicting
    return LearningRun(image, *sizes, kept, damaged, answers, *counts, wrong, dump)


def _macs(pack: Pack, queries: int, counts: tuple[int, ...]) -> float:
    """Approximate multiply-adds of predicting in each round, of learning, and of an update."""
    return float((len(_CALLS) * len(counts) * queries + 2 * counts[-1]) * multiply_adds(pack))


def _rows(
    pack: Pack, x: Array, y: Array, queries: Array, counts: tuple[int, ...], *, updates: bool
) -> Array:
    """Lay out points and queries as store.c takes them."""
    points = _words(pack, x, y, np.arange(1, len(x) + 1))
    none, when = np.full(len(queries), np.nan, np.float32), np.zeros((len(counts), len(queries)))
    if updates:
        when[_UPDATED, 0] = 1
    rounds = [
        np.vstack([points[k:more], _words(pack, queries, none, time)])
        for (k, more), time in zip(pairwise((0, *counts)), when, strict=True)
    ]
    # Integers go into the image as floats with the same bits.
    return np.vstack(rounds).view(np.float32)


def _words(pack: Pack, x: Array, y: Array, times: Array) -> Array:
    """Rows ``(n, 2 f + 2)``, int32: features and target as bits of floats; integers, and times."""
    q = np.where(np.isnan(x), NO_FILL, reference.quantise(pack, x))
    floats = np.column_stack([x, y]).astype(np.float32).view(np.int32)
    return np.column_stack([floats, q, times]).astype(np.int32)


def _right(pack: Pack, x: Array, y: Array, queries: Array) -> Array:
    """Return what store.c is to print of each query, uint32 ``(3, n, 5)``: see ``LearningRun``."""
    assert pack.intervals is not None
    raw = Reference(pack).raw
    points = scored(pack, raw, Points.unscored(x, y))
    mean, _, scale = raw(reference.quantise(pack, queries)).astype(np.int64)
    moved = adapted(pack.intervals, points.errors, points.scores, mean, scale)
    floats, _ = _answers(pack, mean, scale, 0)
    used = int(np.count_nonzero(point_weights(points.scores)))
    return np.stack([floats, *_answers(pack, *moved, used)])


def _answers(pack: Pack, mean: Array, scale: Array, points: int) -> tuple[Array, Array]:
    """Return a prediction in floats and in integers, uint32 ``(n, 5)``."""
    assert pack.intervals is not None
    bounds = reference.bounded(pack, mean, scale, pack.intervals.usual_level)
    prediction = mean.astype(np.float32) * pack.y_gain + pack.y_offset
    used = np.full(len(mean), points, np.uint32)
    floats = np.column_stack([prediction, bounds.scale, bounds.low, bounds.high]).view(np.uint32)
    integers = np.column_stack([mean, scale, bounds.raw_low, bounds.raw_high]).astype(np.uint32)
    return np.column_stack([floats, used]), np.column_stack([integers, used])
