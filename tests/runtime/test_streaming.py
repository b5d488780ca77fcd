"""Lines in, lines out: CSV and JSON, in order, without delay, with the bits of one call."""

import json
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from twinedge.encoding.cells import MISSING, looks_missing
from twinedge.encoding.encoder import Encoding
from twinedge.pack import Domain, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.loading import load
from twinedge.runtime.streaming import LONGEST, Replies, serve

FEATURES = {"angle": (-1, 1), "offset": (-5, 15), "idle, mostly": (-120, 80)}


@pytest.fixture(scope="module")
def device(random_pack, tmp_path_factory):
    """A device with commas in its names; its predictions do not matter here."""
    features = [{"name": name, "min": a, "max": b} for name, (a, b) in FEATURES.items()]
    pack = replace(
        random_pack(np.random.default_rng(0), features=3, neighbors=0, scaled=False),
        metadata={"features": features, "target": "water, level"},
    )
    path = tmp_path_factory.mktemp("lines") / "model.twin"
    path.write_bytes(write_pack(pack))
    return load(path, "numpy")


@pytest.fixture(scope="module")
def calibrated(random_pack, tmp_path_factory):
    """A device with intervals, and fill values for offset and idle."""
    pack = random_pack(
        np.random.default_rng(1), features=3, neighbors=0, weights="normal", scaled=True
    )
    features = [{"name": name} for name in FEATURES]
    least, most = (np.array(ends) for ends in zip(*FEATURES.values(), strict=True))
    pack = replace(
        pack,
        x_offset=np.zeros(3, np.float32),
        x_gain=np.full(3, 64, np.float32),
        intervals=replace(pack.intervals, quantiles={500: 50000, 900: 100000, 950: 120000}),
        domain=Domain(
            (least * 64).astype(np.int16),
            (most * 64).astype(np.int16),
            np.array([NO_FILL, 6 * 64, -20 * 64], np.int16),
        ),
        metadata={
            "features": [one | {"min": 0, "max": 0} for one in features],
            "target": "level",
        },
    )
    path = tmp_path_factory.mktemp("calibrated") / "model.twin"
    path.write_bytes(write_pack(pack))
    return load(path, "native")


def answered(device, *lines, **settings):
    return Replies(device, **settings).to(lines)


def expected(device, x):
    mean, spread = device.predict(np.array([x]), return_std=True)
    return f"{mean[0]:.7g},{spread[0]:.7g}"


def test_a_line_of_numbers_is_answered_with_prediction_and_spread(device):
    line = expected(device, [0.5, 6.0, -20.0])
    assert answered(device, "0.5,6,-2e1") == [f"{line},"]
    assert answered(device, " 0.5 ,\t6, -20 \r".rstrip("\r")) == [f"{line},"]


def test_json_is_answered_in_json(device):
    mean, spread = expected(device, [0.5, 6.0, -20.0]).split(",")
    answer = {"prediction": float(mean), "spread": float(spread), "outside": []}
    query = {"idle, mostly": -20, "angle": 0.5, "offset": 6.0, "more": None}
    assert [json.loads(one) for one in answered(device, "[0.5, 6, -20]", json.dumps(query))] == [
        answer,
        answer,
    ]


def test_features_outside_the_training_range_are_named(device):
    (plain,) = answered(device, "9,6,-1e9")
    assert plain == expected(device, [9, 6, -1e9]) + ',"angle|idle, mostly"'
    (answer,) = answered(device, "[9, 6, -1e9]")
    assert json.loads(answer)["outside"] == ["angle", "idle, mostly"]
    assert answered(device, "1e30,6,-20")[0].endswith(",angle")
    assert answered(device, "1e30,-1e30,-20")[0].endswith(",angle|offset")


def test_a_header_may_come_first_and_orders_the_columns(device, monkeypatch):
    monkeypatch.setattr(device, "encoding", Encoding.plain(("angle", "offset", "idle mostly")))
    header = 'note,offset,"idle mostly",angle'
    good = expected(device, [0.5, 6.0, -20.0]) + ","
    for note in ("7", "nan", "dry"):
        assert answered(device, header, f"{note},6,-20,0.5", "7,6,-20,0.5\r") == [
            '"water, level",spread,outside',
            good,
            good,
        ]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", "1 values, expected 3"),
        ("1,2", "2 values, expected 3"),
        ("1,2,3,4", "4 values, expected 3"),
        ("1,two,3", "offset: 'two' is not a number"),
        ("1,,3", "offset: '' is not a number"),
        ("nan,2,3", "angle: 'nan' is not a number"),
        ("angle,offset", "2 values"),
        ("\ufffd", "1 values"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1, 2]", "2 values, expected 3"),
        ('[1, "2", 3]', 'offset: "2" is not a number'),
        ("[1, true, 3]", "offset: true is not a number"),
        ("[1, null, 3]", "offset: null is not a number"),
        (",6,-20", "angle: '' is not a number"),
        ("[1, NaN, 3]", "offset: 'nan' is not a number"),
        ("[1, 1" + "0" * 400 + ", 3]", "the number is too large"),
        ("[1, -Infinity, 3]", "offset: -Infinity is not a finite number"),
        ('{"angle": 1}', "offset is missing"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_line_that_cannot_be_read_is_answered_with_an_error(device, line, word):
    good = expected(device, [0.5, 6.0, -20.0]) + ","
    first, answer, last = answered(device, "0.5,6,-20", line, "0.5,6,-20")
    assert first == last == good
    if line.startswith(("[", "{")):
        assert word in json.loads(answer)["error"]
    else:
        assert answer.startswith("error: ")
        assert word in answer


def as_lines(device, x, coverage=None):
    """Answers to lines, from one call of the device."""
    found = device.predict_all(x, coverage)
    low, high = device.predict_interval(x, coverage or 0.9).T
    columns = (found.mean, found.spread, found.outside, found.scale, low, high, found.missing)
    return [",".join(map(as_cell, row)) for row in zip(*columns, strict=True)]


def as_cell(value):
    """A number, or the names of the features that are flagged."""
    if not np.ndim(value):
        return f"{value:.7g}"
    names = "|".join(np.array(list(FEATURES))[value])
    return f'"{names}"' if "," in names else names


def test_intervals_have_names_in_json_and_in_a_header(calibrated, monkeypatch):
    found = calibrated.predict_all([[0.5, 6.0, np.nan]])
    (answer,) = map(json.loads, answered(calibrated, "[0.5, 6, null]"))
    fields = ["prediction", "spread", "outside", "scale", "low", "high", "missing"]
    assert list(answer) == fields
    assert (answer["outside"], answer["missing"]) == ([], ["idle, mostly"])
    for name in ("spread", "scale", "low", "high"):
        assert answer[name] == float(f"{getattr(found, name)[0]:.7g}")
    monkeypatch.setattr(calibrated, "encoding", Encoding.plain(("angle", "offset", "idle")))
    head, line = answered(calibrated, "offset,idle,angle", "6,,0.5")
    assert head == ",".join(["level", *fields[1:]])
    assert line.endswith(",idle")
    assert line.startswith(f"{found.mean[0]:.7g},")


def test_a_missing_value_is_filled_in_where_something_stands_for_it(calibrated):
    filled = answered(calibrated, "0.5,6,-20")[0].rstrip(",")
    for word in sorted(MISSING):
        assert looks_missing(word)
        for spelled in (word, f" {word.upper()} "):
            assert answered(calibrated, f"0.5,{spelled},-20") == [f"{filled},offset"]
            (answer,) = answered(calibrated, f"{spelled},6,-20")
            assert answer.startswith("error: angle: '")
            assert answer.endswith("' is not a number")
    assert answered(calibrated, "0.5,,") == [f'{filled},"offset|idle, mostly"']
    assert answered(calibrated, "0.5,nan,nan", "0.5,6,-20") == [
        f'{filled},"offset|idle, mostly"',
        f"{filled},",
    ]
    assert json.loads(answered(calibrated, "[0.5, NaN, -20]")[0])["missing"] == ["offset"]


def test_a_blank_line_is_no_missing_value(random_pack, tmp_path):
    pack = random_pack(np.random.default_rng(5), features=1, scaled=True)
    domain = replace(pack.domain, fill=np.zeros(1, np.int16))
    (tmp_path / "model.twin").write_bytes(write_pack(replace(pack, domain=domain)))
    device = load(tmp_path / "model.twin")
    assert answered(device, "", " ") == 2 * ["error: x0: '' is not a number"]
    assert answered(device, "NA")[0].endswith(",x0")


@pytest.mark.parametrize("coverage", [None, 0.5])
def test_lines_have_the_bits_of_one_call_at_any_coverage(calibrated, coverage, served):
    rng = np.random.default_rng(6)
    x = rng.uniform(-1.2, 1.2, (800, 3)) * [1, 10, 100] + [0, 5, -20]
    x[:, 1:][rng.random((800, 2)) < 0.1] = np.nan
    rows = [",".join(map(repr, row)).replace("nan", "") for row in x.tolist()]
    expected = as_lines(calibrated, x, coverage)
    assert answered(calibrated, *rows, coverage=coverage) == expected
    assert [answered(calibrated, row, coverage=coverage) for row in rows[:50]] == [
        [one] for one in expected[:50]
    ]
    text = "\n".join(rows).encode()
    chunks = [text[i : i + 50_000] for i in range(0, len(text), 50_000)]
    assert served(calibrated, *chunks, coverage=coverage) == (expected, None)
    plain = load(calibrated.info["file"], "numpy")
    assert answered(plain, *rows, coverage=coverage) == expected


def test_a_coverage_that_is_not_there_is_refused_before_anything_is_read(
    calibrated, device, served
):
    lines, error = served(calibrated, b"1,2,3\n", coverage=0.99)
    assert lines == []
    assert "it has 0.5, 0.9, 0.95; its" in error
    lines, error = served(device, b"1,2,3\n", coverage=0.9)
    assert lines == []
    assert "has no intervals: " in error


def test_lines_may_arrive_in_any_pieces(device, served):
    good = expected(device, [0.5, 6.0, -20.0]) + ","
    pieces = b"0.5,", b"6,-20\n0.5,6,-2", b"0\r\n", b"0.5,6,-20"
    assert served(device, *pieces) == ([good] * 3, None)
    assert served(device) == ([], None)
    assert served(device, b"\xff\xfe\n0.5,6,-20\n")[0][1] == good


def test_a_line_is_answered_before_the_next_one_comes(device, dialogue):
    exchange = dialogue(device)
    for _ in range(3):
        assert exchange(b"0.5,6,-20\n") == expected(device, [0.5, 6.0, -20.0]) + ",\n"


def test_a_flood_is_answered_in_order(device, served):
    compiled = load(device.info["file"], "native", threads=2)
    x = np.random.default_rng(2).uniform(-1, 1, (2000, 3)) * [1, 5, 80]
    rows = [",".join(map(repr, row)) for row in x.tolist()]
    rows[1234] = rows[1999] = "oops"
    mean, spread = device.predict(x, return_std=True)
    expected = [f"{a:.7g},{b:.7g}," for a, b in zip(mean, spread, strict=True)]
    expected[1234] = expected[1999] = "error: 1 values, expected 3"
    text = "\n".join(rows).encode()
    chunks = (text[i : i + 50_000] for i in range(0, len(text), 50_000))
    assert served(compiled, *chunks) == (expected, None)


def test_a_line_is_not_kept_back_by_one_without_an_end(device):
    read, write = os.pipe()
    answers, in_time = [], []

    def feed():
        os.write(write, b"0.5,6,-20\n")
        for _ in range(500):
            os.write(write, b"1" * (1 << 16))
            if answers:
                in_time.append(True)
                break
        os.close(write)

    feeder = threading.Thread(target=feed)
    feeder.start()
    serve(device, read, answers.append)
    feeder.join()
    os.close(read)
    assert in_time
    assert answers[0] == expected(device, [0.5, 6.0, -20.0]) + ",\n"


def test_a_line_without_an_end_takes_no_memory_without_an_end(device, served):
    good = expected(device, [0.5, 6.0, -20.0]) + ","
    block = b"1" * (1 << 16)
    endless = [block] * (3 * LONGEST // len(block))
    answers, _ = served(device, *endless, b"\n0.5,6,-20\n", *endless)
    assert len(answers) == 3
    assert answers[0].startswith("error: ")
    assert answers[1] == good
    assert answers[2].startswith("error: ")
