"""A store on the memory of flash.c, driven by ctypes."""

import ctypes
import runpy
from pathlib import Path

import numpy as np

from twinedge.pack import write_pack
from twinedge.runtime.journal import read_journal
from twinedge.runtime.store import Points, record_size

Journal = runpy.run_path(str(Path(__file__).parent / "logs.py"))["Journal"]
POINTER, WORD, SHORT, STATUS = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint16, ctypes.c_int
SIGNATURES = {
    "twin_store_size": (WORD, POINTER, POINTER, SHORT),
    "twin_store_open": (STATUS, *(POINTER,) * 5, SHORT),
    "twin_store_step": (STATUS, POINTER, POINTER, WORD),
    "twin_learn": (STATUS, POINTER, POINTER, WORD, POINTER, ctypes.c_float, WORD),
    "twin_forget": (STATUS, POINTER, WORD, WORD),
    "twin_forget_before": (STATUS, POINTER, WORD),
    "twin_keep_latest": (STATUS, POINTER, SHORT),
    "twin_predict_adapted_raw": (STATUS, POINTER, POINTER, WORD, POINTER, POINTER),
    "twin_predict_adapted": (STATUS, POINTER, POINTER, WORD, POINTER, POINTER),
}
OF_TARGETS = {
    "twin_learn_targets": (STATUS, POINTER, POINTER, WORD, POINTER, POINTER, ctypes.c_uint, WORD),
    **dict.fromkeys(
        ("twin_predict_adapted_targets", "twin_predict_adapted_targets_raw"),
        (STATUS, POINTER, POINTER, WORD, POINTER, POINTER, ctypes.c_uint),
    ),
}


class Point(ctypes.Structure):
    """``twin_point``."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("number", "time")),
        ("target", ctypes.c_float),
        *((name, ctypes.c_int32) for name in ("error", "score")),
    )


class StoreInC(ctypes.Structure):
    """``twin_store``."""

    _fields_ = (
        ("journal", Journal),
        ("model", ctypes.c_void_p),
        ("points", ctypes.POINTER(Point)),
        ("pack", ctypes.c_uint32),
        *((name, ctypes.c_uint16) for name in ("most", "count")),
        ("status", ctypes.c_int8),
    )


class Device:
    """An open pack, a flash, and a store on it once opened."""

    def __init__(self, native, flash, library, pack, *, most=5, program_size=8, slots=None):
        self.native, self.library, self.most = native, library, most
        record = record_size(pack.features, len(pack.every_target))
        slot = -(-(8 + record) // program_size) * program_size
        size = slot * (most + 4 if slots is None else slots)
        self.memory, self.storage = flash.make(library, size, program_size)
        self.update(pack)

    def update(self, pack):
        """Replace the pack; the store must be opened again."""
        self.pack, self.data = pack, write_pack(pack)
        self.opened = self.native.Native(self.library, self.data)

    def open(self, most=None, *, shift=0):
        """Open the store, as after a reset, and read its points."""
        status = self.begin(most, shift=shift)
        while status == "more":
            status = self.step()
        return status

    def begin(self, most=None, *, shift=0):
        """Open the store, and read nothing."""
        self.most = self.most if most is None else most
        model, storage = ctypes.byref(self.opened.model), ctypes.byref(self.storage)
        size = self.library.twin_store_size(model, storage, self.most)
        self._room = np.full(size // 4 + self.native.CANARY, 0xA5A5A5A5, np.uint32)
        self._canary = self._room.view(np.uint8)[shift + size :]
        self.store = StoreInC()
        ctypes.memset(ctypes.byref(self.store), 0xA5, ctypes.sizeof(StoreInC))
        pack, room = self.opened.pack.ctypes.data, self._room.ctypes.data + shift
        return self._checked(
            self.library.twin_store_open(
                ctypes.byref(self.store), model, pack, storage, room, self.most
            )
        )

    def step(self):
        return self._call("twin_store_step")

    def learn(self, x, target, time=0):
        return self._call("twin_learn", np.ascontiguousarray(x, np.float32), target, time)

    def learn_targets(self, x, targets, time=0):
        x, targets = (np.ascontiguousarray(one, np.float32) for one in (x, targets))
        where = self.native.address(targets), len(targets), time
        return self._call("twin_learn_targets", x, *where)

    def forget(self, first, last):
        return self._checked(self.library.twin_forget(ctypes.byref(self.store), first, last))

    def keep_latest(self, count):
        return self._checked(self.library.twin_keep_latest(ctypes.byref(self.store), count))

    def forget_before(self, time):
        return self._checked(self.library.twin_forget_before(ctypes.byref(self.store), time))

    def try_everything(self):
        """Statuses of all calls that change the store, and of reading on."""
        calls = [self.step(), self.learn([0, 0], 0.0), self.forget(0, 3)]
        return {*calls, self.keep_latest(1), self.forget_before(9)}

    def predict_raw(self, query):
        """Status, and fields by name."""
        return self._predict("twin_predict_adapted_raw", query, np.int16, self.native.Raw())

    def predict(self, x):
        """Status, and fields by name."""
        return self._predict("twin_predict_adapted", x, np.float32, self.native.Prediction())

    def predict_targets(self, query, count):
        """Status, and fields by name of each target, for floats or quantised ones."""
        raw = query.dtype == np.int16
        name = "twin_predict_adapted_targets" + ("_raw" if raw else "")
        out = ((self.native.Raw if raw else self.native.Prediction) * count)()
        ctypes.memset(ctypes.byref(out), 0x5A, ctypes.sizeof(out))
        status = self._call(name, np.ascontiguousarray(query), ctypes.byref(out), count)
        return status, [{field: getattr(one, field) for field, _ in one._fields_} for one in out]

    def words(self):
        """Points of several targets in RAM, ``(k, 2 + 3 m)`` words."""
        words = 2 + 3 * len(self.pack.every_target)
        size = self.store.count * words
        if not size:
            return np.empty((0, words), np.uint32)
        at = ctypes.cast(self.store.points, ctypes.POINTER(ctypes.c_uint32))
        return np.ctypeslib.as_array(at, (size,)).reshape(-1, words).copy()

    def points(self):
        """Points in RAM: number, time, target, error and score of each."""
        return [
            tuple(getattr(point, name) for name, _ in Point._fields_)
            for point in self.store.points[: self.store.count]
        ]

    def numbers(self):
        return [point[0] for point in self.points()]

    def stored(self):
        """Points as Python reads them from both blocks."""
        return Points.of(read_journal(self.memory.content()), len(self.pack.every_target))

    def _call(self, name, query=None, *more):
        function, scratch = getattr(self.library, name), self.opened.scratch
        given = () if query is None else (self.native.address(query), *more)
        where = ctypes.byref(self.store), self.native.address(scratch), self.opened.size
        status = function(*where, *given)
        assert (scratch[self.opened.size :] == 0xA5).all()
        return self._checked(status)

    def _predict(self, name, query, dtype, out):
        ctypes.memset(ctypes.byref(out), 0x5A, ctypes.sizeof(out))
        status = self._call(name, np.ascontiguousarray(query, dtype), ctypes.byref(out))
        return status, {field: getattr(out, field) for field, _ in out._fields_}

    def _checked(self, status):
        """Name of a status, after a look at the memory."""
        assert (self._canary == 0xA5).all()
        assert self.memory.fault == 0, f"flash.c:{self.memory.fault}"
        return self.native.name_of(status)
