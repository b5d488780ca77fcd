"""The rows of a cell: 70 % to train, 10 % to choose and to stop, 20 % to test, as in the paper."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinedge import data
from twinedge.data.synthetic import GENERATORS
from twinedge.reproduce.cells import Cell

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


def rmse(predicted: NDArray[Any], y: NDArray[Any]) -> float:
    """Root mean square error."""
    return float(np.sqrt(np.mean(np.square(predicted - y))))
