"""``twinedge serve`` at a real broker: queries are answered, and nothing is lost or fatal."""

import json
import signal
import subprocess
import time

import numpy as np
import pytest

from benchmarks.harness.mosquitto import Broker
from tests.mqtt.conftest import GOLDEN, until
from twinedge.runtime.loading import load
from twinedge.runtime.streaming import Replies

STATUS = "twinedge/twinedge-strength-plant-raw/status"
USUAL = [0.5, "iron", 300]


def queries(count):
    """Some queries, by position."""
    rng = np.random.default_rng(0)
    numbers = rng.uniform([0.1, 10], [0.9, 580], (count, 2)).round(3).tolist()
    metals = rng.choice(["brass", "iron"], count)
    return [[hours, str(metal), load] for (hours, load), metal in zip(numbers, metals, strict=True)]


def by_name(x):
    return dict(zip(("hours", "metal", "load"), x, strict=True))


@pytest.fixture
def expected(pack):
    """What a stream answers to queries."""

    def answers(x):
        lines = Replies(load(pack)).to([json.dumps(row) for row in x])
        return [json.loads(one) for one in lines]

    return answers


def test_queries_of_all_sites_are_answered_as_a_stream_answers_them(serving, peer, expected):
    x = queries(60)
    with serving("--keep", "n"):
        client = peer("plant/+/prediction")
        for n, row in enumerate(x):
            content = by_name(row) | {"n": n, "other": "x"} if n % 2 else row
            client.say(f"plant/press {n % 3}/raw", content, qos=n % 3 > 0)
        for site in range(3):
            found = client.answers(f"plant/press {site}/prediction", 20)
            assert [{**one, "n": 0} for one in found] == [
                one | {"n": 0} for one in expected(x[site::3])
            ]
            kept = [one["n"] for one in found if "n" in one]
            assert kept == [n for n in range(site, 60, 3) if n % 2]
    assert not client.retained  # a prediction is true at its time only


def test_a_model_with_one_column_takes_bare_numbers(serving, peer):
    model = GOLDEN / "one-bin.twin"
    with serving(model=model, topic="attic/+"):
        client = peer("attic/+/prediction")
        client.say("attic/warm", b"0.5")
        client.say("attic/warm", b"")
        client.say("attic/warm", [0.5])
        one, other = client.answers("attic/warm/prediction", 2)
    assert one == other
    assert one["prediction"] == pytest.approx(load(model).predict([[0.5]])[0])


def test_home_assistant_finds_a_sensor_with_unit_and_availability(serving, peer):
    config = "homeassistant/sensor/plant_press-3_"
    with serving(
        *("--discovery", "homeassistant", "--unit", "mm", "--expire", "60", "--name", "plant")
    ) as service:
        client = peer("plant/#", "homeassistant/#", "twinedge/#")
        client.say("plant/press 3/raw", USUAL)
        client.answers("plant/press 3/prediction")
        (topic,) = (one for one in client.received if one.startswith(config))
        sensor = client.answers(topic)[0]
        assert sensor["unit_of_measurement"] == "mm"
        assert sensor["state_topic"] == "plant/press 3/prediction"
        assert sensor["expire_after"] == 60
        assert sensor["availability_topic"] == "twinedge/plant/status"
        late = peer("homeassistant/#", "twinedge/#")
        assert late.answers(topic) == [sensor]
        assert late.answers("twinedge/plant/status")[0]["state"] == "online"
        assert {topic, "twinedge/plant/status"} == set(late.retained)  # no store: nothing to type
        service.process.kill()  # the broker notices, and says so
        until(lambda: b'"offline"' in client.received["twinedge/plant/status"][-1])
    # Nothing is kept of a service that is gone but that it is.
    late = peer("twinedge/#")
    assert late.answers("twinedge/plant/status") == [{"state": "offline"}]


def test_true_values_teach_the_store_of_their_site(serving, peer, pack, expected, tmp_path):
    x = queries(8)
    shipped = [one["prediction"] for one in expected(x)]
    stores = tmp_path / "stores"
    with serving("--store", stores, "--discovery", "ha"):
        client = peer("plant/+/prediction", STATUS, "ha/#")
        for n, (row, y) in enumerate(zip(x[:6], shipped, strict=False)):
            client.say("plant/a/raw", by_name(row))
            client.answers("plant/a/prediction", n + 1)
            client.say("plant/a/truth", y + 0.3)
        client.say("plant/a/truth", by_name(x[6]) | {"strength": shipped[6] + 0.3, "time": 1234})
        for site in "ab":
            client.say(f"plant/{site}/raw", by_name(x[7]))
        a, b = client.answers("plant/a/prediction", 7)[-1], client.answers("plant/b/prediction")[0]
        assert b["prediction"] == shipped[7]
        assert a["prediction"] > shipped[7] + 0.1
        until(lambda: json.loads(client.received[STATUS][-1]).get("learnt") == 7)
        status = json.loads(client.received[STATUS][-1])
        assert status["truths"] == 7
        assert 0 <= status["coverage"] <= 1
        topic = "ha/number/twinedge-strength-plant-raw_a_truth/config"
        assert client.answers(topic)[0]["command_topic"] == "plant/a/truth"
    assert [one.name for one in stores.iterdir()] == ["a.store"]
    device = load(pack, store=stores / "a.store")
    assert device.learnt == 7
    assert device.points.times[-1] == 1234
    assert abs(int(device.points.times[0]) - time.time()) < 60
    assert device.predict([x[7]])[0] == pytest.approx(a["prediction"], rel=1e-6)
    with serving("--store", stores):  # what was learnt counts from the start
        client.say("plant/a/raw", by_name(x[7]))
        assert client.answers("plant/a/prediction", 8)[-1] == a


@pytest.mark.slow
def test_nothing_is_lost_when_the_broker_restarts(serving, peer, broker):
    x = queries(1500)
    with serving("--keep", "n") as service:
        client = peer("plant/+/prediction", STATUS)
        for n, row in enumerate(x):
            client.say(f"plant/{n % 7}/raw", by_name(row) | {"n": n})
            if n == 600:
                until(lambda: sum(map(len, client.received.values())) > 50)
                broker.stop()
                time.sleep(0.2)
                broker.start()
        topics = [f"plant/{site}/prediction" for site in range(7)]

        def numbers():
            return [json.loads(one)["n"] for topic in topics for one in client.received[topic]]

        until(lambda: len(set(numbers())) == 1500, "all predictions")
        until(lambda: json.loads(client.received[STATUS][-1]).get("reconnections") == 1)
        assert len(numbers()) < 1600  # a few twice, as QoS 1 has it
        assert "lost the connection" in service.remarks
        assert json.loads(client.received[STATUS][-1])["queries"] < 1600


def test_what_arrives_while_the_service_is_away_is_answered_later(serving, peer):
    client = peer("plant/+/prediction")
    with serving("--keep", "n") as service:
        client.say("plant/a/raw", USUAL)
        client.answers("plant/a/prediction")
        service.process.kill()
        service.process.wait()
        for n in range(300):
            client.say("plant/a/raw", by_name(USUAL) | {"n": n})
    with serving("--keep", "n"):
        found = client.answers("plant/a/prediction", 301)
        assert {one.get("n") for one in found} == {None, *range(300)}


def test_bad_payloads_are_counted_and_reported_and_end_nothing(serving, peer, tmp_path):
    bad = [
        b"",
        b"\xff\xfe",
        b"{",
        b"[" * 50_000,
        b"null",
        b"1.5",
        b'{"hours": 1}',
        b"[1, 2]",
        b"[1,2,NaN]",
    ]
    bad += [
        b'["x", "iron", 0]',
        b'[true, "iron", 0]',
        b'[1e999, "iron", 0]',
        b"[" + b"9" * 5000 + b', "iron", 0]',
    ]
    false = [b"x", b"true", b"{}", b'{"value": "x"}', b'{"value": 1, "hours": 1}', b"1e300", b"NaN"]
    false += [b'{"value": 1, "time": -5}', b"7"]  # the last has no query, where it comes first
    with serving("--store", tmp_path / "stores") as service:
        client = peer("plant/+/prediction", STATUS)
        client.say("plant/b/truth", false.pop())
        for one in bad:
            client.say("plant/a/raw", one)
        client.say("plant/a/raw", USUAL)
        client.answers("plant/a/prediction")
        for one in false:
            client.say("plant/a/truth", one)
        client.say("plant/" + 90 * "é" + "/truth", {"value": 1, **by_name(USUAL)})
        client.say("plant/" + 300 * "x" + "/raw", USUAL)
        client.say("plant/a/raw", USUAL)
        client.say("other/a/raw", b"{")
        client.answers("plant/a/prediction", 2)
        count = len(bad) + len(false) + 3
        until(lambda: json.loads(client.received[STATUS][-1]).get("bad") == count)
        last = json.loads(client.received[STATUS][-1])["last_bad"]
        assert last["reason"] == "the name of the site has more than 200 characters"
        assert service.process.poll() is None
    assert not [*(tmp_path / "stores").iterdir()]


@pytest.mark.slow
def test_a_burst_for_a_slow_service_is_answered_in_bounded_memory(serving, peer):
    # The broker keeps what the service has not acknowledged, however much that is.
    with serving("--backend", "numpy", "--keep", "n") as service:
        client = peer("plant/+/prediction")
        memory = []
        for n in range(4000):
            client.say(f"plant/{n % 400}/raw", by_name(USUAL) | {"n": n, "pad": 2000 * "x"})
        for count in (1500, 4000):
            until(lambda c=count: sum(map(len, client.received.values())) >= c, "predictions")
            memory.append(service.memory())
        found = [json.loads(one).get("n") for some in client.received.values() for one in some]
        assert set(found) == {*range(4000)}
        assert memory[1] < memory[0] + 1000


def test_tls_and_a_password_from_a_file(peer, serving, tmp_path):
    (tmp_path / "users").write_text("meter:secret word\n")
    subprocess.run(["mosquitto_passwd", "-U", tmp_path / "users"], check=True)
    files = "-keyout server.key -out server.pem"
    about = "-subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 -nodes"
    request = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 {files} {about}"
    subprocess.run(request.split(), check=True, capture_output=True, cwd=tmp_path)
    broker = Broker(
        tmp_path / "tls",
        "allow_anonymous false",
        f"password_file {tmp_path}/users",
        f"certfile {tmp_path}/server.pem",
        f"keyfile {tmp_path}/server.key",
    ).start()
    (tmp_path / "password").write_text("secret word\n")
    url = f"mqtts://meter@localhost:{broker.port}"
    trusted = ("--ca", tmp_path / "server.pem")

    def setup(client):
        client.tls_set(str(tmp_path / "server.pem"))
        client.tls_insecure_set(True)  # this client calls it 127.0.0.1
        client.username_pw_set("meter", "secret word")

    try:
        with serving(*trusted, "--password-file", tmp_path / "password", url=url):
            client = peer("plant/+/prediction", at=broker, setup=setup)
            for _ in range(300):
                client.say("plant/a/raw", USUAL)
            client.answers("plant/a/prediction", 300)
        with serving(*trusted, url=url, TWINEDGE_MQTT_PASSWORD="secret word"):
            pass
        with serving(*trusted, url=url, wait=False, TWINEDGE_MQTT_PASSWORD="wrong") as refused:
            assert refused.process.wait(20) == 2
        assert "Not authorized" in refused.remarks
        with serving(url=url, wait=False, TWINEDGE_MQTT_PASSWORD="secret word") as refused:
            assert refused.process.wait(20) == 2
        assert "certificate" in refused.remarks
        assert "secret" not in refused.remarks
    finally:
        broker.stop()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_end_it_cleanly(serving, peer, number, code):
    client = peer(STATUS)
    with serving() as service:
        until(lambda: client.received[STATUS])
        assert service.stop(number) == code
    assert json.loads(client.received[STATUS][-1]) == {"state": "offline"}
    assert "Traceback" not in service.remarks


def test_it_waits_for_a_broker_that_is_not_there_yet(serving, broker, peer):
    broker.stop()
    with serving(wait=False) as service:
        until(lambda: "trying again in" in service.remarks)
        broker.start()
        until(lambda: "connected to" in service.remarks)
        assert peer(STATUS).answers(STATUS)[0]["state"] == "online"


def test_two_programs_of_the_same_name_are_reported(serving):
    with serving() as first, serving():
        until(lambda: "is another program called twinedge-strength-plant-raw?" in first.remarks)


def test_several_targets_are_answered_and_learnt_by_name(serving, peer, tmp_path):
    model = GOLDEN / "three-targets-of-everything.twin"
    device = load(model)
    x = device.ranges.mean(axis=0).round(3)
    shipped = Replies(device).records(x[None])[0]
    first, second, third = device.target_names
    with serving("--store", tmp_path, "--discovery", "ha", "--name", "s", model=model):
        client = peer("plant/+/prediction", "ha/#", "twinedge/s/status")
        client.say("plant/a/raw", x.tolist())
        assert client.answers("plant/a/prediction") == [shipped]
        for _ in range(5):
            client.say("plant/a/truth", {first: shipped["high"][first], third: None})
        client.say("plant/a/truth", {"value": 1})
        client.say("plant/a/truth", 1)
        client.say("plant/a/raw", x.tolist())
        adapted = client.answers("plant/a/prediction", 2)[-1]
        until(lambda: json.loads(client.received["twinedge/s/status"][-1]).get("learnt") == 5)
        status = json.loads(client.received["twinedge/s/status"][-1])
        assert (status["truths"], status["coverage"], status["bad"]) == (5, 1, 2)
        sensor = client.answers(f"ha/sensor/s_a_{second}/config")[0]
        assert sensor["value_template"] == f'{{{{ value_json.prediction["{second}"] }}}}'
        number = client.answers(f"ha/number/s_a_{third}_truth/config")[0]
        assert number["command_template"] == f'{{{{ {{"{third}": value}} | to_json }}}}'
    assert adapted["prediction"][first] > shipped["prediction"][first]
    assert adapted["prediction"][second] == shipped["prediction"][second]
