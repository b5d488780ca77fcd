"""Packs that are wrong in one place, each with the reason that all readers give for it.

Other tests get them with ``runpy.run_path(".../tests/pack/faults.py")``.
"""

import struct
from dataclasses import replace

import numpy as np

from twinedge.pack import InputMap, Reason, TargetCurve, read_header
from twinedge.pack.layout import Kind

TABLE = 48


def small(packs):
    """A pack with some of everything, in less than a kilobyte: what most faults are made for."""
    return packs.random_pack(
        np.random.default_rng(0),
        features=2,
        hidden=(3, 5),
        activation="silu",
        dtype=np.int8,
        counts=[2, 1],
        neighbors=2,
        weights="normal",
    )


def curved(packs):
    """A pack with a target curve, and a map of 3 features, the second without a curve, to 5."""
    pack = packs.random_pack(
        np.random.default_rng(0), features=5, hidden=(3,), counts=[2], dtype=np.int8, neighbors=0
    )
    curves = InputMap(
        bins=np.array([2, 0, 1], np.uint8),
        shifts=np.array([1, 2, 8, 23, 24], np.uint8),
        knots=np.array([-32767, 0, 100, 5, 32767], np.int16),
        table=np.arange(-12, 13).reshape(5, 5).astype(np.int8),
    )
    curve = TargetCurve(-100, 4, np.array([-7, 0, 1, 1000], np.int32))
    scaling = {"x_offset": pack.x_offset[:3], "x_gain": pack.x_gain[:3]}
    return replace(pack, **scaling, map=curves, target_curve=curve)


def put(data, code, at, *values):
    """Overwrite values in a copy."""
    changed = bytearray(data)
    struct.pack_into(f"<{code}", changed, at, *values)
    return changed


def offset_of(data, kind):
    return next(one.offset for one in read_header(data).sections if one.kind == kind)


def entry_of(data, kind):
    """Where the table has the entry of a section."""
    return next(at for at in range(48, len(data), 12) if data[at] == kind)


def inside(data, kind, code, more, *values):
    """Overwrite values this many bytes into a section."""
    (offset,) = struct.unpack_from("<I", data, entry_of(data, kind) + 4)
    return put(data, code, offset + more, *values)


# Fields of the header.
HEADER_FAULTS = [
    ("H", 20, [0]),  # features
    ("H", 20, [1025]),
    ("B", 22, [0]),  # layers
    ("B", 22, [4]),
    ("B", 22, [1]),  # a width too many
    ("B", 22, [3]),  # a width too few
    ("B", 23, [2]),  # activation
    ("H", 24, [0]),  # widths
    ("H", 26, [1025]),
    ("H", 28, [1]),
    ("B", 30, [2]),  # kernel type
    ("B", 31, [1]),
    ("H", 32, [0]),  # twins
    ("H", 32, [257]),
    ("H", 32, [4]),  # more of them than anchors
    ("H", 34, [0]),  # anchors
    ("H", 34, [4097]),
    ("H", 36, [4097]),  # neighbors
    ("HH", 36, [0, 1]),  # trained on them, but all anchors predict
    ("H", 38, [2]),  # flags
    ("B", 40, [1]),
    ("B", 47, [1]),
]

SCALING, TWINS, SILU, ANCHORS, IDS, METADATA = (TABLE + 12 * number for number in range(6))
ENTRY_FAULTS = {
    "an unknown flag": lambda data: put(data, "H", SCALING + 2, 3),
    "misaligned": lambda data: put(data, "I", IDS + 4, offset_of(data, 5) + 4),
    "over the table": lambda data: put(data, "I", SCALING + 4, 48),
    "over another": lambda data: put(data, "I", TWINS + 4, offset_of(data, 1)),
    "behind the file": lambda data: put(data, "I", METADATA + 4, len(data)),
    "too long": lambda data: put(data, "I", METADATA + 8, 2**32 - 1),
    "twice": lambda data: put(data, "H", METADATA, 5),
    "scaling missing": lambda data: put(data, "HH", SCALING, 40000, 0),
    "twins missing": lambda data: put(data, "HH", TWINS, 40000, 0),
    "curve missing": lambda data: put(data, "HH", SILU, 40000, 0),
    "anchors missing": lambda data: put(data, "HH", ANCHORS, 40000, 0),
    "unknown and required": lambda data: put(data, "HH", METADATA, 7, 1),
    "anyone's own, yet required": lambda data: put(data, "HH", METADATA, 32768, 1),
    "scaling not required": lambda data: put(data, "H", SCALING + 2, 0),
    "ids required": lambda data: put(data, "H", IDS + 2, 1),
    "scaling of another length": lambda data: put(data, "I", SCALING + 8, 20),
    "twins of another length": lambda data: put(data, "I", TWINS + 8, 16),
    "curve of another length": lambda data: put(data, "I", SILU + 8, 384),
    "anchors of another length": lambda data: put(data, "I", ANCHORS + 8, 36),
    "ids of another length": lambda data: put(data, "I", IDS + 8, 8),
    "a domain of another length": lambda data: put(data, "HH", METADATA, 8, 0),
    "a schema of another length": lambda data: put(data, "HH", METADATA, 9, 0),
    "intervals without their flag": lambda data: put(data, "HH", METADATA, 7, 0),
    "further on than the next multiple of 16": lambda data: put(
        data, "II", METADATA + 4, offset_of(data, 6) + 16, 0
    ),
    "the last one shorter than the file": lambda data: put(data, "I", METADATA + 8, 0),
    "a curve for relu": lambda data: put(data, "B", 23, 0),
}


def at(kind, more):
    """Return the place this many bytes into a section."""
    return lambda data: offset_of(data, kind) + more


# A twin with 2 features and widths 3 and 5 in i8: head 16, A and B 12 each, bias 12, multipliers 8,
# W 20, bias 20, multipliers 12, output 16.
A, BIAS, MULTIPLIERS, OUTPUT, RECORD_END = 16, 40, 52, 112, 128
CONTENT_FAULTS = {
    "in front of a section": (Reason.PADDING, "B", lambda data: TABLE + 72, 1),
    "behind the last section": (Reason.PADDING, "B", lambda data: len(data) - 1, 1),
    "an infinite offset": (Reason.VALUE, "f", at(1, 0), np.inf),
    "an offset that is no number": (Reason.VALUE, "I", at(1, 8), 0x7F800001),
    "a gain of zero": (Reason.VALUE, "f", at(1, 4), 0.0),
    "a negative gain": (Reason.VALUE, "f", at(1, 20), -1.0),
    "a shift": (Reason.VALUE, "B", at(2, 0), 31),
    "a shift of no layer": (Reason.VALUE, "B", at(2, 2), 1),
    "too few fraction bits": (Reason.VALUE, "B", at(2, 3), 4),
    "too many fraction bits": (Reason.VALUE, "B", at(2, 4), 16),
    "fraction bits of no layer": (Reason.VALUE, "B", at(2, 5), 5),
    "the output's shift": (Reason.VALUE, "B", at(2, 6), 31),
    "a byte kept zero": (Reason.VALUE, "B", at(2, 7), 1),
    "the output's multiplier": (Reason.VALUE, "h", at(2, 8), -1),
    "the last byte of the head": (Reason.VALUE, "B", at(2, 15), 1),
    "columns beyond the inputs": (Reason.PADDING, "B", at(2, A + 2), 1),
    "padding of multipliers": (Reason.PADDING, "B", at(2, MULTIPLIERS + 6), 1),
    "weights beyond the outputs": (Reason.PADDING, "h", at(2, OUTPUT + 10), 1),
    "a negative multiplier": (Reason.VALUE, "h", at(2, MULTIPLIERS), -1),
    "a bias too large": (Reason.OVERFLOW, "i", at(2, BIAS), -(2**31)),
    "output weights too large": (Reason.OVERFLOW, "hh", at(2, OUTPUT), (-32768, -32768)),
    "the second twin's head": (Reason.VALUE, "B", at(2, RECORD_END), 31),
    "the second twin's bias": (Reason.OVERFLOW, "i", at(2, RECORD_END + BIAS), -(2**31)),
    "a negative entry of the curve": (Reason.VALUE, "h", at(3, 0), -1),
    "a large entry of the curve": (Reason.VALUE, "h", at(3, 384), 16384),
    "features beyond the last": (Reason.PADDING, "h", at(4, 4 + 4), 1),
    "a twin without anchors": (Reason.VALUE, "HH", at(4, 0), (3, 0)),
    "too many anchors": (Reason.VALUE, "H", at(4, 0), 3),
    "a feature": (Reason.VALUE, "h", at(4, 4), -32768),
    "a large target": (Reason.VALUE, "i", at(4, 4 + 24), 2**30),
    "a negative target": (Reason.VALUE, "i", at(4, 4 + 24), -(2**30)),
    "metadata that is no UTF-8": (Reason.VALUE, "B", at(6, 0), 255),
    "metadata that is no JSON": (Reason.VALUE, "B", at(6, 0), ord("}")),
}


# The map: sizes at 0, bins at 4, shifts at 7, knots at 12, padding at 22, table at 24.
MAP, CURVE = Kind.MAP, Kind.TARGET_CURVE
CURVE_FAULTS = {
    "fewer outputs than features": (Reason.SECTION, MAP, "H", 0, 2),
    "more than 1024 outputs": (Reason.SECTION, MAP, "H", 0, 1025),
    "another number of outputs": (Reason.SECTION, MAP, "H", 0, 4),
    "another number of rows": (Reason.SECTION, MAP, "H", 2, 4),
    "padding of the knots": (Reason.PADDING, MAP, "B", 22, 1),
    "bins that do not add up": (Reason.VALUE, MAP, "B", 4, 3),
    "one more curve": (Reason.VALUE, MAP, "B", 5, 1),
    "no curve": (Reason.VALUE, MAP, "B", 6, 0),
    "a shift of 0": (Reason.VALUE, MAP, "B", 7, 0),
    "a shift above 24": (Reason.VALUE, MAP, "B", 11, 25),
    "a knot of -32768": (Reason.VALUE, MAP, "h", 12, -32768),
    "a knot twice": (Reason.VALUE, MAP, "h", 16, 0),
    "a knot below the one before": (Reason.VALUE, MAP, "h", 20, 4),
    "no bins": (Reason.SECTION, CURVE, "H", 6, 0),
    "more than 4096 bins": (Reason.SECTION, CURVE, "H", 6, 4097),
    "another number of bins": (Reason.SECTION, CURVE, "H", 6, 2),
    "a byte kept zero": (Reason.PADDING, CURVE, "B", 5, 1),
    "a large first estimate": (Reason.VALUE, CURVE, "i", 0, 2**30),
    "a first estimate far below": (Reason.VALUE, CURVE, "i", 0, -(2**30)),
    "entries too far apart": (Reason.VALUE, CURVE, "B", 4, 25),
    "a large value": (Reason.VALUE, CURVE, "i", 20, 2**30),
    "a value far below": (Reason.VALUE, CURVE, "i", 8, -(2**30)),
    "a value twice": (Reason.VALUE, CURVE, "i", 16, 0),
    "a value below the one before": (Reason.VALUE, CURVE, "i", 12, -8),
}


def mutate(rng, data):
    """Change a pack at random where it hurts: contents, fields, table, length, order."""
    data = bytearray(data)
    behind = 48 + 12 * data[6]
    for _ in range(rng.integers(1, 3)):
        what = rng.choice(
            ["nudge", "nudge", "nudge", "nudge", "word", "header", "table", "cut", "reverse"]
        )
        if what == "nudge":
            data[rng.integers(behind, len(data))] ^= 1 << rng.integers(8)
        elif what == "word":
            at = 4 * int(rng.integers(12, len(data) // 4))
            struct.pack_into("<I", data, at, int(rng.choice(WORDS)))
        elif what == "header":
            data[rng.integers(20, 48)] = rng.choice([0, 1, 2, 3, 5, 255])
        elif what == "table":
            at = min(48 + 4 * int(rng.integers(3 * data[6])), len(data) - 4)
            value = struct.unpack_from("<I", data, at)[0] + int(rng.choice(STEPS))
            struct.pack_into("<I", data, at, value % 2**32)
        elif what == "cut":
            data = data[: max(64, len(data) - 16 * int(rng.integers(1, 5)))]
        else:
            one, other = sorted(int(at) for at in rng.integers(48, len(data), 2))
            data[one:other] = data[one:other][::-1]
    data[8:12] = struct.pack("<I", len(data))
    return data


# Ends of ranges, infinity, NaN; steps of offsets, lengths and flags.
WORDS = [
    0,
    1,
    2**32 - 1,
    2**31 - 1,
    2**31,
    0x7F7FFFFF,
    0x7F800000,
    0x7FC00000,
    0x7F800001,
    0x80008000,
]
STEPS = [-32, -16, -4, -2, 1, 2, 16, 2**16, 2**31]
