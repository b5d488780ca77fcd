"""Choose activation, learning rate and weight decay, and whether to learn from teachers.

A choice among networks by a few dozen validation points is a choice by luck. So candidates are
compared on all training rows, each row by a network that did not see it: five folds, five networks
per candidate. They are compared row by row, by absolute errors, so that a single wild row does not
decide. Candidates that this cannot tell apart go on to the final round.

There, networks are trained on all training rows: once on the rows alone, and once on what teachers
say about them (``teachers.py``), which include the networks of the folds. The error on the
validation rows decides. Networks are judged by their last weights: better earlier ones, from before
they fitted noise, were picked on the same rows and look better than they are. Once a candidate is
chosen, it may still go back to them.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from twinedge.learn.network import FloatArray
from twinedge.learn.steps import Setting
from twinedge.learn.tasks import BATCH, FOLDS, PairTask, PointTask
from twinedge.learn.teachers import SHARE, Lessons, School, TaughtTask, Word
from twinedge.learn.training import Checkpoint, Interrupted, NetworkJob, Trained, train
from twinedge.progress import Progress

# One decay that lets a network follow the rows, and one that keeps it from fitting their noise.
# Teachers do that as well, and better: with them only the first is tried.
SETTINGS = {
    "relu": (Setting(1e-2, 0.03), Setting(1e-2, 0.3)),
    "silu": (Setting(1e-2, 0.001), Setting(1e-2, 0.1)),
}

# Thousands of rows cannot be memorised: larger batches, and more of them, pay off.
_MANY_ROWS, _MANY_BATCH, _MANY_LONGER = 3000, 4 * BATCH, 4 / 3
_UNSURE = 0.5  # standard errors within which activations are not told apart
# After few steps relu is ahead even where silu ends far ahead.
_LONG_ENOUGH = 8_000  # steps needed to compare activations


class Candidate(NamedTuple):
    """One way to train: an activation and a setting."""

    activation: str
    setting: Setting


@dataclass(frozen=True)
class Plan:
    """How much work a training may take.

    Parameters
    ----------
    folds : int
        Steps of each network that candidates are compared by.
    final : int
        Steps of the final networks.
    teachers : bool
        Whether there is time to ask teachers.
    batch : int
        Examples per step.
    """

    folds: int
    final: int
    teachers: bool = True
    batch: int = BATCH

    def given(self, rows: int) -> "Plan":
        """Return the plan for this many training rows."""
        if rows < _MANY_ROWS:
            return self
        return replace(self, final=round(self.final * _MANY_LONGER), batch=_MANY_BATCH)

    def ending_at(self, steps: int) -> "Plan":
        """Scale the plan so that the final training takes this many steps."""
        folds = max(1, round(self.folds * steps / self.final))
        return replace(self, folds=folds, final=steps, teachers=False)


PLANS = {
    "quick": Plan(folds=1_000, final=8_000, teachers=False),
    "normal": Plan(folds=16_000, final=30_000),
    "thorough": Plan(folds=30_000, final=80_000),
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
    score : float
        Validation RMSE of the networks together, in units of the target.
    teaching : dict or None
        Who taught, with what weight, and whether their predictions were used: ``share`` is the
        weight of the rows' own targets, 1 if nothing else was learnt from. None without teachers.
    interrupted : bool
        Whether the user stopped the training early.
    """

    candidate: Candidate
    weights: FloatArray
    steps: int
    trials: list[dict[str, Any]]
    score: float
    teaching: dict[str, Any] | None = None
    interrupted: bool = False


class _Finalist(NamedTuple):
    """Networks of one candidate, and whether they learnt from teachers."""

    networks: list[Trained]
    taught: bool
    score: float


def choose(
    task: PairTask | PointTask,
    candidates: list[Candidate],
    plan: Plan,
    *,
    networks: int,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
    school: School | None = None,
    threads: int = 1,
) -> Choice:
    """Compare the candidates and train ``networks`` networks of the best, on ``threads`` threads.

    If the user stops it, the best networks so far are the outcome, from the first look on.
    """
    trials: list[dict[str, Any]] = []
    latest: list[Trained] = []

    def race(what: Any, stage: str, jobs: list[NetworkJob]) -> list[Trained]:
        try:
            results = train(
                what,
                jobs,
                stage=stage,
                seed=seed,
                progress=progress,
                checkpoint=checkpoint,
                threads=threads,
            )
        except Interrupted as stop:
            trials.extend(record(stage, stop.results))
            raise
        except KeyboardInterrupt:  # before there was anything new to keep
            if not latest:
                raise
            raise Interrupted(latest) from None
        trials.extend(record(stage, results))
        latest[:] = results
        return results

    def stopped(stop: Interrupted) -> Choice:
        winner = min(stop.results, key=lambda one: one.score)
        return _chosen(_Finalist([winner], False, winner.score), trials, interrupted=True)

    lessons = None
    if task.has_folds and (school or len(candidates) > 1):
        jobs = [
            NetworkJob(*one, plan.folds, seed + k, k, goes_back=False)
            for one in candidates
            for k in range(FOLDS)
        ]
        try:
            scouts = race(task, "folds", jobs)
        except Interrupted as stop:
            return stopped(stop)
        try:
            points = school.points(task) if school else task.x[:0]
            words = _heard(task, candidates, scouts, points)
            unsure = _UNSURE if plan.folds >= _LONG_ENOUGH else np.inf
            candidates = _finalists(task, candidates, words, unsure)
            if school:
                lessons = school.lessons(task, points, words, progress.stage)
        except KeyboardInterrupt:
            return stopped(Interrupted(scouts))
    finals = [
        NetworkJob(*one, plan.final, seed + number)
        for one in candidates
        for number in range(networks)
    ]
    found: list[_Finalist] = []
    interrupted = False
    rounds: list[tuple[Any, str]] = [(task, "final round")]
    if lessons is not None:
        rounds.append((TaughtTask(task, lessons), "lessons"))
    for what, stage in rounds:
        try:
            results = race(what, stage, finals)
        except Interrupted as stop:
            if stop.results is latest:  # results of the previous round
                if not found:
                    return stopped(stop)
                interrupted = True
                break
            results, interrupted = stop.results, True
        for k in range(0, len(results), networks):
            group = results[k : k + networks]
            score = _judged(task, group, last=lessons is not None)
            found.append(_Finalist(group, what is not task, score))
        if interrupted:
            break
    if lessons is not None and task.train == len(task.y):
        found = [one for one in found if not one.taught]  # no rows were held out to judge it
    winner = min(found, key=lambda one: one.score)
    winner = winner._replace(score=_judged(task, winner.networks))
    return _chosen(winner, trials, lessons, interrupted)


def _heard(
    task: PairTask | PointTask,
    candidates: list[Candidate],
    scouts: list[Trained],
    points: FloatArray,
) -> list[Word]:
    """Predict with the networks of each candidate: rows they did not see, then all other points."""
    elsewhere = np.concatenate([task.x[task.train :], points])
    words = []
    for k, candidate in enumerate(candidates):
        mine = scouts[k * FOLDS : (k + 1) * FOLDS]
        architecture = task.architecture(candidate.activation)
        rows, rest = np.empty(task.train, np.float32), np.zeros(len(elsewhere), np.float32)
        for job, weights, *_ in mine:
            held = task.fold(job.fold or 0)
            asked = np.concatenate([task.x[held], elsewhere])
            said = task.predict(architecture, weights[None], asked[None], [job])[0]
            rows[held], rest = said[: len(held)], rest + said[len(held) :] / FOLDS
        words.append(Word(f"{candidate.activation} networks", rows, rest))
    return words


def _finalists(
    task: PairTask | PointTask, candidates: list[Candidate], words: list[Word], unsure: float
) -> list[Candidate]:
    """Return the best candidate, and the best of the other activation if it may be as good.

    It may be if it is behind by at most ``unsure`` standard errors.
    """
    off = np.abs(np.stack([word.rows for word in words]) - task.y[: task.train])
    off = np.where(np.isfinite(off), off, np.finfo(np.float32).max).astype(np.float64)
    best, *others = np.argsort(off.mean(axis=1), kind="stable")
    kept = [candidates[best]]
    for k in others:
        if candidates[k].activation in {one.activation for one in kept}:
            continue
        more = off[k] - off[best]
        if unsure == np.inf or more.mean() <= unsure * more.std() / np.sqrt(len(more)):
            kept.append(candidates[k])
    return kept


def _judged(task: PairTask | PointTask, networks: list[Trained], *, last: bool = False) -> float:
    """Return the validation RMSE of the mean of networks, with their best or last weights."""
    stack = np.stack([one.last if last else one.weights for one in networks])
    jobs = [one.job for one in networks]
    found = task.judge(task.architecture(jobs[0].activation), stack, jobs)
    return found if np.isfinite(found) else np.inf


def _chosen(
    one: _Finalist,
    trials: list[dict[str, Any]],
    lessons: Lessons | None = None,
    interrupted: bool = False,
) -> Choice:
    job = one.networks[0].job
    weights = np.stack([network.weights for network in one.networks])
    candidate = Candidate(job.activation, job.setting)
    teaching = None
    if lessons is not None:
        share = SHARE if one.taught else 1.0
        teaching = {"taught": one.taught, "share": share, "teachers": lessons.teachers}
    return Choice(candidate, weights, job.steps, trials, one.score, teaching, interrupted)


def record(stage: str, networks: list[Trained]) -> list[dict[str, Any]]:
    """Return the record of a round: each network with its validation RMSE."""
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
