"""Text and missing cells in exported files: the same answers in every form, to the bit."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import twinedge
from twinedge import TwinRegressor
from twinedge.data import read_features
from twinedge.pack import read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.streaming import Replies

# Known, unknown and missing cells of all columns: carat, cut, depth, grade.
ROWS = [
    [0.5, "Idéal", 61.0, 1],
    [1.25, "Good, really", 60.5, 3],
    [2.0, "Strange", 62.25, 2],
    [0.75, "Superb", 61.0, 1],
    [None, "Fair", 60.0, 2],
    [1.5, None, 61.5, 3],
    [1.5, "Odd", None, None],
    [9.0, "Fair", 61.0, 7],
]
NAMES = ["carat", "cut", "depth", "grade"]
OUTSIDE = [[], [], [], ["cut"], [], [], [], ["carat", "grade"]]
MISSING = [[], [], [], [], ["carat"], ["cut"], ["depth", "grade"], []]


@pytest.fixture(scope="module")
def device(stones_export):
    return twinedge.load(stones_export / "model.twin", "native")


@pytest.fixture(scope="module")
def expected(stones_export):
    return twinedge.load(stones_export / "model.twin", "numpy").predict_all(ROWS)


def same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def flagged(encoding, flags):
    by_column = encoding.by_column(flags)
    return [[name for name, one in zip(NAMES, row, strict=True) if one] for row in by_column]


def test_both_backends_agree_on_known_unknown_and_missing_names(device, expected):
    same(device.predict_all(ROWS), expected)
    assert flagged(device.encoding, expected.outside) == OUTSIDE
    assert flagged(device.encoding, expected.missing) == MISSING
    assert len(set(expected.mean.tolist())) == len(ROWS)
    np.testing.assert_array_equal(device.missing(ROWS), expected.missing)
    np.testing.assert_array_equal(device.outside(ROWS), expected.outside)


def test_a_frame_is_found_by_name(device, expected):
    frame = pd.DataFrame(ROWS, columns=NAMES)
    for form in (
        frame,
        frame.iloc[:, ::-1].assign(note="x"),
        frame.astype({"cut": "category", "grade": "category"}),
        frame.astype({"grade": float}),
        np.array(ROWS, object),
    ):
        same(device.predict_all(form), expected)
        np.testing.assert_array_equal(device.predict(form), expected.mean)
        ends = device.predict_interval(form, device.usual_coverage)
        np.testing.assert_array_equal(ends, np.column_stack([expected.low, expected.high]))


def test_rows_that_do_not_fit_are_refused_in_one_line(device, complaint):
    assert "the table has 2 columns, but the model needs 4" in complaint(
        device.predict, [["Fair", 1]]
    )
    assert "column 'carat': 'x' is not a number" in complaint(device.predict, [["x", "Fair", 1, 1]])
    frame = pd.DataFrame(ROWS, columns=NAMES).drop(columns="cut")
    assert "no column 'cut'" in complaint(device.predict, frame)


def csv_cell(value, comma=False):
    word = "" if value is None else str(value)
    return word.replace(".", ",") if comma and not isinstance(value, str) else word


def as_lines(expected, encoding):
    """Answers as CSV lines of a stream."""
    numbers = zip(
        expected.mean, expected.spread, expected.scale, expected.low, expected.high, strict=True
    )
    outside, missing = (
        map("|".join, flagged(encoding, one)) for one in (expected.outside, expected.missing)
    )
    return [
        f"{mean:.7g},{spread:.7g},{far},{scale:.7g},{low:.7g},{high:.7g},{gone}"
        for (mean, spread, scale, low, high), far, gone in zip(
            numbers, outside, missing, strict=True
        )
    ]


HEAD = "price,spread,outside,scale,low,high,missing"


def quoted(word):
    return f'"{word}"' if "," in word else word


STREAMS = {
    "header, commas": (
        ["carat,cut,depth,grade"],
        lambda row: ",".join(quoted(csv_cell(one)) for one in row),
    ),
    "no header, decimal commas": (
        [],
        lambda row: ";".join(csv_cell(one, comma=True) for one in row),
    ),
}


@pytest.mark.parametrize(("head", "write"), STREAMS.values(), ids=STREAMS)
def test_a_stream_gives_the_same_in_every_dialect(device, expected, head, write):
    answers = as_lines(expected, device.encoding)
    answers = [HEAD, *answers] if head else answers
    lines = [*head, *map(write, ROWS)]
    assert list(Replies(device).to(lines)) == answers
    one_by_one = Replies(device)
    assert [answer for line in lines for answer in one_by_one.to([line])] == answers


@pytest.mark.parametrize("form", ["objects", "arrays"])
def test_a_stream_of_json_gives_the_same(device, expected, form):
    rows = ROWS if form == "arrays" else [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    answers = list(map(json.loads, Replies(device).to([json.dumps(row) for row in rows])))
    assert [one["prediction"] for one in answers] == [float(f"{one:.7g}") for one in expected.mean]
    assert [one["outside"] for one in answers] == OUTSIDE
    assert [one["missing"] for one in answers] == MISSING


def test_spellings_of_a_level_and_of_nothing_are_one_in_json(device):
    def answer(cut, grade):
        (line,) = Replies(device).to([json.dumps([1.0, cut, 61.0, grade])])
        return line

    assert answer("Fair", 2) == answer(" Fair ", "2.0") == answer("Fair", 2.0)
    assert answer(None, 2) == answer("", 2) == answer("NA", 2) == answer(float("nan"), 2)
    assert "error" not in answer(True, 2)
    assert json.loads(answer(["Fair"], 2)) == {"error": 'cut: ["Fair"] is no name'}


def test_lines_with_names_are_learnt_from(stones_export, device):
    taught = twinedge.load(stones_export / "model.twin", "numpy")
    taught.learn([ROWS[0]], [20.5])
    expected = as_lines(taught.predict_all(ROWS[:1]), device.encoding)
    lines = ["0,5;Idéal;61;1;=20,5", "0,5;Idéal;61;1"]
    assert list(Replies(device).to(lines))[1:] == expected
    device.forget()
    lines = ['{"carat": 0.5, "cut": "Idéal", "depth": 61, "grade": 1, "=": 20.5}', lines[1]]
    lines[1] = "0.5,Idéal,61,1"
    assert list(Replies(device).to(lines))[1:] == expected
    device.forget()
    # A name may look like the end of such a line.
    (answer,) = Replies(device).to(['0.5,"Good,=5",61,1'])
    assert answer.split(",")[2] == "cut"
    assert device.learnt == 0


def test_a_line_that_is_wrong_decides_nothing_about_the_next(device, expected):
    first = as_lines(expected, device.encoding)[0]
    lines = ["5;Idéal;61", "0.5;Idéal;oops;1", "0,5;Idéal;61;1", "0.5;x;oops;1", "0,5;Idéal;61;1"]
    answers = list(Replies(device).to(lines))
    assert [one.startswith("error: ") for one in answers] == [True, True, False, True, False]
    assert answers[2] == answers[4] == first
    # A valid line decides it: 0.5 now means five tenths.
    lines = ["0,5;Idéal;61;1", "0.5;Idéal;61;1"]
    assert "a different decimal mark" in list(Replies(device).to(lines))[1]


@pytest.mark.parametrize("cell", ["1_000", "1 234", "x", "inf"])
def test_numbers_of_a_stream_are_those_of_a_file(device, complaint, tmp_path, cell):
    (answer,) = Replies(device).to([f'"{cell}",Fair,61,1'])
    (tmp_path / "t.csv").write_text(f"carat,cut,depth,grade\n{cell},Fair,61,1\n")
    message = complaint(read_features, tmp_path / "t.csv", device.encoding)
    words = answer.removeprefix("error: carat: ")
    assert words in message
    assert answer != words


def test_what_cannot_be_filled_in_is_an_error_of_its_line_alone(stones_export, tmp_path):
    pack = read_pack((stones_export / "model.twin").read_bytes())
    none = replace(pack.domain, fill=np.full_like(pack.domain.fill, NO_FILL))
    (tmp_path / "model.twin").write_bytes(write_pack(replace(pack, domain=none)))
    device = twinedge.load(tmp_path / "model.twin")
    good = "0.5,Fair,61,1"
    lines = [good, "0.5,,61,1", "0.5,NA,61,1", ",Fair,61,1"]
    lines += ['[0.5, "", 61, 1]', "[0.5, null, 61, 1]", '[0.5, "nan", 61, 1]', "[0.5, NaN, 61, 1]"]
    first, *errors, last = Replies(device).to([*lines, good])
    assert first == last
    assert errors == [
        "error: cut: '' is no name",
        "error: cut: 'NA' is no name",
        "error: carat: '' is not a number",
        *(
            json.dumps({"error": f"cut: {word} is no name"})
            for word in ("''", "null", "'nan'", "'nan'")
        ),
    ]


@pytest.mark.parametrize("name", ["model.tflite", "model.onnx", "model_float.onnx"])
def test_other_formats_flag_the_same(stones_export, expected, name):
    other = twinedge.load(stones_export / name)
    found = other.predict_all(ROWS)
    np.testing.assert_array_equal(found.outside, expected.outside)
    np.testing.assert_array_equal(found.missing, expected.missing)
    np.testing.assert_allclose(found.mean[:-1], expected.mean[:-1], rtol=0.02)
    assert (
        other.encoding.described == twinedge.load(stones_export / "model.twin").encoding.described
    )


def test_columns_in_a_pack_that_do_not_fit_its_features_are_ignored(stones_export, tmp_path):
    pack = read_pack((stones_export / "model.twin").read_bytes())
    for columns in (None, 7, [], [{"name": "carat"}], pack.metadata["columns"][:-1]):
        metadata = {**pack.metadata, "columns": columns}
        (tmp_path / "model.twin").write_bytes(write_pack(replace(pack, metadata=metadata)))
        device = twinedge.load(tmp_path / "model.twin")
        assert device.encoding.is_plain
        assert device.predict(np.zeros((1, pack.features))).shape == (1,)


def test_a_model_of_a_frame_takes_frames_and_is_exported_with_its_columns(stones, tmp_path):
    frame = pd.read_csv(stones).dropna().reset_index(drop=True)
    frame = frame.assign(grade=frame["grade"].astype("category"), dear=frame["price"] > 14)
    X, y = frame.drop(columns="price"), frame["price"]
    model = TwinRegressor(hidden=(8,), activation="relu", learning_rate=0.01, weight_decay=0.03)
    model.set_params(steps=300, random_state=0).fit(X, y)
    assert model.encoding_.names == ("carat", "cut", "depth", "grade", "dear")
    assert model.encoding_.categories[4] is None  # truths are numbers
    inputs = model.encoding_.encode(X)
    assert model.n_features_in_ == 5 < inputs.shape[1]
    for form in (X, X.iloc[:, ::-1], X.assign(cut=X["cut"].astype("category"))):
        for call in (model.predict, model.predict_interval, model.outside):
            np.testing.assert_array_equal(call(form), call(inputs))
    assert model.outside(X[:1].assign(cut="no such cut"))[0, model.encoding_.parts[1]].all()
    twinedge.export(model, tmp_path / "out", anchors=8, formats=("twin",), tolerance=10.0)
    device = twinedge.load(tmp_path / "out" / "model.twin")
    assert device.encoding.described == model.encoding_.described
    np.testing.assert_array_equal(device.predict(X), device.predict(inputs))
