"""Choose the curve of the target: none, its root or its logarithm.

Only a skewed target can gain. Each row of the training is predicted by a network that did not see
it, as when settings are compared, but with one short training for each curve and fold. Errors are
those in units of the target, whatever was learnt. The target itself is kept unless a curve is
clearly better: differences of squared errors, row by row, show how far chance would go. Rows of one
group have much in common, so that there chance is seen from whole groups.
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from twinedge.progress import Progress
from twinedge.scoring.scores import rmse
from twinedge.scoring.target_curve import TargetCurve
from twinedge.scoring.weights import mean_and_std, of_rows
from twinedge.training.network import FloatArray, Scaling
from twinedge.training.selection import SETTINGS, Candidate, Plan, predict_held_out
from twinedge.training.tasks import FOLDS, Task
from twinedge.training.trainer import TITLES, Checkpoint, Interrupted, train

AnyTask = TypeVar("AnyTask", bound=Task)

SKEWED = 1.0  # skewness from which a curve is considered
_CURVES = ("sqrt", "log")  # log1p depends on the unit of the target: that is for users to choose
_SHARE = 10  # of the steps of the final training, so that all takes a tenth of the whole
_LEAST_STEPS, _MOST_STEPS = 800, 3000
_REST = 9.0  # times as long takes what follows
# By how much a curve must be better: in standard errors (one wild row alone makes up 1), and as a
# share of the error.
_CLEAR, _NOTICED = 1.5, 0.01


@dataclass(frozen=True)
class CurveChoice:
    """A curve of the target, and how it was chosen.

    Parameters
    ----------
    curve : TargetCurve or None
        The choice; None for the target itself.
    skewness : float
        Skewness of the training targets.
    rmse : dict of str to float
        Error of networks on rows that they did not see, in units of the target, by curve; empty if
        no curve was considered.
    gains : dict of str to (float, float)
        How much smaller the mean squared error is than without a curve, and the standard error of
        that, both as shares of it.
    steps : int
        Length of each training.
    reason : str, optional
        Why no curve was considered, as words after "and".
    """

    curve: TargetCurve | None
    skewness: float
    rmse: dict[str, float]
    gains: dict[str, tuple[float, float]]
    steps: int
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        """Return everything, as values for JSON."""
        return {
            "chosen": "none" if self.curve is None else self.curve.kind,
            "skewness": self.skewness,
            "steps": self.steps,
            "rmse": self.rmse,
            "gain": {kind: gain for kind, (gain, _) in self.gains.items()},
            "gain_error": {kind: error for kind, (_, error) in self.gains.items()},
            **({"reason": self.reason} if self.reason else {}),
        }


def choose_curve(
    task: Task,
    y: FloatArray,
    scaling: Scaling,
    plan: Plan,
    *,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint,
    threads: int = 1,
) -> CurveChoice:
    """Compare curves of the target on the training rows of a task.

    Parameters
    ----------
    task : Task
        Scaled without a curve.
    y : array of shape (n,)
        Targets of all its rows, in their own units.
    scaling : Scaling
        That of the task.
    plan : Plan
        Of the training that follows.
    seed, progress, checkpoint, threads
        As for ``train``.

    Raises
    ------
    KeyboardInterrupt
        If the user stops it: there is no network yet that could be kept.
    """
    rows, each = slice(task.train), of_rows(task.weights, slice(task.train))
    skewed, steps = skewness(y[rows], each), steps_of(plan)
    task = _of_any_pairs(task)
    curves = [one for one in map(TargetCurve, _CURVES) if one.takes(y).all()]
    reason = _obstacle(skewed, curves, task)
    if reason is not None:
        return CurveChoice(None, skewed, {}, {}, 0, reason)
    candidate = Candidate("relu", SETTINGS["relu"][0])
    jobs = [candidate.job(steps, seed + k, k) for k in range(FOLDS)]
    titles = [TITLES[_stage(one)] for one in (None, *curves)]
    progress.plan({**dict.fromkeys(titles, 1.0), "Training": _REST * len(titles)})
    errors = {}
    for curve in (None, *curves):
        mine = with_curve(task, y, scaling.bent(y[rows], each, curve))
        try:
            networks = train(
                mine,
                jobs,
                stage=_stage(curve),
                seed=seed,
                progress=progress,
                checkpoint=checkpoint,
                threads=threads,
                looks=1,
            )
        except Interrupted as stop:
            raise KeyboardInterrupt from stop
        (found,) = predict_held_out(mine, [candidate], networks, task.x[:0])
        restored = (mine.curved or scaling).restored(found.rows)
        off = np.where(np.isfinite(restored), restored, np.finfo(np.float32).max) - y[rows]
        errors["none" if curve is None else curve.kind] = off
    return _best(errors, each, task.groups, skewed, steps)


def with_curve(task: AnyTask, y: FloatArray, scaling: Scaling) -> AnyTask:
    """Return a task that learns its targets ``(n,)`` as another scaling says."""
    curved = None if scaling.curve is None else scaling
    return replace(task, y=scaling.target(y), scale=scaling.y_scale, curved=curved)


def skewness(y: FloatArray, weights: FloatArray | None = None) -> float:
    """Third moment of values ``(n,)``, in standard deviations; 0 if they do not vary.

    Examples
    --------
    >>> skewness(np.array([1.0, 1.0, 1.0]))
    0.0
    >>> round(skewness(np.array([1.0, 1.0, 1.0, 5.0])), 2)
    1.15
    """
    mean, std = mean_and_std(y, 0, weights)
    if not std > 1e-12 * abs(mean):
        return 0.0
    return float(np.average(((y - mean) / std) ** 3, weights=weights))


def steps_of(plan: Plan) -> int:
    """Return the steps of each network that curves are compared by."""
    return min(max(plan.final // _SHARE, _LEAST_STEPS), _MOST_STEPS)


def _obstacle(skewed: float, curves: list[TargetCurve], task: Task) -> str | None:
    """Return why no curve is considered; None if there are some to compare."""
    if not skewed > SKEWED:
        return f"only one above {SKEWED:g} is worth a comparison"
    if not curves:
        return "some targets are negative"
    return None if task.has_folds else "there are too few rows to compare on"


def _stage(curve: TargetCurve | None) -> str:
    return f"curve {'none' if curve is None else curve.kind}"


def _of_any_pairs(task: Task) -> Task:
    """Return the task with nothing beside its rows, any of which may be held out."""
    beside = ("partners", "neighbors", "unlabelled", "extra")
    none: dict[str, Any] = {name: None for name in beside if hasattr(task, name)}
    return replace(task, foldable=True, **none)


def _best(
    errors: dict[str, FloatArray],
    weights: FloatArray | None,
    groups: Any,
    skewed: float,
    steps: int,
) -> CurveChoice:
    """Choose by the errors ``(n,)`` of each curve, the first of which is none."""
    each = np.ones(len(errors["none"])) if weights is None else weights / weights.mean()
    size = float(np.abs(errors["none"]).max()) or 1.0
    squares = {kind: each * np.square(off / size) for kind, off in errors.items()}
    unit = float(squares["none"].mean()) or 1.0
    gains = {}
    for kind in list(squares)[1:]:
        less = squares["none"] - squares[kind]
        gains[kind] = (float(less.mean()) / unit, _standard_error(less, groups) / unit)
    better = [
        kind
        for kind, (gain, error) in gains.items()
        if gain > _CLEAR * error and gain > 1 - (1 - _NOTICED) ** 2
    ]
    best = max(better, key=lambda kind: gains[kind][0], default=None)
    found = {kind: rmse(off, weights=weights) for kind, off in errors.items()}
    return CurveChoice(None if best is None else TargetCurve(best), skewed, found, gains, steps)


def _standard_error(values: FloatArray, groups: Any) -> float:
    """Return the standard error of a mean of values ``(n,)``, by whole groups if there are any."""
    off = values - values.mean()
    if groups is not None:
        off = np.bincount(groups, off)
    count = len(off)
    return float(np.sqrt(np.sum(np.square(off)) * count / max(count - 1, 1)) / len(values))
