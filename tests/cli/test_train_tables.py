"""``twinedge train base.csv points.csv``: one model from several tables."""

import numpy as np
import pytest

from twinedge.data import split_rows
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def tables(curve, tmp_path_factory):
    """The first 60 rows of the curve, and the others with the device that measured them."""
    X, y = curve
    folder = tmp_path_factory.mktemp("tables")
    base = [
        ",".join(map(repr, (*row, one))) for row, one in zip(X.tolist(), y.tolist(), strict=True)
    ]
    points = [
        ",".join([repr(one), f"unit {k % 6}", *map(repr, row[::-1])])
        for k, (row, one) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    ]
    (folder / "base.csv").write_text("\n".join(["angle,offset,idle,level", *base[:60]]))
    head = "level,device,idle,offset,angle"
    (folder / "points.csv").write_text("\n".join([head, *points[60:]]))
    return folder / "base.csv", folder / "points.csv"


@pytest.fixture(scope="module")
def joined(done, tables, loud, tmp_path_factory):
    """A run, the JSON that was printed, and the remarks."""
    folder = tmp_path_factory.mktemp("joined") / "run"
    arguments = ["train", *tables, "--target", "level", "--group", "device", "-o", folder]
    answer = done(*arguments, "--json", *loud)
    return folder, answer.json, answer.err


def test_all_rows_of_both_tables_are_in_the_run(joined, curve):
    run = load_run(joined[0])
    parts = (run.model.anchor_X_, run.model.anchor_y_), run.validation, run.test
    found = np.concatenate([np.column_stack(part) for part in parts])
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(np.column_stack(curve), axis=0))
    assert run.feature_names == ("angle", "offset", "idle")


def test_the_record_names_all_files(joined, tables):
    folder, printed, _ = joined
    source = load_run(folder).source
    assert source["dataset"] == printed["dataset"] == "base.csv and points.csv"
    assert source["tables"] == printed["tables"] == {"base.csv": 60, "points.csv": 60}
    assert (source["rows"], source["group"]) == (120, "device")


def test_the_run_knows_the_rows_of_each_file(joined, tables):
    run = load_run(joined[0])
    level = [
        [float(line.split(",")[k]) for line in path.read_text().splitlines()[1:]]
        for k, path in zip((3, 0), tables, strict=True)
    ]
    points = {"train": run.model.anchor_y_, "val": run.validation[1], "test": run.test[1]}
    for part, y in points.items():
        assert [level[file][number - 2] for file, number in run.rows[part].tolist()] == y.tolist()


def test_one_remark_describes_what_becomes_of_rows_without_a_group(joined, tables):
    notes = [line for line in joined[2].splitlines() if "% done" not in line]
    assert notes == [
        f"{tables[0]}: no column 'device' for the groups: each of its rows is a group of its own",
        f"{tables[0]} and {tables[1]}: 6 groups of rows: 4 to train, 1 to validate, 1 to test",
    ]


def test_only_devices_are_scored_as_groups(joined):
    groups = load_run(joined[0]).scores["groups"]
    assert len(groups) >= 1
    assert {one["name"] for one in groups} <= {f"unit {k}" for k in range(6)}
    assert all(one["rows"] == 10 for one in groups)


def test_training_rows_of_both_tables_are_recognised(joined, tables, cli):
    run = load_run(joined[0])
    for file, path in enumerate(tables):
        answer = cli("evaluate", joined[0], path, "--json")
        assert answer.code == 0
        assert answer.json["trained_on"] == (run.rows["train"][:, 0] == file).sum() > 0


def test_check_takes_several_tables_too(tables, cli, refused, tmp_path):
    (tmp_path / "odd.csv").write_text("angle,level\n1,2\n")
    for command in ("train", "check"):
        refused(
            *(command, tables[0], "odd.csv", "--target", "level"),
            says=["odd.csv: has other columns", "--drop offset --drop idle", str(tables[0])],
        )
        refused(*(command, tables[0], tables[0], "--target", "level"), says=["named twice"])
        refused(command, *tables, "--dataset", "tf", says=["--dataset tf: name one of the two"])


# Files as spreadsheets of all locales write them, from training to prediction.


def test_missing_values_are_filled_with_the_medians_of_training(cli, curve_csv, loud, tmp_path):
    header, *rows = (line.split(",") for line in curve_csv.read_text().splitlines())
    rows[3][1] = ""
    rows[7][1] = "NA"
    (tmp_path / "holes.csv").write_text("\n".join(map(",".join, [header, *rows])))
    answer = cli(
        *("train", "holes.csv", "--target", "level", "--impute", "median", "-o", "run"),
        *("--json", *loud, "--no-intervals"),
    )
    assert answer.code == 0
    assert answer.err == "holes.csv: filled in 2 missing values\n"

    train = split_rows(len(rows), 0).train
    median = np.median([float(rows[k][1]) for k in train if k not in (3, 7)])
    assert median != np.median([float(row[1]) for k, row in enumerate(rows) if k not in (3, 7)])
    (tmp_path / "hole.csv").write_text("angle,offset,idle\n0.5,,-20\n")
    (tmp_path / "filled.csv").write_text(f"angle,offset,idle\n0.5,{median:.17g},-20\n")
    hole, filled = cli("predict", "run", "hole.csv"), cli("predict", "run", "filled.csv")
    assert hole.out == filled.out[:-1] + "offset\n"  # named in the last column, as missing
    assert hole.err == "hole.csv: filled in 1 missing value\n"
    assert cli("predict", "run", "hole.csv", "--quiet").err == ""
