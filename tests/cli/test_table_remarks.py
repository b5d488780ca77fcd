"""What looks wrong in a table is remarked before training, and codes can be read as missing."""

import numpy as np
import pytest

from twinedge.run_folder import load_run

N = 60
RNG = np.random.default_rng(3)
A, B = RNG.normal(20, 5, N), RNG.uniform(0, 5, N)
Y = 2 * A + B**2 + RNG.normal(size=N)
QUICK = ("--no-intervals", "--json")


@pytest.fixture
def write_table(tmp_path):
    """Write columns to t.csv."""

    def write(**columns):
        table = np.column_stack(list(columns.values()))
        head = {"delimiter": ",", "header": ",".join(columns), "comments": "", "fmt": "%.8g"}
        np.savetxt(tmp_path / "t.csv", table, **head)

    return write


def changed(values, row, value):
    values = values.copy()
    values[row - 2] = value
    return values


@pytest.fixture
def bad_cells(write_table):
    """Two codes for missing values, and a target that is wrong."""
    write_table(a=changed(A, 5, 99999), b=changed(B, 9, -9999), y=changed(Y, 30, 1e6))


def lines(answer):
    return [one.removeprefix("t.csv: ") for one in answer.err.splitlines()]


def test_three_bad_cells(cli, bad_cells, loud):
    answer = cli("train", "t.csv", "--target", "y", "-o", "run", *loud, *QUICK)
    assert (answer.code, answer.json["rows"]) == (0, N)
    starts = [one.partition(";")[0] for one in lines(answer)[:3]]
    assert starts == [
        "99999 is far from all other values of column 'a' (row 5",
        "-9999 is far from all other values of column 'b' (row 9",
        "1000000 is far from all other values of target 'y' (row 30",
    ]
    assert lines(answer)[1].endswith("if it stands for a missing value, use --missing -9999")
    assert lines(answer)[2].endswith("use --missing 1000000 and --drop-missing-target")


def test_what_the_remarks_recommend_puts_it_right(cli, bad_cells, refused, loud, tmp_path):
    codes = ("--missing", "99999", "--missing=-9999", "--missing", "1000000")
    train = ("train", "t.csv", "--target", "y", "-o", "run", *codes)
    refused(*train, says=["row 5, column 'a': missing value", "--impute median"])
    answer = cli(*train, "--impute", "median", "--drop-missing-target", *loud, *QUICK)
    assert answer.code == 0
    assert lines(answer)[:2] == ["1 row without a target left out", "filled in 2 missing values"]
    assert not any("far from" in one for one in lines(answer))
    assert answer.json["rows"] == N - 1
    assert load_run(tmp_path / "run").source["missing"] == ["99999", "-9999", "1000000"]

    # The run predicts the same for a code as for an empty cell, if it is named.
    (tmp_path / "code.csv").write_text("a,b,y\n-9999.0,1,2\n20,2,3\n")
    (tmp_path / "empty.csv").write_text("a,b,y\n,1,2\n20,2,3\n")
    for command in ("predict", "evaluate"):
        coded = cli(command, "run", "code.csv", "--missing", "-9999")
        empty = cli(command, "run", "empty.csv")
        assert (coded.code, coded.out) == (0, empty.out)
        assert coded.err == empty.err.replace("empty.csv", "code.csv")
    assert cli("predict", "run", "code.csv").out != cli("predict", "run", "empty.csv").out


@pytest.mark.parametrize("command", ["calibrate", "adapt"])
def test_packs_read_codes_in_the_same_way(refused, pack, tmp_path, command):
    (tmp_path / "t.csv").write_text("angle,offset,idle,level\n0,5,unknown,50\n")
    given = (command, pack, "t.csv", "-o", "new.twin")
    refused(*given, says=["row 2, column 'idle': 'unknown' is not a number"])
    refused(*given, "--missing", "unknown", says=["row 2, column 'idle': missing value"])


def test_lines_leave_out_what_is_missing(refused, pack):
    says = ["--missing is for a table"]
    refused("predict", pack, "-", "--missing", "-9999", says=says)
