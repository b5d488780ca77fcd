"""Everything the calculator says of a model, as one JSON object."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from twinedge.budget.boards import Board
from twinedge.budget.firmware import Runtime
from twinedge.budget.limits import (
    most_anchors,
    most_features,
    most_networks,
    smaller_in_bytes,
    smaller_in_params,
)
from twinedge.budget.model import WEIGHTS, Model
from twinedge.budget.storage import ann_bytes, pack_fault, pack_sections, twin_bytes
from twinedge.budget.verdict import Verdict, judge
from twinedge.errors import InputError


def summarise(
    model: Model,
    boards: Iterable[Board],
    firmware: dict[str, Runtime],
    *,
    flash: int | None = None,
    file_bytes: int | None = None,
) -> dict[str, Any]:
    """Count a model and judge boards.

    Parameters
    ----------
    model : Model
        What to count.
    boards : iterable of Board
        Which boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    flash : int, optional
        Bytes for which to find the largest models.
    file_bytes : int, optional
        Length of the ``.twin`` file, where it has more than a device needs.

    Returns
    -------
    dict
        As ``docs/budget.md`` describes; a size that cannot be is None.
    """
    twin, ann = _possible(twin_bytes, model), _possible(ann_bytes, model)
    stored = {name: replace(model, weights=name) for name in WEIGHTS}
    # Too many anchors are no reason not to look for how many there could be.
    possible = _possible(twin_bytes, model.with_anchors(model.twins)) is not None
    result: dict[str, Any] = {
        "features": model.features,
        "hidden": list(model.hidden),
        "twins": model.twins,
        "anchors": model.anchors,
        "neighbors": model.neighbors,
        "members": model.members,
        "activation": model.activation,
        "weights": model.weights,
        "intervals": model.intervals,
        "ann_params": model.ann_params,
        "twin_params": model.twin_params,
        "ann_bytes": ann,
        "twin_bytes": twin,
        "file_bytes": file_bytes,
        "ratio": None if twin is None or ann is None else ann / twin,
        "bytes": {
            name: {"twin": _possible(twin_bytes, one), "ann": _possible(ann_bytes, one)}
            for name, one in stored.items()
        },
        "sections": pack_sections(model) if pack_fault(model) is None else None,
        "multiply_adds": model.multiply_adds,
        "smaller_from": {
            "params": smaller_in_params(model),
            "bytes": smaller_in_bytes(model) if possible else None,
        },
        "cores_measured": sorted(firmware),
        "boards": [_board(judge(model, board, firmware), firmware) for board in boards],
    }
    if flash is not None:
        result["in_flash"] = {
            "bytes": flash,
            "ann_members": most_networks(model, flash) if possible else None,
            "twin_anchors": most_anchors(model, flash) if possible else None,
            "twin_features": None if twin is None else most_features(model, flash),
        }
    return result


def _possible(size: Callable[[Model], int], model: Model) -> int | None:
    """Bytes, or None where no pack could hold the model."""
    try:
        return size(model)
    except InputError:
        return None


def _board(one: Verdict, firmware: dict[str, Runtime]) -> dict[str, Any]:
    board = one.board
    measured_on = board.core.same_as if board.core.same_as in firmware else None
    return {
        "board": board.name,
        "title": board.title,
        "core": board.core.name,
        "measured_on": measured_on,
        "free_flash_bytes": board.free_flash,
        "free_ram_bytes": board.free_ram,
        "verdict": one.verdict,
        "why": one.why,
        "anchors": one.anchors,
        "flash_bytes": one.flash_bytes,
        "ram_bytes": one.ram_bytes,
        "milliseconds_estimated": one.milliseconds and list(one.milliseconds),
        "ann_members": one.ann_members,
    }
