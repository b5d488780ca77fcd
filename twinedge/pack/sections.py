"""A pack as a header and sections: take a file apart, put it together, and tell what it computes.

All of this is about bytes: sections that this version does not know stay as they are.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from twinedge.pack.layout import ENTRY, HEADER, HEADER_CRC_AT, REQUIRED, Kind, align

ID_SIZE = 16  # bytes of an id, and of other hashes in an identity
_SHAPE_AT = 20  # of what the header says about networks; before it are sizes and checksums
_COUNT_AND_LENGTH = struct.Struct("<HI")
_HASHED = struct.Struct("<II")  # kind and length, in front of the content
_ALSO_COMPUTES = (Kind.DOMAIN, Kind.SCHEMA)  # although a reader may skip them


class Content(NamedTuple):
    """A section: its kind, its flags and its bytes, without padding."""

    kind: int
    flags: int
    data: bytes


def split(data: bytes) -> tuple[bytes, list[Content]]:
    """Take a sound pack apart: its header of 48 bytes, and its sections in order."""
    (count,) = struct.unpack_from("<H", data, 6)
    table = data[HEADER.size : HEADER.size + ENTRY.size * count]
    return bytes(data[: HEADER.size]), [
        Content(kind, flags, bytes(data[offset : offset + length]))
        for kind, flags, offset, length in ENTRY.iter_unpack(table)
    ]


def join(header: bytes, sections: Iterable[Content]) -> bytes:
    """Put a pack together; number of sections, length and checksums of the header are set."""
    sections = list(sections)
    start = HEADER.size + ENTRY.size * len(sections)
    table, body = b"", bytearray(align(start) - start)
    for kind, flags, data in sections:
        table += ENTRY.pack(kind, flags, start + len(body), len(data))
        body += data + bytes(align(len(data)) - len(data))
    made = bytearray(header)
    _COUNT_AND_LENGTH.pack_into(made, 6, len(sections), start + len(body))
    struct.pack_into("<II", made, HEADER_CRC_AT, 0, zlib.crc32(body))
    struct.pack_into("<I", made, HEADER_CRC_AT, zlib.crc32(made + table))
    return bytes(made + table + body)


def pack_id(data: bytes) -> bytes:
    """Return the id of a sound pack: 16 bytes that stand for what it computes.

    It is the first half of the SHA-256 of what the header says about the networks, followed by
    kind, length and bytes of each section that predictions depend on, by ascending kind. Metadata,
    ids of anchors, self-test, identity and signature do not change it.
    """
    header, sections = split(data)
    found = hashlib.sha256(header[_SHAPE_AT:])
    for one in sorted(sections):
        if one.flags & REQUIRED or one.kind in _ALSO_COMPUTES:
            found.update(_HASHED.pack(one.kind, len(one.data)) + one.data)
    return found.digest()[:ID_SIZE]
