"""The connection to a broker: it comes back by itself, and loses nothing that it acknowledged.

One thread does all: it reads what has arrived, and the caller answers it in one go. A message is
acknowledged when the broker has confirmed its answer, so whatever happens in between, one of the
two still has it. As the broker sends only so many messages that are not acknowledged, a slow
program has a short queue, and the broker a long one.

It takes MQTT 5, in which a session ends by itself and old messages are not repeated.
"""

import random
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.mqtt.payloads import MOST_BYTES

MOST_WAITING = 256  # messages that the broker sends before one is acknowledged
SESSION = 24 * 3600  # seconds for which a broker keeps messages of a program that is not there
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_KEEP_ALIVE = 30  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds before connecting again
_STABLE = 10.0  # seconds after which a connection was a good one
_OVERHEAD = 1 << 12  # bytes of a message around its payload
_SESSION_TAKEN = 0x8E
# The broker will not change its mind: unsupported version, client id, credentials, not authorised,
# banned, authentication method.
_FINAL = (0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C)


class Address(NamedTuple):
    """Where a broker is."""

    host: str
    port: int
    encrypted: bool
    username: str | None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Read ``mqtt://[user@]host[:port]``, or ``mqtts://`` for TLS.

        Raises
        ------
        InputError
            If it is something else, or has a password in it.
        """
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if parts.password is not None:
            raise ParameterError(
                "the address has a password in it, which everyone on this machine can read: put "
                "it into a file for ",
                Parameter("password_file"),
                ", or into TWINEDGE_MQTT_PASSWORD",
            )
        if parts.scheme not in _PORTS or not host or (parts.path + parts.query).strip("/"):
            raise InputError(f"{url!r} is not mqtt://HOST[:PORT], or mqtts:// for TLS")
        username = unquote(parts.username) if parts.username else None
        return cls(host, port or _PORTS[parts.scheme], parts.scheme == "mqtts", username)

    def __str__(self) -> str:
        return f"{'mqtts' if self.encrypted else 'mqtt'}://{self.host}:{self.port}"


class Message(NamedTuple):
    """A message that arrived; two are the same only if they are one object."""

    topic: str
    payload: bytes
    arrived: float  # as time.monotonic says
    qos: int
    number: int  # by which it is acknowledged
    repeated: bool  # the broker sent it before, and saw no acknowledgement


class _Outgoing(NamedTuple):
    topic: str
    payload: bytes
    retain: bool
    answers: Message | None


@dataclass
class Events:
    """What a connection tells: changes for a person, and how long answers took."""

    note: Callable[[str], None]
    answered: Callable[[float], None]  # seconds from a message to the broker's confirmation
    refused: Callable[[str, str], None]  # topic, reason
    connected: Callable[[], None] = field(default=lambda: None)


class Connection:
    """A connection to a broker.

    Parameters
    ----------
    address : Address
        Where it is.
    name : str
        Identifies the program; the broker keeps messages for it while it is away.
    filters : list of str
        What to subscribe to.
    will : tuple of str and bytes
        Topic and payload that the broker retains when this program is gone.
    events : Events
        Whom to tell.

    Attributes
    ----------
    reconnections : int
        How often the connection came back.
    """

    def __init__(
        self,
        address: Address,
        name: str,
        filters: list[str],
        will: tuple[str, bytes],
        events: Events,
        *,
        credentials: tuple[str | None, str | None] = (None, None),
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._address, self._name, self._filters, self._events = address, name, filters, events
        self._arrived: list[Message] = []
        self._unanswered: dict[int, Message] = {}  # by number; of this session
        self._late: set[int] = set()  # numbers that this connection has not seen yet
        self._queue: deque[_Outgoing] = deque()
        self._unconfirmed: dict[int, Message | None] = {}
        self._most_unconfirmed = 1
        self._connected = self._ever_connected = self._closing = False
        self._fault: InputError | None = None
        self._reason = ""
        self._next_try, self._pause, self._since = 0.0, _FIRST_PAUSE, 0.0
        self.reconnections = 0
        self._bell, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.username_pw_set(*credentials)
        if context is not None:
            client.tls_set_context(context)
        client.will_set(*will, qos=1, retain=True)
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_message, client.on_publish = self._on_message, self._on_publish
        client.on_subscribe = self._on_subscribe
        client.on_socket_open = self._on_socket_open
        client.on_socket_register_write = lambda *_: None  # what is queued is written by flush
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION
        properties.ReceiveMaximum = MOST_WAITING
        properties.MaximumPacketSize = MOST_BYTES + _OVERHEAD
        client.connect_async(
            address.host, address.port, _KEEP_ALIVE, clean_start=False, properties=properties
        )
        self._client = client

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted the connection."""
        return self._connected

    @property
    def idle(self) -> bool:
        """Whether the broker has confirmed all that was published."""
        return not self._queue and not self._unconfirmed

    def wake(self) -> None:
        """End the wait of ``receive``; signal handlers may call it."""
        self._wake.send(b"!")

    def receive(self, seconds: float) -> list[Message]:
        """Return what has arrived, and wait at most so long for the first message.

        Raises
        ------
        InputError
            If the broker refuses this program.
        """
        if self._client.socket() is None:
            seconds = self._connect_again(seconds)
        self.flush()
        stream = self._client.socket()
        reading: list[Any] = [self._bell]
        if stream is not None:
            # What cannot be written any more must not be added to.
            if not (self._client.want_write() and len(self._queue) > MOST_WAITING):
                reading.append(stream)
            seconds = 0 if _pending(stream) else seconds
        writing = [stream] if stream is not None and self._client.want_write() else []
        ready, able, _ = select.select(reading, writing, [], max(seconds, 0))
        if self._bell in ready:
            self._bell.recv(64)
        if able:
            self._client.loop_write()
        if stream is not None and (stream in ready or _pending(stream)):
            self._read()
        self._client.loop_misc()
        if self._fault:
            raise self._fault
        arrived, self._arrived = self._arrived, []
        return arrived

    def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, answers: Message | None = None
    ) -> None:
        """Publish, at least once; the message that it ``answers`` is acknowledged afterwards.

        The answer to a message that was sent at most once is sent at most once.
        """
        self._queue.append(_Outgoing(topic, payload, retain, answers))

    def acknowledge(self, message: Message) -> None:
        """Tell the broker that a message needs no answer, or has one."""
        if message.qos and self._unanswered.get(message.number) is message:
            del self._unanswered[message.number]
            if message.number in self._late:
                self._late.discard(message.number)
            elif self._connected:
                self._client.ack(message.number, message.qos)

    def flush(self) -> None:
        """Send what was published, as much as the broker takes."""
        while self._queue and self._connected:
            one = self._queue[0]
            surely = one.answers is None or one.answers.qos > 0  # else at most once
            if surely and len(self._unconfirmed) >= self._most_unconfirmed:
                break
            self._queue.popleft()
            info = self._client.publish(one.topic, one.payload, int(surely), one.retain)
            if surely:
                self._unconfirmed[info.mid] = one.answers
            else:
                assert one.answers is not None
                self._events.answered(time.monotonic() - one.answers.arrived)
                if self._is_full():
                    break
        self._is_full()

    def _is_full(self) -> bool:
        """Write what is due, and return whether the socket takes no more."""
        if self._client.want_write():
            self._client.loop_write()
        return self._client.want_write()

    def close(self, seconds: float) -> None:
        """Send what was published and wait for the broker to confirm it, at most so long."""
        end = time.monotonic() + seconds
        while self._connected and not self.idle and time.monotonic() < end:
            self.receive(min(0.1, end - time.monotonic()))
        self._closing = True
        self._client.disconnect()
        self._client.loop_write()
        self._connected = False
        self._bell.close()
        self._wake.close()

    def _connect_again(self, seconds: float) -> float:
        """Connect if it is time to; return how long to wait for what comes."""
        now = time.monotonic()
        if now < self._next_try:
            return min(seconds, self._next_try - now)
        self._next_try = now + self._pause * random.uniform(0.75, 1.25)
        try:
            self._client.reconnect()
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or error.reason or str(error)
            self._lost(reason, final=not self._ever_connected)
        except OSError as error:
            self._lost(error.strerror or str(error))
        return seconds

    def _lost(self, reason: str, *, final: bool = False) -> None:
        if final:
            self._fault = InputError(f"{self._address} cannot be used: {reason}")
        again = max(self._next_try - time.monotonic(), 0)
        self._events.note(f"{self._address}: {reason}; trying again in {again:.0f} s")
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _read(self) -> None:
        """Read all messages that have arrived, at most as many as may wait."""
        while len(self._arrived) < MOST_WAITING:
            self._client.loop_read()
            stream = self._client.socket()
            if stream is None or self._fault:
                break
            if not _pending(stream) and not select.select([stream], [], [], 0)[0]:
                break

    # What the client calls.

    def _on_socket_open(self, _client: Client, _data: Any, stream: Any) -> None:
        # An answer is short: it must not wait for the confirmation of the one before.
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _on_connect(
        self,
        client: Client,
        _data: Any,
        flags: ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            self._reason = str(reason)
            if reason.value in _FINAL and not self._ever_connected:
                self._fault = InputError(f"{self._address} refuses {self._name}: {reason}")
            return
        if not flags.session_present:
            self._unanswered.clear()  # the broker knows nothing of them any more
        self._late = set(self._unanswered)
        self._most_unconfirmed = min(getattr(properties, "ReceiveMaximum", 65535), MOST_WAITING)
        options = SubscribeOptions(
            qos=1, noLocal=True, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND
        )
        client.subscribe([(one, options) for one in self._filters])
        self.reconnections += self._ever_connected
        self._connected = self._ever_connected = True
        self._reason, self._since = "", time.monotonic()
        self._events.note(f"connected to {self._address} as {self._name}")
        self._events.connected()

    def _on_disconnect(
        self,
        _client: Client,
        _data: Any,
        _flags: DisconnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason.value == _SESSION_TAKEN:
            self._fault = ParameterError(
                f"another program connected to {self._address} as {self._name}: give each its own ",
                Parameter("name"),
            )
        now, done = time.monotonic(), "was not accepted"
        if self._connected:
            done = "lost the connection"
            if now - self._since > _STABLE:
                self._pause = _FIRST_PAUSE
            else:  # some brokers do not say that they prefer another program
                done += f" at once, is another program called {self._name}?"
        self._next_try = now + self._pause * random.uniform(0.75, 1.25)
        if not self._closing:
            self._lost(self._reason or f"{done} ({reason})")
        self._connected, self._reason = False, ""

    def _on_subscribe(
        self,
        _client: Client,
        _data: Any,
        _number: int,
        reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        for one, reason in zip(self._filters, reasons, strict=True):
            if reason.is_failure:
                self._fault = InputError(
                    f"{self._address} refuses the subscription to {one}: {reason}"
                )

    def _on_message(self, _client: Client, _data: Any, found: MQTTMessage) -> None:
        known = self._unanswered.get(found.mid) if found.qos else None
        if known and found.dup and (known.topic, known.payload) == (found.topic, found.payload):
            self._late.discard(found.mid)  # its answer is on the way
            return
        message = Message(
            found.topic, bytes(found.payload), time.monotonic(), found.qos, found.mid, found.dup
        )
        if found.qos:
            self._unanswered[found.mid] = message
            self._late.discard(found.mid)
        self._arrived.append(message)

    def _on_publish(
        self, _client: Client, _data: Any, number: int, reason: ReasonCode, _properties: Properties
    ) -> None:
        if number not in self._unconfirmed:
            return
        message = self._unconfirmed.pop(number)
        if reason.is_failure:
            self._events.refused(message.topic if message else "", str(reason))
        if message is not None:
            self._events.answered(time.monotonic() - message.arrived)
            self.acknowledge(message)


def _pending(stream: Any) -> bool:
    """Whether there are bytes that TLS has read already."""
    return isinstance(stream, ssl.SSLSocket) and stream.pending() > 0
