"""Generate the golden vectors of new recipes; run by hand, once per change of the format.

The bits are those on which the reference evaluator and the plain one of ``tests/runtime`` agree: if
they do not, nothing is written. Vectors that exist stay as they are. ``--force`` makes them again,
too, and breaks the promise that later versions keep their bits.
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
from twinedge.runtime import reference

HERE = Path(__file__).parent
VECTORS = runpy.run_path(str(HERE / "vectors.py"))
PLAIN = runpy.run_path(str(HERE.parent / "runtime" / "plain_evaluator.py"))["Plain"]
ZERO, HUGE, INFINITY, TINY, LARGEST_SUBNORMAL = 0, 0x7F7FFFFF, 0x7F800000, 1, 0x007FFFFF
NEGATIVE, NAN = 1 << 31, 0x7FC00000
EXTREMES = [
    bits | sign
    for bits in (ZERO, HUGE, INFINITY, TINY, LARGEST_SUBNORMAL)
    for sign in (0, NEGATIVE)
]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="overwrite vectors that exist")
    force = parser.parse_args(arguments).force
    file, recipes = VECTORS["FILE"], (*VECTORS["PACKS"]["RECIPES"], *VECTORS["PACKS"]["SEVERAL"])
    kept = json.loads(file.read_text()) if file.exists() and not force else {}
    cases, several = ([*kept.get(key, [])] for key in ("cases", "several"))
    there = {one["name"] for one in (*cases, *several)}
    packs = {one: VECTORS["PACKS"]["build"](one) for one in recipes if one.name not in there}
    if not packs:
        return "all vectors exist: their bits are a promise; --force breaks it"
    for recipe, data in packs.items():
        x = queries(recipe, data)
        print(f"{recipe.name}: {len(data)} bytes", file=sys.stderr)
        answers = [vectors(recipe, data, x, target) for target in range(recipe.several)]
        made = {
            "name": recipe.name,
            "pack_sha256": sha256(data).hexdigest(),
            "queries": [row.astype("<f4").tobytes().hex() for row in x],
        }
        if recipe.several == 1:
            cases.append(made | answers[0])
        else:
            several.append(made | {"targets": answers})
        if recipe.stored:
            write(VECTORS["stored"](recipe), data)
    note = "GOLDEN: see make.py. Queries are f32 little-endian in hex, mean and spread bits of f32."
    text = json.dumps({"note": note, "cases": cases, "several": []}, indent=1)
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in several)
    write(file, (text.removesuffix("[]\n}") + f"[\n{lines}\n]\n}}\n").encode())
    return None


def vectors(recipe, data, x, target):
    """Evaluate a target of a pack at all queries, in both ways."""
    pack = read_pack(data).single(target)
    found = reference.evaluate(pack, x)
    plain = PLAIN(data).select(target)
    for number, row in enumerate(x.astype(np.float64).tolist()):
        mean, spread, *rest = plain.evaluate(row)
        bits = found.mean[number].tobytes().hex(), found.spread[number].tobytes().hex()
        assert (mean, spread) == bits, f"{recipe.name}: query {number} has two answers"
        assert rest == [part[number].tolist() for part in found[2:5]]
    made = {
        "mean": words(found.mean),
        "spread": words(found.spread),
        "raw_mean": found.raw_mean.tolist(),
        "raw_spread": found.raw_spread.tolist(),
        "members_sha256": VECTORS["digest"](found.estimates),
    }
    return made | {"bounds": bounds(pack, plain, x, found)} if recipe.intervals else made


def bounds(pack, plain, x, found):
    """Scale and interval at the usual level, in both ways, and flags."""
    level = pack.intervals.usual_level
    both = reference.bounds(pack, found, level)
    missing = np.isnan(x)
    outside = reference.outside(pack, reference.quantise(pack, x)) & ~missing
    for number, row in enumerate(x.astype(np.float64).tolist()):
        scale, raw_scale, ends = plain.bounds(row)
        bits = [part[number].tobytes().hex() for part in (both.scale, both.low, both.high)]
        integers = [part[number].tolist() for part in both[3:]]
        assert [scale, *ends[level][:2]] == bits, f"query {number} has two intervals"
        assert [raw_scale, *ends[level][2:]] == integers
        assert plain.outside(row) == outside[number].tolist()
    return {
        "level": level,
        **{name: words(getattr(both, name)) for name in ("scale", "low", "high")},
        **{name: getattr(both, name).tolist() for name in ("raw_scale", "raw_low", "raw_high")},
        "outside": reference.mask(outside).tolist(),
        "missing": reference.mask(missing).tolist(),
    }


def words(numbers):
    """Bits of float32."""
    return [f"{bits:08x}" for bits in numbers.view(np.uint32)]


def queries(recipe, data):
    """Extremes of f32, points on an anchor and at the edges of the range, and ordinary ones.

    For a map also points on its knots and beside them; and some with missing features, where the
    pack can fill them in.
    """
    pack, draw = read_pack(data), VECTORS["PACKS"]["Draw"](f"queries of {recipe.name}")
    features, grid = range(pack.features), recipe.grid
    bits = [[extreme] * pack.features for extreme in EXTREMES]
    bits.append([EXTREMES[draw.below(len(EXTREMES))] for _ in features])
    units = [
        pack.anchors[0, : pack.features].tolist(),
        *([draw.within(32767) + 0.5 for _ in features] for _ in range(2)),
        [32766.5 if draw.below(2) else -32767.5 for _ in features],
        *([grid * draw.within(32767 // grid) for _ in features] for _ in range(4)),
        *(at_knots(pack, draw) if recipe.bins else []),
    ]
    for row in units:
        scaling = zip(row, pack.x_gain.tolist(), pack.x_offset.tolist(), strict=True)
        x = [struct.pack("<f", unit / gain + offset) for unit, gain, offset in scaling]
        bits.append([int.from_bytes(one, "little") for one in x])
    if recipe.intervals:
        gaps = (
            [draw.below(2) and place % 2 == 0 for place in features],
            [place % 2 == 0 for place in features],
        )
        bits += [
            [NAN if gone else one for gone, one in zip(row, bits[-1], strict=True)] for row in gaps
        ]
    if recipe.several > 1:  # which have several answers each
        bits = bits[: len(EXTREMES)] + bits[: len(EXTREMES) - 1 : -2]
    return np.array(bits, np.uint32).view(np.float32)


def at_knots(pack, draw):
    """Draw points on, just below and just above the first, the last and inner knots."""
    knots = {feature: pack.map.knots[rows].tolist() for feature, rows in pack.map.curves()}
    rows = []
    for place in (0, -1, None):
        for off in (-1, 0, 1):
            row = [draw.within(32767) for _ in range(pack.features)]
            for feature, mine in knots.items():
                row[feature] = mine[draw.below(len(mine)) if place is None else place] + off
            rows.append(row)
    return rows


def write(path, content):
    """Put a file in place whole."""
    beside = path.with_name(f".{path.name}.partial")
    beside.write_bytes(content)
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
