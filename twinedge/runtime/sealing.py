"""A checksum at the end of a converted file.

Interpreters trust their files: some flipped bits they answer with a crash. So the last eight bytes
of a file are the CRC-32 of all before, in hexadecimal. They are put where the format has room for
more: behind a flatbuffer, or in the last field of a protocol buffer.
"""

import zlib
from pathlib import Path

from twinedge.errors import InputError

_DIGITS = 8


def seal(data: bytes) -> bytes:
    """Append the checksum."""
    return data + _checksum(data)


def read_sealed(path: Path) -> bytes:
    """Read a file whose last bytes are its checksum.

    Raises
    ------
    InputError
        Where they are not.
    """
    data = path.read_bytes()
    if data[-_DIGITS:] != _checksum(data[:-_DIGITS]):
        raise InputError(f"{path} is damaged, or not a file of twinedge (its checksum differs)")
    return data


def _checksum(data: bytes) -> bytes:
    return f"{zlib.crc32(data):0{_DIGITS}x}".encode()
