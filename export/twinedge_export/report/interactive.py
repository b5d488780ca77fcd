"""What the page itself computes: predictions by the runtime, and the memory of other models."""

import base64
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.budget import Board, Model, Runtime
from twinedge.budget.fits import SLOW_MILLISECONDS
from twinedge.budget.measurements import FEATURE, FOURS, LINES, NEAREST, QUERY, Build, Kind
from twinedge.budget.model import KERNELS, WEIGHTS
from twinedge.encoding.calendars import CYCLES, SINE, Calendar, waves
from twinedge.encoding.categories import Category
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.encoder import Kind as ColumnKind
from twinedge.pack import layout
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.pack_device import PackDevice, Reference

_BITS = 32  # features that the runtime flags individually
_STEPS = 200  # of a slider, about
_EXAMPLES = 6


class Span(NamedTuple):
    """A column of numbers: its range in training, a typical value, and the step of a slider."""

    least: float
    most: float
    usual: float
    step: float


def opened(pack: Pack) -> PackDevice:
    """Open a pack in numpy, to read its columns."""
    return PackDevice(pack, Path("model.twin"), Reference(pack), "numpy")


def usual_query(pack: Pack) -> Array:
    """Return a query ``(f,)`` amid the anchors; categories have their most frequent level.

    Numbers are rounded to the steps of their sliders, times to the hour.
    """
    device, points = opened(pack), _anchors(pack)
    query = np.median(points, axis=0)
    for part, kind in zip(device.encoding.parts, device.encoding.kinds, strict=True):
        if kind is None:
            query[part] = span_of(pack, part.start).usual
        elif isinstance(kind, Calendar):
            query[part] = waves([kind.middle])[0]
        else:
            counts = np.rint(points[:, part]).sum(axis=0)
            query[part] = np.arange(kind.width) == counts.argmax()
    return query


def span_of(pack: Pack, feature: int) -> Span:
    """Return range and typical value of a numeric feature."""
    offset, gain = float(pack.x_offset[feature]), float(pack.x_gain[feature])
    if isinstance(pack.metadata.get("features"), list):
        least, most = (float(end) for end in opened(pack).ranges[:, feature])
    elif pack.domain is not None:
        ends = pack.domain.least[feature], pack.domain.most[feature]
        least, most = (offset + int(end) / gain for end in ends)
    else:
        values = _anchors(pack)[:, feature]
        least, most = float(values.min()), float(values.max())
    step = _nice((most - least) / _STEPS) if most > least else 1.0
    usual = float(np.median(_anchors(pack)[:, feature]))
    usual = min(max(round(round(usual / step) * step, 12), least), most)
    return Span(least, most, usual, step)


def trial_facts(
    pack: Pack, data: bytes, examples: tuple[Array, Array], order: list[str]
) -> dict[str, Any]:
    """Collect what ``runtime.js`` and ``try.js`` need, ready for JSON.

    Parameters
    ----------
    pack : Pack
        Pack to try.
    data : bytes
        The same as a file.
    examples : (X, y)
        Points with known targets to start from.
    order : list of str
        Columns, the most important first.
    """
    device, start = opened(pack), usual_query(pack)
    encoding = device.encoding
    columns = [
        {
            "name": name,
            "first": part.start,
            "fillable": bool(device.fillable[part].all()),
            **_control(pack, kind, part, start),
        }
        for name, part, kind in zip(encoding.names, encoding.parts, encoding.kinds, strict=True)
    ]
    return {
        "wasm": base64.b64encode(wasm()).decode(),
        "pack": base64.b64encode(data).decode(),
        "target": device.target_name,
        "coverages": [round(1000 * one) for one in device.coverages],
        "coverage": device.usual_coverage and round(1000 * device.usual_coverage),
        "columns": columns,
        "order": [encoding.names.index(name) for name in order],
        "targets": [float(_targets(pack).min()), float(_targets(pack).max())],
        "examples": _examples(encoding, *examples),
        "domain": _domain(pack),
        "ranges": device.ranges.tolist(),
    }


def wasm() -> bytes:
    """Return the C runtime as WebAssembly; ``make wasm`` builds it."""
    place = files("twinedge_export.report").joinpath("templates", "twin.wasm")
    return place.read_bytes()


def _control(pack: Pack, kind: ColumnKind, part: slice, start: Array) -> dict[str, Any]:
    """Say what values a column takes, and with which it starts."""
    if isinstance(kind, Category):
        return _levels(kind, int(start[part].argmax()))
    if isinstance(kind, Calendar):
        cycles = [list(one) for one in CYCLES.values()]
        ends = {"least": kind.first, "most": kind.last, "usual": kind.middle}
        return {**ends, "calendar": {"cycles": cycles, "sine": list(SINE)}}
    return span_of(pack, part.start)._asdict()


def _levels(category: Category, start: int) -> dict[str, Any]:
    """Labels of a category, and their text in a table."""
    return {
        "labels": list(category.labels),
        "cells": [*category.levels, *category.others[:1]],
        "start": start,
    }


def _examples(encoding: Encoding, X: Array, y: Array) -> list[dict[str, Any]]:
    """Points from the smallest target to the largest, with the seconds of their times."""
    calendars = {
        k: (kind, part)
        for k, (kind, part) in enumerate(zip(encoding.kinds, encoding.parts, strict=True))
        if isinstance(kind, Calendar)
    }
    order = np.argsort(y, kind="stable")
    picks = np.unique(np.linspace(0, len(y) - 1, min(_EXAMPLES, len(y))).round().astype(int))
    return [
        {
            "query": [None if np.isnan(value) else value for value in X[row].tolist()],
            "target": float(y[row]),
            "times": {k: kind.seconds(X[row, part]) for k, (kind, part) in calendars.items()},
        }
        for row in order[picks].tolist()
    ]


def _domain(pack: Pack) -> str | dict[str, list[float]] | None:
    """Say how to detect values outside: by the bits of the runtime, its integers, or ranges."""
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


def _anchors(pack: Pack) -> Array:
    """Features of the anchors in the user's units."""
    points: Array = pack.anchors / pack.x_gain.astype(np.float64) + pack.x_offset
    return points


def _targets(pack: Pack) -> Array:
    targets: Array = pack.targets * float(pack.y_gain) + float(pack.y_offset)
    return targets


def _nice(step: float) -> float:
    """Round down to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(step))
    factor = max(one for one in (1, 2, 5) if one * power <= step * (1 + 1e-9))
    return float(f"{factor * power:.6g}")


def calculator_facts(
    model: Model, boards: list[Board], firmware: dict[str, Runtime]
) -> dict[str, Any]:
    """Collect what ``budget.js`` needs, ready for JSON.

    Parameters
    ----------
    model : Model
        Initial state of the sliders.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    """
    return {
        "start": setting_of(model),
        "layout": {
            "header": layout.HEADER.size,
            "entry": layout.ENTRY.size,
            "twin_head": layout.TWIN_HEAD.size,
            "alignment": layout.ALIGNMENT,
            "curve_length": layout.CURVE_LENGTH,
            "intervals": layout.INTERVALS.size,
            "level": layout.LEVEL.size,
            "schema": layout.SCHEMA.size,
            "max_layers": layout.MAX_LAYERS,
            "max_width": layout.MAX_WIDTH,
            "max_twins": layout.MAX_TWINS,
            "max_anchors": layout.MAX_ANCHORS,
            "kernels": {name: kernel.itemsize for name, kernel in KERNELS.items()},
            "floats": {name: np.dtype(name).itemsize for name in WEIGHTS if name not in KERNELS},
        },
        "scratch": {"feature": FEATURE, "nearest": NEAREST, "lines": LINES, "fours": FOURS},
        "slow_milliseconds": SLOW_MILLISECONDS,
        "query_bytes": QUERY,
        "boards": [_board(board) for board in boards],
        "firmware": {
            core: [_build(*one) for one in runtime.builds.items()]
            for core, runtime in sorted(firmware.items())
        },
    }


def setting_of(model: Model) -> dict[str, Any]:
    """Return the settings of the calculator for a model."""
    return {
        "features": model.features,
        "hidden": list(model.hidden),
        "anchors": model.anchors,
        "twins": model.twins,
        "neighbors": model.neighbors,
        "activation": model.activation,
        "weights": model.weights,
        "intervals": model.intervals,
        "levels": model.levels,
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
    activation, weights, neighbors, intervals = kind
    return {
        "activation": activation,
        "weights": weights,
        "neighbors": neighbors,
        "intervals": intervals,
        "flash_bytes": build.flash_bytes,
        "fixed_ram_bytes": build.data_bytes
        + build.bss_bytes
        + build.context_bytes
        + build.stack_bytes,
        "scratch": asdict(build.scratch),
        # There are hundreds, so no keys here: REFERENCE in budget.js has them.
        "references": [
            [
                one.model.features,
                list(one.model.hidden),
                list(one.model.counts),
                one.model.neighbors,
                one.model.intervals,
                one.model.levels,
                one.instructions,
            ]
            for one in build.references
        ],
    }
