"""The program of examples/update on an emulated board, with the host's side of its serial line."""

import os
import select
import struct
import subprocess
import time
from typing import NamedTuple

import numpy as np

from twinedge.pack import read_pack
from twinedge.runtime import reference
from twinedge.runtime.self_test import identified
from twinedge.signing import sign
from twinedge_export.amalgamation import firmware_folder
from twinedge_export.boards.build import EVERYTHING, RUNNER

EXAMPLE = firmware_folder() / "examples" / "update"
FLAGS = (*EVERYTHING, "-DTWIN_STORE=1")
WAIT = 60  # seconds for a line


class Started(NamedTuple):
    """What the device says at each start."""

    status: int
    bank: int
    on_trial: int
    counter: int
    lowest: int
    trials: int
    undone: int
    points: int


def write_key(key, folder):
    """Write product_key.h, as ``twinedge keys show --c`` does."""
    from twinedge.cli.keys import _array

    (folder / "product_key.h").write_text(_array(key) + "\n")


def released(pack, counter, key):
    """Sign a release as ``twinedge sign --lean`` does, of a pack without metadata."""
    from twinedge.pack import write_pack

    return sign(write_pack(identified(pack, counter=counter), metadata=False), key, lean=True)


class Device:
    """An image that runs on an emulator, until it is closed."""

    def __init__(self, board, image):
        runner = image.path.with_name(RUNNER)
        self.process = subprocess.Popen(
            board.command(board.run, image=image.path, runner=runner),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )
        self.pending = b""
        self.restarts = 0
        self.last = None
        self.started()

    def line(self):
        """Wait for a line: a word and its numbers."""
        end = time.monotonic() + WAIT
        pipe = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            ready, _, _ = select.select([pipe], [], [], max(0, end - time.monotonic()))
            more = os.read(pipe, 4096) if ready else b""
            assert more, f"the device is silent after {self.pending!r}"
            self.pending += more
        line, _, self.pending = self.pending.partition(b"\n")
        word, *digits = line.decode().split()
        return word, [int(one, 16) for one in digits]

    def started(self):
        word, numbers = self.line()
        assert word == "started", (word, numbers)
        self.restarts += 1
        numbers[0] -= numbers[0] >> 31 << 32
        self.last = Started(*numbers)
        return self.last

    def frame(self, letter, payload=b""):
        """Send a frame; return the answer. None if the device started again instead."""
        self.process.stdin.write(letter.encode() + bytes([len(payload)]) + payload)
        word, numbers = self.line()
        if word != "started":
            return numbers
        self.restarts += 1
        numbers[0] -= numbers[0] >> 31 << 32
        self.last = Started(*numbers)
        return None

    def status(self, letter, payload=b""):
        """The same, for frames that are answered by a status, negative for errors."""
        found = self.frame(letter, payload)
        return None if found is None else found[0] - (found[0] >> 31 << 32)

    def cut(self, changes, quarters=0):
        """Let the power fail after this many changes of the memories."""
        assert self.frame("c", struct.pack("<II", changes, quarters)) == [0]

    def restart(self):
        """Start again, as after a reset."""
        assert self.frame("r") is None
        return self.last

    def send(self, data, piece=64, between=None):
        """Send an update in pieces, up to the end; return None if the device started again."""
        status = self.status("b")
        for at in range(0, len(data), piece):
            if status != 0:
                return status
            status = self.status("w", data[at : at + piece])
            if between is not None:
                between()
        return status

    def update(self, data, piece=64, between=None):
        """Send an update and let it be checked: its status, or None if the power failed.

        A device that accepts it starts again.
        """
        status = self.send(data, piece, between)
        if status == 0:
            status = self.status("f")
            if status == 0:
                self.started()
        return status

    def predict(self, x):
        """Mean, low and high of the pack as floats, and the mean with points."""
        numbers = self.frame("q", np.asarray(x, "<f4").tobytes())
        assert numbers is not None
        return np.array(numbers[:4], np.uint32).view(np.float32)

    def measure(self, x, y):
        """Measure; return how many the watch has seen, or None if the device started again."""
        found = self.frame("m", np.append(np.asarray(x, "<f4"), np.float32(y)).tobytes())
        return None if found is None else found[4]

    def close(self):
        try:
            self.process.stdin.write(b"x\0")
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


def means(data, x):
    """What a pack predicts, float32."""
    return reference.evaluate(read_pack(data), np.asarray(x, np.float32)).mean
