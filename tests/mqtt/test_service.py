"""What the service does with single messages, without a broker."""

import json
import time

import pytest

from twinedge.mqtt.broker import Message
from twinedge.mqtt.home_assistant import Discovery
from twinedge.mqtt.service import Service
from twinedge.mqtt.topics import Topics
from twinedge.runtime.loading import load
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

    def run(*bursts, **options):
        service = Service(load(pack), Topics("plant/+/raw"), "status", **options)
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
    assert service.status.bad == 1  # said once, not for every query
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
