"""Cells of k-NN regression: the mean target of the nearest points. They need no TensorFlow."""

from typing import Any

from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from twinedge.reproduce.cells import Cell
from twinedge.reproduce.parts import parts, rmse
from twinedge.reproduce.sizes import NEIGHBOURS


def nearest(cell: Cell) -> dict[str, Any]:
    """Predict by several numbers of neighbours."""
    (X, y), _, (X_test, y_test) = parts(cell)
    scaler = StandardScaler().fit(X)
    search = NearestNeighbors(n_neighbors=min(len(y), max(NEIGHBOURS))).fit(scaler.transform(X))
    rows = search.kneighbors(scaler.transform(X_test), return_distance=False)
    found = [rmse(y[rows[:, :k]].mean(axis=1), y_test) for k in NEIGHBOURS]
    return {"neighbours": NEIGHBOURS, "nearest": found}
