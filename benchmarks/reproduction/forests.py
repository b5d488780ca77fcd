"""Cells of random forests, ordinary and twinned.

As published, they use the first 200 rows of a set, split at random; by the text, 200 random rows.
"""

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from benchmarks.reproduction.cells import Cell
from benchmarks.reproduction.measures import LOOP_WEIGHTS
from benchmarks.reproduction.rows import paper_order, table_of
from twinedge.estimators.loops import LoopRegressor
from twinedge.estimators.twinned import FOLDS, GRIDS, TwinnedRegressor, pair_features
from twinedge.scoring.scores import rmse
from twinedge.training.network import FloatArray

ROWS = 200
# Instead of the paper's 54 or 405 settings: those that matter most, ranked with few trees.
SMALL_GRID: dict[str, list[Any]] = {
    "max_depth": [16],
    "max_features": [0.33, 1.0],
    "min_samples_leaf": [1, 2],
}
SMALL_TREES, TREES = 10, 100


def forest(cell: Cell) -> dict[str, Any]:
    """Fit an ordinary forest."""
    X, X_test, y, y_test = _halves(cell)
    grid, trees = _grid(cell)
    base = RandomForestRegressor(trees, random_state=cell.split)
    search = GridSearchCV(base, grid, cv=KFold(FOLDS)).fit(X, y)
    model = search.best_estimator_
    if cell.setup.effort == "quick":
        model = RandomForestRegressor(TREES, random_state=cell.split, **search.best_params_)
        model.fit(X, y)
    return {"rmse": rmse(model.predict(X_test), y_test), "chosen": search.best_params_}


def twinned_forest(cell: Cell) -> dict[str, Any]:
    """Fit a forest on pairs."""
    X, X_test, y, y_test = _halves(cell)
    model, chosen = _twinned(cell, X, y)
    model.fit(X, y)
    return {
        "rmse": rmse(model.predict(X_test, symmetric=False), y_test),
        "rmse_symmetric": rmse(model.predict(X_test), y_test),
        "chosen": chosen,
    }


def loop_forest(cell: Cell) -> dict[str, Any]:
    """Fit a forest on pairs, then on loops through the test points, for several loop weights."""
    X, X_test, y, y_test = _halves(cell)
    base, chosen = _twinned(cell, X, y)
    rmses = []
    for weight in LOOP_WEIGHTS:
        model = LoopRegressor(
            base, loop_weight=weight, loops=cell.setup.protocol, random_state=cell.split
        )
        model.fit(X, y, unlabelled=X_test)
        rmses.append(rmse(model.predict(X_test, symmetric=False), y_test))
    supervised = model.supervised_.predict(X_test, symmetric=False)
    return {
        "supervised": rmse(supervised, y_test),
        "loop_weights": LOOP_WEIGHTS,
        "semi_supervised": rmses,
        "chosen": chosen,
    }


def _halves(cell: Cell) -> list[FloatArray]:
    """Features and targets to train and test on, in the order of ``train_test_split``."""
    table = table_of(cell)
    rows = paper_order(cell)
    if cell.setup.protocol == "text":
        rows = np.random.RandomState(cell.split).permutation(rows)
    rows = rows[:ROWS]
    parts: list[FloatArray] = train_test_split(
        table.X[rows], table.y[rows], test_size=0.5, random_state=cell.split
    )
    return parts


def _twinned(cell: Cell, X: FloatArray, y: FloatArray) -> tuple[TwinnedRegressor, dict[str, Any]]:
    """Return an unfitted twinned forest with the hyperparameters that cross-validation chose.

    As in the paper's code, a fold is a fifth of the pairs in order: a point held out as the first
    of its pairs is still trained on as the second of others. ``TwinnedRegressor`` holds points out
    entirely.
    """
    grid, trees = _grid(cell)
    base = RandomForestRegressor(trees, random_state=cell.split)
    first, second = (X[rows] for rows in np.indices((len(X), len(X))).reshape(2, -1))
    differences = np.subtract.outer(y, y).ravel()
    search = GridSearchCV(base, grid, cv=KFold(FOLDS))
    search.fit(pair_features(first, second), differences)
    best = RandomForestRegressor(**{"n_estimators": TREES, **search.best_params_})
    return TwinnedRegressor(best, random_state=cell.split), search.best_params_


def _grid(cell: Cell) -> tuple[dict[str, list[Any]], int]:
    """Return the settings to search, and the number of trees to search them with."""
    if cell.setup.effort == "quick":
        return SMALL_GRID, SMALL_TREES
    return GRIDS[cell.setup.protocol], TREES
