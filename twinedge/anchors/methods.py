"""The ways to choose anchors, by name."""

from collections.abc import Callable
from dataclasses import dataclass

from twinedge.anchors import picks
from twinedge.anchors.evidence import Evidence
from twinedge.anchors.greedy import greedy
from twinedge.anchors.matching import match
from twinedge.anchors.pool import Pool, Rows
from twinedge.errors import InputError

Choose = Callable[[Pool, int, int, Evidence | None], Rows]


@dataclass(frozen=True)
class Method:
    """One way to choose anchors.

    Parameters
    ----------
    summary : str
        What it takes, in a few words.
    choose : function
        Given the pool, how many, a seed and the evidence: rows ``(k,)``, twin ``t`` owning
        ``rows[t::twins]``.
    asks : bool
        Whether it needs the model; where not, the evidence may be None.
    looks : bool
        Whether it needs validation data, too, and so could be misled by them.
    """

    summary: str
    choose: Choose
    asks: bool = False
    looks: bool = False


def _alone(pick: picks.Pick) -> Choose:
    """Choose by the training points alone."""
    return lambda pool, k, seed, evidence: picks.deal_out(pick, pool, k, seed)


METHODS: dict[str, Method] = {
    "random": Method("any points", _alone(picks.random)),
    "medoids": Method("the middles of clusters of the features", _alone(picks.medoids)),
    "farthest": Method("points as far apart as can be", _alone(picks.farthest)),
    "stratified": Method("one point from each range of the target", _alone(picks.stratified)),
    "xy": Method("the middles of clusters of features and target", _alone(picks.xy)),
    "match": Method("points that say together what all say", match, asks=True),
    "greedy": Method(
        "one by one what lowers the validation error most", greedy, asks=True, looks=True
    ),
}


def method_named(name: str, *others: str) -> Method:
    """Look a method up; ``others`` are names that would have been right, too."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    known = ", ".join([*others, *METHODS])
    raise InputError(f"{name!r} is not a way to choose anchors; the ways are {known}")
