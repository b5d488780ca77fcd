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


@pytest.fixture
def connection():
    """Connect to a broker that answers each packet with the next of these bytes."""
    made, notes = [], []

    def connect(*replies):
        server = socket.create_server(("127.0.0.1", 0))

        def answer():
            stream, _ = server.accept()
            with stream:
                for one in replies:
                    if stream.recv(1 << 16):
                        stream.sendall(one)
                time.sleep(0.2)

        threading.Thread(target=answer, daemon=True).start()
        address = Address("127.0.0.1", server.getsockname()[1], False, None)
        events = Events(notes.append, lambda _: None, lambda *_: None)
        one = Connection(address, "meter", ["a/raw", "a/truth"], ("status", b"{}"), events)
        one.notes = notes
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
        turns(connection(*replies))


@pytest.mark.parametrize("replies", [[b"\x20\x03\x00\x97\x00"], [b""], [b"HTTP/1.1 400 Bad\r\n"]])
def test_what_may_pass_is_tried_again(connection, replies):
    one = connection(*replies)
    turns(one, 0.6)
    assert "trying again in 1 s" in one.notes[0]
    assert not one.connected
