"""Releases of packs, right and wrong ones, and the banks that they go to, driven by ctypes."""

import ctypes
import hashlib
import hmac
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np

from twinedge.pack import write_pack
from twinedge.pack.contents import Release
from twinedge.pack.layout import NO_FILL
from twinedge.pack.release import (
    ANSWER,
    HMAC_SHA256,
    Identity,
    SelfTest,
    prepare_signature,
    put_signature,
)
from twinedge.pack.sections import pack_id
from twinedge.runtime import reference

Journal = runpy.run_path(str(Path(__file__).parent / "logs.py"))["Journal"]
KEY = bytes(range(1, 33))  # a secret one
SCHEMA = b"columns and such"
POINTER, WORD, BYTE, STATUS = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint8, ctypes.c_int
SIGNATURES = {
    "twin_signature": (STATUS, POINTER, WORD, POINTER),
    "twin_identity": (STATUS, POINTER, WORD, POINTER),
    "twin_self_test": (STATUS, POINTER, POINTER, POINTER, WORD),
    "twin_self_test_step": (STATUS, POINTER, POINTER, ctypes.c_uint16, POINTER, WORD),
    "twin_slots_size": (WORD, POINTER, POINTER),
    "twin_slots_open": (STATUS, *(POINTER,) * 4),
    "twin_slots_begin": (STATUS, POINTER),
    "twin_slots_write": (STATUS, POINTER, ctypes.c_char_p, WORD),
    "twin_slots_finish": (STATUS, POINTER),
    "twin_slots_try": (STATUS, POINTER, BYTE),
    "twin_slots_confirm": (STATUS, POINTER),
    "twin_slots_undo": (STATUS, POINTER),
    "twin_check_begin": (STATUS, *(POINTER,) * 6),
    "twin_check_step": (STATUS, POINTER, WORD, POINTER, WORD),
}


def self_test(pack, count=3, seed=0):
    """Draw queries, the last with a missing feature if the pack fills one in, and answer them."""
    rng = np.random.default_rng([71, seed])
    q = rng.integers(-32767, 32768, (count, pack.features)).astype(np.int16)
    seen = q.copy()
    if pack.domain is not None:
        filled = pack.domain.fill != NO_FILL
        q[-1, filled], seen[-1, filled] = NO_FILL, pack.domain.fill[filled]
    found = reference.evaluate_raw(pack, seen)
    answers = np.zeros((count, 1), ANSWER)
    answers["mean"][:, 0], answers["root"][:, 0] = found.raw_mean, found.raw_spread
    if found.signals is not None:
        scales = reference.raw_scale(found.signals, pack.intervals, found.estimates.shape[1])
        answers["scale"][:, 0] = scales
    return SelfTest(q, answers)


def released(pack, counter=1, *, schema=SCHEMA, test=True, identity=True, parent=bytes(16)):
    """Give a pack a self-test and an identity; ``test`` may be another self-test than its own."""
    own = pack_id(write_pack(pack))
    tested = self_test(pack) if test is True else test
    named = Identity(own, parent, counter, schema, hashlib.sha256(b"rows").digest()[:16])
    made = Release(own, tested and tested.content(), named.content() if identity else None)
    return write_pack(replace(pack, release=made), metadata=False)


def signed(data, key=KEY):
    """Sign it with HMAC-SHA-256."""
    made, message = prepare_signature(data, HMAC_SHA256, hashlib.sha256(key).digest()[:8])
    return put_signature(made, hmac.digest(key, message, "sha256"))


def release(pack, counter=1, key=KEY, **more):
    return signed(released(pack, counter, **more), key)


def failing(pack):
    """Return a self-test that the pack does not pass."""
    test = self_test(pack)
    test.answers["mean"][-1] += 1
    return test


class Identified(ctypes.Structure):
    """``twin_release``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("id", "parent", "schema", "table")),
        ("counter", ctypes.c_uint32),
    )


class Signed(ctypes.Structure):
    """``twin_signed``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("message", "signature", "key")),
        ("message_size", ctypes.c_uint32),
        *((name, ctypes.c_uint16) for name in ("size", "algorithm")),
    )


STATE = ("current", "trial", "lowest", "trials", "undone")


class SlotsInC(ctypes.Structure):
    """``twin_slots``."""

    _fields_ = (
        *((name, ctypes.c_uint8) for name in ("bank", "on_trial", "settled", "stage")),
        ("features", ctypes.c_uint16),
        *((name, ctypes.c_uint32) for name in STATE),
        ("counter", ctypes.c_uint32),
        ("schema", ctypes.c_uint32 * 4),
        ("written", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("banks", "unit")),
        ("journal", Journal),
    )


VERIFIER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Signed))


class Device:
    """Two banks and their journal, each on a flash; the first pack came with the program."""

    def __init__(self, native, flash, library, first, *, bank=4096, unit=64, **kind):
        self.native, self.library, self.flash, self.key = native, library, flash, KEY
        self.memory, self.banks = flash.make(library, bank, unit)
        self.log, self.storage = flash.make(library, 4 * 32, 4, **kind)
        self.size = bank
        ctypes.memmove(self.memory.cell, first, len(first))
        self.verify = VERIFIER(self._verify)

    def _verify(self, _, part):
        found = part.contents
        message = ctypes.string_at(found.message, found.message_size)
        wanted = hmac.digest(self.key, message, "sha256")
        return ctypes.string_at(found.signature, found.size) != wanted

    def start(self, verify=True):
        """Turn on: open the banks, and the pack that they name; return how that went."""
        opened = self.open()
        assert opened in ("ok", "storage")
        while True:
            status = self.check(self.slots.bank, verify=verify)
            if status == "ok" or not self.slots.on_trial:
                return status
            assert self.call("undo") == "ok"

    def open(self, shift=0):
        room = self.library.twin_slots_size(ctypes.byref(self.storage), ctypes.byref(self.banks))
        self._room = np.full(room // 4 + 8, 0xA5A5A5A5, np.uint32)
        self.slots = SlotsInC()
        ctypes.memset(ctypes.byref(self.slots), 0xA5, ctypes.sizeof(SlotsInC))
        where = ctypes.byref(self.slots), ctypes.byref(self.storage), ctypes.byref(self.banks)
        status = self.library.twin_slots_open(*where, self._room.ctypes.data + shift)
        return self._checked(status)

    def check(self, bank, *, step=256, verify=True, scratch=1 << 14):
        """Check the pack of a bank in steps."""
        self.model = self.native.Model()
        self._check = self.native.Run()  # as large as a twin_check, and filled with garbage
        at = ctypes.addressof(self.memory.cell) + bank * self.size
        given = (self.verify if verify else None), None
        where = ctypes.byref(self._check), ctypes.byref(self.slots), ctypes.byref(self.model)
        status = self.library.twin_check_begin(*where, at, *given)
        room = np.zeros(scratch, np.uint8)
        while status == self.native.MORE:
            self.steps = getattr(self, "steps", 0) + 1
            status = self.library.twin_check_step(where[0], step, room.ctypes.data, scratch)
        assert self.library.twin_check_step(where[0], step, None, 0) == status  # and stays so
        assert (status == 0) == bool(self.model.kernel)
        return self._checked(status)

    def call(self, name, *arguments):
        function = getattr(self.library, f"twin_slots_{name}")
        return self._checked(function(ctypes.byref(self.slots), *arguments))

    def send(self, data, piece=100):
        """Write an update, and finish it."""
        status = self.call("begin")
        for at in range(0, len(data), piece):
            if status == "ok":
                part = data[at : at + piece]
                status = self.call("write", part, len(part))
        return self.call("finish") if status == "ok" else status

    def update(self, data, piece=100, starts=3, **more):
        """Send an update, check it, and let it be tried."""
        status = self.send(data, piece)
        if status == "ok":
            status = self.check(1 - self.slots.bank, **more)
        return self.call("try", starts) if status == "ok" else status

    def state(self):
        return tuple(getattr(self.slots, name) for name in STATE)

    def bank(self, number):
        """Bytes of a bank."""
        start = number * self.size
        return bytes(self.memory.cell[start : start + self.size])

    def in_use(self):
        """The pack in use, without what follows it in its bank."""
        found = self.bank(self.slots.bank)
        return found[: int.from_bytes(found[8:12], "little")]

    def _checked(self, status):
        assert not self.memory.fault, f"flash.c:{self.memory.fault}"
        assert not self.log.fault, f"flash.c:{self.log.fault}"
        return self.native.name_of(status)
