"""Finding the metadata in a TensorFlow Lite file, for which its runtimes have no call.

A flatbuffer is tables of offsets. A table begins with the distance back to its vtable, which lists
where in the table each field lies, 0 for one that is left out; strings, vectors and other tables
are given by the distance to them, and begin with their length.
"""

import struct

_IDENTIFIER = b"TFL3"
# Fields by their number in the schema.
_MODEL_BUFFERS, _MODEL_METADATA = 4, 6
_METADATA_NAME, _METADATA_BUFFER = 0, 1
_BUFFER_DATA = 0


def metadata_entry(data: bytes, name: bytes) -> bytes:
    """Return the content of the metadata entry of that name.

    Raises
    ------
    ValueError
        Where the bytes are not such a file, or have no such entry.
    """
    if data[4:8] != _IDENTIFIER:
        raise ValueError("it does not begin like one")
    try:
        model = _follow(data, 0)
        buffers = _tables(data, model, _MODEL_BUFFERS)
        for entry in _tables(data, model, _MODEL_METADATA):
            if _bytes(data, entry, _METADATA_NAME) == name:
                where = _field(data, entry, _METADATA_BUFFER)
                number = _number(data, where) if where else 0
                return _bytes(data, buffers[number], _BUFFER_DATA)
    except (struct.error, IndexError) as error:
        raise ValueError("it is damaged") from error
    raise ValueError("it has no metadata of ours")


def _number(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])


def _follow(data: bytes, place: int) -> int:
    return place + _number(data, place)


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table lies; 0 if it is left out."""
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    if vtable < 0:
        raise IndexError(vtable)
    length = struct.unpack_from("<H", data, vtable)[0]
    offset = 4 + 2 * number
    if offset + 2 > length:
        return 0
    within = int(struct.unpack_from("<H", data, vtable + offset)[0])
    return table + within if within else 0


def _bytes(data: bytes, table: int, number: int) -> bytes:
    """Read a string, or a vector of bytes."""
    field = _field(data, table, number)
    if not field:
        return b""
    start = _follow(data, field)
    end = start + 4 + _number(data, start)
    if end > len(data):
        raise IndexError(end)
    return data[start + 4 : end]


def _tables(data: bytes, table: int, number: int) -> list[int]:
    """Find the tables of a vector."""
    field = _field(data, table, number)
    if not field:
        return []
    start = _follow(data, field)
    count = _number(data, start)
    if start + 4 + 4 * count > len(data):
        raise IndexError(count)
    return [_follow(data, start + 4 + 4 * one) for one in range(count)]
