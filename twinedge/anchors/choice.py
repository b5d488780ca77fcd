"""Choose the anchors by a method, or compare methods on validation data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.anchors.methods import FEWEST_TO_SCORE, METHODS, method_named, within_memory
from twinedge.anchors.pool import Evidence, FittedModel, Pool, Validation, curve_of, table
from twinedge.anchors.rows import FloatArray, Rows, check_count, whole
from twinedge.anchors.target_evidence import TargetsEvidence
from twinedge.errors import InputError, Parameter, ParameterError, wrong_value

# The first is used unless another is clearly better on validation data: its validation error is the
# least by far (benchmarks/anchors.py). Random points are left out because their score only says how
# lucky one draw was; greedy ones because they make a device overconfident: with few anchors, they
# have half the spread of all.
PREFERENCE = ("match", "xy", "stratified", "medoids", "farthest")

_SAME = 1.01
_CLEAR = 2.0


class AnchorChoice(NamedTuple):
    """Anchors, and how they were chosen.

    Attributes
    ----------
    method : str
        Name of the method that won.
    rows : array of shape (k,)
        The rows it chose; twin ``t`` owns ``rows[t::twins]``.
    rmse_val : dict of str to float
        Validation error of every method compared, in units of the target.
    """

    method: str
    rows: Rows
    rmse_val: dict[str, float]


def scorable(evidence: Evidence) -> tuple[str, ...]:
    """Names of the methods, except random, that these validation data can compare."""
    if evidence.neighbors:
        return PREFERENCE[1:]
    few = len(evidence) < FEWEST_TO_SCORE or evidence.targets > 1
    return PREFERENCE if few else (*PREFERENCE, "greedy")


def compared(evidence: Evidence) -> tuple[str, ...]:
    """Names of the methods that "auto" chooses among, the preferred one first."""
    if evidence.across:  # a few groups say nothing about another one
        return scorable(evidence)[:1]
    return tuple(name for name in scorable(evidence) if name in PREFERENCE)


def compare(pool: Pool, k: int, seed: int, evidence: Evidence) -> AnchorChoice:
    """Try the methods that "auto" chooses among, and keep the preferred one."""
    evidence = within_memory(evidence, len(pool), 1, seed)  # the same points as curves use
    names = compared(evidence)
    rows = {name: METHODS[name].choose(pool, k, seed, evidence) for name in names}
    errors = dict(zip(rows, evidence.squared_errors(list(rows.values())), strict=True))
    winner = preferred(errors)
    scores = {name: float(np.sqrt(squares.mean())) for name, squares in errors.items()}
    return AnchorChoice(winner, rows[winner], scores)


def preferred(errors: dict[str, FloatArray], clear: float = _CLEAR) -> str:
    """Return the first method, or the best of those that clearly beat it.

    benchmarks/anchors.py tries the rule on validation points only, of 36 models (four splits of
    the paper's nine sets): it decides on one half of the points and is scored on the other. With 8
    and 32 anchors, relative to the error of all anchors, "match" alone scores 1.001 and 1.001, at
    worst 1.022 and 1.023. Overruling it if another is better by two standard errors scores 1.001
    and 1.001, at worst 1.016 and 1.023; by one, 1.002 and 1.002, but up to 1.043; whenever another
    is better, up to 1.057.

    Parameters
    ----------
    errors : dict of str to array of shape (v,)
        Squared error of each method at each validation point, the preferred method first.
    clear : float
        Standard errors by which another must be better.
    """
    first, *others = errors
    better = [name for name in others if _beats(errors[name], errors[first], clear)]
    return min(better, key=lambda name: float(errors[name].mean()), default=first)


def held_out(errors: dict[str, FloatArray], folds: Sequence[Rows]) -> FloatArray:
    """Squared errors ``(v,)`` of the preferred method, on points not used to choose it.

    Parameters
    ----------
    errors : dict of str to array of shape (v,)
        As for ``preferred``.
    folds : sequence of array
        Points that are scored together, as returned by ``Evidence.folds``.
    """
    squares = np.empty(len(next(iter(errors.values()))))
    for held in folds:
        seen = np.setdiff1d(np.arange(len(squares)), held)
        winner = preferred({name: theirs[seen] for name, theirs in errors.items()})
        squares[held] = errors[winner][held]
    return squares


def _beats(one: FloatArray, other: FloatArray, standard_errors: float) -> bool:
    """Whether squared errors ``(v,)`` are clearly lower than others at the same points.

    That is, by at least 1 % of the error, since less would not be noticed on a device, and by more
    than chance in the validation points explains. The difference is taken point by point: all
    methods fail at the same hard points, whose share would drown a real gain.
    """
    gain = other - one
    if len(gain) < 2:
        return False
    chance = standard_errors * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > chance and other.mean() > _SAME**2 * one.mean())


def select(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    method: str = "auto",
    *,
    model: FittedModel | None = None,
    validation: Validation | None = None,
    twins: int = 1,
    seed: int = 0,
) -> Rows:
    """Choose anchors among training points.

    Parameters
    ----------
    X : array of shape (n, f)
        Training points in their own units; with a model, its ``anchor_X_``.
    y : array of shape (n,), or of several targets (n, m)
        Their targets, none of them missing.
    k : int
        Total number of anchors, a multiple of ``twins``.
    method : {"auto", "random", "medoids", "farthest", "stratified", "xy", "match", "greedy"}
        See ``METHODS``; "auto" compares them on validation data.
    model : fitted TwinRegressor, optional
        For "match", "greedy" and "auto".
    validation : (X, y), optional
        Points that the model was not trained on, for "greedy" and "auto".
    twins : int
        Number of networks that share the anchors; each share covers the data by itself.
    seed : int
        The same seed gives the same rows.

    Returns
    -------
    array of shape (k,)
        Distinct rows of ``X``; twin ``t`` owns ``rows[t::twins]``, which is how
        ``TwinRegressor.predict(..., anchors=rows)`` assigns them.

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
    model: FittedModel | None = None,
    validation: Validation | None = None,
    twins: int = 1,
    seed: int = 0,
) -> AnchorChoice:
    """Do as ``select`` does, and return the method and the scores that "auto" compared."""
    pool = pool_of(X, y, model, twins, seed)
    check_count(k, len(pool), twins)
    chosen = None if method == "auto" else method_named(method, "auto")
    evidence = None
    if chosen is None or chosen.needs_model:
        needs_validation = chosen is None or chosen.needs_validation
        if model is None or (needs_validation and validation is None):
            needs = "a fitted model and validation data" if needs_validation else "a fitted model"
            alone = ", ".join(name for name, other in METHODS.items() if not other.needs_model)
            raise InputError(f"{method!r} anchors need {needs}; {alone} do not")
        evidence = evidence_of(model, validation)
        if chosen is None:
            return compare(pool, int(k), seed, evidence)
    return AnchorChoice(method, chosen.choose(pool, int(k), seed, evidence), {})


def evidence_of(model: FittedModel, validation: Validation | None) -> Evidence:
    """Check validation data from a caller, for a model of one target or of several."""
    of = TargetsEvidence.of if np.ndim(model.anchor_y_) == 2 else Evidence.of
    return of(model, validation)


def pool_of(
    X: npt.ArrayLike, y: npt.ArrayLike, model: FittedModel | None, twins: Any, seed: Any
) -> Pool:
    """Check the arguments that every choice shares, and return the pool of training points."""
    if not whole(twins) or twins < 1:
        raise wrong_value("twins", twins, "is not a positive whole number")
    if not whole(seed) or seed < 0:
        raise wrong_value("seed", seed, "is not a whole number of at least 0")
    curve = curve_of(model)
    target = y if curve is None else curve.forward(table("y", y, 1))
    pool = Pool.of(X, target, int(twins), getattr(model, "sample_weights_", None))
    if model is None:
        return pool
    if not hasattr(model, "anchor_X_"):
        raise InputError("the model is not fitted")
    if len(model.weights_) != twins:
        has = f", but the model has {len(model.weights_)}"
        raise ParameterError(Parameter("twins", twins), has)
    # A fit that holds points out reorders the rest: row numbers of another table would silently
    # refer to different points.
    if not np.array_equal(np.asarray(X, np.float64), model.anchor_X_):
        raise InputError("X is not what the model was trained on; give its anchor_X_ and anchor_y_")
    return pool
