"""What the service does with single messages, without a broker."""

import json
import time
from dataclasses import replace

import pytest

from twinedge.mqtt.broker import Message
from twinedge.mqtt.home_assistant import Discovery
from twinedge.mqtt.service import Service
from twinedge.mqtt.topics import Topics
from twinedge.pack import read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.loading import load
from twinedge.runtime.sample_streams import KeptState, SampleStreams
from twinedge.runtime.store_folder import StoreFolder

USUAL = [0.5, "iron", 300]


class Connection:
    """Brings messages, in bursts, and keeps what is published and acknowledged."""

    connected, reconnections = True, 0

    def __init__(self, *bursts):
        self._bursts, self.published, self.acknowledged = [*bursts], [], []
        self.closed = False

    def receive(self, seconds):
        return self._bursts.pop(0)

    @property
    def exhausted(self):
        return not self._bursts

    def publish(self, topic, payload, *, retain=False, answers=None):
        self.published.append((topic, json.loads(payload)))
        if answers:
            self.acknowledge(answers)

    def acknowledge(self, message):
        self.acknowledged.append(message)

    def flush(self):
        pass

    def close(self, seconds):
        self.closed = True


def message(topic, content, repeated=False):
    return Message(topic, json.dumps(content).encode(), time.monotonic(), 1, 1, repeated)


@pytest.fixture
def serve(pack):
    """Serve bursts: returns service, connection and the predictions in their order."""

    def run(*bursts, model=pack, **options):
        service = Service(load(model), Topics("plant/+/raw"), "status", **options)
        connection = Connection(*bursts)
        service.run(connection, lambda: connection.exhausted)
        assert connection.closed
        assert connection.published[-1] == ("status", {"state": "offline"})
        assert [*map(id, connection.acknowledged)] == [id(one) for some in bursts for one in some]
        found = [one for topic, one in connection.published if topic.endswith("/prediction")]
        return service, connection, found

    return run


@pytest.fixture
def stores(pack, tmp_path):
    return StoreFolder(load(pack), tmp_path / "stores")


def test_within_a_burst_a_true_value_counts_from_the_next_query_on(serve, stores):
    raw, truth = message("plant/a/raw", USUAL), message("plant/a/truth", 3)
    _, _, (before, after) = serve([raw, truth, message("plant/a/raw", USUAL)], stores=stores)
    assert after["prediction"] > before["prediction"]


def test_a_true_value_that_the_broker_repeats_is_learnt_once(serve, stores):
    columns = dict(zip(("hours", "metal", "load"), USUAL, strict=True))
    point = columns | {"value": 1.5}
    again = message("plant/a/truth", point, repeated=True)
    service, _, _ = serve([message("plant/a/truth", point), again, again], stores=stores)
    assert (service.status.learnt, service.status.truths) == (1, 1)
    # One that was sent again before it was learnt is learnt.
    other = message("plant/a/truth", point | {"value": 1.6}, repeated=True)
    service, _, _ = serve([again, other], stores=stores)
    assert service.status.learnt == 1
    assert stores.device("a").learnt == 2
    service, _, _ = serve([again])
    assert service.status.learnt == 0


def test_only_so_many_sites_are_remembered(serve, stores):
    queries = [message(f"plant/{site}/raw", USUAL) for site in "abc"]
    truths = [message(f"plant/{site}/truth", 1.5) for site in "ca"]
    discovery = Discovery("ha", "s", None, None, teach=True)
    options = {"stores": stores, "most_sites": 2, "discovery": discovery}
    service, connection, _ = serve([*queries, *truths, queries[0]], **options)
    # a was forgotten: its true value would need the columns, and it is announced again.
    assert (service.status.bad, service.status.learnt) == (1, 1)
    announced = [topic for topic, _ in connection.published if topic.startswith("ha/sensor")]
    assert [topic.split("_")[1][0] for topic in announced] == ["a", "b", "c", "a"]


def test_with_a_bad_store_a_site_is_answered_as_shipped(serve, stores, tmp_path):
    (tmp_path / "stores").mkdir()
    (tmp_path / "stores" / "a.store").write_text("no store")
    queries = [message("plant/a/raw", USUAL), message("plant/a/raw", USUAL)]
    service, _, found = serve([queries[0]], [queries[1]], stores=stores)
    assert len(found) == 2
    assert service.status.bad == 1  # counted once, not for every query
    service, _, _ = serve([*queries, message("plant/a/truth", 1)], stores=stores)
    assert (service.status.learnt, service.status.bad) == (0, 2)


def test_messages_of_an_earlier_subscription_are_only_acknowledged(serve):
    service, connection, _ = serve([message("else/a/raw", USUAL), message("else", 1)])
    assert [topic for topic, _ in connection.published] == ["status", "status"]
    assert service.status.bad == 0


def test_the_status_counts_what_is_outside_and_missing(serve, pack):
    queries = [[0.5, "iron", 300], [9.5, "iron", 300], [0.5, "tin", 300]]
    service, connection, found = serve([message("plant/a/raw", one) for one in queries], every=0.0)
    assert [one["outside"] for one in found] == [[], ["hours"], ["metal"]]
    assert (service.status.queries, service.status.outside) == (3, 2)
    status = connection.published[-2][1]
    assert (status["outside"], status["rate"] > 0, status["coverage"]) == (2, True, None)
    assert status["delay_ms"] is None
    service.status.answered(0.002)
    service.status.answered(0.004)
    assert service.status.report()["delay_ms"] == {"median": 3.0, "p99": 3.98}


def samples_of(stream_log, count=20):
    rows = [line.split(",") for line in stream_log.read_text().splitlines()[1 : count + 1]]
    return [
        {
            "at": int(row[0]),
            "temp": float(row[2]),
            "flow": float(row[3]),
            "mode": row[4],
        }
        for row in rows
    ]


def test_each_site_has_a_window_of_its_own(serve, stream_export, stream_log):
    model, samples = stream_export / "model.twin", samples_of(stream_log)
    both = [message(f"plant/{site}/raw", one) for one in samples for site in ("press", "mixer")]
    service, connection, found = serve(both, model=model, keep=("at",))
    stream = load(model).stream()
    expected = [answer for one in samples if (answer := stream.push(one))]
    assert len(expected) == len(samples) - 5
    assert [one["prediction"] for one in found[::2]] == [
        float(f"{one.mean:.7g}") for one in expected
    ]
    assert found[::2] == found[1::2]
    assert [one["at"] for one in found[::2]] == [one["at"] for one in samples[5:]]
    assert service.status.waiting == 10
    states = [one for topic, one in connection.published if topic == "status"]
    assert "waiting" in states[0]


def test_a_sample_that_comes_again_is_no_second_sample(serve, stream_export, stream_log):
    model, samples = stream_export / "model.twin", samples_of(stream_log, 8)
    plain = [message("plant/press/raw", one) for one in samples]
    again = [
        [one, message("plant/press/raw", sample, repeated=True)]
        for one, sample in zip(plain, samples, strict=True)
    ]
    _, _, once = serve(plain, model=model)
    service, _, twice = serve(*again, model=model)
    assert twice == [one for one in once for _ in (0, 1)]
    assert service.status.waiting == 10


def test_a_window_that_cannot_be_filled_is_a_bad_sample(serve, stream_export, stream_log, tmp_path):
    pack = read_pack((stream_export / "model.twin").read_bytes())
    fill = pack.domain.fill.copy()
    fill[4:] = NO_FILL  # of what is derived
    model, samples = tmp_path / "model.twin", samples_of(stream_log, 7)
    model.write_bytes(write_pack(replace(pack, domain=replace(pack.domain, fill=fill))))
    samples[-1]["flow"] = None
    queries = [message("plant/press/raw", one) for one in samples]
    service, connection, found = serve(queries[:-1], queries[-1:], model=model, every=0.0)
    assert (len(found), service.status.bad) == (1, 1)
    reason = connection.published[-2][1]["last_bad"]["reason"]
    assert reason == "max(flow, 4) is not known: a sample of its window is missing"


@pytest.mark.parametrize("is_killed", [False, True])
def test_windows_outlast_the_service(serve, stream_export, stream_log, tmp_path, is_killed):
    model, samples = stream_export / "model.twin", samples_of(stream_log)
    queries = [message("plant/press/raw", one) for one in samples]
    whole = serve(queries, model=model)[2]
    found = []
    for part in (queries[:9], queries[9:]):
        streams = SampleStreams(load(model).encoding)
        every = 0.0 if is_killed else 60.0
        kept = KeptState(tmp_path / "state.json", streams, every=every)
        service, _, some = serve(part, model=model, streams=streams, state=kept)
        if not is_killed:
            service.keep()
        found += some
    assert found == whole


def test_a_true_value_is_that_of_the_last_sample(serve, stream_export, stream_log, tmp_path):
    model, samples = stream_export / "model.twin", samples_of(stream_log, 7)
    stores = StoreFolder(load(model), tmp_path)
    bursts = [[message("plant/press/raw", one)] for one in samples]
    truth = message("plant/press/truth", 40)
    service, _, _ = serve(bursts[0], [truth], *bursts[1:], [truth], model=model, stores=stores)
    assert service.status.bad == 1  # there was no query yet
    assert service.status.learnt == 1
    (x,) = stores.device("press").points.X
    assert x[:2].tolist() == pytest.approx([samples[-1]["temp"], samples[-1]["flow"]])
    assert x[-1] == pytest.approx(samples[-1]["flow"] - samples[-2]["flow"], abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"at": "soon"}, "at: 'soon' cannot be read as a time"),
        ({"device": [1]}, "device: names no group"),
        ({"temp": "warm"}, 'temp: "warm" is not a number'),
    ],
)
def test_a_bad_sample_is_counted_and_is_none(serve, stream_export, stream_log, wrong, words):
    model, samples = stream_export / "model.twin", samples_of(stream_log, 7)
    queries = [message("plant/press/raw", one) for one in samples]
    bad = message("plant/press/raw", {**samples[3], **wrong})
    service, connection, found = serve([*queries[:3], bad, *queries[3:]], model=model)
    assert service.status.bad == 1
    assert connection.published[-2][1]["last_bad"]["reason"].startswith(words)
    assert found == serve(queries, model=model)[2]
