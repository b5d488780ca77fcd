"""``device.stream()``: samples in, predictions out."""

import json
import resource
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import twinedge
from twinedge.data import read_features
from twinedge.data.features import SideColumn
from twinedge.encoding.derived import Clock, Derived
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.times import NUMBERS, Notation
from twinedge.pack import read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.sample_streams import SampleStreams
from twinedge.runtime.store_folder import StoreFolder
from twinedge.runtime.streaming import Replies

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def device(stream_export):
    return twinedge.load(stream_export)


@pytest.fixture(scope="module")
def samples(stream_log):
    """Samples of the first device, with times."""
    rows = [line.split(",") for line in stream_log.read_text().splitlines()[1:261]]
    return [
        {"at": int(row[0]), "temp": float(row[2] or "nan"), "flow": float(row[3]), "mode": row[4]}
        for row in rows
    ]


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_stream_predicts_what_the_table_does(stream_export, stream_log, samples, backend):
    device = twinedge.load(stream_export / "model.twin", backend)
    ready = SideColumn("")
    X, _ = read_features(stream_log, device.encoding, fillable=device.fillable, ready=ready)
    stream = device.stream()
    for row, (sample, full) in enumerate(zip(samples, ready.values[:260], strict=True)):
        found = stream.push(sample)
        assert (found is not None) == stream.ready == full
        if found is not None:
            expected = device.predict_all(X[row : row + 1])
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other[0])


def test_a_time_may_be_written_in_any_way(device, samples):
    streams = [device.stream() for _ in range(4)]
    for sample in samples[:10]:
        at = sample["at"]
        bare = {name: one for name, one in sample.items() if name != "at"}
        moment = datetime.fromtimestamp(at, timezone.utc)
        found = [
            streams[0].push(sample),
            streams[1].push(bare, time=str(at)),
            streams[2].push(bare, time=np.datetime64(moment.replace(tzinfo=None))),
            streams[3].push(list(bare.values()), time=at),
        ]
        means = {None if one is None else float(one.mean) for one in found}
        assert len(means) == 1
    assert repr(streams[0]).endswith("model.twin: ready>")


def test_a_sample_without_a_time_was_measured_now(device, samples, monkeypatch):
    now = 0.0
    monkeypatch.setattr("twinedge.runtime.sample_streams.time.time", lambda: now)
    stream = device.stream()
    for now in [*range(0, 360, 60), 600]:
        stream.push({name: one for name, one in samples[0].items() if name != "at"})
        assert stream.lacks == max(0, 5 - now // 60 if now < 600 else 5)


def test_a_gap_a_reset_and_time_that_goes_back_begin_anew(device, samples):
    stream = device.stream()
    for sample in samples[:7]:
        stream.push(sample)
    assert stream.ready
    stream.push({**samples[7], "at": samples[7]["at"] + 120})
    assert stream.lacks == 5
    stream.push(samples[7])
    assert stream.lacks == 5
    stream.push(samples[8])
    assert stream.lacks == 4
    stream.reset()
    assert (stream.lacks, stream.ready) == (6, False)


@pytest.mark.parametrize(
    ("sample", "time", "words"),
    [
        ({"temp": 1.0, "flow": 2.0}, 0, "no column 'mode'"),
        ({"temp": 1.0, "flow": 2.0, "mode": "eco"}, "soon", "at: 'soon' cannot be read as a time"),
        ({"temp": 1.0, "flow": 2.0, "mode": "eco"}, 1e300, "is no time"),
        ({"temp": 1.0, "flow": 2.0, "mode": "eco"}, np.datetime64("NaT"), "is no time"),
        ({"temp": 1.0, "flow": 2.0, "mode": "eco"}, float("nan"), "is no time"),
        ({"temp": 1.0, "flow": 2.0, "mode": "eco"}, True, "is no time"),
        ([[1.0, 2.0]], 0, "a sample is one row"),
    ],
)
def test_what_is_no_sample_is_refused_and_has_no_effect(device, samples, sample, time, words):
    stream = device.stream()
    stream.push(samples[0])
    before = stream.state
    with pytest.raises(twinedge.InputError, match=words):
        stream.push(sample, time=time)
    assert stream.state == before


def test_a_saved_stream_goes_on(device, samples, tmp_path):
    whole, path = device.stream(), tmp_path / "state.json"
    for sample in samples[:40]:
        part = device.stream()
        part.load(path)
        one, other = whole.push(sample), part.push(sample)
        assert (None if one is None else one.mean) == (None if other is None else other.mean)
        part.save(path)


def test_a_model_without_derived_inputs_answers_every_sample(stones_export):
    device = twinedge.load(stones_export)
    stream = device.stream()
    assert stream.ready
    sample = {"carat": 1.0, "cut": "Fair", "depth": 61.0, "grade": 1}
    assert stream.push(sample).mean == device.predict(sample)[0]


def test_a_file_too_large_for_a_state_is_not_read(device, complaint, tmp_path):
    path = tmp_path / "state.json"
    with path.open("wb") as file:
        file.truncate(2**28 + 1)
    message = complaint(device.stream().load, path)
    assert message.startswith(f"{path}: it is no state of streams; name another file")


def test_a_value_that_nothing_stands_for_may_not_be_missing(complaint):
    stream = twinedge.load(GOLDEN / "release-0.1" / "model.twin").stream()
    sample = {"hours": 0.5, "metal": "iron", "load": np.nan}
    message = complaint(stream.push, sample)
    assert message == "load is missing, and the model has no value to fill in"
    assert stream.push({**sample, "load": 300.0}) is not None


def test_rows_of_a_frame_are_no_stream(device, samples, complaint):
    message = complaint(device.predict, pd.DataFrame(samples[:2]))
    assert message.startswith("the model needs 'temp@1', which is derived from consecutive samples")


@pytest.fixture
def altered(stream_export, tmp_path):
    """Load the pack of the stream with some of its parts replaced: ``altered(domain=...)``."""

    def make(**parts):
        pack = read_pack((stream_export / "model.twin").read_bytes())
        path = tmp_path / "altered.twin"
        path.write_bytes(write_pack(replace(pack, **{k: v(pack) for k, v in parts.items()})))
        return twinedge.load(path)

    return make


def unfilled(pack):
    """The domain of a pack in which only what is measured may be missing."""
    fill = pack.domain.fill.copy()
    fill[4:] = NO_FILL
    return replace(pack.domain, fill=fill)


def test_a_window_that_cannot_be_filled_has_no_answer(altered, samples):
    device = altered(domain=unfilled)
    lines = [json.dumps({**one, "device": "A"}) for one in samples[:8]]
    lines[6] = json.dumps({**samples[6], "device": "A", "flow": None})
    answers = list(map(json.loads, Replies(device).to(lines)))
    assert "prediction" in answers[5]
    error = "max(flow, 4) is not known: a sample of its window is missing"
    assert [one.get("error") for one in answers[5:]] == [None, error, error]
    stream = device.stream()
    found = [stream.push(json.loads(one)) for one in lines]
    assert found[5] is not None
    assert (found[6], found[7]) == (None, None)


def counted(pack):
    """The metadata of a pack whose times are numbers, as of a counter."""
    text = json.dumps(pack.metadata).replace('"unit": "seconds"', f'"unit": "{NUMBERS}"')
    return json.loads(text)


def test_a_point_without_a_time_since_1970_is_learnt_as_of_now(altered, samples, tmp_path):
    device, now = altered(metadata=counted), time.time()
    replies = Replies(device, stores=StoreFolder(device, tmp_path / "stores"), group="device")
    lines = [{**one, "at": 60 * k, "device": "A"} for k, one in enumerate(samples[:6])]
    replies.to([json.dumps(one) for one in (*lines[:5], {**lines[5], "=": 40})])
    (when,) = StoreFolder(device, tmp_path / "stores").device("A").points.times
    assert now - 1 <= when <= time.time()


def streams_of(most):
    clock = Clock("t", Notation(unit="seconds"), None, 1.0, 90, 60.0)
    kinds = ("lag", "delta", "min", "max", "mean", "std", "slope")
    derived = [Derived(kind, "v", 8, 0.0, 10, clock) for kind in kinds]
    encoding = Encoding([("v", None), *((f"{one.statistic} v", one) for one in derived)])
    return SampleStreams(encoding, most)


def test_of_too_many_streams_the_most_silent_is_forgotten():
    streams = streams_of(3)
    for name in "abcad":
        streams.push([1.0], 0.0, name)
    assert len(streams) == 3
    assert [streams.lacks(name) for name in "abcd"] == [7, 9, 8, 8]


@pytest.mark.slow
def test_ten_million_samples_take_no_more_memory_than_one_million():
    streams, rng = streams_of(100), np.random.default_rng(0)
    values = rng.normal(0, 100, 10_007).tolist()
    values[::501] = [float("nan")] * len(values[::501])
    names = [str(k) for k in range(150)]  # more than there is room for
    resident = []
    for k in range(10_000_000):
        at = 60.0 * k + (600.0 if k % 9973 == 0 else 0.0)
        streams.push([values[k % 10_007]], at, names[k // 1000 % 150])
        if k + 1 in (1_000_000, 10_000_000):
            resident.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert resident[1] - resident[0] < 1024  # kilobytes, of the most there ever was
