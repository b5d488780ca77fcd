"""Lines that start with #: left out and counted, unless they are the header."""

import io

import numpy as np
import pytest

from twinedge.data import read_features, read_table

VALUES = [[1, 2, 3], [4, 5, 6.5], [7, 9, 9]]
ROWS = "1,2,3\n4,5,6.5\n7,9,9\n"


def remarks(table):
    return [one.removeprefix(f"{table.where}: ") for one in table.remarks]


def left_out(count):
    return f"{count} comment{'s'[: count - 1]}, starting with #, left out"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# made by a logger\na,b,y\n" + ROWS, 1),
        ("# one\n#two, three, four\n\n  # five\na,b,y\n" + ROWS, 3),
        ("a,b,y\n1,2,3\n# 4,4,4\n4,5,6.5\n#\n7,9,9\n# end", 3),
        ("#,#,#\na,b,y\n" + ROWS, 1),
        ('# it\'s 5" wide, "or so\na,b,y\n' + ROWS, 1),
        ("# made;by;a logger\na;b;y\n1;2;3\n4;5;6,5\n7;9;9\n", 1),
        ("# made by a logger\na b y\n1 2 3\n#4 4 4\n4 5 6.5\n7 9 9\n", 2),
    ],
)
def test_comments_are_left_out_and_counted(write, text, count):
    table = read_table(write(text), target="y")
    assert np.column_stack([table.X, table.y]).tolist() == VALUES
    assert remarks(table) == [left_out(count)]


def test_line_numbers_are_those_of_the_editor(write, complaint):
    path = write("# one\na,y\n# two\n1,2\n#\nx,3\n4,5\n6,7\n")
    assert "row 6, column 'a': 'x'" in complaint(read_table, path, target="y")


def test_what_is_quoted_or_a_missing_value_is_no_comment(write):
    text = '"#1",a,y\n"# x",1,2\n#N/A,3,4\n"# x",5,6\n"y\n# z",7,8\n'
    table = read_table(write(text), target="y", impute="median")
    assert table.feature_names == ("#1", "a")
    assert table.columns[0].texts == ("# x", "y\n# z")
    assert remarks(table) == []


HEADER = "the comment above the first row is its header"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a,b,y\n" + ROWS, [HEADER]),
        ("#a, b , y\n" + ROWS, [HEADER]),
        ("# by hand, 2024\n\n# a,b,y\n" + ROWS + "# end\n", [HEADER, left_out(2)]),
        ("## a b y\n1 2 3\n4 5 6.5\n7 9 9\n", [HEADER]),
    ],
)
def test_a_comment_that_fits_the_rows_below_is_their_header(write, text, expected):
    path = write(text)
    table = read_table(path, target="y")
    assert np.column_stack([table.X, table.y]).tolist() == VALUES
    assert (table.feature_names, remarks(table)) == (("a", "b"), expected)
    assert read_features(path, ("b", "a"))[0].tolist() == [[2, 1], [5, 4], [9, 7]]


def test_numpy_writes_such_headers(write):
    file = io.StringIO()
    np.savetxt(file, VALUES, delimiter=",", header="a,b,y")
    assert read_table(write(file.getvalue()), target="y").feature_names == ("a", "b")


@pytest.mark.parametrize(
    "comment", ["# a,b", "# a,b,c,d", "# 4,4,4", "# a,a,y", "# a,,y", "# a,2,y", "# words"]
)
def test_other_comments_are_no_header(write, comment):
    table = read_table(write(f"{comment}\n" + ROWS), target=-1)
    assert np.column_stack([table.X, table.y]).tolist() == VALUES
    assert table.feature_names == ("x0", "x1")
    assert remarks(table) == [left_out(1)]


def test_a_column_needs_more_than_a_comment_for_a_name(write):
    X, _ = read_features(write("# words\n1\n2\n"), ("a",))
    assert X.tolist() == [[1], [2]]


def test_names_in_a_comment_decide_as_in_any_header(write, complaint):
    message = complaint(read_features, write("# b,A\n1,2\n"), ("a", "b"))
    assert "1 of the 2" in message
    assert "missing 'a' (did you mean 'A'?)" in message
