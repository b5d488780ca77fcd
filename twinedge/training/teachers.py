"""Models that may teach a twin, what they predict, and a task that learns from it.

Trees know what networks do not, and vice versa; their weighted mean is better than any of them. A
device has no room for all of them, but it has room for a network that learnt from them.

Every teacher predicts rows that it was not fitted to, fold by fold, and points between neighboring
rows, by the mean over its folds. Non-negative weights bring the mean of all teachers closest to the
targets of the rows. A network then learns from both: for a row, a mix of its target and the
teachers' prediction; for a point between rows, their prediction.

If rows have weights, teachers that take them are fitted with them. Those that do not, such as the
Gaussian process, learn all rows alike. All are compared and combined by weighted errors, so that
one that follows the wrong rows has little weight.

That helps if the target is noisy, since the teachers' prediction of a row has none of its noise. If
it is not, they are further off than the target itself. How far off they are shows which it is
(``selection.py``).
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_regressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from twinedge import scoring
from twinedge.errors import InputError, wrong_value
from twinedge.scoring.weights import draw, of_rows
from twinedge.training.batches import Examples
from twinedge.training.network import Architecture, FloatArray, Scaling
from twinedge.training.tasks import FOLDS, Kind, Rows, Task
from twinedge.training.trainer import NetworkJob

NETWORKS = "networks"  # the twins themselves, trained on the other folds
NAMES = (NETWORKS, "trees", "boosting", "gp")

_MANY_ROWS = 3000  # above this, boosting uses histograms
_TREE_ROWS = 10_000  # most rows that a tree is grown from
_GP_ROWS, _GP_LENGTH_ROWS = 1500, 300  # a process keeps the first, and fits lengths on the second


@dataclass(frozen=True)
class Teacher:
    """One teacher; it sees features in their own units, and targets on their curve.

    A fitted one predicts targets in their own units, as it has learnt.
    """

    name: str  # in records
    estimator: Any  # a regressor with scikit-learn's interface
    fitted: bool = False  # whether it is used as it is, and never fitted

    def fit(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> Any:
        """Return a copy fitted to these points, or the estimator itself if it is fitted.

        Weights are passed on if the estimator takes them.
        """
        if self.fitted:
            return self.estimator
        if weights is None or not has_fit_parameter(self.estimator, "sample_weight"):
            return clone(self.estimator).fit(X, y)
        return clone(self.estimator).fit(X, y, sample_weight=weights)

    def after(self, first: Any) -> "Teacher":
        """Return the teacher for the other folds, which reuses settings that the first found."""
        resolved = getattr(first, "resolved", None)
        return self if resolved is None or self.fitted else Teacher(self.name, resolved())


def teachers_of(requested: Any, rows: int, seed: int) -> tuple[list[Teacher], bool] | None:
    """Resolve the parameter ``teachers`` of ``TwinRegressor``, for this many training rows.

    Returns
    -------
    (list of Teacher, bool) or None
        Those requested, and whether the networks teach, too; None without teachers.
    """
    if requested is None or (isinstance(requested, str) and requested == "none"):
        return None
    wanted: Sequence[Any] = requested
    if isinstance(requested, str):
        wanted = NAMES if requested == "auto" else (requested,)
    elif not isinstance(requested, list | tuple):
        raise wrong_value("teachers", requested, "is not 'auto', None or a list of teachers")
    if not wanted:
        raise wrong_value("teachers", requested, "names no teacher; use None for no teachers")
    found, networks = [], False
    for one in wanted:
        if not isinstance(one, str):
            found.append(_own(one))
        elif one == NETWORKS:
            networks = True
        elif one in _BUILT_IN:
            found.append(Teacher(one, _BUILT_IN[one](rows, seed)))
        else:
            known = ", ".join(map(repr, NAMES))
            raise InputError(f"teachers: {one!r} is not one of {known}, nor a regressor")
    names = [teacher.name for teacher in found]
    numbered = [
        replace(teacher, name=f"{teacher.name} {names[: k + 1].count(teacher.name)}")
        if names.count(teacher.name) > 1
        else teacher
        for k, teacher in enumerate(found)
    ]
    return numbered, networks


def _own(estimator: Any) -> Teacher:
    """Make a teacher of a user's own estimator, fitted or not."""
    try:
        suits = is_regressor(estimator) or hasattr(estimator, "predict")
    except (AttributeError, TypeError):  # not an estimator
        suits = False
    if not suits or isinstance(estimator, type):
        raise InputError(f"teachers: {estimator!r} is not a scikit-learn regressor")
    try:
        check_is_fitted(estimator)
        fitted = True
    except (NotFittedError, TypeError):
        fitted = False
    return Teacher(type(estimator).__name__, estimator, fitted)


def _trees(rows: int, seed: int) -> Any:
    # Growing a forest from more rows would take longer, and not make it better.
    share = None if rows <= _TREE_ROWS else _TREE_ROWS / rows
    return ExtraTreesRegressor(
        200, max_features=0.6, bootstrap=share is not None, max_samples=share, random_state=seed
    )


def _boosting(rows: int, seed: int) -> Any:
    if rows > _MANY_ROWS:
        return HistGradientBoostingRegressor(max_iter=300, learning_rate=0.08, random_state=seed)
    return GradientBoostingRegressor(
        n_estimators=400, learning_rate=0.06, max_depth=5, subsample=0.5, random_state=seed
    )


class GaussianProcess(RegressorMixin, BaseEstimator):
    """A Gaussian process with a length for each feature, fitted in seconds on any table.

    Parameters
    ----------
    random_state : int
        Seed that draws the rows it keeps.
    kernel : kernel, optional
        A kernel with known lengths; by default they are fitted.
    """

    def __init__(self, random_state: int = 0, kernel: Any = None) -> None:
        self.random_state = random_state
        self.kernel = kernel

    def fit(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit lengths on some rows, and the process on more of them."""
        rows = np.random.default_rng(self.random_state).permutation(len(y))[:_GP_ROWS]
        self.scaler_ = StandardScaler().fit(X)
        self.mean_, self.scale_ = float(np.mean(y)), float(np.std(y)) or 1.0
        x, t = self.scaler_.transform(X[rows]), (y[rows] - self.mean_) / self.scale_
        kernel = self.kernel
        if kernel is None:
            smooth = Matern(np.ones(x.shape[1]), (1e-2, 1e3), nu=1.5)
            kernel = ConstantKernel(1.0) * smooth + WhiteKernel(0.1, (1e-6, 10.0))
            few = slice(_GP_LENGTH_ROWS)
            kernel = GaussianProcessRegressor(kernel, random_state=0).fit(x[few], t[few]).kernel_
        self.process_ = GaussianProcessRegressor(kernel, optimizer=None).fit(x, t)
        return self

    def resolved(self) -> "GaussianProcess":
        """Return an unfitted copy with the lengths found."""
        return GaussianProcess(self.random_state, self.process_.kernel_)

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions ``(n,)``."""
        scaled = self.process_.predict(self.scaler_.transform(X))
        return np.asarray(scaled * self.scale_ + self.mean_)


_BUILT_IN: dict[str, Callable[[int, int], Any]] = {
    "trees": _trees,
    "boosting": _boosting,
    "gp": lambda _, seed: GaussianProcess(seed),
}

LEAST_ROWS = 40
_TITLE = "Fitting {}"
_SECONDS = {"trees": 3.0, "boosting": 5.0, "gp": 15.0}  # of all folds, on 1,000 rows
SHARE = 0.5  # of the target in what a taught network learns for a row
_POINTS = 4096
_NEIGHBORS = 20  # a point is between a row and one of its nearest
_MEASURED = 0.6  # share of the examples that are training rows
_TOO_FAR = 2.0  # a teacher with this many times the best error is dropped
# How freely weights may differ from equal ones: they are fitted on a few hundred rows, where a
# plain mean is hard to beat if all teachers are about as good.
_FREEDOM = 0.1


class Predictions(NamedTuple):
    """Predictions of one teacher, scaled: for the training rows ``(n,)``, and for other points."""

    name: str
    rows: FloatArray
    elsewhere: FloatArray


@dataclass(frozen=True)
class Teaching:
    """Combined predictions of all teachers, in scaled units."""

    rows: FloatArray  # for the training rows, shaped as targets, by teachers that did not see them
    x: FloatArray  # points between rows (m, f)
    y: FloatArray  # predictions for these
    # Each with its error on rows that it did not see, in units of the target, and its weight,
    # which is 0 for one that was dropped.
    teachers: list[dict[str, Any]]
    # Error of the combined predictions, in standard deviations of the target: on training rows, or
    # on validation rows if a teacher may have seen those; infinite if that leaves none. Of several
    # targets, the root mean square.
    noise: float = np.inf


@dataclass(frozen=True)
class Teachers:
    """All teachers, and the table in its own units. Weights of the rows are those of the task.

    A fitted teacher is weighed on the validation rows, since it may have seen all others. Each of
    several targets is taught by copies of its own.
    """

    teachers: list[Teacher]  # all except the networks
    networks: bool  # whether the networks trained on folds teach as well
    X: FloatArray  # training rows (n, f), (n,)
    y: FloatArray  # of several targets (n, m)
    X_val: FloatArray  # validation rows (v, f), (v,)
    y_val: FloatArray
    scaling: Scaling
    seed: int  # of the points between rows
    threads: int = 1  # folds that are fitted at a time
    named: bool = False  # whether the user named them, and will want to learn from them
    targets: tuple[str, ...] = ()  # names of several targets

    def points(self, task: Task) -> FloatArray:
        """Draw points between neighboring training rows, ``(m, f)`` scaled."""
        rng = np.random.default_rng([self.seed, 2])
        x = task.x[: task.train]
        first = draw(rng, len(x), of_rows(task.weights, slice(len(x))), _POINTS)
        near = min(_NEIGHBORS + 1, len(x))
        drawn, number = np.unique(first, return_inverse=True)
        search = NearestNeighbors(n_neighbors=near).fit(x)
        neighbors = search.kneighbors(x[drawn], return_distance=False)
        second = neighbors[number, rng.integers(1, near, _POINTS)]
        share = rng.random((_POINTS, 1), np.float32)
        return np.asarray(x[first] + share * (x[second] - x[first]))

    def seconds(self) -> dict[str, float]:
        """About how long each teacher takes, by the name of the stage."""
        many = max(1.0, len(self.y) / 1000)
        return {
            _TITLE.format(one.name): _SECONDS.get(one.name, 3.0) * many for one in self.teachers
        }

    def predict(
        self,
        task: Task,
        points: FloatArray,
        own: list[Predictions],
        stage: Callable[[str], None],
    ) -> Teaching:
        """Collect the predictions of all teachers, and weigh them.

        Parameters
        ----------
        task : Task
            The task to learn.
        points : array of shape (m, f)
            As returned by ``points``.
        own : list of Predictions
            Those of the fold networks: for the rows, then for validation rows and points.
        stage : function
            Called with the title of each teacher before it is fitted.
        """
        if task.targets > 1:
            return self._predict_each(task, points, own, stage)
        target, weights = task.y[: task.train], of_rows(task.weights, slice(task.train))
        elsewhere = np.concatenate(
            [self.scaling.reached(self.X_val), points * self.scaling.x_scale + self.scaling.x_mean]
        )
        folds = [task.fold(k) for k in range(FOLDS)]
        first = folds[0]

        def first_error(one: Predictions) -> float:
            return scoring.rmse(one.rows[first], target[first], of_rows(weights, first))

        found = [one for one in own if self.networks and _is_finite(one)]
        dropped = []
        best = min(map(first_error, found), default=np.inf)
        for teacher in self.teachers:
            stage(_TITLE.format(teacher.name))
            one = self._predict_folds(teacher, folds, weights, elsewhere, _TOO_FAR * best)
            if isinstance(one, Predictions):
                found.append(one)
                best = min(best, first_error(one))
            else:
                off = _rmse(task, one, target[first], of_rows(weights, first))
                dropped.append({"teacher": teacher.name, "rmse": off, "weight": 0.0})
        if not found:
            raise InputError("teachers: all of them are far off; train with teachers=None")
        rows = np.stack([one.rows for one in found], axis=1)
        others = np.stack([one.elsewhere for one in found], axis=1)
        held = len(self.y_val)
        seen = any(teacher.fitted for teacher in self.teachers)
        compared, truth, each = rows, target, weights
        if seen and held:
            compared, truth = others[:held], task.y[task.train :]
            each = of_rows(task.weights, slice(task.train, None))
        trust = weigh(compared, truth, each)
        noise = np.inf if seen and not held else scoring.rmse(compared @ trust, truth, each)
        record = [
            {
                "teacher": one.name,
                "rmse": _rmse(task, one.rows, target, weights),
                "weight": round(float(weight), 4),
            }
            for one, weight in zip(found, trust, strict=True)
        ]
        return Teaching(
            np.asarray(rows @ trust, np.float32),
            points,
            np.asarray(others[held:] @ trust, np.float32),
            record + dropped,
            float(noise),
        )

    def _predict_each(
        self,
        task: Task,
        points: FloatArray,
        own: list[Predictions],
        stage: Callable[[str], None],
    ) -> Teaching:
        """Collect predictions of several targets: also of those that rows did not measure."""
        rows = np.empty_like(task.y[: task.train])
        y = np.empty((len(points), task.targets), np.float32)
        teachers, noise = [], []
        for target, name in enumerate(self.targets):
            known = task.measured(target)
            train, held = known[known < task.train], known[known >= task.train] - task.train
            others = np.setdiff1d(np.arange(task.train), train)
            mine = replace(
                self,
                X=self.X[train],
                y=self.y[train, target],
                X_val=self.X_val[held],
                y_val=self.y_val[held, target],
                scaling=self.scaling.of_target(target),
                targets=(),
            )
            count = len(self.y_val)
            networks = [
                Predictions(
                    one.name,
                    one.rows[train, target],
                    np.concatenate(
                        [
                            one.elsewhere[held, target],
                            one.elsewhere[count:, target],
                            one.rows[others, target],
                        ]
                    ),
                )
                for one in own
            ]
            more = np.concatenate([points, task.x[others]])
            found = mine.predict(task.of_target(target), more, networks, stage)
            rows[train, target], rows[others, target] = found.rows, found.y[len(points) :]
            y[:, target] = found.y[: len(points)]
            teachers += [{"target": name, **one} for one in found.teachers]
            noise.append(found.noise)
        return Teaching(rows, points, y, teachers, scoring.rmse(np.array(noise)))

    def _predict_folds(
        self,
        teacher: Teacher,
        folds: list[Rows],
        weights: FloatArray | None,
        elsewhere: FloatArray,
        worst: float,
    ) -> Predictions | FloatArray:
        """Predict each fold without it; only the first if its error is above ``worst``."""
        y = self.scaling.curved(self.y)

        def fold(k: int, teacher: Teacher) -> tuple[Any, FloatArray, FloatArray]:
            rest = np.setdiff1d(np.arange(len(self.y)), folds[k])
            model = teacher.fit(self.X[rest], y[rest], of_rows(weights, rest))
            points = np.concatenate([self.X[folds[k]], elsewhere])
            predicted = np.asarray(model.predict(points), np.float64).reshape(len(points))
            if not np.isfinite(predicted).all():
                raise InputError(f"teachers: {teacher.name} predicts values that are not finite")
            if teacher.fitted and self.scaling.curve is not None:
                # It may predict what the curve cannot take, such as a count below zero.
                predicted = self.scaling.curved(np.maximum(predicted, self.y.min()))
            scaled = self.scaling.scaled(predicted)
            return model, scaled[: len(folds[k])], scaled[len(folds[k]) :]

        with warnings.catch_warnings(), ThreadPoolExecutor(self.threads) as pool:
            warnings.simplefilter("ignore")  # about lengths at their bounds, and the like
            model, *first = fold(0, teacher)
            truth = self.scaling.scaled(y[folds[0]])
            error = scoring.rmse(first[0], truth, of_rows(weights, folds[0]))
            if error > worst and not teacher.fitted:
                return first[0]
            later = teacher.after(model)
            rest = pool.map(lambda k: fold(k, later)[1:], range(1, FOLDS))
            found = [(first[0], first[1]), *rest]
        rows = np.empty(len(self.y), np.float32)
        for held, (predicted, _) in zip(folds, found, strict=True):
            rows[held] = predicted
        return Predictions(teacher.name, rows, np.mean([other for _, other in found], axis=0))


def _rmse(
    task: Task, predicted: FloatArray, target: FloatArray, weights: FloatArray | None
) -> float:
    """Error of scaled predictions ``(n,)``, in units of the target."""
    if task.curved is None:
        return scoring.rmse(predicted, target, weights) * task.scale
    restored = task.curved.restored
    return scoring.rmse(restored(predicted), restored(target), weights)


def _is_finite(one: Predictions) -> bool:
    """Whether the networks that predicted this did not diverge."""
    return bool(np.isfinite(one.rows).all() and np.isfinite(one.elsewhere).all())


def weigh(
    predictions: FloatArray, target: FloatArray, each: FloatArray | None = None
) -> FloatArray:
    """Non-negative weights ``(k,)`` that bring predictions of k teachers ``(n, k)`` to a target.

    They are pulled towards equal weights, the more so the fewer rows there are. ``each`` ``(n,)``
    is how much each row counts.
    """
    predictions, target = predictions.astype(np.float64), target.astype(np.float64)
    if each is not None:
        root = np.sqrt(each / each.mean())
        predictions, target = predictions * root[:, None], target * root
    count = predictions.shape[1]
    noise = np.sqrt(np.mean(np.square(predictions - target[:, None]), axis=0).min())
    pull = noise / _FREEDOM
    matrix = np.vstack([predictions, pull * np.eye(count)])
    found: FloatArray = nnls(matrix, np.concatenate([target, np.full(count, pull / count)]))[0]
    return found


@dataclass(frozen=True)
class TaughtTask:
    """A task some of whose networks learn the predictions of teachers as well as rows."""

    task: Task
    teaching: Teaching

    def batch_of(self, activation: str) -> int:
        """Examples per step."""
        return self.task.batch_of(activation)

    def architecture(self, kind: Kind) -> Architecture:
        """Shape of the networks."""
        return self.task.architecture(kind)

    def examples(self, jobs: list[NetworkJob]) -> Examples:
        """Training rows, for networks that are taught repeated if few, and points between them."""
        task, teaching = self.task, self.teaching
        if not jobs[0].taught:
            return task.examples(jobs)
        points = len(teaching.y)
        times = max(1, round(points * _MEASURED / (1 - _MEASURED) / task.train))
        others = np.arange(len(task.y), len(task.y) + points)
        rows = []
        for job in jobs:
            own = np.concatenate([np.tile(task.rows(job), times), others])
            rows.append(np.random.default_rng([job.seed, 3]).permutation(own))
        own = task.y[: task.train]
        mixed = SHARE * own + (1 - SHARE) * teaching.rows
        # What a row did not measure, it learns from the teachers alone.
        mixed = np.where(np.isnan(own), teaching.rows, mixed)
        y = np.concatenate([mixed, task.y[task.train :], teaching.y]).astype(np.float32)
        x = np.concatenate([task.x, teaching.x]).astype(np.float32)
        weights = None if task.weights is None else np.append(task.weights, np.ones(points))
        x = task.coded(x, jobs[0].bins)
        return task.widened(x, y, np.stack(rows).astype(np.int32), weights)

    def score(
        self, architecture: Architecture, stack: FloatArray, jobs: list[NetworkJob]
    ) -> FloatArray:
        """RMSE on the validation rows, as without teachers."""
        return self.task.score(architecture, stack, jobs)
