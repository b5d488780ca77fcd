"""What regressors made of networks share: checked rows, the choice of settings, the training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples, check_array

from twinedge import scoring
from twinedge.data.splitting import number_groups, time_blocks
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.times import as_row_times
from twinedge.errors import InputError, Parameter, ParameterError, wrong_value
from twinedge.estimators.inputs import TableReader, check_measured, counted_rows
from twinedge.progress import Progress, progress_bar
from twinedge.scoring.scores import check_targets
from twinedge.scoring.target_curve import CURVES, TargetCurve
from twinedge.scoring.weights import (
    check_weights,
    joined_weights,
    measured_rows,
    of_rows,
    relative,
)
from twinedge.training.curve_choice import AnyTask, choose_curve, with_curve
from twinedge.training.input_map import InputMap
from twinedge.training.network import ACTIVATIONS, Architecture, FloatArray, Scaling
from twinedge.training.parameters import (
    is_auto,
    jobs_of,
    nonnegative_number,
    one_of,
    positive_integer,
    widths,
)
from twinedge.training.selection import PLANS, SETTINGS, Candidate, Choice, Plan, Settings, choose
from twinedge.training.sharing import compare_sharing
from twinedge.training.tasks import FOLDS, Task
from twinedge.training.teachers import LEAST_ROWS, Teachers, teachers_of
from twinedge.training.trainer import Checkpoint

Validation = tuple[Any, Any] | tuple[Any, Any, Any] | tuple[Any, Any, Any, Any] | None
Groups = npt.NDArray[np.intp]
Points = tuple[FloatArray, FloatArray]  # features (n, f) and targets (n,) or (n, m)

# Parameters that do not affect the training, so that it can be resumed with different values; a
# ``random_state`` acts through the seed drawn from it.
_NOT_OF_THE_TRAINING = ("anchors", "intervals", "n_jobs", "random_state", "verbose")
FEW_GROUPS = 5  # validation rows of fewer groups decide nothing
_CHOSEN = ("activation", "learning_rate", "weight_decay", "steps", "target_curve")


class NetworkRegressor(RegressorMixin, TableReader):
    """Base of the regressors made of networks; see ``TwinRegressor`` for the parameters."""

    hidden: Any
    activation: str
    learning_rate: Any
    weight_decay: Any
    effort: str
    steps: Any
    teachers: Any
    target_curve: str
    impute: str | None
    validation_fraction: float
    n_jobs: int | None
    random_state: Any
    verbose: bool

    architecture_: Architecture
    weights_: FloatArray
    scaling_: Scaling
    map_: InputMap | None = None
    teaching_: dict[str, Any] | None = None
    curve_choice_: dict[str, Any] | None = None
    groups_: Groups | None = None
    validation_groups_: Groups | None = None
    sample_weights_: FloatArray | None = None
    validation_weights_: FloatArray | None = None
    sharing_: list[dict[str, Any] | None] | None = None
    takes_several_targets = True

    def _prepare(
        self,
        X: Any,
        y: Any,
        validation: Validation,
        seed: int,
        groups: Any = None,
        encoding: Encoding | None = None,
        sample_weight: Any = None,
        times: Any = None,
    ) -> tuple[Points, Points]:
        """Check the data and split it into training and validation rows, both unscaled.

        Rows of one group stay together, and rows of weight 0 are left out; the groups and weights
        are kept in attributes. With times, the newest rows are for validation, and the others are
        in groups that are blocks of time.
        """
        if self.impute is not None:
            one_of("impute", self.impute, ("median",))
        if times is not None:
            if groups is not None:
                raise InputError(
                    "groups and times: rows are held out group by group or in order of time, not "
                    "both; choose one"
                )
            times = _seconds(times, _num_samples(X))
        beside = groups if times is None else times
        X, y, beside, weights = counted_rows(X, y, beside, sample_weight)
        groups, times = (beside, None) if times is None else (None, beside)
        X, y = self._read_training(X, y, encoding)
        curve = self._curve_asked_for
        if self.targets_ > 1 and self.target_curve != "none":
            raise ParameterError(
                Parameter("target_curve", self.target_curve),
                " is for a model of one target: leave it out, or train a model for each target",
            )
        if curve is not None:
            counted = np.arange(len(y)) if weights is None else np.flatnonzero(sample_weight)
            curve.check(y, lambda row: f"row {counted[row]} of {self.target_name_}")
        self.groups_ = self.validation_groups_ = None
        self.sample_weights_ = self.validation_weights_ = None
        if groups is not None:
            groups = _numbered(groups, len(y))
            if not groups.any():
                raise InputError("groups has one group for all rows; at least two are needed")
        if validation is not None:
            if not isinstance(validation, tuple | list) or not 2 <= len(validation) <= 4:
                raise InputError(
                    "validation is not a tuple of points and targets, and after them groups and "
                    "weights if there are any"
                )
            X_val, y_val, *beside = validation
            groups_val, weights_val, *_ = [*beside, None, None]
            X_val, y_val, groups_val, weights_val = counted_rows(
                X_val, y_val, groups_val, weights_val, "validation weights"
            )
            X_val = self._read(X_val)
            shape = np.shape(y_val)
            if shape != (len(X_val), *y.shape[1:]):
                raise InputError(f"validation has {len(X_val)} points and targets of shape {shape}")
            finite = "allow-nan" if self.targets_ > 1 else True
            y_val = check_array(y_val, ensure_2d=False, dtype=np.float64, ensure_all_finite=finite)
            if curve is not None:
                curve.check(y_val, lambda row: f"row {row} of the validation targets")
            self.groups_ = groups if times is None else time_blocks(times, FOLDS)
            if groups_val is not None:
                self.validation_groups_ = _numbered(groups_val, len(y_val))
            self.sample_weights_ = relative(weights)
            self.validation_weights_ = relative(weights_val)
            return self._filled((X, y), (X_val, y_val))
        fraction = nonnegative_number("validation_fraction", self.validation_fraction)
        # Held-out rows of a tiny table would leave nothing to learn from.
        held = round(fraction * len(y)) if len(y) >= 16 else 0
        if fraction >= 1 or len(y) - held < 2:
            raise wrong_value("validation_fraction", fraction, "leaves nothing to train on")
        rng = np.random.default_rng([seed, 0])
        if times is not None:
            order, held = _newest_first(times, held)
            self.groups_ = time_blocks(times[order[held:]], FOLDS)
        elif groups is None:
            order = rng.permutation(len(y))
        else:
            order, held = _together(groups, held, rng)
            self.validation_groups_, self.groups_ = (
                np.unique(part, return_inverse=True)[1] for part in np.split(groups[order], [held])
            )
        self.sample_weights_ = relative(of_rows(weights, order[held:]))
        self.validation_weights_ = relative(of_rows(weights, order[:held]))
        return self._filled((X[order[held:]], y[order[held:]]), (X[order[:held]], y[order[:held]]))

    def _filled(self, train: Points, held: Points) -> tuple[Points, Points]:
        """Fill in missing cells, with values learnt from the training rows, with ``impute``."""
        if self.impute is None:
            return train, held
        self.fill_values_ = self.encoding_.fill(train[0])
        return (self._read(train[0]), train[1]), (self._read(held[0]), held[1])

    def inputs_of(self, scaled: FloatArray) -> FloatArray:
        """Return what the networks take ``(..., g)`` for scaled features ``(..., f)``."""
        return scaled if self.map_ is None else self.map_.apply(scaled)

    def _shape(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of networks and the widths of their layers."""
        return 1, widths("hidden", self.hidden)

    @property
    def target_curve_(self) -> str:
        """What the networks learn of the target: "none" for itself, or the name of a curve."""
        return "none" if self.scaling_.curve is None else self.scaling_.curve.kind

    @property
    def _curve_asked_for(self) -> TargetCurve | None:
        """The curve that the user named; None if it is none, or left to be chosen."""
        named = one_of("target_curve", self.target_curve, ("none", *CURVES, "auto"))
        return TargetCurve(named) if named in CURVES else None

    def _scale(self, train: Points, validation: Points) -> dict[str, Any]:
        """Fit the scaling, and return the scaled rows as arguments of a ``Task``."""
        check_measured(train[1], self.target_names_)
        self.scaling_ = Scaling.of(
            *(*train, self.encoding_.indicators, self.sample_weights_), self._curve_asked_for
        )
        return {
            "x": self.scaling_.features(np.concatenate([train[0], validation[0]])),
            "y": self.scaling_.target(np.concatenate([train[1], validation[1]])),
            "train": len(train[1]),
            "scale": self.scaling_.y_scale if self.targets_ == 1 else 1.0,
            "curved": None if self.scaling_.curve is None else self.scaling_,
            "hidden": self._shape()[1],
            "batch": self._plan(len(train[1])).batch,
            "groups": self.groups_,
            "weights": joined_weights(
                (self.sample_weights_, len(train[1])),
                (self.validation_weights_, len(validation[1])),
            ),
        }

    def _candidates(self, task: Task) -> list[Candidate]:
        """Combine what the user fixed with everything left to choose, for a task."""
        activation = one_of("activation", self.activation, ("auto", *ACTIVATIONS))
        activations = list(ACTIVATIONS) if activation == "auto" else [activation]
        rate, decay = self.learning_rate, self.weight_decay
        fixed: dict[str, float] = {}
        if not is_auto(rate):
            fixed["learning_rate"] = nonnegative_number("learning_rate", rate)
        if not is_auto(decay):
            fixed["weight_decay"] = nonnegative_number("weight_decay", decay)
        found = [
            Candidate(name, replace(setting, **fixed), bins)
            for bins, settings in self._kinds(task)
            for name in activations
            for setting in settings.get(name, ())
        ]
        return list(dict.fromkeys(found))

    def _kinds(self, task: Task) -> list[tuple[int, Settings]]:
        """Bins of the maps that networks may have, 0 for none, and the settings to try with them.

        Only a twin can have a map.
        """
        return [(0, SETTINGS)]

    def _plan(self, rows: int) -> Plan:
        """Return the plan for the effort and this many training rows."""
        plan = PLANS[one_of("effort", self.effort, tuple(PLANS))].given(rows)
        return (
            plan if is_auto(self.steps) else plan.ending_at(positive_integer("steps", self.steps))
        )

    def _teachers(
        self, plan: Plan, task: Task, train: Points, held: Points, seed: int
    ) -> Teachers | None:
        """Return the teachers that were named, or that there is time for; None for none."""
        found = teachers_of(self.teachers, task.train, seed)
        named = not is_auto(self.teachers)
        least = int(np.isfinite(train[1]).sum(axis=0).min())  # rows that measured a target
        possible = task.teachable and task.has_folds and least >= LEAST_ROWS
        if found is None or not possible or not (named or plan.teachers):
            return None
        threads, targets = jobs_of(self.n_jobs), self.target_names_
        if len(targets) > 1 and any(one.fitted for one in found[0]):
            raise InputError("teachers: a fitted one teaches a model of one target, not of several")
        return Teachers(
            *(*found, *train, *held, self.scaling_, seed, threads),
            named=named,
            targets=targets if len(targets) > 1 else (),
        )

    @property
    def _few_groups(self) -> bool:
        """Whether there are so few validation groups that training groups decide instead."""
        held = self.validation_groups_
        return self.groups_ is not None and held is not None and len(np.unique(held)) < FEW_GROUPS

    def _owner(self, task: Task, seed: int) -> dict[str, Any]:
        """Return the data and settings that a checkpoint belongs to."""
        settings = {
            key: repr(value)
            for key, value in self.get_params().items()
            if key not in _NOT_OF_THE_TRAINING
        }
        shape = dict(zip(("twins", "hidden"), map(repr, self._shape()), strict=True))
        settings |= {key: shape[key] for key in shape if key in settings}
        return {"data": task.fingerprint(), "seed": seed, **settings}

    def _choose(
        self,
        task: Task,
        train: Points,
        held: Points,
        *,
        networks: int,
        seed: int,
        checkpoint: Path | None,
        resume: bool,
    ) -> Choice:
        """Train, and keep in attributes how it went."""
        plan = self._plan(task.train)
        teachers = self._teachers(plan, task, train, held, seed)
        with progress_bar(self.verbose) as progress:
            kept = Checkpoint(checkpoint, self._owner(task, seed), resume)
            task = self._with_curve(task, train, held, seed, progress, kept)
            if teachers is not None:
                teachers = replace(teachers, scaling=self.scaling_)
            choice = choose(
                task,
                self._candidates(task),
                plan,
                networks=networks,
                seed=seed,
                progress=progress,
                checkpoint=kept,
                teachers=teachers,
                threads=jobs_of(self.n_jobs),
                across=self._few_groups,
                intervals=bool(getattr(self, "intervals", False)),
            )
            interrupted = choice.interrupted
            self.sharing_ = None
            if task.targets > 1 and choice.compared and not interrupted:
                try:
                    self.sharing_ = compare_sharing(
                        *(task, *choice.compared, plan, self.scaling_.y_scale),
                        seed=seed,
                        progress=progress,
                        checkpoint=kept,
                        threads=jobs_of(self.n_jobs),
                    )
                except KeyboardInterrupt:
                    interrupted = True
        self.architecture_, self.weights_, self.map_ = (
            choice.architecture,
            choice.weights,
            choice.map,
        )
        self.activation_ = choice.candidate.activation
        self.learning_rate_ = choice.candidate.setting.learning_rate
        self.weight_decay_ = choice.candidate.setting.weight_decay
        self.steps_ = choice.steps
        self.trials_ = choice.trials
        self.teaching_ = choice.teaching
        self.interrupted_ = interrupted
        return choice

    def _with_curve(
        self,
        task: AnyTask,
        train: Points,
        held: Points,
        seed: int,
        progress: Progress,
        checkpoint: Checkpoint,
    ) -> AnyTask:
        """Choose a curve of the target if that is left to be chosen; returns the task with it."""
        self.curve_choice_ = None
        if not is_auto(self.target_curve) or getattr(task, "extra", None):
            return task
        y = np.concatenate([train[1], held[1]])
        chosen = choose_curve(
            *(task, y, self.scaling_, self._plan(task.train)),
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
            threads=jobs_of(self.n_jobs),
        )
        self.curve_choice_ = chosen.record()
        if chosen.curve is None:
            return task
        self.scaling_ = self.scaling_.bent(train[1], self.sample_weights_, chosen.curve)
        return with_curve(task, y, self.scaling_)

    def resolved(self) -> Any:
        """Return an unfitted copy with the chosen values in place of "auto"."""
        chosen = {name: getattr(self, f"{name}_") for name in _CHOSEN}
        return clone(self).set_params(**chosen)

    def rmse(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Any:
        """Root mean square error of the prediction, in units of the target.

        Of several targets, it is an array ``(m,)``: for each, over the rows that measured it. With
        ``sample_weight`` ``(n,)``, means are weighted.

        Raises
        ------
        InputError
            If ``y`` does not have the shape of the predictions.
        """
        predicted = self.predict(X)
        count = len(predicted)
        weights = None if sample_weight is None else check_weights(sample_weight, count)
        if self.targets_ == 1:
            return scoring.rmse(predicted, check_targets(y, count), weights)
        y = check_targets(y, count, self.targets_)
        pairs = zip(predicted.T, y.T, strict=True)
        return np.array([scoring.rmse(*measured_rows(*pair, weights)) for pair in pairs])

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Share of the variance explained, R squared; of several targets, its mean over them.

        Each target is scored on the rows that measured it.
        """
        if self.targets_ == 1:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        count = len(predicted)
        weights = None if sample_weight is None else check_weights(sample_weight, count)
        pairs = zip(predicted.T, check_targets(y, count, self.targets_).T, strict=True)
        known = (measured_rows(*pair, weights) for pair in pairs)
        return float(np.mean([r2_score(y, mean, sample_weight=each) for mean, y, each in known]))


def _numbered(groups: Any, rows: int) -> Groups:
    """Assign the groups of ``rows`` rows numbers from 0; their names may be anything that sorts."""
    numbers = number_groups(groups)
    if len(numbers) != rows:
        raise InputError(f"groups has {len(numbers)} rows; one for each of {rows} is needed")
    return numbers


def _seconds(times: Any, rows: int) -> FloatArray:
    """Return the times of ``rows`` rows, as numbers; at least two differ."""
    seconds: FloatArray = as_row_times(times, rows).seconds
    if np.ptp(seconds) == 0:
        raise InputError("times has one time for all rows; at least two are needed")
    return seconds


def _newest_first(times: FloatArray, held: int) -> tuple[Groups, int]:
    """Order of the rows, and how many of about ``held`` come before a change of time."""
    order = np.argsort(-times, kind="stable")
    ends = 1 + np.flatnonzero(np.diff(times[order]))
    ends = ends[ends <= len(times) - 2]  # leave some to train on
    if not held or not len(ends):
        return order, 0
    return order, int(ends[np.argmin(np.abs(ends - held))])


def _together(groups: Groups, held: int, rng: np.random.Generator) -> tuple[Groups, int]:
    """Order of the rows, group by group, and the end of the group that completes ``held`` rows."""
    rank = rng.permutation(groups.max() + 1)
    if len(rank) == 2 and np.count_nonzero(rank[groups]) == 1:
        rank = rank[::-1]  # one row is too few to train on
    order = np.argsort(rank[groups], kind="stable")
    if not held:
        return order, 0
    ends = np.cumsum(np.bincount(rank[groups]))
    ends = ends[ends <= len(groups) - 2]  # leave some to train on
    return order, int(ends[min(int(np.searchsorted(ends, held)), len(ends) - 1)])
