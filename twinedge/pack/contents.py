"""What a pack holds, as numpy arrays."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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
        Weights; in the first layer, those of the first point, then those of the second.
    bias : array of shape (outputs,), int32
        In units of the accumulator.
    multiplier : array of shape (outputs,), int16
        With ``shift``, converts the accumulator to units of 2^-fraction.
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
    """The second output of a network: how large an error to expect.

    Parameters
    ----------
    output : array of shape (inputs,), int16
        Its weights.
    bias : int
        In units of its sums.
    multiplier, shift : int
        Convert its sums to the units of the targets.
    """

    output: Array
    bias: int
    multiplier: int
    shift: int


@dataclass(frozen=True)
class Output:
    """How one target is made of the last hidden layer.

    Parameters
    ----------
    output : array of shape (inputs,), int16
        Weights of the output.
    multiplier, shift : int
        Convert the output to the units of the targets.
    bias : int
        Added to the sum of both orders of a pair, in units of the output's sums; only in packs with
        intervals.
    difficulty : Difficulty, optional
        Only in packs with intervals.
    """

    output: Array
    multiplier: int
    shift: int
    bias: int = 0
    difficulty: Difficulty | None = None


@dataclass(frozen=True)
class Twin:
    """One network.

    Parameters
    ----------
    layers : tuple of Layer
        Hidden layers, which serve all targets.
    output, multiplier, shift, bias, difficulty
        Those of the first target: see ``Output``.
    others : tuple of Output
        Those of further targets.
    """

    layers: tuple[Layer, ...]
    output: Array
    multiplier: int
    shift: int
    bias: int = 0
    difficulty: Difficulty | None = None
    others: tuple[Output, ...] = ()

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Outputs of all targets."""
        first = Output(self.output, self.multiplier, self.shift, self.bias, self.difficulty)
        return (first, *self.others)

    def single(self, target: int) -> "Twin":
        """Return the network of one target."""
        return Twin(self.layers, **vars(self.outputs[target]))

    @property
    def shifts(self) -> tuple[int, ...]:
        """Shift of each hidden layer, then of the output."""
        return (*(layer.shift for layer in self.layers), self.shift)

    @property
    def fractions(self) -> tuple[int, ...]:
        """Fraction bits of each hidden layer."""
        return tuple(layer.fraction for layer in self.layers)


USUAL_TRUST = 26214  # 0.4, if no groups are known


@dataclass(frozen=True)
class Intervals:
    """How far off predictions are expected to be.

    The square of the scale is ``constant**2 + (by_spread * spread)**2 + (by_asymmetry *
    asymmetry)**2 + (by_difficulty * difficulty)**2``; an interval is the prediction plus and minus
    a quantile times the scale.

    Parameters
    ----------
    by_spread, by_asymmetry, by_difficulty : int
        Weights of the three signals, in units of 1/65536.
    constant : int
        In 1/4096 of the unit of the targets.
    rows : int
        Number of calibration rows; 65535 also stands for more.
    typical : int
        Mean scale of these rows, in sixteenths of the unit of the targets.
    outside : int
        Share of these rows with a feature outside its range, in units of 1/65536.
    quantiles : dict of int to int
        For each level, in thousandths and ascending, what to multiply the scale by, in units of
        1/65536.
    trust : int
        How far points measured on site are trusted, in units of 1/65536.
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
        """Weights of spread, asymmetry and difficulty."""
        return self.by_spread, self.by_asymmetry, self.by_difficulty

    @property
    def usual_level(self) -> int:
        """The default level of a runtime: 900, else the highest below, else the lowest."""
        return max((one for one in self.quantiles if one <= 900), default=min(self.quantiles))


@dataclass(frozen=True)
class Domain:
    """The features of the training data, quantised.

    Parameters
    ----------
    least, most : array of shape (f,), int16
        Range of each feature.
    fill : array of shape (f,), int16
        Value of each feature if it is missing; -32768 if there is none.
    """

    least: Array
    most: Array
    fill: Array


@dataclass(frozen=True)
class InputMap:
    """A curve per feature in front of the twins, which take its outputs in place of the features.

    Parameters
    ----------
    bins : array of shape (f,), uint8
        How many pieces the curve of each feature has; 0 if it has none.
    shifts : array of shape (g,), uint8
        Convert the sums of the outputs to the units of a quantised feature.
    knots : array of shape (rows,), int16
        Quantised values of the features between which a curve is linear, feature after feature:
        one more than there are bins, strictly increasing.
    table : array of shape (rows, g), int8
        What the curves add to the outputs at each knot, before the shift.
    """

    bins: Array
    shifts: Array
    knots: Array
    table: Array

    @property
    def outputs(self) -> int:
        """How many numbers it makes of a point."""
        return len(self.shifts)

    def curves(self) -> Iterator[tuple[int, slice]]:
        """Yield each feature with a curve, and which of the knots and rows of the table it has."""
        start = 0
        for feature in np.flatnonzero(self.bins).tolist():
            end = start + int(self.bins[feature]) + 1
            yield feature, slice(start, end)
            start = end


@dataclass(frozen=True)
class TargetCurve:
    """A monotone curve from estimates to the units of the target's gain; constant at either end.

    Parameters
    ----------
    first : int
        Estimate at the first entry.
    shift : int
        There is an entry every ``2**shift`` estimates.
    values : array of shape (bins + 1,), int32
        Strictly increasing.
    """

    first: int
    shift: int
    values: Array

    @property
    def bins(self) -> int:
        """Number of pieces, each of them linear."""
        return len(self.values) - 1


@dataclass(frozen=True)
class Release:
    """What a file says about the pack in it, as it stands there: ``release.py`` reads it.

    Parameters
    ----------
    id : bytes
        Of the pack that it is about; what is written of another pack leaves it out.
    self_test, identity, signature : bytes, optional
        Sections of the file.
    whole : bytes
        SHA-256 of the file, which is what a signature is about.
    """

    id: bytes
    self_test: bytes | None = None
    identity: bytes | None = None
    signature: bytes | None = None
    whole: bytes = b""


@dataclass(frozen=True)
class Target:
    """What a pack has of one target, beside the outputs of its twins.

    Parameters
    ----------
    y_offset, y_gain : float32
        ``estimate * gain + offset`` is the prediction; with a target curve, that of its value.
    targets : array of shape (k,), int32
        Targets of the anchors, in units of an estimate.
    intervals : Intervals, optional
        How far off predictions are expected to be.
    target_curve : TargetCurve, optional
        Curve from estimates to the target.
    """

    y_offset: np.float32
    y_gain: np.float32
    targets: Array
    intervals: Intervals | None = None
    target_curve: TargetCurve | None = None


@dataclass(frozen=True)
class Pack:
    """Twins, anchors and scaling.

    What there is for each target is that of the first one here; of further ones it is in
    ``others``. ``single`` returns the pack of one target.

    Parameters
    ----------
    activation : {"relu", "silu"}
        Of all hidden layers.
    x_offset, x_gain : array of shape (f,), float32
        ``(x - offset) * gain`` is the quantised feature.
    y_offset, y_gain : float32
        ``estimate * gain + offset`` is the prediction; with a target curve, that of its value.
    twins : tuple of Twin
        Networks, all of the same shape.
    anchors : array of shape (k, g), int16
        What the twins take of each anchor, twin by twin: quantised features, or what the map makes
        of them.
    targets : array of shape (k,), int32
        Targets of the anchors, in units of an estimate.
    counts : array of shape (twins,), uint16
        Number of anchors of each twin.
    curve : array of shape (193,), int16, or None
        Table of the silu activation.
    neighbors : int
        How many nearest anchors of each twin predict; 0 for all.
    trained_on_neighbors : bool
        Whether the twins were trained only on pairs of near points.
    intervals : Intervals, optional
        How far off predictions are expected to be; each twin then has a difficulty.
    domain : Domain, optional
        Ranges of the features, and values for missing ones.
    schema : int, optional
        Stands for the columns and the target; packs with the same schema share stores.
    ids : array of shape (k,), uint32, or None
        Training row of each anchor.
    metadata : dict
        Names, units, scores.
    map : InputMap, optional
        Curves of the features, in front of the twins.
    target_curve : TargetCurve, optional
        Curve from estimates to the target.
    others : tuple of Target
        Further targets.
    release : Release, optional
        Self-test, identity and signature.
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
    schema: int | None = None
    ids: Array | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    map: InputMap | None = None
    target_curve: TargetCurve | None = None
    others: tuple[Target, ...] = ()
    release: Release | None = None

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.x_offset)

    @property
    def inputs(self) -> int:
        """How many numbers the twins take of each point: g of FORMAT.md."""
        return self.features if self.map is None else self.map.outputs

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(len(layer.bias) for layer in self.twins[0].layers)

    @property
    def weight_bits(self) -> int:
        """Bits of a kernel weight, 8 or 16."""
        return int(self.twins[0].layers[0].kernel.dtype.itemsize) * 8

    @property
    def every_target(self) -> tuple[Target, ...]:
        """All targets, the first one among them."""
        first = Target(self.y_offset, self.y_gain, self.targets, self.intervals, self.target_curve)
        return (first, *self.others)

    @property
    def singles(self) -> tuple["Pack", ...]:
        """The pack of each target."""
        return tuple(self.single(target) for target in range(1 + len(self.others)))

    def single(self, target: int) -> "Pack":
        """Return the pack of one target; arrays are shared, none is copied."""
        if not self.others and target == 0:
            return self
        return replace(
            self,
            **vars(self.every_target[target]),
            twins=tuple(twin.single(target) for twin in self.twins),
            others=(),
            metadata=metadata_of(self.metadata, target),
        )

    @property
    def members(self) -> int:
        """Number of estimates in one prediction of a target."""
        if not self.neighbors:
            return len(self.targets)
        return int(np.minimum(self.counts, self.neighbors).sum())


def metadata_of(metadata: dict[str, Any], target: int) -> dict[str, Any]:
    """Return what the metadata of a pack for several targets says of one of them."""
    own = metadata.get("targets")
    if not isinstance(own, list) or not all(isinstance(one, dict) for one in own):
        return metadata  # which may be anything
    shared = {key: value for key, value in metadata.items() if key != "targets"}
    return {**shared, **own[target]} if target < len(own) else shared


def target_names(metadata: dict[str, Any], count: int, usual: str = "target") -> tuple[str, ...]:
    """Names of the targets of a pack; those without a name are numbered, if there are several."""
    names = [metadata_of(metadata, target).get("target") for target in range(count)]
    return tuple(
        name if isinstance(name, str) else f"{usual}{number if count > 1 else ''}"
        for number, name in enumerate(names)
    )


def schema_of(inputs: Sequence[str], target: str | Sequence[str]) -> int:
    """Return the number that stands for what a model is about.

    Parameters
    ----------
    inputs : sequence of str
        Names of the inputs, in order: those of a category name its levels (``Encoding.inputs``).
    target : str, or sequence of str
        Name of the target, or names of several.

    Returns
    -------
    int
        CRC-32 of these names as JSON, UTF-8 with sorted keys and no spaces.

    Examples
    --------
    >>> schema_of(["angle", "cut=Fair"], "level")
    4011967936
    """
    return zlib.crc32(schema_text(inputs, target))


def schema_text(inputs: Sequence[str], target: str | Sequence[str]) -> bytes:
    """Return what a model is about, as hashes take it: see ``schema_of``."""
    names = target if isinstance(target, str) else list(target)
    about = {"inputs": list(inputs), "target": names}
    text = json.dumps(about, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


LARGEST = 32767  # magnitude of a quantised feature or activation, and of a multiplier
ACCUMULATOR, OUTPUT, TARGET, CURVE = 2**31, 2**30, 2**30, 2**14  # the first values out of range
