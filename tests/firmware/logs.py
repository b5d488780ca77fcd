"""A journal on the memory of flash.c, and how to build both."""

import ctypes

import numpy as np

from twinedge.runtime.journal import read_journal

OWNER, SIZE = 0xC0DE, 24


class Journal(ctypes.Structure):
    """``twin_journal``."""

    _fields_ = (
        ("status", ctypes.c_int8),
        *((name, ctypes.c_uint8) for name in ("heads", "moved", "failed")),
        *((name, ctypes.c_uint16) for name in ("size", "slot", "slots", "count")),
        *((name, ctypes.c_uint16) for name in ("damaged", "at", "end", "next")),
        *((name, ctypes.c_void_p) for name in ("storage", "buffer", "record")),
        *((name, ctypes.c_uint32) for name in ("owner", "stamp", "block", "generation")),
        *((name, ctypes.c_uint32) for name in ("number", "least")),
    )


KEEP = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
POINTER, WORD, SHORT, STATUS = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint16, ctypes.c_int
SIGNATURES = {
    "twin_journal_slot": (WORD, POINTER, SHORT),
    "twin_journal_open": (STATUS, POINTER, POINTER, WORD, SHORT, POINTER),
    "twin_journal_next": (STATUS, POINTER, POINTER),
    "twin_journal_append": (STATUS, POINTER),
    "twin_journal_move": (STATUS, POINTER, POINTER, POINTER, WORD),
    "twin_journal_clear": (STATUS, POINTER, WORD),
    "journal_cuts": (WORD, POINTER, POINTER, SHORT, SHORT, WORD, WORD, POINTER),
    "journal_wear": (WORD, POINTER, POINTER, SHORT, POINTER),
}


def load(native, flash, folder, code=None):
    """Load a journal, this code or that of the runtime, and nothing else of the runtime.

    A table makes checksums quick, which are most of the work.
    """
    source = native.FIRMWARE / "src"
    code = (source / "twin_journal.c").read_text() if code is None else code
    words = (source / "twin_words.h").read_text()
    begin, end = words.index("static inline uint32_t twini_crc_bits"), words.rindex("#endif")
    (folder / "twin_journal.c").write_text(code)
    (folder / "twin_words.h").write_text(words[:begin] + '#include "quick_crc.h"\n' + words[end:])
    options = ("-O2", "-fPIC", "-shared", f"-I{flash.HERE}", *native.EXTRA_OPTIONS)
    file = folder / "twin_journal.c"
    if native.EXTRA_OPTIONS:  # which count what is reached of the file itself
        file = source / "twin_journal.c"
    sources = [file, *flash.SOURCES, flash.HERE / "journal_cuts.c"]
    path = native.compile_c(folder / "journal.so", *options, sources=sources)
    return native.load(path, flash.SIGNATURES, SIGNATURES)


class Log:
    """A journal on a flash."""

    def __init__(self, native, flash, library, *, slots=9, program_size=8, size=SIZE, **kind):
        self.native, self.library, self.size = native, library, size
        self.slot = -(-(8 + size) // program_size) * program_size
        self.memory, self.storage = flash.make(library, slots * self.slot, program_size, **kind)

    def open(self, owner=OWNER, size=None, shift=0):
        """Open it, as after a reset."""
        self.size = self.size if size is None else size
        self._room = np.full(self.slot // 4 + 8, 0xA5A5A5A5, np.uint32)
        self.journal = Journal()
        ctypes.memset(ctypes.byref(self.journal), 0xA5, ctypes.sizeof(Journal))
        buffer = ctypes.c_void_p(self._room.ctypes.data + shift)
        where = ctypes.byref(self.journal), ctypes.byref(self.storage)
        return self._status(self.library.twin_journal_open(*where, owner, self.size, buffer))

    def append(self, record, *, move=True):
        """Append a record, after moving the others if that is needed and wanted."""
        while True:
            ctypes.memmove(self.journal.record, bytes(record), self.size)
            answer = self._call("append")
            if answer != "more" or not move:
                return answer
            answer = self.move()
            if answer != "ok":
                return answer

    def move(self, keep=None, stamp=None):
        """Move the records for which ``keep(number, record)`` is true, or its new bytes."""

        def decide(_, number, place):
            kept = keep(number, ctypes.string_at(place, self.size))
            if isinstance(kept, bytes):
                ctypes.memmove(place, kept, self.size)
            return bool(kept)

        stamp = self.journal.stamp if stamp is None else stamp
        callback = KEEP(decide) if keep else None
        return self._call("move", ctypes.cast(callback, ctypes.c_void_p), None, stamp)

    def clear(self, stamp=0):
        return self._call("clear", stamp)

    def next(self):
        number = ctypes.c_uint32()
        answer = self._call("next", ctypes.byref(number))
        return answer, number.value, ctypes.string_at(self.journal.record, self.size)

    def records(self):
        """All of them, with their numbers."""
        found = []
        while (step := self.next())[0] == "more":
            found.append(step[1:])
        assert step[0] == "ok"
        assert len(found) == self.journal.count
        return found

    def content(self):
        return read_journal(self.memory.content())

    def _call(self, name, *arguments):
        function = getattr(self.library, f"twin_journal_{name}")
        return self._status(function(ctypes.byref(self.journal), *arguments))

    def _status(self, status):
        assert self.memory.fault == 0, f"flash.c:{self.memory.fault}"
        assert set(self._room[self.slot // 4 + 3 :]) == {0xA5A5A5A5}
        return self.native.name_of(status)
