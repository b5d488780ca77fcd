"""What stands in front of a pack's sections: reading it, and checking that they lie as it says."""

import zlib
from typing import Any, NamedTuple

from twinedge.pack.errors import PackError, Reason
from twinedge.pack.layout import (
    ACTIVATIONS,
    ALIGNMENT,
    ENTRY,
    HEADER,
    HEADER_CRC_AT,
    INTERVALS,
    KERNEL_TYPES,
    LEVEL,
    MAGIC,
    MAX_ANCHORS,
    MAX_LEVELS,
    MAX_SECTIONS,
    NEWEST,
    OLDEST,
    REQUIRED,
    TRAINED_ON_NEIGHBORS,
    WITH_INTERVALS,
    Kind,
    Shape,
)


class Section(NamedTuple):
    """An entry of the section table."""

    kind: int
    flags: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset of the first byte behind it."""
        return self.offset + self.length


class Header(NamedTuple):
    """Header and section table."""

    shape: Shape
    activation: str
    neighbors: int
    trained_on_neighbors: bool
    sections: tuple[Section, ...]


def read_header(data: bytes) -> Header:
    """Check length, both CRCs, every field and every section; returns what they say.

    Raises
    ------
    PackError
        For faults 1 to 11 of FORMAT.md, section 10.
    """
    if len(data) < HEADER.size:
        raise PackError(Reason.TRUNCATED, f"{len(data)} bytes are too few for a pack")
    magic, version, count, length, header_crc, body_crc, *fields = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise PackError(Reason.MAGIC, "not a .twin pack: it does not begin with TWIN")
    if not OLDEST <= version <= NEWEST:
        raise PackError(
            Reason.VERSION, f"version {version}; this twinedge reads {OLDEST} to {NEWEST}"
        )
    if len(data) < length:
        raise PackError(Reason.TRUNCATED, f"{len(data)} bytes of {length}: the end is missing")
    if len(data) > length:
        raise PackError(Reason.LENGTH, f"{len(data)} bytes, but the header says {length}")
    if length % ALIGNMENT:
        raise PackError(Reason.LENGTH, f"{length} bytes are not a multiple of {ALIGNMENT}")
    behind = HEADER.size + ENTRY.size * count
    if not 1 <= count <= MAX_SECTIONS or behind > length:
        raise PackError(Reason.HEADER, f"{count} sections are not possible")
    table = data[HEADER.size : behind]
    zeroed = data[:HEADER_CRC_AT] + bytes(4) + data[HEADER_CRC_AT + 4 : HEADER.size]
    if zlib.crc32(zeroed + table) != header_crc:
        raise PackError(Reason.HEADER_CRC, "damaged: the checksum of the header does not fit")
    if zlib.crc32(memoryview(data)[behind:]) != body_crc:
        raise PackError(Reason.BODY_CRC, "damaged: the checksum of the content does not fit")
    header = _header(version, fields, table)
    _check_places(header.sections, behind, length)
    _check_kinds(header, data)
    _check_gaps(data, behind, header.sections)
    return header


def _header(version: int, fields: list[Any], table: bytes) -> Header:
    features, layers, activation, *rest = fields
    widths, (kernel, zero, twins, anchors, neighbors, flags, reserved) = rest[:3], rest[3:]
    known = TRAINED_ON_NEIGHBORS if version == 1 else TRAINED_ON_NEIGHBORS | WITH_INTERVALS
    near = bool(flags & TRAINED_ON_NEIGHBORS)
    sound = (
        layers <= len(widths)
        and not any(widths[layers:])
        and activation < len(ACTIVATIONS)
        and kernel < len(KERNEL_TYPES)
        and neighbors <= MAX_ANCHORS
        and not (zero or any(reserved) or flags & ~known)
        and (neighbors or not near)
    )
    if not sound:
        raise PackError(Reason.HEADER, "the header describes an impossible network")
    hidden, scaled = tuple(widths[:layers]), bool(flags & WITH_INTERVALS)
    shape = Shape(features, hidden, KERNEL_TYPES[kernel], twins, anchors, scaled)
    fault = shape.fault()
    if fault:
        raise PackError(Reason.HEADER, fault)
    sections = tuple(Section(*entry) for entry in ENTRY.iter_unpack(table))
    return Header(shape, ACTIVATIONS[activation], neighbors, near, sections)


def _check_places(sections: tuple[Section, ...], start: int, length: int) -> None:
    for number, one in enumerate(sections):
        if one.offset % ALIGNMENT or one.offset < start or one.end > length:
            raise PackError(Reason.SECTION, f"section {number} lies where none can be")
        start = one.end


def _check_kinds(header: Header, data: bytes) -> None:
    kinds = [one.kind for one in header.sections]
    if len(set(kinds)) < len(kinds):
        raise PackError(Reason.SECTION, "a section occurs twice")
    needed = {Kind.SCALING, Kind.TWINS, Kind.ANCHORS}
    if header.activation == "silu":
        needed.add(Kind.CURVE)
    elif Kind.CURVE in kinds:
        raise PackError(Reason.SECTION, "relu has no table, but there is a section for it")
    if header.shape.scaled:
        needed.add(Kind.INTERVALS)
    elif Kind.INTERVALS in kinds:
        raise PackError(Reason.SECTION, "there are intervals that the header does not tell of")
    missing = needed.difference(kinds)
    if missing:
        names = ", ".join(kind.name.lower() for kind in sorted(missing))
        raise PackError(Reason.SECTION, f"sections are missing: {names}")
    for one in header.sections:
        _check_kind(one, header, data)


def _check_kind(one: Section, header: Header, data: bytes) -> None:
    if one.flags & ~REQUIRED:
        raise PackError(Reason.SECTION, f"section kind {one.kind} has unknown flags")
    required = bool(one.flags & REQUIRED)
    kind = Kind.of(one.kind)
    if kind is None:
        if required:
            raise PackError(Reason.SECTION, f"section kind {one.kind} is required and not known")
        return
    if required != kind.required:
        raise PackError(Reason.SECTION, f"section kind {one.kind} has the wrong flag")
    length = header.shape.length(kind)
    if kind is Kind.INTERVALS:
        whole = one.length >= INTERVALS.size
        levels = INTERVALS.unpack_from(data, one.offset)[-1] if whole else 0
        if not 1 <= levels <= MAX_LEVELS:
            raise PackError(Reason.SECTION, f"{levels} levels of intervals are not possible")
        length = INTERVALS.size + LEVEL.size * levels
    if length is not None and one.length != length:
        raise PackError(
            Reason.SECTION, f"section kind {one.kind} has {one.length} bytes, not {length}"
        )


def _check_gaps(data: bytes, start: int, sections: tuple[Section, ...]) -> None:
    for one in sections:
        if not is_zero(data, start, one.offset):
            raise PackError(Reason.PADDING, f"bytes in front of section {one.kind} are not zero")
        start = one.end
    if not is_zero(data, start, len(data)):
        raise PackError(Reason.PADDING, "bytes behind the last section are not zero")


def is_zero(data: bytes, start: int, end: int) -> bool:
    """Whether all these bytes are zero, at the speed of memory."""
    return data.count(0, start, end) == end - start
