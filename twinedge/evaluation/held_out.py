"""Rows held out for a test, and what a model and its rivals predict for them.

Cross-validation tests each row once, by the model of the fold that did not see it. Errors of all
folds together are then scored like those of one test set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from twinedge.data.source import Source
from twinedge.defaults import COVERAGE
from twinedge.encoding.times import Notation
from twinedge.evaluation.forecasting import naive_forecast, score_blocks
from twinedge.scoring.scores import rmse, score_groups
from twinedge.scoring.weights import of_rows, relative

if TYPE_CHECKING:
    from twinedge.estimators.twin import TwinRegressor

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class HeldOut:
    """Predictions for test rows.

    Parameters
    ----------
    y, predicted : array of shape (n,)
        Targets, and what the model predicts, in their units.
    rivals : dict of str to array of shape (n,)
        What other models predict.
    room : int
        Bytes of the model's pack.
    covered : array of shape (n,), optional
        Whether the usual interval covers the target; None without intervals.
    weights, groups, times : array of shape (n,), optional
        How much each row counts, which rows belong together, and when they were measured.
    grouped : array of bool, shape (n,), optional
        Whether the table of a row names its group; None if that holds for all.
    notation : Notation, optional
        How the table writes its times.
    """

    y: Array
    predicted: Array
    rivals: dict[str, Array]
    room: int
    covered: Array | None = None
    weights: Array | None = None
    groups: Array | None = None
    grouped: Array | None = None
    times: Array | None = None
    notation: Notation | None = None

    @classmethod
    def of(cls, model: "TwinRegressor", source: Source) -> "HeldOut":
        """Predict the test rows of a table with a model that was fitted to its training rows."""
        from twinedge.evaluation.rivals import rival_predictions
        from twinedge.evaluation.small_trees import ROOM

        rows = source.rows.test
        train, validation = source.part(source.rows.train), source.part(source.rows.val)
        X, y = source.part(rows)
        room = model.pack_bytes() or ROOM
        weights = model.sample_weights_, model.validation_weights_
        rivals = rival_predictions(train, X, validation, room, weights)
        if source.times is not None:
            naive = naive_forecast(source.times, source.y, source.streams)[rows]
            rivals["naive"] = np.where(np.isnan(naive), rivals["mean"], naive)  # the first row
        covered = None
        if model.calibration_ is not None and COVERAGE in model.calibration_.quantiles:
            low, high = model.predict_interval(X, COVERAGE).T
            covered = (low <= y) & (y <= high)
        return cls(
            y,
            model.predict(X),
            rivals,
            room,
            covered,
            of_rows(source.weights, rows),
            of_rows(source.groups, rows),
            of_rows(source.grouped, rows),
            of_rows(source.times, rows),
            source.notation,
        )

    @classmethod
    def together(cls, folds: "Sequence[HeldOut]") -> "HeldOut":
        """Join the rows of several folds; rivals that some of them lack are left out."""
        first, *_ = folds
        named = [name for name in first.rivals if all(name in one.rivals for one in folds)]
        joined: dict[str, Any] = {}
        for field in fields(cls):
            parts = [getattr(one, field.name) for one in folds]
            if isinstance(parts[0], np.ndarray):
                joined[field.name] = None
                if all(one is not None for one in parts):
                    joined[field.name] = np.concatenate(parts)
        rivals = {name: np.concatenate([one.rivals[name] for one in folds]) for name in named}
        return cls(**joined, rivals=rivals, room=first.room, notation=first.notation)

    @property
    def rmse(self) -> float:
        """Root mean square error, in units of the target."""
        return rmse(self.predicted, self.y, relative(self.weights))

    @property
    def coverage(self) -> float | None:
        """Share of the targets that the usual interval covers; None without intervals."""
        if self.covered is None:
            return None
        return float(np.average(self.covered, weights=relative(self.weights)))

    def scores(self) -> dict[str, Any]:
        """Return the scores that a run keeps, in JSON types."""
        from twinedge.evaluation.comparison import error_groups, standing_beside

        weights = relative(self.weights)
        alike = error_groups(self.groups, self.times)
        beside = standing_beside(self.rivals, self.y, self.predicted, self.room, weights, alike)
        found, error = beside.scores(), self.predicted - self.y
        if self.times is not None and self.notation is not None:
            of_naive = self.rivals["naive"] - self.y
            found["by_time"] = score_blocks(self.times, self.notation, error, of_naive, weights)
        if self.covered is not None:
            found["coverage_test"] = self.coverage
        if self.groups is not None:
            scored = _score_named(self.grouped, self.groups, error, self.covered, weights)
            found["groups"] = [{**one, "part": "test"} for one in scored]
        return found


def held_out(model: "TwinRegressor", source: Source) -> list[HeldOut]:
    """Predict the test rows of each target, those that measured it."""
    each = enumerate(model.of_each_target())
    return [HeldOut.of(one, source.of_target(target)) for target, one in each]


def run_scores(
    model: "TwinRegressor", source: Source, folds: Sequence[Sequence[HeldOut]] = ()
) -> dict[str, Any]:
    """Return the scores of a run on its test rows, or on all rows in folds.

    Of several targets they are under ``targets``, a list of those of each, with what it costs to
    share networks.
    """
    found = []
    for target, one in enumerate(model.of_each_target()):
        mine = source.of_target(target)
        parts = [fold[target] for fold in folds] or [HeldOut.of(one, mine)]
        scores = HeldOut.together(parts).scores() | (fold_scores(parts) if folds else {})
        left_out = left_out_scores(one, mine)
        if left_out:
            scores |= {**left_out, "groups": scores["groups"] + left_out["groups"]}
        if source.targets:
            name = source.targets[target]
            shared: dict[str, Any] = {"sharing": None, "advice": None}
            if model.sharing_ is not None and (sharing := model.sharing_[target]) is not None:
                shared = {"sharing": sharing, "advice": describe_sharing(name, sharing)}
            scores = {"target": name, "rmse_val": one.validation_rmse_, **scores, **shared}
        found.append(scores)
    return {"targets": found} if source.targets else found[0]


def describe_sharing(target: str, sharing: dict[str, Any]) -> str | None:
    """Name the alternative for a target that suffers from sharing networks; None if it does not."""
    if not sharing["suffers"]:
        return None
    more = 100 * (sharing["shared"] / sharing["alone"] - 1)
    return (
        f"{target} suffers from sharing networks: on training rows that networks did not see, its "
        f"RMSE is {more:.0f} % larger than with networks of its own ({sharing['shared']:.4g} "
        f"against {sharing['alone']:.4g}). A pack for {target} alone is the alternative."
    )


def fold_scores(folds: Sequence[HeldOut]) -> dict[str, Any]:
    """Return the scores of each fold, and the mean of their errors with its standard error.

    Folds share most of their training rows, so that the standard error is a little too small.
    """
    errors = np.array([one.rmse for one in folds])
    return {
        "folds": [
            {"fold": k, "rows": len(one.y), "rmse": one.rmse, "coverage": one.coverage}
            for k, one in enumerate(folds, 1)
        ],
        "rmse_fold_mean": float(errors.mean()),
        "rmse_fold_error": float(errors.std(ddof=1) / np.sqrt(len(errors))),
    }


def left_out_scores(model: "TwinRegressor", source: Source) -> dict[str, Any]:
    """Score each training group that networks left out in turn; nothing if they did not."""
    left_out = model.left_out_
    if left_out is None or source.groups is None:
        return {}
    within = None
    if model.calibration_ is not None and COVERAGE in model.calibration_.quantiles:
        reach = model.calibration_.reach(COVERAGE)
        within = np.abs(left_out.errors) <= reach * model.calibration_.scale(left_out.signals)
    weights, named = left_out.sample_weight, source.groups[source.rows.train]
    grouped = of_rows(source.grouped, source.rows.train)
    error, scaling = -left_out.errors, model.scaling_
    if scaling.curve is not None:  # those are on the target's curve
        error = scaling.uncurved(scaling.curved(model.anchor_y_) + error) - model.anchor_y_
    scored = _score_named(grouped, named, error, within, weights)
    return {
        "groups": [{**one, "part": "left out"} for one in scored],
        "rmse_left_out": rmse(error, weights=weights),
    }


def _score_named(
    grouped: Array | None,
    groups: Array,
    error: Array,
    covered: Array | None,
    weights: Array | None,
) -> list[dict[str, Any]]:
    """Score groups that a table names; a row that is a group of its own says little by itself."""
    if grouped is not None:
        groups, error = groups[grouped], error[grouped]
        covered, weights = of_rows(covered, grouped), of_rows(weights, grouped)
    return score_groups(groups, error, covered, weights)
