"""What a model is made of."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.budget import Model
from twinedge.scoring import calibration

BAD = [
    ({"features": 0}, "0 features"),
    ({"hidden": ()}, "0 hidden layers"),
    ({"hidden": (8, 0)}, "0 neurons"),
    ({"anchors": 0}, "0 anchors for 4 twins"),
    ({"anchors": 0, "hidden": 8}, "0 anchors for 1 twins"),
    ({"anchors": 3, "twins": 4}, "each needs at least one"),
    ({"twins": 0}, "1 to 256"),
    ({"twins": 10**12, "anchors": 10**12}, "1 to 256"),
    ({"neighbors": -1}, "-1 neighbors"),
    ({"activation": "tanh"}, "relu or silu"),
    ({"weights": "int4"}, "int8, int16, float16, float32"),
]


@pytest.mark.parametrize(("changes", "says"), BAD, ids=[says for _, says in BAD])
def test_what_no_model_can_be_is_refused(complaint, changes, says):
    assert says in complaint(Model.of, **({"features": 3} | changes))


def test_a_twin_without_anchors_is_refused(complaint):
    assert "0 anchors of a twin" in complaint(Model, 3, (8,), (4, 0))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 256), st.integers(0, 5000))
def test_anchors_are_dealt_out_evenly(twins, more):
    model = Model.of(3, (8,), twins + more, twins=twins)
    assert model.anchors == model.members == twins + more
    assert max(model.counts) - min(model.counts) <= 1
    assert model.with_anchors(twins).counts == (1,) * twins


def test_only_neighbors_are_members():
    model = Model(3, (8,), (10, 2), neighbors=4)
    assert (model.anchors, model.members, model.evaluated) == (12, 6, (4, 2))
    assert model.ann_params == 6 * (3 * 8 + 8 + 8 + 1)


def test_multiply_adds_by_hand():
    # 2 x (2 x 3 for the query, and for each of 5 anchors 2 x 3 + 3 x 4 + 4).
    assert Model.of(2, (3, 4), 5).multiply_adds == 2 * (6 + 5 * (6 + 12 + 4))
    # The layer after the first is what the design counts: 32 x 128 x 128 in both orders.
    assert Model.of(8, (128, 128)).multiply_adds - 2 * (33 * 8 * 128 + 32 * 128) == 1_048_576
    # Two twins: the query's half twice. Two neighbors each, and five distances.
    near = Model(2, (3,), (3, 2), neighbors=2)
    assert near.multiply_adds == 2 * (2 * 6 + 4 * (6 + 3)) + 5 * 2
    # A second output in one of the two orders: for each of 5 anchors 4, for each neighbor 3.
    assert Model.of(2, (3, 4), 5, intervals=True).multiply_adds == 2 * (6 + 5 * 22) + 5 * 4
    assert replace(near, intervals=True).multiply_adds == near.multiply_adds + 4 * 3
    assert replace(near, intervals=True, levels=0).multiply_adds == near.multiply_adds


def test_levels_are_those_that_calibration_looks_for():
    assert Model.of(8, (128, 128)).levels == len(calibration.LEVELS)


def test_models_are_compared_without_their_levels(complaint):
    model = Model.of(3, intervals=True)
    assert replace(model, levels=3) == model != Model.of(3)
    for levels in (-1, 16):
        assert f"{levels} levels: a pack has 0 to 15" in complaint(replace, model, levels=levels)


def test_parameters_are_those_of_the_paper_whatever_the_pack_says_beside():
    assert (
        Model.of(8, (128, 128), intervals=True).twin_params
        == Model.of(8, (128, 128)).twin_params
        == 19_105
    )
