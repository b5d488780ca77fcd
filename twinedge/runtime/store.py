"""The store of a device as a file: section 11 of FORMAT.md, the same bytes as in flash.

A file is two blocks one behind the other. Whatever moment a program is ended at, or the power cut,
the file holds the points of before a change or those of after it.
"""

import os
import struct
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Pack
from twinedge.pack.layout import HEADER_CRC_AT, align
from twinedge.runtime.adapting import Points, check_point, most_points

try:
    import fcntl
except ImportError:  # not on Windows; there, two programs must not write to one store
    fcntl = None  # type: ignore[assignment]

_VERSION = 1
_HEADS = 2
_HEAD = struct.Struct("<III")  # checksum, generation, whose points
_ENTRY = struct.Struct("<IIihH")  # checksum, number, target, score, scale; features follow
_UNITS = (1, 2, 4, 8, 16, 32)  # what storages program at once
_ERASED = 0xFF
_SPARE = 64  # slots of a new file beyond those for as many points as there can be
_WORD = 0xFFFFFFFF
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Store:
    """Points measured on site, in a file beside the pack.

    Opening it only reads. Before the first change the file is locked, until the store is closed.

    Parameters
    ----------
    path : path
        The file; it is made when the first point is learnt.
    pack : Pack
        Whose points these are, with intervals.
    data : bytes
        The whole file of that pack.

    Attributes
    ----------
    points : Points
        What it holds.
    lost : int
        Entries that cannot be read: damaged, or cut short.

    Raises
    ------
    InputError
        Where the file is no store, or that of another pack.
    """

    def __init__(self, path: str | Path, pack: Pack, data: bytes) -> None:
        if pack.intervals is None:
            raise InputError("the pack has no intervals, and learns nothing without them")
        self.path = Path(path)
        self._features = pack.features
        self._most = most_points(pack)
        self._pack = struct.unpack_from("<I", data, HEADER_CRC_AT)[0]
        self._file: int | None = None
        self._next: int | None = None  # slot to write; None until points were moved
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
        """Let other programs write to the file."""
        if self._file is not None:
            os.close(self._file)
        self._file = self._next = None

    def add(self, points: Points) -> None:
        """Add points; they are numbered as they come, whatever numbers they have.

        Raises
        ------
        InputError
            Where there is no room for them, or the file cannot be written; then it has none of
            them.
        """
        self._lock()
        if len(self.points) + len(points) > self._most:
            raise InputError(
                f"{self.path} has room for {self._most} points and holds {len(self.points)}: "
                f"forget some before learning {len(points)} more"
            )
        numbers = self.points.following + np.arange(len(points))
        new = Points(numbers.astype(np.uint32), *list(vars(points).values())[1:])
        both = self.points.joined(new)
        if self._next is None or self._next + len(new) > self._slots:
            self._move(both)
        elif len(new):
            self._put(self._block, self._next, self._entries(new))
            self._next += len(new)
        self.points = both

    def forget(self, first: int, last: int) -> int:
        """Forget the points with these numbers, both ends among them; returns how many."""
        self._lock()
        keep = (self.points.numbers < first) | (self.points.numbers > last)
        gone = int((~keep).sum())
        if gone or self.lost:
            left = self.points[keep]
            self._move(left)
            self.points = left
        return gone

    def _read(self) -> None:
        """Find what the file holds."""
        self.lost, self._block, self._generation = 0, 1, 0
        self.points = self.points[:0]
        self._slot = _ENTRY.size + 2 * align(self._features, 4)
        self._slots = self._most + _SPARE
        self._size = self._slots * self._slot
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error
        if not data.strip(b"\xff"):
            return
        half = len(data) // 2
        blocks = data[:half], data[half:]
        heads = [self._head(block) for block in blocks]
        found = [number for number, head in enumerate(heads) if head is not None]
        if not found:
            raise InputError(f"{self.path} is not a store of twinedge")
        self._block = found[0]
        if len(found) > 1 and _later(heads[1], heads[0]):
            self._block = 1
        head = heads[self._block]
        assert head is not None
        self._generation, whose = head
        sizes = {self._whose(size): size for size in _slot_sizes(self._slot)}
        if whose not in sizes:
            raise InputError(f"{self.path} holds points of another pack; name another file")
        self._slot = sizes[whose]
        self._size, self._slots = half, half // self._slot
        self._most = min(self._most, self._slots - _HEADS - 1)
        self._take(blocks[self._block])

    def _head(self, block: bytes) -> tuple[int, int] | None:
        """Find generation and owner of a block; None where neither head is whole."""
        for at in (0, *_slot_sizes(self._slot)):
            found = block[at : at + _HEAD.size]
            if len(found) == _HEAD.size:
                checksum, generation, whose = _HEAD.unpack(found)
                if checksum == zlib.crc32(found[4:]):
                    return generation, whose
        return None

    def _whose(self, slot: int) -> int:
        return int(self._pack + 65536 * _VERSION + slot) & _WORD

    def _take(self, block: bytes) -> None:
        """Find the points in a block."""
        words = np.frombuffer(block, np.uint8)[: self._slots * self._slot]
        slots = words.reshape(self._slots, self._slot)[_HEADS:]
        end = _ENTRY.size + 2 * align(self._features, 4)
        kept = []
        for slot in slots[(slots[:, :4] != _ERASED).any(axis=1)]:
            entry = slot[:end].tobytes()
            checksum, *fields = _ENTRY.unpack_from(entry)
            features = np.frombuffer(entry, "<i2", self._features, _ENTRY.size)
            if checksum == zlib.crc32(entry[4:]) and check_point(features, fields[1]):
                kept.append((*fields, features))
            else:
                self.lost += 1
        if kept:
            numbers, targets, scores, scales, rows = zip(*kept, strict=True)
            self.points = Points(
                np.array(numbers, np.uint32),
                np.array(rows, np.int16),
                np.array(targets, np.int32),
                np.array(scores, np.int16),
                np.array(scales, np.uint16),
            )

    def _entries(self, points: Points) -> bytes:
        features = np.zeros((len(points), align(self._features, 4)), "<i2")
        features[:, : self._features] = points.features
        columns = (points.numbers, points.targets, points.scores, points.scales)
        rows = zip(*(column.tolist() for column in columns), features, strict=True)
        found = []
        for *fields, row in rows:
            entry = _ENTRY.pack(0, *fields)[4:] + row.tobytes()
            found.append((struct.pack("<I", zlib.crc32(entry)) + entry).ljust(self._slot, b"\0"))
        return b"".join(found)

    def _head_of(self, generation: int) -> bytes:
        head = struct.pack("<II", generation & _WORD, self._whose(self._slot))
        return (struct.pack("<I", zlib.crc32(head)) + head).ljust(self._slot, b"\0")

    def _move(self, points: Points) -> None:
        """Write points to the other block; the file is as it was until that is done."""
        self._next = None
        image = b"\xff" * (_HEADS * self._slot) + self._entries(points)
        image = image.ljust(self._size, b"\xff")
        other, generation = 1 - self._block, self._generation + 1
        if not self._generation:
            head = self._head_of(generation)
            self._create(head + head + image[len(2 * head) :] + b"\xff" * self._size)
        else:
            assert self._file is not None
            second = self._block * self._size + self._slot
            if not _read_at(self._file, second, self._slot).strip(b"\xff"):
                self._put(self._block, 1, self._head_of(self._generation))
            self._put(other, 0, image)
            for number in range(_HEADS):
                self._put(other, number, self._head_of(generation))
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
        """Put a whole new file in place of the empty one, and keep it locked all the while."""
        beside = self.path.resolve().with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            file = os.open(beside, _FLAGS | os.O_TRUNC, 0o666)
            try:
                _claim(file)
                _write(file, 0, data)
                beside.replace(self.path.resolve())
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

    def _lock(self) -> None:
        """Keep other programs from writing, and see what they wrote."""
        if self._file is None:
            self._open()
            self._read()

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
            finally:
                if self._file is None:
                    os.close(file)


def _claim(file: int) -> None:
    """Lock a file, or raise BlockingIOError."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write(file: int, at: int, data: bytes) -> None:
    """Write all of it, for good."""
    os.lseek(file, at, os.SEEK_SET)
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)


def _read_at(file: int, at: int, size: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, size)


def _slot_sizes(least: int) -> list[int]:
    """Sizes that slots may have, by what their storage programs at once."""
    return sorted({align(least, unit) for unit in _UNITS})


def _later(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    assert one is not None
    assert other is not None
    return 0 < (one[0] - other[0] & _WORD) < 2**31
