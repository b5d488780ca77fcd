import json
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime.lines import LONGEST, Answers, serve
from twinedge.runtime.loading import load

FEATURES = {"angle": (-1, 1), "offset": (-5, 15), "idle, mostly": (-120, 80)}


@pytest.fixture(scope="module")
def device(random_pack, tmp_path_factory):
    """One that knows names with commas in them; what it predicts does not matter here."""
    features = [{"name": name, "min": a, "max": b} for name, (a, b) in FEATURES.items()]
    pack = replace(
        random_pack(np.random.default_rng(0), features=3, neighbors=0),
        metadata={"features": features, "target": "water, level"},
    )
    path = tmp_path_factory.mktemp("lines") / "model.twin"
    path.write_bytes(write_pack(pack))
    return load(path, "numpy")


def answered(device, *lines):
    return list(Answers(device).to(lines))


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
    assert answered(device, "inf,6,-20")[0].endswith(",angle")
    assert answered(device, "inf,-inf,-20")[0].endswith(",angle|offset")


def test_a_header_may_come_first_and_orders_the_columns(device, monkeypatch):
    monkeypatch.setattr(device, "feature_names", ("angle", "offset", "idle mostly"))
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
        ("[1, NaN, 3]", "offset: 'nan' is not a number"),
        ("[1, 1" + "0" * 400 + ", 3]", "beyond all bounds"),
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


def test_of_a_thousand_lines_ten_of_them_bad_each_gets_its_answer(device):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (1000, 3)) * [1, 5, 80]
    lines = [",".join(map(repr, row)) for row in x.tolist()]
    bad = rng.choice(1000, 10, replace=False)
    for place in bad:
        lines[place] = "oops," + lines[place]
    answers = answered(device, *lines)
    assert len(answers) == 1000
    assert {i for i, one in enumerate(answers) if one.startswith("error")} == set(bad.tolist())
    for place in (0, 499, 999):
        if place not in bad:
            assert answers[place].startswith(expected(device, x[place]))


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_lines_that_arrive_together_are_shared_among_cores(device, monkeypatch, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    compiled = load(device.info["file"], "native")
    x = np.random.default_rng(1).uniform(-1, 1, (200, 3)) * [1, 5, 80]
    rows = [",".join(map(repr, row)) for row in x.tolist()]
    mean, spread = device.predict(x, return_std=True)
    expected = [f"{a:.7g},{b:.7g}," for a, b in zip(mean, spread, strict=True)]
    parts = []
    predict = compiled.predict

    def watched(x, **settings):
        parts.append((len(x), threading.current_thread() is threading.main_thread()))
        return predict(x, **settings)

    monkeypatch.setattr(compiled, "predict", watched)
    assert answered(compiled, *rows) == expected
    assert len(parts) == cores
    assert sum(count for count, _ in parts) == 200
    assert [on_main for _, on_main in parts] == [cores == 1] * cores


def served(device, *chunks):
    """What comes out when these bytes come in, a write at a time."""
    read, write = os.pipe()
    out = []

    def feed():
        for chunk in chunks:
            os.write(write, chunk)
        os.close(write)

    feeder = threading.Thread(target=feed)
    feeder.start()
    serve(device, read, out.append)
    feeder.join()
    os.close(read)
    return "".join(out).splitlines()


def test_lines_may_arrive_in_any_pieces(device):
    good = expected(device, [0.5, 6.0, -20.0]) + ","
    assert served(device, b"0.5,", b"6,-20\n0.5,6,-2", b"0\r\n", b"0.5,6,-20") == [good] * 3
    assert served(device) == []
    assert served(device, b"\xff\xfe\n0.5,6,-20\n")[1] == good


def test_a_line_is_answered_before_the_next_one_comes(device):
    read, write = os.pipe()
    back, out = os.pipe()

    def answer():
        serve(device, read, lambda text: os.write(out, text.encode()))
        os.close(out)

    thread = threading.Thread(target=answer)
    thread.start()
    good = expected(device, [0.5, 6.0, -20.0]) + ",\n"
    for _ in range(3):
        os.write(write, b"0.5,6,-20\n")
        assert os.read(back, 1000).decode() == good
    os.close(write)
    thread.join()
    for one in (read, back):
        os.close(one)


def test_a_flood_is_answered_in_order(device):
    compiled = load(device.info["file"], "native")
    x = np.random.default_rng(2).uniform(-1, 1, (4000, 3)) * [1, 5, 80]
    rows = [",".join(map(repr, row)) for row in x.tolist()]
    rows[1234] = rows[3999] = "oops"
    mean, spread = device.predict(x, return_std=True)
    expected = [f"{a:.7g},{b:.7g}," for a, b in zip(mean, spread, strict=True)]
    expected[1234] = expected[3999] = "error: 1 values, expected 3"
    text = "\n".join(rows).encode()
    assert (
        served(compiled, *(text[i : i + 50_000] for i in range(0, len(text), 50_000))) == expected
    )


def test_a_line_is_not_kept_back_by_one_without_an_end(device, monkeypatch):
    monkeypatch.setattr("twinedge.runtime.lines._is_ready", lambda source: True)
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


def test_a_line_without_an_end_takes_no_memory_without_an_end(device):
    good = expected(device, [0.5, 6.0, -20.0]) + ","
    block = b"1" * (1 << 16)
    endless = [block] * (3 * LONGEST // len(block))
    answers = served(device, *endless, b"\n0.5,6,-20\n", *endless)
    assert len(answers) == 3
    assert answers[0].startswith("error: ")
    assert answers[1] == good
    assert answers[2].startswith("error: ")
