"""What the network regressors share: checking data, holding out validation rows, fitting."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_array, validate_data

from twinedge.data.splitting import number_groups
from twinedge.encoding import Encoding
from twinedge.errors import InputError
from twinedge.learn.checkpoint import Checkpoint
from twinedge.learn.network import ACTIVATIONS, Architecture, FloatArray
from twinedge.learn.parameters import (
    is_auto,
    nonnegative_number,
    one_of,
    positive_integer,
    widths,
)
from twinedge.learn.progress import progress_bar
from twinedge.learn.scaling import Scaling
from twinedge.learn.selection import PLANS, SETTINGS, Candidate, Choice, Plan, choose
from twinedge.learn.tasks import PairTask, PointTask
from twinedge.learn.teachers import teachers_of
from twinedge.learn.teaching import LEAST_ROWS, School
from twinedge.scoring import check_targets

Validation = tuple[Any, Any] | tuple[Any, Any, Any] | None
Groups = npt.NDArray[np.intp]

# Parameters that leave a training as it is, so that it can be resumed with others; a
# ``random_state`` acts through the seed drawn from it.
_NOT_OF_THE_TRAINING = ("anchors", "intervals", "random_state", "verbose")
_CHOSEN = ("activation", "learning_rate", "weight_decay", "steps")


class NetworkRegressor(RegressorMixin, BaseEstimator):
    """Base of the regressors with networks inside; see ``TwinRegressor`` for the parameters."""

    hidden: Any
    activation: str
    learning_rate: Any
    weight_decay: Any
    effort: str
    steps: Any
    teachers: Any
    validation_fraction: float
    random_state: Any
    verbose: bool

    architecture_: Architecture
    weights_: FloatArray
    scaling_: Scaling
    n_features_in_: int
    teaching_: dict[str, Any] | None = None
    groups_: Groups | None = None
    validation_groups_: Groups | None = None
    encoding_: Encoding | None = None

    def _prepare(
        self, X: Any, y: Any, validation: Validation, seed: int, groups: Any = None
    ) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Check the data and split it into training and validation rows, both raw.

        Rows of one group stay together; which they are is kept.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = y.astype(np.float64)
        self.groups_ = self.validation_groups_ = None
        if groups is not None:
            groups = _numbered(groups, len(y))
            if not groups.any():
                raise InputError("groups has one group for all rows; at least two are needed")
        if validation is not None:
            X_val, y_val, *theirs = validation
            X_val = validate_data(self, X_val, dtype=np.float64, reset=False)
            shape = np.shape(y_val)
            if shape != (len(X_val),):
                raise InputError(f"validation has {len(X_val)} points and targets of shape {shape}")
            y_val = check_array(y_val, ensure_2d=False, dtype=np.float64)
            self.groups_ = groups
            if theirs:
                self.validation_groups_ = _numbered(theirs[0], len(y_val))
            return (X, y), (X_val, y_val)
        fraction = nonnegative_number("validation_fraction", self.validation_fraction)
        # Held-out rows of a tiny table would leave nothing to learn from.
        held = round(fraction * len(y)) if len(y) >= 16 else 0
        if fraction >= 1 or len(y) - held < 2:
            raise InputError(f"validation_fraction={fraction} leaves nothing to train on")
        rng = np.random.default_rng([seed, 0])
        if groups is None:
            order = rng.permutation(len(y))
        else:
            order, held = _together(groups, held, rng)
            self.validation_groups_, self.groups_ = (
                np.unique(part, return_inverse=True)[1] for part in np.split(groups[order], [held])
            )
        return (X[order[held:]], y[order[held:]]), (X[order[:held]], y[order[:held]])

    def _shape(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of networks and the widths of their layers."""
        return 1, widths("hidden", self.hidden)

    def _scale(
        self, train: tuple[FloatArray, FloatArray], validation: tuple[FloatArray, FloatArray]
    ) -> dict[str, Any]:
        """Fit the scaling and lay the scaled rows out as a ``Task`` wants them."""
        encoded = None if self.encoding_ is None else self.encoding_.indicators
        self.scaling_ = Scaling.of(*train, encoded)
        return {
            "x": self.scaling_.features(np.concatenate([train[0], validation[0]])),
            "y": self.scaling_.target(np.concatenate([train[1], validation[1]])),
            "train": len(train[1]),
            "scale": self.scaling_.y_scale,
            "hidden": self._shape()[1],
            "batch": self._plan(len(train[1])).batch,
            "groups": self.groups_,
        }

    def _candidates(self, taught: bool) -> list[Candidate]:
        """Combine what the user fixed with everything left to choose.

        Where teachers hold a network back from noise, strong decay is not tried.
        """
        activation = one_of("activation", self.activation, ("auto", *ACTIVATIONS))
        activations = list(ACTIVATIONS) if activation == "auto" else [activation]
        rate, decay = self.learning_rate, self.weight_decay
        fixed: dict[str, float] = {}
        if not is_auto(rate):
            fixed["learning_rate"] = nonnegative_number("learning_rate", rate)
        if not is_auto(decay):
            fixed["weight_decay"] = nonnegative_number("weight_decay", decay)
        found = [
            Candidate(name, replace(setting, **fixed))
            for name in activations
            for setting in SETTINGS[name][: 1 if taught else None]
        ]
        return list(dict.fromkeys(found))

    def _plan(self, rows: int) -> Plan:
        """Return what the effort and so many training rows ask for."""
        plan = PLANS[one_of("effort", self.effort, tuple(PLANS))].given(rows)
        return (
            plan if is_auto(self.steps) else plan.ending_at(positive_integer("steps", self.steps))
        )

    def _school(
        self,
        plan: Plan,
        task: PairTask | PointTask,
        train: tuple[FloatArray, FloatArray],
        held: tuple[FloatArray, FloatArray],
        seed: int,
    ) -> School | None:
        """Call the teachers that were asked for, or those there is time for; None for nobody."""
        found = teachers_of(self.teachers, task.train, seed)
        hurried = is_auto(self.teachers) and not plan.teachers
        able = task.teachable and task.has_folds and task.train >= LEAST_ROWS
        if found is None or hurried or not able:
            return None
        return School(*found, *train, *held, self.scaling_, seed)

    def _choose(
        self,
        task: PairTask | PointTask,
        train: tuple[FloatArray, FloatArray],
        held: tuple[FloatArray, FloatArray],
        *,
        networks: int,
        seed: int,
        checkpoint: Path | None,
        resume: bool,
    ) -> Choice:
        """Train, and keep what a person may ask about how it went."""
        settings = {
            key: repr(value)
            for key, value in self.get_params().items()
            if key not in _NOT_OF_THE_TRAINING
        }
        shape = dict(zip(("twins", "hidden"), map(repr, self._shape()), strict=True))
        settings |= {key: shape[key] for key in shape if key in settings}
        owner = {"data": task.fingerprint(), "seed": seed, **settings}
        plan = self._plan(task.train)
        school = self._school(plan, task, train, held, seed)
        with progress_bar(self.verbose) as progress:
            choice = choose(
                task,
                self._candidates(taught=school is not None),
                plan,
                networks=networks,
                seed=seed,
                progress=progress,
                checkpoint=Checkpoint(checkpoint, owner, resume),
                school=school,
            )
        self.activation_ = choice.candidate.activation
        self.learning_rate_ = choice.candidate.setting.learning_rate
        self.weight_decay_ = choice.candidate.setting.weight_decay
        self.steps_ = choice.steps
        self.trials_ = choice.trials
        self.teaching_ = choice.teaching
        self.interrupted_ = choice.interrupted
        return choice

    def settled(self) -> Any:
        """Return an unfitted copy with what was chosen in place of "auto"."""
        chosen = {name: getattr(self, f"{name}_") for name in _CHOSEN}
        return clone(self).set_params(**chosen)

    def rmse(self, X: Any, y: Any) -> float:
        """Root mean square error of the prediction, in units of the target.

        Raises
        ------
        InputError
            Where ``y`` is not of shape ``(n,)``.
        """
        predicted = self.predict(X)
        return float(np.sqrt(np.mean(np.square(predicted - check_targets(y, len(predicted))))))


def _numbered(groups: Any, rows: int) -> Groups:
    """Give the groups of so many rows numbers from 0; they may be named by anything that sorts."""
    numbers = number_groups(groups)
    if len(numbers) != rows:
        raise InputError(f"groups has {len(numbers)} rows; one for each of {rows} is needed")
    return numbers


def _together(groups: Groups, held: int, rng: np.random.Generator) -> tuple[Groups, int]:
    """Order of the rows, group by group, and where the group ends that makes ``held`` rows full."""
    place = rng.permutation(groups.max() + 1)
    if len(place) == 2 and np.count_nonzero(place[groups]) == 1:
        place = place[::-1]  # one row is no training
    order = np.argsort(place[groups], kind="stable")
    if not held:
        return order, 0
    ends = np.cumsum(np.bincount(place[groups]))
    ends = ends[ends <= len(groups) - 2]  # some are left to train on
    return order, int(ends[min(int(np.searchsorted(ends, held)), len(ends) - 1)])
