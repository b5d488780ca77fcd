import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from twinedge.data import csvfile, read_table
from twinedge.data.table import count_duplicates

PLAIN = "a,b,y\n1,2,3\n4,5,6.5\n7,9,9\n"


def test_a_plain_table_is_read(write):
    path = write(PLAIN)
    table = read_table(path, target="y")
    np.testing.assert_array_equal(table.X, [[1, 2], [4, 5], [7, 9]])
    np.testing.assert_array_equal(table.y, [3, 6.5, 9])
    assert table.X.dtype == table.y.dtype == np.float64
    assert table.feature_names == ("a", "b")
    assert table.target_name == "y"
    assert table.paths == (path,)
    assert (table.duplicates, table.missing, table.dropped) == (0, 0, ())
    assert table.remarks == ()
    X, encoding, fill_values = table.prepare()
    np.testing.assert_array_equal(X, table.X)
    assert (encoding.inputs, fill_values) == (("a", "b"), None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.y = None


@pytest.mark.parametrize(
    ("target", "name"),
    [("a", "a"), (0, "a"), (1, "b"), (-1, "y"), (-3, "a"), ("-1", "y"), ("1", "b")],
)
def test_the_target_is_given_by_name_or_position(target, name, write):
    table = read_table(write(PLAIN), target=target)
    assert table.target_name == name
    assert table.feature_names == tuple(n for n in "aby" if n != name)


def test_a_name_goes_before_a_position(write):
    assert read_table(write("x,0,z\n1,2,3\n2,3,5\n"), target="0").target_name == "0"


def test_without_a_target_constant_columns_and_single_rows_pass(write):
    table = read_table(write("a,b\n1,2\n"), target=None)
    assert table.y is None
    assert table.target_name is None
    np.testing.assert_array_equal(table.X, [[1, 2]])


VARIATIONS = {
    "blanks": " a b   y\n 1 2   3\n4 5 6.5\n7 9 9\n",
    "blank lines": "\n\na,b,y\n\n1,2,3\n   \n4,5,6.5\n7,9,9\n\n\n",
    "quotes": '"a","b","y"\n"1","2","3"\n4,5,"6.5"\n7,9,9\n',
    "spaces": "a, b , y\n1, 2, 3\n 4 ,5 ,6.5\n7,9, 9 \n",
    "exponents": "a,b,y\n1e0,+2,3\n4E0,.5e1,65e-1\n7.,9,9\n",
}


@pytest.mark.parametrize("text", VARIATIONS.values(), ids=VARIATIONS)
def test_the_same_table_written_otherwise_is_the_same(text, write):
    table = read_table(write(text), target="y")
    np.testing.assert_array_equal(table.X, [[1, 2], [4, 5], [7, 9]])
    np.testing.assert_array_equal(table.y, [3, 6.5, 9])
    assert table.feature_names == ("a", "b")


def test_columns_without_a_header_are_called_by_position(write):
    table = read_table(write("1,2,3\n4,5,6\n"), target=-1)
    assert (table.feature_names, table.target_name) == (("x0", "x1"), "x2")
    np.testing.assert_array_equal(table.X, [[1, 2], [4, 5]])


def test_a_name_may_span_lines_and_hold_the_delimiter(write):
    table = read_table(write('"a\n(m, s)",y\n1,2\n3,4\n'), target="y")
    assert table.feature_names == ("a\n(m, s)",)


def test_named_columns_are_dropped_whatever_they_hold(write):
    path = write("site,a,flag,y\nOslo,1,7,2\nRio,3,7,4\n_\u00e9,5,7,7\n")
    table = read_table(path, target="y", drop=["flag", "site"])
    np.testing.assert_array_equal(table.X, [[1], [3], [5]])
    assert table.feature_names == ("a",)
    assert table.dropped == ("site", "flag")


@pytest.mark.parametrize("hole", ["", "NA", "N/A", "NaN", "null", "None", "?", "#N/A", " "])
def test_holes_in_features_are_filled_with_the_median_on_request(hole, write):
    path = write(f"a,b,y\n1,10,1\n{hole},20,2\n4,{hole},3\n9,60,4\n", "h.csv")
    table = read_table(path, target="y", impute="median")
    assert table.missing == 2
    X, _, fill_values = table.prepare()
    np.testing.assert_array_equal(X, [[1, 10], [4, 20], [4, 20], [9, 60]])
    np.testing.assert_array_equal(fill_values, [4, 20])


def test_the_median_is_of_the_training_rows_alone(write):
    rows = "".join(f"{value},{k}\n" for k, value in enumerate(["1", "", "3", "5", "900", "800"]))
    table = read_table(write("a,y\n" + rows), target="y", impute="median")
    X, _, fill_values = table.prepare(np.array([0, 1, 2, 3]))
    assert fill_values.tolist() == [3]  # with the others it would be 5
    assert X[:, 0].tolist() == [1, 3, 3, 5, 900, 800]


def test_the_median_of_huge_values_is_finite(write):
    table = read_table(write("a,y\n1e308,1\n1.5e308,2\n,3\n"), target="y", impute="median")
    assert table.prepare().X[2, 0] == 1.25e308


def test_a_hole_in_the_first_row_without_a_header_is_a_hole(write):
    table = read_table(write("1,,3\n4,5,6\n7,8,10\n"), target=-1, impute="median")
    np.testing.assert_array_equal(table.prepare().X, [[1, 6.5], [4, 5], [7, 8]])


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_a_table_in_several_blocks_is_the_table_in_one(rows, write, monkeypatch):
    values = np.random.RandomState(0).normal(size=(7, 3))
    text = "a,b,y\n" + "".join(",".join(map(repr, row)) + "\n" for row in values.tolist())
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 3 * rows)
    table = read_table(write(text), target="y")
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), values)


def test_integers_first_and_decimal_commas_blocks_later_are_understood(write, monkeypatch):
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 2)
    table = read_table(write("a;y\n1;2\n3;4\n5,5;6,5\n7,5;8\n"), target="y")
    np.testing.assert_array_equal(table.X[:, 0], [1, 3, 5.5, 7.5])
    np.testing.assert_array_equal(table.y, [2, 4, 6.5, 8])


SMALL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, 1e300])


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=SMALL))
def test_duplicates_are_rows_less_distinct_rows(rows):
    distinct = {tuple(row) for row in rows.tolist()}
    assert count_duplicates(rows) == len(rows) - len(distinct)
    assert count_duplicates(rows[:, 1:], rows[:, 0]) == len(rows) - len(distinct)


@pytest.mark.parametrize(("name", "count"), [("cs", 25), ("wn", 240), ("bh", 0)])
def test_the_papers_sets_have_as_many_duplicates_as_is_known(name, count, true_folder):
    assert read_table(true_folder / f"{name}.csv", target=-1).duplicates == count


STATUS = Path("/proc/self/status")
MEASURE = """
import sys
from pathlib import Path
from twinedge.data import read_table

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

before = peak()
table = read_table(sys.argv[1], target="y")
print(table.X.shape[0], table.duplicates, peak() - before)
"""


@pytest.mark.skipif(not STATUS.exists(), reason="peak memory is read from /proc")
def test_a_long_table_is_read_in_memory_near_its_own_size(tmp_path):
    # 80,000 x 9 numbers are 6 MB; as text in Python lists they would be 52 MB.
    block = "\n".join(",".join(map(repr, row)) for row in np.random.rand(1000, 9).tolist())
    path = tmp_path / "long.csv"
    path.write_text("a,b,c,d,e,f,g,h,y\n" + "\n".join([block] * 80) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    rows, duplicates, megabytes = done.stdout.split()
    assert (int(rows), int(duplicates)) == (80_000, 79_000)
    assert float(megabytes) < 40
