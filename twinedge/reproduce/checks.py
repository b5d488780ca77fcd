"""Cells of ``twinedge check``: what it says on the training and validation rows of a split."""

from typing import Any

import numpy as np

from twinedge import data
from twinedge.learn.suitability import suitability
from twinedge.reproduce.cells import Cell


def check(cell: Cell) -> dict[str, Any]:
    """Check whether a twin suits the data."""
    table, split = data.load(cell.dataset), data.splits(cell.dataset, cell.split)
    rows = np.concatenate([split.train, split.val])
    found = suitability(table.X[rows], table.y[rows], effort=cell.setup.effort)
    few = found.multipliers[min(found.multipliers)].rmse
    return {
        "warns": float(not found.suits),
        **{name: rival.rmse / found.twin for name, rival in found.rivals.items()},
        "pairs": found.twin / few,
        "twin": found.twin,
        "reasons": found.reasons,
    }
