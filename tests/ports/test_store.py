"""Boards learn points and predict with them: the bits of the reference, and the cost."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model
from twinedge.errors import InputError
from twinedge.pack import write_pack
from twinedge.runtime import reference
from twinedge.runtime.journal import read_journal
from twinedge.runtime.pack_device import Reference
from twinedge.runtime.store import Points, scored
from twinedge_export.boards import all_ports, run_pack
from twinedge_export.boards.build import flags_for
from twinedge_export.boards.learning import PROGRAM, WITH_STORE, run_points
from twinedge_export.boards.reference_packs import random_pack

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
QUICK = {("mps2-an386", "neighbors-silu-int16"), ("uno", "relu")}

# What the store adds to the code on a Cortex-M4, with calls in floats and in integers.
STORE_TEXT = 3524
# And the cost of a prediction there with this many points, relative to none.
MOST = (1.002, 1.003, 1.02)


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
            images = builder(board, (*WITH_STORE, *flags), PROGRAM)
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
