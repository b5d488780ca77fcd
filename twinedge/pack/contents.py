"""What a pack holds, as numpy arrays."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """One hidden layer.

    Parameters
    ----------
    kernel : array of shape (outputs, inputs), int8 or int16
        Weights; in the first layer those of the first point, then those of the second.
    bias : array of shape (outputs,), int32
        In units of the accumulator.
    multiplier : array of shape (outputs,), int16
        With ``shift``, brings the accumulator to units of 2^-fraction.
    shift, fraction : int
        See FORMAT.md, section 6.
    """

    kernel: Array
    bias: Array
    multiplier: Array
    shift: int
    fraction: int


@dataclass(frozen=True)
class Twin:
    """One network.

    Parameters
    ----------
    layers : tuple of Layer
        Hidden layers.
    output : array of shape (inputs,), int16
        Weights of the output.
    multiplier, shift : int
        Bring the output to the units of the targets.
    """

    layers: tuple[Layer, ...]
    output: Array
    multiplier: int
    shift: int

    @property
    def shifts(self) -> tuple[int, ...]:
        """Shift of each hidden layer, then of the output."""
        return (*(layer.shift for layer in self.layers), self.shift)

    @property
    def fractions(self) -> tuple[int, ...]:
        """Fraction bits of each hidden layer."""
        return tuple(layer.fraction for layer in self.layers)


@dataclass(frozen=True)
class Pack:
    """Twins, anchors and scaling.

    Parameters
    ----------
    activation : {"relu", "silu"}
        Of all hidden layers.
    x_offset, x_gain : array of shape (f,), float32
        ``(x - offset) * gain`` is the quantised feature.
    y_offset, y_gain : float32
        ``estimate * gain + offset`` is the prediction.
    twins : tuple of Twin
        Networks of one shape.
    anchors : array of shape (k, f), int16
        Quantised features, twin by twin.
    targets : array of shape (k,), int32
        Targets of the anchors.
    counts : array of shape (twins,), uint16
        How many anchors each twin has.
    curve : array of shape (193,), int16, or None
        Table of the silu activation.
    neighbors : int
        How many nearest anchors of each twin predict; 0 for all.
    trained_on_neighbors : bool
        Whether the twins know near pairs only.
    ids : array of shape (k,), uint32, or None
        Which training row each anchor is.
    metadata : dict
        Names, units, scores.
    """

    activation: str
    x_offset: Array
    x_gain: Array
    y_offset: np.float32
    y_gain: np.float32
    twins: tuple[Twin, ...]
    anchors: Array
    targets: Array
    counts: Array
    curve: Array | None = None
    neighbors: int = 0
    trained_on_neighbors: bool = False
    ids: Array | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.x_offset)

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(len(layer.bias) for layer in self.twins[0].layers)

    @property
    def weight_bits(self) -> int:
        """8 or 16."""
        return int(self.twins[0].layers[0].kernel.dtype.itemsize) * 8

    @property
    def members(self) -> int:
        """Estimates in one prediction."""
        if not self.neighbors:
            return len(self.targets)
        return int(np.minimum(self.counts, self.neighbors).sum())
