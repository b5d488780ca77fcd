"""Tables that cannot be used: one line, exit code 2, nothing written."""

import pytest

ROWS = "\n".join(f"{k},{k % 7},{k % 5},{k * k}" for k in range(20))
GOOD = f"a,b,c,y\n{ROWS}\n"
ODD = "4,4,4,16"

BAD = {
    "empty": ("", ["t.csv", "is empty"]),
    "header only": ("a,b,c,y\n", ["t.csv", "a header and no rows"]),
    "one row": ("a,b,c,y\n1,2,3,4\n", ["t.csv", "1 row", "at least 10"]),
    "nine rows": ("\n".join(GOOD.splitlines()[:10]), ["t.csv", "9 rows", "at least 10"]),
    "text": (GOOD.replace(ODD, "4,four,4,16"), ["row 6", "column 'b'", "'four'", "--drop b"]),
    "nan": (GOOD.replace(ODD, "4,nan,4,16"), ["row 6", "column 'b'", "missing", "--impute median"]),
    "missing target": (GOOD.replace(ODD, "4,4,4,"), ["row 6", "column 'y'", "missing"]),
    "inf": (GOOD.replace(ODD, "4,-inf,4,16"), ["row 6", "column 'b'", "'-inf'", "finite"]),
    "no such target": (GOOD.replace("y\n", "z\n"), ["no column 'y'", "'a', 'b', 'c', 'z'"]),
    "constant target": (
        "a,y\n" + "\n".join(f"{k},7" for k in range(20)),
        ["target column 'y'", "7 in every row"],
    ),
    "constant feature": (
        "a,b,y\n" + "\n".join(f"{k},7,{k * k}" for k in range(20)),
        ["column 'b'", "7 in every row", "--drop b"],
    ),
    "same name twice": (GOOD.replace("a,b,c", "a,b,a"), ["2 columns are called 'a'"]),
    "row too short": (GOOD.replace(ODD, "4,4,4"), ["row 6", "3 cells"]),
    "binary": (b"\x7fELF\x02\x01\0\0\xff\xfe", ["t.csv", "save it as CSV"]),
    "only a target": ("y\n" + "\n".join(map(str, range(20))), ["no feature is left"]),
}


@pytest.mark.parametrize(("content", "says"), BAD.values(), ids=BAD)
def test_refused_by_train(refused, tmp_path, content, says):
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused("train", "t.csv", "--target", "y", "-o", "run", says=says)


def test_bad_rows_are_left_out_on_request(cli, curve_csv, tiny_run, loud, tmp_path):
    header, *rows = curve_csv.read_text().splitlines()
    rows[7:7] = ["1,2,three,4", "1,2", "inf,2,3,4"]
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]) + "\n")
    said = (
        "t.csv: 3 rows that cannot be read left out (9, 10, 11); the first is row 9, column 'idle':"
        " 'three' is not a number\n"
    )
    answer = cli(
        *("train", "t.csv", "--target", "level", "--skip-bad-rows", "-o", "run", "--json", *loud)
    )
    assert (answer.code, answer.json["rows"], answer.err) == (0, 120, said)
    theirs = cli("evaluate", tiny_run, "t.csv", "--skip-bad-rows", "--json")
    ours = cli("evaluate", tiny_run, curve_csv, "--json")
    assert theirs.out == ours.out
    assert theirs.err == said + ours.err
    assert cli("evaluate", tiny_run, "t.csv", "--skip-bad-rows", "-q").err == ""


def test_bad_rows_are_refused_without_it(refused, tiny_run, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD.replace(ODD, "4,four,4,16"))
    refused("train", "t.csv", "--target", "y", "-o", "run", says=["row 6", "--skip-bad-rows"])
    (tmp_path / "t.csv").write_text("angle,offset,idle,level\n1,2,three,4\n")
    refused("evaluate", tiny_run, "t.csv", says=["row 2", "'three'", "--skip-bad-rows"])


def test_tables_that_are_mostly_bad_are_refused_in_any_case(refused, tmp_path):
    rows = "\n".join(f"{k},inf,{k}" if k % 3 else f"{k},{k % 7},{k * k}" for k in range(30))
    (tmp_path / "t.csv").write_text(f"a,b,y\n{rows}\n")
    says = ["20 of 30 rows cannot be read, more than half", "row 3, column 'b': 'inf'"]
    refused("train", "t.csv", "--target", "y", "--skip-bad-rows", "-o", "run", says=says)


def test_a_folder_is_no_table(refused, tmp_path):
    (tmp_path / "t.csv").mkdir()
    refused("train", "t.csv", "--target", "y", says=["t.csv", "is a folder"])


def test_no_such_file(refused):
    refused("train", "t.csv", "--target", "y", says=["t.csv", "no such file"])


def test_a_name_that_would_break_the_line(refused):
    refused("train", "two\nlines.csv", "--target", "y", says=["lines.csv", "no such file"])


@pytest.mark.parametrize("target", ["4", "-5"])
def test_a_target_position_outside_the_file(refused, tmp_path, target):
    (tmp_path / "t.csv").write_text(GOOD)
    refused("train", "t.csv", "--target", target, says=[f"position {target}", "0 to 3"])


def test_only_columns_that_exist_can_be_dropped(refused, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    refused("train", "t.csv", "--target", "y", "--drop", "d", says=["no column 'd' to drop"])
    refused("train", "t.csv", "--target", "y", "--drop", "y", says=["'y' is the target"])


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", ["is empty"]),
        ("angle,offset,idle,level\n", ["a header and no rows"]),
        ("angle,offset,level\n1,2,3\n", ["2 of the 3 feature columns", "missing 'idle'"]),
        ("1,2,3,4,5\n1,2,3,4,6\n", ["5 columns and no header", "3 features"]),
        ("angle,offset,idle,level\n1,2,three,4\n", ["row 2", "column 'idle'", "'three'"]),
        ("angle,offset,idle,level\n1,2,inf,4\n", ["row 2", "column 'idle'", "'inf'"]),
        ("angle,offset,idle,level\n1,2,,4\n", ["row 2", "column 'idle'", "missing"]),
        ("angle,offset,idle,idle,level\n1,2,3,4,5\n", ["2 columns are called 'idle'"]),
    ],
)
def test_refused_by_a_run(refused, tiny_run, tmp_path, command, content, says):
    (tmp_path / "t.csv").write_text(content)
    refused(command, tiny_run, "t.csv", says=["t.csv", *says])


def test_no_table_to_predict(refused, tiny_run, tmp_path):
    refused("predict", tiny_run, "t.csv", says=["t.csv", "no such file"])
    refused("predict", tiny_run, tmp_path, says=["is a folder"])


@pytest.mark.parametrize(
    "option",
    [
        ("--target", "y"),
        ("--drop", "a"),
        ("--impute", "median"),
        ("--categorical", "a"),
        ("--drop-missing-target",),
        ("--skip-bad-rows",),
        ("--group", "a"),
    ],
    ids=" ".join,
)
def test_a_data_set_takes_no_options_of_tables(refused, option):
    refused("train", "--dataset", "tf", *option, says=[f"{option[0]} is for a DATA.csv"])
