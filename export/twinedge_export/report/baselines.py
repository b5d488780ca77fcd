"""The least that a model must beat: the mean, and a linear model.

Of a run both learn from its training rows. Whoever has only a pack has no such rows: then both
learn from the rows that the pack is judged on, and each row is judged by what the others taught.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twinedge.pack.contents import Array

if TYPE_CHECKING:
    from twinedge.learn.run import Run

_Z = 1.645  # nine of ten
_RIDGE = 1e-6  # of the variance of a column: lets columns follow from others


class Baseline(NamedTuple):
    """A simple model on the judged points: its error, and how it stands to the twin.

    ``than_the_twin`` is "better" or "worse" where that is more than chance, else "as good".
    """

    name: str
    rmse: float
    than_the_twin: str


def beside_run(run: "Run", points: tuple[Array, Array], error: Array) -> tuple[Baseline, ...]:
    """Fit both to the training rows of a run; ``error`` ``(n,)`` is that of the pack."""
    from twinedge.learn.baselines import compare, linear_model

    (X, y), (learnt_X, learnt_y) = points, (run.model.anchor_X_, run.model.anchor_y_)
    errors = {
        "the mean": np.full(len(y), float(learnt_y.mean())) - y,
        "a linear model": linear_model().fit(learnt_X, learnt_y).predict(X) - y,
    }
    found = []
    for name, theirs in errors.items():
        beside = compare(error, theirs)
        word = "better" if beside.better else "worse" if beside.worse else "as good"
        found.append(Baseline(name, beside.rmse, word))
    return tuple(found)


def beside_rows(points: tuple[Array, Array], error: Array) -> tuple[Baseline, ...]:
    """Fit both to the judged rows, each of them judged by all others; none of very few rows."""
    X, y = points
    n = len(y)
    if n < 3:
        return ()
    errors = {"the mean": (y.sum() - y) / (n - 1) - y}
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    scale = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1))[:, scale > 0]
    if n > X.shape[1] + 2:
        Z = np.column_stack([np.ones(n), X])
        inverse = np.linalg.inv(Z.T @ Z + _RIDGE * n * np.eye(Z.shape[1]))
        hat = Z @ inverse @ Z.T
        errors["a linear model"] = (hat @ y - y) / np.maximum(1 - np.diag(hat), 1e-9)
    return tuple(Baseline(name, *stands(error, one)) for name, one in errors.items())


def stands(ours: Array, theirs: Array) -> tuple[float, str]:
    """Root mean square of their errors ``(n,)``, and what the squares say point by point."""
    behind = np.square(theirs) - np.square(ours)
    chance = _Z * float(behind.std(ddof=1)) / np.sqrt(len(behind))
    mean = float(behind.mean())
    word = "worse" if mean > chance else "better" if mean < -chance else "as good"
    return float(np.sqrt(np.mean(np.square(theirs)))), word
