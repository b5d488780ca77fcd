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
        See FORMAT.md, section 8.
    """

    kernel: Array
    bias: Array
    multiplier: Array
    shift: int
    fraction: int


@dataclass(frozen=True)
class Difficulty:
    """The second output of a network: how large an error is to be expected.

    Parameters
    ----------
    output : array of shape (inputs,), int16
        Its weights.
    bias : int
        In units of its sums.
    multiplier, shift : int
        Bring its sums to the units of the targets.
    """

    output: Array
    bias: int
    multiplier: int
    shift: int


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
    bias : int
        What both orders of a pair have together that the weights do not tell, in units of the
        output's sums; in packs with intervals.
    difficulty : Difficulty, optional
        In packs with intervals.
    """

    layers: tuple[Layer, ...]
    output: Array
    multiplier: int
    shift: int
    bias: int = 0
    difficulty: Difficulty | None = None

    @property
    def shifts(self) -> tuple[int, ...]:
        """Shift of each hidden layer, then of the output."""
        return (*(layer.shift for layer in self.layers), self.shift)

    @property
    def fractions(self) -> tuple[int, ...]:
        """Fraction bits of each hidden layer."""
        return tuple(layer.fraction for layer in self.layers)


USUAL_TRUST = 26214  # 0.4, where nothing is known of groups


@dataclass(frozen=True)
class Intervals:
    """How far off predictions are to be expected.

    The square of the scale is ``constant**2 + (by_spread * spread)**2 + (by_asymmetry *
    asymmetry)**2 + (by_difficulty * difficulty)**2``; an interval is the prediction plus and minus
    a quantile times the scale.

    Parameters
    ----------
    by_spread, by_asymmetry, by_difficulty : int
        Weights of the three signals, in units of 1/65536.
    constant : int
        In units of 1/4096 of that of the targets.
    rows : int
        Rows this was calibrated on; 65535 stands for more, too.
    typical : int
        Mean scale of these rows, in sixteenths of the unit of the targets.
    outside : int
        Share of these rows with a feature outside of its range, in units of 1/65536.
    quantiles : dict of int to int
        For each level, in thousandths and ascending, what to multiply the scale by, in units of
        1/65536.
    trust : int
        How far points measured on site are believed, in units of 1/65536.
    """

    by_spread: int
    by_asymmetry: int
    by_difficulty: int
    constant: int
    rows: int
    typical: int
    outside: int
    quantiles: dict[int, int]
    trust: int = USUAL_TRUST

    @property
    def weights(self) -> tuple[int, int, int]:
        """Of spread, asymmetry and difficulty."""
        return self.by_spread, self.by_asymmetry, self.by_difficulty

    @property
    def usual_level(self) -> int:
        """The level that a runtime takes unasked: 900, or the highest below, or the lowest."""
        return max((one for one in self.quantiles if one <= 900), default=min(self.quantiles))


@dataclass(frozen=True)
class Domain:
    """What queries are like in training, as quantised features.

    Parameters
    ----------
    least, most : array of shape (f,), int16
        Range of each feature.
    fill : array of shape (f,), int16
        What stands for a missing one; -32768 where nothing does.
    """

    least: Array
    most: Array
    fill: Array


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
    intervals : Intervals, optional
        How far off predictions are to be expected; each twin has a difficulty then.
    domain : Domain, optional
        Ranges of the features, and what stands for missing ones.
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
    intervals: Intervals | None = None
    domain: Domain | None = None
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
