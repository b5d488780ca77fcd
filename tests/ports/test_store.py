"""Boards learn points and predict with them: the bits of the reference, and the cost."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.budget import Model
from twinedge.errors import InputError
from twinedge.pack import read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference
from twinedge.runtime.adaptation import adapted, point_weights
from twinedge.runtime.evaluator import Reference
from twinedge.runtime.journal import read_journal
from twinedge.runtime.store import Points, scored
from twinedge_export.boards import all_ports, run_pack
from twinedge_export.boards.build import flags_for, join_packs
from twinedge_export.boards.reference_packs import random_pack
from twinedge_export.boards.run import instructions_of, multiply_adds, run_program, time_limit
from twinedge_export.boards.stacks import WITH_STORE

# Features, hidden layers, anchors of each twin, twins; and what else it has.
PACKS = {
    "relu": (Model.of(4, (16, 16), 3, twins=2), {}),
    "silu": (Model.of(4, (16, 16), 3, twins=2), {"activation": "silu"}),
    "neighbors-silu-int16": (
        Model.of(3, (9, 12, 5), 4, twins=3),
        {"activation": "silu", "weights": "int16", "neighbors": 2},
    ),
}
FLAGSHIP = Model.of(8, (128, 128), 32)
TRUST = 20_000  # shared fraction of errors on one device, of 65536: enough to see
COUNTS, QUERIES = (1, 5, 64), 8
# An Uno has room for fewer, as its 2 KB of RAM hold both blocks, too: 100 bytes for a point.
ON_UNO = {"relu": (1, 5, 8), "silu": (1, 5, 8), "neighbors-silu-int16": (1, 5, 8)}
# And it has no flash for curves, which these packs do not have.
NO_CURVES = {"uno": ("-DTWIN_MAP=0", "-DTWIN_TARGET_CURVE=0")}
QUICK = {("mps2-an386", "neighbors-silu-int16")}

# What the store adds to the code on a Cortex-M4, with calls in floats and in integers.
STORE_TEXT = 3524
# And the cost of a prediction there with this many points, relative to none.
MOST = (1.002, 1.003, 1.02)

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


def run_points(builder, content, x, y, queries, counts, update=None):
    """Let a board learn points and predict, and compare every answer with the reference.

    Points ``x`` ``(k, f)`` and ``y`` ``(k,)`` are measured at the times 1, 2, 3, and so on;
    ``counts`` are how many are learnt before the queries of each round. NaN is a missing feature.
    ``update`` is a pack of the same schema that replaces the first one in the second round, between
    points and queries.

    In what is returned, ``context`` and ``memory`` are bytes, of a ``twin_store`` and of the memory
    given to it. ``kept`` and ``damaged`` ``(r,)`` count the points, and the slots without one,
    found when the store was opened in each round. ``answers`` uint32 ``(3, r, n, 5)`` are bits of
    mean, scale, low and high, and the number of points in them: from the pack alone, with the
    points, and the latter in integers. ``predicting`` ``(3, r, n)`` are the instructions of each.
    ``mismatches`` ``(m, 2)`` are round and query where the bits differ from the reference.
    ``dump`` is what both blocks hold in the end.
    """
    board, pack = builder.board, read_pack(content)
    packs = [pack] * len(counts)
    rows = _rows(pack, x, y, queries, counts, updates=update is not None)
    if update is not None:
        packs[_UPDATED:] = [read_pack(update)] * (len(counts) - _UPDATED)
        content = join_packs([content, update])
    image = builder.image(content, rows)
    # Of predicting in each round, of learning, and of an update.
    evaluations = len(_CALLS) * len(counts) * len(queries) + 2 * counts[-1]
    limit = time_limit(float(evaluations * multiply_adds(pack)))
    output = run_program(board, image, _WORDS, limit)
    each = zip(packs, counts, strict=True)
    right = np.stack([_right(one, x[:k], y[:k], queries) for one, k in each], axis=1)
    ((context, memory),) = output["store"]
    ((empty,),) = output["empty"]
    _, kept, damaged = np.array(output["opened"]).T
    found = np.array([output[one] for one in _CALLS], np.uint32).reshape(*right.shape[:3], 6)
    return SimpleNamespace(
        image=image,
        context=context,
        memory=memory,
        kept=kept,
        damaged=damaged,
        answers=found[..., :5],
        predicting=instructions_of(found[..., 5], empty, board.counts_per_instruction),
        mismatches=np.argwhere((found[..., :5] != right).any(axis=(0, 3))),
        dump=np.array(output["block"], "<u4").tobytes(),
    )


def _rows(pack, x, y, queries, counts, *, updates):
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


def _words(pack, x, y, times):
    """Rows ``(n, 2 f + 2)``, int32: features and target as bits of floats; integers, and times."""
    q = np.where(np.isnan(x), NO_FILL, reference.quantise(pack, x))
    floats = np.column_stack([x, y]).astype(np.float32).view(np.int32)
    return np.column_stack([floats, q, times]).astype(np.int32)


def _right(pack, x, y, queries):
    """Return what store.c is to print of each query, uint32 ``(3, n, 5)``."""
    raw = Reference(pack).raw
    points = scored(pack, raw, Points.unscored(x, y))
    mean, _, scale = raw(reference.quantise(pack, queries)).astype(np.int64)
    moved = adapted(pack.intervals, points.errors, points.scores, mean, scale)
    floats, _ = _answers(pack, mean, scale, 0)
    used = int(np.count_nonzero(point_weights(points.scores)))
    return np.stack([floats, *_answers(pack, *moved, used)])


def _answers(pack, mean, scale, points):
    """Return a prediction in floats and in integers, uint32 ``(n, 5)``."""
    bounds = reference.bounded(pack, mean, scale, pack.intervals.usual_level)
    prediction = mean.astype(np.float32) * pack.y_gain + pack.y_offset
    used = np.full(len(mean), points, np.uint32)
    floats = np.column_stack([prediction, bounds.scale, bounds.low, bounds.high]).view(np.uint32)
    integers = np.column_stack([mean, scale, bounds.raw_low, bounds.raw_high]).astype(np.uint32)
    return np.column_stack([floats, used]), np.column_stack([integers, used])


def draw(model, **more):
    """Draw a pack with intervals, for devices that share that fraction of errors."""
    pack = random_pack(replace(model, intervals=True, **more))
    return replace(pack, intervals=replace(pack.intervals, trust=TRUST))


def measured(pack, points, queries):
    """Points at which the pack is off by half a unit, and queries, also extreme ones."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(points + queries, pack.features)).astype(np.float32)
    x[2, 1] = x[-1, 0] = np.nan
    x[-2, 2] = np.inf
    x[-3] = x[0]
    off = rng.normal(0.5, 0.7, points)
    y = (reference.evaluate(pack, x[:points]).mean + off).astype(np.float32)
    return x[:points], y, x[points:]


def retrained(pack):
    """Another pack of the same schema: fewer anchors, other weights, another range of targets."""
    rng = np.random.default_rng(9)
    twins = tuple(replace(one, output=rng.permutation(one.output)) for one in pack.twins)
    gain, offset = pack.y_gain * np.float32(0.7), pack.y_offset + np.float32(0.3)
    intervals = replace(pack.intervals, constant=2 * pack.intervals.constant, trust=30_000)
    return replace(pack, twins=twins, y_gain=gain, y_offset=offset, intervals=intervals)


@pytest.fixture(scope="module")
def learning(builder):
    """Let a board learn, once: ``learning(board, pack, counts, flags)``."""
    learnt = {}

    def make(board, pack, counts, flags=(), queries=QUERIES, update=None):
        content = write_pack(pack, metadata=False)
        what = board, content, counts, flags, update
        if what not in learnt:
            images = builder(board, (*WITH_STORE, *NO_CURVES.get(board, ()), *flags), "store")
            points = measured(pack, counts[-1], queries)
            learnt[what] = run_points(images, content, *points, counts, update)
        return learnt[what]

    return make


def check(found, pack, counts):
    """Check bits, and what comes home: points as measured, with the errors of this pack."""
    assert not len(found.mismatches)
    assert found.answers.shape == (3, len(counts), QUERIES, 5)
    assert found.kept.tolist() == list(counts)
    assert not found.damaged.any()
    # The points matter, and more of them change the answers again.
    alone, adapted, _ = found.answers[..., 0]
    for row, other in zip(adapted, (alone[0], *adapted), strict=False):
        assert (row != other).all()
    content = read_journal(found.dump)
    x, y, _ = measured(pack, counts[-1], QUERIES)
    assert content.following == counts[-1] + 1  # number 0 was forgotten
    return Points.of(content), Points.unscored(x, y, np.arange(1, counts[-1] + 1))


@pytest.mark.parametrize(
    ("board", "name"),
    [
        pytest.param(board, name, marks=() if (board, name) in QUICK else pytest.mark.slow)
        for board in all_ports()
        for name in PACKS
    ],
)
def test_predictions_with_points_are_the_same_bits(learning, board, name):
    model, more = PACKS[name]
    counts = ON_UNO[name] if board == "uno" else COUNTS
    pack = draw(model, **more)
    found = learning(board, pack, counts)
    points, expected = check(found, pack, counts)
    expected = replace(scored(pack, Reference(pack).raw, expected), numbers=points.numbers)
    assert points.to_records().tobytes() == expected.to_records().tobytes()
    assert (found.answers[0] == found.answers[0, 0]).all()


@pytest.mark.parametrize(
    "board",
    [
        one if one == "mps2-an386" else pytest.param(one, marks=pytest.mark.slow)
        for one in all_ports()
    ],
)
def test_points_outlive_the_pack_that_they_were_learnt_with(learning, board):
    name = "relu" if board == "uno" else "neighbors-silu-int16"
    model, more = PACKS[name]
    if board == "uno":
        more = {**more, "hidden": (12, 8)}  # it has to hold two of them
    counts = ON_UNO[name] if board == "uno" else COUNTS
    before = replace(draw(model, **more), schema=37)
    after = retrained(before)
    found = learning(board, before, counts, update=write_pack(after, metadata=False))
    points, expected = check(found, before, counts)
    alone, adapted, _ = found.answers[..., 0]
    assert (alone[0] != alone[1]).all()  # the pack did change,
    assert (alone[1] == alone[2]).all()
    assert (adapted[1] != alone[1]).all()  # and its points go on working
    expected = replace(scored(after, Reference(after).raw, expected), numbers=points.numbers)
    assert points.to_records().tobytes() == expected.to_records().tobytes()


def test_an_uno_that_has_no_room_for_16_points_says_so(learning):
    with pytest.raises(InputError, match="out of memory"):
        learning("uno", draw(PACKS["relu"][0]), (1, 5, 16))


@pytest.mark.parametrize("activation", ["relu", pytest.param("silu", marks=pytest.mark.slow)])
def test_a_store_costs_a_cortex_m4_little(learning, builder, activation):
    board, pack = "mps2-an386", draw(FLAGSHIP, activation=activation)
    found = learning(board, pack, COUNTS, flags_for(pack), 3)
    content, (_, _, x) = write_pack(pack, metadata=False), measured(pack, COUNTS[-1], 3)
    without = run_pack(builder(board, flags_for(pack)), content, x)
    assert not len(found.mismatches)
    assert found.image.sizes.text <= without.image.sizes.text + STORE_TEXT
    assert found.image.sizes[1:] == without.image.sizes[1:]
    assert found.context <= 76
    assert found.memory == 56 + 20 * COUNTS[-1]
    alone, adapted, raw = found.predicting.mean(axis=2)
    assert alone == pytest.approx(without.instructions_per_query, rel=0.001)
    assert (adapted <= alone * MOST).all()
    assert (raw <= adapted).all()
