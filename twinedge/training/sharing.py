"""What it costs a target to share its networks with others.

Networks of several targets have the hidden layers in common: each target has fewer of their weights
to itself, and learns from what the others show of the features. Which of the two matters more is a
question of the table. When settings were compared, each training row was predicted by a network
that did not see it; for each target, as many networks of the same shape, setting and length are
trained on that target alone, and predict the same rows. Their errors say what networks of its own
would gain it.
"""

from typing import Any, NamedTuple

import numpy as np

from twinedge.progress import Progress
from twinedge.scoring.scores import rmse
from twinedge.scoring.weights import of_rows
from twinedge.training.batches import expected_seconds
from twinedge.training.network import FloatArray
from twinedge.training.selection import LONG_ENOUGH, Candidate, Plan, predict_held_out
from twinedge.training.tasks import Task
from twinedge.training.trainer import Checkpoint, Interrupted, train

_NOTICED = 1.02  # how many times as large an error must be to be worth a word
_CLEAR = 2.0  # standard errors by which squared errors must differ
_STAGE = "Networks of target {} alone"


class Sharing(NamedTuple):
    """Errors of a target on training rows that networks did not see, in its own units.

    ``shared`` is that of networks of all targets, ``alone`` that of as many networks that learn
    nothing else. ``suffers`` says whether the first is larger by more than 2 %, and by more than
    chance explains.
    """

    shared: float
    alone: float
    suffers: bool


def compare_sharing(
    task: Task,
    candidate: Candidate,
    shared: FloatArray,
    plan: Plan,
    scales: FloatArray,
    *,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
    threads: int = 1,
) -> list[dict[str, Any] | None] | None:
    """Compare networks of all targets with networks of each.

    Parameters
    ----------
    task : Task
        Of several targets.
    candidate : Candidate
        How networks were trained.
    shared : array of shape (n, m)
        What networks predicted for training rows that they did not see, scaled.
    plan : Plan
        Its folds say how long they were trained.
    scales : array of shape (m,)
        Units of each target in one scaled unit.
    seed, progress, checkpoint, threads
        As for ``train``.

    Returns
    -------
    list of dict or None
        For each target its ``Sharing``, as a dictionary; None for one that too few rows measured.
        None for all if the folds were too short to tell.
    """
    if plan.folds < LONG_ENOUGH:
        return None
    shape = task.batch_of(candidate.activation), task.architecture(candidate)
    stages = [_STAGE.format(target + 1) for target in range(task.targets)]
    progress.plan(dict.fromkeys(stages, expected_seconds(plan.folds * task.folds, *shape)))
    found: list[dict[str, Any] | None] = []
    for target, stage in enumerate(stages):
        rows, alone = task.measured(target), task.of_target(target)
        rows = rows[rows < task.train]
        if not alone.has_folds:
            found.append(None)
            continue
        jobs = [candidate.job(plan.folds, seed + k, k) for k in range(alone.folds)]
        try:
            networks = train(
                alone,
                jobs,
                stage=stage,
                seed=seed,
                progress=progress,
                checkpoint=checkpoint,
                threads=threads,
                looks=1,
            )
        except Interrupted as stop:
            raise KeyboardInterrupt from stop
        (own,) = predict_held_out(alone, [candidate], networks, task.x[:0])
        y = alone.y[: alone.train].astype(np.float64)
        errors = shared[rows, target] - y, own.rows - y
        each = of_rows(alone.weights, slice(alone.train))
        found.append(_compared(*errors, float(scales[target]), each)._asdict())
    return found


def _compared(
    shared: FloatArray, alone: FloatArray, scale: float, weights: FloatArray | None
) -> Sharing:
    """Compare scaled errors ``(n,)`` of the same rows."""
    both = rmse(shared, weights=weights), rmse(alone, weights=weights)
    loss = np.square(shared) - np.square(alone)
    if weights is not None:
        loss = loss * (weights / weights.mean())
    clear = loss.mean() > _CLEAR * loss.std() / np.sqrt(len(loss))
    suffers = bool(clear and both[0] > _NOTICED * both[1])
    return Sharing(both[0] * scale, both[1] * scale, suffers)
