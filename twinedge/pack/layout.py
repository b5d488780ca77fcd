"""The tables of FORMAT.md in code: where every byte of a pack is, and why a file is refused."""

import struct
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from math import prod
from typing import Any

import numpy as np

from twinedge.errors import InputError


class Reason(Enum):
    """One word for each kind of fault, and a code in C for each (FORMAT.md, section 10)."""

    TRUNCATED = "truncated"
    LENGTH = "length"
    MAGIC = "magic"
    VERSION = "version"
    HEADER_CRC = "header_crc"
    BODY_CRC = "body_crc"
    HEADER = "header"
    SECTION = "section"
    PADDING = "padding"
    VALUE = "value"
    OVERFLOW = "overflow"


class PackError(InputError):
    """A pack that cannot be used.

    Parameters
    ----------
    reason : Reason
        Kind of fault.
    message : str
        What exactly, in one line.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


MAGIC, OLDEST, NEWEST = b"TWIN", 1, 3
HEADER = struct.Struct("<4sHHIIIHBB3HBBHHHH8s")
ENTRY = struct.Struct("<HHII")
TWIN_HEAD = struct.Struct("<3B3BBBhhi")
INTERVALS = struct.Struct("<4I2H3I")
LEVEL = struct.Struct("<II")
MAP_HEAD = struct.Struct("<HH")
TARGET_CURVE_HEAD = struct.Struct("<iBBH")
TARGETS = struct.Struct("<HH")
OUTPUT_HEAD = struct.Struct("<BBhhHi")  # of each further target, in a twin
HEADER_CRC_AT = 12
ALIGNMENT = 16
CURVE_FINE, CURVE_LENGTH = 128, 193  # entries 1/32 apart up to 4, then 1/8 apart up to 12
ACTIVATIONS = ("relu", "silu")
KERNEL_TYPES = (np.dtype("<i1"), np.dtype("<i2"))
MAX_SECTIONS, MAX_LAYERS, MAX_WIDTH, MAX_TWINS, MAX_ANCHORS = 32, 3, 1024, 256, 4096
MAX_SHIFT, FRACTIONS = 30, range(5, 16)
REQUIRED = 1  # flag of a section
TRAINED_ON_NEIGHBORS, WITH_INTERVALS = 1, 2  # flags of the header
MAX_LEVELS = 15
MAX_MAP_ROWS, MAP_SHIFTS = 65535, range(1, 25)
MAX_CURVE_BINS, MAX_CURVE_SHIFT = 4096, 24
MAX_TARGETS = 8
NO_FILL = -32768


class Kind(IntEnum):
    """Kinds of sections."""

    SCALING = 1
    TWINS = 2
    CURVE = 3
    ANCHORS = 4
    IDS = 5
    METADATA = 6
    INTERVALS = 7
    DOMAIN = 8
    SCHEMA = 9
    MAP = 10
    TARGET_CURVE = 11
    TARGETS = 12
    SELF_TEST = 13
    IDENTITY = 14
    SIGNATURE = 15

    @property
    def required(self) -> bool:
        """Whether a reader that does not know this kind must refuse the file."""
        of_version_3 = Kind.MAP <= self <= Kind.TARGETS
        return self <= Kind.ANCHORS or self is Kind.INTERVALS or of_version_3

    @classmethod
    def of(cls, number: int, version: int = NEWEST) -> "Kind | None":
        """Return the kind with this number; None if this version of the format has none."""
        known = Kind.SCHEMA if version < 3 else Kind.TARGETS
        return cls(number) if 0 < number <= known or number in RELEASE else None


# In any version; whoever uses one of these checks it (``release.py``).
RELEASE = (Kind.SELF_TEST, Kind.IDENTITY, Kind.SIGNATURE)
OF_ANY_LENGTH = (Kind.METADATA, *RELEASE)
MEANINGS = {
    Kind.SCALING: "offset and gain of each feature and target",
    Kind.TWINS: "the networks: kernels, biases, multipliers",
    Kind.CURVE: "table of the silu activation",
    Kind.ANCHORS: "anchors: how many each twin has, features, targets",
    Kind.IDS: "training row of each anchor",
    Kind.METADATA: "names, units, scores (JSON)",
    Kind.INTERVALS: "calibration of intervals: weights of the signals, quantiles",
    Kind.DOMAIN: "range of each feature, and its value when missing",
    Kind.SCHEMA: "stands for columns and target: which stores belong to the pack",
    Kind.MAP: "curves of the features, in front of the twins",
    Kind.TARGET_CURVE: "curve from estimates to the target",
    Kind.TARGETS: "how many targets there are",
    Kind.SELF_TEST: "queries with the answers that they must get",
    Kind.IDENTITY: "id, parent, counter, and hashes of schema and training table",
    Kind.SIGNATURE: "over all bytes before it, by the owner of a key",
}


def align(size: int, to: int = ALIGNMENT) -> int:
    """Round up to a multiple of ``to``."""
    return -(-size // to) * to


@dataclass(frozen=True)
class Part:
    """An array of a section: its name, element type and shape; its shape as stored, if padded."""

    name: str
    dtype: np.dtype[Any]
    used: tuple[int, ...]
    padded: tuple[int, ...] | None = None

    @property
    def stored(self) -> tuple[int, ...]:
        """Shape in the file."""
        return self.used if self.padded is None else self.padded

    @property
    def size(self) -> int:
        """Bytes, padded to a multiple of 4."""
        return align(prod(self.stored) * self.dtype.itemsize, 4)


_I8, _I16, _I32 = (np.dtype(one) for one in ("<i1", "<i2", "<i4"))
_U8, _U16, _U32, _F32 = (np.dtype(one) for one in ("<u1", "<u2", "<u4", "<f4"))


@dataclass(frozen=True)
class Shape:
    """The size of everything after the header: what it says, and the sections of new kinds."""

    features: int
    hidden: tuple[int, ...]
    kernel: np.dtype[Any]
    twins: int
    anchors: int
    scaled: bool = False  # whether twins have a second output, for intervals
    map: tuple[int, int] | None = None  # outputs and rows of the input map
    targets: int = 1
    curve_bins: tuple[int, ...] = ()  # of each target curve, 0 for a target without; () for none

    @property
    def inputs(self) -> int:
        """How many numbers the twins take of each point."""
        return self.features if self.map is None else self.map[0]

    def fault(self) -> str | None:
        """Say what a pack of this shape has too much or too little of; None if it is possible."""
        limits = (
            ("features", self.features, 1, MAX_WIDTH),
            ("hidden layers", len(self.hidden), 1, MAX_LAYERS),
            *(("neurons in a layer", width, 1, MAX_WIDTH) for width in self.hidden),
            ("twins", self.twins, 1, MAX_TWINS),
            ("anchors", self.anchors, self.twins, MAX_ANCHORS),
        )
        for what, number, least, most in limits:
            if not least <= number <= most:
                return f"{number} {what}: a pack of {self.twins} twins has {least} to {most}"
        return None

    def section_fault(self) -> str | None:
        """Say what is impossible about the sizes in sections of new kinds; None if nothing is."""
        if not 1 <= self.targets <= MAX_TARGETS:
            return f"{self.targets} targets: a pack has 1 to {MAX_TARGETS}"
        if self.map is not None:
            outputs, rows = self.map
            if not self.features <= outputs <= MAX_WIDTH:
                return f"{outputs} outputs: a map has {self.features} to {MAX_WIDTH}"
            if rows > MAX_MAP_ROWS:
                return f"{rows} rows: a map has {MAX_MAP_ROWS} at most"
        least = 1 if self.targets == 1 else 0  # a target may have no curve, but not the only one
        for bins in self.curve_bins:
            if not least <= bins <= MAX_CURVE_BINS:
                return f"{bins} bins: a target curve has {least} to {MAX_CURVE_BINS}"
        return None

    def parts(self, kind: Kind) -> list[Part]:
        """Arrays of a section: those after the head of the map, of target curves or of one twin.

        What else is in a section is not an array: intervals, metadata, and what is unknown.
        """
        features, inputs, anchors = self.features, self.inputs, self.anchors
        tables = {
            Kind.SCALING: [Part("scaling", _F32, (features + self.targets, 2))],
            Kind.TWINS: self._twin_parts(),
            Kind.CURVE: [Part("curve", _I16, (CURVE_LENGTH,))],
            Kind.ANCHORS: [
                Part("counts", _U16, (self.twins,)),
                Part("anchors", _I16, (anchors, inputs), (anchors, align(inputs, 4))),
                Part("targets", _I32, (anchors,) if self.targets == 1 else (self.targets, anchors)),
            ],
            Kind.IDS: [Part("ids", _U32, (anchors,))],
            Kind.DOMAIN: [Part("domain", _I16, (features, 3))],
            Kind.SCHEMA: [Part("schema", _U32, (1,))],
            Kind.MAP: self._map_parts(),
            Kind.TARGET_CURVE: [self.curve_values(bins) for bins in self.curve_bins],
            Kind.TARGETS: [Part("targets", _U16, (2,))] if self.targets > 1 else [],
        }
        return tables.get(kind, [])

    def _map_parts(self) -> list[Part]:
        if self.map is None:
            return []
        outputs, rows = self.map
        return [
            Part("bins_and_shifts", _U8, (self.features + outputs,)),
            Part("knots", _I16, (rows,)),
            Part("table", _I8, (rows, outputs)),
        ]

    @staticmethod
    def curve_values(bins: int) -> Part:
        """Values of one target curve; none for a target without one."""
        return Part("values", _I32, (bins + 1 if bins else 0,))

    def _twin_parts(self) -> list[Part]:
        parts = []
        inputs = self.inputs
        for depth, width in enumerate(self.hidden):
            used, padded = (width, inputs), (width, align(inputs, 4))
            parts += [
                *(Part(f"{half}{depth}", self.kernel, used, padded) for half in kernels(depth)),
                Part(f"bias{depth}", _I32, (width,)),
                Part(f"multiplier{depth}", _I16, (width,)),
            ]
            inputs = width
        parts += self._output_parts(inputs)
        for target in range(1, self.targets):
            further = [Part("head", _U8, (OUTPUT_HEAD.size,)), *self._output_parts(inputs)]
            parts += [replace(part, name=f"{part.name}@{target}") for part in further]
        return parts

    def _output_parts(self, inputs: int) -> list[Part]:
        """Weights of one target."""
        if not self.scaled:
            return [Part("output", _I16, (inputs,), (align(inputs, 4),))]
        return [
            Part("difficulty_bias", _I32, (1,)),
            Part("outputs", _I16, (inputs, 2), (align(inputs, 4), 2)),
        ]

    def output_heads(self) -> list[int]:
        """Where in a twin's record the heads of the outputs of further targets are."""
        places, at = [], TWIN_HEAD.size
        for part in self.parts(Kind.TWINS):
            if part.name.startswith("head@"):
                places.append(at)
            at += part.size
        return places

    @property
    def twin_size(self) -> int:
        """Bytes of one twin's record."""
        return align(TWIN_HEAD.size + sum(part.size for part in self.parts(Kind.TWINS)))

    def length(self, kind: Kind) -> int | None:
        """Length of a section, or None if its content decides."""
        if kind is Kind.TWINS:
            return self.twins * self.twin_size
        parts = self.parts(kind)
        if not parts:
            return None
        heads = {Kind.MAP: MAP_HEAD.size, Kind.TARGET_CURVE: TARGET_CURVE_HEAD.size * len(parts)}
        last = prod(parts[-1].stored) * parts[-1].dtype.itemsize  # without padding
        return heads.get(kind, 0) + sum(part.size for part in parts[:-1]) + last

    def intervals_length(self, levels: int) -> int:
        """Length of the intervals with so many levels."""
        return self.targets * (INTERVALS.size + LEVEL.size * levels)

    def device_sections(self, activation: str, levels: int = 0) -> dict[Kind, int]:
        """Lengths of the sections that a device needs, without ids and metadata, in file order.

        ``levels`` is the number of levels in a pack with intervals.
        """
        new = [Kind.MAP, Kind.TARGET_CURVE, Kind.TARGETS]  # without a length where there is none
        kinds = [Kind.SCALING, *new, Kind.TWINS, Kind.CURVE, Kind.ANCHORS]
        if activation != "silu":
            kinds.remove(Kind.CURVE)
        if self.scaled:
            kinds += [Kind.INTERVALS, Kind.DOMAIN, Kind.SCHEMA]
        lengths = {kind: self.length(kind) for kind in kinds}
        lengths[Kind.INTERVALS] = self.intervals_length(levels) if self.scaled else None
        return {kind: length for kind, length in lengths.items() if length is not None}


def file_size(lengths: Collection[int]) -> int:
    """Bytes of a pack whose sections have these lengths: header, table, alignment and all."""
    table = align(HEADER.size + ENTRY.size * len(lengths))
    return table + sum(align(length) for length in lengths)


def kernels(depth: int) -> tuple[str, ...]:
    """Names of a layer's kernels: the first has one for each point of a pair."""
    return ("W",) if depth else ("A", "B")
