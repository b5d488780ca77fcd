"""A mosquitto of one's own, on the loopback interface."""

import socket
import subprocess
import time
from pathlib import Path

_PATIENCE = 20.0
# What docs/mqtt.md recommends: sessions outlive a restart, and no message is dropped.
_SETTINGS = (
    "persistence true",
    "max_queued_messages 0",
    "max_inflight_messages 1000",
    "set_tcp_nodelay true",
)


class Broker:
    """A mosquitto that keeps sessions over restarts.

    Parameters
    ----------
    folder : path
        Where it keeps them; it is made if needed.
    *settings : str
        Lines of its configuration; by default anyone may use it.

    Attributes
    ----------
    port : int
        Where it listens, on 127.0.0.1.
    """

    def __init__(self, folder: Path, *settings: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        folder.mkdir(exist_ok=True)
        self._file = folder / "mosquitto.conf"
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            f"listener {self.port} 127.0.0.1",
            "user root",  # which it is only if the caller is
            f"persistence_location {folder.resolve()}/",
            *_SETTINGS,
            *(settings or ("allow_anonymous true",)),
        ]
        self._file.write_text("\n".join([*lines, ""]))

    @property
    def url(self) -> str:
        """Its address."""
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> "Broker":
        """Start it, and wait until it listens."""
        words = ["mosquitto", "-c", str(self._file)]
        self._process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _PATIENCE
        while not self._listens():
            if time.monotonic() > end:
                raise TimeoutError("mosquitto does not start")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Stop it as a reboot would: it writes what it knows."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE)
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
