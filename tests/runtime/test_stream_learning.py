"""Lines with their true value: answered like any other, then learnt from."""

import json
from dataclasses import replace

import numpy as np
import pytest

from twinedge.pack import Domain, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.loading import load
from twinedge.runtime.streaming import Replies

NAMES = ("angle", "offset", "idle")
QUERY = [0.5, 6.0, -20.0]


@pytest.fixture(scope="module")
def path(random_pack, tmp_path_factory):
    """A pack with intervals, and a fill value for the offset."""
    pack = random_pack(
        np.random.default_rng(1),
        features=3,
        hidden=(6,),
        counts=[4],
        neighbors=0,
        weights="normal",
        scaled=True,
    )
    pack = replace(
        pack,
        x_offset=np.zeros(3, np.float32),
        x_gain=np.full(3, 64, np.float32),
        y_offset=np.float32(50),
        y_gain=np.float32(1e-5),
        # With a scale of about 10, so that the targets below are not absurd.
        intervals=replace(
            pack.intervals, quantiles={500: 50000, 900: 100000}, trust=30000, constant=2**32 - 1
        ),
        domain=Domain(
            np.full(3, -9000, np.int16),
            np.full(3, 9000, np.int16),
            np.array([NO_FILL, 6 * 64, NO_FILL], np.int16),
        ),
        metadata={
            "features": [{"name": name, "min": 0, "max": 0} for name in NAMES],
            "target": "level",
        },
    )
    path = tmp_path_factory.mktemp("lines") / "model.twin"
    path.write_bytes(write_pack(pack))
    return path


@pytest.fixture(params=["native", "numpy"])
def device(path, request):
    return load(path, request.param)


@pytest.fixture
def other(path):
    """A device that learns by hand."""
    return load(path, "numpy")


def answered(device, *lines, **settings):
    return Replies(device, **settings).to(lines)


def words(device, x):
    (line,) = answered(device, ",".join("" if np.isnan(one) else repr(one) for one in x))
    return line


def test_a_line_is_answered_before_it_is_learnt_from(device, other):
    before = words(other, QUERY)
    other.learn([QUERY], [70.0])
    after = words(other, QUERY)
    assert before != after
    assert answered(device, "0.5,6,-20,=70", "0.5,6,-20") == [before, after]
    assert device.learnt == 1
    np.testing.assert_array_equal(device.points.y, other.points.y)


@pytest.mark.parametrize(
    "line",
    [
        "0.5,6,-20,=70",
        "0.5,6,-20, =70",
        "0.5,6,-20,= 70 ",
        "0.5,6,-20,=7e1\r",
        "\ufeff0.5,6,-20,=+70.0",
        "[0.5, 6, -20],=70",
        '{"angle": 0.5, "offset": 6, "idle": -20, "=": 70}',
        '{"=": 70.0, "idle": -20, "more": "words", "angle": 0.5, "offset": 6}',
        ' {"angle": 0.5, "offset": 6, "idle": -20, "=": 7e1}',
    ],
)
def test_a_true_value_may_come_in_any_form(device, other, line):
    other.learn([QUERY], [70.0])
    answers = answered(device, line, "0.5,6,-20")
    assert answers[1] == words(other, QUERY)
    assert device.learnt == 1
    assert answers[0].startswith("{") == (line.lstrip()[:1] in "{[")


def test_a_missing_feature_of_such_a_line_is_filled_in(device, other):
    other.learn([[0.5, np.nan, -20.0]], [70.0])
    first, second = answered(device, "0.5,,-20,=70", "0.5,6,-20")
    assert first.endswith(",offset")
    assert second == words(other, QUERY)
    answered(device, '{"angle": 0.5, "offset": null, "idle": -20, "=": 70}')
    np.testing.assert_array_equal(device.points.X, 2 * [[0.5, np.nan, -20]])


def test_a_header_orders_the_columns_of_such_lines_too(device, other):
    first = words(other, QUERY)
    other.learn([QUERY], [70.0])
    lines = ["note,idle,angle,offset", "dry,-20,0.5,6,=70", "wet,-20,0.5,6", "x,-20,0.5,6,=60"]
    head, *answers = answered(device, *lines)
    assert head == "level,spread,outside,scale,low,high,missing"
    assert answers == [first, words(other, QUERY), words(other, QUERY)]
    assert device.learnt == 2


POINT = '{"angle": 0.5, "offset": 6, "idle": -20, "=": %s}'
BAD = [
    *((f"0.5,6,-20,={one}", "target of point 1 is nan") for one in ("", "high", "nan", "inf")),
    ("0.5,6,-20,=-1e300", "target of point 1 is -1e+300"),
    ("0.5,6,-20,=1e9", "target of point 1 is 1e+09"),
    ("0.5,6,-20,=1,=2", "4 values, expected 3"),
    ("0.5,6,=70", "2 values, expected 3"),
    ("=70", "1 values, expected 3"),
    ("0.5,six,-20,=70", "offset: 'six' is not a number"),
    (",6,-20,=70", "angle: '' is not a number"),
    ("0.5,6,=70,-20", "4 values, expected 3"),
    ("0.5,6=,-20", "offset: '6=' is not a number"),
    *((POINT % one, "target of point 1 is nan") for one in ('"70"', "null", "true", "[70]", "NaN")),
    (POINT % ("1" + "0" * 400), "target of point 1"),
    ('{"angle": 0.5, "idle": -20, "=": 70}', "offset is missing"),
    ('{"angle": 0.5, "offset": 6, "idle": "x", "=": 70}', 'idle: "x" is not a number'),
    (POINT[:-1] % 70, "not JSON"),
    ('{"=": 70}', "angle is missing"),
]


@pytest.mark.parametrize(("line", "says"), BAD, ids=lambda value: ascii(value)[:40])
def test_what_cannot_be_learnt_is_answered_with_an_error_and_forgotten(device, line, says):
    good = words(device, QUERY)
    first, answer, last = answered(device, "0.5,6,-20", line, "0.5,6,-20")
    assert first == last == good
    assert device.learnt == 0
    if line.startswith("{"):
        assert says in json.loads(answer)["error"]
    else:
        assert answer.startswith("error: ")
        assert says in answer


def test_an_equals_sign_elsewhere_is_no_true_value(device):
    (answer,) = answered(device, '{"angle": 0.5, "offset": 6, "idle": -20, "note": "a=b"}')
    assert "prediction" in json.loads(answer)
    assert device.learnt == 0


@pytest.mark.parametrize("around", ['{"=": 1, "angle": %s}', '{"angle": 1, "=": %s}'])
def test_deep_nests_end_nothing(device, around):
    good = words(device, QUERY)
    lines = [around % ("[" * depth + "]" * depth) for depth in (5, *range(900, 1010, 5), 100_000)]
    answers = answered(device, *lines, "0.5,6,-20")
    assert answers[-1] == good
    assert all("error" in json.loads(one) for one in answers[:-1])
    assert device.learnt == 0


def test_a_file_that_learns_nothing_says_so_line_by_line(random_pack, tmp_path):
    pack = random_pack(np.random.default_rng(0), features=3, scaled=False)
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    bare = load(tmp_path / "model.twin")
    good = words(bare, QUERY)
    first, answer, last = answered(bare, "0.5,6,-20", "0.5,6,-20,=70", "0.5,6,-20")
    assert first == last == good
    assert answer.startswith("error: ")
    assert "no intervals" in answer


def test_a_full_device_says_so_and_goes_on_predicting(device, monkeypatch):
    monkeypatch.setattr("twinedge.runtime.pack_device.MOST_POINTS", 2)
    answers = answered(device, *["0.5,6,-20,=70"] * 4, "0.5,6,-20")
    assert device.learnt == 2
    full = "error: 2 learnt and 1 new points are too many, 2 at most: forget some"
    assert [one == full for one in answers] == [False, False, True, True, False]


@pytest.fixture(scope="module")
def flood(path):
    """Many lines, few of them with a true value, and their answers, one by one."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (600, 3)) * [1, 10, 100]
    lines = [",".join(map(repr, row)) for row in x.tolist()]
    for place in (250, 251, 400, 570, 599):
        lines[place] += f",={50 + place / 20}"
    lines[100] = "oops"
    device = load(path, "numpy")
    return lines, [one for line in lines for one in answered(device, line)]


@pytest.mark.parametrize(("threads", "size"), [(1, 9999), (3, 997)])
def test_a_flood_in_threads_is_answered_as_one_by_one(path, flood, threads, size, served):
    lines, expected = flood
    text = "\n".join(lines).encode()
    device = load(path, "native", threads=threads)
    chunks = (text[i : i + size] for i in range(0, len(text), size))
    assert served(device, *chunks) == (expected, None)
    assert device.learnt == 5


def test_what_is_learnt_is_in_the_store_when_it_is_answered(path, tmp_path, other, dialogue):
    store = tmp_path / "site.store"
    exchange = dialogue(load(path, store=store))
    for number in range(3):
        assert exchange(f"0.5,{number},-20,={60 + number}\n".encode())
        assert load(path, store=store).learnt == number + 1
        other.learn([[0.5, number, -20.0]], [60.0 + number])
    assert words(load(path, store=store), QUERY) == words(other, QUERY)


def test_a_store_that_another_program_writes_to_is_reported_line_by_line(path, tmp_path):
    store = tmp_path / "site.store"
    first, second = load(path, store=store), load(path, store=store)
    first.learn([QUERY], [70.0])
    good, answer, last = answered(second, "0.5,6,-20", "0.5,6,-20,=70", "0.5,6,-20")
    assert answer == f"error: {store} is in use by another program"
    assert good == last
