"""No damage goes unnoticed, and no content of a file upsets reader or evaluator."""

import runpy
import struct
import time
import tracemalloc
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.pack import PackError, Reason, read_pack, write_pack
from twinedge.runtime.reference import evaluate

FAULTS = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "faults.py")))
mutate = FAULTS.mutate


def refused(data):
    with pytest.raises(PackError) as caught:
        read_pack(data)
    return caught.value.reason


def test_every_flipped_bit_is_noticed(data):
    damaged = bytearray(data)
    for bit in range(8 * len(data)):
        damaged[bit // 8] ^= 1 << bit % 8
        refused(bytes(damaged))
        damaged[bit // 8] ^= 1 << bit % 8
    assert bytes(damaged) == data


def test_every_truncation_is_noticed(data):
    for length in range(len(data)):
        assert refused(data[:length]) is Reason.TRUNCATED


def survive_mutations(packs, count, seed):
    """Return how many mutated packs were refused, and how many evaluated."""
    rng = np.random.default_rng(seed)
    refusals = 0
    for number in range(count):
        if number % 50 == 0:
            pack = packs.random_pack(
                rng,
                features=int(rng.integers(1, 4)),
                hidden=tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4))),
                counts=[2, 1],
                scaled=bool(number // 50 % 2),
                mapped=bool(number // 100 % 2),
                curved=bool(number // 200 % 2),
            )
            data = write_pack(pack)
        damaged = packs.repair(mutate(rng, data))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                changed = read_pack(damaged)
            except PackError:
                refusals += 1
                continue
            x = rng.normal(0, 100, (2, changed.features))
            x[0, 0] = rng.choice([np.inf, -np.inf, 1e300, 0])
            found = evaluate(changed, x)
        assert not np.isnan(found.mean).any()
        assert not np.isnan(found.spread).any()
        written = write_pack(changed)
        assert write_pack(read_pack(written)) == written
    return refusals, count - refusals


def test_mutations_with_good_checksums_are_refused_or_harmless(packs):
    refusals, evaluated = survive_mutations(packs, 1200, 0)
    assert min(refusals, evaluated) > 200


@pytest.mark.slow
def test_many_mutations_with_good_checksums_are_refused_or_harmless(packs):
    survive_mutations(packs, 60_000, 1)


def test_random_bytes_behind_a_good_header_are_refused(packs):
    rng = np.random.default_rng(2)
    for length in range(48, 2048, 16):
        head = struct.pack("<4sHHIII", b"TWIN", 1, int(rng.integers(1, 33)), length, 0, 0)
        refused(packs.repair(head + rng.bytes(length - 20)))


def test_a_long_hostile_file_costs_little_time_and_memory(packs, small):
    # Eight megabytes after the last section, and metadata of deeply nested brackets.
    data = write_pack(small)
    gap = packs.repair(with_length(data + bytes(1 << 23)))
    start = time.process_time()
    tracemalloc.start()
    assert refused(gap) is Reason.SECTION
    at = 48 + 12 * 5
    offset = struct.unpack_from("<I", data, at + 4)[0]
    nested = bytearray(gap)
    nested[offset:] = b"[" * (len(nested) - offset)
    struct.pack_into("<I", nested, at + 8, len(nested) - offset)
    assert refused(packs.repair(nested)) is Reason.VALUE
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - start < 5
    assert peak < 10 * len(gap)


def with_length(data):
    return data[:8] + struct.pack("<I", len(data)) + data[12:]
