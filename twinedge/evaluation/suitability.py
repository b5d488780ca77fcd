"""Whether a twin suits the data, by the model that ``twinedge train`` makes of them.

Everything is measured on training rows, each predicted by models that did not see it: in the five
folds that a training chooses its settings on, and with the same candidates. After few
steps relu is ahead even where silu ends far ahead, so after a quick comparison the best of both go
on, for as many steps as the networks of a training take together.

A model has several networks, and the mean of their predictions is better than one of them. By how
much is seen on the validation rows, which no network has seen: the squared errors of the rows are
multiplied by the share that is left in the mean of so many networks.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from twinedge import scoring
from twinedge.data.source import Source
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.evaluation.comparison import compare, error_groups
from twinedge.evaluation.forecasting import naive_forecast
from twinedge.evaluation.rivals import RIVALS, fit_rival
from twinedge.evaluation.small_trees import ROOM, Points
from twinedge.evaluation.verdict import LARGE, NAMES, Rival, Verdict, verdict
from twinedge.progress import Progress, progress_bar
from twinedge.scoring.weights import of_rows
from twinedge.training.network import FloatArray
from twinedge.training.parameters import jobs_of, seed_of
from twinedge.training.selection import (
    LONG_ENOUGH,
    best_candidates,
    predict_held_out,
)
from twinedge.training.tasks import FOLDS, PairTask
from twinedge.training.trainer import Checkpoint, Trained
from twinedge.training.trainer import train as train_networks
from twinedge.wording import plural

FEWEST_ROWS = 30
_COMPARING = "Training the other models"


@dataclass(frozen=True)
class Suitability:
    """The findings; errors are root mean squares in units of the target, on rows held out.

    Parameters
    ----------
    rows : int
        Number of rows compared on.
    twin : float
        Error of the networks of a training, together.
    rivals : dict of str to Rival
        The other models, compared with that: boosted trees and a forest of any size ("boosting",
        "forest"), either in the bytes of a pack ("trees"), nearest neighbors ("nearest"), a linear
        model ("linear"), the mean of the targets ("mean") and, for rows in the order of time, the
        target of the row before ("naive").
    """

    rows: int
    twin: float
    rivals: dict[str, Rival]

    @property
    def verdict(self) -> Verdict:
        """Which model is the best, and how surely."""
        return verdict(self.twin, self.rivals, self.rows, ROOM)

    @property
    def small_verdict(self) -> Verdict:
        """The same among models that fit a small device."""
        small = {name: one for name, one in self.rivals.items() if name not in LARGE}
        return verdict(self.twin, small, self.rows, ROOM)

    @property
    def better(self) -> list[str]:
        """Models that are better than the twin by more than chance explains, best first."""
        found = [name for name, one in self.rivals.items() if one.better]
        return sorted(found, key=lambda name: self.rivals[name].rmse)

    @property
    def beside(self) -> list[str]:
        """What else the user should know, in sentences."""
        if self.verdict.best in LARGE:
            return [f"Of what fits a small device: {self.small_verdict.sentence}"]
        return []


def suitability(
    source: Source,
    *,
    effort: str = "quick",
    seed: int = 0,
    target_curve: str = "none",
    n_jobs: int | None = -1,
    verbose: bool = False,
    checkpoint: Path | None = None,
) -> Suitability:
    """Cross-validate the networks of a training, and other models.

    Parameters
    ----------
    source : Source
        A table with its split; its test rows are not used.
    effort : {"quick", "normal", "thorough"}
        As for a training.
    seed : int
        Seed of the networks.
    target_curve : {"none", "log", "log1p", "sqrt", "auto"}
        What the networks learn in place of the target, as for a training.
    n_jobs : int or None
        Trainings at a time, as in scikit-learn; by default one per core.
    verbose : bool
        Show progress on standard error.
    checkpoint : path, optional
        Folder to keep the networks in: a training with the same options resumes from it.

    Raises
    ------
    InputError
        If there are too few rows to compare on.
    """
    model = TwinRegressor(
        effort=effort, target_curve=target_curve, random_state=seed, n_jobs=n_jobs
    )
    seed, threads = seed_of(seed), jobs_of(n_jobs)
    task, train, held = _task(model, source, seed)
    if task.train < FEWEST_ROWS or not task.has_folds:
        rows = plural(task.train, "training row")
        raise InputError(f"{rows} are too few to compare on: at least {FEWEST_ROWS} are needed")
    y, weights = train[1], of_rows(task.weights, slice(task.train))
    root = np.ones(len(y)) if weights is None else np.sqrt(weights / weights.mean())
    with progress_bar(verbose) as progress:
        kept = Checkpoint(checkpoint, model._owner(task, seed), False)
        task = model._with_curve(task, train, held, seed, progress, kept)
        errors = {
            name: (predicted - y) * root
            for name, predicted in _rivals(task, train, held, seed, threads, progress).items()
        }
        twin = _twin(task, model, seed, progress, kept, threads) * root
    if source.times is not None:
        naive = (naive_forecast(source.times, source.y)[source.rows.train] - y) * root
        errors["naive"] = np.where(np.isnan(naive), twin, naive)  # the first row has none before
    in_time = of_rows(source.times, source.rows.train)
    groups = error_groups(task.groups if in_time is None else None, in_time)
    found = {name: compare(twin, one, groups) for name, one in errors.items()}
    return Suitability(len(y), scoring.rmse(twin), found)


def _task(model: TwinRegressor, source: Source, seed: int) -> tuple[PairTask, Points, Points]:
    """Prepare the rows as a training does."""
    rows = source.rows
    beside = of_rows(source.groups, rows.val), of_rows(source.weights, rows.val)
    train, held = model._prepare(
        *source.part(rows.train),
        (*source.part(rows.val), *beside),
        seed,
        of_rows(source.groups, rows.train),
        source.encoding,
        of_rows(source.weights, rows.train),
        of_rows(source.times, rows.train),
    )
    return PairTask(**model._scale(train, held)), train, held


def _twin(
    task: PairTask,
    model: TwinRegressor,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
    threads: int,
) -> FloatArray:
    """Train networks on the folds; return their errors ``(n,)``, in units of the target.

    They are those to expect of as many networks together as the model has.
    """
    candidates, plan = model._candidates(task), model._plan(task.train)
    networks = model._shape()[0]

    def trained(stage: str, steps: int, **more: int) -> list[Trained]:
        jobs = [one.job(steps, seed + k, k) for one in candidates for k in range(FOLDS)]
        return train_networks(
            task,
            jobs,
            stage=stage,
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
            threads=threads,
            **more,
        )

    found = trained("folds", plan.folds)
    predictions = predict_held_out(task, candidates, found, task.x[:0])
    best = best_candidates(task, candidates, predictions)
    if plan.folds < LONG_ENOUGH:
        candidates = [candidates[k] for k in best]
        found = trained("longer folds", plan.final * networks // FOLDS, looks=1)
        predictions = predict_held_out(task, candidates, found, task.x[:0])
        best = best_candidates(task, candidates, predictions)
    left = _averaging(task, found[best[0] * FOLDS :][:FOLDS], networks)
    rows = predictions[best[0]].rows
    if task.curved is None:
        off = (rows.astype(np.float64) - task.y[: task.train]) * task.scale
    else:
        off = task.curved.restored(rows) - task.curved.restored(task.y[: task.train])
    errors: FloatArray = off * np.sqrt(left)
    return errors


def _averaging(task: PairTask, ours: list[Trained], networks: int) -> float:
    """Share of a network's squared error that is left in the mean of so many, at most 1."""
    rest = np.arange(task.train, len(task.y))
    if not len(rest):
        return 1.0
    architecture = task.architecture(ours[0].job)
    points = np.broadcast_to(task.x[rest], (len(ours), *task.x[rest].shape))
    stack = np.stack([one.weights for one in ours])
    off = task.predict(architecture, stack, points, [one.job for one in ours]) - task.y[rest]
    one, all_of_them = scoring.rmse(off) ** 2, scoring.rmse(off.mean(axis=0)) ** 2
    # The error of a mean of k is a + b / k.
    chance = (one - all_of_them) / (1 - 1 / len(ours))
    left = (one - chance * (1 - 1 / networks)) / one if one > 0 else 1.0
    return float(np.clip(left, 0.0, 1.0))


def _rivals(
    task: PairTask,
    train: Points,
    validation: Points,
    seed: int,
    threads: int,
    progress: Progress,
) -> dict[str, FloatArray]:
    """Predictions ``(n,)`` of the other models for training rows that they did not see."""
    X, y = train
    weights = of_rows(task.weights, slice(task.train))
    of_validation = of_rows(task.weights, slice(task.train, None))
    predictions = {name: np.empty(len(y)) for name in RIVALS}

    def predict(job: tuple[str, int]) -> None:
        name, fold = job
        held = task.fold(fold)
        rest = np.setdiff1d(np.arange(len(y)), held)
        known = X[rest], y[rest]
        each = of_rows(weights, rest), of_validation
        fitted = fit_rival(name, known, validation, each, seed=seed)
        assert fitted is not None  # the default room is enough for a tree
        predictions[name][held] = fitted(X[held])

    jobs = [(name, k) for name in RIVALS for k in range(FOLDS)]
    progress.stage(_COMPARING, seconds=3 + len(y) / 100)
    with ThreadPoolExecutor(threads) as pool:
        for done, (name, _) in enumerate(zip(jobs, pool.map(predict, jobs), strict=True), 1):
            progress.at(NAMES[name[0]], done, len(jobs))
    return predictions
