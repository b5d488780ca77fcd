"""The bound on instructions: counts of rounds, and files that hold its rates."""

from dataclasses import replace
from math import inf, nan

import pytest

from twinedge.budget import Model
from twinedge.budget.measurements import CALLS, read_entries, read_runtime
from twinedge.budget.worst import NAMES, PART_NAMES, Worst, part_rounds, read_worst, rounds


def test_rounds_of_a_shape():
    model = Model.of(5, (12, 9), 7, twins=2, neighbors=3)
    found = rounds(model, 2)
    assert tuple(found) == NAMES
    assert found["call"] == 1
    assert found["estimate"] == 6
    assert found["block"] == 4  # each twin has three, in blocks of two
    assert found["neuron"] == 4 * 21
    assert found["product"] == 4 * 12 * 9
    assert found["first product"] == 4 * 12 * 8  # features are padded
    assert found["query product"] == 2 * 12 * 8
    assert found["search step"] == (4 + 2 * 3)  # the second twin has no more than three
    assert found["distance"] == 4 * 5
    assert rounds(replace(model, neighbors=0), 1)["block"] == 7


def test_rounds_of_a_map():
    model = Model.of(5, (12, 9), 7, twins=2, neighbors=3)
    mapped = replace(model, map_outputs=9, map_rows=11, map_curves=3, target_bins=4)
    found = rounds(mapped, 2)
    assert found["feature"] == 5  # as the caller has them
    assert found["first product"] == 4 * 12 * 12  # what twins take
    assert found["distance"] == 4 * 9
    counts = {"map": 1, "map output": 9, "map curve": 3, "map knot": 11, "map product": 27}
    assert part_rounds(mapped) == {"map": counts, "target_curve": {"target curve": 1}}
    assert not any(sum(one.values()) for one in part_rounds(model).values())
    assert {name: tuple(one) for name, one in part_rounds(model).items()} == PART_NAMES


def test_more_of_anything_never_takes_less():
    model = Model.of(5, (12, 9), 9, neighbors=4)
    bound = Worst(2, {name: 1.0 for name in NAMES if "beside" not in name})
    most = bound.instructions(model)
    for more in (
        replace(model, features=6),
        replace(model, hidden=(13, 9)),
        replace(model, hidden=(12, 9, 1)),
        replace(model, counts=(10,)),
        replace(model, counts=(9, 1)),
        replace(model, neighbors=5),
    ):
        assert bound.instructions(more) > most


def test_a_fraction_of_an_instruction_counts_as_one():
    assert Worst(1, {"call": 2.25}).instructions(Model.of(1, (1,), 1)) == 3
    assert Worst(1, {"call": 2.0}).instructions(Model.of(1, (1,), 1)) == 2


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([], "consist of pairs and rates"),
        ({"pairs": 2}, "consist of pairs and rates"),
        ({"pairs": 0, "rates": {}}, "at least 1"),
        ({"pairs": True, "rates": {}}, "at least 1"),
        ({"pairs": 2, "rates": []}, "not an object"),
        ({"pairs": 2, "rates": {"layers": 1}}, "unknown field layers"),
        ({"pairs": 2, "rates": {"layer": -1}}, "at least 0"),
        ({"pairs": 2, "rates": {"layer": nan}}, "at least 0"),
        ({"pairs": 2, "rates": {"layer": inf}}, "at least 0"),
        ({"pairs": 2, "rates": {"layer": "1"}}, "at least 0"),
    ],
)
def test_wrong_rates_are_refused(complaint, row, says):
    assert says in complaint(read_worst, row)


@pytest.mark.parametrize("stacks", [{"open": 1}, dict.fromkeys(CALLS, -1), [1]])
def test_wrong_stacks_are_refused(complaint, stacks):
    assert complaint(read_runtime, {**read_entries()["cortex-m4"], "stacks": stacks})
