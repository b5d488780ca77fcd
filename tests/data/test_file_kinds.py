"""Tables as other programs write them: with units, row numbers, names; compressed, or binary."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from twinedge.data import read_features, read_table
from twinedge.encoding.categories import Category
from twinedge.encoding.encoder import Encoding

PLAIN = "a,b,y\n1,2,3\n4,5,6.5\n7,9,9\n"
VALUES = [[1, 2, 3], [4, 5, 6.5], [7, 9, 9]]
INDEX = "the first column, without a name, numbers the rows: left out"
UNITS = "the row below the header holds units, not numbers: left out"

KINDS = {
    "units": ("a,b,y\nm,m/s,°C\n1,2,3\n4,5,6.5\n7,9,9\n", [UNITS]),
    "units, some missing": ("a,b,y\n,mm,\n1,2,3\n4,5,6.5\n7,9,9\n", [UNITS]),
    "units in brackets": ("a;b;y\n[m];[-];[°C]\n1;2;3\n4;5;6,5\n7;9;9\n", [UNITS]),
    "index": (",a,b,y\n0,1,2,3\n1,4,5,6.5\n2,7,9,9\n", [INDEX]),
    "index, read and written again": (
        "Unnamed: 0,a,b,y\n0,1,2,3\n1,4,5,6.5\n2,7,9,9\n",
        [INDEX],
    ),
    "index of words": (",a,b,y\nr1,1,2,3\nr2,4,5,6.5\nr3,7,9,9\n", [INDEX]),
    "index and units": (",a,b,y\n,m,kg,s\n0,1,2,3\n1,4,5,6.5\n2,7,9,9\n", [INDEX, UNITS]),
    "sep=;": ("sep=;\na;b;y\n1;2;3\n4;5;6,5\n7;9;9\n", []),
    "SEP=, and a byte order mark": ("\ufeffSEP=,\r\na,b,y\r\n1,2,3\r\n4,5,6.5\r\n7,9,9\r\n", []),
    "sep=|": ("sep=|\na|b|y\n1|2|3\n4|5|6,5\n7|9|9\n", []),
    "exponents before decimal commas": ("a;b;y\n1e0;2;3\n4;5;65e-1\n7;9,0;9\n", []),
}


def found(table):
    return np.column_stack([table.X, table.y]).tolist()


@pytest.mark.parametrize(("text", "remarks"), KINDS.values(), ids=KINDS)
def test_what_is_around_the_numbers_is_left_out_with_a_remark(write, text, remarks):
    path = write(text)
    table = read_table(path, target="y")
    assert found(table) == VALUES
    assert table.feature_names == ("a", "b")
    assert table.remarks == tuple(f"{path}: {remark}" for remark in remarks)
    X, y = read_features(path, ("b", "a"), target="y")
    assert np.column_stack([X, y]).tolist() == [[b, a, y] for a, b, y in VALUES]


def test_a_first_row_of_words_among_words_is_no_row_of_units(write):
    table = read_table(write("k,a,y\np,NA,1\nq,2,2\np,3,4\nq,4,5\n"), target="y", impute="median")
    assert (len(table.y), table.remarks) == (4, ())


def test_a_row_number_that_is_wanted_is_taken(write):
    text = ",a\n0,1\n1,4\n2,7\n4,8\n"
    assert read_table(write(text), target="").y.tolist() == [0, 1, 2, 4]
    assert read_features(write(text), ("", "a"))[0].tolist() == [[0, 1], [1, 4], [2, 7], [4, 8]]
    table = read_table(write(",a,b\np,1,2\nq,4,5\n"), target="b", group="")
    assert (table.groups.tolist(), table.remarks) == (["p", "q"], ())


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv"])
def test_a_compressed_file_is_read_for_what_it_holds(write, name):
    path = write(gzip.compress(PLAIN.encode()), name)
    assert found(read_table(path, target="y")) == VALUES


def test_a_compressed_file_that_is_not_whole_is_refused(write, complaint):
    rows = "".join(f"{k},{k * k % 97}\n" for k in range(9999))
    whole = gzip.compress(("a,y\n" + rows).encode())
    damaged = bytearray(whole)
    damaged[-6] ^= 255  # in the checksum
    for content in (whole[:-400], whole[:12], bytes(damaged)):
        message = complaint(read_table, write(content, "t.csv.gz"), target="y")
        assert "t.csv.gz: is not a complete gzip file" in message


@pytest.mark.parametrize("drop", [["b,c"], ["b", "c"], ["c,b"], ["b,c", "c"]])
def test_names_to_drop_may_share_an_option(write, drop):
    assert read_table(
        write("a,b,c,y\n1,2,3,4\n2,3,5,5\n"), target="y", drop=drop
    ).feature_names == ("a",)


def test_a_name_with_a_comma_is_one_to_drop(write, complaint):
    path = write('"b,c",b,y\n1,2,4\n2,3,5\n')
    assert read_table(path, target="y", drop=["b,c"]).feature_names == ("b",)
    assert "no column 'd' to drop" in complaint(read_table, path, target="y", drop=["b,d"])


THOUSANDS = ["1,234.5", "1.234,5", "1'234", "1 234", "1.234.567", "1\u202f234,5"]


@pytest.mark.parametrize("cell", THOUSANDS)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_marks_between_thousands_are_named_for_what_they_are(write, complaint, cell, delimiter):
    path = write(delimiter.join("ay") + "\n" + f'"{cell}"{delimiter}1\n' * 9)
    message = complaint(read_table, path, target="y")
    assert f"row 2, column 'a': {cell!r} has thousands separators; write numbers" in message
    assert "drop" not in message


def test_a_word_among_numbers_may_be_a_name_after_all(write, complaint):
    path = write("the site,y\n" + "".join(f"{k % 3},{k}\n" for k in range(20)) + "east,1\n")
    message = complaint(read_table, path, target="y")
    assert "row 22, column 'the site': 'east' is not a number; correct it" in message
    assert "drop=['the site']" in message
    assert "categorical=['the site']" in message
    table = read_table(path, target="y", categorical=["the site"])
    assert table.prepare().encoding.inputs == (
        *("the site=0", "the site=1", "the site=2", "the site=(others)"),
    )


def test_times_are_names_on_request(write, complaint):
    path = write("ratio,y\n" + "".join(f"16:{9 + k % 2:02},{k}\n" for k in range(20)))
    assert "holds dates or times such as '16:09'" in complaint(read_table, path, target="y")
    table = read_table(path, target="y", categorical=["ratio"])
    assert table.prepare().encoding.inputs == ("ratio=16:09", "ratio=16:10")


NAMES = "cut,a,y\n" + "".join(
    f"{cut},{k % 7},{k}\n"
    for k, cut in enumerate(['"Good, really"', "Idéal", '"say ""hi"""', " Idéal "] * 5)
)


def test_a_column_of_texts_is_a_category_as_it_is(write):
    table = read_table(write(NAMES), target="y")
    X, encoding, _ = table.prepare()
    assert encoding.inputs == ("cut=Good, really", "cut=Idéal", 'cut=say "hi"', "a")
    assert X[:4, :3].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]
    auto = read_table(write(NAMES), target="y", categorical=["auto"])
    assert auto.prepare().encoding.described == encoding.described
    again, _ = read_features(write(NAMES), encoding)
    np.testing.assert_array_equal(again, X)


def test_numbers_for_names_may_have_a_decimal_comma_where_numbers_may(write):
    rows = "".join(f"{('1,0', '2,5')[k % 2]};{k},5\n" for k in range(8))
    table = read_table(write("k;y\n" + rows), target="y", categorical=["k"])
    assert table.prepare().encoding.inputs == ("k=1", "k=2.5")
    rows = "".join(f'"{("1,0", "2,5")[k % 2]}",{k}.5\n' for k in range(8))
    table = read_table(write("k,y\n" + rows), target="y", categorical=["k"])
    assert table.prepare().encoding.inputs == ("k=1,0", "k=2,5")


def test_levels_of_training_rows_alone_are_known_and_holes_are_filled_with_the_commonest(write):
    cells = ["p", "q", "q", "", "p", "q", "z", "z", "p", "p", "p"]
    path = write("k,y\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
    table = read_table(path, target="y", impute="median")
    X, encoding, fill_values = table.prepare(np.arange(6))
    assert encoding.inputs == ("k=p", "k=q")
    assert fill_values.tolist() == [0, 1]  # of all rows p would be
    assert X[3].tolist() == [0, 1]
    assert X[6].tolist() == [0, 0]


def test_a_hole_among_names_is_refused_unless_it_may_be_filled(write, complaint):
    path = write("k,y\np,1\nq,2\np,3\nNA,4\nq,5\n")
    message = complaint(read_table, path, target="y")
    assert "row 5, column 'k': missing value" in message
    assert "impute='median'" in message
    encoding = Encoding([("k", Category(("p", "q")))])
    assert "row 5, column 'k'" in complaint(read_features, path, encoding)
    X, _ = read_features(path, encoding, fillable=np.ones(2, bool))
    assert np.isnan(X).all(axis=1).tolist() == [False, False, False, True, False]


def test_rows_without_a_target_are_left_out_on_request_and_counted(write, complaint):
    path = write("k,a,y\np,1,1\nq,2,NA\nq,5,3\np,3,\np,4,9\n")
    assert "drop_missing_target=True" in complaint(read_table, path, target="y", drop=["k"])
    table = read_table(path, target="y", group="k", drop_missing_target=True)
    assert table.y.tolist() == [1, 3, 9]
    assert table.X[:, 0].tolist() == [1, 5, 4]
    assert table.groups.tolist() == ["p", "q", "p"]
    assert table.remarks == (f"{path}: 2 rows without a target left out",)


FRAME = pd.DataFrame(
    {
        "cut": pd.Categorical(["Fair", "Idéal", None, "Fair", "Idéal", "Fair"]),
        "size": np.array([0.1, 2.5, np.nan, 1e-300, 3, 7], np.float64),
        "count": pd.array([1, 2, 3, None, 7, 9], "Int64"),
        "flag": [True, False, True, True, False, True],
        "y": np.arange(6) / 4,
    }
)


@pytest.mark.parametrize("kind", ["parquet", "xlsx", "csv", "csv.gz"])
def test_a_frame_is_the_same_table_in_every_kind_of_file(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    write = {"parquet": FRAME.to_parquet, "xlsx": FRAME.to_excel}.get(kind, FRAME.to_csv)
    write(path, index=False)
    table = read_table(path, target="y", impute="median")
    X, encoding, fill_values = table.prepare()
    assert encoding.inputs == ("cut=Fair", "cut=Idéal", "size", "count", "flag=False", "flag=True")
    assert fill_values.tolist() == [1, 0, 2.5, 3, 0, 1]
    np.testing.assert_array_equal(
        X, np.where(np.isnan(encoding.encode(FRAME)), fill_values, encoding.encode(FRAME))
    )
    assert table.y.tolist() == FRAME["y"].tolist()
    again, y = read_features(path, encoding, target="y", fillable=np.ones(6, bool))
    np.testing.assert_array_equal(again, encoding.encode(FRAME))
    assert y.tolist() == FRAME["y"].tolist()


def test_the_row_numbers_of_a_frame_are_left_out(tmp_path):
    FRAME.to_excel(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", target="y", impute="median")
    assert table.feature_names == ("cut", "size", "count", "flag")
    assert table.remarks[0].endswith(INDEX)


def test_an_empty_row_of_a_frame_is_left_out():
    frame = FRAME.reindex([0, 1, 6, 2, 3, 4, 5])  # the third has no values
    table = read_table(frame, target="y", impute="median")
    assert table.y.tolist() == FRAME["y"].tolist()


def test_dates_of_a_frame_are_refused_as_dates(tmp_path, complaint):
    days = pd.date_range("2026-01-01", periods=6)
    for kind in ("parquet", "xlsx"):
        path = tmp_path / f"t.{kind}"
        frame = FRAME[["y"]].assign(day=days)
        frame.to_parquet(path) if kind == "parquet" else frame.to_excel(path, index=False)
        assert "column 'day' holds dates or times" in complaint(read_table, path, target="y")


def test_files_that_are_not_what_they_are_called_are_refused(tmp_path, write, complaint):
    for name in ("t.parquet", "t.xlsx"):
        kind = name[2:]
        message = complaint(read_table, write(PLAIN, name), target="y")
        assert f"{name}: cannot be read as {kind}: " in message
        assert "no such file" in complaint(read_table, tmp_path / f"no.{kind}", target="y")


def test_without_pandas_a_message_names_what_to_install(tmp_path, monkeypatch, complaint):
    FRAME.to_parquet(path := tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert complaint(read_table, path, target="y") == (
        f"{path}: reading .parquet files needs pandas and its reader for them (pip install "
        "'twinedge[tables]'); or save it as CSV"
    )
