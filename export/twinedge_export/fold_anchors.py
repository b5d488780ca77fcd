"""A model as the layers of a graph, with its anchors folded into the first.

An anchor is constant on a device, and so is its contribution to the sums of the first layer, in
both orders of the pair. A query passes through that layer once for any number of anchors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twinedge.errors import InputError
from twinedge.estimators.twin import TwinRegressor
from twinedge.pack.contents import Array, Pack
from twinedge.runtime.pack_calibration import calibration_of
from twinedge.scoring.calibration import Calibration

# Features may exceed the training data by a quarter, and reach two standard deviations in any case.
# More would cost where the target has no noise: what limits a pack there is the unit of a feature.
_HEADROOM, _LEAST_REACH = 1.25, 2.0


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
        farthest = float(np.abs(scaling.features(model.anchor_X_)).max())
        reach = max(_LEAST_REACH, _HEADROOM * farthest)
        return cls(scaling.x_mean, scaling.x_scale, min(reach, scaling.limit))

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


@dataclass(frozen=True)
class Folded:
    """One twin and its anchors.

    Parameters
    ----------
    first : Dense
        Takes a pair ``(2 f,)``.
    layers : tuple of Dense
        The rest; the last has one output, a scaled difference.
    points : array of shape (k, f)
        Anchors, as inputs of the graph.
    targets : array of shape (k,)
        Their targets, scaled.
    difficulty : Dense, optional
        The second output, which takes the same inputs as the last of ``layers``.
    """

    first: Dense
    layers: tuple[Dense, ...]
    points: Array
    targets: Array
    difficulty: Dense | None = None

    @property
    def halves(self) -> Array:
        """Kernel ``(f, 2 h)`` for a query as the first point of a pair, and as the second."""
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
    y_mean, y_scale : float
        Mean and scale of the target, in its units.
    calibration : Calibration, optional
        Turns the outputs into a scale and intervals; each twin then has a difficulty.
    """

    inputs: Inputs
    twins: tuple[Folded, ...]
    activation: str
    y_mean: float
    y_scale: float
    calibration: Calibration | None = None

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.inputs.unit)


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
    lists = anchor_lists(model, rows)
    calibration = None if pack is None else calibration_of(pack)
    readouts: Sequence[Array | None] = [None] * len(lists)
    if calibration is not None:
        if model.difficulty_ is None:
            raise InputError("the pack has intervals, and the model has no second output for them")
        readouts = list(model.difficulty_)
    folded = (
        _folded(model, network, mine, inputs, readout)
        for network, mine, readout in zip(model.weights_, lists, readouts, strict=True)
    )
    activation, scaling = model.architecture_.activation, model.scaling_
    return Folding(inputs, tuple(folded), activation, scaling.y_mean, scaling.y_scale, calibration)


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
    # The networks take (x - mean) / scale; this converts the graph's units to theirs.
    gain = np.tile(inputs.unit / scaling.x_scale, 2)
    shift = np.tile((inputs.centre - scaling.x_mean) / scaling.x_scale, 2)
    difficulty = None
    if readout is not None:
        weights = readout.astype(np.float64)
        difficulty = Dense(weights[:-1, None], weights[-1:], False)
    return Folded(
        Dense(kernel * gain[:, None], bias + shift @ kernel, True),
        (*(Dense(*layer, True) for layer in others), Dense(*last, False)),
        inputs.of(model.anchor_X_[rows]),
        (model.anchor_y_[rows] - scaling.y_mean) / scaling.y_scale,
        difficulty,
    )
