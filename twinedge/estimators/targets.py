"""Models of several targets, target by target.

Networks of several targets share their hidden layers, and nothing else: each target has outputs,
scaling, anchors, difficulty and intervals of its own. So such a model is as many models of a single
target, and whatever is computed from estimates is computed by these. Rows that did not measure a
target are no anchors for it.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from twinedge.errors import InputError, wrong_value
from twinedge.scoring.weights import of_rows, relative
from twinedge.training.network import FloatArray
from twinedge.training.parameters import row_number
from twinedge.training.selection import LeftOut

if TYPE_CHECKING:
    from twinedge.estimators.twin import TwinRegressor

# What a model learns of each target by itself, one after another.
_OF_EACH = ("difficulty_", "calibration_", "trust_", "left_out_")


def number_of(model: "TwinRegressor", target: int | str) -> int:
    """Return the number of a target, given by its number or name."""
    if not isinstance(target, str):
        return row_number("target", target, model.targets_)
    if target not in model.target_names_:
        raise wrong_value("target", target, f"is not one of {', '.join(model.target_names_)}")
    return model.target_names_.index(target)


def measured(y: FloatArray, target: int) -> Any:
    """Return the rows of targets ``(n, m)`` that measured one of them: all, or an array."""
    known = np.isfinite(y[:, target])
    return slice(None) if known.all() else np.flatnonzero(known)


def model_of(model: "TwinRegressor", target: int, *, every: bool = False) -> "TwinRegressor":
    """Take one target from a fitted model of several: a fitted model of that one.

    With ``every``, rows that did not measure it stay: then rows have the same numbers as before.
    """
    one = copy(model)
    rows = slice(None) if every else measured(model.anchor_y_, target)
    one.target_names_ = (model.target_names_[target],)
    one.architecture_, one.weights_ = model.architecture_.of_target(model.weights_, target)
    one.scaling_ = model.scaling_.of_target(target)
    one.anchor_X_, one.anchor_y_ = model.anchor_X_[rows], model.anchor_y_[rows, target]
    one.groups_ = of_rows(model.groups_, rows)
    one.sample_weights_ = relative(of_rows(model.sample_weights_, rows))
    one.anchors = anchors_of(model, target, model.anchors)
    X, y = model.validation_
    held = measured(y, target)
    one.validation_ = X[held], y[held, target]
    one.validation_groups_ = of_rows(model.validation_groups_, held)
    one.validation_weights_ = relative(of_rows(model.validation_weights_, held))
    one.validation_rmse_ = model.validation_rmse_[target]
    for name in _OF_EACH:
        values = getattr(model, name)
        setattr(one, name, None if values is None else values[target])
    one.own_ = model.own_[target] if model.own_ else ()
    return one


def anchors_of(model: "TwinRegressor", target: int, anchors: Any) -> Any:
    """Return anchors of a model of several targets as those of one: rows have other numbers."""
    rows = measured(model.anchor_y_, target)
    if anchors is None or isinstance(anchors, str) or np.ndim(anchors) == 0:
        return anchors
    if isinstance(rows, slice):
        return anchors
    unknown = np.setdiff1d(anchors, rows)
    if len(unknown):
        name = model.target_names_[target]
        raise InputError(f"anchors: training point {unknown[0]} has no {name}")
    return np.searchsorted(rows, anchors)


def join_targets(model: "TwinRegressor", each: Sequence["TwinRegressor"]) -> None:
    """Give a model of several targets what the models of each have learnt.

    If the user stopped it before it was learnt for all, none has it.
    """
    if any(one.difficulty_ is None for one in each):
        for one in each:
            one.difficulty_ = one.calibration_ = one.left_out_ = None
    for name in _OF_EACH:
        values = [getattr(one, name) for one in each]
        some = any(value is not None for value in values)
        setattr(model, name, tuple(values) if some else None)
    model.validation_rmse_ = np.array([one.validation_rmse_ for one in each])


def folds_of(model: "TwinRegressor", target: int, folds: Iterable[LeftOut]) -> list[LeftOut]:
    """Take one target from networks that left some training rows out."""
    rows = measured(model.anchor_y_, target)
    known = np.arange(len(model.anchor_y_))[rows]
    found = []
    for held, networks, learnt in folds:
        mine = np.searchsorted(known, held[np.isin(held, known)])
        if len(mine):
            _, alone = model.architecture_.of_target(networks, target)
            found.append(LeftOut(mine, alone, learnt))
    return found


def split_targets(y: FloatArray) -> list[tuple[Any, FloatArray]]:
    """Split targets ``(n, m)``: for each, the rows that measured it, and its values there."""
    rows = [measured(y, target) for target in range(y.shape[1])]
    return [(mine, y[mine, target]) for target, mine in enumerate(rows)]
