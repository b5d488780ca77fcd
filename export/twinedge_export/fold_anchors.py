"""A model as the layers of a graph, with its anchors folded into the first.

An anchor is constant on a device, and so is its contribution to the sums of the first layer, in
both orders of the pair. A query passes through that layer once for any number of anchors. A map in
front of it is two more products: one says how far each bin of a feature's curve is filled, and one
adds up what the filled ones contribute.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import LARGEST, Array, Pack
from twinedge.runtime.file_device import units_of_estimates
from twinedge.runtime.pack_calibration import calibration_of
from twinedge.scoring.target_curve import TargetCurve
from twinedge.training.input_map import InputMap

# Features may exceed the training data by a quarter, and reach two standard deviations in any case.
# More would cost where the target has no noise: what limits a pack there is the unit of a feature.
_HEADROOM, _LEAST_REACH = 1.25, 2.0
# What single precision can raise to a power, or square.
_WIDEST = {"log": (-80.0, 80.0), "log1p": (-80.0, 80.0), "sqrt": (0.0, 1e18)}


class Dense(NamedTuple):
    """Kernel ``(inputs, outputs)`` and bias ``(outputs,)``, float64; whether it is activated."""

    kernel: Array
    bias: Array
    activated: bool


@dataclass(frozen=True)
class Inputs:
    """How a graph takes its queries: ``(x - centre) / unit``, clipped at ``limit``.

    Parameters
    ----------
    centre, unit : array of shape (f,)
        In the units of the features.
    limit : float
        In ``unit``.
    """

    centre: Array
    unit: Array
    limit: float

    @classmethod
    def scaled(cls, model: TwinRegressor) -> "Inputs":
        """As in training; clipped where a pack clips, far beyond meaningful answers."""
        scaling = model.scaling_
        limit = min(largest_input(model), scaling.limit)
        return cls(scaling.x_mean, scaling.x_scale, limit)

    @classmethod
    def spanned(cls, model: TwinRegressor) -> "Inputs":
        """From -1 to 1 over the training data, so that few bits are all used."""
        seen = model.scaling_.reached(model.anchor_X_)
        low, high = model.scaling_.reached(model.encoding_.ranges(seen))
        return cls((low + high) / 2, np.where(high > low, (high - low) / 2, 1.0), 1.0)

    def clipped(self, x: Array) -> Array:
        """Clip points ``(n, f)`` where these inputs are clipped, in the units of the features."""
        reach = self.limit * self.unit
        return np.clip(x, self.centre - reach, self.centre + reach)

    def of(self, x: Array) -> Array:
        """Bring points ``(n, f)`` to these inputs."""
        with np.errstate(over="ignore"):
            inputs: Array = np.clip((x - self.centre) / self.unit, -self.limit, self.limit)
        return inputs


def largest_input(model: TwinRegressor) -> float:
    """Return the largest input of the networks that a pack has to hold, scaled."""
    x = model.scaling_.features(model.anchor_X_)

    def reach(inputs: Array) -> float:
        return max(_LEAST_REACH, _HEADROOM * float(np.abs(inputs).max()))

    limit = min(reach(x), model.scaling_.limit)
    return limit if model.map_ is None else max(limit, reach(model.inputs_of(x)))


class MapLayers(NamedTuple):
    """A map: ``straight(x) + steps(fill(x) clipped from 0 to 1)``; no layer is activated.

    ``fill`` says how far each of ``b`` bins is filled, ``steps`` ``(b, g)`` is what a full one
    adds, and ``straight`` has the rest.
    """

    fill: Dense
    steps: Array
    straight: Dense

    @classmethod
    def of(cls, learnt: InputMap, gain: Array, shift: Array) -> "MapLayers":
        """Make the layers for inputs of which ``gain * input + shift`` is a scaled feature."""
        kernels, biases, steps = [], [], []
        straight = np.eye(learnt.features, learnt.outputs)
        constant = shift @ straight
        for feature, knots, rows in learnt.parts():
            knots, rows = knots.astype(np.float64), rows.astype(np.float64)
            kernel = np.zeros((learnt.features, len(knots) - 1))
            kernel[feature] = gain[feature] / np.diff(knots)
            kernels.append(kernel)
            biases.append((shift[feature] - knots[:-1]) / np.diff(knots))
            steps.append(np.diff(rows, axis=0))
            constant += rows[0]
        return cls(
            Dense(np.hstack(kernels), np.concatenate(biases), False),
            np.concatenate(steps),
            Dense(gain[:, None] * straight, constant, False),
        )


class CurveRange(NamedTuple):
    """A target curve, and the range on it that a device knows: beyond, it stays what it is."""

    curve: TargetCurve
    low: float
    high: float

    @classmethod
    def of(cls, curve: TargetCurve, pack: Pack | None) -> "CurveRange":
        """Take the range from the pack of the model; without one, all that single precision has."""
        if pack is None or pack.target_curve is None:
            return cls(curve, *_WIDEST[curve.kind])
        (offset, unit), table = units_of_estimates(pack), pack.target_curve
        ends = table.first, table.first + (table.bins << table.shift)
        low, high = (offset + unit * end for end in ends)
        return cls(curve, low, high)


class Bounds(NamedTuple):
    """Turns signals into a scale and intervals, target by target.

    Parameters
    ----------
    weights : array of shape (3, m)
        Weights of spread, asymmetry and difficulty.
    constant : array of shape (m,)
        Part of the scale that no signal explains, in units of the targets.
    quantiles : array of shape (m, levels)
        How many scales an interval reaches to either side.
    coverages : tuple of float
        What these intervals cover, ascending.
    """

    weights: Array
    constant: Array
    quantiles: Array
    coverages: tuple[float, ...]

    @classmethod
    def of(cls, pack: Pack | None) -> "Bounds | None":
        """Take them from a pack; None if it has no intervals."""
        each = [] if pack is None else pack.singles
        found = [calibration_of(one, units_of_estimates(one)[1]) for one in each]
        some = [one for one in found if one is not None]
        if not some:
            return None
        return cls(
            np.stack([one.weights for one in some], axis=1),
            np.array([one.constant for one in some]),
            np.array([[*one.quantiles.values()] for one in some]),
            tuple(some[0].quantiles),
        )


@dataclass(frozen=True)
class Folded:
    """One twin and its anchors.

    Parameters
    ----------
    first : Dense
        Takes a pair ``(2 g,)``.
    layers : tuple of Dense
        The rest; the last has an output for each target, a scaled difference.
    points : array of shape (k, g)
        Anchors, as inputs of the graph or, with a map, as what it makes of them.
    targets : array of shape (k, m)
        Their targets, scaled.
    difficulty : Dense, optional
        The second outputs, which take the same inputs as the last of ``layers``.
    """

    first: Dense
    layers: tuple[Dense, ...]
    points: Array
    targets: Array
    difficulty: Dense | None = None

    @property
    def halves(self) -> Array:
        """Kernel ``(g, 2 h)`` for a query as the first point of a pair, and as the second."""
        return np.concatenate(np.split(self.first.kernel, 2), axis=1)

    @property
    def offsets(self) -> Array:
        """Contribution of each anchor as the other point, bias included, ``(2, k, h)``."""
        of_first, of_second = np.split(self.first.kernel, 2)
        return np.stack([self.points @ of_second, self.points @ of_first]) + self.first.bias


@dataclass(frozen=True)
class Folding:
    """All twins of a model with their anchors.

    Parameters
    ----------
    inputs : Inputs
        Inputs of the first layers.
    twins : tuple of Folded
        Of one shape.
    activation : {"relu", "silu"}
        Of all hidden layers.
    y_mean, y_scale : float, or array of shape (m,) of several targets
        Mean and scale of the target, in its units; with a curve, on that.
    bounds : Bounds, optional
        Turns the outputs into a scale and intervals; each twin then has a difficulty.
    map : MapLayers, optional
        From the inputs to what the first layers take.
    curve : CurveRange, optional
        That of a single target.
    """

    inputs: Inputs
    twins: tuple[Folded, ...]
    activation: str
    y_mean: Any
    y_scale: Any
    bounds: Bounds | None = None
    map: MapLayers | None = None
    curve: CurveRange | None = None

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.inputs.unit)

    @property
    def targets(self) -> int:
        """Number of targets."""
        return int(self.twins[0].targets.shape[1])

    @property
    def centre(self) -> Any:
        """What the mean of the target is, or stands for on its curve, in its own units."""
        return self.y_mean if self.curve is None else float(self.curve.curve.inverse(self.y_mean))


def fold(
    model: TwinRegressor, rows: Sequence[Array], inputs: Inputs, pack: Pack | None = None
) -> Folding:
    """Fold the anchors of a model.

    Parameters
    ----------
    model : TwinRegressor
        Fitted.
    rows : one array of int for each twin
        Training rows that are its anchors.
    inputs : Inputs
        How queries are scaled.
    pack : Pack, optional
        Pack of the same model; its intervals are reused.

    Raises
    ------
    InputError
        If there is not one list of anchors for each twin, training diverged, or the pack has
        intervals but the model lacks what they need.
    """
    if not np.isfinite(model.weights_).all():
        raise InputError("the network has weights that are not finite: its training diverged")
    lists, bounds = anchor_lists(model, rows), Bounds.of(pack)
    readouts: Sequence[Array | None] = [None] * len(lists)
    if bounds is not None:
        if model.difficulty_ is None:
            raise InputError("the pack has intervals, and the model has no second output for them")
        readouts = [*np.stack([one.difficulty_ for one in model.of_each_target()], axis=2)]
    scaling = model.scaling_
    folded = (
        _folded(model, network, mine, inputs, readout)
        for network, mine, readout in zip(model.weights_, lists, readouts, strict=True)
    )
    return Folding(
        inputs,
        tuple(folded),
        model.architecture_.activation,
        scaling.y_mean,
        scaling.y_scale,
        bounds,
        None if model.map_ is None else MapLayers.of(model.map_, *_to_scaled(model, inputs)),
        None if scaling.curve is None else CurveRange.of(scaling.curve, pack),
    )


def _to_scaled(model: TwinRegressor, inputs: Inputs) -> tuple[Array, Array]:
    """Gain and shift ``(f,)`` from inputs of a graph to scaled features."""
    scaling = model.scaling_
    return inputs.unit / scaling.x_scale, (inputs.centre - scaling.x_mean) / scaling.x_scale


def behind_map(model: TwinRegressor) -> TwinRegressor:
    """Return a model without its map: its features are what the map makes of a point.

    They are in the units of a pack, as its anchors are. A model without a map is returned as it is.
    """
    if model.map_ is None:
        return model
    bare, outputs = copy(model), model.map_.outputs
    bare.map_ = None
    bare.remember_columns(Encoding.numbered(outputs))
    unit = largest_input(model) / LARGEST
    bare.anchor_X_ = model.inputs_of(model.scaling_.features(model.anchor_X_)) / unit
    zeros, units = np.zeros(outputs), np.full(outputs, 1 / unit)
    bare.scaling_ = replace(model.scaling_, x_mean=zeros, x_scale=units, limit=unit * LARGEST)
    return bare


def anchor_lists(model: TwinRegressor, rows: Sequence[Array] | Array) -> list[Array]:
    """Check that there is one list of anchors for each twin, and that they are training rows."""
    twins, count = len(model.weights_), len(model.anchor_y_)
    lists = [np.asarray(mine) for mine in rows]
    if len(lists) != twins:
        raise InputError(f"anchors for {len(lists)} twins, but the model has {twins}")
    for mine in lists:
        if mine.ndim != 1 or not len(mine) or not np.issubdtype(mine.dtype, np.integer):
            raise InputError("each twin needs a list of row numbers that is not empty")
        if mine.min() < 0 or mine.max() >= count:
            raise InputError(f"anchors must be rows 0 to {count - 1} of the training points")
    return lists


def _folded(
    model: TwinRegressor, network: Array, rows: Array, inputs: Inputs, readout: Array | None
) -> Folded:
    scaling = model.scaling_
    *hidden, last = model.architecture_.parts(network.astype(np.float64))
    (kernel, bias), *others = hidden
    if model.map_ is None:
        # The networks take (x - mean) / scale; this converts the graph's units to theirs.
        gain, shift = (np.tile(one, 2) for one in _to_scaled(model, inputs))
        first = Dense(kernel * gain[:, None], bias + shift @ kernel, True)
        points = inputs.of(model.anchor_X_[rows])
    else:
        first = Dense(kernel, bias, True)
        points = model.inputs_of(scaling.features(model.anchor_X_[rows])).astype(np.float64)
    difficulty = None
    if readout is not None:
        weights = readout.astype(np.float64)
        difficulty = Dense(weights[:-1], weights[-1], False)
    targets = (scaling.curved(model.anchor_y_[rows]) - scaling.y_mean) / scaling.y_scale
    return Folded(
        first,
        (*(Dense(*layer, True) for layer in others), Dense(*last, False)),
        points,
        targets.reshape(len(rows), -1),
        difficulty,
    )
