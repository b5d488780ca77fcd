"""The ways to choose anchors, by name.

Methods that look only at the training points take scaled points ``x`` of shape (n, f), scaled
targets ``y`` of shape (n,), how many to choose, and a generator, and return that many distinct
rows.

``greedy`` adds the anchor that lowers the validation error most. ``match`` uses no target: a twin
does best with all anchors, and what they estimate is known at any point. So it chooses anchors
whose estimates at training points have the same mean and the same spread as those of all anchors.
Matching the mean alone would choose anchors that never differ from it, and the device would be more
confident than the model. No target is looked at, so no choice is good by luck.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from twinedge.anchors.pool import (
    FOLDS,
    Evidence,
    Pool,
    on_one_core,
    squared_distances,
)
from twinedge.anchors.rows import FloatArray, Rows, merge_twins
from twinedge.deprecation import warn_deprecated
from twinedge.errors import InputError

# Distances per pass above which k-means takes seconds. With that many, clusters are small: where
# they start and whether the last of them converges hardly changes which points they represent.
_LARGE = 2_000_000


def central_points(points: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Rows of ``k`` points, each the one nearest to the centre of a k-means cluster.

    Parameters
    ----------
    points : array of shape (n, d)
        On one scale; some may be equal.
    k : int
        At most ``n``.
    rng : Generator
        Seeds k-means.

    Returns
    -------
    array of shape (k,)
        Distinct rows, even if there are fewer than ``k`` distinct points.
    """
    # Equal points cannot be told apart by distance, so k-means sees each once, with a weight.
    first, group, copies = _distinct(points)
    if k >= len(first):
        return _copy_by_copy(group, copies, k, rng)
    labels, distance = _clusters(points[first], copies, k, rng)
    nearest_first = np.lexsort((distance, labels))
    _, starts = np.unique(labels[nearest_first], return_index=True)
    chosen = nearest_first[starts]
    if len(chosen) < k:
        # Points that differ by less than rounding can leave a cluster empty: add the points
        # farthest from their centres instead.
        others = np.setdiff1d(np.arange(len(first)), chosen)
        order = np.argsort(-distance[others], kind="stable")
        chosen = np.concatenate([chosen, others[order[: k - len(chosen)]]])
    return first[chosen]


def _distinct(points: FloatArray) -> tuple[Rows, Rows, Rows]:
    """First row of each distinct point, the distinct point of each row, and how often each occurs.

    In the order of the rows, not sorted by value: the choice must not depend on which feature
    happens to be the first column, or on its sign.
    """
    _, first, group, copies = np.unique(
        points, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group.reshape(-1)], copies[order]  # numpy 2.0: group is (n, 1)


def _copy_by_copy(group: Rows, copies: Rows, k: int, rng: np.random.Generator) -> Rows:
    """One row of every distinct point, then a second row of those that have a copy, and so on."""
    order = np.lexsort((rng.random(len(group)), group))
    starts = np.cumsum(copies) - copies
    copy = np.empty(len(group), np.intp)
    copy[order] = np.arange(len(group)) - np.repeat(starts, copies)
    return np.lexsort((rng.random(len(group)), copy))[:k]


def _clusters(
    points: FloatArray, weights: Rows, k: int, rng: np.random.Generator
) -> tuple[Rows, FloatArray]:
    """Cluster of each point ``(n,)``, and its squared distance from the centre ``(n,)``."""
    large = k * len(points) > _LARGE
    search = KMeans(
        k,
        init="random" if large else "k-means++",
        n_init=1 if large else 4,
        max_iter=20 if large else 100,
        random_state=int(rng.integers(2**31)),
    )
    # Threads add up the centres in the order they finish, and the last bit of a sum can decide
    # which of two points is nearer: the same seed could give different anchors on other machines.
    with on_one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels: Rows = search.fit(points, sample_weight=weights).labels_.astype(np.intp)
    return labels, squared_distances(points, search.cluster_centers_[labels])


Pick = Callable[[FloatArray, FloatArray, int, np.random.Generator], Rows]

_WEIGHT_OF_TARGET = 2.0  # in clusters of (x, y): best on noisy sets


def pick_per_twin(pick: Pick, pool: Pool, k: int, seed: int) -> Rows:
    """Let each twin in turn choose its share from the rows that are left.

    A twin only ever sees its own anchors, so each share must cover the data by itself; a good set
    of ``k`` that is shared afterwards need not split into good sets of ``k / twins``.

    Returns
    -------
    array of shape (k,)
        Twin ``t`` owns ``rows[t::twins]``.
    """
    rng = np.random.default_rng(seed)
    left = pool.eligible(k, seed)
    shares = []
    for _ in range(pool.twins):
        picked = pick(pool.x[left], pool.y[left], k // pool.twins, rng)
        shares.append(left[picked])
        left = np.delete(left, picked)
    return merge_twins(shares)


def random(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Any points."""
    return rng.permutation(len(y))[:k]


def medoids(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Points in the middle of clusters of ``x``."""
    return central_points(x, k, rng)


def xy(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Points in the middle of clusters of ``(x, 2 y)``.

    An anchor's noise enters every prediction; an anchor in the middle of a cluster that includes
    the target has little of it.
    """
    return central_points(np.column_stack([x, _WEIGHT_OF_TARGET * y]), k, rng)


def stratified(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """One point from the middle of each of ``k`` equally full ranges of the target.

    Of several targets, ranges are along the direction in which they vary most.
    """
    if y.ndim == 2:
        y = y @ np.linalg.svd(y - y.mean(axis=0), full_matrices=False)[2][0]
    # Equal targets are shuffled: in the order of the table they could all be alike.
    order = np.lexsort((rng.random(len(y)), y))
    return np.array([part[len(part) // 2] for part in np.array_split(order, k)], np.intp)


def farthest(x: FloatArray, y: FloatArray, k: int, rng: np.random.Generator) -> Rows:
    """Points as far apart as possible: start in the middle, then add the farthest from the rest."""
    rows = np.empty(k, np.intp)
    distance = -squared_distances(x, x.mean(axis=0))
    for place in range(k):
        rows[place] = row = int(np.argmax(distance))
        apart = squared_distances(x, x[row])
        distance = apart if place == 0 else np.minimum(distance, apart)
        distance[rows[: place + 1]] = -1.0  # below a copy of a chosen point, which is at 0
    return rows


MOST_CANDIDATES = 2_000
# With fewer, a fold has three points or less, and its score is chance.
FEWEST_TO_SCORE = 4 * FOLDS

_TABLE = 1 << 25  # residuals kept: 128 MB, and as much again while a fold is left out


@dataclass(frozen=True)
class Candidates:
    """Rows to choose from, and what each would predict.

    Parameters
    ----------
    rows : array of shape (c,)
        Training rows.
    residuals : float32 array of shape (twins, c, v)
        Each twin's estimate from each of them, minus the target, at each validation point.
    evidence : Evidence
        Knows these points.
    """

    rows: Rows
    residuals: npt.NDArray[np.float32]
    evidence: Evidence

    @classmethod
    def of(cls, pool: Pool, k: int, seed: int, evidence: Evidence) -> "Candidates":
        """Let the model estimate from all rows or, if there are many, from medoids of them."""
        _check_averaging("greedy", evidence)
        if evidence.targets > 1:
            raise InputError("greedy looks at the errors of one target; use match or xy")
        rows = np.arange(len(pool))
        if len(rows) > (most := _most_rows(k)):
            rows = pool.eligible(most, seed)
            picked = medoids(pool.x[rows], pool.y[rows], most, np.random.default_rng(seed))
            rows = np.sort(rows[picked])
        evidence = within_memory(evidence, len(pool), k, seed)
        return cls(rows, evidence.residuals(rows), evidence)

    def choose(self, k: int) -> Rows:
        """Rows ``(k,)`` in the order they are chosen; the twins choose in turn."""
        return self.rows[forward(self.residuals, k)]

    def held_out_errors(self, counts: list[int], folds: Sequence[Rows]) -> FloatArray:
        """Squared errors of greedy choices on validation points they were not made on.

        On the points it is made on, a greedy choice looks better than any other, however poor it
        is. So it is made on four fifths of them and scored on the rest, five times over.

        Parameters
        ----------
        counts : list of int
            Numbers of anchors.
        folds : sequence of array
            Validation points that are scored together, as returned by ``Evidence.folds``.

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
                errors[place, held] = self.evidence.squared(sums[k - 1] / k, held)
        return errors


def greedy(pool: Pool, k: int, seed: int, evidence: Evidence | None) -> Rows:
    """Choose rows ``(k,)`` one by one, each to lower the validation error most."""
    assert evidence is not None  # it needs a model and validation data
    return Candidates.of(pool, k, seed, evidence).choose(k)


def _check_averaging(method: str, evidence: Evidence) -> None:
    if evidence.neighbors:
        raise InputError(
            f"{method} needs a model that averages all its anchors, but this one was trained on "
            "neighbors; use medoids or farthest"
        )


def within_memory(evidence: Evidence, rows: int, k: int, seed: int) -> Evidence:
    """Keep as many validation points as a table of residuals has room for."""
    entries = evidence.twins * min(rows, _most_rows(k))
    return evidence.thinned(max(FEWEST_TO_SCORE, _TABLE // entries), seed)


def forward(residuals: npt.NDArray[np.float32], k: int) -> Rows:
    """Choose from a table of residuals.

    Parameters
    ----------
    residuals : float32 array of shape (twins, c, v)
        Estimate minus target, for each candidate and validation point.
    k : int
        At most ``c``.

    Returns
    -------
    array of shape (k,)
        Candidates, assigned to the twins in turn. The first ``j`` are the choice for ``k = j``.
    """
    twins, count, points = residuals.shape
    chosen = np.empty(k, np.intp)
    taken = np.zeros(count, bool)
    total = np.zeros(points)
    # einsum, not BLAS: its sums, and so the choice, do not depend on the number of threads.
    own = np.einsum("tcv,tcv->tc", residuals, residuals)
    for place in range(k):
        twin = place % twins
        # |total + r|^2 without the |total|^2 that all candidates share: one product each.
        with_total = np.einsum("cv,v->c", residuals[twin], total.astype(np.float32))
        error = np.where(taken, np.inf, own[twin] + 2 * with_total)
        chosen[place] = best = int(np.argmin(error))
        taken[best] = True
        total += residuals[twin, best]
    return chosen


def _most_rows(k: int) -> int:
    return max(MOST_CANDIDATES, k)


_MOST_QUERIES = 500
_DIFFERENCES = 1 << 25  # numbers kept: 128 MB
_SQUARES = 0.25  # weight of the spread relative to the mean
_EXCHANGES = 512  # anchors reconsidered once all are chosen


@dataclass(frozen=True)
class Differences:
    """How each candidate's estimates differ from what all anchors estimate.

    Parameters
    ----------
    rows : array of shape (c,)
        Training rows to choose from.
    table : float32 array of shape (twins, c, 2 q)
        For each twin and candidate: how far its estimates at ``q`` points are from the mean of all,
        and how much the squares of these differences exceed their mean.
    """

    rows: Rows
    table: npt.NDArray[np.float32]

    @classmethod
    def of(cls, pool: Pool, k: int, seed: int, evidence: Evidence) -> "Differences":
        """Let the model estimate training points from each other, or a sample if there are many."""
        _check_averaging("match", evidence)
        rng = np.random.default_rng(seed)
        rows, weights = pool.represented(max(MOST_CANDIDATES, k), k, rng)
        room = _DIFFERENCES // (2 * evidence.twins * len(rows) * evidence.targets)
        queries, _ = pool.represented(max(1, min(_MOST_QUERIES, room)), 1, rng)
        off = evidence.at_training_points(queries).residuals(rows)

        def of_all(each: FloatArray) -> FloatArray:
            if weights is None:
                return np.asarray(each.mean(axis=(0, 1), dtype=np.float64))
            return np.average(each.mean(axis=0, dtype=np.float64), axis=0, weights=weights)

        off -= of_all(off).astype(np.float32)
        squares = np.square(off)
        spread = of_all(squares)
        squares -= spread.astype(np.float32)
        squares *= _SQUARES / (np.sqrt(spread.mean()) or 1.0)
        return cls(rows, np.concatenate([off, squares], axis=2))

    def choose(self, k: int) -> Rows:
        """Rows ``(k,)`` whose differences cancel; the twins choose in turn."""
        return self.rows[exchanged(self.table, forward(self.table, k))]


def match(pool: Pool, k: int, seed: int, evidence: Evidence | None) -> Rows:
    """Choose rows ``(k,)`` whose estimates have the mean and the spread of all."""
    assert evidence is not None  # it needs a model
    return Differences.of(pool, k, seed, evidence).choose(k)


def exchanged(table: npt.NDArray[np.float32], chosen: Rows) -> Rows:
    """Replace candidates one by one if there is a better one, given the others.

    Parameters
    ----------
    table : float32 array of shape (twins, c, d)
        The differences that should cancel.
    chosen : array of shape (k,)
        Candidates, assigned to the twins in turn.
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


Choose = Callable[[Pool, int, int, Evidence | None], Rows]


@dataclass(frozen=True)
class Method:
    """One way to choose anchors.

    Parameters
    ----------
    summary : str
        What it chooses, in a few words.
    choose : function
        Takes the pool, how many, a seed and the evidence, and returns rows ``(k,)``; twin ``t``
        owns ``rows[t::twins]``.
    needs_model : bool
        Whether it needs the model; if not, the evidence may be None.
    needs_validation : bool
        Whether it also needs validation data, and so could be misled by them.
    """

    summary: str
    choose: Choose
    needs_model: bool = False
    needs_validation: bool = False

    @property
    def asks(self) -> bool:
        """Deprecated: ``needs_model``."""
        warn_deprecated("Method.asks", "needs_model")
        return self.needs_model

    @property
    def looks(self) -> bool:
        """Deprecated: ``needs_validation``."""
        warn_deprecated("Method.looks", "needs_validation")
        return self.needs_validation


def _alone(pick: Pick) -> Choose:
    """Make a method of one that looks only at the training points."""
    return lambda pool, k, seed, evidence: pick_per_twin(pick, pool, k, seed)


METHODS: dict[str, Method] = {
    "random": Method("any points", _alone(random)),
    "medoids": Method("points nearest to the centres of clusters of the features", _alone(medoids)),
    "farthest": Method("points as far apart as possible", _alone(farthest)),
    "stratified": Method("one point from each range of the target", _alone(stratified)),
    "xy": Method("points nearest to the centres of clusters of features and target", _alone(xy)),
    "match": Method("points that together predict what all predict", match, needs_model=True),
    "greedy": Method(
        "one by one the point that lowers the validation error most",
        greedy,
        needs_model=True,
        needs_validation=True,
    ),
}


def method_named(name: str, *others: str) -> Method:
    """Look up a method; ``others`` are further valid names for the error message."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    known = ", ".join([*others, *METHODS])
    raise InputError(f"{name!r} is not a way to choose anchors; the ways are {known}")
