"""No prediction takes more instructions than the budget says, by the emulators' exact counts."""

from dataclasses import replace
from itertools import product
from math import isnan

import numpy as np
import pytest

from twinedge.budget import Model, board_named, board_verdict, read_firmware
from twinedge.budget.worst import Worst
from twinedge.runtime.reference import quantise
from twinedge_export.boards import port_named
from twinedge_export.boards.build import flags_for
from twinedge_export.boards.reference_packs import random_pack, references
from twinedge_export.boards.worst import (
    CANDIDATES,
    PROGRAM,
    Extremes,
    choices,
    count_packs,
    extreme_pack,
    fitted,
    longest,
    probes,
)

BOARDS = ("mps2-an386", "microbit", "riscv32-virt", "uno")
QUICK = {("mps2-an386", "silu", True, True)}
# None of them is measured for the bound.
SHAPES = (
    Model.of(7, (22, 15), 5),
    Model.of(2, (39,), 9),
    Model.of(11, (5, 30, 3), 6, twins=2),
    Model.of(5, (64, 12), 3),
    Model.of(1, (17, 1), 10, twins=5),
)


def any_extremes(rng):
    return Extremes(
        **{name: all_of[rng.integers(len(all_of))] for name, all_of in CANDIDATES.items()}
    )


def anything(rng, model):
    """Draw a usual pack with a query of any size."""
    size = rng.choice([1e-3, 1, 1e3], size=model.features)
    return random_pack(model), (size * rng.normal(size=model.features)).astype(np.float32)


@pytest.mark.parametrize(
    ("board", "activation", "near", "intervals"),
    [
        pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
        for one in product(BOARDS, ("relu", "silu"), (False, True), (True, False))
    ],
)
def test_neither_hostile_nor_random_queries_exceed_the_bound(
    builder, board, activation, near, intervals
):
    kind = (activation, "int8", near, intervals)
    build = read_firmware()[port_named(board).core].builds.get(kind)
    if build is None:
        pytest.skip("without intervals, only the usual builds are measured")
    like = references(kind)[0]
    images = builder(board, flags_for(random_pack(like)), PROGRAM)
    hostile = longest(like, lambda packs: count_packs(images, packs), choices(like), Extremes())
    rng = np.random.default_rng(11)
    models = [
        replace(one, activation=activation, neighbors=3 * near, intervals=intervals)
        for one in SHAPES
    ]
    cases = [
        (one, made)
        for one in models
        for made in (
            extreme_pack(one, hostile),
            *(extreme_pack(one, any_extremes(rng)) for _ in range(4)),
            *(anything(rng, one) for _ in range(3)),
        )
    ]
    counted = count_packs(images, [made for _, made in cases])
    fits = [(model, cost) for (model, _), cost in zip(cases, counted, strict=True) if cost == cost]
    assert len(fits) >= 0.8 * len(cases)
    for model, cost in fits:
        assert cost <= build.worst.instructions(model), model
    # Nor is the bound far from what the hostile packs take.
    first = [
        cost / build.worst.instructions(one) for one, cost in zip(models, counted[::8], strict=True)
    ]
    assert np.nanmedian(first) > 0.8


def test_what_was_measured_is_below_the_bound_and_the_bound_is_not_far_above():
    for runtime in read_firmware().values():
        for kind, build in runtime.builds.items():
            if runtime.port.startswith("linux"):
                assert build.worst is None
                continue
            for one in build.references:
                most = build.worst.instructions(one.model)
                assert one.instructions <= most
                if kind[0] == "relu":
                    assert most < 2 * one.instructions


def test_the_budget_never_prints_an_estimate_above_the_bound():
    firmware = read_firmware()
    for shape in SHAPES:
        found = board_verdict(replace(shape, intervals=True), board_named("nano33ble"), firmware)
        low, high = found.instructions
        assert 0 < low <= high <= found.worst


def test_packs_are_as_hostile_as_they_claim():
    model = replace(SHAPES[0], neighbors=2, activation="silu", intervals=True)
    pack, x = extreme_pack(model, Extremes())
    query = quantise(pack, x[None])[0].astype(int)
    distances = np.square(pack.anchors - query).sum(axis=1)
    assert (np.diff(distances) < 0).all()  # every anchor enters the heap, and sinks to its end
    assert pack.curve.max() < 16384
    missing = extreme_pack(model, Extremes(scaling=(np.nan, 0.3, 13.21)))[1]
    assert np.isnan(missing).all()


@pytest.mark.slow
def test_a_pack_that_does_not_fit_is_not_counted(builder):
    like = references(("relu", "int8", False, True))[0]
    images = builder("uno", flags_for(random_pack(like)), PROGRAM)
    small = extreme_pack(replace(SHAPES[0], intervals=True), Extremes())
    large = extreme_pack(Model.of(8, (200, 200), 2, intervals=True), Extremes())
    one, none, other = count_packs(images, [small, large, small])
    assert one == other > 0
    assert isnan(none)


def test_rates_cover_every_case():
    rng = np.random.default_rng(3)
    models = probes(SHAPES[0], 2)
    cases = [(one, one.multiply_adds * rng.uniform(3, 4) + 900.0) for one in models]
    bound = Worst(2, fitted(cases, 2))
    assert all(cost <= bound.instructions(model) for model, cost in cases)
