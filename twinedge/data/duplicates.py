"""How many rows of a table repeat an earlier one."""

import numpy as np
from numpy.typing import NDArray

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads the bits of a product
_HALF = np.uint64(32)


def count_duplicates(*columns: NDArray[np.float64]) -> int:
    """Count the rows that equal an earlier row in every value.

    Parameters
    ----------
    *columns
        Arrays of shape (n,) or (n, k), side by side: together they are the table.

    Returns
    -------
    int
        n minus the number of distinct rows.

    Examples
    --------
    >>> count_duplicates(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))
    1
    """
    parts = [part.reshape(len(part), -1) for part in columns]
    n = len(parts[0])
    # A hash per row finds the few rows worth comparing; sorting whole rows of a long table would
    # need a second copy of it. Rows with a hash of their own have no double, so the count is exact.
    code = np.zeros(n, dtype=np.uint64)
    for part in parts:
        for k in range(part.shape[1]):
            code = (code ^ (part[:, k] + 0.0).view(np.uint64)) * _ODD  # + 0.0: -0.0 equals 0.0
            code ^= code >> _HALF
    _, inverse, counts = np.unique(code, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(counts[inverse] > 1)
    if not suspects.size:
        return 0
    rows = np.column_stack([part[suspects] for part in parts]) + 0.0
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    return int(suspects.size - np.unique(keys.ravel()).size)
