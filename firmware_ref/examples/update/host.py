"""The workstation's side of the serial line of device.c, and the device on an emulated board.

    device = Device(*build(pack, key, "board"))
    mean, low, high, adapted = device.predict(x)
    device.measure(x, y)
    device.update(signed)

For a device of your own, let ``Device.frame`` write to its serial line and ``Device.line`` read.
"""

import os
import select
import struct
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.pack import read_pack
from twinedge.signing import HMAC_SHA256, Key, c_array
from twinedge_export.boards import Builder, Image, Port, port_named
from twinedge_export.boards.build import EVERYTHING, RUNNER

HERE = Path(__file__).resolve().parent
FLAGS = (*EVERYTHING, "-DTWIN_STORE=1")
WAIT = 60  # seconds for a line
SCRATCH = 8192  # bytes that a prediction of the device may take


class Started(NamedTuple):
    """What the device sends at each start."""

    status: int
    bank: int
    on_trial: int
    counter: int
    lowest: int
    trials: int
    undone: int
    points: int


def build(
    pack: bytes, key: Key, folder: str | Path, *, board: str = "mps2-an386", enough: int = 100
) -> tuple[Port, Image]:
    """Compile device.c for an emulated board.

    Parameters
    ----------
    pack : bytes
        The signed pack that it is delivered with.
    key : Key
        What it verifies with, of HMAC: a key of Ed25519 needs the files of a library, too.
    folder : path
        For the image; it is made if needed.
    board : str
        As ``twinedge firmware boards`` lists them.
    enough : int
        How many measurements confirm a new pack.
    """
    if key.algorithm != HMAC_SHA256:
        raise ValueError("this builds devices that verify with HMAC; see README.md for Ed25519")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_key(key, folder)
    room = -(-len(pack) // 4096) * 4096 + 4096  # for a pack that is somewhat larger
    record = 4 * read_pack(pack).features + 32
    flags = (
        *FLAGS,
        *("-DDEVICE_HMAC", f"-DDEVICE_ENOUGH={enough}", f"-DDEVICE_SCRATCH={SCRATCH}"),
        *(f"-DBANK={room}", f"-DSITE={48 * record}", f"-I{folder.resolve()}"),
    )
    port = port_named(board)
    port.check_tools()
    builder = Builder(port, folder, flags, program="update", sources=(HERE / "device.c",))
    return port, builder.image(pack, np.zeros(1, np.float32))


def write_key(key: Key, folder: Path) -> None:
    """Write product_key.h, as ``twinedge keys show --c`` does."""
    (folder / "product_key.h").write_text(c_array(key) + "\n")


class Device:
    """An image that runs on an emulator, until it is closed.

    Attributes
    ----------
    last : Started
        What the line of its last start holds.
    restarts : int
        How often it started.
    """

    def __init__(self, board: Port, image: Image) -> None:
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
        self.started()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def line(self) -> tuple[str, list[int]]:
        """Wait for a line: a word and its numbers."""
        end = time.monotonic() + WAIT
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            ready, _, _ = select.select([pipe], [], [], max(0, end - time.monotonic()))
            more = os.read(pipe, 4096) if ready else b""
            if not more:
                raise ConnectionError(f"the device is silent after {self.pending!r}")
            self.pending += more
        line, _, self.pending = self.pending.partition(b"\n")
        word, *digits = line.decode().split()
        return word, [int(one, 16) for one in digits]

    def started(self) -> Started:
        """Wait for the line of a start."""
        word, numbers = self.line()
        if word != "started":
            raise ConnectionError(f"the device sends {word!r}, {numbers}")
        return self._note(numbers)

    def _note(self, numbers: list[int]) -> Started:
        self.restarts += 1
        self.last = Started(_signed(numbers[0]), *numbers[1:])
        return self.last

    def frame(self, letter: str, payload: bytes = b"") -> list[int] | None:
        """Send a frame; return the answer. None if the device started again instead."""
        assert self.process.stdin is not None
        self.process.stdin.write(letter.encode() + bytes([len(payload)]) + payload)
        word, numbers = self.line()
        if word != "started":
            return numbers
        self._note(numbers)
        return None

    def status(self, letter: str, payload: bytes = b"") -> int | None:
        """Send a frame that is answered by a status, negative for errors."""
        found = self.frame(letter, payload)
        return None if found is None else _signed(found[0])

    def send(self, data: bytes, piece: int = 64, between: Any = None) -> int | None:
        """Send an update in pieces, up to the end; return None if the device started again.

        ``between`` is called after each piece.
        """
        status = self.status("b")
        for at in range(0, len(data), piece):
            if status != 0:
                return status
            status = self.status("w", data[at : at + piece])
            if between is not None:
                between()
        return status

    def update(self, data: bytes, piece: int = 64, between: Any = None) -> int | None:
        """Send an update and let it be checked: its status, or None if the power failed.

        A device that accepts it starts again.
        """
        status = self.send(data, piece, between)
        if status == 0:
            status = self.status("f")
            if status == 0:
                self.started()
        return status

    def predict(self, x: Any) -> np.ndarray:
        """Mean, low and high of the pack as float32, and the mean with what was learnt."""
        return self._floats(self.frame("q", np.asarray(x, "<f4").tobytes()))

    def _floats(self, numbers: list[int] | None) -> np.ndarray:
        if numbers is None or len(numbers) != 5:
            raise ConnectionError(f"the device does not predict: {numbers}")
        return np.array(numbers[:4], np.uint32).view(np.float32)

    def measure(self, x: Any, y: float) -> int | None:
        """Measure; return how many the watch has seen, or None if the device started again."""
        found = self.frame("m", np.append(np.asarray(x, "<f4"), np.float32(y)).tobytes())
        return None if found is None else found[4]

    def restart(self) -> Started:
        """Start again, as after a reset; emulated boards can."""
        if self.frame("r") is not None:
            raise ConnectionError("the device did not start again")
        return self.last

    def cut(self, changes: int, quarters: int = 0) -> None:
        """Let the power fail after this many changes of the memories; emulated boards can."""
        if self.frame("c", struct.pack("<II", changes, quarters)) != [0]:
            raise ConnectionError("the power fails already")

    def close(self) -> None:
        """Stop the emulator."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(b"x\0")
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)
