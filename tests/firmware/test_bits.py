"""The C runtime gives the bits of the reference evaluator, on every pack and query."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference

NAMES = list(runpy.run_path(str(Path(__file__).parent / "cases.py"))["SHAPES"])
QUERIES = int(os.environ.get("TWIN_TEST_QUERIES", "1000"))


def assert_same_bits(opened, pack, x):
    assert opened.status == "ok"
    expected = reference.evaluate(pack, x)
    mean, spread, members = opened.predict(x)
    np.testing.assert_array_equal(members, expected.members)
    for found, right in ((mean, expected.mean), (spread, expected.spread)):
        np.testing.assert_array_equal(found.view(np.uint32), right.view(np.uint32))
    raw_mean, root, count, members = opened.predict_raw(reference.quantise(pack, x[:50]))
    np.testing.assert_array_equal(members, expected.members[:50])
    np.testing.assert_array_equal(raw_mean, expected.raw_mean[:50])
    np.testing.assert_array_equal(root, expected.raw_spread[:50])
    assert set(count) == {pack.members}


@pytest.mark.parametrize("name", NAMES)
def test_all_kinds_of_packs(open_pack, packs, cases, name):
    pack = cases.draw(packs, name)
    count = QUERIES // 3 if name in cases.LARGE else QUERIES
    assert_same_bits(open_pack(write_pack(pack)), pack, cases.queries(pack, count))


@pytest.mark.parametrize("seed", range(8))
def test_random_packs(open_pack, packs, cases, seed):
    rng = np.random.default_rng([12, seed])
    for number in range(20):
        pack = packs.random_pack(rng)
        assert_same_bits(open_pack(write_pack(pack)), pack, cases.queries(pack, 20, number))


@pytest.mark.parametrize("fraction", range(5, 16))
def test_every_place_on_the_curve(open_pack, packs, cases, fraction):
    pack = packs.random_pack(
        np.random.default_rng(5),
        features=1,
        hidden=(1,),
        activation="silu",
        dtype=np.int8,
        counts=[1],
        neighbors=0,
    )
    layer = pack.twins[0].layers[0]
    object.__setattr__(layer, "fraction", fraction)
    object.__setattr__(layer, "shift", 0)
    layer.kernel[:], layer.bias[:], layer.multiplier[:] = [[2, 0]], 0, 32767  # z is about q
    q = np.arange(-32767, 32768, 37, dtype=np.int16)[:, None]
    expected = reference.evaluate_raw(pack, q)
    *_, members = open_pack(write_pack(pack)).predict_raw(q)
    np.testing.assert_array_equal(members, expected.members)
