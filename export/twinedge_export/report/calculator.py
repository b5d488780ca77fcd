"""What the calculator of the page computes with: layout of packs, boards, measurements."""

from typing import Any

import numpy as np

from twinedge.budget import Board, Model, Runtime
from twinedge.budget.firmware import LINES, Build, Kind
from twinedge.budget.model import WEIGHTS
from twinedge.budget.storage import KERNELS
from twinedge.budget.verdict import SLOW_MILLISECONDS
from twinedge.pack import layout


def facts(model: Model, boards: list[Board], firmware: dict[str, Runtime]) -> dict[str, Any]:
    """Collect as JSON takes it what ``budget.js`` needs.

    Parameters
    ----------
    model : Model
        What the sliders show at first.
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
            "max_layers": layout.MAX_LAYERS,
            "max_width": layout.MAX_WIDTH,
            "max_twins": layout.MAX_TWINS,
            "max_anchors": layout.MAX_ANCHORS,
            "kernels": {name: kernel.itemsize for name, kernel in KERNELS.items()},
            "floats": {name: np.dtype(name).itemsize for name in WEIGHTS if name not in KERNELS},
        },
        "lines_bytes": LINES,
        "slow_milliseconds": SLOW_MILLISECONDS,
        "query_bytes": np.dtype(np.float32).itemsize,
        "boards": [_board(board) for board in boards],
        "firmware": {
            core: [_build(*one) for one in runtime.builds.items()]
            for core, runtime in sorted(firmware.items())
        },
    }


def setting_of(model: Model) -> dict[str, Any]:
    """Say what the sliders of the calculator say."""
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
    scratch = build.scratch
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
        "scratch": {
            "align": scratch.align,
            "unit": scratch.unit,
            "partial_bytes": scratch.partial_bytes,
            "block_bytes": scratch.block_bytes,
            "room_bytes": scratch.room_bytes,
            "lines": scratch.lines,
            "work_bytes": scratch.work_bytes,
        },
        # By the hundred, so without names: REFERENCE in budget.js has them.
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
