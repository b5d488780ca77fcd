"""What a model is made of, how it is counted, and the bytes of its pack."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge import defaults
from twinedge.budget import Model, ann_bytes, ann_params, pack_sections, twin_bytes, twin_params
from twinedge.budget.limits import (
    most_anchors,
    most_features,
    most_networks,
    narrowed,
    smaller_in_bytes,
    smaller_in_params,
)
from twinedge.budget.model import largest, pack_fault
from twinedge.budget.read_model import from_pack, from_run, of_pack
from twinedge.pack import write_pack
from twinedge.scoring import calibration

PAPER = Model.of(8, (128, 128))
quick = settings(max_examples=30, deadline=None, derandomize=True)
plain_shapes = st.builds(
    Model.of,
    features=st.integers(1, 60),
    hidden=st.lists(st.integers(1, 24), min_size=1, max_size=3).map(tuple),
    anchors=st.just(8),
    twins=st.integers(1, 8),
    activation=st.sampled_from(["relu", "silu"]),
    weights=st.sampled_from(["int8", "int16", "float16", "float32"]),
    intervals=st.booleans(),
)


@st.composite
def mapped_shapes(draw):
    """Models with an input map, and some with a target curve."""
    model = draw(plain_shapes)
    curves = draw(st.integers(0, model.features))
    return replace(
        model,
        map_outputs=model.features + draw(st.integers(0, 40)),
        map_curves=curves,
        map_rows=draw(st.integers(2 * curves, min(20, 256) * curves)),
        target_bins=draw(st.sampled_from([0, 1, 256, 4096])),
    )


shapes = plain_shapes | mapped_shapes()


# -- shapes ----------------------------------------------------------------------------------------

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
    ({"map_rows": 4}, "4 rows and 2 curves of a map without outputs"),
    ({"map_outputs": 2}, "2 outputs of a map of 3 features: it has at least as many"),
    ({"map_outputs": 3, "map_rows": 1, "map_curves": 1}, "1 rows of a map of 1 curves: each has 2"),
    ({"map_outputs": 3, "map_rows": 257, "map_curves": 1}, "257 rows of a map of 1 curves"),
    ({"map_outputs": 3, "map_rows": 8, "map_curves": 4}, "4 curves of a map of 3 features"),
    ({"map_outputs": 3, "map_rows": 8, "map_curves": -1}, "-1 curves of a map"),
    ({"map_outputs": -3}, "-3 outputs of a map"),
    ({"target_bins": -1}, "-1 bins of a target curve"),
    ({"target_bins": 4097}, "a pack has 1 to 4096, or none"),
    ({"targets": 9}, "9 targets: a pack has 1 to 8"),
]


@pytest.mark.parametrize(("changes", "says"), BAD, ids=[says for _, says in BAD])
def test_what_no_model_can_be_is_refused(complaint, changes, says):
    assert says in complaint(Model.of, **({"features": 3} | changes))


def test_a_twin_without_anchors_is_refused(complaint):
    assert "0 anchors of a twin" in complaint(Model, 3, (8,), (4, 0))


@quick
@given(st.integers(1, 256), st.integers(0, 5000))
def test_anchors_are_shared_evenly(twins, more):
    model = Model.of(3, (8,), twins + more, twins=twins)
    assert model.anchors == model.members == twins + more
    assert max(model.counts) - min(model.counts) <= 1
    assert model.with_anchors(twins).counts == (1,) * twins


def test_only_neighbors_are_members():
    model = Model(3, (8,), (10, 2), neighbors=4)
    assert (model.anchors, model.members, model.evaluated) == (12, 6, (4, 2))
    assert model.ann_params == 6 * (3 * 8 + 8 + 8 + 1)


def test_levels_are_those_of_calibration_and_do_not_tell_models_apart(complaint):
    assert PAPER.levels == len(calibration.LEVELS)
    model = Model.of(3, intervals=True)
    assert replace(model, levels=3) == model != Model.of(3)
    for levels in (-1, 16):
        assert f"{levels} levels: a pack has 0 to 15" in complaint(replace, model, levels=levels)


# -- counts ----------------------------------------------------------------------------------------


def keras_params(inputs, hidden):
    from twinedge.training.network import tf

    layers = [tf.keras.layers.Dense(width, activation="relu") for width in hidden]
    model = tf.keras.Sequential([tf.keras.Input((inputs,)), *layers, tf.keras.layers.Dense(1)])
    return model.count_params()


@pytest.mark.parametrize("hidden", [(7,), (128, 128), (5, 4, 3)], ids=str)
def test_counts_are_those_of_keras_models_and_anchors(hidden):
    for features in (1, 13):
        ann, twin = keras_params(features, hidden), keras_params(2 * features, hidden)
        for members in (1, 2, 31, 1024):
            assert ann_params(features, hidden, members) == members * ann
            stored = members * features + members
            assert twin_params(features, hidden, members, twins=4) == 4 * twin + stored


def test_a_trained_model_has_as_many_numbers(four_twins):
    model = Model.of(3, (6, 5), 60, twins=4)
    stored = four_twins.anchor_X_.size + four_twins.anchor_y_.size
    assert model.twin_params == four_twins.weights_.size + stored


def test_multiply_adds_by_hand():
    # 2 x (2 x 3 for the query, and for each of 5 anchors 2 x 3 + 3 x 4 + 4).
    assert Model.of(2, (3, 4), 5).multiply_adds == 2 * (6 + 5 * (6 + 12 + 4))
    # The layer after the first is what the design counts: 32 x 128 x 128 in both orders.
    assert PAPER.multiply_adds - 2 * (33 * 8 * 128 + 32 * 128) == 1_048_576
    # Two twins: the query's half twice. Two neighbors each, and five distances.
    near = Model(2, (3,), (3, 2), neighbors=2)
    assert near.multiply_adds == 2 * (2 * 6 + 4 * (6 + 3)) + 5 * 2
    # A second output in one of the two orders: for each of 5 anchors 4, for each neighbor 3.
    assert Model.of(2, (3, 4), 5, intervals=True).multiply_adds == 2 * (6 + 5 * 22) + 5 * 4
    assert replace(near, intervals=True).multiply_adds == near.multiply_adds + 4 * 3
    assert replace(near, intervals=True, levels=0).multiply_adds == near.multiply_adds


def test_a_map_counts_what_twins_take():
    # The outputs of the map take the place of the features, and two rows of each curve are added.
    model = Model.of(2, (3, 4), 5, map_outputs=7, map_rows=6, map_curves=1)
    assert model.inputs == 7
    assert model.multiply_adds == Model.of(7, (3, 4), 5).multiply_adds + 2 * 7
    assert model.twin_params == Model.of(7, (3, 4), 5).twin_params + 6 * 7 + 6
    assert model.ann_params == Model.of(2, (3, 4), 5).ann_params
    # Where nothing is said, as many features have a curve as there are rows for.
    assert Model.of(4, map_outputs=4, map_rows=7).map_curves == 3
    assert Model.of(4, map_outputs=4, map_rows=70).map_curves == 4
    assert Model.of(4, map_outputs=None, map_rows=0) == Model.of(4)
    # A target curve is a look-up.
    curved = Model.of(2, (3, 4), 5, target_bins=9)
    assert curved.multiply_adds == Model.of(2, (3, 4), 5).multiply_adds


def test_more_features_take_a_map_along():
    model = Model.of(4, map_outputs=10, map_rows=30, map_curves=2)
    more = model.with_features(8)
    assert (more.map_outputs, more.map_curves, more.map_rows) == (14, 4, 60)
    assert model.with_features(4) == model
    assert Model.of(4).with_features(9) == Model.of(9)
    assert model.with_features(1).map_rows == 15  # of a curve that it may have


# -- bytes -----------------------------------------------------------------------------------------

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 24))]


@pytest.mark.parametrize("content", ["plain", "intervals", "ranges"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_pack_is_as_long_as_predicted(packs, tmp_path, content, seed):
    rng = np.random.default_rng(seed)
    pack = packs.random_pack(rng, scaled=content == "intervals")
    if content == "ranges":  # an export that could not be calibrated
        pack = replace(pack, domain=packs.with_intervals(rng, pack).domain)
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack))
    model, size = from_pack(path)
    assert size == path.stat().st_size
    assert model.members == pack.members
    assert model.intervals == (content != "plain")
    assert model.scaled == (content == "intervals")
    written = len(write_pack(pack, metadata=False))
    assert twin_bytes(model) == written
    assert sum(pack_sections(model).values()) == written
    # So are those of an ordinary ensemble, which has nothing of the kind.
    assert ann_bytes(model) == ann_bytes(replace(model, intervals=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pack_with_curves_is_as_long_as_predicted(packs, tmp_path, seed):
    rng = np.random.default_rng(seed)
    pack = packs.random_pack(rng, scaled=bool(seed % 2), mapped=True, curved=seed % 4 < 3)
    path = tmp_path / "model.twin"
    path.write_bytes(write_pack(pack))
    model, _ = from_pack(path)
    assert model == of_pack(pack)
    assert model.inputs == pack.inputs
    assert model.map_curves == np.count_nonzero(pack.map.bins)
    written = len(write_pack(pack, metadata=False))
    assert twin_bytes(model) == sum(pack_sections(model).values()) == written
    # An ordinary network has neither curve.
    plain = replace(model, map_outputs=0, map_rows=0, map_curves=0, target_bins=0)
    assert ann_bytes(model) == ann_bytes(plain)


@quick
@given(mapped_shapes())
def test_the_sections_of_curves_by_hand(model):
    if model.weights not in ("int8", "int16"):
        model = replace(model, weights="int8")
    sections, (f, g, r) = pack_sections(model), (model.features, model.inputs, model.map_rows)
    assert sections["map"] == 4 + -(-(f + g) // 4) * 4 + -(-2 * r // 4) * 4 + r * g
    curve = 8 + 4 * (model.target_bins + 1) if model.target_bins else None
    assert sections.get("target_curve") == curve
    plain = replace(model, map_outputs=0, map_rows=0, map_curves=0, target_bins=0)
    assert sections["scaling"] == pack_sections(plain)["scaling"]
    assert sections.get("domain") == pack_sections(plain).get("domain")
    grown = pack_sections(replace(plain, features=g))
    assert (sections["twins"], sections["anchors"]) == (grown["twins"], grown["anchors"])


def test_the_sections_of_the_example():
    sections = pack_sections(PAPER)
    assert sections == {"header": 96, "scaling": 72, "twins": 20240, "anchors": 644, "padding": 20}
    assert pack_sections(replace(PAPER, activation="silu"))["curve"] == 386
    # 4 bytes for the bias of the second output, 2 for each of its weights; the rest is padding.
    assert pack_sections(replace(PAPER, intervals=True)) == {
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
    start = 48 + 2 * 12 + 8 + 8 * 9 + 8  # header and two sections, scaling; multiples of 16
    assert ann_bytes(PAPER) == start + 32 * record
    assert ann_bytes(PAPER, 1) == start + record
    assert ann_bytes(replace(PAPER, weights="int16"), 1) == start + record + 17 * 1024
    # silu: one more table entry fills the padding, and the curve is 386 bytes in 400.
    assert ann_bytes(replace(PAPER, activation="silu"), 1) == start + record + 16 + 400
    # It is a twin without its second kernel.
    for features in (1, 5, 64):
        model = Model.of(features, (16, 8), 1)
        kernel = 16 * (-(-features // 4) * 4)
        expected = pack_sections(model)["twins"] - kernel
        assert ann_bytes(model, 2) - ann_bytes(model, 1) == expected


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
TOO_MANY_CURVES = [
    ({"map_outputs": 1025, "map_rows": 6}, "1025 outputs of a map: a pack has at most 1024"),
    ({"features": 1000, "map_outputs": 1000, "map_rows": 65536}, "at most 65535"),
]


@pytest.mark.parametrize(("changes", "says"), TOO_MUCH, ids=[says for _, says in TOO_MUCH])
def test_what_no_pack_holds_is_refused(complaint, changes, says):
    model = Model.of(**({"features": 3} | changes))
    for size in (twin_bytes, ann_bytes, pack_sections):
        assert says in complaint(size, model)
    assert says in pack_fault(model)


@pytest.mark.parametrize(("changes", "says"), TOO_MANY_CURVES, ids=["outputs", "rows"])
def test_a_map_that_no_pack_holds_is_no_hindrance_to_networks(complaint, changes, says):
    model = Model.of(**({"features": 3} | changes))
    for size in (twin_bytes, pack_sections):
        assert says in complaint(size, model)
    assert says in pack_fault(model)
    assert ann_bytes(model) > 0


def test_too_many_anchors_are_no_hindrance_to_networks(complaint):
    model = Model.of(3, (8,), 4097)
    assert "4097 anchors" in complaint(twin_bytes, model)
    assert ann_bytes(model) > 4097 * 16


# -- break-evens: they agree with trying every number ----------------------------------------------


@quick
@given(shapes)
def test_the_twin_is_smaller_from_there_on(model):
    def fewer(members):
        twin = model.with_anchors(members).twin_params
        return twin < ann_params(model.features, model.hidden, members)

    def shorter(members):
        return twin_bytes(model.with_anchors(members)) < ann_bytes(model, members)

    for smaller, start in ((fewer, smaller_in_params(model)), (shorter, smaller_in_bytes(model))):
        if start is None:
            assert not smaller(4096)
            continue
        assert all(smaller(members) for members in range(start, min(start + 30, 4097)))
        assert start == model.twins or not smaller(start - 1)


def test_break_evens_by_hand():
    # One neuron: a network is 16 + 1024 + 4 + 4 + 8 bytes, an anchor 2 x 1024 + 4.
    assert smaller_in_bytes(Model.of(1024, (1,), 1)) is None
    assert smaller_in_params(Model.of(1024, (1,), 1)) == 1026
    for features in (1, 8, 100):
        assert smaller_in_params(replace(PAPER, features=features)) == 2
        assert smaller_in_bytes(replace(PAPER, features=features)) == 2


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
    around = [model.with_features(f) for f in (features, features + 1) if f]
    assert [twin_bytes(one) <= flash for one in around] == [True, False][-len(around) :]


def test_features_whose_map_no_pack_holds_do_not_fit():
    model = Model.of(1, (1,), 1, map_outputs=1, map_rows=256)
    assert most_features(model, 1 << 30) == 65535 // 256
    assert most_features(Model.of(1, (1,), 1, map_outputs=9, map_rows=2), 1 << 30) == 1024 - 8


@quick
@given(st.integers(1, 40), st.sampled_from([1, 4, 64]), st.integers(0, 20), st.integers(2, 20))
def test_narrower_layers_make_room_for_a_map(features, twins, extra, knots):
    _, hidden = defaults.shape(twins)
    rows = knots * features
    found = narrowed(features, twins, hidden, features + extra, rows)
    plain = Model.of(features, hidden, max(32, twins), twins=twins, intervals=True)
    mapped = replace(plain, map_outputs=features + extra, map_rows=rows, map_curves=features)
    assert len(found) == len(hidden)
    assert max(found) - min(found) <= 4
    if max(found) > 16:
        assert twin_bytes(replace(mapped, hidden=found)) <= twin_bytes(plain)
    if found != hidden:  # the last step was needed
        wider = list(found)
        wider[wider.index(min(wider))] += 4
        assert twin_bytes(replace(mapped, hidden=tuple(wider))) > twin_bytes(plain)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_search_finds_every_place(most):
    for place in range(most + 1):
        assert largest(lambda number, place=place: number <= place, most) == place


# -- packs and runs --------------------------------------------------------------------------------


def test_a_pack_says_how_many_levels_it_has(packs, tmp_path):
    pack = packs.random_pack(np.random.default_rng(0), scaled=True)
    path = tmp_path / "model.twin"
    for levels in (1, 15):
        quantiles = {level: level for level in range(1, levels + 1)}
        path.write_bytes(
            write_pack(replace(pack, intervals=replace(pack.intervals, quantiles=quantiles)))
        )
        assert from_pack(path)[0].levels == levels


def test_a_run_says_what_it_is(tiny_run, tiny_twin):
    model = from_run(tiny_run, anchors=16, weights="int16")
    expected = Model.of(3, (8,), 16, activation=tiny_twin.activation_, weights="int16")
    assert model == replace(expected, intervals=True)
    assert model.levels == 4  # 20 rows do not support 99 %
    assert from_run(tiny_run, anchors=16, weights="int16", intervals=False) == expected


def test_the_pack_of_a_run_is_as_long_as_predicted(tiny_run, tmp_path):
    from twinedge_export.deploy import export

    for intervals in (True, False):
        folder = tmp_path / str(intervals)
        options = {"anchors": 16, "formats": ("twin",), "intervals": intervals}
        file = export(tiny_run, folder, **options).files[0]
        predicted = from_run(tiny_run, anchors=16, intervals=intervals)
        packed, _ = from_pack(folder / file.path.name)
        assert (packed, packed.levels) == (predicted, predicted.levels)
        assert twin_bytes(packed) == twin_bytes(predicted)


def changed(run, tmp_path, key, values):
    """A copy of a run whose record says something else."""
    folder = tmp_path / "run"
    shutil.copytree(run, folder, dirs_exist_ok=True)
    record = json.loads((run / "run.json").read_text())
    record[key] = (record.get(key) or {}) | values if isinstance(values, dict) else values
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def test_a_run_with_curves_says_how_large_they_are(tiny_run, tmp_path):
    folder = changed(tiny_run, tmp_path, "map", {"outputs": 11, "knots": [9, 0, 5]})
    model = from_run(folder, anchors=16)
    assert (model.map_outputs, model.map_rows, model.map_curves) == (11, 14, 2)
    assert model.target_bins == 0
    folder = changed(tiny_run, tmp_path, "chosen", {"target_curve": "log"})
    assert from_run(folder).target_bins == 256


def test_runs_without_intervals_with_neighbors_and_with_twins(tiny_run, tmp_path):
    assert not from_run(changed(tiny_run, tmp_path, "calibration", None)).intervals
    near = {"pairs": "neighbors", "neighbors": 5}
    assert from_run(changed(tiny_run, tmp_path, "parameters", near), anchors=16).members == 5
    folder = changed(tiny_run, tmp_path, "parameters", {"twins": 4})
    assert from_run(folder, anchors=16).counts == (4, 4, 4, 4)


BAD_RUNS = [
    ("format", "other", "was not written by twinedge"),
    ("version", 2, "version 2"),
    ("parameters", None, "does not say what was trained"),
    ("parameters", {"hidden": None}, "does not say what was trained"),
    ("parameters", {"twins": "four"}, "does not say what was trained"),
    ("feature_names", [], "0 features"),
    ("chosen", {"activation": "tanh"}, "relu or silu"),
    ("calibration", 5, "does not say what was trained"),
    ("map", 5, "does not say what was trained"),
    ("map", {"outputs": 8}, "does not say what was trained"),
    ("map", {"outputs": "many", "knots": [3]}, "does not say what was trained"),
    ("map", {"outputs": 2, "knots": [3, 3, 0]}, "2 outputs of a map of 3 features"),
    ("calibration", {"quantiles": None}, "does not say what was trained"),
]


@pytest.mark.parametrize(
    ("key", "value", "says"), BAD_RUNS, ids=[f"{k} {v}" for k, v, _ in BAD_RUNS]
)
def test_another_run_is_refused(complaint, tiny_run, tmp_path, key, value, says):
    assert says in complaint(from_run, changed(tiny_run, tmp_path, key, value))


def test_what_is_no_run_or_pack_is_refused(complaint, tmp_path):
    assert "is not a run folder" in complaint(from_run, tmp_path)
    assert "does not exist" in complaint(from_run, tmp_path / "none")
    for text in ("{", "[" * 100_000):
        (tmp_path / "run.json").write_text(text)
        assert "not JSON" in complaint(from_run, tmp_path)
    (tmp_path / "run.json").write_text("[]")
    assert "was not written by twinedge" in complaint(from_run, tmp_path)
    path = tmp_path / "model.twin"
    assert "cannot read" in complaint(from_pack, path)
    path.write_bytes(b"TWIN")
    assert "too few" in complaint(from_pack, path)
    assert str(path) in complaint(from_pack, path)
