"""Packs written by the first version keep loading and keep their bits, forever.

If this fails, the reader or the evaluator is wrong: ``frozen_version_1.json`` is never edited.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.runtime.reference import evaluate

CASES = json.loads((Path(__file__).parent / "frozen_version_1.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_a_frozen_pack_keeps_its_bits(case):
    data = bytes.fromhex("".join(case["pack"]))
    x = np.stack([np.frombuffer(bytes.fromhex(query), "<f4") for query in case["queries"]])
    pack = read_pack(data)
    found = evaluate(pack, x)
    assert found.estimates.tolist() == case["estimates"]
    assert [value.tobytes().hex() for value in found.mean.astype("<f4")] == case["prediction"]
    assert [value.tobytes().hex() for value in found.spread.astype("<f4")] == case["spread"]
    assert write_pack(pack) == data  # as long as version 1 is what is written
