"""A mosquitto of its own for each test, on the loopback interface, and its clients."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTProtocolVersion

from benchmarks.harness.mosquitto import Broker

PATIENCE = 20.0
GOLDEN = Path(__file__).parents[1] / "golden"


def until(condition, what="it"):
    """Wait until a condition holds, and return what it gave."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)
    return found


class Peer:
    """Another client: it publishes, and keeps all that it receives, by topic."""

    def __init__(self, broker: Broker, *filters: str, setup=lambda client: None) -> None:
        self.received = defaultdict(list)
        self.retained = {}
        self._filters = filters
        self._subscribed = False
        self.client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"peer-{id(self)}",
            protocol=MQTTProtocolVersion.MQTTv311,
            clean_session=False,
        )
        self.client.max_inflight_messages_set(20)
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = self._on_connect
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe
        setup(self.client)
        self.client.connect("127.0.0.1", broker.port)
        self.client.loop_start()
        until(lambda: self._subscribed or not filters, "a subscription")

    def _on_connect(self, client, *_):
        if self._filters:
            client.subscribe([(one, 1) for one in self._filters])

    def _on_subscribe(self, *_):
        self._subscribed = True

    def _on_message(self, _client, _data, message):
        self.received[message.topic].append(message.payload)
        if message.retain:
            self.retained[message.topic] = message.payload

    def say(self, topic, content, qos=1, retain=False):
        payload = content if isinstance(content, bytes) else json.dumps(content)
        return self.client.publish(topic, payload, qos, retain)

    def answers(self, topic, count=1):
        """Wait for so many messages on a topic; returns what they hold."""
        until(lambda: len(self.received[topic]) >= count, f"{count} messages on {topic}")
        return [json.loads(one) for one in self.received[topic]]

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture(scope="session")
def pack() -> Path:
    """A model of strength from hours, metal (a name) and load."""
    return GOLDEN / "release-0.1" / "model.twin"


@pytest.fixture
def broker(tmp_path):
    """A mosquitto that anyone may use."""
    found = Broker(tmp_path / "broker").start()
    yield found
    found.stop()


@pytest.fixture
def peer(broker):
    """Make clients of the broker: ``peer("plant/#")``."""
    made = []

    def make(*filters, at=broker, **options):
        made.append(Peer(at, *filters, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Serving:
    """A running ``twinedge serve``."""

    def __init__(self, process, log: Path) -> None:
        self.process, self._log = process, log

    @property
    def remarks(self) -> str:
        return self._log.read_text()

    def stop(self, number=signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def memory(self) -> int:
        """Resident kilobytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


@pytest.fixture
def serving(broker, pack, tmp_path):
    """Run the command: ``with serving("--store", folder) as service``; it is connected then."""

    @contextmanager
    def run(*options, model=pack, topic="plant/+/raw", url=broker.url, wait=True, **env):
        log = tmp_path / f"serve-{time.monotonic_ns()}.log"
        words = [model, "--mqtt", url, "--topic", topic, "--every", "0.2", *options]
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "twinedge", "serve", *map(str, words)],
                stderr=file,
                env=os.environ | env,
            )
        found = Serving(process, log)
        try:
            if wait:
                until(
                    lambda: "connected to" in found.remarks or process.poll() is not None,
                    "the service",
                )
                assert process.poll() is None, found.remarks
                time.sleep(0.05)  # for its subscriptions
            yield found
        finally:
            if process.poll() is None:
                found.stop()

    return run
