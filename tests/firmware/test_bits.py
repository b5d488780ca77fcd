"""The C runtime computes the bits of the reference evaluator, on every pack and query."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime import reference

NAMES = list(runpy.run_path(str(Path(__file__).parent / "cases.py"))["SHAPES"])
QUERIES = int(os.environ.get("TWIN_TEST_QUERIES", "150"))


def assert_same_bits(opened, pack, x):
    assert opened.status == "ok"
    expected, found = reference.evaluate(pack, x), opened.predict_all(x)
    q = reference.quantise(pack, x)
    raw = opened.predict_raw_all(np.where(np.isnan(x), NO_FILL, q)[:50])
    np.testing.assert_array_equal(found["estimates"], expected.estimates)
    np.testing.assert_array_equal(raw["estimates"], expected.estimates[:50])
    assert set(raw["count"]) == {pack.members}
    fields = {"mean": expected.mean, "spread": expected.spread}
    integers = {"mean": expected.raw_mean, "root": expected.raw_spread}
    if pack.intervals is not None:
        bounds = reference.bounds(pack, expected, pack.intervals.usual_level)
        fields |= {name: getattr(bounds, name) for name in ("scale", "low", "high")}
        integers |= {name: getattr(bounds, f"raw_{name}") for name in ("scale", "low", "high")}
    for name, right in fields.items():
        np.testing.assert_array_equal(found[name].view(np.uint32), right.view(np.uint32), name)
    for name, right in integers.items():
        np.testing.assert_array_equal(raw[name], right[:50], name)
    for one, rows in ((found, slice(None)), (raw, slice(50))):
        assert set(one["intervals"]) == {int(pack.intervals is not None)}
        missing = np.isnan(x[rows])
        outside = reference.outside(pack, q[rows]) & ~missing
        np.testing.assert_array_equal(one["outside"], reference.mask(outside))
        np.testing.assert_array_equal(one["missing"], reference.mask(missing))


@pytest.mark.parametrize("name", NAMES)
def test_all_kinds_of_packs(open_pack, packs, cases, name):
    count = QUERIES // 3 if name in cases.LARGE else QUERIES
    for scaled in (False, True):
        pack = cases.draw(packs, name, scaled)
        assert_same_bits(open_pack(write_pack(pack)), pack, cases.queries(pack, count))


@pytest.mark.parametrize("seed", range(2))
def test_random_packs(open_pack, packs, cases, seed):
    rng = np.random.default_rng([12, seed])
    for number in range(40):
        kind = {"scaled": number % 2, "mapped": number // 2 % 2, "curved": number // 4 % 2}
        pack = packs.random_pack(rng, **kind)
        assert_same_bits(open_pack(write_pack(pack)), pack, cases.queries(pack, 20, number))


def test_every_place_on_the_curve(open_pack, packs):
    shape = {"features": 1, "hidden": (1,), "activation": "silu", "dtype": np.int8}
    pack = packs.random_pack(np.random.default_rng(5), **shape, counts=[1], neighbors=0)
    layer = pack.twins[0].layers[0]
    layer.kernel[:], layer.bias[:], layer.multiplier[:] = [[2, 0]], 0, 32767  # z is about q
    q = np.arange(-32767, 32768, 37, dtype=np.int16)[:, None]
    for fraction in range(5, 16):
        object.__setattr__(layer, "fraction", fraction)
        object.__setattr__(layer, "shift", 0)
        *_, estimates = open_pack(write_pack(pack)).predict_raw(q)
        np.testing.assert_array_equal(estimates, reference.evaluate_raw(pack, q).estimates)
