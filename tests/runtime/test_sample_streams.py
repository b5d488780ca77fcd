"""``device.stream()``: samples in, predictions out."""

import resource
from datetime import datetime, timezone

import numpy as np
import pytest

import twinedge
from twinedge.data import read_features
from twinedge.data.features import SideColumn
from twinedge.encoding.derived import Clock, Derived
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.times import Notation
from twinedge.runtime.sample_streams import SampleStreams


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
