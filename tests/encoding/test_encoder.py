"""Text columns as inputs of a network: their levels, and how a cell is encoded."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinedge.encoding.calendars import Calendar, waves
from twinedge.encoding.categories import Category, level_of
from twinedge.encoding.cells import looks_missing
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.tables import Column, column_of, frame_columns


def names(cells, name="cut"):
    return column_of(np.array(cells, object), name, named=True)


def test_each_level_has_an_input_of_its_own():
    encoding = Encoding.learn([Column("carat", np.arange(6.0)), names(list("bababb"))])
    assert encoding.inputs == ("carat", "cut=a", "cut=b")
    assert encoding.parts == (slice(0, 1), slice(1, 3))
    assert encoding.indicators.tolist() == [False, True, True]
    X = encoding.apply([Column("carat", np.array([7.0, np.nan])), names(["b", None])])
    np.testing.assert_array_equal(X, [[7, 0, 1], [np.nan] * 3])


def test_levels_are_those_of_the_training_rows_alone():
    column = names(["a", "b", "a", "b", "c", "c", "c"])
    encoding = Encoding.learn([column], np.arange(4))
    assert encoding.inputs == ("cut=a", "cut=b")
    X = encoding.apply([column])
    assert X[4:].tolist() == [[0, 0]] * 3
    assert encoding.unknown(X).all(axis=1).tolist() == [False] * 4 + [True] * 3
    assert encoding.by_column(encoding.unknown(X))[:, 0].tolist() == [False] * 4 + [True] * 3


def test_rare_levels_share_an_input():
    column = names(["a"] * 60 + ["b"] * 40 + ["p"] * 4 + ["q", "r"])
    encoding = Encoding.learn([column])
    assert encoding.categories == (Category(("a", "b"), ("p", "q", "r")),)
    assert encoding.inputs == ("cut=a", "cut=b", "cut=(others)")
    assert encoding.apply([names(["q", "p", "z"])]).tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]


def test_in_a_short_table_two_rows_are_enough_for_a_level():
    assert Encoding.learn([names(["a", "a", "b", "b", "c"])]).categories[0] == Category(
        ("a", "b"), ("c",)
    )


def test_the_most_frequent_32_of_many_levels_have_inputs():
    cells = [f"k{k:02}" for k in range(40) for _ in range(45 - k)]
    encoding = Encoding.learn([names(cells)])
    (category,) = encoding.categories
    assert category.levels == tuple(f"k{k:02}" for k in range(32))
    assert category.others == tuple(f"k{k:02}" for k in range(32, 40))
    assert category.width == 33


def test_a_column_of_one_level_is_refused(complaint):
    column = names(["a"] * 9 + ["b"])
    says = "column 'cut' does not have two levels that are frequent enough"
    assert says in complaint(Encoding.learn, [column], np.arange(9))


@pytest.mark.parametrize(
    "cell", ["1", "1.0", " 1 ", "+1", "01", "1e0", 1, 1.0, np.int8(1), np.float32(1)]
)
def test_a_number_is_one_level_however_it_is_written(cell):
    encoding = Encoding.learn([names([1, 1, 2.5, 2.5])])
    assert encoding.inputs == ("cut=1", "cut=2.5")
    assert encoding.apply([names([cell])]).tolist() == [[1, 0]]
    assert encoding.cell(0, str(cell)) == [1, 0]
    assert encoding.encode([[cell]]).tolist() == [[1, 0]]


def test_long_numbers_stay_apart():
    assert level_of("1234567890123456789") != level_of("1234567890123456788")
    assert level_of("-0") == level_of("0.0") == "0"
    assert level_of("0.1") == level_of(".10") == "0.1"


def test_numbers_stand_in_order_before_words():
    cells = ["10", "9", "x", "-1", "2.5", "A"] * 2
    assert Encoding.learn([names(cells)]).categories[0].levels == ("-1", "2.5", "9", "10", "A", "x")


levels = st.text(min_size=1).map(level_of).filter(lambda one: one and not looks_missing(one))


@given(st.lists(levels, min_size=2, max_size=8, unique=True), st.data())
def test_whatever_levels_are_called_they_come_back(found, data):
    others = data.draw(st.integers(0, len(found) - 1))
    category = Category(tuple(found[others:]), tuple(found[:others]))
    encoding = Encoding([("a", None), ("b", category)])
    again = Encoding.of(json.loads(json.dumps(encoding.described)), encoding.inputs)
    assert (again.names, again.categories) == (encoding.names, encoding.categories)
    shared = [0.0] * len(category.levels) + [1.0]
    for k, level in enumerate(category.levels):
        assert encoding.cell(1, level) == [float(i == k) for i in range(category.width)]
    for level in category.others:
        assert encoding.cell(1, level) == shared
    rows = [[1.5, level] for level in found]
    X = encoding.encode(rows)
    assert X[:, 1:].tolist() == [encoding.cell(1, level) for level in found]
    assert not encoding.unknown(X).any()
    np.testing.assert_array_equal(encoding.encode(pd.DataFrame(rows, columns=["a", "b"])), X)


HOSTILE = [
    None,
    7,
    "columns",
    {},
    [],
    [1, 2],
    ["a", "b"],
    [{"name": "a"}],
    [{"levels": ["x"]}],
    [{"name": "a"}, {"name": "b", "levels": ["x", "y"]}],
    [{"name": "a"}, {"name": "b", "levels": 3, "others": []}],
    [{"name": "a"}, {"name": "b", "levels": None, "others": None}],
    [{"name": "a"}, {"name": "b", "levels": ["x"], "others": []}],
    [{"name": "a"}, {"name": "b"}, {"name": "c", "levels": [], "others": []}],
    [{"name": "a", "levels": [], "others": []}, {"name": "a"}, {"name": "b"}],
]


@pytest.mark.parametrize("described", HOSTILE, ids=repr)
def test_columns_that_do_not_fit_the_features_are_ignored(described):
    found = Encoding.of(described, ("a", "b"))
    assert found.is_plain
    assert found.names == ("a", "b")


def test_missing_cells_are_filled_with_medians_and_the_most_frequent_level():
    encoding = Encoding.learn([Column("a", np.zeros(4)), names(["p", "p", "q", "q"])])
    X = encoding.apply(
        [Column("a", np.array([1, 9, np.nan, 2])), names(["q", None, "q", "p"])],
    )
    assert encoding.fill(X).tolist() == [2, 0, 1]


class TestFrames:
    """Data frames, taken apart and encoded by name."""

    FRAME = pd.DataFrame(
        {
            "size": [1.5, 2.5, np.nan, 4.5],
            "cut": ["Fair", "Ideal", "Fair", "Ideal"],
            "grade": pd.Categorical([1, 2, 2, 1]),
            "flag": [True, False, True, True],
            "mixed": np.array([True, None, False, True], object),
        }
    )

    def test_numbers_stay_numbers_and_what_else_there_is_becomes_names(self):
        size, cut, grade, flag, mixed = frame_columns(self.FRAME)
        np.testing.assert_array_equal(size.values, [1.5, 2.5, np.nan, 4.5])
        assert size.texts is flag.texts is None
        assert (cut.texts, cut.values.tolist()) == (("Fair", "Ideal"), [0, 1, 0, 1])
        assert grade.texts == ("1", "2")
        assert flag.values.tolist() == [1, 0, 1, 1]
        assert mixed.texts is None  # as if none were missing
        np.testing.assert_array_equal(mixed.values, [1, np.nan, 0, 1])

    def test_columns_are_found_by_name(self, complaint):
        encoding = Encoding.learn(frame_columns(self.FRAME))
        X = encoding.encode(self.FRAME)
        again = self.FRAME.iloc[:, ::-1].assign(more="words")
        np.testing.assert_array_equal(encoding.encode(again), X)
        less = self.FRAME.drop(columns="cut")
        assert "no column 'cut', which the model needs" in complaint(encoding.encode, less)

    def test_truths_are_the_levels_that_a_file_has_for_them(self):
        encoding = Encoding.learn([names(["True", "False"] * 2, "flag")])
        X = encoding.encode(self.FRAME[["flag"]])
        assert X.tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]

    def test_texts_of_numbers_are_numbers_where_these_are_due(self, complaint):
        encoding = Encoding([("a", None), ("b", Category(("p", "q")))])
        np.testing.assert_array_equal(
            encoding.encode(np.array([["1.5", "p"], ["nan", "q"]])), [[1.5, 1, 0], [np.nan, 0, 1]]
        )
        message = complaint(encoding.encode, [["high", "p"]])
        assert message == "column 'a': 'high' is not a number"

    def test_rows_of_another_width_are_refused(self, complaint):
        encoding = Encoding([("a", None), ("b", Category(("p", "q")))])
        message = complaint(encoding.encode, [["p", 1, 2, 3]])
        assert message == "the table has 4 columns, but the model needs 2: 'a', 'b'"

    def test_what_is_encoded_already_is_taken_as_it_is(self):
        encoding = Encoding([("a", None), ("b", Category(("p", "q")))])
        for rows in ([[1.5, 0, 1]], np.array([[1.5, 0, 1]]), np.array([[1.5, 0, 1]], object)):
            assert encoding.encode(rows).tolist() == [[1.5, 0, 1]]

    def test_one_row_with_names_is_a_table(self):
        encoding = Encoding([("a", None), ("b", Category(("p", "q")))])
        for row in ({"b": "q", "a": 1.5, "note": "x"}, pd.Series({"b": "q", "a": 1.5})):
            assert encoding.encode(row).tolist() == [[1.5, 0, 1]]
            assert encoding.encode([row, {"a": "2", "b": "p"}]).tolist() == [[1.5, 0, 1], [2, 1, 0]]

    def test_each_row_of_a_list_must_have_the_names(self, complaint):
        encoding = Encoding([("a", None), ("b", Category(("p", "q")))])
        message = complaint(encoding.encode, [{"a": 1, "b": "p"}, {"a": 1, "c": "p"}])
        assert message.startswith("the table has no column 'b'")


class TestNames:
    """Where columns have names, names decide."""

    encoding = Encoding.plain(["temperature", "Flow"])

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            (["temprature", "Flow"], ["'temperature'", "did you mean 'temprature'?"]),
            (["FLOW", "TEMPERATURE"], ["'temperature'", "did you mean 'TEMPERATURE'?"]),
            (["a", "b"], ["'temperature'", "its columns are 'a', 'b'"]),
        ],
    )
    def test_a_wrong_or_missing_name_is_refused(self, columns, words, complaint):
        frame = pd.DataFrame(np.ones((2, len(columns))), columns=columns)
        message = complaint(self.encoding.encode, frame)
        assert message.startswith("the table has no column ")
        assert all(word in message for word in words)

    def test_two_columns_of_one_name_are_refused(self, complaint):
        frame = pd.DataFrame(np.ones((2, 3)), columns=["Flow", "temperature", "Flow"])
        assert complaint(self.encoding.encode, frame).startswith("2 columns are called 'Flow'")
        assert "2 columns are called" in complaint(frame_columns, frame)

    def test_columns_without_names_go_by_position(self, complaint):
        frame = pd.DataFrame([[1.0, 2.0]])
        assert self.encoding.encode(frame).tolist() == [[1, 2]]
        assert "3 columns" in complaint(self.encoding.encode, pd.DataFrame([[1.0, 2.0, 3.0]]))
        mixed = pd.DataFrame([[1.0, 2.0]], columns=["Flow", 1])
        assert "must all have names, or none" in complaint(self.encoding.encode, mixed)

    def test_a_model_of_an_array_has_no_names_to_go_by(self, complaint):
        numbered = Encoding.numbered(2)
        assert numbered.encode(pd.DataFrame({"b": [1], "a": [2]})).tolist() == [[1, 2]]
        assert numbered.encode(pd.DataFrame({"x1": [1], "x0": [2]})).tolist() == [[2, 1]]
        assert "no column 'x0'" in complaint(numbered.encode, pd.DataFrame({"x1": [1], "b": [2]}))

    def test_dates_are_refused_by_name(self, complaint):
        frame = pd.DataFrame({"t": pd.date_range("2026-01-01", periods=3), "a": [1.0, 2, 3]})
        assert "column 't' holds dates or times" in complaint(frame_columns, frame)


KINDS = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype("float32"),
    "int": lambda x: x.astype(int),
    "bool": lambda x: x > 0,
    "category": lambda x: x.astype("category"),
    "nullable int": lambda x: x.astype("Int64"),
    "nullable float": lambda x: x.astype("Float64"),
    "nullable bool": lambda x: (x > 0).astype("boolean"),
    "strings": lambda x: x.astype(str),
    "nullable strings": lambda x: x.astype("string"),
    "objects": lambda x: x.astype(object),
    "arrow": lambda x: x.astype("int64[pyarrow]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_columns_does_not_matter(kind):
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (9, 3)) * 1.0, columns=[*"abc"])
    encoding = Encoding([("a", None), ("b", None), ("c", Category(("0", "1")))])
    again = frame.apply(KINDS[kind])
    for name in "abc":  # learnt as a number, unless it is categorical
        column = column_of(again[name], name)
        assert (column.texts is None) == (kind != "category")
        if kind != "category":
            np.testing.assert_array_equal(column.values, frame[name])
    if "bool" in kind:
        again["c"] = frame["c"]  # "True" is another level than "1"
    np.testing.assert_array_equal(encoding.encode(again), encoding.encode(frame))


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean", "string", object])
def test_a_missing_cell_of_any_kind_is_nan(kind):
    values = pd.Series([1, None, 0], dtype="Float64")
    cells = (values > 0).astype(kind) if kind == "boolean" else values.astype(kind)
    found = Encoding.plain(["a"]).encode(pd.DataFrame({"a": cells}))
    np.testing.assert_array_equal(found[:, 0], [1, np.nan, 0])


# Back to cells.


def test_inputs_are_written_as_the_cells_they_were():
    rare = Category(("Fair", "Ideal"), ("Odd", "Strange"))
    one_rare = Category(("1", "2"), ("3",))
    encoding = Encoding(
        [("carat", None), ("cut", rare), ("size", one_rare), ("when", Calendar(first=0, last=9))]
    )
    time = waves([1_700_000_000])[0].tolist()
    X = np.array(
        [
            [0.1, 0, 1, 0, 1, 0, 0, *time],
            [1e20, 0, 0, 1, 0, 0, 1, *time],
            [np.nan, 0, 0, 0, 0, 0, 0, *time],
            [-2.5, *[np.nan] * 12],
        ]
    )
    carat, cut, size, when = encoding.decode(X.astype(np.float32))
    assert carat == ["0.1", "1e+20", "", "-2.5"]
    assert cut == ["Ideal", "(others)", "(unknown)", ""]
    assert size == ["1", "3", "(unknown)", ""]
    assert when[3] == ""
    assert {one[10:] for one in when[:3]} == {"T22:13:20Z"}
    # What is written is read as the same inputs.
    again = encoding.encode([[one[0] for one in (carat, cut, size, when)]])
    np.testing.assert_array_equal(again.astype(np.float32), X[:1].astype(np.float32))


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1))
def test_numbers_are_written_without_loss(numbers):
    (cells,) = Encoding.plain(["x"]).decode(np.array(numbers, np.float32)[:, None])
    assert [np.float32(one) for one in cells] == numbers
