"""Choose activation, learning rate and weight decay, and whether to learn from teachers.

A choice among networks by a few dozen validation points is a choice by luck. So candidates are
compared on all training rows, each row by a network that did not see it: five folds, five networks
per candidate. They are compared by mean absolute errors, so that a single wild row does not decide.

Networks of the best candidate are then trained on all training rows, and others on what teachers
say about them (``teachers.py``), which include the networks of the folds. The folds cannot tell
which of the two is better: teachers have seen the rows that a fold holds out. But the error of the
teachers tells how noisy the target is, and lessons pay off if it is noisy. That expectation is
given up only if the validation rows are clearly against it. In the same way, networks keep their
last weights unless earlier ones, from before they fitted noise, are clearly better there.

Validation rows of a few groups are a matter of luck, however many they are: they decide nothing.
Instead, as many steps as in the final round are trained *across* the training groups, each left out
by the networks that predict it. These choose among the finalists, and their errors say how far off
the model will be in a group that it never saw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from twinedge.progress import Progress
from twinedge.scoring.scores import rmse
from twinedge.training.batches import Setting, expected_seconds
from twinedge.training.network import FloatArray
from twinedge.training.tasks import BATCH, FOLDS, PairTask, PointTask, Rows
from twinedge.training.teachers import SHARE, Lessons, School, TaughtTask, Word
from twinedge.training.trainer import (
    TITLES,
    Checkpoint,
    Interrupted,
    NetworkJob,
    Trained,
    train,
)

# One decay that lets a network follow the rows, and one that keeps it from fitting their noise.
# Teachers do that as well, and better: taught networks take the first.
SETTINGS = {
    "relu": (Setting(1e-2, 0.03), Setting(1e-2, 0.3)),
    "silu": (Setting(1e-2, 0.001), Setting(1e-2, 0.1)),
}

# Thousands of rows cannot be memorised: larger batches, and more of them, pay off.
_MANY_ROWS, _MANY_BATCH, _MANY_LONGER = 3000, 4 * BATCH, 4 / 3
# After few steps relu is ahead even where silu ends far ahead.
LONG_ENOUGH = 8_000  # steps needed to compare activations
# What to expect from the error of the teachers, in standard deviations of the target.
_NOISY = 0.32  # above this, networks are better with teachers
_CLEAR = 0.2  # below this, lessons are not worth their time
_EXACT = 0.01  # below this, networks go on improving for twice the time
# Standard errors by which validation rows must object to what is expected, and to the last weights.
_OBJECTION, _REGRET = 1.0, 2.0
ACROSS = 10  # folds of groups at most, so that networks see nearly as many as the final ones
_STILL = 1e-6  # scaled range of a constant feature: rounding noise


LeftOut = tuple[Rows, FloatArray]  # rows, and networks (c, size) that did not see them


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
    "normal": Plan(folds=12_000, final=30_000),
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
        weight of the rows' own targets, 1 if nothing else was learnt from; ``noise`` is the error
        of all teachers together, in standard deviations of the target. None without teachers.
    interrupted : bool
        Whether the user stopped the training early.
    across : list of (rows, weights)
        For each fold of groups, its rows, and a network ``(1, size)`` of the same candidate and
        length that left it out.
    """

    candidate: Candidate
    weights: FloatArray
    steps: int
    trials: list[dict[str, Any]]
    score: float
    teaching: dict[str, Any] | None = None
    interrupted: bool = False
    across: list[LeftOut] = field(default_factory=list)


class _Finalist(NamedTuple):
    """Networks of one candidate, whether they learnt from teachers, and their errors."""

    networks: list[Trained]
    taught: bool
    errors: FloatArray


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
    across: bool = False,
    intervals: bool = False,
) -> Choice:
    """Compare the candidates and train ``networks`` networks of the best, on ``threads`` threads.

    With ``across``, validation rows decide nothing, but errors across the groups of training do;
    these are also found if only ``intervals`` need them.
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
        winner = winner._replace(weights=winner.best)
        return _chosen(task, _finalist(task, [winner], False), trials, interrupted=True)

    across = across and task.has_folds
    progress.plan(_stages(task, candidates, plan, networks, school, across))
    lessons, pupils = None, candidates
    if _compares(task, candidates, school):
        jobs = [
            NetworkJob(*one, plan.folds, seed + k, k) for one in candidates for k in range(FOLDS)
        ]
        try:
            scouts = race(task, "folds", jobs)
        except Interrupted as stop:
            return stopped(stop)
        try:
            points = school.points(task) if school else task.x[:0]
            words = predict_held_out(task, candidates, scouts, points)
            best = best_candidates(task, candidates, words)
            if school:
                lessons = school.lessons(task, points, [words[k] for k in best], progress.stage)
        except KeyboardInterrupt:
            return stopped(Interrupted(scouts))
        finalists = [candidates[k] for k in best[: 1 if plan.folds >= LONG_ENOUGH else None]]
        pupils = [_gentlest(candidates, one.activation) for one in finalists]
        candidates = finalists
    steps = plan.final
    if school is not None and lessons is not None and plan.teachers and lessons.noise < _EXACT:
        steps *= 2
    left_out: list[LeftOut] = []
    if across and (intervals or len(candidates) > 1):
        finer = task.across(ACROSS)
        jobs = [
            NetworkJob(*one, steps, seed + k, k) for one in candidates for k in range(finer.folds)
        ]
        try:
            results = race(finer, "across groups", jobs)
        except Interrupted as stop:
            return stopped(stop)
        words = predict_held_out(finer, candidates, results, task.x[:0])
        one = best_candidates(finer, candidates, words)[0]
        mine = results[one * finer.folds : (one + 1) * finer.folds]
        left_out = [(finer.fold(k), network.weights[None]) for k, network in enumerate(mine)]
        candidates, pupils = [candidates[one]], [pupils[one]]
    rounds: list[tuple[Any, str, list[Candidate]]] = [(task, "final round", candidates)]
    if school is not None and lessons is not None and (school.named or lessons.noise >= _CLEAR):
        rounds.append((TaughtTask(task, lessons), "lessons", pupils))
    progress.plan(
        {TITLES[stage]: _seconds(task, asked, networks * steps) for _, stage, asked in rounds}
    )
    found: list[_Finalist] = []
    interrupted = False
    for what, stage, asked in rounds:
        jobs = [NetworkJob(*one, steps, seed + k) for one in asked for k in range(networks)]
        try:
            results = race(what, stage, jobs)
        except Interrupted as stop:
            if stop.results is latest:  # results of the previous round
                if not found:
                    return stopped(stop)
                interrupted = True
                break
            results = [one._replace(weights=one.best) for one in stop.results]
            interrupted = True
        groups = [results[k : k + networks] for k in range(0, len(results), networks)]
        found += [_finalist(task, group, what is not task) for group in groups]
        if interrupted:
            break
    if task.train == len(task.y):  # no rows were held out to object to what teachers say
        found = [one for one in found if not one.taught]
    noisy = None if lessons is None or interrupted else lessons.noise > _NOISY
    winner = _winner(found, noisy, asked=not across)
    return _chosen(task, winner, trials, lessons, interrupted, left_out, asked=not across)


def _compares(
    task: PairTask | PointTask, candidates: list[Candidate], school: School | None
) -> bool:
    """Whether there is a round of folds."""
    return task.has_folds and (school is not None or len(candidates) > 1)


def _stages(
    task: PairTask | PointTask,
    candidates: list[Candidate],
    plan: Plan,
    networks: int,
    school: School | None,
    across: bool,
) -> dict[str, float]:
    """Return the expected seconds of each stage, as far as they can be known before the first."""
    stages, finalists = {}, candidates
    if _compares(task, candidates, school):
        stages[TITLES["folds"]] = _seconds(task, candidates, FOLDS * plan.folds)
        finalists = list({one.activation: one for one in candidates}.values())
        finalists = finalists[: 1 if plan.folds >= LONG_ENOUGH else None]
    if school is not None:
        stages |= school.seconds()
    if across:
        steps = task.across(ACROSS).folds * plan.final
        stages[TITLES["across groups"]] = _seconds(task, finalists, steps)
        finalists = finalists[:1]
    last = _seconds(task, finalists, networks * plan.final)
    stages[TITLES["final round"]] = last
    return stages if school is None else {**stages, TITLES["lessons"]: last}


def _seconds(task: PairTask | PointTask, candidates: list[Candidate], steps: int) -> float:
    """Return the expected seconds of so many steps of each candidate."""
    shapes = [
        (task.batch_of(one.activation), task.architecture(one.activation)) for one in candidates
    ]
    return sum(expected_seconds(steps, *shape) for shape in shapes)


def predict_held_out(
    task: PairTask | PointTask,
    candidates: list[Candidate],
    networks: list[Trained],
    points: FloatArray,
) -> list[Word]:
    """Predict with the networks of each candidate: rows they did not see, then all other points."""
    elsewhere = np.concatenate([task.x[task.train :], points])
    words = []
    for k, candidate in enumerate(candidates):
        mine = networks[k * task.folds : (k + 1) * task.folds]
        architecture = task.architecture(candidate.activation)
        rows, rest = np.empty(task.train, np.float32), np.zeros(len(elsewhere), np.float32)
        for job, weights, *_ in mine:
            held = task.fold(job.fold or 0)
            asked = np.concatenate([task.x[held], elsewhere])
            said = task.predict(architecture, weights[None], asked[None], [job])[0]
            rows[held], rest = said[: len(held)], rest + said[len(held) :] / task.folds
        words.append(Word(f"{candidate.activation} networks", rows, rest))
    return words


def best_candidates(
    task: PairTask | PointTask, candidates: list[Candidate], words: list[Word]
) -> list[int]:
    """Return which candidate of each activation is best on the rows, and the best of all first."""
    off = np.abs(np.stack([word.rows for word in words]) - task.y[: task.train])
    off = np.where(np.isfinite(off), off, np.finfo(np.float32).max).astype(np.float64)
    found: dict[str, int] = {}
    weights = None if task.weights is None else task.weights[: task.train]
    for k in np.argsort(np.average(off, axis=1, weights=weights), kind="stable"):
        found.setdefault(candidates[k].activation, int(k))
    return list(found.values())


def _gentlest(candidates: list[Candidate], activation: str) -> Candidate:
    """Return the candidate of an activation with the least weight decay."""
    those = [one for one in candidates if one.activation == activation]
    return min(those, key=lambda one: one.setting.weight_decay)


def _finalist(task: PairTask | PointTask, networks: list[Trained], taught: bool) -> _Finalist:
    """Judge networks together, by their last weights."""
    return _Finalist(networks, taught, _errors(task, networks, [one.weights for one in networks]))


def _errors(
    task: PairTask | PointTask, networks: list[Trained], weights: list[FloatArray]
) -> FloatArray:
    """Return the errors on validation rows of the mean of networks with these weights."""
    jobs = [one.job for one in networks]
    found = task.errors(task.architecture(jobs[0].activation), np.stack(weights), jobs)
    return np.where(np.isfinite(found), found, np.finfo(np.float32).max)


def _winner(found: list[_Finalist], noisy: bool | None, asked: bool = True) -> _Finalist:
    """Return the best with teachers if the target is noisy, otherwise the best without.

    The other one must be clearly better to win, unless nothing is known about the noise; it cannot
    if the validation rows are not ``asked``.
    """
    found = sorted(found, key=lambda one: rmse(one.errors))
    expected = next((one for one in found if one.taught is noisy), found[0])
    objects = asked and _surpasses(found[0].errors, expected.errors, _OBJECTION)
    return found[0] if objects else expected


def _surpasses(errors: FloatArray, others: FloatArray, clearly: float) -> bool:
    """Whether errors are smaller than others of the same rows by this many standard errors."""
    gain = np.square(others) - np.square(errors)
    return bool(gain.mean() > clearly * gain.std() / np.sqrt(len(gain)))


def _chosen(
    task: PairTask | PointTask,
    one: _Finalist,
    trials: list[dict[str, Any]],
    lessons: Lessons | None = None,
    interrupted: bool = False,
    across: Sequence[LeftOut] = (),
    asked: bool = True,
) -> Choice:
    job = one.networks[0].job
    weights, errors = [network.weights for network in one.networks], one.errors
    earlier = [network.best for network in one.networks]
    of_earlier = _errors(task, one.networks, earlier)
    if asked and _surpasses(of_earlier, errors, _REGRET):
        weights, errors = earlier, of_earlier
    teaching = None
    if lessons is not None:
        teaching = {
            "taught": one.taught,
            "share": SHARE if one.taught else 1.0,
            "noise": round(lessons.noise, 4) if np.isfinite(lessons.noise) else None,
            "teachers": lessons.teachers,
        }
    return Choice(
        Candidate(job.activation, job.setting),
        _without_constants(task, np.stack(weights), job),
        job.steps,
        trials,
        rmse(errors),
        teaching,
        interrupted,
        [(rows, _without_constants(task, network, job)) for rows, network in across],
    )


def _without_constants(
    task: PairTask | PointTask, networks: FloatArray, job: NetworkJob
) -> FloatArray:
    """Disconnect features that never change, so that nothing is said of values never seen."""
    architecture = task.architecture(job.activation)
    still = np.ptp(task.x[: task.train], axis=0) < _STILL
    for network in networks if still.any() else ():
        kernel, _ = architecture.parts(network)[0]
        kernel[np.tile(still, len(kernel) // len(still))] = 0
    return networks


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
