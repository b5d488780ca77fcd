"""Tables of the paper whose rows fall into groups, divided so that groups stay together."""

from typing import Any

import numpy as np

from twinedge import data

LEADING = {"cs": 7, "ee": 5, "yh": 5}  # leading columns that distinguish groups


def divided(name: str, division: int) -> tuple[data.Dataset, np.ndarray, Any]:
    """Load a table, number the group of each row, and divide the rows by groups."""
    table = data.load(name)
    leading = table.X[:, : LEADING[name]]
    group = np.unique(leading, axis=0, return_inverse=True)[1].ravel()
    return table, group, data.split_groups(group, division)
