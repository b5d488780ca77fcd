"""Whether a table looks as if its rows were in order of time, and what that does to errors.

Neighbors in such a table are alike. A random split trains on the neighbors of its test rows, so
that its error says little about later rows. Neighbors are also alike in a table that is sorted by
one of its columns, or goes through the settings of an experiment one after the other; there the
order means nothing, and there is no remark.
"""

import numpy as np
from numpy.typing import NDArray

from twinedge.data.splitting import split_rows
from twinedge.errors import Advice, Parameter
from twinedge.wording import quoted

Floats = NDArray[np.float64]

_FEWEST_ROWS = 100
_MOST_ROWS = 10_000  # consecutive ones are enough to tell
_ALIKE = 4.0  # least autocorrelation of residuals, in standard deviations of that of shuffled rows
_SORTED = 0.1  # of the steps of a sorted column, at most this share goes the other way
_SETTINGS = 0.05  # share of values that equal the one before, beyond that of shuffled rows
_LARGER = 1.1  # least ratio of the errors
_LARGEST = 1e30  # trees take 32-bit floats
_TREES, _LEAF = 20, 3


def of_order(X: Floats, y: Floats, dated: tuple[str, ...]) -> Advice | None:
    """Warn that errors on later rows may be larger than a random split shows; None if unlikely.

    Parameters
    ----------
    X : array of shape (n, f)
        Features, none missing.
    y : array of shape (n,)
        Targets.
    dated : tuple of str
        Columns of dates or times that are no features.
    """
    found = None
    enough = len(y) >= _FEWEST_ROWS and np.abs(X).max() < _LARGEST
    if enough and (dated or looks_ordered(X, y)):
        ordered, random = errors_in_order(X, y)
        if ordered > _LARGER * random:
            found = (
                "errors on later rows may be larger: in the order of the file, trees have an error "
                f"of {ordered:.3g} on the last fifth of the rows, and of {random:.3g} on a fifth "
                "at random"
            )
    if dated:
        words = f"column {quoted(dated[0])}, which is left out, holds dates or times"
        words += "" if found is None else f", and {found}"
        to_use = Parameter("time", dated[0])
        return Advice(f"{words}; to train on the past and test on the future, use ", to_use)
    if found is None:
        return None
    return Advice(
        f"neighboring rows are alike, and {found}; if the rows are in order of time, name the "
        "column that says when they were measured with ",
        Parameter("time"),
    )


def looks_ordered(X: Floats, y: Floats) -> bool:
    """Tell whether what a linear model does not explain is alike in neighboring rows.

    Not if the table is sorted by a column, or goes through settings in turn.

    Parameters
    ----------
    X, y : array of shape (n, f), (n,)
        Features and targets.
    """
    X, y = X[:_MOST_ROWS], y[:_MOST_ROWS]
    counts = [_is_counter(column) for column in X.T]
    X = X[:, ~np.array(counts, bool)]
    if any(map(_is_sorted, [*X.T, y])) or any(map(_has_settings, X.T)):
        return False
    rest = y - _linear(X, y)
    spread = float(rest.std())
    if spread <= 1e-9 * float(np.abs(y).max()):
        return False
    rest = (rest - rest.mean()) / spread
    alike = float(np.mean(rest[1:] * rest[:-1]))
    return bool(alike * np.sqrt(len(y)) > _ALIKE)


def errors_in_order(X: Floats, y: Floats) -> tuple[float, float]:
    """Errors of trees on the last fifth of the rows, and on a random fifth.

    Parameters
    ----------
    X, y : array of shape (n, f), (n,)
        Features and targets; of more than 10,000 rows, some are left out.

    Returns
    -------
    ordered, random : float
        Root mean square errors, in units of the target, after training on all other rows.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    step = -(-len(y) // _MOST_ROWS)
    X, y = X[::step], y[::step]
    *_, at_random = split_rows(len(y), 0)
    errors = []
    for held in (np.arange(len(y) - len(at_random), len(y)), at_random):
        rest = np.setdiff1d(np.arange(len(y)), held)
        trees = ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=0)
        off = trees.fit(X[rest], y[rest]).predict(X[held]) - y[held]
        errors.append(float(np.sqrt(np.mean(np.square(off)))))
    return errors[0], errors[1]


def _is_counter(values: Floats) -> bool:
    """Tell whether a column counts the rows, as time would."""
    steps = np.diff(values)
    return bool(steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0))


def _is_sorted(values: Floats) -> bool:
    steps = np.diff(values)
    up, down = int((steps > 0).sum()), int((steps < 0).sum())
    return min(up, down) < _SORTED * max(up, down)


def _has_settings(values: Floats) -> bool:
    """Tell whether a column often stays the same from row to row, as settings do."""
    shuffled = np.random.default_rng(0).permutation(values)
    stays, by_chance = (np.mean(one[1:] == one[:-1]) for one in (values, shuffled))
    return bool(stays - by_chance > _SETTINGS)


def _linear(X: Floats, y: Floats) -> Floats:
    """Fitted values of a linear model with a small ridge."""
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1)
    ridge = 1e-3 * len(y) * np.eye(Z.shape[1])
    fitted: Floats = Z @ np.linalg.solve(Z.T @ Z + ridge, Z.T @ (y - y.mean())) + y.mean()
    return fitted
