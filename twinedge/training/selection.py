"""Choose activation, learning rate and weight decay, and whether to learn from teachers.

A choice among networks by a few dozen validation points is a choice by luck. So candidates are
compared on all training rows, each row by a network that did not see it: five folds, five networks
per candidate. They are compared by mean absolute errors, so that a single wild row does not decide.

Networks of the best candidate are then trained on all training rows, and beside them others on
predictions of teachers (``teachers.py``), which include the networks of the folds. The folds cannot
show which of the two is better: teachers have seen the rows that a fold holds out. But the error of
the teachers shows how noisy the target is, and teachers help if it is noisy. That expectation is
given up only if the validation rows are clearly against it. In the same way, networks keep their
last weights unless earlier ones, from before they fitted noise, are clearly better there.

Validation rows of a few groups are a matter of luck, however many they are: they decide nothing.
Instead, as many steps as in the final round are trained *across* the training groups, each left out
by the networks that predict it. These choose among the finalists, and their errors show how far off
the model will be in a group that it never saw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from twinedge.defaults import MANY_ROWS
from twinedge.progress import Progress
from twinedge.scoring.scores import rmse
from twinedge.scoring.weights import mean_over_targets
from twinedge.training.batches import Setting, expected_seconds
from twinedge.training.input_map import InputMap, MappedArchitecture
from twinedge.training.network import Architecture, FloatArray
from twinedge.training.tasks import BATCH, FOLDS, Rows, Task
from twinedge.training.teachers import SHARE, Predictions, TaughtTask, Teachers, Teaching
from twinedge.training.trainer import (
    TITLES,
    Checkpoint,
    Interrupted,
    NetworkJob,
    Trained,
    train,
)

# Decays that let a network follow the rows, and one that keeps it from fitting their noise.
# Teachers do that as well, and better: taught networks take the first.
Settings = Mapping[str, tuple[Setting, ...]]  # to try with each activation
SETTINGS: Settings = {
    "relu": (Setting(1e-2, 0.03), Setting(1e-2, 0.3)),
    "silu": (Setting(1e-2, 0.001), Setting(1e-2, 0.01), Setting(1e-2, 0.1)),
}

# Those of networks with a map in front of them.
MAPPED: Settings = {"relu": (Setting(1e-2, 0.03),)}
MOST_BINS = 255  # of a feature in a map

# Thousands of rows cannot be memorised: larger batches, and more of them, pay off.
_MANY_BATCH, _MANY_LONGER = 4 * BATCH, 4 / 3


class UsualMap(NamedTuple):
    """How a map that is compared with none is learnt."""

    pace: float  # its learning rate, as a share of that of the networks
    decay: float  # its weight decay


def usual_map(rows: int) -> UsualMap:
    """Return how to learn a map from this many rows: few of them do not support steep curves."""
    return UsualMap(0.3, 0.3) if rows < MANY_ROWS else UsualMap(0.3, 0.03)


# How many times as large the error of the folds must be without a map. Twins that share one are
# more alike, so that their mean gains less; a single network of a fold does not show that. Where
# another activation is best without a map, the target is smooth, and folds do not show what that
# activation gains in the long final training.
_MARGIN, _OTHER_MARGIN = 1.08, 1.2


# After few steps relu is ahead even where silu ends far ahead.
LONG_ENOUGH = 8_000  # steps needed to compare activations
# What to expect from the error of the teachers, in standard deviations of the target.
_NOISY = 0.32  # above this, networks are better with teachers
_CLEAR = 0.2  # below this, teachers are not worth their time
# Below this, networks go on improving for twice the time, and a decay that helps the short ones of
# the folds would hold them back.
_EXACT = 0.01
# Standard errors by which validation rows must object to what is expected, and to the last weights.
_OBJECTION, _REGRET = 1.0, 2.0
ACROSS = 10  # folds of groups at most, so that networks see nearly as many as the final ones
_STILL = 1e-6  # scaled range of a constant feature: rounding noise


class LeftOut(NamedTuple):
    """Rows, and networks ``(c, size)`` that did not see them, with the map in front of them."""

    rows: Rows
    weights: FloatArray
    map: InputMap | None


class Candidate(NamedTuple):
    """One way to train: an activation, a setting, and the bins of a feature in a map."""

    activation: str
    setting: Setting
    bins: int = 0  # no map

    @property
    def shares_map(self) -> bool:
        """Whether networks share a map: those of the folds have one each."""
        return False

    def job(
        self, steps: int, seed: int, fold: int | None = None, *, taught: bool = False
    ) -> NetworkJob:
        """Return one network to train this way."""
        return NetworkJob(self.activation, self.setting, steps, seed, fold, self.bins, taught)


@dataclass(frozen=True)
class Plan:
    """How much work a training may take."""

    folds: int  # steps of each network that candidates are compared by
    final: int  # steps of the final networks
    teachers: bool = True  # whether there is time for them
    batch: int = BATCH  # examples per step

    def given(self, rows: int) -> "Plan":
        """Return the plan for this many training rows."""
        if rows < MANY_ROWS:
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
    """The outcome: a candidate, its networks and how it was found."""

    candidate: Candidate
    architecture: Architecture  # of the networks
    weights: FloatArray  # of the trained networks (c, size)
    map: InputMap | None  # in front of them
    steps: int  # length of their training
    trials: list[dict[str, Any]]  # every network trained, with its validation RMSE
    score: float  # validation RMSE of the networks together, in units of the target
    teaching: dict[str, Any] | None = None  # as in ``TwinRegressor``; None without teachers
    interrupted: bool = False  # whether the user stopped the training early
    # For each fold of groups, its rows and a network (1, size) of the same candidate and length
    # that left it out.
    across: list[LeftOut] = field(default_factory=list)
    # The best candidate of the folds, and what its networks predicted for training rows that they
    # did not see, scaled; None if there were none.
    compared: tuple[Candidate, FloatArray] | None = None


class _Finalist(NamedTuple):
    """Networks of one candidate, whether they learnt from teachers, and their errors."""

    networks: list[Trained]
    taught: bool
    errors: FloatArray


def choose(
    task: Task,
    candidates: list[Candidate],
    plan: Plan,
    *,
    networks: int,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
    teachers: Teachers | None = None,
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

    def run_round(what: Task | TaughtTask, stage: str, jobs: list[NetworkJob]) -> list[Trained]:
        try:
            latest[:] = train(
                what,
                jobs,
                stage=stage,
                seed=seed,
                progress=progress,
                checkpoint=checkpoint,
                threads=threads,
            )
        except Interrupted as stop:
            latest[:] = stop.results
            trials.extend(record(stage, latest))
            raise
        trials.extend(record(stage, latest))
        return list(latest)

    across = across and task.has_folds
    progress.plan(_stages(task, candidates, plan, networks, teachers, across))
    teaching, taught, other, compared = None, candidates, None, None
    steps = plan.final
    left_out: list[LeftOut] = []
    try:
        if _compares(task, candidates, teachers):
            jobs = [one.job(plan.folds, seed + k, k) for one in candidates for k in range(FOLDS)]
            results = run_round(task, "folds", jobs)
            points = teachers.points(task) if teachers else task.x[:0]
            predictions = predict_held_out(task, candidates, results, points)
            best = best_candidates(task, candidates, predictions)
            compared = candidates[best[0]], predictions[best[0]].rows
            if teachers:
                own = [predictions[k] for k in best]
                teaching = teachers.predict(task, points, own, progress.stage)
            finalists = [candidates[k] for k in best[: _finalists(plan)]]
            taught = [_gentlest(candidates, one) for one in finalists]
            other = _other_kind(task, [candidates[k] for k in best])
            candidates = finalists
            if plan.teachers and teaching is not None and teaching.noise < _EXACT:
                steps *= 2
                candidates = taught
        if across and (intervals or len(candidates) > 1):
            finer = task.across(ACROSS)
            jobs = [one.job(steps, seed + k, k) for one in candidates for k in range(finer.folds)]
            results = run_round(finer, "across groups", jobs)
            predictions = predict_held_out(finer, candidates, results, task.x[:0])
            number = best_candidates(finer, candidates, predictions)[0]
            mine = results[number * finer.folds : (number + 1) * finer.folds]
            left_out = [_left_out(finer, k, network) for k, network in enumerate(mine)]
            candidates, taught = [candidates[number]], [taught[number]]
    except (Interrupted, KeyboardInterrupt):
        if not latest:
            raise
        return _stopped(task, latest, trials)
    what: Task | TaughtTask = task
    last = [(one, False) for one in candidates]
    if teachers and teaching and (teachers.named or teaching.noise >= _CLEAR):
        what = TaughtTask(task, teaching)
        last += [(one, True) for one in taught]
        last += [] if other is None or other in taught else [(other, True)]
    seconds = _seconds(task, [one for one, _ in last], networks * steps)
    progress.plan({TITLES["final round"]: seconds})
    jobs = [one.job(steps, seed + k, taught=so) for one, so in last for k in range(networks)]
    interrupted = False
    try:
        results = run_round(what, "final round", jobs)
    except Interrupted as stop:
        results = [one._replace(weights=one.best) for one in stop.results]
        interrupted = True
    except KeyboardInterrupt:  # before there was anything new to keep
        if not latest:
            raise
        return _stopped(task, latest, trials)
    groups = [results[k : k + networks] for k in range(0, len(results), networks)]
    found = [_finalist(task, group) for group in groups]
    if task.train == len(task.y):  # no rows were held out to object to the teachers
        found = [one for one in found if not one.taught]
    noisy = None if teaching is None or interrupted else teaching.noise > _NOISY
    winner = _winner(found, noisy, decides=not across)
    chosen = _chosen(task, winner, trials, teaching, interrupted, left_out, decides=not across)
    return replace(chosen, compared=compared)


def _stopped(task: Task, results: list[Trained], trials: list[dict[str, Any]]) -> Choice:
    """Choose the best network of a round that was stopped, or of the last before the stop."""
    winner = min(results, key=lambda one: one.score)
    winner = winner._replace(weights=winner.best)
    return _chosen(task, _finalist(task, [winner]), trials, interrupted=True)


def _compares(task: Task, candidates: list[Candidate], teachers: Teachers | None) -> bool:
    """Whether there is a round of folds."""
    return task.has_folds and (teachers is not None or len(candidates) > 1)


def _finalists(plan: Plan) -> int:
    """How many kinds of networks are trained to the end: short folds cannot tell the best."""
    return 1 if plan.folds >= LONG_ENOUGH else 2


def _other_kind(task: Task, best: list[Candidate]) -> Candidate | None:
    """With a map if the best is without, or vice versa: to be taught as well, for long tables.

    What the folds show of a map is not what it is worth to networks that learn from teachers. The
    validation rows of long tables are many enough to choose between the two.
    """
    if task.train < MANY_ROWS:
        return None
    return next((one for one in best if bool(one.bins) != bool(best[0].bins)), None)


def _stages(
    task: Task,
    candidates: list[Candidate],
    plan: Plan,
    networks: int,
    teachers: Teachers | None,
    across: bool,
) -> dict[str, float]:
    """Return the expected seconds of each stage, as far as they can be known before the first."""
    stages, finalists = {}, candidates
    if _compares(task, candidates, teachers):
        stages[TITLES["folds"]] = _seconds(task, candidates, FOLDS * plan.folds)
        finalists = list({(one.activation, one.bins): one for one in candidates}.values())
        finalists = finalists[: _finalists(plan)]
    if teachers is not None:
        stages |= teachers.seconds()
    if across:
        steps = task.across(ACROSS).folds * plan.final
        stages[TITLES["across groups"]] = _seconds(task, finalists, steps)
        finalists = finalists[:1]
    rounds = 1 if teachers is None else 2  # networks may be taught as well
    stages[TITLES["final round"]] = rounds * _seconds(task, finalists, networks * plan.final)
    return stages


def _seconds(task: Task, candidates: list[Candidate], steps: int) -> float:
    """Return the expected seconds of so many steps of each candidate."""
    shapes = [(task.batch_of(one.activation), task.architecture(one)) for one in candidates]
    return sum(expected_seconds(steps, *shape) for shape in shapes)


def predict_held_out(
    task: Task, candidates: list[Candidate], networks: list[Trained], points: FloatArray
) -> list[Predictions]:
    """Predict with the networks of each candidate: rows they did not see, then all other points."""
    elsewhere = np.concatenate([task.x[task.train :], points])
    found = []
    for k, candidate in enumerate(candidates):
        architecture = task.architecture(candidate)
        rows = np.empty_like(task.y[: task.train], np.float32)
        rest = np.zeros((len(elsewhere), *rows.shape[1:]), np.float32)
        for job, weights, *_ in networks[k * task.folds : (k + 1) * task.folds]:
            held = task.fold(job.fold or 0)
            x = np.concatenate([task.x[held], elsewhere])
            predicted = task.predict(architecture, weights[None], x[None], [job])[0]
            rows[held] = predicted[: len(held)]
            rest += predicted[len(held) :] / task.folds
        mapped = "mapped " if candidate.bins else ""
        found.append(Predictions(f"{mapped}{candidate.activation} networks", rows, rest))
    return found


def best_candidates(
    task: Task, candidates: list[Candidate], predictions: list[Predictions]
) -> list[int]:
    """Return which candidate of each kind of network is best on the rows, the best of all first.

    A map that does not pay comes last.
    """
    off = np.abs(np.stack([one.rows for one in predictions]) - task.y[: task.train])
    off = np.where(np.isfinite(off), off, np.finfo(np.float32).max).astype(np.float64)
    found: dict[tuple[str, int], int] = {}
    weights = None if task.weights is None else task.weights[: task.train]
    squared = np.square(off)
    if task.targets > 1:
        known = np.isfinite(task.y[: task.train])
        off, squared = (mean_over_targets(one, known, weights) for one in (off, squared))
    errors = np.average(off, axis=1, weights=weights)
    squares = np.average(squared, axis=1, weights=weights)
    errors[~_maps_pay(candidates, errors, squares)] = np.inf
    for k in np.argsort(errors, kind="stable"):
        found.setdefault((candidates[k].activation, candidates[k].bins), int(k))
    return list(found.values())


def _maps_pay(
    candidates: list[Candidate], errors: FloatArray, squares: FloatArray
) -> npt.NDArray[np.bool_]:
    """Say of each candidate with a map whether it is better than all without one, by a margin.

    It must be so for most rows and for those that are far off: ``errors`` ``(c,)`` are mean
    absolute, ``squares`` ``(c,)`` mean squared errors. Candidates without a map always pay, and so
    do all if there are no others.
    """
    pays = np.ones(len(candidates), bool)
    without = [k for k, one in enumerate(candidates) if not one.bins]
    if without:
        best = min(without, key=lambda k: errors[k])
        for k, one in enumerate(candidates):
            same = one.activation == candidates[best].activation
            margin = _MARGIN if same else _OTHER_MARGIN
            clear = margin * errors[k] < errors[best] and margin**2 * squares[k] < squares[best]
            pays[k] = clear or not one.bins
    return pays


def _gentlest(candidates: list[Candidate], kind: Candidate) -> Candidate:
    """Return the candidate of the same kind of network with the least weight decay."""
    those = [
        one for one in candidates if (one.activation, one.bins) == (kind.activation, kind.bins)
    ]
    return min(those, key=lambda one: one.setting.weight_decay)


def _finalist(task: Task, networks: list[Trained]) -> _Finalist:
    """Evaluate networks together, by their last weights."""
    errors = _errors(task, networks, [one.weights for one in networks])
    return _Finalist(networks, networks[0].job.taught, errors)


def _errors(task: Task, networks: list[Trained], weights: list[FloatArray]) -> FloatArray:
    """Return the errors on validation rows of the mean of networks with these weights."""
    jobs = [one.job for one in networks]
    found = task.errors(task.architecture(jobs[0]), np.stack(weights), jobs)
    return np.where(np.isfinite(found), found, np.finfo(np.float32).max)


def _winner(found: list[_Finalist], noisy: bool | None, decides: bool = True) -> _Finalist:
    """Return the best with teachers if the target is noisy, otherwise the best without.

    The other one must be clearly better to win, unless nothing is known about the noise; it cannot
    unless validation error ``decides``.
    """
    found = sorted(found, key=lambda one: rmse(one.errors))
    expected = next((one for one in found if one.taught is noisy), found[0])
    objects = decides and _surpasses(found[0].errors, expected.errors, _OBJECTION)
    return found[0] if objects else expected


def _surpasses(errors: FloatArray, others: FloatArray, clearly: float) -> bool:
    """Whether errors are smaller than others of the same rows by this many standard errors."""
    gain = np.square(others) - np.square(errors)
    return bool(gain.mean() > clearly * gain.std() / np.sqrt(len(gain)))


def _chosen(
    task: Task,
    one: _Finalist,
    trials: list[dict[str, Any]],
    teaching: Teaching | None = None,
    interrupted: bool = False,
    across: Sequence[LeftOut] = (),
    decides: bool = True,
) -> Choice:
    job = one.networks[0].job
    weights, errors = [network.weights for network in one.networks], one.errors
    earlier = [network.best for network in one.networks]
    earlier_errors = _errors(task, one.networks, earlier)
    if decides and _surpasses(earlier_errors, errors, _REGRET):
        weights, errors = earlier, earlier_errors
    taught_by = None
    if teaching is not None:
        taught_by = {
            "taught": one.taught,
            "share": SHARE if one.taught else 1.0,
            "noise": round(teaching.noise, 4) if np.isfinite(teaching.noise) else None,
            "teachers": teaching.teachers,
        }
    architecture, networks, learnt = _without_map(task, weights, job)
    return Choice(
        Candidate(job.activation, job.setting, job.bins),
        architecture,
        networks,
        learnt,
        job.steps,
        trials,
        rmse(errors),
        taught_by,
        interrupted,
        list(across),
    )


def _left_out(task: Task, fold: int, network: Trained) -> LeftOut:
    _, weights, learnt = _without_map(task, [network.weights], network.job)
    return LeftOut(task.fold(fold), weights, learnt)


def _without_map(
    task: Task, weights: Sequence[FloatArray], job: NetworkJob
) -> tuple[Architecture, FloatArray, InputMap | None]:
    """Take the map off networks that share it; returns their shape, the networks and the map.

    Features that never change are disconnected, so that values never seen have no effect.
    """
    architecture, learnt = task.architecture(job), None
    networks = np.stack(weights)
    if isinstance(architecture, MappedArchitecture):
        knots = task.knots(job.bins)
        parts = [architecture.without_map(one, knots) for one in networks]
        networks, learnt = np.stack([one for one, _ in parts]), parts[0][1]
        architecture = architecture.network
    still = np.flatnonzero(np.ptp(task.x[: task.train], axis=0) < _STILL)
    for network in networks if len(still) else ():
        kernel, _ = architecture.parts(network)[0]
        each = task.x.shape[1] if learnt is None else learnt.outputs
        kernel.reshape(-1, each, kernel.shape[1])[:, still] = 0
    return architecture, networks, learnt


def record(stage: str, networks: list[Trained]) -> list[dict[str, Any]]:
    """Return the record of a round: each network with its validation RMSE."""
    return [
        {
            "stage": "taught round" if one.job.taught else stage,
            "activation": one.job.activation,
            "learning_rate": one.job.setting.learning_rate,
            "weight_decay": one.job.setting.weight_decay,
            **({"bins": one.job.bins} if one.job.bins else {}),
            "steps": one.job.steps,
            "rmse_val": one.score,
        }
        for one in networks
    ]
