"""What a file that may be a pack says of itself, and whether it is sound."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twinedge.pack.bytemap import Piece, pieces
from twinedge.pack.check import ACCUMULATOR, LARGEST
from twinedge.pack.contents import Array, Pack
from twinedge.pack.errors import PackError
from twinedge.pack.header import Section, read_header
from twinedge.pack.layout import (
    ACTIVATIONS,
    ENTRY,
    HEADER,
    HEADER_CRC_AT,
    KERNEL_TYPES,
    MAGIC,
    MAX_SECTIONS,
    NEWEST,
    OLDEST,
    TRAINED_ON_NEIGHBORS,
    WITH_INTERVALS,
)
from twinedge.pack.reader import read_pack


class Checksum(NamedTuple):
    """A CRC-32 as the file has it, and as its bytes give it (None where they are not there)."""

    stored: int
    computed: int | None

    @property
    def fits(self) -> bool:
        """Whether both are the same."""
        return self.stored == self.computed


class Range(NamedTuple):
    """How a feature or the target is brought to integers, and how far that reaches.

    ``least`` and ``most`` are the ends of what the integers can hold, ``anchors_least`` and
    ``anchors_most`` of what the anchors do hold, all in the user's units.
    """

    name: str
    offset: float
    gain: float
    least: float
    most: float
    anchors_least: float
    anchors_most: float


@dataclass(frozen=True)
class Description:
    """What can be said of a file.

    Parameters
    ----------
    length : int
        Bytes there are.
    fault : PackError or None
        Why a reader refuses it.
    checksums : dict of str to Checksum
        "header" and "body"; empty where the file is too short, or no pack of this version.
    stated : dict
        What the header says, as far as its checksum vouches for it: ``version``, ``length``,
        ``features``, ``hidden``, ``activation``, ``kernel``, ``twins``, ``anchors``, ``neighbors``,
        ``trained_on_neighbors``, ``intervals``. Of a version that this twinedge does not read the
        first two, without a warrant.
    sections : tuple of Section
        The section table, as far as its checksum vouches for it.
    pieces : tuple of Piece
        Every byte of a sound file once, in order.
    ranges : tuple of Range
        Scaling of each feature, then of the target, of a sound file.
    pack : Pack or None
        Its contents, if it is sound.
    """

    length: int
    fault: PackError | None = None
    checksums: dict[str, Checksum] = field(default_factory=dict)
    stated: dict[str, Any] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    pieces: tuple[Piece, ...] = ()
    ranges: tuple[Range, ...] = ()
    pack: Pack | None = None


def describe(data: bytes) -> Description:
    """Look through a file that may be a pack.

    Parameters
    ----------
    data : bytes
        The whole file, or what is left of it.

    Returns
    -------
    Description
        Whole where the file is sound. Of one that is not, what the reader refuses it for, and only
        what a checksum vouches for.
    """
    pack, fault = None, None
    try:
        pack = read_pack(data)
    except PackError as error:
        fault = error
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        return Description(len(data), fault)
    _, version, count, length, header_crc, body_crc, *fields = HEADER.unpack_from(data)
    stated = {"version": version, "length": length}
    if not OLDEST <= version <= NEWEST:
        return Description(len(data), fault, stated=stated)
    behind = HEADER.size + ENTRY.size * count
    whole = 1 <= count <= MAX_SECTIONS and behind <= len(data)
    zeroed = data[:HEADER_CRC_AT] + bytes(4) + data[HEADER_CRC_AT + 4 : behind]
    checksums = {
        "header": Checksum(header_crc, zlib.crc32(zeroed) if whole else None),
        "body": Checksum(body_crc, zlib.crc32(memoryview(data)[behind:]) if whole else None),
    }
    if not checksums["header"].fits:
        return Description(len(data), fault, checksums)
    return Description(
        len(data),
        fault,
        checksums,
        stated | _stated(fields),
        tuple(Section(*entry) for entry in ENTRY.iter_unpack(data[HEADER.size : behind])),
        () if pack is None else tuple(pieces(read_header(data), len(data))),
        () if pack is None else _ranges(pack),
        pack,
    )


def _stated(fields: list[Any]) -> dict[str, Any]:
    """Fields of the header in words; one that has none is shown as the number it is."""
    features, layers, activation, *rest = fields
    widths, (kernel, _, twins, anchors, neighbors, flags, _) = rest[:3], rest[3:]
    return {
        "features": features,
        "hidden": widths[:layers],
        "activation": _word(ACTIVATIONS, activation),
        "kernel": _word([one.name for one in KERNEL_TYPES], kernel),
        "twins": twins,
        "anchors": anchors,
        "neighbors": neighbors,
        "trained_on_neighbors": bool(flags & TRAINED_ON_NEIGHBORS),
        "intervals": bool(flags & WITH_INTERVALS),
    }


def _word(words: Sequence[str], number: int) -> str:
    return words[number] if number < len(words) else f"unknown ({number})"


def _ranges(pack: Pack) -> tuple[Range, ...]:
    *names, target = _names(pack)
    scalings = zip(names, pack.x_offset, pack.x_gain, pack.anchors.T, strict=True)
    # What one integer step is: the gain brings a feature to integers, but the target from them.
    features = [_range(*one, 1 / float(one[2]), LARGEST) for one in scalings]
    y_gain = float(pack.y_gain)
    return (*features, _range(target, pack.y_offset, y_gain, pack.targets, y_gain, ACCUMULATOR - 1))


def _range(name: str, offset: Any, gain: Any, held: Array, unit: float, reach: int) -> Range:
    ends = (-reach, reach, int(held.min()), int(held.max()))
    return Range(name, float(offset), float(gain), *(float(offset) + unit * end for end in ends))


def _names(pack: Pack) -> list[str]:
    """Names of the features and of the target, where the metadata is as the exporter writes it."""
    listed, target = pack.metadata.get("features"), pack.metadata.get("target")
    entries = listed if isinstance(listed, list) and len(listed) == pack.features else []
    names: list[Any] = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    if len(names) != pack.features or not all(isinstance(name, str) for name in names):
        names = [f"x{number}" for number in range(1, pack.features + 1)]
    return [*names, target if isinstance(target, str) else "target"]
