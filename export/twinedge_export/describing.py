"""What a converted file says about itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.contents import Pack
from twinedge.runtime.file_device import fill_values
from twinedge_export.folding import Folding
from twinedge_export.graph import SHAPES


def check(model: TwinRegressor, shape: str, level: str, levels: Sequence[str]) -> None:
    """Refuse what a file cannot be made of."""
    if shape not in SHAPES:
        raise InputError(f"shape={shape!r} is not one of {', '.join(SHAPES)}")
    if level not in levels:
        raise InputError(f"level={level!r} is not one of {'; '.join(levels)}")
    if shape == "ensemble" and model.pairs == "neighbors":
        raise InputError(
            "a model trained on neighbours predicts from the nearest anchors, and an ensemble file "
            "has all of them inside: write its .twin, or the shape 'twin'"
        )


def describe(
    folding: Folding,
    shape: str,
    level: str,
    metadata: dict[str, Any] | None,
    pack: Pack | None = None,
) -> dict[str, Any]:
    """Metadata of a file: what the user gave, and what is needed to use the file.

    A bare twin lies beside its pack, and has from there what an ensemble has inside.
    """
    inputs = folding.inputs
    inside: dict[str, Any] = {"anchors": [len(twin.targets) for twin in folding.twins]}
    if folding.calibration is not None:
        inside["coverages"] = [*folding.calibration.quantiles]
    if pack is not None and np.isfinite(fill := fill_values(pack)).any():
        inside["fill"] = [value if np.isfinite(value) else None for value in fill.tolist()]
    return {
        **(metadata or {}),
        "shape": shape,
        "level": level,
        "twins": len(folding.twins),
        **(inside if shape == "ensemble" else {}),
        "scaling": {
            "centre": inputs.centre.tolist(),
            "unit": inputs.unit.tolist(),
            "limit": inputs.limit,
        },
    }
