"""Predicted bytes are those of real packs."""

import numpy as np
import pytest

from twinedge.budget import Model, ann_bytes, pack_sections, twin_bytes
from twinedge.budget.storage import pack_fault
from twinedge.pack import write_pack


def model_of(pack):
    counts = tuple(int(count) for count in pack.counts)
    weights = f"int{pack.weight_bits}"
    return Model(pack.features, pack.hidden, counts, pack.neighbors, pack.activation, weights)


@pytest.mark.parametrize("seed", range(40))
def test_a_pack_is_as_long_as_predicted(packs, seed):
    pack = packs.random_pack(np.random.default_rng(seed))
    model = model_of(pack)
    written = len(write_pack(pack, metadata=False))
    assert twin_bytes(model) == written
    assert sum(pack_sections(model).values()) == written


def test_the_sections_of_the_example():
    sections = pack_sections(Model.of(8))
    assert sections == {"header": 96, "scaling": 72, "twins": 20240, "anchors": 644, "padding": 20}
    assert pack_sections(Model.of(8, activation="silu"))["curve"] == 386


def test_an_ordinary_network_by_hand():
    # 8 features, 128-128: head, 8 x 128 kernel, 128 x 128 kernel, biases, multipliers, output.
    record = 16 + 8 * 128 + 128 * 128 + 2 * (4 * 128 + 2 * 128) + 2 * 128
    assert record % 16 == 0
    header = 48 + 2 * 12 + 8  # two sections; a multiple of 16
    scaling = 8 * 9 + 8
    assert ann_bytes(Model.of(8)) == header + scaling + 32 * record
    assert ann_bytes(Model.of(8), 1) == header + scaling + record
    assert ann_bytes(Model.of(8, weights="int16"), 1) == header + scaling + record + 17 * 1024
    # silu: one entry more in the table fills its padding, and the curve is 386 bytes in 400.
    assert ann_bytes(Model.of(8, activation="silu"), 1) == ann_bytes(Model.of(8), 1) + 16 + 400


@pytest.mark.parametrize("features", [1, 4, 5, 64])
def test_an_ordinary_network_is_a_twin_without_its_second_kernel(features):
    model = Model.of(features, (16, 8), 1)
    kernel = 16 * (-(-features // 4) * 4)
    record = pack_sections(model)["twins"] - kernel
    assert ann_bytes(model, 2) - ann_bytes(model, 1) == record


@pytest.mark.parametrize(("weights", "size"), [("float16", 2), ("float32", 4)])
def test_floats_are_bare_numbers(weights, size):
    model = Model.of(8, (64, 64), 32, twins=4, weights=weights)
    assert twin_bytes(model) == size * model.twin_params
    assert ann_bytes(model) == size * model.ann_params
    assert ann_bytes(model, 7) * 32 == 7 * size * model.ann_params
    assert pack_fault(model) == f"a pack has no {weights} weights"


TOO_MUCH = [
    ({"features": 1025}, "1025 features"),
    ({"hidden": (1025,)}, "1025 neurons"),
    ({"hidden": (4,) * 4}, "4 hidden layers"),
]


@pytest.mark.parametrize(("changes", "says"), TOO_MUCH, ids=[says for _, says in TOO_MUCH])
def test_what_no_pack_holds_is_refused(complaint, changes, says):
    model = Model.of(**({"features": 3} | changes))
    for size in (twin_bytes, ann_bytes, pack_sections):
        assert says in complaint(size, model)
    assert says in pack_fault(model)


def test_too_many_anchors_are_no_hindrance_to_networks(complaint):
    model = Model.of(3, (8,), 4097)
    assert "4097 anchors" in complaint(twin_bytes, model)
    assert ann_bytes(model) > 4097 * 16
