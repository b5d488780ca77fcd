"""Choosing among the ways to choose, on validation data."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twinedge.anchors.evidence import Evidence
from twinedge.anchors.greedy import FEWEST_TO_SCORE, within_memory
from twinedge.anchors.methods import METHODS
from twinedge.anchors.pool import FloatArray, Pool, Rows

# The first is taken unless another is clearly better on validation data. Their order is that of the
# validation errors that benchmarks/anchors.py prints. Random points are left out, as their score
# says how lucky one draw was; greedy ones, as they leave a device too sure: they have half the
# spread of all anchors.
PREFERENCE = ("match", "xy", "stratified", "medoids", "farthest")

_SAME = 1.01
_CLEAR = 2.0


class Choice(NamedTuple):
    """Anchors, and how they were found.

    Attributes
    ----------
    method : str
        Name of the method that won.
    rows : array of shape (k,)
        What it chose; twin ``t`` owns ``rows[t::twins]``.
    rmse_val : dict of str to float
        Validation error of every method that was compared, in units of the target.
    """

    method: str
    rows: Rows
    rmse_val: dict[str, float]


def scorable(evidence: Evidence) -> tuple[str, ...]:
    """Names of the methods, random points aside, that these validation data can compare."""
    if evidence.neighbours:
        return PREFERENCE[1:]
    return PREFERENCE if len(evidence) < FEWEST_TO_SCORE else (*PREFERENCE, "greedy")


def compared(evidence: Evidence) -> tuple[str, ...]:
    """Names of the methods that "auto" chooses among, the one to prefer first."""
    return tuple(name for name in scorable(evidence) if name in PREFERENCE)


def compare(pool: Pool, k: int, seed: int, evidence: Evidence) -> Choice:
    """Try every method but greedy, and keep the one to prefer."""
    evidence = within_memory(evidence, len(pool), 1, seed)  # the points that curves are measured on
    names = compared(evidence)
    rows = {name: METHODS[name].choose(pool, k, seed, evidence) for name in names}
    errors = dict(zip(rows, evidence.squared_errors(list(rows.values())), strict=True))
    winner = preferred(errors)
    scores = {name: float(np.sqrt(squares.mean())) for name, squares in errors.items()}
    return Choice(winner, rows[winner], scores)


def preferred(errors: dict[str, FloatArray], clear: float = _CLEAR) -> str:
    """Return the first method, or the best of those that clearly beat it.

    Settled on validation points alone, of 27 models (three splits of the paper's nine sets), by
    benchmarks/anchors.py: a rule decides on one half of the points and is scored on the other. With
    8 and 32 anchors, over the error of all anchors, "match" has 0.998 and 1.001, at worst 1.011;
    overruled where another is better by two standard errors, 0.995 and 1.000, and no more at worst;
    by one, the same, but up to 1.020; whenever another is better, up to 1.079.

    Parameters
    ----------
    errors : dict of str to array of shape (v,)
        Squared error of each method at each validation point, the method to prefer first.
    clear : float
        Standard errors by which another has to be better.
    """
    first, *others = errors
    better = [name for name in others if _beats(errors[name], errors[first], clear)]
    return min(better, key=lambda name: float(errors[name].mean()), default=first)


def held_out(errors: dict[str, FloatArray], folds: Sequence[Rows]) -> FloatArray:
    """Squared errors ``(v,)`` of what is preferred, on points that had no say in it.

    Parameters
    ----------
    errors : dict of str to array of shape (v,)
        As ``preferred`` takes them.
    folds : sequence of array
        Which points are scored together, as ``Evidence.folds`` deals them out.
    """
    squares = np.empty(len(next(iter(errors.values()))))
    for held in folds:
        seen = np.setdiff1d(np.arange(len(squares)), held)
        winner = preferred({name: theirs[seen] for name, theirs in errors.items()})
        squares[held] = errors[winner][held]
    return squares


def _beats(one: FloatArray, other: FloatArray, standard_errors: float) -> bool:
    """Whether squared errors ``(v,)`` are clearly lower than others at the same points.

    By 1 % of the error at least, as nobody would notice less on a device, and by more than other
    validation points might turn round. The difference is taken point by point: all methods fail at
    the same hard points, and beside what those contribute a real gain would never stand out.
    """
    gain = other - one
    if len(gain) < 2:
        return False
    chance = standard_errors * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > chance and other.mean() > _SAME**2 * one.mean())
