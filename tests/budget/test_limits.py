"""Break-evens agree with trying every number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.budget import Model, ann_bytes, ann_params, twin_bytes, twin_params
from twinedge.budget.model import (
    largest,
    most_anchors,
    most_features,
    most_networks,
    smaller_in_bytes,
    smaller_in_params,
)

quick = settings(max_examples=40, deadline=None, derandomize=True)
shapes = st.builds(
    Model.of,
    features=st.integers(1, 60),
    hidden=st.lists(st.integers(1, 24), min_size=1, max_size=3).map(tuple),
    anchors=st.just(8),
    twins=st.integers(1, 8),
    activation=st.sampled_from(["relu", "silu"]),
    weights=st.sampled_from(["int8", "int16", "float16", "float32"]),
    intervals=st.booleans(),
)


@quick
@given(shapes)
def test_the_twin_has_fewer_parameters_from_there_on(model):
    def saves(members):
        twin = twin_params(model.features, model.hidden, members, model.twins)
        return twin < ann_params(model.features, model.hidden, members)

    start = smaller_in_params(model)
    assert all(saves(members) for members in range(start, start + 200))
    assert start == model.twins or not saves(start - 1)


@quick
@given(shapes)
def test_the_twin_takes_fewer_bytes_from_there_on(model):
    def saves(members):
        return twin_bytes(model.with_anchors(members)) < ann_bytes(model, members)

    start = smaller_in_bytes(model)
    if start is None:
        assert not saves(4096)
        return
    assert all(saves(members) for members in range(start, min(start + 50, 4097)))
    assert start == model.twins or not saves(start - 1)


def test_an_anchor_that_takes_more_than_a_network_never_pays():
    # One neuron: a network is 16 + 1024 + 4 + 4 + 8 bytes, an anchor 2 x 1024 + 4.
    assert smaller_in_bytes(Model.of(1024, (1,), 1)) is None
    assert smaller_in_params(Model.of(1024, (1,), 1)) == 1026


def test_the_architecture_of_the_paper_pays_from_two_members_on():
    for features in (1, 2, 8, 100):
        assert smaller_in_params(Model.of(features, (128, 128))) == 2
        assert smaller_in_bytes(Model.of(features, (128, 128))) == 2


@quick
@given(shapes, st.integers(0, 20_000))
def test_the_largest_that_fits_is_the_largest(model, flash):
    anchors = most_anchors(model, flash)
    if anchors:
        assert twin_bytes(model.with_anchors(anchors)) <= flash
    if anchors + model.twins <= 4096:
        assert twin_bytes(model.with_anchors(anchors + model.twins)) > flash
    networks = most_networks(model, flash)
    assert not networks or ann_bytes(model, networks) <= flash
    assert ann_bytes(model, networks + 1) > flash
    features = most_features(model, flash)
    sizes = [twin_bytes(_with(model, f)) <= flash for f in (features, features + 1) if f]
    assert sizes == ([True, False] if features else [False])


def _with(model, features):
    return Model.of(
        features,
        model.hidden,
        model.anchors,
        twins=model.twins,
        activation=model.activation,
        weights=model.weights,
        intervals=model.intervals,
    )


@pytest.mark.parametrize("most", [0, 1, 2, 7, 64])
def test_search_finds_every_place(most):
    for place in range(most + 1):
        assert largest(lambda number, place=place: number <= place, most) == place
