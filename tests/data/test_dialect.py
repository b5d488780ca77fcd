import pytest

from twinedge.data.dialect import RowError, Rows, find_delimiter, names_columns
from twinedge.encoding.cells import CellKind, CellReader


@pytest.mark.parametrize(
    ("head", "delimiter"),
    [
        (["a,b\n", "1,2\n"], ","),
        (["a;b\n", "1;2\n"], ";"),
        (["a\tb\n", "1\t2\n"], "\t"),
        (["a|b\n", "1|2\n"], "|"),
        (["a b\n", "1  2\n"], " "),
        (["  1   2 \n", "\n", " 3 4\n"], " "),
        (["a;b;c\n", "1,5;2,5;3,5\n"], ";"),
        (["1,5;2,5\n", "3,5;4,5\n"], ";"),
        (["1,5\t2,5\n", "3,5\t4,5\n"], "\t"),
        (["1,5  2,5\n", "3,5 4,5\n"], " "),
        (["1, 2\n", "3, 4\n"], ","),
        (["1, NA\n", "3, 4\n"], ","),
        (['"last, first";b\n', "1;2\n"], ";"),
        (["one\n", "1\n"], ","),
        (["my value\n", "1\n"], ","),
        (["a,b,c\n", "1,2\n", "1,2,3\n"], ","),
        (["a, b\n", "1, 2\n"], ","),
        ([], ","),
        (["a,b\n", '1,"2\n'], ","),
    ],
)
def test_the_delimiter_is_found(head, delimiter):
    assert find_delimiter(head) == delimiter


@pytest.mark.parametrize(
    ("first", "second", "header"),
    [
        (["a", "b"], ["1", "2"], True),
        (["1", "2"], ["3", "4"], False),
        (["1", ""], ["3", "4"], False),
        (["1", "NA"], ["3", "4"], False),
        (["1,5", "2"], ["3", "4"], False),
        (["400", "410", "target"], ["1", "2", "3"], True),
        (["5.1", "3.5", "setosa"], ["4.9", "3", "setosa"], False),
        (["a", "b"], None, True),
        (["a", "1"], None, True),
        (["a", ""], ["1", "2"], True),
        (["1", "2", "a"], ["1"], False),
    ],
)
def test_a_header_is_distinguished_from_data(first, second, header):
    assert names_columns(first, second) is header


def test_rows_carry_the_line_numbers_an_editor_shows():
    text = ["a,b\n", "\n", '"1\n', '2",3\n', "   \n", "4,5"]
    assert list(Rows(text, ",")) == [(1, ["a", "b"]), (4, ["1\n2", "3"]), (6, ["4", "5"])]
    assert list(Rows(["1 2\n", "\n", "3 4\n"], " ")) == [(1, ["1", "2"]), (3, ["3", "4"])]


def test_a_quote_left_open_is_an_error_with_its_line():
    with pytest.raises(RowError) as caught:
        list(Rows(["a,b\n", '"1,2\n', "3,4\n"], ","))
    assert caught.value.number == 2


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        ("1", CellKind.NUMBER, 1.0),
        (" -1.5e-3 ", CellKind.NUMBER, -0.0015),
        ("+.5", CellKind.NUMBER, 0.5),
        ("5.", CellKind.NUMBER, 5.0),
        *[(cell, CellKind.MISSING, None) for cell in ("", " ", "NA", "N/A", "#N/A", "NaN", "-nan")],
        *[(cell, CellKind.MISSING, None) for cell in ("null", "None", "?", "nan")],
        *[
            (cell, CellKind.INFINITE, None)
            for cell in ("inf", "-Inf", "Infinity", "1e999", "-1e309")
        ],
        *[(cell, CellKind.TEXT, None) for cell in ("x", "1_000", "0x1F", "1.2.3", "--1")],
        *[
            (cell, CellKind.TEXT, None)
            for cell in ("\u0661", "\u22121", "12:30", "5%", "e5", ".", "-")
        ],
        ("3,14", CellKind.TEXT, None),
        *[(cell, CellKind.THOUSANDS, None) for cell in ("1,234", "-1,234.5", "1 234", "1'234.5")],
        *[(cell, CellKind.THOUSANDS, None) for cell in ("1.234.567", "1.234,5", "1\u202f234,5")],
        *[(cell, CellKind.TEXT, None) for cell in ("1,23", "12 34", "1234,567", "1.234 567,8,9")],
    ],
)
def test_what_a_cell_holds(cell, kind, value):
    found, number = CellReader(comma_allowed=False).read(cell)
    assert found is kind
    assert number == value if value is not None else number != number


@pytest.mark.parametrize("cell", ["1_000", "\u0661", "nan", "inf", "1e999", "", "x"])
def test_the_fast_way_never_takes_what_the_careful_way_would_not(cell):
    assert CellReader(comma_allowed=False).read_all(["1", cell]) is None
    assert CellReader(comma_allowed=True).read_all(["1", cell]) is None


def test_the_first_fraction_decides_the_decimal_mark():
    reader = CellReader(comma_allowed=True)
    assert reader.read_all(["1", "2"]).tolist() == [1, 2]
    assert reader.read_all(["1", "2,5"]) is None
    assert reader.read("2,5") == (CellKind.NUMBER, 2.5)
    assert reader.read_all(["1", "2,5"]).tolist() == [1, 2.5]
    assert reader.read_all(["1.5", "2"]) is None
    assert reader.read("1.5")[0] is CellKind.MIXED_DECIMALS

    reader = CellReader(comma_allowed=True)
    assert reader.read_all(["1.5"]).tolist() == [1.5]
    assert reader.read("2,5")[0] is CellKind.MIXED_DECIMALS
