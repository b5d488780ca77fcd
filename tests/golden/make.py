"""Generate the golden vectors; run by hand, once per change of the format.

The bits are those on which the reference evaluator and the plain one of ``tests/runtime`` agree: if
they do not, nothing is written. ``--force`` overwrites existing vectors, and breaks the promise
that later versions keep their bits.
"""

import argparse
import json
import runpy
import struct
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np

from twinedge.pack import read_pack
from twinedge.runtime.reference import evaluate

HERE = Path(__file__).parent
VECTORS = runpy.run_path(str(HERE / "vectors.py"))
PLAIN = runpy.run_path(str(HERE.parent / "runtime" / "plain_evaluator.py"))["Plain"]
ZERO, HUGE, INFINITY, TINY, LARGEST_SUBNORMAL = 0, 0x7F7FFFFF, 0x7F800000, 1, 0x007FFFFF
NEGATIVE = 1 << 31
EXTREMES = [
    bits | sign
    for bits in (ZERO, HUGE, INFINITY, TINY, LARGEST_SUBNORMAL)
    for sign in (0, NEGATIVE)
]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="overwrite vectors that exist")
    force = parser.parse_args(arguments).force
    file, recipes = VECTORS["FILE"], VECTORS["PACKS"]["RECIPES"]
    there = [path for path in (file, *HERE.glob("*.twin")) if path.exists()]
    if there and not force:
        return f"{there[0].name} exists: its bits are a promise; --force breaks it"
    packs = {recipe: VECTORS["PACKS"]["build"](recipe) for recipe in recipes}
    cases = [vectors(recipe, data) for recipe, data in packs.items()]
    for recipe, data in packs.items():
        if recipe.stored:
            write(VECTORS["stored"](recipe), data)
    note = "GOLDEN: see make.py. Queries are f32 little-endian in hex, mean and spread bits of f32."
    write(file, (json.dumps({"note": note, "cases": cases}, indent=1) + "\n").encode())
    return None


def vectors(recipe, data):
    """Evaluate a pack at all queries, in both ways."""
    print(f"{recipe.name}: {len(data)} bytes", file=sys.stderr)
    x = queries(recipe, data)
    found = evaluate(read_pack(data), x)
    plain = PLAIN(data)
    for number, row in enumerate(x.astype(np.float64).tolist()):
        mean, spread, *rest = plain.evaluate(row)
        bits = found.mean[number].tobytes().hex(), found.spread[number].tobytes().hex()
        assert (mean, spread) == bits, f"{recipe.name}: query {number} has two answers"
        assert rest == [part[number].tolist() for part in found[2:]]
    return {
        "name": recipe.name,
        "pack_sha256": sha256(data).hexdigest(),
        "queries": [row.astype("<f4").tobytes().hex() for row in x],
        "mean": [f"{bits:08x}" for bits in found.mean.view(np.uint32)],
        "spread": [f"{bits:08x}" for bits in found.spread.view(np.uint32)],
        "raw_mean": found.raw_mean.tolist(),
        "raw_spread": found.raw_spread.tolist(),
        "members_sha256": VECTORS["digest"](found.estimates),
    }


def queries(recipe, data):
    """Extremes of f32, points on an anchor and at the edges of the range, and ordinary ones."""
    pack, draw = read_pack(data), VECTORS["PACKS"]["Draw"](f"queries of {recipe.name}")
    features, grid = range(pack.features), recipe.grid
    bits = [[extreme] * pack.features for extreme in EXTREMES]
    bits.append([EXTREMES[draw.below(len(EXTREMES))] for _ in features])
    units = [
        pack.anchors[0].tolist(),
        *([draw.within(32767) + 0.5 for _ in features] for _ in range(2)),
        [32766.5 if draw.below(2) else -32767.5 for _ in features],
        *([grid * draw.within(32767 // grid) for _ in features] for _ in range(4)),
    ]
    for row in units:
        scaling = zip(row, pack.x_gain.tolist(), pack.x_offset.tolist(), strict=True)
        x = [struct.pack("<f", unit / gain + offset) for unit, gain, offset in scaling]
        bits.append([int.from_bytes(one, "little") for one in x])
    return np.array(bits, np.uint32).view(np.float32)


def write(path, content):
    """Put a file in place whole."""
    beside = path.with_name(f".{path.name}.partial")
    beside.write_bytes(content)
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
