"""A device for several targets: each is what the pack of this target alone says."""

import json
from dataclasses import replace

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack import joined, read_pack, write_pack
from twinedge.runtime import native, reference
from twinedge.runtime.adaptation import adapted_pack
from twinedge.runtime.evaluator import reference_of
from twinedge.runtime.journal_file import read_journal_file
from twinedge.runtime.loading import load
from twinedge.runtime.pack_calibration import calibrate_targets
from twinedge.runtime.store import UNSCORED, Points
from twinedge.runtime.store_collection import as_table, merge
from twinedge.runtime.store_summary import read_store
from twinedge.runtime.streaming import Replies

NAMES = ("NOX", "CO", "O2")
GAINS = (1e-4, 3e-5, 2e-3)


def pack_for(random_pack, targets, seed=1, **given):
    """Draw a calm pack whose predictions and scales are ordinary numbers."""
    rng = np.random.default_rng(seed)
    pack = random_pack(
        rng,
        **{"features": 3, "hidden": (8, 6), "counts": [5, 4], "neighbors": 0, "scaled": True}
        | given,
        outputs=targets,
        weights="normal",
    )
    singles = [
        replace(
            one,
            x_offset=np.zeros(3, np.float32),
            x_gain=np.full(3, 1000, np.float32),
            y_offset=np.float32(10 * number),
            y_gain=np.float32(GAINS[number]),
            targets=(one.targets % 100_000).astype(np.int32),
            target_curve=None,
            intervals=replace(
                one.intervals,
                by_spread=65536,
                by_asymmetry=0,
                by_difficulty=0,
                constant=4096 * 2000,
                typical=16 * 2000,
                trust=30000,
                quantiles={500: 45000, 900: 110000},
            ),
            domain=replace(one.domain, fill=np.array([0, -32768, -32768], np.int16)),
            metadata={"target": NAMES[number]},
        )
        for number, one in enumerate(pack.singles)
    ]
    return joined(singles)


@pytest.fixture
def opened(tmp_path, request):
    """Write a pack and load it: ``opened(pack, name, store)``."""

    def call(pack, name="model", store=None, backend="numpy"):
        path = tmp_path / f"{name}.twin"
        path.write_bytes(write_pack(pack))
        return load(path, backend, store=store)

    return call


@pytest.fixture
def two(random_pack):
    return pack_for(random_pack, 2)


def queries(count, seed=0):
    x = np.random.default_rng(seed).normal(0, 9, (count, 3))
    x[0, 0] = np.nan
    return x


@pytest.mark.parametrize("targets", [1, 2, 3])
def test_every_method_gives_each_target_as_the_pack_of_it_alone(random_pack, opened, targets):
    pack, x = pack_for(random_pack, targets), queries(5)
    device = opened(pack)
    assert (device.targets, device.target_names) == (targets, NAMES[:targets])
    alone = [opened(one, f"alone{number}") for number, one in enumerate(pack.singles)]

    def same(found, get):
        expected = [get(one) for one in alone]
        expected = expected[0] if targets == 1 else np.stack(expected, axis=1)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)

    same(device.predict(x), lambda one: one.predict(x))
    for part in (0, 1):
        same(
            device.predict(x, return_std=True)[part],
            lambda one, part=part: one.predict(x, return_std=True)[part],
        )
    same(device.predict(x, neighbors=2), lambda one: one.predict(x, neighbors=2))
    same(device.spread(x), lambda one: one.spread(x))
    same(device.predict_interval(x), lambda one: one.predict_interval(x))
    same(device.predict_interval(x, [0.5, 0.9]), lambda one: one.predict_interval(x, [0.5, 0.9]))
    found = device.predict_all(x, 0.5)
    for name in ("mean", "spread", "scale", "low", "high"):
        same(getattr(found, name), lambda one, name=name: getattr(one.predict_all(x, 0.5), name))
    for name in ("outside", "missing"):  # of the query, not of a target
        np.testing.assert_array_equal(getattr(found, name), getattr(alone[0].predict_all(x), name))
    estimates = device.estimates(x)
    assert estimates.shape == ((5, 9) if targets == 1 else (5, 9, targets))
    np.testing.assert_array_equal(estimates.reshape(5, 9, targets)[..., -1], alone[-1].estimates(x))
    one = device.predict(x[1])
    assert one.shape == ((1,) if targets == 1 else (1, targets))
    assert device.predict(np.empty((0, 3))).shape == ((0,) if targets == 1 else (0, targets))
    text = repr(device)
    assert "NOX" in text
    assert ("CO" in text) == (targets > 1)
    assert ("CO" in device._repr_html_()) == (targets > 1)


def test_targets_learn_by_themselves_from_what_was_measured(two, opened):
    x = queries(12)
    device, alone = opened(two), [opened(one, f"one{n}") for n, one in enumerate(two.singles)]
    y = device.predict(x) + np.array([0.3, -0.1])
    y[3:7, 1] = np.nan
    y[8:, 0] = np.nan
    assert device.learn(x, y, np.arange(12)) == 12
    for target, one in enumerate(alone):
        known = ~np.isnan(y[:, target])
        one.learn(x[known], y[known, target], np.flatnonzero(known))
    new = queries(4, seed=5)
    np.testing.assert_array_equal(
        device.predict(new), np.stack([one.predict(new) for one in alone], axis=1)
    )
    np.testing.assert_array_equal(
        device.predict_interval(new), np.stack([one.predict_interval(new) for one in alone], axis=1)
    )
    moved = device.predict(new) - opened(two).predict(new)
    assert (moved[:, 0] > 0).all()
    assert (moved[:, 1] < 0).all()
    for target, one in enumerate(alone):
        errors, expected = device.errors(target), one.errors()
        used = errors.used
        np.testing.assert_array_equal(used, ~np.isnan(y[:, target]))
        np.testing.assert_array_equal(errors.adapted[used], expected.adapted)
        assert errors.scores() == expected.scores()
    assert device.has_learnt(x, y, np.arange(12)).all()
    y[0, 1] = np.nan
    assert not device.has_learnt(x, y, np.arange(12))[0]
    assert device.forget(0) == 1
    assert device.learnt == 11


def test_points_are_refused_in_one_line(two, opened):
    device, x = opened(two), queries(2)
    for y, words in (
        ([1.0, 2.0], r"shape \(2, 2\)"),
        ([[1.0], [2.0]], r"shape \(2, 2\)"),
        ([[1.0, 2.0], [3.0]], r"shape \(2, 2\)"),
        ([["a", "b"], ["c", "d"]], "must be numbers"),
        ([[1.0, 2.0], [np.nan, np.nan]], "point 2 has no target"),
        ([[1.0, np.inf], [1.0, 2.0]], "CO of point 1 is inf"),
        ([[1.0, 2.0], [1e30, np.nan]], "NOX of point 2 is 1e\\+30"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            device.learn(x, y)
        assert len(str(caught.value).splitlines()) == 1
    assert device.learnt == 0


def test_a_store_keeps_all_targets(two, opened, tmp_path):
    x, path = queries(6), tmp_path / "site.store"
    y = opened(two).predict(x) + np.array([0.3, -0.1])
    y[2, 0] = np.nan
    device = opened(two, store=path)
    device.learn(x, y)
    expected = device.predict(x)
    device.store.journal.close()
    content = read_journal_file(path)
    assert content.head.size == 4 + 2 * 12 + 3 * 4
    record = content.records[2].tobytes()
    target, error, score = np.frombuffer(record, "<f4,<i4,<i4", 1, 4)[0].tolist()
    assert np.isnan(target)
    assert (error, score) == (0, UNSCORED)
    again = opened(two, store=path)
    np.testing.assert_array_equal(again.predict(x), expected)
    assert again.points.to_records().tobytes() == content.records.tobytes()
    # Another pack of the same schema evaluates them again.
    again.store.journal.close()
    other = joined([replace(one, y_offset=one.y_offset + np.float32(1)) for one in two.singles])
    newer = opened(other, "newer", store=path)
    assert (newer.points.errors != again.points.errors)[~np.isnan(y)].all()
    assert newer.points.scores[2, 0] == UNSCORED
    newer.store.journal.close()
    with pytest.raises(InputError, match="other columns or another target"):
        opened(two.single(0), "alone", store=path)


def test_a_store_is_listed_exported_and_merged(two, opened, tmp_path):
    x, device = queries(6)[1:], opened(two)
    y = device.predict(x) + np.array([0.3, -0.1])
    y[2, 0] = np.nan
    y[4, 1] += 1000
    for name in ("north", "south"):
        device = opened(two, store=tmp_path / f"{name}.store")
        device.learn(x, y + (name == "south"), np.arange(1, 6))
        device.store.journal.close()
    found = device.summarise(tmp_path / "north.store")
    facts = found.facts["targets"]
    assert list(facts) == ["NOX", "CO"]
    assert (facts["NOX"]["used"], facts["CO"]["used"]) == (4, 5)
    assert (facts["NOX"]["suspect"], facts["CO"]["suspect"]) == (0, 1)
    listed = found.listed(device.encoding)
    assert set(listed[0]["target"]) == {"NOX", "CO"}
    assert np.isnan(listed[2]["target"]["NOX"])
    assert listed[4]["suspect"] == {"NOX": False, "CO": True}
    with_pack = [device.read_store(tmp_path / f"{name}.store") for name in ("north", "south")]
    without = [read_store(tmp_path / f"{name}.store", 2) for name in ("north", "south")]
    table = as_table(with_pack, None, with_pack[0].names)
    assert table.header == ["x0", "x1", "x2", "NOX", "CO", "device"]
    assert (len(table.rows), table.suspect) == (8, 2)
    assert table.rows[2][3] == ""
    assert as_table(without, None, without[0].names, suspect=True).header[3:5] == ["y0", "y1"]
    merged = merge(without, tmp_path / "all.store")
    assert len(merged) == 10
    assert len(opened(two, store=tmp_path / "all.store").points) == 10
    with pytest.raises(InputError, match="fewer than 8 targets"):
        read_store(tmp_path / "north.store", 8)


def test_records_have_the_bytes_of_the_format():
    points = Points.unscored([[1.5, np.nan]], [[2.0, np.nan]], np.array([7]))
    record = points.to_records()[0].tobytes()
    nan, unscored = np.float32(np.nan).tobytes(), UNSCORED.to_bytes(4, "little", signed=True)
    two = np.float32(2).tobytes() + bytes(4) + unscored
    assert record == bytes([7, 0, 0, 0]) + two + nan + bytes(4) + unscored + (
        np.float32(1.5).tobytes() + nan
    )


def test_an_adapted_pack_shifts_each_target(two, opened):
    device, x = opened(two), queries(10)
    device.learn(x, device.predict(x) + np.array([0.3, -0.1]))
    points = [device.points.single(target) for target in (0, 1)]
    made = joined(
        [
            adapted_pack(one, own.errors, own.scores)
            for one, own in zip(two.singles, points, strict=True)
        ]
    )
    moved = opened(made, "adapted").predict(x) - opened(two).predict(x)
    assert (moved[:, 0] > 0).all()
    assert (moved[:, 1] < 0).all()


def test_each_target_is_calibrated_on_what_was_measured(two):
    rng, x = np.random.default_rng(3), queries(60)
    x[:, 0] = rng.normal(0, 9, 60)
    y = rng.normal(0, 5, (60, 2))
    y[:40, 1] = np.nan  # 20 rows support fewer levels than 60
    done = calibrate_targets(two, x, y)
    first, second = (one.intervals for one in read_pack(write_pack(done)).every_target)
    assert (first.rows, second.rows) == (60, 20)
    assert list(first.quantiles) == list(second.quantiles)
    y[:55, 1] = np.nan
    with pytest.raises(InputError, match=r"^CO: "):
        calibrate_targets(two, x, y)


def test_lines_are_answered_for_each_target(two, opened):
    device = opened(two)
    replies = Replies(device)
    header, answer = replies.to(["x0,x1,x2", "1,2,3"])
    assert header == (
        "NOX,NOX_spread,NOX_scale,NOX_low,NOX_high,CO,CO_spread,CO_scale,CO_low,CO_high,"
        "outside,missing"
    )
    found = device.predict_all([[1.0, 2.0, 3.0]])
    numbers = np.array(answer.split(",")[:10], float).reshape(2, 5)
    expected = [found.mean, found.spread, found.scale, found.low, found.high]
    np.testing.assert_allclose(numbers, np.stack(expected)[:, 0].T, rtol=1e-6)
    [answer] = replies.to(['{"x0": 1, "x1": 2, "x2": 3}'])
    shown = json.loads(answer)
    assert list(shown) == ["prediction", "spread", "scale", "low", "high", "outside", "missing"]
    assert shown["low"]["CO"] == pytest.approx(found.low[0, 1], rel=1e-6)


def test_lines_teach_the_targets_that_they_have(two, opened):
    device = opened(two)
    replies = Replies(device)
    lines = [
        "1,2,3,=5,=4",
        "1,2,3,=,=4",
        '{"x0": 1, "x1": 2, "x2": 3, "=": [5, null]}',
        '{"x0": 1, "x1": 2, "x2": 3, "=": {"CO": 4}}',
    ]
    assert not any("error" in one for one in replies.to(lines))
    np.testing.assert_array_equal(
        device.points.y, np.array([[5, 4], [np.nan, 4], [5, np.nan], [np.nan, 4]], np.float32)
    )
    bad = ["1,2,3,=5", "1,2,3,=,=", "1,2,3,=5,=abc", '{"x0":1,"x1":2,"x2":3,"=":5}']
    assert all("error" in one for one in replies.to(bad))
    assert device.learnt == 4


needs_c = pytest.mark.skipif(native._native is None, reason="needs the C runtime")


def assert_evaluates(fast, pack, x, neighbors):
    """Whether the C runtime has the bits of the reference: floats, integers, single anchors."""
    plain = reference_of(pack)
    q = reference.quantise(pack, x)
    pairs = [
        (one(fast), one(plain))
        for one in (
            lambda by: by.predict_with_spread(x, neighbors),
            lambda by: by.estimates(x, neighbors),
        )
    ]
    if pack.intervals is not None:
        levels = list(pack.intervals.quantiles)
        pairs.append((fast.raw(q, neighbors), plain.raw(q, neighbors)))
        for some in (levels, levels[-1:]):
            both = (by.predict_with_bounds(x, some, neighbors) for by in (fast, plain))
            pairs.append(tuple(both))
    for found, expected in pairs:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


@needs_c
@pytest.mark.parametrize(
    "seed", [pytest.param(one, marks=[pytest.mark.slow] * (one > 3)) for one in range(8)]
)
def test_one_pass_in_c_has_the_bits_of_each_target(random_pack, seed):
    rng = np.random.default_rng([41, seed])
    pack = random_pack(
        rng,
        features=int(rng.integers(1, 9)),
        hidden=tuple(int(one) for one in rng.integers(1, 20, rng.integers(1, 4))),
        counts=[9, 2],
        scaled=bool(seed % 2),
        mapped=bool(seed // 2 % 2),
        curved=bool(seed // 4 % 2),
        outputs=(2, 3, 8)[seed % 3],
    )
    data, x = write_pack(pack), rng.normal(0, 1, (150, pack.features)) / pack.x_gain * 9000
    x = (x + pack.x_offset).astype(np.float32)
    names = native.Native(data, pack).kernels
    for kernel in names:
        opened = native.Native(data, pack, kernel, threads=1 + (kernel == names[0]))
        for neighbors in (-1, 0, 3):
            assert_evaluates(opened, pack, x, neighbors)
        assert_evaluates(opened, pack, x[:1].astype(float), -1)


@needs_c
def test_a_refused_query_stops_a_batch_of_several_targets(two, opened):
    device, x = opened(two, backend="native"), queries(200)
    x[150, 1] = np.nan
    with pytest.raises(InputError, match="not a number: x1"):
        device.predict(x)
    with pytest.raises(ValueError, match="buffers of other sizes"):
        device.evaluator.model.predict(x[:4], np.empty((2, 3), np.float32), None, -1)


@needs_c
@pytest.mark.parametrize("targets", [2, 3])
def test_the_c_runtime_says_the_same(random_pack, opened, targets):
    pack, x = pack_for(random_pack, targets), queries(200)
    plain, fast = opened(pack), opened(pack, backend="native")
    np.testing.assert_array_equal(fast.predict(x), plain.predict(x))
    np.testing.assert_array_equal(fast.predict_interval(x), plain.predict_interval(x))
    np.testing.assert_array_equal(fast.estimates(x[:9]), plain.estimates(x[:9]))
    for one, other in zip(fast.predict_all(x), plain.predict_all(x), strict=True):
        np.testing.assert_array_equal(one, other)
    for both in zip(
        fast.predict(x, return_std=True), plain.predict(x, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(*both)
    y = plain.predict(x[:20]) + 0.1
    for device in (plain, fast):
        device.learn(x[:20], y)
    np.testing.assert_array_equal(fast.predict(x), plain.predict(x))
