"""From a fitted model to the integers of a pack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twinedge import defaults
from twinedge.errors import InputError
from twinedge.estimators.targets import model_of
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.checks import check_contents, check_scaling
from twinedge.pack.contents import (
    LARGEST,
    TARGET,
    Array,
    Domain,
    Intervals,
    Pack,
    Twin,
    metadata_of,
)
from twinedge.pack.layout import MAX_SHIFT, NO_FILL
from twinedge.pack.targets import joined
from twinedge.pack.writer import shape_of
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.reference import map_points, silu_curve
from twinedge.runtime.reference import quantise as quantise_points
from twinedge.training.pairs import nearest_others
from twinedge_export.fold_anchors import anchor_lists, largest_input
from twinedge_export.round_curves import round_map, round_target_curve
from twinedge_export.round_weights import round_network
from twinedge_export.settings import check_weights

UNITS = 65536  # units of an estimate in one standard deviation of the target, or fewer
_CALIBRATION_PAIRS = 4096
_UNCALIBRATED = Intervals(0, 0, 0, 1, 1, 0, 0, {500: 1})


def quantise(
    model: TwinRegressor,
    rows: Sequence[Array] | Array,
    *,
    weights: str = defaults.WEIGHTS,
    neighbors: int | None = None,
    metadata: dict[str, Any] | None = None,
    compensate: bool = True,
    fill_values: Array | None = None,
    intervals: bool = False,
) -> Pack:
    """Make the pack of a fitted model.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    rows : array of shape (twins, k), or one array of int for each twin
        Training rows that become the anchors of each twin.
    weights : {"int8", "int16"}
        Type of the kernels of the hidden layers.
    neighbors : int, optional
        How many nearest anchors of each twin predict, 0 for all. By default as many as the model
        was trained on, or all if it was not trained on neighbors.
    metadata : dict, optional
        Stored in the pack.
    compensate : bool
        Round weights so that their errors cancel on training pairs; otherwise each by itself.
    fill_values : array of shape (f,), optional
        Values for missing features, in the user's units.
    intervals : bool
        Include the second outputs of the twins, if the model has them, and feature ranges. The
        intervals themselves are calibrated later.

    Raises
    ------
    InputError
        If a pack cannot hold the model.
    """
    check_weights(weights)
    if model.targets_ > 1:
        options: dict[str, Any] = {"weights": weights, "neighbors": neighbors}
        options["compensate"] = compensate
        options |= {"fill_values": fill_values, "intervals": intervals}
        return joined(
            [
                quantise(one, rows, metadata=metadata_of(metadata or {}, target), **options)
                for target, one in enumerate(_each_target(model, rows))
            ]
        )
    lists = anchor_lists(model, rows)
    chosen = np.concatenate(lists)
    architecture, x_unit = model.architecture_, largest_input(model) / LARGEST
    front = _front(model, x_unit)
    pick = _calibration_pairs(model)
    points = model.inputs_of(model.scaling_.features(model.anchor_X_)).astype(np.float64)
    whole = None
    if model.map_ is not None:
        whole = map_points(front, quantise_points(front, model.anchor_X_)).astype(np.float64)
        whole = whole[pick].reshape(len(pick), -1)
    readouts = [None] * len(lists)
    if intervals and model.difficulty_ is not None:
        readouts = list(model.difficulty_)
    twins, doublings = _in_one_unit(
        [
            round_network(
                architecture,
                network,
                points[pick].reshape(len(pick), -1),
                x_unit,
                y_unit=1 / UNITS,
                dtype=np.dtype(weights),
                compensate=compensate,
                readout=readout,
                whole=whole,
            )
            for network, readout in zip(model.weights_, readouts, strict=True)
        ]
    )
    pack = replace(
        _with_target(front, model, doublings, metadata or {}),
        twins=twins,
        anchors=np.zeros((len(chosen), front.inputs), np.int16),
        targets=np.zeros(len(chosen), np.int32),
        counts=np.array([len(mine) for mine in lists], np.uint16),
        neighbors=_neighbors(model, neighbors),
        trained_on_neighbors=model.pairs == "neighbors",
        intervals=replace(_UNCALIBRATED, trust=round(65536 * model.trust_))
        if intervals and model.difficulty_ is not None
        else None,
        ids=chosen.astype(np.uint32),
    )
    shape_of(pack)
    check_contents(pack)
    return replace(
        pack,
        anchors=map_points(pack, quantise_points(pack, model.anchor_X_[chosen])),
        targets=_targets(pack, model.scaling_.curved(model.anchor_y_[chosen])),
        domain=_domain(pack, model, fill_values) if intervals else None,
    )


def _each_target(model: TwinRegressor, rows: Sequence[Array] | Array) -> list[TwinRegressor]:
    """Take the model of each target, all with the same training points in the same rows."""
    for mine in anchor_lists(model, rows):
        lacking = mine[np.isnan(model.anchor_y_[mine]).any(axis=1)]
        if len(lacking):
            raise InputError(
                f"anchors: training point {lacking[0]} lacks a target, and in a pack each anchor "
                "has all of them"
            )
    return [model_of(model, target, every=True) for target in range(model.targets_)]


def _front(model: TwinRegressor, x_unit: float) -> Pack:
    """Make a pack without twins and target: what comes before them, scaling and map."""
    scaling, activation = model.scaling_, model.architecture_.activation
    with np.errstate(over="ignore", under="ignore"):  # what float32 cannot hold is refused later
        x_offset = scaling.x_mean.astype(np.float32)
        x_gain = (1 / (scaling.x_scale * x_unit)).astype(np.float32)
    curves = None
    if model.map_ is not None:
        check_scaling(x_offset, x_gain)  # before the map is used
        curves = round_map(model.map_, x_unit, scaling.features(model.anchor_X_))
    return Pack(
        activation,
        x_offset,
        x_gain,
        y_offset=np.float32(0),
        y_gain=np.float32(1),
        twins=(),
        anchors=np.zeros((0, 0), np.int16),
        targets=np.zeros(0, np.int32),
        counts=np.zeros(0, np.uint16),
        curve=silu_curve() if activation == "silu" else None,
        map=curves,
    )


def _with_target(
    pack: Pack, model: TwinRegressor, doublings: int, metadata: dict[str, Any]
) -> Pack:
    """Add how estimates become targets: gain and offset, or the table of a curve."""
    scaling = model.scaling_
    unit = scaling.y_scale / UNITS * 2.0**doublings
    if scaling.curve is None:
        with np.errstate(over="ignore", under="ignore"):
            gain, offset = np.float32(unit), np.float32(scaling.y_mean)
        return replace(pack, y_gain=gain, y_offset=offset, metadata=metadata)
    table, gain = round_target_curve(model, unit)
    about = {"kind": scaling.curve.kind, "offset": scaling.y_mean, "unit": unit}
    metadata = {**metadata, "target_curve": about}
    return replace(pack, y_gain=gain, target_curve=table, metadata=metadata)


def _in_one_unit(twins: list[Twin]) -> tuple[tuple[Twin, ...], int]:
    """Double the unit of an estimate until it suits the outputs of all twins.

    An output reaches at most 2^29 units, as its sum is below 2^30 and its multiplier below a half.
    That is thousands of deviations of the target, and where the terms of a sum are large and cancel
    a network may still need more. Returns the twins, and how often the unit was doubled.
    """
    outputs = (one for twin in twins for one in (twin, twin.difficulty) if one is not None)
    doublings = max(0, -min(one.shift for one in outputs))

    def doubled(shift: int) -> int:
        return min(shift + doublings, MAX_SHIFT)

    return tuple(
        replace(
            twin,
            shift=doubled(twin.shift),
            difficulty=twin.difficulty
            and replace(twin.difficulty, shift=doubled(twin.difficulty.shift)),
        )
        for twin in twins
    ), doublings


def _domain(pack: Pack, model: TwinRegressor, fill_values: Array | None) -> Domain:
    least, most = quantise_points(pack, model.encoding_.ranges(model.anchor_X_))
    fill = np.full(len(least), NO_FILL, np.int16)
    if fill_values is not None:
        known = np.isfinite(fill_values)
        fill = np.where(known, quantise_points(pack, np.nan_to_num(fill_values)[None])[0], fill)
    return Domain(least, most, fill)


def _neighbors(model: TwinRegressor, neighbors: int | None) -> int:
    near = model.pairs == "neighbors"
    if neighbors is None:
        return int(model.neighbors) if near else 0
    if near and not neighbors:
        raise InputError("a model trained on neighbors cannot predict with all anchors")
    return int(neighbors)


def _calibration_pairs(model: TwinRegressor) -> Array:
    """Rows ``(n, 2)`` of random pairs of training points, like those of the training."""
    rng = np.random.default_rng(0)
    pick = rng.integers(len(model.anchor_X_), size=(_CALIBRATION_PAIRS, 2))
    if model.pairs == "neighbors":
        inputs = model.inputs_of(model.scaling_.features(model.anchor_X_))
        partners = nearest_others(inputs, int(model.neighbors))
        pick[:, 1] = partners[pick[:, 0], pick[:, 1] % partners.shape[1]]
    return pick


def _targets(pack: Pack, c: Array) -> Array:
    """Targets on the curve in units of an estimate, int32, by the rounded numbers of the pack."""
    offset, unit = units_of_estimates(pack)
    units = np.rint((c - offset) / unit)
    if np.abs(units).max() >= TARGET:
        raise InputError(
            "the target varies too little for its size: take its mean off before training"
        )
    targets: Array = units.astype(np.int32)
    return targets
