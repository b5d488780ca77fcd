"""``twinedge train base.csv points.csv``: one model from several tables."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np
import pytest

from twinedge.cli import main
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
def trained(tables, loud, tmp_path_factory):
    """A run, the JSON that was printed, and the remarks."""
    folder = tmp_path_factory.mktemp("joined") / "run"
    arguments = ["train", *tables, "--target", "level", "--group", "device", "-o", folder]
    with (
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
        pytest.raises(SystemExit) as stop,
    ):
        main([str(one) for one in (*arguments, "--json", *loud)])
    assert stop.value.code == 0
    return folder, json.loads(out.getvalue()), err.getvalue()


def test_all_rows_of_both_tables_are_in_the_run(trained, curve):
    run = load_run(trained[0])
    parts = (run.model.anchor_X_, run.model.anchor_y_), run.validation, run.test
    found = np.concatenate([np.column_stack(part) for part in parts])
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(np.column_stack(curve), axis=0))
    assert run.feature_names == ("angle", "offset", "idle")


def test_the_record_names_all_files(trained, tables):
    folder, printed, _ = trained
    source = load_run(folder).source
    assert source["dataset"] == printed["dataset"] == "base.csv and points.csv"
    assert source["tables"] == printed["tables"] == {"base.csv": 60, "points.csv": 60}
    assert (source["rows"], source["group"]) == (120, "device")


def test_the_run_knows_the_rows_of_each_file(trained, tables):
    run = load_run(trained[0])
    level = [
        [float(line.split(",")[k]) for line in path.read_text().splitlines()[1:]]
        for k, path in zip((3, 0), tables, strict=True)
    ]
    points = {"train": run.model.anchor_y_, "val": run.validation[1], "test": run.test[1]}
    for part, y in points.items():
        assert [level[file][number - 2] for file, number in run.rows[part].tolist()] == y.tolist()


def test_one_remark_says_what_becomes_of_rows_without_a_group(trained, tables):
    notes = [line for line in trained[2].splitlines() if "% done" not in line]
    assert notes == [
        f"{tables[0]}: no column 'device' for the groups: each of its rows is a group of its own",
        f"{tables[0]} and {tables[1]}: 6 groups of rows: 4 to train, 1 to validate, 1 to test",
    ]


def test_only_devices_are_scored_as_groups(trained):
    groups = load_run(trained[0]).scores["groups"]
    assert len(groups) >= 1
    assert {one["name"] for one in groups} <= {f"unit {k}" for k in range(6)}
    assert all(one["rows"] == 10 for one in groups)


def test_training_rows_of_both_tables_are_recognised(trained, tables, cli):
    run = load_run(trained[0])
    for file, path in enumerate(tables):
        answer = cli("evaluate", trained[0], path, "--json")
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
