"""Rows that would refuse a whole file: left out and counted on request."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinedge.data import csvfile, read_features, read_table

GOOD = [f"{k},{k % 3}.5,{k * k}" for k in range(12)]
X = [[k, k % 3 + 0.5] for k in range(12)]
BAD = {
    "too short": ("1,2", "has 2 cells, the first row has 3"),
    "too long": ("1,2,3,4", "has 4 cells, the first row has 3"),
    "a word": ("1,oops,3", "column 'b': 'oops' is not a number"),
    "a word for the target": ("1,2,high", "column 'y': 'high' is not a number"),
    "infinite": ("inf,2,3", "column 'a': 'inf' is not a finite number"),
    "too large": ("1,2,1e999", "column 'y': '1e999' is not a finite number"),
    "missing": ("1,,3", "column 'b': missing value"),
    "no target": ("1,2,NA", "column 'y': missing value"),
    "thousands": ('1,"2,000",3', "column 'b': '2,000' has thousands separators"),
    "percent": ("1,2%,3", "column 'b': '2%' is ambiguous"),
    "an error of Excel's": ("#REF!,2,3", "column 'a': '#REF!' is not a number"),
    "an open quote": ('1,"2,3', "unexpected end of data"),
    "text after a quote": ('"1"x,2,3', "',' expected after '\"'"),
}
QUICK = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def written(write, rows, header="a,b,y"):
    return write("\n".join([header, *rows]) + "\n")


def read(path, **more):
    table = read_table(path, target="y", skip_bad_rows=True, **more)
    return table, [one.removeprefix(f"{path}: ") for one in table.remarks if "left out" in one]


@pytest.mark.parametrize(("row", "says"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("block", [2, 100])
def test_a_bad_row_is_left_out_and_the_others_stay(write, complaint, monkeypatch, row, says, block):
    monkeypatch.setattr(csvfile, "_CELLS_PER_BLOCK", 3 * block)
    path = written(write, [*GOOD[:5], row, *GOOD[5:]])
    message = complaint(read_table, path, target="y")
    assert f"{path}: row 7" in message
    assert "leave such rows out with skip_bad_rows=True" in message
    table, remarks = read(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == [k * k for k in range(12)]
    assert len(remarks) == 1
    assert remarks[0].startswith("1 row that cannot be read left out (7); the first is row 7")
    assert says in remarks[0]


def test_many_are_counted_and_the_first_few_are_named(write):
    rows = [row for good in GOOD for row in (good, "1,x,2")][:-1]
    table, remarks = read(written(write, rows))
    np.testing.assert_array_equal(table.X, X)
    assert remarks == [
        "11 rows that cannot be read left out (3, 5, 7, 9, 11 and 6 more); the first is row 3, "
        "column 'b': 'x' is not a number"
    ]


def test_a_file_that_is_mostly_bad_is_refused(write, complaint):
    rows = [*GOOD[:5], *["1,x,2", "3"] * 3]
    message = complaint(read_table, written(write, rows), target="y", skip_bad_rows=True)
    assert "6 of 11 rows cannot be read, more than half" in message
    assert "the first is row 7, column 'b': 'x' is not a number" in message
    assert len(read(written(write, rows[:-1]))[0].y) == 5


def test_a_bad_row_decides_nothing(write):
    """Neither the decimal mark nor what a percent sign means."""
    rows = [one.replace(",", ";").replace(".", ",") for one in GOOD]
    table, remarks = read(written(write, ["1.5%;x;3", *rows], "a;b;y"))
    np.testing.assert_array_equal(table.X, X)
    assert len(remarks) == 1


def test_rows_without_a_name_or_a_group_are_bad_rows(write, complaint):
    rows = [f"{'pq'[k % 2]},g{k % 4},{k},{k * k}" for k in range(12)]
    path = written(write, [*rows[:5], ",g1,5,5", "p,NA,5,5", *rows[5:]], "kind,batch,a,y")
    assert "row 7, column 'kind': missing value" in complaint(
        read_table, path, target="y", group="batch"
    )
    table, remarks = read(path, group="batch")
    assert (len(table.y), len(table.groups)) == (12, 12)
    assert table.groups.tolist() == [f"g{k % 4}" for k in range(12)]
    assert remarks[0].startswith("2 rows that cannot be read left out (7, 8)")


def test_what_is_filled_in_is_not_left_out(write):
    path = written(write, ["1,,3", *GOOD, "2,3,"])
    table, remarks = read(path, impute="median", drop_missing_target=True)
    assert (len(table.y), table.missing) == (13, 1)
    assert remarks == ["1 row without a target left out"]


def test_a_quoted_cell_of_two_lines_is_one_good_row(write):
    rows = [f'"one\ntwo",{row}' for row in GOOD]
    path = written(write, [*rows[:3], '"open,1,2,3', *rows[3:]], "note,a,b,y")
    table, remarks = read(path, drop=["note"])
    np.testing.assert_array_equal(table.X, X)
    assert remarks[0].startswith("1 row that cannot be read left out (8)")


def test_rows_for_a_model_may_be_left_out_too(write):
    path = written(write, [*GOOD[:5], "1,oops,3", *GOOD[5:]])
    found = []
    inputs, y = read_features(path, ("b", "a"), target="y", skip_bad_rows=True, say=found.append)
    assert inputs.tolist() == [[b, a] for a, b in X]
    assert len(y) == 12
    assert found[0].startswith(f"{path}: 1 row that cannot be read left out (7)")


@QUICK
@given(st.lists(st.sampled_from([row for row, _ in BAD.values()]), max_size=11), st.data())
def test_whatever_is_in_between_the_good_rows_are_read(tmp_path, bad, data):
    rows = list(GOOD)
    for row in bad:
        rows.insert(data.draw(st.integers(1, len(rows))), row)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,y", *rows]) + "\n")
    table, remarks = read(path)
    np.testing.assert_array_equal(table.X, X)
    assert len(remarks) == bool(bad)
    if bad:
        assert int(remarks[0].split()[0]) == len(bad)
