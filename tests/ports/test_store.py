"""Boards learn points and predict with them: the bits of the reference, and the cost."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model
from twinedge.errors import InputError
from twinedge.pack import write_pack
from twinedge.runtime import reference
from twinedge_export.boards import all_ports, try_pack
from twinedge_export.boards.build import left_out
from twinedge_export.boards.lessons import PROGRAM, WITH_STORE, try_points
from twinedge_export.boards.measure import random_pack

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
# An Uno has room for fewer, as its 2 KB of RAM hold both blocks, too: 76 bytes for a point.
ON_UNO = {"relu": (1, 5, 12), "silu": (1, 5, 12), "neighbors-silu-int16": (1, 5, 11)}
QUICK = ("mps2-an386", "uno")

# What the store adds to the code on a Cortex-M4, with calls in floats and in integers.
STORE_TEXT = 2068
# And the cost of a prediction there with this many points, relative to none.
MOST = (1.08, 1.21, 3.05)


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


@pytest.fixture(scope="module")
def lesson(workshop):
    """Let a board learn, once: ``lesson(board, pack, counts, flags)``."""
    learnt = {}

    def make(board, pack, counts, flags=(), queries=QUERIES):
        content = write_pack(pack, metadata=False)
        what = board, content, counts, flags
        if what not in learnt:
            shop = workshop(board, (*WITH_STORE, *flags), PROGRAM)
            learnt[what] = try_points(shop, content, *measured(pack, counts[-1], queries), counts)
        return learnt[what]

    return make


def check(found, counts):
    assert not len(found.mismatches)
    assert found.answers.shape == (3, len(counts), QUERIES, 4)
    assert found.kept.tolist() == list(counts)
    assert not found.lost.any()
    # The points matter, and more of them change the answers again.
    alone, adapted, _ = found.answers[..., 0]
    assert (alone == alone[0]).all()
    for row, other in zip(adapted, (alone[0], *adapted), strict=False):
        assert (row != other).all()


@pytest.mark.parametrize(
    ("board", "name"),
    [
        pytest.param(
            board, name, marks=() if board in QUICK or name == "relu" else pytest.mark.slow
        )
        for board in all_ports()
        for name in PACKS
    ],
)
def test_predictions_with_points_are_the_same_bits(lesson, board, name):
    model, more = PACKS[name]
    counts = ON_UNO[name] if board == "uno" else COUNTS
    check(lesson(board, draw(model, **more), counts), counts)


def test_an_uno_that_has_no_room_for_64_points_says_so(lesson):
    with pytest.raises(InputError, match="out of memory"):
        lesson("uno", draw(PACKS["relu"][0]), COUNTS)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_a_store_costs_a_cortex_m4_little(lesson, workshop, activation):
    board, pack = "mps2-an386", draw(FLAGSHIP, activation=activation)
    found = lesson(board, pack, COUNTS, left_out(pack), 3)
    content, (_, _, x) = write_pack(pack, metadata=False), measured(pack, COUNTS[-1], 3)
    without = try_pack(workshop(board, left_out(pack)), content, x)
    assert not len(found.mismatches)
    assert found.image.sizes.text <= without.image.sizes.text + STORE_TEXT
    assert found.image.sizes[1:] == without.image.sizes[1:]
    assert found.context <= 64
    alone, adapted, raw = found.predicting.mean(axis=2)
    assert alone == pytest.approx(without.instructions_per_query, rel=0.001)
    assert (adapted <= alone * MOST).all()
    assert (raw <= adapted).all()
    # A point takes no more than an anchor of the pack does.
    assert adapted[2] - adapted[1] <= (64 - 5) * 1.01 * alone[0] / FLAGSHIP.anchors
