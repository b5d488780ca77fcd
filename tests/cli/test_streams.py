"""``--derive``: trained on windows, and answered from samples with the same bits."""

import json
from pathlib import Path

import numpy as np
import pytest

import twinedge

GOLDEN = Path(__file__).parents[1] / "golden"
KEPT = ("--keep", "at,device")


@pytest.fixture
def answered(monkeypatch, cli, tmp_path):
    """Answer lines with a model, and return the answers."""

    def run(model, text, *options):
        source = tmp_path / "lines"
        source.write_text(text)
        with source.open() as file:
            monkeypatch.setattr("sys.stdin", file)
            found = cli("predict", model, "-", *options)
        source.unlink()
        assert found.code == 0
        return found.out.splitlines()

    return run


@pytest.fixture(scope="module")
def samples(stream_log):
    """The log without its target."""
    lines = [line.rpartition(",")[0] for line in stream_log.read_text().splitlines()]
    return "\n".join(lines) + "\n"


def test_the_run_and_its_export_say_what_is_derived(stream_run, stream_export, cli):
    run = twinedge.load(stream_run)
    written = "temp@1, mean(temp, 6 min), max(flow, 4), std(flow, 5), slope(temp, 6), delta(flow)"
    assert run.encoding.derivation == written
    device = twinedge.load(stream_export)
    assert device.encoding.derivation == written
    assert device.encoding.derived == run.encoding.derived
    clock = device.encoding.derived[0].clock
    assert (clock.time, clock.group, clock.gap, clock.ticks) == ("at", "device", 90_000, 1000)
    out = cli("inspect", stream_export).out
    assert "derived from 6 samples of 'temp'" in out


def test_lines_get_the_answers_of_the_table(stream_log, stream_export, samples, cli, answered):
    table = cli("predict", stream_export, stream_log, *KEPT)
    assert "20 rows without a full window of 6 samples: no prediction for them" in table.err
    assert answered(stream_export, samples, *KEPT) == table.out.splitlines()
    shuffled = samples.splitlines()
    halves = shuffled[1:261], shuffled[261:]
    mixed = "\n".join([shuffled[0], *(line for pair in zip(*halves, strict=True) for line in pair)])
    assert sorted(answered(stream_export, mixed, *KEPT)) == sorted(table.out.splitlines())


def test_a_run_leaves_the_same_rows_without_a_prediction(stream_log, stream_run, cli):
    _, *rows = cli("predict", stream_run, stream_log, *KEPT).out.splitlines()
    empty = [number for number, row in enumerate(rows) if row.endswith(",,,,,,,")]
    assert empty == [part + k for part in (0, 130, 260, 390) for k in range(5)]
    assert rows[0].startswith("1700000000,A,,")


def test_json_lines_say_how_many_samples_are_lacking(stream_export, samples, answered):
    header, *rows = samples.splitlines()
    found = list(map(json.loads, answered(stream_export, samples, *KEPT, "--json")))
    assert found[0] == {"at": 1700000000, "device": "A", "lacks": 5}
    assert found[130]["lacks"] == 5  # after the gap
    assert len(found) == len(rows)
    names = header.split(",")
    as_json = [
        {
            name: cell if name in ("device", "mode") else float(cell) if cell else None
            for name, cell in zip(names, row.split(","), strict=True)
        }
        for row in rows
    ]
    again = answered(stream_export, "".join(f"{json.dumps(one)}\n" for one in as_json))
    assert [json.loads(one).get("prediction") for one in again] == [
        one.get("prediction") for one in found
    ]


def test_a_state_continues_where_it_stopped(stream_export, samples, answered, tmp_path):
    header, *rows = samples.splitlines()
    whole = answered(stream_export, samples, *KEPT)
    state = ("--state", tmp_path / "state.json")
    found = []
    for start in range(0, len(rows), 200):
        part = "\n".join([header, *rows[start : start + 200], ""])
        found += answered(stream_export, part, *KEPT, *state)[1:]
    assert found == whole[1:]


def _damaged(text):
    state = json.loads(text)
    yield "no state of streams", "[" * 100_000
    yield "no state of streams", json.dumps([])
    yield "no state of streams", text[: len(text) // 2]
    yield "version", json.dumps({**state, "version": 2})
    yield "other derived inputs", json.dumps({**state, "inputs": "0" * 32})
    (one, *_) = state["streams"].values()
    for wrong in (
        *({"count": 99}, {"count": -1}, {"count": 2.0}, {"when": "1"}, {"samples": {}}, {}),
        {"samples": {"temp": [2**23] * 6, "flow": one["samples"]["flow"]}},
        {"samples": {"temp": [0] * 700, "flow": one["samples"]["flow"]}},
        {"samples": {"temp": None, "flow": []}},
    ):
        broken = {**one, **wrong} if wrong else wrong
        yield "damaged", json.dumps({**state, "streams": {"A": broken}})
    yield "damaged", json.dumps({**state, "streams": []})


def test_a_hostile_state_is_refused_and_left_alone(
    stream_export, samples, answered, cli, tmp_path, monkeypatch
):
    path = tmp_path / "state.json"
    answered(stream_export, "\n".join(samples.splitlines()[:30]), "--state", path)
    for words, text in [*_damaged(path.read_text())]:
        path.write_text(text)
        found = cli("predict", stream_export, "-", "--state", path)
        assert (found.code, found.out) == (2, "")
        assert words in found.err
        assert found.err.count("\n") == 1
        assert path.read_text() == text


def test_a_faulty_sample_has_no_effect(stream_export, samples, answered):
    header, *rows = samples.splitlines()[:20]
    faulty = [header]
    for row in rows:
        faulty += [row, row.replace("1700", "17 0", 1), row + ",1", row.replace(",A,", ",,")]
    found = answered(stream_export, "\n".join(faulty))
    assert all(one.startswith("error: ") for k, one in enumerate(found[1:]) if k % 4)
    assert found[1::4] == answered(stream_export, "\n".join([header, *rows]))[1:]


def test_each_group_learns_in_a_store_of_its_own(stream_export, samples, answered, tmp_path):
    header, *rows = samples.splitlines()
    lines = [row + (",=60" if ",B," in row and k % 4 == 0 else "") for k, row in enumerate(rows)]
    folder = tmp_path / "stores"
    options = ("--group", "device", "--store", folder, "--create-store", *KEPT)
    found = answered(stream_export, "\n".join([header, *lines]), *options)
    plain = answered(stream_export, samples, *KEPT)
    assert found[: len(rows) // 2] == plain[: len(rows) // 2]
    assert [one.name for one in folder.iterdir()] == ["B.store"]
    waiting = [one for one in found if one.endswith(",,,,,,,")]
    assert len(waiting) == 20  # without a full window there is nothing to learn
    with_store = answered(stream_export, samples, "--group", "device", "--store", folder, *KEPT)
    assert with_store[: len(rows) // 2] == plain[: len(rows) // 2]
    answers = [one.split(",") for one in with_store[-100:]]
    before = [one.split(",") for one in plain[-100:]]
    means = [np.mean([float(one[2]) for one in some]) for some in (answers, before)]
    assert abs(means[0] - 60) < abs(means[1] - 60)


def test_evaluate_derives_its_inputs(stream_run, stream_export, stream_log, cli, tmp_path):
    lines = stream_log.read_text().splitlines()
    full = tmp_path / "full.csv"
    full.write_text("\n".join(one if one[-1] != "," else one + "45" for one in lines))
    for model in (stream_run, stream_export):
        found = cli("evaluate", model, full, "--json", "--time", "at", "--group", "device")
        assert found.code == 0
        assert found.json["rows"] == 500
        assert [one["rows"] for one in found.json["groups"]] == [250, 250]
        assert "20 rows without a full window of 6 samples left out" in found.err


def test_predicting_a_table_needs_its_times_and_groups(stream_export, stream_log, cli, tmp_path):
    for gone, words in ((0, "no column 'at' for the times"), (1, "no column 'device'")):
        path = tmp_path / "lacks.csv"
        rows = [line.split(",") for line in stream_log.read_text().splitlines()]
        path.write_text("\n".join(",".join([*one[:gone], *one[gone + 1 :]]) for one in rows))
        found = cli("predict", stream_export, path)
        assert found.code == 2
        assert words in found.err


def test_a_table_has_the_clock_of_the_model_and_a_full_window(
    stream_export, stream_log, refused, tmp_path
):
    reason = "the model derives its inputs from samples by the time column 'at', not 'flow'"
    refused("evaluate", stream_export, stream_log, "--time", "flow", says=[reason])
    short = tmp_path / "short.csv"
    rows = [row for row in stream_log.read_text().splitlines()[:5] if row[-1] != ","]
    short.write_text("\n".join(rows))
    reason = "no row is the end of a full window of 6 samples"
    refused("evaluate", stream_export, short, says=[f"short.csv: {reason}"])


def test_options_of_lines_are_for_lines(stream_export, stones_export, stream_log, refused):
    refused("predict", stream_export, stream_log, "--state", "s", says=["for lines"])
    refused("predict", stones_export, "-", "--state", "s", says=["derived inputs", "has none"])
    onnx = stones_export / "model.onnx"
    refused("predict", onnx, "-", "--watch", says=["cannot be watched: only a .twin can"])
    refused("predict", stream_export, stream_log, "--keep", "att", says=["'att' to keep", "'at'"])


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("odd-silu.twin", "has no intervals: there is nothing to watch"),
        ("three-targets-of-everything.twin", "has several targets: a watch is for one"),
    ],
)
def test_what_cannot_be_watched_is_refused(refused, file, says):
    refused("predict", GOLDEN / file, "-", "--watch", says=[says])


def test_the_budget_counts_the_samples(stream_export, stream_run, cli):
    found = cli("budget", stream_export / "model.twin", "--json").json
    assert found["window_bytes"] > 100
    assert cli("budget", stream_run, "--json").json["window_bytes"] == found["window_bytes"]
    words = f"which take {found['window_bytes']} bytes of RAM"
    assert words in cli("budget", stream_export).out


def drifting(samples):
    """Lines with true values: those of the second device have moved."""
    header, *rows = samples.splitlines()
    values = [f",={40 if ',A,' in row else 70}" if k % 4 == 0 else "" for k, row in enumerate(rows)]
    return header, [row + value for row, value in zip(rows, values, strict=True)]


def test_a_watch_adapts_intervals_and_flags_drift(stream_export, samples, answered, tmp_path):
    header, rows = drifting(samples)
    options = ("--watch", "--json", *KEPT)
    found = list(map(json.loads, answered(stream_export, "\n".join([header, *rows]), *options)))
    plain = answered(stream_export, "\n".join([header, *rows]), "--json", *KEPT)
    state = ("--state", tmp_path / "state.json")
    parts = [
        one
        for start in (0, 300)
        for one in answered(
            stream_export,
            "\n".join([header, *rows[start : start + 300], ""]),
            *options,
            *state,
            "--group",
            "device",
        )
    ]
    known = [one for one in found if "flags" in one]
    assert len(known) == 500
    other = [one for one in map(json.loads, plain) if "prediction" in one]
    assert [one["prediction"] for one in known] == [one["prediction"] for one in other]
    assert known[0]["low"] == other[0]["low"]
    assert known[-1]["low"] != other[-1]["low"]
    assert known[0]["flags"] == []
    assert "above" in known[-1]["flags"]
    assert len(parts) == len(found)
    saved = json.loads((tmp_path / "state.json").read_text())["watches"]
    assert {name: len(one) for name, one in saved.items()} == {"A": 144, "B": 144}


def test_a_hostile_state_of_a_watch_is_refused(stream_export, samples, answered, cli, tmp_path):
    path = tmp_path / "state.json"
    header, rows = drifting(samples)
    answered(stream_export, "\n".join([header, *rows[:30]]), "--watch", "--state", path)
    state = json.loads(path.read_text())
    good = state["watches"]["A"]
    for wrong in ("xyz", good[:-2], "00" * 72, good[:20] + "ff" + good[22:], 5, None):
        path.write_text(json.dumps({**state, "watches": {"A": wrong}}))
        found = cli("predict", stream_export, "-", "--watch", "--state", path)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    path.write_text(json.dumps({**state, "watches": []}))
    assert cli("predict", stream_export, "-", "--watch", "--state", path).code == 2
