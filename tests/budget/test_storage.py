"""Predicted bytes are those of real packs."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model, ann_bytes, pack_sections, twin_bytes
from twinedge.budget.model import from_pack, pack_fault
from twinedge.pack import write_pack


@pytest.mark.parametrize("what", ["plain", "intervals", "ranges"])
@pytest.mark.parametrize("seed", range(20))
def test_a_pack_is_as_long_as_predicted(packs, tmp_path, what, seed):
    rng = np.random.default_rng(seed)
    pack = packs.random_pack(rng, scaled=what == "intervals")
    if what == "ranges":  # an export that could not be calibrated
        domain = packs.with_intervals(rng, pack).domain
        pack = replace(pack, domain=domain)
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack))
    model, _ = from_pack(path)
    assert model.intervals == (what != "plain")
    assert model.scaled == (what == "intervals")
    written = len(write_pack(pack, metadata=False))
    assert twin_bytes(model) == written
    assert sum(pack_sections(model).values()) == written
    # So are those of an ordinary ensemble, which has nothing of the kind.
    assert ann_bytes(model) == ann_bytes(replace(model, intervals=False))


def test_the_sections_of_the_example():
    sections = pack_sections(Model.of(8, (128, 128)))
    assert sections == {"header": 96, "scaling": 72, "twins": 20240, "anchors": 644, "padding": 20}
    assert pack_sections(Model.of(8, (128, 128), activation="silu"))["curve"] == 386
    # 4 bytes for the bias of the second output, 2 for each of its weights; the rest is padding.
    assert pack_sections(Model.of(8, (128, 128), intervals=True)) == {
        "header": 128,
        "scaling": 72,
        "twins": 20240 + 4 + 2 * 128 + 12,
        "anchors": 644,
        "intervals": 8 * 4 + 5 * 8,
        "domain": 6 * 8,
        "schema": 4,
        "padding": 40,
    }


def test_an_ordinary_network_by_hand():
    # 8 features, 128-128: head, 8 x 128 kernel, 128 x 128 kernel, biases, multipliers, output.
    record = 16 + 8 * 128 + 128 * 128 + 2 * (4 * 128 + 2 * 128) + 2 * 128
    assert record % 16 == 0
    header = 48 + 2 * 12 + 8  # two sections; a multiple of 16
    scaling = 8 * 9 + 8
    assert ann_bytes(Model.of(8, (128, 128))) == header + scaling + 32 * record
    assert ann_bytes(Model.of(8, (128, 128)), 1) == header + scaling + record
    assert (
        ann_bytes(Model.of(8, (128, 128), weights="int16"), 1)
        == header + scaling + record + 17 * 1024
    )
    # silu: one more table entry fills the padding, and the curve is 386 bytes in 400.
    assert (
        ann_bytes(Model.of(8, (128, 128), activation="silu"), 1)
        == ann_bytes(Model.of(8, (128, 128)), 1) + 16 + 400
    )


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
    assert twin_bytes(replace(model, intervals=True)) == twin_bytes(model)


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
