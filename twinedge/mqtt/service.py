"""The service: answers what a broker brings, learns from true values, and says how it is.

Queries that arrive together are predicted together. Nothing that arrives can end it: what cannot
be used is counted, and the status says why. Of sites only so many are remembered, the latest.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.errors import InputError
from twinedge.mqtt.broker import Connection, Message
from twinedge.mqtt.home_assistant import Discovery
from twinedge.mqtt.payloads import PayloadReader, Sample, Truth
from twinedge.mqtt.status import Status
from twinedge.mqtt.topics import Topics
from twinedge.runtime.device import Device
from twinedge.runtime.sample_streams import KeptState, SampleStreams
from twinedge.runtime.store_folder import StoreFolder
from twinedge.runtime.stream_reader import Query, QueryError
from twinedge.runtime.streaming import Replies
from twinedge.version import __version__

MOST_SITES = 10_000
_PATIENCE = 5.0  # seconds for the last confirmations
_LONGEST = 200  # characters of a site's name
_TURN = 1.0  # seconds to wait for a message


@dataclass
class _Site:
    has_learnt: bool  # whether there may be a store
    query: Query | None = None  # the last one, and its answer
    answer: dict[str, Any] | None = None


class _Query(NamedTuple):
    message: Message
    topic: str  # of its prediction
    site: _Site
    query: Query
    kept: dict[str, Any]


class Service:
    """Answers queries of many sites.

    Parameters
    ----------
    device : Device
        The model that predicts.
    topics : Topics
        Where queries come from and answers go.
    status_topic : str
        Where the service says how it is.
    coverage : float, optional
        Coverage of the intervals; by default that of the device.
    neighbors : int, optional
        How many nearest anchors to use; by default as many as the file says.
    keep : tuple of str
        Keys of a query that its answer repeats.
    stores : StoreFolder, optional
        What keeps the points that are learnt; without it nothing is.
    discovery : Discovery, optional
        How sites are announced to Home Assistant; by default they are not.
    every : float
        Seconds between two messages on the status topic.
    state : KeptState, optional
        What keeps the last samples between two runs; a model without derived inputs has none.
    streams : SampleStreams, optional
        Their windows; by default there are none yet.
    most_sites : int
        Of how many sites the last query is remembered.
    """

    def __init__(
        self,
        device: Device,
        topics: Topics,
        status_topic: str,
        *,
        coverage: float | None = None,
        neighbors: int | None = None,
        keep: tuple[str, ...] = (),
        stores: StoreFolder | None = None,
        discovery: Discovery | None = None,
        every: float = 10.0,
        state: KeptState | None = None,
        streams: SampleStreams | None = None,
        most_sites: int = MOST_SITES,
    ) -> None:
        self._device, self._topics, self._status_topic = device, topics, status_topic
        self._coverage = coverage or device.usual_coverage
        self._stores, self._discovery, self._every = stores, discovery, every
        self._reader = PayloadReader(device, keep)
        self._replies = Replies(device, neighbors, coverage)
        self._state = state
        self._streams = SampleStreams(device.encoding, most_sites) if streams is None else streams
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._most_sites = most_sites
        self._next_status = 0.0
        self._connection: Connection
        self.status = Status()

    def run(self, connection: Connection, stopped: Callable[[], bool]) -> None:
        """Serve until it is ``stopped``, then say goodbye to the broker.

        Raises
        ------
        InputError
            If the broker refuses this program.
        """
        self._connection = connection
        while not stopped():
            wait = min(_TURN, self._next_status - time.monotonic())
            self._take(connection.receive(max(wait, 0.0)))
            if connection.connected and time.monotonic() >= self._next_status:
                self.report()
            connection.flush()
            if self._state is not None:
                self._state.tick()
        connection.publish(self._status_topic, offline(), retain=True)
        connection.close(_PATIENCE)

    def keep(self) -> None:
        """Write the last samples to their file, if there is one."""
        if self._state is not None:
            self._state.write()

    def report(self) -> None:
        """Publish the status, which the broker retains."""
        state = {
            "state": "online",
            "model": Path(self._device.info["file"]).name,
            "target": ", ".join(self._device.target_names),
            "topic": self._topics.queries,
            "version": __version__,
            "sites": len(self._sites),
            **self.status.report(),
            **({"waiting": self.status.waiting} if self._device.encoding.derived else {}),
            "claimed_coverage": self._coverage,
            "reconnections": self._connection.reconnections,
        }
        self._connection.publish(self._status_topic, _encoded(state), retain=True)
        self._next_status = time.monotonic() + self._every

    def refuse(self, topic: str, reason: str) -> None:
        """Count something that could not be used."""
        self.status.refuse(topic, reason)

    def _take(self, messages: list[Message]) -> None:
        """Answer messages, and learn from them, in their order."""
        found = ((one, self._topics.site_of(one.topic)) for one in messages)
        known = [(one, *place) for one, place in found if place is not None]
        for is_truth, some in groupby(known, lambda one: one[2]):
            if is_truth:
                for message, site, _ in some:
                    try:
                        self._learn(message, site)
                    except (QueryError, InputError) as error:
                        self.refuse(message.topic, str(error))
                    self._connection.acknowledge(message)
            else:
                self._predict([(message, site) for message, site, _ in some])
        for one in messages:
            if self._topics.site_of(one.topic) is None:  # of an earlier subscription
                self._connection.acknowledge(one)

    def _predict(self, messages: list[tuple[Message, str]]) -> None:
        """Answer queries, those of all sites that have learnt nothing at once."""
        batches: dict[int, tuple[Device, list[_Query]]] = {}
        for message, name in messages:
            try:
                sample = self._reader.query(message.payload)
                site = self._site(name)
                query = self._derived(message, name, site, sample)
            except QueryError as error:
                self.refuse(message.topic, str(error))
                self._connection.acknowledge(message)
                continue
            if query is None:
                self.status.waiting += 1
                self._connection.acknowledge(message)
                continue
            try:
                device = self._device_of(name, site)
            except InputError as error:
                self.refuse(message.topic, str(error))
                site.has_learnt, device = False, self._device
            batch = batches.setdefault(id(device), (device, []))[1]
            batch.append(_Query(message, self._topics.prediction(name), site, query, sample.kept))
        for device, batch in batches.values():
            answers = self._replies.records(np.array([one.query for one in batch]), device)
            for one, answer in zip(batch, answers, strict=True):
                one.site.query, one.site.answer = one.query, answer
                self.status.queries += 1
                self.status.outside += bool(answer["outside"])
                self.status.missing += bool(answer.get("missing"))
                payload = _encoded({**one.kept, **answer})
                self._connection.publish(one.topic, payload, answers=one.message)

    def _derived(self, message: Message, name: str, site: _Site, sample: Sample) -> Query | None:
        """Add what is derived from the samples of a site; None until its window is full."""
        if not self._device.encoding.derived:
            return sample.query
        stream = f"{name}/{sample.group}" if sample.group else name
        if message.repeated and sample.is_dated and self._streams.ends_at(sample.seconds, stream):
            return site.query  # the broker does not know that it was answered
        query, lacks = self._streams.push(sample.query, sample.seconds, stream)
        if lacks:
            site.query = site.answer = None  # a true value would belong to a sample before a gap
            return None
        unknown = np.isnan(query) & ~self._device.fillable
        if unknown.any():
            absent = self._device.encoding.inputs[int(unknown.argmax())]
            raise QueryError(f"{absent} is not known: a sample of its window is missing")
        site.query, site.answer = query, None
        return query

    def _learn(self, message: Message, name: str) -> None:
        """Compare a true value with the prediction, and learn it."""
        truth = self._reader.truth(message.payload)
        site = self._site(name)
        query, answer = (truth.query, None) if truth.query else (site.query, site.answer)
        if query is None:
            raise QueryError("there is no query yet that it could be the true value of")
        x = np.array(query)
        if message.repeated and self._has_learnt(name, x, truth):
            return
        if answer is None:
            answer = self._replies.records(x[None], self._device_of(name, site))[0]
        self._compare(answer, truth)
        if self._stores is not None:
            when = int(time.time()) if truth.time is None else truth.time
            self._stores.learn(name, x, truth.values, when)
            site.has_learnt = True
            self.status.learnt += 1

    def _compare(self, answer: dict[str, Any], truth: Truth) -> None:
        """Count whether true values were within their intervals."""
        low, high = answer.get("low"), answer.get("high")
        for name, value in zip(self._device.target_names, truth.values, strict=True):
            ends = (one[name] if isinstance(one, dict) else one for one in (low, high))
            least, most = ends
            if least is not None and most is not None and not isnan(value):
                self.status.truths += 1
                self.status.covered += least <= value <= most

    def _has_learnt(self, name: str, x: np.ndarray, truth: Truth) -> bool:
        """Whether a true value was learnt before the broker sent it again."""
        device = None if self._stores is None else self._stores.device(name)
        if device is None:
            return False
        points = device.points
        known = np.column_stack([points.X, points.y])
        point = np.array([*x, *truth.values], np.float32)
        return bool(((known == point) | np.isnan(known) & np.isnan(point)).all(axis=1).any())

    def _site(self, name: str) -> _Site:
        """Return what is known of a site; a new one is announced."""
        site = self._sites.get(name)
        if site is None:
            if len(name) > _LONGEST:
                raise QueryError(f"the name of the site has more than {_LONGEST} characters")
            site = self._sites[name] = _Site(has_learnt=self._stores is not None)
            self._announce(name)
            if len(self._sites) > self._most_sites:
                self._sites.popitem(last=False)
        self._sites.move_to_end(name)
        return site

    def _device_of(self, name: str, site: _Site) -> Device:
        """Return the device that answers for a site: one of its own, once it has learnt."""
        if self._stores is not None and site.has_learnt:
            found = self._stores.device(name)
            site.has_learnt = found is not None
            return found or self._device
        return self._device

    def _announce(self, name: str) -> None:
        if self._discovery is not None:
            found = self._discovery.messages(name, self._device, self._topics, self._status_topic)
            for topic, content in found:
                self._connection.publish(topic, _encoded(content), retain=True)


def offline() -> bytes:
    """Return the status of a service that is gone, which says nothing that could be out of date."""
    return _encoded({"state": "offline"})


def _encoded(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()
