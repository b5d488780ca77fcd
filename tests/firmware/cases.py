"""Packs and queries on which every build of the C runtime must agree with the reference."""

import numpy as np

from twinedge.pack.layout import NO_FILL

EXTREMES = [0.0, -0.0, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -1e-38, 1e300, 0.5, -1.5]

# Name: parameters of the pack; see random_packs.py. Those "mapped" have an input map, and those
# "curved" a target curve.
SHAPES = {
    "relu-128-128-of-32": ((8, (128, 128), "relu", np.int8), [32], 0, "normal"),
    "silu-64-64-four-twins-of-8": ((8, (64, 64), "silu", np.int8), [8, 8, 8, 8], 0, "normal"),
    "one-anchor-one-feature": ((1, (1,), "relu", np.int8), [1], 0, "normal"),
    "128-anchors": ((3, (20, 9), "silu", np.int8), [128], 0, "normal"),
    "64-features": ((64, (40,), "relu", np.int8), [7], 0, "normal"),
    "64-features-int16": ((64, (17, 33), "silu", np.int16), [5, 3], 0, "normal"),
    "odd-widths": ((5, (7, 13, 3), "relu", np.int8), [11], 0, "normal"),
    "odd-widths-int16": ((7, (3, 5, 1), "silu", np.int16), [2, 5], 0, "normal"),
    "three-layers": ((4, (32, 16, 8), "silu", np.int8), [6], 0, "normal"),
    "relu-int16": ((6, (24, 24), "relu", np.int16), [9], 0, "normal"),
    "neighbors": ((4, (16, 16), "silu", np.int8), [40], 5, "normal"),
    "neighbors-of-four-twins": ((2, (9,), "relu", np.int16), [1, 30, 6, 3], 4, "normal"),
    "one-neighbor": ((9, (12, 4), "relu", np.int8), [64], 1, "normal"),
    "more-neighbors-than-anchors": ((3, (6, 6), "silu", np.int8), [3, 10], 4096, "normal"),
    "any-weights": ((10, (31, 15), "silu", np.int8), [10], 0, "any"),
    "any-weights-int16": ((10, (31, 15), "relu", np.int16), [10], 0, "any"),
    "lowest-weights": ((33, (64, 64), "relu", np.int8), [4], 0, "lowest"),
    "highest-weights": ((33, (64, 64), "silu", np.int8), [4], 0, "highest"),
    "lowest-weights-int16": ((12, (6, 5), "silu", np.int16), [2, 1], 0, "lowest"),
    "highest-weights-int16": ((12, (6, 5), "relu", np.int16), [2, 1], 0, "highest"),
    "wide-first-layer": ((16, (200,), "silu", np.int8), [3], 0, "normal"),
    "some-of-everything": ((2, (3, 5), "silu", np.int8), [2, 1], 2, "normal"),
    "long-rows": ((2, (301, 3), "relu", np.int8), [3], 0, "normal"),
    "mapped-relu": ((8, (48, 48), "relu", np.int8), [8, 8], 0, "normal"),
    "mapped-silu-curved": ((5, (24, 16), "silu", np.int8), [6, 3], 0, "normal"),
    "mapped-int16-neighbors": ((7, (12, 5), "relu", np.int16), [20, 6], 4, "normal"),
    "mapped-int16-neighbors-curved": ((3, (9,), "silu", np.int16), [17], 3, "any"),
    "mapped-one-feature": ((1, (1,), "relu", np.int8), [1], 0, "normal"),
    "mapped-narrow-first-layer-curved": ((64, (2, 3), "relu", np.int8), [3], 0, "normal"),
    "curved": ((4, (10, 6, 3), "relu", np.int8), [9], 0, "normal"),
}


LARGE = ("relu-128-128-of-32", "silu-64-64-four-twins-of-8")  # the slow ones


def draw(packs, name, scaled=False):
    """Return the pack of this name, with or without intervals."""
    rng = np.random.default_rng([11, list(SHAPES).index(name)])
    *shape, weights = SHAPES[name]
    bent = {"mapped": "mapped" in name, "curved": "curved" in name}
    return make(packs, rng, shape, weights=weights, scaled=scaled, **bent)


def make(packs, rng, shape, **more):
    """Return a random pack of a shape as above, but for the kind of its weights."""
    (features, hidden, activation, dtype), counts, neighbors = shape
    network = {"features": features, "hidden": hidden, "activation": activation, "dtype": dtype}
    return packs.random_pack(rng, **network, counts=counts, neighbors=neighbors, **more)


def queries(pack, count, seed=0):
    """Draw queries: within the range, near its edges, on anchors, and far outside."""
    rng = np.random.default_rng(seed)
    q = (
        rng.integers(-33000, 33001, (count, pack.features))
        + rng.choice([0, 0.5, 0.49], count)[:, None]
    )
    near = rng.integers(len(pack.anchors), size=count // 4)
    points = pack.anchors[:, : pack.features]  # with a map, what it makes of points like these
    q[: len(near)] = points[near] + rng.integers(-300, 301, (len(near), pack.features))
    q[0] = points[0]
    x = q / pack.x_gain.astype(np.float64) + pack.x_offset
    wild = rng.random(x.shape) < 0.1
    x = np.where(wild, rng.choice(EXTREMES, x.shape), x)
    x[-len(EXTREMES) :] = np.array(EXTREMES)[:, None]  # all features at once
    if pack.domain is not None:
        x[(rng.random(x.shape) < 0.05) & (pack.domain.fill != NO_FILL)] = np.nan
    with np.errstate(over="ignore"):
        return x.astype(np.float32)
