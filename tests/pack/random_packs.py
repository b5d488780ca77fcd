"""Packs with random numbers, for the tests of reader, writer and evaluator."""

import struct
import zlib
from dataclasses import replace

import numpy as np

from twinedge.pack import (
    Difficulty,
    Domain,
    InputMap,
    Intervals,
    Layer,
    Pack,
    TargetCurve,
    Twin,
    joined,
)
from twinedge.pack.layout import NO_FILL

INPUT = 32767
ROOM = {"layer": 2**31 - 1, "output": 2**30 - 1}  # limit of 32767 times the sum of magnitudes


def random_pack(rng, **given):
    """Draw a pack; ``given`` fixes fields of ``random_shape``.

    It also says whether the pack is to be ``scaled``, ``mapped`` (has a map) and ``curved`` (has a
    target curve), and how many ``outputs`` it has: one for each target.
    """
    outputs = given.pop("outputs", 1)
    scaled, mapped, curved = (given.pop(one, False) for one in ("scaled", "mapped", "curved"))
    shape = random_shape(rng) | given
    features, hidden, silu = shape["features"], shape["hidden"], shape["activation"] == "silu"
    total = sum(shape["counts"])
    limit = 2 ** int(rng.integers(1, 31)) - 1
    curves = random_map(rng, features) if mapped else None
    inputs = curves.outputs if mapped else features
    curve = rng.integers(0, 16384, 193) if rng.random() < 0.3 else silu_like()
    pack = Pack(
        activation=shape["activation"],
        x_offset=rng.normal(0, 10, features).astype(np.float32),
        x_gain=(10 ** rng.uniform(1, 5, features)).astype(np.float32),
        y_offset=np.float32(rng.normal(0, 100)),
        y_gain=np.float32(10 ** rng.uniform(-9, 3)),
        twins=tuple(
            random_twin(rng, inputs, hidden, shape["dtype"], shape["weights"])
            for _ in shape["counts"]
        ),
        anchors=rng.integers(-INPUT, INPUT + 1, (total, inputs)).astype(np.int16),
        targets=rng.integers(-limit, limit + 1, total).astype(np.int32),
        counts=np.array(shape["counts"], np.uint16),
        curve=curve.astype(np.int16) if silu else None,
        neighbors=shape["neighbors"],
        trained_on_neighbors=bool(shape["neighbors"] and rng.random() < 0.5),
        ids=rng.integers(0, 2**32, total).astype(np.uint32),
        metadata={"names": ["größe", "\ud800"], "rmse": 0.25},
        map=curves,
        target_curve=random_target_curve(rng, limit) if curved else None,
    )
    if scaled:
        pack = with_intervals(rng, pack, shape["weights"])
    return with_targets(rng, pack, outputs, shape["weights"])


def with_targets(rng, pack, count, weights="normal"):
    """Give a pack further targets, up to ``count``: curves, if it has one, for most of them."""
    packs, curved = [pack], pack.target_curve is not None
    if count > 1 and curved and rng.random() < 0.3:
        packs = [replace(pack, target_curve=None)]
    for _ in range(1, count):
        limit = 2 ** int(rng.integers(1, 31)) - 1
        one = replace(
            pack,
            y_offset=np.float32(rng.normal(0, 100)),
            y_gain=np.float32(10 ** rng.uniform(-9, 3)),
            targets=rng.integers(-limit, limit + 1, len(pack.targets)).astype(np.int32),
            twins=tuple(with_output(rng, twin, weights) for twin in pack.twins),
            target_curve=random_target_curve(rng, limit) if curved and rng.random() < 0.7 else None,
        )
        if pack.intervals is not None:
            drawn = with_intervals(rng, one, weights)
            levels = list(pack.intervals.quantiles)
            quantiles = np.sort(rng.integers(1, 2 ** int(rng.integers(1, 33)), len(levels)))
            same = dict(zip(levels, quantiles.tolist(), strict=True))
            one = replace(
                one, twins=drawn.twins, intervals=replace(drawn.intervals, quantiles=same)
            )
        packs.append(one)
    return joined(packs)


def with_output(rng, twin, weights):
    """Return a twin with the same layers and another output."""
    output, _ = fitting(rng, len(twin.output), np.int16, weights, "output")
    multiplier, shift = scale(rng, weights, 0.001)
    return Twin(twin.layers, output.astype(np.int16), multiplier, shift)


def with_intervals(rng, pack, weights="normal"):
    """Give a pack second outputs, intervals and a domain."""
    twins = []
    for twin in pack.twins:
        hard, hard_bias = fitting(rng, len(twin.output), np.int16, weights, "layer")
        multiplier, shift = scale(rng, weights, 0.001)
        left = 2**31 - 1 - 2 * INPUT * int(np.abs(twin.output.astype(int)).sum())
        difficulty = Difficulty(hard.astype(np.int16), hard_bias, multiplier, shift)
        bias = int(rng.integers(-left, left + 1) * rng.choice([0, 0.01, 1]))
        twins.append(replace(twin, bias=bias, difficulty=difficulty))
    levels = np.unique(rng.integers(1, 1000, rng.integers(1, 16)))
    quantiles = np.sort(rng.integers(1, 2 ** int(rng.integers(1, 33)), len(levels)))
    ends = np.sort(rng.integers(-INPUT, INPUT + 1, (2, pack.features)), axis=0).astype(np.int16)
    fill = rng.integers(-INPUT - 1, INPUT + 1, pack.features).astype(np.int16)
    intervals = Intervals(
        *(int(one) for one in rng.integers(0, 2 ** int(rng.integers(1, 33)), 3)),
        int(rng.integers(1, 2 ** int(rng.integers(1, 33)))),
        int(rng.integers(1, 2**16)),
        int(rng.integers(0, 2 ** int(rng.integers(1, 33)))),
        int(rng.integers(0, 65537)),
        dict(zip(levels.tolist(), quantiles.tolist(), strict=True)),
        int(rng.integers(0, 2**16)),
    )
    return replace(
        pack,
        twins=tuple(twins),
        intervals=intervals,
        domain=Domain(
            *ends, np.where(rng.random(pack.features) < 0.5, fill, NO_FILL).astype(np.int16)
        ),
        schema=int(rng.integers(2**32)),
    )


def random_map(rng, features):
    """Draw curves for about two features in three, with up to 255 bins, often few."""
    most = int(rng.choice([1, 2, 12, 255]))
    bins = np.where(rng.random(features) < 0.7, rng.integers(1, most + 1, features), 0)
    bins[rng.integers(features)] = most
    outputs = features + int(rng.choice([0, 0, 1, 3, 8]))
    room = rng.choice([INPUT, 300])  # bins of any width, or narrow ones
    knots = [np.sort(rng.choice(2 * room + 1, n + 1, replace=False)) - room for n in bins if n]
    table = rng.integers(-128, 128, (sum(map(len, knots)), outputs))
    if rng.random() < 0.1:
        table[:] = rng.choice([-128, 127])
    shifts = rng.choice([1, 4, 6, 8, 10, 14, 24], outputs)
    return InputMap(
        bins.astype(np.uint8),
        shifts.astype(np.uint8),
        np.concatenate(knots).astype(np.int16),
        table.astype(np.int8),
    )


def random_target_curve(rng, limit):
    """Draw a curve that covers estimates of such a size in part, or more than them."""
    shift = int(np.clip(np.log2(limit + 1) - rng.integers(0, 7), 0, 24))
    bins = int(np.clip(2 ** rng.integers(0, 8), 1, 2**31 - 1 >> shift + 1))
    steps = 1 + np.floor(2 ** rng.uniform(0, rng.uniform(1, 23), bins)).astype(np.int64)
    values = np.cumsum([0, *steps])
    values += rng.integers(-(2**30) + 1, 2**30 - values[-1])
    first = np.clip(-int(rng.integers(0, (bins << shift) + 1)), 1 - 2**30, 2**30 - 1)
    return TargetCurve(int(first), shift, values.astype(np.int32))


def random_shape(rng):
    """Draw the shape of a pack: often small, sometimes large."""
    size = lambda most: round(2 ** rng.uniform(0, np.log2(most)))  # noqa: E731
    twins = int(rng.integers(1, 5))
    return {
        "features": size(64),
        "hidden": tuple(size(64) for _ in range(rng.integers(1, 4))),
        "activation": str(rng.choice(["relu", "silu"])),
        "dtype": [np.int8, np.int16][rng.integers(2)],
        "counts": [size(10) for _ in range(twins)],
        "neighbors": int(rng.choice([0, 0, 1, 2, 5, 4096])),
        "weights": str(rng.choice(["normal", "normal", "any", "lowest", "highest"])),
    }


def random_twin(rng, features, hidden, dtype, weights):
    layers, inputs = [], 2 * features
    for width in hidden:
        pairs = [fitting(rng, inputs, dtype, weights, "layer") for _ in range(width)]
        kernel, bias = (np.array(part) for part in zip(*pairs, strict=True))
        typical = np.abs(kernel.astype(float)).sum() / width * INPUT / 8 + 1
        multiplier, shift = scale(rng, weights, 8192 / typical)
        layers.append(
            Layer(
                kernel.astype(dtype),
                bias.astype(np.int32),
                np.where(rng.random(width) < 0.1, 0, multiplier).astype(np.int16),
                shift,
                int(rng.integers(5, 16)),
            )
        )
        inputs = width
    output, _ = fitting(rng, inputs, np.int16, weights, "output")
    multiplier, shift = scale(rng, weights, 0.001)
    return Twin(tuple(layers), output.astype(np.int16), multiplier, shift)


def fitting(rng, inputs, dtype, weights, place):
    """Draw weights of one output and its bias that just pass the check on overflow."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    most = ROOM[place] // INPUT
    if weights in ("lowest", "highest"):
        row = np.full(inputs, low if weights == "lowest" else high)
        left = np.maximum(most - np.abs(np.cumsum(row) - row), 0)
        row = np.sign(row) * np.minimum(np.abs(row), left)
    else:
        row = rng.integers(low, high + 1, inputs)
        if weights == "normal":
            row = np.trunc(row * rng.uniform(0, 1))
        row = np.trunc(row * min(1, most / max(np.abs(row).sum(), 1))).astype(np.int64)
    left = ROOM[place] - INPUT * int(np.abs(row).sum())
    if weights in ("lowest", "highest"):
        return row, left if weights == "highest" else -left
    return row, int(rng.integers(-left, left + 1) * rng.choice([0, 0.01, 1]))


def scale(rng, weights, factor):
    """Draw a multiplier and a shift, mostly near a factor that brings numbers into range."""
    if weights in ("lowest", "highest") or rng.random() < 0.1:
        return 32767, int(rng.choice([0, 0, 1, 8, 14, 15, 30]))
    if weights == "any":
        return int(rng.integers(0, 32768)), int(rng.integers(0, 31) * rng.choice([0.5, 1]))
    shift = int(np.clip(np.floor(np.log2(0.5 / factor)), 0, 30))
    return int(np.clip(factor * 2.0 ** (16 + shift), 1, 32767)), shift


def silu_like():
    a = np.concatenate([np.arange(128) / 32, 4 + np.arange(65) / 8])
    return np.rint(32768 * a / (1 + np.exp(a)))


def repair(data):
    """Fix both checksums; return the bytes."""
    data = bytearray(data)
    behind = min(48 + 12 * int.from_bytes(data[6:8], "little"), len(data))
    data[16:20] = struct.pack("<I", zlib.crc32(data[behind:]))
    data[12:16] = bytes(4)
    data[12:16] = struct.pack("<I", zlib.crc32(data[:behind]))
    return bytes(data)
