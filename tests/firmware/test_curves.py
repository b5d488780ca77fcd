"""Input maps and target curves in C: refused as in Python, and the same bits in every corner."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.pack import InputMap, PackError, TargetCurve, read_pack, write_pack
from twinedge.pack.layout import NO_FILL, Kind
from twinedge.runtime import reference

MAP, CURVE = Kind.MAP, Kind.TARGET_CURVE
SMALLEST, LARGEST = -(2**31), 2**31 - 1


@pytest.fixture(scope="module")
def curved(packs, faults):
    return faults.curved(packs)


@pytest.fixture(scope="module")
def data(curved):
    return write_pack(curved)


# ---- refusing


def test_contents(packs, data, same, faults):
    for name, (reason, *fault) in faults.CURVE_FAULTS.items():
        assert same(packs.repair(faults.inside(data, *fault))) == reason.value, name


@pytest.mark.parametrize(("bins", "code"), [(127, "ok"), (128, "value")])
def test_the_last_estimate_of_a_curve_that_fits_passes(packs, curved, same, faults, bins, code):
    curve = TargetCurve(0, 4, np.arange(bins + 1, dtype=np.int32))
    made = write_pack(replace(curved, target_curve=curve))
    assert same(packs.repair(faults.inside(made, CURVE, "B", 4, 24))) == code


def test_every_byte_of_both_sections(packs, data, same, faults):
    seen = set()
    for kind in (MAP, CURVE):
        offset, length = struct.unpack_from("<II", data, faults.entry_of(data, kind) + 4)
        for at in range(offset, offset + length):
            for value in {0, 1, 127, 128, 255, data[at] ^ 1}:
                seen.add(same(packs.repair(faults.put(data, "B", at, value))))
    assert seen == {"ok", "section", "padding", "value"}


def test_entries_of_the_table(packs, data, same, faults):
    put, entry_of = faults.put, faults.entry_of
    for kind in (MAP, CURVE):
        for length in (0, 1, 3, 4, 7, 8, 12, 20, 23, 25, 48, 50, 2**31, 2**32 - 1):
            assert same(packs.repair(put(data, "I", entry_of(data, kind) + 8, length))) == "section"
        for offset in (0, 1, 2, 52, len(data) - 16, len(data), len(data) + 16, 2**32 - 16):
            assert same(packs.repair(put(data, "I", entry_of(data, kind) + 4, offset))) == "section"
        for flags in (0, 2, 3):
            assert same(packs.repair(put(data, "H", entry_of(data, kind) + 2, flags))) == "section"
        for other in (1, 2, 4, 7, 8, 40000, MAP, CURVE):  # a pack may do without its curve
            same(packs.repair(put(data, "HH", entry_of(data, kind), other, 0)))
            same(packs.repair(put(data, "HH", entry_of(data, kind), other, 1)))


def test_a_map_at_the_very_end_of_the_file(packs, small, same):
    """Of no bytes, so that there is nothing to read the number of its outputs from."""
    plain = write_pack(small, metadata=False)
    count = plain[6]
    if (48 + 12 * count) % 16 == 12:
        pytest.skip("there is no room for another entry")
    table = bytearray(plain[: 48 + 12 * count]) + struct.pack("<HHII", MAP, 1, len(plain), 0)
    made = table + plain[len(table) :]
    made[4], made[6] = 3, count + 1
    assert same(packs.repair(made)) == "section"


def test_sections_in_any_order(packs, data, same):
    sections = [
        (*struct.unpack_from("<HHII", data, at),) for at in range(48, 48 + 12 * data[6], 12)
    ]
    for order in ([*reversed(sections)], sections[1:] + sections[:1]):
        start = 48 + 12 * len(order)
        table, body = b"", bytes(-start % 16)
        for kind, flags, offset, length in order:
            table += struct.pack("<HHII", kind, flags, start + len(body), length)
            body += data[offset : offset + length] + bytes(-length % 16)
        made = bytearray(data[:48] + table + body)
        assert len(made) == len(data)
        assert same(packs.repair(made)) == "ok"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_versions(packs, small, data, same, version, faults):
    put, entry_of = faults.put, faults.entry_of
    plain = write_pack(small)
    assert same(packs.repair(put(plain, "H", 4, version))) == ("version" if version > 3 else "ok")
    for flags in range(8):
        same(packs.repair(put(plain, "HH", 36, 1, flags)) if version < 4 else plain)
        same(packs.repair(put(put(plain, "H", 4, version), "H", 38, flags)))
    for kind, flag in ((MAP, 0), (MAP, 1), (CURVE, 0), (CURVE, 1)):
        entry = entry_of(plain, 6)
        assert same(packs.repair(put(put(plain, "H", 4, version), "HH", entry, kind, flag))) == (
            "version" if version > 3 else "section" if version == 3 or flag else "ok"
        )
    same(packs.repair(put(data, "H", 4, version)))


def test_mutations_with_good_checksums(packs, open_pack, faults, expected):
    rng, seen = np.random.default_rng(5), set()
    for number in range(1500):
        if number % 50 == 0:
            shape = {"features": int(rng.integers(1, 4)), "hidden": (3, 2), "counts": [2, 1]}
            kinds = {"scaled": number // 50 % 2, "mapped": number // 100 % 2 == 0, "curved": True}
            data = write_pack(packs.random_pack(rng, **shape, **kinds))
        damaged = packs.repair(faults.mutate(rng, data))
        opened = open_pack(damaged)
        assert opened.status == expected(damaged)
        seen.add(opened.status)
        if opened.status == "ok" and number % 5 == 0 and expected(damaged) == "ok":
            try:
                changed = read_pack(bytes(damaged))
            except PackError:  # of the metadata
                continue
            q = rng.integers(-32767, 32768, (3, changed.features)).astype(np.int16)
            right = reference.evaluate_raw(changed, q).estimates
            assert opened.predict_raw(q)[-1].tolist() == right.tolist()
    assert seen >= {"ok", "header", "section", "padding", "value", "overflow"}


# ---- maps


def with_map(packs, features, curves, **more):
    """A pack whose estimates show what the map made of a query."""
    rng = np.random.default_rng(8)
    shape = {"hidden": (2 * curves.outputs,), "activation": "relu", "dtype": np.int8}
    shape |= {"counts": [1], "neighbors": 0, "weights": "normal", **more}
    pack = packs.random_pack(rng, features=curves.outputs, **shape)
    layer = pack.twins[0].layers[0]
    if "counts" not in more:  # z, unit by unit
        layer.kernel[:], layer.bias[:], layer.multiplier[:] = 0, 0, 32767
        identity = np.arange(curves.outputs)
        layer.kernel[identity, identity] = 2
        layer.kernel[curves.outputs + identity, identity] = -2
    scaling = {"x_offset": pack.x_offset[:features], "x_gain": pack.x_gain[:features]}
    return replace(pack, **scaling, map=curves)


def assert_same_estimates(open_pack, pack, q):
    q = np.asarray(q, np.int16)
    found = open_pack(write_pack(pack)).predict_raw(q)[-1]
    np.testing.assert_array_equal(found, reference.evaluate_raw(pack, q).estimates)


@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("shift", [1, 24])
def test_the_largest_sum_that_may_be(open_pack, packs, value, shift):
    """Of 1024 features, each at the end of its curve, and of the smallest or largest query."""
    features = 1024
    curves = InputMap(
        bins=np.ones(features, np.uint8),
        shifts=np.full(features, shift, np.uint8),
        knots=np.tile(np.array([-32767, 32767], np.int16), features),
        table=np.full((2 * features, features), value, np.int8),
    )
    pack = with_map(packs, features, curves, hidden=(2,), counts=[1])
    q = np.array([[-32767], [-1], [0], [32767]]) + np.zeros(features, int)
    assert_same_estimates(open_pack, pack, q)


def test_every_place_on_a_curve(open_pack, packs):
    """Bins of any width, before, at, between and after the knots."""
    knots = [-32767, -32766, -300, -7, 0, 1, 2, 500, 32766, 32767]
    curves = InputMap(
        bins=np.array([9, 0, 255], np.uint8),
        shifts=np.array([8, 3, 12, 14, 5], np.uint8),
        knots=np.array([*knots, *range(-128, 128)], np.int16),
        table=np.random.default_rng(1).integers(-128, 128, (266, 5)).astype(np.int8),
    )
    pack = with_map(packs, 3, curves)
    near = np.array(knots)[:, None] + np.arange(-2, 3)
    places = np.unique(
        np.clip([*near.ravel(), *range(-140, 140), *range(-32767, 32768, 997)], -32767, 32767)
    )
    q = np.stack([places, places[::-1], np.roll(places, 99)], axis=1)
    assert_same_estimates(open_pack, pack, q)


def test_a_map_without_curves_only_adds_zeros(open_pack, packs):
    empty = InputMap(
        bins=np.zeros(2, np.uint8),
        shifts=np.ones(7, np.uint8),
        knots=np.zeros(0, np.int16),
        table=np.zeros((0, 7), np.int8),
    )
    q = np.random.default_rng(2).integers(-32767, 32768, (20, 2))
    assert_same_estimates(open_pack, with_map(packs, 2, empty), q)


def test_a_first_layer_of_one_neuron_leaves_the_map_room(open_pack, packs, cases):
    """Scratch ends where the library says, and features have more places than there are neurons."""
    for features in (1, 9, 64, 200):
        rng = np.random.default_rng(features)
        curves = packs.random_map(rng, features)
        pack = with_map(packs, features, curves, hidden=(1,), counts=[2])
        opened = open_pack(write_pack(pack))
        found = opened.predict(cases.queries(pack, 20))[-1]  # checks what follows the scratch
        right = reference.evaluate(pack, cases.queries(pack, 20)).estimates
        np.testing.assert_array_equal(found, right)


def test_missing_features_are_filled_in_before_the_map(open_pack, packs):
    pack = packs.random_pack(
        np.random.default_rng(9), features=4, mapped=True, scaled=True, curved=True
    )
    fill = np.array([-5, 7000, -32767, NO_FILL], np.int16)
    pack = replace(pack, domain=replace(pack.domain, fill=fill))
    opened = open_pack(write_pack(pack))
    q = np.random.default_rng(10).integers(-32767, 32768, (30, 4)).astype(np.int16)
    given_q = q.copy()
    given_q[:, :3][np.random.default_rng(11).random((30, 3)) < 0.5] = NO_FILL
    filled = np.where(given_q == NO_FILL, fill, given_q)
    found = opened.predict_raw(given_q)
    np.testing.assert_array_equal(found[-1], reference.evaluate_raw(pack, filled).estimates)
    given_q[0, 3] = NO_FILL
    status, run = opened.begin("twin_begin_raw", given_q[0])
    assert status == "query"
    assert opened.step(run, 65535) == 0


def test_steps_apply_the_map_once(open_pack, packs, native):
    pack = packs.random_pack(
        np.random.default_rng(12), features=5, hidden=(6, 4), counts=[7, 9], mapped=True
    )
    opened = open_pack(write_pack(pack))
    q = np.random.default_rng(13).integers(-32767, 32768, (8, 5)).astype(np.int16)
    for query, right in zip(q, reference.evaluate_raw(pack, q).estimates, strict=True):
        for sizes in ([0, 0, 1, 0, 65535], [1] * 200, [3] * 80):
            estimates = np.zeros(len(right), np.int32)
            *_, (left, _) = opened.steps("twin_begin_raw", query, sizes, estimates)
            assert left == 0
            np.testing.assert_array_equal(estimates, right)


# ---- target curves


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_curve_and_its_inverse(open_pack, packs, curved, drawn):
    shift = drawn.draw(st.integers(0, 24))
    bins = drawn.draw(st.integers(1, min(40, LARGEST >> shift)))
    highest = min(2**30 - 1, LARGEST - (bins << shift))
    first = drawn.draw(st.integers(1 - 2**30, highest))
    steps = drawn.draw(st.lists(st.integers(1, 2**20), min_size=bins, max_size=bins))
    start = drawn.draw(st.integers(1 - 2**30, 2**30 - 1 - sum(steps)))
    values = (start + np.cumsum([0, *steps])).astype(np.int32)
    pack = replace(curved, target_curve=TargetCurve(first, shift, values))
    opened = open_pack(write_pack(pack))
    end = first + (bins << shift)
    ends = [SMALLEST, LARGEST, 0, first - 1, first, first + 1, end - 1, end, min(end + 1, LARGEST)]
    inner = drawn.draw(st.lists(st.integers(first, end), min_size=5, max_size=5))
    estimates = np.array([*ends, *inner])
    found = [opened.library.twin_target_raw(opened.model, one) for one in estimates.tolist()]
    assert found == reference.curved(pack, estimates).tolist()
    units = np.array([opened.library.twin_target(opened.model, one) for one in estimates.tolist()])
    np.testing.assert_array_equal(units.astype(np.float32), reference.targets_of(pack, estimates))
    inside = np.array([SMALLEST, LARGEST, *values, *(values[:-1] + values[1:]) // 2, *(values - 1)])
    back = [opened.library.twin_estimate_raw(opened.model, one) for one in inside.tolist()]
    plain = replace(pack, y_offset=np.float32(0), y_gain=np.float32(1))
    exact = np.abs(inside) < 2**24  # floats that hold the value as it is
    right = reference.estimates_of(plain, inside.astype(np.float32))
    assert np.array(back)[exact].tolist() == right[exact].tolist()
    assert back == [inverse(pack.target_curve, one) for one in inside.tolist()]


def inverse(curve, target):
    """In whole numbers of any size, as FORMAT.md has it."""
    values = curve.values.tolist()
    target = min(max(target, values[0]), values[-1])
    k = max(i for i in range(len(values) - 1) if values[i] <= target)
    rest = ((target - values[k]) << curve.shift) // (values[k + 1] - values[k])
    return curve.first + (k << curve.shift) + rest


def test_without_a_curve_or_an_open_model_numbers_stay_as_they_are(native, open_pack, packs, small):
    library, model = open_pack(write_pack(small)).library, open_pack(write_pack(small)).model
    for one in (SMALLEST, -1, 0, 7, LARGEST):
        for given_model in (model, native.Model()):
            assert library.twin_target_raw(given_model, one) == one
            assert library.twin_estimate_raw(given_model, one) == one
