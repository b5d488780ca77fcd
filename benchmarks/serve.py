"""How soon does ``twinedge serve`` answer 2,000 queries a second through a local mosquitto?

One program publishes queries of a hundred sites at a steady rate and receives the predictions, both
at QoS 1. A delay is from sending a query to receiving its prediction: it includes the broker twice.
Every prediction is compared with that of one call, and counted: none may be lost. Broker, service
and this program share the machine. The model is an exported 128-128 twin with 6 features and 32
anchors.

    python -m benchmarks.serve
    python -m benchmarks.serve --seconds 2 --results /tmp/try.json     # a quick try
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.mosquitto import Broker
from benchmarks.harness.record import command_line, publish, results_of
from benchmarks.harness.trained import EXPORT, load_or_export
from twinedge.runtime.device import Device
from twinedge.runtime.loading import load

SITES = 100
TICK = 0.01  # seconds between two bursts of queries
BLOCK = 1 << 16
PATIENCE = 30.0
_CONNECT, _PUBLISH, _PUBACK, _SUBSCRIBE = 0x10, 0x32, 0x40, 0x82  # first bytes of packets, QoS 1


def packet(kind: int, *parts: bytes) -> bytes:
    """Return a packet of MQTT 3.1.1; a client of its own costs less than any library's."""
    body = b"".join(parts)
    length, rest = b"", len(body)
    while True:
        rest, digit = rest >> 7, rest & 127
        length += bytes([digit | 128 if rest else digit])
        if not rest:
            return bytes([kind]) + length + body


def text(word: str) -> bytes:
    """Return a string as packets have it."""
    return struct.pack(">H", len(word.encode())) + word.encode()


def packets(buffer: bytearray) -> list[tuple[int, bytes]]:
    """Take all whole packets from a buffer: first byte and body."""
    found, start = [], 0
    while True:
        length = shift = 0
        at = start + 1
        while at < len(buffer):
            length |= (buffer[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if not buffer[at - 1] & 128:
                break
        else:
            break
        if at + length > len(buffer):
            break
        found.append((buffer[start], bytes(buffer[at : at + length])))
        start = at + length
    del buffer[:start]
    return found


def connected(port: int, name: str) -> socket.socket:
    """Connect to the broker."""
    stream = socket.create_connection(("127.0.0.1", port))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.sendall(packet(_CONNECT, text("MQTT"), bytes([4, 2, 0, 0]), text(name)))
    assert stream.recv(4)[3] == 0
    return stream


class Receiver(threading.Thread):
    """Receives predictions, acknowledges them, and keeps when each came, by its number."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__(daemon=True)
        self.arrived = np.zeros(count)
        self.answers: list[float | None] = [None] * count
        self.repeated = 0
        self.missing = count
        self._stream = connected(port, "receiver")
        filter_ = text("bench/+/prediction") + b"\x01"
        self._stream.sendall(packet(_SUBSCRIBE, b"\0\1", filter_))
        assert self._stream.recv(5)[4] == 1

    def run(self) -> None:
        """Receive until nothing is missing."""
        buffer = bytearray()
        while self.missing:
            buffer += self._stream.recv(BLOCK)
            now, replies = time.perf_counter(), b""
            for kind, body in packets(buffer):
                if kind & 0xF0 != 0x30:
                    continue
                end = 2 + int.from_bytes(body[:2], "big")
                replies += packet(_PUBACK, body[end : end + 2])
                answer = json.loads(body[end + 2 :])
                if self.answers[answer["n"]] is None:
                    self.arrived[answer["n"]] = now
                    self.answers[answer["n"]] = answer["prediction"]
                    self.missing -= 1
                else:
                    self.repeated += 1
            self._stream.sendall(replies)


def queries(device: Device, count: int) -> tuple[np.ndarray, list[bytes]]:
    """Return queries, and the packets that publish them."""
    edges = np.transpose([(one["min"], one["max"]) for one in device.info["features"]])
    x = np.random.default_rng(0).uniform(*edges, (count, edges.shape[1])).round(4).clip(*edges)
    found = []
    for n, row in enumerate(x.tolist()):
        content = json.dumps(dict(zip(device.feature_names, row, strict=True)) | {"n": n}).encode()
        number = struct.pack(">H", n % 65535 + 1)
        found.append(packet(_PUBLISH, text(f"bench/{n % SITES}/raw"), number, content))
    return x, found


def flow(port: int, sent: list[bytes], rate: float) -> tuple[np.ndarray, Receiver]:
    """Publish packets at a steady rate; returns when each was sent, and what came of them."""
    receiver, stream = Receiver(port, len(sent)), connected(port, "sender")
    receiver.start()
    drain = threading.Thread(target=_drain, args=(stream,), daemon=True)
    drain.start()
    times, first = np.zeros(len(sent)), 0
    began = time.perf_counter()
    while first < len(sent):
        due = min(int((time.perf_counter() - began) * rate) + 1, len(sent))
        times[first:due] = time.perf_counter()
        stream.sendall(b"".join(sent[first:due]))
        first = due
        time.sleep(TICK)
    receiver.join(PATIENCE)
    stream.close()
    return times, receiver


def _drain(stream: socket.socket) -> None:
    """Read the broker's acknowledgements, which nobody needs."""
    try:
        while stream.recv(BLOCK):
            pass
    except OSError:
        pass


def measure(model: Path, device: Device, rate: float, seconds: float) -> dict[str, Any]:
    """Let the service answer at this rate, after a second that does not count."""
    warm = int(rate)
    x, sent = queries(device, warm + int(rate * seconds))
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder)).start()
        words = ["serve", str(model), "--mqtt", broker.url, "--topic", "bench/+/raw", "--keep", "n"]
        service = subprocess.Popen(
            [sys.executable, "-m", "twinedge", *words], stderr=subprocess.PIPE, text=True
        )
        assert service.stderr
        assert "connected" in service.stderr.readline()
        time.sleep(0.2)  # for its subscriptions
        before = os.times()
        times, receiver = flow(broker.port, sent, rate)
        after = os.times()
        status = Path(f"/proc/{service.pid}/status").read_text()
        stat = Path(f"/proc/{service.pid}/stat").read_text().rpartition(")")[2].split()
        service.send_signal(signal.SIGTERM)
        service.wait()
        broker.stop()
    lost = receiver.missing
    if not lost and not np.allclose(
        np.array(receiver.answers, float), device.predict(x), rtol=1e-6
    ):
        raise SystemExit("the answers are not those of one call")
    delays = 1e3 * (receiver.arrived - times)[warm:]
    delays = delays[receiver.arrived[warm:] > 0]
    ticks = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return {
        "queries": len(delays),
        "a_second": round(len(delays) / (receiver.arrived.max() - times[warm])),
        "lost": lost,
        "repeated": receiver.repeated,
        "median_ms": round(float(np.median(delays)), 2),
        "99th_percentile_ms": round(float(np.quantile(delays, 0.99)), 2),
        "largest_ms": round(float(delays.max()), 2),
        "service_cores": round(ticks / (times[-1] - times[0]), 3),
        "sender_cores": round(
            (after.user + after.system - before.user - before.system) / (times[-1] - times[0]), 3
        ),
        "service_resident_kb": int(status.partition("VmRSS:")[2].split()[0]),
    }


def words_of(found: dict[str, Any]) -> str:
    """Summarise the measurement, as in docs/mqtt.md."""
    return (
        f"{found['a_second']:,} queries a second: median {found['median_ms']:.1f} ms, 99 of 100 "
        f"within {found['99th_percentile_ms']:.1f} ms, {found['lost']} of {found['queries']:,} "
        f"lost; {100 * found['service_cores']:.0f} % of a core, "
        f"{found['service_resident_kb'] * 1.024e-3:.0f} MB"
    )


def main() -> None:
    """Measure, print, and last one line of JSON."""
    parser = command_line(__doc__, results_of("serve"))
    parser.add_argument("--export", type=Path, default=EXPORT)
    parser.add_argument("--rate", type=float, default=2000.0, help="queries a second")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()

    model = load_or_export(options.export) / "model.twin"
    device = load(model)
    load_at_start = os.getloadavg()[0]
    found = measure(model, device, options.rate, options.seconds)
    print(words_of(found))
    publish(
        options.results,
        ("numpy", "paho-mqtt"),
        backend=device.info["backend"],
        kernel=device.info.get("kernel"),
        load_at_start=load_at_start,
        **found,
    )


if __name__ == "__main__":
    main()
