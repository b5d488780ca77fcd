"""What a caller may do: steps, a choice of neighbors, estimates or none; and may not."""

import ctypes
import dataclasses

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference

NAMES = ("silu-64-64-four-twins-of-8", "odd-widths", "neighbors-of-four-twins", "one-neighbor")


@pytest.mark.parametrize("function", ["twin_begin", "twin_begin_raw"])
@pytest.mark.parametrize("size", [1, 4, 7, 65535])
@pytest.mark.parametrize("name", NAMES)
def test_steps_of_any_size_come_to_the_same(open_pack, packs, cases, name, size, function):
    pack = cases.draw(packs, name)
    opened = open_pack(write_pack(pack))
    x = cases.queries(pack, 30)[7]
    query = reference.quantise(pack, x[None])[0] if function == "twin_begin_raw" else x
    expected = reference.evaluate(pack, x[None])
    estimates = np.zeros(pack.members, np.int32)
    most = pack.members + len(pack.anchors)  # with neighbors, some steps only look for them
    before = 0
    for left, run in opened.steps(function, query, [size] * most, estimates):
        done = pack.members - left
        assert before <= done <= before + size
        before = done
        status, mean, spread = opened.read(run)
        raw = opened.read_raw(run)
        assert raw[0] == status == ("early" if not done else "more" if left else "ok")
        if done:
            so_far = reference.combine(pack, expected.estimates[:, :done])
            assert raw[1:] == (so_far.raw_mean[0], so_far.raw_spread[0], done)
            assert mean.tobytes() == so_far.mean[0].tobytes()
            assert spread.tobytes() == so_far.spread[0].tobytes()
        else:
            assert raw[1:] == (0, 0, 0)
            assert mean.view(np.uint32) == spread.view(np.uint32) == 0x7FC00000
    assert left == 0
    assert estimates.tolist() == expected.estimates[0].tolist()


def test_a_step_of_none_does_nothing(open_pack, small):
    opened = open_pack(write_pack(small))
    for left, run in opened.steps("twin_begin", np.zeros(2, np.float32), [0, 0]):
        assert left == small.members
        assert opened.read_raw(run) == ("early", 0, 0, 0)


@pytest.mark.parametrize("neighbors", [1, 5, 100, 999])
def test_the_search_for_neighbors_is_in_steps(open_pack, packs, neighbors):
    rng = np.random.default_rng(6)
    pack = packs.random_pack(
        rng, features=3, hidden=(4,), counts=[1000], neighbors=neighbors, dtype=np.int8
    )
    opened = open_pack(write_pack(pack))
    q = rng.integers(-32767, 32768, 3).astype(np.int16)
    sizes = [1] * (3000 // 16 + 2 + neighbors)
    lefts = [left for left, _ in opened.steps("twin_begin_raw", q, sizes)]
    # A step of one anchor checks 16 while it searches, so many steps yield no estimate.
    search = 1000 + 2 * neighbors
    assert lefts.count(neighbors) == 1 + (search - 1) // 16
    assert lefts[-1] == 0


@pytest.mark.parametrize("count", [0, 1, 6, 30, 65535])
@pytest.mark.parametrize("name", ["neighbors-of-four-twins", "odd-widths"])
def test_neighbors_by_the_caller(open_pack, packs, cases, name, count):
    pack = cases.draw(packs, name)
    opened = open_pack(write_pack(pack))
    opened.set_neighbors(count)
    # The same as a pack with that setting.
    other = dataclasses.replace(pack, neighbors=min(count, 4096), trained_on_neighbors=False)
    x = cases.queries(pack, 50)
    mean, spread, estimates = opened.predict(x)
    expected = reference.evaluate(other, x)
    assert opened.model.members == other.members
    np.testing.assert_array_equal(estimates, expected.estimates)
    np.testing.assert_array_equal(mean, expected.mean)
    np.testing.assert_array_equal(spread, expected.spread)


def test_of_equally_near_anchors_the_earlier_predicts(open_pack, packs):
    rng = np.random.default_rng(4)
    pack = packs.random_pack(rng, features=2, hidden=(3,), counts=[40, 9], neighbors=4)
    pack.anchors[:] = rng.integers(-2, 3, pack.anchors.shape)
    q = rng.integers(-2, 3, (200, 2)).astype(np.int16)
    *_, estimates = open_pack(write_pack(pack)).predict_raw(q)
    assert estimates.tolist() == reference.evaluate_raw(pack, q).estimates.tolist()


def test_members_are_optional(open_pack, native, small):
    opened = open_pack(write_pack(small))
    x, out = np.zeros((1, 2), np.float32), native.Prediction()
    status = opened.library.twin_predict(
        opened.model, opened.scratch.ctypes.data, opened.size, x.ctypes.data, ctypes.byref(out), 0
    )
    assert status == 0
    assert (out.mean, out.spread) == tuple(part[0] for part in opened.predict(x)[:2])


def test_a_member_in_units_of_the_target(open_pack, small):
    opened = open_pack(write_pack(small))
    for estimate in (0, 1, -1, 16777217, 2**31 - 1, -(2**31) + 1):
        expected = np.float32(estimate) * small.y_gain + small.y_offset
        assert np.float32(opened.library.twin_target(opened.model, estimate)) == expected


def test_a_model_describes_its_pack(open_pack, packs, cases):
    for name, (
        (features, hidden, activation, dtype),
        counts,
        neighbors,
        _,
    ) in cases.SHAPES.items():
        model = open_pack(write_pack(cases.draw(packs, name))).model
        assert model.features == features
        assert tuple(model.hidden[: model.layers]) == hidden
        assert (model.silu, model.wide) == (activation == "silu", dtype is np.int16)
        assert (model.twin_count, model.anchor_count) == (len(counts), sum(counts))
        assert model.neighbors == neighbors
        assert model.members == sum(min(count, neighbors or count) for count in counts)


def test_the_default_block_of_128_neurons_fits_a_small_device(native, packs, cases, tmp_path):
    options = ("-fPIC", "-shared", "-DTWIN_BLOCK=2", "-DTWIN_HOST=0")
    path = native.compile_c(tmp_path / "lib.so", *options, sources=native.PORTABLE)
    opened = native.Native(native.load(path), write_pack(cases.draw(packs, "relu-128-128-of-32")))
    # Partial sums 8 bytes per neuron, two pairs of activations 8, the query; and 7 to align them.
    assert opened.size == 128 * 8 + 128 * 8 + 16 + 7


def test_every_status_has_a_line_of_its_own(library, native):
    numbers = [native.MORE, *(-number for number in range(len(native.STATUSES)))]
    lines = [library.twin_text(number).decode() for number in numbers]
    assert len(set(lines)) == len(lines)
    assert all(line and "\n" not in line for line in lines)
    assert library.twin_text(-99).decode() == library.twin_text(2).decode() not in lines
