"""Ordinary networks and trees that take as many bytes as the twin: how good are they?

Networks are trained as ``AnnRegressor`` is, the members of an ensemble side by side. Their weights
stay floats, which flatters them; their bytes are counted as if rounded.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from twinedge.budget import Model, ann_bytes
from twinedge.budget.limits import largest
from twinedge.learn.baselines import compare
from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.progress import Silent
from twinedge.learn.run import Run
from twinedge.learn.selection import SETTINGS, Candidate, Plan, choose
from twinedge.learn.small_trees import fit_small_trees
from twinedge.learn.tasks import PointTask
from twinedge.pack.contents import Array
from twinedge.pack.layout import MAX_WIDTH

MEMBERS = (1, 2, 4, 8)
STEPS = 4000
_RACE = 0.2  # settings are compared by networks of this part of the steps


class Rival(NamedTuple):
    """An ensemble of ordinary networks: bytes as ``ann_bytes`` counts, error as the twin's."""

    members: int
    hidden: tuple[int, ...]
    bytes: int
    rmse: float


class Trees(NamedTuple):
    """Trees as emlearn stores them, and whether they are "better", "worse" or "as good".

    ``family`` is that of ``twinedge.learn.small_trees``; a tree has at most so many ``leaves``.
    """

    family: str
    trees: int
    leaves: int
    bytes: int
    rmse: float
    than_the_twin: str


def trees(
    run: Run, budget: int, points: tuple[Array, Array], error: Array, seed: int
) -> Trees | None:
    """Grow trees that fit, chosen on the validation rows; None where there are no such rows.

    Parameters
    ----------
    run : Run
        What they learn from.
    budget : int
        Most bytes.
    points : (X, y)
        Points to score on: not the validation rows.
    error : array of shape (n,)
        Of the pack on them.
    """
    if not len(run.validation[1]):
        return None
    found = fit_small_trees(_training(run), run.validation, budget, few=True, seed=seed)
    if found is None:
        return None
    beside = compare(error, found.predict(points[0]) - points[1])
    word = "better" if beside.better else "worse" if beside.worse else "as good"
    family, leaves, *_ = found.setting
    return Trees(family, found.trees, leaves, found.bytes, beside.rmse, word)


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
        [Candidate(twin.activation_, setting) for setting in SETTINGS[twin.activation_]],
        Plan(folds=max(1, round(_RACE * steps)), final=steps),
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
