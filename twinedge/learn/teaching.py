"""What teachers have to say, and a task that learns from it.

Every teacher is asked about rows that it was not fitted to, fold by fold, and about points between
neighbouring rows, where the mean over its folds speaks. Weights that are not negative bring their
mean nearest to the targets of the rows. A network then learns from both: of a row, part of its
target and part of what the teachers say; of a point between rows, what they say.

That is a gain where the target is noisy, for the teachers' word on a row has none of its noise.
Where it has none, they are further off than the target itself: so the share of the target is chosen
on validation rows (``selection.py``), and to do without teachers is one of the choices.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.neighbors import NearestNeighbors

from twinedge.errors import InputError
from twinedge.learn.backend import CORES
from twinedge.learn.examples import Examples
from twinedge.learn.network import Architecture, FloatArray
from twinedge.learn.scaling import Scaling
from twinedge.learn.tasks import FOLDS, PairTask, PointTask, Rows
from twinedge.learn.teachers import Teacher
from twinedge.learn.training import Job

LEAST_ROWS = 40
SHARE = 0.5  # of the target in what a taught network learns of a row
_POINTS = 4096
_NEIGHBOURS = 20  # a point lies between a row and one of its nearest
_MEASURED = 0.6  # part of the examples that are training rows
_TOO_FAR = 2.0  # a teacher that is off by so much more than the best is not asked again
# How far weights may be from equal ones at no great cost: they are found on a few hundred rows, on
# which a mean of all is hard to beat where all are about as good.
_FREEDOM = 0.1


@dataclass(frozen=True)
class Word:
    """What one teacher says, in scaled units: of the training rows ``(n,)``, and of points."""

    name: str
    rows: FloatArray
    elsewhere: FloatArray


@dataclass(frozen=True)
class Lessons:
    """What all teachers say together, in scaled units.

    Parameters
    ----------
    rows : array of shape (n,)
        Of the training rows, asked of teachers that did not see them.
    x, y : array of shape (m, f), (m,)
        Points between rows, and what is said of them.
    teachers : list of dict
        Each with its error on rows that it did not see, in units of the target, and its weight;
        none for one that was not asked to the end.
    """

    rows: FloatArray
    x: FloatArray
    y: FloatArray
    teachers: list[dict[str, Any]]


@dataclass(frozen=True)
class School:
    """Teachers, and the table in its own units.

    Parameters
    ----------
    teachers : list of Teacher
        Those that are no networks of ours.
    networks : bool
        Whether the networks trained on folds teach as well.
    X, y : array of shape (n, f), (n,)
        Training rows.
    X_val, y_val : array of shape (v, f), (v,)
        Validation rows: what a fitted teacher is weighed by, who may have seen all others.
    scaling : Scaling
        Of these.
    seed : int
        Of the points between rows.
    """

    teachers: list[Teacher]
    networks: bool
    X: FloatArray
    y: FloatArray
    X_val: FloatArray
    y_val: FloatArray
    scaling: Scaling
    seed: int

    def points(self, task: PairTask | PointTask) -> FloatArray:
        """Draw points between neighbouring training rows, ``(m, f)`` scaled."""
        rng = np.random.default_rng([self.seed, 2])
        x = task.x[: task.train]
        first = rng.integers(0, len(x), _POINTS)
        near = min(_NEIGHBOURS + 1, len(x))
        asked, place = np.unique(first, return_inverse=True)
        index = (
            NearestNeighbors(n_neighbors=near).fit(x).kneighbors(x[asked], return_distance=False)
        )
        second = index[place, rng.integers(1, near, _POINTS)]
        share = rng.random((_POINTS, 1), np.float32)
        return np.asarray(x[first] + share * (x[second] - x[first]))

    def lessons(
        self,
        task: PairTask | PointTask,
        points: FloatArray,
        own: list[Word],
        stage: Callable[[str], None],
    ) -> Lessons:
        """Ask everybody, and find out how much each is worth.

        Parameters
        ----------
        task : PairTask or PointTask
            What is to be learnt.
        points : array of shape (m, f)
            Of ``points``.
        own : list of Word
            What networks of the folds say: of the rows, then of the validation rows and points.
        stage : function
            Called with the name of the teacher who is asked next.
        """
        target = task.y[: task.train]
        elsewhere = np.concatenate(
            [self.scaling.reached(self.X_val), points * self.scaling.x_scale + self.scaling.x_mean]
        )
        folds = [task.fold(k) for k in range(FOLDS)]
        first = folds[0]
        heard = [word for word in own if np.isfinite(word.rows).all()] if self.networks else []
        words, silent = [word for word in heard if np.isfinite(word.elsewhere).all()], []
        best = min([_rms(word.rows[first] - target[first]) for word in words], default=np.inf)
        for teacher in self.teachers:
            stage(f"asking {teacher.name}")
            word = self._ask(teacher, folds, elsewhere, _TOO_FAR * best)
            if isinstance(word, Word):
                words.append(word)
                best = min(best, _rms(word.rows[first] - target[first]))
            else:
                silent.append({"teacher": teacher.name, "rmse": word * task.scale, "weight": 0.0})
        if not words:
            raise InputError("teachers: all of them are far off; train with teachers=None")
        held = len(self.y_val)
        if any(teacher.fitted for teacher in self.teachers) and held:
            said = np.stack([word.elsewhere[:held] for word in words], axis=1)
            weights = weigh(said, task.y[task.train :])
        else:
            weights = weigh(np.stack([word.rows for word in words], axis=1), target)
        record = [
            {
                "teacher": word.name,
                "rmse": _rms(word.rows - target) * task.scale,
                "weight": round(float(weight), 4),
            }
            for word, weight in zip(words, weights, strict=True)
        ]
        rows = sum(weight * word.rows for weight, word in zip(weights, words, strict=True))
        y = sum(weight * word.elsewhere[held:] for weight, word in zip(weights, words, strict=True))
        return Lessons(
            np.asarray(rows, np.float32), points, np.asarray(y, np.float32), record + silent
        )

    def _ask(
        self, teacher: Teacher, folds: list[Rows], elsewhere: FloatArray, worst: float
    ) -> Word | float:
        """Ask a teacher; a number is by how much it is off in the first fold, if that is more."""

        def fold(k: int, teacher: Teacher) -> tuple[Any, FloatArray, FloatArray]:
            rest = np.setdiff1d(np.arange(len(self.y)), folds[k])
            model = teacher.fit(self.X[rest], self.y[rest])
            asked = np.concatenate([self.X[folds[k]], elsewhere])
            said = np.asarray(model.predict(asked), np.float64).reshape(len(asked))
            if not np.isfinite(said).all():
                raise InputError(f"teachers: {teacher.name} predicts what is not a number")
            scaled = self.scaling.target(said)
            return model, scaled[: len(folds[k])], scaled[len(folds[k]) :]

        with warnings.catch_warnings(), ThreadPoolExecutor(CORES) as pool:
            warnings.simplefilter("ignore")  # of lengths at their bounds, and the like
            model, *first = fold(0, teacher)
            off = _rms(first[0] - self.scaling.target(self.y[folds[0]]))
            if off > worst and not teacher.fitted:
                return off
            later = teacher.after(model)
            rest = pool.map(lambda k: fold(k, later)[1:], range(1, FOLDS))
            found = [(first[0], first[1]), *rest]
        rows = np.empty(len(self.y), np.float32)
        for held, (said, _) in zip(folds, found, strict=True):
            rows[held] = said
        return Word(teacher.name, rows, np.mean([other for _, other in found], axis=0))


def weigh(said: FloatArray, target: FloatArray) -> FloatArray:
    """Weights ``(k,)``, none negative, that bring what k teachers say ``(n, k)`` to a target.

    They lean towards equal ones, the more so the fewer rows there are to tell.
    """
    said, target = said.astype(np.float64), target.astype(np.float64)
    count = said.shape[1]
    noise = np.sqrt(np.mean(np.square(said - target[:, None]), axis=0).min())
    pull = noise / _FREEDOM
    matrix = np.vstack([said, pull * np.eye(count)])
    found: FloatArray = nnls(matrix, np.concatenate([target, np.full(count, pull / count)]))[0]
    return found


@dataclass(frozen=True)
class TaughtTask:
    """What a network has to learn from teachers besides its rows.

    Parameters
    ----------
    task : PairTask or PointTask
        The task itself.
    lessons : Lessons
        What teachers say.
    """

    task: PairTask | PointTask
    lessons: Lessons

    def batch_of(self, activation: str) -> int:
        """Examples per step."""
        return self.task.batch_of(activation)

    def architecture(self, activation: str) -> Architecture:
        """Shape of the networks."""
        return self.task.architecture(activation)

    def examples(self, jobs: list[Job]) -> Examples:
        """Training rows, repeated where they are few, and the points between them."""
        task, lessons = self.task, self.lessons
        points = len(lessons.y)
        times = max(1, round(points * _MEASURED / (1 - _MEASURED) / task.train))
        others = np.arange(len(task.y), len(task.y) + points)
        rows = []
        for job in jobs:
            mine = np.concatenate([np.tile(task.rows(job), times), others])
            rows.append(np.random.default_rng([job.seed, 3]).permutation(mine))
        mixed = SHARE * task.y[: task.train] + (1 - SHARE) * lessons.rows
        y = np.concatenate([mixed, task.y[task.train :], lessons.y]).astype(np.float32)
        x = np.concatenate([task.x, lessons.x]).astype(np.float32)
        return task.widened(x, y, np.stack(rows).astype(np.int32))

    def score(self, architecture: Architecture, stack: FloatArray, jobs: list[Job]) -> FloatArray:
        """RMSE on the validation rows, as for the rows alone."""
        return self.task.score(architecture, stack, jobs)


def _rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(error, dtype=np.float64))))
