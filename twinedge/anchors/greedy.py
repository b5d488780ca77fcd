"""Choosing anchors one by one, each the one that lowers the validation error most."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinedge.anchors.evidence import FOLDS, Evidence
from twinedge.anchors.picks import medoids
from twinedge.anchors.pool import FloatArray, Pool, Rows
from twinedge.errors import InputError

MOST_CANDIDATES = 2_000
# Below this a fold is left with three points or less, and what it says is chance.
FEWEST_TO_SCORE = 4 * FOLDS

_TABLE = 1 << 25  # residuals kept: 128 MB, and once more while a fold is left out


@dataclass(frozen=True)
class Candidates:
    """Rows to choose from, and what each would predict.

    Parameters
    ----------
    rows : array of shape (c,)
        Training rows.
    residuals : float32 array of shape (twins, c, v)
        Each twin's estimate from each of them, less the target, at each validation point.
    scale : float
        What a residual of 1 is in units of the target.
    """

    rows: Rows
    residuals: npt.NDArray[np.float32]
    scale: float

    @classmethod
    def of(cls, pool: Pool, k: int, seed: int, evidence: Evidence) -> "Candidates":
        """Let the model judge all rows, or where they are many, points that stand for them."""
        if evidence.neighbours:
            raise InputError(
                "greedy needs a model that averages all its anchors, and this one was trained on "
                "neighbors; use medoids or farthest"
            )
        rows = np.arange(len(pool))
        if len(rows) > (most := _most_rows(k)):
            rows = np.sort(medoids(pool.x, pool.y, most, np.random.default_rng(seed)))
        evidence = within_memory(evidence, len(pool), k, seed)
        return cls(rows, evidence.residuals(rows), evidence.scale)

    def choose(self, k: int) -> Rows:
        """Rows ``(k,)`` in the order they are chosen; the twins choose in turn."""
        return self.rows[forward(self.residuals, k)]

    def held_out_errors(self, counts: list[int], folds: Sequence[Rows]) -> FloatArray:
        """Squared errors of greedy choices on validation points that had no part in them.

        On the points it is made on, a greedy choice looks better than any other however little it
        is worth. So it is made on four fifths of them and scored on the rest, five times over.

        Parameters
        ----------
        counts : list of int
            How many anchors.
        folds : sequence of array
            Which validation points are scored together, as ``Evidence.folds`` deals them out.

        Returns
        -------
        array of shape (len(counts), v)
            In squared units of the target.
        """
        twins, _, points = self.residuals.shape
        most = max(counts)
        twin = np.arange(most) % twins
        errors = np.empty((len(counts), points))
        for held in folds:
            seen = np.setdiff1d(np.arange(points), held)
            chosen = forward(np.ascontiguousarray(self.residuals[..., seen]), most)
            scored = self.residuals[twin[:, None], chosen[:, None], held]
            sums = scored.cumsum(axis=0, dtype=np.float64)
            for place, k in enumerate(counts):
                errors[place, held] = np.square(sums[k - 1] / k * self.scale)
        return errors


def greedy(pool: Pool, k: int, seed: int, evidence: Evidence | None) -> Rows:
    """Choose rows ``(k,)`` that lower the validation error, one after the other."""
    if evidence is None:
        raise InputError("greedy needs a fitted model and validation data")
    return Candidates.of(pool, k, seed, evidence).choose(k)


def within_memory(evidence: Evidence, rows: int, k: int, seed: int) -> Evidence:
    """Keep as many validation points as a table of residuals has room for."""
    entries = evidence.twins * min(rows, _most_rows(k))
    return evidence.thinned(max(FEWEST_TO_SCORE, _TABLE // entries), seed)


def forward(residuals: npt.NDArray[np.float32], k: int) -> Rows:
    """Choose from a table of residuals.

    Parameters
    ----------
    residuals : float32 array of shape (twins, c, v)
        Estimate less target, for each candidate and validation point.
    k : int
        At most ``c``.

    Returns
    -------
    array of shape (k,)
        Candidates, the first for the first twin, the second for the second, ...: the first ``j``
        are what a choice of ``j`` gives.
    """
    twins, count, points = residuals.shape
    chosen = np.empty(k, np.intp)
    taken = np.zeros(count, bool)
    total = np.zeros(points)
    # einsum, not BLAS: its sums do not depend on the number of threads, so neither does the choice.
    own = np.einsum("tcv,tcv->tc", residuals, residuals)
    for place in range(k):
        twin = place % twins
        # |total + r|^2 without the |total|^2 that all candidates share: one product for each.
        with_total = np.einsum("cv,v->c", residuals[twin], total.astype(np.float32))
        error = np.where(taken, np.inf, own[twin] + 2 * with_total)
        chosen[place] = best = int(np.argmin(error))
        taken[best] = True
        total += residuals[twin, best]
    return chosen


def _most_rows(k: int) -> int:
    return max(MOST_CANDIDATES, k)
