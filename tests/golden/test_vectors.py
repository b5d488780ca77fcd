"""The bits of the evaluators are fixed, by two of them, on packs of every kind."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.pack import read_pack, write_pack
from twinedge.runtime import reference

HERE = Path(__file__).parent
VECTORS = runpy.run_path(str(HERE / "vectors.py"))
PLAIN = runpy.run_path(str(HERE.parent / "runtime" / "plain_evaluator.py"))["Plain"]
PACKS = VECTORS["PACKS"]
RECIPES = {recipe.name: recipe for recipe in (*PACKS["RECIPES"], *PACKS["SEVERAL"])}
CASES = {case.name: case for case in VECTORS["load"]()}
OF_TARGETS = {f"{case.name} {case.target}": case for case in VECTORS["load_several"]()}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_target = pytest.mark.parametrize(
    "case", [*CASES.values(), *OF_TARGETS.values()], ids=[*CASES, *OF_TARGETS]
)


def agrees(case):
    """Whether the reference evaluator still computes the bits of a case."""
    pack = read_pack(case.pack).single(case.target)
    found = reference.evaluate(pack, case.queries)
    return (
        np.array_equal(found.mean.view(np.uint32), case.mean)
        and np.array_equal(found.spread.view(np.uint32), case.spread)
        and np.array_equal(found.raw_mean, case.raw_mean)
        and np.array_equal(found.raw_spread, case.raw_spread)
        and VECTORS["digest"](found.estimates) == case.members_sha256
        and (case.bounds is None or bounds_agree(case.bounds, pack, case.queries, found))
    )


def bounds_agree(kept, pack, x, found):
    """Whether scales, intervals and flags are those of the case."""
    bounds, missing = reference.bounds(pack, found, kept.level), np.isnan(x)
    outside = reference.outside(pack, reference.quantise(pack, x)) & ~missing
    flags = [reference.mask(outside), reference.mask(missing)]
    parts = zip([*bounds, *flags], kept[1:], strict=True)
    return all(np.array_equal(one.view(np.uint32), right.view(np.uint32)) for one, right in parts)


@every_target
def test_the_reference_evaluator_gives_the_golden_bits(case):
    assert agrees(case)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@every_target
def test_the_plain_evaluator_gives_the_golden_bits(case, whole):
    # It takes a microsecond for ten products: for a large pack, only some queries unless slow.
    products = read_pack(case.pack).members * len(case.pack)
    rows = range(0, len(case.queries), 1 if whole else 1 + products // 100_000)
    evaluator = PLAIN(case.pack).select(case.target)
    answers = [evaluator.evaluate(case.queries[row].astype(np.float64).tolist()) for row in rows]
    mean, spread, *numbers, estimates = map(list, zip(*answers, strict=True))
    bits = [[int.from_bytes(bytes.fromhex(w), "little") for w in words] for words in (mean, spread)]
    assert [*bits, *numbers] == [part[rows].tolist() for part in case[3:7]]
    assert not whole or VECTORS["digest"](estimates) == case.members_sha256
    if case.bounds is not None:
        level, *words, raw_scale, raw_low, raw_high, _, _ = case.bounds
        for row in rows:
            scale, integer, ends = evaluator.bounds(case.queries[row].astype(np.float64).tolist())
            bits = [part[row].tobytes().hex() for part in words]
            assert [scale, *ends[level][:2]] == bits
            assert (integer, *ends[level][2:]) == (raw_scale[row], raw_low[row], raw_high[row])


@every_target
def test_a_recipe_is_what_its_pack_says(case):
    recipe, pack = RECIPES[case.name], read_pack(case.pack)
    assert (pack.features, pack.hidden) == (recipe.features, recipe.hidden)
    assert (pack.activation, pack.weight_bits) == (recipe.activation, int(recipe.kernel[1:]))
    assert tuple(pack.counts.tolist()) == recipe.counts
    assert pack.neighbors == recipe.neighbors
    assert pack.trained_on_neighbors == recipe.trained_on_neighbors
    assert (pack.intervals is not None) == (pack.domain is not None) == recipe.intervals
    assert pack.inputs == recipe.inputs
    assert (() if pack.map is None else tuple(pack.map.bins)) == recipe.bins
    for place, one in enumerate(pack.every_target):
        entries = 0 if one.target_curve is None else len(one.target_curve.values)
        assert entries == (0 if place % 2 else recipe.entries)
    assert len(pack.every_target) == recipe.several
    assert case.pack[4] == recipe.version
    if not recipe.extras:  # a section that nobody knows is not kept
        assert write_pack(pack) == case.pack


def test_what_is_stored_is_what_its_recipe_builds():
    stored = [recipe for recipe in RECIPES.values() if recipe.stored]
    assert sorted(VECTORS["stored"](one).name for one in stored) == sorted(
        path.name for path in HERE.glob("*.twin")
    )
    assert len(stored) >= 4
    for recipe in stored:
        assert VECTORS["stored"](recipe).read_bytes() == VECTORS["PACKS"]["build"](recipe)


def test_the_cases_are_of_every_kind():
    recipes = RECIPES.values()
    assert CASES.keys() | {case.name for case in OF_TARGETS.values()} == RECIPES.keys()
    assert len(CASES) >= 12
    assert {1, 64} <= {one.features for one in recipes}
    assert {1, 32, 128} <= {sum(one.counts) for one in recipes}
    widths = {width for one in recipes for width in one.hidden}
    assert {1, 128, 256} <= widths
    assert {width % 4 for width in widths} == {0, 1, 2, 3}
    kinds = {(len(one.hidden), one.activation, one.kernel) for one in recipes}
    assert {depth for depth, *_ in kinds} == {1, 2, 3}
    assert {kind[1:] for kind in kinds} == {(a, k) for a in ("relu", "silu") for k in ("i8", "i16")}
    assert {1, 4} <= {len(one.counts) for one in recipes}
    assert any(one.neighbors for one in recipes)
    assert {one.version for one in recipes} == {1, 2, 3}
    both = {(one.activation, one.kernel) for one in recipes if one.bins}
    assert both == {("relu", "i8"), ("relu", "i16"), ("silu", "i8"), ("silu", "i16")}
    assert {1, 255} <= {count for one in recipes for count in one.bins}
    assert {2, 4097} <= {one.entries for one in recipes}
    assert any(one.bins and one.neighbors for one in recipes)
    assert any(one.bins and one.entries and one.intervals for one in recipes)
    assert {1, 2, 3, 8} == {one.several for one in recipes}


@every_target
def test_the_queries_have_the_extremes_among_them(case):
    whole_rows = case.queries[(case.queries == case.queries[:, :1]).all(axis=1), 0]
    smallest = np.finfo(np.float32).smallest_subnormal
    largest = np.finfo(np.float32).max
    for extreme in (0.0, np.inf, -np.inf, largest, -largest, smallest, -smallest):
        assert np.float32(extreme) in whole_rows
    assert np.signbit(whole_rows[whole_rows == 0]).any()
    assert np.isnan(case.queries).any() == RECIPES[case.name].intervals


NO_SPREAD = ("one-of-everything", "infinite", "target-curve-far")  # or one at its limit


def test_the_answers_tell_queries_apart():
    # Of the 19 or more, several saturate alike; there are fewer where there are several targets.
    for case in (*CASES.values(), *OF_TARGETS.values()):
        many = 7 if RECIPES[case.name].several == 1 else 5
        assert len(set(case.raw_mean.tolist())) > many, case.name
        if (
            RECIPES[case.name].entries
            and not case.target % 2
            and case.name != "target-curve-infinite"
        ):
            assert len(set(case.mean.tolist())) > 4, case.name
        spreads = len(set(case.raw_spread.tolist()))
        assert spreads > 5 or case.name in NO_SPREAD, case.name
    assert np.isinf(CASES["infinite"].mean.view(np.float32)).any()
    assert np.isinf(CASES["infinite"].spread.view(np.float32)).all()


NEAREST, BUMP, CURVED = reference.nearest, reference._bump, reference.curved
MAP_POINTS = reference.map_points


def the_later_of_equals(q, anchors, count):
    return np.sort(len(anchors) - 1 - NEAREST(q, anchors[::-1], count), axis=1)


SLIPS = {
    "shifts do not round": ("_rsh", lambda a, n: a >> n),
    "products round up": ("_mulw", lambda a, m: (a.astype(np.int64) * m + 65535) >> 16),
    "activations saturate at -32768": ("LARGEST", 32768),
    "the last entry of the curve is used": ("CURVE_LENGTH", 194),
    "the curve is one off": ("_bump", lambda *curve: BUMP(*curve) + 1),
    "of equally near anchors the later predicts": ("nearest", the_later_of_equals),
    "no limit on the spread": ("_SPREAD", 2**21),
    "a bin of the map ends too early": ("_WHOLE", 16383),
    "the map is left out": (
        "map_points",
        lambda pack, q: np.pad(q, ((0, 0), (0, pack.inputs - q.shape[1]))),
    ),
    "a curve goes on beyond its last knot": (
        "map_points",
        lambda pack, q: MAP_POINTS(going_on(pack), q),
    ),
    "the target curve is one off": ("curved", lambda pack, m: CURVED(pack, m + 1)),
    "the target curve is left out": ("curved", lambda pack, m: m.astype(np.int64)),
}


def going_on(pack):
    """Return a pack whose curves go on for a unit beyond their last knots."""
    if pack.map is None:
        return pack
    knots = pack.map.knots.copy()
    for _, rows in pack.map.curves():
        knots[rows.stop - 1] = min(knots[rows.stop - 1] + 1, 32767)
    return replace(pack, map=replace(pack.map, knots=knots))


@pytest.mark.parametrize(("name", "wrong"), SLIPS.values(), ids=SLIPS)
def test_a_slip_in_the_arithmetic_is_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(reference, name, wrong)
    with np.errstate(all="ignore"):
        assert not all(_survives(case) for case in CASES.values())


def _survives(case):
    try:
        return agrees(case)
    except (IndexError, OverflowError):
        return False


def test_the_vectors_are_small():
    kept = [VECTORS["FILE"], *HERE.glob("*.twin")]
    assert sum(path.stat().st_size for path in kept) < 200_000


def test_vectors_that_exist_are_not_overwritten():
    main = runpy.run_path(str(HERE / "make.py"))["main"]
    before = VECTORS["FILE"].read_bytes()
    assert "--force" in main([])
    assert VECTORS["FILE"].read_bytes() == before


def test_a_pack_that_its_bits_were_not_kept_for_is_noticed(tmp_path, monkeypatch):
    kept = json.loads(VECTORS["FILE"].read_text())
    kept["cases"][0]["pack_sha256"] = "0" * 64
    (tmp_path / "vectors.json").write_text(json.dumps(kept))
    load = VECTORS["load"]
    monkeypatch.setitem(load.__globals__, "FILE", tmp_path / "vectors.json")
    with pytest.raises(AssertionError, match="not the pack"):
        load()
