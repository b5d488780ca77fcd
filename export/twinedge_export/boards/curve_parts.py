"""What input maps and target curves add to the runtime on a board: a part of ``firmware.json``.

Sizes are what an image with the part has more than one without. Few packs have curves, so this is
found for the smallest and the largest build with intervals only, and counts for all. Rates come
from packs and queries for which the part takes longest: values at the ends of long curves, shifts
of many bits, quotients and products of many digits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from twinedge.budget import Model
from twinedge.budget.measurements import PARTS, Kind
from twinedge.budget.worst import PART_NAMES, part_rounds
from twinedge.errors import InputError
from twinedge.pack import InputMap, TargetCurve, write_pack
from twinedge.pack.layout import MAX_CURVE_BINS
from twinedge_export.boards import worst
from twinedge_export.boards.board import Port
from twinedge_export.boards.build import Builder, flags_for
from twinedge_export.boards.reference_packs import random_pack, references
from twinedge_export.boards.run import BoardRun, anchor_queries, run_pack

KINDS: tuple[Kind, ...] = (("relu", "int8", False, True), ("silu", "int16", True, True))
Case = tuple[Model, float]  # with the most instructions that a part took

# Features, curves, and knots of each curve.
_MAPS = (
    (1, 1, 2),
    (1, 1, 256),
    (3, 3, 9),
    (6, 1, 5),
    (6, 6, 2),
    (12, 0, 0),
    (12, 12, 3),
    (9, 4, 30),
)
_SHIFTS, _ROWS = (1, 13, 24), (0, 127, -128)
_SPANS = (32000, 0)  # of all knots; 0 for knots next to each other
_PLACES = (0.0, 0.37, 1.0)  # where the query is on every curve, from the first knot to the last
_QUERY = 100  # every feature of it, quantised
_ESTIMATE = 500  # about the mean of all estimates
_MOST = 2**30


class _Pair(NamedTuple):
    """Builders for the same packs, without a part and with it."""

    without: Builder
    given: Builder


def measure_parts(
    board: Port, say: Callable[[str], None] = lambda what: None
) -> dict[str, dict[str, Any]]:
    """Measure every part, for the entry of the board's core.

    Raises
    ------
    InputError
        If a tool is missing, or a board's bits differ from the reference.
    """
    return {part: _measure(board, part, say) for part in PARTS}


def _measure(board: Port, part: str, say: Callable[[str], None]) -> dict[str, Any]:
    added: list[dict[str, int]] = []
    cases: list[Case] = []
    place = 0
    for kind in KINDS:
        say(f"{board.name}, {part.replace('_', ' ')} with {kind[0]} {kind[1]}")
        model = references(kind)[-1]
        with TemporaryDirectory(prefix="twinedge-") as folder:
            models = model, with_part(model, part)
            pair = _Pair(
                *(
                    Builder(board, Path(folder) / str(number), flags_for(random_pack(one)))
                    for number, one in enumerate(models)
                )
            )
            before, after = (_run(*one) for one in zip(pair, models, strict=True))
            added.append(_added(before, after))
            if part == "map" and not place:
                place = _place_bytes(pair, model)
            if not board.hosted:  # machines choose among several kernels
                cases += _cases(pair, part, model)
    return {
        **{name: max(one[name] for one in added) for name in added[0]},
        "place_bytes": place,
        "rates": _rates(part, cases) if cases else None,
    }


def with_part(model: Model, part: str) -> Model:
    """Return a model with an input map of nine knots a feature, or with a target curve."""
    if part != "map":
        return replace(model, target_bins=64)
    features = model.features
    return replace(model, map_outputs=features, map_rows=9 * features, map_curves=features)


def _run(builder: Builder, model: Model) -> BoardRun:
    pack = random_pack(model)
    found = run_pack(
        builder, write_pack(pack, metadata=False), anchor_queries(pack, 2), count=False
    )
    if len(found.mismatches):
        raise InputError(f"{builder.board.name}: bits differ from the reference for {model}")
    return found


def _added(before: BoardRun, after: BoardRun) -> dict[str, int]:
    """Bytes that the second has more, and never less than none."""
    one, two = before.image.sizes._asdict(), after.image.sizes._asdict()
    more = {f"{name}_bytes": two[name] - size for name, size in one.items()}
    more["context_bytes"] = after.answers.context - before.answers.context
    more["stack_bytes"] = after.stack_bytes - before.stack_bytes
    return {name: max(0, size) for name, size in more.items()}


def _place_bytes(pair: _Pair, like: Model) -> int:
    """Find what a map keeps for each feature, on models so narrow that nothing else matters."""
    few, many = (960, 1008) if pair.given.board.hosted else (48, 96)
    sizes = []
    for features in (few, many):
        plain = replace(like, features=features, hidden=(1,), counts=(2,), neighbors=0)
        mapped = replace(plain, map_outputs=features, map_rows=2, map_curves=1)
        without, given = (_run(*one) for one in zip(pair, (plain, mapped), strict=True))
        sizes.append(given.answers.scratch - without.answers.scratch)
    return -(-(sizes[1] - sizes[0]) // (many - few))


def _cases(pair: _Pair, part: str, like: Model) -> Iterator[Case]:
    """Count the most instructions that the part adds to each of several models."""
    candidates = _maps() if part == "map" else _target_curves()
    without, given = (one.with_program(worst.PROGRAM) for one in pair)
    for model, packs in candidates:
        plain, query = worst.extreme_pack(
            replace(like, features=model.features, hidden=(2,), counts=(2,), neighbors=0), _EXTREMES
        )
        (least,) = worst.count_packs(without, [(plain, query)])
        counted = worst.count_packs(given, [(replace(plain, **one), query) for one in packs])
        yield model, float(np.nanmax(counted)) - least


_EXTREMES = worst.Extremes(targets=(2 * _ESTIMATE,), scaling=(1.0, 0.0, float(_QUERY)))


def _maps() -> Iterator[tuple[Model, list[dict[str, Any]]]]:
    for features, curves, knots in _MAPS:
        bins = np.zeros(features, np.uint8)
        bins[:curves] = max(0, knots - 1)
        found = []
        for shift, row, span, place in product(_SHIFTS, _ROWS, _SPANS, _PLACES):
            reach = span or knots - 1
            first = _QUERY - round(place * reach)
            along = np.linspace(first, first + reach, knots).round().astype(np.int16)
            table = np.full((curves * knots, features), row, np.int8)
            shifts = np.full(features, shift, np.uint8)
            found.append({"map": InputMap(bins, shifts, np.tile(along, curves), table)})
        model = Model.of(
            features, (2,), 2, map_outputs=features, map_rows=curves * knots, map_curves=curves
        )
        yield model, found


def _target_curves() -> Iterator[tuple[Model, list[dict[str, Any]]]]:
    found = []
    for shift, bins, rise, side in product(
        (0, 11, 24), (1, 5, MAX_CURVE_BINS), (1, 2**17), (-1, 0, 1)
    ):
        width = bins << shift
        if width >= _MOST:
            continue
        first = _ESTIMATE - width // 2 - side * (width // 2 + 10)
        values = (np.arange(bins + 1) * rise).astype(np.int32)
        found.append({"target_curve": TargetCurve(first, shift, values)})
    yield Model.of(1, (2,), 2, target_bins=1), found


def _rates(part: str, cases: Sequence[Case]) -> dict[str, float]:
    """Find rates of the part's rounds that no case exceeds."""
    counts = np.array([[*part_rounds(model)[part].values()] for model, _ in cases], float)
    return worst.covering(PART_NAMES[part], counts, np.array([cost for _, cost in cases]))
