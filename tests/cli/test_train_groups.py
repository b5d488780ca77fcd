"""``twinedge train --group``: rows that belong together are held out together."""

import json

import numpy as np
import pytest

from twinedge import export
from twinedge.cli.output import print_groups
from twinedge.data import split_groups
from twinedge.data.source import from_table
from twinedge.pack import read_pack
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def batches(curve):
    """The batch of each of 120 rows, and what it adds to the target."""
    batch = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 12))
    return batch, np.random.default_rng(1).normal(0, 20, 10)[batch]


@pytest.fixture(scope="module")
def table(curve, batches, tmp_path_factory):
    """The curve with two more columns: the batch as a word, and its number."""
    X, y = curve
    batch, shift = batches
    rows = [
        f"batch {one:02},{','.join(map(repr, row))},{target!r},{one}"
        for one, row, target in zip(batch, X.tolist(), (y + shift).tolist(), strict=True)
    ]
    path = tmp_path_factory.mktemp("tables") / "batches.csv"
    path.write_text("\n".join(["batch,angle,offset,idle,level,number", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(done, table, loud, tmp_path_factory):
    """A run, the JSON that was printed, and the remarks."""
    folder = tmp_path_factory.mktemp("grouped") / "run"
    arguments = ["train", table, "--target", "level", "--group", "batch", "--drop", "number"]
    answer = done(*arguments, "-o", folder, "--json", *loud)
    return folder, answer.json, answer.err


def batch_of(points, table, column=0):
    """The batches of points."""
    rows = [line.split(",") for line in table.read_text().splitlines()[1:]]
    place = {tuple(map(float, row[1:4])): row[column] for row in rows}
    return [place[tuple(row)] for row in points.tolist()]


def test_no_batch_is_on_two_sides(trained, table, batches):
    run = load_run(trained[0])
    sides = [set(batch_of(x, table)) for x in (run.model.anchor_X_, run.validation[0], run.test[0])]
    assert [len(side) for side in sides] == [7, 1, 2]
    assert len(set.union(*sides)) == 10
    right = split_groups([f"batch {one:02}" for one in batches[0]], 0)
    assert sides[2] == {f"batch {one:02}" for one in batches[0][right.test]}


def test_the_column_is_no_feature(trained):
    folder, report, _ = trained
    assert load_run(folder).feature_names == ("angle", "offset", "idle")
    assert (report["features"], report["rows"]) == (3, 120)
    assert report["group"] == load_run(folder).source["group"] == "batch"


def test_the_run_has_groups_and_trust(trained, table, tmp_path):
    model = load_run(trained[0]).model
    named = batch_of(model.anchor_X_, table)
    np.testing.assert_array_equal(model.groups_, np.unique(named, return_inverse=True)[1])
    assert len(set(model.validation_groups_)) == 1
    assert model.trust_ > 0.6
    export(trained[0], tmp_path / "out", anchors=8, formats=("twin",))
    pack = read_pack((tmp_path / "out" / "model.twin").read_bytes())
    assert pack.intervals.trust == round(65536 * model.trust_)


def test_how_many_groups_there_are_is_remarked(trained, table):
    _, _, err = trained
    words = "10 groups of rows: 7 to train, 1 to validate, 2 to test"
    remarks = [line for line in err.splitlines() if "% done" not in line]
    assert remarks == [f"{table}: {words}"]


def test_each_group_has_scores(trained, table):
    folder, report, _ = trained
    run = load_run(folder)
    assert run.scores["groups"] == report["groups"]
    named = np.array(batch_of(run.test[0], table))
    error = run.model.predict(run.test[0]) - run.test[1]
    low, high = run.model.predict_interval(run.test[0], 0.9).T
    covered = (low <= run.test[1]) & (run.test[1] <= high)
    tested = [one for one in report["groups"] if one["part"] == "test"]
    assert [one["name"] for one in tested] == sorted(set(named))
    for one in tested:
        mine = named == one["name"]
        assert one["rows"] == mine.sum() == 12
        assert one["rmse"] == pytest.approx(np.sqrt(np.mean(error[mine] ** 2)))
        assert one["mean_error"] == pytest.approx(error[mine].mean())
        assert one["coverage"] == pytest.approx(covered[mine].mean())
    # There is one validation group, so that training groups were left out in turn.
    left_out = [one for one in report["groups"] if one["part"] == "left out"]
    assert {one["name"] for one in left_out} == set(batch_of(run.model.anchor_X_, table))
    squares = sum(one["rows"] * one["rmse"] ** 2 for one in left_out) / 84
    assert report["rmse_left_out"] == pytest.approx(np.sqrt(squares))


def test_a_column_of_numbers_groups_rows_and_the_worst_is_printed_first(cli, table, tiny, tmp_path):
    arguments = ["--group", "number", "--drop", "batch", "--no-intervals"]
    answer = cli("train", table, "--target", "level", *arguments, "-o", "run", *tiny)
    assert (answer.code, answer.err) == (0, "")
    run = load_run(tmp_path / "run")
    assert run.feature_names == ("angle", "offset", "idle")
    sides = [set(batch_of(x, table, 5)) for x in (run.model.anchor_X_, run.test[0])]
    assert not sides[0] & sides[1]
    lines = answer.out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("group  rows"))
    errors = [float(line.split()[2]) for line in lines[start + 1 : start + 3]]
    assert errors == sorted(errors, reverse=True)
    assert "groups" not in answer.out[: answer.out.index("group  rows")]


def test_of_many_groups_the_worst_and_the_best_are_printed(capsys):
    groups = [
        {"name": f"g{k}", "rows": 3, "rmse": float(k), "mean_error": 0.0, "coverage": None}
        for k in range(30)
    ]
    print_groups(groups)
    head, _, *rows = capsys.readouterr().out.splitlines()[1:]
    assert head == "The 5 worst of 30 groups, and the best:"
    assert [row.split()[0] for row in rows] == ["g29", "g28", "g27", "g26", "g25", "g0"]
    print_groups(groups[:20])
    assert len(capsys.readouterr().out.splitlines()) == 22


def test_groups_of_a_single_row_are_remarked(table, tmp_path):
    head, *rows = table.read_text().splitlines()
    rows[0], rows[1] = f"lone{rows[0][8:]}", f"other{rows[1][8:]}"
    (tmp_path / "lone.csv").write_text("\n".join([head, *rows]))
    options = {"target": "level", "group": "batch", "drop": ["number"]}
    remarks = from_table(tmp_path / "lone.csv", **options).remarks
    assert any("2 groups of a single row" in str(one) for one in remarks)
    assert not any("single row" in str(one) for one in from_table(table, **options).remarks)


@pytest.fixture(scope="module")
def packed(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grouped") / "out"
    export(trained[0], folder, anchors=8, formats=("twin",))
    return folder / "model.twin"


@pytest.mark.parametrize("kind", ["run", "pack"])
def test_evaluate_scores_each_group(cli, trained, packed, table, kind):
    model = trained[0] if kind == "run" else packed
    answer = cli("evaluate", model, table, "--group", "batch", "--json")
    found = json.loads(answer.out)
    groups = found["groups"]
    assert [one["name"] for one in groups] == [f"batch {k:02}" for k in range(10)]
    squares = sum(one["rows"] * one["rmse"] ** 2 for one in groups) / 120
    assert found["rmse"] == pytest.approx(np.sqrt(squares))
    assert all(0 <= one["coverage"] <= 1 for one in groups)
    shown = cli("evaluate", model, table, "--group", "batch").out
    assert "group" in shown
    assert shown.count("batch 0") == 10
    assert "groups" not in json.loads(cli("evaluate", model, table, "--json").out)


def test_evaluate_refuses_a_row_without_a_group(refused, packed, table, tmp_path):
    says = ["no column 'bach' for the groups"]
    refused("evaluate", packed, table, "--group", "bach", says=says)
    lines = table.read_text().splitlines()
    lines[4] = "," + lines[4].split(",", 1)[1]
    (tmp_path / "holes.csv").write_text("\n".join(lines))
    says = ["holes.csv: row 5, column 'batch': missing; every row needs its group"]
    refused("evaluate", packed, "holes.csv", "--group", "batch", says=says)


def test_a_report_shows_how_groups_differ(cli, trained, tmp_path):
    assert cli("report", trained[0], "--quick", "--format", "md").code == 0
    text = (tmp_path / "report.md").read_text()
    assert "How groups differ" in text
    rows = [line for line in text.splitlines() if line.startswith("| batch ")]
    assert len(rows) == 9
    assert sum("not seen by the networks that predicted it" in row for row in rows) == 7
    assert "--group batch" in text
