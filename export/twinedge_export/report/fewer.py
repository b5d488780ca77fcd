"""Packs with more or fewer anchors than the one that is exported: what do they take and give?"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from twinedge.anchors import METHODS, choose
from twinedge.anchors.evidence import Evidence
from twinedge.budget import Model, twin_bytes
from twinedge.learn.run import Run
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.reference import evaluate, quantise


class Size(NamedTuple):
    """A pack with so many anchors: bytes on a device, and error in units of the target."""

    anchors: int
    bytes: int
    rmse: float


def growing(twins: int, exported: int, most: int, by: int) -> list[int]:
    """Numbers of anchors to look at: 1, ``by``, ``by``^2, ... for each twin, and the exported."""
    counts = {exported}
    k = twins
    while k <= most:
        counts.add(k)
        k *= by
    return sorted(counts)


def sizes(
    run: Run,
    pack: Pack,
    shape: Model,
    exported: Array,
    counts: Sequence[int],
    method: str,
    points: tuple[Array, Array],
    *,
    unseen: bool,
    seed: int,
    say: Callable[[str], None],
) -> list[Size]:
    """Swap the anchors of a pack for others, and score each pack as a device would compute it.

    Parameters
    ----------
    run : Run
        Where the pack comes from.
    pack : Pack
        As exported.
    shape : Model
        The same as the calculator counts it.
    exported : array of shape (k,)
        Its training rows; twin ``t`` owns every ``twins``-th from ``t`` on.
    counts : sequence of int
        Numbers of anchors; those with which a model of neighbours would predict from far ones are
        left out.
    method : str
        How anchors are chosen.
    points : (X, y)
        Points to score on.
    unseen : bool
        Whether these took no part in the choice of anchors. Where they are the validation rows, a
        method that looks at those chooses on some of them and is scored on the rest, in turn.
    """
    model, twins = run.model, shape.twins
    X, y = points
    everything = np.arange(len(y))
    folds = [everything]
    if not unseen and METHODS[method].looks:
        folds = Evidence.of(model, points).folds(seed)

    def chosen(k: int, seen: Array) -> Array:
        if k == len(exported) and len(folds) == 1:
            return exported
        validation = run.validation if len(folds) == 1 else (X[seen], y[seen])
        given = model.anchor_X_, model.anchor_y_, k, method
        return choose(*given, model=model, validation=validation, twins=twins, seed=seed).rows

    found = []
    for k in counts:
        if pack.trained_on_neighbors and k <= twins * pack.neighbors:
            continue
        say(f"Judging {k} anchors")
        error = np.empty(len(y))
        for held in folds:
            other = with_anchors(run, pack, chosen(k, np.setdiff1d(everything, held)))
            error[held] = evaluate(other, X[held]).mean - y[held]
        rmse = float(np.sqrt(np.mean(np.square(error))))
        found.append(Size(k, twin_bytes(shape.with_anchors(k)), rmse))
    return found


def with_anchors(run: Run, pack: Pack, rows: Array) -> Pack:
    """Give a pack other anchors; twin ``t`` owns ``rows[t::twins]``."""
    twins = len(pack.twins)
    shares = [rows[t::twins] for t in range(twins)]
    order = np.concatenate(shares)
    units = (run.model.anchor_y_[order] - float(pack.y_offset)) / float(pack.y_gain)
    return replace(
        pack,
        anchors=quantise(pack, run.model.anchor_X_[order]),
        targets=np.rint(units).astype(np.int32),
        counts=np.array([len(share) for share in shares], np.uint16),
        ids=order.astype(np.uint32),
    )
