"""The first line of a stream: a header decides which column is which, or ends the stream."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from twinedge.encoding.calendars import Calendar
from twinedge.encoding.categories import Category
from twinedge.encoding.encoder import Encoding
from twinedge.pack import write_pack
from twinedge.runtime.loading import load
from twinedge.runtime.stream_reader import QueryError, QueryReader
from twinedge.runtime.streaming import Replies, serve

NAMES = ("angle", "offset", "idle")
QUERY = (0.5, 6.0, -20.0)


@pytest.fixture(scope="module")
def load_named(random_pack, tmp_path_factory):
    """Return a function that loads a device whose columns have these names."""

    def make(names):
        pack = random_pack(np.random.default_rng(0), features=len(names), neighbors=0)
        features = [{"name": name, "min": -99, "max": 99} for name in names]
        pack = replace(pack, metadata={"features": features, "target": "level"})
        path = tmp_path_factory.mktemp("headers") / "model.twin"
        path.write_bytes(write_pack(pack))
        return load(path, "numpy")

    return make


@pytest.fixture(scope="module")
def device(load_named):
    return load_named(NAMES)


@pytest.fixture(scope="module")
def good(device):
    (line,) = Replies(device).to(["0.5,6,-20"])
    return line


def answered(device, *lines):
    return Replies(device).to(lines)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_any_order_of_the_names_gives_the_same_answer(device, good, delimiter):
    for order in itertools.permutations(range(3)):
        header = delimiter.join(NAMES[k] for k in order)
        line = delimiter.join(str(QUERY[k]) for k in order)
        assert answered(device, header, line)[1:] == [good]


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("idle,angle,ofset", ["2 of the 3", "missing 'offset' (did you mean 'ofset'?)"]),
        ("IDLE,ANGLE,OFFSET", ["0 of the 3", "missing 'angle' (did you mean 'ANGLE'?), 'offset'"]),
        ("note,idle,angle", ["2 of the 3", "missing 'offset'; it has 'note', 'idle', 'angle'"]),
        ("Angle,offset", ["1 of the 3", "'angle' (did you mean 'Angle'?), 'idle'"]),
        ("p,q,r", ["0 of the 3", "missing 'angle', 'offset', 'idle'; it has 'p', 'q', 'r'"]),
        ("p;q;r;s", ["it has 'p', 'q', 'r', 's'"]),
        ("angle Offset idle", ["missing 'offset' (did you mean 'Offset'?)"]),
        ("idle\tangle\tset", ["missing 'offset'"]),
        ("angle,offset,idle,angle", ["'angle' more than once"]),
        ("\ufeffIdle,angle,offset\r", ["missing 'idle' (did you mean 'Idle'?)"]),
        ("# idle,angle,ofset\n1,2,3", ["missing 'offset' (did you mean 'ofset'?)"]),
        ("sep=;\nidle;angle;ofset", ["missing 'offset' (did you mean 'ofset'?)"]),
    ],
)
def test_a_header_that_lacks_a_column_ends_the_stream(device, complaint, header, says, served):
    message = complaint(answered, device, *header.split("\n"), "1,2,3")
    assert message.startswith("the header has ")
    for words in says:
        assert words in message
    out, error = served(device, f"{header}\n1,2,3\n1,2,3\n".encode())
    assert (out, error) == ([], message)


def test_what_came_before_a_wrong_header_is_answered(device, served):
    out, error = served(device, b"1,2\n", b"idle,angle,ofset\n1,2,3\n")
    if out:  # the pipe may hand over both at once
        assert out == ["error: 2 values, expected 3"]
    assert "missing 'offset'" in error


NOISE = [
    "",
    " ",
    ",",
    "6,-20",
    "0,-20,",
    "\x00\x01\x02",
    "ÿþ",
    "\ufffd,\ufffd,\ufffd",
    "oops",
    "nan,nan,nan",
    "12:30:05,11:00,09:15",
    "ets Jun  8 2016 00:22:57",
    "the angle sensor is ready",
    'gle": 0.5, "offset": 6, "idle": -20}',
    'e": 0.5, "b": 6, "c": -20}',
    "[boot] ok",
    "0.5,6,-20 C",
]


@pytest.mark.parametrize("line", NOISE, ids=ascii)
def test_a_stream_that_begins_in_the_middle_of_a_line_goes_on(device, good, line):
    first, second, third = answered(device, line, "0.5,6,-20", "0.5,6,-20")
    assert "error" in first
    assert second == third == good
    first, head, second = answered(device, line, "idle,angle,offset", "-20,0.5,6")
    assert (head, second) == ("level,spread,outside", good)


def test_a_later_header_decides_what_follows_it(device, good):
    lines = ["0.5,6,-20", "idle,angle,offset", "-20,0.5,6", *NAMES, ",".join(NAMES), "0.5,6,-20"]
    answers = answered(device, *lines)
    header = "level,spread,outside"
    assert answers[:3] == [good, header, good]
    assert all(one.startswith("error") for one in answers[3:6])
    assert answers[6:] == [header, good]


def test_names_that_were_made_up_need_not_be_in_a_header(load_named, complaint):
    device = load_named(("x0", "x1", "x2"))
    (good,) = answered(device, "0.5,6,-20")
    assert answered(device, ",".join(NAMES), "0.5,6,-20") == ["level,spread,outside", good]
    assert answered(device, "x2,x0,x1", "-20,0.5,6")[1] == good
    assert "missing 'x2'" in complaint(answered, device, "x0,x1,z", "1,2,3")
    assert "missing 'x0', 'x1', 'x2'" in complaint(answered, device, "a,b,c,d", "1,2,3,4")


def test_one_column_is_known_by_its_name_in_any_case(load_named, complaint):
    device = load_named(("temp",))
    (good,) = answered(device, "5")
    assert answered(device, "ready", "5") == ["error: temp: 'ready' is not a number", good]
    assert "(did you mean 'Temp'?)" in complaint(answered, device, "Temp", "5")
    assert answered(device, "time,temp", "9,5")[1] == good


def test_comments_are_not_answered(device, good):
    lines = ["# by hand", "0.5,6,-20", "# 1,2,3,=5", " # more", "[0.5, 6, -20]", "0.5,6,-20"]
    first, second, third = answered(device, *lines)
    assert first == third == good
    assert json.loads(second)["outside"] == []
    assert answered(device, "# a=1") == []


def test_a_comment_may_be_the_header(device, good):
    for comment in ("# idle,angle,offset", "#idle, angle, offset"):
        assert answered(device, comment, "-20,0.5,6", "-20,0.5,6")[1:] == [good, good]
    one_by_one = Replies(device)
    lines = ["# note,idle,angle,offset", "1,-20,0.5,6", "# idle,angle,offset", "2,-20,0.5,6"]
    assert [one_by_one.to([line]) for line in lines] == [
        [],
        ["level,spread,outside", good],
        [],
        [good],
    ]
    assert answered(device, "# one,two", "0.5,6,-20") == [good]
    assert answered(device, "# idle,angle,offset", "x", "0.5,6,-20")[1:] == [good]


@pytest.mark.parametrize("sign", ["%", " %"])
def test_percentages_are_read_as_in_a_file(device, good, sign):
    lines = [f"0.5,6{sign},-20", "0.5,6,-20", f"0.5,6{sign},-20"]
    first, second, third = answered(device, *lines)
    assert first == third == good
    assert second.startswith("error: offset: '6' is ambiguous")
    first, second, third = answered(device, *lines[1:], "0.5,6,-20")
    assert first == third == good
    assert second.startswith(f"error: offset: '6{sign}' is ambiguous")


def test_a_faulty_line_does_not_decide_about_percentages(device, good):
    assert answered(device, "0.5%,x,-20", "0.5,6,-20")[1] == good
    assert answered(device, "0.5,6,-20", "0.5,6%,x", "0.5,6,-20")[2] == good


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\r", b"\r\r\n"], ids=repr)
def test_lines_may_end_in_any_way(device, good, monkeypatch, end):
    text = end.join([b"idle,angle,offset", *[b"-20,0.5,6"] * 3]) + end
    for size in (1, 2, 3, 7, 1000):
        pieces = iter([text[i : i + size] for i in range(0, len(text), size)])
        monkeypatch.setattr(
            "twinedge.runtime.streaming.os.read", lambda *_, left=pieces: next(left, b"")
        )
        out = []
        serve(device, 0, out.append)
        assert "".join(out).splitlines() == ["level,spread,outside", *[good] * 3]


def test_blank_lines_are_lines_however_they_end(device, good, served):
    for end in (b"\n", b"\r\n"):
        out, _ = served(device, end.join([b"0.5,6,-20", b"", b"0.5,6,-20"]))
        assert out == [good, "error: 1 values, expected 3", good]


def test_a_line_that_ends_in_cr_does_not_wait_for_the_next(device, good, dialogue):
    exchange = dialogue(device)
    for line in (b"0.5,6,-20\r", b"\n0.5,6,-20\r", b"0.5,6,-20\r"):
        assert exchange(line) == good + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
def test_names_may_hold_letters_of_any_encoding(load_named, encoding, served):
    device = load_named(("µ", "T (°C)"))
    (good,) = answered(device, "1,2")
    out, error = served(device, "T (°C),µ\n2,1\n".encode(encoding))
    assert (out[1:], error) == ([good], None)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"angle": 1, "Offset": 2, "idle": 3}, "offset is missing (did you mean 'Offset'?)"),
        ({"angle": 1, "idle": 3}, "offset is missing"),
        ({"x": 1}, "angle is missing"),
    ],
)
def test_a_key_that_is_missing_in_json_is_an_error_of_its_line(device, good, query, says):
    first, second = answered(device, json.dumps(query), "0.5,6,-20")
    assert json.loads(first) == {"error": says}
    assert second == good


def test_what_an_answer_repeats_has_to_be_in_the_line(device, good, complaint):
    def repeating(*lines):
        return Replies(device, keep=("note",)).to(lines)

    message = complaint(repeating, "Note,angle,offset,idle", "x,0.5,6,-20")
    assert message.startswith("the header has no 'note' (did you mean 'Note'?); it has 'Note', ")
    first, head, second = repeating("0.5,6,-20", "angle,offset,idle,note", "0.5,6,-20,by hand")
    assert first == "error: note is missing: a header has to name it"
    assert (head, second) == ("note,level,spread,outside", f"by hand,{good}")
    query = dict(zip(NAMES, QUERY, strict=True))
    first, second = map(json.loads, repeating(json.dumps(query), json.dumps({**query, "note": 7})))
    assert first == {"error": "note is missing"}
    assert second["note"] == 7


WHEN = Encoding([("when", Calendar()), ("load", None)])


@pytest.mark.parametrize("value", ["null", "[1]"])
def test_what_json_holds_for_a_time_has_to_be_one(value):
    fillable = np.zeros(len(WHEN.inputs), bool)
    with pytest.raises(QueryError, match=f"when: {re.escape(value)} is no time"):
        QueryReader(WHEN, fillable).read(f"[{value}, 3]")


LEVELS = Encoding([("cut", Category(("Fair", "Ideal"))), ("grade", Category(("low", "high")))])


def test_names_among_names_are_recognised_by_the_columns(complaint):
    """Where every cell is a name, a header looks like a row of unknown levels."""

    def first(line):
        return QueryReader(LEVELS, np.zeros(4, bool)).read(line)

    assert first("Fair,high") == [[1, 0, 0, 1]]
    assert first("Superb,none at all") == [[0, 0, 0, 0]]
    assert first("grade,cut") == [None]
    assert "missing 'cut' (did you mean 'Cut'?)" in complaint(first, "Cut,grade")
    with pytest.raises(QueryError):
        first("Fair")
