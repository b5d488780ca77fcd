"""From a fitted model to the integers of a pack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twinedge.errors import InputError
from twinedge.learn.neighbours import nearest_others
from twinedge.learn.twin import TwinRegressor
from twinedge.pack.check import LARGEST, TARGET, check_contents
from twinedge.pack.contents import Array, Domain, Intervals, Pack
from twinedge.pack.layout import NO_FILL
from twinedge.pack.writer import shape_of
from twinedge.runtime.reference import quantise as quantise_points
from twinedge_export.curve import silu_curve
from twinedge_export.folding import anchor_lists
from twinedge_export.rounding import round_network

WEIGHTS: dict[str, Any] = {"int8": np.int8, "int16": np.int16}
UNITS = 65536  # units of an estimate in one standard deviation of the target
_CALIBRATION_PAIRS = 4096
_UNCALIBRATED = Intervals(0, 0, 0, 1, 1, 0, 0, {500: 1})
# Features may exceed the training data by a quarter, and reach two standard deviations in any case.
# More would cost where the target has no noise: what limits a pack there is the unit of a feature.
_HEADROOM, _LEAST_REACH = 1.25, 2.0


def quantise(
    model: TwinRegressor,
    rows: Sequence[Array] | Array,
    *,
    weights: str = "int8",
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
        was trained on, if it was trained on neighbours, else all.
    metadata : dict, optional
        Stored in the pack.
    compensate : bool
        Round weights so that their errors cancel on training pairs; else each by itself.
    fill_values : array of shape (f,), optional
        What stands for missing features, in the user's units.
    intervals : bool
        With the second outputs of the twins, if the model has them, and ranges of the features.
        What the intervals are is still to be calibrated.

    Raises
    ------
    InputError
        Where a pack cannot hold the model.
    """
    if weights not in WEIGHTS:
        raise InputError(f"weights={weights!r} is not one of {', '.join(WEIGHTS)}")
    lists = anchor_lists(model, rows)
    counts = np.array([len(mine) for mine in lists], np.uint16)
    chosen = np.concatenate(lists)
    scaling, architecture = model.scaling_, model.architecture_
    scaled = scaling.features(model.anchor_X_)
    pairs = _calibration_pairs(model, scaled)
    readouts = [None] * len(lists)
    if intervals and model.difficulty_ is not None:
        readouts = list(model.difficulty_)
    reach = max(_LEAST_REACH, _HEADROOM * float(np.abs(scaled).max()))
    x_unit = min(reach, scaling.limit) / LARGEST
    with np.errstate(over="ignore", under="ignore"):  # what float32 cannot hold is refused below
        pack = Pack(
            activation=architecture.activation,
            x_offset=scaling.x_mean.astype(np.float32),
            x_gain=(1 / (scaling.x_scale * x_unit)).astype(np.float32),
            y_offset=np.float32(scaling.y_mean),
            y_gain=np.float32(scaling.y_scale / UNITS),
            twins=tuple(
                round_network(
                    architecture,
                    network,
                    pairs,
                    x_unit,
                    y_unit=1 / UNITS,
                    dtype=WEIGHTS[weights],
                    compensate=compensate,
                    readout=readout,
                )
                for network, readout in zip(model.weights_, readouts, strict=True)
            ),
            anchors=np.zeros((len(chosen), model.n_features_in_), np.int16),
            targets=np.zeros(len(chosen), np.int32),
            counts=counts,
            curve=silu_curve() if architecture.activation == "silu" else None,
            neighbors=_neighbors(model, neighbors),
            trained_on_neighbors=_trained_on_neighbors(model),
            intervals=replace(_UNCALIBRATED, trust=round(65536 * model.trust_))
            if intervals and model.difficulty_ is not None
            else None,
            ids=chosen.astype(np.uint32),
            metadata=metadata or {},
        )
    shape_of(pack)
    check_contents(pack)
    return replace(
        pack,
        anchors=quantise_points(pack, model.anchor_X_[chosen]),
        targets=_targets(pack, model.anchor_y_[chosen]),
        domain=_domain(pack, model.anchor_X_, fill_values) if intervals else None,
    )


def _domain(pack: Pack, X: Array, fill_values: Array | None) -> Domain:
    least, most = quantise_points(pack, np.stack([X.min(axis=0), X.max(axis=0)]))
    fill = np.full(len(least), NO_FILL, np.int16)
    if fill_values is not None:
        known = np.isfinite(fill_values)
        fill = np.where(known, quantise_points(pack, np.nan_to_num(fill_values)[None])[0], fill)
    return Domain(least, most, fill)


def _trained_on_neighbors(model: TwinRegressor) -> bool:
    return bool(model.pairs == "neighbors")


def _neighbors(model: TwinRegressor, neighbors: int | None) -> int:
    if neighbors is None:
        return int(model.neighbors) if _trained_on_neighbors(model) else 0
    if not neighbors and _trained_on_neighbors(model):
        raise InputError("a model trained on neighbours cannot predict with all anchors")
    return int(neighbors)


def _calibration_pairs(model: TwinRegressor, scaled: Array) -> Array:
    """Random pairs ``(n, 2 f)`` of training points, such as the model was trained on."""
    rng = np.random.default_rng(0)
    pick = rng.integers(len(scaled), size=(_CALIBRATION_PAIRS, 2))
    if _trained_on_neighbors(model):
        partners = nearest_others(scaled, int(model.neighbors))
        pick[:, 1] = partners[pick[:, 0], pick[:, 1] % partners.shape[1]]
    return scaled[pick].reshape(_CALIBRATION_PAIRS, -1).astype(np.float64)


def _targets(pack: Pack, y: Array) -> Array:
    """Targets in units of an estimate, int32, from the offset and gain as the pack rounds them."""
    units = np.rint((y - float(pack.y_offset)) / float(pack.y_gain))
    if np.abs(units).max() >= TARGET:
        raise InputError(
            "the target varies too little for its size: take its mean off before training"
        )
    targets: Array = units.astype(np.int32)
    return targets
