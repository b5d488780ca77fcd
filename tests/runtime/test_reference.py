"""The reference evaluator against one written from FORMAT.md alone: the same bits, always."""

import tracemalloc
import warnings

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack import read_pack, write_pack
from twinedge.runtime import reference

EXTREMES = [0.0, -0.0, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -1e-38, 1e300, 0.5, -1.5]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def bits(values):
    return [np.float32(value).tobytes().hex() for value in values]


def assert_same_bits(plain, pack, x):
    pack = read_pack(write_pack(pack))
    found = reference.evaluate(pack, x)
    exact = plain(write_pack(pack))
    expected = [exact.evaluate(row) for row in np.asarray(x, np.float64).tolist()]
    means, spreads, raw_means, raw_spreads, estimates = zip(*expected, strict=True)
    assert reference.quantise(pack, x).tolist() == [exact.query(row) for row in x.tolist()]
    assert found.estimates.tolist() == list(estimates)
    assert found.raw_mean.tolist() == list(raw_means)
    assert found.raw_spread.tolist() == list(raw_spreads)
    assert bits(found.mean) == list(means)
    assert bits(found.spread) == list(spreads)
    assert found.estimates.shape == (len(x), pack.members)
    *parts, signals = found
    assert [part.dtype for part in parts] == [np.float32, np.float32, np.int32, np.uint32, np.int32]
    missing = np.isnan(x)
    outside = reference.outside(pack, reference.quantise(pack, x)) & ~missing
    assert outside.tolist() == [exact.outside(row) for row in x.tolist()]
    assert (signals is not None) == (pack.intervals is not None)
    if signals is not None:
        assert (signals.dtype, signals.shape) == (np.uint32, (3, len(x)))
        assert_same_bounds(exact, pack, found, x)


def assert_same_bounds(exact, pack, found, x):
    scales, raw_scales, ends = zip(*map(exact.bounds, x.tolist()), strict=True)
    for level in pack.intervals.quantiles:
        bounds = reference.bounds(pack, found, level)
        assert bits(bounds.scale) == list(scales)
        assert bounds.raw_scale.tolist() == list(raw_scales)
        low, high, raw_low, raw_high = zip(*(one[level] for one in ends), strict=True)
        assert (bits(bounds.low), bits(bounds.high)) == (list(low), list(high))
        assert bounds.raw_low.tolist() == list(raw_low)
        assert bounds.raw_high.tolist() == list(raw_high)


def queries(rng, pack, count):
    """Draw queries: within the range, near its edges, on anchors, and far outside."""
    q = (
        rng.integers(-33000, 33001, (count, pack.features))
        + rng.choice([0, 0.5, 0.49], count)[:, None]
    )
    q[0] = pack.anchors[rng.integers(len(pack.anchors)), : pack.features]
    x = q / pack.x_gain.astype(np.float64) + pack.x_offset
    wild = rng.random(x.shape) < 0.1
    x = np.where(wild, rng.choice(EXTREMES, x.shape), x)
    x[(rng.random(x.shape) < 0.1) & reference.fillable(pack)] = np.nan
    return x


@pytest.mark.parametrize("seed", range(4))
def test_random_packs_give_the_same_bits(plain, random_pack, seed):
    rng = np.random.default_rng([7, seed])
    for number in range(6):
        pack = random_pack(rng, scaled=bool(number % 2))
        assert_same_bits(plain, pack, queries(rng, pack, 2))


@pytest.mark.parametrize("outputs", [2, 3, 8])
@pytest.mark.parametrize("scaled", [False, True])
def test_each_of_several_targets_has_the_same_bits(plain, random_pack, outputs, scaled):
    rng = np.random.default_rng([9, outputs, scaled])
    for number in range(3):
        about = {"scaled": scaled, "mapped": number > 0, "curved": number != 1}
        pack = random_pack(rng, outputs=outputs, features=3, counts=[4, 2], **about)
        data, x = write_pack(pack), queries(rng, pack, 3)
        pack, exact = read_pack(data), plain(data)
        found = reference.evaluate_targets(pack, x)
        assert len(found) == exact.targets == outputs
        for target, (one, single) in enumerate(zip(found, pack.singles, strict=True)):
            exact.select(target)
            means, spreads, raw, roots, estimates = zip(
                *map(exact.evaluate, x.tolist()), strict=True
            )
            assert (bits(one.mean), bits(one.spread)) == (list(means), list(spreads))
            assert one.estimates.tolist() == list(estimates)
            assert (one.raw_mean.tolist(), one.raw_spread.tolist()) == (list(raw), list(roots))
            if scaled:
                assert_same_bounds(exact, single, one, x)
            # It is the pack of this target alone.
            assert_same_bits(plain, single, x)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_random_packs_give_the_same_bits(plain, random_pack, seed):
    rng = np.random.default_rng([8, seed])
    for number in range(50):
        kinds = {"scaled": number & 1, "mapped": number & 2, "curved": number & 4}
        pack = random_pack(rng, **{name: bool(bit) for name, bit in kinds.items()})
        assert_same_bits(plain, pack, queries(rng, pack, 3))


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("weights", ["lowest", "highest"])
def test_extreme_weights_and_queries_stay_within_their_widths(
    plain, random_pack, activation, dtype, weights
):
    rng = np.random.default_rng(0)
    for hidden in ((1,), (64,), (3, 5, 1)):
        pack = random_pack(
            rng,
            features=33,
            hidden=hidden,
            activation=activation,
            dtype=dtype,
            weights=weights,
            counts=[2, 1],
        )
        x = np.array(EXTREMES)[:, None] * np.ones(33)
        x[-1] = np.where(np.arange(33) % 2, np.inf, -np.inf)
        assert_same_bits(plain, pack, x)


@pytest.mark.parametrize("counts", [[40], [1, 40, 7, 3]])
@pytest.mark.parametrize("neighbors", [0, 5])
def test_anchors_assigned_unevenly(plain, random_pack, counts, neighbors):
    rng = np.random.default_rng(3)
    pack = random_pack(rng, features=2, hidden=(5,), counts=counts, neighbors=neighbors)
    assert pack.members == sum(min(count, neighbors or count) for count in counts)
    assert_same_bits(plain, pack, queries(rng, pack, 4))


def test_of_equally_near_anchors_the_earlier_predicts(plain, random_pack):
    rng = np.random.default_rng(4)
    pack = random_pack(rng, features=2, hidden=(3,), counts=[40, 9], neighbors=4)
    pack.anchors[:] = rng.integers(-2, 3, pack.anchors.shape)
    x = rng.integers(-2, 3, (20, 2)) / pack.x_gain.astype(np.float64) + pack.x_offset
    assert_same_bits(plain, pack, x)


def test_every_fraction_and_every_place_on_the_curve(plain, random_pack):
    rng = np.random.default_rng(5)
    for fraction in range(5, 16):
        pack = random_pack(
            rng, features=1, hidden=(1,), activation="silu", dtype=np.int8, counts=[1]
        )
        layer = pack.twins[0].layers[0]
        object.__setattr__(layer, "fraction", fraction)
        object.__setattr__(layer, "shift", 0)
        layer.kernel[:], layer.bias[:], layer.multiplier[:] = [[2, 0]], 0, 32767  # z = q
        q = np.unique([*range(-40, 140), *rng.integers(-32767, 32768, 60), -32767, 32767])
        found = reference.evaluate_raw(pack, q[:, None].astype(np.int16))
        exact = plain(write_pack(pack))
        assert found.estimates.tolist() == [exact.evaluate_raw([int(one)])[4] for one in q]


def test_the_spread_of_estimates_as_far_apart_as_can_be(plain, random_pack):
    # 64 signed bits would not hold this.
    rng = np.random.default_rng(6)
    pack = random_pack(rng, features=1, hidden=(1,), counts=[4096], neighbors=0, weights="normal")
    pack.targets[:] = np.where(np.arange(4096) % 2, 2**30 - 1, 1 - 2**30)
    pack.targets[0] = 0
    assert_same_bits(plain, pack, queries(rng, pack, 1))
    assert reference.evaluate(pack, [[0.0]]).raw_spread[0] > 2**31.9


def test_half_a_unit_rounds_away_from_zero(random_pack):
    pack = random_pack(np.random.default_rng(0), features=1)
    pack.x_offset[:], pack.x_gain[:] = 0, 1
    below = np.nextafter(np.float32(0.5), np.float32(0))
    x = [[below], [0.5], [1.5], [2.5], [-below], [-0.5], [-2.5], [32766.5], [32767.5], [1e9]]
    expected = [0, 1, 2, 3, 0, -1, -3, 32767, 32767, 32767]
    assert reference.quantise(pack, x)[:, 0].tolist() == expected


def test_the_mean_rounds_half_away_from_zero(random_pack):
    pack = random_pack(np.random.default_rng(0))
    estimates = np.array(
        [[1, 2], [-1, -2], [0, 1], [0, -1], [3, 3], [-(2**31), 2**31 - 1]], np.int32
    )
    assert reference.combine(pack, estimates).raw_mean.tolist() == [2, -2, 1, -1, 3, -1]


def test_predictions_beyond_float32_are_infinite(random_pack):
    pack = random_pack(np.random.default_rng(0), features=1, counts=[3], neighbors=0)
    object.__setattr__(pack, "y_gain", np.float32(3e38))
    pack.targets[:] = [1000, 900, 2**29]
    found = reference.evaluate(pack, [[0.0]])
    assert np.isposinf(found.mean[0])
    assert np.isposinf(found.spread[0])


def test_no_queries_give_no_estimates(random_pack):
    pack = random_pack(np.random.default_rng(0), neighbors=0)
    found = reference.evaluate(pack, np.empty((0, pack.features)))
    assert found.mean.shape == (0,)
    assert found.estimates.shape == (0, pack.members)


@pytest.mark.parametrize("neighbors", [0, 2000])
def test_blocks_bound_the_memory_and_change_no_bit(random_pack, monkeypatch, neighbors):
    rng = np.random.default_rng(9)
    pack = random_pack(rng, features=3, hidden=(64, 9), counts=[2500, 3], neighbors=neighbors)
    q = rng.integers(-32767, 32768, (10, 3)).astype(np.int16)
    whole = reference.evaluate_raw(pack, q)
    monkeypatch.setattr(reference, "_BLOCK", 1 << 14)
    tracemalloc.start()
    blocked = reference.evaluate_raw(pack, q)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for one, other in zip(whole, blocked, strict=True):
        np.testing.assert_array_equal(one, other)
    # 10 queries by 2500 anchors by 64 neurons would be 13 MB per array.
    assert peak < 5e6


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([[1.0]], "2 features"),
        ([1.0, 2.0], "2 features"),
        ([[1.0, 2.0], [1.0]], "2 features"),
        ([[1.0, np.nan]], "not a number"),
        ([["a", "b"]], "must be numbers"),
        ([[1j, 2j]], "must be numbers"),
    ],
    ids=["too few", "no row", "uneven", "nan", "text", "complex"],
)
def test_other_queries_are_refused(random_pack, x, words):
    pack = random_pack(np.random.default_rng(0), features=2, scaled=False)
    with pytest.raises(InputError, match=words):
        reference.evaluate(pack, x)
