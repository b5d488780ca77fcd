import os

import pytest

from twinedge.data import csvfile, read_table, textfile

# content, arguments, what the message must say
BAD = {
    "empty": ("", {}, ["is empty"]),
    "blank": ("\n \n\n", {}, ["is empty"]),
    "header only": ("a,b,y\n", {}, ["a header and no rows"]),
    "header only, with times": ("t,b,y\n", {"time": "t"}, ["a header and no rows"]),
    "header only, with a calendar": ("t,b,y\n", {"calendar": ["t"]}, ["a header and no rows"]),
    "one row": ("a,y\n1,2\n", {}, ["1 row", "at least 10"]),
    "text column": (
        "a,site,y\n1,2,3\n4,Oslo,6\n",
        {},
        ["row 3", "column 'site'", "'Oslo'", "not a number", "drop=['site']"],
    ),
    "texts that never repeat": (
        "a,the site,who,y\n1,Oslo,me,3\n4,Rio,you,6\n",
        {},
        ["column 'the site'", "2 different texts in 2 rows", "drop=['the site']"],
    ),
    "numbers with a unit": (
        "a,y\n" + "".join(f"{k / 8} km/h,{k}\n" for k in range(25)),
        {},
        ["column 'a' holds numbers with 'km/h', such as '0.0 km/h'", "without it", "drop=['a']"],
    ),
    "texts without a header": ("1,A,3\n2,B,4\n", {}, ["column 'x1'", "2 rows", "drop=['x1']"]),
    "texts that hardly repeat": (
        "who,y\n" + "".join(f"p{k % 15},{k}\n" for k in range(25)),
        {},
        ["column 'who'", "15 different texts in 25 rows", "drop=['who']"],
    ),
    "dates": (
        "day,y\n" + "".join(f"2026-01-{k % 9 + 10},{k}\n" for k in range(30)),
        {},
        ["column 'day'", "dates or times such as '2026-01-10'", "days since", "drop=['day']"],
    ),
    "one text": ("a,k,y\n1,x,1\n2,x,3\n", {}, ["'k' is 'x' in every row", "drop=['k']"]),
    "unknown category": ("a,b,y\n1,2,3\n", {"categorical": ["c"]}, ["'c'", "to treat as names"]),
    "target as a category": (
        "a,b,y\n1,2,3\n",
        {"categorical": ["y"]},
        ["'y' is the target and cannot be a category"],
    ),
    "no target at all": ("a,y\n1,\n2,\n", {"drop_missing_target": True}, ["no row has a target"]),
    "text target": ("a,y\n1,low\n2,high\n", {}, ["row 2", "column 'y'", "'low'"]),
    "constant column": ("a,b,y\n1,7,1\n2,7,3\n", {}, ["'b'", "7 in every row", "drop=['b']"]),
    "two constant columns": ("a,b,c,y\n1,7,8,1\n2,7,8,3\n", {}, ["drop=['b', 'c']"]),
    "constant target": ("a,y\n1,7\n2,7\n", {}, ["target", "'y'", "7 in every row"]),
    "missing value": ("a,b,y\n1,2,3\n4,,6\n", {}, ["row 3", "'b'", "missing", "impute='median'"]),
    "missing target": ("a,b,y\n1,2,3\n4,5,NA\n", {}, ["row 3", "'y'", "missing"]),
    "infinity": ("a,b,y\n1,2,3\n4,-inf,6\n", {}, ["row 3", "'b'", "'-inf'", "finite"]),
    "infinity, imputing": ("a,y\n1,2\ninf,6\n", {"impute": "median"}, ["row 3", "'a'", "finite"]),
    "too large for a double": ("a,y\n1,2\n1e999,6\n", {}, ["row 3", "'1e999'", "finite"]),
    "same name twice": ("a,a,y\n1,2,3\n4,5,6\n", {}, ["2 columns are called 'a'"]),
    "no name": ("a,,y\n0,1,2\n1,3,4\n", {}, ["column 2 has no name", "a separator at the end"]),
    "no name at the end": ("a,y,\n0,1,\n1,3,\n", {}, ["column 3 has no name", "separator"]),
    "short row": (
        "a,b,y\n1,2,3\n4,5\n",
        {},
        ["row 3", "2 cells", "has 3", "leave such rows out with skip_bad_rows=True"],
    ),
    "long row": ("a,b,y\n1,2,3\n\n4,5,6,7\n", {}, ["row 4", "4 cells", "has 3"]),
    "row of one": ("a,b,y\n1\n", {}, ["row 2", "1 cell,"]),
    "open quote": ('a,b,y\n1,2,3\n4,"5,6\n7,8,9\n', {}, ["row 3", "quote"]),
    "text after a quote": ('a,y\n1,2\n"3"x,4\n', {}, ["row 3", "quote"]),
    "huge cell": ("a,y\n1,2\n3," + "9" * 200_000 + "\n", {}, ["row 3", "field limit"]),
    "both decimal marks": ("a;y\n1,5;2\n3.5;4\n", {}, ["row 3", "'3.5'", "decimal mark"]),
    "unknown target": ("alpha,b,y\n1,2,3\n", {"target": "alpa"}, ["'alpa'", "mean 'alpha'", "'b'"]),
    "target past the end": ("a,b\n1,2\n3,4\n", {"target": 2}, ["position 2", "0 to 1", "-1 to -2"]),
    "target before the start": ("a,b\n1,2\n3,4\n", {"target": "-3"}, ["position -3"]),
    "huge position": ("a,b\n1,2\n3,4\n", {"target": "9" * 5000}, ["no column '999"]),
    "unknown drop": ("a,b,y\n1,2,3\n", {"drop": ["c"]}, ["'c'", "to drop", "'a', 'b', 'y'"]),
    "target dropped": ("a,b,y\n1,2,3\n", {"drop": ["y"]}, ["'y'", "target", "cannot be dropped"]),
    "no feature": ("y\n1\n2\n", {}, ["no feature", "at least one"]),
    "all features dropped": ("a,y\n1,2\n3,4\n", {"drop": ["a"]}, ["no feature", "at least one"]),
    "unknown imputation": ("a,y\n1,2\n3,4\n", {"impute": "mean"}, ["'mean'", "'median'"]),
    "zero bytes": (b"a,y\n1,2\n3,\x004\n", {}, ["row 3", "not a text file", "UTF-8"]),
    "UTF-16 cut short": ("a,y\n1,2\n".encode("utf-16")[:-1], {}, ["damaged UTF-16", "UTF-8"]),
    "no encoding of ours": (b"a,y\n1,2\n\x81,4\n", {}, ["row 3", "neither UTF-8 nor Windows-1252"]),
    "two encodings in a row": (
        b"a,y\n\xc2\xb0\xb0,2\n3,4\n",
        {},
        ["row 2", "partly in UTF-8, partly in Windows-1252", "save it as CSV in UTF-8"],
    ),
    "two encodings, UTF-8 first": (b"a,\xc2\xb0\n1,2\n\xb0,4\n", {}, ["row 3", "partly in UTF-8"]),
    "two encodings, UTF-8 last": (b"a,\xb0\n1,2\n\xc2\xb0,4\n", {}, ["row 3", "partly in UTF-8"]),
    "only comments": ("# a,y\n# 1,2\n", {}, ["is empty but for comments"]),
    "a comment and a header": ("# made\na,y\n# 1,2\n", {}, ["a header and no rows"]),
    "Excel's error at the start": ("a,y\n1,2\n#DIV/0!,3\n4,5\n", {}, ["row 3", "'#DIV/0!'"]),
    "line feed in a name": ('"a\nb",y\n1,2\nz,4\n', {}, ["'a\\nb'", "row 4"]),
}


@pytest.mark.parametrize(("content", "arguments", "parts"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_line(content, arguments, parts, write, complaint):
    path = write(content)
    message = complaint(read_table, path, **{"target": -1, **arguments})
    for part in parts:
        assert part in message
    if "imputation" not in message and "impute:" not in message:
        assert message.startswith(f"{path}: ")


def test_a_column_without_values_is_refused_where_they_are_filled_in(write, complaint):
    table = read_table(write("a,b,y\n1,,3\n4,,6\n"), target="y", impute="median")
    message = complaint(table.prepare)
    assert "t.csv: column 'b' has no value in any training row; leave it out with drop" in message


def test_missing_targets_are_not_imputable(write, complaint):
    assert "impute" not in complaint(read_table, write("a,y\n1,2\n3,\n"), target="y")


def test_the_row_of_the_first_culprit_is_found_blocks_later(write, complaint, monkeypatch):
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 10)
    path = write("a,y\n" + "1,2\n" * 50 + "\n" + "3,oops\n" + "4,worse\n")
    assert "row 53, column 'y': 'oops'" in complaint(read_table, path, target="y")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no.csv", "no.csv: no such file"),
        ("", "is a folder"),
        ("x" * 5000, "cannot be read"),
        ("a\0b", "cannot be read"),
        ("two\nlines", "two\\nlines"),
    ],
    ids=["missing", "a folder", "too long", "impossible", "two lines"],
)
def test_a_path_of_no_file_is_refused(name, says, tmp_path, complaint):
    assert says in complaint(read_table, tmp_path / name, target=-1)


def test_a_file_that_may_not_be_read_is_refused(write, complaint, monkeypatch):
    path = write("a,y\n1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root can read everything, so fake the refusal
        monkeypatch.setattr("pathlib.Path.open", _denied)
    assert "cannot be read: Permission denied" in complaint(read_table, path, target=-1)


def _denied(*args, **kwargs):
    raise PermissionError(13, "Permission denied")


def test_many_thousand_columns_are_refused_without_a_traceback(write, complaint):
    wide = ",".join(["1"] * 20_000)
    message = complaint(read_table, write(f"{wide}\n{wide}\n"), target=-1)
    assert "in every row" in message
    assert len(message) < 2000


def test_many_columns_are_listed_in_part(write, complaint):
    names = [f"c{k}" for k in range(5000)]
    path = write(",".join(names) + "\n" + ",".join(["1"] * 5000) + "\n")
    message = complaint(read_table, path, target="nosuch")
    assert "and 4988 more" in message
    assert len(message) < 2000


def test_a_line_without_end_is_refused_before_it_fills_the_memory(write, complaint, monkeypatch):
    monkeypatch.setattr(textfile, "LONGEST_LINE", 100)
    path = write("a,y\n1,2\n" + "3" * 200)
    message = complaint(read_table, path, target=-1)
    assert "row 3: longer than 100 characters" in message


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero")  # noqa: PTH110
def test_an_endless_device_is_refused(complaint):
    assert "not a text file" in complaint(read_table, "/dev/zero", target=-1)
