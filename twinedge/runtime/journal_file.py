"""A journal as a file, which programs share and power cuts do not harm.

Whenever a program is killed or the power fails, the file holds the records from before a change or
those from after it.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.journal import (
    ERASED,
    HEADS,
    NO_NUMBER,
    Content,
    Head,
    read_journal,
    slot_of,
    slots_of,
)

try:
    import fcntl
except ImportError:  # Windows: two programs must not write to one journal
    fcntl = None  # type: ignore[assignment]

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)


class Journal:
    """Records of one size, in a file.

    Opening it only reads. The file is locked from the first change until the journal is closed.

    Parameters
    ----------
    path : path
        The file. Where there is none, ``lay_out`` and a first change create it.

    Attributes
    ----------
    content : Content
        What it holds.

    Raises
    ------
    InputError
        If the file is not a journal, or cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: int | None = None
        self._next: int | None = None  # slot to write; None until records have been moved
        self._stamp: int | None = None  # of updated records; None if that of the head is right
        self.content = read_journal_file(self.path)

    def __len__(self) -> int:
        return len(self.content)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def close(self) -> None:
        """Close the file, so that other programs can write to it."""
        if self._file is not None:
            os.close(self._file)
        self._file = self._next = None

    def lay_out(self, owner: int, size: int, room: int, stamp: int = 0) -> None:
        """Say what a journal that was never written is for; the first change creates the file.

        Parameters
        ----------
        owner, stamp : int
            What the records are about.
        size : int
            Bytes of a record: a multiple of 4, 20 or more.
        room : int
            How many records are to fit.
        """
        head = Head(owner=owner, stamp=stamp, slot=slot_of(size), size=size)
        records = np.empty((0, size), np.uint8)
        self.content = Content(head, (HEADS + room) * head.slot, records=records)

    def update(self, records: Array, stamp: int) -> None:
        """Replace the bytes of all records in memory; the next change writes them.

        Parameters
        ----------
        records : array of shape (k, size), uint8
            As many as there are.
        stamp : int
            What the owner likes to know of them.
        """
        self.content = replace(self.content, records=records)
        self._stamp, self._next = stamp, None

    def add(self, records: Array) -> Array:
        """Add records, all of them or none; the first ones create the file.

        Parameters
        ----------
        records : array of shape (m, size), uint8
            What to add.

        Returns
        -------
        array of shape (m,), uint32
            Their numbers.

        Raises
        ------
        InputError
            If there is no room for them, or the file cannot be written; none of them is kept then.
        """
        self.lock()
        old, count = self.content, len(records)
        if len(old) + count > old.room:
            raise InputError(
                f"{self.path} has room for {old.room} points and holds {len(old)}: "
                f"forget some before learning {count} more"
            )
        if old.following + count > NO_NUMBER:
            raise InputError(f"{self.path} has used all its numbers: begin another store")
        # Writing one slot is atomic; several at once need a move.
        alone = count == 1
        if alone and self._next in (None, old.slots):
            self._move(old)
        added = (old.following + np.arange(count)).astype(np.uint32)
        new = replace(
            self.content,
            numbers=np.append(old.numbers, added),
            records=np.concatenate([old.records, records]),
            following=old.following + count,
        )
        if alone:
            assert self._next is not None
            self._put(new.in_use, self._next, slots_of(new.head, added, records))
            self._next += 1
            self.content = new
        elif count:
            self._move(new)
        return added

    def keep(self, which: Array) -> None:
        """Forget all records but these, bool ``(k,)``, and clear away what is damaged.

        Raises
        ------
        InputError
            If the file cannot be written; nothing is forgotten then.
        """
        self.lock()
        old = self.content
        self._move(replace(old, numbers=old.numbers[which], records=old.records[which]))

    def lock(self) -> None:
        """Keep other programs from writing, and read what they wrote.

        Raises
        ------
        InputError
            If another program holds the lock, the file cannot be written, or its end is missing.
        """
        if self._file is not None:
            return
        self._open()
        try:
            found = read_journal_file(self.path)
            if found.truncated:
                raise InputError(
                    f"{self.path} is cut short: a store is two blocks of the same size"
                )
        except InputError:
            self.close()
            raise
        if found.head.generation or self.content.head.generation:
            self.content, self._stamp = found, None

    def _move(self, new: Content) -> None:
        """Write records to the other block; the old ones stay valid until that is done."""
        old, self._next = self.content, None
        head = new.head._replace(
            generation=(old.head.generation + 1) % 2**32 or 1,
            stamp=new.head.stamp if self._stamp is None else self._stamp,
            following=new.following,
            end=HEADS + len(new),
            moved=len(new),
        )
        moved = ERASED * (HEADS * head.slot) + slots_of(head, new.numbers, new.records)
        moved, copy = moved.ljust(new.block, ERASED), head.to_bytes()
        block = 0
        if not old.head.generation:
            self._create(copy + copy + moved[len(2 * copy) :] + ERASED * new.block)
        else:
            if len(old.copies) < 2:
                self._complete_block()
            block = 1 - old.in_use
            self._put(block, 0, moved)
            self._put(block, 0, copy)
            self._put(block, 1, copy)
        self.content = replace(new, head=head, damaged=0, in_use=block, copies=(0, 1))
        self._next, self._stamp = head.end, None

    def _complete_block(self) -> None:
        """Write again what was written before the head, then the head, then a second head.

        A power cut left the block like this, or a killed program: then some of its bytes may be in
        the memory of the operating system only.
        """
        now, slot = self.content, self.content.head.slot
        held = slice(HEADS * slot, min(now.head.end * slot, now.block))
        try:
            data = self.path.read_bytes()[now.in_use * now.block :][held]
        except OSError as error:
            raise self._unwritten(error) from error
        self._put(now.in_use, HEADS, data)
        for slot in (now.copies[0], int(now.copies[0] == 0)):
            self._put(now.in_use, slot, now.head.to_bytes())

    def _put(self, block: int, slot: int, data: bytes) -> None:
        assert self._file is not None
        now = self.content
        try:
            _write(self._file, block * now.block + slot * now.head.slot, data)
        except OSError as error:
            self._next = None
            raise self._unwritten(error) from error

    def _create(self, data: bytes) -> None:
        """Replace the empty file by a whole new one, and keep it locked throughout.

        Not with ``atomic_files``: the new file is locked before it gets its name, and stays
        open.
        """
        beside = self.path.resolve().with_name(f".{self.path.name}.{os.getpid()}.partial")
        try:
            file = os.open(beside, _FLAGS | os.O_TRUNC, 0o666)
            try:
                _claim(file)
                _write(file, 0, data)
                beside.replace(self.path.resolve())
                _flush_folder(beside.parent)
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


def read_journal_file(path: Path) -> Content:
    """Read a journal; a file that is not there is one that was never written.

    Raises
    ------
    InputError
        If the file is not a journal, or cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file")
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    found = read_journal(data)
    if found is None:
        raise InputError(f"{path} is not a store of twinedge")
    return found


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


def _flush_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a file keeps its new name after a power failure."""
    if os.name == "posix":
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
