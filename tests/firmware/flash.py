"""The memory of flash.c, for tests of what is stored there."""

import ctypes
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = [HERE / "flash.c"]
NEVER = 2**31 - 1
BLOCK = 16384  # most bytes of a block in flash.c
PROGRAM_SIZES = tuple(2**i for i in range(9))
# Kinds of memory: what erased bytes are, and the key of those that are encrypted.
KINDS = {"erased to 255": (255, 0), "erased to 0": (0, 0), "encrypted": (255, 0xC0FFEE)}
POINTER, WORD, SHORT = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint16
SIGNATURES = {
    "flash_reset": (None, POINTER, POINTER, WORD, SHORT, WORD, WORD, WORD),
    "flash_wear": (None, POINTER, WORD, ctypes.c_uint8, ctypes.c_uint),
}


class Flash(ctypes.Structure):
    """``flash`` of flash.h."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("block_size", "program_size")),
        ("random", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("erased", "key")),
        *((name, ctypes.c_int32) for name in ("cut", "changes", "error", "calls", "burst")),
        *((name, ctypes.c_int32) for name in ("fail", "skip", "lie", "stuck", "unread")),
        *((name, ctypes.c_uint32) for name in ("once", "dead", "fault")),
        *((name, ctypes.c_uint32 * 2) for name in ("hit", "erasures")),
        ("is_worn", ctypes.c_uint32),
        *((name, ctypes.c_uint8 * (2 * BLOCK)) for name in ("cell", "weak", "worn", "level")),
        *((name, ctypes.c_uint8 * (2 * BLOCK)) for name in ("done", "meant", "pad")),
    )

    def content(self):
        """Bytes of both blocks, as they are read."""
        used = 2 * self.block_size
        pairs = zip(self.cell[:used], self.pad[:used], strict=True)
        return bytes(cell ^ pad for cell, pad in pairs)


class Storage(ctypes.Structure):
    """``twin_storage``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("read", "program", "erase", "context")),
        ("block_size", ctypes.c_uint32),
        ("program_size", ctypes.c_uint16),
    )


def make(library, block_size, program_size, kind="erased to 255", seed=1):
    """Return a new memory and its storage."""
    memory, storage = Flash(), Storage()
    where = ctypes.byref(memory), ctypes.byref(storage)
    library.flash_reset(*where, block_size, program_size, *KINDS[kind], seed)
    return memory, storage
