"""Addresses, and brokers that refuse, for which a scripted one stands in."""

import socket
import threading
import time

import pytest

from twinedge import InputError
from twinedge.mqtt.broker import Address, Connection, Events

ACCEPTED = b"\x20\x03\x00\x00\x00"  # CONNACK: no session, success, no properties


def test_addresses():
    assert Address.parse("mqtt://broker") == ("broker", 1883, False, None)
    assert Address.parse("mqtts://me%40home@[::1]:99/") == ("::1", 99, True, "me@home")


@pytest.mark.parametrize(
    "url", ["broker", "http://broker", "mqtt://", "mqtt://a:b", "mqtt://a/path", "mqtt://a:99999"]
)
def test_other_addresses_are_refused(complaint, url):
    assert "is not mqtt://HOST" in complaint(Address.parse, url)


def test_a_password_in_an_address_is_refused_and_not_repeated(complaint):
    message = complaint(Address.parse, "mqtt://me:secret@broker")
    assert "password_file" in message
    assert "secret" not in message


def answering(*replies):
    """Answer each packet with the next of these bytes."""

    def answer(stream):
        for one in replies:
            if stream.recv(1 << 16):
                stream.sendall(one)
        time.sleep(0.2)

    return answer


@pytest.fixture
def connection():
    """Connect to a broker that serves one connection after the other by these functions."""
    made = []

    def connect(*scripts):
        server = socket.create_server(("127.0.0.1", 0))

        def serve():
            for script in scripts:
                stream, _ = server.accept()
                with stream:
                    script(stream)

        threading.Thread(target=serve, daemon=True).start()
        address = Address("127.0.0.1", server.getsockname()[1], False, None)
        notes, refusals = [], []
        events = Events(notes.append, lambda _: None, lambda *one: refusals.append(one))
        one = Connection(address, "meter", ["a/raw", "a/truth"], ("status", b"{}"), events)
        one.notes, one.refusals = notes, refusals
        made.append((one, server))
        return one

    yield connect
    for one, server in made:
        one.close(0)
        server.close()


def turns(connection, seconds=2.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.receive(0.05)


@pytest.mark.parametrize(
    ("replies", "says"),
    [
        ([b"\x20\x03\x00\x87\x00"], "refuses meter: Not authorized"),
        ([b"\x20\x03\x00\x84\x00"], "refuses meter: Unsupported protocol version"),
        (
            [ACCEPTED, b"\x90\x05\x00\x01\x00\x01\x87"],
            "the subscription to a/truth: Not authorized",
        ),
        ([ACCEPTED, b"\xe0\x02\x8e\x00"], "another program connected to"),
    ],
)
def test_what_a_broker_refuses_for_good_ends_it(connection, replies, says):
    with pytest.raises(InputError, match=says):
        turns(connection(answering(*replies)))


@pytest.mark.parametrize("replies", [[b"\x20\x03\x00\x97\x00"], [b""], [b"HTTP/1.1 400 Bad\r\n"]])
def test_what_may_pass_is_tried_again(connection, replies):
    one = connection(answering(*replies))
    turns(one, 0.6)
    assert "trying again in 1 s" in one.notes[0]
    assert not one.connected


SUBSCRIBED = b"\x90\x05\x00\x01\x00\x01\x01"  # SUBACK: both filters
KNOWN = b"\x20\x03\x01\x00\x00"  # CONNACK: there is a session


def packet(kind, body):
    """A packet of a kind, shorter than 128 bytes."""
    return bytes([kind, len(body)]) + body


def delivered(number, payload, again=False):
    """A message on a/raw, at least once; number 0: at most once."""
    identity = number.to_bytes(2, "big") if number else b""
    return packet(
        0x30 | 2 * bool(number) | 8 * again, b"\x00\x05a/raw" + identity + b"\x00" + payload
    )


def until(connection, condition):
    """Receive until a condition holds for what arrived, and return that."""
    arrived, end = [], time.monotonic() + 5
    while not condition(arrived):
        assert time.monotonic() < end
        arrived += connection.receive(0.05)
    return arrived


def test_what_a_lost_session_brings_again_is_acknowledged_once(connection, monkeypatch):
    monkeypatch.setattr("twinedge.mqtt.broker._FIRST_PAUSE", 0.05)
    monkeypatch.setattr("twinedge.mqtt.broker._STABLE", 0.0)
    received = []

    messages = delivered(0, b"once") + delivered(1, b"x") + delivered(2, b"y")

    def second(stream):
        stream.recv(1 << 16)
        stream.sendall(KNOWN)
        stream.recv(1 << 16)
        stream.sendall(SUBSCRIBED)
        time.sleep(0.2)  # in which nothing may be acknowledged
        stream.sendall(delivered(1, b"x", again=True))
        stream.settimeout(0.3)
        received.append(stream.recv(1 << 16))

    one = connection(answering(ACCEPTED, SUBSCRIBED + messages), second)
    unsure, late, lost = until(one, lambda arrived: len(arrived) == 3)
    one.acknowledge(unsure)  # which needs none
    until(one, lambda _: not one.connected)
    one.acknowledge(lost)
    until(one, lambda _: one.reconnections == 1)
    assert "lost the connection (" in one.notes[1]  # and not at once
    one.acknowledge(late)  # the broker has not sent it again yet
    (again,) = until(one, lambda arrived: arrived)
    one.acknowledge(again)
    until(one, lambda _: received)
    assert received == [packet(0x40, b"\x00\x01")]


def test_an_answer_that_a_broker_refuses_is_reported_and_done(connection):
    refusal = b"\x40\x03\x00\x02\x97"  # PUBACK: over a quota
    one = connection(answering(ACCEPTED, SUBSCRIBED + delivered(1, b"x"), refusal, b""))
    (message,) = until(one, lambda arrived: arrived)
    one.publish("a/prediction", b"1", answers=message)
    until(one, lambda _: one.refusals)
    assert one.refusals == [("a/raw", "Quota exceeded")]
    assert one.idle


def test_while_the_broker_does_not_read_nothing_more_is_taken_from_it(connection):
    count, payload, received = 600, bytes(1 << 16), []
    is_full, may_read = threading.Event(), threading.Event()

    def slow(stream):
        answering(ACCEPTED, SUBSCRIBED + delivered(0, b"first"))(stream)
        is_full.wait(5)
        stream.sendall(delivered(0, b"second"))
        may_read.wait(5)
        total = 0
        while total < count * len(payload):
            total += len(stream.recv(1 << 20))
        received.append(total)

    one = connection(slow)
    (message,) = until(one, lambda arrived: arrived)
    for _ in range(count):
        one.publish("a/prediction", payload, answers=message)
    one.receive(0)
    is_full.set()
    assert [one.receive(0.1) for _ in range(3)] == [[], [], []]
    assert not one.idle
    may_read.set()
    (second,) = until(one, lambda arrived: arrived and received)
    assert second.payload == b"second"
    assert one.idle
