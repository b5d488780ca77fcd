import numpy as np
import pytest

from twinedge.data import read_features

NAMES = ("a", "b", "c")


def test_columns_are_picked_by_name_in_the_models_order(write):
    path = write("id,c,a,y,b\nk1,3,1,9,2\nk2,6,4,8,5\n")
    X, y = read_features(path, NAMES)
    np.testing.assert_array_equal(X, [[1, 2, 3], [4, 5, 6]])
    assert y is None
    with_target, y = read_features(path, NAMES, target="y")
    np.testing.assert_array_equal(with_target, X)
    np.testing.assert_array_equal(y, [9, 8])


def test_one_row_and_constant_columns_can_be_predicted(write):
    np.testing.assert_array_equal(read_features(write("a,b,c\n1,1,1\n"), NAMES)[0], [[1, 1, 1]])


def test_without_a_header_columns_go_by_position(write):
    X, _ = read_features(write("1,2,3\n4,5,6\n"), NAMES)
    np.testing.assert_array_equal(X, [[1, 2, 3], [4, 5, 6]])
    X, y = read_features(write("1,2,3,4\n5,6,7,8\n"), NAMES, target="y")
    np.testing.assert_array_equal(X, [[1, 2, 3], [5, 6, 7]])
    np.testing.assert_array_equal(y, [4, 8])


@pytest.mark.parametrize(
    ("features", "target", "text", "X", "y"),
    [
        # trained with the target last; the training file again, with and without its target
        (("x0", "x1"), "x2", "1,2,3\n", [[1, 2]], [3]),
        (("x0", "x1"), None, "1,2,3\n", [[1, 2]], None),
        (("x0", "x1"), None, "1,2\n", [[1, 2]], None),
        # trained with the target first
        (("x1", "x2"), "x0", "1,2,3\n", [[2, 3]], [1]),
        (("x1", "x2"), None, "1,2,3\n", [[2, 3]], None),
        (("x1", "x2"), None, "2,3\n", [[2, 3]], None),
        # trained with column x1 dropped
        (("x0", "x2"), "x3", "1,2,3,4\n", [[1, 3]], [4]),
        (("x0", "x2"), None, "1,2,3,4\n", [[1, 3]], None),
        (("x0", "x2"), None, "1,3\n", [[1, 3]], None),
    ],
)
def test_the_layout_of_a_headerless_training_file_is_recognised(
    features, target, text, X, y, write
):
    inputs, targets = read_features(write(text), features, target=target)
    np.testing.assert_array_equal(inputs, X)
    assert (None if targets is None else targets.tolist()) == y


def test_names_like_positions_are_none_if_the_model_was_trained_on_other_ones(write, complaint):
    wide, narrow = write("1,2,3\n"), ("x1", "x2")
    assert read_features(wide, narrow, target="y", target_name="y")[0].tolist() == [[1, 2]]
    message = complaint(read_features, wide, narrow, target_name="y")
    assert "has 3 columns and no header" in message
    assert read_features(wide, narrow, target_name="x0")[0].tolist() == [[2, 3]]


def test_names_that_were_made_up_need_not_be_in_a_file(write, complaint):
    names = ("x0", "x1")
    assert read_features(write("a,b\n1,2\n"), names)[0].tolist() == [[1, 2]]
    assert read_features(write("x1,x0\n1,2\n"), names)[0].tolist() == [[2, 1]]
    X, y = read_features(write("a,y,b\n1,2,3\n"), names, target="y")
    assert (X.tolist(), y.tolist()) == ([[1, 3]], [2])
    for text, target in (("x0,b\n1,2\n", None), ("a,b,c\n1,2,3\n", None), ("a,b\n1,2\n", "y")):
        assert "missing 'x" in complaint(read_features, write(text), names, target=target)


def test_a_header_of_numbers_is_recognised_by_the_models_names(write):
    X, _ = read_features(write("410,400\n1,2\n3,4\n"), ("400", "410"))
    np.testing.assert_array_equal(X, [[2, 1], [4, 3]])


def test_holes_stay_where_the_model_fills_them(write):
    path = write("a,b,c,y\n1,,3,1\nNA,5,?,2\n")
    X, _ = read_features(path, NAMES, target="y", fillable=np.ones(3, bool))
    np.testing.assert_array_equal(X, [[1, np.nan, 3], [np.nan, 5, np.nan]])


BAD = {
    "a feature missing": (
        "a,c\n1,3\n",
        {},
        ["2 of the 3 feature columns", "missing 'b'", "file has 'a', 'c'"],
    ),
    "other names": ("p,q,r\n1,2,3\n", {}, ["0 of the 3", "missing 'a', 'b', 'c'"]),
    "names in other letters": (
        "A,b,c\n1,2,3\n",
        {},
        ["2 of the 3", "missing 'a' (did you mean 'A'?); the file has 'A', 'b', 'c'"],
    ),
    "too few columns, no header": ("1,2\n3,4\n", {}, ["2 columns and no header", "3 features"]),
    "too many columns, no header": ("1,2,3,4\n", {}, ["4 columns and no header", "'a', 'b', 'c'"]),
    "no target, no header": ("1,2,3\n", {"target": "y"}, ["3 columns", "target 'y' last"]),
    "target missing": ("a,b,c,z\n1,2,3,4\n", {"target": "y"}, ["no column 'y' for the target"]),
    "feature twice": ("a,b,c,b\n1,2,3,4\n", {}, ["2 columns are called 'b'"]),
    "hole": ("a,b,c\n1,2,3\n4,,6\n", {}, ["row 3", "'b'", "missing"]),
    "hole in the target": (
        "a,b,c,y\n1,2,3,\n",
        {"target": "y", "fillable": np.ones(3, bool)},
        ["row 2", "'y'", "missing"],
    ),
    "hole without a value to fill it": (
        "a,b,c\n1,,3\n",
        {"fillable": np.array([True, False, True])},
        ["row 2", "'b'", "missing"],
    ),
    "text": ("a,b,c\n1,x,3\n", {}, ["row 2", "'b'", "'x'"]),
}


@pytest.mark.parametrize(("content", "arguments", "parts"), BAD.values(), ids=BAD)
def test_a_file_that_does_not_fit_the_model_is_refused(content, arguments, parts, write, complaint):
    message = complaint(read_features, write(content), NAMES, **arguments)
    for part in parts:
        assert part in message


def test_a_column_of_words_that_the_model_does_not_need_is_no_matter(write):
    X, _ = read_features(write("a,b,c,,a note\n1,2,3,,hello\n"), NAMES)
    np.testing.assert_array_equal(X, [[1, 2, 3]])
