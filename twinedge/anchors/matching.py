"""Choosing anchors that together say what all of them would.

A twin does best with all anchors, and what they estimate is known at any point, whatever its
target. So anchors are chosen whose estimates have the mean that all have, at training points, and
the spread that all have: with the mean alone, those would be chosen that never differ from it, and
the device would be surer than the model is. No target is looked at, so no choice can be luck.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinedge.anchors.evidence import Evidence
from twinedge.anchors.greedy import MOST_CANDIDATES, forward
from twinedge.anchors.pool import Pool, Rows
from twinedge.errors import InputError

_MOST_QUERIES = 500
_TABLE = 1 << 25  # numbers kept: 128 MB
_SQUARES = 0.25  # weight of the spread beside the mean
_EXCHANGES = 512  # anchors looked at again once all are chosen


@dataclass(frozen=True)
class Differences:
    """How each candidate's estimates differ from what all anchors say.

    Parameters
    ----------
    rows : array of shape (c,)
        Training rows to choose from.
    table : float32 array of shape (twins, c, 2 q)
        For each twin and candidate: how far its estimates are from the mean of all at ``q`` points,
        and how much the squares of that exceed the mean of theirs.
    """

    rows: Rows
    table: npt.NDArray[np.float32]

    @classmethod
    def of(cls, pool: Pool, k: int, seed: int, evidence: Evidence) -> "Differences":
        """Let the model estimate training points from one another; from some, where many."""
        if evidence.neighbours:
            raise InputError(
                "match needs a model that averages all its anchors, and this one was trained on "
                "neighbors; use medoids or farthest"
            )
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.permutation(len(pool))[: max(MOST_CANDIDATES, k)])
        room = _TABLE // (2 * evidence.twins * len(rows))
        queries = np.sort(rng.permutation(len(pool))[: max(1, min(_MOST_QUERIES, room))])
        model = evidence.model
        at_queries = Evidence(model, model.anchor_X_[queries], model.anchor_y_[queries])
        off = at_queries.residuals(rows)
        off -= off.mean(axis=(0, 1), dtype=np.float64).astype(np.float32)
        squares = np.square(off)
        spread = squares.mean(axis=(0, 1), dtype=np.float64)
        squares -= spread.astype(np.float32)
        squares *= _SQUARES / (np.sqrt(spread.mean()) or 1.0)
        return cls(rows, np.concatenate([off, squares], axis=2))

    def choose(self, k: int) -> Rows:
        """Rows ``(k,)`` whose differences cancel; the twins choose in turn."""
        return self.rows[exchanged(self.table, forward(self.table, k))]


def match(pool: Pool, k: int, seed: int, evidence: Evidence | None) -> Rows:
    """Choose rows ``(k,)`` whose estimates have the mean and the spread of all."""
    if evidence is None:
        raise InputError("match needs a fitted model")
    return Differences.of(pool, k, seed, evidence).choose(k)


def exchanged(table: npt.NDArray[np.float32], chosen: Rows) -> Rows:
    """Replace one by one the candidates for which there is a better one, given the others.

    Parameters
    ----------
    table : float32 array of shape (twins, c, d)
        What is to cancel.
    chosen : array of shape (k,)
        Candidates, dealt out to the twins in turn.
    """
    chosen = chosen.copy()
    twins = len(table)
    twin = np.arange(len(chosen)) % twins
    total = table[twin, chosen].sum(axis=0, dtype=np.float64)
    own = np.einsum("tcd,tcd->tc", table, table)
    for _ in range(max(1, _EXCHANGES // len(chosen))):
        before = chosen.copy()
        for place, row in enumerate(before):
            mine = table[twin[place]]
            total -= mine[row]
            error = own[twin[place]] + 2 * np.einsum("cd,d->c", mine, total.astype(np.float32))
            error[np.delete(chosen, place)] = np.inf
            best = int(np.argmin(error))
            # Rounding must not decide between a candidate and itself.
            if error[best] < error[row]:
                chosen[place] = best
            total += mine[chosen[place]]
        if np.array_equal(chosen, before):
            break
    return chosen
