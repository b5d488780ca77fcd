"""Tables that cannot be used: one line, exit code 2, nothing written."""

import pytest

ROWS = "\n".join(f"{k},{k % 7},{k % 5},{k * k}" for k in range(20))
GOOD = f"a,b,c,y\n{ROWS}\n"
ODD = "4,4,4,16"

BAD = {
    "text": (GOOD.replace(ODD, "4,four,4,16"), ["row 6", "column 'b'", "'four'", "--drop b"]),
    "nan": (GOOD.replace(ODD, "4,nan,4,16"), ["row 6", "column 'b'", "missing", "--impute median"]),
    "row too short": (GOOD.replace(ODD, "4,4,4"), ["row 6", "3 cells", "--skip-bad-rows"]),
    "binary": (b"\x7fELF\x02\x01\0\0\xff\xfe", ["t.csv", "save it as CSV"]),
}


@pytest.mark.parametrize(("content", "says"), BAD.values(), ids=BAD)
def test_refused_by_train(refused, tmp_path, content, says):
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused("train", "t.csv", "--target", "y", "-o", "run", says=says)


def test_bad_rows_are_left_out_on_request(cli, curve_csv, tiny_run, loud, tmp_path):
    header, *rows = curve_csv.read_text().splitlines()
    rows[7:7] = ["1,2,three,4", "1,2", "inf,2,3,4"]
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]) + "\n")
    remark = (
        "t.csv: 3 rows that cannot be read left out (9, 10, 11); the first is row 9, column 'idle':"
        " 'three' is not a number\n"
    )
    answer = cli(
        *("train", "t.csv", "--target", "level", "--skip-bad-rows", "-o", "run", "--json", *loud),
        "--no-intervals",
    )
    assert (answer.code, answer.json["rows"], answer.err) == (0, 120, remark)
    skipped = cli("evaluate", tiny_run, "t.csv", "--skip-bad-rows", "--json")
    whole = cli("evaluate", tiny_run, curve_csv, "--json")
    assert skipped.out == whole.out
    assert skipped.err == remark + whole.err
    assert cli("evaluate", tiny_run, "t.csv", "--skip-bad-rows", "-q").err == ""


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("angle,offset,level\n1,2,3\n", ["2 of the 3 feature columns", "missing 'idle'"]),
        ("angle,offset,idle,level\n1,2,three,4\n", ["row 2", "column 'idle'", "'three'"]),
    ],
)
def test_refused_by_a_run(refused, tiny_run, tmp_path, command, content, says):
    (tmp_path / "t.csv").write_text(content)
    refused(command, tiny_run, "t.csv", says=["t.csv", *says])


@pytest.mark.parametrize(
    "option",
    [
        *("--target y", "--drop a", "--impute median", "--categorical a", "--drop-missing-target"),
        *("--skip-bad-rows", "--group a", "--missing -9999", "--time at", "--weight w"),
        *("--folds 3", "--test x.csv"),
    ],
)
def test_a_data_set_takes_no_options_of_tables(refused, option):
    name, *_ = words = option.split()
    refused("train", "--dataset", "tf", *words, says=[f"{name} is for a DATA.csv"])
