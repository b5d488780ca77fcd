"""The C runtime as a shared library, driven by ctypes."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from twinedge.pack import Reason

FIRMWARE = Path(__file__).parents[2] / "firmware_ref"
SOURCES = sorted((FIRMWARE / "src").rglob("*.c"))
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]

MISTAKES = ("alignment", "unsupported", "scratch", "query")
STATUSES = ("ok", *(reason.value for reason in Reason), *MISTAKES)  # number n stands for status -n


def compile_c(output, *options, compiler="gcc", sources=SOURCES):
    """Compile the runtime, with warnings as errors."""
    command = [compiler, "-std=c99", *WARNINGS, f"-I{FIRMWARE / 'include'}", *options]
    done = subprocess.run(
        [*command, *map(str, sources), "-o", str(output)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return output


class Model(ctypes.Structure):
    """``twin_model`` of twin.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("kernel", "scaling", "twins", "curve")),
        *((name, ctypes.c_void_p) for name in ("counts", "anchors", "targets")),
        ("twin_size", ctypes.c_uint32),
        ("anchor_size", ctypes.c_uint16),
        ("features", ctypes.c_uint16),
        ("hidden", ctypes.c_uint16 * 3),
        *((name, ctypes.c_uint16) for name in ("twin_count", "anchor_count", "neighbours")),
        ("members", ctypes.c_uint16),
        *((name, ctypes.c_uint8) for name in ("layers", "silu", "wide", "flags")),
    )


class Prediction(ctypes.Structure):
    """``twin_prediction``."""

    _fields_ = (("mean", ctypes.c_float), ("spread", ctypes.c_float))


class Raw(ctypes.Structure):
    """``twin_raw``."""

    _fields_ = (("mean", ctypes.c_int32), ("root", ctypes.c_uint32), ("count", ctypes.c_uint16))


class Run(ctypes.Structure):
    """``twin_run``: nobody's business inside."""

    _fields_ = (("inside", ctypes.c_uint64 * 32),)


def address(array):
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def aligned(data, start=0, to=64):
    """Copy bytes to an address that is ``start`` beyond a multiple of ``to``."""
    room = np.zeros(len(data) + 2 * to, np.uint8)
    offset = -room.ctypes.data % to + start
    place = room[offset : offset + len(data)]
    place[:] = np.frombuffer(data, np.uint8)
    return place


class Native:
    """A pack, opened by the C runtime; what it says of queries is as in the reference."""

    def __init__(self, library, data, start=0):
        self.library = library
        self.pack = aligned(data, start)
        self.model = Model()
        status = library.twin_open(
            ctypes.byref(self.model), address(self.pack), ctypes.c_uint32(len(data))
        )
        self.status = STATUSES[-status]
        if status == 0:
            self.fit_scratch()

    def fit_scratch(self, spare=0):
        """Give as much scratch as the library asks for, of odd alignment, then a canary."""
        self.size = self.library.twin_scratch_size(ctypes.byref(self.model)) + spare
        self.scratch = aligned(bytes([0xA5]) * (self.size + 16), start=3)

    def predict(self, x):
        """Return float mean and spread, and members, of queries ``(n, f)``."""
        return self._each(np.float32, x, Prediction, self.library.twin_predict)

    def predict_raw(self, q):
        """Return integer mean, root and count, and members, of quantised queries ``(n, f)``."""
        return self._each(np.int16, q, Raw, self.library.twin_predict_raw)

    def _each(self, dtype, queries, kind, function):
        with np.errstate(over="ignore"):
            queries = np.ascontiguousarray(queries, dtype)
        members = np.zeros((len(queries), self.model.members), np.int32)
        found, out = [], kind()
        for query, estimates in zip(queries, members, strict=True):
            status = function(
                ctypes.byref(self.model),
                address(self.scratch),
                ctypes.c_uint32(self.size),
                address(query),
                ctypes.byref(out),
                address(estimates),
            )
            assert status == 0, STATUSES[-status]
            found.append([getattr(out, name) for name, _ in kind._fields_])
        assert (self.scratch[self.size :] == 0xA5).all()
        return (*np.array(found).T, members)
