"""Where every byte of a sound pack goes."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from twinedge.pack.header import Header, Section
from twinedge.pack.layout import (
    ENTRY,
    HEADER,
    INTERVALS,
    LEVEL,
    MEANINGS,
    REQUIRED,
    TWIN_HEAD,
    Kind,
    Part,
    Shape,
)


class Piece(NamedTuple):
    """A run of bytes with one meaning.

    Attributes
    ----------
    section : str
        The section it belongs to; "header", "table" or "padding" for what lies outside of them.
    part : str
        Which part of the section.
    offset, size : int
        Where it lies, in bytes.
    padding : int
        How many of its bytes are zeros that only fill up.
    use : str
        What it is for; the same word for the same part of every twin.
    holds : str
        Type and numbers in it.
    """

    section: str
    part: str
    offset: int
    size: int
    padding: int
    use: str
    holds: str


def pieces(header: Header, length: int) -> Iterator[Piece]:
    """Every byte of a sound file once, from the first to the last."""
    table = ENTRY.size * len(header.sections)
    yield Piece("header", "header", 0, HEADER.size, 0, "header", "shape, length, checksums")
    yield Piece("table", "table", HEADER.size, table, 0, "table", "offset and size of each section")
    end = HEADER.size + table
    for section in header.sections:
        yield from _gap(end, section.offset)
        end = section.offset
        for part, size, padding, use, holds in _parts(section, header):
            yield Piece(name_of(section.kind), part, end, size, padding, use, holds)
            end += size
    yield from _gap(end, length)


def uses(parts: Iterable[Piece]) -> dict[str, int]:
    """Bytes by what they are for, padding last; together they are all bytes."""
    totals: dict[str, int] = {}
    filling = 0
    for piece in parts:
        totals[piece.use] = totals.get(piece.use, 0) + piece.size - piece.padding
        filling += piece.padding
    totals.pop("padding", None)
    return {**totals, "padding": filling}


def name_of(kind: int) -> str:
    """Name of a section kind."""
    known = Kind.of(kind)
    return f"kind {kind}" if known is None else known.name.lower()


def meaning_of(section: Section) -> str:
    """Say in a few words what a section is for."""
    known = Kind.of(section.kind)
    if known is not None:
        return MEANINGS[known]
    return f"not known, {'but required' if section.flags & REQUIRED else 'skipped'}"


def _gap(start: int, end: int) -> Iterator[Piece]:
    if start < end:
        yield Piece("padding", "", start, end - start, end - start, "padding", "zeros")


_Sized = tuple[str, int, int, str, str]  # part, size, padding, use, holds


def _parts(section: Section, header: Header) -> Iterator[_Sized]:
    """Everything in a section, one behind the other."""
    kind, length, shape = Kind.of(section.kind), section.length, header.shape
    if kind is Kind.SCALING:
        features = shape.features
        yield "features", 8 * features, 0, "scaling", f"float32[{features}][2]: offset, gain"
        yield "target", 8, 0, "scaling", "float32[2]: offset, gain"
    elif kind is Kind.TWINS:
        for number in range(shape.twins):
            yield from _twin(f"twin {number}", shape)
    elif kind is Kind.ANCHORS:
        for part in shape.anchor_parts():
            title = {"anchors": "features"}.get(part.name, part.name)
            yield _array(part, title, f"anchor {title}")
    elif kind is Kind.CURVE:
        yield "curve", length, 0, "curve", f"int16[{length // 2}]"
    elif kind is Kind.IDS:
        yield "ids", length, 0, "ids", f"uint32[{length // 4}]"
    elif kind is Kind.INTERVALS:
        levels = (length - INTERVALS.size) // LEVEL.size
        yield "scale", INTERVALS.size, 0, "intervals", "uint32[8]: weights, constant, trust"
        yield "levels", LEVEL.size * levels, 0, "intervals", f"uint32[{levels}][2]: level, quantile"
    elif kind is Kind.DOMAIN:
        yield "domain", length, 0, "domain", f"int16[{length // 6}][3]: ends, fill value"
    elif length:
        own = kind is Kind.METADATA
        title, use = name_of(section.kind), "metadata" if own else "other"
        yield title, length, 0, use, "JSON" * own


def _twin(title: str, shape: Shape) -> Iterator[_Sized]:
    yield f"{title} head", TWIN_HEAD.size, 0, "twin heads", "shifts, fraction bits, multiplier"
    parts = shape.twin_parts()
    for part in parts:
        word = part.name.rstrip("0123456789")
        layer = "" if word == part.name else f" layer {int(part.name[len(word) :]) + 1}"
        plural = {
            "bias": "biases",
            "multiplier": "multipliers",
            "output": "output weights",
            "outputs": "weights of both outputs",
            "difficulty_bias": "bias of the difficulty",
        }
        use = plural.get(word, "kernels")
        yield _array(part, f"{title}{layer} {plural.get(word, f'kernel {word}')}", use)
    rest = shape.twin_size - TWIN_HEAD.size - sum(part.size for part in parts)
    if rest:
        yield f"{title} end", rest, rest, "padding", "zeros"


def _array(part: Part, title: str, use: str) -> _Sized:
    used = prod(part.used) * part.dtype.itemsize
    numbers = "".join(f"[{n}]" for n in part.used)
    return title, part.size, part.size - used, use, f"{part.dtype.name}{numbers}"
