"""What a configuration needs to know of a .twin pack, by FORMAT.md; with Python's own modules.

The device checks the rest, every weight of it, before it uses the pack.
"""

import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = struct.Struct("<4sHHIIIH")
_ENTRY = struct.Struct("<HHII")
_TABLE, _FLAGS_AT, _HEADER_CRC_AT, _ALIGNMENT = 48, 38, 12, 16
_VERSIONS = range(1, 4)
_REQUIRED, _WITH_INTERVALS = 1, 2  # flags: of a section, of the header
_METADATA, _INTERVALS, _DOMAIN, _SCHEMA, _TARGETS = 6, 7, 8, 9, 12
_READ = (1, 2, 3, 4, 7, 8, 9, 10, 11, 13)  # sections that predictions depend on, and the self-test
_LEVELS_AT = 28  # in the intervals


class PackError(ValueError):
    """Why a pack cannot be used, in one line."""


@dataclass(frozen=True)
class Column:
    """A column of the table that the model was trained on.

    Its features begin at ``start``; ``levels`` are names of a category with the feature of each, or
    None for a number.
    """

    name: str
    start: int
    width: int = 1
    levels: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True)
class Pack:
    """A pack, and what it says of itself.

    ``content`` is the pack without what only people and tools read, such as its metadata.
    """

    content: bytes = field(repr=False)
    features: int
    columns: tuple[Column, ...] | None  # None if it does not name them
    target: str | None
    coverages: tuple[int, ...]  # in thousandths; none if there are no intervals
    domain: bool  # whether it knows the ranges of its features
    schema: int  # what packs have in common if their columns and target mean the same


def read_pack(path: Path) -> Pack:
    """Read a pack.

    Raises
    ------
    PackError
        If it is damaged, or needs what the component does not have.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PackError(f"{path} cannot be read: {error.strerror}") from error
    if content[:4] != b"TWIN":
        raise PackError(f"{path} is not a .twin pack")
    if len(content) < _TABLE:
        raise PackError(f"{path} is damaged: its end is missing")
    _, version, count, length, header_crc, body_crc, features = _HEADER.unpack_from(content)
    if version not in _VERSIONS:
        raise PackError(
            f"{path} has version {version} of the format; this component reads "
            f"{_VERSIONS.start} to {_VERSIONS.stop - 1}: take that of a newer twinedge"
        )
    if len(content) != length:
        raise PackError(f"{path} is damaged: it has {len(content)} bytes instead of {length}")
    head = bytearray(content[: _TABLE + _ENTRY.size * count])
    body = len(head)
    head[_HEADER_CRC_AT : _HEADER_CRC_AT + 4] = bytes(4)
    if zlib.crc32(head) != header_crc or zlib.crc32(content[body:]) != body_crc:
        raise PackError(f"{path} is damaged: its checksum is wrong")
    sections, needed = {}, []
    for kind, flags, offset, size in _ENTRY.iter_unpack(content[_TABLE:body]):
        sections[kind] = content[offset : offset + size]
        if kind > _TARGETS and flags & _REQUIRED:
            raise PackError(f"{path} has a section that this component does not know: {kind}")
        if kind in _READ:
            needed.append((kind, flags, sections[kind]))
    if _TARGETS in sections:
        raise PackError(f"{path} predicts several targets; this component takes packs for one")
    coverages = ()
    if content[_FLAGS_AT] & _WITH_INTERVALS:
        levels = sections[_INTERVALS]
        (number,) = struct.unpack_from("<I", levels, _LEVELS_AT)
        coverages = tuple(
            struct.unpack_from("<I", levels, _LEVELS_AT + 4 + 8 * k)[0] for k in range(number)
        )
    columns, target = _named(sections.get(_METADATA, b""), features, path)
    return Pack(
        _written(content, needed),
        features,
        columns,
        target,
        coverages,
        _DOMAIN in sections,
        int.from_bytes(sections[_SCHEMA], "little") if _SCHEMA in sections else header_crc,
    )


def _written(content, sections):
    """Write a pack with only these sections."""
    table, body = b"", b""
    start = -(-(_TABLE + _ENTRY.size * len(sections)) // _ALIGNMENT) * _ALIGNMENT
    for kind, flags, section in sections:
        table += _ENTRY.pack(kind, flags, start + len(body), len(section))
        body += section + bytes(-len(section) % _ALIGNMENT)
    body = bytes(start - _TABLE - len(table)) + body
    head = bytearray(content[:_TABLE]) + table
    struct.pack_into("<H", head, 6, len(sections))
    struct.pack_into("<III", head, 8, len(head) + len(body), 0, zlib.crc32(body))
    struct.pack_into("<I", head, _HEADER_CRC_AT, zlib.crc32(head))
    return bytes(head) + body


def _named(metadata, features, path):
    """Columns and target, as far as the metadata name them."""
    try:
        known = json.loads(metadata)
        names = [str(one["name"]) for one in known["features"]]
        columns = tuple(_columns(known.get("columns") or [{"name": one} for one in names]))
        target = known.get("target")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, None
    for one in known.get("columns") or ():
        for kind, what in (("calendar", "times"), ("derived", "inputs derived from past samples")):
            if kind in one:
                raise PackError(
                    f"{path} needs {what} ({one['name']}), which this component does not compute"
                )
    if sum(one.width for one in columns) != features:
        return None, None
    return columns, target if isinstance(target, str) else None


def _columns(described):
    start = 0
    for one in described:
        levels, others = one.get("levels"), one.get("others", ())
        if levels is None:
            column = Column(str(one["name"]), start)
        else:
            inputs = [(str(level), k) for k, level in enumerate(levels)]
            inputs += [(str(level), len(levels)) for level in others]
            width = len(levels) + bool(others)
            column = Column(str(one["name"]), start, width, tuple(inputs))
        yield column
        start += column.width
