"""Describe a file that may be a pack: what it states, where each byte goes, if it is sound."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from twinedge.encoding.cells import numbered
from twinedge.pack.contents import ACCUMULATOR, LARGEST, Array, Pack, Target, target_names
from twinedge.pack.layout import (
    ACTIVATIONS,
    ENTRY,
    HEADER,
    HEADER_CRC_AT,
    INTERVALS,
    KERNEL_TYPES,
    LEVEL,
    MAGIC,
    MAP_HEAD,
    MAX_SECTIONS,
    MEANINGS,
    NEWEST,
    OLDEST,
    REQUIRED,
    TARGET_CURVE_HEAD,
    TRAINED_ON_NEIGHBORS,
    TWIN_HEAD,
    WITH_INTERVALS,
    Kind,
    PackError,
    Part,
    Shape,
)
from twinedge.pack.reader import Header, Section, read_header, read_pack


class Piece(NamedTuple):
    """A run of bytes with one meaning.

    Attributes
    ----------
    section : str
        The section it belongs to; "header", "table" or "padding" outside sections.
    part : str
        Which part of the section.
    offset, size : int
        Where it is, in bytes.
    padding : int
        How many of its bytes are zeros for alignment.
    use : str
        What it is for; the same word for the same part of every twin.
    holds : str
        Type and shape of its contents.
    """

    section: str
    part: str
    offset: int
    size: int
    padding: int
    use: str
    holds: str


def pieces(header: Header, length: int) -> Iterator[Piece]:
    """Divide a sound file into pieces, in order; every byte is in exactly one."""
    table = ENTRY.size * len(header.sections)
    yield Piece("header", "header", 0, HEADER.size, 0, "header", "shape, length, checksums")
    yield Piece("table", "table", HEADER.size, table, 0, "table", "offset and size of each section")
    end = HEADER.size + table
    for section in header.sections:
        yield from _gap(end, section.offset)
        end = section.offset
        for part, size, padding, use, holds in _parts(section, header):
            name = name_of(section.kind, header.version)
            yield Piece(name, part, end, size, padding, use, holds)
            end += size
    yield from _gap(end, length)


def uses(parts: Iterable[Piece]) -> dict[str, int]:
    """Bytes by use, padding last; they add up to the whole file."""
    totals: dict[str, int] = {}
    filling = 0
    for piece in parts:
        totals[piece.use] = totals.get(piece.use, 0) + piece.size - piece.padding
        filling += piece.padding
    totals.pop("padding", None)
    return {**totals, "padding": filling}


def name_of(kind: int, version: int = NEWEST) -> str:
    """Name of a section kind, in a file of this version."""
    known = Kind.of(kind, version)
    return f"kind {kind}" if known is None else known.name.lower().replace("_", " ")


def meaning_of(section: Section, version: int = NEWEST) -> str:
    """Say in a few words what a section is for, in a file of this version."""
    known = Kind.of(section.kind, version)
    if known is not None:
        return MEANINGS[known]
    return f"not known, {'but required' if section.flags & REQUIRED else 'skipped'}"


def _gap(start: int, end: int) -> Iterator[Piece]:
    if start < end:
        yield Piece("padding", "", start, end - start, end - start, "padding", "zeros")


_Sized = tuple[str, int, int, str, str]  # part, size, padding, use, holds


def _parts(section: Section, header: Header) -> Iterator[_Sized]:
    """List the parts of a section, in order."""
    kind, length, shape = Kind.of(section.kind, header.version), section.length, header.shape
    if kind is Kind.SCALING:
        features = shape.features
        yield "features", 8 * features, 0, "scaling", f"float32[{features}][2]: offset, gain"
        one, rows = ("target", "") if shape.targets == 1 else ("targets", f"[{shape.targets}]")
        yield one, 8 * shape.targets, 0, "scaling", f"float32{rows}[2]: offset, gain"
    elif kind is Kind.TWINS:
        for number in range(shape.twins):
            yield from _twin(f"twin {number}", shape)
    elif kind is Kind.ANCHORS:
        for part in shape.parts(kind):
            title = {"anchors": "features"}.get(part.name, part.name)
            yield _array(part, title, f"anchor {title}")
    elif kind is Kind.MAP:
        yield from _map(shape)
    elif kind is Kind.TARGET_CURVE:
        use, holds = name_of(kind), "first estimate, distance of entries, bins"
        for target, part in enumerate(shape.parts(kind)):
            of = _of_target(target, shape)
            if part.size:
                yield f"{of}head", TARGET_CURVE_HEAD.size, 1, use, holds
                yield _array(part, f"{of}values", use)
            else:
                size = TARGET_CURVE_HEAD.size
                yield f"{of}no curve", size, size, use, "zeros"
    elif kind is Kind.INTERVALS:
        levels = (length // shape.targets - INTERVALS.size) // LEVEL.size
        size, holds = LEVEL.size * levels, f"uint32[{levels}][2]: level, quantile"
        for target in range(shape.targets):
            of = _of_target(target, shape)
            yield (
                f"{of}scale",
                INTERVALS.size,
                0,
                "intervals",
                "uint32[8]: weights, constant, trust",
            )
            yield f"{of}levels", size, 0, "intervals", holds
    elif kind is Kind.TARGETS:
        yield "targets", length, length // 2, "targets", "uint16: how many there are"
    elif kind is not None and (parts := shape.parts(kind)):
        more = ": ends, fill value" if kind is Kind.DOMAIN else ""
        title, _, _, use, holds = _array(parts[0], parts[0].name, parts[0].name)
        yield title, length, 0, use, holds + more
    elif length:
        title = name_of(section.kind)
        yield title, length, 0, "other" if kind is None else title, "JSON" * (kind is Kind.METADATA)


def _of_target(target: int, shape: Shape) -> str:
    """Words in front of a part that each target has."""
    return f"target {target} " if shape.targets > 1 else ""


def _map(shape: Shape) -> Iterator[_Sized]:
    settings, *parts = shape.parts(Kind.MAP)
    features, outputs = shape.features, shape.inputs
    yield "sizes", MAP_HEAD.size, 0, "map", "uint16[2]: outputs, rows"
    yield "bins", features, 0, "map", f"uint8[{features}]"
    rest = settings.size - features
    yield "shifts", rest, rest - outputs, "map", f"uint8[{outputs}]"
    for part in parts:
        title, size, padding, use, holds = _array(part, part.name, "map")
        if part is parts[-1]:  # is followed by no padding of its own
            size, padding = size - padding, 0
        if size:
            yield title, size, padding, use, holds


def _twin(title: str, shape: Shape) -> Iterator[_Sized]:
    yield f"{title} head", TWIN_HEAD.size, 0, "twin heads", "shifts, fraction bits, multiplier"
    parts = shape.parts(Kind.TWINS)
    for part in parts:
        name, _, target = part.name.partition("@")
        of = f"{title} target {target}" if target else title
        if name == "head":
            yield f"{of} head", part.size, 0, "twin heads", "shifts, multipliers, bias"
            continue
        word = name.rstrip("0123456789")
        layer = "" if word == name else f" layer {int(name[len(word) :]) + 1}"
        plural = {
            "bias": "biases",
            "multiplier": "multipliers",
            "output": "output weights",
            "outputs": "weights of both outputs",
            "difficulty_bias": "bias of the difficulty",
        }
        use = plural.get(word, "kernels")
        yield _array(part, f"{of}{layer} {plural.get(word, f'kernel {word}')}", use)
    rest = shape.twin_size - TWIN_HEAD.size - sum(part.size for part in parts)
    if rest:
        yield f"{title} end", rest, rest, "padding", "zeros"


def _array(part: Part, title: str, use: str) -> _Sized:
    used = prod(part.used) * part.dtype.itemsize
    numbers = "".join(f"[{n}]" for n in part.used)
    return title, part.size, part.size - used, use, f"{part.dtype.name}{numbers}"


class Checksum(NamedTuple):
    """A CRC-32 as stored in the file, and as computed from its bytes (None if they are missing)."""

    stored: int
    computed: int | None

    @property
    def fits(self) -> bool:
        """Whether both are the same."""
        return self.stored == self.computed


class Range(NamedTuple):
    """How a feature or a target is quantised, and the range that covers.

    ``least`` and ``most`` bound what the integers can hold, ``anchors_least`` and ``anchors_most``
    what the anchors hold, all in the user's units. A pack with a map has no features of anchors.
    """

    name: str
    offset: float
    gain: float
    least: float
    most: float
    anchors_least: float | None
    anchors_most: float | None


@dataclass(frozen=True)
class Description:
    """Facts about a file that may be a pack.

    Parameters
    ----------
    length : int
        Size of the file in bytes.
    fault : PackError or None
        Why a reader refuses it.
    checksums : dict of str to Checksum
        "header" and "body"; empty if the file is too short, or not a pack of a known version.
    stated : dict
        What the header says, if its checksum is right: ``version``, ``length``, ``features``,
        ``hidden``, ``activation``, ``kernel``, ``twins``, ``anchors``, ``neighbors``,
        ``trained_on_neighbors``, ``intervals``. For a version that this twinedge cannot read, only
        the first two, unchecked.
    sections : tuple of Section
        The section table, if its checksum is right.
    pieces : tuple of Piece
        For a sound file, its pieces in order; every byte is in exactly one.
    ranges : tuple of Range
        For a sound file, the scaling of each feature, then of each target.
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
    """Examine a file that may be a pack.

    Parameters
    ----------
    data : bytes
        The whole file, or what is left of it.

    Returns
    -------
    Description
        Complete if the file is sound. Otherwise, why the reader refuses it, and only what a
        checksum confirms.
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
    """Fields of the header in words; an unknown value is shown as its number."""
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
    names = _names(pack)
    anchors = pack.anchors.T if pack.map is None else [None] * pack.features
    scalings = zip(names, pack.x_offset, pack.x_gain, anchors, strict=True)
    # Size of one integer step: the gain converts a feature to integers, but the target from them.
    features = [_range(*one, 1 / float(one[2]), (-LARGEST, LARGEST)) for one in scalings]
    targets = zip(
        target_names(pack.metadata, len(pack.every_target)), pack.every_target, strict=True
    )
    return (*features, *(_target_range(name, one) for name, one in targets))


def _target_range(name: str, target: Target) -> Range:
    y_gain, curve = float(target.y_gain), target.target_curve
    reach, held = (1 - ACCUMULATOR, ACCUMULATOR - 1), target.targets
    if curve is not None:
        entries = curve.first + (np.arange(curve.bins + 1) << curve.shift)
        reach = (int(curve.values[0]), int(curve.values[-1]))
        held = np.interp(held, entries, curve.values)
    return _range(name, target.y_offset, y_gain, held, y_gain, reach)


def _range(
    name: str, offset: Any, gain: Any, held: Array | None, unit: float, reach: tuple[int, int]
) -> Range:
    least, most = (float(offset) + unit * end for end in reach)
    found = Range(name, float(offset), float(gain), least, most, None, None)
    if held is None:
        return found
    low, high = (float(offset) + unit * float(end) for end in (held.min(), held.max()))
    return found._replace(anchors_least=low, anchors_most=high)


def _names(pack: Pack) -> list[str]:
    """Names of the features from the metadata, or defaults if it has none."""
    listed = pack.metadata.get("features")
    entries = listed if isinstance(listed, list) and len(listed) == pack.features else []
    names: list[Any] = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    if len(names) != pack.features or not all(isinstance(name, str) for name in names):
        names = list(numbered(pack.features))
    return names
