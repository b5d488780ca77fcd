"""Which training points travel to the device."""

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from twinedge.anchors.auto import Choice, compare
from twinedge.anchors.evidence import Evidence, Model, Validation
from twinedge.anchors.methods import METHODS, method_named
from twinedge.anchors.pool import Pool, Rows
from twinedge.errors import InputError


def select(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    method: str = "auto",
    *,
    model: Model | None = None,
    validation: Validation | None = None,
    twins: int = 1,
    seed: int = 0,
) -> Rows:
    """Choose anchors among training points.

    Parameters
    ----------
    X : array of shape (n, f)
        Training points in their own units; with a model, its ``anchor_X_``.
    y : array of shape (n,)
        Their targets.
    k : int
        How many anchors in all, a multiple of ``twins``.
    method : {"auto", "random", "medoids", "farthest", "stratified", "xy", "match", "greedy"}
        How: see ``METHODS``; "auto" compares them on validation data.
    model : fitted TwinRegressor, optional
        For "match", "greedy" and "auto".
    validation : (X, y), optional
        Points that the model was not trained on, for "greedy" and "auto".
    twins : int
        Networks that share the anchors; each gets a share that covers the data by itself.
    seed : int
        The same seed gives the same rows.

    Returns
    -------
    array of shape (k,)
        Distinct rows of ``X``; twin ``t`` owns ``rows[t::twins]``, which is how
        ``TwinRegressor.predict(..., anchors=rows)`` deals them out.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> sorted(select(X, X[:, 0], 2, "medoids").tolist())
    [1, 4]
    """
    return choose(X, y, k, method, model=model, validation=validation, twins=twins, seed=seed).rows


def choose(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    method: str = "auto",
    *,
    model: Model | None = None,
    validation: Validation | None = None,
    twins: int = 1,
    seed: int = 0,
) -> Choice:
    """Do as ``select``, and say which method it was and how "auto" scored each of them."""
    pool = pool_of(X, y, model, twins, seed)
    check_count(k, len(pool), twins)
    chosen = None if method == "auto" else method_named(method, "auto")
    evidence = None
    if chosen is None or chosen.asks:
        looks = chosen is None or chosen.looks
        if model is None or (looks and validation is None):
            needs = "a fitted model and validation data" if looks else "a fitted model"
            alone = ", ".join(name for name, other in METHODS.items() if not other.asks)
            raise InputError(f"{method!r} anchors need {needs}; {alone} do not")
        evidence = Evidence.of(model, validation)
        if chosen is None:
            return compare(pool, int(k), seed, evidence)
    return Choice(method, chosen.choose(pool, int(k), seed, evidence), {})


def pool_of(X: npt.ArrayLike, y: npt.ArrayLike, model: Model | None, twins: Any, seed: Any) -> Pool:
    """Check what every choice starts from."""
    if not _whole(twins) or twins < 1:
        raise InputError(f"twins={twins!r} is not a positive whole number")
    if not _whole(seed) or seed < 0:
        raise InputError(f"seed={seed!r} is not a whole number of at least 0")
    pool = Pool.of(X, y, int(twins))
    if model is None:
        return pool
    if not hasattr(model, "anchor_X_"):
        raise InputError("the model is not fitted")
    if len(model.weights_) != twins:
        raise InputError(f"twins={twins}, but the model has {len(model.weights_)}")
    # A fit that holds points out keeps the rest in an order of its own: rows of another table
    # would be other points, and nobody would notice.
    if not np.array_equal(np.asarray(X, np.float64), model.anchor_X_):
        raise InputError("X is not what the model was trained on; give its anchor_X_ and anchor_y_")
    return pool


def check_count(k: Any, count: int, twins: int) -> None:
    """Refuse a number of anchors that cannot be chosen or not be shared."""
    if not _whole(k) or k < 1:
        raise InputError(f"anchors: {k!r} is not a positive whole number")
    if k > count:
        raise InputError(f"anchors: {k} is more than the {count} training points")
    if k % twins:
        near = k - k % twins or twins
        raise InputError(f"anchors: {k} cannot be dealt out evenly to {twins} twins; {near} can")


def at_most_all(k: Any, count: int, twins: int) -> Any:
    """Return ``k``, or where it is more than the training points, all that twins can share."""
    if not _whole(k) or k <= count or count < twins:
        return k  # which ``check_count`` judges
    return count - count % twins


def too_many(k: Any, count: int, twins: int) -> str:
    """Say what is taken where more anchors were asked for than there are training points."""
    asked = f"{k} anchors were asked for, and there are {count} training points"
    taken = at_most_all(k, count, twins)
    if taken == count:
        return f"{asked}: all of them are taken"
    return f"{asked}: {taken} are taken, as many for each of {twins} twins"


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
