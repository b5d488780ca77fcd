"""Train several networks side by side, with progress, checkpoints and early stopping by Ctrl-C.

A checkpoint is a folder: one file for each round of training with the state of its networks, and
one with the data and settings it belongs to. Files are written to temporary names and
renamed, so that a stop at any moment leaves the last whole state.

Networks of the same activation and length train as one stack, each stack in its own thread. Every
so often each network's averaged weights are scored on validation data and the best are kept, so
that a training that is stopped, or overfits late, ends with the best weights it had.
"""

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twinedge.atomic_files import write_file
from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.progress import Progress
from twinedge.training.batches import CHUNK, Setting, Stack, State
from twinedge.training.network import FloatArray, tf

if TYPE_CHECKING:
    from twinedge.training.tasks import Task
    from twinedge.training.teachers import TaughtTask

Arrays = dict[str, Any]

INTERVAL = 15.0  # seconds between two saves
_LABEL = "owner.json"
_RESUME = Parameter("resume", True)


class Checkpoint:
    """The states of a training's rounds in a folder, or nowhere.

    Parameters
    ----------
    folder : path or None
        Where to keep them; None keeps nothing.
    owner : dict
        Data and settings of the training, in JSON types; a checkpoint of another owner is refused.
    resume : bool
        Continue from what the folder holds; otherwise a checkpoint there is discarded.
    """

    def __init__(
        self, folder: Path | None, owner: dict[str, Any] | None = None, resume: bool = False
    ) -> None:
        self._folder = None if folder is None else Path(folder)
        if self._folder is None:
            if resume:
                raise InputError("resume=True needs the checkpoint folder to continue from")
            return
        label = self._folder / _LABEL
        if resume:
            _check_owner(label, owner or {})
            return
        try:
            _clear(self._folder, label)
            label.write_text(json.dumps(owner))
        except OSError as error:
            why = error.strerror or error
            raise InputError(f"cannot write to {self._folder}: {why}") from error

    def save(self, stage: str, stacks: list[Arrays]) -> None:
        """Keep the arrays of each stack of a round."""
        if self._folder is None:
            return
        named = {f"{i}/{key}": a for i, stack in enumerate(stacks) for key, a in stack.items()}
        content = io.BytesIO()
        np.savez(content, **named)
        write_file(self._folder / f"{stage}.npz", content.getvalue())

    def load(self, stage: str, fresh: list[Arrays]) -> list[Arrays]:
        """Arrays of each stack of a round; ``fresh`` if the round was not begun."""
        path = None if self._folder is None else self._folder / f"{stage}.npz"
        if path is None or not path.exists():
            return fresh
        try:
            with np.load(path, allow_pickle=False) as file:
                saved = [
                    {key: file[f"{i}/{key}"] for key in stack} for i, stack in enumerate(fresh)
                ]
            if _shapes(saved) != _shapes(fresh):
                raise ValueError("the stacks differ")
        except Exception as error:  # the readers of zip and npy raise a dozen kinds
            raise ParameterError(
                f"{path} is damaged or from a training on a different number of cores: train "
                "without ",
                _RESUME,
            ) from error
        return saved


def discard(folder: Path) -> None:
    """Remove a checkpoint whose training is finished, but no other files in its folder."""
    with suppress(OSError):
        _remove(folder)
        folder.rmdir()


def _shapes(stacks: list[Arrays]) -> list[dict[str, tuple[int, ...]]]:
    return [{key: np.shape(array) for key, array in stack.items()} for stack in stacks]


def _clear(folder: Path, label: Path) -> None:
    """Create the folder, or empty it; refuse one that is not a checkpoint."""
    if folder.exists() and any(folder.iterdir()):
        if not label.is_file():
            raise InputError(f"{folder} holds something that is not a checkpoint")
        _remove(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _remove(folder: Path) -> None:
    """Remove the files of a checkpoint, last the one that marks it as such."""
    for pattern in ("*.npz", "*.partial", _LABEL):
        for path in folder.glob(pattern):
            path.unlink()


def _check_owner(label: Path, owner: dict[str, Any]) -> None:
    try:
        found = json.loads(label.read_text())
        differing = sorted(key for key in {*found, *owner} if found.get(key) != owner.get(key))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ParameterError(
            f"{label.parent} holds no training to resume: train without ", _RESUME
        ) from error
    if differing:
        settings = [key for key in differing if key != "data"]
        other = ["other data"] if "data" in differing else []
        if settings:
            value = "another value" if len(settings) == 1 else "other values"
            other.append(f"{value} of {', '.join(settings)}")
        raise ParameterError(
            f"{label.parent} was begun with {' and '.join(other)}: resume with the same, or train "
            "without ",
            _RESUME,
        )


_LOOKS = 20  # validations over one training
# Rounds of a training, as progress shows them.
TITLES = {
    "curve none": "Comparing target curves, none",
    "curve sqrt": "Comparing target curves, sqrt",
    "curve log": "Comparing target curves, log",
    "folds": "Comparing settings",
    "longer folds": "Training the networks",
    "across groups": "Training across groups",
    "final round": "Training the networks",
}


@dataclass(frozen=True)
class NetworkJob:
    """One network to train."""

    activation: str
    setting: Setting
    steps: int
    seed: int  # of the initial weights and of the order of the rows
    fold: int | None = None  # of the training rows kept for validation; None trains on all
    bins: int = 0  # of a feature in the map in front of the network; 0 for no map
    taught: bool = False  # whether it learns from teachers

    @property
    def shares_map(self) -> bool:
        """Whether it learns a map together with the other networks of its candidate."""
        return self.bins > 0 and self.fold is None


class Trained(NamedTuple):
    """One network: its last weights ``(size,)``, their validation RMSE, and its best weights.

    The best of many looks are picked on the rows they are scored on, so they look better than they
    are. A network that diverged has only its best weights.
    """

    job: NetworkJob
    weights: FloatArray
    score: float
    best: FloatArray


class DivergedError(ParameterError):
    """No network of a training has weights that predict finite numbers."""

    def __init__(self) -> None:
        super().__init__("the training diverged: try a smaller ", Parameter("learning_rate"))


class Interrupted(Exception):  # noqa: N818 - no error: what was reached is in ``results``
    """The user stopped the training."""

    def __init__(self, results: list[Trained]) -> None:
        super().__init__("the training was interrupted")
        self.results = results


def train(
    task: "Task | TaughtTask",
    jobs: list[NetworkJob],
    *,
    stage: str,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
    threads: int = 1,
    looks: int = _LOOKS,
) -> list[Trained]:
    """Train all networks, ``threads`` stacks at a time; returns them in the order of ``jobs``.

    They are scored ``looks`` times on validation data; once is enough if only the last weights are
    of use.

    Raises
    ------
    Interrupted
        On Ctrl-C, with the best weights of each network so far.
    """
    tf.begin_training()
    meter = _Meter(progress)
    groups = _stacks(jobs, threads)
    runs = [_Run(task, [jobs[i] for i in group], seed, meter, looks) for group in groups]
    fresh = [run.snapshot() for run in runs]
    for run, saved in zip(runs, checkpoint.load(stage, fresh), strict=True):
        run.restore(saved)
    steps = sum(run.remaining for run in runs)
    progress.stage(TITLES.get(stage, stage), steps, of=sum(job.steps for job in jobs))
    stop = threading.Event()
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(run.to_the_end, stop) for run in runs]
        try:
            while wait(futures, timeout=INTERVAL).not_done:
                checkpoint.save(stage, [run.snapshot() for run in runs])
        except KeyboardInterrupt:
            stop.set()
        except BaseException:  # such as a full disk: the threads would run for hours
            stop.set()
            raise
    try:
        for future in futures:
            future.result()
        checkpoint.save(stage, [run.snapshot() for run in runs])
    except KeyboardInterrupt:
        stop.set()
    if stop.is_set():
        for run in runs:  # after the save: a resumed training must not know about this look
            run.look()
    results: list[Trained] = [None] * len(jobs)  # type: ignore[list-item]
    for group, run in zip(groups, runs, strict=True):
        for i, trained in zip(group, run.results(), strict=True):
            results[i] = trained
    if stop.is_set():
        raise Interrupted(results)
    return results


def _stacks(jobs: list[NetworkJob], threads: int) -> list[list[int]]:
    """Group similar networks into stacks, small enough to keep every thread busy."""

    def alike(i: int) -> tuple[bool, int, str, float, bool, int, float]:
        job, setting = jobs[i], jobs[i].setting
        # Networks that share a map are in one stack, and those of another candidate in another.
        apart = setting.weight_decay if job.shares_map else 0.0
        examples = job.taught, -job.steps, job.activation
        return *examples, setting.learning_rate, job.fold is not None, job.bins, apart

    share = -(-len(jobs) // threads)
    stacks = []
    for _, group in groupby(sorted(range(len(jobs)), key=alike), key=alike):
        those = list(group)
        most = len(those) if jobs[those[0]].shares_map else share
        stacks += [those[k : k + most] for k in range(0, len(those), most)]
    return stacks


class _Meter:
    """Passes the reports of several threads on to one progress display."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._best = np.inf

    def report(self, steps: int, loss: float, score: float) -> None:
        with self._lock:
            self._best = min(self._best, score)
            self._progress.advance(steps, loss, self._best)


class _Watch(NamedTuple):
    """Where a stack stands; replaced as a whole, so that a snapshot is consistent."""

    state: State
    latest: FloatArray
    best: FloatArray
    best_weights: FloatArray


class _Run:
    """One stack in training, with the best weights of each of its networks."""

    def __init__(
        self,
        task: "Task | TaughtTask",
        jobs: list[NetworkJob],
        seed: int,
        meter: _Meter,
        looks: int,
    ) -> None:
        self._task, self._jobs, self._meter, self._looks = task, jobs, meter, looks
        self._architecture = task.architecture(jobs[0])
        self._stack = Stack(
            self._architecture,
            task.examples(jobs),
            learning_rate=jobs[0].setting.learning_rate,
            weight_decays=[job.setting.weight_decay for job in jobs],
            steps=jobs[0].steps,
            batch=task.batch_of(jobs[0].activation),
            seeds=[job.seed for job in jobs],
            seed=seed,
        )
        unknown = np.full(len(jobs), np.inf)
        self._watch = _Watch(self._stack.state, unknown, unknown, self._stack.average())

    @property
    def remaining(self) -> int:
        return (self._stack.steps - self._stack.step) * len(self._jobs)

    def to_the_end(self, stop: threading.Event) -> None:
        """Train until all steps are done or ``stop`` is set; a failure stops the other stacks."""
        try:
            self._advance(stop)
        except BaseException:
            stop.set()
            raise

    def _advance(self, stop: threading.Event) -> None:
        look_every = max(CHUNK, self._stack.steps // self._looks // CHUNK * CHUNK)
        while not self._stack.finished and not stop.is_set():
            before = self._stack.step
            loss = self._stack.advance()
            self._note(self._stack.step % look_every == 0 or self._stack.finished)
            steps = (self._stack.step - before) * len(self._jobs)
            self._meter.report(steps, float(np.mean(loss)), float(np.min(self._watch.best)))

    def look(self) -> None:
        """Score the weights at the point where the training was stopped."""
        if not self._stack.finished:
            self._note(due=True)

    def _note(self, due: bool) -> None:
        if not due:
            self._watch = self._watch._replace(state=self._stack.state)
            return
        self._stack.limit_sums()
        state = self._stack.state
        now = self._task.score(self._architecture, state.average, self._jobs)
        now = np.where(np.isfinite(now), now, np.inf)  # a diverged network is the worst
        if self._jobs[0].shares_map:  # their best weights are those of one moment
            now = np.full_like(now, now.mean())
        better = now < self._watch.best
        best = np.where(better, now, self._watch.best)
        weights = np.where(better[:, None], state.average, self._watch.best_weights)
        self._watch = _Watch(state, now, best, weights)

    def results(self) -> list[Trained]:
        state, latest, best, best_weights = self._watch
        ever = np.isfinite(best)  # otherwise nothing was learnt that could be kept
        best_weights = np.where(ever[:, None], best_weights, state.average)
        diverged = ~np.isfinite(latest)
        scores = np.where(diverged, best, latest)
        weights = np.where(diverged[:, None], best_weights, state.average)
        return list(map(Trained, self._jobs, weights, map(float, scores), best_weights))

    def snapshot(self) -> Arrays:
        state, *rest = self._watch
        return {**state._asdict(), **dict(zip(_Watch._fields[1:], rest, strict=True))}

    def restore(self, saved: Arrays) -> None:
        arrays = {key: saved[key] for key in State._fields[:-1]}
        self._stack.state = State(**arrays, step=int(saved["step"]))
        self._watch = _Watch(self._stack.state, *(saved[key] for key in _Watch._fields[1:]))
