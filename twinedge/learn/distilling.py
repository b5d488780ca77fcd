"""Distilling several trained networks into one: their mean is better than most of them.

The networks of the last round name a target for points that nobody measured, half way at most from
one training row towards another. A fresh network learns from these points and the training rows
alike, and takes over the mean of its teachers between the rows, where each of them alone errs by
chance. That is a gain where they disagree (CS), and none where the target itself is noisy (WN).
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from twinedge.learn.backend import CORES
from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.examples import Examples
from twinedge.learn.network import Architecture, FloatArray
from twinedge.learn.progress import Progress
from twinedge.learn.selection import Candidate, Choice, record
from twinedge.learn.tasks import PairTask, PointTask
from twinedge.learn.training import Interrupted, Job, Trained, train

_MADE_UP = 8192  # points
_FARTHEST = 0.5  # part of the way from one row to another
_MEASURED = 0.6  # part of the examples that are training rows, where there are few of them
# The weight of a teacher is its validation error to this power. A poor one is all but silent,
# while those that differ by the luck of a few validation points count alike.
_POWER = -6
_SILENT = 0.01  # a weight not worth asking for
# What the teachers say holds a pupil back from fitting noise, so it may do with less decay.
_DECAYS = (1, 1 / 3)
# A pupil is no worse than its teachers are on average, unless they know what it could not learn: a
# target without noise, say. (It may well be worse than the best of them, who is the luckiest too.)
_WORTH_KEEPING = 1.1


def distil(
    task: PairTask | PointTask,
    choice: Choice,
    steps: int,
    *,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
) -> Choice:
    """Let a pupil learn from the networks of the last round.

    Parameters
    ----------
    task : PairTask or PointTask
        What those networks have learnt.
    choice : Choice
        How that ended.
    steps : int
        Length of a pupil's training.

    Returns
    -------
    Choice
        The better of two pupils, with activation, setting and length of the best network of the
        activation that was heard most; or the choice as it was, where no pupil is worth having.
    """
    teachers = choice.finalists
    if not any(np.isfinite(one.score) for one in teachers):
        return choice
    model = _most_heard(teachers)
    jobs = [
        replace(
            model,
            setting=replace(model.setting, weight_decay=share * model.setting.weight_decay),
            steps=steps,
            seed=model.seed + 1,
        )
        for share in _DECAYS
    ]
    try:
        lessons = Distillation.of(task, teachers, seed)
    except KeyboardInterrupt:
        return replace(choice, interrupted=True)
    stage, interrupted = "distillation", False
    try:
        pupils = train(
            lessons,
            jobs,
            stage=stage,
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
        )
    except Interrupted as stop:
        pupils, interrupted = stop.results, True
    except KeyboardInterrupt:  # before there was a pupil
        return replace(choice, interrupted=True)
    trials = choice.trials + record(stage, pupils)
    pupil = min(pupils, key=lambda one: one.score)
    expected = sum(v * one.score for v, one in zip(voices(teachers), teachers, strict=True) if v)
    if pupil.score > _WORTH_KEEPING * expected:
        return replace(choice, trials=trials, interrupted=interrupted)
    return Choice(
        Candidate(model.activation, model.setting),
        pupil.weights[None],
        model.steps,
        trials,
        pupils,
        pupil.score,
        interrupted,
    )


def _most_heard(teachers: list[Trained]) -> Job:
    """Return the best network's job of the activation whose networks have most to say."""
    heard: Counter[str] = Counter()
    for one, voice in zip(teachers, voices(teachers), strict=True):
        heard[one.job.activation] += voice
    activation = max(heard, key=lambda name: heard[name])
    return min(
        (one for one in teachers if one.job.activation == activation), key=lambda one: one.score
    ).job


@dataclass(frozen=True)
class Distillation:
    """The task of a pupil: what its teachers had to learn, and what they say of other points.

    Parameters
    ----------
    task : PairTask or PointTask
        The task of the teachers.
    x : array of shape (m, f)
        Scaled points that were made up.
    y : array of shape (m,)
        What the teachers say of them, scaled.
    """

    task: PairTask | PointTask
    x: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, task: PairTask | PointTask, teachers: list[Trained], seed: int) -> "Distillation":
        """Ask the teachers about points between the training rows."""
        rng = np.random.default_rng([seed, 2])
        first, second = rng.integers(0, task.train, (2, _MADE_UP))
        share = _FARTHEST * rng.random((_MADE_UP, 1), np.float32)
        x = task.x[first] + share * (task.x[second] - task.x[first])
        weights = voices(teachers)
        heard = [k for k, weight in enumerate(weights) if weight]

        def ask(k: int) -> FloatArray:
            job, network, *_ = teachers[k]
            architecture = task.architecture(job.activation)
            said = task.predict(architecture, network[None], x[None], [job])[0]
            return np.asarray(weights[k] * said)

        with ThreadPoolExecutor(CORES) as pool:
            y = sum(pool.map(ask, heard))
        return cls(task, x, np.asarray(y, np.float32))

    @property
    def batch(self) -> int:
        """Examples per step."""
        return self.task.batch

    def architecture(self, activation: str) -> Architecture:
        """Shape of the pupils: that of their teachers."""
        return self.task.architecture(activation)

    def examples(self, jobs: list[Job]) -> Examples:
        """Training rows, repeated where they are few, and the points that were made up."""
        task, made_up = self.task, len(self.y)
        times = max(1, round(made_up * _MEASURED / (1 - _MEASURED) / task.train))
        others = np.arange(len(task.y), len(task.y) + made_up)
        rows = []
        for job in jobs:
            mine = np.concatenate([np.tile(task.rows(job), times), others])
            rows.append(np.random.default_rng([job.seed, 3]).permutation(mine))
        x, y = np.concatenate([task.x, self.x]), np.concatenate([task.y, self.y])
        return task.widened(x, y, np.stack(rows).astype(np.int32))

    def score(self, architecture: Architecture, stack: FloatArray, jobs: list[Job]) -> FloatArray:
        """RMSE on the validation rows, as for the teachers."""
        return self.task.score(architecture, stack, jobs)


def voices(teachers: list[Trained]) -> FloatArray:
    """Weights of the teachers, by their validation errors; they add up to 1.

    Parameters
    ----------
    teachers : list of Trained
        At least one of them with a finite error.
    """
    errors = np.maximum([one.score for one in teachers], np.finfo(np.float64).tiny)
    weights: FloatArray = (errors / errors.min()) ** _POWER
    weights[weights < _SILENT * weights.sum()] = 0
    return np.asarray(weights / weights.sum())
