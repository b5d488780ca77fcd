"""Count the parameters and bytes of twins with their anchors, and of the ensemble they replace.

A twin's integer weights and its intervals are counted as the pack stores them, to the byte. No pack
holds an ordinary ensemble; it is counted as if one did: header, scaling and curve once, and for
each network the record of a twin without the kernel of the second point (the bias of the output
fits into the head of a record). There are no anchors and no intervals.

An input map puts a curve of each feature in front of the twins, which then take its outputs in
place of the features; a target curve brings predictions back to the user's units. Both are counted
as the pack stores them. An ordinary network has neither.

Float weights are counted as bare parameters, anchors included: less than any file of them takes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from twinedge import defaults
from twinedge.errors import InputError
from twinedge.pack.layout import (
    ACTIVATIONS,
    KERNEL_TYPES,
    MAX_CURVE_BINS,
    MAX_LEVELS,
    MAX_MAP_ROWS,
    MAX_TARGETS,
    MAX_TWINS,
    MAX_WIDTH,
    TWIN_HEAD,
    Kind,
    Shape,
    align,
    file_size,
    kernels,
)
from twinedge.pack.release import IDENTITY, self_test_size

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
TARGET_BINS = 256  # of a target curve, about, before there is a pack
LEVELS = 5  # of a pack with intervals, unless there are too few rows for all
MAX_KNOTS = 256  # of a curve: a pack counts its bins in 8 bits


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
    map_outputs : int
        How many numbers the twins take from the input map; 0 without a map.
    map_rows : int
        Number of rows of the map's table, one for each knot of each curve.
    map_curves : int
        Number of features with a curve.
    target_bins : int
        Number of bins of the target curve; 0 without one.
    further_bins : tuple of int
        The same of each further target; empty for a single one.
    identified : bool
        Whether the pack has a self-test and an identity, as exports have. Only the length of the
        pack depends on it, as with ``levels``.
    window_bytes : int
        RAM for the last samples, if inputs are derived from them. No part of the pack depends on
        it.
    """

    features: int
    hidden: tuple[int, ...]
    counts: tuple[int, ...]
    neighbors: int = 0
    activation: str = "relu"
    weights: str = defaults.WEIGHTS
    intervals: bool = False
    levels: int = field(default=LEVELS, compare=False)
    map_outputs: int = 0
    map_rows: int = 0
    map_curves: int = 0
    target_bins: int = 0
    further_bins: tuple[int, ...] = ()
    identified: bool = field(default=False, compare=False)
    window_bytes: int = field(default=0, compare=False)

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
        fault = self._map_fault()
        if fault:
            raise InputError(fault)
        for count in (self.target_bins, *self.further_bins):
            if not 0 <= count <= MAX_CURVE_BINS:
                bins = f"{count} bins of a target curve"
                raise InputError(f"{bins}: a pack has 1 to {MAX_CURVE_BINS}, or none")
        if self.targets > MAX_TARGETS:
            raise InputError(f"{self.targets} targets: a pack has 1 to {MAX_TARGETS}")

    def _map_fault(self) -> str | None:
        """Say what no map can have; None if there is no map, or a possible one."""
        outputs, rows, curves = self.map_outputs, self.map_rows, self.map_curves
        of_map = f"of a map of {self.features} features"
        if not outputs:
            if rows or curves:
                return f"{rows} rows and {curves} curves of a map without outputs"
            return None
        if outputs < self.features:
            return f"{outputs} outputs {of_map}: it has at least as many"
        if not 0 <= curves <= self.features:
            return f"{curves} curves {of_map}: a feature has one at most"
        if not 2 * curves <= rows <= MAX_KNOTS * curves:
            return f"{rows} rows of a map of {curves} curves: each has 2 to {MAX_KNOTS}"
        return None

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
        map_outputs: int | None = None,
        map_rows: int = 0,
        map_curves: int | None = None,
        target_bins: int = 0,
        targets: int = 1,
    ) -> "Model":
        """Make a model whose twins share the anchors as evenly as possible.

        ``hidden`` is the widths of the hidden layers, or one number for a single layer. What is not
        given is what training would choose. Unless ``map_curves`` says otherwise, as many features
        have a curve as there are rows for.
        """
        count, widths = defaults.shape(twins, None if hidden is None else layers(hidden))
        shares = anchor_counts(anchors, count)
        if map_curves is None:
            map_curves = min(features, map_rows // 2)
        return cls(
            features,
            widths,
            shares,
            neighbors,
            activation,
            weights,
            intervals,
            map_outputs=map_outputs or 0,
            map_rows=map_rows,
            map_curves=map_curves,
            target_bins=target_bins,
            further_bins=(0,) * (targets - 1),
        )

    @property
    def inputs(self) -> int:
        """How many numbers a twin takes of each point: the outputs of the map, or the features."""
        return self.map_outputs or self.features

    @property
    def map_params(self) -> int:
        """Knots and table of the map."""
        return self.map_rows * (self.map_outputs + 1)

    @property
    def targets(self) -> int:
        """How many numbers are predicted."""
        return 1 + len(self.further_bins)

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
        further = self.members * (self.hidden[-1] + 1) * (self.targets - 1)
        return ann_params(self.features, self.hidden, self.members) + further

    @property
    def twin_params(self) -> int:
        """Parameters of the twins and their anchors as the paper counts them, without intervals.

        The knots and the table of an input map are counted as well.
        """
        further = self.twins * (self.hidden[-1] + 1) + self.anchors
        single = twin_params(self.inputs, self.hidden, self.anchors, self.twins) + self.map_params
        return single + (self.targets - 1) * further

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of one query, both orders of each pair.

        The query's half of the first layer is computed once for each twin, the anchor's half and
        everything after it once for each anchor that predicts. Neighbors cost a distance to every
        anchor, intervals a second output in one of the two orders, a map two rows of its table for
        each feature with a curve.
        """
        half = self.inputs * self.hidden[0]
        behind = sum(rows * columns for rows, columns in pairwise((*self.hidden, self.targets)))
        distances = self.inputs * self.anchors if self.neighbors else 0
        second = self.members * self.hidden[-1] * self.targets if self.scaled else 0
        pairs = 2 * (self.twins * half + self.members * (half + behind))
        return pairs + second + distances + 2 * self.map_curves * self.map_outputs

    def of_one_target(self) -> "Model":
        """Return the same model of its first target alone."""
        return replace(self, further_bins=())

    def with_anchors(self, anchors: int) -> "Model":
        """Return the same model with a different number of anchors."""
        return replace(self, counts=anchor_counts(anchors, self.twins))

    def with_features(self, features: int) -> "Model":
        """Return the same model with a different number of features.

        A map has as many outputs beside the features, and as many curves and rows for each feature.
        """
        if not self.map_outputs:
            return replace(self, features=features)
        curves = -(-self.map_curves * features // self.features)
        return replace(
            self,
            features=features,
            map_outputs=features + self.map_outputs - self.features,
            map_curves=curves,
            map_rows=-(-self.map_rows * curves // max(1, self.map_curves)),
        )


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
    kernel = KERNELS[model.weights]
    shape = Shape(model.features, model.hidden, kernel, 1, 1, targets=model.targets)
    fault = shape.fault()
    if fault:
        raise InputError(fault)
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
    if model.map_outputs > MAX_WIDTH:
        return f"{model.map_outputs} outputs of a map: a pack has at most {MAX_WIDTH}"
    if model.map_rows > MAX_MAP_ROWS:
        return f"{model.map_rows} rows of a map: a pack has at most {MAX_MAP_ROWS}"
    return _shape(model).fault()


def _shape(model: Model) -> Shape:
    bins = (model.target_bins, *model.further_bins)
    return Shape(
        model.features,
        model.hidden,
        KERNELS[model.weights],
        model.twins,
        model.anchors,
        scaled=model.scaled,
        map=(model.map_outputs, model.map_rows) if model.map_outputs else None,
        targets=model.targets,
        curve_bins=bins if any(bins) else (),
    )


def _sections(model: Model) -> dict[Kind, int]:
    fault = pack_fault(model)
    if fault:
        raise InputError(fault)
    shape = _shape(model)
    sections = shape.device_sections(model.activation, model.levels)
    ranges = shape.length(Kind.DOMAIN)
    if model.intervals and ranges is not None:
        sections[Kind.DOMAIN] = ranges  # even without levels of intervals
    if model.identified:
        sections[Kind.SELF_TEST] = self_test_size(model.features, model.targets)
        sections[Kind.IDENTITY] = IDENTITY.size
    return sections


def largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number, 1 to ``most``, that fits; 0 for none.

    If a number fits, all smaller ones must, too.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
