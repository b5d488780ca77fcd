"""The store of a device as a file: section 11 of FORMAT.md, the same bytes as in flash.

A file is two blocks in a row. Whenever a program is killed or the power fails, the file holds the
points from before a change or those from after it.
"""

import os
import struct
import zlib
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Pack
from twinedge.pack.layout import HEADER_CRC_AT, align
from twinedge.runtime.adapting import Points, check_point, most_points

try:
    import fcntl
except ImportError:  # Windows: two programs must not write to one store
    fcntl = None  # type: ignore[assignment]

_VERSION = 1
_HEADS = 2
_HEAD = struct.Struct("<4I")  # checksum, generation, whose points, slot after those moved
_ENTRY = struct.Struct("<IIihH")  # checksum, number, target, score, scale; features follow
_WHOSE_AT = 8
_UNITS = (1, 2, 4, 8, 16, 32)  # bytes that a storage programs at once
_ERASED = b"\xff" * 4  # start of a slot that was never written
_SPARE = 64  # slots of a new file beyond those for the most points
_WORD = 0xFFFFFFFF
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)


class _Head(NamedTuple):
    """Head of a block; ``end`` is 0 unless the entries before it have to be whole."""

    generation: int
    whose: int
    end: int


class Store:
    """Points measured on site, in a file beside the pack.

    Opening it only reads. The file is locked from the first change until the store is closed.

    Parameters
    ----------
    path : path
        The file; it is created when the first point is learnt.
    pack : Pack
        The pack that the points belong to, with intervals.
    data : bytes
        The whole file of that pack.

    Attributes
    ----------
    points : Points
        What it holds.
    lost : int
        Number of entries that cannot be read: damaged, or cut short.

    Raises
    ------
    InputError
        If the file is not a store, or belongs to another pack.
    """

    def __init__(self, path: str | Path, pack: Pack, data: bytes) -> None:
        if pack.intervals is None:
            raise InputError("the pack has no intervals and cannot learn without them")
        self.path = Path(path)
        self._features = pack.features
        self._room = most_points(pack)
        self._pack = struct.unpack_from("<I", data, HEADER_CRC_AT)[0]
        self._file: int | None = None
        self._next: int | None = None  # slot to write; None until points have been moved
        self.points = Points.none(pack.features)
        self._read()

    def __len__(self) -> int:
        return len(self.points)

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def close(self) -> None:
        """Close the file, so that other programs can write to it."""
        if self._file is not None:
            os.close(self._file)
        self._file = self._next = None

    def add(self, points: Points) -> None:
        """Add points; they are numbered in order, whatever numbers they have.

        Raises
        ------
        InputError
            If there is no room for them, or the file cannot be written; none of them is kept then.
        """
        if not len(points):
            return
        self.lock()
        if len(self.points) + len(points) > self._most:
            raise InputError(
                f"{self.path} has room for {self._most} points and holds {len(self.points)}: "
                f"forget some before learning {len(points)} more"
            )
        numbers = self.points.next_numbers(len(points))
        new = Points(numbers, *list(vars(points).values())[1:])
        both = self.points.joined(new)
        # Writing one entry is atomic; several at once need a move.
        if len(new) > 1:
            self._move(both)
        else:
            if self._next is None or self._next == self._slots:
                self._move(self.points)
            assert self._next is not None
            self._put(self._block, self._next, self._entries(new))
            self._next += 1
        self.points = both

    def forget(self, first: int, last: int) -> int:
        """Forget the points with these numbers, both ends included; returns how many."""
        self.lock()
        keep = (self.points.numbers < first) | (self.points.numbers > last)
        gone = int((~keep).sum())
        if gone or self.lost:
            left = self.points[keep]
            self._move(left)
            self.points = left
        return gone

    def lock(self) -> None:
        """Keep other programs from writing, and read what they wrote.

        Raises
        ------
        InputError
            If another program holds the lock, or the file cannot be written.
        """
        if self._file is not None:
            return
        self._open()
        try:
            self._read()
        except InputError:
            self.close()
            raise

    def _read(self) -> None:
        """Read what the file holds; if it is refused, nothing changes."""
        data = self._content()
        least = _ENTRY.size + 2 * align(self._features, 4)
        if not data.strip(b"\xff"):
            self._lay_out(least, (self._room + _SPARE) * least)
            return
        half = len(data) // 2
        blocks = data[:half], data[half:]
        heads = [_head(block, least) for block in blocks]
        later = _later(heads[0], heads[1])
        head = heads[later]
        if head is None:
            raise InputError(f"{self.path} is not a store of twinedge")
        sizes = {self._whose(size): size for size in _slot_sizes(least)}
        if head.whose not in sizes:
            raise InputError(f"{self.path} holds points of another pack; name another file")
        if len(data) % 2 or self._misplaced(data, sizes[head.whose]):
            raise InputError(f"{self.path} is cut short: a store is two blocks of the same size")
        self._lay_out(sizes[head.whose], half)
        for number in (later, 1 - later):
            head = heads[number]
            if head is not None and self._take(blocks[number], head):
                self._block = number
                return
        self._generation = 0

    def _content(self) -> bytes:
        """Read the file; empty if it does not exist."""
        try:
            if self.path.exists() and not self.path.is_file():
                raise InputError(f"{self.path} is not a file")
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error

    def _lay_out(self, slot: int, size: int) -> None:
        """Start without points, with slots and blocks of these sizes in bytes."""
        self.lost, self._block, self._generation = 0, 1, 0
        self.points = self.points[:0]
        self._slot, self._size, self._slots = slot, size, size // slot
        self._most = min(self._room, self._slots - _HEADS - 1)

    def _misplaced(self, data: bytes, slot: int) -> bool:
        """Whether our heads are in impossible places, because the file was longer once."""
        whose = struct.pack("<I", self._whose(slot))
        half, at = len(data) // 2, data.find(whose)
        while at >= 0:
            start = at - _WHOSE_AT
            if (
                start >= 0
                and start not in (0, slot, half, half + slot)
                and _whole_head(data, start)
            ):
                return True
            at = data.find(whose, at + 1)
        return False

    def _whose(self, slot: int) -> int:
        return int(self._pack + 65536 * _VERSION + slot) & _WORD

    def _take(self, block: bytes, head: _Head) -> bool:
        """Load the points of a block; False if the block is incomplete."""
        size = _ENTRY.size + 2 * align(self._features, 4)
        kept, lost = [], 0
        for number in range(_HEADS, self._slots):
            at = number * self._slot
            entry = block[at : at + size]
            checksum, *fields = _ENTRY.unpack_from(entry)
            features = np.frombuffer(entry, "<i2", self._features, _ENTRY.size)
            whole = checksum != _WORD and checksum == zlib.crc32(entry[4:])
            if not whole and number < head.end:
                return False
            if whole and check_point(features, fields[1]):
                kept.append((*fields, features))
            elif checksum != _WORD:
                lost += 1
        self.lost, self._generation = lost, head.generation
        if kept:
            numbers, targets, scores, scales, rows = zip(*kept, strict=True)
            self.points = Points(
                np.array(numbers, np.uint32),
                np.array(rows, np.int16),
                np.array(targets, np.int32),
                np.array(scores, np.int16),
                np.array(scales, np.uint16),
            )
        return True

    def _entries(self, points: Points) -> bytes:
        features = np.zeros((len(points), align(self._features, 4)), "<i2")
        features[:, : self._features] = points.features
        columns = (points.numbers, points.targets, points.scores, points.scales)
        rows = zip(*(column.tolist() for column in columns), features, strict=True)
        found = []
        for *fields, row in rows:
            entry = _ENTRY.pack(0, *fields)[4:] + row.tobytes()
            found.append((struct.pack("<I", zlib.crc32(entry)) + entry).ljust(self._slot, b"\xff"))
        return b"".join(found)

    def _head_of(self, generation: int, points: int) -> bytes:
        whose = self._whose(self._slot)
        head = _HEAD.pack(0, generation & _WORD, whose, _HEADS + points)[4:]
        return (struct.pack("<I", zlib.crc32(head)) + head).ljust(self._slot, b"\xff")

    def _move(self, points: Points) -> None:
        """Write points to the other block; the old ones stay valid until that is done."""
        self._next = None
        image = b"\xff" * (_HEADS * self._slot) + self._entries(points)
        image = image.ljust(self._size, b"\xff")
        other, generation = 1 - self._block, self._generation + 1
        head = self._head_of(generation, len(points))
        if not self._generation:
            other = 0
            self._create(head + head + image[len(2 * head) :] + b"\xff" * self._size)
        else:
            self._put(other, 0, image)
            for number in range(_HEADS):
                self._put(other, number, head)
        self._block, self._generation = other, generation
        self._next, self.lost = _HEADS + len(points), 0

    def _put(self, block: int, slot: int, data: bytes) -> None:
        assert self._file is not None
        try:
            _write(self._file, block * self._size + slot * self._slot, data)
        except OSError as error:
            self._next = None
            raise self._unwritten(error) from error

    def _create(self, data: bytes) -> None:
        """Replace the empty file by a whole new one, and keep it locked throughout.

        Not with ``twinedge.placing``: the new file is locked before it gets its name, and stays
        open.
        """
        beside = self.path.resolve().with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            file = os.open(beside, _FLAGS | os.O_TRUNC, 0o666)
            try:
                _claim(file)
                _write(file, 0, data)
                beside.replace(self.path.resolve())
                _settle(beside.parent)
            except OSError:
                os.close(file)
                raise
        except OSError as error:
            raise self._unwritten(error) from error
        finally:
            beside.unlink(missing_ok=True)
        self.close()
        self._file = file

    def _unwritten(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self.path}: {error.strerror}")

    def _open(self) -> None:
        while self._file is None:
            try:
                file = os.open(self.path, _FLAGS, 0o666)
            except OSError as error:
                raise self._unwritten(error) from error
            try:
                _claim(file)
                if os.path.samestat(os.fstat(file), self.path.stat()):
                    self._file = file
            except BlockingIOError:
                raise InputError(f"{self.path} is in use by another program") from None
            except FileNotFoundError:
                pass  # it was replaced or removed in between
            except OSError as error:  # for example, a file system without locks
                raise self._unwritten(error) from error
            finally:
                if self._file is None:
                    os.close(file)


def _claim(file: int) -> None:
    """Lock a file, or raise BlockingIOError."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write(file: int, at: int, data: bytes) -> None:
    """Write all of it, and flush it to disk."""
    os.lseek(file, at, os.SEEK_SET)
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)


def _settle(folder: Path) -> None:
    """Flush a folder to disk, so that a file keeps its new name after a power failure."""
    if os.name == "posix":
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _slot_sizes(least: int) -> list[int]:
    """Possible sizes of slots, by how much their storage programs at once."""
    return sorted({align(least, unit) for unit in _UNITS})


def _head(block: bytes, least: int) -> _Head | None:
    """Read the head of a block; None if neither copy is whole."""
    for at in _slot_sizes(least):
        if found := _whole_head(block, at):
            return found._replace(end=0)
    return _whole_head(block, 0)


def _whole_head(data: bytes, at: int) -> _Head | None:
    found = data[at : at + _HEAD.size]
    if len(found) < _HEAD.size or found[:4] == _ERASED:
        return None
    checksum, *fields = _HEAD.unpack(found)
    return _Head(*fields) if checksum == zlib.crc32(found[4:]) else None


def _later(one: _Head | None, other: _Head | None) -> int:
    """Which of two blocks is in use: 0 for ``one``, 1 for ``other``."""
    if one is None or other is None:
        return int(one is None)
    return int(0 < (other.generation - one.generation & _WORD) < 2**31)
