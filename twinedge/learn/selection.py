"""Choosing activation, learning rate, weight decay and length of training on validation data.

Candidates race in rounds, each round longer and with fewer of them. In the early rounds every
network holds out a part of the training rows besides the validation set, a different part in each
round: a choice among a dozen networks by a few dozen validation points would be a choice by luck.
They are ranked by how they end, not by the best they had on the way: a setting that overfits in a
short round will do so more in a long one.

The last round trains on all training rows, at several lengths, for a noisy target is learnt best in
less time. Activations are compared there alone: in a short race relu wins even where silu ends far
ahead. ``distilling.py`` goes on from there.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.network import FloatArray
from twinedge.learn.progress import Progress
from twinedge.learn.tasks import BATCH
from twinedge.learn.trainer import Setting
from twinedge.learn.training import Interrupted, Job, Task, Trained, train

# What did best somewhere among the paper's data sets: strong decay for noisy targets, hardly any
# for a target without noise.
SETTINGS = (
    Setting(1e-2, 0.003),
    Setting(1e-2, 0.03),
    Setting(1e-2, 0.3),
    Setting(3e-3, 0.03),
    Setting(3e-3, 0.3),
)

# Few rows are met again and again and learnt to the last digit. That takes steady steps: a larger
# batch and a low learning rate. Such steps are behind in a short race, so there is none; and decay
# too shows late whether it is wanted.
_FEW_ROWS = 400
_STEADY = (Setting(3e-3, 0.01), Setting(3e-3, 0.3))
_STEADY_BATCH = 2 * BATCH


class Candidate(NamedTuple):
    """One way to train: an activation and a setting."""

    activation: str
    setting: Setting


@dataclass(frozen=True)
class Plan:
    """How much work a training may take.

    Parameters
    ----------
    rounds : tuple of (int, int)
        Steps of each early round, and how many settings of each activation survive it.
    lengths : tuple of int
        Steps of the last round: each is tried.
    pupil : int
        Steps of the network that learns from those of the last round; 0 for none.
    settings : tuple of Setting
        Learning rates and weight decays to choose from.
    batch : int
        Examples per step.
    few_rows : Plan, optional
        What to do instead where training rows are few.
    """

    rounds: tuple[tuple[int, int], ...]
    lengths: tuple[int, ...]
    pupil: int = 0
    settings: tuple[Setting, ...] = SETTINGS
    batch: int = BATCH
    few_rows: "Plan | None" = None

    def given(self, rows: int) -> "Plan":
        """Return the plan for so many training rows."""
        return self.few_rows if self.few_rows and rows < _FEW_ROWS else self

    def ending_at(self, steps: int) -> "Plan":
        """Shrink or stretch the plan so that it ends with just so many steps on the rows alone."""
        share = steps / max(self.lengths)
        rounds = tuple((max(1, round(length * share)), keep) for length, keep in self.rounds)
        return Plan(rounds, (steps,))


def _steady(steps: int) -> Plan:
    return Plan((), (steps,), steps, _STEADY, _STEADY_BATCH)


PLANS = {
    "quick": Plan(rounds=((1_000, 1),), lengths=(8_000, 2_000)),
    "normal": Plan(
        rounds=((2_000, 2), (5_000, 1)),
        lengths=(30_000, 10_000, 3_000),
        pupil=20_000,
        few_rows=_steady(30_000),
    ),
    "thorough": Plan(
        rounds=((4_000, 3), (10_000, 2)),
        lengths=(60_000, 20_000, 6_000),
        pupil=40_000,
        few_rows=_steady(60_000),
    ),
}


@dataclass(frozen=True)
class Choice:
    """The outcome: a candidate, its networks and how it was found.

    Parameters
    ----------
    candidate : Candidate
        Activation and setting chosen.
    weights : array of shape (c, size)
        The trained networks.
    steps : int
        Length of their training.
    trials : list of dict
        Every network trained, with its validation RMSE.
    finalists : list of Trained
        The networks of the last round that was run.
    score : float
        Their validation RMSE, in units of the target, as the training looks at it.
    interrupted : bool
        Whether the user stopped the training early.
    """

    candidate: Candidate
    weights: FloatArray
    steps: int
    trials: list[dict[str, Any]]
    finalists: list[Trained]
    score: float
    interrupted: bool = False


def choose(
    task: Task,
    candidates: list[Candidate],
    plan: Plan,
    *,
    networks: int,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
) -> Choice:
    """Race the candidates and train ``networks`` networks of the winner.

    Whenever the user stops it, the best network so far is the outcome, from the first look on.
    """
    trials: list[dict[str, Any]] = []
    latest: list[Trained] = []

    def race(stage: str, jobs: list[Job]) -> list[Trained]:
        try:
            results = train(
                task, jobs, stage=stage, seed=seed, progress=progress, checkpoint=checkpoint
            )
        except Interrupted as stop:
            trials.extend(record(stage, stop.results))
            raise
        except KeyboardInterrupt:  # while there was nothing new to keep yet
            if not latest:
                raise
            raise Interrupted(latest) from None
        trials.extend(record(stage, results))
        latest[:] = results
        return results

    for fold, (steps, survivors) in enumerate(plan.rounds):
        rivals = Counter(one.activation for one in candidates)
        if max(rivals.values()) <= survivors:
            continue
        jobs = [Job(*one, steps, seed, fold) for one in candidates]
        try:
            results = race(f"round {fold + 1}", jobs)
        except Interrupted as stop:
            winner = min(stop.results, key=_score)
            return _chosen([winner], trials, stop.results, interrupted=True)
        candidates = []
        for _, group in groupby(results, key=lambda one: one.job.activation):
            best = sorted(group, key=lambda one: one.last_score)[:survivors]
            candidates += [Candidate(one.job.activation, one.job.setting) for one in best]
    finalists = [
        Job(*one, steps, seed + number)
        for one in candidates
        for steps in plan.lengths
        for number in range(networks)
    ]
    interrupted = False
    try:
        results = race("final round", finalists)
    except Interrupted as stop:
        results, interrupted = stop.results, True
    if results is latest and interrupted:  # they are those of the round before
        return _chosen([min(results, key=_score)], trials, results, interrupted)
    groups = [results[i : i + networks] for i in range(0, len(results), networks)]
    winners = min(groups, key=lambda group: sum(map(_score, group)))
    return _chosen(winners, trials, results, interrupted)


def _score(one: Trained) -> float:
    return one.score


def _chosen(
    networks: list[Trained],
    trials: list[dict[str, Any]],
    finalists: list[Trained],
    interrupted: bool = False,
) -> Choice:
    job = networks[0].job
    weights = np.stack([one.weights for one in networks])
    candidate = Candidate(job.activation, job.setting)
    score = float(np.mean([one.score for one in networks]))
    return Choice(candidate, weights, job.steps, trials, finalists, score, interrupted)


def record(stage: str, networks: list[Trained]) -> list[dict[str, Any]]:
    """Return what a round has to show: each network with its validation RMSE."""
    return [
        {
            "stage": stage,
            "activation": one.job.activation,
            "learning_rate": one.job.setting.learning_rate,
            "weight_decay": one.job.setting.weight_decay,
            "steps": one.job.steps,
            "rmse_val": one.score,
        }
        for one in networks
    ]
