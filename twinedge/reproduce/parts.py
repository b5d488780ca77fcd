"""The rows of a cell, split as in the paper, and k-NN regression on them, without TensorFlow.

Of the rows 70 % train, 10 % choose and stop, 20 % test.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from twinedge import data, scoring
from twinedge.data.catalogue import GENERATORS
from twinedge.reproduce.cells import Cell
from twinedge.reproduce.experiment import NEIGHBORS

Points = tuple[NDArray[Any], NDArray[Any]]


def table_of(cell: Cell) -> data.Dataset:
    """Load the data set of a cell: as published, or made after the text where they differ."""
    by_text = cell.setup.protocol == "text" and cell.dataset in GENERATORS
    return data.load(cell.dataset, "paper" if by_text else "published")


def parts(cell: Cell) -> tuple[Points, Points, Points]:
    """Training, validation and test points."""
    table = table_of(cell)
    train, validation, test = (
        (table.X[rows], table.y[rows]) for rows in data.splits(cell.dataset, cell.split)
    )
    return train, validation, test


def paper_order(cell: Cell) -> NDArray[Any]:
    """Rows of a set in the order in which the paper's code had them, which may not be ours."""
    places = np.concatenate(data.split_rows(len(table_of(cell).y), 0))
    order = np.empty_like(places)
    order[places] = np.concatenate(data.splits(cell.dataset, 0))
    return order


def nearest(cell: Cell) -> dict[str, Any]:
    """Predict by several numbers of neighbors."""
    (X, y), _, (X_test, y_test) = parts(cell)
    scaler = StandardScaler().fit(X)
    search = NearestNeighbors(n_neighbors=min(len(y), max(NEIGHBORS))).fit(scaler.transform(X))
    rows = search.kneighbors(scaler.transform(X_test), return_distance=False)
    found = [scoring.rmse(y[rows[:, :k]].mean(axis=1), y_test) for k in NEIGHBORS]
    return {"neighbours": NEIGHBORS, "nearest": found}
