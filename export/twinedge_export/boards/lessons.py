"""Points that a board learns itself: its predictions with them, against the reference."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from twinedge.pack import read_pack
from twinedge.pack.contents import Array, Pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import adapting, reference
from twinedge_export.boards.build import EVERYTHING, Image, Workshop
from twinedge_export.boards.trial import Said, instructions_of, listen, multiply_adds, patience

PROGRAM = "store"
WITH_STORE = (*EVERYTHING, "-DTWIN_STORE=1")  # some boards have less by default

# The keywords that store.c prints, and how many numbers follow each.
_WORDS = {
    "store": 2,
    "empty": 1,
    "opened": 3,
    "learnt": 1,
    "alone": 5,
    "adapted": 5,
    "raw": 5,
    "stack": 1,
    "done": 0,
}
_CALLS = ("alone", "adapted", "raw")  # by twin_predict, and its two counterparts with a store


class Lesson(NamedTuple):
    """Results of learning points on a board, and of predicting with more of them each round.

    ``context``, ``memory`` and ``stack`` are bytes: of a ``twin_store``, of the memory given to it,
    and the high-water mark. ``kept`` and ``lost`` ``(r,)`` count the points found, or not, when the
    store was opened in each round. ``answers`` uint32 ``(3, r, n, 4)`` are bits of mean, scale, low
    and high: from the pack alone, with the points, and the latter in integers. Instructions are
    float64, NaN where they were not counted: ``learning`` ``(k,)`` for each point, ``opening``
    ``(r,)`` for finding them, ``predicting`` ``(3, r, n)`` for each answer. ``mismatches`` ``(m,
    2)`` are round and query where the bits differ from the reference.
    """

    image: Image
    context: int
    memory: int
    stack: int
    kept: Array
    lost: Array
    answers: Array
    learning: Array
    opening: Array
    predicting: Array
    mismatches: Array


def try_points(
    workshop: Workshop, content: bytes, x: Array, y: Array, queries: Array, counts: tuple[int, ...]
) -> Lesson:
    """Let a board learn points and predict, and compare every answer with the reference.

    Parameters
    ----------
    workshop : Workshop
        For the program ``PROGRAM``, with ``WITH_STORE`` among its flags.
    content : bytes
        A pack with intervals.
    x, y : arrays of shape (k, f) and (k,), float32
        The points, in the user's units; NaN for a missing feature that the pack can fill in.
    queries : array of shape (n, f), float32
        Likewise.
    counts : tuple of int
        Points learnt before the queries of each round; ascending, up to k.

    Raises
    ------
    InputError
        If the pack is invalid, the image does not fit, or a tool is missing.
    """
    board, pack = workshop.board, read_pack(content)
    image = workshop.image(content, _rows(pack, x, y, queries, counts))
    said = listen(board, image, _WORDS, patience(_macs(pack, len(queries), counts)))
    right = np.stack([_right(pack, x[:k], y[:k], queries) for k in counts], axis=1)
    return _lesson(image, said, right, board.counts_per_instruction)


def _lesson(image: Image, said: Said, right: Array, counts_per_instruction: float) -> Lesson:
    ((context, memory),) = said["store"]
    ((stack,),) = said["stack"]
    ((empty,),) = said["empty"]
    times, kept, lost = np.array(said["opened"]).T
    found = np.array([said[one] for one in _CALLS], np.uint32).reshape(*right.shape[:3], 5)
    answers = found[..., :4]
    learning, opening, predicting = (
        instructions_of(one, empty, counts_per_instruction)
        for one in (np.array(said["learnt"])[:, 0], times, found[..., 4])
    )
    wrong = np.argwhere((answers != right).any(axis=(0, 3)))
    sizes = context, memory, stack
    return Lesson(image, *sizes, kept, lost, answers, learning, opening, predicting, wrong)


def _macs(pack: Pack, queries: int, counts: tuple[int, ...]) -> float:
    """Approximate multiply-adds of predicting in each round and of learning."""
    points = len(pack.twins) * np.array(counts)
    pairs = queries * (len(_CALLS) * pack.members + 2 * points).sum() + counts[-1] * pack.members
    return float(pairs * multiply_adds(pack) / pack.members)


def _rows(pack: Pack, x: Array, y: Array, queries: Array, counts: tuple[int, ...]) -> Array:
    """Lay out points and queries as store.c takes them."""
    points = _words(pack, x, y, adapting.quantised_targets(pack, y))
    none = np.full(len(queries), np.nan, np.float32)
    asked = _words(pack, queries, none, np.zeros(len(queries)))
    rounds = [np.vstack([points[k:more], asked]) for k, more in pairwise((0, *counts))]
    # Integers go into the image as floats with the same bits.
    return np.vstack(rounds).view(np.float32)


def _words(pack: Pack, x: Array, y: Array, targets: Array) -> Array:
    """Rows ``(n, 2 f + 2)``, int32: features and target as bits of floats, then as integers."""
    q = np.where(np.isnan(x), NO_FILL, reference.quantise(pack, x))
    floats = np.column_stack([x, y]).astype(np.float32).view(np.int32)
    return np.column_stack([floats, q, targets]).astype(np.int32)


def _right(pack: Pack, x: Array, y: Array, queries: Array) -> Array:
    """Return bits ``(3, n, 4)`` of mean, scale and interval: without the points, with them, raw."""
    assert pack.intervals is not None
    k, level = len(x), pack.intervals.usual_level
    found = reference.evaluate(pack, np.concatenate([x, queries]))
    alone = reference.bounds(pack, found, level)
    points = _points(pack, x, y, found.raw_mean[:k], alone.raw_scale[:k])
    own = reference.evaluate(adapting.own_pack(pack, points), queries).raw_mean
    said = found.raw_mean[k:], alone.raw_scale[k:]
    mean, scale = adapting.blended(pack.intervals, points, *said, own)
    moved = reference.bounded(pack, mean, scale, level)
    prediction = mean.astype(np.float32) * pack.y_gain + pack.y_offset
    columns = (
        (found.mean[k:], alone.scale[k:], alone.low[k:], alone.high[k:]),
        (prediction, moved.scale, moved.low, moved.high),
        (one.astype(np.int32) for one in (mean, scale, moved.raw_low, moved.raw_high)),
    )
    return np.stack([np.column_stack([*one]).view(np.uint32) for one in columns])


def _points(pack: Pack, x: Array, y: Array, mean: Array, scale: Array) -> adapting.Points:
    """Points as a store keeps them; ``mean`` and ``scale`` are the pack's predictions."""
    assert pack.intervals is not None
    targets = adapting.quantised_targets(pack, y).astype(np.int32)
    judged = adapting.judged(pack.intervals, mean, scale, targets)
    return adapting.Points(
        np.arange(len(x), dtype=np.uint32), reference.quantise(pack, x), targets, *judged
    )
