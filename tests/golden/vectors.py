"""The golden vectors: packs, queries, and the bits that every evaluator must compute.

Other tests get them with ``runpy.run_path(".../tests/golden/vectors.py")["load"]()``.
"""

import json
import runpy
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent
PACKS = runpy.run_path(str(HERE / "packs.py"))
FILE = HERE / "vectors.json"


class Bounds(NamedTuple):
    """Expected scales and intervals at one level, in thousandths, and flags: ``(n,)`` each.

    ``scale``, ``low`` and ``high`` are the bits of float32, uint32; the integers behind them are
    ``raw_scale`` uint32, ``raw_low`` and ``raw_high`` int32. ``outside`` and ``missing`` have a bit
    for each feature, uint32.
    """

    level: int
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    raw_scale: np.ndarray
    raw_low: np.ndarray
    raw_high: np.ndarray
    outside: np.ndarray
    missing: np.ndarray


class Golden(NamedTuple):
    """A pack and its expected answers to ``n`` queries.

    ``queries`` is float32 ``(n, f)``; ``mean`` and ``spread`` are the bits of float32, uint32
    ``(n,)``; ``raw_mean`` int32 and ``raw_spread`` uint32 ``(n,)`` are the integers behind them
    (``M`` and ``s`` of FORMAT.md). ``members_sha256`` is of all estimates, i32 little-endian, query
    by query. ``bounds`` are those of packs with intervals, at their usual level. All of these are
    for one ``target`` of the pack.
    """

    name: str
    pack: bytes
    queries: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    raw_mean: np.ndarray
    raw_spread: np.ndarray
    members_sha256: str
    bounds: Bounds | None = None
    target: int = 0


def load():
    """Return all cases with packs for one target, in the order of ``packs.py``."""
    kept = json.loads(FILE.read_text())["cases"]
    recipes = {recipe.name: recipe for recipe in PACKS["RECIPES"]}
    return [_case(recipes[one["name"]], one) for one in kept]


def load_several():
    """Return a case for each target of each pack for several."""
    kept = json.loads(FILE.read_text())["several"]
    recipes = {recipe.name: recipe for recipe in PACKS["SEVERAL"]}
    return [
        _case(recipes[one["name"]], {**one, **answers})._replace(target=target)
        for one in kept
        for target, answers in enumerate(one["targets"])
    ]


def digest(estimates):
    """SHA-256 of estimates ``(n, m)``."""
    return sha256(np.asarray(estimates, "<i4").tobytes()).hexdigest()


def stored(recipe):
    """Return the path of a stored pack."""
    return HERE / f"{recipe.name}.twin"


def _case(recipe, kept):
    data = stored(recipe).read_bytes() if recipe.stored else PACKS["build"](recipe)
    if sha256(data).hexdigest() != kept["pack_sha256"]:
        raise AssertionError(f"{recipe.name}: this is not the pack that its bits were kept for")
    queries = np.stack([np.frombuffer(bytes.fromhex(row), "<f4") for row in kept["queries"]])
    return Golden(
        recipe.name,
        data,
        queries.astype(np.float32),
        _bits(kept["mean"]),
        _bits(kept["spread"]),
        np.array(kept["raw_mean"], np.int32),
        np.array(kept["raw_spread"], np.uint32),
        kept["members_sha256"],
        _bounds(kept["bounds"]) if "bounds" in kept else None,
    )


def _bounds(kept):
    integers = {"raw_scale": np.uint32, "raw_low": np.int32, "raw_high": np.int32}
    masks = {"outside": np.uint32, "missing": np.uint32}
    return Bounds(
        kept["level"],
        *(_bits(kept[name]) for name in ("scale", "low", "high")),
        *(np.array(kept[name], kind) for name, kind in (integers | masks).items()),
    )


def _bits(words):
    return np.array([int(word, 16) for word in words], np.uint32)
