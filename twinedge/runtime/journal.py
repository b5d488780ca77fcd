"""The bytes of a journal, records of one size in two blocks: section 11 of FORMAT.md.

A journal knows nothing of what its records mean. A file has the same bytes as the flash of a
microcontroller, so a dump of it is read alike.
"""

import struct
import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from twinedge.pack.contents import Array

HEADS = 3  # slots for copies of the head
NO_NUMBER = 2**32 - 1  # the number of no record
ERASED = b"\xff"
_HEAD = struct.Struct("<4I2HI2H")
_SIZES_AT = 16  # where a head states the bytes of slots and records
_BEFORE = 8  # bytes of a slot before the record: checksum and number
_LEAST_RECORD, _MOST_PROGRAM = 20, 256
_MOST_SLOTS = 65535


class Head(NamedTuple):
    """Head of a block: what all its records have in common, see FORMAT.md."""

    generation: int = 0
    owner: int = 0
    stamp: int = 0
    slot: int = _BEFORE
    size: int = 0
    following: int = 0  # number of the next record
    end: int = HEADS  # slot after the records that were written before the head
    moved: int = 0  # how many records these are

    def to_bytes(self) -> bytes:
        """Return the slot that holds it."""
        return _checked(_HEAD.pack(0, *self)[4:]).ljust(self.slot, ERASED)


def slot_of(size: int) -> int:
    """Bytes of a slot for records of this size, where any number of bytes can be programmed."""
    return _BEFORE + size


@dataclass(frozen=True)
class Content:
    """What the bytes of a journal hold.

    Parameters
    ----------
    head : Head
        Head of the block in use; its generation is 0 if the journal was never written.
    block : int
        Bytes of each block.
    following : int
        Number of the next record.
    numbers : array of shape (k,), uint32
        Ascending.
    records : array of shape (k, size), uint8
        Their bytes.
    damaged : int
        Slots that hold something else than a record.
    truncated : bool
        Whether the end is missing: it is not two blocks of the same size.
    in_use : {0, 1}
        The block that holds the records.
    copies : tuple of int
        Slots of that block that hold its head.
    """

    head: Head = field(default_factory=Head)
    block: int = 0
    following: int = 0
    numbers: Array = field(default_factory=lambda: np.empty(0, np.uint32))
    records: Array = field(default_factory=lambda: np.empty((0, 0), np.uint8))
    damaged: int = 0
    truncated: bool = False
    in_use: int = 0
    copies: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def slots(self) -> int:
        """Slots of a block, with those for the head."""
        return min(self.block // self.head.slot, _MOST_SLOTS)

    @property
    def room(self) -> int:
        """How many records fit."""
        return max(self.slots - HEADS, 0)


def read_journal(data: bytes) -> Content | None:
    """Read a journal from its bytes: a file, or a dump of two blocks.

    Returns
    -------
    Content or None
        All that is sound. None if the bytes are not a journal; one that was never written has bytes
        of one value only, or none, and is empty.
    """
    if not data.strip(data[:1]):
        return Content()
    half, truncated = len(data) // 2, len(data) % 2 > 0
    heads = _heads(data, 0) | (_heads(data, half) if half % 4 else {})
    if not heads:
        return None
    misplaced = [at for at, head in heads.items() if _position(at, head, half) is None]
    if misplaced:  # there were more bytes once: the second block starts where its heads are
        half, truncated = min(misplaced), True
        while (before := half - heads[half].slot) in heads and before:
            half = before
    elif max(heads) < half and any(one.end > half // one.slot for one in heads.values()):
        half, truncated = len(data), True  # not even the first block is whole
    copies: tuple[dict[int, Head], dict[int, Head]] = ({}, {})
    for at, head in heads.items():
        if (position := _position(at, head, half)) is not None:
            block, slot = position
            copies[block][slot] = head
    parts = data[:half], data[half:]
    blocks = {
        number: _read_block(parts[number], found) for number, found in enumerate(copies) if found
    }
    in_use = _in_use(blocks)
    found, numbers = blocks[in_use], blocks[in_use].numbers
    truncated |= half <= HEADS * found.head.slot  # no block has so few slots
    return Content(
        found.head,
        half,
        max(found.head.following, int(numbers[-1]) + 1 if len(numbers) else 0),
        numbers,
        found.records,
        found.damaged,
        truncated,
        in_use,
        found.copies,
    )


class _Block(NamedTuple):
    """What a block holds."""

    head: Head
    copies: tuple[int, ...]
    valid: bool
    numbers: Array
    records: Array
    damaged: int


def _heads(data: bytes, start: int) -> dict[int, Head]:
    """Find all whole heads, by their offsets: ``start``, and all that are multiples of 4 later."""
    sizes = np.frombuffer(data, "<u4", (len(data) - start) // 4, start)[_SIZES_AT // 4 :]
    rows = np.flatnonzero(sizes & 0x00030003 == 0)  # both are multiples of 4
    slot, size = (sizes[rows] & 65535).astype(np.int64), (sizes[rows] >> 16).astype(np.int64)
    spare = slot - _BEFORE - size
    likely = (size >= _LEAST_RECORD) & (spare >= 0) & (spare < _MOST_PROGRAM)
    found = {}
    for at in (start + 4 * rows[likely]).tolist():
        content = data[at : at + _HEAD.size]
        if len(content) == _HEAD.size and _checked(content[4:]) == content:
            head = Head(*_HEAD.unpack(content)[1:])
            if head.generation:
                found[at] = head
    return found


def _position(at: int, head: Head, half: int) -> tuple[int, int] | None:
    """Block and slot of a head at this offset; None if no head can be there."""
    block = int(at >= half)
    slot, rest = divmod(at - block * half, head.slot)
    return (block, slot) if not rest and slot < HEADS else None


def _read_block(data: bytes, heads: dict[int, Head]) -> _Block:
    """Read a block that has these whole heads, by their slots."""
    head = heads[min(heads)]
    copies = tuple(heads)
    slots = max(min(len(data) // head.slot, _MOST_SLOTS), HEADS)
    room = data[HEADS * head.slot : slots * head.slot]
    table = np.frombuffer(room, np.uint8, len(room) // head.slot * head.slot)
    table = table.reshape(-1, head.slot)
    sums, numbers = np.ascontiguousarray(table[:, :_BEFORE]).view("<u4").reshape(-1, 2).T
    whole = numbers != NO_NUMBER  # as that of erased slots often is
    sought = [room[at : at + head.slot] for at in (np.flatnonzero(whole) * head.slot).tolist()]
    whole[whole] = sums[whole] == _checksums(head, sought)
    rows = np.flatnonzero(whole)
    # Equal numbers count once, and one that is not larger than those before it does not count.
    before = np.maximum.accumulate(np.append(-1, numbers[rows].astype(np.int64)))
    rows = rows[numbers[rows] > before[:-1]]
    return _Block(
        head,
        copies,
        len(copies) > 1 or np.count_nonzero(rows + HEADS < head.end) == head.moved,
        numbers[rows].astype(np.uint32),
        table[rows, _BEFORE : _BEFORE + head.size],
        _damaged(table, rows),
    )


def _damaged(table: Array, rows: Array) -> int:
    """Count the slots without a record that counts, of those after the heads: see FORMAT.md."""
    end = int(rows.max(initial=-1)) + 1
    broken = end - len(rows)
    words = np.ascontiguousarray(table[:, 4 : _BEFORE + 4]).view("<u4").reshape(-1, 2)
    if len(words) and words[-1, 0] == words[-1, 1]:
        broken += int(np.count_nonzero(words[end:, 0] != words[-1, 0]))
    return broken


def _in_use(blocks: dict[int, _Block]) -> int:
    """Which block is in use: the later one of those that are valid, else of all."""
    able = [number for number, one in blocks.items() if one.valid] or list(blocks)
    if len(able) == 1:
        return able[0]
    return int(0 < (blocks[1].head.generation - blocks[0].head.generation) % 2**32 < 2**31)


def slots_of(head: Head, numbers: Array, records: Array) -> bytes:
    """Return the slots of records in the block of a head.

    Parameters
    ----------
    head : Head
        Its generation and its sizes count.
    numbers : array of shape (k,)
        Numbers of the records.
    records : array of shape (k, size), uint8
        Their bytes.
    """
    slots = np.full((len(numbers), head.slot), ERASED[0], np.uint8)
    slots[:, 4:_BEFORE] = numbers.astype("<u4")[:, None].view(np.uint8)
    slots[:, _BEFORE : _BEFORE + head.size] = records
    sums = _checksums(head, [one.tobytes() for one in slots]).astype("<u4")
    slots[:, :4] = sums[:, None].view(np.uint8)
    return slots.tobytes()


def _checksums(head: Head, slots: list[bytes]) -> Array:
    """Return the right checksums of slots, uint32 ``(k,)``."""
    seed, end = zlib.crc32(struct.pack("<I", head.generation)), _BEFORE + head.size
    return np.array([zlib.crc32(one[4:end], seed) for one in slots], np.uint32)


def _checked(content: bytes) -> bytes:
    """Return bytes with their checksum in front."""
    return struct.pack("<I", zlib.crc32(content)) + content
