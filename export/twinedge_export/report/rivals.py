"""Ensembles of ordinary networks that take as many bytes as the twin: how good are they?

They are trained as ``AnnRegressor`` is, the members of an ensemble side by side. Their weights stay
floats, which flatters them; their bytes are counted as if rounded.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from twinedge.budget import Model, ann_bytes
from twinedge.budget.limits import largest
from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.progress import Silent
from twinedge.learn.run import Run
from twinedge.learn.selection import SETTINGS, Candidate, Plan, choose
from twinedge.learn.tasks import PointTask
from twinedge.pack.contents import Array
from twinedge.pack.layout import MAX_WIDTH

MEMBERS = (1, 2, 4, 8)
STEPS = 4000
_RACE = 0.2  # a race of settings takes this part of the steps


class Rival(NamedTuple):
    """An ensemble of ordinary networks: bytes as ``ann_bytes`` counts, error as the twin's."""

    members: int
    hidden: tuple[int, ...]
    bytes: int
    rmse: float


def rivals(
    run: Run,
    model: Model,
    budget: int,
    points: tuple[Array, Array],
    *,
    steps: int,
    seed: int,
    say: Callable[[str], None],
) -> list[Rival]:
    """Train an ensemble of each size with the widest networks that fit.

    Parameters
    ----------
    run : Run
        Its training points train, its validation points choose learning rate and weight decay.
    model : Model
        The twin: activation, number of layers and proportions of their widths are its own.
    budget : int
        Bytes that an ensemble may take.
    points : (X, y)
        Points to score on.
    steps : int
        Length of the training.
    """
    found = []
    for members in MEMBERS:
        shape = widest(model, members, budget)
        if shape is None:
            continue
        say(f"Training {members} ordinary network{'s' * (members > 1)} of the same bytes")
        predicted = _train(run, shape.hidden, members, points[0], steps, seed)
        rmse = float(np.sqrt(np.mean(np.square(predicted - points[1]))))
        found.append(Rival(members, shape.hidden, ann_bytes(shape, members), rmse))
    return found


def widest(model: Model, members: int, budget: int) -> Model | None:
    """Stretch or shrink the layers until so many ordinary networks just fit; None if none do."""

    def stretched(width: int) -> Model:
        first = model.hidden[0]
        hidden = tuple(max(1, width * each // first) for each in model.hidden)
        return replace(model, hidden=hidden)

    most = MAX_WIDTH * model.hidden[0] // max(model.hidden)
    width = largest(lambda w: ann_bytes(stretched(w), members) <= budget, most)
    return stretched(width) if width else None


def _train(
    run: Run, hidden: tuple[int, ...], members: int, X: Array, steps: int, seed: int
) -> Array:
    """Predictions ``(n,)`` of a trained ensemble."""
    twin, scaling = run.model, run.model.scaling_
    rows = [np.concatenate(pair) for pair in zip(_training(run), run.validation, strict=True)]
    task = PointTask(
        x=scaling.features(rows[0]),
        y=scaling.target(rows[1]),
        train=len(twin.anchor_y_),
        scale=scaling.y_scale,
        hidden=hidden,
    )
    choice = choose(
        task,
        [Candidate(twin.activation_, setting) for setting in SETTINGS],
        Plan(rounds=((max(1, round(_RACE * steps)), 1),), lengths=(steps,)),
        networks=members,
        seed=seed,
        progress=Silent(),
        checkpoint=Checkpoint(None),
    )
    if choice.interrupted:
        raise KeyboardInterrupt
    architecture = task.architecture(twin.activation_)
    x = np.broadcast_to(scaling.features(X), (members, *X.shape))
    scaled = architecture.forward(choice.weights, x).numpy().astype(np.float64).mean(axis=0)
    predicted: Array = scaled * scaling.y_scale + scaling.y_mean
    return predicted


def _training(run: Run) -> tuple[Array, Array]:
    return run.model.anchor_X_, run.model.anchor_y_
