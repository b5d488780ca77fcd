"""Packs from nothing but integers: the same bytes on every machine, for the golden vectors.

Written from FORMAT.md alone, without numpy and without the package's writer, so that large packs
need not be kept: their recipe and digest are enough. A published pack is never changed; a new
recipe gets a new name.
"""

import json
import struct
import zlib
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from hashlib import sha256
from math import isqrt
from typing import NamedTuple

INPUT = 32767
LAYER_ROOM, OUTPUT_ROOM = 2**31 - 1, 2**30 - 1  # limit of 32767 times the sum of magnitudes
TYPICAL = 8192  # magnitude of an input or activation that the scales are laid out for


class Recipe(NamedTuple):
    """Parameters of a pack; its numbers are seeded by its name.

    ``weights`` is "usual", or "extreme" for weights and sums as large as FORMAT.md allows;
    ``targets`` the largest magnitude of a target; ``grid`` the distance between neighboring
    features of anchors (a coarse one makes equal distances); ``y_exponent`` that of the target's
    gain; ``extras`` adds ids, metadata and a section that no reader knows; ``intervals`` adds
    second outputs, intervals and a domain, in which every other feature may be missing. ``bins`` of
    each feature, 0 for none, make a map with ``more`` outputs than features; ``entries`` is how
    many a target curve has, and ``y_shift`` says how far apart they are. ``several`` is the number
    of targets; of several, every other one has a curve, from the first on. ``stored`` packs are
    kept next to this file as well.
    """

    name: str
    features: int
    hidden: tuple[int, ...]
    counts: tuple[int, ...]
    activation: str = "relu"
    kernel: str = "i8"
    neighbors: int = 0
    trained_on_neighbors: bool = False
    weights: str = "usual"
    targets: int = 200_000
    grid: int = 1
    y_exponent: int = -15
    extras: bool = False
    stored: bool = False
    intervals: bool = False
    bins: tuple[int, ...] = ()
    more: int = 0
    entries: int = 0
    y_shift: int = 13
    several: int = 1

    @property
    def inputs(self):
        """How many numbers the twins take of each point."""
        return self.features + self.more

    @property
    def version(self):
        """The version of the format that has all of this."""
        return 3 if self.bins or self.entries or self.several > 1 else 2 if self.intervals else 1


RECIPES = (
    Recipe("one-of-everything", 1, (1,), (1,), stored=True),
    Recipe("odd-silu", 3, (7, 5), (5,), "silu", extras=True, stored=True),
    Recipe("four-uneven", 2, (3, 5, 1), (1, 4, 3, 1), "silu", "i16", stored=True),
    Recipe("ties", 2, (6,), (14, 9), neighbors=3, grid=16000, stored=True),
    Recipe("flagship", 8, (128, 128), (32,)),
    Recipe("eight-anchors", 8, (128, 128), (8,), "silu"),
    Recipe("four-twins", 8, (64, 64), (8, 8, 8, 8), "silu"),
    Recipe("four-twins-i16", 7, (33, 31), (3, 3, 3, 3), "relu", "i16"),
    Recipe("widest", 5, (256, 256), (4,), "silu"),
    Recipe("wide-odd-i16", 9, (255, 129), (3,), "relu", "i16"),
    Recipe("narrow-wide-narrow", 11, (1, 256, 1), (10,), "silu", "i16"),
    Recipe("three-layers", 6, (64, 31, 100), (8,)),
    Recipe("many-features", 64, (33,), (16,), "silu", "i16"),
    Recipe("many-features-wide", 64, (256,), (2,)),
    Recipe("many-anchors", 13, (17, 9), (128,)),
    Recipe("near-four", 4, (12, 10), (17, 1, 12, 10), "silu", "i8", 5, True),
    Recipe("extreme-weights", 33, (64, 30), (2, 3), "silu", weights="extreme"),
    Recipe("extreme-weights-i16", 31, (9, 7), (3,), "silu", "i16", weights="extreme"),
    Recipe("far-targets", 1, (2,), (64,), "silu", targets=1_500_000),
    Recipe("infinite", 2, (4,), (3,), targets=2**30 - 1, y_exponent=120),
    # Version 2.
    Recipe("intervals", 4, (9, 6), (5, 3), "silu", intervals=True),
    # Version 3: maps, target curves, and both.
    Recipe("one-bin", 1, (2,), (3,), bins=(1,), stored=True),
    Recipe("map", 3, (7, 5), (5,), bins=(4, 0, 9), stored=True),
    Recipe("map-more-outputs", 5, (16, 12), (6,), "silu", bins=(12, 0, 1, 255, 40), more=3),
    Recipe("map-indicators", 7, (10,), (4, 4), "relu", "i16", bins=(0, 0, 8, 0, 3, 0, 0), more=1),
    Recipe("map-neighbors", 2, (6,), (14, 9), neighbors=3, grid=16000, bins=(2, 2)),
    Recipe("map-without-curves", 2, (4,), (5,), bins=(0, 0), more=2),
    Recipe("map-intervals", 4, (8, 8), (6,), "silu", intervals=True, bins=(6, 0, 16, 5), more=2),
    Recipe("map-many-features", 64, (20,), (5,), "silu", bins=(3, 7, 0, 2) * 16, more=9),
    Recipe("map-extreme", 33, (9, 7), (3,), "silu", weights="extreme", bins=(2,) * 33, more=2),
    Recipe("target-curve", 3, (9, 6), (8,), entries=65, stored=True),
    Recipe("target-curve-two-entries", 2, (5,), (7,), "silu", entries=2, y_shift=19),
    Recipe("target-curve-fine", 2, (5,), (6,), "relu", "i16", entries=4097, y_shift=6),
    Recipe("target-curve-far", 1, (2,), (64,), "silu", targets=2**29, entries=100, y_shift=24),
    Recipe("target-curve-infinite", 2, (4,), (3,), entries=33, y_exponent=120),
    Recipe("target-curve-intervals", 3, (8, 4), (9,), "silu", intervals=True, entries=257),
    Recipe(
        "map-and-target-curve",
        *(4, (11, 6), (4, 1, 3), "silu", "i16", 2, True),
        stored=True,
        intervals=True,
        bins=(5, 0, 0, 20),
        more=2,
        entries=129,
        y_shift=15,
    ),
)

SEVERAL = (
    Recipe("two-targets", 3, (7, 5), (5,), stored=True, several=2),
    Recipe("two-targets-intervals", 4, (9, 6), (5, 3), "silu", intervals=True, several=2),
    Recipe("three-targets-i16", 2, (6, 10), (4, 5), "silu", "i16", 2, True, several=3),
    Recipe(
        "three-targets-of-everything",
        *(3, (11, 6), (4, 1, 3), "silu", "i8", 2),
        stored=True,
        intervals=True,
        bins=(5, 0, 20),
        more=2,
        entries=33,
        several=3,
    ),
    Recipe("eight-targets", 2, (5,), (6,), several=8),
    Recipe("eight-targets-intervals", 2, (8, 13), (3,), "relu", "i16", intervals=True, several=8),
    Recipe("targets-extreme", 5, (9, 7), (3,), "relu", "i16", weights="extreme", several=2),
)


class Draw:
    """Random integers: SplitMix64, seeded by a name."""

    def __init__(self, name):
        self.state = int.from_bytes(sha256(name.encode()).digest()[:8], "little")

    def below(self, count):
        """One of 0 .. count - 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return ((z ^ z >> 31) >> 32) * count >> 32

    def within(self, reach):
        """One of -reach .. reach."""
        return self.below(2 * reach + 1) - reach


def build(recipe):
    """Return the bytes of a pack."""
    draw = Draw(recipe.name)
    silu = recipe.activation == "silu"
    sections = [
        (1, 1, _scaling(recipe, draw)),
        *([(10, 1, _map(recipe, draw))] if recipe.bins else []),
        *([(11, 1, _target_curves(recipe, draw))] if recipe.entries else []),
        *([(12, 1, struct.pack("<HH", recipe.several, 0))] if recipe.several > 1 else []),
        (2, 1, b"".join(_twin(recipe, draw) for _ in recipe.counts)),
        *([(3, 1, struct.pack("<193h", *silu_table()))] if silu else []),
        (4, 1, _anchors(recipe, draw)),
    ]
    if recipe.intervals:
        sections += [
            (7, 1, b"".join(_intervals(recipe, draw) for _ in range(recipe.several))),
            (8, 0, _domain(recipe, draw)),
            (9, 0, struct.pack("<I", draw.below(2**32))),
        ]
    if recipe.extras:
        rows = [draw.below(2**32) for _ in range(sum(recipe.counts))]
        sections += [
            (5, 0, struct.pack(f"<{len(rows)}I", *rows)),
            (40000, 0, b"nobody knows this"),
            (6, 0, json.dumps({"name": recipe.name}, sort_keys=True).encode()),
        ]
    return _file(recipe, sections)


def silu_table():
    """Entries of the curve, ``a / (1 + exp(a))`` in units of 2^-15, in decimal arithmetic.

    Correctly rounded everywhere, unlike the exponential of a C library.
    """
    with localcontext() as context:
        context.prec = 40
        places = [Decimal(k) / 32 for k in range(128)] + [4 + Decimal(k) / 8 for k in range(65)]
        values = [32768 * a / (1 + a.exp()) for a in places]
        return [int(value.to_integral_value(ROUND_HALF_EVEN)) for value in values]


def _scaling(recipe, draw):
    entries = []
    for place in range(recipe.features + recipe.several):
        offset = struct.pack("<f", draw.within(1000) / 8)
        exponent = recipe.y_exponent if place >= recipe.features else 6 + draw.below(7)
        entries.append(offset + struct.pack("<I", 127 + exponent << 23 | draw.below(2**23)))
    return b"".join(entries)


def _map(recipe, draw):
    knots, bins, extreme = [], recipe.bins, recipe.weights == "extreme"
    for count in bins:
        if count:
            mine = set()
            while len(mine) <= count:
                mine.add(draw.within(INPUT))
            knots += sorted(mine)
    # Sums of a few thousand units, and any others that the format allows.
    outputs = range(recipe.inputs)
    usual = [6 + draw.below(6) if draw.below(4) else 1 + draw.below(24) for _ in outputs]
    shifts = [1 for _ in outputs] if extreme else usual
    cells = len(knots) * recipe.inputs
    table = [draw.below(2) * 255 - 128 if extreme else draw.below(256) - 128 for _ in range(cells)]
    sizes = struct.pack(f"<HH{len(bins)}B{len(shifts)}B", recipe.inputs, len(knots), *bins, *shifts)
    rows = _to(4, struct.pack(f"<{len(knots)}h", *knots))
    return _to(4, sizes) + rows + struct.pack(f"<{cells}b", *table)


def _target_curves(recipe, draw):
    places = range(recipe.several)
    return b"".join(bytes(8) if place % 2 else _target_curve(recipe, draw) for place in places)


def _target_curve(recipe, draw):
    bins, most = recipe.entries - 1, 2**24 // recipe.entries
    values = [draw.within(2**20)]
    for _ in range(bins):  # steeper here than there
        values.append(values[-1] + 1 + draw.below(1 + most >> draw.below(6)))
    first = -(bins << recipe.y_shift) // 2 + draw.within(1 << recipe.y_shift)
    head = struct.pack("<iBBH", max(first, 1 - 2**30), recipe.y_shift, 0, bins)
    return head + struct.pack(f"<{len(values)}i", *values)


def _twin(recipe, draw):
    layers, shifts, inputs = [], [], 2 * recipe.inputs
    for depth, width in enumerate(recipe.hidden):
        rows, biases = _rows(recipe, draw, inputs, width)
        shift, multipliers = _scales(recipe, draw, rows, 2 * TYPICAL)
        shifts.append(shift)
        halves = [rows]
        if depth == 0:
            half = recipe.inputs
            halves = [[row[:half] for row in rows], [row[half:] for row in rows]]
        code = {"i8": "b", "i16": "h"}[recipe.kernel]
        layers += [_padded(code, row) for kernel in halves for row in kernel]
        layers.append(struct.pack(f"<{width}i", *biases))
        layers.append(_to(4, struct.pack(f"<{width}h", *multipliers)))
        inputs = width
    first = _sum(recipe, draw, inputs)
    # All fraction bits occur, those that a trained network would have most often.
    bits = [draw.below(11) + 5 if draw.below(3) == 0 else draw.below(4) + 9 for _ in shifts]
    absent = [0] * (3 - len(shifts))
    (shift, hard_shift, *scale), last = _output(recipe, draw, inputs, first)
    settings = [*shifts, *absent, *bits, *absent, shift, hard_shift]
    start = struct.pack("<8Bhhi", *settings, *scale)
    others = [
        _output(recipe, draw, inputs, _sum(recipe, draw, inputs)) for _ in range(1, recipe.several)
    ]
    further = [struct.pack("<BBhhhi", *own[:4], 0, own[4]) + weights for own, weights in others]
    return _to(16, start + b"".join(layers) + last + b"".join(further))


def _rows(recipe, draw, inputs, width):
    """Weights of each output of a layer, and its bias."""
    most = 127 if recipe.kernel == "i8" else INPUT
    drawn = [_row(recipe, draw, inputs, most, LAYER_ROOM) for _ in range(width)]
    return [row for row, _ in drawn], [bias for _, bias in drawn]


def _row(recipe, draw, inputs, most, room):
    """Weights of one output within ``most``, and a bias: as much as FORMAT.md allows or less."""
    left = room // INPUT
    if recipe.weights == "usual":
        reach = max(1, min(most, left // inputs) * (1 + draw.below(8)) // 8)
        row = [draw.within(reach) for _ in range(inputs)]
        bias = draw.within(isqrt(sum(w * w for w in row)) * TYPICAL)
        free = room - INPUT * sum(map(abs, row))
        return row, max(-free, min(free, bias))
    row, places = [0] * inputs, list(range(inputs))
    while places and left:  # if the room ends first, other weights stay zero
        sign = draw.below(2)  # 1 for a negative weight, which reaches one further
        weight = min(left, most + sign)
        left -= weight
        row[places.pop(draw.below(len(places)))] = -weight if sign else weight
    free = room - INPUT * sum(map(abs, row))
    return row, free * (draw.below(3) - 1)


def _scales(recipe, draw, rows, goal):
    """Shift and multipliers that bring typical sums of these rows near ``goal``."""
    if recipe.weights != "usual":
        return 15 if len(rows) > 1 else 0, [INPUT] * len(rows)  # the largest sums just saturate
    sums = [isqrt(sum(w * w for w in row)) * TYPICAL + 1 for row in rows]
    shift = 0
    while shift < 30 and goal << 17 + shift <= INPUT * min(sums):
        shift += 1
    # Now and then an output that is switched off.
    live = [min(INPUT, (goal << 16 + shift) // one) for one in sums]
    return shift, [0 if len(rows) > 1 and draw.below(16) == 0 else m for m in live]


def _output(recipe, draw, inputs, first):
    """Both shifts, both multipliers and the bias of a target's output, and its weights as bytes."""
    (output, _), shift, multiplier = first
    if not recipe.intervals:
        return (shift, 0, multiplier, 0, 0), _padded("h", output)
    bias = draw.within(min(2**31 - 1 - 2 * INPUT * sum(map(abs, output)), 2**24))
    (hard, hard_bias), hard_shift, hard_multiplier = _sum(recipe, draw, inputs)
    both = [weight for pair in zip(output, hard, strict=True) for weight in pair]
    last = struct.pack(f"<i{len(both)}h", hard_bias, *both) + bytes(-inputs % 4 * 4)
    return (shift, hard_shift, multiplier, hard_multiplier, bias), last


def _sum(recipe, draw, inputs):
    row = _row(recipe, draw, inputs, INPUT, OUTPUT_ROOM)
    shift, (multiplier,) = _scales(recipe, draw, row[:1], 50_000)
    return row, shift, multiplier


def _anchors(recipe, draw):
    total = sum(recipe.counts)
    reach = INPUT // recipe.grid
    points = [
        [recipe.grid * draw.within(reach) for _ in range(recipe.inputs)] for _ in range(total)
    ]
    targets = [draw.within(recipe.targets) for _ in range(total * recipe.several)]
    counts = _to(4, struct.pack(f"<{len(recipe.counts)}H", *recipe.counts))
    rows = b"".join(_padded("h", point) for point in points)
    return counts + rows + struct.pack(f"<{len(targets)}i", *targets)


def _intervals(recipe, draw):
    weights = [draw.below(1 << 17) for _ in range(3)]
    levels = [(500, 40_000), (900, 110_000), (990, 220_000)]
    numbers = [number for level, most in levels for number in (level, most + draw.below(9999))]
    head = [*weights, 1 + draw.below(2**24), 60 + draw.below(99), 1 + draw.below(65535)]
    return struct.pack("<4I2H3I", *head, draw.below(2**20), draw.below(65537), len(levels)) + (
        struct.pack(f"<{len(numbers)}I", *numbers)
    )


def _domain(recipe, draw):
    entries = []
    for place in range(recipe.features):
        ends = sorted((draw.within(INPUT), draw.within(INPUT)))
        entries += [*ends, -32768 if place % 2 else draw.within(INPUT)]
    return struct.pack(f"<{len(entries)}h", *entries)


def _file(recipe, sections):
    start = 48 + 12 * len(sections)
    table, body = b"", bytes(-start % 16)
    for kind, flags, content in sections:
        table += struct.pack("<HHII", kind, flags, start + len(body), len(content))
        body += _to(16, content)
    widths = (*recipe.hidden, 0, 0)[:3]
    fields = struct.pack(
        "<HBB3HBxHHHH8x",
        *(recipe.features, len(recipe.hidden), recipe.activation == "silu", *widths),
        *(recipe.kernel == "i16", len(recipe.counts), sum(recipe.counts)),
        *(recipe.neighbors, recipe.trained_on_neighbors | recipe.intervals << 1),
    )
    start = struct.pack("<4sHHI", b"TWIN", recipe.version, len(sections), start + len(body))
    rest = struct.pack("<I", zlib.crc32(body)) + fields + table
    return start + struct.pack("<I", zlib.crc32(start + bytes(4) + rest)) + rest + body


def _padded(code, row):
    """Store a row of a matrix: numbers padded with zeros to a multiple of four."""
    return struct.pack(f"<{len(row)}{code}", *row) + bytes(-len(row) % 4 * struct.calcsize(code))


def _to(size, content):
    return content + bytes(-len(content) % size)
