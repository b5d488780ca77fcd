"""What the page itself computes: predictions by the runtime, and the memory of other models."""

import base64
from dataclasses import asdict, replace
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from twinedge.budget import Board, Model, Runtime, all_boards, fits, measurements
from twinedge.budget.measurements import Build, Kind, Part
from twinedge.budget.model import KERNELS, MAX_KNOTS, TARGET_BINS, WEIGHTS
from twinedge.defaults import MAP_EXTRA
from twinedge.encoding.calendars import CYCLES, SINE, Calendar, waves
from twinedge.encoding.categories import Category
from twinedge.encoding.derived import Derived
from twinedge.pack import layout
from twinedge.pack.contents import Array, Pack
from twinedge.pack.release import (
    ANSWER,
    IDENTITY,
    SELF_TEST_HEAD,
    USUAL_BYTES,
    USUAL_QUERIES,
)
from twinedge.runtime.pack_device import PackDevice
from twinedge.runtime.reference import targets_of
from twinedge_export.report.document import LIGHTS

_BITS = 32  # features that the runtime flags individually
# What a model with an input map or a target curve has more of.
_CURVES = ("map_outputs", "map_rows", "map_curves", "target_bins")
_STEPS = 200  # of a slider, about
_EXAMPLES = 6
ENSEMBLES = tuple(2**power for power in range(11))  # sizes that figures and the calculator show


class Span(NamedTuple):
    """A column of numbers: its range in training, a typical value, and the step of a slider."""

    least: float
    most: float
    usual: float
    step: float


def usual_query(device: PackDevice, rows: Array) -> Array:
    """Return a query ``(f,)`` amid the anchors; categories have their most frequent level.

    Numbers are rounded to the steps of their sliders, times to the hour. If the anchors are behind
    an input map, it is a query amid ``rows`` ``(n, f)``.
    """
    points = _typical_points(device.pack, rows)
    query = np.nanmedian(points, axis=0)
    for part, kind in zip(device.encoding.parts, device.encoding.kinds, strict=True):
        if isinstance(kind, Derived | None):
            query[part] = column_range(device, part.start, rows).usual
        elif isinstance(kind, Calendar):
            query[part] = waves([kind.middle])[0]
        else:
            counts = np.nansum(np.rint(points[:, part]), axis=0)
            query[part] = np.arange(kind.width) == counts.argmax()
    return query


def column_range(device: PackDevice, feature: int, rows: Array) -> Span:
    """Return range and typical value of a numeric feature; ``rows`` as in ``usual_query``."""
    pack = device.pack
    values = _typical_points(pack, rows)[:, feature]
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    if isinstance(pack.metadata.get("features"), list):
        least, most = (float(end) for end in device.ranges[:, feature])
    elif pack.domain is not None:
        offset, gain = float(pack.x_offset[feature]), float(pack.x_gain[feature])
        ends = pack.domain.least[feature], pack.domain.most[feature]
        least, most = (offset + int(end) / gain for end in ends)
    step = _round_step((most - least) / _STEPS) if most > least else 1.0
    usual = round(round(float(np.nanmedian(values)) / step) * step, 12)
    return Span(least, most, min(max(usual, least), most), step)


def _round_step(step: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(step))
    factor = max(one for one in (1, 2, 5) if one * power <= step * (1 + 1e-9))
    return float(f"{factor * power:.6g}")


def _typical_points(pack: Pack, rows: Array) -> Array:
    """Return features of the anchors in the user's units, or rows if a map hides them."""
    if pack.map is not None:
        return rows
    points: Array = pack.anchors / pack.x_gain.astype(np.float64) + pack.x_offset
    return points


def anchor_targets(pack: Pack) -> Array:
    """Return the targets of the anchors in the user's units."""
    if pack.target_curve is not None:
        return targets_of(pack, pack.targets)
    targets: Array = pack.targets * float(pack.y_gain) + float(pack.y_offset)
    return targets


def predictor_facts(
    device: PackDevice, data: bytes, examples: tuple[Array, Array], order: list[str]
) -> dict[str, Any]:
    """Collect what ``runtime.js`` and ``try.js`` need, ready for JSON.

    Parameters
    ----------
    device : PackDevice
        Pack to try.
    data : bytes
        The same as a file.
    examples : (X, y)
        Points with known targets to start from.
    order : list of str
        Columns, the most important first.
    """
    pack, encoding, rows = device.pack, device.encoding, examples[0]
    start = usual_query(device, rows)
    columns = []
    for name, part, kind in zip(encoding.names, encoding.parts, encoding.kinds, strict=True):
        column = {"name": name, "first": part.start}
        column["fillable"] = bool(device.fillable[part].all())
        if isinstance(kind, Category):  # labels, and their text in a table
            cells = [*kind.levels, *kind.others[:1]]
            chosen = int(start[part].argmax())
            column |= {"labels": list(kind.labels), "cells": cells, "start": chosen}
        elif isinstance(kind, Calendar):
            cycles = [list(one) for one in CYCLES.values()]
            column |= {"least": kind.first, "most": kind.last, "usual": kind.middle}
            column["calendar"] = {"cycles": cycles, "sine": list(SINE)}
        else:
            column |= column_range(device, part.start, rows)._asdict()
        columns.append(column)
    targets = anchor_targets(pack)
    return {
        "wasm": base64.b64encode(wasm()).decode(),
        "pack": base64.b64encode(data).decode(),
        "target": device.target_name,
        "coverages": [round(1000 * one) for one in device.coverages],
        "coverage": device.usual_coverage and round(1000 * device.usual_coverage),
        "columns": columns,
        "order": [encoding.names.index(name) for name in order],
        "targets": [float(targets.min()), float(targets.max())],
        "examples": _examples(device, *examples),
        "domain": _domain(pack),
        "ranges": device.ranges.tolist(),
    }


def wasm() -> bytes:
    """Return the C runtime as WebAssembly; ``make wasm`` builds it."""
    return (files("twinedge_export.report") / "templates" / "twin.wasm").read_bytes()


def _examples(device: PackDevice, X: Array, y: Array) -> list[dict[str, Any]]:
    """Points from the smallest target to the largest, with the seconds of their times."""
    columns = enumerate(zip(device.encoding.kinds, device.encoding.parts, strict=True))
    times = {k: (kind, part) for k, (kind, part) in columns if isinstance(kind, Calendar)}
    order = np.argsort(y, kind="stable")
    picks = np.unique(np.linspace(0, len(y) - 1, min(_EXAMPLES, len(y))).round().astype(int))
    return [
        {
            "query": [None if np.isnan(value) else value for value in X[row].tolist()],
            "target": float(y[row]),
            "times": {k: kind.seconds(X[row, part]) for k, (kind, part) in times.items()},
        }
        for row in order[picks].tolist()
    ]


def _domain(pack: Pack) -> str | dict[str, list[float]] | None:
    """Describe how to detect values outside: by the runtime's bits, its integers, or ranges."""
    if pack.domain is None:
        return None
    if pack.features <= _BITS:
        return "bits"
    return {
        "offset": pack.x_offset.tolist(),
        "gain": pack.x_gain.tolist(),
        "least": pack.domain.least.tolist(),
        "most": pack.domain.most.tolist(),
    }


# What tells references apart, and what else their work depends on.
_COMPARED = ("features", "hidden", "counts", "neighbors", "intervals", *_CURVES)
_SHAPE = (*_COMPARED, "levels")


def calculator_facts(model: Model, firmware: dict[str, Runtime]) -> dict[str, Any]:
    """Collect what ``budget.js`` and ``calculator.js`` need, ready for JSON.

    All their constants come from here, and so from the code that lays out packs.

    Parameters
    ----------
    model : Model
        Initial state of the sliders.
    firmware : dict of str to Runtime
        Measured cores.
    """
    names = "features", "anchors", "twins", "neighbors", "activation", "weights", "intervals"
    start = {name: getattr(model, name) for name in (*names, "levels", "identified", *_CURVES)}
    return {
        "start": {**start, "hidden": list(model.hidden)},
        "map_extra": MAP_EXTRA,
        "target_bins": TARGET_BINS,
        "layout": layout_facts(),
        "scratch": {
            "feature": measurements.FEATURE,
            "nearest": measurements.NEAREST,
            "lines": measurements.LINES,
            "fours": measurements.FOURS,
            "query": measurements.QUERY,
        },
        "slow_milliseconds": fits.SLOW_MILLISECONDS,
        "verdicts": {
            "fits": fits.FITS,
            "slow": fits.SLOW,
            "fewer": fits.FEWER,
            "not": fits.NOT,
            "unknown": fits.UNKNOWN,
        },
        "lights": LIGHTS,
        "ensembles": ENSEMBLES,
        "activations": layout.ACTIVATIONS,
        "boards": [_board(board) for board in all_boards().values()],
        "compared": _COMPARED,
        "reference": [*_SHAPE, "instructions"],
        "parts": {
            name: {"words": fits.PART_WORDS[name], "counted_by": number}
            for name, number in measurements.PARTS.items()
        },
        "firmware": {
            core: {
                "builds": [_build(*one) for one in runtime.builds.items()],
                "parts": {name: _part(one) for name, one in runtime.parts.items()},
            }
            for core, runtime in sorted(firmware.items())
        },
    }


def layout_facts() -> dict[str, Any]:
    """Describe how long the parts of a pack are, read off the smallest packs.

    ``sections`` are constant bytes, and bytes for each of what a section is counted by.
    """
    one, two = (
        layout.Shape(features, (4,), KERNELS["int8"], 1, features, scaled=True)
        for features in (4, 8)
    )
    curved = replace(one, map=(4, 2), curve_bins=(1,))
    kinds = (layout.Kind.TWINS, layout.Kind.ANCHORS, layout.Kind.MAP, layout.Kind.TARGET_CURVE)
    arrays = [part for kind in kinds for part in curved.parts(kind)]
    parts = {part.name: part.dtype.itemsize for part in arrays}

    def each_feature(kind: layout.Kind) -> list[int]:
        first, second = one.length(kind), two.length(kind)
        assert first is not None
        assert second is not None
        growth = (second - first) // 4
        return [first - 4 * growth, growth]

    return {
        "header": layout.HEADER.size,
        "entry": layout.ENTRY.size,
        "twin_head": layout.TWIN_HEAD.size,
        "alignment": layout.ALIGNMENT,
        "scaling": each_feature(layout.Kind.SCALING),
        "domain": each_feature(layout.Kind.DOMAIN),
        "curve": one.length(layout.Kind.CURVE),
        "intervals": layout.INTERVALS.size,
        "level": layout.LEVEL.size,
        "schema": one.length(layout.Kind.SCHEMA),
        "self_test": SELF_TEST_HEAD.size,
        "usual_queries": USUAL_QUERIES,
        "usual_bytes": USUAL_BYTES,
        "query": np.dtype(np.int16).itemsize,
        "answer": ANSWER.itemsize,
        "identity": IDENTITY.size,
        "bias": parts["bias0"],
        "multiplier": parts["multiplier0"],
        "output": parts["outputs"],
        "difficulty_bias": parts["difficulty_bias"],
        "count": parts["counts"],
        "anchor": parts["anchors"],
        "target": parts["targets"],
        "map_head": layout.MAP_HEAD.size,
        "knot": parts["knots"],
        "map_entry": parts["table"],
        "target_curve": layout.TARGET_CURVE_HEAD.size,
        "curve_value": parts["values"],
        "max_layers": layout.MAX_LAYERS,
        "max_width": layout.MAX_WIDTH,
        "max_twins": layout.MAX_TWINS,
        "max_anchors": layout.MAX_ANCHORS,
        "max_knots": MAX_KNOTS,
        "max_map_rows": layout.MAX_MAP_ROWS,
        "max_curve_bins": layout.MAX_CURVE_BINS,
        "kernels": {name: kernel.itemsize for name, kernel in KERNELS.items()},
        "floats": {name: np.dtype(name).itemsize for name in WEIGHTS if name not in KERNELS},
    }


def _board(board: Board) -> dict[str, Any]:
    return {
        "name": board.name,
        "title": board.title,
        "core": board.core.name,
        "same_as": board.core.same_as,
        "cycles": list(board.core.cycles_per_instruction),
        "clock": board.clock,
        "free_flash": board.free_flash,
        "free_ram": board.free_ram,
        "pack_in_ram": board.pack_in_ram,
    }


def _build(kind: Kind, build: Build) -> dict[str, Any]:
    return {
        **dict(zip(("activation", "weights", "neighbors", "intervals"), kind, strict=True)),
        "flash_bytes": build.flash_bytes,
        "fixed_ram_bytes": build.fixed_ram_bytes,
        "scratch": asdict(build.scratch),
        # There are hundreds, so no keys here: "reference" has them.
        "references": [
            [*(getattr(one.model, name) for name in _SHAPE), one.instructions]
            for one in build.references
        ],
    }


def _part(part: Part) -> dict[str, int]:
    ram = part.data_bytes + part.bss_bytes + part.context_bytes + part.stack_bytes
    flash = part.text_bytes + part.rodata_bytes + part.data_bytes
    return {"flash_bytes": flash, "fixed_ram_bytes": ram, "place_bytes": part.place_bytes}
