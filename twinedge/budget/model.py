"""Count the parameters and bytes of twins with their anchors, and of the ensemble they replace.

A twin's integer weights and its intervals are counted as the pack stores them, to the byte. No pack
holds an ordinary ensemble; it is counted as if one did: header, scaling and curve once, and for
each network the record of a twin without the kernel of the second point (the bias of the output
fits into the head of a record). There are no anchors and no intervals.

Float weights are counted as bare parameters, anchors included: less than any file of them takes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from twinedge import defaults
from twinedge.errors import InputError
from twinedge.pack import read_pack
from twinedge.pack.layout import (
    ACTIVATIONS,
    ALIGNMENT,
    KERNEL_TYPES,
    MAX_ANCHORS,
    MAX_LEVELS,
    MAX_TWINS,
    MAX_WIDTH,
    TWIN_HEAD,
    Kind,
    Shape,
    align,
    file_size,
    kernels,
)
from twinedge.run_record import FILE, read_record

Hidden = int | Iterable[int]


def layers(hidden: Hidden) -> tuple[int, ...]:
    """Widths of hidden layers; a number means one layer.

    Examples
    --------
    >>> layers(8), layers([64, 32])
    ((8,), (64, 32))
    """
    return tuple(hidden) if isinstance(hidden, Iterable) else (int(hidden),)


def network_params(inputs: int, hidden: Hidden) -> int:
    """Weights and biases of a network with one output."""
    widths = (inputs, *layers(hidden), 1)
    return sum(rows * columns + columns for rows, columns in pairwise(widths))


def ann_params(features: int, hidden: Hidden, members: int) -> int:
    """Parameters of an ensemble of ordinary networks.

    Examples
    --------
    >>> ann_params(8, (128, 128), 32)
    569376
    """
    return members * network_params(features, hidden)


def twin_params(features: int, hidden: Hidden, anchors: int, twins: int = 1) -> int:
    """Parameters of twins and all their anchors; an anchor is its features and its target.

    Examples
    --------
    >>> twin_params(8, (128, 128), 32)
    19105
    """
    return twins * network_params(2 * features, hidden) + anchors * (features + 1)


# How weights can be stored: the first two as a pack does, the others as bare numbers.
WEIGHTS = ("int8", "int16", "float16", "float32")
LEVELS = 5  # of a pack with intervals, unless there are too few rows for all


@dataclass(frozen=True)
class Model:
    """Shape of a model; ``Model.of`` makes one from plain numbers.

    Parameters
    ----------
    features : int
        Number of features.
    hidden : tuple of int
        Widths of the hidden layers.
    counts : tuple of int
        Number of anchors of each twin.
    neighbors : int
        How many nearest anchors of each twin predict; 0 for all.
    activation : {"relu", "silu"}
        Activation of the hidden layers.
    weights : {"int8", "int16", "float16", "float32"}
        How weights are stored.
    intervals : bool
        Whether the pack has intervals and the ranges of the features.
    levels : int
        Number of levels of these intervals; 0 if the pack has only the ranges of the features.
        Only the length of the pack depends on it, so comparisons of models ignore it.
    """

    features: int
    hidden: tuple[int, ...]
    counts: tuple[int, ...]
    neighbors: int = 0
    activation: str = "relu"
    weights: str = defaults.WEIGHTS
    intervals: bool = False
    levels: int = field(default=LEVELS, compare=False)

    def __post_init__(self) -> None:
        for what, number in (
            ("features", self.features),
            ("hidden layers", len(self.hidden)),
            *(("neurons in a layer", width) for width in self.hidden),
            ("twins", self.twins),
            *(("anchors of a twin", count) for count in self.counts),
        ):
            if number < 1:
                raise InputError(f"{number} {what}: a model has at least 1")
        if self.neighbors < 0:
            raise InputError(f"{self.neighbors} neighbors: use 0 for all anchors, or 1 or more")
        if self.activation not in ACTIVATIONS:
            raise InputError(f"activation {self.activation!r} is not {' or '.join(ACTIVATIONS)}")
        if self.weights not in WEIGHTS:
            raise InputError(f"weights {self.weights!r} are not one of {', '.join(WEIGHTS)}")
        if not 0 <= self.levels <= MAX_LEVELS:
            raise InputError(f"{self.levels} levels: a pack has 0 to {MAX_LEVELS}")

    @classmethod
    def of(
        cls,
        features: int,
        hidden: Hidden | None = None,
        anchors: int = defaults.ANCHORS,
        *,
        twins: int | None = None,
        neighbors: int = 0,
        activation: str = "relu",
        weights: str = defaults.WEIGHTS,
        intervals: bool = False,
    ) -> "Model":
        """Make a model whose twins share the anchors as evenly as possible.

        ``hidden`` is the widths of the hidden layers, or one number for a single layer. What is not
        given is what training would choose.
        """
        count, widths = defaults.shape(twins, None if hidden is None else layers(hidden))
        shares = anchor_counts(anchors, count)
        return cls(features, widths, shares, neighbors, activation, weights, intervals)

    @property
    def twins(self) -> int:
        """Number of networks."""
        return len(self.counts)

    @property
    def anchors(self) -> int:
        """Number of stored points, of all twins together."""
        return sum(self.counts)

    @property
    def members(self) -> int:
        """Number of estimates in one prediction: the size of the ensemble."""
        return sum(self.evaluated)

    @property
    def evaluated(self) -> tuple[int, ...]:
        """Number of anchors of each twin that predict."""
        return tuple(min(count, self.neighbors or count) for count in self.counts)

    @property
    def scaled(self) -> bool:
        """Whether twins have a second output: intervals need one, ranges of features do not."""
        return self.intervals and self.levels > 0

    @property
    def ann_params(self) -> int:
        """Parameters of as many ordinary networks as there are members."""
        return ann_params(self.features, self.hidden, self.members)

    @property
    def twin_params(self) -> int:
        """Parameters of the twins and their anchors as the paper counts them, without intervals."""
        return twin_params(self.features, self.hidden, self.anchors, self.twins)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one query, both orders of each pair.

        The query's half of the first layer is computed once for each twin, the anchor's half and
        everything after it once for each anchor that predicts. Neighbors cost a distance to every
        anchor, intervals a second output in one of the two orders.
        """
        half = self.features * self.hidden[0]
        behind = sum(rows * columns for rows, columns in pairwise((*self.hidden, 1)))
        distances = self.features * self.anchors if self.neighbors else 0
        second = self.members * self.hidden[-1] if self.scaled else 0
        return 2 * (self.twins * half + self.members * (half + behind)) + second + distances

    def with_anchors(self, anchors: int) -> "Model":
        """Return the same model with a different number of anchors."""
        return replace(self, counts=anchor_counts(anchors, self.twins))


def anchor_counts(anchors: int, twins: int) -> tuple[int, ...]:
    """Count the anchors of each twin; the first twins get the remainder.

    Unlike ``twinedge.anchors.rows``, a budget may describe a pack with uneven shares.
    """
    if not 1 <= twins <= MAX_TWINS:
        raise InputError(f"{twins} twins: a pack has 1 to {MAX_TWINS}")
    if anchors < twins:
        raise InputError(f"{anchors} anchors for {twins} twins: each needs at least one")
    share, rest = divmod(anchors, twins)
    return tuple(share + (twin < rest) for twin in range(twins))


KERNELS: dict[str, np.dtype[Any]] = {"int8": KERNEL_TYPES[0], "int16": KERNEL_TYPES[1]}
_FLOATS = {"float16": 2, "float32": 4}


def twin_bytes(model: Model) -> int:
    """Bytes of the pack that a device holds, without ids and metadata.

    Raises
    ------
    InputError
        If no pack can hold the model.

    Examples
    --------
    >>> twin_bytes(Model.of(8, (128, 128), 32, weights="float32"))
    76420
    """
    if model.weights in _FLOATS:
        return _FLOATS[model.weights] * model.twin_params
    return file_size(_sections(model).values())


def ann_bytes(model: Model, members: int | None = None) -> int:
    """Bytes of ordinary networks, by default as many as the model has members."""
    members = model.members if members is None else members
    if model.weights in _FLOATS:
        return _FLOATS[model.weights] * (model.ann_params // model.members) * members
    shape = Shape(model.features, model.hidden, KERNELS[model.weights], 1, 1)
    _check(shape)
    sections = shape.device_sections(model.activation)
    del sections[Kind.ANCHORS]
    second = f"{kernels(0)[1]}0"
    parts = (part.size for part in shape.parts(Kind.TWINS) if part.name != second)
    sections[Kind.TWINS] = members * align(TWIN_HEAD.size + sum(parts))
    return file_size(sections.values())


def pack_sections(model: Model) -> dict[str, int]:
    """Break down the bytes of the pack by section; the last entry is their padding."""
    sections = _sections(model)
    lengths = {kind.name.lower(): length for kind, length in sections.items()}
    header = file_size([0] * len(sections))
    padding = file_size(sections.values()) - header - sum(lengths.values())
    return {"header": header, **lengths, "padding": padding}


def pack_fault(model: Model) -> str | None:
    """Describe why no pack can hold the model; None if one can."""
    if model.weights not in KERNELS:
        return f"a pack has no {model.weights} weights"
    return _shape(model).fault()


def _shape(model: Model) -> Shape:
    kernel = KERNELS[model.weights]
    shape = (model.features, model.hidden, kernel, model.twins, model.anchors)
    return Shape(*shape, scaled=model.scaled)


def _sections(model: Model) -> dict[Kind, int]:
    shape = _shape(model)
    _check(shape)
    sections = shape.device_sections(model.activation, model.levels)
    ranges = shape.length(Kind.DOMAIN)
    if model.intervals and ranges is not None:
        sections[Kind.DOMAIN] = ranges  # even without levels of intervals
    return sections


def _check(shape: Shape) -> None:
    fault = shape.fault()
    if fault:
        raise InputError(fault)


def smaller_in_params(model: Model) -> int:
    """Count the members from which on the twins have fewer parameters than ordinary networks."""
    twins = model.twins * network_params(2 * model.features, model.hidden)
    saved = network_params(model.features, model.hidden) - (model.features + 1)
    return max(model.twins, twins // saved + 1)


def smaller_in_bytes(model: Model) -> int | None:
    """Count the members from which on the twins take fewer bytes than ordinary networks.

    None if they never do (an anchor may take as much as a network), or only with more anchors than
    a pack holds.
    """

    def saved(members: int) -> int:
        return ann_bytes(model, members) - twin_bytes(model.with_anchors(members))

    # Saved bytes grow by the same amount with every member, except for alignment.
    least, most = model.twins, _most_anchors(model)
    if model.weights not in KERNELS:
        return smaller_in_params(model)
    growth = (saved(most) - saved(least)) / (most - least)
    if growth <= 0 or saved(most) <= 0:
        return None
    members = min(most, max(least, int((2 * ALIGNMENT - saved(least)) / growth) + least + 1))
    while members > least and saved(members - 1) > 0:
        members -= 1
    return members


def most_anchors(model: Model, flash: int) -> int:
    """Most anchors, the same for each twin, whose pack takes at most ``flash`` bytes."""

    def fits(share: int) -> bool:
        return twin_bytes(model.with_anchors(share * model.twins)) <= flash

    return model.twins * largest(fits, min(flash, _most_anchors(model)) // model.twins)


def most_networks(model: Model, flash: int) -> int:
    """Most ordinary networks of this shape that take at most ``flash`` bytes."""
    return largest(lambda members: ann_bytes(model, members) <= flash, flash)


def most_features(model: Model, flash: int) -> int:
    """Most features whose pack takes at most ``flash`` bytes."""

    def fits(features: int) -> bool:
        return twin_bytes(replace(model, features=features)) <= flash

    return largest(fits, MAX_WIDTH if model.weights in KERNELS else flash)


def largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number, 1 to ``most``, that fits; 0 for none.

    If a number fits, all smaller ones must, too.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _most_anchors(model: Model) -> int:
    return MAX_ANCHORS if model.weights in KERNELS else 1 << 62


def from_pack(path: Path) -> tuple[Model, int]:
    """Read a pack; returns its model and the size of the file in bytes, with metadata.

    Raises
    ------
    InputError
        If it cannot be read or is damaged.
    """
    try:
        data = path.read_bytes()
        pack = read_pack(data)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    counts = tuple(int(count) for count in pack.counts)
    weights = f"int{pack.weight_bits}"
    shape = (pack.features, pack.hidden, counts, pack.neighbors, pack.activation, weights)
    if pack.intervals is None and pack.domain is None:
        return Model(*shape), len(data)
    levels = 0 if pack.intervals is None else len(pack.intervals.quantiles)
    return Model(*shape, True, levels), len(data)


def from_run(
    folder: Path,
    anchors: int = defaults.ANCHORS,
    weights: str = defaults.WEIGHTS,
    intervals: bool = True,
) -> Model:
    """Read the shape of a trained model from its ``run.json``.

    Parameters
    ----------
    folder : path
        Run folder.
    anchors : int
        How many of its training points would travel to the device.
    weights : str
        How its weights would be stored.
    intervals : bool
        Whether its pack would have intervals, if the run has them.

    Raises
    ------
    InputError
        If it is not a run of this version.
    """
    record = read_record(folder)
    try:
        parameters, calibration = record["parameters"], record["calibration"]
        model = Model.of(
            len(record["feature_names"]),
            layers(parameters["hidden"]),
            anchors,
            twins=parameters["twins"],
            neighbors=parameters["neighbors"] if parameters["pairs"] == "neighbors" else 0,
            activation=record["chosen"]["activation"],
            weights=weights,
        )
        if not calibration or not intervals:
            return model
        return replace(model, intervals=True, levels=len(calibration["quantiles"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / FILE} does not say what was trained") from error
